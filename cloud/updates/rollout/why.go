package rollout

import (
	"fmt"
	"strings"
	"time"

	"kennel/infra/thing"
	"kennel/ota"
)

// WhyCode says why a robot is not updating, or what it does.
type WhyCode string

// The codes, those first that nothing else changes.
const (
	WhyNotIn     WhyCode = "not_in_cohort"
	WhyDone      WhyCode = "done"
	WhyGranted   WhyCode = "granted"  // and has not begun
	WhyUpdating  WhyCode = "updating" //
	WhyFailed    WhyCode = "failed"
	WhyFell      WhyCode = "fell_back"
	WhySilent    WhyCode = "silent"
	WhyBack      WhyCode = "going_back"
	WhyReturned  WhyCode = "went_back"
	WhyNewer     WhyCode = "already_newer"
	WhyDraft     WhyCode = "draft"
	WhyApproval  WhyCode = "waits_for_approval"
	WhyHeld      WhyCode = "held"
	WhyPaused    WhyCode = "paused"
	WhyStopped   WhyCode = "stopped"
	WhyAborted   WhyCode = "aborted"
	WhyExcluded  WhyCode = "not_chosen" // the last phase is below 100 % and the robot is not among them
	WhyPhase     WhyCode = "waits_for_phase"
	WhyControl   WhyCode = "control" // compared with updated robots
	WhyOffline   WhyCode = "offline"
	WhyBattery   WhyCode = "battery"
	WhyWindow    WhyCode = "outside_window"
	WhyPostponed WhyCode = "postponed" // by its owner
	WhyBusy      WhyCode = "busy"      // with another rollout
	WhyWished    WhyCode = "wished"
	WhyCap       WhyCode = "waits_for_place"
	whyGrantable WhyCode = ""
)

// Why is the answer for one robot.
type Why struct {
	Thing thing.ID    `json:"thing"`
	Code  WhyCode     `json:"code"`
	Words string      `json:"words"`
	Since time.Time   `json:"since,omitzero"` // when it began to be so, if that is known
	Until time.Time   `json:"until,omitzero"` // when it will change by itself, if that is known
	Error int         `json:"error,omitempty"`
	Phase int         `json:"phase,omitempty"` // that it belongs to, from 1; 0: none, or not known yet
	First ota.Version `json:"first,omitempty"` // the release that it gets before the rollout's, which cannot be installed on what it runs
}

// look remembers windows by time zone, and versions by their text.
type look struct {
	now      time.Time
	zones    map[hours]shut
	versions map[string]int
	firsts   map[string]ota.Version
}

type hours struct {
	window *ota.Window
	zone   string
}

type shut struct {
	open  bool
	until time.Time
	name  string
}

func newLook(now time.Time) *look {
	return &look{now, map[hours]shut{}, map[string]int{}, map[string]ota.Version{}}
}

// window says whether a robot may begin at this hour: in the rollout's window unless its owner chose otherwise. A zone that does not exist is UTC.
func (r *Rollout) window(f *Fact, l *look) shut {
	w, zone := f.Choice.Window(r.Window, l.now), f.Zone
	s, ok := l.zones[hours{w, zone}]
	if !ok {
		loc, err := time.LoadLocation(zone)
		if err != nil || zone == "Local" {
			loc = time.UTC
		}
		s = shut{open: true, name: loc.String()}
		if w != nil {
			s.open, s.until = w.At(l.now.In(loc))
		}
		l.zones[hours{w, zone}] = s
	}
	return s
}

// newer compares what a robot runs with the release: 0 the same, 1 newer; -1 older, or unknown.
func (l *look) newer(running string, v ota.Version) int {
	n, ok := l.versions[running]
	if !ok {
		n = -1
		if have, err := ota.ParseVersion(running); err == nil {
			n = have.Compare(v)
		}
		l.versions[running] = n
	}
	return n
}

// first returns the release that a robot needs before the rollout's; "" if none.
func (l *look) first(running string, r *Rollout) ota.Version {
	v, ok := l.firsts[running]
	if !ok {
		if v = ota.First(running, r.Version, r.Path); v == r.Version {
			v = ""
		}
		l.firsts[running] = v
	}
	return v
}

// in reports whether a robot is one that the rollout is for.
func (r *Rollout) in(f *Fact) bool {
	if !f.In || f.Thing.Species() != r.Species {
		return false
	}
	for _, region := range r.Regions {
		if f.Zone == region || strings.HasPrefix(f.Zone, strings.TrimSuffix(region, "/")+"/") {
			return true
		}
	}
	return len(r.Regions) == 0
}

// judge returns the answer for a robot, without words. whyGrantable: it may be granted if a place is free.
func (r *Rollout) judge(f *Fact, m Member, l *look) Why {
	w := Why{Thing: f.Thing, Since: m.At}
	if len(r.Path) > 0 && (m.State.Open() || m.State == Idle && r.in(f)) {
		w.First = l.first(f.Running, r)
	}
	say := func(c WhyCode) Why { w.Code = c; return w }
	switch m.State {
	case Through:
		return say(WhyDone)
	case Granted:
		w.Since, w.Until = m.Granted, m.Until
		return say(WhyGranted)
	case Updating:
		return say(WhyUpdating)
	case Failed:
		w.Error = m.Code
		return say(WhyFailed)
	case Fell:
		w.Error = m.Code
		return say(WhyFell)
	case Lost:
		return say(WhySilent)
	case Return:
		return say(WhyBack)
	case Returned:
		return say(WhyReturned)
	}
	w.Since = time.Time{}
	if !r.in(f) {
		return say(WhyNotIn)
	}
	switch n := l.newer(f.Running, r.Version); {
	case n == 0:
		return say(WhyDone)
	case n > 0:
		return say(WhyNewer)
	}
	w.Since = r.Changed
	switch r.State {
	case Draft, Waiting, Held, Paused, Stopped, Aborted:
		return say(map[State]WhyCode{Draft: WhyDraft, Waiting: WhyApproval, Held: WhyHeld, Paused: WhyPaused, Stopped: WhyStopped, Aborted: WhyAborted}[r.State])
	}
	w.Since = time.Time{}
	p := r.phaseAt(r.placeOf(f))
	switch {
	case len(r.Stages) == 0:
		return say(WhyPhase)
	case p > r.Phase && r.State != Done && m.State == Control:
		w.Since = m.Granted
		return say(WhyControl)
	case p == len(r.Stages):
		return say(WhyExcluded)
	case p > r.Phase && r.State != Done:
		return say(WhyPhase)
	}
	w.Code = r.obstacle(f, l, &w)
	return w
}

// obstacle says what else keeps a robot from the release now; whyGrantable: nothing does.
func (r *Rollout) obstacle(f *Fact, l *look, w *Why) WhyCode {
	switch {
	case !f.Present:
		w.Since = f.Since
		return WhyOffline
	case f.LowPower && r.Needs != nil && r.Needs.Battery:
		return WhyBattery
	case f.Busy:
		return WhyBusy
	case f.Wished:
		return WhyWished
	}
	if f.Choice.At(l.now) == ota.WhenPostponed {
		w.Until = f.Choice.Until
		return WhyPostponed
	}
	if s := r.window(f, l); !s.open {
		w.Until = s.until
		return WhyWindow
	}
	return whyGrantable
}

const stamp = "2 January 2006 15:04 MST"

// inWords completes a Why with the words for people.
func (r *Rollout) inWords(w Why, m Member) Why {
	if i := r.PhaseOf(w.Thing); i < len(r.Stages) {
		w.Phase = i + 1
	}
	since := ""
	if !w.Since.IsZero() {
		since = " since " + w.Since.UTC().Format(stamp)
	}
	switch w.Code {
	case WhyNotIn:
		w.Words = "It is not one of the robots that this rollout is for."
	case WhyDone:
		w.Words = fmt.Sprintf("It runs %s%s.", r.Version, since)
	case WhyGranted:
		w.Words = fmt.Sprintf("It may update%s and has not begun; it has until %s.", since, w.Until.UTC().Format(stamp))
	case WhyUpdating:
		w.Words = fmt.Sprintf("It is updating%s.", since)
	case WhyFailed:
		w.Words = fmt.Sprintf("Its update failed with code %d: %s.", w.Error, ota.Code(w.Error).Words())
		if m.Reason != "" {
			w.Words += " The robot says: " + strings.TrimSuffix(m.Reason, ".") + "."
		}
	case WhyFell:
		w.Words = fmt.Sprintf("It ran %s and fell back to %s%s. It gets the release again only when a person retries.", r.Version, m.From, since)
		if m.Reason != "" {
			w.Words += " The robot says: " + strings.TrimSuffix(m.Reason, ".") + "."
		}
	case WhyControl:
		w.Words = "It is not updated yet, so that updated robots can be compared with it."
	case WhySilent:
		w.Words = "It began the update and has been silent" + since + "."
	case WhyBack:
		w.Words = fmt.Sprintf("It is to go back to %s%s.", m.From, since)
	case WhyReturned:
		w.Words = fmt.Sprintf("It went back to %s%s.", m.From, strings.Replace(since, " since", " on", 1))
	case WhyNewer:
		w.Words = fmt.Sprintf("It runs a version that is newer than %s.", r.Version)
	case WhyDraft:
		w.Words = "The rollout is a draft and was not started."
	case WhyApproval:
		w.Words = "The rollout waits for the approval of a second person" + since + "."
	case WhyHeld, WhyPaused, WhyStopped, WhyAborted:
		w.Words = fmt.Sprintf("The rollout is %s%s", r.State, since)
		if r.Why != "" {
			w.Words += ": " + strings.TrimSuffix(r.Why, ".")
		}
		w.Words += "."
	case WhyExcluded:
		w.Words = fmt.Sprintf("It is not among the %g %% of the robots that this rollout is for.", r.Phases[len(r.Phases)-1].Percent)
	case WhyPhase:
		if p := r.PhaseOf(w.Thing); p < len(r.Stages) {
			w.Words = fmt.Sprintf("It waits for phase %d (%s); the rollout is in phase %d.", p+1, robots(r.Stages[p].Robots), r.Phase+1)
		} else {
			w.Words = "The rollout has not put its robots in order yet; it does so within seconds."
		}
	case WhyOffline:
		w.Words = "It is offline" + since + "."
		if since == "" {
			w.Words = "It was never online."
		}
	case WhyBattery:
		w.Words = "Its battery is low."
	case WhyWindow:
		w.Words = fmt.Sprintf("It is outside its maintenance window until %s.", w.Until.Format(stamp))
	case WhyPostponed:
		w.Words = fmt.Sprintf("Its owner postponed the update until %s.", w.Until.UTC().Format(stamp))
	case WhyBusy:
		w.Words = "It is busy with another rollout."
	case WhyWished:
		w.Words = "A person said which release this robot should run, which goes before all rollouts."
	case WhyCap:
		w.Words = fmt.Sprintf("It waits until one of the %d that may update at once is through.", r.Cap)
	}
	if m.State.Open() && m.Reason != "" {
		w.Words += " It says: " + strings.TrimSuffix(m.Reason, ".") + "."
	}
	if w.First != "" {
		w.Words += fmt.Sprintf(" It gets %s first: %s cannot be installed on what it runs.", w.First, r.Version)
	}
	return w
}
