package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/infra/bench"
	"kennel/infra/freeaddr"
	"kennel/infra/proc"
)

const (
	wholeRobots = 5
	wholeTime   = 15 * time.Second // of one turn
	wholeSettle = 5 * time.Second  // after all are present: first statuses, first events

	lightRobots = 500
	longRobots  = 2000
	lightTime   = time.Minute      // the idle profile says once a minute that it is there
	lightSettle = 40 * time.Second // after all are connected: documents, and the first events, which go out after up to 30 s
	aloneTime   = 15 * time.Second // of the cloud without robots
)

// BenchmarkCPUBesideNothing measures the cost of an idle robot. Whole robots show the robot's own programs; hundreds of light ones (robotsim fleet) show
// the agent and the cloud, less what the cloud uses without robots.
func BenchmarkCPUBesideNothing(tb *testing.B) {
	ctx := tb.Context()
	var whole, agentd, bodies, light, cloud, memory []bench.Pair
	robots := bench.Part(tb, lightRobots)
	if bench.Long() {
		robots = longRobots
	}
	bench.Turns(tb, func() error {
		w, err := wholeShares(ctx, tb)
		if err != nil {
			return err
		}
		l, err := lightShares(ctx, tb, robots)
		if err != nil {
			return err
		}
		add := func(to *[]bench.Pair, v float64) { *to = append(*to, bench.Pair{Value: v}) }
		add(&whole, w.robots/wholeRobots)
		add(&agentd, w.agents/wholeRobots)
		add(&bodies, w.bodies/wholeRobots)
		add(&light, l.fleet/float64(robots))
		add(&cloud, l.cloud/float64(robots))
		add(&memory, l.memory/float64(robots))
		return nil
	})
	five := fmt.Sprintf("thousandths of a core, mean of %d whole robots over %v: ", wholeRobots, bench.Part(tb, wholeTime))
	many := fmt.Sprintf("thousandths of a core, mean of %d light robots of robotsim fleet, profile idle, over %v: ", robots, bench.Part(tb, lightTime))
	for _, l := range []struct {
		bench.Line
		pairs []bench.Pair
	}{
		{bench.Line{Name: "cpu/robot", Unit: "mcore/robot", Less: true, Note: five + "agentd, robotd with its 200 Hz loop, mindd if it is there, and the simulated body"}, whole},
		{bench.Line{Name: "cpu/agentd", Unit: "mcore/robot", Less: true, Note: five + "of these, agentd"}, agentd},
		{bench.Line{Name: "cpu/body", Unit: "mcore/robot", Less: true, Note: five + "of these, the simulated body"}, bodies},
		{bench.Line{Name: "cpu/light", Unit: "mcore/robot", Less: true, Note: many + "the robots' process"}, light},
		{bench.Line{Name: "cpu/cloud", Unit: "mcore/robot", Less: true, Note: many + "kenneld, broker, Postgres and S3, less what they use without robots"}, cloud},
		{bench.Line{Name: "memory/light", Unit: "KiB/robot", Less: true, Note: "resident memory of the process of these light robots: agent and connection"}, memory},
	} {
		bench.Report(tb, l.Line, l.pairs)
	}
}

// shares are thousandths of a core, memory KiB, of all robots together.
type shares struct{ robots, agents, bodies, fleet, cloud, memory float64 }

// wholeShares runs robots as they are: body, robotd and agentd each, and mindd if it is there.
func wholeShares(ctx context.Context, tb testing.TB) (shares, error) {
	h, err := startHouse(ctx, programs(tb), "-robots", strconv.Itoa(wholeRobots))
	if err != nil {
		return shares{}, err
	}
	defer h.Stop()
	wait, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if _, err := h.Present(wait, wholeRobots); err != nil {
		return shares{}, err
	}
	if err := bench.Pass(ctx, bench.Part(tb, wholeSettle)); err != nil {
		return shares{}, err
	}
	var robots, agents, bodies []int
	count := map[string]int{}
	family, err := familyOf(h)
	if err != nil {
		return shares{}, err
	}
	for pid, name := range family {
		if slices.Contains([]string{"robotsim", "robotd", "agentd", "mindd"}, name) {
			robots = append(robots, pid)
			count[name]++
		}
		switch name {
		case "agentd":
			agents = append(agents, pid)
		case "robotsim":
			bodies = append(bodies, pid)
		}
	}
	for _, name := range []string{"robotsim", "robotd", "agentd", "mindd"} {
		if n := count[name]; n != wholeRobots && (name != "mindd" || n > 0) { // mindd runs if it is among the programs
			return shares{}, fmt.Errorf("%d processes of %s for %d robots", n, name, wholeRobots)
		}
	}
	used, err := busy(ctx, bench.Part(tb, wholeTime), robots, agents, bodies)
	if err != nil {
		return shares{}, err
	}
	return shares{robots: used[0], agents: used[1], bodies: used[2]}, nil
}

// lightShares runs many robots in one process.
func lightShares(ctx context.Context, tb testing.TB, robots int) (shares, error) {
	h, err := startHouse(ctx, programs(tb))
	if err != nil {
		return shares{}, err
	}
	defer h.Stop()
	cloud, err := cloudPids(h)
	if err != nil {
		return shares{}, err
	}
	if err := bench.Pass(ctx, bench.Part(tb, wholeSettle)); err != nil {
		return shares{}, err
	}
	alone, err := busy(ctx, bench.Part(tb, aloneTime), cloud)
	if err != nil {
		return shares{}, err
	}
	f, err := startFleet(ctx, tb, h, robots)
	if err != nil {
		return shares{}, err
	}
	defer f.Stop()
	if err := bench.Pass(ctx, bench.Part(tb, lightSettle)); err != nil {
		return shares{}, err
	}
	if cloud, err = cloudPids(h); err != nil { // Postgres has more processes now
		return shares{}, err
	}
	with, err := busy(ctx, bench.Part(tb, lightTime), cloud, []int{f.Pid()})
	if err != nil {
		return shares{}, err
	}
	u, err := bench.UsageOf(f.Pid())
	return shares{fleet: with[1], cloud: max(0, with[0]-alone[0]), memory: float64(u.RSS) / 1024}, err
}

// startFleet starts idle light robots and returns when all are connected.
func startFleet(ctx context.Context, tb testing.TB, h *house, robots int) (*bench.Program, error) {
	f, _, err := startFleetAs(ctx, tb, h, robots, "idle")
	return f, err
}

// startFleetAs starts light robots of a profile and returns, when all are connected, where they say how they are.
func startFleetAs(ctx context.Context, tb testing.TB, h *house, robots int, profile string, args ...string) (f *bench.Program, status string, err error) {
	if status, err = freeaddr.Loopback(); err != nil {
		return nil, "", err
	}
	f, err = bench.Start(proc.Spec{Name: "robotsim fleet", Path: filepath.Join(programs(tb), "robotsim"), StopTimeout: time.Minute, Args: append([]string{
		"fleet", "-n", strconv.Itoa(robots), "-root", filepath.Join(h.Dir(), "fleet"), "-api", h.URL("api"), "-ca", h.File("root_ca"),
		"-token-file", h.File("operator_token"), "-profile", profile, "-status", status, "-progress", "0"}, args...)})
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	for {
		s, err := summaryOf(ctx, status)
		// Of many robots whose connections drop now and then a few are always on their way back.
		if err == nil && (s.Connected == robots || s.Connects > robots && s.Connected >= robots-robots/100) {
			return f, status, nil
		}
		select {
		case <-f.Ended():
			_, err = f.Await(ctx, "a fleet that goes on") // says why it ended
			f.Stop()
			return nil, "", err
		case <-ctx.Done():
			f.Stop()
			return nil, "", fmt.Errorf("%d of %d light robots connected (%v): %w", s.Connected, robots, err, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond): // between two processes the answer to a question is the event there is
		}
	}
}

// summaryOf asks a fleet how it is.
func summaryOf(ctx context.Context, status string) (s struct{ Connected, Connects int }, err error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+status+"/status", nil)
	if err != nil {
		return s, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&s)
	return s, err
}

// busy returns the thousandths of a core that each group of processes uses while d passes.
func busy(ctx context.Context, d time.Duration, groups ...[]int) ([]float64, error) {
	used := func() (out []time.Duration) {
		for _, g := range groups {
			out = append(out, bench.UsageOfAll(g...).CPU)
		}
		return out
	}
	before, start := used(), time.Now()
	if err := bench.Pass(ctx, d); err != nil {
		return nil, err
	}
	after, took := used(), time.Since(start)
	out := make([]float64, len(groups))
	for i := range out {
		out[i] = 1000 * (after[i] - before[i]).Seconds() / took.Seconds()
	}
	return out, nil
}

// familyOf names the processes of a house.
func familyOf(h *house) (map[int]string, error) {
	kenneld, err := h.Pid("kenneld")
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	for _, pid := range bench.Family(kenneld) {
		out[pid] = comm(pid)
	}
	return out, nil
}

func cloudPids(h *house) ([]int, error) {
	family, err := familyOf(h)
	var out []int
	for pid, name := range family {
		if name == "kenneld" || strings.HasPrefix(name, "postgres") {
			out = append(out, pid)
		}
	}
	return out, err
}
