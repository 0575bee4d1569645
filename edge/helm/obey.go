package helm

import (
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
)

// obey does what o asks, if its owner may, and answers.
func (h *Helm) obey(now time.Duration, o *Order) {
	r := Result{Owner: o.Owner, Request: o.Request, Actuator: -1}
	if o.Owner <= Self {
		if o.Kind == Heat && o.Owner == Self {
			h.cpu, h.cpuAt = o.A, now
		}
		return // nobody speaks for the helm but itself
	}
	switch o.Kind {
	case Claim:
		h.claim(now, o, &r)
	case Renew, Release:
		l, err := h.claims.LeaseOf(o.Owner, o.Lease)
		switch {
		case err != nil:
			r.Code = Gone
		case o.Kind == Release:
			h.claims.Release(now, l)
		case o.TTL < 0:
			r.Code = Invalid
		case h.claims.Renew(now, l, o.TTL) != nil:
			r.Code = Gone
		}
	case Drop:
		h.claims.Drop(now, o.Owner)
		h.saver.End(power.Behavior(o.Owner)) // however it ended
		return
	case SetLights:
		h.setLights(now, o, &r)
	case Wheels, Straight, Turn:
		h.driveTreads(now, o, &r)
	case Head:
		h.moveJoint(theHead, &h.model.Head, o, &r)
	case Lift:
		h.moveJoint(theLift, &h.model.Lift, o, &r)
	case Stop:
		h.motion.StopAll()
		h.treads.end(motion.Cancelled)
		for k := range h.joints {
			h.joints[k].end(motion.Cancelled)
		}
	case Calm:
		h.saver.End(power.Behavior(o.Owner)) // asked twice is asked once
		if o.On && !h.saver.Request(power.Behavior(o.Owner)) {
			r.Code = Full
		}
	case Sleep:
		h.changeSleep(o, &r)
	default:
		r.Code = Invalid
	}
	h.results.Put(r)
}

// changeSleep goes to another state, if that may follow. A refusal allocates, as nothing else here does: it is a mistake of who asks.
func (h *Helm) changeSleep(o *Order, r *Result) {
	s, err := h.sleep, error(nil)
	switch {
	case o.Sleep == s.State:
		return // it is there
	case o.Sleep.Asleep():
		s, err = s.FallAsleep(o.Sleep, power.SleepReason(o.Why))
	case o.Sleep == power.Awake && s.State.Asleep():
		s, err = s.WakeUp(power.WakeReason(o.Why))
	default:
		s, err = s.Go(o.Sleep)
	}
	if err != nil {
		r.Code = Invalid
		return
	}
	h.sleep = s
}

// inTheWay returns the first actuator of set that o cannot have, and whose it is; -1 if there is none. (claim.Busy says the same, in memory of its
// own.)
func (h *Helm) inTheWay(o claim.Owner, set *claim.Set, p claim.Priority) (int, claim.Owner, claim.Priority) {
	for a := range h.actuators {
		if owner, priority := h.claims.OwnerOf(a); set.Has(a) && owner != 0 && owner != o && priority >= p {
			return a, owner, priority
		}
	}
	return -1, 0, 0
}

func (h *Helm) claim(now time.Duration, o *Order, r *Result) {
	if a, owner, p := h.inTheWay(o.Owner, &o.Set, o.Priority); a >= 0 {
		r.Code, r.Actuator, r.By, r.Priority = Busy, a, owner, p
		return
	}
	l, err := h.claims.Claim(now, o.Owner, o.Set, o.Priority, o.TTL)
	switch err {
	case nil:
		r.Lease = l.Number()
	case claim.ErrFull:
		r.Code = Full
	default:
		r.Code = Invalid
	}
}

// holds reports whether o owns every actuator of set.
func (h *Helm) holds(o claim.Owner, set *claim.Set) bool {
	for a := range h.actuators {
		if set.Has(a) && !h.claims.Holds(o, a) {
			return false
		}
	}
	return true
}

// may fills r in with whose the first actuator of set is, if it is not o's.
func (h *Helm) may(o claim.Owner, set *claim.Set, r *Result) bool {
	for a := range h.actuators {
		if set.Has(a) && !h.claims.Holds(o, a) {
			r.Code, r.Actuator = NotHeld, a
			r.By, r.Priority = h.claims.OwnerOf(a)
			return false
		}
	}
	return true
}

// setLights lights what nobody else holds; lights need no claim of one's own. It does all or nothing.
func (h *Helm) setLights(now time.Duration, o *Order, r *Result) {
	all := o.Set == claim.Set{}
	asks := func(i, c int) bool { return all || o.Set.Has(3*i+c) }
	for i, a := range h.parts.lights {
		if owner, p := h.claims.OwnerOf(a); owner != 0 && owner != o.Owner && (asks(i, 0) || asks(i, 1) || asks(i, 2)) {
			r.Code, r.Actuator, r.By, r.Priority = NotHeld, a, owner, p
			return
		}
	}
	for i := range h.slots.lights {
		for c, v := range channels(o.Lights[i]) {
			if asks(i, c) {
				h.bind.Light(&h.act, h.slots.lights[i][c], float64(v)/math.MaxUint8, now)
			}
		}
	}
}

func channels(l body.Light) [3]uint8 { return [...]uint8{l.R, l.G, l.B} }

// light sets one light, in the act and on the board.
func (h *Helm) light(i int, l body.Light, now time.Duration) {
	for c, v := range channels(l) {
		h.bind.Light(&h.act, h.slots.lights[i][c], float64(v)/math.MaxUint8, now)
	}
}

func (h *Helm) driveTreads(now time.Duration, o *Order, r *Result) {
	if !h.may(o.Owner, &h.parts.wheels, r) {
		return
	}
	if o.For <= 0 || o.For > MaxFor {
		r.Code = Invalid
		return
	}
	until := now + o.For
	var err error
	if o.Kind == Wheels {
		err = h.motion.Drive(o.A, o.B, o.Accel, until)
	} else {
		s := motion.Segment{Kind: motion.Line, Start: h.motion.Pose(), Length: o.A, Ramp: or(o, h.model.Straight)}
		if o.Kind == Turn {
			s.Kind, s.Ramp = motion.PointTurn, or(o, h.model.Turn)
		}
		h.path.N = 0
		h.path.Append(s)
		err = h.motion.Follow(&h.path)
	}
	h.begin(&h.treads, o, until, err, r)
}

// or is the ramp that o names, or the recommended one.
func or(o *Order, d motion.Ramp) motion.Ramp {
	if o.Speed != 0 {
		d.Speed = o.Speed
	}
	if o.Accel != 0 {
		d.Accel, d.Decel = o.Accel, o.Accel
	}
	return d
}

func (h *Helm) moveJoint(k jointOf, j *Joint, o *Order, r *Result) {
	if !h.may(o.Owner, &h.parts.joint[k], r) {
		return
	}
	if o.For < 0 || o.For > 0 && (o.Speed != 0 || o.Accel != 0) {
		r.Code = Invalid
		return
	}
	angle := j.Angle(o.A)
	scale := h.scale(j, angle)
	var takes time.Duration
	var err error
	if o.For > 0 {
		takes, err = h.motion.MoveIn(j.Index, angle, o.For)
	} else {
		err = h.motion.MoveTo(j.Index, angle, motion.Ramp{Speed: o.Speed * scale, Accel: o.Accel * scale})
	}
	if h.begin(&h.joints[k], o, 0, err, r); r.Code != OK {
		return
	}
	r.Takes, r.Homing = takes, !h.now.Joints[j.Index].Calibrated
	if o.Speed > 0 {
		r.Speed = min(o.Speed, h.model.Motion.Joints[j.Index].Most.Speed*h.model.Motion.Headroom.Speed/scale)
	}
}

// scale returns how many radians of the joint are one of what the tree counts it in, as the mean of the way to an angle: an arm that swings raises its end
// not evenly.
func (h *Helm) scale(j *Joint, to float64) float64 {
	from := h.model.Motion.Joints[j.Index].Stops[0] // where it is after it found its zero
	if now := &h.now.Joints[j.Index]; now.Calibrated {
		from = now.Angle
	}
	const least = 1e-3 // rad: over less than that the slope is the same as over that
	if math.Abs(to-from) < least {
		from = to - math.Copysign(least, to)
	}
	if way := math.Abs(j.Value(to) - j.Value(from)); way > 0 {
		return math.Abs(to-from) / way
	}
	return 1
}

// begin notes that o's motion is under way, instead of the one before, if motion took it.
func (h *Helm) begin(u *underway, o *Order, until time.Duration, err error, r *Result) {
	switch err {
	case nil:
	case motion.ErrStopped:
		r.Code, r.Stop = Refused, h.now.Stop
		return
	default:
		r.Code = Invalid
		return
	}
	if u.moving {
		h.ended(u, motion.Cancelled)
	}
	*u = underway{owner: o.Owner, request: o.Request, moving: true, until: until}
	r.Underway = true
}
