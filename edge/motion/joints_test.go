package motion

import (
	"testing"
	"time"
)

// TestCalibration: at the lower stop, gently, whatever the joint's place at start; the angle is then right, and the events say so
// (VEC-MOT-07, VEC-MCT-10).
func TestCalibration(t *testing.T) {
	for seed := range uint64(6) {
		r := newRig(t, newPlant(seed), nil)
		if r.rep.Joints[0].Calibrated || r.m.MoveAt(0, 1, 0) != ErrUnknown {
			t.Error("it believes to know its zero before it homed")
		}
		r.home()
		for i := range 2 {
			q := &r.p.parts[i+2]
			near(t, "angle", r.rep.Joints[i].Angle, q.angle, 0.01)
			near(t, "home", r.rep.Joints[i].Home, q.zero, 0.01)
			if r.events[i] != Calibrating|Calibrated || r.rep.Joints[i].State != Free {
				t.Errorf("events %03b, %v", r.events[i], r.rep.Joints[i].State)
			}
		}
	}
}

// TestJointsGoWhereTheyShall: clamped to their travel, and held there (VEC-MOT-01, VEC-MOT-02, VEC-MCT-05); a command homes first.
func TestJointsGoWhereTheyShall(t *testing.T) {
	r := newRig(t, newPlant(4), nil)
	for _, target := range []float64{2, -2, 0.3, 0.1} {
		for i := range 2 {
			r.must(r.m.MoveTo(i, target, Ramp{}))
		}
		r.step()
		r.until("there", 20*time.Second, func() bool { return r.rep.Joints[0].State == Holding && r.rep.Joints[1].State == Holding })
		r.run(time.Second)
		for i, c := range testConfig().Joints {
			near(t, "angle", r.p.parts[i+2].angle, min(max(target, c.Stops[0]+c.Margin), c.Stops[1]-c.Margin), 0.012)
			if o := r.rep.Joints[i].Outcome; o != Done {
				t.Errorf("outcome %v", o)
			}
		}
	}
	// In a given time, measured and under way; one too short is told, and so is that a joint homes first (GOSTAI-OPEN-03).
	for _, c := range []struct {
		joint  int
		target float64
		in, is time.Duration
	}{{0, 0.4, 2 * time.Second, 2 * time.Second}, {1, -0.2, 3 * time.Second, 3 * time.Second}, {1, 0.5, 10 * ms, 817 * ms},
		{1, 0.1, time.Second, time.Second}} {
		takes, err := r.m.MoveIn(c.joint, c.target, c.in)
		if r.must(err); (takes - c.is).Abs() > 20*ms {
			t.Errorf("joint %d to %v in %v takes %v, want %v", c.joint, c.target, c.in, takes, c.is)
		}
		r.step()
		begun := r.now
		r.until("there", 20*time.Second, func() bool { return r.rep.Joints[c.joint].State == Holding })
		if took := r.now - begun; took < takes || took > takes+300*ms {
			t.Errorf("joint %d to %v in %v took %v, want %v", c.joint, c.target, c.in, took, takes)
		}
		near(t, "angle", r.p.parts[c.joint+2].angle, c.target, 0.012)
	}
	for _, in := range []time.Duration{0, -1} {
		if _, err := r.m.MoveIn(1, 0, in); err != ErrInvalid {
			t.Errorf("in %v: %v", in, err)
		}
	}
	if takes, err := newRig(t, newPlant(4), nil).m.MoveIn(1, 0, time.Second); takes != 0 || err != nil {
		t.Errorf("a joint that has to home: %v, %v", takes, err)
	}
	// By speed, until it is no longer renewed (part of VEC-MCT-14: Move Head).
	r.must(r.m.MoveAt(1, -0.5, r.now+500*ms))
	r.run(time.Second)
	if j := r.rep.Joints[1]; j.State != Free || j.Outcome != Expired || r.p.parts[3].angle > -0.1 || r.p.parts[3].angle < -0.25 {
		t.Errorf("%+v at %v, want it to stop by itself near -0.15 and let go", j, r.p.parts[3].angle)
	}
	// Speed 0 unlocks (VEC-MCT-08).
	r.must(r.m.MoveAt(0, 0.5, 0))
	r.run(300 * ms)
	r.must(r.m.MoveAt(0, 0, 0))
	r.run(500 * ms)
	if r.rep.Joints[0].State != Free || r.act[2] != 0 {
		t.Errorf("speed 0 leaves %+v with duty %v", r.rep.Joints[0], r.act[2])
	}
}

// TestAtTheStopItOnlyPushesBack: a hand that pulled a joint down, which leans against it, brings it
// up to its stop: nothing pushes it in there, although it still leans (VEC-MOT-01, VEC-MOT-02).
func TestAtTheStopItOnlyPushesBack(t *testing.T) {
	for i, way := range [...]float64{1, -1, 1, -1} {
		i := i / 2
		r := newRig(t, newPlant(9).ideal(), nil)
		r.home()
		r.must(r.m.MoveTo(i, 2*way, Ramp{}))
		r.step()
		r.until("the end of its travel", 3*time.Second, func() bool { return r.rep.Joints[i].State == Holding })
		q := &r.p.parts[2+i]
		q.pulled = -0.1 * way
		r.run(800 * ms)
		if r.act[2+i]*way < 0.05 {
			t.Fatalf("joint %d leans with %v against a hand", i, r.act[2+i])
		}
		q.pulled = 0.5 * way
		met := 0
		for range 60 {
			if r.step(); q.contact {
				met++
				if push := r.act[2+i] * way; push > 0 {
					t.Fatalf("joint %d at its stop has duty %v into it", i, push)
				}
			}
		}
		if met == 0 {
			t.Errorf("joint %d never met its stop", i)
		}
	}
}

// TestAHandWins: a held joint that is pulled away lets go, and stays let go (VEC-MOT-08, VEC-MCT-08).
func TestAHandWins(t *testing.T) {
	r := newRig(t, newPlant(5), nil)
	r.must(r.m.MoveTo(testLift, 0.3, Ramp{}))
	r.until("there", 20*time.Second, func() bool { return r.rep.Joints[0].State == Holding })
	r.p.parts[2].pulled = 1
	r.until("letting go", time.Second, func() bool { return r.rep.Joints[0].State == Free })
	r.p.parts[2].pulled = 0
	r.run(time.Second)
	if j := r.rep.Joints[0]; j.Outcome != Released || !j.Calibrated || r.act[2] != 0 {
		t.Errorf("%+v with duty %v", j, r.act[2])
	}
}

// TestALostZeroIsFoundAgain: moved while its encoder was off (VEC-BODY-24), the body restarted, an angle 5 % beyond its travel, and a
// stall where nothing should be each end in a new homing with the next command or the same (VEC-MOT-07, VEC-MCT-11).
func TestALostZeroIsFoundAgain(t *testing.T) {
	for name, spoil := range map[string]func(*rig){
		"unseen":  func(r *rig) { r.p.sense.Motors[3].Unseen = true },
		"restart": func(r *rig) { r.p.sense.Epoch++; r.p.parts[3].zero = r.p.parts[3].angle },
		"beyond":  func(r *rig) { r.p.parts[3].zero -= 1.5 },
		"5.5 % beyond": func(r *rig) { // of a travel of 67 degrees, below the lower stop where the joint is
			r.p.parts[3].zero += 0.055 * 67 * degree
		},
	} {
		r := newRig(t, newPlant(6), nil)
		r.home()
		r.events = [4]Event{}
		spoil(r)
		r.step()
		if r.rep.Joints[1].Calibrated || r.events[1]&Uncalibrated == 0 || r.act[3] != 0 {
			t.Errorf("%s: %+v, events %03b", name, r.rep.Joints[1], r.events[1])
		}
		r.must(r.m.MoveTo(1, 0.2, Ramp{}))
		r.step()
		r.until(name, 20*time.Second, func() bool { return r.rep.Joints[1].State == Holding })
		near(t, name+": angle", r.p.parts[3].angle, 0.2, 0.015)
	}

	r := newRig(t, newPlant(6), nil)
	r.home()
	r.p.parts[3].zero += 0.045 * 67 * degree
	if r.step(); !r.rep.Joints[1].Calibrated {
		t.Errorf("4.5 %% beyond its stop: %+v", r.rep.Joints[1])
	}

	// A wrong zero: the encoder lost 0.3 rad, so the joint meets its stop where it expects none.
	r = newRig(t, newPlant(6), nil)
	r.home()
	r.p.parts[3].zero += 0.3
	r.events = [4]Event{}
	r.must(r.m.MoveTo(1, 0.7, Ramp{}))
	r.step()
	r.until("a new zero", 40*time.Second, func() bool { return r.rep.Joints[1].State == Holding })
	near(t, "angle after all", r.p.parts[3].angle, 0.7, 0.015)
	if r.events[1]&(Uncalibrated|Calibrated) != Uncalibrated|Calibrated {
		t.Errorf("events %03b", r.events[1])
	}

	// Held for good: it gives up, with little power.
	r.p.parts[3].held = true
	r.must(r.m.MoveTo(1, 0, Ramp{}))
	r.step()
	r.until("giving up", 90*time.Second, func() bool { return r.rep.Joints[1].Outcome == Blocked })
	if r.rep.Joints[1].State != Free || r.p.parts[3].heat > 2 {
		t.Errorf("%+v, %.2f s of heat", r.rep.Joints[1], r.p.parts[3].heat)
	}
}
