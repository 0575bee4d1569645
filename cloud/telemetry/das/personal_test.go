package das

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"kennel/infra/thing"
)

// settling are erasures that were noted a while ago, of which one cannot be finished.
type settling struct {
	Eraser // what Sweep does not need
	all    []thing.Stretch
	bad    thing.ID
	ended  []thing.ID
}

var errStuck = errors.New("stuck")

func (s *settling) Settled(context.Context, time.Time) ([]thing.Stretch, error) { return s.all, nil }

func (s *settling) EraseWaiting(context.Context, thing.Stretch) (int, error) { return 0, nil }

func (s *settling) EraseEvents(_ context.Context, of thing.Stretch, _ func(context.Context, int) error) error {
	if of.Thing == s.bad {
		return errStuck
	}
	return nil
}

func (s *settling) EndErase(_ context.Context, of thing.Stretch) error {
	s.ended = append(s.ended, of.Thing)
	return nil
}

type noArchive struct{ Archive }

func (noArchive) Erase(context.Context, thing.Stretch, time.Time, func(context.Context, time.Time, int) error) error {
	return nil
}

// An erasure that cannot be finished does not keep those after it from their end, and is an error that operators see.
func TestSweepBehindStuckErasure(t *testing.T) {
	s := &settling{all: []thing.Stretch{{Thing: "vic:1"}, {Thing: "vic:2"}, {Thing: "vic:3"}}, bad: "vic:1"}
	p := Personal{Eraser: s, Archive: noArchive{}, Now: time.Now}
	if err := p.Sweep(t.Context()); !errors.Is(err, errStuck) || !slices.Equal(s.ended, []thing.ID{"vic:2", "vic:3"}) {
		t.Errorf("%v; ended %v", err, s.ended)
	}
}
