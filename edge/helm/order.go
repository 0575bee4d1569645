package helm

import (
	"fmt"
	"time"

	"kennel/edge/body"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
)

// Self is the owner that the helm claims for, when it calibrates. Peers count from 2.
const Self claim.Owner = 1

// MaxFor is the longest that one order may drive the treads; own default.
const MaxFor = time.Minute

// Kind says what an Order asks for. The zero value asks for nothing.
type Kind uint8

// The kinds of orders.
const (
	_         Kind = iota
	Claim          // the actuators of Set, with Priority, for TTL (0: until Release or Drop)
	Renew          // Lease for TTL more
	Release        // Lease
	Drop           // everything of Owner, who is gone; it has no result
	SetLights      // Lights, or of them only the colours of Set
	Wheels         // treads at A (left) and B (right), m/s
	Straight       // A m forward
	Turn           // A rad to the left, on the spot
	Head           // to the angle A, rad as the tree counts
	Lift           // to the height A, m
	Stop           // everything comes to rest, whoever moved it
	Calm           // On: Owner asks for calm power mode, else no more (VEC-PWR-24)
	Sleep          // to the state Sleep, for Why (VEC-PWR-31)
	Heat           // the processor has A degrees Celsius; only Self says so, and it has no result (VEC-PWR-10)
)

// moves reports whether an order of this kind moves something.
func (k Kind) moves() bool { return k >= Wheels && k <= Lift }

// Order is a request to the helm, of a fixed size and without pointers.
type Order struct {
	Kind    Kind
	Owner   claim.Owner
	Request uint32 // of the owner's choice; comes back in the result

	Set      claim.Set // of SetLights: three times the light and its colour, 0 to 2; none: all of them
	Priority claim.Priority
	TTL      time.Duration
	Lease    uint64 // claim.Lease.Number

	A, B  float64
	Speed float64 // m/s or rad/s, as A; of a lift the mean of its way; 0: the body's recommended one
	Accel float64 // m/s² or rad/s²; 0: the same
	// For is of the treads when their motion ends at the latest, of Head and Lift how long the way shall take, instead of a speed; 0: as Speed says
	// (GOSTAI-OPEN-03).
	For time.Duration

	Lights [body.MaxLights]body.Light

	On    bool
	Sleep power.Sleep
	Why   uint8 // a power.SleepReason if Sleep is a sleep state, a power.WakeReason if it ends one, else 0
}

// Code is how an order was answered.
type Code uint8

// The codes. The zero value is that it is done or under way.
const (
	OK      Code = iota
	Invalid      // a number that cannot be, a deadline that is missing or too far, no legal change of sleep
	Busy         // somebody of the same or a higher priority owns an actuator
	NotHeld      // the owner does not hold what it wants to move: it was not claimed, or went to somebody else
	Refused      // a reason to stop holds
	Full         // too many claims, or too many who ask for calm
	Gone         // no such lease
	Ended        // the motion ended, see Outcome
)

var codes = [...]string{"ok", "invalid", "busy", "not_held", "stopped", "full", "gone", "ended"}

func (c Code) String() string {
	if int(c) < len(codes) {
		return codes[c]
	}
	return fmt.Sprintf("code(%d)", uint8(c))
}

// Result answers an order.
type Result struct {
	Owner    claim.Owner
	Request  uint32
	Code     Code
	Underway bool   // a motion has begun: another result says how it ends
	Lease    uint64 // of a Claim
	// Of a Head or Lift that has begun, what its limits leave of the order: how long the plan takes, 0 without For; the speed that it may reach, in the
	// order's unit, 0 without Speed. A joint that looks for its zero first has no plan yet.
	Takes    time.Duration
	Speed    float64
	Homing   bool
	Actuator int // Busy, NotHeld: which
	By       claim.Owner
	Priority claim.Priority
	Stop     motion.Reason  // Refused: why
	Outcome  motion.Outcome // Ended: how
	Pose     motion.Pose    // then
}
