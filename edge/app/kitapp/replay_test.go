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
	"kennel/edge/body/vector/vectorplant"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/control"
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

// posing is a Vector that describes itself as a body of another species.
type posing struct {
	*vector.Driver
	species string
}

func (p posing) Describe() body.Description {
	d := p.Driver.Describe()
	d.Species = p.species
	return d
}

// record runs a simulated Vector for ten seconds, told to drive, and returns the recording as that of a species. more run after its control loop; the
// replay does not know them.
func record(t *testing.T, species string, more ...rt.Task) []byte {
	t.Helper()
	s := vectorsim.NewStepped(vectorsim.Config{Seed: 3, Volts: 3.8})
	tape := rt.NewTape(4 << 20)
	model, err := vectorplant.Model(vectorplant.Default())
	if err != nil {
		t.Fatal(err)
	}
	c, err := control.New(model, tape)
	if err != nil {
		t.Fatal(err)
	}
	wheels, err := c.Actuators("robot.body.wheel")
	if err != nil {
		t.Fatal(err)
	}
	drive := control.Order{Kind: control.Set, Owner: 2, For: 3 * time.Second}
	for name, speed := range map[string]float64{"wheelL.speed": 7, "wheelR.speed": 3.5} {
		slot, err := model.Tree.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		drive.Goals[drive.N] = control.Goal{Slot: slot.Refs[0].ID, Value: speed}
		drive.N++
	}
	loop, err := rt.New(rt.Config{Tape: tape}, s, append([]rt.Task{c.Task()}, more...)...)
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
			c.Post(control.Order{Kind: control.Claim, Owner: 2, Set: wheels, Priority: claim.Person})
		case 610:
			c.Post(drive)
		}
	}
	if err := loop.Run(t.Context(), posing{drv, species}); !errors.Is(err, body.ErrLink) {
		t.Fatal(err)
	}
	if err := drv.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := tape.Flush(&out); err != nil || tape.Lost() > 0 {
		t.Fatalf("%v, %d records lost", err, tape.Lost())
	}
	var r control.Report
	if c.Report(&r); r.Base.Way < 0.1 {
		t.Fatalf("it drove %v m: nothing to compare", r.Base.Way)
	}
	return out.Bytes()
}

// TestReplay: the same tasks do the same; the output names a step that did something else, a species without a model, and a file that is no
// recording.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := record(t, "vic")
	file := write("good.krt", good)
	if code, out, errOut := run(t, "replay", file); code != cli.ExitOK || !strings.HasPrefix(out, "identical: ") ||
		strings.Contains(out, "breaks off") || errOut != "" {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	var got replayed
	code, out, _ := run(t, "replay", file, "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.ExitOK || !got.Identical || got.Steps < 1500 || got.Bodies != 1 ||
		got.Seconds < 8 {
		t.Errorf("%d %s %v", code, out, err)
	}
	if code, out, errOut := run(t, "replay", write("cut.krt", good[:len(good)-20])); code != cli.ExitOK || !strings.Contains(out, "identical: ") ||
		!strings.Contains(out, "breaks off") {
		t.Errorf("cut: %d %s%s", code, out, errOut)
	}
	other := write("other.krt", record(t, "vic", rt.Task{Name: "nudge", Every: 1, Run: func(f *rt.Frame) {
		if f.Step == 700 {
			f.Act.Values[0] += 1e-12
		}
	}}))
	code, out, errOut := run(t, "replay", other)
	if code != cli.ExitFailed || !strings.HasPrefix(out, "differs after ") || !strings.Contains(errOut, "wheelL gets") ||
		!strings.Contains(errOut, "(step 700") {
		t.Errorf("another program: %d %s%s", code, out, errOut)
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{write("text.krt", []byte("hello"))}, cli.ExitUsage, "bad recording"},
		{[]string{filepath.Join(dir, "none.krt")}, cli.ExitNotFound, "none.krt"},
		{[]string{write("unknown.krt", record(t, "cat"))}, cli.ExitUsage, `species "cat"`},
		{nil, cli.ExitUsage, "1"},
	} {
		if code, out, errOut := run(t, append([]string{"replay"}, tc.args...)...); code != tc.code || !strings.Contains(errOut, tc.want) || out != "" {
			t.Errorf("%v: %d %s%s; want %d, %q", tc.args, code, out, errOut, tc.code, tc.want)
		}
	}
}
