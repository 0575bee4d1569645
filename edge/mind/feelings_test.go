package mind_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"kennel/edge/core/control"
	"kennel/edge/mind/mindlink"
	"kennel/infra/errs"
)

// feel follows the mood of a desk's robot. The first feeling was told already.
func (d *desk) feel(t *testing.T) (next func() mindlink.Feeling) {
	t.Helper()
	all, ended := make(chan mindlink.Feeling, 64), make(chan error, 1)
	ctx, cancel := context.WithCancel(d.ctx)
	go func() {
		ended <- d.Feelings(ctx, func(f mindlink.Feeling) error { all <- f; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	next = func() mindlink.Feeling {
		t.Helper()
		select {
		case f := <-all:
			return f
		case <-d.ctx.Done():
			t.Fatal("nothing is felt")
			return mindlink.Feeling{}
		}
	}
	return next
}

// named waits for a feeling that an event changed.
func named(t *testing.T, next func() mindlink.Feeling, event string) mindlink.Feeling {
	t.Helper()
	for {
		if f := next(); slices.Contains(f.Events, event) {
			return f
		}
	}
}

// TestFeelings: what robotd tells and what programs say moves the mood, and who follows it hears each change once, with the value before (VEC-EMO-10).
func TestFeelings(t *testing.T) {
	t.Parallel()
	d := newDesk(t, display)
	next := d.feel(t)
	if f := next(); f.Emotions["Stimulated"] != (mindlink.Emotion{Max: 1}) || f.Emotions["Social"] != (mindlink.Emotion{Min: -1, Max: 1}) || len(f.Emotions) != 5 || f.Simple != "Default" || f.Events != nil {
		t.Errorf("at rest: %+v", f)
	}
	d.body.Emit(control.Event{Name: "robot.touched", Quiet: true, N: 1, Numbers: [4]int64{1}})
	if f := named(t, next, "PettingStarted"); f.Emotions["Stimulated"] != (mindlink.Emotion{Value: 1, Max: 1}) || len(f.Events) != 1 {
		t.Errorf("touched: %+v", f)
	}
	e := control.Event{Name: "robot.offtreadsstatechanged"}
	e.Texts[0], e.Texts[1] = "InAir", "OnTreads"
	d.body.Emit(e)
	before := named(t, next, "ReactToPickedUp").Emotions["Trust"].Value
	if before <= 0 {
		t.Errorf("picked up: trust %v, want more than 0", before)
	}
	for n, most := 1, false; !most; n++ {
		d.body.Emit(control.Event{Name: "robot.petted", Quiet: true, N: 1, Numbers: [4]int64{1}})
		most = slices.Contains(named(t, next, "PettingBlissLevelIncrease").Events, "PettingReachedMaxBliss")
		if most && n < 4 || n > 8 { // bliss fades meanwhile
			t.Errorf("petted %d times: at most bliss %v", n, most)
			break
		}
	}
	if err := d.Feel(d.ctx, mindlink.Feel{Action: "DockWithCube", Result: mindlink.Abort}); err != nil {
		t.Fatal(err)
	}
	if f := named(t, next, "DrivingActionFailedWithAbort"); f.Emotions["Stimulated"].Value >= f.Emotions["Stimulated"].Before || f.Emotions["Confident"].Value >= 0 {
		t.Errorf("a failure: %+v", f)
	}
	if err := d.Feel(d.ctx, mindlink.Feel{Action: "SetHeadAngle", Result: mindlink.Success}); err != nil {
		t.Errorf("an action that moves nothing: %v", err)
	}
	if err := d.Feel(d.ctx, mindlink.Feel{Events: []string{"Nonsense"}}); errs.CodeOf(err) != "not_found" {
		t.Errorf("an unknown event: %v, want not_found", err)
	}
	for { // it fades, and is a simple mood when it lasts
		if f := next(); f.Simple != f.SimpleBefore {
			if f.SimpleBefore != "Default" || f.Simple == "Default" {
				t.Errorf("the simple mood became %s from %s", f.Simple, f.SimpleBefore)
			}
			break
		}
	}
}
