package amigobotsim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/body/amigobot/sip"
	"kennel/edge/sim/plane"
)

// far is a packed VEL2 argument.
func vel2(left, right int8) sip.Command { return sip.Packed(sip.Vel2, byte(left), byte(right)) }

// ahead is how fast the robot drives and turns, m/s and rad/s.
func (c *client) pace() (ahead, turn float64) {
	s := c.r.State()
	return (s.Speed[0] + s.Speed[1]) / 2, (s.Speed[1] - s.Speed[0]) / track
}

func (c *client) pose() plane.Pose { return c.r.State().Pose }

// truth is where the robot really is, from where it was at first.
func (c *client) truth() (p plane.Pose) {
	_ = c.r.InWorld(func(w *plane.World) error { p = w.State().Pose; return nil })
	return p
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

// TestTrapezoids: set-points follow the closed form of a trapezoid: time and way of a move from halt to halt (AMIGO-MOT-05, AMIGO-MOT-06).
func TestTrapezoids(t *testing.T) {
	for _, tt := range []struct {
		name               string
		l                  limits
		way                float64
		seconds, topSpeeds float64
	}{
		{"cruises", limits{vel: 300, acc: 300, dec: 300}, 900, 4, 300},
		{"other deceleration", limits{vel: 300, acc: 300, dec: 150}, 900, 4.5, 300},
		{"too short to cruise", limits{vel: 300, acc: 100, dec: 100}, 100, 2, 100},
		{"backwards", limits{vel: 300, acc: 300, dec: 300}, -900, 4, 300},
		{"short and unequal", limits{vel: 1e6, acc: 100, dec: 50}, 75, math.Sqrt(2 * 75 * (1/100.0 + 1/50.0)), 70.7107},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var a axis
			a.travel(tt.way)
			n, top := 0, 0.0
			for ; !a.halted() || n == 0; n++ {
				if n > 1e6 {
					t.Fatalf("never halts: %+v", a)
				}
				a.plan(tt.l, false)
				top = max(top, math.Abs(a.vel))
			}
			if s := float64(n) * cycleSeconds; !near(s, tt.seconds, 0.06) || a.pos != tt.way || !near(top, tt.topSpeeds, 0.02*tt.topSpeeds) {
				t.Errorf("%.2f s to %v, at most %.2f; want %.2f s to %v, %.2f", s, a.pos, top, tt.seconds, tt.way, tt.topSpeeds)
			}
		})
	}
}

// TestTurnBack: an axis that turns back slows down at one rate and speeds up at the other.
func TestTurnBack(t *testing.T) {
	a := axis{vel: 100}
	a.run(-200)
	n := 0
	for ; a.vel > -200 && n < 1000; n++ {
		a.plan(limits{vel: 300, acc: 100, dec: 50}, false)
	}
	if n != 400 {
		t.Errorf("after %d cycles, want 400", n)
	}
}

// TestRobotFollowsTrapezoid: the body follows the set-points with the lag of the PID: speeds ramp at the set rates, and the distance
// matches the closed form (AMIGO-MOT-05, AMIGO-CMD-05, AMIGO-CMD-11, AMIGO-CMD-21, AMIGO-PID-02).
func TestRobotFollowsTrapezoid(t *testing.T) {
	const lag = 0.1 // s
	for _, tt := range []struct {
		name     string
		setup    []sip.Command
		begin    sip.Command
		end      sip.Command
		turns    bool
		goal     float64 // m/s or rad/s
		acc, dec float64
	}{
		{"VEL", nil, sip.Int(sip.Vel, 200), sip.Int(sip.Vel, 0), false, 0.2, 0.3, 0.3},
		{"VEL backwards", nil, sip.Int(sip.Vel, -200), sip.Command{Number: sip.Stop}, false, -0.2, 0.3, 0.3},
		{"SETA", []sip.Command{sip.Int(sip.SetA, 100), sip.Int(sip.SetA, -150)}, sip.Int(sip.Vel, 300), sip.Int(sip.Vel, 0), false, 0.3, 0.1, 0.15},
		{"RVEL", nil, sip.Int(sip.RVel, 40), sip.Int(sip.RVel, 0), true, 40 * deg, 50 * deg, 50 * deg},
		{"RVEL clockwise", nil, sip.Int(sip.RVel, -40), sip.Int(sip.RVel, 0), true, -40 * deg, 50 * deg, 50 * deg},
		{"ROTATE and SETRA", []sip.Command{sip.Int(sip.SetRA, 100), sip.Int(sip.SetRA, -80)}, sip.Int(sip.Rotate, 60), sip.Command{Number: sip.Stop}, true,
			60 * deg, 100 * deg, 80 * deg},
		{"VEL2", nil, vel2(10, 10), vel2(0, 0), false, 0.2, 0.3, 0.3},
		{"VEL2 on the spot", nil, vel2(-5, 5), vel2(0, 0), true, 0.2 / track, 0.6 / track, 0.6 / track},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connected(t, Config{}, true)
			c.send(tt.setup...)
			pace := func() float64 {
				v, w := c.pace()
				if tt.turns {
					return w
				}
				return v
			}
			sign := math.Copysign(1, tt.goal)
			ramp := math.Abs(tt.goal) / tt.acc
			c.send(tt.begin)
			mid := 0.7 * ramp // the speed rises in a straight line there
			c.run(time.Duration(mid*float64(time.Second)) - cycle)
			if got, want := sign*pace(), tt.acc*(mid-lag); !near(got, want, 0.12*math.Abs(tt.goal)) {
				t.Errorf("after %.2f s at %.3f, want %.3f", mid, got, want)
			}
			before := pace()
			c.run(10 * cycle)
			if got := sign * (pace() - before) / 0.1; !near(got, tt.acc, 0.08*tt.acc) {
				t.Errorf("accelerates by %.3f, want %.3f", got, tt.acc)
			}
			c.run(time.Duration((ramp - mid + 1.5) * float64(time.Second)))
			if got := pace(); !near(got, tt.goal, 0.01*math.Abs(tt.goal)) {
				t.Errorf("keeps %.4f, want %.4f", got, tt.goal)
			}
			from := c.pose()
			c.send(tt.end)
			c.run(4 * time.Second)
			// From the command on the set-point needs goal²/2/dec; the PID's lag at this speed comes on top.
			to := c.pose()
			got := math.Hypot(to[0]-from[0], to[1]-from[1])
			if tt.turns {
				got = math.Abs(math.Remainder(to[2]-from[2], 2*math.Pi))
			}
			want := tt.goal*tt.goal/2/tt.dec + lag*math.Abs(tt.goal)
			if !near(got, want, 0.03*math.Abs(tt.goal)) || !near(pace(), 0, 1e-4) {
				t.Errorf("stops after %.4f, want %.4f; then at %.5f", got, want, pace())
			}
		})
	}
}

// TestHeadings: HEAD, DHEAD and DCHEAD turn the shorter way to where they say, and a half turn counter-clockwise (AMIGO-CMD-12, 13, 22,
// AMIGO-MOT-06, AMIGO-MOT-12, AMIGO-MOT-13); MOVE goes as far as it says (AMIGO-CMD-XX).
func TestHeadings(t *testing.T) {
	for _, tt := range []struct {
		name     string
		commands []sip.Command
		th, x    float64 // deg, m
		way      float64 // sign of the turn
	}{
		{"HEAD 90", []sip.Command{sip.Int(sip.Head, 90)}, 90, 0, 1},
		{"HEAD 270", []sip.Command{sip.Int(sip.Head, 270)}, -90, 0, -1},
		{"HEAD 180", []sip.Command{sip.Int(sip.Head, 180)}, 180, 0, 1},
		{"HEAD -30", []sip.Command{sip.Int(sip.Head, -30)}, -30, 0, -1},
		{"HEAD 450", []sip.Command{sip.Int(sip.Head, 450)}, 90, 0, 1},
		{"DHEAD -45", []sip.Command{sip.Int(sip.DHead, -45)}, -45, 0, -1},
		{"DCHEAD twice", []sip.Command{sip.Int(sip.DCHead, 30), sip.Int(sip.DCHead, 30)}, 60, 0, 1},
		{"DHEAD twice at once", []sip.Command{sip.Int(sip.DHead, 30), sip.Int(sip.DHead, 30)}, 30, 0, 1},
		{"new heading while turning", []sip.Command{sip.Int(sip.Head, 90), sip.Int(sip.Head, -20)}, -20, 0, -1},
		{"DHEAD -180", []sip.Command{sip.Int(sip.DHead, -180)}, 180, 0, 1},
		{"MOVE", []sip.Command{sip.Int(sip.Move, 400)}, 0, 0.4, 0},
		{"MOVE backwards", []sip.Command{sip.Int(sip.Move, -250)}, 0, -0.25, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connected(t, Config{}, true)
			for _, m := range tt.commands {
				c.send(m)
			}
			c.feed(60, Lines{})
			if _, w := c.pace(); w*tt.way < 0 || (tt.way == 0) != near(w, 0, 1e-6) {
				t.Errorf("turns at %.3f rad/s, want sign %v", w, tt.way)
			}
			if !near(math.Remainder(float64(c.last.Control)*sip.AngleUnit-tt.th*deg, 2*math.Pi), 0, 0.002) {
				t.Errorf("the set-point is %d units, want %v deg", c.last.Control, tt.th)
			}
			c.run(6 * time.Second)
			p, th := c.pose(), float64(c.last.Th)*sip.AngleUnit
			if !near(math.Remainder(th-tt.th*deg, 2*math.Pi), 0, 0.2*deg) || !near(p[0], tt.x, 0.001) || !near(p[1], 0, 0.002) || c.last.Moving {
				t.Errorf("at %v, reported heading %.2f deg; want %v deg, x %v", p, th/deg, tt.th, tt.x)
			}
			for i, real := range c.truth() { // without slip odometry is right (AMIGO-POS-07)
				if !near(math.Remainder(real-p[i], 2*math.Pi), 0, 0.001) {
					t.Errorf("truly at %v, believes %v", c.truth(), p)
				}
			}
		})
	}
}

// TestPID: the default gains settle within 300 ms of the end of the profile without overshoot; with more Kp the robot is faster, with less Kv it
// overshoots; Kp 0 does not move; Ki removes the offset under load (AMIGO-PID-02 to 04, AMIGO-OPEN-08).
func TestPID(t *testing.T) {
	step := func(g gains) (settle time.Duration, overshoot float64) { // the response to a step of 10 mm
		c := connected(t, Config{}, true)
		c.send(sip.Int(sip.TransKP, int(g.kp)), sip.Int(sip.TransKV, int(g.kv)), sip.Int(sip.TransKI, int(g.ki)))
		const way = 0.010
		c.r.motion.axes[0].pos += way * sip.TicksPerMetre
		for i := range 150 {
			c.feed(1, Lines{})
			off := c.pose()[0] - way
			overshoot = max(overshoot, off/way)
			if !near(off, 0, 0.02*way+1/sip.TicksPerMetre) {
				settle = time.Duration(i) * cycle
			}
		}
		return settle, overshoot
	}
	normal, over := step(gains{40, 80, 0})
	if normal > 300*time.Millisecond || over > 0.02 {
		t.Errorf("default gains settle in %v, overshoot %.3f", normal, over)
	}
	if slow, _ := step(gains{15, 80, 0}); slow <= normal {
		t.Errorf("with less Kp it settles in %v, with the default in %v", slow, normal)
	}
	if _, more := step(gains{120, 10, 0}); more < 0.1 {
		t.Errorf("with much Kp and little Kv it overshoots by %.3f only", more)
	}
	if at, over := step(gains{0, 80, 0}); over > 0 || at < time.Second {
		t.Errorf("without Kp it moves: %v, %v", at, over)
	}
	for ki, want := range map[int]float64{0: 0.25 * 255 * pidScale / 40 / sip.TicksPerMetre, 40: 0} { // load / Kp
		c := connected(t, Config{}, true)
		c.send(sip.Int(sip.TransKI, ki))
		c.r.SetDrag(0.25, 0.25)
		c.run(20 * time.Second)
		if off := -c.pose()[0]; !near(off, want, 0.0003) {
			t.Errorf("under load with Ki %d it is off by %.4f m, want %.4f", ki, off, want)
		}
	}
	c := connected(t, Config{}, true)
	c.send(sip.Int(sip.TransKP, 0))
	c.send(vel2(10, 10)) // translation's gains drive the wheels in direct mode
	c.run(time.Second)
	if p := c.pose(); p != (plane.Pose{}) {
		t.Errorf("VEL2 without Kp moved to %v", p)
	}
}

// TestModes: VEL2 and motion control exclude each other (AMIGO-MOT-01 to 04), limits and ceilings (AMIGO-MOT-07, AMIGO-MOT-08).
func TestModes(t *testing.T) {
	for _, tt := range []struct {
		name       string
		commands   []sip.Command
		ahead      float64 // m/s
		turn, head float64 // deg/s; deg of Control relative to Th
	}{
		{"VEL and RVEL", []sip.Command{sip.Int(sip.Vel, 100), sip.Int(sip.RVel, 20)}, 0.1, 20, 0},
		{"VEL2 abandons them", []sip.Command{sip.Int(sip.Vel, 100), sip.Int(sip.RVel, 20), vel2(4, 4)}, 0.08, 0, 0},
		{"VEL2 drops the heading", []sip.Command{sip.Int(sip.Head, 170), vel2(3, 3)}, 0.06, 0, 0},
		{"HEAD leaves VEL2", []sip.Command{vel2(4, 4), sip.Int(sip.Head, 0)}, 0, 0, 0},
		{"VEL leaves VEL2", []sip.Command{vel2(-4, 4), sip.Int(sip.Vel, 50)}, 0.05, 0, 0},
		{"RVEL leaves VEL2", []sip.Command{vel2(4, 4), sip.Int(sip.RVel, 10)}, 0, 10, 0},
		{"VEL clamped to SETV", []sip.Command{sip.Int(sip.Vel, 900)}, 0.3, 0, 0},
		{"RVEL clamped to SETRV", []sip.Command{sip.Int(sip.SetRV, 30), sip.Int(sip.RVel, 100)}, 0, 30, 0},
		{"VEL2 is not", []sip.Command{vel2(30, 30)}, 0.6, 0, 0},
		{"the wheels' ceiling", []sip.Command{sip.Int(sip.SetV, 5000), sip.Int(sip.SetA, 4000), sip.Int(sip.Vel, 5000)}, 0.75, 0, 0},
		{"the turn's ceiling", []sip.Command{sip.Int(sip.SetRV, 5000), sip.Int(sip.SetRA, 360), sip.Int(sip.RVel, 360)}, 0, 300, 0},
		{"VEL2 keeps its sign", []sip.Command{vel2(-1, 1)}, 0, 0.02 / track * 2 / deg, 0},
		{"resent zero and goal", []sip.Command{sip.Int(sip.Vel, 100), sip.Int(sip.RVel, 0), sip.Int(sip.Vel, 100), sip.Int(sip.RVel, 0)}, 0.1, 0, 0},
		{"STOP drops the heading", []sip.Command{sip.Int(sip.Head, 170), {Number: sip.Stop}}, 0, 0, 0},
		{"RVEL drops the heading", []sip.Command{sip.Int(sip.Head, 170), sip.Int(sip.RVel, 20)}, 0, 20, 0},
		{"SETO holds the heading", []sip.Command{sip.Int(sip.Head, 170), {Number: sip.SetO}}, 0, 0, 0},
		{"STOP", []sip.Command{sip.Int(sip.Vel, 100), sip.Int(sip.RVel, 20), sip.Int(sip.Stop, 1)}, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connected(t, Config{}, true)
			for _, m := range tt.commands {
				c.send(m)
				c.feed(49, Lines{})
			}
			c.run(5 * time.Second)
			from := c.r.State().Ticks
			c.run(time.Second)
			to := c.r.State().Ticks
			left, right := float64(to[0]-from[0])/sip.TicksPerMetre, float64(to[1]-from[1])/sip.TicksPerMetre
			ahead, turn := (left+right)/2, (right-left)/track
			if !near(ahead, tt.ahead, 0.002+0.01*tt.ahead) || !near(turn/deg, tt.turn, 0.2+0.01*tt.turn) {
				t.Errorf("%.3f m/s, %.2f deg/s; want %v, %v", ahead, turn/deg, tt.ahead, tt.turn)
			}
			if off := math.Remainder(float64(c.last.Control-c.last.Th), 4096); math.Abs(off) > 3 {
				t.Errorf("Control is off Th by %v units", off)
			}
		})
	}
}

// TestSaturation: a robot at its ceiling halts as fast as another one; no set-point has run away (AMIGO-MOT-08).
func TestSaturation(t *testing.T) {
	c := connected(t, Config{}, true)
	c.send(sip.Int(sip.SetV, 2200), sip.Int(sip.SetA, 4000), sip.Int(sip.SetA, -4000), sip.Int(sip.Vel, 2200))
	c.run(5 * time.Second)
	from := c.pose()[0]
	c.send(sip.Command{Number: sip.Stop})
	c.run(3 * time.Second)
	// The set-point needs 2.2²/2/4 m; the PID's lag comes on top.
	if way := c.pose()[0] - from; way > 0.605+0.1 {
		t.Errorf("halts after %.3f m", way)
	}
}

// TestEStop brakes harder than STOP and holds until the next velocity command for the axis (AMIGO-MOT-09, AMIGO-MOT-10, AMIGO-OPEN-10); ENABLE 0
// takes the power away and clears the set-points (AMIGO-MOT-11, AMIGO-CMD-04).
func TestEStop(t *testing.T) {
	stopping := func(m sip.Command) float64 {
		c := connected(t, Config{}, true)
		c.send(sip.Int(sip.Vel, 300), sip.Int(sip.RVel, 50))
		c.run(3 * time.Second)
		c.send(sip.Command{Number: sip.SetO})
		c.send(m)
		c.run(3 * time.Second)
		return math.Hypot(c.pose()[0], c.pose()[1])
	}
	// 0.3²/2/a; the lag of the PID comes on top.
	if stop, estop := stopping(sip.Command{Number: sip.Stop}), stopping(sip.Int(sip.EStop, 1)); stop < 0.15 || estop > 0.05 {
		t.Errorf("STOP takes %.3f m, E_STOP %.3f m", stop, estop)
	}
	direct := connected(t, Config{}, true)
	direct.send(vel2(20, 10))
	direct.run(3 * time.Second)
	direct.send(sip.Command{Number: sip.EStop})
	direct.run(time.Second)
	if v, w := direct.pace(); !near(v, 0, 1e-3) || !near(w, 0, 1e-3) {
		t.Errorf("E_STOP after VEL2: %.3f m/s, %.3f rad/s", v, w)
	}
	c := connected(t, Config{}, true)
	c.send(sip.Int(sip.Head, 90), sip.Int(sip.Vel, 100))
	c.feed(50, Lines{})
	c.send(sip.Command{Number: sip.EStop})
	c.run(2 * time.Second)
	if v, w := c.pace(); !near(v, 0, 1e-3) || !near(w, 0, 1e-3) || !c.r.State().Motors {
		t.Errorf("after E_STOP %.3f m/s, %.3f rad/s", v, w)
	}
	c.send(sip.Int(sip.DHead, 10)) // releases the rotation alone
	c.run(3 * time.Second)
	th := c.pose()[2]
	c.send(sip.Int(sip.Vel, 80))
	c.run(2 * time.Second)
	if v, _ := c.pace(); !near(v, 0.08, 0.002) || !near(c.pose()[2], th, 0.01) {
		t.Errorf("VEL after E_STOP: %.3f m/s, heading %.3f, was %.3f", v, c.pose()[2], th)
	}
	c.send(sip.Int(sip.Enable, 0))
	c.feed(30, Lines{})
	if v, _ := c.pace(); !near(v, 0, 1e-3) || c.r.State().PWM != [2]float64{} {
		t.Errorf("without motors %.3f m/s", v)
	}
	c.send(sip.Int(sip.Vel, 200)) // ignored
	c.send(sip.Int(sip.Enable, 1))
	at := c.pose()
	c.run(time.Second)
	if c.pose() != at {
		t.Errorf("after ENABLE 1 it moved from %v to %v", at, c.pose())
	}
}

// TestWatchdog: drives stop WatchDog ms after the last valid command and resume with the next (AMIGO-SAFE-01, AMIGO-SAFE-02).
func TestWatchdog(t *testing.T) {
	for _, tt := range []struct {
		name, watchdog string
		keep           Lines // sent every second
		stops          time.Duration
	}{
		{"default", "2000", Lines{}, 2 * time.Second},
		{"short", "300", Lines{}, 300 * time.Millisecond},
		{"off", "0", Lines{}, 0},
		{"damaged packets do not count", "2000", Lines{Control: unhex(t, "FAFB03000001")}, 2 * time.Second},
		{"valid ones do", "2000", Lines{Control: unhex(t, "FAFB03000000")}, 0},
		{"so do those with a wrong argument", "2000", Lines{Control: unhex(t, "FAFB060B3C01000C3C")}, 0},
		{"unknown commands do", "2000", Lines{Control: unhex(t, "FAFB03FE00FE")}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMemory("1.3")
			if err := m.Params.Set("WatchDog", tt.watchdog); err != nil {
				t.Fatal(err)
			}
			c := connected(t, Config{Memory: m}, true)
			c.send(sip.Int(sip.Vel, 100), sip.Int(sip.SetRV, 30), sip.Int(sip.Head, 170))
			sent := c.r.State().Time - cycle
			var stopped time.Duration
			for i := range 600 {
				in := Lines{}
				if i%100 == 99 {
					in = tt.keep
				}
				c.feed(1, in)
				if s := c.r.State(); s.Silent && stopped == 0 {
					stopped = s.Time - cycle - sent
				}
			}
			if stopped != tt.stops {
				t.Errorf("stopped after %v, want %v", stopped, tt.stops)
			}
			v, _ := c.pace()
			if tt.stops > 0 && v != 0 && !near(v, 0, 1e-3) || tt.stops == 0 && !near(v, 0.1, 0.002) {
				t.Errorf("then drives at %.3f m/s", v)
			}
			c.send(sip.Command{Number: sip.Pulse})
			c.feed(150, Lines{})
			if v, _ := c.pace(); c.r.State().Silent == (tt.stops > 150*cycle || tt.stops == 0) || tt.stops > time.Second && !near(v, 0.1, 0.002) {
				t.Errorf("after the next command %.3f m/s, %+v", v, c.r.State())
			}
			off, th := float64(c.last.Control-c.last.Th)*sip.AngleUnit, float64(c.last.Th)*sip.AngleUnit
			if tt.stops > time.Second && (math.Abs(off) > 1*deg || th > 90*deg) {
				t.Errorf("the heading set-point is %.3f rad off the heading %.3f, want the one at which it stopped", off, th)
			}
		})
	}
}

// TestStall: a wheel that is pushed and does not turn costs the motors their power for StallCount, and the client hears which one it is
// (AMIGO-SAFE-03, AMIGO-SAFE-04, AMIGO-SIM-04, AMIGO-OPEN-09, AMIGO-OPEN-18).
func TestStall(t *testing.T) {
	wall := &plane.Map{Walls: []plane.Wall{{From: plane.Vec{0.5, -1}, To: plane.Vec{0.5, 1}}}}
	for _, tt := range []struct {
		name    string
		cfg     Config
		faults  Faults
		command sip.Command
		want    uint16
		cycles  int // without power
		set     [2]string
	}{
		{"wall", Config{World: wall}, Faults{}, sip.Int(sip.Vel, 200), sip.StallLeft | sip.StallRight, 10, [2]string{}},
		{"left wheel held", Config{}, Faults{Blocked: [2]bool{true, false}}, vel2(10, 0), sip.StallLeft, 10, [2]string{}},
		{"right wheel held", Config{}, Faults{Blocked: [2]bool{false, true}}, vel2(0, 10), sip.StallRight, 10, [2]string{}},
		{"dead encoder", Config{}, Faults{DeadEncoder: [2]bool{true, false}}, vel2(10, 0), sip.StallLeft, 10, [2]string{}},
		{"longer wait", Config{World: wall}, Faults{}, sip.Int(sip.Vel, 200), sip.StallLeft | sip.StallRight, 40, [2]string{"StallCount", "400"}},
		{"never", Config{World: wall}, Faults{}, sip.Int(sip.Vel, 200), 0, 0, [2]string{"StallVal", "256"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Memory = NewMemory("1.3")
			if tt.set[0] != "" {
				if err := tt.cfg.Memory.Params.Set(tt.set[0], tt.set[1]); err != nil {
					t.Fatal(err)
				}
			}
			c := connected(t, tt.cfg, true)
			c.r.SetFaults(tt.faults)
			c.send(tt.command)
			n, off, seen := 0, 0, uint16(0)
			for ; n < 600 && (off == 0 || c.r.State().PWM == [2]float64{}); n++ {
				c.run(cycle)
				if s := c.r.State(); s.Stalled != [2]bool{} && s.PWM == [2]float64{} {
					off++
				}
			}
			c.run(100 * time.Millisecond)
			seen = c.last.Bumpers
			// The first pulses after it are weak, so that they round to 0.
			if seen != tt.want || tt.cycles > 0 && (off <= tt.cycles || off > tt.cycles+3) || tt.cycles == 0 && off > 0 {
				t.Errorf("bumpers %#x after %d cycles, %d without power; want %#x, %d", seen, n, off, tt.want, tt.cycles)
			}
			c.r.SetFaults(Faults{}) // the wheel is free again: it drives on by itself
			_ = c.r.InWorld(func(w *plane.World) error { return w.PutDown(plane.Pose{-2, 0, 0}) })
			c.run(3 * time.Second)
			if v, w := c.pace(); c.last.Bumpers != 0 || math.Abs(v)+math.Abs(w) < 0.05 {
				t.Errorf("free again: bumpers %#x, %.3f m/s", c.last.Bumpers, v)
			}
		})
	}
}

// TestStallThreshold: a pushed wheel is stalled when it turns by less than 5 ticks in 100 ms (AMIGO-OPEN-09).
func TestStallThreshold(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pwm    float64
		ticks  []int // in a cycle, again and again
		cycles int   // until it is stalled; 0: never
	}{
		{"blocked", 255, []int{0}, 10},
		{"blocked backwards", -255, []int{0}, 10},
		{"4 ticks", 255, []int{1, 0, 1, 0, 1, 0, 1, 0, 0, 0}, 10},
		{"5 ticks", 255, []int{1, 0, 1, 0, 1, 0, 1, 0, 1, 0}, 0},
		{"5 ticks backwards", 255, []int{-1, 0, -1, 0, -1, 0, -1, 0, -1, 0}, 0},
		{"pushed less", 254, []int{0}, 0},
	} {
		c := connected(t, Config{}, true)
		got := 0
		for i := range 100 {
			c.r.motion.pwm = [2]float64{tt.pwm, 0}
			c.r.watchStall([2]int{tt.ticks[i%len(tt.ticks)], 0})
			if c.r.motion.stalled[0] && got == 0 {
				got = i + 1
			}
		}
		if got != tt.cycles {
			t.Errorf("%s: stalled after %d cycles, want %d", tt.name, got, tt.cycles)
		}
	}
}

// TestOdometry: over random paths the robot believes to be where it is, and the client's sums of wrapped coordinates agree; a wrong RevCount turns
// it wrong by its share (AMIGO-POS-01 to 06, AMIGO-SIP-03 to 05).
func TestOdometry(t *testing.T) {
	for _, revCount := range []int{23310, 23310 * 11 / 10} {
		for seed := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 1))
			c := connected(t, Config{Seed: seed}, true)
			c.send(sip.Int(sip.RevCount, revCount), sip.Int(sip.SetV, 700), sip.Int(sip.Encoder, 1))
			var x, y float64 // m, as a client sums them
			last := c.last
			for range 120 {
				switch rng.IntN(3) {
				case 0:
					c.send(sip.Int(sip.Vel, rng.IntN(1200)-400), sip.Int(sip.RVel, rng.IntN(120)-60))
				case 1:
					c.send(vel2(int8(rng.IntN(60)-20), int8(rng.IntN(60)-20)))
				case 2:
					c.send(sip.Int(sip.Head, rng.IntN(360)), sip.Int(sip.Vel, rng.IntN(700)))
				}
				for range 10 {
					c.feed(10, Lines{})
					dx, dy := sip.Unwrap(last.X, c.last.X), sip.Unwrap(last.Y, c.last.Y)
					if max(dx, -dx, dy, -dy) >= 0x1000 {
						t.Fatalf("a step of %d, %d units", dx, dy)
					}
					x, y, last = x+float64(dx)*sip.DistanceUnit, y+float64(dy)*sip.DistanceUnit, c.last
				}
			}
			c.send(sip.Command{Number: sip.EStop})
			c.run(2 * time.Second)
			for range 2 {
				x, y = x+float64(sip.Unwrap(last.X, c.last.X))*sip.DistanceUnit, y+float64(sip.Unwrap(last.Y, c.last.Y))*sip.DistanceUnit
				last = c.last
			}
			p := c.pose()
			if !near(x, p[0], 0.001) || !near(y, p[1], 0.001) {
				t.Errorf("seed %d: a client finds %.4f, %.4f; the robot believes %v", seed, x, y, p)
			}
			if real := c.truth(); revCount == 23310 && math.Hypot(real[0]-p[0], real[1]-p[1]) > 0.005 {
				t.Errorf("seed %d: truly at %v, believes %v", seed, real, p)
			}
			var e sip.Encoders
			all := c.take(sip.TypeEncoders)
			if err := e.Parse(all[len(all)-1]); err != nil {
				t.Fatal(err)
			}
			turned := float64(e.Right-e.Left) / 2 / float64(revCount) * 2 * math.Pi
			real := float64(e.Right-e.Left) / 2 / 23310 * 2 * math.Pi
			if !near(math.Remainder(turned-p[2], 2*math.Pi), 0, 1e-6) || !near(math.Remainder(real-c.truth()[2], 2*math.Pi), 0, 0.002) {
				t.Errorf("seed %d, RevCount %d: heading %.4f, by the encoders %.4f; truly %.4f, by the encoders %.4f", seed, revCount, p[2], turned,
					c.truth()[2], real)
			}
			c.send(sip.Command{Number: sip.SetO})
			if s := c.r.State(); s.Pose != (plane.Pose{}) || s.Ticks != [2]int32{e.Left, e.Right} {
				t.Errorf("after SETO %v, ticks %v", s.Pose, s.Ticks)
			}
		}
	}
}

// TestDrift: on a floor that slips the robot is not where it believes to be (AMIGO-POS-07).
func TestDrift(t *testing.T) {
	c := connected(t, Config{World: &plane.Map{Slip: 0.2}}, true)
	c.send(sip.Int(sip.Vel, 200))
	c.run(10 * time.Second)
	if truth, believed := c.truth()[0], c.pose()[0]; truth > 0.95*believed || truth < 0.8*believed {
		t.Errorf("truly at %.3f m, believes %.3f", truth, believed)
	}
	c.send(sip.Command{Number: sip.Close})
	c.feed(100, Lines{})
	c.connect() // the next session begins at the origin (AMIGO-SYNC-18)
	c.feed(10, Lines{})
	if c.last.X != 0 || c.last.Th != 0 || c.pose() != (plane.Pose{}) {
		t.Errorf("the next session begins at %v", c.pose())
	}
}
