package plan

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"kennel/infra/errs"
)

// Behaviour says how often a robot does what costs.
type Behaviour struct {
	Status    time.Duration // between two words that it is there
	Flush     time.Duration // events wait so long for company
	Telemetry time.Duration // battery, loop and computer as events

	EventsPerHour, SettingsPerHour, LoginsPerDay float64
}

// behaviours are those of robotsim fleet with the same names; a test of cmd/bench compares them.
var behaviours = map[string]Behaviour{
	"idle":   {Status: time.Minute, Flush: 30 * time.Second, Telemetry: 10 * time.Minute},
	"lively": {Status: 20 * time.Second, Flush: 5 * time.Second, Telemetry: 2 * time.Minute, EventsPerHour: 360, SettingsPerHour: 6, LoginsPerDay: 25},
}

// Behaviours lists the names that BehaviourOf knows.
func Behaviours() []string { return slices.Sorted(maps.Keys(behaviours)) }

// BehaviourOf returns the behaviour of that name (kind Invalid).
func BehaviourOf(name string) (Behaviour, error) {
	b, ok := behaviours[name]
	if !ok {
		return b, errs.New(errs.Invalid, "profile %.40q: want %s", name, strings.Join(Behaviours(), " or "))
	}
	return b, nil
}

// ActsOf returns how many acts robots of a behaviour do in a second on average, while so many processes store their events. A robot sends
// a batch each Flush if an event came meanwhile; batches that arrive while a process holds a group open are stored together.
func (c Costs) ActsOf(robots, processes int, b Behaviour) map[Act]float64 {
	const hour, day = 3600.0, 86_400.0
	n := float64(robots)
	telemetry, logins := 1/b.Telemetry.Seconds(), b.LoginsPerDay/day
	arrivals := b.EventsPerHour/hour + telemetry
	if c.EventsPerLogin > 0 {
		arrivals += logins
	}
	flush := b.Flush.Seconds()
	batches := n / flush * (1 - math.Exp(-flush*arrivals))
	return map[Act]float64{
		Connected: n,
		Status:    n * (1/b.Status.Seconds() + logins), // it also says so when it connects
		Event:     n * (b.EventsPerHour/hour + telemetry*c.EventsPerTelemetry + logins*c.EventsPerLogin),
		Batch:     batches,
		Group:     batches / (1 + batches/float64(processes)*c.GroupSeconds),
		Setting:   n * b.SettingsPerHour / hour,
		Login:     n * logins,
	}
}

// Second returns what robots of such a behaviour use in a second, the idle cost of the processes included.
func (c Costs) Second(robots, processes int, b Behaviour) Use {
	out := Use{}
	for q, v := range c.Idle {
		out[q] = v * float64(processes)
	}
	for a, n := range c.ActsOf(robots, processes, b) {
		for q, v := range c.Acts[a] {
			out[q] += n * v
		}
	}
	return out
}

// Memory returns the resident bytes of kenneld and of the broker with so many connected robots.
func (c Costs) Memory(robots int) (kenneld, broker float64) {
	return c.KenneldBytes + float64(robots)*c.KenneldPerRobot, c.BrokerBytes + float64(robots)*c.BrokerPerRobot
}
