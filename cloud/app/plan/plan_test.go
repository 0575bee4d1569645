package plan

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/cli"
	"kennel/infra/errs"
)

func near(got, want, part float64) bool { return math.Abs(got-want) <= part*math.Abs(want) }

// TestFit: the costs that made the phases are found again, exactly without noise and closely with 5 % of it; a cost below 0 becomes 0.
func TestFit(t *testing.T) {
	truth := map[Act]float64{Connected: 2e-5, Status: 7e-4, Batch: 3e-4, Group: 2e-3, Event: 9e-5, Setting: 1e-3, Login: 6e-3}
	random := rand.New(rand.NewPCG(1, 2))
	phases := func(noise float64) (out []Phase) {
		for i := range 12 {
			p := Phase{Done: map[Act]float64{}, Used: Use{}}
			for j, a := range Acts {
				p.Done[a] = 100 + 1000*random.Float64()
				if i%len(Acts) == j {
					p.Done[a] *= 50
				}
				p.Used[CPUKenneld] += p.Done[a] * truth[a]
				p.Used[WAL] += p.Done[a] * 1000
			}
			p.Used[CPUBroker] = max(0, 5-p.Done[Login]/10_000) // falls with logins: no cost of theirs
			p.Used[CPUKenneld] *= 1 + noise*(2*random.Float64()-1)
			out = append(out, p)
		}
		return out
	}
	for noise, part := range map[float64]float64{0: 1e-6, 0.05: 0.25} {
		got, err := Fit(phases(noise))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range Acts {
			if a != Connected && a != Batch && !near(got[a][CPUKenneld], truth[a], part) || !near(got[a][WAL], 1000, 1e-6) || got[a][CPUBroker] < 0 {
				t.Errorf("noise %v, %s: %v, want %v and 1000 bytes", noise, a, got[a], truth[a])
			}
		}
	}
	same := phases(0)
	for i := range same {
		same[i].Done[Batch] = same[i].Done[Status]
	}
	if _, err := Fit(same); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), "do not tell") {
		t.Errorf("acts that always come together: %v", err)
	}
	if _, err := Fit(same[:3]); errs.KindOf(err) != errs.Invalid {
		t.Errorf("three phases: %v", err)
	}
}

// costs are simple numbers to calculate with.
func costs() Costs {
	c := Costs{Robots: 1, Acts: map[Act]Use{}, Idle: Use{CPUKenneld: 0.01}, KenneldBytes: 100 * mib, KenneldPerRobot: 10_000, BrokerBytes: 50 * mib, BrokerPerRobot: 100_000,
		RowsPerRobot: 20_000, RowsPerEvent: 200, GroupSeconds: 0.02, EventsPerTelemetry: 6, EventsPerLogin: 2}
	for _, a := range Acts {
		c.Acts[a] = Use{CPUKenneld: 1e-4, CPUBroker: 1e-4, CPUPostgres: 2e-4, CPUStore: 1e-5, Up: 100, Down: 50, WAL: 500, Statements: 1, Requests: 1, Objects: 0.1, ObjectBytes: 40}
	}
	c.Acts[Connected] = Use{Up: 1}
	return c
}

// TestActs: the arithmetic of a behaviour, by hand.
func TestActs(t *testing.T) {
	lively, err := BehaviourOf("lively")
	if err != nil {
		t.Fatal(err)
	}
	got := costs().ActsOf(1000, 2, lively)
	logins := 1000 * 25 / 86_400.0
	arrivals := (360/3600.0 + 1/120.0 + 25/86_400.0)
	batches := 200 * (1 - math.Exp(-5*arrivals))
	for a, want := range map[Act]float64{Connected: 1000, Status: 50 + logins, Login: logins, Setting: 1000 * 6 / 3600.0, Event: 100 + 50 + 2*logins, Batch: batches,
		Group: 1 / (1/batches + 0.02/2)} {
		if !near(got[a], want, 1e-9) {
			t.Errorf("%s: %v a second, want %v", a, got[a], want)
		}
	}
	quiet := costs().ActsOf(10, 1, Behaviour{Status: time.Minute, Flush: 30 * time.Second, Telemetry: 10 * time.Minute})
	if !near(quiet[Batch], 10/30.0*(1-math.Exp(-30/600.0)), 1e-9) || quiet[Login] != 0 || quiet[Setting] != 0 {
		t.Errorf("%v", quiet)
	}
	if _, err := BehaviourOf("wild"); errs.KindOf(err) != errs.Invalid {
		t.Error(err)
	}
}

func options(robots int) Options {
	b, _ := BehaviourOf("lively") // exists
	return Options{Robots: robots, Behaviour: b, KeepDays: 30, Machine: Machine{Cores: 16, Memory: 64 * gib, Share: 0.6}}
}

// TestPlan: what is needed grows with the robots, the limits are five in order, and at a limit the part is as full as it says.
func TestPlan(t *testing.T) {
	c := costs()
	small, err := Plan(c, options(100_000))
	if err != nil {
		t.Fatal(err)
	}
	large, err := Plan(c, options(1_000_000))
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range large.Nodes {
		if s := small.Nodes[i]; n.Count < s.Count || !near(n.Cores, 10*s.Cores, 0.5) || n.Part != s.Part {
			t.Errorf("%+v after %+v", n, s)
		}
	}
	if !near(large.PostgresBytes, 10*small.PostgresBytes, 1e-6) || !near(large.UpPerSecond, 10*small.UpPerSecond, 0.5) {
		t.Errorf("%+v\n%+v", large, small)
	}
	if k := large.Nodes[0]; k.Count != int(math.Ceil(k.Cores/(16*0.6))) {
		t.Errorf("%+v: want as many as the processors need", k)
	}
	if len(large.Limits) != 5 {
		t.Fatalf("%d limits", len(large.Limits))
	}
	for i, l := range large.Limits {
		if l.Name == "" || l.Lift == "" || l.Robots < 1 || i > 0 && l.Robots < large.Limits[i-1].Robots {
			t.Errorf("limit %d: %+v", i, l)
		}
		if !strings.HasPrefix(l.Name, "processors of one Postgres") {
			continue
		}
		at, err := Plan(c, options(l.Robots))
		if err != nil || !near(at.Nodes[2].Cores, 16*0.6, 0.1) {
			t.Errorf("at %d robots Postgres has %.2f busy processors, %v", l.Robots, at.Nodes[2].Cores, err)
		}
	}
	tiny, err := Plan(c, options(1))
	if err != nil || tiny.Nodes[0].Count != 2 || tiny.Nodes[1].Count != 3 || tiny.Nodes[2].Count != 2 {
		t.Errorf("%+v, %v", tiny.Nodes, err)
	}
	for name, change := range map[string]func(*Options){
		"robots": func(o *Options) { o.Robots = 0 }, "keep-days": func(o *Options) { o.KeepDays = 0 }, "cores": func(o *Options) { o.Machine.Cores = math.NaN() },
		"memory": func(o *Options) { o.Machine.Memory = 1 }, "share": func(o *Options) { o.Machine.Share = 2 },
	} {
		o := options(10)
		change(&o)
		if _, err := Plan(c, o); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPrice: a month by hand, and files that are refused.
func TestPrice(t *testing.T) {
	p := Prices{Currency: "X", Core: 2, MemoryGiB: 1, DiskGiB: 0.5, ObjectGiB: 0.1, ObjectPuts: 3, TrafficIn: 0, TrafficOut: 4, MessagesMillion: 1, Connection: 0.01}
	n := Need{Robots: 1000, Nodes: []Nodes{{Part: "kenneld", Count: 2}, {Part: "postgres", Count: 2, Disk: 100 * gib}}, MessagesPerSecond: 1e6 / month, DownPerSecond: 10 * gib / month,
		UpPerSecond: 1e9, ObjectsPerMonth: 2e6, ObjectBytes: 50 * gib}
	got := p.Of(n, Machine{Cores: 4, Memory: 8 * gib})
	want := Price{Currency: "X", Machines: 4 * (8 + 8), Disks: 100, Objects: 5 + 6, Traffic: 40, Service: 1 + 10}
	want.Month = 64 + 100 + 11 + 40 + 11
	want.Robot = want.Month / 1000
	if !near(got.Month, want.Month, 1e-9) || !near(got.Robot, want.Robot, 1e-9) || !near(got.Traffic, want.Traffic, 1e-9) || got.Machines != want.Machines || got.Disks != want.Disks || got.Objects != want.Objects {
		t.Errorf("%+v, want %+v", got, want)
	}
	example, err := os.ReadFile("prices.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for text, bad := range map[string]string{
		string(example): "", strings.Replace(string(example), "core: 1", "cores: 1", 1): "cores", strings.Replace(string(example), "core: 1", "", 1): "core is missing",
		strings.Replace(string(example), "core: 1", "core: -1", 1): "core is -1", strings.Replace(string(example), "PLACEHOLDER", `""`, 1): "currency",
	} {
		file := filepath.Join(t.TempDir(), "p.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadPrices(file); (err == nil) != (bad == "") || err != nil && !strings.Contains(err.Error(), bad) {
			t.Errorf("%v, want %q", err, bad)
		}
	}
}

// TestMeasured: this version has costs, all of them plausible: a login costs more than a status, and something costs each part something.
func TestMeasured(t *testing.T) {
	c, err := Measured()
	if err != nil {
		t.Fatal(err)
	}
	if c.Acts[Login].CPU() <= c.Acts[Status].CPU() || c.Acts[Status].CPU() <= 0 || c.Acts[Status][Requests] < 0.9 || c.Acts[Status][Requests] > 1.1 || c.Measured == "" || c.Machine == "" || c.Command == "" {
		t.Errorf("%+v", c)
	}
	for _, q := range Quantities {
		total := 0.0
		for _, u := range c.Acts {
			total += u[q]
		}
		if total <= 0 {
			t.Errorf("nothing costs %s", q)
		}
	}
}

func TestCommand(t *testing.T) {
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		code := cli.Run(t.Context(), Command(), args, func(string) string { return "" }, &out, &out)
		return code, out.String()
	}
	code, text := run("-robots", "1e6", "-prices", "prices.example.yaml")
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, text)
	}
	for _, want := range []string{"kenneld ", "postgres ", "First limits", "WHAT LIFTS IT", "Price in PLACEHOLDER", "a robot and month", "Costs measured on"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	code, text = run("-robots", "20000", "-profile", "idle", "-o", "json")
	var n Need
	if err := json.Unmarshal([]byte(text), &n); err != nil || code != cli.ExitOK || n.Robots != 20_000 || len(n.Limits) != 5 || n.Price != nil {
		t.Errorf("exit %d, %v: %s", code, err, text)
	}
	for args, want := range map[string]string{"-robots 1.5": "-robots", "-robots many": "-robots", "-robots 1e12": "-robots", "-robots 5 -profile wild": "profile", "-robots 5 -memory much": "-memory",
		"-robots 5 -share 0": "share", "": "robots"} {
		if code, text := run(strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: exit %d: %s", args, code, text)
		}
	}
	if code, text := run("-robots", "5", "-costs", filepath.Join(t.TempDir(), "none")); code == cli.ExitOK {
		t.Errorf("a file that is not there: %s", text)
	}
	for _, line := range cli.Lint(Command()) {
		t.Error(line)
	}
}

// FuzzParseCosts: whatever is in the file, a plan of what is taken is made of numbers.
func FuzzParseCosts(f *testing.F) {
	b, err := json.Marshal(costs())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(measured)
	f.Add([]byte(`{"acts":{"login":{"cpu_kenneld":-1}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCosts(b)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Errorf("%v", err)
			}
			return
		}
		n, err := Plan(c, options(1000))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range n.Nodes {
			if p.Count < 1 || math.IsNaN(p.Cores) || math.IsNaN(p.Memory) || math.IsNaN(p.Disk) {
				t.Errorf("%+v", p)
			}
		}
	})
}
