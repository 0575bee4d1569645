package robotapp

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kennel/edge/body/mono"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/corelink"
	"kennel/edge/faultcode"
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

// TestInertialSensors: a robot with a chip where its root has it knows how it stands; a chip that dies is fault 960 while it is dead (VEC-IMU-16), and
// the robot runs on.
func TestInertialSensors(t *testing.T) {
	b := newBench(t)
	chip := b.sensors(filepath.Join(b.root, imu.DefaultDevice))
	b.powerOn()
	p := b.start(nil, "-device", b.device)
	c := b.peer()
	m := await(c, "how it stands", func(m *corelink.Inertial) bool { return m.OffTreads == "OnTreads" && m.Gyro == "calibrated" })
	if m.AtUS == 0 || m.PickedUp || m.Falling || m.Falls != 0 || m.GyroReady != 1 || m.Pitch > 0.05 || m.Pitch < -0.05 {
		t.Errorf("%+v", m)
	}
	if _, v := c.look().value("accelZ.acceleration"); v == nil || v.Number < 9.3 || v.Number > 10.3 {
		t.Errorf("accelZ is %+v, want 9.8", v)
	}
	chip.SetFault(vectorsim.IMUZeros, mono.Now())
	await(c, "fault", func(m *corelink.Fault) bool { return m.Code == uint16(faultcode.IMU) })
	if m := await(c, "no word of it", func(m *corelink.Inertial) bool { return m.AtUS == 0 }); m.OffTreads != "Unsettled" || m.Falling {
		t.Errorf("of dead sensors: %+v", m)
	}
	await(c, "state", linked)
	chip.SetFault(vectorsim.IMUSound, mono.Now())
	await(c, "no fault", func(m *corelink.Fault) bool { return m.Code == 0 })
	await(c, "how it stands again", func(m *corelink.Inertial) bool { return m.OffTreads == "OnTreads" })
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestNamedSensorsAreExpected: sensors that were named and are not there are a fault; they are found when they come.
func TestNamedSensorsAreExpected(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(t.TempDir(), "imu.sock")
	b.powerOn()
	b.start(nil, "-device", b.device, "-imu", path)
	c := b.peer()
	await(c, "fault", func(m *corelink.Fault) bool { return m.Code == uint16(faultcode.IMU) })
	b.sensors(path)
	await(c, "no fault", func(m *corelink.Fault) bool { return m.Code == 0 })
}

// TestSenses: what touch, cliff sensors, range finder and button say comes to who listens, and nothing of it is missed (VEC-IO-02, 12, 20, 24).
func TestSenses(t *testing.T) {
	b := newBench(t)
	b.powerOn()
	b.start(nil, "-device", b.device)
	c := b.peer()
	if m := await(c, "something ahead", func(m *corelink.Senses) bool { return m.Found && m.BaselinesLearnt > 0 }); m.Metres < 0.3 || m.Metres > 0.5 || m.Quality < 0.9 || m.Touched || m.Cliffs != 0 {
		t.Errorf("%+v", m)
	}
	b.board.SetProx(0)
	await(c, "free sight", func(m *corelink.Senses) bool { return m.Unobstructed && !m.Found })
	b.board.SetTouch(1500)
	await(c, "a touch", func(m *corelink.Senses) bool { return m.Touched && m.Touches > 0 })
	b.board.SetCliff(spine.FrontLeft, 0)
	await(c, "a cliff", func(m *corelink.Senses) bool { return m.Cliffs == 1 && m.CliffsSeen > 0 })
	if m := await(c, "the status", func(m *corelink.Power) bool { return m.Status&0x4000 != 0 }); m.Status&0x8 != 0 {
		t.Errorf("one cliff sensor lifts nobody: %#x", m.Status)
	}
	for range 10 { // on a busy machine a click may become longer than one is
		pressed := b.board.State().Frames
		b.board.SetButton(true)
		b.await("a click's time", func(s vectorsim.State) bool { return s.Frames >= pressed+20 })
		b.board.SetButton(false)
		released := mono.Now()
		m := await(c, "a click", func(m *corelink.Senses) bool { return m.Singles > 0 || m.AtUS > (released+time.Second).Microseconds() })
		if m.Singles > 0 {
			return
		}
	}
	t.Error("nobody hears a click")
}
