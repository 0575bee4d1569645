package vectorsdk

import (
	"context"
	"errors"
	"time"

	"kennel/edge/core"
	"kennel/edge/corelink"
	"kennel/infra/api/vectorpb"
)

// behaviorTag is the tag of a behavior's motion, which no client can name (VEC-CTL-20).
const behaviorTag = 0

// The way off the charger; own defaults.
const (
	offCharger      = 0.12 // m, from the contacts past the end of the rails
	offChargerSpeed = 0.1  // m/s
	offChargerTries = 5
	powerSeen       = time.Second // robotd reports the charger five times a second
)

// driveOffCharger drives forward until the charger's contacts are left behind. A robot that is not on the charger has nothing to do. The result is
// WONT_ACTIVATE without control and while something else moves the wheels (part of VEC-CTL-07), and INVALID if it is still on the charger at the end.
func (f *Facade) driveOffCharger(ctx context.Context, c client, _ *vectorpb.DriveOffChargerRequest) (*vectorpb.DriveOffChargerResponse, error) {
	result := func(r vectorpb.BehaviorResults) (*vectorpb.DriveOffChargerResponse, error) {
		return &vectorpb.DriveOffChargerResponse{Status: heard(), Result: r}, nil
	}
	h := f.control.of(c)
	switch {
	case h == nil:
		return result(vectorpb.BehaviorResults_BEHAVIOR_WONT_ACTIVATE_STATE)
	case f.cfg.Gateway.Reports().State == nil:
		return nil, errLost
	case !f.onCharger():
		return result(vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE)
	}
	t := h.tracks[wheels]
	if t == nil {
		return nil, errAbsent("DriveOffCharger", "wheels")
	}
	a := &action{tag: behaviorTag}
	defer t.finish(a)
	for range offChargerTries {
		end, err := t.attempt(ctx, a, withSpeed(core.Go(offCharger), offChargerSpeed))
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errBusy):
			return result(vectorpb.BehaviorResults_BEHAVIOR_WONT_ACTIVATE_STATE)
		case a.cancelled.Load(), h.ended():
			return result(vectorpb.BehaviorResults_BEHAVIOR_INVALID_STATE)
		case f.leftCharger(ctx):
			return result(vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE)
		case err == nil && end.Outcome == corelink.Done:
			return result(vectorpb.BehaviorResults_BEHAVIOR_INVALID_STATE)
		}
	}
	return result(vectorpb.BehaviorResults_BEHAVIOR_INVALID_STATE)
}

// leftCharger reports whether the charger is gone, as soon as robotd had the time to say so.
func (f *Facade) leftCharger(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, powerSeen)
	defer cancel()
	tick := time.NewTicker(powerSeen / 20)
	defer tick.Stop()
	for f.onCharger() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// cancelBehavior ends the behavior that a program began (part of VEC-CTL-24). NOT_FOUND: there is none.
func (f *Facade) cancelBehavior(ctx context.Context, c client, _ *vectorpb.CancelBehaviorRequest) (*vectorpb.CancelBehaviorResponse, error) {
	h := f.control.of(c)
	if h == nil {
		return &vectorpb.CancelBehaviorResponse{Status: forbidden()}, nil
	}
	found, err := h.cancel(ctx, behaviorTag)
	if !found {
		return &vectorpb.CancelBehaviorResponse{Status: answered(vectorpb.ResponseStatus_NOT_FOUND)}, nil
	}
	return &vectorpb.CancelBehaviorResponse{Status: heard()}, err
}
