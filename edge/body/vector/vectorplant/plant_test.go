package vectorplant

import (
	"math"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/sense"
)

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

// TestPitch: what is reported is how far the body leans, nose down positive, also with the head raised.
func TestPitch(t *testing.T) {
	d := newDesk(t)
	d.up = [3]float64{0, 0, sense.Gravity}
	d.calibrated()
	d.up = [3]float64{sense.Gravity * math.Sin(0.3), 0, sense.Gravity * math.Cos(0.3)}
	if d.run(3 * time.Second); math.Abs(d.rep.Pitch+0.3) > 0.01 {
		t.Errorf("with its nose up by 0.3 rad the pitch is %v", d.rep.Pitch)
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
