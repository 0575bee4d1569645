package robotapp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kennel/edge/agent/docs"
	"kennel/edge/agent/features"
	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/agent/release"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
	"kennel/edge/cube/cubesim"
	"kennel/edge/gateway"
	"kennel/edge/sim/plane"
	"kennel/edge/sim/uart"
	"kennel/edge/vectorsdk"
	"kennel/infra/api/vectorpb"
	"kennel/infra/runner"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// sdkRobot is a simulated Vector with robotd and a gateway that speaks the original's interface.
type sdkRobot struct {
	board  *vectorsim.Board
	in     inWorld
	addr   string
	conf   *tls.Config
	events func() (<-chan *corelink.Event, func())
	dir    string
	facade *vectorsdk.Facade
}

// undisturbed does what moves the robot, and again up to twice if its loop was late meanwhile: that stops the motors, and then the robot is not exactly where it should
// be. do returns what is wrong. A machine that is too busy each time is no judge.
func (r *sdkRobot) undisturbed(t *testing.T, do func() string) {
	t.Helper()
	for n := 1; ; n++ {
		events, remove := r.events()
		wrong, late := do(), false
		remove()
		for len(events) > 0 {
			e := <-events
			late = late || e.Name == "robot.aborted"
		}
		switch {
		case wrong == "":
			return
		case !late:
			t.Error(wrong)
			return
		case n == 3:
			t.Logf("not judged, the machine is too busy: %s", wrong)
			return
		}
		t.Logf("%s; its loop was late: again", wrong)
	}
}

func newSDKRobot(t *testing.T) *sdkRobot {
	t.Helper()
	return newSDKRobotIn(t, &plane.Map{Walls: []plane.Wall{{From: plane.Vec{0.9, -3}, To: plane.Vec{0.9, 3}}}, Charger: &plane.Charger{At: plane.Pose{-1, 0, 0}}})
}

// newSDKRobotIn is newSDKRobot in a world.
func newSDKRobotIn(t *testing.T, world *plane.Map) *sdkRobot {
	t.Helper()
	root := t.TempDir()
	dir, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	line, err := uart.ListenSocket(dir, "body")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	b := vectorsim.New(vectorsim.Config{Volts: 3.9, World: world})
	plate, err := gatewaycert.Open(gatewaycert.Config{Root: dir, Species: thing.Vector, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h := host.New(host.Robot{Root: dir, Dir: root, Thing: "vic:00e20100", OS: "2.1.0.7", Log: log, Changed: func() {}, Now: time.Now})
	g := gateway.New(h, gateway.Config{Addr: "127.0.0.1:0", Certificate: func() (tls.Certificate, bool) { return plate.TLSCertificate(), true },
		Name: plate.Name, Client: func(_ context.Context, bearer string) (gateway.Client, bool) {
			return gateway.Client{Name: bearer}, bearer != ""
		}})
	documents, err := docs.New(docs.Config{Settings: jdocs.RobotSettings, Root: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	gates, err := features.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	facade := vectorsdk.New(vectorsdk.Config{Gateway: g, Root: dir, Log: log, CubeScan: 100 * time.Millisecond, OS: "2.1.0.7", Build: "test", Documents: documents.Reach(), Features: gates.List,
		Updates: release.New(release.Config{Running: "2.1.0.7", Log: log})})
	g.Offer(facade.Part())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 6)
	sensors := filepath.Join(root, imu.DefaultDevice)
	if err := os.MkdirAll(filepath.Dir(sensors), 0o755); err != nil {
		t.Fatal(err)
	}
	go func() {
		ended <- vectorsim.ServeIMU(ctx, sensors, vectorsim.NewIMU(vectorsim.IMUConfig{Seed: 1}, b.Inertial))
	}()
	go func() { ended <- b.RunOn(ctx, line) }()
	go func() { ended <- vectorsim.NewEye(b).Serve(ctx, dir) }()
	go func() { ended <- cubesim.Serve(ctx, dir, b.Cubes()) }()
	go func() { ended <- Run(ctx, log, configOf(root, "vector", filepath.Join(root, "body"))) }()
	go func() { ended <- runner.Run(ctx, log, runner.Config{}, g.Part().Services...) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended, <-ended, <-ended, <-ended, <-ended, line.Close()); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	// Until the gyro's bias is known the heading drifts while the robot drives.
	calibrated := make(chan struct{})
	ready, link := sync.OnceFunc(func() { close(calibrated) }), corelink.NewClient(root)
	go link.Run(ctx, func(m corelink.Message) {
		if e, ok := m.(*corelink.Event); ok && e.Name == "imu_filter.gyro_calibrated" {
			ready() // each client hears of it, also one that connects again
		}
	})
	select {
	case <-calibrated:
	case <-time.After(4 * patience):
		t.Fatal("the gyro is not calibrated")
	}
	testwait.Until(t, 4*patience, "the gateway", testwait.Holds(func() bool { return g.Addr() != "" }))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(plate.PEM())
	return &sdkRobot{b, b.InWorld, g.Addr(), &tls.Config{RootCAs: pool, ServerName: plate.Name()}, g.Events, root, facade}
}

// sdkProgram is a program for the original robot.
type sdkProgram struct {
	vectorpb.ExternalInterfaceClient
	t       *testing.T
	ctx     context.Context
	control grpc.BidiStreamingClient[vectorpb.BehaviorControlRequest, vectorpb.BehaviorControlResponse]
	tag     int32
	end     func()
}

// start does what the Python SDK does before a program's first line, in its order (VEC-AUTH-13; peer facts, section 2). The error is the one that a program would
// raise.
func (r *sdkRobot) start(t *testing.T, token string) (*sdkProgram, error) {
	conn, err := grpc.NewClient(r.addr, grpc.WithTransportCredentials(credentials.NewTLS(r.conf)))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), 8*patience)
	p := &sdkProgram{ExternalInterfaceClient: vectorpb.NewExternalInterfaceClient(conn), t: t, ctx: ctx, tag: 2000000, end: func() { cancel(); conn.Close() }}
	if err := p.connect(); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

func (p *sdkProgram) connect() error {
	version, err := p.ProtocolVersion(p.ctx, &vectorpb.ProtocolVersionRequest{ClientVersion: 5})
	if err == nil && version.Result != vectorpb.ProtocolVersionResponse_SUCCESS {
		err = errors.New("protocol version refused")
	}
	if err != nil {
		return err
	}
	if p.control, err = p.BehaviorControl(p.ctx); err != nil {
		return err
	}
	if _, err := p.SDKInitialization(p.ctx, &vectorpb.SDKInitializationRequest{SdkModuleVersion: "0.8", PythonVersion: "3.12"}); err != nil {
		return err
	}
	if err := p.control.Send(&vectorpb.BehaviorControlRequest{RequestType: &vectorpb.BehaviorControlRequest_ControlRequest{
		ControlRequest: &vectorpb.ControlRequest{Priority: vectorpb.ControlRequest_DEFAULT}}}); err != nil {
		return err
	}
	for {
		m, err := p.control.Recv()
		if err != nil {
			return err
		}
		if m.GetControlGrantedResponse() != nil {
			break
		}
	}
	events, err := p.EventStream(p.ctx, &vectorpb.EventRequest{ConnectionId: "program"})
	if err != nil {
		return err
	}
	if m, err := events.Recv(); err != nil || m.Event.GetConnectionResponse() == nil {
		return errors.Join(err, errors.New("no connection response"))
	}
	face, err := p.EnableFaceDetection(p.ctx, &vectorpb.EnableFaceDetectionRequest{})
	if err == nil && face.Status.Code != vectorpb.ResponseStatus_OK {
		err = errors.New("face detection: " + face.String())
	}
	if err != nil {
		return err
	}
	if _, err := p.EnableMarkerDetection(p.ctx, &vectorpb.EnableMarkerDetectionRequest{}); err != nil {
		return err
	}
	camera, err := p.GetCameraConfig(p.ctx, &vectorpb.CameraConfigRequest{})
	if err == nil && (math.Abs(float64(camera.FovX)-90) > 0.01 || math.Abs(float64(camera.FocalLengthX)-320) > 1) { // part of VEC-IMG-07
		p.t.Errorf("camera: %v", camera)
	}
	if err != nil {
		return err
	}
	_, err = p.state(func(*vectorpb.RobotState) bool { return true })
	return err
}

// state returns the first robot_state from now on that ok takes.
func (p *sdkProgram) state(ok func(*vectorpb.RobotState) bool) (*vectorpb.RobotState, error) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	events, err := p.EventStream(ctx, &vectorpb.EventRequest{}) // a stream that nothing read meanwhile begins with old states
	if err != nil {
		return nil, err
	}
	for {
		m, err := events.Recv()
		if err != nil {
			return nil, err
		}
		if s := m.Event.GetRobotState(); s != nil && ok(s) {
			return s, nil
		}
	}
}

// stop ends as the Python SDK does.
func (p *sdkProgram) stop() {
	p.t.Helper()
	for mode := range vectorpb.CustomObjectDeletionMode(3) {
		if a, err := p.DeleteCustomObjects(p.ctx, &vectorpb.DeleteCustomObjectsRequest{Mode: mode + 1}); err != nil || a.Status.Code != vectorpb.ResponseStatus_OK {
			p.t.Errorf("delete custom objects: %v, %v", a, err)
		}
	}
	p.end()
}

// takeControl asks for control and waits until it is granted.
func (p *sdkProgram) takeControl() {
	p.t.Helper()
	if err := p.control.Send(&vectorpb.BehaviorControlRequest{RequestType: &vectorpb.BehaviorControlRequest_ControlRequest{
		ControlRequest: &vectorpb.ControlRequest{Priority: vectorpb.ControlRequest_DEFAULT}}}); err != nil {
		p.t.Fatal(err)
	}
	for {
		switch m, err := p.control.Recv(); {
		case err != nil:
			p.t.Fatal(err)
		case m.GetControlGrantedResponse() != nil:
			return
		}
	}
}

// act does an action again while it is interrupted or misses its way, as a loaded machine may make it.
func (p *sdkProgram) act(what string, do func(tag int32) (*vectorpb.ActionResult, error)) {
	p.t.Helper()
	for deadline := time.Now().Add(4 * patience); ; time.Sleep(100 * time.Millisecond) {
		p.tag++
		r, err := do(p.tag)
		if err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
		if r.Code == vectorpb.ActionResult_ACTION_RESULT_SUCCESS {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: %v", what, r.Code)
		}
		p.t.Logf("%s: %v; again", what, r.Code)
		if r.Code == vectorpb.ActionResult_NOT_STARTED { // control was lost, as to a machine that was busy for seconds
			p.takeControl()
		}
	}
}

// level sets a speed until the state says what it brings about; a loop that was late stops it, so it is set again each second.
func (p *sdkProgram) level(what string, set func() (*vectorpb.ResponseStatus, error), ok func(*vectorpb.RobotState) bool) {
	p.t.Helper()
	var last time.Time
	if _, err := p.state(func(s *vectorpb.RobotState) bool {
		if time.Since(last) > time.Second {
			last = time.Now()
			if a, err := set(); err != nil || a.Code != vectorpb.ResponseStatus_REQUEST_PROCESSING {
				p.t.Errorf("%s: %v, %v", what, a, err)
			}
		}
		return ok(s)
	}); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// straight drives a way; after an interruption the rest of it.
func (p *sdkProgram) straight(in inWorld, mm float64) {
	from := poseIn(p.t, in)
	p.act("drive straight", func(tag int32) (*vectorpb.ActionResult, error) {
		now := poseIn(p.t, in)
		left := mm - 1000*math.Hypot(now[0]-from[0], now[1]-from[1])
		a, err := p.DriveStraight(p.ctx, &vectorpb.DriveStraightRequest{DistMm: float32(left), SpeedMmps: 100, IdTag: tag, NumRetries: 2})
		return a.GetResult(), err
	})
}

// around drives past an obstacle that the program tells of, to a pose behind it (part of VEC-MOV-03), and back; it says what is wrong in the world.
func (p *sdkProgram) around(in inWorld) (wrong string) {
	rests := 0
	now, err := p.state(func(s *vectorpb.RobotState) bool { // its pose is renewed five times a second, on a busy machine less often
		if rests++; s.Status&0x8000 != 0 {
			rests = 0
		}
		return rests > 30
	})
	if err != nil {
		p.t.Fatal(err)
	}
	ahead := func(mm float64) *vectorpb.PoseStruct {
		s, c := math.Sincos(float64(now.PoseAngleRad))
		return &vectorpb.PoseStruct{X: now.Pose.X + float32(mm*c), Y: now.Pose.Y + float32(mm*s), Q0: now.Pose.Q0, Q3: now.Pose.Q3, OriginId: now.Pose.OriginId}
	}
	if _, err := p.CreateFixedCustomObject(p.ctx, &vectorpb.CreateFixedCustomObjectRequest{Pose: ahead(100), XSizeMm: 10, YSizeMm: 100, ZSizeMm: 100}); err != nil {
		p.t.Fatal(err)
	}
	from := poseIn(p.t, in)
	drive := func(to *vectorpb.PoseStruct) {
		p.act("go to pose", func(tag int32) (*vectorpb.ActionResult, error) {
			a, err := p.GoToPose(p.ctx, &vectorpb.GoToPoseRequest{XMm: to.X, YMm: to.Y, Rad: now.PoseAngleRad, IdTag: tag, NumRetries: 2})
			return a.GetResult(), err
		})
	}
	drive(ahead(200))
	to := poseIn(p.t, in)
	if way, turned := math.Hypot(to[0]-from[0], to[1]-from[1]), math.Remainder(to[2]-from[2], 2*math.Pi); math.Abs(way-0.2) > 0.03 || math.Abs(turned) > 0.15 {
		wrong = fmt.Sprintf("200 mm behind an obstacle are %.3f m, turned by %.2f", way, turned)
	}
	if _, err := p.DeleteCustomObjects(p.ctx, &vectorpb.DeleteCustomObjectsRequest{Mode: vectorpb.CustomObjectDeletionMode_DELETION_MASK_FIXED_CUSTOM_OBJECTS}); err != nil {
		p.t.Fatal(err)
	}
	drive(ahead(0))
	return wrong
}

// turn turns to a heading; an interruption does not matter to it.
func (p *sdkProgram) turn(heading float64) {
	p.act("turn in place", func(tag int32) (*vectorpb.ActionResult, error) {
		a, err := p.TurnInPlace(p.ctx, &vectorpb.TurnInPlaceRequest{AngleRad: float32(heading), IsAbsolute: 1, SpeedRadPerSec: 1.5, IdTag: tag, NumRetries: 2})
		return a.GetResult(), err
	})
}

// TestVectorProgram: a client of the published numbers starts as the Python SDK does, drives a square, turns the head, moves the lift, reads battery and
// state, and disconnects, on a simulated Vector; the world agrees with what the robot said.
func TestVectorProgram(t *testing.T) {
	t.Parallel()
	r := newSDKRobot(t)
	var p *sdkProgram
	testwait.Until(t, 4*patience, "the robot", func() (err error) { p, err = r.start(t, "square"); return err })
	defer p.stop()
	battery, err := p.BatteryState(p.ctx, &vectorpb.BatteryStateRequest{})
	if err != nil || battery.BatteryLevel != vectorpb.BatteryLevel_BATTERY_LEVEL_NOMINAL || math.Abs(float64(battery.BatteryVolts)-3.9) > 0.1 {
		t.Errorf("battery: %v, %v", battery, err)
	}
	p.act("head", func(tag int32) (*vectorpb.ActionResult, error) {
		a, err := p.SetHeadAngle(p.ctx, &vectorpb.SetHeadAngleRequest{AngleRad: 0.5, MaxSpeedRadPerSec: 3, IdTag: tag})
		return a.GetResult(), err
	})
	if _, err := p.state(func(s *vectorpb.RobotState) bool { return math.Abs(float64(s.HeadAngleRad)-0.5) < 0.05 }); err != nil {
		t.Error("the head is not up: ", err)
	}
	p.act("lift", func(tag int32) (*vectorpb.ActionResult, error) {
		a, err := p.SetLiftHeight(p.ctx, &vectorpb.SetLiftHeightRequest{HeightMm: 500, DurationSec: 0.5, IdTag: tag}) // limited to 92 (VEC-MOV-06)
		return a.GetResult(), err
	})
	if _, err := p.state(func(s *vectorpb.RobotState) bool { return math.Abs(float64(s.LiftHeightMm)-92) < 3 }); err != nil {
		t.Error("the lift is not up: ", err)
	}
	r.undisturbed(t, func() (wrong string) {
		from := poseIn(t, r.in)
		for side := range 4 {
			p.straight(r.in, 100)
			p.turn(float64(side+1) * math.Pi / 2) // to the left (part of VEC-MOV-08)
			if side == 0 {
				if at := poseIn(t, r.in); math.Abs(math.Remainder(at[2]-from[2]-math.Pi/2, 2*math.Pi)) > 0.2 {
					wrong = fmt.Sprintf("after a quarter turn to the left the world has it at %v, it began at %v", at, from)
				}
			}
		}
		to := poseIn(t, r.in)
		if off := math.Hypot(to[0]-from[0], to[1]-from[1]); off > 0.08 || math.Abs(math.Remainder(to[2]-from[2], 2*math.Pi)) > 12*math.Pi/180 {
			wrong = fmt.Sprintf("back at %v, it began at %v: %.3f m away", to, from, off)
		}
		return wrong
	})
	r.undisturbed(t, func() string {
		from := poseIn(t, r.in)
		p.straight(r.in, 50)
		to := poseIn(t, r.in)
		if way := math.Hypot(to[0]-from[0], to[1]-from[1]); math.Abs(way-0.05) > 0.01 {
			return fmt.Sprintf("50 mm are %.3f m", way)
		}
		return ""
	})
	r.undisturbed(t, func() string { return p.around(r.in) })
	s, err := p.state(func(s *vectorpb.RobotState) bool { return s.ProxData.FoundObject && s.Accel.Z != 0 }) // right after a late step nothing is felt
	if err != nil || s.ProxData.DistanceMm < 300 || s.ProxData.DistanceMm > 1200 || s.Status&(0x8|0x1000) != 0 {
		t.Errorf("state: %v, %v", s, err)
	}
	if g := math.Hypot(math.Hypot(float64(s.GetAccel().GetX()), float64(s.GetAccel().GetY())), float64(s.GetAccel().GetZ())); math.Abs(g-9810) > 1500 {
		t.Errorf("it feels %.0f mm/s2", g)
	}
	p.level("the head down", func() (*vectorpb.ResponseStatus, error) {
		a, err := p.MoveHead(p.ctx, &vectorpb.MoveHeadRequest{SpeedRadPerSec: -2})
		return a.GetStatus(), err
	}, func(s *vectorpb.RobotState) bool { return s.HeadAngleRad < 0 })
	if _, err := p.MoveHead(p.ctx, &vectorpb.MoveHeadRequest{}); err != nil { // VEC-MOV-04
		t.Error(err)
	}
	p.level("the lift down", func() (*vectorpb.ResponseStatus, error) {
		a, err := p.MoveLift(p.ctx, &vectorpb.MoveLiftRequest{SpeedRadPerSec: -2})
		return a.GetStatus(), err
	}, func(s *vectorpb.RobotState) bool { return s.LiftHeightMm < 60 })
	if _, err := p.MoveLift(p.ctx, &vectorpb.MoveLiftRequest{}); err != nil {
		t.Error(err)
	}
	// A hand that lifts the robot while its own motors shake it is not felt, so it lifts it again.
	var lifted time.Time
	if _, err := p.state(func(s *vectorpb.RobotState) bool {
		if s.Status&0x8 == 0 && time.Since(lifted) > 3*time.Second {
			lifted = time.Now()
			if err := r.in(func(w *plane.World) error {
				if w.Posture() == plane.InHand {
					return w.PutDown(plane.Pose{})
				}
				return w.PickUp()
			}); err != nil {
				t.Error(err)
			}
		}
		return s.Status&0x8 != 0 // picked up
	}); err != nil {
		t.Error("it does not say that it was lifted: ", err)
	}
	if err := r.in(func(w *plane.World) error { return w.PutOnCharger() }); err != nil {
		t.Fatal(err)
	}
	if _, err := p.state(func(s *vectorpb.RobotState) bool { return s.Status&0x1008 == 0x1000 }); err != nil { // on the charger
		t.Error("it does not say that it is on the charger: ", err)
	}
	off, err := p.DriveOffCharger(p.ctx, &vectorpb.DriveOffChargerRequest{}) // part of VEC-OBJ-02
	if err != nil || off.Result != vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE {
		t.Errorf("off the charger: %v, %v", off, err)
	}
	if err := r.in(func(w *plane.World) error {
		if w.Contact() {
			return errors.New("it is on the charger still")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	r.undisturbed(t, func() string { // back onto it (part of VEC-OBJ-02); COMPLETE is true in the world
		on, err := p.DriveOnCharger(p.ctx, &vectorpb.DriveOnChargerRequest{})
		contact := false
		if err := r.in(func(w *plane.World) error { contact = w.Contact(); return nil }); err != nil {
			t.Fatal(err)
		}
		if err != nil || contact != (on.Result == vectorpb.BehaviorResults_BEHAVIOR_COMPLETE_STATE) {
			t.Errorf("on the charger: %v, %v, and it is on it: %v", on, err, contact)
		}
		if !contact {
			return fmt.Sprintf("not on the charger: %v, at %v", on, poseIn(t, r.in))
		}
		return ""
	})
}
