package robotapp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/species"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/corelink"
	"kennel/edge/faultcode"
)

// The status of a firmware file that cannot be used, and the place of the file.
const (
	unusable     faultcode.Code = 18
	firmwareFile                = "anki/etc/syscon.dfu"
)

// install puts a firmware file where a robot has it.
func (b *bench) install(file []byte) {
	b.t.Helper()
	path := filepath.Join(b.root, filepath.FromSlash(firmwareFile))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// TestFirmwareAtStart: VEC-DFU-01: a body with another version is updated before anything else, and peers hear of it, also those who come later. The
// next robotd has nothing to do.
func TestFirmwareAtStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install(vectorsim.Image("2.2.0-test", 12<<10, 7))
	if err := (&startNote{status: 19}).write(b.root); err != nil { // of the start before
		t.Fatal(err)
	}
	b.powerOn()
	p := b.start(nil, "-device", b.device)
	c := b.peer()
	if h := await(c, "hello with a body", func(h *corelink.Hello) bool { return h.Body.Species != "" }); h.Body.Firmware != "2.2.0-test" {
		t.Errorf("the body says %q, want the file's version", h.Body.Firmware)
	}
	late := b.peer()
	m := await(late, "firmware", func(*corelink.Firmware) bool { return true })
	if m.Wanted != "2.2.0-test" || m.Installed != "2.1.0-test" || m.Attempts < 1 || m.Status != 0 || m.Error != "" ||
		m.File != "anki/etc/syscon.dfu" || m.TookMS == 0 || m.AtUS == 0 {
		t.Errorf("%+v", m)
	}
	await(c, "state", linked)
	if _, err := os.Stat(filepath.Join(b.root, rampostError)); !os.IsNotExist(err) {
		t.Errorf("the status of the start before is still there: %v", err)
	}
	for _, want := range []string{`phase="erase the program"`, "percent=10 ", "percent=50 ", "percent=100 ", `phase="start the program"`} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	p = b.start(nil, "-device", b.device)
	pid := uint32(p.cmd.Process.Pid)
	await(c, "the next robotd", func(h *corelink.Hello) bool { return h.PID == pid })
	if m := await(c, "firmware again", func(m *corelink.Firmware) bool { return m.Installed == "2.2.0-test" }); m.Attempts != 0 || m.Status != 0 {
		t.Errorf("a body that runs the file: %+v", m)
	}
}

// TestFirmwareThatIsRefused: the body runs what it ran, and the reason is in the message, in the file (part of VEC-BOOT-09) and in the log. Opening the body
// again does not try again.
func TestFirmwareThatIsRefused(t *testing.T) {
	status := func(b *bench) string {
		b.t.Helper()
		got, err := os.ReadFile(filepath.Join(b.root, rampostError))
		if err != nil {
			b.t.Error(err)
		}
		return string(got)
	}
	t.Run("by the boot-loader", func(t *testing.T) {
		b := newBench(t)
		b.board.SetFlashFaults(vectorsim.FlashFaults{EraseRefused: 99})
		b.install(vectorsim.Image("2.2.0-test", 4900, 7))
		b.powerOn()
		p := b.start(nil, "-device", b.device)
		c := b.peer()
		m := await(c, "firmware", func(*corelink.Firmware) bool { return true })
		if m.Status != 17 || m.Attempts != 3 || !strings.Contains(m.Error, "erase the program, attempt 3: the body refused") ||
			m.Installed != "2.1.0-test" {
			t.Errorf("%+v", m)
		}
		await(c, "state", linked)
		if h := await(b.peer(), "hello", func(h *corelink.Hello) bool { return h.Body.Species != "" }); h.Body.Firmware != "2.1.0-test" {
			t.Errorf("the body runs %q", h.Body.Firmware)
		}
		if got := status(b); got != "17\n" {
			t.Errorf("%s says %q", rampostError, got)
		}
		if err := b.powerOff(); err != nil {
			t.Fatal(err)
		}
		await(c, "silence", func(s *corelink.State) bool { return !s.Link })
		b.powerOn()
		await(c, "the board's return", linked)
		if n := strings.Count(p.log.String(), "body firmware update failed"); n != 1 {
			t.Errorf("the update was tried %d times, want once", n)
		}
	})
	for name, tc := range map[string]struct {
		file []byte
		want string
	}{
		"an empty file": {nil, "has 0 bytes"},
		"too long":      {make([]byte, 80<<10), "want at most 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.install(tc.file)
			b.powerOn()
			b.start(nil, "-device", b.device)
			c := b.peer()
			m := await(c, "firmware", func(*corelink.Firmware) bool { return true })
			if m.Status != uint16(unusable) || m.Wanted != "" || !strings.Contains(m.Error, tc.want) {
				t.Errorf("%+v, want %q", m, tc.want)
			}
			await(c, "state", linked)
			if got := status(b); got != "18\n" {
				t.Errorf("%s says %q", rampostError, got)
			}
		})
	}
	if text := faultcode.Rampost.Text(unusable); strings.HasPrefix(text, "fault ") {
		t.Errorf("status %d is not in the published table", unusable)
	}
}

// TestStartIsChecked: part of VEC-BOOT-09: what is wrong with battery, temperature and self tests when the body starts is left for the programs that start
// later, behind the status of an update that failed; a start that is well removes what an earlier one left.
func TestStartIsChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(b.root, rampostError)
	b.install(nil) // no firmware file
	b.board.SetPower(spine.BatteryDisconnected)
	b.powerOn()
	p := b.start(nil, "-device", b.device)
	await(b.peer(), "state", linked)
	if got, err := os.ReadFile(file); err != nil || string(got) != "18\nbattery disconnected\n" {
		t.Errorf("%q, %v", got, err)
	}
	wantStart(b, "socket recorder core supervisor last_end hold firmware_file! factory microphones body first_frame!")
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if err := os.Remove(filepath.Join(b.root, filepath.FromSlash(firmwareFile))); err != nil {
		t.Fatal(err)
	}
	b.board.SetPower(0)
	b.start(nil, "-device", b.device)
	await(b.peer(), "state", linked)
	if got, err := os.ReadFile(file); !os.IsNotExist(err) {
		t.Errorf("%q, %v; want none", got, err)
	}
	wantStart(b, "socket recorder core supervisor last_end hold firmware_file factory microphones body first_frame")

	cold := corelink.State{BatteryVolts: 3.2149, Temperature: 51.2, Fault: 891,
		Power: uint16(body.BelowCritical | body.ShutdownImminent | body.Overheated)}
	want := []string{"battery below its critical voltage: 3.21 V", "the body is about to cut the power", "overheated: 51 degrees Celsius",
		"fault 891: " + faultcode.Code(891).Text()}
	if got := startProblems(&cold); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := startProblems(&corelink.State{Power: uint16(body.OnCharger | body.Charging)}); got != nil {
		t.Errorf("a body that is well: %q", got)
	}
}

// wantStart: VEC-BOOT-06, part of VEC-BOOT-11: a peer that joins later hears how long each step of the start took, in the table's order; want marks failures.
func wantStart(b *bench, want string) {
	b.t.Helper()
	s := await(b.peer(), "the start", func(s *corelink.Start) bool { return s.Over })
	var got []string
	last := s.BeganUS
	for _, st := range s.Stages {
		if st.BeganUS < last || st.EndedUS < st.BeganUS {
			b.t.Errorf("times of %q do not follow: %+v", st.Name, s)
		}
		last = st.EndedUS
		if st.Error != "" {
			st.Name += "!"
		}
		got = append(got, st.Name)
	}
	if got := strings.Join(got, " "); got != want {
		b.t.Errorf("the start is %q, want %q", got, want)
	}
}

// TestBodyThatIsNotThere: the start names the step that failed, continues, and ends when the body is there.
func TestBodyThatIsNotThere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(nil, "-device", b.device)
	p := b.peer()
	s := await(p, "the start", func(s *corelink.Start) bool { return len(s.Stages) > 0 && s.Stages[len(s.Stages)-1].Name == "body" })
	if last := s.Stages[len(s.Stages)-1]; last.Error == "" || s.Over {
		t.Errorf("without a body: %+v", s)
	}
	b.powerOn()
	await(p, "the end of the start", func(s *corelink.Start) bool { return s.Over })
}

// TestWatchdogThroughAnUpdate: VEC-WDOG-02: an update that works for ten minutes is healthy throughout, because it reports progress; a silent one
// is not, and neither is an attempt to open a body that never ends.
func TestWatchdogThroughAnUpdate(t *testing.T) {
	c := quietCore(t)
	var now time.Duration
	c.now = func() time.Duration { return now }
	// till lets time pass until the watchdog is not fed any more, for an hour at most.
	till := func() (healthy time.Duration) {
		for ; healthy < time.Hour && c.healthy(); now += kickEvery {
			healthy += kickEvery
		}
		return healthy
	}
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	const updatePatience = 16 * time.Second // Vector's
	c.how.Open = func(context.Context) (body.Body, error, error) {
		if tries++; tries == 1 {
			if got, most := till(), maxReopen+2*species.OpenTimeout; got < species.OpenTimeout || got > most {
				t.Errorf("an attempt that never ends is healthy for %v, want %v to %v", got, species.OpenTimeout, most)
			}
			return nil, nil, errors.New("silent")
		}
		cancel() // it is the last
		if !c.healthy() {
			t.Error("the next attempt inherits the age of the one before")
		}
		const blocks, slow = 600, time.Second
		for range blocks { // ten minutes
			c.busy(updatePatience)
			for range slow / kickEvery {
				if now += kickEvery; !c.healthy() {
					t.Fatalf("after %v of an update that goes on the watchdog is not fed", now)
				}
			}
		}
		if got, most := till(), updatePatience+maxReopen+2*species.OpenTimeout; got < updatePatience-slow || got > most {
			t.Errorf("an update that says nothing more is healthy for %v, want %v to %v", got, updatePatience, most)
		}
		return nil, nil, errors.New("hung")
	}
	if err := c.run(ctx); err != nil || tries != 2 {
		t.Errorf("%d attempts, %v; want 2", tries, err)
	}
}
