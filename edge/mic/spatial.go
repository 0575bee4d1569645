package mic

import (
	"math"

	"kennel/edge/mic/geometry"
)

// Settings of the direction finder.
const (
	spatialLow  = 10   // bins, 300 Hz
	spatialHigh = 131  // 4000 Hz
	remember    = 0.85 // of the directions, from chunk to chunk
	beamFrom    = 0.3  // confidence
	overNoise   = 4    // a bin counts if it has so many times the power of the noise
	leastBins   = 8    // a chunk with fewer of them says nothing on the direction
)

// spatial finds the direction of a voice and makes a beam toward it: the power of the sum of the four microphones, each delayed as it would be for a
// sound from there, with all frequencies of equal weight (SRP-PHAT).
type spatial struct {
	steer [geometry.Bins][geometry.Mics][bins]complex64
	best  float64 // contrast between the directions for one clear sound
	mics  [geometry.Mics][bins]complex64
	power [geometry.Bins]float64 // smoothed
	beam  int
}

func newSpatial(g *gate) *spatial {
	s := &spatial{}
	for d := range s.steer {
		for ch, late := range geometry.Delays(geometry.Direction(d)) {
			for k := range s.steer[d][ch] {
				sin, cos := math.Sincos(2 * math.Pi * float64(k) / points * late)
				s.steer[d][ch][k] = complex(float32(cos), float32(sin))
			}
		}
	}
	// One clear sound from ahead.
	for ch := range s.mics {
		for k := range s.mics[ch] {
			v := s.steer[0][ch][k]
			s.mics[ch][k] = complex(real(v), -imag(v))
		}
	}
	for k := range g.bins {
		g.bins[k] = 1 // over a noise of 0
	}
	s.look(g)
	most, least := s.extent()
	s.best = 1 - least/most
	s.silence()
	return s
}

func (s *spatial) silence() { s.power, s.beam = [geometry.Bins]float64{}, NoDirection }

// find fills in the direction of a chunk, and replaces g's bins by the beam.
func (s *spatial) find(mics *[geometry.Mics][window]float32, g *gate, c *Chunk) {
	for ch := range mics {
		g.load(&mics[ch])
		g.plan.Forward(s.mics[ch][:], g.time)
	}
	s.look(g)
	most, least := s.extent()
	if most == 0 {
		return
	}
	at := 0
	for d, p := range s.power {
		if c.Histogram[d] = uint8(math.Round(255 * (p - least) / max(most-least, 1e-9))); p == most {
			at = d
		}
	}
	// The sum of four is 4 for sounds that have nothing to do with each other, and 16 for one sound from there.
	coherence := (most - geometry.Mics) / (geometry.Mics*geometry.Mics - geometry.Mics)
	c.Confidence = float32(min(max(coherence, 0)*(1-least/most)/s.best, 1))
	if c.Confidence > beamFrom {
		c.Direction, s.beam = at, at
	}
	if s.beam == NoDirection {
		return
	}
	for k := range g.bins {
		sum := complex64(0)
		for ch := range s.mics {
			sum += s.mics[ch][k] * s.steer[s.beam][ch][k]
		}
		g.bins[k] = sum * (1.0 / geometry.Mics)
	}
}

// look takes the bins of the microphones that are over the noise into the power of each direction.
func (s *spatial) look(g *gate) {
	used := 0
	var power [geometry.Bins]float32
	for k := spatialLow; k < spatialHigh; k++ {
		if v := g.bins[k]; real(v)*real(v)+imag(v)*imag(v) <= overNoise*g.noise[k] {
			continue
		}
		used++
		var m [geometry.Mics]complex64
		for ch := range m {
			v := s.mics[ch][k]
			m[ch] = v * complex(1/(1e-6+float32(math.Sqrt(float64(real(v)*real(v)+imag(v)*imag(v))))), 0)
		}
		for d := range power {
			steer := &s.steer[d]
			sum := m[0]*steer[0][k] + m[1]*steer[1][k] + m[2]*steer[2][k] + m[3]*steer[3][k]
			power[d] += real(sum)*real(sum) + imag(sum)*imag(sum)
		}
	}
	if used < leastBins {
		return
	}
	for d, p := range power {
		p := float64(p) / float64(used)
		if s.power[d] == 0 {
			s.power[d] = p
		}
		s.power[d] = remember*s.power[d] + (1-remember)*p
	}
}

func (s *spatial) extent() (most, least float64) {
	most, least = s.power[0], s.power[0]
	for _, p := range s.power {
		most, least = max(most, p), min(least, p)
	}
	return most, least
}
