package vectorsdk

import (
	"context"
	"math"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/corelink"
	"kennel/edge/robot"
	"kennel/edge/vectorsdk/navmap"
	"kennel/infra/api/vectorpb"
	"kennel/infra/backoff"
)

// A way of several legs; own defaults.
const (
	aroundBody  = 0.065           // m: the middle of a robot that turns keeps this from obstacles
	reached     = 0.012           // m
	facing      = math.Pi / 180   // rad
	maxLegs     = 40              // of one way
	maxTurns    = 2               // to one heading
	legSpeed    = 0.1             // m/s
	legTurn     = 2.0             // rad/s
	settledPose = 2 * time.Second // robotd reports the pose five times a second
)

// goToPose drives to a pose around what the map holds, in straight legs, and turns to the angle there; z does not matter (part of VEC-MOV-03). Each leg begins
// with a plan from where the robot is. PATH_PLANNING_FAILED_ABORT: no way is known.
func (f *Facade) goToPose(ctx context.Context, c client, q *vectorpb.GoToPoseRequest) (*vectorpb.GoToPoseResponse, error) {
	p := plan{call: "GoToPose", part: "wheels", track: wheels, tag: q.IdTag, retries: q.NumRetries, unless: f.notOnCharger}
	r, err := f.actBy(ctx, c, p, func(ctx context.Context, j *job) (vectorpb.ActionResult_ActionResultCode, error) {
		speed, turning := legSpeed, legTurn
		if m := q.GetMotionProf(); m.GetIsCustom() {
			speed, turning = math.Abs(float64(m.SpeedMmps))*mm, math.Abs(float64(m.PointTurnSpeedRadPerSec))
		}
		return j.goTo(ctx, navmap.Point{X: float64(q.XMm) * mm, Y: float64(q.YMm) * mm}, float64(q.Rad), speed, turning)
	})
	return &vectorpb.GoToPoseResponse{Status: heard(), Result: r}, err
}

// goTo drives to a place and turns to a heading there.
func (j *job) goTo(ctx context.Context, to navmap.Point, heading, speed, turning float64) (vectorpb.ActionResult_ActionResultCode, error) {
	for range maxLegs {
		at, err := j.f.restingPose(ctx)
		if err != nil {
			return 0, err
		}
		here := navmap.Point{X: at.X, Y: at.Y}
		if math.Hypot(to.X-here.X, to.Y-here.Y) <= reached {
			return j.turnTo(ctx, heading, turning)
		}
		way, ok := j.f.world.path(here, to, aroundBody)
		if !ok {
			return vectorpb.ActionResult_PATH_PLANNING_FAILED_ABORT, nil
		}
		next := way[0]
		if code, err := j.turnTo(ctx, math.Atan2(next.Y-here.Y, next.X-here.X), turning); err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return code, err
		}
		leg := math.Hypot(next.X-here.X, next.Y-here.Y)
		code, err := j.do(ctx, func(moved float64) core.Order { return withSpeed(core.Go(leg-moved), speed) })
		if err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return code, err
		}
	}
	return vectorpb.ActionResult_FAILED_TRAVERSING_PATH, nil
}

// turnTo turns to a heading, and again if the body stopped before it.
func (j *job) turnTo(ctx context.Context, heading, speed float64) (code vectorpb.ActionResult_ActionResultCode, err error) {
	for range maxTurns {
		at, err := j.f.restingPose(ctx)
		if err != nil {
			return 0, err
		}
		by := robot.WrapPi(heading - at.Theta)
		if math.Abs(by) <= facing {
			return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, nil
		}
		if code, err = j.do(ctx, func(moved float64) core.Order { return withSpeed(core.Turn(robot.YawOfTurn(by)-moved), speed) }); err != nil ||
			code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return code, err
		}
	}
	return code, nil
}

// restingPose returns a report of the pose that was made after the call, of a robot that rests.
func (f *Facade) restingPose(ctx context.Context) (*corelink.Motion, error) {
	before := f.cfg.Gateway.Reports().Motion
	deadline := time.Now().Add(settledPose)
	for {
		now := f.cfg.Gateway.Reports().Motion
		switch {
		case now == nil:
			return nil, errLost
		case before == nil || now.AtUS != before.AtUS && math.Abs(now.Speed) < 1e-3 && math.Abs(now.Turning) < 1e-2, time.Now().After(deadline):
			return now, nil
		}
		if err := backoff.Sleep(ctx, retryAfter/4); err != nil {
			return nil, err
		}
	}
}

func (f *Facade) notOnCharger() vectorpb.ActionResult_ActionResultCode {
	if f.onCharger() {
		return vectorpb.ActionResult_SHOULDNT_DRIVE_ON_CHARGER
	}
	return vectorpb.ActionResult_ACTION_RESULT_SUCCESS
}
