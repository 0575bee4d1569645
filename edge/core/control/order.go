package control

import (
	"fmt"
	"time"

	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
)

// Self is the owner that the control loop claims for when it calibrates. Peers count from 2.
const Self claim.Owner = 1

// MaxFor is the longest that one order may keep a part moving that needs a deadline; own default.
const MaxFor = time.Minute

// MaxGoals is the number of slots that one order can set.
const MaxGoals = 32

// Kind says what an Order asks for. The zero value asks for nothing.
type Kind uint8

// The kinds of orders.
const (
	_       Kind = iota
	Claim        // the actuators of Set, with Priority, for TTL (0: until Release or Drop)
	Renew        // extends Lease by TTL
	Release      // ends Lease
	Drop         // releases everything that Owner holds, because Owner has gone; it has no result
	Set          // brings the slots of Goals to their values
	Go           // A metres forward (GOSTAI-IF-15.1)
	Turn         // A radians counter-clockwise on the spot
	Stop         // stops all parts, whatever their owner
	Calm         // On: Owner asks for calm power mode; otherwise Owner withdraws that (VEC-PWR-24)
	Sleep        // changes to the state Sleep, for Why (VEC-PWR-31)
	Heat         // the processor has A degrees Celsius; only Self says so, and it has no result (VEC-PWR-10)
)

// moves reports whether an order of this kind moves a part.
func (k Kind) moves() bool { return k >= Set && k <= Turn }

// Goal is a value for one slot of the tree, in the slot's own unit.
type Goal struct {
	Slot  int // robot.Ref.ID
	Value float64
}

// Order is a request to the control loop. It has a fixed size and holds no pointers.
type Order struct {
	Kind    Kind
	Owner   claim.Owner
	Request uint32 // chosen by the owner; comes back in the result

	Set      claim.Set
	Priority claim.Priority
	TTL      time.Duration
	Lease    uint64 // claim.Lease.Number

	Goals [MaxGoals]Goal // the first N
	N     int
	A     float64 // of Go and Turn

	// Speed is how fast a part moves to a position, in the unit of its slot (of Go and Turn: m or rad) a second; 0: the body's recommended speed.
	Speed float64
	// Within is the duration of the motion instead of a speed (GOSTAI-OPEN-03); for a slot that is a speed, the duration of the change; 0: as
	// Speed says.
	Within time.Duration
	// For is the deadline: a part that needs one (Part.Timed) ends its motion then at the latest.
	For time.Duration

	On    bool
	Sleep power.Sleep
	Why   uint8 // a power.SleepReason if Sleep is a sleep state, a power.WakeReason if it ends one, else 0
}

// Code is how an order was answered.
type Code uint8

// The codes. The zero value says that the order is done or under way.
const (
	OK         Code = iota
	Invalid         // a number that cannot be, a deadline that is missing or too far, no legal change of sleep
	Busy            // an owner of the same or a higher priority holds an actuator
	NotHeld         // the owner has not claimed the actuators that it wants to move
	Refused         // a reason to stop holds
	Full            // too many claims, or too many owners that ask for calm
	Gone            // no such lease
	Ended           // the motion ended; see Outcome
	Unable          // this body cannot do that
	Unmeasured      // the goal depends on a value that nothing has measured yet
)

var codes = [...]string{"ok", "invalid", "busy", "not_held", "stopped", "full", "gone", "ended", "unable", "unavailable"}

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

	// The rest of a motion that has begun, within the body's limits.
	Taken  [MaxGoals]float64 // the values that are really aimed at, in the order of the goals (GOSTAI-IF-14.8)
	Takes  time.Duration     // how long the plan takes; 0: there is no plan, or the order names no time
	Speed  float64           // the speed that it may reach, in the order's unit; 0: the order names none
	Homing bool              // the part looks for its zero first, which Takes does not count

	Actuator int // Busy, NotHeld: which
	By       claim.Owner
	Priority claim.Priority
	Stop     motion.Reason  // Refused: why; Ended with motion.Stopped: why
	Outcome  motion.Outcome // Ended: how
	Pose     motion.Pose    // Ended: where
	Moved    float64        // Ended, of Go and Turn: the way that was made, in m or rad
}
