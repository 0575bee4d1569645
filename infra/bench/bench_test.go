package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestStatistics(t *testing.T) {
	if got := Median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median of three: %v, want 5", got)
	}
	if got := Mean([]float64{9, 1, 5}); got != 5 {
		t.Errorf("mean of three: %v", got)
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

// TestBeside: turns alternate, and each number is a median: of the ratios, not the ratio of medians. The results' file says the same.
func TestBeside(t *testing.T) {
	out := t.TempDir()
	t.Setenv(OutVar, out)
	had := flag.Lookup("test.benchtime").Value.String()
	if err := flag.Set("test.benchtime", "3x"); err != nil {
		t.Fatal(err)
	}
	defer flag.Set("test.benchtime", had)
	var order strings.Builder
	values, refs := []float64{10, 30, 20}, []float64{10, 10, 40}
	got := testing.Benchmark(func(b *testing.B) {
		Beside(b, Line{Name: "wire/rate", Unit: "x/s", Bound: 1.5}, func(context.Context) (float64, error) {
			order.WriteByte('v')
			return values[order.Len()/2], nil
		}, func(context.Context) (float64, error) {
			order.WriteByte('r')
			return refs[order.Len()/2-1], nil
		})
	})
	if order.String() != "vrvrvr" || got.Extra["rate:x/s"] != 20 || got.Extra["rate:ratio"] != 1 {
		t.Errorf("order %s, %v: want vrvrvr, 20 x/s, ratio 1", order.String(), got.Extra)
	}
	line, err := os.ReadFile(filepath.Join(out, ResultsFile))
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	if err := json.Unmarshal(line, &r); err != nil || r.Name != "wire/rate" || r.Reference != 10 || r.Ratio != 1 || len(r.Pairs) != 3 || !r.Missed() {
		t.Errorf("%v: %s", err, line)
	}
	failed := testing.Benchmark(func(b *testing.B) {
		fine := func(context.Context) (float64, error) { return 1, nil }
		Beside(b, Line{Name: "wire/rate", Unit: "x/s"}, fine, func(context.Context) (float64, error) { return 0, errors.New("boom") })
	})
	if len(failed.Extra) > 0 {
		t.Errorf("a reference that fails gives %v", failed.Extra)
	}
}

func TestRatio(t *testing.T) {
	if r := (Line{Less: true}).result([]Pair{{10, 10}, {30, 10}, {20, 40}}); r.Ratio != 1 || r.Missed() {
		t.Errorf("less is better: ratio %v, want 1, and nothing to miss", r.Ratio)
	}
	if r := (Line{Less: true}).result([]Pair{{Value: 10, Reference: 20}}); r.Ratio != 2 {
		t.Errorf("half of the reference, less is better: ratio %v, want 2", r.Ratio)
	}
	if r := (Line{}).result([]Pair{{Value: 10}}); r.Ratio != 0 {
		t.Errorf("without a reference: ratio %v, want 0", r.Ratio)
	}
}

// TestPart: a test does a tenth of the work.
func TestPart(t *testing.T) {
	if Part(t, 1500) != 150 || Part(t, 3) != 1 || Part(t, 3*time.Second) != 300*time.Millisecond {
		t.Errorf("%d, %d, %v", Part(t, 1500), Part(t, 3), Part(t, 3*time.Second))
	}
	testing.Benchmark(func(b *testing.B) {
		if !testing.Short() && (Part(b, 1500) != 1500 || Quick(b)) {
			t.Errorf("a benchmark does %d of 1500", Part(b, 1500))
		}
	})
}

// TestMany: all of it once, or the first error and an early end.
func TestMany(t *testing.T) {
	var seen [100]atomic.Int64
	if rate, err := Many(len(seen), 7, func(i int) error { seen[i].Add(1); return nil }); err != nil || rate <= 0 {
		t.Errorf("%v, %v", rate, err)
	}
	for i := range seen {
		if n := seen[i].Load(); n != 1 {
			t.Errorf("%d was done %d times", i, n)
		}
	}
	broken := errors.New("broken")
	var calls atomic.Int64
	if rate, err := Many(1000, 4, func(int) error { calls.Add(1); return broken }); err != broken || rate != 0 || calls.Load() > 4 {
		t.Errorf("%v, %v after %d calls", rate, err, calls.Load())
	}
}

// TestDuring: what waits at the end does not count and is no error; anything else is.
func TestDuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		rate, err := During(t.Context(), 2*time.Second, 8, func(ctx context.Context, _ int) error {
			if calls.Add(1) <= 10 {
				return nil
			}
			<-ctx.Done() // waits in a line
			return ctx.Err()
		})
		if err != nil || rate != 10/2.0 {
			t.Errorf("%v, %v: want 10 calls in 2 s", rate, err)
		}
		broken := errors.New("broken")
		began := time.Now()
		if rate, err := During(t.Context(), time.Minute, 8, func(context.Context, int) error { return broken }); err != broken || rate != 0 || time.Since(began) > 0 {
			t.Errorf("%v, %v after %v", rate, err, time.Since(began))
		}
		rate, err = During(t.Context(), time.Second, 1, func(ctx context.Context, _ int) error { // on a busy machine
			select {
			case <-time.After(4 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err != nil || rate != 1/4.0 {
			t.Errorf("%v, %v: want one call in 4 s", rate, err)
		}
	})
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

// TestPeakRSS: memory that was used and given back shows until it is forgotten.
func TestPeakRSS(t *testing.T) {
	pid := os.Getpid()
	peak := func() float64 {
		t.Helper()
		kib, err := PeakRSS(pid)
		if err != nil || kib <= 0 {
			t.Fatalf("%v, %v", kib, err)
		}
		return kib
	}
	if err := ForgetPeak(pid); err != nil {
		t.Fatal(err)
	}
	before := peak()
	big, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(big); i += 4096 {
		big[i] = 1
	}
	if err := unix.Munmap(big); err != nil {
		t.Fatal(err)
	}
	after := peak()
	if after < before+48<<10 {
		t.Errorf("%v KiB after 64 MiB more than %v", after, before)
	}
	if err := ForgetPeak(pid); err != nil {
		t.Fatal(err)
	}
	if forgot := peak(); forgot > after-32<<10 {
		t.Errorf("%v KiB, %v before it was to be forgotten", forgot, after)
	}
	if _, err := PeakRSS(1 << 30); err == nil {
		t.Error("a process that there is not has a peak")
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
