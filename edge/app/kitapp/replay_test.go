package kitapp

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/helm"
	"kennel/edge/robot/claim"
	"kennel/edge/rt"
	"kennel/infra/cli"
)

// untilEnd is a line that fails at a given time: the end of a recorded run.
type untilEnd struct {
	*vectorsim.Stepped
	end time.Duration
}

func (p untilEnd) Wait(deadline time.Duration) (bool, error) {
	if p.Now() >= p.end {
		return false, errors.New("the time is over")
	}
	return p.Stepped.Wait(min(deadline, p.end))
}

// record runs a simulated Vector for ten seconds, told to drive, and returns the recording. more run after its helm, unknown to who replays it.
func record(t *testing.T, more ...rt.Task) []byte {
	t.Helper()
	s := vectorsim.NewStepped(vectorsim.Config{Seed: 3, Volts: 3.8})
	tape := rt.NewTape(4 << 20)
	model, err := helm.Vector()
	if err != nil {
		t.Fatal(err)
	}
	h, err := helm.New(model, tape)
	if err != nil {
		t.Fatal(err)
	}
	wheels, err := model.Tree.Lookup("robot.body.wheel")
	if err != nil {
		t.Fatal(err)
	}
	loop, err := rt.New(rt.Config{Tape: tape}, s, append([]rt.Task{h.Task()}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	drv, err := vector.Open(t.Context(), vector.Config{Device: "simulated", Port: untilEnd{s, s.Now() + 10*time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	s.Each = func(time.Duration) {
		switch n++; n {
		case 600:
			h.Post(helm.Order{Kind: helm.Claim, Owner: 2, Set: claim.SetOf(model.Tree.ActuatorsOf(wheels)...), Priority: claim.Person})
		case 610:
			h.Post(helm.Order{Kind: helm.Wheels, Owner: 2, A: 0.1, B: 0.05, For: 3 * time.Second})
		}
	}
	if err := loop.Run(t.Context(), drv); !errors.Is(err, body.ErrLink) {
		t.Fatal(err)
	}
	if err := drv.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := tape.Flush(&out); err != nil || tape.Lost() > 0 {
		t.Fatalf("%v, %d records lost", err, tape.Lost())
	}
	var r helm.Report
	if h.Report(&r); r.Motion.Odometers.Body < 0.1 {
		t.Fatalf("it drove %v m: nothing to compare", r.Motion.Odometers.Body)
	}
	return out.Bytes()
}

// TestReplay: the same tasks do the same; a step that did something else is named; what is no recording is said to be none.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := record(t)
	file := write("good.krt", good)
	if code, out, errOut := run(t, "replay", file); code != cli.ExitOK || !strings.HasPrefix(out, "identical: ") || strings.Contains(out, "breaks off") || errOut != "" {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	var got replayed
	code, out, _ := run(t, "replay", file, "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.ExitOK || !got.Identical || got.Steps < 1500 || got.Bodies != 1 || got.Seconds < 8 {
		t.Errorf("%d %s %v", code, out, err)
	}
	if code, out, errOut := run(t, "replay", write("cut.krt", good[:len(good)-20])); code != cli.ExitOK || !strings.Contains(out, "identical: ") || !strings.Contains(out, "breaks off") {
		t.Errorf("cut: %d %s%s", code, out, errOut)
	}
	other := write("other.krt", record(t, rt.Task{Name: "nudge", Every: 1, Run: func(f *rt.Frame) {
		if f.Step == 700 {
			f.Act.Motors[0] += 1e-12
		}
	}}))
	code, out, errOut := run(t, "replay", other)
	if code != cli.ExitFailed || !strings.HasPrefix(out, "differs after ") || !strings.Contains(errOut, "of motor 0") || !strings.Contains(errOut, "(step 700") {
		t.Errorf("another program: %d %s%s", code, out, errOut)
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{write("text.krt", []byte("hello"))}, cli.ExitUsage, "bad recording"},
		{[]string{filepath.Join(dir, "none.krt")}, cli.ExitNotFound, "none.krt"},
		{[]string{file, "-body", "pleo"}, cli.ExitUsage, "want vector"},
		{nil, cli.ExitUsage, "1"},
	} {
		if code, out, errOut := run(t, append([]string{"replay"}, tc.args...)...); code != tc.code || !strings.Contains(errOut, tc.want) || out != "" {
			t.Errorf("%v: %d %s%s; want %d, %q", tc.args, code, out, errOut, tc.code, tc.want)
		}
	}
}
