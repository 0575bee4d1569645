package kitapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/amigobot"
	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/robot/claim"
	"kennel/infra/cli"
)

// simulated is a body on its own clock, and the steps of the loop after which it is told to drive and after which the recording ends.
type simulated struct {
	clock      rt.Clock
	body       body.Body
	drive, end int
}

func simulatedVector(t *testing.T) simulated {
	t.Helper()
	s := vectorsim.NewStepped(vectorsim.Config{Seed: 3, Volts: 3.8})
	drv, err := vectordriver.Open(t.Context(), vectordriver.Config{Device: "simulated", Port: s})
	if err != nil {
		t.Fatal(err)
	}
	return simulated{s, drv, 600, 1900}
}

func simulatedAmigoBot(t *testing.T) simulated {
	t.Helper()
	r, err := amigobotsim.New(amigobotsim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := amigobotsim.NewStepped(r)
	drv, err := amigobot.Open(t.Context(), amigobot.Config{Device: "simulated", Port: s})
	if err != nil {
		t.Fatal(err)
	}
	return simulated{s, drv, 20, 80}
}

// posing is a body that describes itself as one of another species.
type posing struct {
	body.Body
	species string
}

func (p posing) Describe() body.Description {
	d := p.Body.Describe()
	d.Species = p.species
	return d
}

// record runs the control loop of a species on s, which is told to drive, and returns the recording. more run after it; the replay does not
// know them.
func record(t *testing.T, species string, s simulated, more ...rt.Task) []byte {
	t.Helper()
	tape := rt.NewTape(4 << 20)
	c, err := controlOf(species, tape)
	if err != nil {
		t.Fatal(err)
	}
	wheels, err := c.Actuators("robot.body.wheel")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	told := rt.Task{Name: "test", Every: 1, Run: func(*rt.Frame) {
		switch n++; n {
		case s.drive:
			c.Post(control.Order{Kind: control.Claim, Owner: 2, Set: wheels, Priority: claim.Person})
			c.Post(control.Order{Kind: control.Go, Owner: 2, A: 0.3, For: time.Minute})
		case s.end:
			cancel()
		}
	}}
	loop, err := rt.New(rt.Config{Tape: tape}, s.clock, append([]rt.Task{c.Task(), told}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(loop.Run(ctx, s.body), s.body.Close()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := tape.Flush(&out); err != nil || tape.Lost() > 0 {
		t.Fatalf("%v, %d records lost", err, tape.Lost())
	}
	var r control.Report
	if c.Report(&r); r.Base.Pose.X < 0.1 {
		t.Fatalf("it drove to %+v: nothing to compare", r.Base.Pose)
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
	good := record(t, "vic", simulatedVector(t))
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
	other := write("amigo.krt", record(t, "amigo", simulatedAmigoBot(t)))
	if code, out, errOut := run(t, "replay", other); code != cli.ExitOK || !strings.HasPrefix(out, "identical: ") || errOut != "" {
		t.Errorf("an AmigoBot's: %d %s%s", code, out, errOut)
	}
	if code, out, errOut := run(t, "replay", write("cut.krt", good[:len(good)-20])); code != cli.ExitOK || !strings.Contains(out, "identical: ") ||
		!strings.Contains(out, "breaks off") {
		t.Errorf("cut: %d %s%s", code, out, errOut)
	}
	other = write("other.krt", record(t, "vic", simulatedVector(t), rt.Task{Name: "nudge", Every: 1, Run: func(f *rt.Frame) {
		if f.Step == 700 {
			f.Act.Values[0] += 1e-12
		}
	}}))
	code, out, errOut := run(t, "replay", other)
	if code != cli.ExitFailed || !strings.HasPrefix(out, "differs after ") || !strings.Contains(errOut, "wheelL gets") ||
		!strings.Contains(errOut, "(step 700") {
		t.Errorf("another program: %d %s%s", code, out, errOut)
	}
	cat := simulatedVector(t)
	cat.body = posing{cat.body, "cat"}
	unknown := record(t, "vic", cat)
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{write("text.krt", []byte("hello"))}, cli.ExitUsage, "bad recording"},
		{[]string{filepath.Join(dir, "none.krt")}, cli.ExitNotFound, "none.krt"},
		{[]string{write("unknown.krt", unknown)}, cli.ExitUsage, `species "cat"`},
		{nil, cli.ExitUsage, "missing FILE"},
	} {
		if code, out, errOut := run(t, append([]string{"replay"}, tc.args...)...); code != tc.code || !strings.Contains(errOut, tc.want) || out != "" {
			t.Errorf("%v: %d %s%s; want %d, %q", tc.args, code, out, errOut, tc.code, tc.want)
		}
	}
}
