package vectorsdk

import (
	"context"
	"math"
	"time"

	"kennel/edge/core"
	"kennel/edge/robot"
	"kennel/edge/vectorsdk/navmap"
	"kennel/infra/api/vectorpb"
	"kennel/infra/backoff"
)

// Ways to a cube, in m and rad between the middles of robot and cube; own defaults.
const (
	preDock      = 0.15  // where it looks again
	nearby       = 0.22  // from here it goes straight on
	docked       = 0.068 // its front touches the cube
	fingerAhead  = 0.01  // of the lift before the front
	nearlyAside  = 0.025 // that it may be beside the middle of a face where it looks again
	squareAside  = 0.003 // and before it drives straight on
	squareTurned = 0.05  // rad from facing it, likewise
	tooNear      = 0.1   // where a robot that turns touches the cube
	lastStraight = 0.03
	lastLegs     = 3
	dockSpeed    = 0.05
	dockTries    = 4
	looksEnough  = 5                // pictures from where it rests that do not show a cube: it is not there
	seenWithin   = 10 * time.Second // that they may take on a busy machine
	dockHead     = 0.0
	mostApproach = 3.0 // m that a cube may be away
)

// approach is how a robot goes to a cube.
type approach struct {
	distance       float64 // at the end
	square         bool    // straight before a face
	angle          float64 // around the cube from where the robot is, if turned
	turned         bool
	here           bool // from where the robot is, if it is straight before the cube
	speed, turning float64
	lastSpeed      float64
}

// profile takes the speeds of a request (part of VEC-OBJ-01).
func (a approach) profile(m *vectorpb.PathMotionProfile) approach {
	a.speed, a.turning, a.lastSpeed = legSpeed, legTurn, dockSpeed
	if m.GetIsCustom() {
		a.speed, a.turning = math.Abs(float64(m.SpeedMmps))*mm, math.Abs(float64(m.PointTurnSpeedRadPerSec))
		a.lastSpeed = math.Abs(float64(m.DockSpeedMmps)) * mm
	}
	return a
}

// goToObject drives towards a cube until their origins are so far apart (part of VEC-OBJ-03). BAD_OBJECT: the robot did not see such a cube since it was lifted; custom objects
// are not supported. VISUAL_OBSERVATION_FAILED: it is not where it was seen.
func (f *Facade) goToObject(ctx context.Context, c client, q *vectorpb.GoToObjectRequest) (*vectorpb.GoToObjectResponse, error) {
	a := approach{distance: float64(q.DistanceFromObjectOriginMm) * mm, square: q.UsePreDockPose}.profile(q.MotionProf)
	r, err := f.toObject(ctx, c, plan{call: "GoToObject", tag: q.IdTag, retries: q.NumRetries, unless: f.notOnCharger}, func(ctx context.Context, j *job) (vectorpb.ActionResult_ActionResultCode, error) {
		return j.approach(ctx, f.selected(q.ObjectId), a)
	})
	return &vectorpb.GoToObjectResponse{Status: heard(), Result: r}, err
}

// dockWithCube drives until the robot is straight before a face of the cube and touches it, or is as far from it as the request says (part of VEC-CUB-05, part of VEC-CCU-09). The angle of
// approach goes around the cube from where the robot is; the face next to it is taken.
func (f *Facade) dockWithCube(ctx context.Context, c client, q *vectorpb.DockWithCubeRequest) (*vectorpb.DockWithCubeResponse, error) {
	a := approach{distance: docked, square: true, angle: float64(q.ApproachAngleRad), turned: q.UseApproachAngle}.profile(q.MotionProf)
	switch d := float64(q.DistanceFromMarkerMm) * mm; {
	case d > 0:
		a.distance = d
	case q.AlignmentType == vectorpb.AlignmentType_ALIGNMENT_TYPE_LIFT_FINGER:
		a.distance += fingerAhead
	}
	r, err := f.toObject(ctx, c, plan{call: "DockWithCube", tag: q.IdTag, retries: q.NumRetries, unless: f.notOnCharger}, func(ctx context.Context, j *job) (vectorpb.ActionResult_ActionResultCode, error) {
		return j.approach(ctx, f.selected(q.ObjectId), a)
	})
	return &vectorpb.DockWithCubeResponse{Status: heard(), Result: r}, err
}

// toObject does an action with a cube, and again as often as the client asked.
func (f *Facade) toObject(ctx context.Context, c client, p plan, do func(context.Context, *job) (vectorpb.ActionResult_ActionResultCode, error)) (*vectorpb.ActionResult, error) {
	p.part, p.track = "wheels", wheels
	return f.actBy(ctx, c, p, func(ctx context.Context, j *job) (vectorpb.ActionResult_ActionResultCode, error) {
		defer f.handles()()
		if err := j.nod(ctx, dockHead); err != nil {
			return 0, err
		}
		return j.again(ctx, func() (vectorpb.ActionResult_ActionResultCode, error) { return do(ctx, j) })
	})
}

// handles lets the robot look for objects while it does something with one, until done is called.
func (f *Facade) handles() (done func()) {
	f.looks.want(1)
	f.carry.busy.Add(1)
	return func() {
		f.carry.busy.Add(-1)
		f.looks.want(-1)
	}
}

// mends reports whether to begin again from where the robot is now may help.
func mends(code vectorpb.ActionResult_ActionResultCode) bool {
	return code == vectorpb.ActionResult_VISUAL_OBSERVATION_FAILED || code == vectorpb.ActionResult_FOLLOWING_PATH_BUT_NOT_TRAVERSING || code >= vectorpb.ActionResult_RETRY
}

// again does what do does until it ends in a way that another try would not mend, or the tries are used up.
func (j *job) again(ctx context.Context, do func() (vectorpb.ActionResult_ActionResultCode, error)) (vectorpb.ActionResult_ActionResultCode, error) {
	for {
		code, err := do()
		if err != nil || j.tries <= 0 || j.a.cancelled.Load() || !mends(code) {
			return code, err
		}
		j.tries--
	}
}

// nod turns the head, unless something else moves it.
func (j *job) nod(ctx context.Context, angle float64) error {
	t := j.t.h.tracks[head]
	if t == nil {
		return nil
	}
	up := &job{f: j.f, t: t, a: &action{tag: behaviorTag}}
	defer t.finish(up.a)
	_, err := up.do(ctx, func(float64) core.Order { return withSpeed(core.Set("headPitch", -angle), lookAroundSpeed) })
	return err
}

// seenNow waits until the robot rests, and returns where an object is in a picture that was taken since, as soon as there is one; false: enough pictures do not show it. The pictures that were under way
// do not count: on a busy machine they are of a robot that was still driving, and the object would be beside its place.
func (f *Facade) seenNow(ctx context.Context, id int32) (object, bool, error) {
	rest, err := f.restingPose(ctx)
	if err != nil {
		return object{}, false, err
	}
	last, looked := time.Duration(rest.AtUS)*time.Microsecond, 0
	since := last
	for deadline := time.Now().Add(seenWithin); ; {
		if o, ok := f.looks.find(id); ok && o.at > since {
			return o, true, nil
		}
		if at := f.looks.newest(); at > last {
			last = at
			looked++
		}
		if looked >= looksEnough || time.Now().After(deadline) {
			return object{}, false, nil
		}
		if err := backoff.Sleep(ctx, retryAfter/4); err != nil {
			return object{}, false, err
		}
	}
}

// approach goes to a cube: around what the map holds to a place before it, where it looks again, and straight on from there.
func (j *job) approach(ctx context.Context, id int32, a approach) (vectorpb.ActionResult_ActionResultCode, error) {
	f := j.f
	o, ok := f.looks.find(id)
	if !ok {
		var err error
		if o, ok, err = f.seenNow(ctx, id); err != nil {
			return 0, err
		}
	}
	if !ok || o.kind != vectorpb.ObjectType_BLOCK_LIGHTCUBE1 {
		return vectorpb.ActionResult_BAD_OBJECT, nil
	}
	way := math.NaN() // from the cube to the robot
	for try := 0; ; try++ {
		at, err := f.restingPose(ctx)
		if err != nil {
			return 0, err
		}
		dx, dy := at.X-o.x, at.Y-o.y
		far := math.Hypot(dx, dy)
		if far > mostApproach {
			return vectorpb.ActionResult_BAD_OBJECT, nil
		}
		if math.IsNaN(way) {
			way = math.Atan2(dy, dx)
			if a.turned {
				way += a.angle
			}
		}
		if a.square { // of the nearest face
			way = o.yaw + math.Round(robot.WrapPi(way-o.yaw)/(math.Pi/2))*math.Pi/2
		} else if !a.turned {
			way = math.Atan2(dy, dx)
		}
		sin, cos := math.Sincos(way)
		aside, ahead := dy*cos-dx*sin, dx*cos+dy*sin
		turned := robot.WrapPi(at.Theta - way - math.Pi)
		if a.here && far < nearby && math.Abs(aside) <= squareAside && math.Abs(turned) <= squareTurned {
			return j.last(ctx, &o, a)
		}
		straight := ahead > 0 && far < nearby && (!a.square || math.Abs(aside) <= nearlyAside && ahead > a.distance+lastStraight)
		if !straight && try < dockTries {
			if far < tooNear && math.Abs(turned) < math.Pi/4 { // a turn here would push the cube aside
				if code, err := j.back(ctx, preDock-far, a.speed); err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
					return code, err
				}
			}
			before := navmap.Point{X: o.x + max(a.distance, preDock)*cos, Y: o.y + max(a.distance, preDock)*sin}
			code, err := j.goTo(ctx, before, robot.WrapPi(way+math.Pi), a.speed, a.turning)
			if err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
				return code, err
			}
			if o, ok, err = f.seenNow(ctx, id); err != nil {
				return 0, err
			} else if !ok {
				return vectorpb.ActionResult_VISUAL_OBSERVATION_FAILED, nil
			}
			continue
		}
		if !straight {
			return vectorpb.ActionResult_DID_NOT_REACH_PREACTION_POSE, nil
		}
		if a.square {
			return j.squarely(ctx, &o, way, a)
		}
		return j.straightTo(ctx, &o, a)
	}
}

// squarely drives to the line straight before a face of a cube, close to where it ends, turns to the cube there and drives the rest.
func (j *job) squarely(ctx context.Context, o *object, way float64, a approach) (vectorpb.ActionResult_ActionResultCode, error) {
	at, err := j.f.restingPose(ctx)
	if err != nil {
		return 0, err
	}
	sin, cos := math.Sincos(way)
	if aside := (at.Y-o.y)*cos - (at.X-o.x)*sin; math.Abs(aside) > squareAside {
		last := a.distance + lastStraight
		dx, dy := o.x+last*cos-at.X, o.y+last*sin-at.Y
		if code, err := j.turnTo(ctx, math.Atan2(dy, dx), a.turning); err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return code, err
		}
		leg := math.Hypot(dx, dy)
		if code, err := j.do(ctx, func(moved float64) core.Order { return withSpeed(core.Go(leg-moved), a.lastSpeed) }); err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return code, err
		}
	}
	if code, err := j.turnTo(ctx, robot.WrapPi(way+math.Pi), a.turning); err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
		return code, err
	}
	return j.last(ctx, o, a)
}

// last drives ahead until the origins are as far apart as they should be, and again what is left: a motion that was stopped on its way does not end exactly where it should.
func (j *job) last(ctx context.Context, o *object, a approach) (code vectorpb.ActionResult_ActionResultCode, err error) {
	for range lastLegs {
		at, err := j.f.restingPose(ctx)
		if err != nil {
			return 0, err
		}
		leg := math.Hypot(o.x-at.X, o.y-at.Y) - a.distance
		if math.Abs(leg) < reached/4 {
			return vectorpb.ActionResult_ACTION_RESULT_SUCCESS, nil
		}
		if code, err = j.do(ctx, func(moved float64) core.Order { return withSpeed(core.Go(leg-moved), a.lastSpeed) }); err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return code, err
		}
	}
	return code, nil
}

// straightTo turns to a cube and drives until it is near enough.
func (j *job) straightTo(ctx context.Context, o *object, a approach) (vectorpb.ActionResult_ActionResultCode, error) {
	at, err := j.f.restingPose(ctx)
	if err != nil {
		return 0, err
	}
	if code, err := j.turnTo(ctx, math.Atan2(o.y-at.Y, o.x-at.X), a.turning); err != nil || code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
		return code, err
	}
	return j.last(ctx, o, a)
}
