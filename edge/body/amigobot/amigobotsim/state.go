package amigobotsim

import (
	"context"
	"time"

	"kennel/edge/body/bodysim"
	"kennel/edge/sim/plane"
)

// State is a robot as an onlooker sees it.
type State struct {
	Time     time.Duration
	Mode     Mode
	Motors   bool
	Sonar    bool
	Silent   bool       // the watchdog stopped the drives
	Pose     plane.Pose // where the robot believes to be; the world knows where it is
	Speed    [2]float64 // m/s, of the left and the right wheel
	PWM      [2]float64 // -255 to 255
	Stalled  [2]bool
	Ticks    [2]int32
	Volts    float64
	Charger  Charger
	Warning  bool // the motors are on while the battery charges (AMIGO-SAFE-08)
	Lights   Lights
	Playing  int // number of the present sound, 0: none
	Digout   byte
	Testing  int // the sonar under test
	Stats    Stats
	Faults   Faults
	Stepping bool

	BumpStall int // of BUMPSTALL: 1 front, 2 rear, 3 either, 0 off
}

// State returns the robot as it is now.
func (r *Robot) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state()
}

func (r *Robot) state() State {
	s := State{
		Time: r.now, Mode: r.mode, Motors: r.motors, Sonar: r.sonar.on, Silent: r.silent, Pose: r.pose, Speed: r.speed, PWM: r.motion.pwm,
		Stalled: r.motion.stalled, Ticks: r.ticks, Volts: r.power.volts(), Charger: r.power.charger,
		Warning: r.motors && r.power.charger != NoCharger, Lights: r.lights(), Digout: r.io.out & r.outputs(), Testing: r.panel.phase,
		Stats: r.stats, Faults: r.faults, Stepping: r.stepping, BumpStall: r.bumpStall,
	}
	if r.now < r.sound.until {
		s.Playing = r.sound.playing
	}
	return s
}

// Await blocks until cond holds, looking after each Step, and returns the state in which it did, or ctx's error.
func (r *Robot) Await(ctx context.Context, cond func(State) bool) (State, error) {
	return bodysim.Await(ctx, r.changed, r.state, cond)
}

// InWorld runs fn on the robot's world between two steps, and returns fn's error.
func (r *Robot) InWorld(fn func(*plane.World) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fn(r.world)
}

// Resume ends stepping: time passes by itself again (AMIGO-CMD-64).
func (r *Robot) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stepping = false
}
