package vectorsdk_test

import (
	"math"
	"testing"

	"kennel/edge/body"
	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// TestLookAround: the head goes up and the robot turns once around, in quarters to the left (part of VEC-ACT-03); a turn that is ended otherwise ends the behavior, and
// so does CancelBehavior.
func TestLookAround(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	look := func() chan vectorpb.BehaviorResults {
		done := make(chan vectorpb.BehaviorResults, 1)
		go func() {
			a, err := p.LookAroundInPlace(p.ctx, &vectorpb.LookAroundInPlaceRequest{})
			if err != nil {
				t.Error(err)
			}
			done <- a.GetResult()
		}()
		return done
	}
	turns := func() (n int) {
		for _, o := range d.motions() {
			if o.Kind == control.Turn {
				n++
			}
		}
		return n
	}
	done := look()
	for n := range 4 {
		testwait.Until(t, patience, "a turn", testwait.Holds(func() bool { return turns() == n+1 && d.body.Moving() }))
		all := d.motions()
		if o := all[len(all)-1]; math.Abs(o.A-math.Pi/2) > 1e-9 {
			t.Errorf("turn %d: %v", n, o.A)
		}
		if n == 0 && (all[0].Kind != control.Set || all[0].Goals[0].Value >= 0) { // negative is up there
			t.Errorf("it begins with %+v", all[0])
		}
		d.body.End(motion.Done, math.Pi/2)
	}
	if got := testwait.For(t, done, "the behavior"); got != vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE {
		t.Error(got)
	}
	done = look()
	testwait.Until(t, patience, "a turn", testwait.Holds(func() bool { return turns() == 5 && d.body.Moving() }))
	if a, err := p.CancelBehavior(p.ctx, &vectorpb.CancelBehaviorRequest{}); err != nil || a.Status.Code != vectorpb.ResponseStatus_RESPONSE_RECEIVED {
		t.Errorf("%v, %v", a, err)
	}
	if got := testwait.For(t, done, "the behavior"); got != vectorpb.BehaviorResults_BEHAVIOR_INVALID_STATE {
		t.Error(got)
	}
}

// TestOnCharger: a robot on its charger has nothing to do; one that does not know where it is says so and does not move. The test of edge/app/robotapp drives it on.
func TestOnCharger(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	ask := func(want vectorpb.BehaviorResults) {
		t.Helper()
		if a, err := p.DriveOnCharger(p.ctx, &vectorpb.DriveOnChargerRequest{}); err != nil || a.Result != want {
			t.Errorf("%v, %v; want %v", a, err, want)
		}
	}
	ask(vectorpb.BehaviorResults_BEHAVIOR_WONT_ACTIVATE_STATE)
	d.body.SetReport(func(r *control.Report) { r.Supply = body.OnCharger })
	testwait.Until(t, patience, "the charger", testwait.Holds(func() bool {
		a, err := p.BatteryState(p.ctx, &vectorpb.BatteryStateRequest{})
		return err == nil && a.IsOnChargerPlatform
	}))
	ask(vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE)
	if a, err := p.LookAroundInPlace(p.ctx, &vectorpb.LookAroundInPlaceRequest{}); err != nil || a.Result != vectorpb.BehaviorResults_BEHAVIOR_WONT_ACTIVATE_STATE {
		t.Errorf("on the charger: %v, %v", a, err)
	}
	if n := len(d.motions()); n != 0 {
		t.Errorf("%d motions", n)
	}
}
