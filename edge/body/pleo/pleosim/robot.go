package pleosim

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"kennel/edge/body/bodysim"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/motion"
)

// Own defaults of a Robot.
const (
	FullVolts  = 8.2 // of the battery
	EmptyVolts = 6.6

	period      = 10 * time.Millisecond // of a Step
	ampHours    = 1.2                   // about an hour of activity
	charges     = 1.0                   // A, on the charger
	wakes       = 0.25                  // charge at which a Pleo on its charger switches on again
	sensorOn    = 31                    // the charger is connected
	sensorUSB   = 32
	sensorState = 35 // of the charger
)

// Config describes a Pleo. The zero value is one of firmware 1.1 without a card, with an empty dataflash and a full battery.
type Config struct {
	Profile   lifeos.Profile
	Serial    uint32
	Seed      uint64
	Card      lifeos.Storage // nil: none is inserted
	Flash     lifeos.Storage
	Charge    float64 // of the battery, above 0 to 1; 0: full
	OnCharger bool
	Angles    map[lifeos.Joint]float64 // degrees, where it does not begin at rest
	Slip      float64                  // 0 to below 1: of each step, what it slips back on the floor; the joints do not show it
	Log       func(lifeos.Message)     // nil: only the monitor has the log. It must not call the Robot
}

// Robot is a Pleo as others meet it: its body with LifeOS inside, a battery that gets empty, two ports with the monitor, and hands. Safe for concurrent use.
type Robot struct {
	mu      sync.Mutex
	changed *sync.Cond // broadcast after each Step
	cfg     Config
	body    *Body
	os      *lifeos.System
	base    time.Duration // Time at which os was switched on
	now     time.Duration
	charge  float64
	inHand  bool
	floor   floor
	serial  terminal // for the computer
	usb     terminal // for people
	plans   []plan
	boots   int
	air     *Air // nil: no other Pleo is near

	heardMu sync.Mutex // is taken while mu or an Air's is held
	heard   []lifeos.Signal
}

// plan is an act of a hand in the future.
type plan struct {
	at time.Duration
	do func()
}

// terminal is one of the ports.
type terminal struct {
	line  []byte // as far as it was typed
	long  bool   // the rest of a line that is too long
	cr    bool   // the last byte was a CR, with which an LF ends the same line
	out   []byte
	there bool // a peer is connected
}

// Limits of a port.
const (
	maxTyped = 256     // bytes of a line
	maxOut   = 1 << 16 // bytes that wait for the line; what comes later is lost
)

// NewRobot returns a Pleo that is on.
func NewRobot(cfg Config) (*Robot, error) {
	if cfg.Charge == 0 {
		cfg.Charge = 1
	}
	if !(cfg.Charge > 0 && cfg.Charge <= 1) {
		return nil, fmt.Errorf("pleosim: charge: expected above 0 to 1, found %v", cfg.Charge)
	}
	if !(cfg.Slip >= 0 && cfg.Slip < 1) {
		return nil, fmt.Errorf("pleosim: slip: expected 0 to below 1, found %v", cfg.Slip)
	}
	r := &Robot{cfg: cfg, body: New(), charge: cfg.Charge}
	r.changed, r.body.deaf = sync.NewCond(&r.mu), true
	for j, deg := range cfg.Angles {
		if j < 0 || j >= lifeos.JointCount || deg < j.Kind().Min || deg > j.Kind().Max {
			return nil, fmt.Errorf("pleosim: joint %d: expected 0 to %d within its range, found %v degrees", j, lifeos.JointCount-1, deg)
		}
		r.body.joints[j].position, r.body.joints[j].target = deg, deg
	}
	r.power()
	return r, nil
}

// power feeds the body's readings of its battery, and switches LifeOS on.
func (r *Robot) power() {
	r.feel()
	r.body.Set(lifeos.SensorCardDetect, count(r.cfg.Card != nil))
	r.boots++
	r.base = r.now
	r.os = lifeos.New(lifeos.Config{Profile: r.cfg.Profile, Hardware: r.body, Card: r.cfg.Card, Flash: r.cfg.Flash, Seed: r.cfg.Seed, Serial: r.cfg.Serial,
		Log: r.log, Print: func(line []byte) { r.serial.print(line) }, Transmit: func(s lifeos.Signal) {
			if r.air != nil {
				r.air.carry(r, s)
			}
		}})
	r.body.now = 0 // its time is the one of LifeOS
}

// log takes a message of LifeOS, which prints it on both ports if it is shown.
func (r *Robot) log(m lifeos.Message) {
	if m.Shown {
		line := append([]byte(m.String()), '\n')
		r.serial.print(line)
		r.usb.print(line)
	}
	if r.cfg.Log != nil {
		r.cfg.Log(m)
	}
}

func (t *terminal) print(text []byte) {
	if t.there && len(t.out)+len(text) <= maxOut {
		t.out = append(t.out, text...)
	}
}

// take reads what was typed, and calls run with each whole line. CR, LF and both end a line (PLEO-MON-01).
func (t *terminal) take(in []byte, run func(line string) string) {
	for len(in) > 0 {
		if t.cr && in[0] == '\n' {
			in = in[1:]
		}
		t.cr = false
		end := bytes.IndexAny(in, "\r\n")
		piece := in
		if end >= 0 {
			piece = in[:end]
		}
		if t.long = t.long || len(t.line)+len(piece) > maxTyped; !t.long {
			t.line = append(t.line, piece...)
		}
		if end < 0 {
			return
		}
		t.cr = in[end] == '\r'
		in = in[end+1:]
		line, long := string(t.line), t.long
		t.line, t.long = t.line[:0], false
		if long {
			t.print([]byte("line too long\n"))
		} else {
			t.print([]byte(run(line)))
		}
		t.print([]byte(lifeos.Prompt))
	}
}

func count(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// feel gives the sensors of the battery their readings.
func (r *Robot) feel() {
	r.body.Set(lifeos.SensorBattery, int32(math.Round(100*r.charge)))
	r.body.Set(sensorOn, count(r.cfg.OnCharger))
	r.body.Set(sensorState, count(r.cfg.OnCharger && r.charge < 1))
}

// Step lets 10 ms pass: it takes what came in on the serial port and returns out with what the body sends there.
func (r *Robot) Step(in, out []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serial.there = true
	r.step(in, nil)
	out = append(out, r.serial.out...)
	r.serial.out = r.serial.out[:0]
	r.changed.Broadcast()
	return out
}

// step lets 10 ms pass. The computer's commands are not what a person types: they trigger no SENSOR_TERMINAL.
func (r *Robot) step(serial, usb []byte) {
	r.now += period
	for i := 0; i < len(r.plans); i++ {
		if p := r.plans[i]; p.at <= r.now {
			r.plans = append(r.plans[:i], r.plans[i+1:]...)
			i--
			p.do()
		}
	}
	amps := -charges
	if !r.cfg.OnCharger {
		amps = float64(r.body.Read(sensorCurrent)) / 1000
	}
	if r.os.Power() == lifeos.On || r.cfg.OnCharger {
		r.charge = min(max(r.charge-amps*period.Hours()/ampHours, 0), 1)
	}
	r.feel()
	r.body.Set(sensorUSB, count(r.usb.there))
	if r.os.Power() != lifeos.On {
		if r.cfg.OnCharger && r.charge >= wakes {
			r.power()
		}
		return // and its ports are silent
	}
	r.hear()
	r.serial.take(serial, r.os.Monitor)
	r.usb.take(usb, r.os.Terminal)
	r.body.Run(r.os, r.now-r.base)
	r.stand()
}

// State is a Pleo as an onlooker sees it.
type State struct {
	Time    time.Duration // since New
	Power   lifeos.Power
	Angles  map[lifeos.Joint]float64 // degrees
	Samples int                      // that the loudspeaker has played
	Charge  float64
	Boots   int
	Pose    motion.Pose // on the floor, since New
	Falls   int
}

// State returns the Pleo as it is now.
func (r *Robot) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state()
}

func (r *Robot) state() State {
	s := State{Time: r.now, Power: r.os.Power(), Angles: map[lifeos.Joint]float64{}, Samples: r.body.played, Charge: r.charge, Boots: r.boots, Pose: r.floor.pose, Falls: r.floor.falls}
	for j := range lifeos.JointCount {
		s.Angles[j] = r.body.Joint(j).Position
	}
	return s
}

// Await blocks until cond holds, looking after each Step, and returns the state in which it did, or ctx's error.
func (r *Robot) Await(ctx context.Context, cond func(State) bool) (State, error) {
	return bodysim.Await(ctx, r.changed, r.state, cond)
}

// Set gives a sensor a reading, which it keeps.
func (r *Robot) Set(id lifeos.Sensor, v int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body.Set(id, v)
}

// Block holds a joint, or lets it go.
func (r *Robot) Block(j lifeos.Joint, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body.Block(j, held)
}

// Charge puts the Pleo on its charger or takes it off, with the battery at a level of 0 to 1.
func (r *Robot) Charge(on bool, level float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg.OnCharger, r.charge = on, min(max(level, 0), 1)
}
