package spine

import (
	"fmt"
	"testing"

	"kennel/infra/bench"
)

// BenchmarkSpineBesideCopy parses frames out of a stream, and makes them, beside a copy of the same bytes with their CRC-32: at least 0.3 of its
// rate is wanted for the body's data (issue 6, what must hold 4).
func BenchmarkSpineBesideCopy(b *testing.B) { spineBesideCopy(b) }

func TestSpineBesideCopy(t *testing.T) { spineBesideCopy(t) }

func spineBesideCopy(tb testing.TB) {
	body, head := patternData(), &HeadData{Motors: [4]int16{1, 2, 3, 4}}
	type side struct {
		bench.Line
		fn, bare func()
		pairs    []bench.Pair
	}
	var sides []*side
	var sum uint32
	var bad error
	for _, kind := range []struct {
		name, what string
		to         Direction
		append     func(dst []byte) []byte
		parse      func(payload []byte) error
		bound      float64
	}{
		{"spine", "data frames of the body", ToHead, body.AppendFrame, body.ParsePayload, 0.3},
		{"spine/head", "data frames of the head", ToBody, head.AppendFrame, head.ParsePayload, 0},
	} {
		frame := kind.append(nil)
		into := make([]byte, len(frame))
		parser := NewParser(kind.to)
		line := func(name, how string) bench.Line {
			return bench.Line{Name: kind.name + name, Unit: "frames/s", Bound: kind.bound,
				Note: fmt.Sprintf("%s, %d bytes, %s; reference: a copy with CRC-32 of the same bytes", kind.what, len(frame), how)}
		}
		bare := func() { sum += Checksum(into[:copy(into, frame)]) }
		sides = append(sides, &side{Line: line("/parse", "found in a stream, checked and decoded"), bare: bare, fn: func() {
			parser.Fill(copy(parser.Space(), frame))
			if f, ok := parser.Next(); !ok || kind.parse(f.Payload) != nil {
				bad = fmt.Errorf("a good frame of %d bytes is not found: %+v", len(frame), parser.Counters())
			}
		}}, &side{Line: line("/append", "encoded"), bare: bare, fn: func() { into = kind.append(into[:0]) }})
	}
	const calls = 500 // of a round
	bench.Turns(tb, func() error {
		for _, s := range sides {
			rounds := bench.Part(tb, 2000) // frames take well under a microsecond, so that what else runs would decide
			s.pairs = append(s.pairs, bench.Pair{Value: bench.Fastest(rounds, calls, s.fn), Reference: bench.Fastest(rounds, calls, s.bare)})
		}
		return bad
	})
	for _, s := range sides {
		bench.Report(tb, s.Line, s.pairs)
	}
}
