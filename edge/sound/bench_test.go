package sound

import (
	"context"
	"testing"
	"time"

	"kennel/infra/bench"
)

// BenchmarkMixBesideAdd mixes a second of four sounds with all effects, beside a loop that adds the samples of four and does nothing else.
func BenchmarkMixBesideAdd(b *testing.B) { mixBesideAdd(b) }

func TestMixBesideAdd(t *testing.T) { mixBesideAdd(t) }

func mixBesideAdd(tb testing.TB) {
	m, out := busy(tb), make([]int16, 160)
	var in [4][]float32
	for i := range in {
		in[i] = tone(16_000, 16_000, 300, 0.2).Samples
	}
	bench.Beside(tb, bench.Line{Name: "mixer", Unit: "us", Less: true,
		Note: "1 s of four sounds mixed: ducking, one at another pitch and speed, equaliser, limiters; reference: a loop that adds four"},
		func(context.Context) (float64, error) {
			began := time.Now()
			for range 100 {
				m.Mix(out)
			}
			return float64(time.Since(began).Nanoseconds()) / 1e3, nil
		}, func(context.Context) (float64, error) {
			const times = 20
			began := time.Now()
			for range times {
				for block := range 100 {
					for i := range out {
						sum := float32(0)
						for _, x := range in {
							sum += x[block*160+i]
						}
						out[i] = quantise(sum)
					}
				}
			}
			return float64(time.Since(began).Nanoseconds()) / 1e3 / times, nil
		})
}
