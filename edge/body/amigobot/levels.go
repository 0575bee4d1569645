package amigobot

import (
	"math"
	"time"

	"kennel/edge/core/control"
	"kennel/edge/motion"
)

// tune is the gains that an owner of the wheels gave them. AmigOS keeps gains until it is reset (AMIGO-PID-05), so those of its configuration are
// set again when the owner's claim ends, until it shows them.
type tune struct {
	owner uint32        // 0: none
	gains [3]level      // not set: the robot's own
	own   [3]float64    // of the robot's configuration
	since time.Duration // the own ones were asked for; 0: they hold, as far as is known
}

// end sets the robot's own gains again.
func (t *tune) end(now time.Duration) {
	if t.owner == 0 {
		return
	}
	t.owner, t.since = 0, now
	for i, v := range t.own {
		t.gains[i] = level{true, v}
	}
}

// sense takes the gains of a configuration that the robot sent at a time; 0: none yet.
func (t *tune) sense(gains [3]float64, at time.Duration) {
	if t.since > 0 && at > t.since && gains == t.own {
		t.since, t.gains = 0, [3]level{}
	}
	if t.owner == 0 && t.since == 0 && at > 0 {
		t.own = gains
	}
}

// level is the newest value that an order gave an output; without one it is not set.
type level struct {
	set bool
	v   float64
}

// setLevels sets outputs, or gains for as long as their owner holds the wheels.
func (p *plant) setLevels(part int, o *control.Order, r *control.Result) error {
	levels, first, most := p.out[:], output, 1.
	if part == tuning {
		if p.sense.Times[chGain] == 0 {
			return control.ErrUnmeasured // and nothing says what to return to
		}
		if p.tune.owner != uint32(o.Owner) {
			p.tune.end(p.now)
		}
		levels, first, most = p.tune.gains[:], gain, math.MaxInt16
	}
	for i, g := range o.Goals[:o.N] {
		at := int(p.goals[g.Slot]) - int(first)
		if at < 0 || at >= len(levels) {
			continue
		}
		if math.IsNaN(g.Value) || o.Speed != 0 || o.Within != 0 {
			return motion.ErrInvalid
		}
		r.Taken[i] = min(max(math.Round(g.Value), 0), most)
		levels[at] = level{true, r.Taken[i]}
		if part == tuning {
			p.tune.owner, p.tune.since = uint32(o.Owner), 0
		}
	}
	return nil
}

// mostSounds is the number of sounds that an AmigoBot can store (AMIGO-SND-01).
const mostSounds = 255

// setSounds plays a stored sound by its number, or mutes all (AMIGO-SND-04).
func (p *plant) setSounds(o *control.Order) error {
	for _, g := range o.Goals[:o.N] {
		switch p.goals[g.Slot] {
		case play:
			if !(g.Value >= 1 && g.Value <= mostSounds) {
				return motion.ErrInvalid
			}
			p.sound = (math.Floor(p.sound/256)+1)*256 + math.Floor(g.Value)
			p.sounding = p.now + stale // a driver that is opened later plays no old sound
		case mute:
			p.muted = level{true, g.Value}
		}
	}
	return nil
}
