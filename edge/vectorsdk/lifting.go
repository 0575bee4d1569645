package vectorsdk

import (
	"context"
	"math"
	"time"

	"kennel/edge/core"
	"kennel/edge/cube"
	"kennel/edge/gateway"
	"kennel/edge/robot"
	"kennel/infra/api/vectorpb"
	"kennel/infra/backoff"
)

// The work of the lift; own defaults.
const (
	pressed    = 0.005            // m that the robot pushes a cube, so that its hooks are in
	liftSpeed  = 0.1              // m/s
	backOff    = 0.05             // m from a cube that it lifted or put down, where it looks
	rollBack   = 0.1              // m that it drives back while it rolls a cube, and past it
	rollSpeed  = 0.08             // m/s
	rolledOver = cubeEdge * 3 / 4 // m that a cube went at least which was rolled
	cubeTells  = 3 * time.Second  // that a cube may take to tell what happened to it
)

// carrying reports which object is on the lift, and whether the robot docks with one, lifts it or puts it down.
func (f *Facade) carrying() (id int32, busy bool) {
	return f.carry.id.Load(), f.carry.busy.Load() > 0
}

// pickupObject docks with a cube and lifts it (part of VEC-CUB-06). STILL_CARRYING_OBJECT: something is on the lift. BAD_OBJECT, VISUAL_OBSERVATION_FAILED: as GoToObject. If the cube is connected
// its own accelerometer says whether it was lifted: PICKUP_OBJECT_UNEXPECTEDLY_MOVING, PICKUP_OBJECT_UNEXPECTEDLY_NOT_MOVING. LAST_PICK_AND_PLACE_FAILED: the robot backed off and sees it on the floor.
func (f *Facade) pickupObject(ctx context.Context, c client, q *vectorpb.PickupObjectRequest) (*vectorpb.PickupObjectResponse, error) {
	a := lifts(q)
	r, err := f.toObject(ctx, c, plan{call: "PickupObject", tag: q.IdTag, retries: q.NumRetries, unless: f.liftIsFree}, func(ctx context.Context, j *job) (vectorpb.ActionResult_ActionResultCode, error) {
		return j.pickUp(ctx, j.f.selected(q.ObjectId), a)
	})
	return &vectorpb.PickupObjectResponse{Status: heard(), Result: r}, err
}

// lifting is a request to dock with an object and do something with the lift.
type lifting interface {
	GetMotionProf() *vectorpb.PathMotionProfile
	GetApproachAngleRad() float32
	GetUseApproachAngle() bool
	GetUsePreDockPose() bool
}

// lifts returns how the robot goes to a cube that it touches with its lift.
func lifts(q lifting) approach {
	return approach{distance: docked - pressed, square: true, angle: float64(q.GetApproachAngleRad()), turned: q.GetUseApproachAngle(), here: !q.GetUsePreDockPose()}.profile(q.GetMotionProf())
}

// liftIsFree refuses to lift while something is on the lift.
func (f *Facade) liftIsFree() vectorpb.ActionResult_ActionResultCode {
	if f.carry.id.Load() != 0 {
		return vectorpb.ActionResult_STILL_CARRYING_OBJECT
	}
	return f.notOnCharger()
}

// selected returns the id of the object of a request; negative: the selected one, of which there is but one.
func (f *Facade) selected(id int32) int32 {
	if id < 0 {
		return f.cubeID()
	}
	return id
}

// lift moves the lift to a height, as part of the action.
func (j *job) lift(ctx context.Context, height float64) (vectorpb.ActionResult_ActionResultCode, error) {
	t := j.t.h.tracks[lift]
	if t == nil {
		return 0, errAbsent("lift", "a lift")
	}
	up := &job{f: j.f, t: t, a: j.a, tries: j.tries, begun: j.begun}
	defer t.finish(j.a)
	return up.do(ctx, func(float64) core.Order { return withSpeed(core.Set("arm", height), liftSpeed) })
}

// back drives straight back.
func (j *job) back(ctx context.Context, way, speed float64) (vectorpb.ActionResult_ActionResultCode, error) {
	return j.do(ctx, func(moved float64) core.Order { return withSpeed(core.Go(-way-moved), speed) })
}

// inTurn does one step of an action after the other, until one does not end well.
func inTurn(steps ...func() (vectorpb.ActionResult_ActionResultCode, error)) (vectorpb.ActionResult_ActionResultCode, error) {
	for _, step := range steps {
		if code, err := step(); err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return code, err
		}
	}
	return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, nil
}

// pickUp docks with a cube, lifts it, and looks whether it is on the lift.
func (j *job) pickUp(ctx context.Context, id int32, a approach) (vectorpb.ActionResult_ActionResultCode, error) {
	f := j.f
	var before cube.State
	var connected, unmoved bool
	return inTurn(
		func() (vectorpb.ActionResult_ActionResultCode, error) { return j.clear(ctx, id) },
		func() (vectorpb.ActionResult_ActionResultCode, error) { return j.lift(ctx, liftLow) },
		func() (vectorpb.ActionResult_ActionResultCode, error) { return j.approach(ctx, id, a) },
		func() (_ vectorpb.ActionResult_ActionResultCode, err error) {
			if before, connected, err = f.cubeThat(ctx, id, func(s cube.State) bool { return !s.Moving }); err == nil && connected && before.Moving {
				return vectorpb.ActionResult_PICKUP_OBJECT_UNEXPECTEDLY_MOVING, nil
			}
			return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, err
		},
		func() (vectorpb.ActionResult_ActionResultCode, error) {
			f.carry.hook(id, f.feed.open)
			defer func() { f.carry.settle(f.liftHeight()) }()
			code, err := j.lift(ctx, liftHigh)
			f.measured()
			return code, err
		},
		func() (vectorpb.ActionResult_ActionResultCode, error) {
			s, ok, err := f.cubeThat(ctx, id, func(s cube.State) bool { return s.Moves > before.Moves })
			if err != nil {
				return 0, err
			}
			unmoved = connected && ok && s.Moves == before.Moves
			return j.back(ctx, backOff, a.lastSpeed)
		},
		func() (vectorpb.ActionResult_ActionResultCode, error) {
			_, onFloor, err := f.seenOnFloor(ctx, id)
			switch {
			case err != nil:
				return 0, err
			case unmoved:
				f.carry.drop()
				return vectorpb.ActionResult_PICKUP_OBJECT_UNEXPECTEDLY_NOT_MOVING, nil
			case onFloor, f.carry.id.Load() != id:
				f.carry.drop()
				return vectorpb.ActionResult_LAST_PICK_AND_PLACE_FAILED, nil
			}
			return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, nil
		})
}

// clear backs off from a cube that is below a raised lift.
func (j *job) clear(ctx context.Context, id int32) (vectorpb.ActionResult_ActionResultCode, error) {
	f := j.f
	f.measured()
	o, ok := f.looks.find(id)
	if !ok || f.liftHeight() <= hookFree {
		return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, nil
	}
	at, err := f.restingPose(ctx)
	if err != nil {
		return 0, err
	}
	if far := math.Hypot(o.x-at.X, o.y-at.Y); far < tooNear {
		return j.back(ctx, preDock-far, legSpeed)
	}
	return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, nil
}

// liftHeight returns how high the lift is, as it was measured last, in m.
func (f *Facade) liftHeight() float64 {
	if m := f.feed.now.Load(); m != nil && m.known[liftPosition] {
		return m.values[liftPosition]
	}
	return 0
}

// measured waits for the second measurement from now on, of which one may have been under way, but not for ever.
func (f *Facade) measured() {
	ctx, cancel := context.WithTimeout(context.Background(), reaction)
	defer cancel()
	last := f.feed.now.Load()
	for n := 0; n < 2 && backoff.Sleep(ctx, retryAfter/10) == nil; {
		if m := f.feed.now.Load(); m != last {
			last = m
			n++
		}
	}
}

// cubeThat waits until the cube with an id says so, and returns what it says then or after cubeTells; false: it is not connected.
func (f *Facade) cubeThat(ctx context.Context, id int32, so func(cube.State) bool) (cube.State, bool, error) {
	for deadline := time.Now().Add(cubeTells); ; {
		s, ok := f.cubeState()
		if ok = ok && int32(s.ID) == id; !ok || so(s) || time.Now().After(deadline) {
			return s, ok, nil
		}
		if err := backoff.Sleep(ctx, retryAfter/4); err != nil {
			return s, ok, err
		}
	}
}

// seenOnFloor looks from where the robot rests whether an object is on the floor.
func (f *Facade) seenOnFloor(ctx context.Context, id int32) (object, bool, error) {
	o, seen, err := f.seenNow(ctx, id)
	return o, seen && o.z < cubeEdge, err
}

// placeObjectOnGroundHere lowers the lift, backs off and looks for the object on the floor (part of VEC-CUB-06). NOT_CARRYING_OBJECT_ABORT: nothing is on the lift. VISUAL_OBSERVATION_FAILED: it does
// not see the object before it then. A lift that something stops ends with MOTOR_STOPPED_MAKING_PROGRESS, and still carries.
func (f *Facade) placeObjectOnGroundHere(ctx context.Context, c client, q *vectorpb.PlaceObjectOnGroundHereRequest) (*vectorpb.PlaceObjectOnGroundHereResponse, error) {
	var id int32
	p := plan{call: "PlaceObjectOnGroundHere", tag: q.IdTag, retries: q.NumRetries, unless: func() vectorpb.ActionResult_ActionResultCode {
		if id = f.carry.id.Load(); id == 0 {
			return vectorpb.ActionResult_NOT_CARRYING_OBJECT_ABORT
		}
		return f.notOnCharger()
	}}
	r, err := f.toObject(ctx, c, p, func(ctx context.Context, j *job) (vectorpb.ActionResult_ActionResultCode, error) {
		return inTurn(
			func() (vectorpb.ActionResult_ActionResultCode, error) { return j.lift(ctx, liftLow) },
			func() (vectorpb.ActionResult_ActionResultCode, error) {
				f.carry.rise(liftLow) // robotd says that it is there; the measurement may be on its way
				return j.back(ctx, backOff, dockSpeed)
			},
			func() (vectorpb.ActionResult_ActionResultCode, error) {
				if _, onFloor, err := f.seenOnFloor(ctx, id); err != nil || !onFloor {
					return vectorpb.ActionResult_VISUAL_OBSERVATION_FAILED, err
				}
				return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, nil
			})
	})
	return &vectorpb.PlaceObjectOnGroundHereResponse{Status: heard(), Result: r}, err
}

// rollObject drives up to a cube with the lift raised, lays the hooks on its top and pulls it over, so that the side that was away from the robot is on top (part of VEC-CUB-06).
// LAST_PICK_AND_PLACE_FAILED: the cube's accelerometer, or the camera if it is not connected, says that it was not rolled.
func (f *Facade) rollObject(ctx context.Context, c client, q *vectorpb.RollObjectRequest) (*vectorpb.RollObjectResponse, error) {
	a := lifts(q)
	r, err := f.toObject(ctx, c, plan{call: "RollObject", tag: q.IdTag, retries: q.NumRetries, unless: f.liftIsFree}, func(ctx context.Context, j *job) (vectorpb.ActionResult_ActionResultCode, error) {
		return j.roll(ctx, j.f.selected(q.ObjectId), a)
	})
	return &vectorpb.RollObjectResponse{Status: heard(), Result: r}, err
}

// roll does the work of rollObject.
func (j *job) roll(ctx context.Context, id int32, a approach) (vectorpb.ActionResult_ActionResultCode, error) {
	f := j.f
	var before cube.State
	var connected bool
	var from object
	return inTurn(
		func() (vectorpb.ActionResult_ActionResultCode, error) { return j.lift(ctx, liftHigh) },
		func() (vectorpb.ActionResult_ActionResultCode, error) { return j.approach(ctx, id, a) },
		func() (_ vectorpb.ActionResult_ActionResultCode, err error) {
			from, _ = f.looks.find(id)
			before, connected, err = f.cubeThat(ctx, id, func(s cube.State) bool { return !s.Moving && s.Up != cube.UpUnknown })
			return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, err
		},
		func() (vectorpb.ActionResult_ActionResultCode, error) { return j.pullOver(ctx) },
		func() (vectorpb.ActionResult_ActionResultCode, error) {
			if connected {
				if s, ok, err := f.cubeThat(ctx, id, func(s cube.State) bool { return s.Up != before.Up && !s.Moving }); err != nil || ok && s.Up == before.Up {
					return vectorpb.ActionResult_LAST_PICK_AND_PLACE_FAILED, err
				}
			}
			o, seen, err := f.seenOnFloor(ctx, id)
			switch {
			case err != nil:
				return 0, err
			case !seen && !connected:
				return vectorpb.ActionResult_VISUAL_OBSERVATION_FAILED, nil
			case seen && math.Hypot(o.x-from.x, o.y-from.y) < rolledOver:
				return vectorpb.ActionResult_LAST_PICK_AND_PLACE_FAILED, nil
			}
			return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, nil
		})
}

// pullOver lowers the lift, which lies on the cube then, and drives back meanwhile.
func (j *job) pullOver(ctx context.Context) (vectorpb.ActionResult_ActionResultCode, error) {
	down := make(chan struct{})
	var code vectorpb.ActionResult_ActionResultCode
	var err error
	go func() {
		defer close(down)
		code, err = j.lift(ctx, liftLow)
	}()
	if e := j.f.liftBelow(ctx, cubeEdge+elsewhere/2); e != nil {
		<-down
		return 0, e
	}
	driven, e := j.back(ctx, rollBack, rollSpeed)
	<-down
	if e != nil || driven != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
		return driven, e
	}
	return code, err
}

// liftBelow waits until the lift is below a height, or rests on its way there.
func (f *Facade) liftBelow(ctx context.Context, height float64) error {
	_, closed := f.feed.open()
	defer closed()
	for deadline := time.Now().Add(cubeTells); f.liftHeight() > height && time.Now().Before(deadline); {
		if err := backoff.Sleep(ctx, retryAfter/4); err != nil {
			return err
		}
	}
	return nil
}

// rollBlock looks around for the cube if it does not know where it is, and rolls it over (VEC-CUB-07). INVALID: it did not find it or did not roll it. WONT_ACTIVATE: without control, on the charger,
// with something on the lift, or while something else moves the robot.
func (f *Facade) rollBlock(ctx context.Context, c client, _ *vectorpb.RollBlockRequest) (*vectorpb.RollBlockResponse, error) {
	r, err := f.behave(ctx, c, "RollBlock", func(ctx context.Context, h *hold, j *job) (vectorpb.BehaviorResults, error) {
		if f.liftIsFree() != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return wontActivate, nil
		}
		defer f.handles()()
		id := f.cubeID()
		a := approach{distance: docked - pressed, square: true}.profile(nil)
		if code, err := j.find(ctx, id); err != nil || code != complete {
			return code, err
		}
		j.tries = rollTries
		switch code, err := j.again(ctx, func() (vectorpb.ActionResult_ActionResultCode, error) { return j.roll(ctx, id, a) }); {
		case err != nil:
			return failed, err
		case code == vectorpb.ActionResult_TRACKS_LOCKED:
			return wontActivate, nil
		case code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS:
			return failed, nil
		}
		return complete, nil
	})
	return &vectorpb.RollBlockResponse{Status: heard(), Result: r}, err
}

// rollTries is how often RollBlock tries again; findTurns is in how many turns it looks around. Own defaults.
const (
	rollTries = 2
	findTurns = 8
)

// find looks around until the cube is in sight.
func (j *job) find(ctx context.Context, id int32) (vectorpb.BehaviorResults, error) {
	if err := j.nod(ctx, dockHead); err != nil {
		return failed, err
	}
	for range findTurns {
		if _, ok := j.f.looks.find(id); ok {
			return complete, nil
		}
		if _, ok, err := j.f.seenNow(ctx, id); err != nil || ok {
			return complete, err
		}
		switch code, err := j.do(ctx, func(moved float64) core.Order {
			return withSpeed(core.Turn(robot.YawOfTurn(2*math.Pi/findTurns)-moved), lookAroundSpeed)
		}); {
		case err != nil:
			return failed, err
		case code == vectorpb.ActionResult_TRACKS_LOCKED:
			return wontActivate, nil
		case code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS:
			return failed, nil
		}
	}
	return failed, nil
}

// liftHandlers are the calls of the lift with a cube.
func (f *Facade) liftHandlers() map[string]handler {
	return map[string]handler{
		"PickupObject":            unary(gateway.Move, f.pickupObject),
		"PlaceObjectOnGroundHere": unary(gateway.Move, f.placeObjectOnGroundHere),
		"RollBlock":               unary(gateway.Move, f.rollBlock),
		"RollObject":              unary(gateway.Move, f.rollObject),
	}
}
