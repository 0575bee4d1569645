package robotapp

import (
	"fmt"
	"math"
	"os"
	"testing"

	"kennel/edge/sim/plane"
	"kennel/infra/api/poke"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// objects follows what happens to objects.
func (p *sdkProgram) objects() (await func(what string, ok func(*vectorpb.ObjectEvent) bool) *vectorpb.ObjectEvent) {
	p.t.Helper()
	events, err := p.EventStream(p.ctx, &vectorpb.EventRequest{ListType: &vectorpb.EventRequest_WhiteList{WhiteList: &vectorpb.FilterList{List: []string{"object_event"}}}})
	if err != nil {
		p.t.Fatal(err)
	}
	return func(what string, ok func(*vectorpb.ObjectEvent) bool) *vectorpb.ObjectEvent {
		p.t.Helper()
		for {
			m, err := events.Recv()
			if err != nil {
				p.t.Fatalf("%s: %v", what, err)
			}
			if o := m.Event.GetObjectEvent(); o != nil && ok(o) {
				return o
			}
		}
	}
}

// before returns where the robot is in the frame of a cube's face that is nearest to it: how far away, how far beside, and by how much it is turned from facing it.
func before(robot, cube plane.Pose) (away, aside, turned float64) {
	way := math.Atan2(robot[1]-cube[1], robot[0]-cube[0])
	face := cube[2] + math.Round((way-cube[2])/(math.Pi/2))*math.Pi/2
	sin, cos := math.Sincos(face)
	dx, dy := robot[0]-cube[0], robot[1]-cube[1]
	return dx*cos + dy*sin, dy*cos - dx*sin, math.Remainder(robot[2]-face-math.Pi, 2*math.Pi)
}

// lifts picks the cube up, puts it down and rolls it over.
func (p *sdkProgram) lifts(r *sdkRobot, id uint32, where func() (robot, thing plane.Pose), happens func(string, func(*vectorpb.ObjectEvent) bool) *vectorpb.ObjectEvent) {
	p.t.Helper()
	raised := func() (m float64, carried int) {
		if err := r.in(func(w *plane.World) error { m, carried = w.State().Raised[0], w.Carried(); return nil }); err != nil {
			p.t.Fatal(err)
		}
		return m, carried
	}
	place := func(tag int32) (*vectorpb.ActionResult, error) {
		a, err := p.PlaceObjectOnGroundHere(p.ctx, &vectorpb.PlaceObjectOnGroundHereRequest{IdTag: tag})
		return a.GetResult(), err
	}
	p.refused(vectorpb.ActionResult_NOT_CARRYING_OBJECT_ABORT, place)
	pick := func(tag int32) (*vectorpb.ActionResult, error) {
		a, err := p.PickupObject(p.ctx, &vectorpb.PickupObjectRequest{ObjectId: int32(id), IdTag: tag, NumRetries: 3})
		return a.GetResult(), err
	}
	p.act("pick up", pick)
	if m, carried := raised(); carried != 0 || math.Abs(m-0.056) > 0.005 {
		p.t.Errorf("picked up: raised %v", m)
	}
	if s, err := p.state(func(s *vectorpb.RobotState) bool { return s.CarryingObjectId == int32(id) && s.Status&0x2 != 0 }); err != nil {
		p.t.Errorf("%v, %v", s, err)
	}
	p.refused(vectorpb.ActionResult_STILL_CARRYING_OBJECT, pick)
	p.act("put down", place)
	if m, carried := raised(); carried != -1 || m != 0 {
		p.t.Errorf("put down: raised %v", m)
	}
	if s, err := p.state(func(s *vectorpb.RobotState) bool { return s.CarryingObjectId == -1 && s.Status&0x2 == 0 }); err != nil {
		p.t.Errorf("%v, %v", s, err)
	}
	_, from := where()
	p.act("roll", func(tag int32) (*vectorpb.ActionResult, error) {
		a, err := p.RollObject(p.ctx, &vectorpb.RollObjectRequest{ObjectId: int32(id), IdTag: tag, NumRetries: 3})
		return a.GetResult(), err
	})
	if _, to := where(); math.Hypot(to[0]-from[0], to[1]-from[1]) < 0.03 {
		p.t.Errorf("rolled from %v to %v", from, to)
	}
	happens("the side that was away on top", func(o *vectorpb.ObjectEvent) bool { return o.GetObjectUpAxisChanged().GetObjectId() == id })
}

// refused wants a code of an action that does not begin.
func (p *sdkProgram) refused(want vectorpb.ActionResult_ActionResultCode, do func(tag int32) (*vectorpb.ActionResult, error)) {
	p.t.Helper()
	p.tag++
	if r, err := do(p.tag); err != nil || r.Code != want {
		p.t.Errorf("%v, %v, want %v", r, err, want)
	}
}

// TestVectorCube: a program connects with the cube in the simulated world and hears that it is tapped and rolled over; the camera sees where it is (VEC-ACC-03, VEC-ACC-09), the
// robot drives to it (part of VEC-OBJ-03) and docks squarely (part of VEC-CUB-05); a custom object is seen by its marker (part of VEC-ACC-11).
func TestVectorCube(t *testing.T) { // alone: the search for markers takes what loops of other tests need
	cube := plane.Object{Name: "cube", Shape: "box", At: plane.Pose{0.21, 0.03, 0.4}, Size: plane.Vec{0.044, 0.044}, Marker: "cube"}
	chest := plane.Object{Name: "chest", Shape: "box", At: plane.Pose{0, 0.3, 0}, Size: plane.Vec{0.06, 0.06}, Height: 0.06, Marker: "circles3"}
	r := newSDKRobotIn(t, &plane.Map{Objects: []plane.Object{cube, chest}})
	var p *sdkProgram
	testwait.Until(t, 4*patience, "the robot", func() (err error) { p, err = r.start(t, "cube"); return err })
	defer p.stop()
	happens := p.objects()
	c, err := p.ConnectCube(p.ctx, &vectorpb.ConnectCubeRequest{})
	if err != nil || !c.Success || c.FactoryId != r.board.Cubes()[0].Address() {
		t.Fatalf("%v, %v", c, err)
	}
	happens("a cube that rests upright", func(o *vectorpb.ObjectEvent) bool {
		return o.GetObjectUpAxisChanged().GetUpAxis() == vectorpb.UpAxis_Z_POSITIVE
	})
	hand := func(side string) {
		t.Helper()
		if err := r.board.Poke(poke.Poke{Verb: poke.Cube, Side: side}); err != nil {
			t.Error(err)
		}
	}
	hand(poke.Tap)
	happens("a tap", func(o *vectorpb.ObjectEvent) bool { return o.GetObjectTapped().GetObjectId() == c.ObjectId })
	hand(poke.Roll) // about its left axis: its back is on top
	happens("rolled over", func(o *vectorpb.ObjectEvent) bool {
		return o.GetObjectUpAxisChanged().GetUpAxis() == vectorpb.UpAxis_X_NEGATIVE
	})
	p.act("head", func(tag int32) (*vectorpb.ActionResult, error) {
		a, err := p.SetHeadAngle(p.ctx, &vectorpb.SetHeadAngleRequest{IdTag: tag, MaxSpeedRadPerSec: 3})
		return a.GetResult(), err
	})
	seen := happens("the cube in sight", func(o *vectorpb.ObjectEvent) bool {
		return o.GetRobotObservedObject().GetObjectId() == int32(c.ObjectId)
	}).GetRobotObservedObject()
	if at := seen.Pose; math.Hypot(float64(at.X)-210, float64(at.Y)-30) > 15 || math.Abs(float64(at.Z)-22) > 6 || seen.ObjectType != vectorpb.ObjectType_BLOCK_LIGHTCUBE1 ||
		seen.IsActive != 1 || math.Abs(math.Remainder(float64(seen.TopFaceOrientationRad)-0.4, math.Pi/2)) > 0.1 || seen.ImgRect.Width < 20 || at.OriginId != 1 {
		t.Errorf("seen: %v", seen)
	}
	where := func() (robot, thing plane.Pose) {
		if err := r.in(func(w *plane.World) error { s := w.State(); robot, thing = s.Pose, s.Objects[0]; return nil }); err != nil {
			t.Fatal(err)
		}
		return robot, thing
	}
	r.undisturbed(t, func() string {
		p.act("go to object", func(tag int32) (*vectorpb.ActionResult, error) {
			a, err := p.GoToObject(p.ctx, &vectorpb.GoToObjectRequest{ObjectId: int32(c.ObjectId), DistanceFromObjectOriginMm: 120, IdTag: tag, NumRetries: 3})
			return a.GetResult(), err
		})
		robot, thing := where()
		if d := math.Hypot(robot[0]-thing[0], robot[1]-thing[1]); math.Abs(d-0.12) > 0.02 {
			return fmt.Sprintf("120 mm from the cube are %.3f m", d)
		}
		return ""
	})
	r.undisturbed(t, func() string {
		p.act("dock", func(tag int32) (*vectorpb.ActionResult, error) {
			a, err := p.DockWithCube(p.ctx, &vectorpb.DockWithCubeRequest{ObjectId: -1, AlignmentType: vectorpb.AlignmentType_ALIGNMENT_TYPE_LIFT_PLATE, IdTag: tag, NumRetries: 3})
			return a.GetResult(), err
		})
		if away, aside, turned := before(where()); away > 0.08 || math.Abs(aside) > 0.01 || math.Abs(turned) > 0.15 {
			return fmt.Sprintf("docked %.3f m away, %.4f m beside, turned by %.3f", away, aside, turned)
		}
		return ""
	})
	if os.Getenv("KENNEL_SOAK") == "1" { // on a stage too, without motors: TestLift, TestRoll of edge/vectorsdk
		p.lifts(r, c.ObjectId, where, happens)
	}
	if a, err := p.DefineCustomObject(p.ctx, &vectorpb.DefineCustomObjectRequest{CustomType: vectorpb.CustomType_CUSTOM_TYPE_02, CustomObjectDefinition: &vectorpb.DefineCustomObjectRequest_CustomCube{
		CustomCube: &vectorpb.CustomCubeDefinition{Marker: vectorpb.CustomObjectMarker_CUSTOM_MARKER_CIRCLES_3, SizeMm: 60, MarkerWidthMm: 51.6, MarkerHeightMm: 51.6}}}); err != nil || !a.Success {
		t.Fatalf("%v, %v", a, err)
	}
	robot, _ := where()
	p.turn(math.Atan2(0.3-robot[1], -robot[0]))
	custom := happens("a custom object in sight", func(o *vectorpb.ObjectEvent) bool {
		return o.GetRobotObservedObject().GetObjectFamily() == vectorpb.ObjectFamily_CUSTOM_OBJECT
	}).GetRobotObservedObject()
	if at := custom.Pose; custom.ObjectType != vectorpb.ObjectType_FIRST_CUSTOM_OBJECT_TYPE+2 || math.Hypot(float64(at.X), float64(at.Y)-300) > 40 {
		t.Errorf("seen: %v", custom)
	}
	hand(poke.Off)
	happens("a cube without its cell", func(o *vectorpb.ObjectEvent) bool { return o.GetCubeConnectionLost() != nil })
}
