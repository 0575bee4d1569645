// Package archive keeps the raw batches of robots in S3: it joins the many small objects in which they arrive, finds and erases those of one robot
// without reading the others', and ends those that are old.
//
//	das/2006-01-02/15/RANDOM       loose: the batches of one transaction, as the Ingester puts them
//	das/2006-01-02/15/3-DIGEST     part: batches of shard 3 that were received in this hour (UTC)
//	das/2006-01-02/RANDOM          loose, of a former release
//
// The archive is a set of batches: which object holds a batch, and whether two do, does not matter. Each reads every batch once. A compaction
// writes parts first and deletes what they hold then, so a process that is killed between any two steps leaves batches twice and never loses one;
// the next compaction makes one of two. A part is named by its content, so that the same work done twice is one object. Readers that miss an object
// between listing and reading list again.
//
// Compaction and erasure exclude one another by a lock (Ledger), or a compaction could write again what an erasure has just removed. An erasure
// is told to the Ledger before it begins, and a compaction drops what is erased from what it writes.
package archive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"log/slog"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Root begins the keys of all raw objects.
const Root = "das/"

const (
	shards     = 8        // a person's batches of an hour are in the parts of one
	partBytes  = 32 << 20 // a part that is larger is not joined again
	chunkBytes = 32 << 20 // loose objects that are joined at a time
	atOnce     = 8        // objects that one run reads or deletes at once
	grace      = 10 * time.Minute
	endTime    = 5 * time.Second // before its end a run begins no further step, so that none is cut off
)

// Objects is the part of a blob.Store that the archive needs.
type Objects interface {
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error)
	Put(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions) error
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error]
}

// Ledger holds the facts that processes share when they work on the archive.
type Ledger interface {
	// Locked runs fn while no other process is within Locked. held returns an error if the lock was lost.
	Locked(ctx context.Context, fn func(held func(context.Context) error) error) error
	// Erased returns the stretches of which nothing may be written any more.
	Erased(ctx context.Context) ([]thing.Stretch, error)
}

// Archive is safe for concurrent use, by any number of processes.
type Archive struct {
	objects Objects
	ledger  Ledger
	log     *slog.Logger
}

// New returns the archive in a bucket.
func New(objects Objects, ledger Ledger, log *slog.Logger) *Archive {
	return &Archive{objects, ledger, log}
}

// place holds the facts that the key of an object says.
type place struct {
	key   string
	size  int64
	from  time.Time // begin of the hour; of a former release's object, of the day
	day   bool      // of a former release
	shard int       // -1: loose
}

func (p place) to() time.Time {
	if p.day {
		return p.from.AddDate(0, 0, 1)
	}
	return p.from.Add(time.Hour)
}

var partName = regexp.MustCompile(`^([0-7])-[0-9a-f]{32}$`)

// parse reads a key; false: it is none of the archive.
func parse(key string, size int64) (p place, ok bool) {
	rest, ok := strings.CutPrefix(key, Root)
	steps := strings.Split(rest, "/")
	if !ok || len(steps) < 2 || len(steps) > 3 || steps[len(steps)-1] == "" {
		return place{}, false
	}
	p = place{key: key, size: size, day: len(steps) == 2, shard: -1}
	layout, at := time.DateOnly, steps[0]
	if !p.day {
		layout, at = time.DateOnly+"/15", steps[0]+"/"+steps[1]
		if m := partName.FindStringSubmatch(steps[2]); m != nil {
			p.shard = int(m[1][0] - '0')
		}
	}
	var err error
	p.from, err = time.Parse(layout, at)
	return p, err == nil
}

// shardOf returns the shard whose parts have a robot's batches.
func shardOf(id thing.ID) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash takes everything
	return int(h.Sum32() % shards)
}

// hour is one hour's parts of one shard.
type hour struct {
	at    time.Time
	shard int
}

func hourOf(b das.RawBatch) hour { return hour{b.Received.UTC().Truncate(time.Hour), shardOf(b.Thing)} }

func (h hour) prefix() string {
	return fmt.Sprintf("%s%d-", h.at.Format("das/2006-01-02/15/"), h.shard)
}

func (h hour) key(body []byte) string {
	sum := sha256.Sum256(body)
	return fmt.Sprintf("%s%x", h.prefix(), sum[:16])
}

// list returns the objects under a prefix by key.
func (a *Archive) list(ctx context.Context, prefix string) (out []place, err error) {
	for o, err := range a.objects.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if p, ok := parse(o.Key, o.Size); ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// read returns an object's content; errs.NotFound if it is gone.
func (a *Archive) read(ctx context.Context, key string) ([]byte, error) {
	body, _, err := a.objects.Get(ctx, key, 0, 0)
	if err != nil {
		return nil, err
	}
	defer body.Close() // only read
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return b, nil
}

// batches returns what an object holds; nil with a line in our log if it is damaged.
func (a *Archive) batches(ctx context.Context, key string) (in []das.RawBatch, ok bool, err error) {
	body, err := a.read(ctx, key)
	if missing(err) { // another process was first
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err := das.ReadRaw(bytes.NewReader(body), func(b das.RawBatch) error { in = append(in, b); return nil }); err != nil {
		a.log.WarnContext(ctx, "raw object damaged; left unchanged", "key", key, "err", err)
		return nil, false, nil
	}
	return in, true, nil
}

func missing(err error) bool { return errs.KindOf(err) == errs.NotFound }

// Put implements das.Blobs.
func (a *Archive) Put(ctx context.Context, key string, body []byte) error {
	return a.objects.Put(ctx, key, bytes.NewReader(body), int64(len(body)), blob.PutOptions{})
}

// left returns how much time ctx has.
func left(ctx context.Context) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		return time.Until(at)
	}
	return math.MaxInt64
}

// enough reports whether ctx still has time for a step.
func enough(ctx context.Context) bool { return ctx.Err() == nil && left(ctx) > endTime }

// set holds what identifies batches: the digest of their written form.
type set map[[sha256.Size]byte]struct{}

// add returns the written form of b, and whether it is new.
func (s set) add(b das.RawBatch) ([]byte, bool) {
	line := das.AppendRaw(nil, b)
	sum := sha256.Sum256(line)
	if _, there := s[sum]; there {
		return line, false
	}
	s[sum] = struct{}{}
	return line, true
}

// Each calls fn for each batch of a stretch, once, not in order. While others compact it sees all batches nevertheless.
func (a *Archive) Each(ctx context.Context, stretch thing.Stretch, fn func(das.RawBatch) error) error {
	for day := stretch.Since.UTC().Truncate(24 * time.Hour); day.Before(stretch.Until); day = day.AddDate(0, 0, 1) {
		seen := set{}
		for again := true; again; {
			if err := ctx.Err(); err != nil {
				return err
			}
			again = false
			places, err := a.candidates(ctx, day, stretch)
			if err != nil {
				return err
			}
			for _, p := range places {
				body, err := a.read(ctx, p.key)
				if missing(err) {
					again = true // it was joined to others since it was listed
					continue
				}
				if err != nil {
					return err
				}
				if err := das.ReadRaw(bytes.NewReader(body), func(b das.RawBatch) error {
					if !stretch.Holds(b.Thing, b.Received) {
						return nil
					}
					if _, fresh := seen.add(b); !fresh {
						return nil
					}
					return fn(b)
				}); err != nil {
					return fmt.Errorf("raw object %s: %w", p.key, err)
				}
			}
		}
	}
	return nil
}

// candidates returns the objects of a day that may hold batches of a stretch, hour by hour.
func (a *Archive) candidates(ctx context.Context, day time.Time, stretch thing.Stretch) ([]place, error) {
	places, err := a.list(ctx, day.Format("das/2006-01-02/"))
	if err != nil {
		return nil, err
	}
	places = slices.DeleteFunc(places, func(p place) bool {
		return !p.from.Before(stretch.Until) || !p.to().After(stretch.Since) || p.shard >= 0 && p.shard != shardOf(stretch.Thing)
	})
	slices.SortStableFunc(places, func(x, y place) int { return cmp.Or(x.to().Compare(y.to()), strings.Compare(x.key, y.key)) })
	return places, nil
}

// Erase removes the batches of a stretch, from an hour on (the zero time: from its begin). After each hour it calls done with the hour's end and how
// many batches were removed, so that a run that is cut off continues there. It returns errs.CodeAgain when its time is over.
func (a *Archive) Erase(ctx context.Context, stretch thing.Stretch, from time.Time, done func(ctx context.Context, upto time.Time, batches int) error) error {
	rest := stretch
	if from.After(rest.Since) {
		rest.Since = from
	}
	for day := rest.Since.UTC().Truncate(24 * time.Hour); day.Before(rest.Until); day = day.AddDate(0, 0, 1) {
		places, err := a.candidates(ctx, day, rest)
		if err != nil {
			return err
		}
		for i, p := range places {
			if !enough(ctx) {
				return errs.Coded(errs.Unavailable, errs.CodeAgain, "raw batches are being erased")
			}
			n, err := a.eraseFrom(ctx, p, stretch)
			if err != nil {
				return fmt.Errorf("erase raw batches: %w", err)
			}
			upto := rest.Since
			if i+1 == len(places) || places[i+1].to().After(p.to()) { // the hour's last
				upto = p.to()
			}
			if n > 0 || upto.After(rest.Since) {
				if err := done(ctx, upto, n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// eraseFrom replaces one object by one without the batches of a stretch. The new one is there before the old one goes.
func (a *Archive) eraseFrom(ctx context.Context, p place, stretch thing.Stretch) (n int, err error) {
	err = a.ledger.Locked(ctx, func(held func(context.Context) error) error {
		body, err := a.read(ctx, p.key)
		if missing(err) { // a compaction was before us, and left nothing of the stretch
			return nil
		}
		if err != nil {
			return err
		}
		rest, dropped, damage := das.WithoutRaw(body, stretch)
		if damage != nil { // a batch that cannot be read may be the person's
			a.log.WarnContext(ctx, "raw object damaged; its end removed during erasure", "key", p.key, "err", damage)
		} else if dropped == 0 {
			return nil
		}
		if err := held(ctx); err != nil {
			return err
		}
		if len(rest) > 0 {
			key := fmt.Sprintf("%s/%x", path.Dir(p.key), sha256.Sum256(rest)) // the same again after a kill
			if p.shard >= 0 {
				key = hour{p.from, p.shard}.key(rest)
			}
			if err := a.Put(ctx, key, rest); err != nil {
				return err
			}
		}
		n = dropped
		return a.objects.Delete(ctx, p.key)
	})
	return n, err
}
