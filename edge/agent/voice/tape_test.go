package voice

import (
	"testing"
	"time"

	"kennel/edge/mic"
)

// TestPause: after the wake word what a person says begins after a pause, if there is one, and not at a consonant.
func TestPause(t *testing.T) {
	const chunk, from, to = 10 * time.Millisecond, time.Second, time.Second + nameEnds
	for name, c := range map[string]struct {
		quiet [][2]time.Duration // from and to
		want  time.Duration
	}{
		"one breath":                 {nil, from},
		"a consonant":                {[][2]time.Duration{{1200, 1290}}, from},
		"a pause":                    {[][2]time.Duration{{1250, 1400}}, 1400},
		"it has not ended":           {[][2]time.Duration{{1250, 9000}}, to},
		"at once":                    {[][2]time.Duration{{900, 1300}}, 1300},
		"a consonant before a pause": {[][2]time.Duration{{1050, 1110}, {1200, 1350}}, 1350},
		"a pause that came too late": {[][2]time.Duration{{1600, 2000}}, from},
	} {
		var tp tape
		for at := chunk; at <= 2*time.Second; at += chunk {
			k := mic.Chunk{At: at}
			for i := range k.Samples {
				k.Samples[i] = 5000 * int16(1-2*(i%2))
			}
			for _, q := range c.quiet {
				if at > q[0]*time.Millisecond && at <= q[1]*time.Millisecond {
					for i := range k.Samples {
						k.Samples[i] /= 100
					}
				}
			}
			tp.put(&k)
		}
		want := c.want
		if want < time.Second {
			want *= time.Millisecond
		}
		if got := tp.pause(from, to); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
