// Package aibosim is an AIBO's body at the other end of the joint protocol (package jointlink): servos that push against the floor and their own stops, paws
// that feel it, a battery, and statics that say how the body rests and when it tips.
//
//	robot.go    the body: a Step every 8 ms, no clock and no port, so that a test is its time
//	servo.go    one joint: a PID with limits of speed, range and effort
//	hand.go     a person beside it
//	run.go      the body in real time, on a line
//	species.go  the body of a simulated robot
//
// It is not dynamics: a body has no momentum, and one whose weight is beyond its paws is on the floor a row later.
package aibosim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/jointlink"
	"kennel/edge/body/aibo/statics"
	"kennel/edge/body/bodysim"
	"kennel/edge/body/scanbuf"
)

// Own defaults.
const (
	FullVolts  = 8.2
	EmptyVolts = 6.6 // below it the joints have no power

	firmware  = 0x0100
	ampHours  = 2.2
	idleAmps  = 0.5 // of the computer
	jointAmps = 0.4 // of a joint at its full effort
	charges   = 1.0 // A, on the charger
	watchdog  = int(jointlink.Watchdog / jointlink.Period)
)

// Config describes a body. The zero value is an ERS-7 with a full battery that sleeps on the floor.
type Config struct {
	Model     aibo.Model // 0: ERS-7
	Volts     float64    // of the battery, EmptyVolts to FullVolts; 0: full
	OnCharger bool
	Angles    map[string]float64 // by native names, in degrees as AIBO counts, where it does not begin as it sleeps
}

// Robot is one body. Safe for concurrent use.
type Robot struct {
	mu      sync.Mutex
	changed *sync.Cond // broadcast after each Step
	cfg     Config
	body    *statics.Body
	joints  []joint
	angles  []float64 // rad with the device's signs, for statics
	efforts []float64 // N·m
	stance  statics.Stance
	figure  statics.Figure
	window  scanbuf.Window
	goals   jointlink.Goals
	seq     uint32
	heard   int // Steps since the last Goals
	asks    int // Identities to send
	charge  float64
	fell    bool
	falls   int
	inHand  bool
	refused uint64
}

// New returns a body that is on.
func New(cfg Config) (*Robot, error) {
	if cfg.Model == 0 {
		cfg.Model = aibo.Usual
	}
	if cfg.Volts == 0 {
		cfg.Volts = FullVolts
	}
	if !slices.Contains(aibo.Models, cfg.Model) {
		return nil, fmt.Errorf("aibosim: model: expected one of %v, found %v", aibo.Models, cfg.Model)
	}
	if !(cfg.Volts >= EmptyVolts && cfg.Volts <= FullVolts) {
		return nil, fmt.Errorf("aibosim: volts: expected %v to %v, found %v", EmptyVolts, FullVolts, cfg.Volts)
	}
	r := &Robot{cfg: cfg, body: statics.New(cfg.Model), heard: watchdog, charge: (cfg.Volts - EmptyVolts) / (FullVolts - EmptyVolts)}
	r.changed = sync.NewCond(&r.mu)
	begin, _ := aibo.Posture(cfg.Model, "sleep") // every model has one
	for _, j := range aibo.Joints(cfg.Model) {
		degrees := begin[j.Native]
		if v, given := cfg.Angles[j.Native]; given {
			degrees = v
		}
		r.joints = append(r.joints, newJoint(j, degrees*math.Pi/180))
	}
	for name := range cfg.Angles {
		if !slices.ContainsFunc(r.joints, func(j joint) bool { return j.native == name }) {
			return nil, fmt.Errorf("aibosim: joint: expected one of %v, found %.40q", cfg.Model, name)
		}
	}
	r.angles, r.efforts = make([]float64, len(r.joints)), make([]float64, len(r.joints))
	r.rest(statics.Upright)
	return r, nil
}

// rest puts the body on the floor with a direction up, without a fall.
func (r *Robot) rest(up statics.Vec) {
	for i := range r.joints {
		r.angles[i] = r.joints[i].sign * r.joints[i].angle
	}
	r.figure = r.body.Pose(r.angles)
	r.stance = r.figure.Settle(up)
	r.body.Efforts(&r.figure, &r.stance, r.efforts)
}

// Step lets one row of 8 ms pass: it takes what came in on the line and returns out with what the body sends.
func (r *Robot) Step(in, out []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard++
	for len(in) > 0 {
		n := copy(r.window.Space(), in)
		r.window.Fill(n)
		in = in[n:]
		r.take()
	}
	asleep := r.heard > watchdog
	powered := !asleep && (r.charge > 0 || r.cfg.OnCharger)
	amps := idleAmps
	for i := range r.joints {
		j, goal := &r.joints[i], r.goals.Joints[i]
		on := powered && goal.Held && i < r.goals.N
		j.step(on, float64(goal.Position)/1e6, j.sign*r.efforts[i])
		amps += jointAmps * math.Abs(j.load)
	}
	r.settle()
	if r.cfg.OnCharger {
		amps -= charges
	}
	r.charge = min(max(r.charge-amps*jointlink.Period.Hours()/ampHours, 0), 1)
	r.seq++
	for ; r.asks > 0; r.asks-- {
		out = jointlink.AppendIdentity(out, jointlink.Identity{Version: jointlink.Version, Model: uint16(r.cfg.Model), Firmware: firmware, Joints: uint8(len(r.joints))})
	}
	s := r.measure(asleep)
	out = jointlink.AppendState(out, &s)
	r.changed.Broadcast()
	return out
}

// take obeys the whole frames that came in.
func (r *Robot) take() {
	for {
		kind, payload, n, err := jointlink.ParseFrame(r.window.Bytes())
		if errors.Is(err, jointlink.ErrShort) {
			return
		}
		if err != nil {
			r.window.Skip(n)
			continue
		}
		r.window.Take(n)
		switch kind {
		case jointlink.AskType:
			r.asks = 1
		case jointlink.GoalsType:
			var g jointlink.Goals
			if jointlink.ParseGoals(payload, &g) != nil || g.N != len(r.joints) {
				r.refused++
				continue
			}
			r.goals, r.heard = g, 0
		default:
			r.refused++
		}
	}
}

// settle follows the joints to where the body then rests.
func (r *Robot) settle() {
	if r.inHand {
		return
	}
	moved := false
	for i := range r.joints {
		v := r.joints[i].sign * r.joints[i].angle
		moved = moved || v != r.angles[i]
		r.angles[i] = v
	}
	if !moved {
		return // and rests as it did
	}
	r.figure = r.body.Pose(r.angles)
	r.stance = r.figure.Settle(r.stance.Up)
	r.body.Efforts(&r.figure, &r.stance, r.efforts)
	switch {
	case r.stance.Tipped():
		r.fell = true
		r.falls++
	case r.stance.Paws() == 15 && (r.stance.Attitude == statics.Standing || r.stance.Attitude == statics.Sitting):
		r.fell = false
	}
}

// measure returns what the body says of itself.
func (r *Robot) measure(asleep bool) jointlink.State {
	s := jointlink.State{Seq: r.seq, MilliVolts: uint16(math.Round(1000 * r.volts())), N: len(r.joints),
		Pitch: int16(math.Round(1000 * r.stance.Pitch())), Roll: int16(math.Round(1000 * r.stance.Roll()))}
	if !r.inHand {
		s.Status = jointlink.Status(r.stance.Paws()) // the same bits
	}
	for _, f := range [...]struct {
		bit jointlink.Status
		on  bool
	}{{jointlink.Charger, r.cfg.OnCharger}, {jointlink.Fell, r.fell}, {jointlink.Asleep, asleep}} {
		if f.on {
			s.Status |= f.bit
		}
	}
	for i := range r.joints {
		j := &r.joints[i]
		s.Joints[i] = jointlink.Joint{Position: int32(math.Round(1e6 * j.angle)), Load: int16(math.Round(1000 * j.load))}
	}
	return s
}

func (r *Robot) volts() float64 { return EmptyVolts + r.charge*(FullVolts-EmptyVolts) }

// State is a body as an onlooker sees it.
type State struct {
	Model   aibo.Model
	Rows    uint32
	Angles  map[string]float64 // by native names, in degrees as AIBO counts
	Loads   map[string]float64 // share of what the joint can bear
	Stance  statics.Stance
	Volts   float64
	Asleep  bool
	Fell    bool
	Falls   int
	InHand  bool
	Refused uint64 // frames that the body did not understand
}

// State returns the body as it is now.
func (r *Robot) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state()
}

func (r *Robot) state() State {
	s := State{Model: r.cfg.Model, Rows: r.seq, Angles: map[string]float64{}, Loads: map[string]float64{}, Stance: r.stance, Volts: r.volts(),
		Asleep: r.heard > watchdog, Fell: r.fell, Falls: r.falls, InHand: r.inHand, Refused: r.refused}
	for i := range r.joints {
		j := &r.joints[i]
		s.Angles[j.native], s.Loads[j.native] = j.angle*180/math.Pi, j.load
	}
	return s
}

// Await blocks until cond holds, looking after each Step, and returns the state in which it did, or ctx's error.
func (r *Robot) Await(ctx context.Context, cond func(State) bool) (State, error) {
	return bodysim.Await(ctx, r.changed, r.state, cond)
}

// period is the time of a Step.
const period = jointlink.Period
