package registry

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/fleet/registry/filter"
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
	Late     float64  // p99 lateness of its loop, in microseconds, two digits; -1: it tells of no loop
	Loop     string   // filter.OK, filter.Late or filter.None
	Problems []string // kinds
	Codes    []string // tokens
}

// Fit is the version of FacetsOf's rules. Raise it with each change of them, so that stored statuses are read again (Store.Refit).
const Fit = 4

// maxKinds and maxCodes bound the kinds and tokens of problems kept of one robot.
const (
	maxKinds = 8
	maxCodes = 24
)

// ProblemsOf returns what is wrong with a robot by its last status: what the cloud finds, then what the robot reports. Every list, filter,
// page and count of problems reads it or the facets made of it, so that they agree.
func ProblemsOf(st StatusAt) []status.Problem {
	m := &st.Message
	told := m.Told()
	var out []status.Problem
	find := func(kind, code, format string, args ...any) {
		p := status.Problem{Kind: kind, Code: code, Text: fmt.Sprintf(format, args...)}
		if !slices.ContainsFunc(told, func(t status.Problem) bool { return t.Token() == p.Token() }) {
			out = append(out, p)
		}
	}
	if b := m.Body; b != nil {
		if plain(b.BatteryLevel) == "low" && !b.Charging {
			find(status.KindBattery, "", "low (%.2f V) and not charging", b.BatteryVolts)
		}
		if b.Fault != 0 {
			find(status.KindFault, strconv.Itoa(b.Fault), "fault %d is shown", b.Fault)
		}
	}
	if l := m.Loop; l != nil && LoopIsLate(l) {
		find(status.KindLoop, "", "late by p99 %.0f µs; %d of %d cycles missed", l.LateP99, l.Missed, l.Steps+l.Missed)
	}
	if d := time.Duration(st.ClockMS) * time.Millisecond; d.Abs() >= clockWarn {
		find(status.KindClock, "", "off by %s", d.Round(time.Second))
	}
	if s := m.Spool; s != nil && s.Quarantined > 0 {
		find(status.KindEvents, "", "%d refused by the cloud", s.Quarantined)
	}
	return append(out, told...)
}

// ProblemCount is how many present robots of a release have one problem.
type ProblemCount struct {
	Release    string // "": they name none
	Kind, Code string
	Robots     int
	Present    int // robots of the release
	// Others are robots of the same species on other releases with the problem, of OthersPresent.
	Others, OthersPresent int
}

// Gone is how many robots of a species and release are present, and how many went offline lately.
type Gone struct {
	Species, Release string
	Present, Gone    int
	Then             int // that went about a time asked for, and are still away
}

// loopLimits are the share of missed cycles and the lateness in microseconds above which a loop is late. A simulated robot shares a computer: its body waits, and nothing falls.
func loopLimits(l *status.Loop) (missed, p99 float64) {
	if l.Simulated {
		return 0.2, 100_000
	}
	return 0.01, 500 // design, section 8
}

// LoopIsLate reports whether a control loop is too late for its robot.
func LoopIsLate(l *status.Loop) bool {
	missed, p99 := loopLimits(l)
	return missedShare(l) > missed || l.LateP99 > p99
}

// FacetsOf reads a status. The steps keep a robot from writing the fleet's indexes whenever a number trembles.
func FacetsOf(st StatusAt) Facets {
	m := &st.Message
	f := Facets{Version: plain(m.OS), Agent: plain(m.Agent), Late: -1, Loop: filter.None}
	if b := m.Body; b != nil {
		f.Body, f.Model, f.Level = plain(b.Firmware), plain(b.Model), plain(b.BatteryLevel)
		if b.BatteryVolts > 0 && b.BatteryVolts <= 100 {
			f.Volts = math.Round(b.BatteryVolts*20) / 20
		}
	}
	if l := m.Loop; l != nil {
		f.Late, f.Loop = twoDigits(l.LateP99), filter.OK
		if LoopIsLate(l) {
			f.Loop = filter.Late
		}
	}
	problems := ProblemsOf(st)
	f.Problems = each(problems, maxKinds, func(p status.Problem) string { return p.Kind })
	f.Codes = each(problems, maxCodes, status.Problem.Token)
	return f
}

// each returns the different values of problems in order, at most n.
func each(problems []status.Problem, n int, f func(status.Problem) string) []string {
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		out = append(out, f(p))
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), n)]
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
