package robotapp

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector"
	"kennel/edge/body/vector/spine"
	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/core/rt"
	"kennel/edge/power"
	"kennel/infra/testexec"
)

// hostProgram returns robotd for this machine's own processor, also where the tests run under an emulator of another one.
func hostProgram(t *testing.T) []string {
	t.Helper()
	if len(testexec.Emulator()) == 0 {
		return []string{binary}
	}
	host, err := exec.Command("go", "env", "GOHOSTARCH").Output()
	if err != nil {
		t.Fatal(err)
	}
	path, err := build("robotd.host", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+strings.TrimSpace(string(host)), "GOARM=")
	if err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

// TestRecord: what robotd did, with orders of a peer and a body that was opened twice, is done
// again step by step (issue: what must hold 5). Under the emulator (make test-arm) an ARM v7 does
// again what robotd did on the machine's own processor.
func TestRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.heat("thermal_zone0", "85000\n")
	b.powerOn()
	file := filepath.Join(t.TempDir(), "run.krt")
	p := b.startProgram(hostProgram(t), nil, "-device", b.device, "-record", file)
	c := b.peer()
	await(c, "calibration", calibrated)
	await(c, "a warm processor", func(m *corelink.Power) bool { return m.CPUHeat == power.Warm.String() })
	c.line("led[0].r = 0.04")
	if r := c.ask(claimWheels); r.Code != "ok" {
		t.Fatalf("claim: %+v", r)
	}
	c.begin("wheel.speed = [3.5, 5.5]", func(m *corelink.Motion) bool { return m.Speed > 0.03 })
	if err := b.powerOff(); err != nil {
		t.Fatal(err)
	}
	await(c, "the end of the first run", func(*corelink.State) bool { return strings.Contains(p.log.String(), "trying again") })
	b.powerOn()
	await(c, "the board's return", linked)
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	recording, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	done, driven, known := again(t, recording)
	if done.Cut != nil || done.Bodies != 2 || done.Steps < 100 || driven == 0 || known.Power.CPU.Heat != power.Warm {
		t.Errorf("%+v, in %d steps both treads had power, processor %v; want two bodies, a drive, warm", done, driven, known.Power.CPU.Heat)
	}
}

// again replays a recording, counts the steps in which both treads had power, and returns what the control loop knew at the end.
func again(t *testing.T, recording []byte) (rt.Replayed, int, control.Report) {
	t.Helper()
	model, err := vector.Species.Model()
	if err != nil {
		t.Fatal(err)
	}
	driven := 0
	var h *control.Control
	done, err := rt.Replay(bytes.NewReader(recording), rt.Config{}, func(tape *rt.Tape, _ body.Description) []rt.Task {
		var err error
		if h, err = control.New(model, tape); err != nil {
			t.Fatal(err)
		}
		return []rt.Task{h.Task()}
	}, func(s *rt.Snapshot) {
		if s.Act.Values[spine.LeftTread] != 0 && s.Act.Values[spine.RightTread] != 0 {
			driven++
		}
	})
	if err != nil {
		t.Fatalf("%+v, %v", done, err)
	}
	var known control.Report
	h.Report(&known)
	return done, driven, known
}

// idleBody sends a frame whenever it is asked for one.
type idleBody struct {
	now time.Duration
	seq uint32
}

func (b *idleBody) Now() time.Duration       { return b.now }
func (b *idleBody) SleepUntil(time.Duration) {}
func (b *idleBody) Write(*body.Act) error    { return nil }
func (b *idleBody) Halt() error              { return nil }
func (b *idleBody) Shutdown() error          { return nil }
func (b *idleBody) Close() error             { return nil }
func (b *idleBody) Describe() body.Description {
	return body.Description{Species: "vic", Timing: body.Timing{Rhythm: 5 * time.Millisecond, Stale: 50 * time.Millisecond, Silent: time.Second}}
}
func (b *idleBody) Read(s *body.Sense, _ time.Duration) error {
	b.now += 5 * time.Millisecond
	b.seq++
	*s = body.Sense{At: b.now, Seq: b.seq, Fresh: true}
	return nil
}

// TestRecordIsBounded: at its limit the recording ends with a whole step, says so and stops growing; so does one whose file is gone.
func TestRecordIsBounded(t *testing.T) {
	var said bytes.Buffer
	file := filepath.Join(t.TempDir(), "run.krt")
	r, err := newRecorder(slog.New(slog.NewTextHandler(&said, nil)), file, 1)
	if err != nil {
		t.Fatal(err)
	}
	model, err := vector.Species.Model()
	if err != nil {
		t.Fatal(err)
	}
	h, err := control.New(model, r.tapeOf())
	if err != nil {
		t.Fatal(err)
	}
	b := &idleBody{}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	loop, err := rt.New(rt.Config{Tape: r.tapeOf()}, b, h.Task(), rt.Task{Name: "flush", Every: 100, Run: func(f *rt.Frame) {
		if r.file != nil && !r.flush() {
			if err := r.file.Close(); err != nil {
				t.Error(err)
			}
			r.file = nil
			end()
		}
		if f.Step > 100_000 {
			end()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := loop.Run(ctx, b); err != nil {
		t.Fatal(err)
	}
	if r.file != nil || !strings.Contains(said.String(), "size limit reached") {
		t.Fatalf("after %d bytes it goes on: %s", r.written, &said)
	}
	recording, err := os.ReadFile(file)
	if err != nil || len(recording) < 1<<20 || len(recording) > 1<<20+100<<10 {
		t.Fatalf("%d bytes, %v; want little more than 1 MiB", len(recording), err)
	}
	if done, _, _ := again(t, recording); done.Cut != nil || done.Steps < 2000 {
		t.Errorf("%+v", done)
	}
	if _, err := newRecorder(slog.New(slog.DiscardHandler), t.TempDir(), 1); err == nil || !strings.Contains(err.Error(), "-record: ") {
		t.Errorf("a folder: %v", err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	said.Reset()
	r = &recorder{log: slog.New(slog.NewTextHandler(&said, nil)), tape: rt.NewTape(0), file: full, limit: 1 << 20}
	if r.flush() || !strings.Contains(said.String(), "no space left") {
		t.Errorf("a full medium: %s", &said)
	}
}
