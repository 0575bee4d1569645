package robotapp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kennel/edge/body"
	"kennel/edge/body/vector/factory/bootparam"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
	"kennel/edge/power"
	"kennel/edge/power/lastoff"
)

// TestPower: the keeper's part of the story, what peers can ask of it, and how each run ended (VEC-PWR-04, 20, 24, 30 to 32, 42).
func TestPower(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.powerOn()
	p := b.start(nil, "-device", b.device)
	c, mind := b.peer(), b.peer()
	m := await(c, "power", func(m *corelink.Power) bool { return m.PlayLeftSec > 0 })
	if m.LastOff != "never on before" || m.Off != "stay_on" || m.Calm || m.Status&power.StatusCalm != 0 || m.Sleep != "Nothing" || m.SuggestedSec == 0 ||
		m.Charging != "away" || m.Shed != "nothing" || !m.ChargeAllowed || m.SeekCharger || m.CPUMHz != 533 || !m.Cloud {
		t.Errorf("%+v", m)
	}
	sleep := func(to power.Sleep, why uint8) *corelink.Reply {
		return mind.ask(func(n uint32) corelink.Message { return &corelink.Sleep{Request: n, State: uint8(to), Why: why} })
	}
	if r := sleep(power.LightSleep, uint8(power.Sleepy)); r.Code != "invalid" || r.Detail == "" {
		t.Errorf("from nothing to sleep: %+v", r)
	}
	for _, to := range []power.Sleep{power.Awake, power.PreSleepAnimation} {
		if r := sleep(to, 0); r.Code != "ok" {
			t.Fatalf("to %v: %+v", to, r)
		}
	}
	lit := func(s vectorsim.State) bool { return s.Lights != [4]spine.RGB{} }
	c.line("led[0].r = 0.04")
	b.await("lights", lit)
	if r := sleep(power.LightSleep, uint8(power.Sleepy)); r.Code != "ok" {
		t.Fatalf("to sleep: %+v", r)
	}
	b.await("dark lights", func(s vectorsim.State) bool { return !lit(s) }) // VEC-PWR-20
	if r := mind.ask(func(n uint32) corelink.Message { return &corelink.Calm{Request: n, On: true} }); r.Code != "ok" {
		t.Fatalf("calm: %+v", r)
	}
	if m := await(c, "sleep", func(m *corelink.Power) bool { return m.Sleep == "LightSleep" && m.Calm }); m.Status&power.StatusCalm == 0 ||
		m.LastSleep != "Sleepy" || m.CameraHz != 0 {
		t.Errorf("asleep: %+v", m)
	}
	mind.end() // its wish for calm goes with it; the robot sleeps on
	m = await(c, "calm is over", func(m *corelink.Power) bool { return !m.Calm })
	if m.Status&power.StatusCalm != 0 || m.Sleep != "LightSleep" {
		t.Errorf("after who asked has left: %+v", m)
	}
	b.board.SetCharger(true)
	await(c, "charging", func(m *corelink.Power) bool { return m.Charging == "charging" && m.Status&0x3000 == 0x3000 })

	// An end that was meant, and one that was not.
	again := func(want lastoff.Last) {
		t.Helper()
		p = b.start(nil, "-device", b.device)
		pid := uint32(p.cmd.Process.Pid)
		await(c, "the next robotd", func(h *corelink.Hello) bool { return h.PID == pid })
		if m := await(c, "power", func(*corelink.Power) bool { return true }); m.LastOff != want.String() {
			t.Errorf("it says %q, want %v", m.LastOff, want)
		}
	}
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	again(lastoff.Clean)
	p.end(syscall.SIGKILL)
	again(lastoff.Unmeant)
	c.send(&corelink.Shutdown{Reason: "test"})
	if err := b.ended(); !errors.Is(err, vectorsim.ErrShutdown) {
		t.Errorf("the board ended with %v", err)
	}
	// It was written before the power was cut.
	if got, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(lastoff.File))); err != nil || string(got) != "clean\n" {
		t.Errorf("the mark says %q, %v", got, err)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestRecoveryBoot: VEC-BOOT-07: robotd drives the body of a robot whose user data cannot be opened.
func TestRecoveryBoot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	data, line := filepath.Join(b.root, "data"), filepath.Join(b.root, bootparam.File)
	if err := errors.Join(os.MkdirAll(filepath.Dir(line), 0o755), os.WriteFile(line, []byte("anki.unbrick=1\n"), 0o644),
		os.WriteFile(data, []byte("kept"), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.powerOn()
	p := b.start(nil, "-device", b.device)
	await(b.peer(), "power", func(m *corelink.Power) bool { return m.PlayLeftSec > 0 })
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if out := p.log.String(); strings.Contains(out, "power-off note") || !strings.Contains(out, "recovery boot") {
		t.Errorf("it says %s", out)
	}
	if got, err := os.ReadFile(data); err != nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLittleLeft: VEC-PWR-07, VEC-PWR-22: what the robot may not use any more has no power, on the board too; who takes the treads has
// the sensors back.
func TestLittleLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.board.SetVolts(3.42)
	b.powerOn()
	b.start(nil, "-device", b.device)
	c := b.peer()
	if m := await(c, "shedding", func(m *corelink.Power) bool { return m.ProxMS == 0 }); m.Cloud || m.Display || m.Off != "stay_on" {
		t.Errorf("%+v", m)
	}
	without := func(s *corelink.State) bool { return body.Power(s.Power).Has(body.SensorsOff) }
	await(c, "no power for the sensors", without)
	b.board.SetVolts(3.44) // it drives, and shall not go off
	if r := c.ask(claimWheels); r.Code != "ok" {
		t.Fatalf("claim: %+v", r)
	}
	await(c, "sensors", func(s *corelink.State) bool { return !without(s) })
	c.begin("wheel.speed = 2", func(m *corelink.Motion) bool { return m.Speed > 0.01 })
}
