package motion

import "math"

// FollowConfig sets how a path is followed. All are own defaults but TurnTolerance.
type FollowConfig struct {
	Along         float64 // 1/s, how fast a lag along the path is made up
	Across        float64 // 1/m², steering against being beside the path
	Heading       float64 // 1/m, steering against pointing elsewhere
	Turn          float64 // 1/s, the same for point turns
	Blend         float64 // s in which the treads may change speed where the curvature jumps; slows joints of lines and arcs down
	Astray        float64 // m beside the path at which it is given up
	AstrayAngle   float64 // rad
	Settle        float64 // s at most to stop at the end of a run
	Close         float64 // m, near enough not to wait longer
	CloseAngle    float64 // rad
	Tolerance     float64 // m, a path that ends farther from its end has missed it
	TurnTolerance float64 // rad; 2 degrees at least (VEC-MOT-03)
}

// follower drives a path: it moves a reference along it within each segment's ramp, and steers the body to the reference.
type follower struct {
	cfg    FollowConfig
	drive  Drive
	most   Ramp // of a tread
	path   Path
	exit   [MaxSegments]float64 // fastest speed at the end of each segment
	i      int
	way, v float64 // along segment i
	settle float64 // s waited at the end of a run
	going  bool
}

// ramp is segment i's, lowered to what the treads can do on it.
func (f *follower) ramp(i int) Ramp {
	s := &f.path.Segments[i]
	if s.Kind == PointTurn {
		return s.Ramp.within(f.most.scaled(2 / f.drive.Track))
	}
	return s.Ramp.within(f.most.scaled(1 / (1 + math.Abs(s.curvature())*f.drive.Track/2)))
}

// start begins a path that check accepted.
func (f *follower) start(p *Path) {
	f.path, f.i, f.way, f.v, f.settle, f.going = *p, 0, 0, 0, 0, true
	// From the end back: a segment must end slow enough for what comes after it.
	after := 0.0 // the fastest possible start of the next segment
	for i := p.N - 1; i >= 0; i-- {
		f.exit[i] = after
		s, r := &f.path.Segments[i], f.ramp(i)
		if i+1 < p.N {
			next := &f.path.Segments[i+1]
			if s.Kind == PointTurn || next.Kind == PointTurn || math.Signbit(s.Length) != math.Signbit(next.Length) {
				f.exit[i] = 0
			} else if jump := math.Abs(s.curvature()-next.curvature()) * f.drive.Track / 2; jump > 0 {
				f.exit[i] = min(f.exit[i], f.most.Accel*f.cfg.Blend/jump)
			}
		}
		f.exit[i] = min(f.exit[i], r.Speed)
		after = min(r.Speed, math.Sqrt(f.exit[i]*f.exit[i]+2*r.Decel*math.Abs(s.Length)))
	}
}

// step returns how the body should move now that it is at pose. The outcome is Running until the path ends or is given up.
func (f *follower) step(dt float64, pose Pose) (Twist, Outcome) {
	f.advance(dt)
	s := &f.path.Segments[f.i]
	ref := s.at(f.way)
	sin, cos := math.Sincos(pose.Theta)
	dx, dy := ref.X-pose.X, ref.Y-pose.Y
	ahead, beside := cos*dx+sin*dy, -sin*dx+cos*dy
	turn := wrap(ref.Theta - pose.Theta)
	if math.Hypot(ahead, beside) > f.cfg.Astray || math.Abs(turn) > f.cfg.AstrayAngle {
		return Twist{}, Astray
	}
	if f.v == 0 && f.way == math.Abs(s.Length) { // the end of a run: stop before the next segment
		f.settle += dt
		there := math.Abs(turn) <= f.cfg.CloseAngle && (s.Kind == PointTurn || math.Abs(ahead) <= f.cfg.Close)
		if there || f.settle >= f.cfg.Settle {
			f.settle = 0
			if f.i+1 < f.path.N {
				f.i, f.way = f.i+1, 0
				return Twist{}, Running
			}
			f.going = false
			if math.Hypot(dx, dy) > f.cfg.Tolerance || math.Abs(turn) > f.cfg.TurnTolerance {
				return Twist{}, Missed
			}
			return Twist{}, Done
		}
		t := Twist{W: f.cfg.Turn * turn}
		if s.Kind != PointTurn {
			t.V = f.cfg.Along * ahead
		}
		return f.bound(t), Running
	}
	sign := math.Copysign(1, s.Length)
	v := sign * f.v
	if s.Kind == PointTurn {
		return f.bound(Twist{0, v + f.cfg.Turn*turn}), Running
	}
	return f.bound(Twist{
		V: v*math.Cos(turn) + f.cfg.Along*ahead,
		W: v*s.curvature() + v*f.cfg.Across*beside + math.Abs(v)*f.cfg.Heading*math.Sin(turn),
	}), Running
}

// advance moves the reference, over as many segments as it flows through.
func (f *follower) advance(dt float64) {
	s, r := &f.path.Segments[f.i], f.ramp(f.i)
	length := math.Abs(s.Length)
	left, before := length-f.way, f.v
	if f.exit[f.i] == 0 && f.v <= r.Decel*dt && left <= f.v*f.v/(2*r.Decel)+landed {
		f.way, f.v = length, 0
		return
	}
	f.v = approach(f.v, left, f.exit[f.i], r, r.Decel, dt)
	f.way += (before + f.v) / 2 * dt
	for f.way > length {
		if f.exit[f.i] == 0 || f.i+1 >= f.path.N {
			f.way = length
			break
		}
		f.way -= length
		f.i++
		length = math.Abs(f.path.Segments[f.i].Length)
	}
}

// bound slows both treads alike, so that the curve stays what it is.
func (f *follower) bound(t Twist) Twist {
	left, right := f.drive.Treads(t)
	if most := max(math.Abs(left), math.Abs(right)); most > f.most.Speed {
		t.V *= f.most.Speed / most
		t.W *= f.most.Speed / most
	}
	return t
}
