package das

import (
	"context"
	"sync"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Service answers questions about stored events. Safe for concurrent use.
type Service struct {
	reader Reader
	robots Robots
	now    func() time.Time

	mu   sync.Mutex
	wake chan struct{} // closed at the next Wake
}

// Robots returns the ids that a filter of the fleet selects.
type Robots func(ctx context.Context, filter string) ([]thing.ID, error)

// NewService returns a Service on r. Tails are at once on time if something calls Wake after each commit; without it they look once a second.
func NewService(r Reader) *Service {
	return &Service{reader: r, now: time.Now, wake: make(chan struct{})}
}

// WithRobots sets what answers filters that choose robots, before the service is used; without it they are refused.
func (s *Service) WithRobots(r Robots) *Service {
	s.robots = r
	return s
}

// Limits of List.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// List returns at most limit records older than before, newest first. A limit of 0 means DefaultLimit; beyond MaxLimit is Invalid.
func (s *Service) List(ctx context.Context, f Filter, limit int, before Cursor) ([]Record, error) {
	if limit == 0 {
		limit = DefaultLimit
	}
	if limit < 1 || limit > MaxLimit {
		return nil, errs.New(errs.Invalid, "limit %d: want 1 to %d", limit, MaxLimit)
	}
	f, err := s.resolve(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.reader.List(ctx, f, limit, before)
}

// MaxStream is how many records Stream gives at most.
const MaxStream = 1_000_000

// Stream calls fn for the oldest records that f chooses, in the order in which they were received, and returns whether there are more than
// MaxStream, which fn does not get.
func (s *Service) Stream(ctx context.Context, f Filter, fn func(Record) error) (more bool, err error) {
	if f, err = s.resolve(ctx, f); err != nil {
		return false, err
	}
	n := 0
	err = s.reader.Stream(ctx, f, MaxStream+1, func(r Record) error {
		if n++; n > MaxStream {
			more = true
			return nil
		}
		return fn(r)
	})
	return more, err
}

// Losses returns gaps in what a robot's boots sent, those between events received from one time to another.
func (s *Service) Losses(ctx context.Context, id thing.ID, from, to time.Time) ([]Loss, error) {
	return s.reader.Losses(ctx, id, from, to)
}

// Boots returns the latest boots of a thing, and what is missing of their events. A limit of 0 means DefaultLimit.
func (s *Service) Boots(ctx context.Context, id thing.ID, since time.Time, limit int) ([]Boot, error) {
	if limit == 0 {
		limit = DefaultLimit
	}
	if limit < 1 || limit > MaxLimit {
		return nil, errs.New(errs.Invalid, "limit %d: want 1 to %d", limit, MaxLimit)
	}
	return s.reader.Boots(ctx, id, since, limit)
}

// Wake tells every tail that there may be something new: a hint, free to come too often.
func (s *Service) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.wake)
	s.wake = make(chan struct{})
}

func (s *Service) wakes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wake
}

// pollEvery bounds how late a tail is when notifications are lost.
const pollEvery = time.Second

// Tail calls fn for every record that f chooses, in order of commit: first those received at or after f.Since (none if it is zero), then
// new ones as they come, until ctx ends or fn returns an error, which Tail returns. While the database is away it waits. Each record comes
// once.
func (s *Service) Tail(ctx context.Context, f Filter, fn func(Record) error) error {
	f, err := s.resolve(ctx, f)
	if err != nil {
		return err
	}
	var pos Position
	placed := false
	for {
		wake := s.wakes() // before reading: what is committed after the read wakes us
		var recs []Record
		var err error
		if !placed {
			pos, err = s.reader.Position(ctx, f.Since)
			placed = err == nil
		}
		var more bool
		if placed {
			var next Position
			if recs, next, more, err = s.reader.Changes(ctx, f, pos); err == nil {
				pos = next
			}
		}
		if err != nil && errs.KindOf(err) != errs.Unavailable {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		for _, r := range recs {
			if err := fn(r); err != nil {
				return err
			}
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		case <-time.After(pollEvery):
		}
	}
}
