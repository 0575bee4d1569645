package vectorplant

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
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

// desk is a helm with a body of four motors at its end, in simulated time.
type desk struct {
	t     testing.TB
	h     *Helm
	f     rt.Frame
	sense body.Sense
	act   body.Act
	live  *state.Live

	angle, rate, zero [4]float64
	up                [3]float64 // m/s2 that the body feels, in its own frame; all 0: it has no inertial sensors
	stops             [4][2]float64
	silent            bool
	results           []Result
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	m, err := Vector()
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, h: h, live: state.NewLive(h.Board(), nil)}
	d.f = rt.Frame{Now: time.Hour, Run: 1}
	free := [2]float64{math.Inf(-1), math.Inf(1)}
	c := m.Motion.Joints
	d.stops = [4][2]float64{free, free, c[motion.VectorLift].Stops, c[motion.VectorHead].Stops}
	d.angle = [4]float64{spine.Lift: 0.2, spine.Head: 0.1}
	d.zero = d.angle
	d.sense = body.Sense{Epoch: 1, BatteryVolts: 3.9, Temperature: 25, Cliffs: [body.MaxCliffs]float64{0.6, 0.6, 0.6, 0.6}}
	return d
}

// step lets a period pass: the body moves as it was told, and tells.
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
	d.act = body.Act{}
	d.f.Sense, d.f.Act = &d.sense, &d.act
	d.h.Step(&d.f)
	for {
		r, ok := d.h.Result()
		if !ok {
			return
		}
		d.results = append(d.results, r)
	}
}

func (d *desk) run(t time.Duration) {
	for range t / period {
		d.step()
	}
}

// calibrated steps until the helm is done with itself.
func (d *desk) calibrated() *desk {
	d.t.Helper()
	d.until("calibration", func() bool {
		return d.h.self == settled && d.h.now.Joints[0].Calibrated && d.h.now.Joints[1].Calibrated
	})
	return d
}

func (d *desk) until(what string, ok func() bool) {
	d.t.Helper()
	for range 20 * time.Second / period {
		if d.step(); ok() {
			return
		}
	}
	d.t.Fatalf("%s: not within 20 s; %+v", what, d.h.now)
}

// ask posts an order and returns its answer.
func (d *desk) ask(o Order) Result {
	d.t.Helper()
	o.Request = uint32(rand.N(1 << 30))
	if !d.h.Post(o) {
		d.t.Fatal("the mailbox is full")
	}
	d.step()
	for i, r := range d.results {
		if r.Owner == o.Owner && r.Request == o.Request && r.Code != Ended {
			d.results = slices.Delete(d.results, i, i+1)
			return r
		}
	}
	d.t.Fatalf("no answer to %+v", o)
	return Result{}
}

// ended steps until a motion of owner has ended, and returns how.
func (d *desk) ended(owner claim.Owner) (end Result) {
	d.t.Helper()
	d.until(fmt.Sprintf("end of a motion of %d", owner), func() bool {
		i := slices.IndexFunc(d.results, func(r Result) bool { return r.Owner == owner && r.Code == Ended })
		if i < 0 {
			return false
		}
		end = d.results[i]
		d.results = slices.Delete(d.results, i, i+1)
		return true
	})
	return end
}

func (d *desk) set(names ...string) (s claim.Set) {
	d.t.Helper()
	f := finder{tree: d.h.model.Tree}
	s = f.actuators(names...)
	if f.err != nil {
		d.t.Fatal(f.err)
	}
	return s
}

// claims takes what names name for a person, and fails if that is refused.
func (d *desk) claims(o claim.Owner, names ...string) uint64 {
	d.t.Helper()
	r := d.ask(Order{Kind: Claim, Owner: o, Set: d.set(names...), Priority: claim.Person})
	if r.Code != OK || r.Lease == 0 {
		d.t.Fatalf("claim of %v: %+v", names, r)
	}
	return r.Lease
}

func (d *desk) duties() [4]float64 { return [4]float64(d.act.Motors[:4]) }

func (d *desk) value(name string) (float64, bool) {
	r, err := d.live.Read(name)
	return r.Value.Number, err == nil
}

// TestDrive: a drive of 100 mm is odometry, pose and values of the tree.
func TestDrive(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel")
	if r := d.ask(Order{Kind: Straight, Owner: alice, A: 0.1, For: 5 * time.Second}); r.Code != OK || !r.Underway {
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
	if r := d.ask(Order{Kind: Turn, Owner: alice, A: math.Pi / 2, For: 5 * time.Second}); r.Code != OK {
		t.Fatalf("turn: %+v", r)
	}
	end = d.ended(alice)
	if end.Outcome != motion.Done || math.Abs(end.Pose.Theta-math.Pi/2) > 3*degree {
		t.Errorf("turned: %v at %+v, want done at a quarter to the left", end.Outcome, end.Pose)
	}
	if end := d.h.now.Odometers; end.Body < 0.095 || end.Left < 0.1 {
		t.Errorf("odometers %+v", end)
	}
}

// TestDeadline: treads do not start without a deadline, and end with it (VEC-MCT-14).
func TestDeadline(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel")
	for _, o := range []Order{
		{Kind: Wheels, A: 0.1, B: 0.1}, {Kind: Straight, A: 1, For: -1}, {Kind: Turn, A: 1, For: MaxFor + 1}, {Kind: Wheels, A: math.NaN(), For: time.Second},
		{Kind: Straight, A: math.Inf(1), For: time.Second}, {Kind: Straight, A: 0, For: time.Second}, {Kind: Wheels + 50, For: time.Second}, {Kind: 0},
	} {
		o.Owner = alice
		if r := d.ask(o); r.Code != Invalid || d.duties() != [4]float64{} {
			t.Errorf("%+v: %+v, duties %v; want invalid", o, r, d.duties())
		}
	}
	if r := d.ask(Order{Kind: Wheels, Owner: alice, A: 0.1, B: 0.1, For: 400 * ms}); r.Code != OK {
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
	if r := d.ask(Order{Kind: Straight, Owner: alice, A: 5, For: 600 * ms}); r.Code != OK {
		t.Fatalf("straight: %+v", r)
	}
	if end := d.ended(alice); end.Outcome != motion.Expired || end.Pose.X > 0.2 {
		t.Errorf("a path ended %v at %+v, want expired", end.Outcome, end.Pose)
	}
}

// TestOneOwner: two claimants of the wheels. The second is refused, a higher one takes over and gives back, and nobody moves what is not his.
func TestOneOwner(t *testing.T) {
	d := newDesk(t).calibrated()
	if r := d.ask(Order{Kind: Straight, Owner: alice, A: 0.1, For: time.Second}); r.Code != NotHeld || r.By != 0 {
		t.Errorf("a drive without a claim: %+v", r)
	}
	lease := d.claims(alice, "wheelL", "wheelR", "headPitch")
	r := d.ask(Order{Kind: Claim, Owner: bob, Set: d.set("wheelR"), Priority: claim.Person})
	if r.Code != Busy || r.By != alice || r.Priority != claim.Person || d.h.model.Tree.Actuators()[r.Actuator].Compact() != "wheelR" {
		t.Errorf("a second claim: %+v", r)
	}
	for _, k := range []Kind{Wheels, Straight, Turn, Head} {
		if r := d.ask(Order{Kind: k, Owner: bob, A: 0.1, For: time.Second}); r.Code != NotHeld || r.By != alice || d.duties() != [4]float64{} {
			t.Errorf("order %d of somebody else: %+v, duties %v", k, r, d.duties())
		}
	}
	for _, k := range []Kind{Renew, Release} {
		if r := d.ask(Order{Kind: k, Owner: bob, Lease: lease, TTL: time.Second}); r.Code != Gone {
			t.Errorf("order %d on somebody else's lease: %+v", k, r)
		}
	}
	if r := d.ask(Order{Kind: Wheels, Owner: alice, A: 0.1, B: 0.1, For: 10 * time.Second}); r.Code != OK {
		t.Fatalf("wheels: %+v", r)
	}
	d.run(300 * ms)
	took := d.ask(Order{Kind: Claim, Owner: bob, Set: d.set("wheelL"), Priority: claim.Safety, TTL: time.Second})
	if took.Code != OK {
		t.Fatalf("a higher claim: %+v", took)
	}
	if end := d.ended(alice); end.Outcome != motion.Cancelled {
		t.Errorf("the lower one's drive ended %v, want cancelled", end.Outcome)
	}
	d.run(400 * ms)
	if d.duties() != [4]float64{} {
		t.Errorf("duties %v after the wheels changed hands", d.duties())
	}
	if r := d.ask(Order{Kind: Wheels, Owner: alice, A: 0.1, B: 0.1, For: time.Second}); r.Code != NotHeld || r.By != bob {
		t.Errorf("while somebody else has one wheel: %+v", r)
	}
	d.run(time.Second) // the higher claim expires
	if r := d.ask(Order{Kind: Wheels, Owner: alice, A: 0.1, B: 0.1, For: time.Second}); r.Code != OK {
		t.Errorf("after it was given back: %+v", r)
	}
	if r := d.ask(Order{Kind: Release, Owner: alice, Lease: lease}); r.Code != OK {
		t.Errorf("release: %+v", r)
	}
	if end := d.ended(alice); end.Outcome != motion.Cancelled {
		t.Errorf("what was under way ended %v, want cancelled", end.Outcome)
	}
	var rep Report
	if !d.h.Report(&rep) || rep.Owners[r.Actuator].Owner != 0 || rep.At != d.f.Now {
		t.Errorf("report %+v", rep.Owners[:d.h.actuators])
	}
	for _, o := range []Order{{Kind: Claim, Owner: alice}, {Kind: Claim, Owner: alice, Set: d.set("wheelL"), TTL: -1}} {
		if r := d.ask(o); r.Code != Invalid {
			t.Errorf("claim %+v: %+v", o, r)
		}
	}
	full := 0
	for range 100 {
		if d.ask(Order{Kind: Claim, Owner: alice, Set: d.set("wheelL"), Priority: claim.Person}).Code == Full {
			full++
		}
	}
	if full != 36 {
		t.Errorf("of 100 claims %d were refused as too many, want 36", full)
	}
}

// TestOwnerDies: who drove is gone, so the treads come to rest and the head lets go.
func TestOwnerDies(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel", "robot.body.head")
	d.ask(Order{Kind: Head, Owner: alice, A: -20 * degree})
	if end := d.ended(alice); end.Outcome != motion.Done || d.h.now.Joints[motion.VectorHead].State != motion.Holding {
		t.Fatalf("head: %v, %v", end.Outcome, d.h.now.Joints[motion.VectorHead].State)
	}
	if v, ok := d.value("headPitch.val"); !ok || math.Abs(v+20*degree) > degree || math.Abs(d.angle[spine.Head]-20*degree) > degree {
		t.Errorf("headPitch is %v, %v, really %v; want -20 degrees, raised by 20", v/degree, ok, d.angle[spine.Head]/degree)
	}
	d.ask(Order{Kind: Wheels, Owner: alice, A: 0.1, B: 0.1, For: 10 * time.Second})
	d.run(300 * ms)
	d.h.Post(Order{Kind: Drop, Owner: alice})
	d.run(300 * ms)
	if d.duties() != [4]float64{} || d.h.now.Joints[motion.VectorHead].State != motion.Free {
		t.Errorf("duties %v, head %v, 300 ms after the owner died", d.duties(), d.h.now.Joints[motion.VectorHead].State)
	}
	d.claims(bob, "robot.body.wheel", "robot.body.head")
}

// TestLift: to a height; let go, a hand that moves it is seen, by how far or, while its encoder is off, that it did (VEC-MCT-09).
func TestLift(t *testing.T) {
	d := newDesk(t).calibrated()
	lease := d.claims(alice, "lift")
	d.ask(Order{Kind: Lift, Owner: alice, A: 0.07, Speed: 2})
	if end := d.ended(alice); end.Outcome != motion.Done {
		t.Fatalf("lift: %v", end.Outcome)
	}
	if v, ok := d.value("arm.position"); !ok || math.Abs(v-0.07) > 0.002 {
		t.Errorf("arm.position is %v, %v; want 0.07", v, ok)
	}
	d.ask(Order{Kind: Release, Owner: alice, Lease: lease})
	d.until("that it lets go", func() bool { return d.h.now.Joints[motion.VectorLift].State == motion.Free })
	for _, height := range []float64{0.09, 0.04} {
		d.angle[spine.Lift] = motion.VectorLiftAngle(height)
		d.run(100 * ms)
		if v, ok := d.value("arm.position"); !ok || math.Abs(v-height) > 0.002 || d.duties()[spine.Lift] != 0 {
			t.Errorf("moved by a hand to %v m it is at %v, %v, with duty %v", height, v, ok, d.duties()[spine.Lift])
		}
	}
	d.sense.Motors[spine.Lift].Unseen = true
	d.run(100 * ms)
	var r Report
	if _, ok := d.value("arm.position"); ok || !d.h.Report(&r) || d.h.RobotStatus(&r) != 0x400000 {
		t.Errorf("moved unseen: its place is known %v, status %#x", ok, d.h.RobotStatus(&r))
	}
}

// TestJointsInTime: a joint is there when it was told to, by the way's mean speed of a lift in metres a second, and what the limits do not let be is told
// (GOSTAI-OPEN-03).
func TestJointsInTime(t *testing.T) {
	fresh := newDesk(t)
	fresh.claims(alice, "lift", "headPitch")
	if r := fresh.ask(Order{Kind: Head, Owner: alice, A: 0.1, For: time.Second}); r.Code != OK || !r.Underway || r.Takes != 0 || !r.Homing {
		t.Errorf("a head that looks for its zero: %+v", r)
	}
	d := newDesk(t).calibrated()
	d.claims(alice, "lift", "headPitch")
	const most = 10 * 0.78 // rad/s (VEC-MOT-01, and headroom)
	for name, tc := range map[string]struct {
		back, o Order
		takes   time.Duration // as told; 0: nothing
		speed   float64       // as told
		took    time.Duration // between the answer and there
	}{
		"head in 2 s":            {Order{Kind: Head}, Order{Kind: Head, A: 0.3, For: 2 * time.Second}, 2 * time.Second, 0, 2 * time.Second},
		"lift in 2 s":            {Order{Kind: Lift, A: 0.035}, Order{Kind: Lift, A: 0.085, For: 2 * time.Second}, 2 * time.Second, 0, 2 * time.Second},
		"head too soon":          {Order{Kind: Head}, Order{Kind: Head, A: 0.3, For: ms}, 534 * ms, 0, 534 * ms},
		"head at 0.2 rad/s":      {Order{Kind: Head}, Order{Kind: Head, A: 0.3, Speed: 0.2}, 0, 0.2, 1548 * ms},
		"head at any speed":      {Order{Kind: Head}, Order{Kind: Head, A: 0.3, Speed: 99}, 0, most, 534 * ms},
		"lift at 0.05 m/s":       {Order{Kind: Lift, A: 0.035}, Order{Kind: Lift, A: 0.085, Speed: 0.05}, 0, 0.05, 1180 * ms},
		"lift at any speed":      {Order{Kind: Lift, A: 0.035}, Order{Kind: Lift, A: 0.085, Speed: 99}, 0, 0.4857, 875 * ms},
		"lift slowly, near half": {Order{Kind: Lift, A: 0.055}, Order{Kind: Lift, A: 0.045, Speed: 0.005}, 0, 0.005, 2020 * ms},
	} {
		tc.back.Owner, tc.o.Owner = alice, alice
		d.ask(tc.back)
		d.ended(alice)
		r := d.ask(tc.o)
		begun := d.f.Now
		if r.Code != OK || (r.Takes-tc.takes).Abs() > 20*ms || math.Abs(r.Speed-tc.speed) > 5e-3 || r.Homing {
			t.Errorf("%s: %+v, want %v and %v", name, r, tc.takes, tc.speed)
		}
		if end := d.ended(alice); end.Outcome != motion.Done || d.f.Now-begun < tc.took-20*ms || d.f.Now-begun > tc.took+250*ms {
			t.Errorf("%s: %v after %v, want done after %v", name, end.Outcome, d.f.Now-begun, tc.took)
		}
	}
	// Two writers of one owner: the last wins, from where the joint is, and the first hears that (GOSTAI-OPEN-03). Among owners claims decide (TestOneOwner).
	d.ask(Order{Kind: Head, Owner: alice, A: -0.5, For: 2 * time.Second})
	d.run(time.Second)
	speed := d.rate[spine.Head]
	if r := d.ask(Order{Kind: Head, Owner: alice, A: 0.3, For: time.Second}); r.Code != OK || (r.Takes-time.Second).Abs() > 20*ms || math.Abs(speed) < 0.2 {
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
	for _, o := range []Order{{Kind: Head, For: -1}, {Kind: Head, For: time.Second, Speed: 1}, {Kind: Lift, For: time.Second, Accel: 1}} {
		o.Owner = alice
		if r := d.ask(o); r.Code != Invalid {
			t.Errorf("%+v: %+v", o, r)
		}
	}
	d.h.now.Joints[d.h.model.Lift.Index].Angle = d.h.model.Lift.Angle(0.06)
	if near, far := d.h.scale(&d.h.model.Lift, d.h.model.Lift.Angle(0.06)), d.h.scale(&d.h.model.Lift, d.h.model.Lift.Angle(0.06002)); math.Abs(near-far) > 0.1 || near < 14 || near > 17 {
		t.Errorf("where the lift stands 1 m is %v rad, and beside it %v", near, far)
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
		"lifted": {func(d *desk) { d.sense.Cliffs = [body.MaxCliffs]float64{} },
			func(d *desk) { d.sense.Cliffs = [body.MaxCliffs]float64{0.6, 0.6, 0.6, 0.6} }, 3, motion.Lifted},
		// The floor sensors see something, and yet it does not stand: what the blend of its sensors says of that is believed after 250 ms (VEC-IMU-06, VEC-IMU-08).
		"on its side": {func(d *desk) { d.up = [3]float64{0, sense.Gravity, 0} }, func(d *desk) { d.up = [3]float64{0, 0, sense.Gravity} }, 120, motion.Lifted},
		// Believed after a second.
		"hot":   {func(d *desk) { d.sense.Temperature = 51 }, func(d *desk) { d.sense.Temperature = 25 }, 197, motion.Halted},
		"epoch": {func(d *desk) { d.sense.Epoch++; d.zero = d.angle }, func(*desk) {}, 1, 0},
		"anew":  {func(d *desk) { d.f.Run++; d.zero = d.angle }, func(*desk) {}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t).calibrated()
			if name == "on its side" {
				d.angle[spine.Head], d.up = 0, [3]float64{0, 0, sense.Gravity}
				d.run(time.Second)
			}
			d.claims(alice, "robot.body.wheel")
			if r := d.ask(Order{Kind: Wheels, Owner: alice, A: 0.1, B: 0.1, For: 20 * time.Second}); r.Code != OK {
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
				t.Fatalf("duties %v in the step that counts, stop %v", d.duties(), d.h.now.Stop)
			}
			if tc.reason != 0 && d.h.now.Stop&tc.reason == 0 {
				t.Errorf("stop %b, want %b in it", d.h.now.Stop, tc.reason)
			}
			if end := d.ended(alice); end.Outcome != motion.Stopped {
				t.Errorf("it ended %v, want stopped", end.Outcome)
			}
			if tc.reason != 0 {
				if r := d.ask(Order{Kind: Wheels, Owner: alice, A: 0.1, B: 0.1, For: time.Second}); r.Code != Refused || r.Stop&tc.reason == 0 {
					t.Errorf("an order meanwhile: %+v", r)
				}
			}
			tc.end(d)
			for range 2 * time.Second / period {
				if d.step(); d.duties()[0] != 0 || d.duties()[1] != 0 {
					t.Fatalf("treads move by themselves: %v", d.duties())
				}
			}
			if r := d.ask(Order{Kind: Wheels, Owner: alice, A: 0.1, B: 0.1, For: time.Second}); r.Code != OK {
				t.Errorf("an order after it: %+v", r)
			}
		})
	}
}

// TestOrderFromBefore: what waited in the mailbox while there was no body moves nothing when there is one again.
func TestOrderFromBefore(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel")
	d.f.Run++
	d.h.Post(Order{Kind: Wheels, Owner: alice, Request: 7, A: 0.1, B: 0.1, For: time.Second})
	for range time.Second / period {
		if d.step(); d.duties()[0] != 0 {
			t.Fatal("it drives")
		}
	}
	if r := d.results; len(r) != 1 || r[0].Code != Refused || r[0].Request != 7 {
		t.Errorf("results %+v", r)
	}
}

func TestStopNeedsNoClaim(t *testing.T) {
	d := newDesk(t).calibrated()
	d.claims(alice, "robot.body.wheel", "robot.body.head")
	d.ask(Order{Kind: Wheels, Owner: alice, A: 0.1, B: 0.1, For: 10 * time.Second})
	d.ask(Order{Kind: Head, Owner: alice, A: -30 * degree, Speed: 0.1})
	d.run(300 * ms)
	if r := d.ask(Order{Kind: Stop, Owner: bob}); r.Code != OK {
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

// TestCalibration: VEC-MOT-07. It comes with the body, not after a halt; and a body that counts anew is calibrated anew, because its old zero would
// drive the head into its stop.
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
	for a := range d.h.actuators {
		if o, _ := d.h.claims.OwnerOf(a); o != 0 {
			t.Errorf("actuator %d is still %d's", a, o)
		}
	}
	d.angle[spine.Head] = 30 * degree
	d.zero = d.angle
	d.f.Run++ // opened again; the board has lost its counts and the driver's epoch is the same number
	d.step()
	if _, ok := d.value("headPitch.val"); ok || d.h.now.Joints[motion.VectorHead].Calibrated {
		t.Error("the head's place is believed although the body counts anew")
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
			t.Fatal("it calibrates after a halt, and nobody asked for it")
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
			t.Fatal("it goes on calibrating after a halt")
		}
	}

	d = newDesk(t)
	d.run(200 * ms)
	d.claims(alice, "robot.body.head") // a person comes first
	d.run(100 * ms)
	if d.duties()[spine.Head] != 0 {
		t.Errorf("head at %v although a person has it", d.duties()[spine.Head])
	}
	d.ask(Order{Kind: Head, Owner: alice, A: 0})
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
	lights := Order{Kind: SetLights, Owner: alice}
	lights.Lights[1].G = 255
	if r := d.ask(lights); r.Code != OK || d.act.Lights[1].G != 255 {
		t.Errorf("%+v, lights %v", r, d.act.Lights[:4])
	}
	if v, ok := d.value("led[1].val"); !ok || v != 1 {
		t.Errorf("led[1].val is %v, %v", v, ok)
	}
	d.claims(bob, "led[2]")
	lights.Lights[1].G = 9
	if r := d.ask(lights); r.Code != NotHeld || r.By != bob || d.act.Lights[1].G != 255 {
		t.Errorf("one light is somebody else's: %+v, lights %v", r, d.act.Lights[:4])
	}
	lights.Owner = bob
	if r := d.ask(lights); r.Code != OK || d.act.Lights[1].G != 9 {
		t.Errorf("its owner: %+v, lights %v", r, d.act.Lights[:4])
	}

	// One colour of one light, which nobody else holds, leaves all others as they are.
	one := Order{Kind: SetLights, Owner: alice, Set: claim.SetOf(3*1 + 2)}
	one.Lights[1].B, one.Lights[0].R = 7, 7
	if r := d.ask(one); r.Code != OK || d.act.Lights[1] != (body.Light{G: 9, B: 7}) || d.act.Lights[0] != (body.Light{}) {
		t.Errorf("one colour: %+v, lights %v", r, d.act.Lights[:4])
	}
	one.Set = claim.SetOf(3*1+2, 3*2)
	if r := d.ask(one); r.Code != NotHeld || r.By != bob {
		t.Errorf("a colour of a light of somebody else's: %+v", r)
	}
}

// TestIndicators: VEC-IO-30: the lights say that it charges, cannot, needs its charger, is hot or goes off, each by its own colours, where no program uses or
// owns them.
func TestIndicators(t *testing.T) {
	d := newDesk(t).calibrated()
	red, green, teal := body.Light{R: 255}, body.Light{G: 96}, body.Light{G: 128, B: 128}
	shows := func(what string, want ...body.Light) {
		t.Helper()
		if got := [4]body.Light(d.act.Lights[:4]); got != [4]body.Light(want) {
			t.Errorf("%s: lights %v, want %v", what, got, want)
		}
	}
	dark := body.Light{}
	shows("all is well", dark, dark, dark, dark)
	d.sense.Power |= body.OnCharger | body.Charging
	d.run(time.Second)
	shows("charging", dark, dark, dark, green)
	lit := Order{Kind: SetLights, Owner: alice}
	lit.Lights[3], lit.Lights[0] = body.Light{B: 9}, body.Light{R: 8}
	d.ask(lit)
	shows("a program lights it", body.Light{R: 8}, dark, dark, body.Light{B: 9})
	lit.Lights = [body.MaxLights]body.Light{}
	d.ask(lit)
	shows("and no more", dark, dark, dark, green)
	lease := d.claims(alice, "led[3]")
	d.step()
	shows("somebody owns it", dark, dark, dark, dark)
	d.ask(Order{Kind: Release, Owner: alice, Lease: lease})

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

// TestFeltAndStatus: what the senses notice is counted, so that nobody misses it (VEC-IO-02, 13, 14, 23, VEC-BODY-26), and the bits of RobotStatus are those
// that hold (VEC-IO-20, VEC-MOT-07, VEC-PWR-20).
func TestFeltAndStatus(t *testing.T) {
	d := newDesk(t)
	var r Report
	status := func(what string, want uint32) {
		t.Helper()
		if d.h.Report(&r); d.h.RobotStatus(&r) != want {
			t.Errorf("%s: status %#x, want %#x", what, d.h.RobotStatus(&r), want)
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
	d.ask(Order{Kind: Calm, Owner: alice, On: true})
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
	if d.h.Report(&r); !r.Sense.Petting {
		t.Error("nobody notices the petting")
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
	d.h.Report(&r)
	f := r.Felt
	if f.Petted < 1800*ms || f.Petted > 2500*ms {
		t.Errorf("petted for %v, want about 2 s", f.Petted)
	}
	f.Petted = 0
	want := Felt{Touches: 1, Pettings: 1, ChargerChecks: 1, BaselinesLearnt: 2, BaselinesKept: 1, Cliffs: 1, Lines: 1, ProxInvalid: 1}
	want.Gestures[sense.Single], want.Gestures[sense.Double], want.Gestures[sense.Mute] = 1, 1, 1
	if f != want {
		t.Errorf("felt %+v\nwant %+v", f, want)
	}
}

// TestValues: what the senses know comes to the tree.
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
	if d.h.known.Prox.Found {
		t.Errorf("a dim echo: %+v", d.h.known.Prox)
	}
	d.sense.ProxSignal = 10
	ahead(0.4)
	want("laser.val", 0.4)
	if p := d.h.known.Prox; !p.Found || math.Abs(p.Quality-0.5) > 1e-9 {
		t.Errorf("%+v, want it found with quality 0.5 (VEC-IO-24)", p)
	}
	ahead(8.19) // VEC-IO-24: free sight, as the sensor says it
	want("laser.val", math.Inf(1))
	var r Report
	if d.h.Report(&r); !r.Sense.Prox.Unobstructed || r.Sense.Prox.Found {
		t.Errorf("free sight: %+v", r.Sense.Prox)
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
			var r Report
			if !d.h.Report(&r) || r.Power.Shutdown.Off != tc.off || r.Power.Shutdown.Cause != tc.cause {
				t.Errorf("off %+v, want %v because of %v", r.Power.Shutdown, tc.off, tc.cause)
			}
			if got := d.ask(Order{Kind: Straight, Owner: alice, A: 0.1, For: time.Second}); got.Code != Refused {
				t.Errorf("an order on the way down: %+v", got)
			}
		})
	}
}

// TestRandomLife plays simulated hours of three owners who claim, drive, die and are interrupted. At every step: no power while a reason to stop holds,
// within the time that its row gives (cliff: two frames, VEC-IO-20; fall: 80 ms, VEC-IMU-07; link: 50 ms, VEC-BODY-33); none afterwards that nobody ordered;
// what is under way is its owner's; none for long in what nobody owns; speeds within limits.
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
		wheels := [4]claim.Set{d.set("wheelL"), d.set("wheelR"), d.set("arm"), d.set("headPitch")}
		for range int(hours * float64(time.Hour/period)) {
			if rng.IntN(20) == 0 {
				k := Kind(1 + rng.IntN(int(Stop)))
				ordered = ordered || k == Wheels || k == Straight || k == Turn
				d.h.Post(Order{Kind: k, Owner: owners[rng.IntN(3)], Set: sets[rng.IntN(len(sets))], Priority: claim.Priority(10 * (1 + rng.IntN(6))),
					TTL: time.Duration(rng.IntN(5000)) * ms, Lease: uint64(rng.IntN(500)), A: rng.NormFloat64() / 5, B: rng.NormFloat64() / 5, Speed: max(0, rng.NormFloat64()/5),
					For: time.Duration(rng.IntN(4000)) * ms})
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
					d.sense.Cliffs = [body.MaxCliffs]float64{}
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
				until, d.f.Halted, d.silent, d.sense.Cliffs = 0, false, false, [body.MaxCliffs]float64{0.6, 0.6, 0.6, 0.6}
			}
			d.step()
			d.results = d.results[:0]
			stop := d.h.now.Stop
			since := func(t *time.Duration, holds bool) time.Duration {
				if !holds {
					*t = d.f.Now
				}
				return d.f.Now - *t
			}
			none, ahead, behind := 0, false, false
			for i, v := range d.sense.Cliffs[:4] {
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
			for a := range d.h.actuators {
				if u := &d.h.treads; u.moving && wheels[0].Has(a) && !d.h.claims.Holds(u.owner, a) {
					t.Fatalf("seed %d, %v: %d drives and does not own the treads", seed, d.f.Now, u.owner)
				}
			}
			for i, duty := range d.duties() {
				owned := false
				for a := range d.h.actuators {
					o, _ := d.h.claims.OwnerOf(a)
					owned = owned || wheels[i].Has(a) && o != 0
				}
				if owned || duty == 0 {
					orphan[i] = d.f.Now
				}
				switch {
				case duty != 0 && (halted || stop&motion.Everything != 0):
					t.Fatalf("seed %d, %v: motor %d has %v, stop %b", seed, d.f.Now, i, duty, stop)
				case duty != 0 && i < 2 && (lift || stop&motion.Lifted != 0):
					t.Fatalf("seed %d, %v: tread %d has %v while lifted", seed, d.f.Now, i, duty)
				case i < 2 && atEdge && (ahead && duty > 0 || behind && duty < 0):
					t.Fatalf("seed %d, %v: tread %d has %v at an edge: %v", seed, d.f.Now, i, duty, d.sense.Cliffs[:4])
				case i < 2 && duty != 0 && !ordered:
					t.Fatalf("seed %d, %v: tread %d has %v and nobody ordered that since it had to stop", seed, d.f.Now, i, duty)
				case d.f.Now-orphan[i] > 600*ms:
					t.Fatalf("seed %d, %v: motor %d is nobody's and has had power for %v", seed, d.f.Now, i, d.f.Now-orphan[i])
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
	var rep Report
	got := testing.AllocsPerRun(3000, func() {
		n++
		o := Order{Kind: Kind(n % int(Stop+2)), Owner: claim.Owner(2 + n%3), Set: all, Priority: claim.Priority(n % 60), TTL: time.Duration(n%90) * ms,
			Lease: uint64(n % 200), A: 0.1, B: 0.1, For: time.Second}
		d.h.Post(o)
		d.silent = n%300 > 280
		d.f.Halted = n%400 > 380
		d.f.Now += period
		d.sense.Fresh = !d.silent
		if !d.silent {
			d.sense.At = d.f.Now
		}
		d.sense.Inertial = body.Inertial{Accel: [3]float64{0, float64(n % 7), float64(n % 300 / 20)}, Gyro: [3]float64{0, 0, float64(n % 3)}, At: d.sense.At}
		d.f.Sense, d.f.Act = &d.sense, &d.act
		d.h.Step(&d.f)
		for {
			if _, ok := d.h.Result(); !ok {
				break
			}
		}
		d.h.Report(&rep)
	})
	if got != 0 {
		t.Errorf("a step allocates %v times, want 0", got)
	}
}

// TestInTheLoop: the helm is a task of the loop, and its part of a step is small.
func TestInTheLoop(t *testing.T) {
	m, err := Vector()
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &loopBody{}
	l, err := rt.New(rt.Config{}, w, rt.Task{Name: "helm", Every: 1, Run: h.Step})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	if err := l.Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	var r Report
	if !h.Report(&r) || r.At == 0 || !w.drove {
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
	return body.Description{Species: "vic", Period: period}
}
func (w *loopBody) Read(s *body.Sense, _ time.Duration) error {
	w.now += period
	w.seq++
	if w.seq == 200 {
		w.end()
	}
	*s = body.Sense{At: w.now, Seq: w.seq, Epoch: 1, Fresh: true, BatteryVolts: 3.9, Cliffs: [body.MaxCliffs]float64{0.6, 0.6, 0.6, 0.6}}
	return nil
}
func (w *loopBody) Write(a *body.Act) error {
	w.drove = w.drove || a.Motors[spine.Head] < 0
	return nil
}
func (w *loopBody) Halt() error     { return nil }
func (w *loopBody) Shutdown() error { return nil }
func (w *loopBody) Close() error    { return nil }

func TestNewNamesWhatIsMissing(t *testing.T) {
	m, err := Vector()
	if err != nil {
		t.Fatal(err)
	}
	m.Wheels = []string{"wheelX"}
	if _, err := New(m, nil); err == nil {
		t.Error("a model with a wheel that the tree has not was taken")
	}
	m.Wheels = []string{"laser"}
	if _, err := New(m, nil); err == nil {
		t.Error("a laser was taken for a wheel")
	}
	m, _ = Vector()
	if m.Tree, err = robot.Build("other", robot.Frame{}, []robot.Part{{Path: "body.led", Is: []string{"Led"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := New(m, nil); err == nil {
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
