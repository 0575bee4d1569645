package vectorsdk

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/body"
	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/gateway"
	"kennel/edge/robot"
	"kennel/infra/api/vectorpb"
	"kennel/infra/kit/kitgrpc"
)

// feed is the one subscription to the robot's slots for all event streams: no number of clients makes robotd answer more often. It lasts while a stream
// is open.
type feed struct {
	core *coreclient.Client
	see  func(*measured) // takes in each measurement; it does not block

	mu     sync.Mutex
	users  map[chan struct{}]struct{}
	cancel context.CancelFunc
	still  *time.Timer              // until users are told without a measurement
	now    atomic.Pointer[measured] // nil: nothing is known
}

// measured are the slots at one moment. It is not changed.
type measured struct {
	at     time.Duration // CLOCK_MONOTONIC
	values [fields]float64
	known  [fields]bool
	has    [fields]bool // the body has the slot
	place  *robot.Place // nil: as robotd reported last
}

// The slots that robot_state is made of.
const (
	leftSpeed = iota
	rightSpeed
	headPitch
	liftPosition
	accelX
	accelY
	accelZ
	gyroX
	gyroY
	gyroZ
	laser
	touchRaw
	touched
	button
	exposure
	gain
	cliffs
	fields = cliffs + 4
)

var slotNames = [fields]string{
	leftSpeed: "wheelL.speed", rightSpeed: "wheelR.speed", headPitch: "headPitch.angle", liftPosition: "arm.position",
	accelX: "accelX.acceleration", accelY: "accelY.acceleration", accelZ: "accelZ.acceleration", gyroX: "gyroX.speed", gyroY: "gyroY.speed",
	gyroZ: "gyroZ.speed", laser: "laser.distance", touchRaw: "touch.raw", touched: "touch.pressure", button: "button.pressure",
	exposure: "camera.exposure", gain: "camera.gain",
	cliffs: "cliffFL.detected", cliffs + 1: "cliffFR.detected", cliffs + 2: "cliffBL.detected", cliffs + 3: "cliffBR.detected",
}

// motion returns a report with the pose of m if that is newer.
func (m *measured) motion(reported *corelink.Motion) *corelink.Motion {
	if m.place == nil || reported == nil || m.place.At.Microseconds() < reported.AtUS {
		return reported
	}
	at := *reported
	at.AtUS, at.X, at.Y, at.Theta, at.Moving = m.place.At.Microseconds(), m.place.X, m.place.Y, m.place.Theta, m.place.Moving
	return &at
}

// pitch returns the nose-up angle in rad, the negative of Place.Pitch; 0 if unknown.
func (m *measured) pitch() float32 {
	if m.place == nil {
		return 0
	}
	return float32(-m.place.Pitch)
}

const stateEvery = time.Second / stateHz

// open keeps the feed alive until closed is called. due is sent to stateHz times a second, to all users at once and right after a measurement if there is
// one: to wake for each user at a moment of its own would cost more than what is then sent.
func (x *feed) open() (due <-chan struct{}, closed func()) {
	user := make(chan struct{}, 1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.users == nil {
		x.users = map[chan struct{}]struct{}{}
	}
	if x.users[user] = struct{}{}; len(x.users) == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		x.cancel = cancel
		go x.run(ctx)
	}
	return user, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if delete(x.users, user); len(x.users) == 0 {
			x.cancel()
		}
	}
}

// wake tells all users that it is time, and again after another while if no measurement comes first. A user that has not taken the last is late anyway.
func (x *feed) wake(another time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for user := range x.users {
		select {
		case user <- struct{}{}:
		default:
		}
	}
	switch {
	case len(x.users) == 0:
	case x.still == nil:
		x.still = time.AfterFunc(another, x.again)
	default:
		x.still.Reset(another)
	}
}

// again wakes users when no measurement has changed: the robot may have moved while its sensors read the same.
func (x *feed) again() {
	if m := x.now.Load(); m != nil && m.place != nil {
		p, ok := x.core.Place(context.Background())
		if same := (robot.Place{At: m.place.At, X: p.X, Y: p.Y, Theta: p.Theta, Pitch: p.Pitch, Moving: p.Moving}); ok && same != *m.place {
			x.now.CompareAndSwap(m, &measured{m.at, m.values, m.known, m.has, &p}) // robotd may be lost by now
		}
	}
	x.wake(stateEvery)
}

// run subscribes again whenever robotd was lost.
func (x *feed) run(ctx context.Context) {
	defer x.now.Store(nil)
	x.wake(stateEvery)
	for ctx.Err() == nil {
		x.follow(ctx)
		x.now.Store(nil)
		select {
		case <-ctx.Done():
		case <-time.After(beat / 4):
		}
	}
}

// follow keeps the newest values until robotd is lost. A body that lacks a slot leaves its field unknown.
func (x *feed) follow(ctx context.Context) {
	var names []string
	var of [][2]string // device and slot
	var index []int
	for i, name := range slotNames {
		slots, err := x.core.Slots(ctx, name)
		if err != nil || len(slots) != 1 {
			continue
		}
		names, of, index = append(names, name), append(of, [2]string{slots[0].Device, slots[0].Slot.Name}), append(index, i)
	}
	if len(names) == 0 {
		return
	}
	_ = x.core.Subscribe(ctx, stateHz, func(u core.Update) error { // until robotd is lost
		m := &measured{at: u.At, place: u.Place}
		for _, i := range index {
			m.has[i] = true
		}
		for i := range u.Values {
			v := &u.Values[i]
			for k, name := range of {
				if name == [2]string{v.Device, v.Slot.Name} {
					m.values[index[k]], m.known[index[k]] = v.Number()
				}
			}
		}
		x.now.Store(m)
		x.see(m)
		x.wake(stateEvery * 3 / 2)
		return nil
	}, names...)
}

// Bits of the status (part of VEC-STA-02) that are newer in the slots and reports than in robotd's summary, which comes each second.
const (
	statusMoving    = 0x1
	statusCarrying  = 0x2
	statusDocks     = 0x4
	statusPickedUp  = 0x8
	statusButton    = 0x10
	statusOnCharger = 0x1000
	statusCharging  = 0x2000
	statusCliff     = 0x4000
	statusWheels    = 0x8000
	statusInMotion  = 0x20000
)

// stillWheel is the speed in mm/s below which a tread rests; own default.
const stillWheel = 2

// stateOf holds all that a robot_state is made of.
type stateOf struct {
	m               *measured
	now             gateway.Reports
	origin, picture uint32
	held            int32 // the object on the lift; 0: none
	docks           bool  // it docks with an object, lifts it or puts it down
}

// states makes each robot_state once for all streams.
type states struct {
	mu   sync.Mutex
	of   stateOf
	told *kitgrpc.Encoded // an EventResponse; nil: nothing is known
}

// event returns the newest robot_state, nil before the first measurement.
func (x *states) event(of stateOf) (_ *kitgrpc.Encoded, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == of {
		return x.told, nil
	}
	x.of, x.told = of, nil
	if s := robotState(of); s != nil {
		x.told, err = kitgrpc.Encode(&vectorpb.EventResponse{Event: &vectorpb.Event{EventType: &vectorpb.Event_RobotState{RobotState: s}}})
	}
	return x.told, err
}

// robotState makes a robot_state of what is known (part of VEC-STA-01); nil before the first measurement.
func robotState(of stateOf) *vectorpb.RobotState {
	m, now := of.m, of.now
	if m == nil || now.Motion == nil || now.State == nil {
		return nil
	}
	get := func(field int, scale float64) float32 {
		if !m.known[field] {
			return 0
		}
		return float32(m.values[field] * scale)
	}
	at := m.motion(now.Motion)
	half := at.Theta / 2
	s := &vectorpb.RobotState{
		Pose: &vectorpb.PoseStruct{X: float32(at.X / mm), Y: float32(at.Y / mm), Q0: float32(math.Cos(half)), Q3: float32(math.Sin(half)), OriginId: of.origin},

		PoseAngleRad: float32(at.Theta), PosePitchRad: m.pitch(), LeftWheelSpeedMmps: get(leftSpeed, wheelRadius/mm), RightWheelSpeedMmps: get(rightSpeed, wheelRadius/mm),
		HeadAngleRad: get(headPitch, -1), LiftHeightMm: get(liftPosition, 1/mm),
		Accel:            &vectorpb.AccelData{X: get(accelX, 1/mm), Y: get(accelY, 1/mm), Z: get(accelZ, 1/mm)},
		Gyro:             &vectorpb.GyroData{X: get(gyroX, 1), Y: get(gyroY, 1), Z: get(gyroZ, 1)},
		CarryingObjectId: -1, LastImageTimeStamp: of.picture, CarryingObjectOnTopId: -1, HeadTrackingObjectId: -1, LocalizedToObjectId: -1,
		Status: statusBits(m, now, at.Moving), ProxData: prox(m), TouchData: &vectorpb.TouchData{RawTouchValue: uint32(get(touchRaw, touchScale)), IsBeingTouched: get(touched, 1) > 0},
	}
	if of.held != 0 {
		s.CarryingObjectId = of.held
		s.Status |= statusCarrying
	}
	if of.docks {
		s.Status |= statusDocks
	}
	return s
}

// touchScale is the highest count of the touch sensor.
const touchScale = 4095

// prox returns what the range finder sees. Nothing in range is unobstructed; a reading that is not known is neither (VEC-STA-05).
func prox(m *measured) *vectorpb.ProxData {
	p := &vectorpb.ProxData{}
	if !m.known[laser] {
		return p
	}
	if d := m.values[laser]; math.IsInf(d, 0) {
		p.Unobstructed = true
	} else {
		p.DistanceMm, p.FoundObject = uint32(math.Round(d/mm)), true
	}
	return p
}

func statusBits(m *measured, now gateway.Reports, moving bool) (bits uint32) {
	if now.Power != nil {
		bits = now.Power.Status
	}
	set := func(bit uint32, on bool) {
		if bits &^= bit; on {
			bits |= bit
		}
	}
	p := body.Power(now.State.Power)
	set(statusOnCharger, p.Has(body.OnCharger))
	set(statusCharging, p.Has(body.Charging))
	if moving {
		bits |= statusMoving | statusInMotion
	}
	if m.known[button] {
		set(statusButton, m.values[button] > 0)
	}
	if m.known[cliffs] {
		set(statusCliff, m.values[cliffs]+m.values[cliffs+1]+m.values[cliffs+2]+m.values[cliffs+3] > 0)
	}
	if m.known[leftSpeed] && m.known[rightSpeed] {
		fast := max(math.Abs(m.values[leftSpeed]), math.Abs(m.values[rightSpeed])) * wheelRadius / mm
		set(statusWheels, fast > stillWheel)
	}
	switch now.Motion.Posture {
	case "", unsettled:
	default:
		set(statusPickedUp, now.Motion.Posture != onTreads || bits&statusHeld != 0) // part of VEC-STA-03
	}
	return bits
}

const statusHeld = 0x10000
