package vectorsdk_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// TestHeading: a turn to a heading begins from where the robot is now, which is newer than what robotd reports.
func TestHeading(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	d.body.SetPlace(robot.Place{Theta: 1})
	go func() {
		_, _ = p.TurnInPlace(p.ctx, &vectorpb.TurnInPlaceRequest{AngleRad: 1.5, IsAbsolute: 1, IdTag: 2000001}) // it ends with the test
	}()
	if o := d.moved(t, 1); math.Abs(math.Abs(o.A)-0.5) > 1e-6 {
		t.Errorf("from 1 to 1.5 rad the loop heard %+v", o)
	}
}

// TestStates: of a robot that is held, asleep, on its charger, picked up, at a cliff or with a part gone each action ends with the result that the original has for it, by gRPC and
// by HTTPS alike (issue 32, must hold 6). The same robot's own API says it in words (TestStates of edge/gateway).
func TestStates(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const drive, nod = "drive_straight", "set_head_angle"
	const pickedUp, onCharger = 0x8, 0x1000 // part of VEC-STA-02
	tag, moved := int32(2000001), 0
	part, err := d.body.Model().Tree.Lookup("head")
	if err != nil {
		t.Fatal(err)
	}
	states := []struct {
		name   string
		begin  func()
		action string
		moves  bool
		bits   uint32 // of robot_state, beside those that do not matter here
		want   vectorpb.ActionResult_ActionResultCode
	}{
		{"on its feet", func() {
			d.body.Forbid(0)
			d.body.Board().SetBack(part.Nodes[0], monoclock.Now())
			d.body.SetReport(func(r *control.Report) { r.Posture, r.Supply, r.Sleep.State = "OnTreads", 0, power.Awake })
		}, drive, true, 0, vectorpb.ActionResult_ACTION_RESULT_SUCCESS},
		{"asleep", func() { d.body.SetReport(func(r *control.Report) { r.Sleep.State = power.LightSleep }) }, drive, true, 0, vectorpb.ActionResult_ACTION_RESULT_SUCCESS},
		{"on its charger", func() {
			d.body.SetReport(func(r *control.Report) { r.Sleep.State, r.Supply = power.Awake, body.OnCharger })
		}, drive, false, onCharger,
			vectorpb.ActionResult_SHOULDNT_DRIVE_ON_CHARGER},
		{"at a cliff", func() {
			d.body.SetReport(func(r *control.Report) { r.Supply = 0 })
			d.body.Forbid(motion.Cliff)
		}, drive, false, 0, vectorpb.ActionResult_RETRY},
		{"picked up", func() {
			d.body.SetReport(func(r *control.Report) { r.Posture = "InAir" })
			d.body.Forbid(motion.Lifted)
		}, drive, false, pickedUp, vectorpb.ActionResult_INVALID_OFF_TREADS_STATE},
		{"held by a person", func() {
			d.body.SetReport(func(r *control.Report) { r.Posture = "OnTreads" })
			d.body.Forbid(motion.Halted)
		}, drive, false, 0, vectorpb.ActionResult_RETRY},
		{"with a part gone", func() {
			d.body.Forbid(0)
			d.body.Board().SetGone(part.Nodes[0], "unplugged", monoclock.Now())
		}, nod, false, 0, vectorpb.ActionResult_SEND_MESSAGE_TO_ROBOT_FAILED},
	}
	events, err := d.dial(t).EventStream(as(t, "look"), &vectorpb.EventRequest{ListType: &vectorpb.EventRequest_WhiteList{WhiteList: &vectorpb.FilterList{List: []string{"robot_state"}}}})
	if err != nil {
		t.Fatal(err)
	}
	walk := func(door string, act func(action string) *vectorpb.ActionResult) {
		for _, s := range states {
			s.begin()
			for bits := ^s.bits; bits&(pickedUp|onCharger) != s.bits; { // robotd reports five times a second
				m, err := events.Recv()
				if err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
				if state := m.GetEvent().GetRobotState(); state != nil {
					bits = state.Status
				}
			}
			told := make(chan *vectorpb.ActionResult, 1)
			go func() { told <- act(s.action) }()
			if s.moves {
				moved++
				d.moved(t, moved)
				d.body.End(motion.Done, 0.1)
			}
			if got := testwait.For(t, told, "the result"); got.GetCode() != s.want {
				t.Errorf("%s, by %s: %v, want %v", s.name, door, got, s.want)
			}
			moved = len(d.motions())
			tag++
		}
	}
	p := d.granted(t, "all")
	walk("gRPC", func(action string) *vectorpb.ActionResult {
		if action == nod {
			a, err := p.SetHeadAngle(p.ctx, &vectorpb.SetHeadAngleRequest{AngleRad: 0.3, IdTag: tag})
			if err != nil {
				t.Error(err)
			}
			return a.GetResult()
		}
		a, err := p.DriveStraight(p.ctx, &vectorpb.DriveStraightRequest{DistMm: 100, SpeedMmps: 50, IdTag: tag})
		if err != nil {
			t.Error(err)
		}
		return a.GetResult()
	})
	p.leave()
	resp := d.send(t, http.MethodPost, "all", "/v1/assume_behavior_control", `{"control_request":{"priority":20}}`)
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); !strings.Contains(lines.Text(), "control_granted_response"); {
		if !lines.Scan() {
			t.Fatal("no control by HTTPS", lines.Err())
		}
	}
	walk("HTTPS", func(action string) *vectorpb.ActionResult {
		_, _, body := d.post(t, "all", "/v1/"+action, fmt.Sprintf(`{"id_tag":%d,"dist_mm":100,"speed_mmps":50,"angle_rad":0.3}`, tag))
		var a struct{ Result struct{ Code int32 } }
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		return &vectorpb.ActionResult{Code: vectorpb.ActionResult_ActionResultCode(a.Result.Code)}
	})
}
