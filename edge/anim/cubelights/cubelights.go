// Package cubelights plays animations of the light cube's four lights, from the JSON files of robots and those that come with Kennel.
//
//	lights/*.json ──Parse──► Animation ──Play (each part for its time)──► cube.Pattern ──cube.Compile──► writes of Bluetooth LE
//
// A part shows one pattern, in which each light has a clock of its own. Times are milliseconds in files and time.Duration here.
package cubelights

import (
	"context"
	"fmt"
	"math"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/cube"
)

// Animation is one or more parts that play one after the other (part of VEC-LGT-02).
type Animation []Part

// Part is one pattern of an animation.
type Part struct {
	Name    string        // for people; may be ""
	Takes   time.Duration // 0: until it is stopped
	Fixed   bool          // another animation does not replace it
	Rotates bool          // colours move on by one light after each Period
	Period  time.Duration // of the light that takes longest
	Pattern cube.Pattern
}

// Our own limits of a file.
const (
	MaxFile  = 256 << 10 // bytes
	maxParts = 64
	maxTakes = 10 * time.Minute
)

// part is one structure of a file.
type part struct {
	Overridable *bool   `json:"canBeOverridden"`
	Duration    float64 `json:"duration_ms"`
	Name        string  `json:"patternDebugName"`
	Pattern     *struct {
		OnColors      [][]channel `json:"onColors"`
		OffColors     [][]channel `json:"offColors"`
		OnPeriod      []uint32    `json:"onPeriod_ms"`
		OffPeriod     []uint32    `json:"offPeriod_ms"`
		TransitionOn  []uint32    `json:"transitionOnPeriod_ms"`
		TransitionOff []uint32    `json:"transitionOffPeriod_ms"`
		Offset        []uint32    `json:"offset"`
		Rotate        bool        `json:"rotate"`
	} `json:"pattern"`
}

// channel is red, green, blue or alpha, 0 to 255. A slice of bytes would be base64 in JSON.
type channel uint16

// Parse reads a file of lights: red, green, blue and an alpha without effect, 0 to 255, and times in milliseconds, for each of the four lights (part of VEC-LGT-02). clip.ErrClip, with its
// place, for unknown fields, other numbers of lights, and times that a cube cannot count.
func Parse(b []byte) (Animation, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found more", clip.ErrClip, MaxFile)
	}
	var parts []part
	if err := clip.Strict(b, &parts); err != nil {
		return nil, err
	}
	if len(parts) == 0 || len(parts) > maxParts {
		return nil, fmt.Errorf("%w: expected 1 to %d patterns, found %d", clip.ErrClip, maxParts, len(parts))
	}
	var a Animation
	for i := range parts {
		p, err := parts[i].read()
		if err != nil {
			return nil, fmt.Errorf("%w: [%d].%w", clip.ErrClip, i, err)
		}
		a = append(a, p)
	}
	return a, nil
}

// read checks one structure.
func (f *part) read() (p Part, err error) {
	takes := f.Duration * float64(time.Millisecond)
	if !(takes >= 0 && takes <= float64(maxTakes)) {
		return p, fmt.Errorf("duration_ms: expected 0 to %d, found %v", maxTakes.Milliseconds(), f.Duration)
	}
	if f.Pattern == nil {
		return p, fmt.Errorf("pattern: expected one, found none")
	}
	p = Part{Name: f.Name, Takes: time.Duration(takes), Fixed: f.Overridable != nil && !*f.Overridable, Rotates: f.Pattern.Rotate}
	x := f.Pattern
	for _, list := range [...]struct {
		name string
		n    int
	}{{"onColors", len(x.OnColors)}, {"offColors", len(x.OffColors)}, {"onPeriod_ms", len(x.OnPeriod)}, {"offPeriod_ms", len(x.OffPeriod)},
		{"transitionOnPeriod_ms", len(x.TransitionOn)}, {"transitionOffPeriod_ms", len(x.TransitionOff)}, {"offset", len(x.Offset)}} {
		if list.n != cube.LightCount {
			return p, fmt.Errorf("pattern.%s: expected %d values, found %d", list.name, cube.LightCount, list.n)
		}
	}
	for i := range p.Pattern {
		for name, c := range map[string][]channel{"onColors": x.OnColors[i], "offColors": x.OffColors[i]} {
			if len(c) != 4 {
				return p, fmt.Errorf("pattern.%s[%d]: expected 4 numbers, found %d", name, i, len(c))
			}
			for k, v := range c {
				if v > math.MaxUint8 {
					return p, fmt.Errorf("pattern.%s[%d][%d]: expected 0 to %d, found %d", name, i, k, math.MaxUint8, v)
				}
			}
		}
		ms := func(v uint32) time.Duration { return time.Duration(v) * time.Millisecond }
		l := cube.Light{On: rgb(x.OnColors[i]), Off: rgb(x.OffColors[i]), OnFor: ms(x.OnPeriod[i]), OffFor: ms(x.OffPeriod[i]),
			ToOn: ms(x.TransitionOn[i]), ToOff: ms(x.TransitionOff[i]), Offset: ms(x.Offset[i])}
		p.Pattern[i], p.Period = l, max(p.Period, l.OnFor+l.ToOff+l.OffFor+l.ToOn)
	}
	if p.Rotates && p.Period < cube.Tick {
		return p, fmt.Errorf("pattern.rotate: expected a light that takes at least %v, found %v", cube.Tick, p.Period)
	}
	if _, err := cube.Compile(p.Pattern); err != nil {
		return p, fmt.Errorf("pattern: %w", err)
	}
	return p, nil
}

func rgb(c []channel) cube.RGB { return cube.RGB{R: uint8(c[0]), G: uint8(c[1]), B: uint8(c[2])} }

// Turned returns the pattern of a part after so many periods: light i has the colours that the light so many before it had.
func (p *Part) Turned(periods int) cube.Pattern {
	out := p.Pattern
	if p.Rotates {
		for i := range out {
			from := &p.Pattern[((i-periods)%cube.LightCount+cube.LightCount)%cube.LightCount]
			out[i].On, out[i].Off = from.On, from.Off
		}
	}
	return out
}

// Takes returns how long the parts take together; 0: until they are stopped.
func (a Animation) Takes() (sum time.Duration) {
	for i := range a {
		if a[i].Takes == 0 {
			return 0
		}
		sum += a[i].Takes
	}
	return sum
}

// Play shows the parts one after the other, each for its time, and then darkness; a part without a time until ctx ends, which also ends the others. An error is of show.
func (a Animation) Play(ctx context.Context, show func(context.Context, cube.Pattern) error) error {
	for i := range a {
		over, err := a[i].play(ctx, show)
		if err != nil {
			return err
		}
		if over {
			break
		}
	}
	return show(context.WithoutCancel(ctx), cube.Dark)
}

// play shows one part; over: ctx ended.
func (p *Part) play(ctx context.Context, show func(context.Context, cube.Pattern) error) (over bool, err error) {
	began := time.Now()
	for n := 0; ; n++ {
		if err := show(ctx, p.Turned(n)); err != nil {
			if ctx.Err() != nil {
				return true, nil
			}
			return false, err
		}
		var next <-chan time.Time
		switch {
		case p.Rotates && (p.Takes == 0 || time.Duration(n+1)*p.Period < p.Takes):
			next = time.After(time.Until(began.Add(time.Duration(n+1) * p.Period)))
		case p.Takes > 0:
			next = time.After(time.Until(began.Add(p.Takes)))
		}
		select {
		case <-ctx.Done():
			return true, nil
		case <-next:
		}
		if p.Takes > 0 && time.Since(began) >= p.Takes {
			return false, nil
		}
	}
}
