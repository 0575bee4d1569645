package registry

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"kennel/cloud/registry/filter"
	"kennel/infra/api/status"
)

// Facets holds those parts of a robot's last status that the fleet is filtered and sorted by.
type Facets struct {
	Version  string // release it runs
	Agent    string
	Body     string // version of its firmware
	Model    string
	Volts    float64 // in steps of 0.05 V; 0: unknown
	Level    string
	Late     float64 // p99 lateness of its loop, in microseconds, two digits; -1: it tells of no loop
	Loop     string  // filter.OK, filter.Late or filter.None
	Problems []string
}

// Fit is the version of FacetsOf's rules. Raise it with each change of them, so that stored statuses are read again (Store.Refit).
const Fit = 2

// Kinds of problems that FacetsOf finds itself; the others are the text before the colon in the robot's problem, or KindOther.
const (
	KindBattery = "battery" // low, and not charging
	KindFault   = "fault"   // a numbered fault is shown
	KindLoop    = "loop"    // the real-time loop is late
	KindClock   = "clock"   // its clock is off by clockWarn or more
	KindEvents  = "events"  // the cloud refused events of it
	KindOther   = "other"
)

// maxKinds bounds the kinds of problems kept of one robot.
const maxKinds = 8

var kindPattern = regexp.MustCompile(`^[a-z][a-z0-9 _-]{0,23}$`)

// FacetsOf reads a status. The steps keep a robot from writing the fleet's indexes whenever a number trembles.
func FacetsOf(st StatusAt) Facets {
	m := &st.Message
	f := Facets{Version: plain(m.OS), Agent: plain(m.Agent), Late: -1, Loop: filter.None}
	var kinds []string
	if b := m.Body; b != nil {
		f.Body, f.Model, f.Level = plain(b.Firmware), plain(b.Model), plain(b.BatteryLevel)
		if b.BatteryVolts > 0 && b.BatteryVolts <= 100 {
			f.Volts = math.Round(b.BatteryVolts*20) / 20
		}
		if f.Level == "low" && !b.Charging { // as the doctor says
			kinds = append(kinds, KindBattery)
		}
		if b.Fault != 0 {
			kinds = append(kinds, KindFault)
		}
	}
	if l := m.Loop; l != nil {
		f.Late, f.Loop = twoDigits(l.LateP99), filter.OK
		if missedShare(l) > loopMissed || l.LateP99 > loopP99 {
			f.Loop = filter.Late
			kinds = append(kinds, KindLoop)
		}
	}
	if (time.Duration(st.ClockMS) * time.Millisecond).Abs() >= clockWarn {
		kinds = append(kinds, KindClock)
	}
	if m.Spool != nil && m.Spool.Quarantined > 0 {
		kinds = append(kinds, KindEvents)
	}
	for _, p := range m.Problems {
		kind, _, colon := strings.Cut(p, ":")
		if kind = strings.ToLower(strings.TrimSpace(kind)); !colon || !kindPattern.MatchString(kind) || kind == filter.None || kind == filter.Any {
			kind = KindOther
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	f.Problems = kinds[:min(len(kinds), maxKinds)]
	return f
}

func missedShare(l *status.Loop) float64 {
	if all := l.Steps + l.Missed; all > 0 {
		return float64(l.Missed) / float64(all)
	}
	return 0
}

// twoDigits rounds to two significant digits.
func twoDigits(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10(v))-1)
	return math.Round(v/step) * step
}

// plain makes text of a robot fit for the table: printable ASCII, at most 64 bytes. Go and Postgres agree on the case of that, whatever
// the database's locale.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), 64)])
	return strings.TrimSpace(s)
}
