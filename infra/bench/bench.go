// Package bench holds benchmarks against a reference that is measured in the same run.
//
// A number of events per second says little: another machine, or the same one on a busy day, gives another. So such a benchmark measures the
// thing and, in turn, the least that it must cost (a bare handshake, a bare COPY), and reports their ratio. The turns alternate, so that a
// disturbance falls on both, and the reported value is the median of the pairs.
//
// A benchmark of this kind is in a test file beside the package it measures and is called Benchmark<What>Beside<Reference>; cmd/bench runs them all and
// prints one table. Its body takes a testing.TB, so that a test can run it once, with a tenth of the work, to show that it works.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// OutVar names the folder of a run's results; empty: only the go command prints them. LongVar asks for the full run, where a benchmark has one.
const OutVar, LongVar = "KENNEL_BENCH_OUT", "KENNEL_BENCH_LONG"

// ResultsFile is in the folder of OutVar: one Result as JSON on each line.
const ResultsFile = "bench.jsonl"

// Pair holds the results of one turn of a measurement and of its reference.
type Pair struct {
	Value     float64 `json:"value"`
	Reference float64 `json:"reference"`
}

// Line describes a measurement apart from its numbers.
type Line struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Less  bool    `json:"-"`               // less is better, as for latency and memory
	Bound float64 `json:"bound,omitempty"` // the least ratio demanded; 0: none
	Note  string  `json:"note,omitempty"`  // what was measured against what
	Plot  string  `json:"plot,omitempty"`  // text, for people
}

// Result is one line of the report: the medians of the values, of the references and of the pairs' ratios.
type Result struct {
	Line
	Value     float64 `json:"value"`
	Reference float64 `json:"reference,omitempty"` // in Unit; 0: there is none
	Ratio     float64 `json:"ratio,omitempty"`     // above 1: better than the reference; 0: no reference
	Pairs     []Pair  `json:"pairs,omitempty"`
}

// Missed reports whether the ratio is below what is demanded.
func (r Result) Missed() bool { return r.Bound > 0 && r.Ratio < r.Bound }

// ratio is above 1 where the value is better than the reference; 0 without a reference.
func (l Line) ratio(p Pair) float64 {
	switch {
	case p.Value <= 0 || p.Reference <= 0:
		return 0
	case l.Less:
		return p.Reference / p.Value
	}
	return p.Value / p.Reference
}

func (l Line) result(pairs []Pair) Result {
	var values, references, ratios []float64
	for _, p := range pairs {
		values, references, ratios = append(values, p.Value), append(references, p.Reference), append(ratios, l.ratio(p))
	}
	return Result{Line: l, Pairs: pairs, Value: Median(values), Reference: Median(references), Ratio: Median(ratios)}
}

// Turns calls turn until the benchmark has had its time; in a test, once. A benchmark calls Turns or Beside once.
func Turns(tb testing.TB, turn func() error) {
	tb.Helper()
	once := func() {
		tb.Helper()
		if err := turn(); err != nil {
			tb.Fatal(err)
		}
	}
	b, ok := tb.(*testing.B)
	if !ok {
		once()
		return
	}
	for b.Loop() {
		once()
	}
}

// Beside measures value and reference in turn and reports them.
func Beside(tb testing.TB, l Line, value, reference func(context.Context) (float64, error)) {
	tb.Helper()
	var pairs []Pair
	Turns(tb, func() error {
		v, err := value(tb.Context())
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		r, err := reference(tb.Context())
		if err != nil {
			return fmt.Errorf("reference of %s: %w", l.Name, err)
		}
		pairs = append(pairs, Pair{v, r})
		return nil
	})
	Report(tb, l, pairs)
}

// Report reports pairs: as metrics of a benchmark, and in the run's results. In a test a result without a value or a ratio is an error.
func Report(tb testing.TB, l Line, pairs []Pair) Result {
	tb.Helper()
	r := l.result(pairs)
	what := l.Name
	if _, part, ok := strings.Cut(what, "/"); ok {
		what = part
	}
	switch tb := tb.(type) {
	case *testing.B:
		tb.ReportMetric(0, "ns/op") // of a turn: it says nothing
		tb.ReportMetric(r.Value, what+":"+l.Unit)
		if r.Ratio > 0 {
			tb.ReportMetric(r.Ratio, what+":ratio")
		}
	case *testing.T:
		tb.Logf("%s: %.3g %s, ratio %.2f. %s", l.Name, r.Value, l.Unit, r.Ratio, l.Note)
		if r.Value <= 0 || r.Ratio <= 0 || l.Unit == "" {
			tb.Errorf("%+v", r)
		}
	}
	if out := Out(); out != "" {
		if err := save(filepath.Join(out, ResultsFile), r); err != nil {
			tb.Error(err)
		}
	}
	return r
}

func save(file string, r Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

// Out is the folder for the files of a run; "": none.
func Out() string { return os.Getenv(OutVar) }

// Long reports whether the full run is asked for.
func Long() bool { return os.Getenv(LongVar) != "" }

// Quick reports whether a tenth of the work is enough: in tests, and with -short.
func Quick(tb testing.TB) bool {
	_, test := tb.(*testing.T)
	return test || testing.Short()
}

// Part is how much of all, a number or a duration, this run does: all, or of a quick run a tenth and at least one.
func Part[T ~int | ~int64](tb testing.TB, all T) T {
	if Quick(tb) {
		return max(1, all/10)
	}
	return all
}

// Soak skips a test that needs more than a few seconds, unless the long tests were asked for.
func Soak(t *testing.T) {
	t.Helper()
	if os.Getenv("KENNEL_SOAK") == "" {
		t.Skip("runs with KENNEL_SOAK=1")
	}
}

// Fastest returns the calls of fn a second in the fastest of some rounds of so many calls each: for work so short that what else runs would decide.
func Fastest(rounds, calls int, fn func()) float64 {
	best := time.Duration(math.MaxInt64)
	for range rounds {
		began := time.Now()
		for range calls {
			fn()
		}
		best = min(best, max(time.Since(began), 1))
	}
	return float64(calls) / best.Seconds()
}

// Many calls do with 0 to n-1, so many at once, and returns how many calls a second that was. The first error ends it.
func Many(n, atOnce int, do func(i int) error) (perSecond float64, err error) {
	var next atomic.Int64
	var failed atomic.Bool
	errc := make(chan error, atOnce) // one from each
	var wg sync.WaitGroup
	start := time.Now()
	for range min(atOnce, n) {
		wg.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					failed.Store(true)
					errc <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	select {
	case err := <-errc:
		return 0, err
	default:
		return float64(n) / took.Seconds(), nil
	}
}

// During makes callers do the same again and again for d, on a busy machine until one call is done, and returns how many calls a second that was.
// A call that still waits then is told so by its context, and does not count. The first error ends it.
func During(ctx context.Context, d time.Duration, callers int, do func(ctx context.Context, caller int) error) (perSecond float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done atomic.Int64
	first := make(chan struct{})
	one := sync.OnceFunc(func() { close(first) })
	time.AfterFunc(d, func() {
		select {
		case <-first:
		case <-ctx.Done():
		}
		cancel()
	})
	errc := make(chan error, callers) // one from each
	var wg sync.WaitGroup
	start := time.Now()
	for caller := range callers {
		wg.Go(func() {
			for { // once at least, however late its turn comes
				switch err := do(ctx, caller); {
				case err == nil:
					done.Add(1)
					one()
				case ctx.Err() == nil:
					cancel()
					errc <- err
				}
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	select {
	case err := <-errc:
		return 0, err
	default:
		return float64(done.Load()) / took.Seconds(), nil
	}
}

// Pass lets d pass.
func Pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Calls is During, and also returns within how many milliseconds 99 of 100 calls were done.
func Calls(ctx context.Context, d time.Duration, callers int, do func(ctx context.Context, caller int) error) (perSecond, p99 float64, err error) {
	var mu sync.Mutex
	var took []float64
	perSecond, err = During(ctx, d, callers, func(ctx context.Context, caller int) error {
		began := time.Now()
		err := do(ctx, caller)
		mu.Lock()
		defer mu.Unlock()
		took = append(took, time.Since(began).Seconds()*1000)
		return err
	})
	return perSecond, Percentile(took, 99), err
}
