package robotapp

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/coreclient"
	"kennel/edge/coreclient/square"
	"kennel/edge/corelink"
	"kennel/edge/sim/uart"
	"kennel/edge/sim/world"
)

// TestSquare: a program that names no species drives a square on both bodies and is back where it began, within what the standard allows of four ways
// and four turns (GOSTAI-OPEN-11); what it reads is the wall ahead.
func TestSquare(t *testing.T) {
	room := &world.Map{Walls: []world.Wall{{From: world.Vec{0.9, -3}, To: world.Vec{0.9, 3}}}}
	for name, tc := range map[string]struct {
		side  float64
		begin func(t *testing.T, ctx context.Context, line *uart.Socket) (truth func() world.Pose, done <-chan error)
	}{
		"vector": {0.1, func(t *testing.T, ctx context.Context, line *uart.Socket) (func() world.Pose, <-chan error) {
			b, done := vectorsim.New(vectorsim.Config{Volts: 3.9, World: room}), make(chan error, 1)
			go func() { done <- b.RunOn(ctx, line) }()
			return func() world.Pose { return poseIn(t, b.InWorld) }, done
		}},
		"amigobot": {0.25, func(t *testing.T, ctx context.Context, line *uart.Socket) (func() world.Pose, <-chan error) {
			r, err := amigobotsim.New(amigobotsim.Config{World: room})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- r.Run(ctx, [amigobotsim.Ports]uart.Line{amigobotsim.Control: line}) }()
			return func() world.Pose { return poseIn(t, r.InWorld) }, done
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir, err := os.OpenRoot(root)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close() // the socket has its own
			line, err := uart.ListenSocket(dir, "body")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			truth, simulated := tc.begin(t, ctx, line)
			ended := make(chan error, 2)
			go func() {
				ended <- Run(ctx, slog.New(slog.DiscardHandler), Config{Root: root, Body: name, Device: filepath.Join(root, "body"), kind: kinds[name]})
			}()
			link := corelink.NewClient(root)
			c := coreclient.New(link)
			go func() { ended <- link.Run(ctx, c.Handle) }()
			t.Cleanup(func() {
				cancel()
				if err := errors.Join(<-ended, <-ended, <-simulated, line.Close()); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			for deadline := time.Now().Add(4 * patience); ; {
				from := truth()
				distance, err := square.Drive(ctx, c, tc.side)
				if err != nil {
					// The body is not there yet, looks for its zero, or loop and body got their turns late on a loaded machine, and the order says so.
					said := slices.ContainsFunc([]string{"late", "astray", "missed", "no body"}, func(w string) bool { return strings.Contains(err.Error(), w) })
					if !said && !errors.Is(err, coreclient.ErrNotConnected) || time.Now().After(deadline) {
						t.Fatal(err)
					}
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
					continue
				}
				to := truth()
				if off := math.Hypot(to[0]-from[0], to[1]-from[1]); off > 4*0.02 || math.Abs(math.Remainder(to[2]-from[2], 2*math.Pi)) > 4*3*math.Pi/180 {
					t.Errorf("back at %v, it began at %v: %.3f m away", to, from, off)
				}
				// After ways that a loaded machine spoilt it may look elsewhere.
				if ahead := math.Hypot(to[0], to[1]) < 0.1 && math.Abs(to[2]) < 0.2; ahead && (distance < 0.4 || distance > 1) {
					t.Errorf("it sees something %v m away, want the wall 0.9 m ahead of where it began", distance)
				}
				return
			}
		})
	}
}

func poseIn(t *testing.T, in func(func(*world.World) error) error) (p world.Pose) {
	t.Helper()
	if err := in(func(w *world.World) error { p = w.State().Pose; return nil }); err != nil {
		t.Fatal(err)
	}
	return p
}
