package robotapp

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/aibosim"
	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/statics"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/env/robotfs"
	"kennel/edge/robot/claim"
	"kennel/edge/sim/uart"
	"kennel/infra/testwait"
)

// TestPerform: a sleeping AIBO bows: it gets up by way of sitting and standing, does the motion of the library for its model, does not fall, and ends in the
// posture that the motion says, on robotd and the simulated body.
func TestPerform(t *testing.T) {
	t.Parallel()
	for _, m := range []aibo.Model{aibo.ERS7, aibo.ERS310} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			sim, c := runAIBO(t, m)
			ctx, cancel := context.WithTimeout(t.Context(), 8*patience)
			defer cancel()
			var at []int32
			testwait.Until(t, 4*patience, "the joints", func() (err error) { at, err = motions.Where(ctx, c, m); return err })
			f, err := motions.Load(m, "bow")
			if err != nil {
				t.Fatal(err)
			}
			plan, err := motions.NewPlan(f, m, at, statics.Upright)
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			if err := plan.Perform(ctx, c, claim.Program, func(name string) { told = append(told, name) }); err != nil {
				t.Fatalf("after %v: %v; %+v", told, err, sim.State())
			}
			s := sim.State()
			if len(told) < 3 || told[0] != "sit" || told[1] != "stand" || told[len(told)-1] != f.Name || s.Falls != 0 || s.Stance.Paws() != 15 {
				t.Errorf("%v, then %+v", told, s)
			}
			stand, _ := aibo.Posture(m, "stand")
			for name, want := range stand {
				if slices.Contains([]string{"HEAD_PITCH", "HEAD_PITCH2", "MOUTH", "TAIL_VERT"}, name) {
					continue
				}
				if math.Abs(s.Angles[name]-want) > 4 {
					t.Errorf("%s is at %v degrees, want %v", name, s.Angles[name], want)
				}
			}
			if _, err := motions.Where(ctx, c, aibo.ERS110); err == nil {
				t.Error("it has the joints of an ERS-110")
			}
		})
	}
}

// runAIBO runs robotd on a simulated AIBO, and returns a program's connection to it.
func runAIBO(t *testing.T, m aibo.Model) (*aibosim.Robot, *coreclient.Client) {
	t.Helper()
	root := t.TempDir()
	dir, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	if err := robotfs.WriteFile(dir, robotfs.ModelFile, []byte(m.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	line, err := uart.ListenSocket(dir, "body")
	if err != nil {
		t.Fatal(err)
	}
	sim, err := aibosim.New(aibosim.Config{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	link := corelink.NewClient(root)
	c := coreclient.New(link)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	go func() { ended <- sim.Run(ctx, line) }()
	go func() {
		ended <- Run(ctx, slog.New(slog.DiscardHandler), configOf(root, "aibo", filepath.Join(root, "body")))
	}()
	go func() { ended <- link.Run(ctx, c.Handle) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended, <-ended, line.Close()); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	wait, stop := context.WithTimeout(ctx, 4*patience)
	defer stop()
	if err := c.Ready(wait); err != nil {
		t.Fatal(err)
	}
	return sim, c
}
