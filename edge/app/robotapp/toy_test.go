package robotapp

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/species"
	"kennel/edge/core/control/toysim"
	"kennel/edge/core/corelink"
	"kennel/infra/cli"
)

// TestToy: a species costs its own package and one line of wiring (GOSTAI-OPEN-01): an order of a peer reaches the set-points of a body of three
// servos that answers each 100 ms, and its tree reads where they are. Slow as it is, it has power: no step of the loop is stale.
func TestToy(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, root: t.TempDir()}
	var setPoints, out syncBuffer
	toy := species.Species{Species: "toy", Device: "none", Model: toysim.Model, Open: func(context.Context, string) (body.Body, error) {
		return toysim.Open(&setPoints), nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan int, 1)
	go func() {
		args := []string{"-root", b.root, "-body", "toy", "-priority", "0"}
		done <- cli.Run(ctx, command(toy), args, func(string) string { return "" }, io.Discard, &out)
	}()
	c := b.peer()
	if h := await(c, "hello with a body", func(h *corelink.Hello) bool { return h.Body.Species != "" }); h.Body.Species != "toy" ||
		h.Body.PeriodUS != 100_000 {
		t.Errorf("hello %+v", h)
	}
	await(c, "state", linked)
	if r := c.ask(func(n uint32) corelink.Message {
		return &corelink.Claim{Request: n, Devices: []string{"neckYaw"}, Priority: 50}
	}); r.Code != "ok" {
		t.Fatalf("claim: %+v", r)
	}
	r, end, _ := c.over("neckYaw = 0.3")
	if r.Value != "0.3" || r.Detail != "" || end.Outcome != "done" {
		t.Errorf("%+v, %+v", r, end)
	}
	_, v := c.look().value("neckYaw.angle")
	if v == nil || v.Number == nil || math.Abs(*v.Number-0.3) > 0.03 {
		t.Errorf("its tree reads %+v, want 0.3", v)
	}
	if got := setPoints.String(); !strings.Contains(got, "neckYaw 0.300\n") || strings.Contains(got, "neckPitch") {
		t.Errorf("its set-points were:\n%s", got)
	}
	if l := await(c, "statistics", func(l *corelink.LoopStats) bool { return l.Steps >= 10 }); l.Stale > l.Missed {
		t.Errorf("steps without power, more than a busy machine missed: %+v", l)
	}
	cancel()
	select {
	case code := <-done:
		if code != 0 {
			t.Errorf("exit code %d: %s", code, &out)
		}
	case <-time.After(patience):
		t.Fatal("robotd does not end")
	}
}
