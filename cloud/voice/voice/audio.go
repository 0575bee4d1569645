package voice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/infra/wav"
	"kennel/speech/recognizer"
)

const (
	// KeepAudio is how long audio is kept if the owner wants it kept at all.
	KeepAudio = 7 * 24 * time.Hour
	// Prefix begins the keys of all audio in the bucket: speech/THING/TIME-SESSION.wav.
	Prefix = "speech/"

	maxSamples = 30 * recognizer.Rate // of one recording
	maxWaiting = 16                   // recordings, at most 16 MB
	moment     = "20060102T150405.000Z"
	putTime    = 30 * time.Second
	maxListed  = 200
)

// Wishes keeps which owners want the audio of their robots kept; *sessionpg.Store is one.
type Wishes interface {
	SetAudio(ctx context.Context, id thing.ID, account string, keep bool, now time.Time) error
	// EndAudio forgets a wish from before a time.
	EndAudio(ctx context.Context, id thing.ID, before time.Time) error
	// Audio returns who wants it, and since when; "": no one.
	Audio(ctx context.Context, id thing.ID) (account string, since time.Time, err error)
}

// Objects keeps recordings; *blob.Store is one.
type Objects interface {
	Put(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions) error
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error)
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error]
}

// Audio is session.AudioKeeper: it keeps the audio of robots whose owners want it, for KeepAudio, and forgets all other (VEC-NLP-07). A recording
// belongs to the ownership in which it was made. Run must run. Safe for concurrent use.
type Audio struct {
	wishes  Wishes
	objects Objects
	owner   func(ctx context.Context, id thing.ID) (account string, err error) // "" or NotFound: no one
	now     func() time.Time
	log     *slog.Logger
	queue   chan recording
	waiting atomic.Int64 // in the queue or being stored
	dropped atomic.Int64
}

type recording struct {
	thing   thing.ID
	session string
	at      time.Time
	samples []int16
}

// NewAudio returns a keeper.
func NewAudio(wishes Wishes, objects Objects, owner func(context.Context, thing.ID) (string, error), now func() time.Time, log *slog.Logger) *Audio {
	return &Audio{wishes: wishes, objects: objects, owner: owner, now: now, log: log, queue: make(chan recording, maxWaiting)}
}

// Keep implements session.AudioKeeper: it never waits. Long audio is cut.
func (a *Audio) Keep(_ context.Context, id thing.ID, session string, samples []int16) {
	if id == "" || len(samples) == 0 {
		return
	}
	a.waiting.Add(1)
	select {
	case a.queue <- recording{id, session, a.now().UTC(), samples[:min(len(samples), maxSamples)]}:
	default:
		a.waiting.Add(-1)
		a.dropped.Add(1)
	}
}

// Dropped returns how many recordings were lost because the object store was slow or away. Most of them no owner wanted.
func (a *Audio) Dropped() int64 { return a.dropped.Load() }

// Waiting returns how many recordings were not looked at yet.
func (a *Audio) Waiting() int { return int(a.waiting.Load()) }

// Run stores recordings until ctx ends. What is not stored then is forgotten.
func (a *Audio) Run(ctx context.Context) error {
	for {
		select {
		case r := <-a.queue:
			if err := a.store(ctx, r); err != nil && ctx.Err() == nil {
				a.dropped.Add(1)
				a.log.WarnContext(ctx, "audio not kept", logging.Thing, r.thing, logging.Err, err)
			}
			a.waiting.Add(-1)
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *Audio) store(ctx context.Context, r recording) error {
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	since, err := a.wanted(ctx, r.thing)
	if err != nil || since.IsZero() || r.at.Before(since) {
		return err
	}
	body, key := Wave(r.samples), prefix(r.thing)+r.at.Format(moment)+"-"+plain(r.session)+".wav"
	if err := a.objects.Put(ctx, key, bytes.NewReader(body), int64(len(body)), blob.PutOptions{}); err != nil {
		return err
	}
	// An owner who took the wish back, or left, meanwhile did not find this recording to delete. A process that dies here leaves it to Expire.
	now, err := a.wanted(ctx, r.thing)
	if err == nil && !now.Equal(since) {
		err = a.objects.Delete(ctx, key)
	}
	return err
}

// wanted returns since when the robot's owner wants audio kept; zero: not at all.
func (a *Audio) wanted(ctx context.Context, id thing.ID) (since time.Time, err error) {
	account, since, err := a.wishes.Audio(ctx, id)
	if err != nil || account == "" {
		return time.Time{}, err
	}
	owner, err := a.owner(ctx, id)
	if err != nil && errs.KindOf(err) != errs.NotFound {
		return time.Time{}, err
	}
	if owner != account {
		return time.Time{}, nil
	}
	return since, nil
}

// AudioWish is whether a robot's owner wants audio kept, and what is kept.
type AudioWish struct {
	Keep       bool        `json:"keep"`
	KeepDays   int         `json:"keep_days"`
	Recordings []Recording `json:"recordings"` // the latest first
}

// Recording is one recording.
type Recording struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	Size int64     `json:"size"`
}

// Wish returns what a robot's owner wants and what is kept for them.
func (a *Audio) Wish(ctx context.Context, id thing.ID) (AudioWish, error) {
	since, err := a.wanted(ctx, id)
	out := AudioWish{!since.IsZero(), int(KeepAudio / (24 * time.Hour)), []Recording{}}
	if err != nil || !out.Keep {
		return out, err
	}
	all, err := a.List(ctx, thing.Stretch{Thing: id, Since: since, Until: a.now().Add(time.Hour)})
	out.Recordings = append(out.Recordings, all[:min(len(all), maxListed)]...)
	return out, err
}

// Set notes what an account wants of its robot. Without the wish all its recordings are deleted.
func (a *Audio) Set(ctx context.Context, id thing.ID, account string, keep bool) error {
	if err := a.wishes.SetAudio(ctx, id, account, keep, a.now()); err != nil || keep {
		return err
	}
	_, err := a.Drop(ctx, thing.Stretch{Thing: id, Until: a.now().Add(time.Hour)})
	return err
}

// Ended ends the wish of an owner whose ownership ended with s, and deletes the recordings until then. It may come late: the next owner's wish and recordings stay.
func (a *Audio) Ended(ctx context.Context, s thing.Stretch) error {
	if err := a.wishes.EndAudio(ctx, s.Thing, s.Until); err != nil {
		return err
	}
	_, err := a.Drop(ctx, thing.Stretch{Thing: s.Thing, Until: s.Until})
	return err
}

// Open returns a recording of a robot; the caller closes it. NotFound.
func (a *Audio) Open(ctx context.Context, id thing.ID, name string) (io.ReadCloser, int64, error) {
	since, err := a.wanted(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	if at, ok := timeOf(name); since.IsZero() || !ok || at.Before(since) || strings.Contains(name, "/") {
		return nil, 0, errs.New(errs.NotFound, "%s has no recording %.80q", id, name)
	}
	body, info, err := a.objects.Get(ctx, prefix(id)+name, 0, 0)
	return body, info.Size, err
}

// List returns the recordings of a stretch, the latest first.
func (a *Audio) List(ctx context.Context, s thing.Stretch) ([]Recording, error) {
	out := []Recording{}
	for o, err := range a.objects.List(ctx, prefix(s.Thing)) {
		if err != nil {
			return nil, fmt.Errorf("recordings of %s: %w", s.Thing, err)
		}
		name := strings.TrimPrefix(o.Key, prefix(s.Thing))
		if at, ok := timeOf(name); ok && s.Holds(s.Thing, at) {
			out = append(out, Recording{name, at, o.Size})
		}
	}
	slices.Reverse(out) // keys are in the order of time
	return out, nil
}

// Drop deletes the recordings of a stretch and returns how many.
func (a *Audio) Drop(ctx context.Context, s thing.Stretch) (n int, err error) {
	all, err := a.List(ctx, s)
	for _, r := range all {
		if err := a.objects.Delete(ctx, prefix(s.Thing)+r.Name); err != nil {
			return n, err
		}
		n++
	}
	return n, err
}

// Files hands the recordings of a stretch to add, by name.
func (a *Audio) Files(ctx context.Context, s thing.Stretch, add func(name string, write func(io.Writer) error) error) error {
	all, err := a.List(ctx, s)
	if err != nil {
		return err
	}
	for _, r := range all {
		err := add(s.Thing.Slug()+"/"+r.Name, func(w io.Writer) error {
			body, _, err := a.objects.Get(ctx, prefix(s.Thing)+r.Name, 0, 0)
			if err != nil {
				return err
			}
			_, err = io.Copy(w, body)
			return errors.Join(err, body.Close())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Expire deletes everything below Prefix that is older than KeepAudio or that no owner wants kept, whatever it is called, and returns how much.
func (a *Audio) Expire(ctx context.Context) (n int, err error) {
	since := map[string]time.Time{} // by the robot's folder
	for o, err := range a.objects.List(ctx, Prefix) {
		if err != nil {
			return n, fmt.Errorf("expire audio: %w", err)
		}
		folder, name, _ := strings.Cut(strings.TrimPrefix(o.Key, Prefix), "/")
		from, known := since[folder]
		if id, err := thing.Parse(strings.Replace(folder, "-", ":", 1)); !known && err == nil {
			if from, err = a.wanted(ctx, id); err != nil {
				return n, err
			}
			since[folder] = from
		}
		at, ok := timeOf(name)
		if ok && !from.IsZero() && !at.Before(from) && a.now().Sub(at) < KeepAudio {
			continue
		}
		if err := a.objects.Delete(ctx, o.Key); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func prefix(id thing.ID) string { return Prefix + id.Slug() + "/" }

// timeOf reads the time in a recording's name.
func timeOf(name string) (time.Time, bool) {
	word, _, _ := strings.Cut(name, "-")
	t, err := time.Parse(moment, word)
	return t, err == nil
}

// plain returns the letters and digits of a session's name, at most 40.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
	return s[:min(len(s), 40)]
}

// Wave returns samples as a file in the format WAV: 16 bits, one channel, at recognizer.Rate.
func Wave(samples []int16) []byte {
	return wav.Append(nil, &wav.Sound{Rate: recognizer.Rate, Channels: 1, Samples: samples})
}
