package mic_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/mic"
	"kennel/edge/mic/beat"
	"kennel/edge/mic/geometry"
	"kennel/edge/mic/miclink"
	"kennel/edge/mic/wakeword"
	"kennel/infra/bench"
)

// BenchmarkSoundBesideCopy is all that a robot does with a second of its microphones, while a person speaks and in a quiet room, beside the least that
// anything could do with it: a copy of the frames.
func BenchmarkSoundBesideCopy(b *testing.B) {
	for name, loud := range map[string]float64{"quiet": 0, "voice": 3000} {
		b.Run(name, func(b *testing.B) { soundBesideCopy(b, name, loud) })
	}
}

func TestSoundBesideCopy(t *testing.T) { soundBesideCopy(t, "voice", 3000) }

func soundBesideCopy(tb testing.TB, name string, loud float64) {
	r := rand.New(rand.NewPCG(1, 1))
	frames := make([]miclink.Frame, geometry.Rate/geometry.Samples)
	for at := range len(frames) * geometry.Samples {
		s := float64(at) / geometry.Rate
		voice := 0.0
		for f := 140.0; f < 3000; f += 140 {
			voice += math.Sin(2*math.Pi*f*s) * 200 / (200 + f)
		}
		voice *= loud * math.Max(0, math.Sin(2*math.Pi*4*s))
		for ch := range geometry.Mics {
			frames[at/geometry.Samples].Mics[at%geometry.Samples*geometry.Mics+ch] = geometry.Idle + int16(voice+20*r.NormFloat64())
		}
	}
	p, word, beats := mic.New(mic.Config{}), wakeword.NewGated(wakeword.NewSpotter(wakeword.Default())), beat.New(geometry.Rate)
	voiced := 0
	second := func() {
		for i := range frames {
			var c mic.Chunk
			if p.Feed(&frames[i], false, &c) {
				beats.Feed(c.Samples[:])
				word.Hear(&c)
				if c.Voice {
					voiced++
				}
			}
		}
	}
	second() // the noise is learned
	bench.Beside(tb, bench.Line{Name: "sound/" + name, Unit: "us", Less: true,
		Note: "all a robot does with 1 s of its microphones: pipeline, beat, wake word; reference: a copy of their frames"},
		func(context.Context) (float64, error) {
			began := time.Now()
			second()
			return float64(time.Since(began).Nanoseconds()) / 1e3, nil
		}, func(context.Context) (float64, error) {
			const times = 1000
			to := make([]miclink.Frame, len(frames))
			began := time.Now()
			for range times {
				copy(to, frames)
			}
			return float64(time.Since(began).Nanoseconds()) / 1e3 / times, nil
		})
	if (voiced > 0) != (loud > 0) {
		tb.Errorf("%d chunks of %s have a voice", voiced, name)
	}
}
