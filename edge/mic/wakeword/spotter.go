package wakeword

import "math"

// Settings of the spotter.
const (
	shortest = 30 // frames in a word, 0.3 s
	longest  = 200
	settle   = 10            // frames after the best end until it is reported: a better one may follow
	stay     = float32(-0.2) // cost of a frame in the same state, and
	advance  = float32(-1.0) // of one in the next
	clip     = float32(6)    // what one frame counts at most: one that is odd must not decide
	never    = float32(-1 << 30)
)

// Spotter is a Detector of one word. It compares the word's states with all other sounds, frame by frame, and finds the best path that ends now. It
// allocates only in NewSpotter.
type Spotter struct {
	m    *Model
	f    *features
	part [hop]int16 // samples of the next hop
	n    int
	fed  uint64 // samples

	frame uint64 // vectors so far
	score []float32
	begin []uint64 // frame in which the best path to a state began
	since int      // frames after the best end
	found Hit
	best  float32
}

// NewSpotter returns a detector of m's word.
func NewSpotter(m *Model) *Spotter {
	s := &Spotter{m: m, f: newFeatures(), score: make([]float32, m.states), begin: make([]uint64, m.states)}
	s.Reset()
	return s
}

// Reset forgets all samples.
func (s *Spotter) Reset() {
	s.n, s.fed, s.frame, s.best, s.since = 0, 0, 0, 0, 0
	s.f.reset(&s.m.mean)
	s.forget()
}

func (s *Spotter) forget() {
	for i := range s.score {
		s.score[i] = never
	}
}

// Feed takes samples of 16 kHz.
func (s *Spotter) Feed(samples []int16) (hit Hit, ok bool) {
	for len(samples) > 0 {
		n := copy(s.part[s.n:], samples)
		samples = samples[n:]
		s.fed += uint64(n)
		if s.n += n; s.n < hop {
			break
		}
		s.n = 0
		var v vector
		if !s.f.feed(s.part[:], &v) {
			continue
		}
		if h, found := s.step(&v); found && !ok {
			hit, ok = h, true
		}
	}
	return hit, ok
}

// step takes one frame.
func (s *Spotter) step(v *vector) (Hit, bool) {
	s.frame++
	other := best(s.m.other, v)
	for i := s.m.states - 1; i >= 0; i-- {
		here := max(-clip, min(clip, best(s.m.word[i*s.m.each:(i+1)*s.m.each], v)-other))
		score, begin := s.score[i]+stay, s.begin[i]
		from, at := float32(0), s.frame
		if i > 0 {
			from, at = s.score[i-1]+advance, s.begin[i-1]
		}
		if from > score {
			score, begin = from, at
		}
		if s.frame-begin > longest {
			score = never
		}
		s.score[i], s.begin[i] = score+here, begin
	}
	last := s.m.states - 1
	length := s.frame - s.begin[last]
	mean := s.score[last] / float32(max(length, shortest))
	if sure := mean / s.m.threshold; sure > max(1, s.best) && length >= shortest {
		end := s.fed - uint64(s.n) - lag
		s.best, s.since = sure, 0
		s.found = Hit{End: end, Begin: end - min(end, length*hop), Score: float64(sure)}
		return Hit{}, false
	}
	if s.best == 0 {
		return Hit{}, false
	}
	if s.since++; s.since < settle {
		return Hit{}, false
	}
	s.best = 0
	s.forget() // the same word is not heard twice
	return s.found, true
}

// mostLikely returns the greatest score that a recording reaches, in units of the mean per frame; used in training, with a threshold of 1.
func (s *Spotter) mostLikely(samples []int16) float64 {
	s.Reset()
	most := math.Inf(-1)
	var v vector
	for ; len(samples) >= hop; samples = samples[hop:] {
		if !s.f.feed(samples[:hop], &v) {
			continue
		}
		s.step(&v)
		last := s.m.states - 1
		if length := s.frame - s.begin[last]; length >= shortest && s.score[last] > never/2 {
			most = max(most, float64(s.score[last])/float64(length))
		}
		s.best = 0
	}
	return most
}
