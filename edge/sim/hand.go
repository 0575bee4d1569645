package sim

import (
	"context"
	"errors"

	"kennel/edge/agent/teleop/simulator"
	"kennel/edge/body/bodysim"
	"kennel/infra/api/live"
	"kennel/infra/api/poke"
	"kennel/infra/errs"
)

// beside implements simulator.Body.
type beside struct {
	bodysim.Hand
	truth *truth // nil: the body is nowhere
}

func (b beside) See(rev string) *live.World {
	if b.truth == nil {
		return nil
	}
	w := b.truth.see(rev)
	w.Verbs = b.Verbs()
	return &w
}

func (b beside) Sound() *simulator.Sound {
	hearing, ok := b.Hand.(bodysim.Hearing)
	if !ok {
		return nil
	}
	h := hearing.Heard()
	return &simulator.Sound{Playing: h.Playing, Began: int64(h.Began), Ended: int64(h.Ended)}
}

// Play plays a WAV file to the microphones of the robot that Run keeps alive in dir, as p says, and returns when it was heard.
func Play(ctx context.Context, dir string, p poke.Poke, wav []byte) (heard *simulator.Sound, err error) {
	err = reach(dir, func(c *simulator.Client) error {
		heard, err = c.Play(ctx, p, wav)
		return err
	})
	return heard, err
}

// Poke does p to the robot that Run keeps alive in dir.
func Poke(ctx context.Context, dir string, p poke.Poke) error {
	return reach(dir, func(c *simulator.Client) error { return c.Poke(ctx, p) })
}

// reach calls f with a client of the robot that Run keeps alive in dir.
func reach(dir string, f func(*simulator.Client) error) error {
	root, err := open(dir)
	if err != nil {
		return errs.New(errs.NotFound, "%w", err)
	}
	defer root.Close() // nothing buffered
	err = f(simulator.NewClient(root))
	if errors.Is(err, simulator.ErrNone) {
		return errs.New(errs.Unavailable, "the robot in %s is not running; start it with robotsim robot", dir)
	}
	return err
}
