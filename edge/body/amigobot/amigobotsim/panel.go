package amigobotsim

import (
	"math"
	"time"

	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
)

// Own defaults of the panel and of self-wander, where the manual says "slowly", "rapidly" or nothing.
const (
	armedFor   = 10 * time.Second // AMIGO-TST-02
	slow, fast = 1.0, 5.0         // Hz (AMIGO-OPEN-07)
	trafficFor = 500 * time.Millisecond
	testTurns  = 1.5 // AMIGO-TST-03
	settled    = 30  // ticks from the target
	wanderPace = 0.2 // m/s (AMIGO-OPEN-11)
	wanderTurn = 60 * deg
	wanderRoom = 0.4               // m (AMIGO-OPEN-11)
	backOff    = 0.2               // m
	showEvery  = 180 * time.Second // AMIGO-OPEN-11
)

// panel is the buttons, and the state of the programs that they begin.
type panel struct {
	black   bool          // is pressed
	system  bool          // the black button was down while Reset was released (AMIGO-UI-06)
	since   time.Duration // the mode began, or the last show of self-wander
	traffic time.Duration // the last good packet
	phase   int           // of the motors test, or the sonar under test
}

// Lights are the robot's lights, lit or not at this moment (AMIGO-UI-01, 07 to 10).
type Lights struct{ Power, System, User bool }

func (r *Robot) lights() Lights {
	blink := func(hz float64) bool { return math.Mod(r.now.Seconds()*hz, 1) < 0.5 }
	l := Lights{Power: r.mode != Off}
	switch r.mode {
	case Off, InReset:
	case Connected:
		l.System = blink(fast)
		if r.motors {
			l.System = blink(slow)
		}
		l.User = r.now-r.panel.traffic < trafficFor && blink(fast)
	case SystemMode:
		l.System, l.User = blink(2*slow), true
	case SonarTest:
		near := 1 - min(max((r.sonar.ranges[r.panel.phase]-minRange)/(maxRange-minRange), 0), 1)
		l.System = blink(1 + 9*near)
	default:
		l.System = blink(slow)
	}
	return l
}

// SetPower switches the robot on or off.
func (r *Robot) SetPower(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case on && r.mode == Off:
		r.boot()
	case !on:
		r.halt(Off)
	}
}

// SetReset presses or releases the red button (AMIGO-UI-02).
func (r *Robot) SetReset(pressed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mode == Off:
	case pressed:
		r.halt(InReset)
	case r.mode == InReset && r.panel.black:
		r.panel.system = true
	case r.mode == InReset:
		r.boot()
	}
}

// BrownOut resets the controller, as a dip of the supply does.
func (r *Robot) BrownOut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mode != Off {
		r.halt(InReset)
		r.boot()
	}
}

// halt stops the processor; nothing tells the client (AMIGO-SYNC-19).
func (r *Robot) halt(m Mode) {
	r.mode, r.panel.system = m, false
	r.speed = [2]float64{}
	r.motors, r.motion = false, server{}
	r.parser.Reset()
}

// SetBlack presses or releases the black Motors/Test button.
func (r *Robot) SetBlack(pressed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.panel.black
	r.panel.black = pressed
	switch {
	case pressed == was:
	case !pressed && r.panel.system:
		r.panel.system = false
		r.boot()
		r.mode = SystemMode
		r.play(soundset.SystemMode)
	case !pressed:
	case r.mode == Connected: // AMIGO-UI-05
		r.enable(!r.motors)
	case r.mode == Waiting: // AMIGO-UI-03, AMIGO-TST-01
		r.mode, r.panel.since = Armed, r.now
		r.play(soundset.Version)
		r.play(soundset.TestWarning)
	case r.mode == Armed:
		r.mode, r.panel.phase = MotorsTest, 0
		r.enable(true)
		r.motion.switchTo(true)
		r.spin(1)
	case r.mode == SonarTest: // AMIGO-UI-04
		r.testSonar(r.panel.phase + 1)
	}
}

// spin makes one wheel turn the robot by 1.5 turns.
func (r *Robot) spin(wheel int) {
	r.motion.axes[wheel].travel(r.motion.measured[wheel] + float64(2*testTurns*float64(r.tune.revCount)))
}

// testSonar fires sonar n alone; after the last one the robot wanders (AMIGO-TST-04, AMIGO-TST-05).
func (r *Robot) testSonar(n int) {
	r.sonar.start()
	if n == sip.Sonars {
		r.mode, r.panel.since = Wander, r.now
		r.sonar.sequence = ring[:]
		r.enable(true)
		r.motion.switchTo(false)
		return
	}
	r.mode, r.panel.phase = SonarTest, n
	r.sonar.sequence = []byte{byte(n)}
}

// program is one cycle of the robot's built-in programs.
func (r *Robot) program() {
	switch r.mode {
	case Armed:
		if r.now-r.panel.since >= armedFor {
			r.mode = Waiting
		}
	case MotorsTest: // the right wheel, then the left (AMIGO-TST-03)
		wheel := 1 - r.panel.phase
		if a := &r.motion.axes[wheel]; !a.halted() || math.Abs(r.motion.measured[wheel]-a.target) > settled {
			return
		}
		if r.panel.phase++; r.panel.phase < 2 {
			r.spin(0)
			return
		}
		r.enable(false)
		r.testSonar(0)
	case Wander:
		r.wander()
	}
}

// wander drives on until something is near, and turns away from it (AMIGO-OPEN-11).
func (r *Robot) wander() {
	s, near := &r.motion, &r.sonar.ranges
	trans, rot := &s.axes[0], &s.axes[1]
	left, right := min(near[1], near[2]), min(near[3], near[4])
	quarter := float64(r.tune.revCount) / 4
	switch {
	case rot.toward: // it spins for show, or turns after it backed off
		if rot.halted() {
			rot.run(0)
		}
	case trans.toward: // it backs off
		if trans.halted() || s.stalled[0] || s.stalled[1] {
			trans.run(0)
			rot.travel(s.measured[1] + quarter)
		}
	case s.stalled[0] || s.stalled[1]:
		trans.travel(s.measured[0] - backOff*sip.TicksPerMetre)
		s.stalled = [2]bool{}
	case r.now-r.panel.since >= showEvery:
		r.panel.since = r.now
		trans.run(0)
		rot.travel(s.measured[1] + float64(r.tune.revCount))
		r.play(soundset.FirstUser)
	case min(left, right) >= wanderRoom:
		trans.run(wanderPace * sip.TicksPerMetre)
		rot.run(0)
	case rot.goal == 0:
		trans.run(0)
		rot.run(wanderTurn * r.tune.ticksPerRad())
		if left < right {
			rot.goal = -rot.goal
		}
	}
}
