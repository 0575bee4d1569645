package das

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/backoff"
)

// Patience of the uploader; our own defaults.
const (
	publishTimeout = 10 * time.Second
	firstResend    = 5 * time.Second // after a batch was published without an answer; doubles
	maxResend      = time.Minute
	statsEvery     = 10 // batches stored, between two dasmgr.upload.stats, as in the original
)

// Codes of refusals after which events are dropped, not even kept in quarantine.
const (
	OptedOut     = "opted_out"     // the cloud knows of an opt-out before the robot does
	OwnerChanged = "owner_changed" // they began to arrive under another owner
)

// flight is a batch on its way.
type flight struct {
	chunk          // its lines, less those that were refused
	total   int    // events of the chunk as read
	id      string // of the batch; a new one whenever the content changes
	payload []byte
	sent    int // how often
	next    time.Time
	done    bool
}

// uploader is the state of the sending side; one goroutine owns it.
type uploader struct {
	*Manager
	publish func(ctx context.Context, name string, payload []byte) error

	cursor  place     // next to read
	until   place     // where reading stops: newer events wait for the next flush, to be sent together
	flights []*flight // ascending places; the first is never done
	wake    time.Time // next regular flush
	asked   bool      // the flush that is due was asked for
	paused  time.Time // nothing is sent before
	fails   int       // publishes that failed, one after the other
	window  int       // 1 until the cloud answers, then conf.Window, so that a returning fleet starts gently
	bytes   int       // raw bytes of one batch; adapts to how well they compress
	stored  int64
	failed  int64
}

func newUploader(m *Manager, publish func(ctx context.Context, name string, payload []byte) error) *uploader {
	return &uploader{Manager: m, publish: publish, window: 1, bytes: 4 * m.conf.BatchBytes}
}

func (u *uploader) run(ctx context.Context) error {
	u.cursor, _ = u.spool.headPlace()
	u.wake = time.Now().Add(backoff.Jitter(u.conf.FlushInterval)) // robots that start together do not send together
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-u.acks:
			if err := u.acked(a, time.Now()); err != nil {
				return err
			}
		case <-u.flush:
			u.flushNow(time.Now())
		case <-timer.C:
		}
		if err := u.send(ctx); err != nil {
			return err
		}
		timer.Reset(time.Until(u.due()))
	}
}

// flushNow makes everything due, unless the cloud asked for patience.
func (u *uploader) flushNow(now time.Time) {
	u.wake, u.asked, u.fails = now, true, 0
	for _, f := range u.flights {
		f.sent, f.next = 0, now
	}
}

// due returns when the next timed work is due.
func (u *uploader) due() time.Time {
	due := u.wake
	for _, f := range u.flights {
		if !f.done && f.next.Before(due) {
			due = f.next
		}
	}
	if due.Before(u.paused) {
		return u.paused
	}
	return due
}

// send publishes batches that are due, and new ones while there are events and room in the window.
func (u *uploader) send(ctx context.Context) error {
	if !u.AllowUpload() {
		u.flights = nil
		u.wake = time.Now().Add(u.conf.FlushInterval)
		return nil
	}
	u.forgetPurged()
	now := time.Now()
	if now.Before(u.paused) {
		return nil
	}
	for _, f := range u.flights {
		if !f.done && !now.Before(f.next) && !u.sendOne(ctx, f) {
			return nil
		}
	}
	if now = time.Now(); !now.Before(u.wake) {
		pause := u.conf.FlushInterval
		if u.asked { // robots that reconnected together do not keep sending together
			pause, u.asked = backoff.Jitter(pause), false
		}
		u.until, u.wake = u.spool.endPlace(), now.Add(pause)
	}
	for len(u.flights) < u.window && u.cursor.compare(u.until) < 0 {
		f, err := u.load()
		if err != nil {
			return err
		}
		if f == nil {
			u.until = u.cursor
			return nil
		}
		u.flights = append(u.flights, f)
		if !u.sendOne(ctx, f) {
			return nil
		}
	}
	return nil
}

// forgetPurged drops batches of events that were thrown away since.
func (u *uploader) forgetPurged() {
	head, purges := u.spool.headPlace()
	u.flights = slices.DeleteFunc(u.flights, func(f *flight) bool { return f.purges != purges })
	if u.cursor.compare(head) < 0 {
		u.cursor = head
	}
}

// load reads the next events and makes a batch that fits the wire; nil when there are none.
func (u *uploader) load() (*flight, error) {
	maxEvents := u.conf.BatchEvents
	for {
		c, ok, err := u.spool.read(u.cursor, maxEvents, u.bytes)
		if err != nil {
			return nil, err
		}
		if !ok {
			if len(u.flights) == 0 && c.end.compare(u.cursor) > 0 { // damaged lines alone
				u.cursor = c.end
				return nil, u.spool.advance(c.end)
			}
			return nil, nil
		}
		f := &flight{chunk: c, total: len(c.lines)}
		err = u.encode(f)
		if errors.Is(err, events.ErrTooLarge) && len(c.lines) > 1 {
			u.bytes = max(u.bytes/2, 1024)
			maxEvents = max(len(c.lines)/2, 1)
			continue
		}
		if err != nil && len(c.lines) == 1 { // an event that no message can carry must not block the events behind it
			err = u.isolate(f, refusal{Code: "too_large", Reason: err.Error(), BootID: c.bootID, Seqs: c.seqs}, nil)
			u.cursor = c.end
			if err == nil {
				u.flights = append(u.flights, f)
				err = u.settle()
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		u.cursor = c.end
		if len(f.payload) < u.conf.BatchBytes/3 {
			u.bytes = min(2*u.bytes, 8*u.conf.BatchBytes)
		}
		return f, nil
	}
}

func (u *uploader) encode(f *flight) error {
	var text strings.Builder
	for _, l := range f.lines {
		text.WriteString(l)
		text.WriteByte('\n')
	}
	f.id, f.sent = rand.Text(), 0
	var err error
	f.payload, err = events.EncodeLines(events.Header{
		Batch: f.id, RobotID: u.conf.Thing.Serial(), BootID: f.bootID, First: f.seqs[0], Last: f.seqs[len(f.seqs)-1], Count: len(f.lines),
	}, []byte(text.String()))
	if err == nil && len(f.payload) > u.conf.BatchBytes {
		return fmt.Errorf("%d bytes: %w", len(f.payload), events.ErrTooLarge)
	}
	return err
}

// sendOne publishes f; false: there is no way to the cloud now.
func (u *uploader) sendOne(ctx context.Context, f *flight) bool {
	pctx, cancel := context.WithTimeout(ctx, publishTimeout)
	err := u.publish(pctx, topics.DAS, f.payload)
	cancel()
	now := time.Now()
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		u.failed++
		u.fails++
		pause := backoff.Jitter(min(u.conf.FlushInterval<<min(u.fails, 10), maxResend))
		f.next = now.Add(pause)
		u.wake, u.until = f.next, place{}
		for _, f := range u.flights {
			f.next = u.wake
		}
		if u.fails == 1 { // once per outage: each failure as an event would only fill the disk (VEC-DAS-07)
			u.log.Info("cloud unreachable; events waiting", "err", err)
			u.Log(Source, "dasmgr.upload.failed", []string{err.Error()}, u.stored, u.failed, int64(u.Stats().Dropped))
		}
		return false
	}
	u.fails = 0
	u.conf.step("published")
	f.next = now.Add(backoff.Jitter(min(firstResend<<min(f.sent, 10), maxResend)))
	f.sent++
	return true
}

// acked applies the cloud's answer about one batch.
func (u *uploader) acked(a ack.Ack, now time.Time) error {
	i := slices.IndexFunc(u.flights, func(f *flight) bool { return f.id == a.Batch && !f.done })
	if i < 0 {
		return nil // answered before, or another's
	}
	f := u.flights[i]
	u.conf.step("acked")
	switch a.Status {
	case ack.Stored:
		f.done = true
		u.log.Debug("events stored", "boot", f.bootID, "first", f.seqs[0], "last", f.seqs[len(f.seqs)-1], "count", len(f.seqs), "batch", f.id)
		u.window = u.conf.Window
		if u.stored++; u.stored%statsEvery == 0 {
			u.Log(Source, "dasmgr.upload.stats", nil, u.stored, u.failed, int64(u.Stats().Dropped))
		}
	case ack.RetryAfter:
		u.window = 1
		// Not before; and not all robots at the same moment after.
		pause := time.Duration(a.After) + mathrand.N(time.Duration(a.After)/4+time.Second)
		if a.Code != "" {
			u.log.Warn("cloud not accepting events; events waiting", "code", a.Code, "reason", a.Reason, "pause", pause)
		}
		u.paused, f.next = now.Add(pause), now.Add(pause)
		return nil
	case ack.Refused:
		u.window = u.conf.Window
		u.log.Warn("events refused by the cloud", "batch", a.Batch, "code", a.Code, "reason", a.Reason, "seqs", a.Bad)
		if a.Code == OptedOut || a.Code == OwnerChanged {
			f.done = true
			break
		}
		if err := u.isolate(f, refusal{Code: a.Code, Reason: a.Reason, BootID: f.bootID}, a.Bad); err != nil {
			return err
		}
		f.next = now
	}
	return u.settle()
}

// isolate puts the bad events of f into quarantine, all of them if bad names none, and makes a new batch of the rest.
func (u *uploader) isolate(f *flight, r refusal, bad []uint64) error {
	var rest, guilty chunk
	for i, seq := range f.seqs {
		to := &rest
		if slices.Contains(bad, seq) {
			to = &guilty
		}
		to.seqs, to.lines = append(to.seqs, seq), append(to.lines, f.lines[i])
	}
	if len(guilty.seqs) == 0 {
		rest, guilty = guilty, rest
	}
	r.Seqs = guilty.seqs
	u.conf.step("isolate")
	if err := u.jail.put(r, guilty.lines); err != nil {
		return err
	}
	u.conf.step("isolated")
	f.seqs, f.lines = rest.seqs, rest.lines
	if len(rest.seqs) == 0 {
		f.done = true
		return nil
	}
	return u.encode(f)
}

// settle stores durably how far the events at the front are done.
func (u *uploader) settle() error {
	n := 0
	for n < len(u.flights) && u.flights[n].done {
		n++
	}
	if n == 0 {
		return nil
	}
	for _, f := range u.flights[:n] {
		u.less(u.spool.finished(f.start, f.total))
	}
	end := u.flights[n-1].end
	u.flights = slices.Delete(u.flights, 0, n)
	return u.spool.advance(end)
}
