package das

import (
	"context"
	"sync"
	"time"

	"kennel/infra/errs"
)

// Service answers questions about stored events. Safe for concurrent use.
type Service struct {
	reader Reader

	mu   sync.Mutex
	wake chan struct{} // closed at the next Wake
}

// NewService returns a Service on r. Tails are at once on time if something calls Wake after each commit; without it they look once a
// second.
func NewService(r Reader) *Service { return &Service{reader: r, wake: make(chan struct{})} }

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
	return s.reader.List(ctx, f, limit, before)
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
