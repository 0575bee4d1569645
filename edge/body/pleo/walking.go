package pleo

import (
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/pleo/legs"
	"kennel/edge/body/pleo/walk"
	"kennel/edge/core/control"
	"kennel/edge/motion"
)

// Own defaults of walking.
const (
	mostGo     = 1.2         // m of one order: what fits into the longest deadline
	mostTurn   = 2 * math.Pi // rad, likewise
	goClose    = 0.006       // m, near enough not to correct the way
	goReach    = 0.020       // m or 5 % of the way: farther away it was missed (GOSTAI-OPEN-11)
	turnClose  = 1.0 * math.Pi / 180
	turnReach  = 3.0 * math.Pi / 180
	tries      = 4               // bursts of steps for one order
	least      = 0.25            // of a burst's way: with less, something is in the way
	slowest    = 0.1             // of the full rate
	settles    = 2 * stale       // after the last step, until its measurements have come
	between    = 4.0             // moments of a measurement's period
	leastScale = 0.05            // of a step
	upright    = 1               // reading of the tilt sensor (PLEO-SEN-29)
	rad        = math.Pi / 180   // of a degree
	lead       = 2 * time.Second // to the first posture and back, about
	footOf     = 8               // first of pads that is a foot
	torsoJoint = 8               // JOINT_TORSO
)

// walkJoints are the joints of walk.Joints by their ids, and limbJoints those of each leg in the order of legs.
var (
	walkJoints = [...]int{2, 3, 0, 1, 4, 5, 6, 7}
	limbJoints = [legs.Count][2]int{{2, 3}, {0, 1}, {4, 5}, {6, 7}}
)

// walker leads the legs along a way, and judges it by what they did. It belongs to the goroutine of the loop.
type walker struct {
	legs    *walk.Walker
	outcome motion.Outcome
	turns   bool
	target  float64 // m or rad
	gone    float64
	before  float64 // gone when the burst began
	asked   float64 // way of the burst
	rate    float64
	bursts  int
	letGo   bool // the legs go back to the application after the last step
	still   time.Duration

	known   bool // what follows
	angles  legs.Angles
	feet    legs.Feet
	down    [legs.Count]bool
	pressed [legs.Count]bool
	base    control.Base
	way     motion.Odometer
	at      time.Duration
}

// running reports whether an order is under way.
func (w *walker) running() bool { return w.outcome == motion.Running }

// feel reckons where the body is by its measured joints and the switches of its feet. Between two measurements feet come and go, so it looks at a few moments
// in between. A body that is not on its feet goes nowhere.
func (w *walker) feel(values *[body.MaxChannels]float64, at time.Duration, onFeet bool) {
	var a legs.Angles
	degrees := func(j int) float64 { return joints[j].sign() * values[chJoint+j] / rad }
	for i, l := range limbJoints {
		a.Upper[i], a.Lower[i] = degrees(l[0]), degrees(l[1])
	}
	a.Torso = degrees(torsoJoint)
	var pressed [legs.Count]bool
	for i := range pressed {
		pressed[i] = onFeet && values[chPad+footOf+i] > 0
	}
	dt := (at - w.at).Seconds()
	w.base.Twist = motion.Twist{}
	if w.known && dt > 0 && a != w.angles {
		var sum motion.Pose
		for k := 1.0; k <= between; k++ {
			sum = legs.Moved(sum, w.small(&a, k/between, &pressed))
		}
		w.base.Pose = legs.Moved(w.base.Pose, sum)
		w.base.Twist = motion.Twist{V: sum.X / dt, W: sum.Theta / dt}
		w.way.Add(sum.X)
		w.base.Way = w.way.Metres()
		if w.turns {
			w.gone += sum.Theta
		} else {
			w.gone += sum.X
		}
	}
	if !w.known || a != w.angles {
		w.feet = a.Place()
		w.down = w.feet.Rest().Down
	}
	w.known, w.angles, w.pressed, w.at = true, a, pressed, at
}

// small is the step to a part of the way from the angles before to a. A foot counts while it would be on the floor, unless its switch says all the time
// that it is not.
func (w *walker) small(a *legs.Angles, part float64, pressed *[legs.Count]bool) motion.Pose {
	mix := func(from, to float64) float64 { return from + part*(to-from) }
	now := legs.Angles{Torso: mix(w.angles.Torso, a.Torso)}
	for i := range pressed {
		now.Upper[i], now.Lower[i] = mix(w.angles.Upper[i], a.Upper[i]), mix(w.angles.Lower[i], a.Lower[i])
	}
	feet := now.Place()
	down := feet.Rest().Down
	both := down
	for i := range both {
		both[i] = down[i] && w.down[i] && (pressed[i] || w.pressed[i])
	}
	step := legs.Step(&w.feet, &feet, both)
	w.feet, w.down = feet, down
	return step
}

// begin starts a way.
func (w *walker) begin(o *control.Order, at *[len(joints)]float64, r *control.Result) error {
	turns := o.Kind == control.Turn
	most := mostGo
	if turns {
		most = mostTurn
	}
	if o.A == 0 || !(math.Abs(o.A) <= most) || !(o.Speed >= 0) {
		return motion.ErrInvalid
	}
	w.turns, w.target, w.gone, w.bursts, w.letGo, w.rate = turns, o.A, 0, 0, false, 1
	full := w.legs.StepOf(w.direction(o.A)) / w.legs.StepTime().Seconds()
	switch {
	case o.Speed > 0:
		w.rate = min(max(o.Speed/full, slowest), 1)
		r.Speed = w.rate * full
	case o.Within > 0:
		walks := math.Abs(o.A) / full
		w.rate = min(max(walks/max((o.Within-lead).Seconds(), 0.1), slowest), 1)
		r.Takes = lead + time.Duration(walks/w.rate*float64(time.Second))
	}
	w.outcome = motion.Running
	w.burst(at)
	return nil
}

func (w *walker) direction(way float64) walk.Way {
	switch {
	case w.turns && way > 0:
		return walk.Left
	case w.turns:
		return walk.Right
	case way > 0:
		return walk.Forward
	}
	return walk.Back
}

// burst begins the steps for the rest of the way.
func (w *walker) burst(at *[len(joints)]float64) {
	rest := w.target - w.gone
	way := w.direction(rest)
	full := w.legs.StepOf(way)
	steps := max(math.Ceil(math.Abs(rest)/full-leastScale), 1)
	scale := min(max(math.Abs(rest)/(steps*full), leastScale), 1)
	var angles walk.Angles
	for i, j := range walkJoints {
		angles[i] = joints[j].sign() * at[j] / rad
	}
	w.bursts, w.before, w.asked, w.still = w.bursts+1, w.gone, rest, 0
	w.legs.Begin(way, scale, int(steps), w.rate, angles)
}

// step lets dt pass, and writes the set-points of the legs.
func (w *walker) step(dt time.Duration, at *[len(joints)]float64, act *body.Act) {
	if !w.legs.On() {
		return
	}
	if w.legs.Step(dt) {
		if w.still += dt; w.still >= settles {
			w.judge(at)
		}
	}
	if !w.legs.On() {
		return
	}
	for i, v := range w.legs.Angles() {
		j := walkJoints[i]
		act.Set(j, body.Position, joints[j].sign()*v*rad)
	}
}

// judge decides at the end of a burst whether the way is done.
func (w *walker) judge(at *[len(joints)]float64) {
	if w.letGo {
		w.legs.Off()
		return
	}
	if !w.running() {
		return // between orders
	}
	rest, near, reach := math.Abs(w.target-w.gone), goClose, max(goReach, 0.05*math.Abs(w.target))
	if w.turns {
		near, reach = turnClose, max(turnReach, 0.05*math.Abs(w.target))
	}
	went := (w.gone - w.before) * math.Copysign(1, w.asked)
	switch {
	case rest <= near:
		w.outcome = motion.Done
	case went < least*math.Abs(w.asked) && math.Abs(w.asked) > reach:
		w.outcome = motion.Blocked
	case w.bursts < tries:
		w.burst(at)
	case rest <= reach:
		w.outcome = motion.Done
	default:
		w.outcome = motion.Missed
	}
}

// end ends the way; the legs go to the posture between steps, and with letGo back to the application then.
func (w *walker) end(o motion.Outcome, letGo bool) {
	if w.running() {
		w.outcome = o
	}
	w.letGo, w.still = w.letGo || letGo, 0
	w.legs.Stand()
}

// off ends the way at once, without power over the legs.
func (w *walker) off(o motion.Outcome) {
	if w.running() {
		w.outcome = o
	}
	w.legs.Off()
}
