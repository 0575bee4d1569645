package control

import (
	"errors"
	"time"

	"kennel/edge/body"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
)

// Sizes of the fixed tables.
const (
	MaxParts  = 24
	MaxTotals = 8
)

// Part is a group of actuators that one goal moves together: a pair of driven wheels, a joint, the lights.
type Part struct {
	Name    string   // for people: "wheels", "head"
	Devices []string // names of the tree; a motion needs a claim on all their actuators. Without any it holds settings
	Timed   bool     // its motions need a deadline, because the owner may die before they end
	Shared  bool     // a goal needs no claim of its own while no other owner holds the actuators, and is done at once: lights
	Homes   bool     // it looks for its zero when the body was opened (VEC-MOT-07)
	Base    bool     // it moves the whole body: Go and Turn are for this part
}

// Model is a kind of body as the control loop sees it.
type Model struct {
	Tree  *robot.Tree
	Parts []Part
	// Slots are the slots that goals may set, by their ID, with the index of the part that does it.
	Slots map[int]int
	// Totals are the names of Report.Totals: sums that only grow, such as odometers, under the keys of the lifetime statistics (part of VEC-DOC-07).
	Totals []string
	// Make returns the plant of one body. emit takes events and never blocks; held reports whether an owner holds an actuator.
	Make func(board *state.Board, emit func(Event), held func(actuator int) bool) (Plant, error)
}

// Moment holds the facts that the control loop gives its plant in each step.
type Moment struct {
	Now, DT time.Duration // DT is the time since the step before, 0 in the first
	Run     uint32        // counts the bodies that were opened: what a body counts begins again with each
	Opened  bool          // this is the first step of a Run
	Calm    bool          // an owner asks for calm power mode
	Sleep   power.Sleep
	CPU     float64 // degrees Celsius of the processor; NaN: unknown
}

// EaseFor is how long a part that lost its owner may take to slow down (Plant.Rest); own default.
const EaseFor = 500 * time.Millisecond

// Why a plant did not begin, beside the errors of motion.
var (
	ErrUnable     = errors.New("control: this body cannot do that")
	ErrUnmeasured = errors.New("control: a required value was not measured yet")
)

// Plant is one body at work: its detectors, its power limits and its motors. All methods belong to the goroutine of the loop and allocate nothing.
type Plant interface {
	// Feel takes the measurements, writes them to the board and returns the body's reasons to stop.
	Feel(m *Moment, f *rt.Frame) motion.Reason
	// Begin starts o's motion of part p and fills in the values after the limits. motion.ErrStopped says that a reason to stop holds.
	Begin(m *Moment, p int, o *Order, r *Result) error
	// Step moves the body by one step under the given reasons to stop, which include those of Feel, and fills in act.
	Step(m *Moment, stop motion.Reason, act *body.Act)
	// Outcome returns how the newest motion of part p went; motion.Running while it lasts, motion.None for a part of settings.
	Outcome(p int) motion.Outcome
	// Rest ends the motion of part p: it slows down. With letGo its owner lost it: its power goes too, at standstill or after half a second, and
	// settings that the owner made, such as gains, return to those of the body.
	Rest(p int, letGo bool)
	// Home starts the search of part p for its zero; Homed reports whether it knows it.
	Home(p int) error
	Homed(p int) bool
	// Report fills in the state after the step.
	Report(r *Report)
}

// Owning is the owner of an actuator; 0: none.
type Owning struct {
	Owner    claim.Owner
	Priority claim.Priority
}

// PartReport is one part after a step.
type PartReport struct {
	State   string // a word of the plant, such as "holding"; "": it has no states
	Outcome motion.Outcome
	Known   bool // its position is known
}

// Base is how the whole body moves. SI, X forward, Y left, counter-clockwise.
type Base struct {
	Pose       motion.Pose
	Twist      motion.Twist
	Way        float64 // m, the body's odometer
	Unreliable bool    // it was pushed: the pose is wrong from here on
}

// Report holds the state after a step.
type Report struct {
	At      time.Duration
	Stop    motion.Reason
	Moving  bool // a motor has power
	Posture string
	Status  uint32 // RobotStatus
	Base    Base
	Pitch   float64 // robot.Place
	Parts   [MaxParts]PartReport
	Totals  [MaxTotals]float64

	Supply body.Power // facts about battery and charger
	Volts  float64    // of the charger; 0: it is away from it
	Fault  uint16     // numbered fault that the body reports; 0: none
	Power  power.Keeper
	Calm   bool
	Sleep  power.Sleeper

	Owners [claim.MaxActuators]Owning // by actuator, as many as the tree has
	Lost   uint64                     // results and events that found their ring full
}

// Event is something that happened, as the robot's event log names it. Its texts are constants: an event allocates nothing.
type Event struct {
	At      time.Duration
	Name    string // "robot.cliff_detected"
	Warning bool
	Quiet   bool     // for the robot's other programs alone; the event log leaves it out
	N       int      // of Numbers, how many count
	Numbers [4]int64 // i1 to i4
	Texts   [4]string
}
