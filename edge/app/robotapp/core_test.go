package robotapp

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"kennel/edge/bodies"
	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/corelink"

	"github.com/spf13/pflag"
)

// TestWatchdogOfAHungLoop: VEC-WDOG-02: a loop that takes fewer than three steps between two looks is not healthy.
func TestWatchdogOfAHungLoop(t *testing.T) {
	c := quietCore(t)
	b := &toyBody{frames: 3}
	c.running.Store(true)
	if c.healthy() {
		t.Error("a loop that never took a step is healthy")
	}
	if err := c.loop.Run(t.Context(), b); !errors.Is(err, body.ErrLink) {
		t.Fatal(err)
	}
	if !c.healthy() || c.healthy() {
		t.Error("three steps are healthy, and only once")
	}
	b.frames = 2
	if err := c.loop.Run(t.Context(), b); !errors.Is(err, body.ErrLink) || c.healthy() {
		t.Errorf("two steps are healthy, %v", err)
	}
}

// configOf is the configuration of robotd for a species, as without flags but these.
func configOf(root, word, device string) Config {
	for _, s := range bodies.Driven() {
		if s.Word() != word {
			continue
		}
		cfg := Config{Root: root, Body: word, Device: device, species: s}
		if s.Equip != nil {
			cfg.begin = s.Equip(pflag.NewFlagSet("", pflag.PanicOnError))
		}
		return cfg
	}
	panic(word)
}

// quietCore is a core that does not run.
func quietCore(t *testing.T) *core {
	t.Helper()
	srv, err := corelink.Listen(t.TempDir(), corelink.Hello{Program: "robotd"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	c, err := newCore(slog.New(slog.DiscardHandler), configOf(t.TempDir(), "vector", ""), srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// toyBody sends so many frames and fails.
type toyBody struct {
	frames int
	off    int
}

func (b *toyBody) Describe() body.Description { return body.Description{} }
func (b *toyBody) Read(s *body.Sense, _ time.Duration) error {
	if b.frames--; b.frames < 0 {
		return body.ErrLink
	}
	*s = body.Sense{At: monoclock.Now(), Epoch: 1, Fresh: true}
	return nil
}
func (b *toyBody) Write(*body.Act) error { return nil }
func (b *toyBody) Halt() error           { return nil }
func (b *toyBody) Shutdown() error       { b.off++; return nil }
func (b *toyBody) Close() error          { return nil }
