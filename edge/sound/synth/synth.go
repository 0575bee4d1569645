// Package synth makes the sounds of a robot from a short text that a person edits: tones, chirps and noise, with envelopes, vibrato and bells.
//
// A line "sound NAME" begins a sound, and each further line is a part of it: when it begins in milliseconds, its kind, its pitch, and values by name. "#" begins
// a comment.
//
//	sound Kennel_Greeting_Hello
//	0    tone   c5 for=90 wave=triangle gain=0.5 attack=5 release=60
//	95   chirp  600..1400..1200 for=180 vibrato=7x40       # Hz, and what it glides to; 7 times a second by 40 hundredths of a semitone
//	0    noise  500..2500 for=80 gain=0.1 decay=40 sustain=0.3
//	300  tone   a6 for=200 fm=1.4x3 repeat=3 every=120     # a bell: a tone of 1.4 times the pitch bends it; three times
//
// The same text gives the same samples everywhere: noise too.
package synth

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"kennel/edge/sound"
)

// ErrText is wrapped by every error of a text, which also says line, column, what was expected and what was found.
var ErrText = errors.New("sounds")

// The limits of a text and of a sound.
const (
	MaxText  = 1 << 20          // bytes
	MaxSpan  = 20 * time.Second // of a sound
	MaxParts = 500              // of a sound, each repetition counted
	MinPitch = 20               // Hz
	MaxPitch = 7500             // what a speaker of 16,000 samples a second still has
)

// Kind is the kind of a part.
type Kind uint8

// The kinds.
const (
	Tone  Kind = iota // one pitch
	Chirp             // glides through pitches, by equal musical intervals in equal times
	Noise             // between two pitches
)

var kinds = []string{"tone", "chirp", "noise"}

// Wave is the shape of a tone.
type Wave uint8

// The waves.
const (
	Sine Wave = iota
	Triangle
	Square
	Saw
)

var waves = []string{"sine", "triangle", "square", "saw"}

// Swing is a slow change up and down.
type Swing struct {
	Rate  float64 // times a second
	Depth float64
}

// Part is one tone, chirp or noise.
type Part struct {
	At, For                float64 // ms
	Kind                   Kind
	Pitch                  []float64 // Hz
	Wave                   Wave
	Gain                   float64 // peak, 0 to 1
	Attack, Decay, Release float64 // ms, within For; Decay leads from 1 to Sustain
	Sustain                float64 // 0 to 1
	Vibrato                Swing   // of the pitch, by cents
	Tremolo                Swing   // of the strength, by 0 to 1
	FM                     Swing   // Rate is a factor of the pitch, Depth the index of modulation
	Repeat                 int     // how often
	Every                  float64 // ms from one time to the next
}

// Sound is a sound as a text describes it.
type Sound struct {
	Name  string
	Parts []Part
}

// Span returns how long the sound is.
func (s *Sound) Span() time.Duration {
	end := 0.0
	for i := range s.Parts {
		end = max(end, s.Parts[i].end())
	}
	return time.Duration(end * float64(time.Millisecond))
}

// end is when a part has ended, in milliseconds.
func (p *Part) end() float64 { return p.At + float64(p.Repeat-1)*p.Every + p.For }

// Render returns the samples of the sound at a rate; sound.ErrRate. A sum that is too loud is turned down as a whole, so that no sample is cut off.
func (s *Sound) Render(rate int) (*sound.Sound, error) {
	if rate < sound.MinRate || rate > sound.MaxRate {
		return nil, fmt.Errorf("%w: expected %d to %d Hz, found %d", sound.ErrRate, sound.MinRate, sound.MaxRate, rate)
	}
	out := &sound.Sound{Rate: rate, Samples: make([]float32, int(math.Ceil(s.Span().Seconds()*float64(rate))))}
	for i := range s.Parts {
		p := &s.Parts[i]
		for k := range p.Repeat {
			at := int(math.Round((p.At + float64(k)*p.Every) / 1000 * float64(rate)))
			p.add(out.Samples[min(at, len(out.Samples)):], rate, uint64(i+1))
		}
	}
	if peak := out.Peak(); peak > 0.95 {
		for i := range out.Samples {
			out.Samples[i] *= 0.95 / peak
		}
	}
	return out, nil
}

// add adds the part once to samples that begin with its beginning.
func (p *Part) add(dst []float32, rate int, seed uint64) {
	n := min(len(dst), int(math.Round(p.For/1000*float64(rate))))
	next := p.tone(rate, n)
	if p.Kind == Noise {
		next = p.noise(rate, seed)
	}
	for i := range n {
		ms := float64(i) / float64(rate) * 1000
		strength := p.Gain * p.envelope(ms)
		if p.Tremolo.Depth > 0 {
			strength *= 1 - p.Tremolo.Depth*(0.5-0.5*math.Cos(2*math.Pi*p.Tremolo.Rate*ms/1000))
		}
		dst[i] += float32(strength * next(i))
	}
}

// envelope returns the strength at a time: up in attack, down to sustain in decay, and to nothing in release, which ends with the part.
func (p *Part) envelope(ms float64) float64 {
	v := 1.0
	switch {
	case ms < p.Attack:
		v = ms / p.Attack
	case ms < p.Attack+p.Decay:
		v = 1 + (p.Sustain-1)*(ms-p.Attack)/p.Decay
	case p.Decay > 0:
		v = p.Sustain
	}
	if left := p.For - ms; left < p.Release {
		v *= max(0, left/p.Release)
	}
	return v
}

// pitchAt returns the pitch at a part of the time, 0 to 1.
func (p *Part) pitchAt(part float64) float64 {
	if len(p.Pitch) == 1 {
		return p.Pitch[0]
	}
	at := min(max(part, 0), 1) * float64(len(p.Pitch)-1)
	i := min(int(at), len(p.Pitch)-2)
	return p.Pitch[i] * math.Pow(p.Pitch[i+1]/p.Pitch[i], at-float64(i))
}

// tone returns the samples of a tone or chirp of n samples, one after the other.
func (p *Part) tone(rate, n int) func(i int) float64 {
	phase, bend := 0.0, 0.0 // in turns
	return func(i int) float64 {
		hz := p.pitchAt(float64(i) / float64(max(1, n-1)))
		if p.Vibrato.Depth != 0 {
			hz *= math.Pow(2, p.Vibrato.Depth/1200*math.Sin(2*math.Pi*p.Vibrato.Rate*float64(i)/float64(rate)))
		}
		step := hz / float64(rate)
		at := phase
		if p.FM.Depth != 0 {
			at += p.FM.Depth / (2 * math.Pi) * math.Sin(2*math.Pi*bend)
			at -= math.Floor(at)
		}
		v := 0.0
		if step < 0.5 { // a higher pitch cannot be told from a lower one
			v = shape(p.Wave, at, step)
		}
		phase += step
		phase -= math.Floor(phase)
		bend += step * p.FM.Rate
		bend -= math.Floor(bend)
		return v
	}
}

// shape returns a wave at a phase of 0 to 1, with its corners rounded to what the rate can have.
func shape(w Wave, phase, step float64) float64 {
	switch w {
	case Triangle:
		return 1 - 4*math.Abs(math.Mod(phase+0.25, 1)-0.5)
	case Square:
		v := 1.0
		if phase >= 0.5 {
			v = -1
		}
		return v + corner(phase, step) - corner(math.Mod(phase+0.5, 1), step)
	case Saw:
		return 2*phase - 1 - corner(phase, step)
	}
	return math.Sin(2 * math.Pi * phase)
}

// corner rounds a jump of 2 upwards at phase 0 (polyBLEP).
func corner(phase, step float64) float64 {
	if phase < step {
		t := phase / step
		return t + t - t*t - 1
	}
	if phase > 1-step {
		t := (phase - 1) / step
		return t*t + t + t + 1
	}
	return 0
}

// noise returns samples of noise between two pitches, of a peak near 1.
func (p *Part) noise(rate int, seed uint64) func(i int) float64 {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	top := 0.45 * float64(rate)
	low, high := min(p.Pitch[0], top), min(p.Pitch[1], top)
	one := newResonator(math.Sqrt(low*high), max(high-low, 1), rate)
	two := one
	width := (high - low) / (float64(rate) / 2)
	scale := 0.5 / math.Sqrt(max(width/2, 1e-4)) // what passes of even noise, with room for its peaks
	return func(int) float64 {
		return max(-1, min(1, scale*two.next(one.next(2*r.Float64()-1))))
	}
}

// resonator passes a band of pitches.
type resonator struct {
	b0, a1, a2     float64
	x1, x2, y1, y2 float64
}

func newResonator(hz, width float64, rate int) resonator {
	w := 2 * math.Pi * hz / float64(rate)
	alpha := math.Sin(w) * width / (2 * hz)
	return resonator{b0: alpha / (1 + alpha), a1: -2 * math.Cos(w) / (1 + alpha), a2: (1 - alpha) / (1 + alpha)}
}

func (f *resonator) next(x float64) float64 {
	y := f.b0*(x-f.x2) - f.a1*f.y1 - f.a2*f.y2
	f.x1, f.x2, f.y1, f.y2 = x, f.x1, y, f.y1
	return y
}
