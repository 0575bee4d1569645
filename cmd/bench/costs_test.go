package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"kennel/cloud/app/plan"
	"kennel/edge/sim/fleet"
	"kennel/infra/bench"
	"kennel/infra/cli/version"
	"kennel/infra/freeaddr"
)

const (
	costRobots = 400
	costTime   = 20 * time.Second // of one phase
	costSettle = 12 * time.Second // after all are connected: documents, and the first events, which leave after costFlush
	costFlush  = 5 * time.Second
	costsVar   = "KENNEL_BENCH_COSTS"
)

// phases are behaviours that differ in one act each.
var phases = []struct {
	name    string
	profile map[string]any
	cuts    bool // every robot logs in again and again
}{
	{name: "quiet"},
	{name: "status", profile: map[string]any{"status": "1s"}},
	{name: "few large batches", profile: map[string]any{"events_per_hour": 7200, "flush": "5s"}},
	{name: "many small batches", profile: map[string]any{"events_per_hour": 3600, "flush": "500ms"}},
	{name: "telemetry", profile: map[string]any{"telemetry": "5s", "flush": "1s"}},
	{name: "settings", profile: map[string]any{"settings_per_hour": 720}},
	{name: "logins", cuts: true},
	{name: "lively", profile: map[string]any{"status": "20s", "flush": "5s", "telemetry": "2m", "events_per_hour": 360, "settings_per_hour": 6, "drops_per_hour": 1}},
}

// BenchmarkCostsBesideModel measures the cost of each act of a robot with light robots of several behaviours, writes them as the plan's costs if it is told
// where, and compares what more robots use with what the model says of them.
func BenchmarkCostsBesideModel(tb *testing.B) {
	ctx := tb.Context()
	more := []crowd{{1000, "lively"}}
	if bench.Long() {
		most, err := brokerPlaces()
		if err != nil {
			tb.Fatal(err)
		}
		more = append(more, crowd{5000, "lively"}, crowd{min(20_000, most), "idle"})
	}
	robots := bench.Part(tb, costRobots)
	lines := map[string][]bench.Pair{}
	bench.Turns(tb, func() error {
		costs, err := measureCosts(ctx, tb, robots, bench.Part(tb, costTime))
		if err != nil {
			return err
		}
		if file := os.Getenv(costsVar); file != "" {
			b, err := json.MarshalIndent(costs, "", "  ")
			if err != nil {
				return err
			}
			if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
				return err
			}
		}
		for _, n := range more {
			got, err := compare(ctx, tb, costs, crowd{bench.Part(tb, n.robots), n.behaviour}, bench.Part(tb, time.Minute))
			if err != nil {
				return err
			}
			for what, pair := range got {
				key := fmt.Sprintf("costs/%s-%d", what, n.robots)
				lines[key] = append(lines[key], pair)
			}
		}
		return nil
	})
	for name, pairs := range lines {
		bench.Report(tb, bench.Line{Name: name, Unit: unitOf(name), Less: true, Note: "what light robots use, lively ones and many idle ones, beside what the model says of them"}, pairs)
	}
}

// brokerPlaces returns how many robots one broker of this machine can hold, with a tenth of its descriptors left for all else.
func brokerPlaces() (int, error) {
	var lim syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim)
	return int(min(lim.Cur, 1<<20)) * 9 / 10, err
}

// crowd is so many robots of a profile.
type crowd struct {
	robots    int
	behaviour string
}

func unitOf(name string) string {
	switch {
	case strings.Contains(name, "processor"):
		return "mcore"
	case strings.Contains(name, "memory"):
		return "MiB"
	}
	return "KiB/s"
}

// metered is a house whose metrics and traffic are counted.
type metered struct {
	*house
	metrics  string
	mqtt     string // of the counting proxy
	up, down atomic.Int64
	counted  float64 // the share of the robots whose traffic passes the proxy; the others are taken to send as much each
}

func startMetered(ctx context.Context, tb testing.TB) (*metered, error) {
	addr, err := freeaddr.Loopback()
	if err != nil {
		return nil, err
	}
	h, err := startHouse(ctx, programs(tb), "-listen", "metrics="+addr)
	if err != nil {
		return nil, err
	}
	m := &metered{house: h, counted: 1, metrics: "http://" + addr + "/metrics"}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.Stop()
		return nil, err
	}
	tb.Cleanup(func() { _ = ln.Close() })
	_, port, _ := net.SplitHostPort(ln.Addr().String()) // a listener's address
	m.mqtt = "ssl://localhost:" + port
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go m.relay(conn)
		}
	}()
	return m, nil
}

// relay passes bytes on and counts them.
func (m *metered) relay(robot net.Conn) {
	defer robot.Close()
	broker, err := net.Dial("tcp", m.Addr("mqtt"))
	if err != nil {
		return
	}
	defer broker.Close()
	var both sync.WaitGroup
	pass := func(to, from net.Conn, n *atomic.Int64) {
		_, _ = io.Copy(counting{to, n}, from) // either side's end ends both
		_ = to.Close()
		_ = from.Close()
	}
	both.Go(func() { pass(broker, robot, &m.up) })
	both.Go(func() { pass(robot, broker, &m.down) })
	both.Wait()
}

type counting struct {
	io.Writer
	n *atomic.Int64
}

func (c counting) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// reading is everything that the house counts, at a moment.
type reading struct {
	at    time.Time
	use   plan.Use
	acts  map[plan.Act]float64
	parts map[string]int64 // resident bytes
}

func (m *metered) read(ctx context.Context, statuses ...string) (r reading, err error) {
	r = reading{at: time.Now(), use: plan.Use{}, acts: map[plan.Act]float64{}, parts: map[string]int64{}}
	series, err := scrape(ctx, m.metrics)
	if err != nil {
		return r, err
	}
	r.acts[plan.Status] = series[`kennel_endpoint_duration_seconds_count{kind="ok",name="up/status",transport="mqtt"}`]
	r.acts[plan.Batch] = series[`kennel_das_batches_total`]
	r.acts[plan.Group] = series[`kennel_das_groups_total`]
	r.acts[plan.Event] = series[`kennel_das_events_total{result="stored"}`]
	r.acts[plan.Setting] = series[`kennel_endpoint_duration_seconds_count{kind="ok",name="jdocs/write",transport="mqtt"}`]
	r.use[plan.Requests] = series["kennel_bridge_received_messages_total"]
	for name, v := range series {
		if strings.HasPrefix(name, "kennel_postgres_statement_seconds_count") {
			r.use[plan.Statements] += v
		}
	}
	for _, status := range statuses {
		s, err := summaryOf(ctx, status)
		if err != nil {
			return r, err
		}
		r.acts[plan.Login] += float64(s.Connects)
	}
	r.use[plan.Up], r.use[plan.Down] = float64(m.up.Load())/m.counted, float64(m.down.Load())/m.counted
	for part, q := range map[string]plan.Quantity{"kenneld": plan.CPUKenneld, "broker": plan.CPUBroker, "postgres": plan.CPUPostgres, "s3": plan.CPUStore} {
		pid, err := m.Pid(part)
		if err != nil {
			return r, err
		}
		pids := []int{pid}
		if part == "postgres" {
			pids = bench.Family(pid)
		}
		u := bench.UsageOfAll(pids...)
		r.use[q], r.parts[part] = u.CPU.Seconds(), u.RSS
	}
	err = filepath.WalkDir(filepath.Join(m.Dir(), "s3", "objects"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // an object may go while it is looked at
		}
		if info, err := d.Info(); err == nil {
			r.use[plan.Objects]++
			r.use[plan.ObjectBytes] += float64(info.Size())
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	db, err := m.DB(ctx)
	if err != nil {
		return r, err
	}
	defer db.Close(ctx)
	var wal int64
	err = db.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`).Scan(&wal)
	r.use[plan.WAL] = float64(wal)
	return r, err
}

// since returns what happened between two readings.
func (r reading) since(before reading) (took time.Duration, p plan.Phase) {
	p = plan.Phase{Done: map[plan.Act]float64{}, Used: plan.Use{}}
	for a, v := range r.acts {
		p.Done[a] = v - before.acts[a]
	}
	for q, v := range r.use {
		p.Used[q] = v - before.use[q]
	}
	return r.at.Sub(before.at), p
}

// scrape reads the metrics of a process: a number for each series, by its text.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		i := strings.LastIndexByte(lines.Text(), ' ')
		if i < 0 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if v, err := strconv.ParseFloat(lines.Text()[i+1:], 64); err == nil {
			out[lines.Text()[:i]] = v
		}
	}
	return out, lines.Err()
}

// tableBytes is the size of tables whose names begin so, with their indexes; "": of the whole database.
func (m *metered) tableBytes(ctx context.Context, prefix string) (n int64, err error) {
	db, err := m.DB(ctx)
	if err != nil {
		return 0, err
	}
	defer db.Close(ctx)
	if prefix == "" {
		return n, db.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&n)
	}
	err = db.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relkind = 'r' AND relname LIKE $1`, prefix+"%").Scan(&n)
	return n, err
}

// phase measures robots of a behaviour that differs from a quiet one in what profile says.
func (m *metered) phase(ctx context.Context, tb testing.TB, robots int, profile map[string]any, cuts bool, d time.Duration) (took time.Duration, p plan.Phase, last reading, err error) {
	file := filepath.Join(tb.TempDir(), "profile.yaml")
	all := map[string]any{"status": "1h", "flush": costFlush.String(), "telemetry": "24h", "vitals": "9s"}
	maps.Copy(all, profile)
	b, err := yaml.Marshal(all)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		return 0, p, last, err
	}
	return m.run(ctx, tb, robots, file, costSettle, cuts, d)
}

// startCrowd starts robots in enough processes to stay within the limit of descriptors, and returns the addresses of their status. The first process goes through the proxy.
func (m *metered) startCrowd(ctx context.Context, tb testing.TB, robots int, profile string) (statuses []string, stop func(), err error) {
	var fleets []*bench.Program
	stop = func() {
		for _, f := range fleets {
			f.Stop()
		}
	}
	most, err := fleet.Descriptors()
	if err != nil {
		return nil, stop, err
	}
	m.counted = float64(min(most, robots)) / float64(robots)
	for first := 0; first < robots; first += most {
		args := []string{"-first", fmt.Sprintf("vic:%08x", firstOfCrowd+first), "-root", filepath.Join(m.Dir(), fmt.Sprintf("fleet%d", first))}
		if first == 0 {
			args = append(args, "-mqtt", m.mqtt)
		}
		f, status, err := startFleetAs(ctx, tb, m.house, min(most, robots-first), profile, args...)
		if err != nil {
			return nil, stop, err
		}
		fleets, statuses = append(fleets, f), append(statuses, status)
	}
	return statuses, stop, nil
}

// firstOfCrowd is the serial number of a crowd's first robot.
const firstOfCrowd = 0x00f00000

// run measures robots of a profile for d, after they have settled.
func (m *metered) run(ctx context.Context, tb testing.TB, robots int, profile string, settle time.Duration, cuts bool, d time.Duration) (took time.Duration, p plan.Phase, last reading, err error) {
	statuses, stop, err := m.startCrowd(ctx, tb, robots, profile)
	defer stop()
	if err != nil {
		return 0, p, last, err
	}
	if err := bench.Pass(ctx, settle); err != nil {
		return 0, p, last, err
	}
	before, err := m.read(ctx, statuses...)
	if err != nil {
		return 0, p, last, err
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		if cuts {
			resp, err := http.Post(fmt.Sprintf("http://%s/reconnect?n=%d", statuses[0], max(robots/10, 1)), "", nil)
			if err != nil {
				return 0, p, last, err
			}
			_ = resp.Body.Close()
		}
		if err := bench.Pass(ctx, min(time.Second, max(time.Until(end), time.Millisecond))); err != nil {
			return 0, p, last, err
		}
	}
	if last, err = m.read(ctx, statuses...); err != nil {
		return 0, p, last, err
	}
	took, p = last.since(before)
	p.Done[plan.Connected] = float64(robots) * took.Seconds()
	return took, p, last, nil
}

// measureCosts returns the cost of each act on this machine.
func measureCosts(ctx context.Context, tb testing.TB, robots int, d time.Duration) (c plan.Costs, err error) {
	m, err := startMetered(ctx, tb)
	if err != nil {
		return c, err
	}
	defer m.Stop()
	if err := bench.Pass(ctx, costSettle); err != nil {
		return c, err
	}
	before, err := m.read(ctx)
	if err != nil {
		return c, err
	}
	if err := bench.Pass(ctx, d); err != nil {
		return c, err
	}
	alone, err := m.read(ctx)
	if err != nil {
		return c, err
	}
	took, p := alone.since(before)
	c = plan.Costs{Measured: time.Now().UTC().Format(time.DateOnly), Machine: thisMachine().String(), Version: version.String(), Robots: robots,
		Command: "go run ./cmd/bench -run '^costs$' -count 1 -costs cloud/app/plan/costs.json", Idle: plan.Use{}}
	for q, v := range p.Used {
		c.Idle[q] = max(0, v/took.Seconds())
	}
	empty, err := m.tableBytes(ctx, "")
	if err != nil {
		return c, err
	}
	var all []plan.Phase
	var spans []time.Duration
	var events, size float64 // of the phase with the most
	for i, ph := range phases {
		stored, err := m.tableBytes(ctx, "das_")
		if err != nil {
			return c, err
		}
		took, p, last, err := m.phase(ctx, tb, robots, ph.profile, ph.cuts, d)
		if err != nil {
			return c, fmt.Errorf("%s: %w", ph.name, err)
		}
		for q := range p.Used {
			p.Used[q] = max(0, p.Used[q]-c.Idle[q]*took.Seconds())
		}
		all, spans = append(all, p), append(spans, took)
		if i == 0 {
			full, err := m.tableBytes(ctx, "")
			if err != nil {
				return c, err
			}
			c.RowsPerRobot = float64(full-empty) / float64(robots)
			c.KenneldBytes, c.BrokerBytes = float64(alone.parts["kenneld"]), float64(alone.parts["broker"])
		}
		switch ph.name {
		case "few large batches":
			now, err := m.tableBytes(ctx, "das_")
			if err != nil {
				return c, err
			}
			events, size = last.acts[plan.Event], float64(now-stored)
			events -= before.acts[plan.Event]
			for _, earlier := range all[:len(all)-1] {
				events -= earlier.Done[plan.Event]
			}
		case "telemetry":
			c.EventsPerTelemetry = p.Done[plan.Event] / (float64(robots) * took.Seconds() / 5)
		case "logins":
			c.EventsPerLogin = p.Done[plan.Event] / max(1, p.Done[plan.Login])
		case "lively":
			c.KenneldPerRobot = max(0, float64(last.parts["kenneld"])-c.KenneldBytes) / float64(robots)
			c.BrokerPerRobot = max(0, float64(last.parts["broker"])-c.BrokerBytes) / float64(robots)
		}
		tb.Logf("%s: %v, %v, %.1f s of processor time", ph.name, took.Round(time.Millisecond), p.Done, p.Used.CPU())
	}
	var batches, groups, seconds float64 // of all phases: 1/groups - 1/batches a second is how long a group is open
	for i, p := range all {
		if b, g := p.Done[plan.Batch], p.Done[plan.Group]; b > 2*float64(robots) && g > 0 {
			batches, groups, seconds = batches+b, groups+g, seconds+spans[i].Seconds()
		}
	}
	if groups > 0 {
		c.GroupSeconds = max(0, seconds/groups-seconds/batches)
	}
	c.RowsPerEvent = size / max(1, events)
	c.Acts, err = plan.Fit(all)
	return c, err
}

// compare returns what a crowd uses beside what the model says.
func compare(ctx context.Context, tb testing.TB, c plan.Costs, of crowd, d time.Duration) (map[string]bench.Pair, error) {
	m, err := startMetered(ctx, tb)
	if err != nil {
		return nil, err
	}
	defer m.Stop()
	b, err := plan.BehaviourOf(of.behaviour)
	if err != nil {
		return nil, err
	}
	took, p, last, err := m.run(ctx, tb, of.robots, of.behaviour, costSettle+b.Flush, false, d)
	if err != nil {
		return nil, err
	}
	want := c.Second(of.robots, 1, b)
	kenneld, broker := c.Memory(of.robots)
	for a, n := range c.ActsOf(of.robots, 1, b) {
		tb.Logf("%s: %.3f a second, model %.3f", a, p.Done[a]/took.Seconds(), n)
	}
	for _, q := range plan.Quantities {
		tb.Logf("%s: %.4g a second, model %.4g", q, p.Used[q]/took.Seconds(), want[q])
	}
	return map[string]bench.Pair{
		"processor": {Value: 1000 * p.Used.CPU() / took.Seconds(), Reference: 1000 * want.CPU()},
		"memory":    {Value: float64(last.parts["kenneld"]+last.parts["broker"]) / (1 << 20), Reference: (kenneld + broker) / (1 << 20)},
		"bytes":     {Value: (p.Used[plan.Up] + p.Used[plan.Down]) / took.Seconds() / 1024, Reference: (want[plan.Up] + want[plan.Down]) / 1024},
	}, nil
}

// TestBehavioursAreTheSimulators: the plan's names mean what they mean to robotsim fleet.
func TestBehavioursAreTheSimulators(t *testing.T) {
	for _, name := range plan.Behaviours() {
		b, err := plan.BehaviourOf(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := fleet.LoadProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := plan.Behaviour{Status: p.Status, Flush: p.Flush, Telemetry: p.Telemetry, EventsPerHour: p.Events, SettingsPerHour: p.Settings, LoginsPerDay: 24*p.Drops + p.Reboots}
		if b != want {
			t.Errorf("%s: %+v, want %+v", name, b, want)
		}
	}
}
