package main

import (
	"context"
	"fmt"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/infra/bench"
	"math"
	"runtime"
	"slices"
	"time"
)

// window is for how long a robot is watched at a time, with programs and without them.
const window = 3 * time.Second

// inTurns measures with a load off and on, alternating, each for d in total, in windows too short for the machine to drift. The load is still on when it returns.
func inTurns(ctx context.Context, d time.Duration, run func(on bool) error, measure func(context.Context) (float64, error)) (off, on []float64, err error) {
	for range int(d / window) {
		for _, x := range []*[]float64{&off, &on} {
			if err := run(x == &on); err != nil {
				return off, on, err
			}
			if err := bench.Pass(ctx, window/10); err != nil { // work under way finishes
				return off, on, err
			}
			v, err := measure(ctx)
			if err != nil {
				return off, on, err
			}
			*x = append(*x, v)
		}
	}
	return off, on, nil
}

// shareOf returns how much of a processor some processes use during a window, in per cent.
func shareOf(pids ...int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		before, began := bench.UsageOfAll(pids...).CPU, time.Now()
		err := bench.Pass(ctx, window)
		return 100 * (bench.UsageOfAll(pids...).CPU - before).Seconds() / time.Since(began).Seconds(), err
	}
}

// A window in which the host gave the loop's processor to others for more than mostStolen per cent is discarded and repeated, up to windowTries times in all. At least
// leastJudged windows of each kind are needed.
const (
	mostStolen  = 2
	windowTries = 3
	leastJudged = 3
)

// lateInTurns returns the 99th percentile of how late the steps of a punctual robot's loop are, in microseconds, under the load and without it: the medians over the windows
// of inTurns.
func lateInTurns(ctx context.Context, r *sdkRobot, d time.Duration, run func(on bool) error) (late bench.Pair, err error) {
	if err := keepOffLoop(r.agentd.Pid()); err != nil {
		return late, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	link := corelink.NewClient(r.dir, corelink.WithHello(corelink.Hello{Program: "bench"}))
	core := coreclient.New(link)
	go func() { _ = link.Run(ctx, core.Handle) }() // what is asked of it fails when it has ended
	if err := core.Ready(ctx); err != nil {
		return late, err
	}
	judged := func(all []float64) []float64 { return slices.DeleteFunc(all, math.IsNaN) }
	calm, loaded, err := inTurns(ctx, d, run, func(ctx context.Context) (late float64, err error) {
		for range windowTries {
			if late, err = lateInWindow(ctx, core); err != nil || !math.IsNaN(late) {
				break
			}
		}
		return late, err
	})
	if calm, loaded = judged(calm), judged(loaded); err == nil && min(len(calm), len(loaded)) < leastJudged {
		err = fmt.Errorf("the host took the loop's processor too often: %d usable windows without the load and %d with it, want %d of each", len(calm), len(loaded), leastJudged)
	}
	return bench.Pair{Value: bench.Median(loaded), Reference: bench.Median(calm)}, err
}

// lateInWindow returns the lateness of a window; NaN if the host took part in it.
func lateInWindow(ctx context.Context, core *coreclient.Client) (float64, error) {
	processor := fmt.Sprintf("cpu%d", runtime.NumCPU()-1)
	then, err := readTimes(processor)
	if err != nil {
		return 0, err
	}
	before, err := core.Lateness(ctx)
	if err == nil {
		err = bench.Pass(ctx, window)
	}
	if err != nil {
		return 0, err
	}
	after, err := core.Lateness(ctx)
	if err != nil {
		return 0, err
	}
	now, err := readTimes(processor)
	if err == nil && now.stolenSince(then) > mostStolen {
		return math.NaN(), nil
	}
	return float64(max(1, after.Since(before, 0.99))), err
}
