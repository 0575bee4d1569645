package robotapp

import (
	"bytes"
	"math"
	"syscall"
	"testing"

	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
	"kennel/infra/cli"
	"kennel/infra/testexec"
)

// TestKilledAtFullDrive: VEC-WDOG-01: robotd dies at full drive and its supervisor runs robotd -halt: the treads lose their power within 100 ms
// of the body's own time and roll to rest, not a second later by its watchdog. The best of several counts: others may hold the machine.
func TestKilledAtFullDrive(t *testing.T) {
	t.Parallel()
	const radius = 14.5               // mm
	most, far := uint64(19), 30.      // frames, 97 ms; mm
	if len(testexec.Emulator()) > 0 { // which takes longer to start a program than a tread to stop
		most, far = 5*most, 5*far
	}
	off, way := uint64(math.MaxUint64), 0.
	for i := 0; i < 10 && off > most; i++ {
		b := newBench(t)
		b.powerOn()
		p := b.start(nil, "-device", b.device)
		c := b.peer()
		await(c, "a body", linked)
		if r := c.ask(claimWheels); r.Code != "ok" {
			t.Fatalf("claim: %+v", r)
		}
		c.begin("wheel.speed = 100", func(m *corelink.Motion) bool { return m.Speed > 0.16 })
		began := b.board.State()
		p.end(syscall.SIGKILL)
		if code := b.start(nil, "-device", b.device, "-halt").wait(); code != 0 {
			t.Errorf("robotd -halt: exit code %d", code)
		}
		var now vectorsim.State
		b.await("rest", func(s vectorsim.State) bool {
			was := now
			now = s
			moved := radius * math.Abs(s.Angle[spine.LeftTread]-was.Angle[spine.LeftTread])
			return s.Frames > was.Frames && s.Duty == [4]float64{} && moved < 0.005 // mm in a frame: 1 mm/s
		})
		if n := now.Off - began.Frames; n < off {
			off, way = n, radius*(now.Angle[spine.LeftTread]-began.Angle[spine.LeftTread])
		}
	}
	t.Logf("without power after %d frames, at rest after %.1f mm", off, way)
	if off > most || way > far {
		t.Errorf("without power %d frames after the end of robotd, at rest after %.1f mm; want at most %d, %g mm", off, way, most, far)
	}
}

// TestHaltNeedsABody: after an end that was meant nothing is left to halt, and a body that is not there is an error.
func TestHaltNeedsABody(t *testing.T) {
	for result, code := range map[string]int{"success": cli.ExitOK, "signal": cli.ExitUnavailable, "": cli.ExitUnavailable} {
		var out bytes.Buffer
		args := []string{"-root", t.TempDir(), "-halt"}
		if got := Main(args, func(string) string { return result }, &out, &out); got != code {
			t.Errorf("SERVICE_RESULT %q: exit code %d, %s; want %d", result, got, &out, code)
		}
	}
}
