package power

import (
	"fmt"
	"time"
)

// StatusCalm is the bit of RobotStatus in calm power mode (VEC-PWR-20).
const StatusCalm uint32 = 0x400

// Behavior names one that runs; only behaviours ask for savings and sleep (VEC-PWR-24). 0 is none.
type Behavior uint16

// MaxSavers is how many behaviours can ask at once: a stack of behaviours is not that deep.
const MaxSavers = 16

// Saver counts the requests for calm power mode: the mode lasts until the last request is taken back (VEC-PWR-24). The zero value
// has no requests.
type Saver struct {
	who   [MaxSavers]Behavior
	count [MaxSavers]uint16
}

// Request adds one. False: b is none, or too many ask already; then nothing changed.
func (s *Saver) Request(b Behavior) bool {
	free := -1
	for i, who := range s.who {
		if who == b && b != 0 {
			if s.count[i] == 1<<16-1 {
				return false
			}
			s.count[i]++
			return true
		}
		if who == 0 && free < 0 {
			free = i
		}
	}
	if b == 0 || free < 0 {
		return false
	}
	s.who[free], s.count[free] = b, 1
	return true
}

// Release takes one back. False: b has none.
func (s *Saver) Release(b Behavior) bool {
	for i, who := range s.who {
		if who == b && b != 0 {
			if s.count[i]--; s.count[i] == 0 {
				s.who[i] = 0
			}
			return true
		}
	}
	return false
}

// End takes all of b's back: it has ended, however it did.
func (s *Saver) End(b Behavior) {
	for i, who := range s.who {
		if who == b {
			s.who[i], s.count[i] = 0, 0
		}
	}
}

// Calm reports whether anybody asks.
func (s *Saver) Calm() bool { return s.who != [MaxSavers]Behavior{} }

// Allowance says which parts of a robot may run.
type Allowance struct {
	CameraHz  float64       // 0: suspended
	Display   bool          //
	ProxEvery time.Duration // between distances; 0: the range finder is off
	CPUMHz    int           // the processor's clock (VEC-PWR-23: 533 at start)
	Cloud     bool          // wake word and cloud
}

// Own defaults but for the 533 MHz.
var (
	allowanceActive = Allowance{CameraHz: 15, Display: true, ProxEvery: 33 * time.Millisecond, CPUMHz: 533, Cloud: true}
	allowanceCalm   = Allowance{CameraHz: 5, Display: true, ProxEvery: 100 * time.Millisecond, CPUMHz: 400, Cloud: true}
	allowanceAsleep = Allowance{CameraHz: 0, Display: true, ProxEvery: 500 * time.Millisecond, CPUMHz: 267, Cloud: true}
)

const leastMHz = 200 // the least the processor is set to (own default)

// Allow returns what is left of everything: in calm mode and asleep it is less (VEC-PWR-20, VEC-PWR-33), and so it is while battery or processor is
// warm; a hot robot thinks as little as it can (VEC-PWR-10, VEC-PWR-12). A battery that runs down takes part after part (VEC-PWR-07).
func Allow(calm, asleep bool, hottest Heat, s Shed) Allowance {
	a := allowanceActive
	switch {
	case asleep:
		a = allowanceAsleep
	case calm || hottest >= Warm:
		a = allowanceCalm
	}
	if hottest >= Hot {
		a.CPUMHz = leastMHz
	}
	if s >= ShedTalk {
		a.Cloud = false
	}
	if s >= ShedSight {
		a.CameraHz, a.Display, a.ProxEvery = 0, false, 0
	}
	if s >= ShedWork {
		a.CPUMHz = leastMHz
	}
	return a
}

// Sleep is where a robot is between awake and comatose (VEC-PWR-30). The zero value is that nothing was decided yet.
type Sleep uint8

// The states, with the names of the original.
const (
	SleepNothing Sleep = iota
	Awake
	CheckingForPerson
	GoingToCharger
	PreSleepAnimation
	LightSleep
	DeepSleep
	Comatose
	SleepOnCharger
	HeldInPalmSleep
	SleepOnPalm
	EmergencySleep
	numSleeps
)

var sleepNames = [numSleeps]string{"Nothing", "Awake", "CheckingForPerson", "GoingToCharger", "PreSleepAnimation", "LightSleep", "DeepSleep",
	"Comatose", "SleepOnCharger", "HeldInPalmSleep", "SleepOnPalm", "EmergencySleep"}

func (s Sleep) String() string {
	if s < numSleeps {
		return sleepNames[s]
	}
	return fmt.Sprintf("Sleep(%d)", uint8(s))
}

// ParseSleep reads a state by its name; false: there is none of that name.
func ParseSleep(name string) (Sleep, bool) {
	for s, n := range sleepNames {
		if n == name {
			return Sleep(s), true
		}
	}
	return SleepNothing, false
}

// Asleep reports whether s is one of the sleep states.
func (s Sleep) Asleep() bool { return s >= LightSleep && s < numSleeps }

// SleepReason is why a robot fell asleep, WakeReason why it woke up (VEC-PWR-31). The zero values are that it did not.
type (
	SleepReason uint8
	WakeReason  uint8
)

// The reasons.
const (
	Sleepy SleepReason = iota + 1
	Emergency
)

// The reasons to wake up.
const (
	Jolted WakeReason = iota + 1
	NotInAir
	PickedUp
	Poked
	Sound
	LightsOn
	NotSleepy
)

var (
	sleepReasons = [...]string{"", "Sleepy", "Emergency"}
	wakeReasons  = [...]string{"", "Jolted", "NotInAir", "PickedUp", "Poked", "Sound", "LightsOn", "NotSleepy"}
)

func (r SleepReason) String() string {
	if int(r) < len(sleepReasons) {
		return sleepReasons[r]
	}
	return fmt.Sprintf("SleepReason(%d)", uint8(r))
}

func (r WakeReason) String() string {
	if int(r) < len(wakeReasons) {
		return wakeReasons[r]
	}
	return fmt.Sprintf("WakeReason(%d)", uint8(r))
}

// legal holds, by state, the states that may follow; the source has no table (VEC-PWR-31). From everywhere an emergency leads to its sleep;
// only a charger or a person's help leads out of it.
var legal = [numSleeps][]Sleep{
	SleepNothing:      {Awake, EmergencySleep},
	Awake:             {SleepNothing, GoingToCharger, PreSleepAnimation, HeldInPalmSleep, EmergencySleep},
	GoingToCharger:    {Awake, PreSleepAnimation, EmergencySleep},
	PreSleepAnimation: {Awake, LightSleep, DeepSleep, SleepOnCharger, EmergencySleep},
	CheckingForPerson: {Awake, LightSleep, DeepSleep, SleepOnCharger, EmergencySleep},
	LightSleep:        {Awake, CheckingForPerson, DeepSleep, SleepOnCharger, EmergencySleep},
	DeepSleep:         {Awake, CheckingForPerson, LightSleep, Comatose, SleepOnCharger, EmergencySleep},
	Comatose:          {Awake, SleepOnCharger, EmergencySleep},
	SleepOnCharger:    {Awake, CheckingForPerson, LightSleep, Comatose, EmergencySleep},
	HeldInPalmSleep:   {Awake, SleepOnPalm, EmergencySleep},
	SleepOnPalm:       {Awake, HeldInPalmSleep, LightSleep, EmergencySleep},
	EmergencySleep:    {Awake, SleepOnCharger},
}

// Sleeper is a robot's sleep. The zero value has decided nothing.
type Sleeper struct {
	State     Sleep
	LastSleep SleepReason
	LastWake  WakeReason
}

// IllegalSleep is a refused transition.
type IllegalSleep struct {
	From, To Sleep
	Why      string
}

func (e IllegalSleep) Error() string {
	return fmt.Sprintf("power: from %v to %v: %s", e.From, e.To, e.Why)
}

// FallAsleep goes to a sleep state for a reason. From one sleep state to another the reason stays what it was, unless there is an emergency.
func (s Sleeper) FallAsleep(to Sleep, why SleepReason) (Sleeper, error) {
	switch {
	case !to.Asleep():
		return s, IllegalSleep{s.State, to, "want a sleep state"}
	case !s.may(to):
		return s, IllegalSleep{s.State, to, "not a legal transition"}
	case (to == EmergencySleep) != (why == Emergency) || why < Sleepy || why > Emergency:
		return s, IllegalSleep{s.State, to, fmt.Sprintf("reason %q does not allow it", why)}
	}
	if !s.State.Asleep() || why == Emergency {
		s.LastSleep = why
	}
	s.State = to
	return s, nil
}

// WakeUp leaves sleep for a reason.
func (s Sleeper) WakeUp(why WakeReason) (Sleeper, error) {
	switch {
	case !s.State.Asleep() && s.State != CheckingForPerson:
		return s, IllegalSleep{s.State, Awake, "not asleep"}
	case why < Jolted || why > NotSleepy:
		return s, IllegalSleep{s.State, Awake, "want a reason to wake up"}
	}
	s.State, s.LastWake = Awake, why
	return s, nil
}

// Go changes between states that are no sleep, or to CheckingForPerson.
func (s Sleeper) Go(to Sleep) (Sleeper, error) {
	switch {
	case to.Asleep() || to >= numSleeps:
		return s, IllegalSleep{s.State, to, "want a state other than sleep"}
	case s.State.Asleep() && to == Awake:
		return s, IllegalSleep{s.State, to, "want a wake-up with a reason"}
	case !s.may(to):
		return s, IllegalSleep{s.State, to, "not a legal transition"}
	}
	s.State = to
	return s, nil
}

func (s Sleeper) may(to Sleep) bool {
	for _, next := range legal[s.State] {
		if next == to {
			return true
		}
	}
	return false
}
