package vectorplant

import (
	"math"
	"time"

	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/edge/robot"
)

// Begin is control.Plant.
func (p *Plant) Begin(m *control.Moment, part int, o *control.Order, r *control.Result) error {
	switch part {
	case wheels:
		return p.beginTreads(m, o, r)
	case head, lift:
		return p.beginJoint(part, o, r)
	case eye:
		return p.setCamera(m, o, r)
	}
	return p.setLights(m, o, r)
}

// setLights sets the lights that the order names, at once: all or none.
func (p *Plant) setLights(m *control.Moment, o *control.Order, r *control.Result) error {
	for _, g := range o.Goals[:o.N] {
		if p.goals[g.Slot] >= colour && (math.IsNaN(g.Value) || o.Speed != 0 || o.Within != 0) {
			return motion.ErrInvalid
		}
	}
	for i, g := range o.Goals[:o.N] {
		at := int(p.goals[g.Slot]) - int(colour)
		if at < 0 {
			continue
		}
		p.bind.Light(&p.act, g.Slot, g.Value, m.Now)
		l := p.act.Lights[at/3]
		r.Taken[i] = float64([...]uint8{l.R, l.G, l.B}[at%3]) / math.MaxUint8
	}
	return nil
}

// light sets one light, in the act and on the board.
func (p *Plant) light(i int, l vectordriver.Light, now time.Duration) {
	for c, v := range [...]uint8{l.R, l.G, l.B} {
		p.bind.Light(&p.act, p.slots.lights[i][c], float64(v)/math.MaxUint8, now)
	}
}

// beginTreads drives a way, turns to a heading, or changes the speeds of the treads.
func (p *Plant) beginTreads(m *control.Moment, o *control.Order, r *control.Result) error {
	switch o.Kind {
	case control.Go:
		return p.follow(motion.Line, o.A, or(o, p.cfg.Straight))
	case control.Turn:
		return p.follow(motion.PointTurn, o.A, or(o, p.cfg.Turn))
	}
	d := speeds{owner: uint32(o.Owner)}
	if p.drive.owner == d.owner && p.motion.Treads() == motion.Running {
		d = p.drive // values that are not written stay as the same owner last wrote them
	}
	geometry := p.cfg.Motion.Drive
	most := p.cfg.Motion.Tread.Speed * p.cfg.Motion.Headroom.Speed
	for _, g := range o.Goals[:o.N] {
		now := geometry.Twist(d.left, d.right)
		switch p.goals[g.Slot] {
		case wheelLeft:
			d.left = g.Value * geometry.Radius
		case wheelRight:
			d.right = g.Value * geometry.Radius
		case bodySpeed:
			d.left, d.right = geometry.Treads(motion.Twist{V: g.Value, W: now.W})
		case bodyTurn:
			d.left, d.right = geometry.Treads(motion.Twist{V: now.V, W: g.Value})
		case bodyYaw:
			if o.N > 1 || o.Within != 0 {
				return motion.ErrInvalid
			}
			turn := robot.WrapPi(g.Value - p.now.Pose.Theta) // the shorter way
			if math.Abs(turn) < p.cfg.Motion.Follow.TurnTolerance {
				p.Rest(wheels, false)
				return nil // already at the target
			}
			return p.follow(motion.PointTurn, turn, or(o, p.cfg.Turn))
		default:
			continue
		}
		if !(math.Abs(d.left)+math.Abs(d.right) < math.MaxFloat64) {
			return motion.ErrInvalid
		}
	}
	if o.Speed != 0 {
		return motion.ErrInvalid // a slot that is a speed takes no speed
	}
	d.left, d.right = min(max(d.left, -most), most), min(max(d.right, -most), most)
	accel := p.pace(d, o.Within, r)
	if err := p.motion.Drive(d.left, d.right, accel, 0); err != nil {
		return err
	}
	p.drive = d
	for i, g := range o.Goals[:o.N] {
		t := geometry.Twist(d.left, d.right)
		switch p.goals[g.Slot] {
		case wheelLeft:
			r.Taken[i] = d.left / geometry.Radius
		case wheelRight:
			r.Taken[i] = d.right / geometry.Radius
		case bodySpeed:
			r.Taken[i] = t.V
		case bodyTurn:
			r.Taken[i] = t.W
		}
	}
	return nil
}

// follow drives one segment from where the body is.
func (p *Plant) follow(k motion.Kind, length float64, ramp motion.Ramp) error {
	p.path.N = 0
	p.path.Append(motion.Segment{Kind: k, Start: p.motion.Pose(), Length: length, Ramp: ramp})
	err := p.motion.Follow(&p.path)
	if err == nil {
		p.drive = speeds{}
	}
	return err
}

// pace returns the acceleration with which the treads change to d over the time of the order, or as fast as they may (GOSTAI-OPEN-03); 0 without one.
func (p *Plant) pace(d speeds, within time.Duration, r *control.Result) (accel float64) {
	if within == 0 {
		return 0
	}
	left, right := p.cfg.Motion.Drive.Treads(p.now.Want)
	change := max(math.Abs(d.left-left), math.Abs(d.right-right))
	most := p.cfg.Motion.Tread.Accel * p.cfg.Motion.Headroom.Accel
	r.Takes = max(time.Duration(change/most*float64(time.Second)), within)
	return min(change/within.Seconds(), most)
}

// or is the ramp of the order, or the recommended one.
func or(o *control.Order, d motion.Ramp) motion.Ramp {
	if o.Speed != 0 {
		d.Speed = math.Abs(o.Speed)
	}
	return d
}

// beginJoint moves the head or the lift.
func (p *Plant) beginJoint(part int, o *control.Order, r *control.Result) error {
	at := -1
	for i, g := range o.Goals[:o.N] {
		switch k := p.goals[g.Slot]; {
		case part == head && (k == headTurn || k == headPitch), part == lift && k == liftHeight:
			if at >= 0 {
				return motion.ErrInvalid // one place at a time
			}
			at = i
		}
	}
	i, goal := jointOf[part], o.Goals[at]
	if math.IsNaN(goal.Value) || o.Speed < 0 {
		return motion.ErrInvalid
	}
	unit := 1. // rad of the joint that one of the slot's is, on the way to the goal
	var angle float64
	switch p.goals[goal.Slot] {
	case headTurn:
		angle, unit = -goal.Value*2*math.Pi, 2*math.Pi // in the tree nose down is positive (GOSTAI-FRAME-05)
	case headPitch:
		angle = -goal.Value
	default:
		angle = liftAngle(goal.Value)
		unit = p.scale(i, angle)
	}
	var err error
	if o.Within > 0 {
		r.Takes, err = p.motion.MoveIn(i, angle, o.Within)
	} else {
		err = p.motion.MoveTo(i, angle, motion.Ramp{Speed: o.Speed * unit})
	}
	if err != nil {
		return err
	}
	p.letGo[i] = 0
	r.Homing = !p.now.Joints[i].Calibrated
	if o.Speed > 0 {
		r.Speed = min(o.Speed, p.cfg.Motion.Joints[i].Most.Speed*p.cfg.Motion.Headroom.Speed/unit)
	}
	return nil
}

// scale returns how many radians of the lift's joint are one metre of its height, as the mean of the way to an angle: an arm that swings does not
// raise its end evenly.
func (p *Plant) scale(i int, to float64) float64 {
	from := p.cfg.Motion.Joints[i].Stops[0] // where it is after it found its zero
	if now := &p.now.Joints[i]; now.Calibrated {
		from = now.Angle
	}
	const least = 1e-3 // rad: over less than that the slope is the same as over that
	if math.Abs(to-from) < least {
		from = to - math.Copysign(least, to)
	}
	if way := math.Abs(liftHeightOf(to) - liftHeightOf(from)); way > 0 {
		return math.Abs(to-from) / way
	}
	return 1
}
