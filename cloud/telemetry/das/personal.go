package das

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Eraser keeps which stretches are being erased, and erases what is in the database. Its methods may be repeated and continue where they ended;
// with errs.CodeAgain they say that their time is over.
type Eraser interface {
	// BeginErase notes a stretch, of which nothing is to be written any more, and returns up to which time its raw batches are erased.
	BeginErase(ctx context.Context, s thing.Stretch) (upto time.Time, err error)
	// ErasedUpTo notes how far the raw batches are erased.
	ErasedUpTo(ctx context.Context, s thing.Stretch, upto time.Time) error
	// Settled returns the stretches that were noted before a time; EndErase forgets one.
	Settled(ctx context.Context, before time.Time) ([]thing.Stretch, error)
	EndErase(ctx context.Context, s thing.Stretch) error
	// EraseEvents deletes events in steps and calls note after each.
	EraseEvents(ctx context.Context, s thing.Stretch, note func(ctx context.Context, events int) error) error
	// EraseWaiting deletes raw batches that wait for S3, and returns how many.
	EraseWaiting(ctx context.Context, s thing.Stretch) (int, error)
	// Late returns when events came that were recorded before the end of a stretch and came after it, oldest first.
	Late(ctx context.Context, s thing.Stretch) ([]time.Time, error)
}

// Archive is the raw batches in S3 (package archive).
type Archive interface {
	Each(ctx context.Context, s thing.Stretch, fn func(RawBatch) error) error
	Erase(ctx context.Context, s thing.Stretch, from time.Time, done func(ctx context.Context, upto time.Time, batches int) error) error
}

// Personal exports and erases the events of a person: those that robots sent while they were the person's. What a robot recorded
// before it was the person's and sent afterwards is in no export of theirs. What it recorded while it was and sent later is erased, with all that came in
// the same transaction. All fields but Copies are required.
type Personal struct {
	Eraser  Eraser
	Archive Archive
	// Copies are files of events by the hour, of which those with a person's go before the events do; nil: there are none.
	Copies interface {
		Drop(ctx context.Context, s thing.Stretch) (int, error)
	}
	Reader interface {
		Each(ctx context.Context, s thing.Stretch, fn func(Record) error) error
		EachWaiting(ctx context.Context, s thing.Stretch, fn func(RawBatch) error) error
		Clocks(ctx context.Context, id thing.ID) (map[string]Clock, error) // by boot
	}
	// Owned returns when which robots were the account's, until now if they are; Left ends that before.
	Owned, Left func(ctx context.Context, account string) ([]thing.Stretch, error)
	Now         func() time.Time
}

// Export implements account.Personal: the times whose events are in the files.
func (p Personal) Export(ctx context.Context, account string) (any, error) {
	return p.Owned(ctx, account)
}

// rawHeld is a raw batch in an export, unpacked. Of one that cannot be unpacked it is not known whose it is.
type rawHeld struct {
	Thing    thing.ID       `json:"thing"`
	Received time.Time      `json:"received"`
	Batch    string         `json:"batch,omitempty"`
	Events   []events.Event `json:"events"`
}

// Files implements account.Filing: the events as they are stored, and the batches as they came, a line of JSON for each.
func (p Personal) Files(ctx context.Context, account string, add func(name string, write func(io.Writer) error) error) error {
	all, err := p.Owned(ctx, account)
	if err != nil {
		return err
	}
	if err := add("events.ndjson", func(w io.Writer) error {
		to := json.NewEncoder(w)
		for _, s := range all {
			if err := p.Reader.Each(ctx, s, func(r Record) error { return to.Encode(r) }); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return add("events-as-received.ndjson", func(w io.Writer) error {
		to := json.NewEncoder(w)
		for _, s := range all {
			known, err := p.Reader.Clocks(ctx, s.Thing)
			if err != nil {
				return err
			}
			each := func(b RawBatch) error {
				in, err := events.DecodeBatch(b.Payload)
				if err != nil {
					return nil
				}
				own := clocks(known).since(in.Events, s.Since)
				if len(own) == 0 {
					return nil
				}
				return to.Encode(rawHeld{b.Thing, b.Received, in.Batch, own})
			}
			if err := errors.Join(p.Reader.EachWaiting(ctx, s, each), p.Archive.Each(ctx, s, each)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Erase implements account.Personal.
func (p Personal) Erase(ctx context.Context, account string) error {
	return p.EraseCounting(ctx, account, func(context.Context, string, int) error { return nil })
}

// EraseCounting implements account.Counting. It ends the person's ownership first: what robots send from then on is not theirs.
func (p Personal) EraseCounting(ctx context.Context, account string, note func(ctx context.Context, kind string, n int) error) error {
	all, err := p.Left(ctx, account)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := p.erase(ctx, s, note); err != nil {
			return err
		}
		late, err := p.Eraser.Late(ctx, s)
		if err != nil {
			return err
		}
		for _, s := range lateOf(s, late) {
			if err := p.erase(ctx, s, note); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p Personal) erase(ctx context.Context, s thing.Stretch, note func(ctx context.Context, kind string, n int) error) error {
	upto, err := p.Eraser.BeginErase(ctx, s)
	if err != nil {
		return fmt.Errorf("erase events of %s: %w", s.Thing, err)
	}
	if p.Copies != nil {
		if _, err := p.Copies.Drop(ctx, s); err != nil {
			return fmt.Errorf("erase exported events of %s: %w", s.Thing, err)
		}
	}
	if err := p.Eraser.EraseEvents(ctx, s, func(ctx context.Context, n int) error { return note(ctx, "events", n) }); err != nil {
		return err
	}
	n, err := p.Eraser.EraseWaiting(ctx, s) // before S3, to which they may be moved meanwhile
	if err := errors.Join(err, note(ctx, "raw batches", n)); err != nil {
		return err
	}
	return p.Archive.Erase(ctx, s, upto, func(ctx context.Context, upto time.Time, n int) error {
		if err := note(ctx, "raw batches", n); err != nil {
			return err
		}
		return p.Eraser.ErasedUpTo(ctx, s, upto)
	})
}

// late is how long a process may take to write what it has received; sweepAfter exceeds it, and the time that curves are kept in memory.
const (
	late       = time.Hour
	sweepAfter = 15 * time.Minute
)

// Sweep erases again, a while after an erasure, what processes that were late may have written of the end of the same stretches, and calls others
// for each, of other domains. Then it forgets the stretches. It is a periodic job.
func (p Personal) Sweep(ctx context.Context, others ...func(ctx context.Context, s thing.Stretch) (int, error)) error {
	all, err := p.Eraser.Settled(ctx, p.Now().Add(-sweepAfter))
	if err != nil {
		return err
	}
	nothing := func(context.Context, int) error { return nil }
	var failed error // one stretch that fails does not hold up the others
	for _, s := range all {
		end := s
		if from := s.Until.Add(-late); from.After(end.Since) {
			end.Since = from
		}
		_, err := p.Eraser.EraseWaiting(ctx, end)
		for _, other := range others {
			_, e := other(ctx, end)
			err = errors.Join(err, e)
		}
		err = errors.Join(err, p.Eraser.EraseEvents(ctx, end, nothing),
			p.Archive.Erase(ctx, end, time.Time{}, func(context.Context, time.Time, int) error { return nil }))
		switch {
		case errs.CodeOf(err) == errs.CodeAgain:
			return failed // the next run
		case err == nil:
			err = p.Eraser.EndErase(ctx, s)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("erase late events of %s: %w", s.Thing, err))
		}
	}
	return failed
}
