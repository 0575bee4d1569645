package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStatistics(t *testing.T) {
	if got := Median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median of three: %v, want 5", got)
	}
	if got := Median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("median of four: %v, want 2.5", got)
	}
	if got := Median(nil); got != 0 {
		t.Errorf("median of nothing: %v, want 0", got)
	}
	xs := make([]float64, 101)
	for i := range xs {
		xs[i] = float64(100 - i)
	}
	if got := Percentile(xs, 99); got != 99 {
		t.Errorf("p99 of 0 to 100: %v, want 99", got)
	}
	if xs[0] != 100 {
		t.Error("Percentile changed the order of its argument")
	}
	if got := Slope([]float64{500, 1000, 2000}, []float64{70, 120, 220}); math.Abs(got-0.1) > 1e-9 {
		t.Errorf("slope %v, want 0.1", got)
	}
}

// TestPairs: turns alternate, and each number is a median: of the ratios, not the ratio of medians.
func TestPairs(t *testing.T) {
	var order strings.Builder
	values, refs := []float64{10, 30, 20}, []float64{10, 10, 40}
	pairs, err := Pairs(t.Context(), 3, func(context.Context) (float64, error) {
		order.WriteByte('v')
		return values[order.Len()/2], nil
	}, func(context.Context) (float64, error) {
		order.WriteByte('r')
		return refs[order.Len()/2-1], nil
	})
	if err != nil || order.String() != "vrvrvr" {
		t.Fatalf("order %s, %v; want vrvrvr", order.String(), err)
	}
	if r := (Line{Bound: 1.5}).Result(pairs); r.Value != 20 || r.Reference != 10 || r.Ratio != 1 || !r.Missed() {
		t.Errorf("%+v: want 20, 10, ratio 1, missed", r)
	}
	if r := (Line{Less: true}).Result(pairs); r.Ratio != 1 || r.Missed() {
		t.Errorf("less is better: ratio %v, want 1, and nothing to miss", r.Ratio)
	}
	if r := (Line{Less: true}).Result([]Pair{{Value: 10, Reference: 20}}); r.Ratio != 2 {
		t.Errorf("half of the reference, less is better: ratio %v, want 2", r.Ratio)
	}
	if r := (Line{}).Result([]Pair{{Value: 10}}); r.Ratio != 0 {
		t.Errorf("without a reference: ratio %v, want 0", r.Ratio)
	}
	boom := errors.New("boom")
	fine := func(context.Context) (float64, error) { return 1, nil }
	fail := func(context.Context) (float64, error) { return 0, boom }
	if _, err := Pairs(t.Context(), 2, fine, fail); !errors.Is(err, boom) || !strings.Contains(err.Error(), "reference of turn 1") {
		t.Errorf("failing reference: %v", err)
	}
}

func TestPart(t *testing.T) {
	all, quick := &Env{}, &Env{Quick: true}
	if Part(all, 1500) != 1500 || Part(quick, 1500) != 150 || Part(quick, 3) != 1 || Part(quick, 3*time.Second) != 300*time.Millisecond {
		t.Errorf("%d, %d, %d, %v", Part(all, 1500), Part(quick, 1500), Part(quick, 3), Part(quick, 3*time.Second))
	}
}

func TestSelect(t *testing.T) {
	table := []Bench{{Name: "logins"}, {Name: "events"}, {Name: "rpc"}}
	for _, tc := range []struct{ pattern, want string }{{"", "logins events rpc"}, {"rpc|log", "logins rpc"}, {"^events$", "events"}} {
		got, err := Select(table, tc.pattern)
		var names []string
		for _, b := range got {
			names = append(names, b.Name)
		}
		if s := strings.Join(names, " "); err != nil || s != tc.want {
			t.Errorf("%q: %q, %v; want %q", tc.pattern, s, err, tc.want)
		}
	}
	for _, pattern := range []string{"nothing", "("} {
		if _, err := Select(table, pattern); err == nil {
			t.Errorf("%q is accepted", pattern)
		}
	}
}

// TestRun: a bench that fails is told and does not stop the next; the table and the file say all.
func TestRun(t *testing.T) {
	env := &Env{Count: 1, Log: t.Logf}
	rep := Run(t.Context(), []Bench{
		{Name: "bad", Run: func(context.Context, *Env) ([]Result, error) { return nil, errors.New("no broker") }},
		{Name: "good", Run: func(context.Context, *Env) ([]Result, error) {
			return []Result{{Name: "good", Value: 1234.5, Reference: 5000, Ratio: 0.25, Bound: 0.5, Unit: "x/s", Note: "as it is", Plot: "  ▁█\n"},
				{Name: "free", Value: 0.123456, Unit: "ms"}}, nil
		}},
	}, env)
	rep.Version = "v1"
	if len(rep.Missed()) != 1 || len(rep.Failed) != 1 {
		t.Errorf("missed %v, failed %v: want one each", rep.Missed(), rep.Failed)
	}
	var out strings.Builder
	if err := rep.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"v1, 20", "1234", "0.25", "MISSED", "0.123", "good: as it is", "▁█", "bad FAILED: no broker"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	file := filepath.Join(t.TempDir(), "new", "bench.json")
	if err := rep.Save(file); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil || len(back.Results) != 2 || back.Results[0].Ratio != 0.25 || back.Machine.Cores < 1 {
		t.Errorf("%v: %s", err, b)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if rep := Run(ctx, []Bench{{Name: "late"}}, env); len(rep.Results)+len(rep.Failed) > 0 {
		t.Errorf("ran after the end: %+v", rep)
	}
}

func TestPlot(t *testing.T) {
	got := Plot(Series{"rate", []float64{0, 1, 100, 50}}, Series{"memory", []float64{8, 8}})
	want := "  rate    ▁█▄ max 100\n  memory ██ max 8\n         one column: 1 s\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if long := Plot(Series{"x", make([]float64, 2*plotWidth+1)}); !strings.Contains(long, "one column: 3 s") {
		t.Errorf("a long series is drawn\n%s", long)
	}
	var csv strings.Builder
	if err := WriteCSV(&csv, Series{"a", []float64{1.5, 2}}, Series{"b", []float64{3}}); err != nil || csv.String() != "second,a,b\n0,1.5,3\n1,2,\n" {
		t.Errorf("csv %q, %v", csv.String(), err)
	}
}

func TestUsage(t *testing.T) {
	start := time.Now()
	for time.Since(start) < 60*time.Millisecond { // something to be counted
	}
	u, err := UsageOf(os.Getpid())
	if err != nil || u.CPU <= 0 || u.RSS < 1<<20 {
		t.Errorf("of this process: %+v, %v", u, err)
	}
	if _, err := UsageOf(1 << 30); err == nil {
		t.Error("a process that cannot be has a usage")
	}
	s, err := parseStat("42 (a) b (c) S 7 42 42 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 9 0 1000 1000000 25 184")
	want := stat{pid: 42, parent: 7, usage: Usage{CPU: 2 * time.Second, RSS: 25 * int64(os.Getpagesize())}}
	if err != nil || s != want {
		t.Errorf("%+v, %v: want %+v", s, err, want)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("42 (a) S 7 42 42 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 9 0 1000 1000000 25 184")
	f.Add(") ")
	f.Fuzz(func(t *testing.T, line string) {
		if s, err := parseStat(line); err != nil && s != (stat{}) {
			t.Fatalf("%q: %v, and yet %+v", line, err, s)
		}
	})
}
