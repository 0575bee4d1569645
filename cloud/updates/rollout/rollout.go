// Package rollout brings a release to a part of the fleet, phase by phase, and stops by itself when robots get unwell.
//
// The rules are functions of a rollout, the facts about robots and the time (Step, Ask, Report); Service applies them to what a Store keeps. A step runs every StepEvery
// and hands out grants; a robot that asks by itself may also get one. A robot takes the release only while it holds a grant, and no more than Cap robots hold one.
//
// All robots of a rollout stand in one order, by a hash of id and salt. A phase is an exact number of robots from the front of that order (plan.go). While
// they update, the next robots in the order are the control: they get nothing, and are watched from the same hour for the same time (outcome.go). Guards
// compare both groups in each step, and a phase ends only on evidence that the release is harmless (verdict.go). Where a fleet is too small for
// evidence, a person releases each phase. infra/adr/0035 has the reasons.
//
// The states of a rollout. Only one for Prod waits, for a second person; a person may abort it in any state.
//
//	Draft ──► Waiting ──Approve──► Running ──► Baking ──► Running, with the next phase ──► … ──► Done
//	                                  └─────┬────┘
//	                                        ├── a suspicion, or too little evidence ──► Held ──Release──► Running, or the next phase
//	                                        ├── harm ──► Stopped ──Resume──► Running; with Rollback its robots return, and it stays stopped
//	                                        └── Pause ──► Paused ──Resume──► Running
//
// The standings of a robot in it, by its reports and its presence.
//
//	Idle ──grant──► Granted ──it begins──► Updating ──it runs the release──► Through ──it runs the old one──► Fell
//	  ▲                │ until               │    │                            │
//	  ├────────────────┘                     │    └─ an error ──► Failed       │ the rollout takes it back
//	  ├── it is there again ────── Lost ◄────┘ away for SilentAfter  │         ▼
//	  └── its environment failed, RetryAfter ago ───────────────────┘        Return ──it says so──► Returned
package rollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/updates/rollout/sprt"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
)

// Our own defaults and limits.
const (
	StepEvery   = 10 * time.Second
	GrantFor    = time.Hour        // for a robot that was granted to begin
	StallAfter  = 24 * time.Hour   // an update, or an installed release that waits for its reboot, that takes longer has failed
	SilentAfter = 2 * time.Hour    // a robot that stays away for as long after it began its update is lost
	BootsFor    = time.Hour        // after its first contact in the new version, during which a robot that vanishes counts as lost
	FellBack    = 10 * time.Minute // a robot that runs its old version so long after its update has fallen back
	WatchFor    = 24 * time.Hour   // default of Spec.WatchS
	RetryAfter  = time.Hour        // until a robot whose environment failed may try again
	MaxTries    = 5                // grants of one robot whose environment fails, or which gets lost
	FollowFor   = 24 * time.Hour   // the progress of a rollout that has ended
	Reached     = 0.9              // share of a phase's reachable robots that must be through, and watched, before it passes
	Majority    = 0.5              // share of all of a phase's robots that must run the release before it passes
	HeldOut     = 0.05             // share of the robots, at least MinControl of them, that wait until the last phase has passed
	MinControl  = 50               // robots
	MaxControl  = 2000             // robots that are watched at once without the release
	HoldAt      = 10               // evidence at which a guard holds the rollout and asks a person, times the number of guards
	StopAt      = 100              // evidence at which a guard stops it, likewise
	AwayShare   = 0.2              // share of the control that may be away before judgement is suspended
	CloudGap    = 30 * time.Minute // between two steps: the cloud was away. Judgement is suspended for as long afterwards
	BackFirst   = 10               // robots that a rollback takes back first; ten times as many follow when they have returned
	MaxPhases   = 20
	MaxCap      = 100_000
	MinShare    = 0.001 // of a guard
	maxRobots   = 10    // named in evidence
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
	BakeS   int64   `json:"bake_s"`  // seconds to observe its robots after they have updated
}

// Metric names the robots that a guard counts.
type Metric string

// The metrics.
const (
	Failures Metric = "failures" // updates that failed
	Silent   Metric = "silent"   // robots that went away while they updated, and stayed away for SilentAfter
	Problems Metric = "problems" // robots with a problem, or a crash group, that they did not have in the day before
)

// Guard says how many more robots than usual may turn bad. A phase passes only if the share of bad robots among the updated ones exceeds the share in the control
// by less than Share, with a confidence of 97.5 %; and evidence that the release harms holds or stops the rollout. The control of Failures is Share itself:
// without a release no update fails.
type Guard struct {
	Metric  Metric  `json:"metric"`
	Share   float64 `json:"share"`             // MinShare to below 1
	Sample  int     `json:"sample"`            // updated robots, at least, before a phase may pass; 3/Share if that is more
	Problem string  `json:"problem,omitempty"` // of Problems: a kind, such as crash, or kind/code; "": any but a low battery
}

// Key names the guard among those of its rollout.
func (g Guard) Key() string {
	if g.Problem == "" {
		return string(g.Metric)
	}
	return string(g.Metric) + ":" + g.Problem
}

// Needs returns how many robots must have been watched before the guard can pass a phase.
func (g Guard) Needs() int { return max(g.Sample, int(math.Ceil(3/g.Share))) }

// counts reports whether a guard of Problems counts a problem.
func (g Guard) counts(problem string) bool {
	kind, _, _ := strings.Cut(problem, "/")
	return g.Metric == Problems && (g.Problem == "" && kind != "battery" || g.Problem == kind || g.Problem == problem)
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
	Guards    []Guard       `json:"guards"`             // none: phases pass by time alone
	WatchS    int64         `json:"watch_s,omitempty"`  // seconds for which a robot is watched after its update
	Rollback  bool          `json:"rollback,omitempty"` // a stop for harm from running the release also takes updated robots back
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
	Held    State = "held" // until a person releases it: Hold says why
	Paused  State = "paused"
	Stopped State = "stopped" // by evidence of harm
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
	Phase    int           `json:"phase"`            // of Stages, from 0
	Stages   []Stage       `json:"stages,omitempty"` // none before the first step
	Small    bool          `json:"small,omitempty"`  // too few robots for evidence: 1, 2, 4, 8 and so on, each released by a person
	Since    time.Time     `json:"phase_since"`      // of the phase
	BakedAt  time.Time     `json:"baking_since,omitzero"`
	BakedS   int64         `json:"baked_s"` // seconds of the phase in which nothing stood still
	By       string        `json:"by"`
	Approved string        `json:"approved_by,omitempty"`
	Created  time.Time     `json:"created"`
	Changed  time.Time     `json:"changed"`        // the state
	Hold     HoldCode      `json:"hold,omitempty"` // of Held
	Why      string        `json:"why,omitempty"`  // of the state, in words
	Evidence *Evidence     `json:"evidence,omitempty"`
	Back     bool          `json:"back,omitempty"`       // updated robots are taken back
	Still    time.Time     `json:"still_until,omitzero"` // judgement is suspended: the cloud was away
	Progress Progress      `json:"progress"`

	Tests    map[string]sprt.Test `json:"tests,omitempty"`    // of guards by their keys
	Spent    map[string]Count     `json:"spent,omitempty"`    // control robots whose time was over, likewise
	Accepted map[string]int       `json:"accepted,omitempty"` // bad robots that a person has seen and accepted, by guards' keys and HoldCodes
}

// HoldCode says why a rollout is held.
type HoldCode string

// The reasons.
const (
	HoldEvidence    HoldCode = "evidence"    // a guard suspects harm
	HoldFell        HoldCode = "fell_back"   // robots fell back to what they ran before
	HoldLost        HoldCode = "lost"        // robots vanished while they updated
	HoldBad         HoldCode = "bad"         // one robot of a small fleet turned bad
	HoldEnvironment HoldCode = "environment" // updates fail, but not for the release
	HoldPhase       HoldCode = "phase"       // the phase is over, without enough evidence to continue
)

// Evidence is why a rollout was stopped or held.
type Evidence struct {
	Guard
	Code     HoldCode       `json:"code"`
	At       time.Time      `json:"at"`
	Bad      int            `json:"bad"` // updated robots
	Of       int            `json:"of"`
	Control  float64        `json:"control"` // share of bad robots in the control
	Controls Count          `json:"controls"`
	Strength float64        `json:"evidence"` // likelihood ratio
	Codes    map[string]int `json:"codes,omitempty"`
	Robots   []thing.ID     `json:"robots"` // some of the bad ones
	Words    string         `json:"words"`
}

// Progress is how far a rollout is, as its last step found it.
type Progress struct {
	At     time.Time       `json:"at,omitzero"`
	Robots int             `json:"robots"` // of the cohort
	Why    map[WhyCode]int `json:"why"`    // robots by their answer
	Phases []PhaseProgress `json:"phases"`
	Codes  []CodeCount     `json:"codes"`            // of failed updates, the most first
	Guards []Verdict       `json:"guards,omitempty"` // in the order of Spec
	Lacks  []Lack          `json:"lacks,omitempty"`  // what keeps the phase from passing
	Least  int             `json:"least"`            // robots that the guards need before a phase can pass without a person
}

// Lack is something that keeps a phase from passing.
type Lack struct {
	Code  string `json:"code"`
	Words string `json:"words"`
}

// PhaseProgress is the progress of the robots that one phase added.
type PhaseProgress struct {
	Percent float64 `json:"percent"`
	Robots  int     `json:"robots"`
	Done    int     `json:"done"`
	Failed  int     `json:"failed"` // and those that got lost or went back
	Open    int     `json:"open"`   // granted or updating
	Offline int     `json:"offline"`
	Kept    int     `json:"kept"`    // by a person's wish or by another rollout
	Watched int     `json:"watched"` // for as long as Spec wants, or bad

	absent int // of Offline, for longer than absentAfter
	again  int // of Failed, which try again by themselves
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
	Fell     Standing = "fell_back" // it ran the release, or tried to, and runs what it ran before
	Lost     Standing = "silent"    // it went away while it updated
	Return   Standing = "back"      // it is to run what it ran before: it drops what waits for its reboot, or goes back
	Returned Standing = "returned"  // and said that it did
	Control  Standing = "control"   // it has no grant, and is watched for comparison
)

// Open reports whether the robot takes one of the places of Cap.
func (s Standing) Open() bool { return s == Granted || s == Updating }

// Member is one robot that was granted at least once.
type Member struct {
	Thing   thing.ID
	State   Standing
	From    string    // what it ran when it was granted
	Granted time.Time // last; of Control: since when it is watched
	Until   time.Time // it may begin before
	At      time.Time // of State
	Tries   int       // grants
	Code    int       // of the last report
	Phase   string    // likewise
	Reason  string    // likewise
	Had     string    // problems that it had before it ran the release, as in Fact, with spaces between
	Updated time.Time // when it was first known to run the release; zero: not yet
	Bad     string    // keys of the guards for which it turned bad, with spaces between; once bad it stays so
}

func (m Member) bad(key string) bool { return slices.Contains(strings.Fields(m.Bad), key) }

// treated reports whether it holds a grant or had one, as opposed to a robot of the control.
func (m Member) treated() bool { return m.State != Idle && m.State != Control }

// Fact is the knowledge about one robot.
type Fact struct {
	Thing    thing.ID
	In       bool   // the cohort's filter selects it
	Running  string // release
	Present  bool
	Since    time.Time // when it went, of one that is not present; zero: it never came
	LowPower bool
	Problems []string   // kind/code, or the kind alone
	Zone     string     // of its settings; "": UTC
	Busy     bool       // it holds a grant of another rollout
	Wished   bool       // a person said what it should run
	Choice   ota.Choice // of its owner: when it updates

	salt  string // of the rollout that place is in
	place float64
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
	TurnHeld    = "rollout.held"
	TurnFreed   = "rollout.released"
	TurnStopped = "rollout.stopped"
	TurnAborted = "rollout.aborted"
	TurnRetried = "rollout.retried"
	TurnDone    = "rollout.done"
)

// Check fills in the defaults and reports what is wrong.
func (s *Spec) Check() error {
	if err := s.Species.Check(); err != nil {
		return errs.New(errs.Invalid, "%w", err)
	}
	if _, err := ota.ParseVersion(string(s.Version)); err != nil {
		return err
	}
	if s.Channel = cmp.Or(s.Channel, Prod); !slices.Contains([]Channel{Prod, Beta, Dev}, s.Channel) {
		return errs.New(errs.Invalid, "channel %.20q: want prod, beta or dev", s.Channel)
	}
	if s.Cohort.Uses(filter.Owner) || s.Cohort.Uses(filter.Name) {
		return errs.New(errs.Invalid, "cohort: owner: and name: are not allowed, because not everyone who sees rollouts may see them: want a tag instead")
	}
	if len(s.Phases) == 0 {
		s.Phases = []Phase{{1, 3600}, {10, 3600}, {50, 3600}, {100, 3600}}
	}
	if len(s.Phases) > MaxPhases {
		return errs.New(errs.Invalid, "%d phases: want at most %d", len(s.Phases), MaxPhases)
	}
	last := 0.0
	for i, p := range s.Phases {
		if !(p.Percent > last && p.Percent <= 100) || p.BakeS < 0 || p.BakeS > 90*86400 {
			return errs.New(errs.Invalid, "phase %d: %g %% and %d s: want a higher share than in the phase before, at most 100 %%, and 0 to 90 days", i+1, p.Percent, p.BakeS)
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
	seen := map[string]bool{}
	for _, g := range s.Guards {
		if !slices.Contains([]Metric{Failures, Silent, Problems}, g.Metric) || !(g.Share >= MinShare && g.Share < 1) || g.Sample < 1 || g.Problem != "" && g.Metric != Problems ||
			strings.ContainsAny(g.Problem, " \n") || seen[g.Key()] {
			return errs.New(errs.Invalid, "guard %s: share %g, sample %d: want failures, silent or problems, each once, a share from %g to below 1 and a sample of at least 1",
				g.Key(), g.Share, g.Sample, MinShare)
		}
		seen[g.Key()] = true
	}
	if s.WatchS = cmp.Or(s.WatchS, int64(WatchFor/time.Second)); s.WatchS < 1 || s.WatchS > 30*86400 {
		return errs.New(errs.Invalid, "watch_s %d: want 1 second to 30 days", s.WatchS)
	}
	return nil
}

// Fits reports, as an error, why a download of so many bytes cannot end within StallAfter at the rate that each robot is given.
func (s *Spec) Fits(size int64) error {
	if s.Bandwidth == 0 || size == 0 {
		return nil
	}
	takes := time.Duration(float64(size) / float64(s.rate()) * float64(time.Second))
	if takes > StallAfter || takes < 0 {
		return errs.Coded(errs.Invalid, "too_slow", "bandwidth %d and cap %d give each robot %d bytes a second, so that a download of %d bytes takes %v: want at most %v; lower the cap or raise the bandwidth",
			s.Bandwidth, s.Cap, s.rate(), size, takes.Round(time.Minute), StallAfter)
	}
	return nil
}

// rate returns the bytes a second that one robot may download.
func (s *Spec) rate() int64 { return max(s.Bandwidth/int64(s.Cap), 1) }

func (s *Spec) watchFor() time.Duration { return time.Duration(s.WatchS) * time.Second }

// least is how many robots must have been watched before every guard can pass a phase.
func (s *Spec) least() (n int) {
	for _, g := range s.Guards {
		n = max(n, g.Needs())
	}
	return n
}

// Place returns the robot's place in the order of the rollout, from 0 to below 1: the same whenever it is asked.
func (r *Rollout) Place(id thing.ID) float64 {
	var b [128]byte // on the stack: each step asks for each robot
	sum := sha256.Sum256(append(append(append(b[:0], r.Salt...), 0), id...))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// Grants reports whether the rollout hands out grants.
func (r *Rollout) Grants() bool { return r.State == Running || r.State == Baking || r.State == Done }

// Desired returns what the robot should run by its standing; ok is false if the rollout has nothing to say.
func (r *Rollout) Desired(m Member) (d ota.Desired, ok bool) {
	d = ota.Desired{V: 1, Release: r.Version, Since: m.Granted, Rollout: r.ID, Window: r.Window, Needs: r.Needs, Until: m.Until}
	if r.Bandwidth > 0 {
		d.Rate = r.rate()
	}
	switch m.State {
	case Granted:
		return d, r.Grants()
	case Updating:
		return d, r.Grants() || r.State == Paused || r.State == Held
	case Through:
		return ota.Desired{V: 1, Release: r.Version, Since: m.Granted, Rollout: r.ID}, true // whatever becomes of the rollout, it stays at what it runs
	case Return:
		return ota.Desired{V: 1, Release: ota.Version(m.From), Since: m.At, Rollout: r.ID, Rollback: true}, true
	}
	return ota.Desired{}, false
}

func (r *Rollout) String() string { return fmt.Sprintf("%s %s", r.Species, r.Version) }
