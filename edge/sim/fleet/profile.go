package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kennel/infra/config"
	"kennel/infra/errs"
)

// Profile says how robots behave. Rates and spells are in simulated time; with the seed they decide everything (Plan). The zero value of a
// rate means never.
type Profile struct {
	// TimeFactor is how many simulated seconds pass in a real one.
	TimeFactor float64 `koanf:"time_factor"`

	// The agent's own rhythms, in real time: what keeps an idle robot busy.
	Status    time.Duration `koanf:"status"`    // between two words that it is there
	Flush     time.Duration `koanf:"flush"`     // events wait so long for company
	Telemetry time.Duration `koanf:"telemetry"` // battery, loop and computer as events
	Vitals    time.Duration `koanf:"vitals"`    // between two words of the core; under 10 s, or the agent takes it for dead

	Events   float64 `koanf:"events_per_hour"`   // beside the agent's own
	Settings float64 `koanf:"settings_per_hour"` // changed on the robot
	Drops    float64 `koanf:"drops_per_hour"`    // connection lost, and made again
	Reboots  float64 `koanf:"reboots_per_day"`   // a new boot id, and a new throw for the clock

	Offline Offline `koanf:"offline"`
	Clock   Clocks  `koanf:"clock"`
	Network Network `koanf:"network"`
}

// Offline is how often a robot has no network at all, and for how long.
type Offline struct {
	PerDay   float64       `koanf:"per_day"`
	Shortest time.Duration `koanf:"shortest"`
	Longest  time.Duration `koanf:"longest"`
}

// Clocks is how many boots come with a wrong clock. Of those one third begins in 1970, one third is behind, one third is ahead.
type Clocks struct {
	Share  float64       `koanf:"share"`  // of boots, 0 to 1
	Behind time.Duration `koanf:"behind"` // at most
	Ahead  time.Duration `koanf:"ahead"`  // at most; beyond the life of the servers' certificates a robot stays out until its next boot
}

// Network is how many robots have a bad one, and what that means.
type Network struct {
	Share   float64       `koanf:"share"`         // of robots, 0 to 1
	Latency time.Duration `koanf:"latency"`       // one way, give or take a half
	Loss    float64       `koanf:"loss"`          // share of packets that come only when they are sent again
	Stall   time.Duration `koanf:"stall"`         // how much later that is
	Cuts    float64       `koanf:"cuts_per_hour"` // connections lost, beside drops_per_hour
}

// presets are the profiles with a name.
var presets = map[string]Profile{
	"idle": {TimeFactor: 1, Status: time.Minute, Flush: 30 * time.Second, Telemetry: 10 * time.Minute, Vitals: 8 * time.Second},
	"lively": {TimeFactor: 1, Status: 20 * time.Second, Flush: 5 * time.Second, Telemetry: 2 * time.Minute, Vitals: 5 * time.Second,
		Events: 360, Settings: 6, Drops: 1, Reboots: 1},
	// A day takes five minutes.
	"rough": {TimeFactor: 288, Status: 20 * time.Second, Flush: 5 * time.Second, Telemetry: 2 * time.Minute, Vitals: 5 * time.Second,
		Events: 1.25, Settings: 0.1, Drops: 0.02, Reboots: 0.5,
		Offline: Offline{PerDay: 0.5, Shortest: time.Hour, Longest: 72 * time.Hour},
		Clock:   Clocks{Share: 0.2, Behind: 400 * 24 * time.Hour, Ahead: 20 * time.Minute},
		Network: Network{Share: 0.1, Latency: 150 * time.Millisecond, Loss: 0.02, Stall: time.Second, Cuts: 0.1}},
}

// Presets lists the names that LoadProfile knows.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// LoadProfile returns the preset of that name, or reads the YAML file; what a file does not say is as in the preset idle.
func LoadProfile(nameOrFile string) (Profile, error) {
	if p, ok := presets[nameOrFile]; ok {
		return p, nil
	}
	p := presets["idle"]
	if err := config.Load(&p, nameOrFile, "", nil); err != nil {
		return Profile{}, errs.New(errs.Invalid, "profile %q, neither a file nor one of %s: %w", nameOrFile, strings.Join(Presets(), ", "), err)
	}
	if err := p.Validate(); err != nil {
		return Profile{}, errs.New(errs.Invalid, "profile %s: %w", nameOrFile, err)
	}
	return p, nil
}

// Validate reports the first setting that cannot work, by its name.
func (p Profile) Validate() error {
	for _, f := range []struct {
		name    string
		v       float64
		lo, max float64
	}{
		{"time_factor", p.TimeFactor, 0.001, 1e6},
		{"events_per_hour", p.Events, 0, 1e6}, {"settings_per_hour", p.Settings, 0, 1e6}, {"drops_per_hour", p.Drops, 0, 1e6},
		{"reboots_per_day", p.Reboots, 0, 1e6}, {"offline.per_day", p.Offline.PerDay, 0, 1e6},
		{"clock.share", p.Clock.Share, 0, 1}, {"network.share", p.Network.Share, 0, 1}, {"network.loss", p.Network.Loss, 0, 1},
		{"network.cuts_per_hour", p.Network.Cuts, 0, 1e6},
	} {
		if !(f.v >= f.lo && f.v <= f.max) { // not for NaN
			return fmt.Errorf("%s is %v: want %v to %v", f.name, f.v, f.lo, f.max)
		}
	}
	const years = 100 * 365 * 24 * time.Hour
	for _, f := range []struct {
		name   string
		v      time.Duration
		lo, hi time.Duration
	}{
		{"status", p.Status, 100 * time.Millisecond, time.Hour}, {"flush", p.Flush, 10 * time.Millisecond, time.Hour},
		{"telemetry", p.Telemetry, 10 * time.Millisecond, 24 * time.Hour}, {"vitals", p.Vitals, 10 * time.Millisecond, 9 * time.Second},
		{"offline.shortest", p.Offline.Shortest, 0, years}, {"offline.longest", p.Offline.Longest, p.Offline.Shortest, years},
		{"clock.behind", p.Clock.Behind, 0, years}, {"clock.ahead", p.Clock.Ahead, 0, years},
		{"network.latency", p.Network.Latency, 0, time.Minute}, {"network.stall", p.Network.Stall, 0, time.Minute},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fmt.Errorf("%s is %v: want %v to %v", f.name, f.v, f.lo, f.hi)
		}
	}
	return nil
}

// real is how long a simulated time takes; at most thirty years.
func (p Profile) real(simulated time.Duration) time.Duration {
	return time.Duration(min(float64(simulated)/p.TimeFactor, 1e18))
}
