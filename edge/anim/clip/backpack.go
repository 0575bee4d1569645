package clip

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Pattern is an animation of the three lower lights of the backpack, in the robots' own form. Each light has a clock of its own: it shows its colour of on, moves to the
// one of off, shows that, and moves back (VEC-LGT-01). Times are milliseconds, colours red, green, blue and an alpha without effect, 0 to 1.
type Pattern struct {
	OnColors      [][]float32 `json:"onColors"`
	OffColors     [][]float32 `json:"offColors"`
	OnPeriod      []uint32    `json:"onPeriod_ms"`
	OffPeriod     []uint32    `json:"offPeriod_ms"`
	TransitionOff []uint32    `json:"transitionOffPeriod_ms"`
	TransitionOn  []uint32    `json:"transitionOnPeriod_ms"`
	Offset        []uint32    `json:"offset"` // by which a light's clock is ahead
}

// Our own limits of a pattern: a period, and the time after which all lights are where they began, beyond which a loop begins again anyway.
const (
	maxPeriod = 60_000
	maxCycle  = 10_000
)

// ParsePattern reads a file of lights. ErrClip for unknown fields, another number of lights than three, colours out of 0 to 1 and times over a minute.
func ParsePattern(b []byte) (p Pattern, err error) {
	if err := Strict(b, &p); err != nil {
		return p, err
	}
	const lights = len(Frame{}.Lights)
	refuse := func(field string, expected string, found any) error {
		return fmt.Errorf("%w: %s: expected %s, found %v", ErrClip, field, expected, found)
	}
	for name, colors := range map[string][][]float32{"onColors": p.OnColors, "offColors": p.OffColors} {
		if len(colors) != lights {
			return p, refuse(name, "3 colours", len(colors))
		}
		for i, c := range colors {
			if len(c) != 4 {
				return p, refuse(fmt.Sprintf("%s[%d]", name, i), "4 numbers", len(c))
			}
			for k, v := range c {
				if !(v >= 0 && v <= 1) {
					return p, refuse(fmt.Sprintf("%s[%d][%d]", name, i, k), "0 to 1", v)
				}
			}
		}
	}
	for name, times := range map[string][]uint32{"onPeriod_ms": p.OnPeriod, "offPeriod_ms": p.OffPeriod, "transitionOffPeriod_ms": p.TransitionOff,
		"transitionOnPeriod_ms": p.TransitionOn, "offset": p.Offset} {
		if len(times) != lights {
			return p, refuse(name, "3 times", len(times))
		}
		for i, v := range times {
			if v > maxPeriod {
				return p, refuse(fmt.Sprintf("%s[%d]", name, i), fmt.Sprintf("at most %d ms", maxPeriod), v)
			}
		}
	}
	return p, nil
}

// cycle returns the four parts of a light's cycle, in order, and their sum: on, to off, off, to on.
func (p *Pattern) cycle(light int) (parts [4]uint32, sum uint32) {
	parts = [4]uint32{p.OnPeriod[light], p.TransitionOff[light], p.OffPeriod[light], p.TransitionOn[light]}
	return parts, parts[0] + parts[1] + parts[2] + parts[3]
}

// at returns the colour of a light at a time, or just before it: where a part takes no time the colour jumps. A light without any time shows its colour of on.
func (p *Pattern) at(light int, ms uint32, before bool) (c [3]float32) {
	parts, sum := p.cycle(light)
	on, off := p.OnColors[light], p.OffColors[light]
	mix := func(share float32) {
		for i := range c {
			c[i] = off[i] + (on[i]-off[i])*share
		}
	}
	if sum == 0 {
		mix(1)
		return c
	}
	t := (ms + p.Offset[light]) % sum
	if before && t == 0 {
		t = sum
	}
	in := func(n uint32) bool { return t < n || before && t == n && n > 0 }
	switch {
	case in(parts[0]):
		mix(1)
	case in(parts[0] + parts[1]):
		mix(1 - float32(t-parts[0])/float32(parts[1]))
	case in(parts[0] + parts[1] + parts[2]):
		mix(0)
	default:
		mix(float32(t-parts[0]-parts[1]-parts[2]) / float32(parts[3]))
	}
	return c
}

// At returns the lights at a time since the pattern began.
func (p *Pattern) At(t time.Duration) (lights [3][3]float32) {
	ms := uint32(max(t, 0) / time.Millisecond % math.MaxInt32)
	for i := range lights {
		lights[i] = p.at(i, ms, false)
	}
	return lights
}

// Clip returns the pattern as a clip, which looks the same when it is repeated. A colour that jumps takes a millisecond for it. Lights whose cycles fit together only after
// ten seconds begin again then.
func (p *Pattern) Clip(name string) Clip {
	span := uint32(1)
	for light := range 3 {
		if _, sum := p.cycle(light); sum > 0 {
			span = min(span/gcd(span, sum)*sum, maxCycle)
		}
	}
	if span == 1 {
		span = 1000 // nothing changes
	}
	corners := []uint32{0, span}
	for light := range 3 {
		parts, sum := p.cycle(light)
		if sum == 0 {
			continue
		}
		for start := int64(-int64(p.Offset[light] % sum)); start < int64(span); start += int64(sum) {
			at := start
			for _, n := range parts {
				if at > 0 && at < int64(span) {
					corners = append(corners, uint32(at))
				}
				at += int64(n)
			}
		}
	}
	slices.Sort(corners)
	corners = slices.Compact(corners)
	c := Clip{Name: name}
	put := func(at, hold uint32, lights [3][3]float32) {
		k := Backpack{Trigger: at, Duration: hold}
		for i, to := range [...]*[]float32{&k.Front, &k.Middle, &k.Back} {
			*to = append(slices.Clone(lights[i][:]), 1)
		}
		c.Tracks.Backpack = append(c.Tracks.Backpack, k)
	}
	for i, a := range corners[:len(corners)-1] {
		b := corners[i+1]
		var begins, ends, then [3][3]float32
		for l := range 3 {
			begins[l], ends[l], then[l] = p.at(l, a, false), p.at(l, b, true), p.at(l, b, false)
		}
		switch {
		case begins == ends:
			put(a, b-a, begins)
		case ends == then && b < span:
			put(a, 0, begins)
		case b-a > 1:
			put(a, 0, begins)
			put(b-1, 1, ends)
		default:
			put(a, 1, begins)
		}
	}
	return c
}

func gcd(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
