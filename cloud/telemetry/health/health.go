// Package health says how the fleet is: by version, which share of the robots ran without a crash, and which version is clearly worse than what ran before it; faults,
// batteries, what people said, and how far new robots came. It reads the sums of events (package das), never the events.
package health

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/telemetry/das"
	"kennel/infra/errs"
	"kennel/infra/proportion"
	"kennel/infra/thing"
)

// Period is a stretch of time until now, in slots: robots are compared by the slots in which they were heard of, because a version that ran for a month had more time to
// crash than one of today.
type Period struct {
	Name string
	Len  time.Duration
	Slot time.Duration
}

// Periods are those that can be asked for, the default first.
var Periods = []Period{{"24h", 24 * time.Hour, das.Hour}, {"7d", 7 * das.Day, das.Day}, {"30d", 30 * das.Day, das.Day}}

// PeriodNamed returns a period; "" is the default. Invalid.
func PeriodNamed(name string) (Period, error) {
	var names []string
	for _, p := range Periods {
		if name == p.Name || name == "" {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Period{}, errs.New(errs.Invalid, "period %.20q: want one of %s", name, errs.List(names))
}

// Bounds of the judgement of a version.
const (
	MinRobots  = 20   // fewer say little
	MinCrashed = 3    // robots: one or two that crash again and again may be broken themselves
	usualShare = 0.01 // of robots' slots with a crash, where too few others can be compared with
)

// State is the judgement.
type State string

// The states.
const (
	Well State = "ok"
	Few  State = "few" // fewer than MinRobots robots and no reason for alarm
	Bad  State = "bad" // clearly more crashes than usual
)

// Version sums up the robots that ran one version.
type Version struct {
	Version   string  `json:"version"`
	State     State   `json:"state"`
	Robots    int     `json:"robots"`
	Crashed   int     `json:"crashed"`    // robots
	CrashFree float64 `json:"crash_free"` // share of robots, 0 to 1
	Usual     float64 `json:"usual"`      // share of slots with a crash that this version is compared with
	Crashes   int64   `json:"crashes"`
	Failures  int64   `json:"failures"` // events of level error
	Events    int64   `json:"events"`
	Faulty    int     `json:"faulty"` // robots with the most frequent fault
	Low       int     `json:"low"`    // robots that told of a low battery

	slots, bad int
}

// Fault is a fault code.
type Fault struct {
	Code   int    `json:"code"`
	Robots int    `json:"robots"`
	Times  int64  `json:"times"`
	Most   string `json:"version"` // with the most robots that have it
}

// Battery is how batteries are now, and what was lowest in the last day.
type Battery struct {
	Levels []Count  `json:"levels"`
	Lowest []Lowest `json:"lowest"`
}

// Count is a number of robots with a name.
type Count struct {
	Name   string `json:"name"`
	Robots int    `json:"robots"`
}

// Lowest is the lowest voltage of a robot.
type Lowest struct {
	Thing thing.ID `json:"thing"`
	Volts float64  `json:"volts"`
}

// Voice sums up how people's words to robots ended.
type Voice struct {
	Heard int64   `json:"heard"` // how often a robot heard its name
	Done  int64   `json:"done"`  // intents
	Lost  int64   `json:"lost"`  // requests without an answer
	Share float64 `json:"share"` // of Done in Done and Lost
}

// Moment is one slot of the fleet's course.
type Moment struct {
	At      time.Time `json:"at"`
	Robots  int       `json:"robots"` // that were heard of, one for each version that it ran
	Crashed int       `json:"crashed"`
}

// Overview is the health of the fleet, or of a cohort.
type Overview struct {
	Period    string    `json:"period"`
	Cohort    string    `json:"cohort,omitempty"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	Robots    int       `json:"robots"`
	Crashed   int       `json:"crashed"`
	CrashFree float64   `json:"crash_free"`
	Versions  []Version `json:"versions"` // the newest first
	Faults    []Fault   `json:"faults"`   // the most frequent first
	Battery   Battery   `json:"battery"`
	Voice     *Voice    `json:"voice,omitempty"` // nil: no robot told of it
	Funnel    []Count   `json:"funnel"`
	Course    []Moment  `json:"course"` // by day, the oldest first
}

// Sums are the sums of events; *daspg.Store has them.
type Sums interface {
	// Compare sums up by version what was since mid and what was before, and what was since mid whatever the version.
	Compare(ctx context.Context, of das.Slots, mid time.Time) (now, was, whole []das.Tally, err error)
	Course(ctx context.Context, of das.Slots, cohort string) ([]das.Tally, error)
	// HourSums returns the hours since a time in which robots were heard of, oldest first.
	HourSums(ctx context.Context, since time.Time) ([]das.HourSum, error)
}

// Fleet asks others about robots. Things are those of a cohort; nil: all.
type Fleet struct {
	// Cohort returns who belongs to a cohort now, never nil; NotFound.
	Cohort func(ctx context.Context, name string) ([]thing.ID, error)
	// Battery returns how batteries are now.
	Battery func(ctx context.Context, cohort string, things []thing.ID) (Battery, error)
	// Funnel returns how many robots came how far, from being made to having settings.
	Funnel func(ctx context.Context, cohort string, things []thing.ID) ([]Count, error)
}

// Service answers how the fleet is. Safe for concurrent use.
type Service struct {
	Sums  Sums
	Fleet Fleet
	Now   func() time.Time
}

// Courses are the days of Overview.Course.
const Courses = 90

// Hours are the hours of Service.Hours.
const Hours = 48

// Hours returns each of the last hours, oldest first, the current one too; an hour in which no robot was heard of counts 0. nil: in none was one.
func (s *Service) Hours(ctx context.Context) ([]das.HourSum, error) {
	first := s.Now().UTC().Truncate(das.Hour).Add(-(Hours - 1) * das.Hour)
	sums, err := s.Sums.HourSums(ctx, first)
	if err != nil || len(sums) == 0 {
		return nil, err
	}
	out := make([]das.HourSum, Hours)
	for i := range out {
		out[i].At = first.Add(time.Duration(i) * das.Hour)
	}
	for _, h := range sums {
		if i := int(h.At.Sub(first) / das.Hour); i >= 0 && i < Hours {
			h.At = out[i].At
			out[i] = h
		}
	}
	return out, nil
}

// Report returns how the fleet was in a period; cohort "": the whole fleet.
func (s *Service) Report(ctx context.Context, period, cohort string) (Overview, error) {
	p, err := PeriodNamed(period)
	if err != nil {
		return Overview{}, err
	}
	var things []thing.ID
	if cohort != "" {
		if things, err = s.Fleet.Cohort(ctx, cohort); err != nil {
			return Overview{}, err
		}
	}
	until := s.Now().UTC().Truncate(p.Slot).Add(p.Slot) // the slot that is not over counts
	r := Overview{Period: p.Name, Cohort: cohort, Since: until.Add(-p.Len), Until: until}
	of := das.Slots{Every: p.Slot, Since: r.Since.Add(-p.Len), Until: until, Things: things}
	days := das.Slots{Every: das.Day, Until: s.Now().UTC().Truncate(das.Day).Add(das.Day), Things: things}
	days.Since = days.Until.AddDate(0, 0, -Courses)
	var now, was, whole, course []das.Tally
	both, bctx := errgroup.WithContext(ctx) // each reads much
	both.Go(func() (err error) { now, was, whole, err = s.Sums.Compare(bctx, of, r.Since); return err })
	both.Go(func() (err error) { course, err = s.Sums.Course(bctx, days, cohort); return err })
	if err := both.Wait(); err != nil {
		return r, err
	}
	r.Versions = judge(now, was)
	r.wholes(whole, now)
	r.Course = points(course)
	if r.Battery, err = s.Fleet.Battery(ctx, cohort, things); err != nil {
		return r, err
	}
	r.Funnel, err = s.Fleet.Funnel(ctx, cohort, things)
	return r, err
}

// wholes fills in what is about all versions together.
func (r *Overview) wholes(whole, now []das.Tally) {
	var v Voice
	most := map[das.Class]das.Tally{}
	for _, t := range now {
		if t.Robots > most[t.Class].Robots {
			most[t.Class] = t
		}
	}
	r.Faults = []Fault{}
	for _, t := range whole {
		switch t.Class {
		case das.All:
			r.Robots = t.Robots
		case das.Crash:
			r.Crashed = t.Robots
		case das.VoiceHeard:
			v.Heard = t.Events
		case das.VoiceDone:
			v.Done = t.Events
		case das.VoiceLost:
			v.Lost = t.Events
		default:
			if code, is := faultOf(t.Class); is {
				r.Faults = append(r.Faults, Fault{code, t.Robots, t.Events, most[t.Class].Version})
			}
		}
	}
	r.CrashFree = 1 - share(r.Crashed, r.Robots)
	if v != (Voice{}) {
		v.Share = share(int(v.Done), int(v.Done+v.Lost))
		r.Voice = &v
	}
	slices.SortFunc(r.Faults, func(a, b Fault) int { return cmp.Or(b.Robots-a.Robots, a.Code-b.Code) })
}

func faultOf(c das.Class) (int, bool) {
	rest, is := strings.CutPrefix(string(c), string(das.FaultClass))
	code, err := strconv.Atoi(rest)
	return code, is && err == nil
}

func share(part, of int) float64 {
	if of <= 0 {
		return 0
	}
	return float64(part) / float64(of)
}

func points(all []das.Tally) []Moment {
	out := []Moment{}
	for _, t := range all {
		if n := len(out); n == 0 || !out[n-1].At.Equal(t.At) {
			out = append(out, Moment{At: t.At.UTC()})
		}
		p := &out[len(out)-1]
		if t.Class == das.Crash {
			p.Crashed += t.Robots
		} else {
			p.Robots += t.Robots
		}
	}
	return out
}

// judge sums up versions and compares each with all others of the same time and with the whole fleet before.
func judge(now, before []das.Tally) []Version {
	byName := map[string]*Version{}
	var slots, bad int // of now and before
	for _, t := range before {
		switch t.Class {
		case das.All:
			slots += t.Slots
		case das.Crash:
			bad += t.Slots
		}
	}
	for _, t := range now {
		v := byName[t.Version]
		if v == nil {
			v = &Version{Version: t.Version}
			byName[t.Version] = v
		}
		switch t.Class {
		case das.All:
			v.Robots, v.Events, v.slots = t.Robots, t.Events, t.Slots
			slots += t.Slots
		case das.Crash:
			v.Crashed, v.Crashes, v.bad = t.Robots, t.Events, t.Slots
			bad += t.Slots
		case das.Failures:
			v.Failures = t.Events
		case das.BatteryLow:
			v.Low = t.Robots
		default:
			if _, is := faultOf(t.Class); is {
				v.Faulty = max(v.Faulty, t.Robots)
			}
		}
	}
	out := []Version{}
	for _, v := range byName {
		v.CrashFree = 1 - share(v.Crashed, v.Robots)
		v.State, v.Usual = verdict(*v, slots-v.slots, bad-v.bad)
		out = append(out, *v)
	}
	slices.SortFunc(out, func(a, b Version) int { return cmp.Compare(filter.VersionKey(b.Version), filter.VersionKey(a.Version)) })
	return out
}

// verdict compares a version with others: it is bad when even the least share of crashes that chance leaves plausible for it exceeds the most that is plausible for the others.
func verdict(v Version, slots, bad int) (State, float64) {
	usual, most := usualShare, usualShare
	if slots >= MinRobots {
		usual = share(bad, slots)
		_, most = proportion.Share(bad, slots, proportion.Z)
	}
	least, _ := proportion.Share(v.bad, v.slots, proportion.Z)
	switch {
	case v.Crashed >= MinCrashed && v.Robots >= MinRobots && least > most:
		return Bad, usual
	case v.Robots < MinRobots:
		return Few, usual
	}
	return Well, usual
}
