package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"kennel/edge/body/vector/spine"
	"kennel/infra/bench"
)

// spineBound is the least that is demanded of the codec (issue 6, what must hold 4).
const spineBound = 0.3

// spineFrames is how many data frames of the body are parsed out of a stream, and made, in a second, beside copies of the same bytes with their
// CRC-32. Each side counts its fastest rounds: frames take well under a microsecond, so that whoever else runs would decide.
func spineFrames(ctx context.Context, env *bench.Env) ([]bench.Result, error) {
	m := spine.BodyData{Seq: 7}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range m.Mics {
		m.Mics[i] = int16(rng.Uint32())
	}
	frame := m.AppendFrame(nil)
	into := make([]byte, len(frame))
	parser := spine.NewParser(spine.ToHead)
	var sum uint32
	var bad error
	measure := func(fn func()) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			rate := fastest(bench.Part(env, 2000), fn)
			return rate, ctx.Err()
		}
	}
	bare := measure(func() { sum += spine.Checksum(into[:copy(into, frame)]) })
	var out []bench.Result
	for _, what := range []struct {
		name, note string
		fn         func()
	}{
		{"spine/parse", "found in a stream, checked and decoded", func() {
			parser.Fill(copy(parser.Space(), frame))
			if f, ok := parser.Next(); !ok || m.ParsePayload(f.Payload) != nil {
				bad = fmt.Errorf("a good frame of %d bytes is not found: %+v", len(frame), parser.Counters())
			}
		}},
		{"spine/append", "encoded", func() { into = m.AppendFrame(into[:0]) }},
	} {
		pairs, err := bench.Pairs(ctx, env.Count, measure(what.fn), bare)
		if err == nil {
			err = bad
		}
		if err != nil {
			return out, err
		}
		out = append(out, bench.Line{Name: what.name, Unit: "frames/s", Bound: spineBound,
			Note: fmt.Sprintf("data frames of the body, %d bytes, %s; reference: a copy with CRC-32 of the same bytes", len(frame), what.note)}.Result(pairs))
	}
	return out, nil
}

// fastest returns the calls of fn a second in the fastest of some short rounds.
func fastest(rounds int, fn func()) float64 {
	const calls = 500
	best := time.Hour
	for range rounds {
		began := time.Now()
		for range calls {
			fn()
		}
		best = min(best, time.Since(began))
	}
	return calls / best.Seconds()
}
