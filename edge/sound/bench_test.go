package sound_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/sound"
	"kennel/edge/sound/array"
	"kennel/edge/sound/beat"
	"kennel/edge/sound/miclink"
	"kennel/edge/sound/wake"
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
	frames := make([]miclink.Frame, array.Rate/array.Samples)
	for at := range len(frames) * array.Samples {
		s := float64(at) / array.Rate
		voice := 0.0
		for f := 140.0; f < 3000; f += 140 {
			voice += math.Sin(2*math.Pi*f*s) * 200 / (200 + f)
		}
		voice *= loud * math.Max(0, math.Sin(2*math.Pi*4*s))
		for ch := range array.Mics {
			frames[at/array.Samples].Mics[at%array.Samples*array.Mics+ch] = array.Idle + int16(voice+20*r.NormFloat64())
		}
	}
	p, word, beats := sound.New(sound.Config{}), wake.NewGated(wake.NewSpotter(wake.Default())), beat.New(array.Rate)
	voiced := 0
	second := func() {
		for i := range frames {
			var c sound.Chunk
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
