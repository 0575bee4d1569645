package vectorsdk_test

import (
	"bufio"
	"context"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/body"
	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/edge/robot/claim"
	"kennel/infra/api/robotpb"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

const (
	override = vectorpb.ControlRequest_OVERRIDE_BEHAVIORS
	usual    = vectorpb.ControlRequest_DEFAULT
	reserve  = vectorpb.ControlRequest_RESERVE_CONTROL
)

// priorities returns those of the claims that the loop has granted or refused, in their order.
func (d *desk) priorities() (all []claim.Priority) {
	for _, o := range d.body.Orders() {
		if o.Kind == control.Claim {
			all = append(all, o.Priority)
		}
	}
	return all
}

// TestControlChangesHands: one connection has control (VEC-CTL-11). A newer request of the same priority takes it and the one before hears so; one of a
// lower priority waits until it is given back; a lost control comes back by a new request alone (part of VEC-CTL-06).
func TestControlChangesHands(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.granted(t, "all")
	second := d.granted(t, "all") // with the same token: control belongs to the connection
	first.expects("lost")
	drive := &vectorpb.DriveWheelsRequest{LeftWheelMmps: 50, RightWheelMmps: 50}
	if a, err := first.DriveWheels(first.ctx, drive); err != nil || a.Status.Code != vectorpb.ResponseStatus_FORBIDDEN {
		t.Errorf("without control: %v, %v", a, err)
	}
	if a, err := second.DriveWheels(second.ctx, drive); err != nil || a.Status.Code != vectorpb.ResponseStatus_REQUEST_PROCESSING {
		t.Errorf("with control: %v, %v", a, err)
	}
	third := d.pilot(t, "other")
	third.ask(override)
	third.expects("granted")
	second.expects("lost")
	testwait.Until(t, patience, "the wheels at rest", testwait.Holds(func() bool { return !d.body.Moving() }))
	first.ask(usual) // waits
	third.release()
	third.expects("lost")
	first.expects("granted")
	first.leave() // which gives control back
	second.ask(vectorpb.ControlRequest_UNKNOWN)
	second.expects("granted") // VEC-CTL-01
	want := map[claim.Priority]bool{claim.Program: true, claim.Program + 5: true}
	for _, p := range d.priorities() {
		if !want[p] {
			t.Errorf("claimed with priority %d", p)
		}
	}
}

// TestReserve: RESERVE claims the motors below programs, moves nothing itself, and hears when another connection takes control (part of VEC-CTL-10).
func TestReserve(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	still := d.pilot(t, "all")
	still.ask(reserve)
	still.expects("granted")
	for _, p := range d.priorities() {
		if p <= claim.Animation || p >= claim.Program {
			t.Errorf("claimed with priority %d", p)
		}
	}
	if a, err := still.DriveWheels(still.ctx, &vectorpb.DriveWheelsRequest{LeftWheelMmps: 50}); err != nil || a.Status.Code != vectorpb.ResponseStatus_FORBIDDEN {
		t.Errorf("RESERVE drives: %v, %v", a, err)
	}
	d.granted(t, "other")
	still.expects("reserved_lost")
}

// TestCliffTakesControl: a program that drives to a cliff hears that control is lost, and gets it back by a new request (part of VEC-CTL-06, part of VEC-CTL-09); one that
// was not driving, and one with OVERRIDE, keep it (part of VEC-CTL-08).
func TestCliffTakesControl(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	cliff := func() { d.body.Emit(control.Event{Name: "robot.cliff_detected", N: 1, Numbers: [4]int64{1}}) }
	p := d.granted(t, "all")
	drive := &vectorpb.DriveWheelsRequest{LeftWheelMmps: 50, RightWheelMmps: 50}
	drives := func(want vectorpb.ResponseStatus_StatusCode) {
		t.Helper()
		if a, err := p.DriveWheels(p.ctx, drive); err != nil || a.Status.Code != want {
			t.Errorf("%v, %v; want %v", a, err, want)
		}
	}
	events := d.listen(t, &vectorpb.EventRequest{})
	events.primary()
	passed := func() { // all that was emitted before has been heard
		t.Helper()
		d.body.Emit(control.Event{Name: "robot.unexpected_movement", Texts: [4]string{"TURNED_BUT_STOPPED", "FRONT"}})
		events.await(func(e *vectorpb.Event) bool { return e.GetUnexpectedMovement() != nil })
	}
	cliff()
	passed()
	drives(vectorpb.ResponseStatus_REQUEST_PROCESSING) // it keeps control that it did not use
	cliff()
	p.expects("lost")
	drives(vectorpb.ResponseStatus_FORBIDDEN)
	testwait.Until(t, patience, "the wheels at rest", testwait.Holds(func() bool { return !d.body.Moving() }))
	p.ask(override)
	p.expects("granted")
	drives(vectorpb.ResponseStatus_REQUEST_PROCESSING)
	cliff()
	passed()
	drives(vectorpb.ResponseStatus_REQUEST_PROCESSING)
}

// TestPriorityOfOneConnection: raising the priority keeps what moves, lowering it ends that (VEC-CTL-12).
func TestPriorityOfOneConnection(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	if _, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{LeftWheelMmps: 50, RightWheelMmps: 50}); err != nil {
		t.Fatal(err)
	}
	d.moved(t, 1)
	p.ask(override)
	p.expects("granted")
	if !d.body.Moving() {
		t.Error("raising the priority stopped the wheels")
	}
	p.ask(usual)
	p.expects("granted")
	testwait.Until(t, patience, "the wheels at rest", testwait.Holds(func() bool { return !d.body.Moving() }))
}

// TestControlBesidePrograms: while a program of the gateway has the wheels, control waits; it is granted once they are free. And a program is told who has
// them.
func TestControlBesidePrograms(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := robotpb.NewRobotClient(d.conn(t))
	l, err := r.Claim(as(t, "other"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}, ForMs: 60000})
	if err != nil {
		t.Fatal(err)
	}
	p := d.pilot(t, "all")
	p.ask(usual)
	if m, err := p.stream.Recv(); err != nil || m.GetKeepAlive() == nil {
		t.Fatalf("while another has the wheels: %v, %v", m, err)
	}
	if _, err := r.Release(as(t, "other"), &robotpb.ReleaseRequest{Lease: l.Id}); err != nil {
		t.Fatal(err)
	}
	p.expects("granted")
	if _, err := r.Claim(as(t, "other"), &robotpb.ClaimRequest{Parts: []string{"robot.go"}}); status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "gateway: square") {
		t.Errorf("the other hears %v", err)
	}
}

// TestAssumeByHTTPS: control by one request, for all calls with the same token, until the client ends it (VEC-CTL-02, VEC-TRN-04).
func TestAssumeByHTTPS(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	resp := d.send(t, http.MethodPost, "all", "/v1/assume_behavior_control", `{"control_request":{"priority":20}}`)
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !sameJSON(lines.Text(), `{"result":{"control_granted_response":{}}}`) {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	const drive = `{"left_wheel_mmps":50,"right_wheel_mmps":50}`
	if _, _, body := d.post(t, "all", "/v1/drive_wheels", drive); !sameJSON(body, `{"status":{"code":2}}`) {
		t.Error(body)
	}
	if _, _, body := d.post(t, "other", "/v1/drive_wheels", drive); !sameJSON(body, `{"status":{"code":100}}`) {
		t.Error(body)
	}
	resp.Body.Close()
	testwait.Until(t, patience, "the end of control", testwait.Holds(func() bool {
		_, _, body := d.post(t, "all", "/v1/drive_wheels", drive)
		return sameJSON(body, `{"status":{"code":100}}`)
	}))
	if status, _, body := d.post(t, "all", "/v1/assume_behavior_control", `{}`); status != http.StatusBadRequest {
		t.Errorf("neither of the two requests: %d %s", status, body)
	}
	if status, _, body := d.post(t, "all", "/v1/assume_behavior_control", `{"control_request":{"priority":15}}`); status != http.StatusBadRequest {
		t.Errorf("a priority that there is not: %d %s", status, body)
	}
}

// begin starts an action and returns its result later.
func begin(p *pilot, do func(context.Context) (*vectorpb.ActionResult, error)) <-chan vectorpb.ActionResult_ActionResultCode {
	got := make(chan vectorpb.ActionResult_ActionResultCode, 1)
	go func() {
		r, err := do(p.ctx)
		if err != nil {
			got <- -vectorpb.ActionResult_ActionResultCode(status.Code(err))
			return
		}
		got <- r.GetCode()
	}()
	return got
}

func (p *pilot) straight(tag int32, metres float32, retries int32) <-chan vectorpb.ActionResult_ActionResultCode {
	return begin(p, func(ctx context.Context) (*vectorpb.ActionResult, error) {
		a, err := p.DriveStraight(ctx, &vectorpb.DriveStraightRequest{DistMm: 1000 * metres, SpeedMmps: 50, IdTag: tag, NumRetries: retries})
		return a.GetResult(), err
	})
}

// TestActions: an action ends as the body did, in the codes of the original (VEC-CTL-21), and its track is its own until then (part of VEC-CTL-23).
func TestActions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	const tag = 2000001
	n := 0
	for _, tc := range []struct {
		ends motion.Outcome
		want vectorpb.ActionResult_ActionResultCode
	}{
		{motion.Done, vectorpb.ActionResult_ACTION_RESULT_SUCCESS}, {motion.Blocked, vectorpb.ActionResult_MOTOR_STOPPED_MAKING_PROGRESS},
		{motion.Expired, vectorpb.ActionResult_TIMEOUT}, {motion.Astray, vectorpb.ActionResult_FOLLOWING_PATH_BUT_NOT_TRAVERSING},
		{motion.Cancelled, vectorpb.ActionResult_INTERRUPTED},
	} {
		got := p.straight(tag, 0.1, 0)
		n++
		if o := d.moved(t, n); o.Kind != control.Go || math.Abs(o.A-0.1) > 1e-6 || math.Abs(o.Speed-0.05) > 1e-6 {
			t.Errorf("the loop heard %+v", o)
		}
		if tc.ends == motion.Done {
			if code := testwait.For(t, p.straight(tag+1, 1, 0), "an action on the same track"); code != vectorpb.ActionResult_TRACKS_LOCKED {
				t.Errorf("an action on the same track: %v", code)
			}
			if code := testwait.For(t, p.straight(tag, 1, 0), "an action with the same tag"); code != vectorpb.ActionResult_BAD_TAG {
				t.Errorf("an action with the same tag: %v", code)
			}
			if a, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{LeftWheelMmps: 1}); err != nil || a.Status.Code != vectorpb.ResponseStatus_FORBIDDEN {
				t.Errorf("speeds beside an action: %v, %v", a, err)
			}
			a, err := p.SetHeadAngle(p.ctx, &vectorpb.SetHeadAngleRequest{AngleRad: 0.3, IdTag: tag + 2}) // another track
			if err != nil || a.Result.Code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
				t.Errorf("the head beside the wheels: %v, %v", a, err)
			}
			n++
			if o := d.moved(t, n); math.Abs(o.Goals[0].Value*2*math.Pi+0.3) > 1e-6 && math.Abs(o.Goals[0].Value+0.3) > 1e-6 { // up is negative in the tree
				t.Errorf("the head's goal: %+v", o.Goals[0])
			}
		}
		d.body.End(tc.ends, 0.05)
		if code := testwait.For(t, got, "the end"); code != tc.want {
			t.Errorf("%v: %v, want %v", tc.ends, code, tc.want)
		}
	}
	for _, wrong := range []int32{0, 2000000, 3000001, -1} { // VEC-CTL-20
		if code := testwait.For(t, p.straight(wrong, 0.1, 0), "a refusal"); code != -vectorpb.ActionResult_ActionResultCode(codes.InvalidArgument) {
			t.Errorf("tag %d: %v", wrong, code)
		}
	}
	if a, err := p.SetLiftHeight(p.ctx, &vectorpb.SetLiftHeightRequest{IdTag: tag}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a body without a lift: %v, %v", a, err)
	}
}

// TestRetries: what a retry may mend is tried as often as asked, for the rest of the way (VEC-CTL-22).
func TestRetries(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	got := p.straight(2000001, 0.1, 1)
	d.moved(t, 1)
	d.body.End(motion.Blocked, 0.04)
	if o := d.moved(t, 2); math.Abs(o.A-0.06) > 1e-6 {
		t.Errorf("the second try drives %v m", o.A)
	}
	d.body.End(motion.Blocked, 0)
	if code := testwait.For(t, got, "the end"); code != vectorpb.ActionResult_MOTOR_STOPPED_MAKING_PROGRESS {
		t.Error(code)
	}
}

// TestLateLoop: an action that was stopped because the robot's loop was late goes the rest of its way, and a speed is given again: neither is an end that
// the original has a word for.
func TestLateLoop(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	got := p.straight(2000001, 0.1, 0)
	d.moved(t, 1)
	d.body.End(motion.Stopped, 0.03)
	if o := d.moved(t, 2); math.Abs(o.A-0.07) > 1e-6 {
		t.Errorf("then it drives %v m", o.A)
	}
	d.body.End(motion.Done, 0.07)
	if code := testwait.For(t, got, "the end"); code != vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
		t.Error(code)
	}
	if _, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{LeftWheelMmps: 50, RightWheelMmps: 50}); err != nil {
		t.Fatal(err)
	}
	d.moved(t, 3)
	d.body.End(motion.Stopped, 0)
	if o := d.moved(t, 4); o.Kind != control.Set || math.Abs(o.Goals[0].Value-0.05/0.0145) > 1e-3 {
		t.Errorf("the loop heard %+v", o)
	}
	if _, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{}); err != nil || d.body.Moving() {
		t.Errorf("%v, moving %v", err, d.body.Moving())
	}
}

// TestCancel: an action ends by its tag, by the end of its call, and with control.
func TestCancel(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	const tag = 2500000
	got := p.straight(tag, 1, 5)
	d.moved(t, 1)
	if a, err := p.CancelActionByIdTag(p.ctx, &vectorpb.CancelActionByIdTagRequest{IdTag: tag + 1}); err != nil || a.Status.Code != vectorpb.ResponseStatus_NOT_FOUND {
		t.Errorf("another tag: %v, %v", a, err)
	}
	if a, err := p.CancelActionByIdTag(p.ctx, &vectorpb.CancelActionByIdTagRequest{IdTag: tag}); err != nil || a.Status.Code != vectorpb.ResponseStatus_RESPONSE_RECEIVED {
		t.Errorf("%v, %v", a, err)
	}
	if code := testwait.For(t, got, "the end"); code != vectorpb.ActionResult_ACTION_RESULT_CANCELLED_WHILE_RUNNING || d.body.Moving() {
		t.Errorf("%v, moving %v", code, d.body.Moving())
	}
	ctx, cancel := context.WithCancel(p.ctx)
	go func() { _, _ = p.DriveStraight(ctx, &vectorpb.DriveStraightRequest{DistMm: 1000, IdTag: tag}) }()
	d.moved(t, 2)
	cancel()
	testwait.Until(t, patience, "the end of the motion", testwait.Holds(func() bool { return !d.body.Moving() }))
	testwait.Until(t, patience, "control again", testwait.Holds(func() bool {
		a, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{LeftWheelMmps: 10, RightWheelMmps: 10})
		return err == nil && a.Status.Code == vectorpb.ResponseStatus_REQUEST_PROCESSING
	}))
	if a, err := p.StopAllMotors(p.ctx, &vectorpb.StopAllMotorsRequest{}); err != nil || a.Status.Code != vectorpb.ResponseStatus_RESPONSE_RECEIVED || d.body.Moving() {
		t.Errorf("%v, %v, moving %v", a, err, d.body.Moving())
	}
	testwait.Until(t, patience, "an action", testwait.Holds(func() bool { // after the end of the speeds was told
		got = p.straight(tag, 1, 5)
		select {
		case code := <-got:
			return code != vectorpb.ActionResult_TRACKS_LOCKED
		case <-time.After(50 * time.Millisecond):
			return true
		}
	}))
	d.granted(t, "other")
	if code := testwait.For(t, got, "the end"); code != vectorpb.ActionResult_INTERRUPTED { // part of VEC-CTL-06
		t.Error(code)
	}
}

// TestWheels: speeds are given in the wheels' own unit, last until the next ones, and end with both 0 (VEC-MOV-02). An acceleration is a time.
func TestWheels(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	if _, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{LeftWheelMmps: 50, RightWheelMmps: -50, LeftWheelMmps2: 100, RightWheelMmps2: 200}); err != nil {
		t.Fatal(err)
	}
	if o := d.moved(t, 1); o.N != 2 || math.Abs(o.Goals[0].Value-0.05/0.0145) > 1e-3 || math.Abs(o.Goals[1].Value+0.05/0.0145) > 1e-3 || o.Within.Round(time.Millisecond) != 500*time.Millisecond {
		t.Errorf("the loop heard %+v", o)
	}
	if _, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{}); err != nil || d.body.Moving() {
		t.Errorf("%v, moving %v", err, d.body.Moving())
	}
	if _, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{LeftWheelMmps: float32(math.NaN())}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no number: %v", err)
	}
}

// TestRobotdLost: a control stream hears that control is lost with the robot's core.
func TestRobotdLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	d.lose()
	p.expects("lost")
	if a, err := p.DriveWheels(p.ctx, &vectorpb.DriveWheelsRequest{LeftWheelMmps: 50}); err != nil || a.Status.Code != vectorpb.ResponseStatus_FORBIDDEN {
		t.Errorf("%v, %v", a, err)
	}
}

// TestOffCharger: on the charger a way is refused (part of VEC-MOV-01), and DriveOffCharger drives until the rails are left, also after a stop between them; off it there is nothing to
// do. CancelBehavior ends it.
func TestOffCharger(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	drive := func() <-chan vectorpb.BehaviorResults {
		got := make(chan vectorpb.BehaviorResults, 1)
		go func() {
			a, err := p.DriveOffCharger(p.ctx, &vectorpb.DriveOffChargerRequest{})
			if err != nil {
				t.Error(err)
			}
			got <- a.GetResult()
		}()
		return got
	}
	if r := testwait.For(t, drive(), "the result"); r != vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE || len(d.motions()) != 0 {
		t.Errorf("off the charger: %v after %d motions", r, len(d.motions()))
	}
	on := func(supply body.Power) {
		d.body.SetReport(func(r *control.Report) { r.Supply = supply })
		testwait.Until(t, patience, "the charger", testwait.Holds(func() bool {
			b, err := p.BatteryState(p.ctx, &vectorpb.BatteryStateRequest{})
			return err == nil && b.IsOnChargerPlatform == supply.Has(body.OnCharger) && b.IsCharging == supply.Has(body.Charging)
		}))
	}
	on(body.OnCharger | body.Charging)
	if code := testwait.For(t, p.straight(2000001, 0.1, 0), "a refusal"); code != vectorpb.ActionResult_SHOULDNT_DRIVE_ON_CHARGER {
		t.Errorf("on the charger: %v", code)
	}
	got := drive()
	if o := d.moved(t, 1); o.Kind != control.Go || o.A < 0.06 {
		t.Errorf("the loop heard %+v", o)
	}
	if a, err := p.CancelBehavior(p.ctx, &vectorpb.CancelBehaviorRequest{}); err != nil || a.Status.Code != vectorpb.ResponseStatus_RESPONSE_RECEIVED {
		t.Errorf("%v, %v", a, err)
	}
	if r := testwait.For(t, got, "the result"); r != vectorpb.BehaviorResults_BEHAVIOR_INVALID_STATE || d.body.Moving() {
		t.Errorf("cancelled: %v", r)
	}
	got = drive()
	d.moved(t, 2)
	on(0)
	d.body.End(motion.Done, 0.12)
	if r := testwait.For(t, got, "the result"); r != vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE {
		t.Errorf("off by itself: %v", r)
	}
	on(body.OnCharger)
	got = drive()
	d.moved(t, 3)
	on(0)
	d.body.End(motion.Stopped, 0.005) // its loop was late: the contacts are open, and it is between the rails
	if o := d.moved(t, 4); math.Abs(o.A-0.115) > 0.001 {
		t.Errorf("after a stop it drives %v m, want the rest of 0.12", o.A)
	}
	d.body.End(motion.Done, 0.115)
	if r := testwait.For(t, got, "the result"); r != vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE {
		t.Errorf("off after a stop: %v", r)
	}
}
