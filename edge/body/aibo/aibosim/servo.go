package aibosim

import (
	"math"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/jointlink"
)

// The servo of a joint; own defaults. Its gains make a joint of this inertia come to its goal in 0.1 s without passing it.
const (
	inertia = 0.002 // kg·m²
	stiff   = 80.0  // 1/s, the servo's own frequency
	pGain   = inertia * stiff * stiff
	dGain   = 2 * inertia * stiff
	iGain   = pGain * 4 // takes up what the weight leaves
	drag    = 0.05      // N·m·s, of the gears of a joint without power
	shares  = 8         // steps in a row
	earFlip = 0.1       // rad, beyond which an ear's goal means flicked (MTN-U03)
	earFast = 20.0      // rad/s
)

// joint is one servo, with AIBO's signs.
type joint struct {
	native string
	sign   float64
	lo, hi float64 // rad
	fast   float64 // rad/s
	ear    bool

	angle, speed float64
	sum          float64 // of the errors, rad·s
	load         float64 // -1 to 1
	stuck        bool    // something holds it
}

func newJoint(j aibo.Joint, angle float64) joint {
	lo, hi := j.Span()
	out := joint{native: j.Native, sign: float64(j.Sign), lo: lo, hi: hi, fast: j.Speed, ear: j.Min == j.Max, angle: min(max(angle, lo), hi)}
	if out.ear {
		out.fast = earFast
	}
	return out
}

// step lets a row pass. floor is the effort that the floor asks of the joint to keep its angle, N·m.
func (j *joint) step(on bool, goal, floor float64) {
	const dt = float64(jointlink.Period) / 1e9 / shares
	if !on {
		// Gears of this ratio hold a joint without power where it stops.
		j.speed, j.sum, j.load = 0, 0, 0
		return
	}
	goal = min(max(goal, j.lo), j.hi)
	if j.ear {
		if math.Abs(goal) > earFlip {
			goal = math.Copysign(aibo.EarTurn, goal)
		} else {
			goal = 0
		}
	}
	for range shares {
		off := goal - j.angle
		effort := pGain*off + iGain*j.sum - dGain*j.speed
		full := math.Abs(effort) >= aibo.Torque
		effort = min(max(effort, -aibo.Torque), aibo.Torque)
		if !full { // a sum that grows while nothing more can be done would carry the joint past its goal
			j.sum += off * dt
		}
		j.load = effort / aibo.Torque
		if j.stuck {
			j.speed = 0
			continue
		}
		j.speed += (effort - floor) / inertia * dt
		j.speed = min(max(j.speed, -j.fast), j.fast)
		j.angle += j.speed * dt
		if j.angle < j.lo || j.angle > j.hi {
			j.angle, j.speed = min(max(j.angle, j.lo), j.hi), 0
		}
	}
}
