package vectorsdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"testing"
	"time"

	"kennel/edge/robot"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/core/control"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// listener is an open event stream.
type listener struct {
	t testing.TB
	s grpc.ServerStreamingClient[vectorpb.EventResponse]
	// leave ends it
	leave context.CancelFunc
}

func (d *desk) listen(t testing.TB, q *vectorpb.EventRequest) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(as(t, "look"))
	s, err := d.dial(t).EventStream(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	return &listener{t, s, cancel}
}

// primary reads the first message, which is the connection response (part of VEC-EVT-03).
func (l *listener) primary() bool {
	l.t.Helper()
	m, err := l.s.Recv()
	if err != nil {
		l.t.Fatal(err)
	}
	r := m.GetEvent().GetConnectionResponse()
	if r == nil || m.Status.GetCode() != vectorpb.ResponseStatus_OK || r.Status.GetCode() != vectorpb.ResponseStatus_OK {
		l.t.Fatalf("first message: %v", m)
	}
	return r.IsPrimary
}

// await returns the first event that ok takes. Other messages have no status.
func (l *listener) await(ok func(*vectorpb.Event) bool) *vectorpb.Event {
	l.t.Helper()
	for {
		m, err := l.s.Recv()
		if err != nil {
			l.t.Fatal(err)
		}
		if m.Status != nil {
			l.t.Fatalf("a status in %v", m)
		}
		if ok(m.Event) {
			return m.Event
		}
	}
}

func (l *listener) state(ok func(*vectorpb.RobotState) bool) *vectorpb.RobotState {
	l.t.Helper()
	return l.await(func(e *vectorpb.Event) bool { return e.GetRobotState() != nil && ok(e.GetRobotState()) }).GetRobotState()
}

func any1(*vectorpb.RobotState) bool { return true }

// TestEventStream: the connection response comes first, then the state in the original's units, keep-alives and what happens (VEC-EVT-04, VEC-EVT-06, VEC-STA-05).
func TestEventStream(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	l := d.listen(t, &vectorpb.EventRequest{ConnectionId: "one"})
	if !l.primary() {
		t.Error("the only stream is not primary")
	}
	second := d.listen(t, &vectorpb.EventRequest{ConnectionId: "two"})
	if second.primary() {
		t.Error("the second connection is primary")
	}
	second.leave()
	s := l.state(any1)
	if s.CarryingObjectId != -1 || s.LocalizedToObjectId != -1 || s.HeadTrackingObjectId != -1 || s.CarryingObjectOnTopId != -1 || s.Pose.OriginId != 1 || s.Pose.Q0 != 1 {
		t.Errorf("state: %v", s)
	}
	d.body.Measure("wheelL.speed", 1)
	d.body.Measure("wheelR.speed", -2)
	s = l.state(func(s *vectorpb.RobotState) bool { return s.RightWheelSpeedMmps != 0 && s.LeftWheelSpeedMmps != 0 })
	if math.Abs(float64(s.LeftWheelSpeedMmps)-14.5) > 0.01 || math.Abs(float64(s.RightWheelSpeedMmps)+29) > 0.01 || s.Status&0x8000 == 0 {
		t.Errorf("wheels: %v", s)
	}
	s = l.state(func(s *vectorpb.RobotState) bool { return s.ProxData.DistanceMm == 400 })
	if !s.ProxData.FoundObject || s.ProxData.Unobstructed {
		t.Errorf("a thing at 0.4 m: %v", s.ProxData)
	}
	d.body.Measure("laser.distance", math.Inf(1))
	l.state(func(s *vectorpb.RobotState) bool { return s.ProxData.Unobstructed && !s.ProxData.FoundObject })
	l.await(func(e *vectorpb.Event) bool { return e.GetKeepAlive() != nil })
	d.body.Emit(control.Event{At: 5 * time.Second, Name: "robot.unexpected_movement", N: 1, Numbers: [4]int64{1}, Texts: [4]string{"TURNED_IN_OPPOSITE_DIRECTION", "LEFT"}})
	m := l.await(func(e *vectorpb.Event) bool { return e.GetUnexpectedMovement() != nil }).GetUnexpectedMovement()
	if m.Timestamp != 5000 || m.MovementType != vectorpb.UnexpectedMovement_TURNED_IN_OPPOSITE_DIRECTION || m.MovementSide != vectorpb.UnexpectedMovement_LEFT { // VEC-STA-06
		t.Errorf("%v", m)
	}
	d.body.SetPlace(robot.Place{X: 0.123, Y: -0.05, Theta: 1, Pitch: -0.2, Moving: true}) // the pose in robotd's report is older
	s = l.state(func(s *vectorpb.RobotState) bool { return s.Pose.X == 123 })
	if s.Pose.Y != -50 || s.PosePitchRad != 0.2 || s.PoseAngleRad != 1 || math.Abs(float64(s.Pose.Q3)-math.Sin(0.5)) > 1e-6 || s.Status&0x20001 != 0x20001 {
		t.Errorf("the pose: %v", s)
	}
	d.body.Emit(control.Event{Name: "robot.delocalized"})
	l.state(func(s *vectorpb.RobotState) bool { return s.Pose.OriginId == 2 }) // part of VEC-MAP-04
}

// TestFilters: a white list passes its members, an empty one none; a black list passes all others; connection response and keep-alive always come
// (VEC-EVT-02).
func TestFilters(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	white := func(names ...string) *vectorpb.EventRequest {
		return &vectorpb.EventRequest{ListType: &vectorpb.EventRequest_WhiteList{WhiteList: &vectorpb.FilterList{List: names}}}
	}
	black := func(names ...string) *vectorpb.EventRequest {
		return &vectorpb.EventRequest{ListType: &vectorpb.EventRequest_BlackList{BlackList: &vectorpb.FilterList{List: names}}}
	}
	for name, tc := range map[string]struct {
		q     *vectorpb.EventRequest
		state bool
	}{
		"no list": {&vectorpb.EventRequest{}, true}, "white": {white("robot_state"), true}, "white, another": {white("object_event", "wake_word"), false},
		"white, empty": {white(), false}, "black": {black("robot_state"), false}, "black, another": {black("wake_word"), true}, "black, empty": {black(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := d.listen(t, tc.q)
			defer l.leave()
			l.primary()
			var states int
			l.await(func(e *vectorpb.Event) bool {
				if e.GetRobotState() != nil {
					states++
				}
				return e.GetKeepAlive() != nil
			})
			if (states > 0) != tc.state {
				t.Errorf("%d states within a second", states)
			}
		})
	}
	l := d.listen(t, white(make([]string, 65)...))
	if _, err := l.s.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("65 names: %v", err)
	}
}

// TestSlowListener: a stream that is not read delays no other: the next one has its states at their rate meanwhile.
func TestSlowListener(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	slow := d.listen(t, &vectorpb.EventRequest{})
	slow.primary()
	l := d.listen(t, &vectorpb.EventRequest{})
	l.primary()
	l.state(any1)
	n := 0
	l.await(func(e *vectorpb.Event) bool {
		if e.GetRobotState() != nil {
			n++
		}
		return n == 60
	})
}

// TestStreamsOverHTTPS: an event stream by POST and by GET has a line of JSON for each message (VEC-TRN-04), and ends with an error when the core is lost.
func TestStreamsOverHTTPS(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for method, path := range map[string]string{http.MethodPost: "/v1/event_stream", http.MethodGet: "/v1/event_stream?connection_id=x&white_list.list=robot_state"} {
		resp := d.send(t, method, "look", path, `{"white_list":{"list":["robot_state"]}}`)
		lines := bufio.NewScanner(resp.Body)
		if !lines.Scan() || !sameJSON(lines.Text(), `{"result":{"status":{"code":3},"event":{"connection_response":{"status":{"code":3},"is_primary":true}}}}`) {
			t.Errorf("%s: %q", method, lines.Text())
		}
		var m struct {
			Result struct {
				Event struct {
					State map[string]any `json:"robot_state"`
				}
			}
		}
		for lines.Scan() && m.Result.Event.State == nil {
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
		}
		if len(m.Result.Event.State) != 17 {
			t.Errorf("%s: the state has %d fields: %v", method, len(m.Result.Event.State), m.Result.Event.State)
		}
		resp.Body.Close()
		testwait.Until(t, patience, "the end of the stream", testwait.Holds(func() bool { // so that the next is primary
			l := d.listen(t, &vectorpb.EventRequest{ConnectionId: "probe"})
			defer l.leave()
			return l.primary()
		}))
	}
	l := d.listen(t, &vectorpb.EventRequest{})
	l.primary()
	d.lose()
	for {
		if _, err := l.s.Recv(); err != nil {
			if status.Code(err) != codes.Unavailable {
				t.Errorf("robotd is lost: %v", err)
			}
			break
		}
	}
	again := d.listen(t, &vectorpb.EventRequest{})
	if _, err := again.s.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("without robotd: %v", err)
	}
}
