package amigobotsim

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/edge/sim/plane"
	"kennel/infra/api/poke"
)

// press presses and releases the black button.
func (c *client) press() {
	c.r.SetBlack(true)
	c.feed(1, Lines{})
	c.r.SetBlack(false)
	c.feed(1, Lines{})
}

// blinks counts how often the green light turns on within 10 s.
func (c *client) blinks() (n int, user bool) {
	on := c.r.State().Lights.System
	for range 1000 {
		c.feed(1, Lines{})
		l := c.r.State().Lights
		if l.System && !on {
			n++
		}
		on, user = l.System, user || l.User
	}
	return n, user
}

// TestPanel: what buttons do and lights show (AMIGO-UI-01 to 09, AMIGO-SYNC-11, AMIGO-SYNC-19).
func TestPanel(t *testing.T) {
	c := newClient(t, Config{})
	mode := func(what string, want Mode) {
		t.Helper()
		if m := c.r.State().Mode; m != want {
			t.Errorf("%s: %v, want %v", what, m, want)
		}
	}
	lights := func(what string, blinks int, user bool) {
		t.Helper()
		if n, u := c.blinks(); n != blinks || u != user || !c.r.State().Lights.Power {
			t.Errorf("%s: green blinks %d times in 10 s, amber %t; want %d, %t", what, n, u, blinks, user)
		}
	}
	mode("at power on", Waiting)
	lights("waiting", 10, false)
	c.connect()
	lights("connected", 50, true)
	c.press()
	if !c.r.State().Motors {
		t.Error("the black button does not enable the motors")
	}
	lights("motors on", 10, false)
	c.press()
	if c.r.State().Motors {
		t.Error("the black button does not disable the motors")
	}
	c.press()
	c.send(sip.Int(sip.Vel, 200))
	c.run(time.Second)
	c.r.SetReset(true)
	c.feed(10, Lines{})
	mode("Reset pressed", InReset)
	c.r.SetReset(false)
	mode("Reset released", Waiting)
	if out := c.feed(100, Lines{}); len(out[Control]) > 0 || c.r.State().Speed != [2]float64{} {
		t.Errorf("after a reset it sends %X, drives %v", out[Control], c.r.State().Speed)
	}
	c.feed(1, Lines{Control: unhex(t, "FAFB03")}) // a reset forgets half a packet
	c.r.BrownOut()
	if out := c.feed(1, Lines{Control: unhex(t, "000000")}); len(out[Control]) > 0 {
		t.Errorf("half a packet brings %X", out[Control])
	}
	c.r.SetPower(false)
	mode("power off", Off)
	if out := c.send(sip.Command{Number: sip.Sync0}); len(out[Control]) > 0 || c.r.State().Lights != (Lights{}) {
		t.Errorf("without power it answers %X, %+v", out[Control], c.r.State().Lights)
	}
	c.r.SetReset(true)
	c.r.SetReset(false)
	mode("Reset without power", Off)
	c.sounds = nil
	c.r.SetPower(true)
	mode("power on", Waiting)
	c.press()
	mode("first press", Armed)
	if want := []int{soundset.Reset, soundset.Version, soundset.TestWarning}; !slices.Equal(c.sounds, want) {
		t.Errorf("sounds %v, want %v", c.sounds, want)
	}
	if out := c.send(sip.Command{Number: sip.Sync0}); len(out[Control]) > 0 {
		t.Errorf("armed it answers a client: %X", out[Control])
	}
	c.feed(1000, Lines{})
	mode("10 s later", Waiting)
	c.press()
	c.feed(990, Lines{})
	c.press()
	mode("second press", MotorsTest)
	c.r.SetReset(true)
	c.r.SetReset(false)
	mode("Reset in the test", Waiting)
	// Black held, Reset pressed and released, black released (AMIGO-UI-06).
	c.r.SetReset(true)
	c.r.SetBlack(true)
	c.r.SetReset(false)
	mode("black held", InReset)
	c.r.SetBlack(false)
	mode("black released", SystemMode)
	lights("System mode", 20, true)
}

// TestSelfTests: motors one by one through 1.5 turns, the sonars one by one, then self-wander (AMIGO-TST-01 to 07, AMIGO-UI-04, AMIGO-UI-10).
func TestSelfTests(t *testing.T) {
	cfg := withSounds(t)
	cfg.World = roomMap(t)
	c := newClient(t, cfg)
	turn, last, least, most := 0.0, 0.0, 0.0, 0.0
	watch := func() {
		th := c.pose()[2]
		turn += math.Remainder(th-last, 2*math.Pi)
		last = th
		least, most = min(least, turn), max(most, turn)
	}
	c.press()
	c.press()
	var speeds [2]bool // a wheel drove backwards, both drove
	for n := 0; c.r.State().Mode == MotorsTest; n++ {
		if n > 6000 {
			t.Fatalf("the motors test never ends: %+v", c.r.State())
		}
		c.feed(1, Lines{})
		watch()
		s := c.r.State().Speed
		speeds[0] = speeds[0] || s[0] < -0.01 || s[1] < -0.01
		speeds[1] = speeds[1] || s[0] > 0.05 && s[1] > 0.05
	}
	if !near(most/deg, 540, 2) || !near(turn/deg, 0, 3) || least < -5*deg || speeds != [2]bool{} {
		t.Errorf("turned to %.1f deg and back to %.1f, %v; want 540, 0", most/deg, turn/deg, speeds)
	}
	before := 0
	for i := range 8 {
		s := c.r.State()
		if s.Mode != SonarTest || s.Testing != i || s.Motors {
			t.Fatalf("sonar %d: %+v", i, s)
		}
		c.feed(100, Lines{})
		n, _ := c.blinks()
		d := c.r.sonar.ranges[i]
		if want := 10 * (1 + 9*(1-min(d-0.1, 4.9)/4.9)); !near(float64(n), want, 1) {
			t.Errorf("sonar %d at %.2f m: green blinks %d times in 10 s, want %.0f", i, d, n, want)
		}
		before += n
		c.press()
	}
	if out := c.send(sip.Command{Number: sip.Sync0}); len(out[Control]) > 0 {
		t.Errorf("in the test it answers a client: %X", out[Control])
	}
	if s := c.r.State(); s.Mode != Wander || !s.Motors {
		t.Fatalf("after the last sonar %+v", s)
	}
	// Ten minutes of wandering: it keeps moving about, and makes its show.
	far := 0.0
	var at plane.Pose
	for i := range 600 * 100 {
		c.feed(1, Lines{})
		if i%6000 == 0 {
			_ = c.r.InWorld(func(w *plane.World) error {
				p := w.State().Pose
				far += math.Hypot(p[0]-at[0], p[1]-at[1])
				at = p
				return nil
			})
		}
	}
	shows := 0
	for _, n := range c.sounds {
		if n == soundset.FirstUser {
			shows++
		}
	}
	if far < 2 || shows != 3 {
		t.Errorf("in ten minutes it wandered %.1f m between minutes and made %d shows, want 3", far, shows)
	}
	// It turns away from the nearer side.
	for i, side := range []float64{1, -1} {
		c.r.motion.clear()
		c.r.sonar.on = false
		c.r.sonar.ranges = [8]float64{6, 6, 6, 6, 6, 6, 6, 6}
		c.r.sonar.ranges[2+i] = 0.3
		c.feed(30, Lines{})
		if _, w := c.pace(); w*side > -0.05 {
			t.Errorf("with a wall ahead of sonar %d it turns at %.2f rad/s", 2+i, w)
		}
	}
	c.r.SetReset(true)
	c.r.SetReset(false)
	c.connect()
}

// TestSystemMode: tools read, edit and store parameters; clients are not served; what is stored counts when System mode ends (AMIGO-DL-04,
// AMIGO-DL-06, AMIGO-DL-07, AMIGO-CF-10, AMIGO-OPEN-02).
func TestSystemMode(t *testing.T) {
	stored := 0
	c := newClient(t, Config{OnStore: func() { stored++ }})
	ask := func(request ...byte) []byte {
		t.Helper()
		b, err := sip.AppendFrame(nil, request)
		if err != nil {
			t.Fatal(err)
		}
		out := c.feed(1, Lines{System: b})[System]
		if len(out) == 0 {
			return nil
		}
		p, _, err := sip.ParseFrame(out)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(p)
	}
	if p := ask(sysmode.Hello, 1); p != nil {
		t.Errorf("outside System mode a tool hears %X", p)
	}
	c.r.SetReset(true)
	c.r.SetBlack(true)
	c.r.SetReset(false)
	c.r.SetBlack(false)
	if p := ask(sysmode.Hello, 1); string(p[3:]) != "1.3" {
		t.Errorf("HELLO brings %q", p)
	}
	if out := c.send(sip.Command{Number: sip.Sync0}); len(out[Control]) > 0 {
		t.Errorf("a client hears %X", out[Control])
	}
	ask(append([]byte{sysmode.WriteParam, 2, 8}, "Rover"...)...) // Name
	if p := ask(sysmode.Commit, 3); p[2] != 0 || stored != 1 {
		t.Errorf("COMMIT brings %X, stored %d times", p, stored)
	}
	ask(sysmode.Leave, 4)
	if m := c.r.State().Mode; m != Waiting {
		t.Errorf("after LEAVE %v", m)
	}
	out := c.send(sip.Command{Number: sip.Sync0}, sip.Command{Number: sip.Sync1}, sip.Command{Number: sip.Sync2})
	if !bytes.Contains(out[Control], []byte("\x02Rover\x00Pioneer\x00amigo\x00")) {
		t.Errorf("the robot calls itself %q", out[Control])
	}
}

// TestPoke: what a hand does to the robot is felt: held wheels stall (AMIGO-SAFE-04), a dip and the reset button end the session (AMIGO-SYNC-19),
// the buttons lead to System mode (AMIGO-UI-06); hands move it in its world.
func TestPoke(t *testing.T) {
	for _, tt := range []struct {
		name string
		poke poke.Poke
		felt func(s State) bool
	}{
		{"hold", poke.Poke{Verb: poke.Hold}, func(s State) bool { return s.Stalled[0] && s.Stalled[1] }},
		{"hold and let go", poke.Poke{Verb: poke.Hold, Args: map[string]float64{poke.For: 0.5}},
			func(s State) bool { return s.Speed[0] > 0.05 && s.Mode == Connected }},
		{"drain", poke.Poke{Verb: poke.Drain}, func(s State) bool { return s.Volts < 10.9 && s.Mode == Connected }},
		{"dip", poke.Poke{Verb: poke.Dip}, func(s State) bool { return s.Mode == Waiting }},
		{"reset", poke.Poke{Verb: poke.Reset}, func(s State) bool { return s.Mode == Waiting }},
		{"tools", poke.Poke{Verb: poke.Tools}, func(s State) bool { return s.Mode == SystemMode }},
		{"press", poke.Poke{Verb: poke.Press}, func(s State) bool { return !s.Motors }},
		{"lift", poke.Poke{Verb: poke.Lift}, func(s State) bool { return s.Mode == Connected }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connected(t, Config{}, true)
			c.send(sip.Int(sip.Vel, 200))
			p, err := tt.poke.Complete()
			if err != nil || !slices.Contains(c.r.Verbs(), p.Verb) {
				t.Fatal(err)
			}
			if err := c.r.Poke(p); err != nil {
				t.Fatal(err)
			}
			c.run(2 * time.Second)
			if s := c.r.State(); !tt.felt(s) {
				t.Errorf("after %v: %+v", p, s)
			}
		})
	}
	if err := newClient(t, Config{}).r.Poke(poke.Poke{Verb: poke.Touch}); err == nil {
		t.Error("a robot without a touch sensor was touched")
	}
}
