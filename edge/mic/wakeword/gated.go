package wakeword

import "kennel/edge/mic"

// preRoll is how much of the sound before a voice the detector hears, in chunks: the voice detector takes a moment.
const preRoll = 25

// Gated feeds a detector only while a person speaks (VEC-WAK-01). It is a Detector that takes whole chunks, too, which tell it so.
type Gated struct {
	Detector
	ring  [preRoll]mic.Chunk
	n     uint64 // chunks in the ring, ever
	heard uint64 // samples since Reset
	from  uint64 // of them, before the first one that the detector has
	awake bool
}

// NewGated returns a gate before d.
func NewGated(d Detector) *Gated { return &Gated{Detector: d} }

// Reset forgets all samples.
func (g *Gated) Reset() {
	g.n, g.heard, g.from, g.awake = 0, 0, 0, false
	g.Detector.Reset()
}

// Hear takes the next chunk and reports a wake word. Our own sound ends what was heard before.
func (g *Gated) Hear(c *mic.Chunk) (hit Hit, ok bool) {
	before := g.heard
	g.heard += mic.ChunkSamples
	if c.Own {
		g.n = 0
	}
	if !c.Voice {
		g.awake = false
		g.ring[g.n%preRoll] = *c
		g.n++
		return Hit{}, false
	}
	if !g.awake {
		g.awake = true
		g.Detector.Reset()
		had := min(g.n, preRoll)
		g.from = before - had*mic.ChunkSamples
		for i := g.n - had; i < g.n; i++ {
			g.Detector.Feed(g.ring[i%preRoll].Samples[:]) // no person has spoken yet
		}
		g.n = 0
	}
	if hit, ok = g.Detector.Feed(c.Samples[:]); ok {
		hit.Begin, hit.End = hit.Begin+g.from, hit.End+g.from
	}
	return hit, ok
}
