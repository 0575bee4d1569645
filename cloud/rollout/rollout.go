// Package rollout brings a release to a part of the fleet, phase by phase, and stops by itself when robots get unwell.
//
// The rules are functions of a rollout, the facts about robots and the time (Step, Ask, Settle); Service applies them to what a Store keeps. A step runs every StepEvery
// and hands out grants; a robot that asks by itself may also get one. A robot takes the release only while it holds a grant, and no more than Cap robots hold one.
//
// A robot belongs to a phase by a hash of its id and the rollout's salt, so that one that appears later joins the phase that it would have been in.
// Guards compare the robots that had the update with those that still wait for it. They are looked at in each step: once one of them holds, no robot is granted any more.
package rollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"kennel/cloud/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
)

// Our own defaults and limits.
const (
	StepEvery   = 10 * time.Second
	GrantFor    = time.Hour        // for a robot that was granted to begin
	StallAfter  = 24 * time.Hour   // an update that takes longer has failed
	SilentAfter = 30 * time.Minute // a robot that is away for longer, since it was granted, is silent
	FellBack    = 10 * time.Minute // a robot that runs its old version so long after its update has gone back to it
	FollowFor   = 24 * time.Hour   // the progress of a rollout that has ended
	Reached     = 0.9              // share of a phase's reachable robots that must be through before it bakes
	MaxPhases   = 20
	MaxCap      = 100_000
	maxRobots   = 10 // named in evidence
)

// Channel is the public that a release is for.
type Channel string

// The channels. A rollout of Prod needs a second person's approval.
const (
	Prod Channel = "prod"
	Beta Channel = "beta"
	Dev  Channel = "dev"
)

// Phase opens the rollout to a share of its cohort.
type Phase struct {
	Percent float64 `json:"percent"` // of the cohort, with those of the phases before
	BakeS   int64   `json:"bake_s"`  // seconds to wait, and watch, once its robots are through
}

// Metric names the robots that a guard counts.
type Metric string

// The metrics.
const (
	Failures Metric = "failures" // updates that failed
	Silent   Metric = "silent"   // robots that went away for SilentAfter after they were granted
	Problems Metric = "problems" // updated robots that have a problem now which they did not have before
)

// Guard stops a rollout when the share of bad robots among those that had the update exceeds the share among those that still wait for it (the control
// group) by more than Share. It needs Sample robots, or all of a phase at its end.
type Guard struct {
	Metric  Metric  `json:"metric"`
	Share   float64 `json:"share"`             // 0 to 1
	Sample  int     `json:"sample"`            // robots
	Problem string  `json:"problem,omitempty"` // of Problems: a kind, such as crash, or kind/code; "": any but a low battery
}

// Spec holds the decisions of the operator.
type Spec struct {
	Species   thing.Species `json:"species"`
	Version   ota.Version   `json:"version"`
	Channel   Channel       `json:"channel"`
	Cohort    filter.Filter `json:"cohort"`            // robots of the species that it is for; "": all
	Regions   []string      `json:"regions,omitempty"` // beginnings of time zones, such as Europe; empty: everywhere
	Phases    []Phase       `json:"phases"`
	Cap       int           `json:"cap"`                 // robots that update at once
	Bandwidth int64         `json:"bandwidth,omitempty"` // bytes a second of all of them together; 0: no limit
	Window    *ota.Window   `json:"window,omitempty"`
	Needs     *ota.Needs    `json:"needs,omitempty"`
	Guards    []Guard       `json:"guards"`
	Rollback  bool          `json:"rollback,omitempty"` // a guard that stops it also takes updated robots back
	Note      string        `json:"note,omitempty"`
}

// State is the state of a rollout.
type State string

// The states.
const (
	Draft   State = "draft"
	Waiting State = "waiting" // for the approval of a second person
	Running State = "running"
	Baking  State = "baking"
	Paused  State = "paused"
	Stopped State = "stopped" // by a guard
	Aborted State = "aborted"
	Done    State = "done" // robots that appear later still get the release
)

// Rollout is a rollout and how far it is.
type Rollout struct {
	ID string `json:"rollout"` // a UUID
	Spec
	Salt     string        `json:"salt"`
	Path     []ota.Version `json:"path,omitempty"` // releases that robots may need before Version, the last first
	State    State         `json:"state"`
	Phase    int           `json:"phase"`       // from 0
	Since    time.Time     `json:"phase_since"` // of the phase
	BakedAt  time.Time     `json:"baking_since,omitzero"`
	Watched  time.Time     `json:"watched_since"` // guards look at what came after
	By       string        `json:"by"`
	Approved string        `json:"approved_by,omitempty"`
	Created  time.Time     `json:"created"`
	Changed  time.Time     `json:"changed"`       // the state
	Why      string        `json:"why,omitempty"` // of the state, in words
	Evidence *Evidence     `json:"evidence,omitempty"`
	Back     bool          `json:"back,omitempty"` // updated robots are taken back
	Progress Progress      `json:"progress"`
	// Control is the share of bad robots in the control group when it was last large enough, by metric.
	Control map[Metric]float64 `json:"control,omitempty"`
}

// Evidence is why a guard stopped a rollout.
type Evidence struct {
	Guard
	At      time.Time      `json:"at"`
	Bad     int            `json:"bad"`
	Of      int            `json:"of"`
	Control float64        `json:"control"` // share of bad robots among those that wait
	Codes   map[string]int `json:"codes,omitempty"`
	Robots  []thing.ID     `json:"robots"` // some of the bad ones
	Words   string         `json:"words"`
}

// Progress is how far a rollout is, as its last step found it.
type Progress struct {
	At     time.Time       `json:"at,omitzero"`
	Robots int             `json:"robots"` // of the cohort
	Why    map[WhyCode]int `json:"why"`    // robots by their answer
	Phases []PhaseProgress `json:"phases"`
	Codes  []CodeCount     `json:"codes"` // of failed updates, the most first
}

// PhaseProgress is the progress of the robots that one phase added.
type PhaseProgress struct {
	Percent float64 `json:"percent"`
	Robots  int     `json:"robots"`
	Done    int     `json:"done"`
	Failed  int     `json:"failed"` // and those that went silent or back
	Open    int     `json:"open"`   // granted or updating
	Offline int     `json:"offline"`
}

// NoProgress is the progress before the first step.
func NoProgress() Progress {
	return Progress{Why: map[WhyCode]int{}, Phases: []PhaseProgress{}, Codes: []CodeCount{}}
}

// CodeCount is how many updates ended with one code.
type CodeCount struct {
	Code   int    `json:"code"`
	Words  string `json:"words"`
	Robots int    `json:"robots"`
}

// Standing is the state of one robot in a rollout.
type Standing string

// The standings.
const (
	Idle     Standing = ""         // it holds no grant
	Granted  Standing = "granted"  // and has not begun
	Updating Standing = "updating" //
	Through  Standing = "done"
	Failed   Standing = "failed"
	Lost     Standing = "silent"   // it went away while it updated
	Return   Standing = "back"     // it is to return to what it ran before
	Returned Standing = "returned" // and did
)

// Open reports whether the robot takes one of the places of Cap.
func (s Standing) Open() bool { return s == Granted || s == Updating }

// Member is one robot that was granted at least once.
type Member struct {
	Thing   thing.ID
	State   Standing
	From    string    // what it ran when it was granted
	Granted time.Time // last
	Until   time.Time // it may begin before
	At      time.Time // of State
	Tries   int       // grants
	Code    int       // of the last report
	Phase   string    // likewise
	Reason  string    // likewise
	Had     string    // its problems when it was granted, as in Fact, with spaces between
}

// Fact is the knowledge about one robot.
type Fact struct {
	Thing    thing.ID
	In       bool   // the cohort's filter selects it
	Running  string // release
	Present  bool
	Since    time.Time // when it went, of one that is not present; zero: it never came
	LowPower bool
	Problems []string // kind/code, or the kind alone
	Zone     string   // of its settings; "": UTC
	Busy     bool     // it holds a grant of another rollout
	Wished   bool     // a person said what it should run
}

// Turn is a change of a rollout, for its history and for webhooks.
type Turn struct {
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"` // one of Turns
	By    string    `json:"by,omitempty"`
	Phase int       `json:"phase"`
	Words string    `json:"words,omitempty"`
}

// The kinds of turns, which are those of webhooks too.
const (
	TurnWaiting = "rollout.waiting"
	TurnStarted = "rollout.started"
	TurnPhase   = "rollout.phase"
	TurnBaking  = "rollout.baking"
	TurnPaused  = "rollout.paused"
	TurnResumed = "rollout.resumed"
	TurnStopped = "rollout.stopped"
	TurnAborted = "rollout.aborted"
	TurnRetried = "rollout.retried"
	TurnDone    = "rollout.done"
)

// Check fills in the defaults and reports what is wrong.
func (s *Spec) Check() error {
	if _, err := thing.New(s.Species, "0"); err != nil {
		return errs.New(errs.Invalid, "species %.20q: want vic, amigo, pleo or aibo", s.Species)
	}
	if _, err := ota.ParseVersion(string(s.Version)); err != nil {
		return err
	}
	if s.Channel = cmp.Or(s.Channel, Prod); !slices.Contains([]Channel{Prod, Beta, Dev}, s.Channel) {
		return errs.New(errs.Invalid, "channel %.20q: want prod, beta or dev", s.Channel)
	}
	if s.Cohort.Uses(filter.Owner) || s.Cohort.Uses(filter.Name) {
		return errs.New(errs.Invalid, "cohort: owner: and name: are not for all who see a rollout; want a tag instead")
	}
	if len(s.Phases) == 0 {
		s.Phases = []Phase{{1, 3600}, {10, 3600}, {50, 3600}, {100, 3600}}
	}
	if len(s.Phases) > MaxPhases {
		return errs.New(errs.Invalid, "%d phases: at most %d", len(s.Phases), MaxPhases)
	}
	last := 0.0
	for i, p := range s.Phases {
		if !(p.Percent > last && p.Percent <= 100) || p.BakeS < 0 || p.BakeS > 90*86400 {
			return errs.New(errs.Invalid, "phase %d: %g %% and %d s: want more than the phase before, at most 100 %%, and at most 90 days", i+1, p.Percent, p.BakeS)
		}
		last = p.Percent
	}
	if s.Cap = cmp.Or(s.Cap, 100); s.Cap < 1 || s.Cap > MaxCap {
		return errs.New(errs.Invalid, "cap %d: want 1 to %d robots", s.Cap, MaxCap)
	}
	if s.Bandwidth < 0 || len(s.Note) > 2000 || len(s.Regions) > 20 || strings.ContainsRune(s.Note, 0) {
		return errs.New(errs.Invalid, "want a bandwidth of 0 or more bytes a second, at most 20 regions, and a note of at most 2000 bytes")
	}
	if s.Window != nil {
		if err := s.Window.Check(); err != nil {
			return err
		}
	}
	if s.Guards == nil {
		s.Guards = []Guard{{Metric: Failures, Share: 0.05, Sample: 20}, {Metric: Silent, Share: 0.03, Sample: 30}, {Metric: Problems, Share: 0.05, Sample: 30}}
	}
	for _, g := range s.Guards {
		if !slices.Contains([]Metric{Failures, Silent, Problems}, g.Metric) || !(g.Share >= 0 && g.Share < 1) || g.Sample < 1 || g.Problem != "" && g.Metric != Problems {
			return errs.New(errs.Invalid, "guard %+v: want failures, silent or problems, a share from 0 to below 1 and a sample of at least 1", g)
		}
	}
	return nil
}

// Place returns the robot's place in the order of the rollout, from 0 to below 1: the same whenever it is asked.
func (r *Rollout) Place(id thing.ID) float64 {
	var b [128]byte // on the stack: each step asks for each robot
	sum := sha256.Sum256(append(append(append(b[:0], r.Salt...), 0), id...))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// PhaseOf returns the phase that the robot belongs to, from 0; len(r.Phases): none.
func (r *Rollout) PhaseOf(id thing.ID) int {
	place := r.Place(id) * 100
	for i, p := range r.Phases {
		if place < p.Percent {
			return i
		}
	}
	return len(r.Phases)
}

// Grants reports whether the rollout hands out grants.
func (r *Rollout) Grants() bool { return r.State == Running || r.State == Baking || r.State == Done }

// Desired returns what the robot should run by its standing; ok is false if the rollout has nothing to say.
func (r *Rollout) Desired(m Member) (d ota.Desired, ok bool) {
	d = ota.Desired{V: 1, Release: r.Version, Since: m.Granted, Rollout: r.ID, Window: r.Window, Needs: r.Needs, Until: m.Until}
	if r.Bandwidth > 0 {
		d.Rate = max(r.Bandwidth/int64(r.Cap), 1)
	}
	switch m.State {
	case Granted:
		return d, r.Grants()
	case Updating:
		return d, r.Grants() || r.State == Paused
	case Through:
		return ota.Desired{V: 1, Release: r.Version, Since: m.Granted, Rollout: r.ID}, true // whatever becomes of the rollout, it stays at what it runs
	case Return:
		return ota.Desired{V: 1, Release: ota.Version(m.From), Since: m.At, Rollout: r.ID, Rollback: true}, true
	}
	return ota.Desired{}, false
}

func (r *Rollout) String() string { return fmt.Sprintf("%s %s", r.Species, r.Version) }
