package vectorsdk_test

import (
	"math"
	"testing"
	"time"

	"kennel/edge/core/control"
	"kennel/edge/sim/plane"
	"kennel/infra/api/vectorpb"
)

// ended is the answer to an action.
type ended interface {
	GetResult() *vectorpb.ActionResult
}

// The actions of these tests.
func (p *pilot) pick(want vectorpb.ActionResult_ActionResultCode, tag, retries int32) {
	p.t.Helper()
	p.ends(want, func() (ended, error) {
		return p.PickupObject(p.ctx, &vectorpb.PickupObjectRequest{ObjectId: -1, IdTag: tag, NumRetries: retries})
	})
}

func (p *pilot) place(want vectorpb.ActionResult_ActionResultCode, tag int32) {
	p.t.Helper()
	p.ends(want, func() (ended, error) {
		return p.PlaceObjectOnGroundHere(p.ctx, &vectorpb.PlaceObjectOnGroundHereRequest{IdTag: tag})
	})
}

// ends wants an action to end with a code. A machine that stops for seconds takes control from a program: it asks for it again.
func (p *pilot) ends(want vectorpb.ActionResult_ActionResultCode, do func() (ended, error)) {
	p.t.Helper()
	for {
		a, err := do()
		if err != nil {
			p.t.Fatal(err)
		}
		switch got := a.GetResult().Code; got {
		case want:
			return
		case vectorpb.ActionResult_NOT_STARTED, vectorpb.ActionResult_INTERRUPTED:
			p.t.Logf("%v; again", got)
			p.regain()
		default:
			p.t.Fatalf("%v, want %v", got, want)
		}
	}
}

// regain takes control again after it was lost.
func (p *pilot) regain() {
	p.t.Helper()
	p.expects("lost")
	p.ask(vectorpb.ControlRequest_DEFAULT)
	p.expects("granted")
}

// carries waits until the states say which object is on the lift; -1: none.
func (l *listener) carries(id int32) {
	l.t.Helper()
	l.await(func(e *vectorpb.Event) bool {
		s := e.GetRobotState()
		return s != nil && s.CarryingObjectId == id && (s.Status&0x2 != 0) == (id != -1)
	})
}

const success = vectorpb.ActionResult_ACTION_RESULT_SUCCESS

// TestLift: a program picks the cube up, hears that the robot carries it, carries it somewhere and puts it down (part of VEC-CUB-06, part of VEC-CCU-08); the world agrees. What cannot be is refused
// with the code that says why, and a cube that a hand pushed aside is seen on the floor.
func TestLift(t *testing.T) {
	t.Parallel()
	s := newStage(t, plane.Pose{0.2, 0.01, 0.2})
	l := s.listen(t, &vectorpb.EventRequest{})
	l.primary()
	p := s.granted(t, "all")
	p.place(vectorpb.ActionResult_NOT_CARRYING_OBJECT_ABORT, 2000001)
	p.pick(success, 2000002, 2)
	l.carries(1)
	if m, _, _ := s.raised(); math.Abs(m-0.056) > 1e-3 {
		t.Errorf("raised %v", m)
	}
	p.pick(vectorpb.ActionResult_STILL_CARRYING_OBJECT, 2000003, 0)
	if a, err := p.TurnInPlace(p.ctx, &vectorpb.TurnInPlaceRequest{AngleRad: 1.5, IdTag: 2000004}); err != nil || a.Result.Code != success {
		t.Errorf("%v, %v", a, err)
	}
	p.place(success, 2000005)
	l.carries(-1)
	m, thing, robot := s.raised()
	if v := robot.From(plane.Vec{thing[0], thing[1]}); m != 0 || math.Abs(v[0]-0.117) > 0.02 || math.Abs(v[1]) > 0.01 || math.Abs(robot[2]-1.5) > 0.3 {
		t.Errorf("put down: raised %v, %v from the robot at %v", m, v, robot)
	}
	s.before(func(w *plane.World, o control.Order) bool { // a hand is quicker
		if up := o.Kind == control.Set && o.Goals[0].Value == 0.092; up {
			if err := w.PushCube(0, plane.Vec{0.03 * math.Sin(robot[2]), -0.03 * math.Cos(robot[2])}); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	p.pick(vectorpb.ActionResult_LAST_PICK_AND_PLACE_FAILED, 2000006, 0)
	l.carries(-1)
}

// TestLiftLosesCube: what the robot says of its lift is true when the program lowers it by itself, when hooks miss the cube, when control is lost on the way,
// and when the robot is tipped over. The cube's accelerometer says whether it moved.
func TestLiftLosesCube(t *testing.T) {
	t.Parallel()
	s := newStage(t, plane.Pose{0.16, 0, 0})
	l := s.listen(t, &vectorpb.EventRequest{})
	l.primary()
	p := s.granted(t, "all")
	if a, err := p.ConnectCube(p.ctx, &vectorpb.ConnectCubeRequest{}); err != nil || !a.Success {
		t.Fatalf("%v, %v", a, err)
	}
	p.pick(success, 2000001, 2)
	l.carries(1)
	if a, err := p.SetLiftHeight(p.ctx, &vectorpb.SetLiftHeightRequest{HeightMm: 32, IdTag: 2000002}); err != nil || a.Result.Code != success {
		t.Errorf("%v, %v", a, err)
	}
	l.carries(-1)

	s.world(func(*plane.World) { s.hooks = 0.044 })
	p.pick(vectorpb.ActionResult_PICKUP_OBJECT_UNEXPECTEDLY_NOT_MOVING, 2000003, 0)
	l.carries(-1)

	s.world(func(*plane.World) { s.hooks = 0.049 })
	stopped := make(chan struct{}, 1)
	s.before(func(w *plane.World, o control.Order) bool {
		if w.Carried() >= 0 && o.Kind == control.Go {
			select {
			case stopped <- struct{}{}:
			default:
			}
			return true
		}
		return false
	})
	other := s.pilot(t, "other")
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		<-stopped
		other.ask(vectorpb.ControlRequest_OVERRIDE_BEHAVIORS)
	}()
	p.pick(vectorpb.ActionResult_INTERRUPTED, 2000005, 2)
	<-taken
	l.carries(1)
	s.before(nil)
	other.expects("granted")
	other.place(success, 2000006)
	l.carries(-1)
	other.pick(success, 2000007, 2)
	l.carries(1)
	s.body.SetReport(func(r *control.Report) { r.Posture = "OnLeftSide" })
	l.carries(-1)
}

// TestLatePictures: the pictures of a busy machine are old when the robot looks at them. It takes the place of the cube from those that were taken since it rests, and docks squarely (part of VEC-CUB-05).
func TestLatePictures(t *testing.T) {
	t.Parallel()
	s := newStage(t, plane.Pose{0.25, 0.08, 0.5})
	s.world(func(*plane.World) { s.late = 700 * time.Millisecond })
	p := s.granted(t, "all")
	a, err := p.DockWithCube(p.ctx, &vectorpb.DockWithCubeRequest{ObjectId: -1, AlignmentType: vectorpb.AlignmentType_ALIGNMENT_TYPE_LIFT_PLATE, IdTag: 2000001})
	if err != nil || a.Result.Code != success {
		t.Fatalf("%v, %v", a, err)
	}
	_, thing, robot := s.raised()
	way := thing[2] - math.Pi // of the side that the robot was before
	dx, dy := robot[0]-thing[0], robot[1]-thing[1]
	away, aside := dx*math.Cos(way)+dy*math.Sin(way), dy*math.Cos(way)-dx*math.Sin(way)
	if turned := math.Remainder(robot[2]-thing[2], 2*math.Pi); math.Abs(away-0.068) > 0.005 || math.Abs(aside) > 0.005 || math.Abs(turned) > 0.06 {
		t.Errorf("docked %.4f m away, %.4f m beside, turned by %.3f", away, aside, turned)
	}
}

// TestRoll: a program rolls the cube over: the side that was away from the robot is on top, and the cube is one edge nearer (part of VEC-CUB-06). RollBlock finds it first (VEC-CUB-07).
func TestRoll(t *testing.T) {
	t.Parallel()
	s := newStage(t, plane.Pose{0, 0.2, 0})
	l := s.listen(t, &vectorpb.EventRequest{})
	l.primary()
	p := s.granted(t, "all")
	if a, err := p.RollObject(p.ctx, &vectorpb.RollObjectRequest{ObjectId: -1, IdTag: 2000001}); err != nil || a.Result.Code != vectorpb.ActionResult_BAD_OBJECT {
		t.Errorf("out of sight: %v, %v", a, err)
	}
	if a, err := p.ConnectCube(p.ctx, &vectorpb.ConnectCubeRequest{}); err != nil || !a.Success {
		t.Fatalf("%v, %v", a, err)
	}
	up := func() vectorpb.UpAxis {
		return l.await(func(e *vectorpb.Event) bool { return e.GetObjectEvent().GetObjectUpAxisChanged() != nil }).GetObjectEvent().GetObjectUpAxisChanged().UpAxis
	}
	if got := up(); got != vectorpb.UpAxis_Z_POSITIVE {
		t.Errorf("at first %v", got)
	}
	a, err := p.RollBlock(p.ctx, &vectorpb.RollBlockRequest{})
	for err == nil && a.Result == vectorpb.BehaviorResults_BEHAVIOR_WONT_ACTIVATE_STATE {
		p.regain()
		a, err = p.RollBlock(p.ctx, &vectorpb.RollBlockRequest{})
	}
	if err != nil || a.Result != vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE {
		t.Fatalf("%v, %v", a, err)
	}
	if got := up(); got != vectorpb.UpAxis_Y_POSITIVE { // it was at the cube's right: its left side is on top
		t.Errorf("rolled, %v is up", got)
	}
	if _, thing, _ := s.raised(); math.Abs(thing[1]-0.2+0.044) > 0.01 || math.Abs(thing[0]) > 0.01 {
		t.Errorf("rolled to %v", thing)
	}
}
