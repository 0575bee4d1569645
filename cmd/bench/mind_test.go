package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/mind/mindlink"
	"kennel/infra/bench"
	"kennel/infra/errs"
)

// The budgets of a robot's character (issue 37, what must hold 6).
const (
	mindShare = 8.0 // per cent of a processor, of a robot that is animated
	mindLoop  = 1.1 // the loop's 99th of 100 steps may be so many times as late
	mindTime  = 30 * time.Second
)

// BenchmarkMindBesideBudget measures a simulated Vector whose character plays one animation after the other, face, motors, lights and sounds, while a program looks at its
// display and another listens: what that costs, and whether the loop is later for it. There is no cloud.
func BenchmarkMindBesideBudget(b *testing.B) {
	var all lines
	bench.Turns(b, func() error {
		m, err := measureMind(b.Context(), b, programs(b))
		all.add(m)
		return err
	})
	all.report(b)
}

// minded are the measurements of one robot.
type minded struct {
	late       bench.Pair // us, beside mindd and while it is stopped
	mind, rest float64    // per cent of a processor: of mindd, and of robotd and agentd
	rate       float64    // frames a second
}

func measureMind(ctx context.Context, tb testing.TB, bin string) ([]measured, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	still, err := mindOf(ctx, tb, bin, false)
	if err != nil {
		return nil, err
	}
	acts, err := mindOf(ctx, tb, bin, true)
	if err != nil {
		return nil, err
	}
	more := acts.mind + acts.rest - still.rest
	return []measured{
		{bench.Line{Name: "mind/animated", Unit: "%", Less: true, Bound: 1,
			Note: fmt.Sprintf("of a processor, what an animated robot uses more than one without mindd: mindd %.2f %%, robotd and agentd %.2f %% beside %.2f %%; %.0f frames a second are looked at; reference: the budget",
				acts.mind, acts.rest, still.rest, acts.rate)}, bench.Pair{Value: max(0.01, more), Reference: mindShare}},
		{bench.Line{Name: "mind/loop", Unit: "us", Less: true, Bound: 1 / mindLoop,
			Note: "lateness of 99 of 100 steps of the loop while mindd animates the robot; reference: while mindd is stopped"}, acts.late},
	}, nil
}

// minddOf returns the folder with mindd: beside the other programs, or one of this run, because whole robots of other benchmarks start a mindd that they find.
func minddOf(ctx context.Context, tb testing.TB, bin string) (string, error) {
	if _, err := os.Stat(filepath.Join(bin, "mindd")); err == nil {
		return bin, nil
	}
	dir := tb.TempDir()
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", dir+"/", "kennel/cmd/mindd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build mindd: %w: %.2000s", err, out)
	}
	return dir, nil
}

// mindOf measures a fresh robot, with mindd that animates it or without mindd.
func mindOf(ctx context.Context, tb testing.TB, bin string, acts bool) (m minded, err error) {
	r, err := startPunctual(ctx, tb, bin)
	if err != nil {
		return m, err
	}
	defer r.stop()
	rest, mind := []int{r.robotd.Pid(), r.agentd.Pid()}, programsBeside(nil)
	frames, failed := func() int { return 0 }, (<-chan error)(nil)
	if acts {
		dir, err := minddOf(ctx, tb, bin)
		if err != nil {
			return m, err
		}
		p, err := r.start(dir, "mindd", "-root", r.dir, "-log-level", "warn")
		if err != nil {
			return m, err
		}
		mind = programsBeside{p.Pid()}
		ctx, cancel := context.WithCancel(ctx)
		var end func()
		frames, failed, end = animate(ctx, mindlink.NewClient(r.dir))
		defer end()
		defer cancel()
		for frames() == 0 {
			if err := bench.Pass(ctx, 100*time.Millisecond); err != nil {
				return m, fmt.Errorf("no frame of the display: %w", err)
			}
		}
	}
	before, first, began := [2]time.Duration{bench.UsageOfAll(mind...).CPU, bench.UsageOfAll(rest...).CPU}, frames(), time.Now()
	if err := bench.Pass(ctx, bench.Part(tb, mindTime)); err != nil {
		return m, err
	}
	took := time.Since(began).Seconds()
	m.mind = 100 * (bench.UsageOfAll(mind...).CPU - before[0]).Seconds() / took
	m.rest = 100 * (bench.UsageOfAll(rest...).CPU - before[1]).Seconds() / took
	m.rate = float64(frames()-first) / took
	for _, pid := range mind { // as mindd.service does
		if err := keepOffLoop(pid); err != nil {
			return m, err
		}
		if m.late, err = lateInTurns(ctx, r, bench.Part(tb, mindTime), mind.run); err != nil {
			return m, err
		}
	}
	select {
	case err = <-failed:
	default:
	}
	return m, err
}

// animate plays moods without a pause, looks at the display and listens, until ctx ends: then end waits for all of it. frames counts what is seen.
func animate(ctx context.Context, c *mindlink.Client) (frames func() int, failed <-chan error, end func()) {
	var seen atomic.Int64
	wrong := make(chan error, 3)
	var wg sync.WaitGroup
	keep := func(what string, do func() error) {
		wg.Go(func() {
			for ctx.Err() == nil {
				switch err := do(); {
				case err == nil:
				case errs.CodeOf(err) == "unable":
					wrong <- fmt.Errorf("%s: %w", what, err) // a slot for each
					return
				default: // mindd may not be there yet, and a busy machine's loop stops motions
					_ = bench.Pass(ctx, 100*time.Millisecond)
				}
			}
		})
	}
	keep("look", func() error {
		return c.Watch(ctx, mindlink.MaxRate, func(mindlink.Frame) error { seen.Add(1); return nil })
	})
	keep("listen", func() error { return c.Listen(ctx, func(mindlink.Piece) error { return nil }) })
	moods := []string{"happy", "sad", "surprised", "curious"}
	n := 0
	keep("play", func() error {
		n++
		_, err := c.Play(ctx, mindlink.Request{Mood: moods[n%len(moods)], Program: "bench"}, func(mindlink.Progress) error { return nil })
		return err
	})
	return func() int { return int(seen.Load()) }, wrong, wg.Wait
}
