package vectorsdk

import (
	"context"
	"math"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/vectorsdk/navmap"
	"kennel/infra/api/vectorpb"
	"kennel/infra/backoff"
)

// behaviorTag is the tag of a behavior's motions, which no client can name (VEC-CTL-20).
const behaviorTag = 0

// The ways of the behaviors; own defaults.
const (
	offCharger      = 0.12 // m, from the contacts past the end of the rails
	offChargerSpeed = 0.1  // m/s
	offChargerTries = 5
	powerSeen       = 3 * time.Second // robotd reports the charger five times a second, and later on a busy machine

	beforeCharger   = 0.16  // m, from the contacts to where it turns its back to them
	atRails         = 0.075 // m, where the rails begin
	mostAskew       = 0.15  // rad that it may aim beside the charger's own heading
	onChargerMore   = 0.03  // m that it may drive back farther than the contacts
	onChargerSpeed  = 0.05
	onChargerTries  = 3
	lookAroundTurns = 4 // to the left, together once around
	lookAroundHead  = 0.35
	lookAroundSpeed = 1.5 // rad/s
)

// the results of behaviors.
const (
	complete     = vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE
	failed       = vectorpb.BehaviorResults_BEHAVIOR_INVALID_STATE
	wontActivate = vectorpb.BehaviorResults_BEHAVIOR_WONT_ACTIVATE_STATE
)

// behave does a behavior of the holder of control with the wheels. The result is WONT_ACTIVATE without control and while something else moves them
// (part of VEC-CTL-07).
func (f *Facade) behave(ctx context.Context, c client, call string, do func(context.Context, *hold, *job) (vectorpb.BehaviorResults, error)) (vectorpb.BehaviorResults, error) {
	h := f.control.of(c)
	if h == nil {
		return wontActivate, nil
	}
	t := h.tracks[wheels]
	if t == nil {
		return failed, errAbsent(call, "wheels")
	}
	j := &job{f: f, t: t, a: &action{tag: behaviorTag}, wheels: true}
	defer t.finish(j.a)
	r, err := do(ctx, h, j)
	if err == nil && !h.ended() {
		f.feltBehavior(call, r)
	}
	return r, err
}

// driveOffCharger drives forward until the charger's contacts are left behind, and remembers where it is. A robot that is not on the charger has nothing to do.
// The result is INVALID if it is still on the charger at the end.
func (f *Facade) driveOffCharger(ctx context.Context, c client, _ *vectorpb.DriveOffChargerRequest) (*vectorpb.DriveOffChargerResponse, error) {
	r, err := f.behave(ctx, c, "DriveOffCharger", func(ctx context.Context, h *hold, j *job) (vectorpb.BehaviorResults, error) {
		switch {
		case f.cfg.Gateway.Reports().State == nil:
			return failed, errLost
		case !f.onCharger():
			return complete, nil
		}
		f.world.docked(f.cfg.Gateway.Reports().Motion)
		j.tries = offChargerTries
		// A stop on the way leaves it between the rails, so the rest of the way counts although the contacts are open.
		switch code, err := j.do(ctx, func(moved float64) core.Order { return withSpeed(core.Go(offCharger-moved), offChargerSpeed) }); {
		case err != nil:
			return failed, err
		case code == vectorpb.ActionResult_TRACKS_LOCKED:
			return wontActivate, nil
		case code == vectorpb.ActionResult_ACTION_RESULT_SUCCESS && f.charged(ctx, false):
			return complete, nil
		}
		return failed, nil
	})
	return &vectorpb.DriveOffChargerResponse{Status: heard(), Result: r}, err
}

// driveOnCharger drives to where the robot left its charger, backs onto it and looks whether it gets power: COMPLETE means that it does (part of VEC-OBJ-02).
// WONT_ACTIVATE if it does not know where the charger is: it has no eye for it, so it must have been on it since it was lifted last.
func (f *Facade) driveOnCharger(ctx context.Context, c client, _ *vectorpb.DriveOnChargerRequest) (*vectorpb.DriveOnChargerResponse, error) {
	r, err := f.behave(ctx, c, "DriveOnCharger", func(ctx context.Context, h *hold, j *job) (vectorpb.BehaviorResults, error) {
		return j.home(ctx, h)
	})
	return &vectorpb.DriveOnChargerResponse{Status: heard(), Result: r}, err
}

// home does the work of driveOnCharger.
func (j *job) home(ctx context.Context, h *hold) (vectorpb.BehaviorResults, error) {
	f := j.f
	if f.cfg.Gateway.Reports().State == nil {
		return failed, errLost
	}
	if f.onCharger() {
		return complete, nil
	}
	dock, known := f.world.dock()
	if !known {
		return wontActivate, nil
	}
	sin, cos := math.Sincos(dock.Yaw)
	before := navmap.Point{X: dock.X + beforeCharger*cos, Y: dock.Y + beforeCharger*sin}
	for range onChargerTries {
		switch code, err := j.goTo(ctx, before, dock.Yaw, legSpeed, legTurn); {
		case err != nil:
			return failed, err
		case j.a.cancelled.Load(), h.ended():
			return failed, nil
		case code == vectorpb.ActionResult_TRACKS_LOCKED:
			return wontActivate, nil
		case code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS:
			continue
		}
		for _, left := range [...]float64{atRails, -onChargerMore} { // aimed again where the rails begin
			if err := j.backTo(ctx, dock, left); err != nil {
				return failed, err
			}
		}
		if f.charged(ctx, true) {
			return complete, nil
		}
	}
	return failed, nil
}

// GoHome drives onto the charger for a person, with the motors of own, agentd's connection to robotd. It blocks until the robot is there or cannot get
// there; the end of ctx stops it. It is false if the robot does not know where its charger is. An error of coreclient says who has the motors.
func (f *Facade) GoHome(ctx context.Context, own *coreclient.Client) (known bool, err error) {
	if _, known := f.world.dock(); !known {
		return false, nil
	}
	h, err := f.holdOf(ctx, own, func() {}, "agentd", claim.Behavior, wheels)
	if err != nil {
		return true, err
	}
	defer h.end()
	t := h.tracks[wheels]
	if t == nil {
		return true, errAbsent("GoHome", "wheels")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for backoff.Sleep(ctx, beat) == nil {
			if !h.renew(ctx) { // something more important has a motor
				stop()
			}
		}
	}()
	j := &job{f: f, t: t, a: &action{tag: behaviorTag}, wheels: true}
	defer t.finish(j.a)
	_, err = j.home(ctx, h)
	return true, err
}

// backTo aims the back of the robot at the contacts, and drives back until it is so far before them; negative: past them, where the back wall ends it.
func (j *job) backTo(ctx context.Context, dock navmap.Box, left float64) error {
	at, err := j.f.restingPose(ctx)
	if err != nil {
		return err
	}
	dx, dy := at.X-dock.X, at.Y-dock.Y
	aim := min(max(robot.WrapPi(math.Atan2(dy, dx)-dock.Yaw), -mostAskew), mostAskew)
	if _, err := j.turnTo(ctx, dock.Yaw+aim, legTurn); err != nil {
		return err
	}
	way := math.Hypot(dx, dy) - left
	_, err = j.do(ctx, func(moved float64) core.Order { return withSpeed(core.Go(-way-moved), onChargerSpeed) })
	return err
}

// lookAroundInPlace raises the head and turns once around (part of VEC-ACT-03). Objects that it sees meanwhile are told as events; for faces it has no eye yet.
func (f *Facade) lookAroundInPlace(ctx context.Context, c client, _ *vectorpb.LookAroundInPlaceRequest) (*vectorpb.LookAroundInPlaceResponse, error) {
	r, err := f.behave(ctx, c, "LookAroundInPlace", func(ctx context.Context, h *hold, j *job) (vectorpb.BehaviorResults, error) {
		if f.onCharger() {
			return wontActivate, nil
		}
		f.looks.want(1)
		defer f.looks.want(-1)
		if err := j.nod(ctx, lookAroundHead); err != nil {
			return failed, err
		}
		for range lookAroundTurns {
			code, err := j.do(ctx, func(moved float64) core.Order {
				return withSpeed(core.Turn(robot.YawOfTurn(2*math.Pi/lookAroundTurns)-moved), lookAroundSpeed)
			})
			switch {
			case err != nil:
				return failed, err
			case code == vectorpb.ActionResult_TRACKS_LOCKED:
				return wontActivate, nil
			case code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS:
				return failed, nil
			}
		}
		return complete, j.nod(ctx, 0)
	})
	return &vectorpb.LookAroundInPlaceResponse{Status: heard(), Result: r}, err
}

// charged waits until the robot is on its charger, or not, as soon as robotd had the time to say so; false: it is not so.
func (f *Facade) charged(ctx context.Context, want bool) bool {
	ctx, cancel := context.WithTimeout(ctx, powerSeen)
	defer cancel()
	tick := time.NewTicker(powerSeen / 20)
	defer tick.Stop()
	for f.onCharger() != want {
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
