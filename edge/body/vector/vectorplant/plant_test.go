package vectorplant

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/control"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/edge/rt"
	"kennel/edge/sense"
)

const (
	ms     = time.Millisecond
	period = 5120 * time.Microsecond // VEC-MOT-05
	degree = math.Pi / 180

	alice claim.Owner = 2
	bob   claim.Owner = 3
	carol claim.Owner = 4
)

// tree is a Vector's, made once.
var tree = sync.OnceValues(vectordriver.Tree)

// slot returns the ID of a slot of a Vector's tree.
func slot(name string) int {
	vector, err := tree()
	if err != nil {
		panic(err)
	}
	f := robot.Finder{Tree: vector}
	id := f.Slot(name)
	if f.Err != nil {
		panic(f.Err)
	}
	return id
}

// set returns an order to bring slots to values, in the order of their names.
func set(o claim.Owner, values map[string]float64) control.Order {
	out := control.Order{Kind: control.Set, Owner: o}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out.Goals[out.N] = control.Goal{Slot: slot(name), Value: values[name]}
		out.N++
	}
	return out
}

// wheelsAt returns an order to run the treads at m/s for a time.
func wheelsAt(o claim.Owner, left, right float64, long time.Duration) control.Order {
	out := set(o, map[string]float64{"wheelL.speed": left / 0.0145, "wheelR.speed": right / 0.0145})
	out.For = long
	return out
}

// headTo returns an order to bring the head to a pitch in rad; nose down is positive.
func headTo(o claim.Owner, pitch float64) control.Order {
	return set(o, map[string]float64{"robot.pitch": pitch})
}

// quick returns o at a speed, slow o within a time.
func quick(o control.Order, speed float64) control.Order       { o.Speed = speed; return o }
func slow(o control.Order, within time.Duration) control.Order { o.Within = within; return o }

// liftTo returns an order to bring the lift to a height in m.
func liftTo(o claim.Owner, height float64) control.Order {
	return set(o, map[string]float64{"arm.position": height})
}

// lightsTo returns an order to light all four lights.
func lightsTo(o claim.Owner, all [4]vectordriver.Light) control.Order {
	values := map[string]float64{}
	for i, l := range all {
		for c, v := range map[string]uint8{"r": l.R, "g": l.G, "b": l.B} {
			values[fmt.Sprintf("led[%d].%s", i, c)] = float64(v) / 255
		}
	}
	return set(o, values)
}

// newControl returns the control loop of a Vector and its plant.
func newControl(t testing.TB, cfg Config, tape *rt.Tape) (*control.Control, *Plant) {
	t.Helper()
	m, err := Model(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var p *Plant
	build := m.Make
	m.Make = func(board *state.Board, emit func(control.Event), held func(int) bool) (control.Plant, error) {
		made, err := build(board, emit, held)
		p, _ = made.(*Plant)
		return made, err
	}
	c, err := control.New(m, tape)
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

// felt is how often each event came since the control loop was made, by name and texts.
type felt map[string]int64

// take takes the events that wait.
func (f felt) take(c *control.Control) {
	for {
		e, ok := c.Event()
		if !ok {
			return
		}
		f[strings.TrimSpace(e.Name+" "+strings.Join(e.Texts[:], " "))] += max(e.Numbers[0], 1)
	}
}

// desk is a control loop with a body of four motors at its end, in simulated time.
type desk struct {
	t     testing.TB
	c     *control.Control
	p     *Plant
	f     rt.Frame
	sense vectordriver.Sense
	in    body.Sense
	act   vectordriver.Act
	out   body.Act
	rep   control.Report
	live  *state.Live
	felt  felt

	angle, rate, zero [4]float64
	up                [3]float64 // m/s2 that the body feels, in its own frame; all 0: it has no inertial sensors
	stops             [4][2]float64
	silent            bool
	results           []control.Result
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{t: t, felt: felt{}}
	d.c, d.p = newControl(t, Default(), nil)
	d.live = state.NewLive(d.c.Board(), nil)
	d.f = rt.Frame{Now: time.Hour, Run: 1}
	free := [2]float64{math.Inf(-1), math.Inf(1)}
	c := Default().Motion.Joints
	d.stops = [4][2]float64{free, free, c[jointLift].Stops, c[jointHead].Stops}
	d.angle = [4]float64{spine.Lift: 0.2, spine.Head: 0.1}
	d.zero = d.angle
	d.sense = vectordriver.Sense{Epoch: 1, BatteryVolts: 3.9, Temperature: 25, Cliffs: [4]float64{0.6, 0.6, 0.6, 0.6}}
	return d
}

// step lets a period pass: the body moves as it was told, and says how.
func (d *desk) step() {
	d.f.Now += period
	d.f.Step++
	d.f.DT = period
	full := [4]float64{0.3 / 0.0145, 0.3 / 0.0145, 12, 12}
	for i := range d.angle {
		d.rate[i] += (d.act.Motors[i]*full[i] - d.rate[i]) * period.Seconds() / 0.04
		if math.Abs(d.rate[i]) < 1e-3 {
			d.rate[i] = 0
		}
		d.angle[i] += d.rate[i] * period.Seconds()
		if d.angle[i] < d.stops[i][0] || d.angle[i] > d.stops[i][1] {
			d.angle[i], d.rate[i] = min(max(d.angle[i], d.stops[i][0]), d.stops[i][1]), 0
		}
	}
	counts := [4]float64{150, 150, 400, 500}
	d.sense.Fresh = !d.silent
	if !d.silent {
		d.sense.At = d.f.Now
		d.sense.Seq++
		for i := range d.angle {
			d.sense.Motors[i].Position = math.Floor((d.angle[i]-d.zero[i])*counts[i]) / counts[i]
			d.sense.Motors[i].Speed = d.rate[i]
		}
		if d.up != [3]float64{} {
			sin, cos := math.Sincos(d.angle[spine.Head])
			d.sense.Inertial = body.Inertial{Accel: [3]float64{cos*d.up[0] + sin*d.up[2], d.up[1], cos*d.up[2] - sin*d.up[0]}, At: d.f.Now}
		}
	}
	d.pass()
	d.felt.take(d.c)
	for {
		r, ok := d.c.Result()
		if !ok {
			return
		}
		d.results = append(d.results, r)
	}
}

// pass steps the control loop.
func (d *desk) pass() {
	d.sense.Pack(&d.in)
	d.out = body.Act{}
	d.f.Sense, d.f.Act = &d.in, &d.out
	d.c.Step(&d.f)
	d.act.Unpack(&d.out)
	d.c.Report(&d.rep)
}

func (d *desk) run(t time.Duration) {
	for range t / period {
		d.step()
	}
}

// calibrated steps until the control loop has homed the joints.
func (d *desk) calibrated() *desk {
	d.t.Helper()
	d.until("calibration", func() bool { return d.rep.Parts[head].Known && d.rep.Parts[lift].Known && d.owned(control.Self) == 0 })
	return d
}

// owned returns how many actuators an owner holds.
func (d *desk) owned(o claim.Owner) (n int) {
	for _, by := range d.rep.Owners {
		if by.Owner == o {
			n++
		}
	}
	return n
}

func (d *desk) until(what string, ok func() bool) {
	d.t.Helper()
	for range 20 * time.Second / period {
		if d.step(); ok() {
			return
		}
	}
	d.t.Fatalf("%s: not within 20 s; %+v", what, d.p.now)
}

// ask posts an order and returns its answer.
func (d *desk) ask(o control.Order) control.Result {
	d.t.Helper()
	o.Request = uint32(rand.N(1 << 30))
	if !d.c.Post(o) {
		d.t.Fatal("the mailbox is full")
	}
	d.step()
	for i, r := range d.results {
		if r.Owner == o.Owner && r.Request == o.Request && r.Code != control.Ended {
			d.results = slices.Delete(d.results, i, i+1)
			return r
		}
	}
	d.t.Fatalf("no answer to %+v", o)
	return control.Result{}
}

// ended steps until a motion of owner has ended, and returns how.
func (d *desk) ended(owner claim.Owner) (end control.Result) {
	d.t.Helper()
	d.until(fmt.Sprintf("end of a motion of %d", owner), func() bool {
		i := slices.IndexFunc(d.results, func(r control.Result) bool { return r.Owner == owner && r.Code == control.Ended })
		if i < 0 {
			return false
		}
		end = d.results[i]
		d.results = slices.Delete(d.results, i, i+1)
		return true
	})
	return end
}

func (d *desk) set(names ...string) claim.Set {
	d.t.Helper()
	s, err := d.c.Actuators(names...)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// claims takes the named parts for a person, and fails if that is refused.
func (d *desk) claims(o claim.Owner, names ...string) uint64 {
	d.t.Helper()
	r := d.ask(control.Order{Kind: control.Claim, Owner: o, Set: d.set(names...), Priority: claim.Person})
	if r.Code != control.OK || r.Lease == 0 {
		d.t.Fatalf("claim of %v: %+v", names, r)
	}
	return r.Lease
}

func (d *desk) duties() [4]float64 { return d.act.Motors }

func (d *desk) value(name string) (float64, bool) {
	r, err := d.live.Read(name)
	return r.Value.Number, err == nil
}

// TestDrive: a drive of 100 mm is odometry, pose and values of the tree.
func TestDrive(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel")
	if r := d.ask(control.Order{Kind: control.Go, Owner: alice, A: 0.1, For: 5 * time.Second}); r.Code != control.OK || !r.Underway {
		t.Fatalf("straight: %+v", r)
	}
	d.run(500 * ms)
	if v, ok := d.value("robot.xSpeed"); !ok || v < 0.05 || v > 0.2 {
		t.Errorf("robot.xSpeed is %v, %v; want about 0.1", v, ok)
	}
	if v, ok := d.value("robot.moving"); !ok || v != 1 {
		t.Errorf("robot.moving is %v, %v", v, ok)
	}
	end := d.ended(alice)
	if end.Outcome != motion.Done || math.Abs(end.Pose.X-0.1) > 0.003 || math.Abs(end.Pose.Y) > 0.003 {
		t.Errorf("ended %v at %+v, want done at 0.1 0", end.Outcome, end.Pose)
	}
	if v, ok := d.value("wheelL.turn"); !ok || math.Abs(v*2*math.Pi*0.0145-0.1) > 0.005 {
		t.Errorf("wheelL.turn is %v, %v: want 0.1 m of tread", v, ok)
	}
	if r := d.ask(control.Order{Kind: control.Turn, Owner: alice, A: math.Pi / 2, For: 5 * time.Second}); r.Code != control.OK {
		t.Fatalf("turn: %+v", r)
	}
	end = d.ended(alice)
	if end.Outcome != motion.Done || math.Abs(end.Pose.Theta-math.Pi/2) > 3*degree {
		t.Errorf("turned: %v at %+v, want done at a quarter to the left", end.Outcome, end.Pose)
	}
	if end := d.p.now.Odometers; end.Body < 0.095 || end.Left < 0.1 {
		t.Errorf("odometers %+v", end)
	}
}

// TestHomesAgain: a lift that a hand moved unseen finds its zero again by itself once it rests, but
// not while a program owns it, the robot is calm, or a person stopped the search (VEC-MOT-07,
// VEC-BODY-24).
func TestHomesAgain(t *testing.T) {
	d := newDesk(t).calibrated()
	known := func() bool { return d.p.now.Joints[jointLift].Calibrated }
	unseen := func() {
		d.sense.Motors[spine.Lift].Unseen = true
		d.run(50 * ms)
		d.sense.Motors[spine.Lift].Unseen = false
		if known() {
			t.Fatal("moved unseen, and its zero is known")
		}
	}
	unseen()
	d.until("its zero", known)
	d.run(time.Second)

	lease := d.claims(alice, "lift")
	unseen()
	if d.run(4 * time.Second); known() {
		t.Error("it was searched although a program owns it")
	}
	d.ask(control.Order{Kind: control.Release, Owner: alice, Lease: lease})
	d.until("its zero after the release", known)
	d.run(time.Second)

	d.ask(control.Order{Kind: control.Calm, Owner: alice, On: true})
	unseen()
	if d.run(4 * time.Second); known() {
		t.Error("it was searched although the robot is calm")
	}
	d.ask(control.Order{Kind: control.Calm, Owner: alice})
	d.until("the search", func() bool { return d.p.now.Joints[jointLift].State == motion.Homing })
	d.ask(control.Order{Kind: control.Stop, Owner: alice})
	if d.run(4 * time.Second); known() || d.p.now.Joints[jointLift].State != motion.Free {
		t.Errorf("a search that a person stopped is repeated: %+v", d.p.now.Joints[jointLift])
	}
}

// TestTreadsTogether: what is not written stays as the same owner wrote it last, until a way, a
// stop or another owner; and a time that is too short for the treads is told as what they need
// (GOSTAI-OPEN-03).
func TestTreadsTogether(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel")
	order := func(name string, v float64) control.Order {
		o := set(alice, map[string]float64{name: v})
		o.For = time.Minute
		return o
	}
	for _, tc := range []struct {
		name        string
		o           control.Order
		left, right float64 // that the treads are told then, rad/s
	}{
		{"left", order("wheelL.speed", 1), 1, 0}, {"and right", order("wheelR.speed", 2), 1, 2},
		{"a way", control.Order{Kind: control.Go, Owner: alice, A: 1, For: time.Minute}, 0, 0}, {"right after a way", order("wheelR.speed", 2), 0, 2},
		{"stop", control.Order{Kind: control.Stop, Owner: alice}, 0, 0}, {"both by the body", order("robot.xSpeed", 0.0145), 1, 1},
	} {
		if r := d.ask(tc.o); r.Code != control.OK {
			t.Errorf("%s: %+v", tc.name, r.Code)
		}
		if l, r := d.p.drive.left/0.0145, d.p.drive.right/0.0145; math.Abs(l-tc.left) > 1e-9 || math.Abs(r-tc.right) > 1e-9 {
			t.Errorf("after %s the treads are told %v and %v rad/s, want %v and %v", tc.name, l, r, tc.left, tc.right)
		}
	}
	d.ask(control.Order{Kind: control.Stop, Owner: alice})
	d.run(2 * time.Second)
	for within, takes := range map[time.Duration]time.Duration{100 * ms: 250 * ms, time.Second: time.Second} {
		o := slow(wheelsAt(alice, 0, -0.105, time.Minute), within)
		if r := d.ask(o); r.Code != control.OK || (r.Takes-takes).Abs() > ms {
			t.Errorf("0.105 m/s in %v at most 0.42 m/s²: takes %v, want %v", within, r.Takes, takes)
		}
		d.ask(control.Order{Kind: control.Stop, Owner: alice})
		d.run(2 * time.Second)
	}
}

// TestSpeedsOfTheBody: the base as a whole has speeds and a heading (GOSTAI-IF-15.1). A speed that an order leaves out stays as the same owner set
// it, and the answer has the values that the limits leave (GOSTAI-IF-14.8).
func TestSpeedsOfTheBody(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel")
	most := 0.22 * 0.78 // m/s (VEC-MOT-04, and headroom)
	for _, tc := range []struct {
		name   string
		slot   string
		value  float64
		taken  float64
		within time.Duration
		v, w   float64 // after that time, or half a second
	}{
		{"ahead", "robot.xSpeed", 0.08, 0.08, 0, 0.08, 0},
		{"and to the left", "robot.yawSpeed", 1, 1, 0, 0.08, 1},
		{"right wheel as the left one", "wheelR.speed", (0.08 - 0.024) / 0.0145, (0.08 - 0.024) / 0.0145, 0, 0.056, 0},
		{"as fast as it can", "robot.xSpeed", 9, most, 0, most, 0},
		{"back in 2 s", "robot.xSpeed", -0.1, -0.1, 2 * time.Second, -0.1, 0},
		{"stop", "robot.xSpeed", 0, 0, 0, 0, 0},
	} {
		o := slow(set(alice, map[string]float64{tc.slot: tc.value}), tc.within)
		o.For = 10 * time.Second
		r := d.ask(o)
		if r.Code != control.OK || math.Abs(r.Taken[0]-tc.taken) > 1e-9 || r.Takes != tc.within {
			t.Errorf("%s: %v, takes %v, for %v; want %v", tc.name, r.Code, r.Taken[0], r.Takes, tc.taken)
		}
		if tc.within > 0 {
			d.run(tc.within / 2)
			if v := d.p.now.Want.V; math.Abs(v-(most-0.1)/2) > 0.01 {
				t.Errorf("%s: wants %v m/s after half of the time, want %v", tc.name, v, (most-0.1)/2)
			}
		}
		d.run(max(tc.within/2, 500*ms))
		if tw := d.rep.Base.Twist; math.Abs(tw.V-tc.v) > 0.01 || math.Abs(tw.W-tc.w) > 0.3 {
			t.Errorf("%s: goes at %+v, want %v and %v", tc.name, tw, tc.v, tc.w)
		}
	}
	for _, tc := range []struct {
		name string
		o    control.Order
	}{
		{"a speed of a speed", quick(set(alice, map[string]float64{"robot.xSpeed": 0.1}), 1)},
		{"beyond every number", set(alice, map[string]float64{"robot.yawSpeed": math.Inf(1)})},
		{"a heading and a speed", set(alice, map[string]float64{"robot.yaw": 1, "robot.yawSpeed": 1})},
		{"a heading in a time", slow(set(alice, map[string]float64{"robot.yaw": 1}), time.Second)},
		{"a heading that is no number", set(alice, map[string]float64{"robot.yaw": math.NaN()})},
	} {
		tc.o.For = time.Second
		if r := d.ask(tc.o); r.Code != control.Invalid {
			t.Errorf("%s: %v, want invalid", tc.name, r.Code)
		}
	}
}

// TestHeading: a heading is reached by the shorter way, and the result of a turn has the angle that was made (GOSTAI-IF-15.1).
func TestHeading(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel")
	yaw := func(v float64) control.Result {
		o := set(alice, map[string]float64{"robot.yaw": v})
		o.For = 10 * time.Second
		return d.ask(o)
	}
	for _, to := range []float64{3, -3, 3 + 4*math.Pi} {
		before, way := d.rep.Base.Pose.Theta, d.rep.Totals[0]
		if r := yaw(to); r.Code != control.OK || !r.Underway {
			t.Fatalf("to %v: %+v", to, r)
		}
		end := d.ended(alice)
		off, mm := robot.WrapPi(end.Pose.Theta-to), 24*math.Abs(robot.WrapPi(to-before)) // of the left tread
		if way = d.rep.Totals[0] - way; end.Outcome != motion.Done || math.Abs(off) > 3*degree || math.Abs(way-mm) > 2 {
			t.Errorf("to %v: %v, from %v to %v over %v mm, want %v mm", to, end.Outcome, before, end.Pose.Theta, way, mm)
		}
	}
	drive := control.Order{Kind: control.Go, Owner: alice, A: -0.1, For: 5 * time.Second}
	if r := d.ask(drive); r.Code != control.OK {
		t.Fatalf("back: %+v", r)
	}
	d.run(300 * ms)
	if r := yaw(d.rep.Base.Pose.Theta); r.Code != control.OK || r.Underway {
		t.Errorf("a heading that it has: %+v", r)
	}
	if end := d.ended(alice); end.Outcome != motion.Cancelled || end.Moved > -0.01 || end.Moved < -0.06 {
		t.Errorf("the drive before ended %v after %v m, want cancelled on the way", end.Outcome, end.Moved)
	}
	if r := d.ask(drive); r.Code != control.OK {
		t.Fatalf("back again: %+v", r)
	}
	if end := d.ended(alice); end.Outcome != motion.Done || math.Abs(end.Moved+0.1) > 0.005 {
		t.Errorf("the drive ended %v after %v m, want done after -0.1", end.Outcome, end.Moved)
	}
	if r := d.ask(control.Order{Kind: control.Turn, Owner: alice, A: -4, For: 20 * time.Second}); r.Code != control.OK {
		t.Fatalf("turn: %+v", r)
	}
	if end := d.ended(alice); end.Outcome != motion.Done || math.Abs(end.Moved+4) > 3*degree {
		t.Errorf("the turn ended %v after %v rad, want done after -4", end.Outcome, end.Moved)
	}
}

// TestDeadline: treads do not start without a deadline, and end with it (part of VEC-MCT-14).
func TestDeadline(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel")
	for _, o := range []control.Order{
		wheelsAt(alice, 0.1, 0.1, 0), {Kind: control.Go, A: 1, For: -1}, {Kind: control.Turn, A: 1, For: control.MaxFor + 1},
		wheelsAt(alice, math.NaN(), 0, time.Second),
		{Kind: control.Go, A: math.Inf(1), For: time.Second}, {Kind: control.Go, A: 0, For: time.Second}, {Kind: 50, For: time.Second}, {Kind: 0},
	} {
		o.Owner = alice
		if r := d.ask(o); r.Code != control.Invalid || d.duties() != [4]float64{} {
			t.Errorf("%+v: %+v, duties %v; want invalid", o, r, d.duties())
		}
	}
	if r := d.ask(wheelsAt(alice, 0.1, 0.1, 400*ms)); r.Code != control.OK {
		t.Fatalf("wheels: %+v", r)
	}
	began := d.f.Now
	if end := d.ended(alice); end.Outcome != motion.Expired || d.f.Now-began > 450*ms {
		t.Errorf("wheels ended %v after %v, want expired after 400ms", end.Outcome, d.f.Now-began)
	}
	d.run(400 * ms)
	if d.duties() != [4]float64{} || d.rate[0] > 0.1 {
		t.Errorf("duties %v, left wheel at %v rad/s long after the end", d.duties(), d.rate[0])
	}
	if r := d.ask(control.Order{Kind: control.Go, Owner: alice, A: 5, For: 600 * ms}); r.Code != control.OK {
		t.Fatalf("straight: %+v", r)
	}
	if end := d.ended(alice); end.Outcome != motion.Expired || end.Pose.X > 0.2 {
		t.Errorf("a path ended %v at %+v, want expired", end.Outcome, end.Pose)
	}
}

// TestOneOwner: two claimants of the wheels. The second is refused, a higher one takes over and gives back, and no owner moves what another holds.
func TestOneOwner(t *testing.T) {
	d := newDesk(t).calibrated()
	if r := d.ask(control.Order{Kind: control.Go, Owner: alice, A: 0.1, For: time.Second}); r.Code != control.NotHeld || r.By != 0 {
		t.Errorf("a drive without a claim: %+v", r)
	}
	lease := d.claims(alice, "wheelL", "wheelR", "headPitch")
	r := d.ask(control.Order{Kind: control.Claim, Owner: bob, Set: d.set("wheelR"), Priority: claim.Person})
	if r.Code != control.Busy || r.By != alice || r.Priority != claim.Person || d.c.Model().Tree.Actuators()[r.Actuator].Compact() != "wheelR" {
		t.Errorf("a second claim: %+v", r)
	}
	for _, o := range []control.Order{
		wheelsAt(bob, 0.1, 0, time.Second), {Kind: control.Go, A: 0.1, For: time.Second}, {Kind: control.Turn, A: 0.1, For: time.Second}, headTo(bob, 0.1),
	} {
		o.Owner = bob
		if r := d.ask(o); r.Code != control.NotHeld || r.By != alice || d.duties() != [4]float64{} {
			t.Errorf("order %d of another owner: %+v, duties %v", o.Kind, r, d.duties())
		}
	}
	if r := d.ask(wheelsAt(alice, 0.1, 0.1, 10*time.Second)); r.Code != control.OK {
		t.Fatalf("wheels: %+v", r)
	}
	d.run(300 * ms)
	took := d.ask(control.Order{Kind: control.Claim, Owner: bob, Set: d.set("wheelL"), Priority: claim.Safety, TTL: time.Second})
	if took.Code != control.OK {
		t.Fatalf("a higher claim: %+v", took)
	}
	if end := d.ended(alice); end.Outcome != motion.Cancelled {
		t.Errorf("the lower one's drive ended %v, want cancelled", end.Outcome)
	}
	d.run(400 * ms)
	if d.duties() != [4]float64{} {
		t.Errorf("duties %v after the wheels changed hands", d.duties())
	}
	if r := d.ask(wheelsAt(alice, 0.1, 0.1, time.Second)); r.Code != control.NotHeld || r.By != bob {
		t.Errorf("while another owner has one wheel: %+v", r)
	}
	d.run(time.Second) // the higher claim expires
	if r := d.ask(wheelsAt(alice, 0.1, 0.1, time.Second)); r.Code != control.OK {
		t.Errorf("after it was given back: %+v", r)
	}
	if r := d.ask(control.Order{Kind: control.Release, Owner: alice, Lease: lease}); r.Code != control.OK {
		t.Errorf("release: %+v", r)
	}
	if end := d.ended(alice); end.Outcome != motion.Cancelled {
		t.Errorf("what was under way ended %v, want cancelled", end.Outcome)
	}
	if d.rep.Owners[r.Actuator].Owner != 0 || d.rep.At != d.f.Now {
		t.Errorf("report of %v, owner %+v", d.rep.At, d.rep.Owners[r.Actuator])
	}
}

// TestOwnerDies: the driver has gone, so the treads stop and the head lets go.
func TestOwnerDies(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel", "robot.body.head")
	d.ask(headTo(alice, -20*degree))
	if end := d.ended(alice); end.Outcome != motion.Done || d.p.now.Joints[jointHead].State != motion.Holding {
		t.Fatalf("head: %v, %v", end.Outcome, d.p.now.Joints[jointHead].State)
	}
	if v, ok := d.value("headPitch.val"); !ok || math.Abs(v+20*degree) > degree || math.Abs(d.angle[spine.Head]-20*degree) > degree {
		t.Errorf("headPitch is %v, %v, really %v; want -20 degrees, raised by 20", v/degree, ok, d.angle[spine.Head]/degree)
	}
	d.ask(wheelsAt(alice, 0.1, 0.1, 10*time.Second))
	d.run(300 * ms)
	d.c.Post(control.Order{Kind: control.Drop, Owner: alice})
	d.run(300 * ms)
	if d.duties() != [4]float64{} || d.p.now.Joints[jointHead].State != motion.Free {
		t.Errorf("duties %v, head %v, 300 ms after the owner died", d.duties(), d.p.now.Joints[jointHead].State)
	}
	d.claims(bob, "robot.body.wheel", "robot.body.head")
}

// TestLift: to a height; let go, a hand that moves it is seen, by how far or, while its encoder is off, that it did (part of VEC-MCT-09).
func TestLift(t *testing.T) {
	d := newDesk(t).calibrated()
	lease := d.claims(alice, "lift")
	d.ask(quick(liftTo(alice, 0.07), 2))
	if end := d.ended(alice); end.Outcome != motion.Done {
		t.Fatalf("lift: %v", end.Outcome)
	}
	if v, ok := d.value("arm.position"); !ok || math.Abs(v-0.07) > 0.002 {
		t.Errorf("arm.position is %v, %v; want 0.07", v, ok)
	}
	d.ask(control.Order{Kind: control.Release, Owner: alice, Lease: lease})
	d.until("that it lets go", func() bool { return d.p.now.Joints[jointLift].State == motion.Free })
	for _, height := range []float64{0.09, 0.04} {
		d.angle[spine.Lift] = liftAngle(height)
		d.run(100 * ms)
		if v, ok := d.value("arm.position"); !ok || math.Abs(v-height) > 0.002 || d.duties()[spine.Lift] != 0 {
			t.Errorf("moved by a hand to %v m it is at %v, %v, with duty %v", height, v, ok, d.duties()[spine.Lift])
		}
	}
	d.sense.Motors[spine.Lift].Unseen = true
	d.run(100 * ms)
	if _, ok := d.value("arm.position"); ok || d.rep.Status != 0x400000 {
		t.Errorf("moved unseen: its place is known %v, status %#x", ok, d.rep.Status)
	}
}

// TestJointsInTime: a joint is there when it was told to, by the way's mean speed of a lift in metres a second, and what the limits do not let be is
// told (GOSTAI-OPEN-03).
func TestJointsInTime(t *testing.T) {
	fresh := newDesk(t)
	fresh.claims(alice, "lift", "headPitch")
	if r := fresh.ask(slow(headTo(alice, 0.1), time.Second)); r.Code != control.OK || !r.Underway || r.Takes != 0 || !r.Homing {
		t.Errorf("a head that looks for its zero: %+v", r)
	}
	d := newDesk(t).calibrated()
	d.claims(alice, "lift", "headPitch")
	const most = 10 * 0.78 // rad/s (VEC-MOT-01, and headroom)
	for name, tc := range map[string]struct {
		back, o control.Order
		takes   time.Duration // as told; 0: nothing
		speed   float64       // as told
		took    time.Duration // between the answer and there
	}{
		"head in 2 s": {headTo(alice, 0), slow(headTo(alice, 0.3), 2*time.Second), 2 * time.Second, 0, 2 * time.Second},
		"head in turns": {headTo(alice, 0), slow(set(alice, map[string]float64{"headPitch.turn": 0.3 / (2 * math.Pi)}), 2*time.Second),
			2 * time.Second, 0, 2 * time.Second},
		"lift in 2 s":            {liftTo(alice, 0.035), slow(liftTo(alice, 0.085), 2*time.Second), 2 * time.Second, 0, 2 * time.Second},
		"head too soon":          {headTo(alice, 0), slow(headTo(alice, 0.3), ms), 534 * ms, 0, 534 * ms},
		"head at 0.2 rad/s":      {headTo(alice, 0), quick(headTo(alice, 0.3), 0.2), 0, 0.2, 1548 * ms},
		"head at any speed":      {headTo(alice, 0), quick(headTo(alice, 0.3), 99), 0, most, 534 * ms},
		"lift at 0.05 m/s":       {liftTo(alice, 0.035), quick(liftTo(alice, 0.085), 0.05), 0, 0.05, 1180 * ms},
		"lift at any speed":      {liftTo(alice, 0.035), quick(liftTo(alice, 0.085), 99), 0, 0.4857, 875 * ms},
		"lift slowly, near half": {liftTo(alice, 0.055), quick(liftTo(alice, 0.045), 0.005), 0, 0.005, 2020 * ms},
	} {
		d.ask(tc.back)
		d.ended(alice)
		r := d.ask(tc.o)
		begun := d.f.Now
		if r.Code != control.OK || (r.Takes-tc.takes).Abs() > 20*ms || math.Abs(r.Speed-tc.speed) > 5e-3 || r.Homing {
			t.Errorf("%s: %+v, want %v and %v", name, r, tc.takes, tc.speed)
		}
		if end := d.ended(alice); end.Outcome != motion.Done || d.f.Now-begun < tc.took-20*ms || d.f.Now-begun > tc.took+250*ms {
			t.Errorf("%s: %v after %v, want done after %v", name, end.Outcome, d.f.Now-begun, tc.took)
		}
	}
	// Two writers of one owner: the last wins, from where the joint is, and the first hears that (GOSTAI-OPEN-03). Among owners claims decide
	// (TestOneOwner).
	d.ask(slow(headTo(alice, -0.5), 2*time.Second))
	d.run(time.Second)
	speed := d.rate[spine.Head]
	if r := d.ask(slow(headTo(alice, 0.3), time.Second)); r.Code != control.OK || (r.Takes-time.Second).Abs() > 20*ms || math.Abs(speed) < 0.2 {
		t.Errorf("a second write while the head goes at %v rad/s: %+v", speed, r)
	}
	if first := d.ended(alice); first.Outcome != motion.Cancelled {
		t.Errorf("the first write ended %v, want cancelled", first.Outcome)
	}
	if v, ok := d.value("headPitch.angle"); !ok || v > 0 {
		t.Errorf("the head is at %v, %v already", v, ok)
	}
	if second := d.ended(alice); second.Outcome != motion.Done {
		t.Errorf("the second write ended %v", second.Outcome)
	}
	if v, ok := d.value("headPitch.angle"); !ok || math.Abs(v-0.3) > 0.02 {
		t.Errorf("the head is at %v, %v; want what was written last, 0.3", v, ok)
	}
	for _, o := range []control.Order{
		slow(headTo(alice, 0), -1), quick(slow(headTo(alice, 0), time.Second), 1), quick(liftTo(alice, 0.05), -1), headTo(alice, math.NaN()),
	} {
		if r := d.ask(o); r.Code != control.Invalid {
			t.Errorf("%+v: %+v", o, r)
		}
	}
	d.p.now.Joints[jointLift].Angle = liftAngle(0.06)
	if near, far := d.p.scale(jointLift, liftAngle(0.06)), d.p.scale(jointLift, liftAngle(0.06002)); math.Abs(near-far) > 0.1 || near < 14 || near > 17 {
		t.Errorf("at the lift's own height 1 m is %v rad, and beside it %v", near, far)
	}
}

// TestReasonsToStop: each takes the power away in the step that shows it, what was ordered is over, orders are refused while it holds, and nothing
// moves again by itself (VEC-MCT-15, VEC-BODY-33, VEC-IO-22, VEC-PWR-10).
func TestReasonsToStop(t *testing.T) {
	for name, tc := range map[string]struct {
		begin, end func(d *desk)
		steps      int // until it counts
		reason     motion.Reason
	}{
		"halt":  {func(d *desk) { d.f.Halted = true }, func(d *desk) { d.f.Halted = false }, 1, motion.Halted},
		"stale": {func(d *desk) { d.f.Stale = true }, func(d *desk) { d.f.Stale = false }, 1, motion.Watchdog},
		// 50 ms without a frame (VEC-BODY-33).
		"link": {func(d *desk) { d.silent = true }, func(d *desk) { d.silent = false }, 10, motion.Link},
		// Two frames (VEC-IO-20).
		"cliff": {func(d *desk) { d.sense.Cliffs[spine.FrontLeft] = 0.01 }, func(d *desk) { d.sense.Cliffs[spine.FrontLeft] = 0.6 }, 3, motion.Cliff},
		"lifted": {func(d *desk) { d.sense.Cliffs = [4]float64{} },
			func(d *desk) { d.sense.Cliffs = [4]float64{0.6, 0.6, 0.6, 0.6} }, 3, motion.Lifted},
		// The floor sensors see something, and yet it does not stand: what the blend of its sensors says of that is believed after 250 ms (VEC-IMU-06,
		// VEC-IMU-08).
		"on its side": {func(d *desk) { d.up = [3]float64{0, sense.Gravity, 0} }, func(d *desk) { d.up = [3]float64{0, 0, sense.Gravity} },
			120, motion.Lifted},
		// Believed after a second.
		"hot":          {func(d *desk) { d.sense.Temperature = 51 }, func(d *desk) { d.sense.Temperature = 25 }, 197, motion.Halted},
		"epoch":        {func(d *desk) { d.sense.Epoch++; d.zero = d.angle }, func(*desk) {}, 1, 0},
		"opened again": {func(d *desk) { d.f.Run++; d.zero = d.angle }, func(*desk) {}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t).calibrated()
			if name == "on its side" {
				d.angle[spine.Head], d.up = 0, [3]float64{0, 0, sense.Gravity}
				d.run(time.Second)
			}
			d.claims(alice, "robot.body.wheel")
			if r := d.ask(wheelsAt(alice, 0.1, 0.1, 20*time.Second)); r.Code != control.OK {
				t.Fatalf("wheels: %+v", r)
			}
			d.run(400 * ms)
			if d.duties()[0] <= 0 {
				t.Fatalf("duties %v: it should drive", d.duties())
			}
			tc.begin(d)
			for range tc.steps {
				d.step()
			}
			if d.duties() != [4]float64{} {
				t.Fatalf("duties %v in the step that counts, stop %v", d.duties(), d.p.now.Stop)
			}
			if tc.reason != 0 && d.p.now.Stop&tc.reason == 0 {
				t.Errorf("stop %b, want %b in it", d.p.now.Stop, tc.reason)
			}
			if end := d.ended(alice); end.Outcome != motion.Stopped || end.Stop&tc.reason != tc.reason {
				t.Errorf("it ended %v because of %b, want stopped because of %b", end.Outcome, end.Stop, tc.reason)
			}
			if tc.reason != 0 {
				if r := d.ask(wheelsAt(alice, 0.1, 0.1, time.Second)); r.Code != control.Refused || r.Stop&tc.reason == 0 {
					t.Errorf("an order meanwhile: %+v", r)
				}
			}
			tc.end(d)
			for range 2 * time.Second / period {
				if d.step(); d.duties()[0] != 0 || d.duties()[1] != 0 {
					t.Fatalf("treads move by themselves: %v", d.duties())
				}
			}
			if r := d.ask(wheelsAt(alice, 0.1, 0.1, time.Second)); r.Code != control.OK {
				t.Errorf("an order after it: %+v", r)
			}
		})
	}
}

func TestStopNeedsNoClaim(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel", "robot.body.head")
	d.ask(wheelsAt(alice, 0.1, 0.1, 10*time.Second))
	d.ask(quick(headTo(alice, -30*degree), 0.1))
	d.run(300 * ms)
	if r := d.ask(control.Order{Kind: control.Stop, Owner: bob}); r.Code != control.OK {
		t.Errorf("stop: %+v", r)
	}
	for range 2 {
		if end := d.ended(alice); end.Outcome != motion.Cancelled {
			t.Errorf("ended %v, want cancelled", end.Outcome)
		}
	}
	d.run(300 * ms)
	if d.duties() != [4]float64{} {
		t.Errorf("duties %v after a stop", d.duties())
	}
}

// TestCalibration: VEC-MOT-07. A body is calibrated when it is opened, not after a halt. One that starts its counts again is calibrated again,
// because its old zero would drive the head into its stop.
func TestCalibration(t *testing.T) {
	d := newDesk(t)
	d.step()
	if _, ok := d.value("headPitch.val"); ok {
		t.Error("headPitch is known before it was calibrated")
	}
	d.calibrated()
	for name, motor := range map[string]int{"headPitch.val": spine.Head} {
		if v, ok := d.value(name); !ok || math.Abs(-v-d.angle[motor]) > degree {
			t.Errorf("%s is %v, %v; really %v", name, v, ok, -d.angle[motor])
		}
	}
	if n := d.owned(0); n != len(d.rep.Owners) {
		t.Errorf("%d actuators still have an owner", len(d.rep.Owners)-n)
	}
	d.angle[spine.Head] = 30 * degree
	d.zero = d.angle
	d.f.Run++ // opened again; the board has lost its counts and the driver's epoch is the same number
	d.step()
	if _, ok := d.value("headPitch.val"); ok || d.p.now.Joints[jointHead].Calibrated {
		t.Error("the head's place is believed although the body started its counts again")
	}
	d.calibrated()
	if v, ok := d.value("headPitch.val"); !ok || math.Abs(-v-d.angle[spine.Head]) > degree {
		t.Errorf("headPitch is %v, %v; really %v", v, ok, -d.angle[spine.Head])
	}

	d = newDesk(t)
	d.f.Halted = true
	d.run(100 * ms)
	d.f.Halted = false
	for range time.Second / period {
		if d.step(); d.duties() != [4]float64{} {
			t.Fatal("it calibrates after a halt without an order")
		}
	}

	d = newDesk(t)
	d.run(100 * ms)
	d.silent = true // a gap stops it, and it is begun again (VEC-MOT-07)
	d.run(100 * ms)
	if d.duties() != [4]float64{} {
		t.Errorf("duties %v while the body is silent", d.duties())
	}
	d.silent = false
	d.calibrated()

	d = newDesk(t)
	d.run(100 * ms)
	d.f.Halted = true // a halt stops it for good
	d.run(100 * ms)
	d.f.Halted = false
	for range time.Second / period {
		if d.step(); d.duties() != [4]float64{} {
			t.Fatal("it continues to calibrate after a halt")
		}
	}

	d = newDesk(t)
	d.run(200 * ms)
	d.claims(alice, "robot.body.head") // a person comes first
	d.run(100 * ms)
	if d.duties()[spine.Head] != 0 {
		t.Errorf("head at %v although a person has it", d.duties()[spine.Head])
	}
	d.ask(headTo(alice, 0))
	if end := d.ended(alice); end.Outcome != motion.Done || math.Abs(d.angle[spine.Head]) > degree {
		t.Errorf("head: %v at %v", end.Outcome, d.angle[spine.Head])
	}
}

func TestLights(t *testing.T) {
	d := newDesk(t)
	d.step()
	if v, ok := d.value("led[1].g"); !ok || v != 0 {
		t.Errorf("led[1].g is %v, %v; opening a body darkens it", v, ok)
	}
	all := [4]vectordriver.Light{1: {G: 255}}
	if r := d.ask(lightsTo(alice, all)); r.Code != control.OK || r.Underway || d.act.Lights != all {
		t.Errorf("%+v, lights %v", r, d.act.Lights)
	}
	if v, ok := d.value("led[1].val"); !ok || v != 1 {
		t.Errorf("led[1].val is %v, %v", v, ok)
	}
	d.claims(bob, "led[2]")
	all[1].G = 9
	if r := d.ask(lightsTo(alice, all)); r.Code != control.NotHeld || r.By != bob || d.act.Lights[1].G != 255 {
		t.Errorf("one light is another owner's: %+v, lights %v", r, d.act.Lights)
	}
	if r := d.ask(lightsTo(bob, all)); r.Code != control.OK || d.act.Lights != all {
		t.Errorf("its owner: %+v, lights %v", r, d.act.Lights)
	}

	// One colour of one light, which no other owner holds, leaves all others as they are. What the light shows of it is told (GOSTAI-IF-14.8).
	all[1].B = 128
	if r := d.ask(set(alice, map[string]float64{"led[1].b": 0.5})); r.Code != control.OK || d.act.Lights != all || r.Taken[0] != 128./255 {
		t.Errorf("one colour: %+v, lights %v", r, d.act.Lights)
	}
	for _, v := range []float64{-7, 7} {
		if r := d.ask(set(alice, map[string]float64{"led[1].b": v})); r.Code != control.OK || r.Taken[0] != min(max(v, 0), 1) {
			t.Errorf("a colour of %v: %+v", v, r)
		}
	}
	before := d.act.Lights
	if r := d.ask(set(alice, map[string]float64{"led[1].b": 0, "led[2].r": 0})); r.Code != control.NotHeld || r.By != bob {
		t.Errorf("a colour of another owner's light: %+v", r)
	}
	for name, o := range map[string]control.Order{
		"one colour is no number": set(alice, map[string]float64{"led[0].b": 1, "led[1].b": math.NaN()}),
		"a time":                  slow(set(alice, map[string]float64{"led[1].b": 0}), time.Second),
		"a speed":                 quick(set(alice, map[string]float64{"led[1].b": 0}), 1),
	} {
		if r := d.ask(o); r.Code != control.Invalid || d.act.Lights != before {
			t.Errorf("%s: %+v, lights %v, want %v", name, r, d.act.Lights, before)
		}
	}
}

// TestIndicators: part of VEC-IO-30: the lights say that it charges, cannot, needs its charger, is hot or goes off, each by its own colours, where no program
// uses or owns them.
func TestIndicators(t *testing.T) {
	d := newDesk(t).calibrated()
	red, green, teal := vectordriver.Light{R: 255}, vectordriver.Light{G: 96}, vectordriver.Light{G: 128, B: 128}
	shows := func(what string, want ...vectordriver.Light) {
		t.Helper()
		if got := d.act.Lights; got != [4]vectordriver.Light(want) {
			t.Errorf("%s: lights %v, want %v", what, got, want)
		}
	}
	dark := vectordriver.Light{}
	shows("all is well", dark, dark, dark, dark)
	d.sense.Power |= body.OnCharger | body.Charging
	d.run(time.Second)
	shows("charging", dark, dark, dark, green)
	d.ask(lightsTo(alice, [4]vectordriver.Light{{R: 8}, {}, {}, {B: 9}}))
	shows("a program lights it", vectordriver.Light{R: 8}, dark, dark, vectordriver.Light{B: 9})
	d.ask(lightsTo(alice, [4]vectordriver.Light{}))
	shows("the program darkens it", dark, dark, dark, green)
	lease := d.claims(alice, "led[3]")
	d.step()
	shows("a program owns it", dark, dark, dark, dark)
	d.ask(control.Order{Kind: control.Release, Owner: alice, Lease: lease})

	d.sense.Power &^= body.Charging
	d.sense.BatteryVolts = 3.56
	d.run(11 * time.Second)
	shows("it does not charge although it should", teal, teal, teal, teal)
	d.sense.Power &^= body.OnCharger
	d.run(30 * time.Second)
	shows("it needs its charger", dark, dark, dark, red)
	d.sense.BatteryVolts = 3.9
	d.run(30 * time.Second)
	shows("all is well again", dark, dark, dark, dark)
	d.sense.Temperature = 52
	d.run(2 * time.Second)
	shows("hot", dark, dark, dark, red)
	d.sense.Temperature = 57
	d.run(2 * time.Second)
	shows("it goes off", red, red, red, red)
}

// TestFeltAndStatus: what the senses notice is an event (part of VEC-IO-02, 13, 14, 23, VEC-BODY-26, VEC-MCT-10), and the bits of RobotStatus are those that
// hold (VEC-IO-20, VEC-MOT-07, VEC-PWR-20).
func TestFeltAndStatus(t *testing.T) {
	d := newDesk(t)
	status := func(what string, want uint32) {
		t.Helper()
		if d.rep.Status != want {
			t.Errorf("%s: status %#x, want %#x", what, d.rep.Status, want)
		}
	}
	d.step()
	status("before it is calibrated", 0x600000)
	d.run(100 * ms)
	status("while it looks for its stops", 0x620000) // VEC-IMU-14
	d.calibrated()
	d.run(100 * ms)
	status("at rest", 0)
	d.sense.Cliffs[spine.BackLeft] = 0
	d.run(100 * ms)
	status("at an edge", 0x4000)
	d.sense.Cliffs[spine.BackLeft] = 0.6
	d.ask(control.Order{Kind: control.Calm, Owner: alice, On: true})
	d.run(100 * ms)
	status("calm", 0x400)

	d.sense.Cliffs[spine.FrontLeft] = 0.4 // a dark line
	d.run(100 * ms)
	touched := func(level float64, long time.Duration) {
		d.sense.Touch = level
		for range long / period {
			d.sense.TouchAt = d.f.Now
			d.step()
		}
	}
	touched(0.1, time.Second)
	touched(0.4, 3*time.Second)
	if !d.p.known.Petting {
		t.Error("the petting is not noticed")
	}
	touched(0.1, time.Second)
	d.sense.Power |= body.OnCharger
	touched(0.1, time.Second)
	press := func(long time.Duration) {
		d.sense.Button = true
		d.run(long)
		d.sense.Button = false
		d.run(700 * ms)
	}
	press(100 * ms)
	d.sense.Button = true
	d.run(100 * ms)
	d.sense.Button = false
	d.run(100 * ms)
	press(100 * ms)
	press(3 * time.Second)
	for range 45 { // calm: a third counts
		d.sense.ProxMetres, d.sense.ProxAt = 0.01, d.f.Now
		d.run(33 * ms)
	}
	if petted := d.rep.Totals[3]; petted < 1800 || petted > 2500 {
		t.Errorf("petted for %v ms, want about 2000", petted)
	}
	want := felt{
		"calibrate_motors": 1, "head_motor_calibrated": 1, "lift_motor_calibrated": 1, "robot.touched": 1, "robot.petted": 1,
		"touch_sensor.activate_charger_mode_check": 1, "touch_sensor.baseline_fast_calibration_finished": 2,
		"touch_sensor.charger_mode_check.no_baseline_change": 1, "robot.cliff_detected": 1, "robot.line_seen": 1, "hal.invalid_prox_reading_report": 1,
		"robot.button single": 1, "robot.button double": 1, "robot.button mute": 1,
	}
	if !maps.Equal(d.felt, want) {
		t.Errorf("felt %v\nwant %v", d.felt, want)
	}
}

// TestValues: the tree has the values of the senses.
func TestValues(t *testing.T) {
	d := newDesk(t).calibrated()
	want := func(name string, v float64) {
		t.Helper()
		if got, ok := d.value(name); !ok || math.Abs(got-v) > 1e-6 && got != v {
			t.Errorf("%s is %v, %v; want %v", name, got, ok, v)
		}
	}
	d.sense.Touch, d.sense.TouchAt = 0.1, d.f.Now
	for range time.Second / period {
		d.sense.TouchAt = d.f.Now
		d.step()
	}
	want("touch.val", 0)
	d.sense.Touch = 0.4
	for range time.Second / period {
		d.sense.TouchAt = d.f.Now
		d.step()
	}
	want("touch.val", 1)
	ahead := func(metres float64) {
		for range 5 {
			d.sense.ProxMetres, d.sense.ProxAt = metres, d.f.Now
			d.run(33 * ms)
		}
	}
	d.sense.ProxSignal, d.sense.ProxAmbient = 0.1, 1 // 0.1 / sqrt(1) of 20: too dim to count
	ahead(0.4)
	if d.p.known.Prox.Found {
		t.Errorf("a dim echo: %+v", d.p.known.Prox)
	}
	d.sense.ProxSignal = 10
	ahead(0.4)
	want("laser.val", 0.4)
	if p := d.p.known.Prox; !p.Found || math.Abs(p.Quality-0.5) > 1e-9 {
		t.Errorf("%+v, want it found with quality 0.5 (VEC-IO-24)", p)
	}
	ahead(8.19) // VEC-IO-24: free sight, as the sensor says it
	want("laser.val", math.Inf(1))
	if p := d.p.known.Prox; !p.Unobstructed || p.Found {
		t.Errorf("free sight: %+v", p)
	}
	ahead(0.3)
	want("laser.val", 0.3)
	want("cliffFL.detected", 0)
	d.sense.Cliffs[spine.BackRight] = 0
	d.run(100 * ms)
	want("cliffBR.detected", 1)
	want("battery.voltage", 3.9)
	want("temperature.val", 25)
}

// TestGoingOff: every cause ends motion at once and is in the report (VEC-PWR-40).
func TestGoingOff(t *testing.T) {
	for name, tc := range map[string]struct {
		begin func(d *desk)
		after time.Duration
		off   power.Off
		cause power.Cause
	}{
		"too hot":  {func(d *desk) { d.sense.Temperature = 56 }, 1100 * ms, power.Clean, power.BatteryCriticalTemp},
		"burning":  {func(d *desk) { d.sense.Temperature = 70 }, 1100 * ms, power.Cut, power.BatteryCriticalTemp},
		"critical": {func(d *desk) { d.sense.Power |= body.BelowCritical }, 1100 * ms, power.Clean, power.BatteryCriticalVolt},
		"imminent": {func(d *desk) { d.sense.Power |= body.ShutdownImminent }, 10 * ms, power.Clean, power.BatteryCriticalVolt},
		"empty":    {func(d *desk) { d.sense.BatteryVolts = 3.3 }, 15 * time.Second, power.Clean, power.BatteryCriticalVolt},
		"button": {func(d *desk) {
			d.sense.Button = true
			d.run(5500 * ms)
			d.sense.Button = false
		}, 100 * ms, power.Clean, power.ButtonPress},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t).calibrated()
			d.claims(alice, "robot.body.wheel")
			tc.begin(d)
			d.run(tc.after)
			if s := d.rep.Power.Shutdown; s.Off != tc.off || s.Cause != tc.cause {
				t.Errorf("off %+v, want %v because of %v", s, tc.off, tc.cause)
			}
			if got := d.ask(control.Order{Kind: control.Go, Owner: alice, A: 0.1, For: time.Second}); got.Code != control.Refused {
				t.Errorf("an order on the way down: %+v", got)
			}
		})
	}
}

// random returns an order of any kind that an owner may give, with numbers that a body can follow.
func random(rng *rand.Rand) control.Order {
	kinds := [...]control.Kind{
		control.Claim, control.Renew, control.Release, control.Drop, control.Set, control.Set, control.Set, control.Set, control.Go, control.Turn,
		control.Stop,
	}
	o := control.Order{
		Kind: kinds[rng.IntN(len(kinds))], Priority: claim.Priority(10 * (1 + rng.IntN(6))), TTL: time.Duration(rng.IntN(5000)) * ms,
		Lease: uint64(rng.IntN(500)), A: rng.NormFloat64() / 5, Speed: max(0, rng.NormFloat64()/5), For: time.Duration(rng.IntN(4000)) * ms,
	}
	if o.Kind != control.Set {
		return o
	}
	switch rng.IntN(4) {
	case 0:
		return headTo(0, o.A)
	case 1:
		return quick(liftTo(0, o.A), o.Speed)
	case 2:
		o = set(0, map[string]float64{"robot.xSpeed": o.A, "robot.yawSpeed": 20 * o.A})
	default:
		o = wheelsAt(0, o.A, rng.NormFloat64()/5, 0)
	}
	o.For = time.Duration(rng.IntN(4000)) * ms
	return o
}

// TestRandomLife plays simulated hours of three owners who claim, drive, die and are interrupted. At every step: no power while a reason to stop
// holds, within the time that its row gives (cliff: two frames, VEC-IO-20; fall: 80 ms, VEC-IMU-07; link: 50 ms, VEC-BODY-33); none afterwards
// without an order; what is under way is its owner's; none for long in what has no owner; speeds within limits.
func TestRandomLife(t *testing.T) {
	hours, seeds := 0.2, uint64(3)
	switch {
	case os.Getenv("KENNEL_SOAK") == "1":
		hours, seeds = 5, 20
	case testing.Short():
		hours = 0.1
	}
	for seed := range seeds {
		d := newDesk(t)
		rng := rand.New(rand.NewPCG(seed, 6))
		owners := []claim.Owner{alice, bob, carol}
		sets := []claim.Set{d.set("robot.body.wheel"), d.set("headPitch"), d.set("arm"), d.set("robot.body"), d.set("wheelL")}
		var until time.Duration // of the trouble of the moment
		var orphan [4]time.Duration
		var edge, lifted, fall time.Duration // since when
		ordered := false                     // the treads, since they had to stop
		d.up = [3]float64{0, 0, sense.Gravity}
		motors := [4]claim.Set{d.set("wheelL"), d.set("wheelR"), d.set("arm"), d.set("headPitch")}
		holder := func(motor int) (o claim.Owner) {
			for a, by := range d.rep.Owners {
				if motors[motor].Has(a) {
					o = by.Owner
				}
			}
			return o
		}
		drives, driver := map[uint32]bool{}, claim.Owner(0) // the requests for the treads, and the owner of the newest motion
		for range int(hours * float64(time.Hour/period)) {
			if rng.IntN(20) == 0 {
				o := random(rng)
				o.Owner, o.Set, o.Request = owners[rng.IntN(3)], sets[rng.IntN(len(sets))], uint32(d.f.Step)
				if o.Kind == control.Go || o.Kind == control.Turn || o.N > 0 && d.c.Model().Slots[o.Goals[0].Slot] == wheels {
					ordered, drives[o.Request] = true, true
				}
				d.c.Post(o)
			}
			if until == 0 && rng.IntN(1500) == 0 {
				until = d.f.Now + time.Duration(rng.IntN(500))*ms
				switch rng.IntN(7) {
				case 0:
					d.f.Halted = true
				case 1:
					d.silent = true
				case 2:
					d.sense.Cliffs[rng.IntN(4)] = 0
				case 3:
					d.sense.Cliffs = [4]float64{}
				case 4:
					d.sense.Epoch++
					d.zero, ordered = d.angle, false
				case 5:
					d.f.Run++
					d.zero, ordered = d.angle, false
				case 6:
					d.up = [3]float64{0, 0, 0.2}
				}
			} else if until != 0 && d.f.Now >= until {
				d.up = [3]float64{0, 0, sense.Gravity}
				until, d.f.Halted, d.silent, d.sense.Cliffs = 0, false, false, [4]float64{0.6, 0.6, 0.6, 0.6}
			}
			d.step()
			for _, r := range d.results {
				if r.Underway && drives[r.Request] {
					driver = r.Owner
				}
			}
			d.results = d.results[:0]
			stop := d.p.now.Stop
			since := func(t *time.Duration, holds bool) time.Duration {
				if !holds {
					*t = d.f.Now
				}
				return d.f.Now - *t
			}
			none, ahead, behind := 0, false, false
			for i, v := range d.sense.Cliffs {
				if v == 0 {
					none++
					ahead, behind = ahead || i == spine.FrontLeft || i == spine.FrontRight, behind || i == spine.BackLeft || i == spine.BackRight
				}
			}
			atEdge := since(&edge, none > 0) > 2*period
			lift := since(&lifted, none == 4) > 2*period
			halted := d.f.Halted || d.f.Now-d.sense.At > 50*ms || since(&fall, d.up[2] < 1) > 80*ms+3*period
			if halted || lift {
				ordered = false
			}
			if d.p.now.Treads == motion.Running && (holder(0) != driver || holder(1) != driver) {
				t.Fatalf("seed %d, %v: %d drives, and the treads are held by %d and %d", seed, d.f.Now, driver, holder(0), holder(1))
			}
			for i, duty := range d.duties() {
				if holder(i) != 0 || duty == 0 {
					orphan[i] = d.f.Now
				}
				switch {
				case duty != 0 && (halted || stop&motion.Everything != 0):
					t.Fatalf("seed %d, %v: motor %d has %v, stop %b", seed, d.f.Now, i, duty, stop)
				case duty != 0 && i < 2 && (lift || stop&motion.Lifted != 0):
					t.Fatalf("seed %d, %v: tread %d has %v while lifted", seed, d.f.Now, i, duty)
				case i < 2 && atEdge && (ahead && duty > 0 || behind && duty < 0):
					t.Fatalf("seed %d, %v: tread %d has %v at an edge: %v", seed, d.f.Now, i, duty, d.sense.Cliffs)
				case i < 2 && duty != 0 && !ordered:
					t.Fatalf("seed %d, %v: tread %d has %v without an order since it had to stop", seed, d.f.Now, i, duty)
				case d.f.Now-orphan[i] > 600*ms:
					t.Fatalf("seed %d, %v: motor %d has no owner and has had power for %v", seed, d.f.Now, i, d.f.Now-orphan[i])
				case i < 2 && math.Abs(d.rate[i])*0.0145 > 0.22:
					t.Fatalf("seed %d, %v: tread %d at %v m/s (VEC-MOT-04)", seed, d.f.Now, i, d.rate[i]*0.0145)
				}
			}
		}
	}
}

// TestStepAllocatesNothing covers every kind of order, refusals too, and the whole way of a frame.
func TestStepAllocatesNothing(t *testing.T) {
	d := newDesk(t)
	all := d.set("robot.body")
	for range 10 {
		d.step()
	}
	n := 0
	drive := wheelsAt(0, 0.1, 0.1, 0)
	got := testing.AllocsPerRun(3000, func() {
		n++
		o := drive
		o.Kind, o.Owner, o.Set, o.Priority = control.Kind(n%int(control.Stop+2)), claim.Owner(2+n%3), all, claim.Priority(n%60)
		o.TTL, o.Lease, o.A, o.For = time.Duration(n%90)*ms, uint64(n%200), 0.1, time.Second
		if n%2 > 0 {
			o.Goals[0].Slot = -1
		}
		d.c.Post(o)
		d.silent = n%300 > 280
		d.f.Halted = n%400 > 380
		d.f.Now += period
		d.sense.Fresh = !d.silent
		if !d.silent {
			d.sense.At = d.f.Now
		}
		d.sense.Inertial = body.Inertial{Accel: [3]float64{0, float64(n % 7), float64(n % 300 / 20)}, Gyro: [3]float64{0, 0, float64(n % 3)},
			At: d.sense.At}
		d.pass()
		for ok := true; ok; {
			_, ok = d.c.Result()
		}
		for ok := true; ok; {
			_, ok = d.c.Event()
		}
	})
	if got != 0 {
		t.Errorf("a step allocates %v times, want 0", got)
	}
}

// TestInTheLoop: the control loop is a task of the real-time loop.
func TestInTheLoop(t *testing.T) {
	c, _ := newControl(t, Default(), nil)
	w := &loopBody{}
	l, err := rt.New(rt.Config{}, w, c.Task())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	if err := l.Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	var r control.Report
	if !c.Report(&r) || r.At == 0 || !w.drove {
		t.Errorf("report of %v, motors moved: %v; want calibration under way", r.At, w.drove)
	}
}

// loopBody is a clock and a body that runs 200 frames.
type loopBody struct {
	now   time.Duration
	seq   uint32
	drove bool
	end   func()
}

func (w *loopBody) Now() time.Duration         { return w.now }
func (w *loopBody) SleepUntil(t time.Duration) { w.now = max(w.now, t) }
func (w *loopBody) Describe() body.Description {
	return body.Description{Species: "vic", Timing: body.Timing{Rhythm: period}}
}
func (w *loopBody) Read(s *body.Sense, _ time.Duration) error {
	w.now += period
	w.seq++
	if w.seq == 200 {
		w.end()
	}
	m := vectordriver.Sense{At: w.now, Seq: w.seq, Epoch: 1, Fresh: true, BatteryVolts: 3.9, Cliffs: [4]float64{0.6, 0.6, 0.6, 0.6}}
	m.Pack(s)
	return nil
}
func (w *loopBody) Write(a *body.Act) error {
	var act vectordriver.Act
	act.Unpack(a)
	w.drove = w.drove || act.Motors[spine.Head] < 0
	return nil
}
func (w *loopBody) Halt() error     { return nil }
func (w *loopBody) Shutdown() error { return nil }
func (w *loopBody) Close() error    { return nil }

// TestTreeOfAnotherBody: a Vector's plant binds to a Vector's tree alone.
func TestTreeOfAnotherBody(t *testing.T) {
	m, err := Model(Default())
	if err != nil {
		t.Fatal(err)
	}
	other, err := robot.Build("other", robot.Frame{}, []robot.Part{{Path: "body.led", Is: []string{"Led"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Make(state.New(other), nil, nil); err == nil {
		t.Error("the tree of another body was taken")
	}
}

func BenchmarkStep(b *testing.B) {
	d := newDesk(b)
	d.run(time.Second)
	b.ReportAllocs()
	for b.Loop() {
		d.step()
	}
}
