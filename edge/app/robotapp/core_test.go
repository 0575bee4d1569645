package robotapp

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/mono"
	"kennel/edge/corelink"
	"kennel/edge/faultcode"
	"kennel/edge/power"
	"kennel/edge/power/lastoff"
	"kennel/edge/rt"
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

// TestCleanEnd: VEC-PWR-41: the other programs have their time, then the power is cut, and that it is meant is written before.
func TestCleanEnd(t *testing.T) {
	c := quietCore(t)
	r := &reporter{c: c}
	r.helm.Power.Shutdown = power.Shutdown{Off: power.Clean, Cause: power.BatteryCriticalVolt}
	b := &toyBody{frames: 3}
	r.goOff(t.Context())
	if err := c.loop.Run(t.Context(), b); !errors.Is(err, body.ErrLink) || b.off > 0 {
		t.Fatalf("before the time of the others is over: %v, off %d times", err, b.off)
	}
	if code := r.now(); code != faultcode.ShutdownBatteryLow { // VEC-PWR-40
		t.Errorf("fault %d meanwhile", code)
	}
	r.off -= offAfter
	r.goOff(t.Context())
	b.frames = 3
	if err := c.loop.Run(t.Context(), b); !errors.Is(err, rt.ErrShutdown) || b.off != 1 {
		t.Errorf("after it: %v, off %d times", err, b.off)
	}
	if got, err := os.ReadFile(filepath.Join(c.cfg.Root, lastoff.File)); err != nil || string(got) != "clean\n" {
		t.Errorf("the mark says %q, %v", got, err)
	}
}

// quietCore is a core that nobody runs.
func quietCore(t *testing.T) *core {
	t.Helper()
	srv, err := corelink.Listen(t.TempDir(), corelink.Hello{Program: "robotd"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	c, err := newCore(slog.New(slog.DiscardHandler), Config{Root: t.TempDir(), Body: "vector"}, srv, nil)
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
	*s = body.Sense{At: mono.Now(), Epoch: 1, Fresh: true, BatteryVolts: 3.9}
	return nil
}
func (b *toyBody) Write(*body.Act) error { return nil }
func (b *toyBody) Halt() error           { return nil }
func (b *toyBody) Shutdown() error       { b.off++; return nil }
func (b *toyBody) Close() error          { return nil }
