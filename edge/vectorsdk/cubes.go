package vectorsdk

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"kennel/edge/cube"
	"kennel/edge/gateway"
	"kennel/infra/api/vectorpb"
	"kennel/infra/backoff"
	"kennel/infra/logging"
)

// cubeUnused is how long a cube stays connected after no program has control; own default (part of VEC-CUBEPWR-03).
const cubeUnused = time.Minute

// connectedTold is how long ConnectCube waits before it answers: the Python SDK uses a cube at once that it has only heard of in the event of the connection. Event streams tell each thirtieth of a
// second. Own default.
const connectedTold = 4 * stateEvery

// cubes is the robot's light cube for these programs. The driver is made when a program first asks for one.
type cubes struct {
	mu     sync.Mutex
	driver *cube.Driver // nil: not needed yet
	unused time.Time    // since when no program has control; zero: one has, or there is no cube
}

func (f *Facade) cube() *cube.Driver {
	x := &f.cubes
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.driver == nil {
		radio := f.cfg.Radio
		if radio == nil {
			radio = cube.Socket(filepath.Join(f.cfg.Root.Name(), cube.SocketPath))
		}
		x.driver = cube.New(cube.Config{Radio: radio, Root: f.cfg.Root, Log: f.cfg.Log, Scan: f.cfg.CubeScan, Tell: f.cubeEvent})
	}
	return x.driver
}

// cubeState returns the cube that is connected, without making a driver.
func (f *Facade) cubeState() (cube.State, bool) {
	f.cubes.mu.Lock()
	d := f.cubes.driver
	f.cubes.mu.Unlock()
	if d == nil {
		return cube.State{}, false
	}
	return d.State()
}

// letGo disconnects a cube that no program can use any longer.
func (f *Facade) letGo(now time.Time) {
	x := &f.cubes
	_, connected := f.cubeState()
	x.mu.Lock()
	switch {
	case !connected || f.control.held():
		x.unused = time.Time{}
	case x.unused.IsZero():
		x.unused = now
	}
	over := !x.unused.IsZero() && now.Sub(x.unused) >= cubeUnused
	x.mu.Unlock()
	if over {
		f.dropCube()
	}
}

func (f *Facade) dropCube() {
	if _, connected := f.cubeState(); !connected {
		return
	}
	if err := f.cube().Disconnect(); err != nil {
		f.cfg.Log.Warn("cube not disconnected cleanly", logging.Err, err)
	}
}

func objectEvent(e *vectorpb.ObjectEvent) *vectorpb.Event {
	return &vectorpb.Event{EventType: &vectorpb.Event_ObjectEvent{ObjectEvent: e}}
}

// cubeLink tells that a cube was connected, or is not any longer.
func cubeLink(id uint32, address string, connected bool) *vectorpb.Event {
	return objectEvent(&vectorpb.ObjectEvent{ObjectEventType: &vectorpb.ObjectEvent_ObjectConnectionState{ObjectConnectionState: &vectorpb.ObjectConnectionState{
		ObjectId: id, FactoryId: address, ObjectType: vectorpb.ObjectType_BLOCK_LIGHTCUBE1, Connected: connected}}})
}

// cubeEvent tells all event streams what happened to a cube (VEC-ACC-03).
func (f *Facade) cubeEvent(e cube.Event) {
	at := uint32(e.At.Milliseconds())
	o := &vectorpb.ObjectEvent{}
	switch e.Kind {
	case cube.Available:
		o.ObjectEventType = &vectorpb.ObjectEvent_ObjectAvailable{ObjectAvailable: &vectorpb.ObjectAvailable{FactoryId: e.Address}}
	case cube.Connected:
		f.looks.want(1)
		f.moments.add(cubeLink(e.ID, e.Address, true))
		return
	case cube.Disconnected:
		f.looks.want(-1)
		f.moments.add(cubeLink(e.ID, e.Address, false))
		return
	case cube.Lost: // VEC-CUB-09
		f.looks.want(-1)
		f.moments.add(cubeLink(e.ID, e.Address, false))
		o.ObjectEventType = &vectorpb.ObjectEvent_CubeConnectionLost{CubeConnectionLost: &vectorpb.CubeConnectionLost{}}
	case cube.Moved:
		o.ObjectEventType = &vectorpb.ObjectEvent_ObjectMoved{ObjectMoved: &vectorpb.ObjectMoved{Timestamp: at, ObjectId: e.ID}}
	case cube.Stopped:
		o.ObjectEventType = &vectorpb.ObjectEvent_ObjectStoppedMoving{ObjectStoppedMoving: &vectorpb.ObjectStoppedMoving{Timestamp: at, ObjectId: e.ID}}
	case cube.Tapped:
		o.ObjectEventType = &vectorpb.ObjectEvent_ObjectTapped{ObjectTapped: &vectorpb.ObjectTapped{Timestamp: at, ObjectId: e.ID}}
	case cube.Turned: // VEC-ACC-08: the numbers of the axes are the published ones
		o.ObjectEventType = &vectorpb.ObjectEvent_ObjectUpAxisChanged{ObjectUpAxisChanged: &vectorpb.ObjectUpAxisChanged{Timestamp: at, ObjectId: e.ID,
			UpAxis: vectorpb.UpAxis(e.Up)}}
	case cube.Battery:
		f.moments.add(&vectorpb.Event{EventType: &vectorpb.Event_CubeBattery{CubeBattery: cubeBattery(e.Address, e.Volts, 0)}})
		return
	}
	f.moments.add(objectEvent(o))
}

// cubeBattery is a reading of a cube's battery (VEC-CUB-04).
func cubeBattery(address string, volts float64, age time.Duration) *vectorpb.CubeBattery {
	b := &vectorpb.CubeBattery{FactoryId: address, BatteryVolts: float32(volts), TimeSinceLastReadingSec: float32(age.Seconds())}
	if volts > cube.LowVolts {
		b.Level = vectorpb.CubeBattery_Normal
	}
	return b
}

// cubeCharge is the battery of the cube that is connected; nil: none, or it said nothing yet.
func (f *Facade) cubeCharge() *vectorpb.CubeBattery {
	s, ok := f.cubeState()
	if !ok || !s.Measured {
		return nil
	}
	return cubeBattery(s.Address, s.Volts, s.Age)
}

// cubeError turns what the driver returns into a program's error: a robot without a radio lacks a part.
func cubeError(call string, err error) error {
	if errors.Is(err, cube.ErrNoRadio) {
		return errAbsent(call, "a radio for cubes")
	}
	return err
}

// cubesAvailable listens for cubes and names those that it heard (VEC-CUB-02).
func (f *Facade) cubesAvailable(ctx context.Context, _ client, _ *vectorpb.CubesAvailableRequest) (*vectorpb.CubesAvailableResponse, error) {
	near, err := f.cube().Scan(ctx)
	if err != nil {
		return nil, cubeError("CubesAvailable", err)
	}
	a := &vectorpb.CubesAvailableResponse{Status: heard()}
	for _, x := range near {
		a.FactoryIds = append(a.FactoryIds, x.Address)
	}
	return a, nil
}

// connectCube connects with the preferred cube or the strongest (VEC-CUB-01). success is false if none answers, and without control.
func (f *Facade) connectCube(ctx context.Context, c client, _ *vectorpb.ConnectCubeRequest) (*vectorpb.ConnectCubeResponse, error) {
	if f.control.of(c) == nil {
		return &vectorpb.ConnectCubeResponse{Status: forbidden()}, nil
	}
	before, already := f.cubeState()
	s, err := f.cube().Connect(ctx)
	switch {
	case errors.Is(err, cube.ErrAbsent), errors.Is(err, cube.ErrLost):
		return &vectorpb.ConnectCubeResponse{Status: heard()}, nil
	case err != nil:
		return nil, cubeError("ConnectCube", err)
	}
	if already && before.ID == s.ID { // this program may not have heard of it
		f.moments.add(cubeLink(s.ID, s.Address, true))
	}
	if err := backoff.Sleep(ctx, connectedTold); err != nil {
		return nil, err
	}
	return &vectorpb.ConnectCubeResponse{Status: heard(), Success: true, ObjectId: s.ID, FactoryId: s.Address}, nil
}

// disconnectCube ends the connection; without one it does nothing.
func (f *Facade) disconnectCube(_ context.Context, c client, _ *vectorpb.DisconnectCubeRequest) (*vectorpb.DisconnectCubeResponse, error) {
	if f.control.of(c) == nil {
		return &vectorpb.DisconnectCubeResponse{Status: forbidden()}, nil
	}
	f.dropCube()
	return &vectorpb.DisconnectCubeResponse{Status: fine()}, nil
}

// show lets the cube play a pattern. NOT_FOUND: there is no cube, or it is another one; id 0 is the one that is connected.
func (f *Facade) show(ctx context.Context, c client, id uint32, p cube.Pattern) (*vectorpb.ResponseStatus, error) {
	if f.control.of(c) == nil {
		return forbidden(), nil
	}
	s, ok := f.cubeState()
	if !ok || id != 0 && id != s.ID {
		return answered(vectorpb.ResponseStatus_NOT_FOUND), nil
	}
	switch err := f.cube().Show(ctx, p); {
	case errors.Is(err, cube.ErrLost):
		return answered(vectorpb.ResponseStatus_NOT_FOUND), nil
	case err != nil:
		return nil, err
	}
	return fine(), nil
}

// flashCubeLights plays the pattern of a cube that was connected, until another comes.
func (f *Facade) flashCubeLights(ctx context.Context, c client, _ *vectorpb.FlashCubeLightsRequest) (*vectorpb.FlashCubeLightsResponse, error) {
	s, err := f.show(ctx, c, 0, cube.Flash())
	return &vectorpb.FlashCubeLightsResponse{Status: s}, err
}

// setCubeLights lets each light change between two colours (VEC-CUB-08). A request whose lists have other lengths than four, a pattern that turns or is relative to a
// place, and times that a cube cannot count are refused.
func (f *Facade) setCubeLights(ctx context.Context, c client, q *vectorpb.SetCubeLightsRequest) (*vectorpb.SetCubeLightsResponse, error) {
	p, err := patternOf(q)
	if err != nil {
		return nil, err
	}
	s, err := f.show(ctx, c, q.ObjectId, p)
	return &vectorpb.SetCubeLightsResponse{Status: s}, err
}

func patternOf(q *vectorpb.SetCubeLightsRequest) (p cube.Pattern, err error) {
	for _, x := range []struct {
		name string
		n    int
	}{{"on_color", len(q.OnColor)}, {"off_color", len(q.OffColor)}, {"on_period_ms", len(q.OnPeriodMs)}, {"off_period_ms", len(q.OffPeriodMs)},
		{"transition_on_period_ms", len(q.TransitionOnPeriodMs)}, {"transition_off_period_ms", len(q.TransitionOffPeriodMs)}, {"offset", len(q.Offset)}} {
		if x.n != cube.LightCount && !(x.name == "offset" && x.n == 0) {
			return p, errInvalid("%s: %d values, want %d", x.name, x.n, cube.LightCount)
		}
	}
	switch {
	case q.Rotate:
		return p, errInvalid("rotate: true, want false")
	case q.MakeRelative != vectorpb.SetCubeLightsRequest_UNKNOWN && q.MakeRelative != vectorpb.SetCubeLightsRequest_OFF:
		return p, errInvalid("make_relative: %d, want 1, which is off", int32(q.MakeRelative))
	}
	ms := func(v uint32) time.Duration { return time.Duration(v) * time.Millisecond }
	for i := range p {
		p[i] = cube.Light{On: rgb(q.OnColor[i]), Off: rgb(q.OffColor[i]), OnFor: ms(q.OnPeriodMs[i]), OffFor: ms(q.OffPeriodMs[i]),
			ToOn: ms(q.TransitionOnPeriodMs[i]), ToOff: ms(q.TransitionOffPeriodMs[i])}
		if len(q.Offset) > 0 {
			p[i].Offset = time.Duration(q.Offset[i]) * time.Millisecond
		}
	}
	if _, err := cube.Compile(p); err != nil {
		return p, errInvalid("%v", err)
	}
	return p, nil
}

// rgb reads a colour of the wire: red in the top byte, alpha in the low one (VEC-CUB-08).
func rgb(v uint32) cube.RGB { return cube.RGB{R: uint8(v >> 24), G: uint8(v >> 16), B: uint8(v >> 8)} }

// forgetPreferredCube lets the robot take the strongest cube next time; the next one that it connects with becomes the preferred one (VEC-CUB-03).
func (f *Facade) forgetPreferredCube(context.Context, client, *vectorpb.ForgetPreferredCubeRequest) (*vectorpb.ForgetPreferredCubeResponse, error) {
	if err := f.cube().Prefer(""); err != nil {
		return nil, err
	}
	return &vectorpb.ForgetPreferredCubeResponse{Status: fine()}, nil
}

// setPreferredCube stores which cube the robot connects with.
func (f *Facade) setPreferredCube(_ context.Context, _ client, q *vectorpb.SetPreferredCubeRequest) (*vectorpb.SetPreferredCubeResponse, error) {
	if err := cube.CheckAddress(q.FactoryId); err != nil {
		return nil, errInvalid("factory_id: %v", err)
	}
	if err := f.cube().Prefer(q.FactoryId); err != nil {
		return nil, err
	}
	return &vectorpb.SetPreferredCubeResponse{Status: fine()}, nil
}

// cubeHandlers are the calls of the cube, and of the ways to it.
func (f *Facade) cubeHandlers() map[string]handler {
	return map[string]handler{
		"CubesAvailable":      unary(gateway.Look, f.cubesAvailable),
		"ConnectCube":         unary(gateway.Move, f.connectCube),
		"DisconnectCube":      unary(gateway.Move, f.disconnectCube),
		"FlashCubeLights":     unary(gateway.Move, f.flashCubeLights),
		"SetCubeLights":       unary(gateway.Move, f.setCubeLights),
		"ForgetPreferredCube": unary(gateway.Change, f.forgetPreferredCube),
		"SetPreferredCube":    unary(gateway.Change, f.setPreferredCube),
		"GoToObject":          unary(gateway.Move, f.goToObject),
		"DockWithCube":        unary(gateway.Move, f.dockWithCube),
	}
}
