package cube

import (
	"fmt"
	"math"
	"time"
)

// Light says what one light does, again and again: it shows On, changes to Off, shows Off and changes back. Offset is how far its clock is ahead of the others.
type Light struct {
	On, Off       RGB
	OnFor, OffFor time.Duration
	ToOff, ToOn   time.Duration
	Offset        time.Duration
}

// Pattern says what each of the four lights does (VEC-CUB-08).
type Pattern [LightCount]Light

// Bounds of a program of steps.
const (
	maxSteps  = 255                       // indices are a byte
	perLight  = maxSteps / LightCount     // steps of one light
	fadeSteps = 8                         // of a change of colour, at most
	longest   = 24 * math.MaxUint8 * Tick // of a colour, three minutes
)

// Compile returns the commands that make a cube show p: the steps, and then the start (VEC-CUBEIO-06). The error says which light lasts longer than a cube can
// count.
func Compile(p Pattern) ([]Command, error) {
	var all []Step
	var start [LightCount]uint8
	for i := range p {
		steps, err := p[i].steps()
		if err != nil {
			return nil, fmt.Errorf("cube: light %d: %w", i, err)
		}
		start[i] = uint8(len(all))
		for _, s := range steps {
			s.Index = uint8(len(all))
			all = append(all, s)
		}
	}
	var out []Command
	for at := 0; at < len(all); at += setSteps {
		var c [setSteps]Step
		for k := range c {
			c[k] = all[min(at+k, len(all)-1)] // the last command says its last step again
		}
		out = append(out, Command{Steps: &c})
	}
	return append(out, Command{Start: &start}), nil
}

// Dark is a pattern without light.
var Dark = Pattern{}

// Flash is the pattern of a cube that was connected: a turning light, own default.
func Flash() (p Pattern) {
	const beat = 240 * time.Millisecond
	for i := range p {
		p[i] = Light{On: RGB{0, 200, 255}, OnFor: beat, OffFor: 3 * beat, Offset: time.Duration(i) * beat}
	}
	return p
}

// stretch is a colour for a time.
type stretch struct {
	colour RGB
	ticks  int
}

func ticks(d time.Duration) int { return int((d + Tick/2) / Tick) }

// steps are what one light shows in a period, beginning at its offset.
func (l Light) steps() ([]Step, error) {
	for _, d := range [...]time.Duration{l.OnFor, l.OffFor, l.ToOff, l.ToOn} {
		if d < 0 || d > longest {
			return nil, fmt.Errorf("a time of %v, want 0 to %v", d, longest)
		}
	}
	if l.On == l.Off || l.OffFor == 0 && l.ToOff == 0 && l.ToOn == 0 {
		return []Step{{RGB: l.On, Duration: math.MaxUint8}}, nil
	}
	all := []stretch{{l.On, ticks(l.OnFor)}}
	all = append(all, fade(l.On, l.Off, ticks(l.ToOff))...)
	all = append(all, stretch{l.Off, ticks(l.OffFor)})
	all = append(all, fade(l.Off, l.On, ticks(l.ToOn))...)
	period := 0
	for _, s := range all {
		period += s.ticks
	}
	if period == 0 {
		return []Step{{RGB: l.On, Duration: math.MaxUint8}}, nil // faster than a cube counts
	}
	all = turned(all, ((ticks(l.Offset)%period)+period)%period)
	var out []Step
	for _, s := range all {
		for s.ticks > 0 {
			n := min(s.ticks, math.MaxUint8)
			out = append(out, Step{RGB: s.colour, Duration: uint8(n)})
			s.ticks -= n
		}
	}
	if len(out) > perLight {
		return nil, fmt.Errorf("%d steps, want at most %d: shorter times", len(out), perLight)
	}
	return out, nil
}

// fade goes from one colour to another in so many ticks. The colours themselves are not among its stretches.
func fade(from, to RGB, ticks int) (out []stretch) {
	n := min(ticks, fadeSteps)
	mix := func(a, b uint8, i int) uint8 { return uint8((int(a)*(n+1-i) + int(b)*i) / (n + 1)) }
	for i := 1; i <= n; i++ {
		c := RGB{mix(from.R, to.R, i), mix(from.G, to.G, i), mix(from.B, to.B, i)}
		out = append(out, stretch{c, ticks*i/n - ticks*(i-1)/n})
	}
	return out
}

// turned begins a period so many ticks later.
func turned(all []stretch, by int) (out []stretch) {
	var before []stretch
	for _, s := range all {
		switch {
		case by >= s.ticks:
			by -= s.ticks
			before = append(before, s)
		case by > 0:
			before = append(before, stretch{s.colour, by})
			out = append(out, stretch{s.colour, s.ticks - by})
			by = 0
		default:
			out = append(out, s)
		}
	}
	return append(out, before...)
}
