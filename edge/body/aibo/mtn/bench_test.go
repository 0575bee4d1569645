package mtn

import (
	"fmt"
	"hash/adler32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kennel/infra/bench"
)

// timed is a file of the benchmarks.
type timed struct {
	name, what string
	file       []byte
}

// motions are files of the benchmarks: the source's example, a usual one and a long one.
func motions(tb testing.TB) []timed {
	p, _ := PlatformFor(7)
	rnd := rand.New(rand.NewPCG(1, 35))
	return []timed{{"example", "the source's example", example(tb)}, {"usual", "91 keyframes of 20 joints", must(tb, made(rnd, p, 2, 91))}, {"long", "5,000 keyframes of 20 joints", must(tb, made(rnd, p, 2, 5000))}}
}

// BenchmarkMotionFilesBesideCopy reads and writes motion files, beside a copy of the same bytes with their Adler-32: at least half as fast (issue 35, what must
// hold 6).
func BenchmarkMotionFilesBesideCopy(b *testing.B) { motionFilesBesideCopy(b) }

func TestMotionFilesBesideCopy(t *testing.T) { motionFilesBesideCopy(t) }

func motionFilesBesideCopy(tb testing.TB) {
	type side struct {
		bench.Line
		fn, bare func()
		calls    int
		pairs    []bench.Pair
	}
	var sides []*side
	for _, m := range motions(tb) {
		var f File
		if _, err := f.Parse(m.file, Lenient); err != nil {
			tb.Fatal(err)
		}
		var again File
		buf, sum := make([]byte, 0, len(m.file)), uint32(0)
		bare := func() {
			buf = append(buf[:0], m.file...)
			sum += adler32.Checksum(buf)
		}
		for how, fn := range map[string]func(){ // all were seen to work
			"decode": func() { _, _, _ = Parse(m.file, Lenient) },
			"again":  func() { _, _ = again.Parse(m.file, Lenient) },
			"encode": func() { buf, _ = Append(buf[:0], &f) },
		} {
			sides = append(sides, &side{fn: fn, bare: bare, calls: max(1, 200_000/len(m.file)), Line: bench.Line{Name: "motion files/" + how + "-" + m.name, Unit: "files/s", Bound: 0.5,
				Note: fmt.Sprintf("%s, %d bytes (again: decoded into the memory of the one before); reference: a copy with Adler-32 of the same bytes", m.what, len(m.file))}})
		}
	}
	slices.SortFunc(sides, func(a, b *side) int { return strings.Compare(a.Name, b.Name) })
	bench.Turns(tb, func() error {
		for _, s := range sides {
			rounds := bench.Part(tb, 1000)
			s.pairs = append(s.pairs, bench.Pair{Value: bench.Fastest(rounds, s.calls, s.fn), Reference: bench.Fastest(rounds, s.calls, s.bare)})
		}
		return nil
	})
	for _, s := range sides {
		bench.Report(tb, s.Line, s.pairs)
	}
}
