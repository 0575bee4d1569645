package vectorsdk

import (
	"context"
	"errors"
	"math"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/gateway"
	"kennel/edge/robot"
	"kennel/infra/api/vectorpb"
	"kennel/infra/backoff"
	"kennel/infra/errs"
)

// The body in its own units.
const (
	wheelRadius = 0.0145 // m, as the driver counts (VEC-MOT-10)
	armLength   = 0.066  // m, of the lift's arm
	headUp      = 45 * math.Pi / 180
	headDown    = -22 * math.Pi / 180
	liftLow     = 0.032 // m
	liftHigh    = 0.092
	mm          = 1e-3
)

func answered(code vectorpb.ResponseStatus_StatusCode) *vectorpb.ResponseStatus {
	return &vectorpb.ResponseStatus{Code: code}
}

// Statuses (part of VEC-TRN-07).
func forbidden() *vectorpb.ResponseStatus { return answered(vectorpb.ResponseStatus_FORBIDDEN) }
func begun() *vectorpb.ResponseStatus     { return answered(vectorpb.ResponseStatus_REQUEST_PROCESSING) }
func heard() *vectorpb.ResponseStatus     { return answered(vectorpb.ResponseStatus_RESPONSE_RECEIVED) }
func fine() *vectorpb.ResponseStatus      { return answered(vectorpb.ResponseStatus_OK) }

// level sets a speed that lasts on a track, or with a nil order stops it. The status is FORBIDDEN without control (part of VEC-CTL-07), and while an action moves
// the track.
func (f *Facade) level(ctx context.Context, c client, call, part string, track int, order func(t *track) *core.Order) (*vectorpb.ResponseStatus, error) {
	h := f.control.of(c)
	if h == nil {
		return forbidden(), nil
	}
	t := h.tracks[track]
	if t == nil {
		return nil, errAbsent(call, part)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.action != nil || h.ended() {
		return forbidden(), nil
	}
	o := order(t)
	if o == nil {
		t.resume.Store(false)
		if t.speed.Load() == nil {
			return begun(), nil
		}
		return begun(), t.rest(ctx)
	}
	return begun(), t.set(ctx, *o)
}

// driveWheels sets the speeds of the treads; both 0 free the track (VEC-MOV-02).
func (f *Facade) driveWheels(ctx context.Context, c client, q *vectorpb.DriveWheelsRequest) (*vectorpb.DriveWheelsResponse, error) {
	s, err := f.level(ctx, c, "DriveWheels", "wheels", wheels, func(t *track) *core.Order {
		if q.LeftWheelMmps == 0 && q.RightWheelMmps == 0 {
			return nil
		}
		if t.speed.Load() == nil {
			t.levels = [2]float64{}
		}
		want := [2]float64{radians(q.LeftWheelMmps), radians(q.RightWheelMmps)}
		within := max(ramp(want[0]-t.levels[0], radians(q.LeftWheelMmps2)), ramp(want[1]-t.levels[1], radians(q.RightWheelMmps2)))
		t.levels = want
		o := core.Set("wheelL.speed", want[0]).And(core.Set("wheelR.speed", want[1])).For(driveFor)
		if within >= time.Millisecond {
			for i := range o.Steps[0] {
				o.Steps[0][i].Time = min(within, driveFor)
			}
		}
		return &o
	})
	return &vectorpb.DriveWheelsResponse{Status: s}, err
}

// radians returns the speed of a wheel in rad/s for the speed of its tread in mm/s.
func radians(mmps float32) float64 { return float64(mmps) * mm / wheelRadius }

// ramp returns the time that a change of speed takes with an acceleration; 0: as the body likes.
func ramp(change, accel float64) time.Duration {
	if accel == 0 {
		return 0
	}
	return seconds(math.Abs(change / accel))
}

// seconds returns a duration, within what an order may last.
func seconds(s float64) time.Duration { return time.Duration(min(s, 60) * float64(time.Second)) }

// moveHead turns the head up or down until it reaches its end (VEC-MOV-04).
func (f *Facade) moveHead(ctx context.Context, c client, q *vectorpb.MoveHeadRequest) (*vectorpb.MoveHeadResponse, error) {
	s, err := f.level(ctx, c, "MoveHead", "a head", head, toEnd("headPitch", float64(q.SpeedRadPerSec), -headDown, -headUp))
	return &vectorpb.MoveHeadResponse{Status: s}, err
}

// moveLift moves the lift up or down until it reaches its end. Its arm turns; the tree has its height.
func (f *Facade) moveLift(ctx context.Context, c client, q *vectorpb.MoveLiftRequest) (*vectorpb.MoveLiftResponse, error) {
	s, err := f.level(ctx, c, "MoveLift", "a lift", lift, toEnd("arm", float64(q.SpeedRadPerSec)*armLength, liftLow, liftHigh))
	return &vectorpb.MoveLiftResponse{Status: s}, err
}

// toEnd returns the order to move a joint to its lower end or, with a positive speed, to its upper one; speed 0 stops it.
func toEnd(name string, speed, down, up float64) func(*track) *core.Order {
	return func(*track) *core.Order {
		if speed == 0 {
			return nil
		}
		end := up
		if speed < 0 {
			end = down
		}
		o := withSpeed(core.Set(name, end), math.Abs(speed))
		return &o
	}
}

// withSpeed returns o, of one line, with a speed; 0: as the body likes.
func withSpeed(o core.Order, speed float64) core.Order {
	o.Steps[0][0].Speed = speed
	return o
}

// withTime returns o, of one line, with the time until it is there, or if that is 0 with a speed.
func withTime(o core.Order, duration, speed float32) core.Order {
	if d := seconds(float64(duration)); d >= time.Millisecond {
		o.Steps[0][0].Time = d
		return o
	}
	return withSpeed(o, math.Abs(float64(speed)))
}

// stopAllMotors stops all motors, also those of actions (VEC-MOV-07).
func (f *Facade) stopAllMotors(ctx context.Context, c client, _ *vectorpb.StopAllMotorsRequest) (*vectorpb.StopAllMotorsResponse, error) {
	h := f.control.of(c)
	if h == nil {
		return &vectorpb.StopAllMotorsResponse{Status: forbidden()}, nil
	}
	for _, t := range h.tracks {
		if t != nil {
			t.resume.Store(false)
		}
	}
	return &vectorpb.StopAllMotorsResponse{Status: heard()}, f.cfg.Gateway.Core().Stop(ctx)
}

// retryAfter is the pause before the next try of an action; own default.
const retryAfter = 100 * time.Millisecond

// maxRolling is how long a body may roll before the next try; own default.
const maxRolling = time.Second

// maxHiccups is how often an action continues after the robot's loop was late; own default.
const maxHiccups = 50

// tags of actions (VEC-CTL-20).
const (
	firstTag = 2000001
	lastTag  = 3000000
)

// plan is how an action is done.
type plan struct {
	call, part string
	track      int
	tag        int32
	retries    int32
	order      func(moved float64) core.Order // moved: the way that tries before this one made, as the call counts it
	unless     func() vectorpb.ActionResult_ActionResultCode
}

// act does an action of one motion and returns how it ended (VEC-CTL-21). Failures that a retry may mend are tried again as often as the client asked
// (VEC-CTL-22). A client that ends the call ends the action. The error is for a tag outside the range, and for a body without the part.
func (f *Facade) act(ctx context.Context, c client, p plan) (*vectorpb.ActionResult, error) {
	return f.actBy(ctx, c, p, func(ctx context.Context, j *job) (vectorpb.ActionResult_ActionResultCode, error) {
		return j.do(ctx, p.order)
	})
}

// job is an action under way, which may take several motions of its track.
type job struct {
	f       *Facade
	t       *track
	a       *action
	wheels  bool
	begun   bool
	tries   int32 // that are left
	hiccups int
}

// actBy is act for an action that do does.
func (f *Facade) actBy(ctx context.Context, c client, p plan, do func(context.Context, *job) (vectorpb.ActionResult_ActionResultCode, error)) (*vectorpb.ActionResult, error) {
	if p.tag < firstTag || p.tag > lastTag {
		return nil, errInvalid("id_tag: %d, want %d to %d", p.tag, firstTag, lastTag)
	}
	result := func(code vectorpb.ActionResult_ActionResultCode) (*vectorpb.ActionResult, error) {
		return &vectorpb.ActionResult{Code: code}, nil
	}
	h := f.control.of(c)
	if h == nil {
		return result(vectorpb.ActionResult_NOT_STARTED)
	}
	t := h.tracks[p.track]
	if t == nil {
		return nil, errAbsent(p.call, p.part)
	}
	if h.busy(p.tag) {
		return result(vectorpb.ActionResult_BAD_TAG)
	}
	if p.unless != nil {
		if code := p.unless(); code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return result(code)
		}
	}
	j := &job{f: f, t: t, a: &action{tag: p.tag}, wheels: p.track == wheels, tries: min(p.retries, maxRetries)}
	defer t.finish(j.a)
	code, err := do(ctx, j)
	if err != nil {
		return nil, err
	}
	f.felt(p.call, code)
	return result(code)
}

// do does one motion of an action. moved is the way that tries before this one made, as the call counts it.
func (j *job) do(ctx context.Context, order func(moved float64) core.Order) (vectorpb.ActionResult_ActionResultCode, error) {
	f, t, moved := j.f, j.t, 0.0
	for {
		if j.a.cancelled.Load() { // between two motions
			return vectorpb.ActionResult_ACTION_RESULT_CANCELLED_WHILE_RUNNING, nil
		}
		end, err := t.attempt(ctx, j.a, order(moved))
		code := outcome(end, err)
		if f.lifted() && j.wheels && (code == vectorpb.ActionResult_RETRY || code == vectorpb.ActionResult_INTERRUPTED) {
			code = vectorpb.ActionResult_INVALID_OFF_TREADS_STATE
		}
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case code == vectorpb.ActionResult_ACTION_RESULT_SUCCESS:
			j.begun = true
		case errors.Is(err, errBusy):
		case j.a.cancelled.Load():
			code = vectorpb.ActionResult_ACTION_RESULT_CANCELLED_WHILE_RUNNING
		case t.h.ended() && !j.begun && errors.Is(err, errOver):
			code = vectorpb.ActionResult_NOT_STARTED
		case t.h.ended():
			code = vectorpb.ActionResult_INTERRUPTED
		case coreclient.Passing(end, err) && j.hiccups < maxHiccups: // no failure of the action: it goes the rest of its way
			j.hiccups++
			moved += end.Moved + f.rolled(ctx, end)
			continue
		case code >= vectorpb.ActionResult_RETRY && j.tries > 0:
			j.tries--
			j.begun = true
			moved += end.Moved + f.rolled(ctx, end)
			continue
		}
		return code, nil
	}
}

// rolled pauses before the next try until the body rests, and returns how far it rolled on after the end of a motion, as the motion counts its way.
func (f *Facade) rolled(ctx context.Context, end corelink.Ended) float64 {
	before := f.cfg.Gateway.Reports().Motion
	err := backoff.Sleep(ctx, retryAfter)
	for deadline := time.Now().Add(maxRolling); err == nil && before != nil && time.Now().Before(deadline); err = backoff.Sleep(ctx, retryAfter/2) {
		now := f.cfg.Gateway.Reports().Motion
		switch {
		case end.Unit == "" || now == nil:
			return 0
		case now.AtUS == before.AtUS || math.Abs(now.Speed) > 1e-3 || math.Abs(now.Turning) > 1e-2:
		case end.Unit == "m":
			return (now.X-end.X)*math.Cos(end.Theta) + (now.Y-end.Y)*math.Sin(end.Theta)
		default:
			return -math.Remainder(now.Theta-end.Theta, 2*math.Pi) // to the right
		}
	}
	return 0
}

// attempt gives the order of an action and waits until it has ended.
func (t *track) attempt(ctx context.Context, a *action, o core.Order) (corelink.Ended, error) {
	m, err := t.begin(ctx, a, o)
	if err != nil {
		return corelink.Ended{}, err
	}
	limit, cancel := context.WithTimeout(ctx, o.Longest()+ease)
	defer cancel()
	end, err := m.Wait(limit)
	if err != nil && ctx.Err() != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.h.ended() {
			_ = t.rest(ctx) // a claim that is lost is found by the next beat
		}
	}
	return end, err
}

// outcome returns the result of an action for the end of its motion.
func outcome(end corelink.Ended, err error) vectorpb.ActionResult_ActionResultCode {
	if err != nil {
		return refused(err)
	}
	switch end.Outcome {
	case corelink.Done:
		return vectorpb.ActionResult_ACTION_RESULT_SUCCESS
	case "expired":
		return vectorpb.ActionResult_TIMEOUT
	case "blocked":
		return vectorpb.ActionResult_MOTOR_STOPPED_MAKING_PROGRESS
	case "missed":
		return vectorpb.ActionResult_FAILED_TRAVERSING_PATH
	case "astray":
		return vectorpb.ActionResult_FOLLOWING_PATH_BUT_NOT_TRAVERSING
	}
	return vectorpb.ActionResult_INTERRUPTED // cancelled, released, stopped: by something other than the action
}

// refused returns the result of an action that robotd did not begin.
func refused(err error) vectorpb.ActionResult_ActionResultCode {
	if errors.Is(err, errBusy) {
		return vectorpb.ActionResult_TRACKS_LOCKED
	}
	switch errs.CodeOf(gateway.Known(err)) {
	case "not_held", "gone", "busy":
		return vectorpb.ActionResult_INTERRUPTED
	case "invalid":
		return vectorpb.ActionResult_BAD_POSE
	case "stopped": // for now: its loop was late, a fault, a person
		return vectorpb.ActionResult_RETRY
	}
	return vectorpb.ActionResult_SEND_MESSAGE_TO_ROBOT_FAILED
}

// driveStraight drives a way, which it does not on the charger (part of VEC-MOV-01).
func (f *Facade) driveStraight(ctx context.Context, c client, q *vectorpb.DriveStraightRequest) (*vectorpb.DriveStraightResponse, error) {
	r, err := f.act(ctx, c, plan{call: "DriveStraight", part: "wheels", track: wheels, tag: q.IdTag, retries: q.NumRetries,
		order: func(moved float64) core.Order {
			return withSpeed(core.Go(float64(q.DistMm)*mm-moved), math.Abs(float64(q.SpeedMmps)*mm))
		},
		unless: f.notOnCharger})
	return &vectorpb.DriveStraightResponse{Status: heard(), Result: r}, err
}

// turnInPlace turns by an angle, or to a heading; positive is to the left (part of VEC-MOV-08).
func (f *Facade) turnInPlace(ctx context.Context, c client, q *vectorpb.TurnInPlaceRequest) (*vectorpb.TurnInPlaceResponse, error) {
	by := float64(q.AngleRad)
	if q.IsAbsolute != 0 {
		if now := f.motion(ctx); now != nil {
			by = robot.WrapPi(by - now.Theta)
		}
	}
	r, err := f.act(ctx, c, plan{call: "TurnInPlace", part: "wheels", track: wheels, tag: q.IdTag, retries: q.NumRetries,
		order: func(moved float64) core.Order {
			return withSpeed(core.Turn(robot.YawOfTurn(by)-moved), math.Abs(float64(q.SpeedRadPerSec)))
		}})
	return &vectorpb.TurnInPlaceResponse{Status: heard(), Result: r}, err
}

// setHeadAngle turns the head to an angle, limited to what it can reach (VEC-MOV-05).
func (f *Facade) setHeadAngle(ctx context.Context, c client, q *vectorpb.SetHeadAngleRequest) (*vectorpb.SetHeadAngleResponse, error) {
	r, err := f.act(ctx, c, plan{call: "SetHeadAngle", part: "a head", track: head, tag: q.IdTag, retries: q.NumRetries,
		order: func(float64) core.Order {
			return withTime(core.Set("headPitch", -min(max(float64(q.AngleRad), headDown), headUp)), q.DurationSec, q.MaxSpeedRadPerSec)
		}})
	return &vectorpb.SetHeadAngleResponse{Status: heard(), Result: r}, err
}

// setLiftHeight moves the lift to a height, limited to what it can reach (VEC-MOV-06).
func (f *Facade) setLiftHeight(ctx context.Context, c client, q *vectorpb.SetLiftHeightRequest) (*vectorpb.SetLiftHeightResponse, error) {
	r, err := f.act(ctx, c, plan{call: "SetLiftHeight", part: "a lift", track: lift, tag: q.IdTag, retries: q.NumRetries,
		order: func(float64) core.Order {
			return withTime(core.Set("arm", min(max(float64(q.HeightMm)*mm, liftLow), liftHigh)), q.DurationSec, q.MaxSpeedRadPerSec*armLength)
		}})
	return &vectorpb.SetLiftHeightResponse{Status: heard(), Result: r}, err
}

// cancelAction ends an action by its tag. NOT_FOUND: none with that tag is under way.
func (f *Facade) cancelAction(ctx context.Context, c client, q *vectorpb.CancelActionByIdTagRequest) (*vectorpb.CancelActionByIdTagResponse, error) {
	h := f.control.of(c)
	switch {
	case h == nil:
		return &vectorpb.CancelActionByIdTagResponse{Status: forbidden()}, nil
	case q.IdTag < firstTag || q.IdTag > lastTag:
		return nil, errInvalid("id_tag: %d, want %d to %d", q.IdTag, firstTag, lastTag)
	}
	found, err := h.cancel(ctx, int32(q.IdTag))
	if !found {
		return &vectorpb.CancelActionByIdTagResponse{Status: answered(vectorpb.ResponseStatus_NOT_FOUND)}, nil
	}
	return &vectorpb.CancelActionByIdTagResponse{Status: heard()}, err
}
