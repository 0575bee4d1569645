package sense

import (
	"time"

	"kennel/edge/power"
)

// Set is a set of sensors: bit i is sensor i.
type Set uint8

// Has reports whether sensor i is in the set.
func (s Set) Has(i int) bool { return s>>i&1 == 1 }

// CliffEvents says which sensors changed in one frame.
type CliffEvents struct {
	Lost, Found  Set // the floor
	Dark, Bright Set // a line or another floor begins (VEC-IO-23)
	LineEnd      Set // and ends: the light is at the floor level again
}

// MaxCliffs is how many cliff sensors a body may have.
const MaxCliffs = 8

// Cliffs tells floor from none, each sensor by its own floor level (VEC-IO-20). NewCliffs makes one.
type Cliffs struct {
	cfg  CliffConfig
	n    int
	s    [MaxCliffs]cliff
	low  Set
	seen bool
}

type cliff struct {
	floor float64 // running level of the floor, 0: not seen yet
	run   int     // frames in a row that say other than the bit in low
	shade int8    // -1 dark, 1 bright, 0 as the floor
	turn  int     // frames in a row that say other than shade
}

// NewCliffs returns the detector of a body with n sensors. cfg must be valid.
func NewCliffs(cfg CliffConfig, n int) Cliffs {
	return Cliffs{cfg: cfg, n: min(max(n, 0), MaxCliffs)}
}

// Low returns the sensors that see no floor.
func (c *Cliffs) Low() Set { return c.low }

// Detected reports whether any sensor sees no floor (VEC-IO-20).
func (c *Cliffs) Detected() bool { return c.low != 0 }

// All reports whether none sees any: a body without sensors never is (VEC-IO-21).
func (c *Cliffs) All() bool { return c.n > 0 && c.low == Set(1<<c.n-1) }

// Known reports whether a frame was taken since the sensors had power. A driver waits for it (VEC-PWR-22).
func (c *Cliffs) Known() bool { return c.seen }

// Floor returns the floor level of sensor i, 0 before it saw one.
func (c *Cliffs) Floor(i int) float64 { return c.s[i].floor }

// Relearn forgets the floor levels: the body was put on another floor. What is low stays so until good frames prove otherwise.
func (c *Cliffs) Relearn() {
	for i := range c.s[:c.n] {
		c.s[i].floor, c.s[i].shade, c.s[i].turn = 0, 0, 0
	}
}

// Dark tells it that the sensors have no power: their readings are old, and what was half counted is void.
func (c *Cliffs) Dark() {
	c.seen = false
	for i := range c.s[:c.n] {
		c.s[i].run, c.s[i].turn = 0, 0
	}
}

// Step takes in one new frame, dt after the one before. A reading that is no number is no floor.
func (c *Cliffs) Step(dt time.Duration, readings *[MaxCliffs]float64) (ev CliffEvents) {
	c.seen = true
	brightest := 0.0
	for _, r := range readings[:c.n] {
		if r > brightest {
			brightest = min(r, 1)
		}
	}
	for i := range c.s[:c.n] {
		s, r, bit := &c.s[i], min(readings[i], 1), Set(1)<<i
		low := c.low.Has(i)
		part, least, frames := c.cfg.Part, c.cfg.Least, c.cfg.Frames
		if low {
			part, least, frames = c.cfg.ClearPart, c.cfg.ClearLeast, c.cfg.ClearFrames
		}
		level := s.floor
		if level == 0 {
			level = c.cfg.Start * brightest // put down half over an edge, the other sensors know what a floor looks like here
		}
		floor := r >= least && r >= part*level
		switch {
		case floor == !low:
			s.run = 0
		default:
			if s.run++; s.run >= frames {
				s.run = 0
				c.low ^= bit
				if low {
					ev.Found |= bit
				} else {
					ev.Lost |= bit
					if s.shade != 0 {
						s.shade, s.turn = 0, 0
						ev.LineEnd |= bit
					}
				}
			}
		}
		if !floor || c.low.Has(i) {
			continue // the level is from the floor, not from a cliff
		}
		if s.floor == 0 {
			s.floor = r
		}
		c.line(s, r, bit, &ev)
		tau := c.cfg.FallTau
		if r > s.floor {
			tau = c.cfg.RiseTau
		}
		s.floor = power.Filter(s.floor, r, dt, tau)
	}
	return ev
}

// line follows changes that are too small for a cliff (VEC-IO-23).
func (c *Cliffs) line(s *cliff, r float64, bit Set, ev *CliffEvents) {
	change := r/s.floor - 1
	now := s.shade
	switch {
	case change <= -c.cfg.Line:
		now = -1
	case change >= c.cfg.Line:
		now = 1
	case change > -c.cfg.LineEnd && change < c.cfg.LineEnd:
		now = 0
	}
	if now == s.shade {
		s.turn = 0
		return
	}
	if s.turn++; s.turn < c.cfg.Frames {
		return
	}
	s.shade, s.turn = now, 0
	switch now {
	case -1:
		ev.Dark |= bit
	case 1:
		ev.Bright |= bit
	default:
		ev.LineEnd |= bit
	}
}
