package robotapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
	"kennel/edge/sim/plane"
	"kennel/edge/sim/uart"
	"kennel/infra/testexec"
)

// TestSquare: examples/square, which names no species, drives a square on both bodies and is back where it began, within what the standard allows of
// four ways and four turns (GOSTAI-OPEN-11); what it reads is the wall ahead.
func TestSquare(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "square")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./examples/square")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	room := &plane.Map{Walls: []plane.Wall{{From: plane.Vec{0.9, -3}, To: plane.Vec{0.9, 3}}}}
	for name, tc := range map[string]struct {
		side  float64
		begin func(t *testing.T, ctx context.Context, line *uart.Socket) (in inWorld, frozen func() uint64, done <-chan error)
	}{
		"vector": {0.1, func(t *testing.T, ctx context.Context, line *uart.Socket) (inWorld, func() uint64, <-chan error) {
			b, done := vectorsim.New(vectorsim.Config{Volts: 3.9, World: room}), make(chan error, 1)
			go func() { done <- b.RunOn(ctx, line) }()
			return b.InWorld, func() uint64 { return b.State().Frozen }, done
		}},
		"amigobot": {0.25, func(t *testing.T, ctx context.Context, line *uart.Socket) (inWorld, func() uint64, <-chan error) {
			r, err := amigobotsim.New(amigobotsim.Config{World: room})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- r.Run(ctx, [amigobotsim.Ports]uart.Line{amigobotsim.Control: line}) }()
			return r.InWorld, func() uint64 { return 0 }, done
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
			in, frozen, simulated := tc.begin(t, ctx, line)
			ended := make(chan error, 2)
			go func() {
				ended <- Run(ctx, slog.New(slog.DiscardHandler), configOf(root, name, filepath.Join(root, "body")))
			}()
			link := corelink.NewClient(root)
			var loop atomic.Pointer[corelink.LoopStats] // the newest
			go func() {
				ended <- link.Run(ctx, func(m corelink.Message) {
					if l, is := m.(*corelink.LoopStats); is {
						loop.Store(l)
					}
				})
			}()
			t.Cleanup(func() {
				cancel()
				if err := errors.Join(<-ended, <-ended, <-simulated, line.Close()); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			for deadline := time.Now().Add(4 * patience); ; {
				from, before, froze := poseIn(t, in), lateSteps(loop.Load()), frozen()
				distance, err := driveSquare(ctx, program, root, tc.side)
				if err != nil {
					// The body is not there yet, looks for its zero, or its loop was late.
					spoilt := strings.Contains(err.Error(), "astray") || strings.Contains(err.Error(), "missed")
					late := strings.Contains(err.Error(), "late")
					said := spoilt || late || strings.Contains(err.Error(), "no body") || strings.Contains(err.Error(), "no robotd") || strings.Contains(err.Error(), "not heard")
					if !said || time.Now().After(deadline) {
						t.Fatal(err)
					}
					if spoilt { // only a loaded machine may do that: the loop counts its late steps, the board the periods for which it had no time
						seen := loop.Load()
						for loop.Load() == seen && time.Now().Before(deadline) {
							time.Sleep(20 * time.Millisecond)
						}
						if lateSteps(loop.Load()) == before && frozen() == froze {
							t.Fatalf("%v, although no step was late and the board never stopped", err)
						}
					}
					if spoilt || late { // the next try begins where this one did
						if err := in(func(w *plane.World) error { return w.PutDown(from) }); err != nil {
							t.Fatal(err)
						}
					}
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
					continue
				}
				to := poseIn(t, in)
				if off := math.Hypot(to[0]-from[0], to[1]-from[1]); off > 4*0.02 || math.Abs(math.Remainder(to[2]-from[2], 2*math.Pi)) > 4*3*math.Pi/180 {
					t.Errorf("back at %v, it began at %v: %.3f m away", to, from, off)
				}
				if distance < 0.4 || distance > 1 {
					t.Errorf("it sees something %v m away, want the wall 0.9 m ahead of where it began", distance)
				}
				return
			}
		})
	}
}

// driveSquare runs the program and returns the distance that it prints.
func driveSquare(ctx context.Context, program, root string, side float64) (distance float64, err error) {
	var said, wrong strings.Builder
	args := append(testexec.Emulator(), program, "-root", root, "-side", fmt.Sprint(side))
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, wrong.String())
	}
	var drove float64
	if _, err := fmt.Sscanf(said.String(), "drove a square of %v m; the next thing is %v m away\n", &drove, &distance); err != nil || drove != side {
		return 0, fmt.Errorf("it said %q (%v)", said.String(), err)
	}
	return distance, nil
}

// inWorld lends the world of a simulated body.
type inWorld func(func(*plane.World) error) error

// lateSteps counts the periods in which the loop or its body did not get its turn in time.
func lateSteps(l *corelink.LoopStats) uint64 {
	if l == nil {
		return 0
	}
	return l.Missed + l.Late + l.Timeouts + l.Stale
}

func poseIn(t *testing.T, in inWorld) (p plane.Pose) {
	t.Helper()
	if err := in(func(w *plane.World) error { p = w.State().Pose; return nil }); err != nil {
		t.Fatal(err)
	}
	return p
}
