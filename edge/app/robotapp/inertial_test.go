package robotapp

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
	"kennel/edge/faultcode"
	"kennel/edge/sense"
)

// sensors puts a chip at path, until the test ends.
func (b *bench) sensors(path string) *vectorsim.IMU {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	chip := vectorsim.NewIMU(vectorsim.IMUConfig{Seed: 1}, b.board.Inertial)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- vectorsim.ServeIMU(ctx, path, chip) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
	return chip
}

// TestInertialSensors: a robot with a chip where its root has it knows its attitude; a chip that dies is fault 960 while it is dead (VEC-IMU-16),
// and the robot runs on.
func TestInertialSensors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	chip := b.sensors(filepath.Join(b.root, imu.DefaultDevice))
	b.powerOn()
	p := b.start(nil, "-device", b.device)
	c := b.peer()
	await(c, "calibration", calibrated)
	// A late loop misses frames of a body whose encoders sleep, and with them the angle of the head that the sensors are in: it is searched again.
	stands := func() {
		t.Helper()
		await(c, "how it stands", func(m *corelink.Motion) bool { return m.Posture == "OnTreads" })
	}
	stands()
	var events []string // a peer that joins later hears those of before
	await(b.peer(), "a gyro that is ready", func(m *corelink.Event) bool {
		events = append(events, m.Name)
		return m.Name == "imu_filter.gyro_calibrated"
	})
	if slices.Contains(events, "imu_filter.falling_event") {
		t.Errorf("a robot that stands still falls: %v", events)
	}
	stands()
	if _, v := c.look().value("accelZ.acceleration"); v == nil || v.Number == nil || *v.Number < 9.3 || *v.Number > 10.3 {
		t.Errorf("accelZ is %+v, want 9.8", v)
	}
	chip.SetFault(vectorsim.IMUZeros, monoclock.Now())
	await(c, "fault", func(m *corelink.Fault) bool { return m.Code == uint16(faultcode.IMU) })
	m := await(c, "no word of it", func(m *corelink.Motion) bool { return m.Posture != "OnTreads" })
	if m.Posture != "Unsettled" || slices.Contains(m.Stop, "falling") {
		t.Errorf("of dead sensors: %+v", m)
	}
	if _, v := c.look().value("accelZ.acceleration"); v != nil {
		t.Errorf("accelZ of dead sensors is %+v", v)
	}
	await(c, "state", linked)
	chip.SetFault(vectorsim.IMUSound, monoclock.Now())
	await(c, "no fault", func(m *corelink.Fault) bool { return m.Code == 0 })
	stands()
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestNamedSensorsAreExpected: sensors that were named and are not there are a fault; they are found when they come.
func TestNamedSensorsAreExpected(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := filepath.Join(t.TempDir(), "imu.sock")
	b.powerOn()
	b.start(nil, "-device", b.device, "-imu", path)
	c := b.peer()
	await(c, "fault", func(m *corelink.Fault) bool { return m.Code == uint16(faultcode.IMU) })
	b.sensors(path)
	await(c, "no fault", func(m *corelink.Fault) bool { return m.Code == 0 })
}

// TestSenses: the readings of touch, cliff sensors, range finder and button reach each peer that listens, and none is missed (part of VEC-IO-02, 12, 20,
// 24).
func TestSenses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.powerOn()
	b.start(nil, "-device", b.device)
	c := b.peer()
	event := func(name string, text ...string) func(*corelink.Event) bool {
		return func(m *corelink.Event) bool { return m.Name == name && slices.Equal(m.Texts, text) }
	}
	await(c, "touch is ready", event("touch_sensor.baseline_fast_calibration_finished"))
	if _, v := c.look().value("laser.distance"); v == nil || v.Number == nil || *v.Number < 0.3 || *v.Number > 0.5 {
		t.Errorf("something ahead is %+v, want 0.3 to 0.5 m", v)
	}
	c.reads("touch.pressure", "0")
	c.reads("cliffFL.detected", "false")
	b.board.SetProx(0)
	c.reads("laser.distance", "+Inf")
	b.board.SetTouch(1500)
	await(c, "a touch", event("robot.touched"))
	c.reads("touch.pressure", "1")
	b.board.SetCliff(spine.FrontLeft, 0)
	if m := await(c, "a cliff", event("robot.cliff_detected")); !slices.Equal(m.Numbers, []int64{1}) {
		t.Errorf("a cliff under one sensor: %+v", m)
	}
	c.reads("cliffFL.detected", "true")
	if m := await(c, "the status", func(m *corelink.Power) bool { return m.Status&0x4000 != 0 }); m.Status&0x8 != 0 {
		t.Errorf("one cliff sensor counts as lifted: %#x", m.Status)
	}
	for range tries { // on a busy machine a click may become longer than one is
		pressed := b.board.State().Frames
		b.board.SetButton(true)
		b.await("a click's time", func(s vectorsim.State) bool { return s.Frames >= pressed+20 })
		b.board.SetButton(false)
		released := monoclock.Now()
		clicked := event("robot.button", sense.Single.String())
		heard := await(c, "a click", func(m corelink.Message) bool {
			switch m := m.(type) {
			case *corelink.Event:
				return clicked(m)
			case *corelink.State:
				return m.AtUS > (released + time.Second).Microseconds()
			}
			return false
		})
		if _, ok := heard.(*corelink.Event); ok {
			return
		}
	}
	t.Error("no peer hears a click")
}
