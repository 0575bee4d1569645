package motion

import "math"

// Ramp bounds a movement: speed, how fast it may grow, how fast it may shrink. In m or rad, and seconds.
type Ramp struct{ Speed, Accel, Decel float64 }

// finite reports whether all numbers are.
func finite(v ...float64) bool {
	for _, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

func (r Ramp) valid() bool {
	return finite(r.Speed, r.Accel, r.Decel) && r.Speed > 0 && r.Accel > 0 && r.Decel > 0
}

// within lowers r to the limits of most.
func (r Ramp) within(most Ramp) Ramp {
	return Ramp{min(r.Speed, most.Speed), min(r.Accel, most.Accel), min(r.Decel, most.Decel)}
}

func (r Ramp) scaled(k float64) Ramp { return Ramp{r.Speed * k, r.Accel * k, r.Decel * k} }

// landed is nearer than any encoder sees: m or rad.
const landed = 1e-9

// Profile moves a reference to a target within a Ramp: a trapezoid of speed that may be given a new target or ramp on the way. The reference
// never passes a target it could stop at, and so never leaves the span of the targets it was given in time. The zero value rests at 0.
type Profile struct {
	X, V, A float64 // position, speed, acceleration of the last step

	target float64
	ramp   Ramp
	brake  float64 // the steepest deceleration that what is under way was planned with
}

// Reset puts the reference to rest at x.
func (p *Profile) Reset(x float64) { *p = Profile{X: x, target: x} }

// Aim gives a new target and the ramp to reach it with. Under way it keeps the steeper of the two decelerations until it has stopped, because
// with the gentler one it might not stop before the end of travel that the earlier plan respected.
func (p *Profile) Aim(target float64, r Ramp) {
	p.target, p.ramp = target, r
	if p.V == 0 {
		p.brake = 0
	}
	p.brake = max(p.brake, r.Decel)
}

// Done reports whether the reference rests on its target.
func (p *Profile) Done() bool { return p.X == p.target && p.V == 0 }

// Step moves the reference on by dt seconds.
func (p *Profile) Step(dt float64) {
	if dt <= 0 || p.Done() {
		p.A = 0
		return
	}
	sign := 1.0
	if p.target < p.X {
		sign = -1
	}
	left, v := math.Abs(p.target-p.X), sign*p.V
	var next float64
	if v >= 0 && v <= p.brake*dt && left <= v*dt/2+landed {
		// It stops in the middle of this step: a whole step of braking would carry it past the target.
		p.X, next = p.target, 0
	} else if turns := -v / p.brake; turns > 0 && turns < dt {
		// It moves away and turns round within this step: it brakes, and has the rest of the step to come nearer.
		away := v * turns / 2
		next = approach(0, left-away, 0, p.ramp, p.brake, dt-turns)
		p.X += sign * (away + next*(dt-turns)/2)
	} else {
		next = approach(v, left, 0, p.ramp, p.brake, dt)
		p.X += sign * (v + next) / 2 * dt
	}
	p.A = (sign*next - p.V) / dt
	if p.V = sign * next; p.V == 0 {
		p.brake = p.ramp.Decel
	}
}

// takes returns how many seconds the reference needs from now until it rests on its target, were the ramp's speed that.
func (p *Profile) takes(speed float64) float64 {
	left, v, before, up, down := math.Abs(p.target-p.X), p.V, 0.0, p.ramp.Accel, p.brake
	if p.target < p.X {
		v = -v
	}
	if rest := v * v / (2 * down); v < 0 || rest > left {
		// It moves away, or cannot stop in time: it stops first, and moves back or forward from there.
		before, left, v = math.Abs(v)/down, math.Abs(left-math.Copysign(rest, v)), 0
	}
	if v > speed {
		return before + v/down + (left-v*v/(2*down))/speed
	}
	// Were there room for the whole speed, it would be kept over the rest of the way.
	even := left - (speed*speed-v*v)/(2*up) - speed*speed/(2*down)
	if even >= 0 {
		return before + (speed-v)/up + speed/down + even/speed
	}
	peak := math.Sqrt((left + v*v/(2*up)) / (1/(2*up) + 1/(2*down)))
	return before + (peak-v)/up + peak/down
}

// Pace lowers the ramp's speed until the reference needs that many seconds from now to rest on its target, and returns what it needs then: more
// where even the whole speed does not bring it there in time, and less where it is there.
func (p *Profile) Pace(seconds float64) float64 {
	low, high := 0.0, p.ramp.Speed
	if p.takes(high) >= seconds || p.Done() {
		return p.takes(high)
	}
	for range 60 {
		if mid := (low + high) / 2; p.takes(mid) > seconds {
			low = mid
		} else {
			high = mid
		}
	}
	p.ramp.Speed = high
	return p.takes(high)
}

// approach returns the speed after dt of something that moves at v and has left to go until it must not be faster than end. v is
// negative if it moves away, for longer than dt.
func approach(v, left, end float64, r Ramp, brake, dt float64) float64 {
	// The fastest speed n from which braking still suffices: n²/2b + n·dt/2 = left - v·dt/2 + end²/2b.
	room := max(left-v*dt/2+end*end/(2*brake), 0)
	n := brake * (math.Sqrt(dt*dt/4+2*room/brake) - dt/2)
	n = min(n, r.Speed)
	most := v + r.Accel*dt
	if v < 0 { // all this time it brakes
		most = v + brake*dt
	}
	return min(max(n, v-brake*dt), most)
}
