package kitapp

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/body/amigobot/flash"
	"kennel/edge/sim/plane"
	"kennel/infra/cli"
)

// screen holds the output of a program, for a test that waits for text in it.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed when more comes
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more != nil {
		close(s.more)
		s.more = nil
	}
	return s.text.Write(b)
}

// await returns what was printed up to and with part, and forgets it.
func (s *screen) await(t *testing.T, part string) string {
	t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		text := s.text.String()
		if before, after, ok := strings.Cut(text, part); ok {
			s.text.Reset()
			s.text.WriteString(after)
			s.mu.Unlock()
			return before + part
		}
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-more:
		case <-late:
			t.Fatalf("no %q at the end of %q", part, text[max(0, len(text)-1000):])
		}
	}
}

// console is a program with a person at its keys.
type console struct {
	keys     *io.PipeWriter
	out, err screen
	ended    chan int // exit code
}

// open starts a program; stop interrupts it.
func open(t *testing.T, args ...string) (c *console, stop func()) {
	t.Helper()
	in, keys := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	c = &console{keys: keys, ended: make(chan int, 1)}
	root := command()
	root.SetIn(in)
	go func() { c.ended <- cli.Run(ctx, root, args, func(string) string { return "" }, &c.out, &c.err) }()
	t.Cleanup(func() { cancel(); _ = keys.Close() })
	return c, cancel
}

func (c *console) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(c.keys, keys); err != nil {
		t.Fatal(err)
	}
}

func (c *console) end(t *testing.T) (code int) {
	t.Helper()
	select {
	case code = <-c.ended:
	case <-time.After(patience):
		t.Fatal("the program does not end")
	}
	return code
}

const (
	upKey, downKey, rightKey, leftKey = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
	escKey                            = "\x1b"
)

func rests(s amigobotsim.State) bool { return max(math.Abs(s.Speed[0]), math.Abs(s.Speed[1])) < 1e-3 }

// TestAmigoDemo: the demo connects, switches the motors on, drives by keys, slows down before a wall, shows each mode, and at Esc leaves a
// robot at rest with motors and sonar off (AMIGO-DEMO-01 to 03, 05 to 07, part of AMIGO-DEMO-04, AMIGO-OPEN-12).
func TestAmigoDemo(t *testing.T) {
	t.Parallel()
	wall := &plane.Map{Walls: []plane.Wall{{From: plane.Vec{1, -3}, To: plane.Vec{1, 3}}}}
	m := amigobotsim.NewMemory("1.3")
	if err := m.Params.Parse("watchdog 60000"); err != nil { // the robot's time runs faster than the tool's
		t.Fatal(err)
	}
	a := serve(t, amigobotsim.Config{World: wall, Memory: m}, 4)
	c, _ := open(t, "amigo", "demo", "-port", a.control)
	for _, said := range []string{"Syncing 0", "Syncing 1", "Syncing 2", "Opening the session", "Connected to not_set, Pioneer amigo"} {
		c.err.await(t, said)
	}
	a.await(t, "motors on", func(s amigobotsim.State) bool { return s.Motors })
	c.out.await(t, "teleop: speed 0.00 m/s (wanted 0.00)") // AMIGO-DEMO-03

	c.press(t, leftKey)
	a.await(t, "5° left", func(s amigobotsim.State) bool { return math.Abs(s.Pose[2]-5*math.Pi/180) < 0.02 && rests(s) })
	c.press(t, rightKey+rightKey)
	a.await(t, "5° right", func(s amigobotsim.State) bool { return math.Abs(s.Pose[2]+5*math.Pi/180) < 0.02 && rests(s) })
	c.press(t, leftKey)
	a.await(t, "ahead", func(s amigobotsim.State) bool { return math.Abs(s.Pose[2]) < 0.02 && rests(s) })

	c.press(t, downKey)
	a.await(t, "backward", func(s amigobotsim.State) bool { return s.Speed[0] < -0.04 && s.Speed[1] < -0.04 })
	c.press(t, " ")
	a.await(t, "all stop", func(s amigobotsim.State) bool { return rests(s) && s.Motors })
	c.press(t, strings.Repeat(upKey, 8))
	c.out.await(t, "(wanted 0.30)") // TransVelMax
	a.await(t, "fast", func(s amigobotsim.State) bool { return s.Speed[0] > 0.27 })
	near := a.await(t, "before the wall", func(s amigobotsim.State) bool { return s.Pose[0] > 0.5 && s.Speed[0] < 0.01 })
	if near.Stalled != [2]bool{} || near.Pose[0] > 0.7 { // 0.2 m before the wall, with a sonar 0.14 m in front of the middle
		t.Errorf("the robot stops at %.3f m, stalled %v", near.Pose[0], near.Stalled)
	}

	for _, mode := range []struct{ key, shows string }{
		{"s", "sonar: ["}, {"p", "position: x 0.6"}, {"b", "bumps: left wheel stalled: false"}, {"i", "io: in 000000, out 000000, analog 0.00 "},
		{"l", "laser: not fitted"}, {"c", "camera: not fitted"}, {"g", "gripper: not fitted"}, {"x" + upKey + "t", "teleop: speed 0.00 m/s (wanted 0.00)"},
	} {
		c.press(t, mode.key)
		c.out.await(t, mode.shows)
	}
	c.press(t, "w")
	a.await(t, "turning away", func(s amigobotsim.State) bool { return s.Speed[0] < 0 != (s.Speed[1] < 0) })
	a.await(t, "driving away", func(s amigobotsim.State) bool { return s.Speed[0] > 0.1 && s.Speed[1] > 0.1 })
	c.press(t, escKey)
	if code := c.end(t); code != cli.ExitOK {
		t.Errorf("code %d", code)
	}
	a.await(t, "at rest", func(s amigobotsim.State) bool {
		return s.Mode == amigobotsim.Waiting && !s.Motors && !s.Sonar && rests(s)
	})
}

// TestAmigoDemoReset: a robot that was reset during a demo is connected again, and its motors stay off until a mode that drives is chosen;
// the black button takes the motors away.
func TestAmigoDemoReset(t *testing.T) {
	t.Parallel()
	a := serve(t, amigobotsim.Config{}, 2)
	c, stop := open(t, "amigo", "demo", "-port", a.control, "-o", "json")
	c.out.await(t, `"motors":true`)
	a.BrownOut()
	c.out.await(t, `"phase":"ready","x_m":0,"y_m":0,"heading_rad":0,"speed_mps":0,"wanted_mps":0,"motors":false`)
	c.press(t, upKey)
	c.out.await(t, `"speed_mps":0,"wanted_mps":0.05,"motors":false`)
	c.press(t, "t")
	a.await(t, "motors on again", func(s amigobotsim.State) bool { return s.Motors })
	c.out.await(t, `"speed_mps":0,"wanted_mps":0,"motors":true`)
	a.SetBlack(true)
	a.SetBlack(false)
	c.out.await(t, `"motors":false`)
	stop()
	if code := c.end(t); code != cli.ExitOK {
		t.Errorf("code %d", code)
	}
}

// TestAmigoRevcount: RevCount is measured while the robot turns, whatever its parameter says, and saved (AMIGO-OPEN-03).
func TestAmigoRevcount(t *testing.T) {
	t.Parallel()
	m := amigobotsim.NewMemory("1.3")
	if err := m.Params.Parse("revcount 20000\nwatchdog 60000"); err != nil {
		t.Fatal(err)
	}
	a := serve(t, amigobotsim.Config{Memory: m}, 10)
	c, _ := open(t, "amigo", "revcount", "-p", a.control, "-turns", "1", "-drive", "-system", a.system, "-o", "json")
	c.err.await(t, "Put the robot on the mark")
	c.press(t, "\n")
	c.err.await(t, "Press Enter after 1")
	truth := func() (turned float64) {
		_ = a.InWorld(func(w *plane.World) error { turned = w.State().Pose[2]; return nil })
		return turned
	}
	past := false // half a turn
	for turned := truth(); !past || turned < 0; turned = truth() {
		past = past || turned < 0
		at := a.State().Time
		a.await(t, "the next step", func(s amigobotsim.State) bool { return s.Time > at })
	}
	c.press(t, "\n")
	c.err.await(t, "Save it?")
	a.systemMode(t)
	c.press(t, "y\n")
	if code := c.end(t); code != cli.ExitOK {
		t.Errorf("code %d: %s", code, c.err.text.String())
	}
	var out revcount
	if err := json.Unmarshal([]byte(c.out.text.String()), &out); err != nil || out.Was != 20000 || out.Turns != 1 {
		t.Errorf("%v: %+v", err, out)
	}
	for n, odd := range map[int]bool{usualRevCount: false, 17000: false, 32000: false, usualRevCount / 2: true, usualRevCount * 2: true} { // one turn too many, or too few
		if implausible(n) != odd {
			t.Errorf("RevCount %d: implausible is %v", n, !odd)
		}
	}
	if strings.Contains(c.err.text.String(), "Warning") {
		t.Errorf("a plausible RevCount is warned of: %s", c.err.text.String())
	}
	if want := flash.Defaults(); math.Abs(float64(out.RevCount-want.Int(flash.RevCount))) > 2000 { // it turns on for up to 0.1 s
		t.Errorf("measured %d, want about %d", out.RevCount, want.Int(flash.RevCount))
	}
	_, is, _ := run(t, "amigo", "params", "-p", a.system, "revcount")
	if want := must(json.Marshal(out.RevCount)); is != "RevCount "+string(want)+"\n" {
		t.Errorf("saved %q, want %s", is, want)
	}

	for _, tt := range []struct {
		name, typed string
		args        []string
		code        int
		want        string
	}{
		{"no turns", "", []string{"-turns", "0"}, cli.ExitUsage, "want 1 to 100"},
		{"the input ends", "\n", []string{"-p", a.control}, cli.ExitUsage, "input ended"},
		{"not turned", "\n\n", []string{"-p", a.control}, cli.ExitFailed, "counted 0 ticks"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a.SetReset(true)
			a.SetReset(false)
			code, _, errOut := runIn(t, tt.typed, append([]string{"amigo", "revcount"}, tt.args...)...)
			if code != tt.code || !strings.Contains(errOut, tt.want) {
				t.Errorf("code %d, want %d: %s", code, tt.code, errOut)
			}
		})
	}
}
