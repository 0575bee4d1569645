package motion

import "math"

// Guard keeps a stalled motor from burning (VEC-MOT-06, VEC-MCT-07, VEC-HW-18), as a second line behind the
// body's own: a stall lowers its power in time, never to zero, and motion gives it back. It also remembers:
// many short stalls heat a motor as one long does.
type Guard struct {
	cfg     GuardConfig
	stalled float64 // s of being driven and not moving
	moved   float64 // s of moving since
	limit   float64
	heat    float64 // s of stall at full power that it has not cooled from
	hot     bool
}

// GuardConfig sets a Guard.
type GuardConfig struct {
	Speed    float64 // m/s or rad/s, slower is not moving
	Duty     float64 // less is not driven: what rest and friction may need
	After    float64 // s of stall until power is lowered: 1 (VEC-MCT-07)
	Fade     float64 // s from full power down to Safe
	Recover  float64 // s of motion that give it back
	Safe     float64 // duty that may push for ever, above 0
	HeatMost float64 // s of stall at full power, all in all: well below the 15 that damage (VEC-MOT-06)
	Cool     float64 // s, time constant of cooling
}

func (c GuardConfig) valid() bool {
	return finite(c.Speed, c.Duty, c.After, c.Fade, c.Recover, c.Safe, c.HeatMost, c.Cool) && c.Speed > 0 && c.Duty >= 0 && c.After > 0 && c.Fade > 0 &&
		c.Recover > 0 && c.Safe > 0 && c.Safe <= 1 && c.HeatMost > 0 && c.HeatMost < 15 && c.Cool > 0
}

func newGuard(c GuardConfig) Guard { return Guard{cfg: c, limit: 1} }

// Limit returns duty, lowered as far as the motor needs, which has moved at speed for dt seconds.
func (g *Guard) Limit(duty, speed, dt float64) float64 {
	limited := math.Copysign(min(math.Abs(duty), g.limit), duty)
	power := math.Abs(limited)
	moving := math.Abs(speed) >= g.cfg.Speed
	switch {
	case moving:
		if g.moved += dt; g.moved >= g.cfg.Recover {
			g.stalled = 0
		}
	case power > g.cfg.Duty:
		g.stalled += dt
		g.moved = 0
	default: // at rest and not pushed: nothing to protect, and nothing proven
		g.moved = 0
	}
	g.heat -= g.heat * -math.Expm1(-dt/g.cfg.Cool)
	if !moving {
		g.heat += power * power * dt
	}
	if g.heat >= g.cfg.HeatMost {
		g.hot = true
	} else if g.heat < g.cfg.HeatMost/2 {
		g.hot = false
	}
	switch {
	case g.stalled >= g.cfg.After || g.hot:
		g.limit = max(g.limit-dt/g.cfg.Fade, g.cfg.Safe)
	case g.stalled == 0:
		g.limit = min(g.limit+dt/g.cfg.Recover, 1)
	}
	return math.Copysign(min(power, g.limit), duty)
}

// Stalled reports whether it holds power back because of a stall.
func (g *Guard) Stalled() bool { return g.stalled >= g.cfg.After }

// rest ends a stall by command: the motor is no longer driven. Its heat stays.
func (g *Guard) rest() { g.stalled, g.moved = 0, 0 }

// cool lets dt seconds pass without power.
func (g *Guard) cool(dt float64) {
	g.heat -= g.heat * -math.Expm1(-dt/g.cfg.Cool)
	if g.heat < g.cfg.HeatMost/2 {
		g.hot = false
	}
	if !g.hot {
		g.limit = min(g.limit+dt/g.cfg.Recover, 1)
	}
}
