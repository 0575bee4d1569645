package sound

import (
	"fmt"
	"math"
)

// The bounds of speed and pitch, as factors.
const (
	MinSpeed, MaxSpeed = 0.05, 20
	MinPitch, MaxPitch = 0.25, 4
)

// stretcher reads a sound at another speed, another pitch, or both, by grains that overlap (WSOLA): each is taken from near the place that the speed asks for, where
// it continues the one before best. The first sample of the result is the first of the sound.
type stretcher struct {
	src   []float32
	loops int // how often src is read, one after the other; Forever
	end   float64

	hop    int       // output samples from grain to grain
	window []float32 // of 2*hop samples; its halves add up to 1
	tail   []float32 // second half of the newest grain, times its half of the window
	ready  []float32 // hop finished samples
	used   int       // of ready
	place  float64   // in the input, of the next grain
	follow float64   // in the input, where the newest grain would continue
	step   float64   // input samples for each output sample of the newest grain
	probe  []float32 // scratch: the continuation
	begun  bool
}

func newStretcher(src []float32, rate, loops int) *stretcher {
	hop := max(16, rate/100)
	s := &stretcher{src: src, loops: loops, hop: hop, end: float64(len(src)) * float64(loops), window: make([]float32, 2*hop), tail: make([]float32, hop),
		ready: make([]float32, hop), used: hop, probe: make([]float32, hop/2)}
	if loops < 0 {
		s.end = math.Inf(1)
	}
	for i := range s.window {
		s.window[i] = float32(0.5 - 0.5*math.Cos(math.Pi*float64(i)/float64(hop)))
	}
	return s
}

// at returns the input at a place between samples, 0 outside.
func (s *stretcher) at(place float64) float32 {
	if place < 0 || place >= s.end {
		return 0
	}
	i := int(place)
	t := float32(place - float64(i))
	n := len(s.src)
	i %= n
	if i > 0 && i+2 < n { // four points
		y0, y1, y2, y3 := s.src[i-1], s.src[i], s.src[i+1], s.src[i+2]
		c1 := 0.5 * (y2 - y0)
		c2 := y0 - 2.5*y1 + 2*y2 - 0.5*y3
		c3 := 0.5*(y3-y0) + 1.5*(y1-y2)
		return ((c3*t+c2)*t+c1)*t + y1
	}
	next := float32(0)
	if i+1 < n {
		next = s.src[i+1]
	} else if place+1 < s.end {
		next = s.src[0]
	}
	return s.src[i] + t*(next-s.src[i])
}

// read fills dst and returns how many samples it wrote: fewer are the end. Speed and pitch are factors, and may change from call to call.
func (s *stretcher) read(dst []float32, speed, pitch float64) int {
	n := 0
	for n < len(dst) {
		if s.used == s.hop {
			if s.place >= s.end {
				break
			}
			s.grain(speed, pitch)
		}
		k := copy(dst[n:], s.ready[s.used:])
		n, s.used = n+k, s.used+k
	}
	return n
}

// grain makes the next hop samples.
func (s *stretcher) grain(speed, pitch float64) {
	begin := s.place
	if s.begun {
		begin = s.search(pitch)
	} else {
		for i := range s.tail { // the first sample has its full strength
			s.tail[i] = (1 - s.window[i]) * s.at(float64(i)*pitch)
		}
	}
	for i := range s.ready {
		s.ready[i] = s.tail[i] + s.window[i]*s.at(begin+float64(i)*pitch)
	}
	for i := range s.tail {
		s.tail[i] = s.window[s.hop+i] * s.at(begin+float64(s.hop+i)*pitch)
	}
	s.follow, s.step = begin+float64(s.hop)*pitch, pitch
	s.place += float64(s.hop) * speed
	s.used, s.begun = 0, true
}

// search returns the place within half a hop times the pitch of the planned one that looks most like the continuation of the newest grain.
func (s *stretcher) search(pitch float64) float64 {
	if math.Abs(s.follow-s.place) < 0.5 { // speed and pitch are the same
		return s.follow
	}
	// Every second sample of half a hop, at every second place, finds the pitch of voices and tones of a toy's speaker; then the places between are tried.
	for i := range s.probe {
		s.probe[i] = s.at(s.follow + float64(2*i)*pitch)
	}
	reach := float64(s.hop)
	best, bestAt := math.Inf(-1), s.place
	try := func(at float64) {
		dot, power := float32(0), float32(1e-9)
		for i, v := range s.probe {
			x := s.nearest(at + float64(2*i)*pitch)
			dot += v * x
			power += x * x
		}
		if score := float64(dot) / math.Sqrt(float64(power)); score > best {
			best, bestAt = score, at
		}
	}
	for d := -reach; d <= reach; d += 3 {
		try(s.place + d)
	}
	for middle, d := bestAt, -2.0; d <= 2; d++ {
		if d != 0 {
			try(middle + d)
		}
	}
	return bestAt
}

// nearest returns the input sample nearest to a place, 0 outside.
func (s *stretcher) nearest(place float64) float32 {
	place += 0.5
	if place < 0 || place >= s.end {
		return 0
	}
	i := int(place)
	if i >= len(s.src) {
		i %= len(s.src)
	}
	return s.src[i]
}

// Stretch returns the sound at another speed and pitch, both factors: at speed 2 it is half as long, at pitch 2 an octave higher. ErrRange outside MinSpeed to MaxSpeed
// and MinPitch to MaxPitch.
func (s *Sound) Stretch(speed, pitch float64) (*Sound, error) {
	if !(speed >= MinSpeed && speed <= MaxSpeed && pitch >= MinPitch && pitch <= MaxPitch) {
		return nil, fmt.Errorf("%w: expected a speed of %g to %g and a pitch of %g to %g, found %g and %g", ErrRange, MinSpeed, float64(MaxSpeed), MinPitch, float64(MaxPitch), speed, pitch)
	}
	if len(s.Samples) == 0 || speed == 1 && pitch == 1 {
		return s, nil
	}
	out := make([]float32, int(math.Round(float64(len(s.Samples))/speed)))
	newStretcher(s.Samples, s.Rate, 1).read(out, speed, pitch)
	return &Sound{Rate: s.Rate, Samples: out}, nil
}
