package pleo_test

import (
	"math"
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/core/control"
	"kennel/edge/core/control/controltest"
	"kennel/edge/motion"
)

func walking(kind control.Kind, a float64) control.Order {
	return control.Order{Kind: kind, A: a, For: time.Minute}
}

// TestWalk: a Pleo goes and turns as far as it is told, by its own reckoning and on the simulator's floor; a square ends where it began. It rests between
// orders, and the legs go back to the application with the claim (GOSTAI-MAP-P-01, GOSTAI-IF-15.1).
func TestWalk(t *testing.T) {
	run(t, pleosim.Config{}, func(p *place) {
		p.Claim("robot")
		p.Wait(200 * ms)
		do := func(o control.Order) (from, to motion.Pose) {
			t.Helper()
			from = p.sim.State().Pose
			if r := p.Move(o); r.Outcome != motion.Done {
				t.Fatalf("%+v: %+v at %+v", o, r, p.sim.State().Pose)
			}
			return from, p.sim.State().Pose
		}
		for _, far := range []float64{0.2, 0.013, -0.15} {
			from, to := do(walking(control.Go, far))
			sin, cos := math.Sincos(from.Theta)
			ahead, aside := (to.X-from.X)*cos+(to.Y-from.Y)*sin, (to.Y-from.Y)*cos-(to.X-from.X)*sin
			if reach := max(0.02, 0.05*math.Abs(far)); math.Abs(ahead-far) > reach || math.Abs(aside) > reach || math.Abs(to.Theta-from.Theta) > 0.05 {
				t.Errorf("told to go %v it went %v, %v aside, turned %v", far, ahead, aside, to.Theta-from.Theta)
			}
		}
		for _, angle := range []float64{math.Pi / 2, -0.3} {
			from, to := do(walking(control.Turn, angle))
			if got := math.Remainder(to.Theta-from.Theta, 2*math.Pi); math.Abs(got-angle) > 4*deg {
				t.Errorf("told to turn %v it turned %v", angle, got)
			}
		}
		start := p.sim.State().Pose
		for range 4 {
			do(walking(control.Go, 0.1))
			do(walking(control.Turn, math.Pi/2))
		}
		end, known := p.sim.State().Pose, p.Report.Base.Pose
		if off := math.Hypot(end.X-start.X, end.Y-start.Y); off > 0.04 || math.Abs(math.Remainder(end.Theta-start.Theta, 2*math.Pi)) > 0.25 {
			t.Errorf("the square ends %v m from where it began: %+v, %+v", off, start, end)
		}
		if off := math.Hypot(end.X-known.X, end.Y-known.Y); off > 0.06 {
			t.Errorf("it believes to be at %+v, and is at %+v", known, end)
		}
		if a := p.sim.State().Angles[lifeos.JointLeftElbow]; math.Abs(a-32) > 1.5 {
			t.Errorf("after a way its elbow is at %v degrees, want the posture between steps", a)
		}
	})
}

// TestWalkSlowly: an order names the speed or the time, and a floor on which it slips is told as it was walked, not as the floor was.
func TestWalkSlowly(t *testing.T) {
	run(t, pleosim.Config{Slip: 0.2}, func(p *place) {
		p.Claim("robot")
		p.Wait(200 * ms)
		for _, tc := range []struct {
			o        control.Order
			from, to time.Duration
		}{
			{control.Order{Kind: control.Go, A: 0.1, Speed: 0.014, For: time.Minute}, 7 * time.Second, 13 * time.Second},
			{control.Order{Kind: control.Go, A: 0.1, Within: 12 * time.Second, For: time.Minute}, 10 * time.Second, 15 * time.Second},
		} {
			before, from := p.sim.State().Time, p.sim.State().Pose
			r := p.Move(tc.o)
			took, to := p.sim.State().Time-before, p.sim.State().Pose
			if r.Outcome != motion.Done || took < tc.from || took > tc.to {
				t.Errorf("%+v: %+v in %v", tc.o, r, took)
			}
			if got := math.Hypot(to.X-from.X, to.Y-from.Y); math.Abs(got-0.08) > 0.02 {
				t.Errorf("on a floor that takes a fifth it went %v", got)
			}
		}
	})
}

// TestWalkEnds: an order is refused, or ends, with the truth about it: too far, no number, a joint that is stuck, a hand that lifts it, a fall, a deadline, an
// order of its own for one of the legs, and an owner that leaves.
func TestWalkEnds(t *testing.T) {
	run(t, pleosim.Config{}, func(p *place) {
		p.Claim("robot")
		p.Wait(200 * ms)
		for _, o := range []control.Order{walking(control.Go, 3), walking(control.Turn, 7), walking(control.Go, math.NaN()), walking(control.Go, 0), {Kind: control.Go, A: 0.1}} {
			if r := p.Ask(o); r.Code != control.Invalid {
				t.Errorf("%+v: %+v, want it refused", o, r)
			}
		}
		meanwhile := func(o control.Order, act func()) control.Result {
			t.Helper()
			r := p.Ask(o)
			if r.Code != control.OK {
				t.Fatalf("%+v: %+v", o, r)
			}
			p.Wait(3 * time.Second)
			act()
			return p.Result("the end", func(e control.Result) bool { return e.Request == r.Request && e.Code == control.Ended })
		}
		for _, j := range []lifeos.Joint{lifeos.JointLeftShoulder, lifeos.JointRightShoulder, lifeos.JointLeftHip, lifeos.JointRightHip} {
			p.sim.Block(j, true)
		}
		if r := p.Move(walking(control.Go, 0.1)); r.Outcome != motion.Blocked {
			t.Errorf("with stuck hips: %+v", r)
		}
		for j := range lifeos.JointCount {
			p.sim.Block(j, false)
		}
		if r := meanwhile(walking(control.Go, 0.5), func() { p.poke("lift") }); r.Outcome != motion.Stopped {
			t.Errorf("lifted: %+v", r)
		}
		if r := p.Ask(walking(control.Go, 0.1)); r.Code != control.Refused {
			t.Errorf("in a hand: %+v", r)
		}
		p.poke("put")
		p.Wait(time.Second)
		if r := meanwhile(walking(control.Turn, 1), func() { p.poke("turn", "left") }); r.Outcome != motion.Stopped || !p.Happened("robot.fell") {
			t.Errorf("fallen: %+v, %+v", r, p.Events)
		}
		p.poke("put")
		p.Wait(time.Second)
		late := walking(control.Go, 0.5)
		late.For = 4 * time.Second
		if r := p.Move(late); r.Outcome != motion.Expired {
			t.Errorf("beyond its deadline: %+v", r)
		}
		p.Wait(3 * time.Second)
		if r := meanwhile(walking(control.Go, 0.3), func() { p.Ask(p.Goals(map[string]float64{"kneeFL.angle": -0.5})) }); r.Outcome != motion.Cancelled {
			t.Errorf("another order for a leg: %+v", r)
		}
		p.Ask(walking(control.Go, 0.3))
		p.Wait(2 * time.Second)
		p.Control.Post(control.Order{Kind: control.Drop, Owner: controltest.Alice})
		p.Wait(4 * time.Second)
		before := p.sim.State().Pose
		p.Wait(2 * time.Second)
		if after := p.sim.State().Pose; before != after || p.Report.Moving {
			t.Errorf("without an owner it goes from %+v to %+v", before, after)
		}
	})
}
