package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/infra/bench"
	"kennel/infra/bench/house"
)

const (
	cpuRobots = 5
	cpuTime   = 15 * time.Second // of one turn
	cpuSettle = 5 * time.Second  // after all are present: first statuses, first events
)

// idleCPU: what a robot that does nothing costs. The reference of the cloud is the same cloud without robots, and is taken off.
func idleCPU(ctx context.Context, env *bench.Env) ([]bench.Result, error) {
	var robot, agent, cloud []bench.Pair
	for range env.Count {
		alone, err := idleShares(ctx, env, 0)
		if err != nil {
			return nil, err
		}
		with, err := idleShares(ctx, env, cpuRobots)
		if err != nil {
			return nil, err
		}
		robot = append(robot, bench.Pair{Value: with.robots / cpuRobots})
		agent = append(agent, bench.Pair{Value: with.agents / cpuRobots})
		cloud = append(cloud, bench.Pair{Value: max(0, with.cloud-alone.cloud) / cpuRobots})
	}
	what := fmt.Sprintf("thousandths of a core, mean of %d whole robots in onebox over %v: ", cpuRobots, cpuTime)
	return []bench.Result{
		bench.Line{Name: "cpu/robot", Unit: "mcore/robot", Less: true, Note: what + "agentd, robotd with its 200 Hz loop, and the simulated body"}.Result(robot),
		bench.Line{Name: "cpu/agentd", Unit: "mcore/robot", Less: true, Note: what + "of these, agentd"}.Result(agent),
		bench.Line{Name: "cpu/cloud", Unit: "mcore/robot", Less: true, Note: what + "kenneld, broker, Postgres and S3, less what they use without robots"}.Result(cloud),
	}, nil
}

// shares are thousandths of a core.
type shares struct{ robots, agents, cloud float64 }

func idleShares(ctx context.Context, env *bench.Env, robots int) (shares, error) {
	h, err := house.Start(ctx, env.Bin, "-robots", strconv.Itoa(robots))
	if err != nil {
		return shares{}, err
	}
	defer h.Stop()
	wait, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if _, err := h.Present(wait, robots); err != nil {
		return shares{}, err
	}
	if err := pass(ctx, cpuSettle); err != nil {
		return shares{}, err
	}
	kenneld, err := h.Pid("kenneld")
	if err != nil {
		return shares{}, err
	}
	var group shareGroups
	for _, pid := range bench.Family(kenneld) {
		group.add(pid)
	}
	before, start := group.used(), time.Now()
	if err := pass(ctx, cpuTime); err != nil {
		return shares{}, err
	}
	after, took := group.used(), time.Since(start)
	if want := 3 * robots; len(group.robots) != want {
		return shares{}, fmt.Errorf("%d processes of %d robots: want %d", len(group.robots), robots, want)
	}
	mcore := func(d time.Duration) float64 { return 1000 * d.Seconds() / took.Seconds() }
	return shares{mcore(after[0] - before[0]), mcore(after[1] - before[1]), mcore(after[2] - before[2])}, nil
}

// shareGroups sorts the processes of a house.
type shareGroups struct{ robots, agents, cloud []int }

func (g *shareGroups) add(pid int) {
	switch name := comm(pid); {
	case slices.Contains([]string{"robotsim", "robotd", "agentd"}, name):
		g.robots = append(g.robots, pid)
		if name == "agentd" {
			g.agents = append(g.agents, pid)
		}
	case strings.HasPrefix(name, "kenneld"), strings.HasPrefix(name, "postgres"):
		g.cloud = append(g.cloud, pid)
	}
}

func (g *shareGroups) used() [3]time.Duration {
	return [3]time.Duration{bench.UsageOfAll(g.robots...).CPU, bench.UsageOfAll(g.agents...).CPU, bench.UsageOfAll(g.cloud...).CPU}
}

// pass lets time pass: it is what is measured.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
