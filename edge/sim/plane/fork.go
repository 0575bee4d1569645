package plane

import "math"

// Own defaults of a lift's fork and of a cube's holes.
const (
	holeTop    = 0.036  // m above the floor: hooks below it are in the hole of a side, hooks that rise above it raise the cube
	hookDeep   = 0.0015 // m that hooks reach into a side, at least
	hookAside  = 0.006  // m beside the middle of the side, at most
	hookTurned = 0.12   // rad from facing it, at most
	ledge      = 0.006  // m above the top of a cube, from where hooks slip off its edge
	squareSize = 1e-3   // m between the edges of a cube that rolls
	rideG      = 0.15   // standard deviation of what a lift that moves shakes a cube on it

	scatter     = 0.01 // m between the places where a cube that fell may end
	mostScatter = 15
)

// fork is the end of the robot's lift, with a cube on its hooks or one that it pulls over. Its zero value is a robot without one.
type fork struct {
	known     bool
	ahead, up float64 // m from the robot's origin, and above its floor
	moved     bool    // in the last step

	held int  // index of the cube on the hooks; -1: none
	at   Pose // of that cube as the robot faces, from the hooks

	pulled int  // index of the cube that is pulled over; -1: none
	from   Vec  // where the hooks caught it
	away   Vec  // from the robot, across the edge that the cube turns over
	pivot  Vec  // of the middle of that edge
	last   Pose // of the cube
}

// off reports whether object i is not on the floor.
func (w *World) off(i int) bool {
	if w.gone[i] {
		return true
	}
	for k := range w.blocks {
		if b := &w.blocks[k]; b.object == i {
			return b.loose || k == w.fork.held
		}
	}
	return false
}

// hides reports whether the cube on the hooks is before the range finder.
func (w *World) hides(i int) bool {
	return w.fork.held >= 0 && w.blocks[w.fork.held].object == i && w.fork.up-holeTop <= w.robot.Range.Z
}

// Carried reports which cube is on the lift's hooks; -1: none.
func (w *World) Carried() int { return w.fork.held }

// Fork returns where the end of the lift is: how far ahead of the robot's origin, and above its floor.
func (w *World) Fork() (ahead, up float64) { return w.fork.ahead, w.fork.up }

// MoveFork moves the end of the lift to a place so far ahead of the robot's origin and above its floor, in metres. It reports whether nothing is in the way; otherwise the
// fork stays where it was. Hooks that rise in the hole of a cube's side raise the cube, hooks that come down on its top press on it, and pull it over when the robot drives back.
func (w *World) MoveFork(ahead, up float64) bool {
	f, before := &w.fork, w.fork
	f.known, f.ahead, f.up = true, ahead, up
	if !before.known {
		return true
	}
	f.moved = f.moved || up != before.up
	free := true
	switch {
	case w.below:
	case f.held >= 0:
		free = w.heave(before.up)
	case up > holeTop && before.up <= holeTop:
		w.hook()
	case up < before.up:
		free = w.press(before.up)
	}
	if !free {
		f.ahead, f.up = before.ahead, before.up
	}
	return free
}

// facing returns where object i is for the robot: how far ahead its next side is, how far its middle is aside, and by how much that side is turned from facing the robot.
func (w *World) facing(i int) (side, aside, turned float64) {
	o := &w.m.Objects[i]
	at := w.pose.From(w.objects[i].place())
	turn := wrap(w.objects[i][2] - w.pose[2])
	quarters := math.Round(turn / quarter)
	depth := o.Size[0]
	if math.Mod(quarters, 2) != 0 {
		depth = o.Size[1]
	}
	return at[0] - depth/2, at[1], turn - float64(quarters*quarter)
}

// square reports whether the hooks are straight before the middle of a side of cube i, or over its top, and reach into it.
func (w *World) square(i int) bool {
	side, aside, turned := w.facing(w.blocks[i].object)
	return side <= w.fork.ahead-hookDeep && side >= w.robot.Nose-hookDeep && math.Abs(aside) <= hookAside && math.Abs(turned) <= hookTurned
}

// lies reports whether cube i is on the floor before a robot on its treads.
func (w *World) lies(i int) bool {
	return w.posture == OnTreads && !w.off(w.blocks[i].object) && w.blocks[i].roll == 0 && w.m.Objects[w.blocks[i].object].Tall() > holeTop
}

// hook puts the cube with the hooks in its hole on them.
func (w *World) hook() {
	f := &w.fork
	for i := range w.blocks {
		if i != f.pulled && w.lies(i) && w.square(i) {
			o := w.objects[w.blocks[i].object]
			at := w.pose.From(o.place())
			f.held, f.at = i, Pose{at[0] - f.ahead, at[1], wrap(o[2] - w.pose[2])}
			w.follow()
			return
		}
	}
}

// borne is where the cube on the hooks is for a robot at p.
func (w *World) borne(p Pose) Pose {
	at := w.fork.at
	v := p.At(Vec{w.fork.ahead + at[0], at[1]})
	return Pose{v[0], v[1], wrap(p[2] + at[2])}
}

// bears reports whether the cube on the hooks has room at the height of the fork, with the robot at p.
func (w *World) bears(p Pose) bool {
	if w.fork.held < 0 {
		return true
	}
	own, raised := w.blocks[w.fork.held].object, w.fork.up-holeTop
	s := w.m.Objects[own].shape(w.borne(p))
	for i := range w.fixed {
		if w.fixed[i].height > raised && meet(&s, &w.fixed[i]) {
			return false
		}
	}
	for i := range w.m.Objects {
		if i != own && !w.off(i) && !w.m.Objects[i].Fixed && w.outline[i].height > raised && meet(&s, &w.outline[i]) {
			return false
		}
	}
	return true
}

// follow takes the cube on the hooks to where they are.
func (w *World) follow() {
	if w.fork.held < 0 {
		return
	}
	i := w.blocks[w.fork.held].object
	w.objects[i] = w.borne(w.pose)
	w.outline[i] = w.m.Objects[i].shape(w.objects[i])
}

// heave raises or lowers the cube on the hooks, from where the fork was; on the floor it is free of them.
func (w *World) heave(from float64) bool {
	f := &w.fork
	switch {
	case w.posture != OnTreads:
	case f.up < from && !w.bears(w.pose):
		return false
	case f.up <= holeTop:
		w.follow()
		b := &w.blocks[f.held]
		f.held, b.raised = -1, 0
		w.gone[b.object] = w.Cliff(w.objects[b.object].place())
		return true
	}
	w.follow()
	return true
}

// grip lets s seconds pass for cubes off the floor: a robot that does not stay upright loses what its lift has, and what is loose falls.
func (w *World) grip(s float64) {
	f := &w.fork
	if f.held >= 0 {
		w.follow()
		b := &w.blocks[f.held]
		if b.raised = max(f.up-holeTop+w.feel.height, 0); w.posture != OnTreads && w.posture != InHand {
			f.held, b.loose, b.falling = -1, true, 0
		}
	}
	for i := range w.blocks {
		b := &w.blocks[i]
		if !b.loose {
			continue
		}
		b.falling += float64(Gravity * s)
		if b.raised -= float64(b.falling * s); b.raised <= 0 {
			w.land(b)
		}
	}
}

// land puts a cube that fell on the floor, upright as it was, where there is room next to where it came down.
func (w *World) land(b *block) {
	b.raised, b.loose = 0, false
	o, from, body := &w.m.Objects[b.object], w.objects[b.object], w.body(w.pose)
	for n := range mostScatter {
		for k := range 8 {
			sin, cos := math.Sincos(float64(k) * math.Pi / 4)
			at := Pose{from[0] + float64(float64(n)*scatter*cos), from[1] + float64(float64(n)*scatter*sin), from[2]}
			if s := o.shape(at); w.clear(&s, b.object) && !meet(&s, &body) {
				w.objects[b.object], w.outline[b.object] = at, s
				w.gone[b.object] = w.Cliff(at.place())
				return
			}
		}
	}
	w.gone[b.object] = true
}

// press lets hooks that come down, from where they were, lie on the top of a cube: there they catch its edge.
func (w *World) press(from float64) bool {
	f := &w.fork
	if i := f.pulled; i >= 0 {
		b := &w.blocks[i]
		return f.up >= float64(w.m.Objects[b.object].Tall()*math.Cos(b.tilt))
	}
	for i := range w.blocks {
		n := w.blocks[i].object
		tall := w.m.Objects[n].Tall()
		if !w.lies(i) || from < tall || f.up >= tall || !inside(w.outline[n].corner[:w.outline[n].n], w.pose.At(Vec{f.ahead, 0})) {
			continue
		}
		if size := w.m.Objects[n].Size; w.square(i) && math.Abs(size[0]-size[1]) < squareSize && math.Abs(size[0]-tall) < squareSize {
			w.catch(i)
		}
		return false
	}
	return true
}

// catch begins to pull cube i over.
func (w *World) catch(i int) {
	f, b := &w.fork, &w.blocks[i]
	at := w.objects[b.object]
	_, _, turned := w.facing(b.object)
	sin, cos := math.Sincos(w.pose[2] + turned)
	f.pulled, f.away, f.last = i, Vec{cos, sin}, at
	f.from = w.pose.At(Vec{f.ahead, 0})
	f.pivot = at.place().plus(f.away.times(-w.m.Objects[b.object].Size[0] / 2))
	to := f.away.times(-1).turned(-at[2]) // in the cube's heading: one of its four sides
	b.tilt, b.toward = 0, [2]float64{math.Round(to[0]), math.Round(to[1])}
}

// pull turns the cube that the hooks caught as far as they were drawn back, for s seconds. Past its balance it falls by its weight, as far as nothing is in the way; before that it falls back when they
// slip off.
func (w *World) pull(s float64) {
	f := &w.fork
	if f.pulled < 0 {
		return
	}
	b := &w.blocks[f.pulled]
	edge := w.m.Objects[b.object].Tall()
	if pushed := f.last.place().to(w.objects[b.object].place()); pushed != (Vec{}) {
		f.pivot, f.from, f.last = f.pivot.plus(pushed), f.from.plus(pushed), w.objects[b.object]
	}
	over := b.tilt >= quarter/2
	tilt := math.Asin(min(max(w.pose.At(Vec{f.ahead, 0}).to(f.from).dot(f.away)/edge, 0), 1))
	if over {
		tilt = min(b.tilt+float64(quarter/rollTime*s), quarter)
	}
	switch {
	case w.off(b.object):
		f.pulled, b.tilt = -1, 0
		return
	case !over && (w.posture != OnTreads || f.up > float64(edge*math.Cos(tilt))+ledge):
		f.pulled, tilt = -1, 0
	}
	sin, cos := math.Sincos(tilt)
	v := f.pivot.plus(f.away.times(float64((cos - sin) * edge / 2)))
	at := Pose{v[0], v[1], f.last[2]}
	o, body := w.m.Objects[b.object].shape(at), w.body(w.pose)
	if tilt > b.tilt && (!w.clear(&o, b.object) || meet(&body, &o)) {
		return // it leans on something
	}
	b.tilt, f.last = tilt, at
	w.objects[b.object], w.outline[b.object] = at, o
	if tilt == quarter {
		b.turnOver()
		b.tilt, f.pulled = 0, -1
		w.gone[b.object] = w.Cliff(v)
	}
}

// turnOver makes the side that was away from where the cube rolled its top.
func (b *block) turnOver() {
	for i, own := range b.own {
		along := float64(own[0]*b.toward[0]) + float64(own[1]*b.toward[1])
		b.own[i] = [3]float64{own[0] + float64((own[2]-along)*b.toward[0]), own[1] + float64((own[2]-along)*b.toward[1]), -along}
	}
}

// feels returns what the cube feels along its own axes of an acceleration ahead, to the left and up of its heading.
func (b *block) feels(a [3]float64) (out [3]float64) {
	sin, cos := math.Sincos(b.tilt)
	along := float64(a[0]*b.toward[0]) + float64(a[1]*b.toward[1])
	more := float64(along*cos) - float64(a[2]*sin) - along
	up := float64(a[2]*cos) + float64(along*sin)
	a = [3]float64{a[0] + float64(more*b.toward[0]), a[1] + float64(more*b.toward[1]), up}
	for i, own := range b.own {
		out[i] = float64(own[0]*a[0]) + float64(own[1]*a[1]) + float64(own[2]*a[2])
	}
	return out
}
