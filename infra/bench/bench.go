package bench

import (
	"context"
	"fmt"
	"regexp"
	"time"
)

// Bench is one measurement and the references that it is held against.
type Bench struct {
	Name  string
	About string // one line, for -list
	// Programs are those of Env.Bin that it starts.
	Programs []string
	Run      func(ctx context.Context, env *Env) ([]Result, error)
}

// Env is the environment of a bench.
type Env struct {
	Count int    // pairs of turns, at least 1
	Long  bool   // the full run, where a bench has one
	Quick bool   // a tenth of the work, where a bench has much: see Part
	Bin   string // folder with the built programs
	Out   string // folder for files such as CSV
	// Log tells people what is going on.
	Log func(format string, args ...any)
}

// Part is how much of all, a number or a duration, this run does: all, or a tenth and at least one.
func Part[T ~int | ~int64](env *Env, all T) T {
	if env.Quick {
		return max(1, all/10)
	}
	return all
}

// Result is one line of the report.
type Result struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Reference float64 `json:"reference,omitempty"` // in Unit; 0: there is none
	Ratio     float64 `json:"ratio,omitempty"`     // above 1: better than the reference; 0: no reference
	Bound     float64 `json:"bound,omitempty"`     // the least ratio demanded; 0: none
	Note      string  `json:"note,omitempty"`      // what was measured against what
	Pairs     []Pair  `json:"pairs,omitempty"`
	Plot      string  `json:"plot,omitempty"` // text, for people
}

// Missed reports whether the ratio is below what is demanded.
func (r Result) Missed() bool { return r.Bound > 0 && r.Ratio < r.Bound }

// Select returns the benches whose name matches pattern, in the order of the table. No match at all is an error: a typing mistake must
// not look like success.
func Select(table []Bench, pattern string) ([]Bench, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %.80q: %w", pattern, err)
	}
	var out []Bench
	for _, b := range table {
		if re.MatchString(b.Name) {
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no bench matches %.80q", pattern)
	}
	return out, nil
}

// Run runs benches one after the other. One that fails does not stop the others; ctx does.
func Run(ctx context.Context, benches []Bench, env *Env) *Report {
	rep := &Report{Started: time.Now().UTC(), Machine: ThisMachine()}
	for _, b := range benches {
		if ctx.Err() != nil {
			break
		}
		env.Log("%s: %s", b.Name, b.About)
		start := time.Now()
		results, err := b.Run(ctx, env)
		rep.Results = append(rep.Results, results...)
		if err != nil {
			rep.Failed = append(rep.Failed, Failure{b.Name, err.Error()})
			env.Log("%s: failed: %v", b.Name, err)
		}
		env.Log("%s: %v", b.Name, time.Since(start).Round(100*time.Millisecond))
	}
	return rep
}
