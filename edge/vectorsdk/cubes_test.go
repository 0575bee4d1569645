package vectorsdk_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/cube"
	"kennel/edge/cube/cubesim"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

const cubeAddress = "e1:00:00:00:00:01"

// block is a cube beside a desk. What it feels is the test's.
type block struct {
	*cubesim.Cube
	feels atomic.Pointer[[3]float64]
}

func (b *block) feel(a ...[3]float64) {
	for _, x := range a {
		b.feels.Store(&x)
	}
}

// beside puts a cube beside the robot, whose time passes by itself.
func (d *desk) beside(t testing.TB) *block {
	t.Helper()
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &block{Cube: cubesim.New(cubesim.Config{Address: cubeAddress, Volts: 1.4})}
	b.feel([3]float64{0, 0, 9.8})
	ctx, cancel := context.WithCancel(context.Background())
	served, stepped := make(chan error, 1), make(chan struct{})
	go func() { served <- cubesim.Serve(ctx, root, []*cubesim.Cube{b.Cube}) }()
	go func() {
		defer close(stepped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				b.Step(5*time.Millisecond, *b.feels.Load(), 0.3)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-stepped
		if err := <-served; err != nil {
			t.Error(err)
		}
		root.Close()
	})
	testwait.Until(t, patience, "a cube in the air", func() error {
		return cube.Socket(d.dir+"/"+cube.SocketPath).Scan(t.Context(), 0, func(cube.Advert) {})
	})
	return b
}

// TestCube: a program finds a cube, connects with it, lights it, hears what it feels and that it is lost (VEC-CUB-01 to 04, 08, 09; VEC-ACC-03, VEC-ACC-08).
func TestCube(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.beside(t)
	l := d.listen(t, &vectorpb.EventRequest{})
	l.primary()
	p := d.granted(t, "all")
	near, err := p.CubesAvailable(p.ctx, &vectorpb.CubesAvailableRequest{})
	if err != nil || len(near.FactoryIds) != 1 || near.FactoryIds[0] != cubeAddress {
		t.Fatalf("%v, %v", near, err)
	}
	event := func(ok func(*vectorpb.ObjectEvent) bool) *vectorpb.ObjectEvent {
		t.Helper()
		return l.await(func(e *vectorpb.Event) bool { o := e.GetObjectEvent(); return o != nil && ok(o) }).GetObjectEvent()
	}
	if e := event(func(o *vectorpb.ObjectEvent) bool { return o.GetObjectAvailable() != nil }); e.GetObjectAvailable().FactoryId != cubeAddress {
		t.Errorf("%v", e)
	}
	if f, err := p.FlashCubeLights(p.ctx, &vectorpb.FlashCubeLightsRequest{}); err != nil || f.Status.Code != vectorpb.ResponseStatus_NOT_FOUND {
		t.Errorf("lights of no cube: %v, %v", f, err)
	}
	c, err := p.ConnectCube(p.ctx, &vectorpb.ConnectCubeRequest{})
	if err != nil || !c.Success || c.FactoryId != cubeAddress || c.ObjectId == 0 {
		t.Fatalf("%v, %v", c, err)
	}
	if s := event(func(o *vectorpb.ObjectEvent) bool { return o.GetObjectConnectionState() != nil }).GetObjectConnectionState(); !s.Connected || s.ObjectId != c.ObjectId ||
		s.FactoryId != cubeAddress || s.ObjectType != vectorpb.ObjectType_BLOCK_LIGHTCUBE1 {
		t.Errorf("%v", s)
	}
	if again, err := d.dial(t).ConnectCube(as(t, "other"), &vectorpb.ConnectCubeRequest{}); err != nil || again.Status.Code != vectorpb.ResponseStatus_FORBIDDEN {
		t.Errorf("without control: %v, %v", again, err)
	}
	if again, err := p.ConnectCube(p.ctx, &vectorpb.ConnectCubeRequest{}); err != nil || !again.Success || again.ObjectId != c.ObjectId {
		t.Errorf("again: %v, %v", again, err)
	}
	event(func(o *vectorpb.ObjectEvent) bool { return o.GetObjectConnectionState().GetConnected() }) // a program that came later hears of it too
	up := event(func(o *vectorpb.ObjectEvent) bool { return o.GetObjectUpAxisChanged() != nil }).GetObjectUpAxisChanged()
	if up.UpAxis != vectorpb.UpAxis_Z_POSITIVE || up.ObjectId != c.ObjectId {
		t.Errorf("%v", up)
	}
	battery, err := p.BatteryState(p.ctx, &vectorpb.BatteryStateRequest{})
	if v := battery.GetCubeBattery(); err != nil || v.GetLevel() != vectorpb.CubeBattery_Normal || v.GetBatteryVolts() != 1.4 || v.GetFactoryId() != cubeAddress {
		t.Errorf("%v, %v", battery, err)
	}
	q := valid("SetCubeLights").(*vectorpb.SetCubeLightsRequest)
	q.ObjectId, q.OffColor, q.OnPeriodMs = c.ObjectId, q.OnColor, []uint32{1, 1, 1, 1}
	if a, err := p.SetCubeLights(p.ctx, q); err != nil || a.Status.Code != vectorpb.ResponseStatus_OK {
		t.Fatalf("%v, %v", a, err)
	}
	if got, want := b.Lights(), [4]cube.RGB{{R: 255}, {G: 255}, {B: 255}, {R: 255, G: 255, B: 255}}; got[0] != want[0] || got[3] != want[3] || got[1] != (cube.RGB{R: 0, G: 255}) {
		t.Errorf("lights %v", got)
	}
	q.ObjectId++
	if a, err := p.SetCubeLights(p.ctx, q); err != nil || a.Status.Code != vectorpb.ResponseStatus_NOT_FOUND {
		t.Errorf("another cube: %v, %v", a, err)
	}
	b.feel([3]float64{5, 0, 9.8})
	event(func(o *vectorpb.ObjectEvent) bool { return o.GetObjectMoved().GetObjectId() == c.ObjectId })
	event(func(o *vectorpb.ObjectEvent) bool { return o.GetObjectStoppedMoving().GetObjectId() == c.ObjectId })
	b.Drain(1.1)
	l.await(func(e *vectorpb.Event) bool {
		return e.GetCubeBattery().GetFactoryId() != "" && e.GetCubeBattery().Level == vectorpb.CubeBattery_Low
	})
	b.Power(false)
	event(func(o *vectorpb.ObjectEvent) bool { return o.GetCubeConnectionLost() != nil })
	if a, err := p.ConnectCube(p.ctx, &vectorpb.ConnectCubeRequest{}); err != nil || a.Success {
		t.Errorf("a cube without its cell: %v, %v", a, err)
	}
}

// TestPreferredCube: the preferred cube is on disk; forgetting it is too (VEC-CUB-03).
func TestPreferredCube(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.beside(t)
	c := d.dial(t)
	stored := func(want string) {
		t.Helper()
		b, err := os.ReadFile(d.dir + "/" + cube.PreferredFile)
		if err != nil || string(b) != `{"preferred":"`+want+"\"}\n" {
			t.Errorf("%s, %v", b, err)
		}
	}
	if a, err := c.SetPreferredCube(as(t, "all"), &vectorpb.SetPreferredCubeRequest{FactoryId: "e1:00:00:00:00:09"}); err != nil || a.Status.Code != vectorpb.ResponseStatus_OK {
		t.Fatalf("%v, %v", a, err)
	}
	stored("e1:00:00:00:00:09")
	if _, err := c.SetPreferredCube(as(t, "all"), &vectorpb.SetPreferredCubeRequest{FactoryId: "mine"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v", err)
	}
	if _, err := c.ForgetPreferredCube(as(t, "all"), &vectorpb.ForgetPreferredCubeRequest{}); err != nil {
		t.Fatal(err)
	}
	stored("")
	p := d.granted(t, "all")
	if a, err := p.ConnectCube(p.ctx, &vectorpb.ConnectCubeRequest{}); err != nil || !a.Success {
		t.Fatalf("%v, %v", a, err)
	}
	stored(cubeAddress)
	if _, err := p.DisconnectCube(p.ctx, &vectorpb.DisconnectCubeRequest{}); err != nil {
		t.Error(err)
	}
}

// TestCubeRequests: what a cube cannot show is refused with words, and a robot without a radio says so.
func TestCubeRequests(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	if _, err := p.CubesAvailable(p.ctx, &vectorpb.CubesAvailableRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("no radio: %v", err)
	}
	for name, change := range map[string]func(*vectorpb.SetCubeLightsRequest){
		"on_color":      func(q *vectorpb.SetCubeLightsRequest) { q.OnColor = nil },
		"offset":        func(q *vectorpb.SetCubeLightsRequest) { q.Offset = []int32{1} },
		"rotate":        func(q *vectorpb.SetCubeLightsRequest) { q.Rotate = true },
		"make_relative": func(q *vectorpb.SetCubeLightsRequest) { q.MakeRelative = vectorpb.SetCubeLightsRequest_BY_SIDE },
		"an hour":       func(q *vectorpb.SetCubeLightsRequest) { q.OnPeriodMs = []uint32{3600e3, 1, 1, 1} },
	} {
		q := valid("SetCubeLights").(*vectorpb.SetCubeLightsRequest)
		change(q)
		if _, err := p.SetCubeLights(p.ctx, q); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMarkerDetection: a program with control lets the robot look for objects. When it loses control, that ends with an event (VEC-IMG-05, part of VEC-IMG-09); what a
// program switched off itself ends in silence.
func TestMarkerDetection(t *testing.T) {
	t.Parallel()
	d := newStudio(t).desk
	l := d.listen(t, &vectorpb.EventRequest{})
	l.primary()
	p := d.granted(t, "all")
	set := func(on bool) {
		t.Helper()
		if a, err := p.EnableMarkerDetection(p.ctx, &vectorpb.EnableMarkerDetectionRequest{Enable: on}); err != nil || a.Status.Code != vectorpb.ResponseStatus_OK {
			t.Fatalf("%v, %v", a, err)
		}
	}
	told := 0
	for _, on := range []bool{false, true} {
		set(true)
		set(on)
		p.release()
		p.expects("lost")
		l.await(func(e *vectorpb.Event) bool {
			if e.GetVisionModesAutoDisabled() != nil {
				told++
			}
			return e.GetKeepAlive() != nil
		})
		p.ask(vectorpb.ControlRequest_DEFAULT)
		p.expects("granted")
	}
	for told == 0 { // the last one may come after a keep-alive
		l.await(func(e *vectorpb.Event) bool { return e.GetVisionModesAutoDisabled() != nil })
		told++
	}
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}
