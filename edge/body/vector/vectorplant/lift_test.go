package vectorplant

import (
	"math"
	"testing"
	"time"

	"kennel/edge/body/vector/spine"
	"kennel/edge/core/control"
	"kennel/edge/motion"
)

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
