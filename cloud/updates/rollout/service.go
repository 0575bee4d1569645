package rollout

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
)

// Work is a rollout that is locked against other changes, with the robots that were asked for.
type Work struct {
	Rollout Rollout
	Members map[thing.ID]Member // until the work is done
	Open    int                 // robots that hold a grant of it
	Busy    map[thing.ID]bool

	// Changes that are kept besides Rollout.
	Changed []Member
	Turns   []Turn
}

// Place is a rollout and a robot's standing in it.
type Place struct {
	Rollout
	Member
}

// Store is the storage that Service needs.
type Store interface {
	// Add keeps a new rollout and returns it with its id.
	Add(ctx context.Context, r Rollout, turns []Turn) (Rollout, error)
	// Get returns one; NotFound.
	Get(ctx context.Context, id string) (Rollout, error)
	// List returns the newest first.
	List(ctx context.Context, limit int) ([]Rollout, error)
	// Active returns all rollouts that a step concerns: under way, changed since a time, or with robots that are told something.
	Active(ctx context.Context, since time.Time) ([]Rollout, error)
	// Using returns one that gives robots a release of the species, also on the way to another, and is not aborted. NotFound: none does.
	Using(ctx context.Context, species thing.Species, v ota.Version) (Rollout, error)
	// Turns returns a rollout's history, the newest first.
	Turns(ctx context.Context, id string) ([]Turn, error)
	// Of returns the rollouts of the robot's species that may concern it, the newest first, without their progress.
	Of(ctx context.Context, id thing.ID) ([]Place, error)
	// Update locks a rollout, reads the standing of these robots (nil: of all that have one), and keeps what fn makes of it unless it fails. NotFound.
	Update(ctx context.Context, id string, things []thing.ID, fn func(w *Work) error) error
	// Look reads what Update would, without a lock.
	Look(ctx context.Context, id string) (Work, error)
	// Things returns the robots that have a standing.
	Things(ctx context.Context, id string) ([]thing.ID, error)
	// Zones returns the time zones in the settings of these robots (nil: of all).
	Zones(ctx context.Context, things []thing.ID) (map[thing.ID]string, error)
}

// Config holds everything that a Service needs.
type Config struct {
	Store Store
	// Fleet returns what is known about the robots that a filter selects (Fact.In), and about others by name, without zones.
	Fleet func(ctx context.Context, f filter.Filter, also []thing.ID) ([]Fact, error)
	// Known returns an error for a release that was not added.
	Known func(ctx context.Context, species thing.Species, v ota.Version) error
	// Size returns the bytes of a release's archive; 0: not known.
	Size func(ctx context.Context, species thing.Species, v ota.Version) (int64, error)
	// Path returns the releases that robots may need before v, the last first.
	Path func(ctx context.Context, species thing.Species, v ota.Version) ([]ota.Version, error)
	// Wished returns the robots for which a person said what they should run: of these (nil: of all).
	Wished func(ctx context.Context, things []thing.ID) (map[thing.ID]bool, error)
	// Choices returns what owners chose: of these robots (nil: of all). May be nil.
	Choices func(ctx context.Context, things []thing.ID) (map[thing.ID]ota.Choice, error)
	Hint    ota.Hinter // may be nil
	Now     func() time.Time
}

// Service applies the rules. Safe for concurrent use, also by several processes.
type Service struct{ Config }

// New returns a service.
func New(c Config) *Service { return &Service{c} }

// Create keeps a rollout under an id (a UUID; "": another one). A draft is started by Resume; one for prod waits for the approval of another person than by.
func (s *Service) Create(ctx context.Context, id string, spec Spec, draft bool, by string) (Rollout, error) {
	if err := spec.Check(); err != nil {
		return Rollout{}, err
	}
	if err := s.Known(ctx, spec.Species, spec.Version); err != nil {
		return Rollout{}, err
	}
	if s.Size != nil {
		size, err := s.Size(ctx, spec.Species, spec.Version)
		if err == nil {
			err = spec.Fits(size)
		}
		if err != nil {
			return Rollout{}, err
		}
	}
	if _, err := s.facts(ctx, &Rollout{Spec: spec}, []thing.ID{}, thing.ID(spec.Species+":0")); err != nil { // a cohort that is not there
		return Rollout{}, err
	}
	path, err := s.Path(ctx, spec.Species, spec.Version)
	if err != nil {
		return Rollout{}, err
	}
	now := s.now()
	r := Rollout{ID: id, Spec: spec, Path: path, Salt: rand.Text(), State: Draft, By: by, Created: now, Changed: now, Progress: NoProgress()}
	var turns []Turn
	if !draft {
		turns = append(turns, r.begin(by, now))
	}
	return s.Store.Add(ctx, r, turns)
}

// begin starts a draft, or makes it wait for approval.
func (r *Rollout) begin(by string, now time.Time) Turn {
	r.State, r.Since, r.Changed = Running, now, now
	if r.Channel == Prod && r.Approved == "" {
		r.State = Waiting
		return Turn{At: now, Kind: TurnWaiting, By: by}
	}
	return Turn{At: now, Kind: TurnStarted, By: by, Words: r.inPhase()}
}

// now is the time as Postgres keeps it.
func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Microsecond) }

// Get returns a rollout.
func (s *Service) Get(ctx context.Context, id string) (Rollout, error) { return s.Store.Get(ctx, id) }

// List returns the newest first.
func (s *Service) List(ctx context.Context) ([]Rollout, error) { return s.Store.List(ctx, 200) }

// Used says which rollout uses a release, also on the way to another; "" is none. One that is done still gives it to robots that appear later.
func (s *Service) Used(ctx context.Context, species thing.Species, v ota.Version) (string, error) {
	r, err := s.Store.Using(ctx, species, v)
	if errs.KindOf(err) == errs.NotFound {
		return "", nil
	}
	return fmt.Sprintf("rollout %s, which is %s; abort it first", r.ID, r.State), err
}

// UsesCohort says which rollout is for a named part of the fleet and may still grant; "" is none.
func (s *Service) UsesCohort(ctx context.Context, name string) (string, error) {
	list, err := s.Store.List(ctx, 10_000)
	for _, r := range list {
		for _, t := range r.Cohort.Terms {
			if t.Key == filter.Cohort && r.State != Aborted && slices.ContainsFunc(t.Values, func(v filter.Value) bool { return v.Text == name }) {
				return fmt.Sprintf("rollout %s, which is %s", r.ID, r.State), err
			}
		}
	}
	return "", err
}

// Turns returns a rollout's history, the newest first.
func (s *Service) Turns(ctx context.Context, id string) ([]Turn, error) {
	return s.Store.Turns(ctx, id)
}

// Action is something that a person does to a rollout.
type Action string

// The actions.
const (
	Approve  Action = "approve"
	Pause    Action = "pause"
	Resume   Action = "resume"
	Release  Action = "release" // a held rollout: open the next phase, or continue although robots turned bad
	Abort    Action = "abort"
	GoBack   Action = "rollback" // abort, and take updated robots back
	TryAgain Action = "retry"    // of robots whose update failed, that got lost or that fell back
)

// Actions are all of them.
var Actions = []Action{Approve, Pause, Resume, Release, Abort, GoBack, TryAgain}

// Do carries out what a person does. Conflict if the rollout's state does not allow it. Denied if the author approves, resumes or releases a rollout for prod: another person must.
func (s *Service) Do(ctx context.Context, id string, a Action, why, by string) (Rollout, error) {
	if len(why) > 1000 || strings.ContainsRune(why, 0) {
		return Rollout{}, errs.New(errs.Invalid, "why: want at most 1000 bytes")
	}
	var told []Member
	var out Rollout
	err := s.Store.Update(ctx, id, nil, func(w *Work) error {
		r, now := &w.Rollout, s.now()
		turn := Turn{At: now, By: by, Phase: r.Phase, Words: why}
		refuse := func() error {
			return errs.Coded(errs.Conflict, "wrong_state", "rollout %s is %s: cannot %s it", r.ID, r.State, a)
		}
		if by == r.By && r.Channel == Prod && (a == Approve && r.State == Waiting || a == Resume && r.State != Draft || a == Release) {
			return errs.Coded(errs.Denied, "same_person", "rollout for prod: want a person other than its author to %s it", a)
		}
		switch {
		case a == Approve && r.State == Waiting:
			r.Approved = by
			turn = r.begin(by, now)
		case a == Pause && (r.State == Running || r.State == Baking || r.State == Held):
			r.State, r.Hold, turn.Kind = Paused, "", TurnPaused
		case a == Resume && r.State == Draft:
			turn = r.begin(by, now)
		case a == Resume && (r.State == Paused || r.State == Stopped) && !r.Back:
			r.State, r.Evidence, turn.Kind = Running, nil, TurnResumed
			r.accept(w.Members)
		case a == Release && r.State == Held:
			turn.Kind = TurnFreed
			r.accept(w.Members)
			if r.Hold == HoldPhase {
				r.next(now, func(kind, words string) {
					w.Turns = append(w.Turns, Turn{At: now, Kind: kind, Phase: r.Phase, Words: words})
				})
			} else {
				r.State, r.Hold, r.Evidence = Running, "", nil
			}
		case (a == Abort || a == GoBack) && (r.State != Aborted || a == GoBack):
			r.State, r.Hold, turn.Kind = Aborted, "", TurnAborted
			if a == GoBack {
				if r.Back {
					r.Accepted = map[string]int{acceptStuck: len(w.Members)}
				}
				r.Back = true
			}
		case a == TryAgain && (r.Grants() || r.State == Paused || r.State == Held):
			turn.Kind = TurnRetried
			for _, m := range w.Members {
				if m.State == Failed || m.State == Lost || m.State == Fell {
					m.State, m.At, m.Tries = Idle, now, 0
					w.Changed = append(w.Changed, m)
				}
			}
			turn.Words = strings.TrimSpace(fmt.Sprintf("%s. %s", robots(len(w.Changed)), why))
		default:
			return refuse()
		}
		if a != TryAgain {
			r.Changed, r.Why = now, why
			told = r.Take(slices.Collect(maps.Values(w.Members)), now)
			w.Changed = append(w.Changed, told...)
		}
		w.Turns = append([]Turn{turn}, w.Turns...)
		out = *r
		return nil
	})
	if err != nil {
		return Rollout{}, err
	}
	for _, m := range told {
		s.tell(ctx, &out, m)
	}
	return out, nil
}

// tell hints a robot what it should run now.
func (s *Service) tell(ctx context.Context, r *Rollout, m Member) {
	if s.Hint == nil {
		return
	}
	d, _ := r.Desired(m)
	if payload, err := d.Encode(); err == nil {
		s.Hint.Hint(ctx, m.Thing, ota.HintName, payload)
	}
}

// facts returns what is known about a rollout's robots, with their zones: all of them and those in also, or with only set one of them alone.
func (s *Service) facts(ctx context.Context, r *Rollout, also []thing.ID, only thing.ID) ([]Fact, error) {
	f := r.Cohort
	key, text := filter.Species, string(r.Species)
	if only != "" {
		key, text, also = filter.ID, string(only), nil
	}
	t, err := filter.Of(key, text)
	if err != nil {
		return nil, err
	}
	facts, err := s.Fleet(ctx, f.With(t), also)
	if err != nil {
		return nil, err
	}
	var whose []thing.ID
	if only != "" {
		whose = []thing.ID{only}
	}
	wished, err := s.Wished(ctx, whose)
	for i := range facts {
		facts[i].Wished = wished[facts[i].Thing]
	}
	if err != nil {
		return facts, err
	}
	var choices map[thing.ID]ota.Choice
	if s.Choices != nil {
		if choices, err = s.Choices(ctx, whose); err != nil {
			return facts, err
		}
	}
	for i := range facts {
		facts[i].Choice = choices[facts[i].Thing]
	}
	if r.Window == nil && len(r.Regions) == 0 && len(choices) == 0 {
		return facts, nil
	}
	zones, err := s.Store.Zones(ctx, whose)
	for i := range facts {
		facts[i].Zone = zones[facts[i].Thing]
	}
	return facts, err
}

// fact returns what is known about one robot; one that the registry does not know is in no cohort.
func (s *Service) fact(ctx context.Context, r *Rollout, id thing.ID) (Fact, error) {
	facts, err := s.facts(ctx, r, nil, id)
	if err != nil || len(facts) == 0 {
		return Fact{Thing: id}, err
	}
	return facts[0], nil
}

// Step moves each rollout on that is under way, ended less than FollowFor ago, or has robots that hold a grant or are to return; a periodic job. Rollouts that fail
// do not keep others from it.
func (s *Service) Step(ctx context.Context) error {
	list, err := s.Store.Active(ctx, s.now().Add(-FollowFor))
	var failed []error
	for _, r := range list {
		if err := s.StepOne(ctx, r.ID); err != nil {
			failed = append(failed, fmt.Errorf("rollout %s: %w", r.ID, err))
		}
	}
	return errors.Join(err, errors.Join(failed...))
}

// StepOne moves one rollout on.
func (s *Service) StepOne(ctx context.Context, id string) error {
	r, err := s.Store.Get(ctx, id)
	if err != nil {
		return err
	}
	path, err := s.Path(ctx, r.Species, r.Version)
	if err != nil {
		return err
	}
	known, err := s.Store.Things(ctx, id)
	if err != nil {
		return err
	}
	facts, err := s.facts(ctx, &r, nil, "") // before the lock: it needs another connection
	if err != nil {
		return err
	}
	found := make(map[thing.ID]bool, len(facts))
	for i := range facts {
		found[facts[i].Thing] = true
	}
	left := slices.DeleteFunc(known, func(id thing.ID) bool { return found[id] })
	if len(left) > 0 { // the cohort no longer has them, for instance because it is about the version that they ran
		if facts, err = s.facts(ctx, &r, left, ""); err != nil {
			return err
		}
	}
	var told []Member
	err = s.Store.Update(ctx, id, nil, func(w *Work) error {
		for i := range facts {
			facts[i].Busy = w.Busy[facts[i].Thing]
		}
		w.Rollout.Path = path
		out := w.Rollout.Step(facts, w.Members, s.now())
		w.Changed, w.Turns, r = out.Changed, out.Turns, w.Rollout
		for _, id := range out.Told {
			told = append(told, w.Members[id])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range told {
		s.tell(ctx, &r, m)
	}
	return nil
}

// Desired returns what a rollout wants a robot to run; ok is false if none has anything to say.
func (s *Service) Desired(ctx context.Context, id thing.ID) (_ ota.Desired, ok bool, err error) {
	places, err := s.Store.Of(ctx, id)
	for _, p := range places {
		if d, ok := p.Desired(p.Member); ok {
			return d, true, nil
		}
	}
	return ota.Desired{}, false, err
}

// Ask is Desired for a robot that asks: it may be granted now.
func (s *Service) Ask(ctx context.Context, id thing.ID, running string) (_ ota.Desired, ok bool, err error) {
	places, err := s.Store.Of(ctx, id)
	if err != nil {
		return ota.Desired{}, false, err
	}
	for _, p := range places {
		now := s.now()
		if d, ok := p.Rollout.Desired(p.Member); ok && (p.Member.State != Granted || now.Before(p.Until)) {
			return d, true, nil
		}
		if !p.mayGrant(now) {
			continue
		}
		f, err := s.fact(ctx, &p.Rollout, id)
		if k := errs.KindOf(err); k == errs.NotFound || k == errs.Invalid { // its cohort is gone: the robot is in none
			continue
		} else if err != nil {
			return ota.Desired{}, false, err
		}
		f.Running = cmp.Or(running, f.Running)
		if _, why, _ := p.Rollout.Ask(f, p.Member, 0, now); why.Code != WhyGranted {
			continue // no lock for a robot that is not due
		}
		var m Member
		err = s.Store.Update(ctx, p.ID, []thing.ID{id}, func(w *Work) error {
			f.Busy = w.Busy[id]
			var changed bool
			if m, _, changed = w.Rollout.Ask(f, w.Members[id], w.Open, s.now()); changed {
				w.Changed = append(w.Changed, m)
			}
			p.Rollout = w.Rollout
			return nil
		})
		if err != nil {
			return ota.Desired{}, false, err
		}
		if d, ok := p.Rollout.Desired(m); ok {
			return d, true, nil
		}
	}
	return ota.Desired{}, false, nil
}

// mayGrant reports whether the robot at this place may be granted, as far as that can be said without knowing more about it.
func (p *Place) mayGrant(now time.Time) bool {
	if !p.Grants() || now.Before(p.Still) || p.Member.treated() && p.Member.State != Granted && p.Member.State != Lost && p.Member.State != Failed {
		return false
	}
	i := p.PhaseOf(p.Thing)
	return i < len(p.Stages) && (i <= p.Rollout.Phase || p.Rollout.State == Done)
}

// Reported brings a robot's report into its rollouts. The same report again changes nothing.
func (s *Service) Reported(ctx context.Context, id thing.ID, st ota.Status) error {
	places, err := s.Store.Of(ctx, id)
	for _, p := range places {
		if _, changed := p.Report(p.Member, st, s.now()); !changed {
			continue
		}
		if err := s.Store.Update(ctx, p.ID, []thing.ID{id}, func(w *Work) error {
			if m, changed := w.Rollout.Report(w.Members[id], st, s.now()); changed {
				w.Changed = append(w.Changed, m)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return err
}

// RobotWhy is the answer of one rollout.
type RobotWhy struct {
	Rollout string      `json:"rollout"`
	Version ota.Version `json:"version"`
	State   State       `json:"state"`
	Why
}

// Explain says why a robot does not update, or what it does, in each rollout that may concern it, the newest first.
func (s *Service) Explain(ctx context.Context, id thing.ID) ([]RobotWhy, error) {
	out := []RobotWhy{}
	places, err := s.Store.Of(ctx, id)
	for _, p := range places {
		f, err := s.fact(ctx, &p.Rollout, id)
		if k := errs.KindOf(err); err != nil && k != errs.NotFound && k != errs.Invalid {
			return nil, err
		}
		out = append(out, RobotWhy{p.ID, p.Version, p.Rollout.State, p.Rollout.Explain(f, p.Member, s.Now())})
	}
	return out, err
}

// waits are the answers about a robot whose turn has come, as its owner is told them.
var waits = map[WhyCode]ota.Cause{WhyOffline: ota.WaitOffline, WhyBattery: ota.WaitBattery, WhyPostponed: ota.WaitOwner, WhyWindow: ota.WaitWindow, WhyCap: ota.WaitTurn, WhyGranted: ""}

// Coming implements ota.Rollouts.
func (s *Service) Coming(ctx context.Context, id thing.ID) (ota.Version, ota.Cause, error) {
	whys, err := s.Explain(ctx, id)
	for _, w := range whys {
		if wait, ok := waits[w.Code]; ok {
			return w.Version, wait, err
		}
	}
	return "", "", err
}

// Which chooses some of a rollout's robots.
type Which struct {
	Code  WhyCode  // "": any
	Phase int      // from 1; 0: any
	After thing.ID // in the order of their ids
	Limit int
}

// Seen is a look at a rollout's robots.
type Seen struct {
	Robots          []Why
	Updated, Failed []time.Time // when those that run the release, and those whose update failed, got there; in order, of all robots
}

// Robots returns the answers for those of a rollout's robots that w chooses, in the order of their ids; NotFound.
func (s *Service) Robots(ctx context.Context, id string, w Which) ([]Why, error) {
	seen, err := s.See(ctx, id, w)
	return seen.Robots, err
}

// See is Robots, with the course of the rollout.
func (s *Service) See(ctx context.Context, id string, which Which) (Seen, error) {
	w, err := s.Store.Look(ctx, id)
	if err != nil {
		return Seen{}, err
	}
	r := &w.Rollout
	facts, err := s.facts(ctx, r, slices.Collect(maps.Keys(w.Members)), "")
	if err != nil {
		return Seen{}, err
	}
	slices.SortFunc(facts, func(a, b Fact) int { return strings.Compare(string(a.Thing), string(b.Thing)) })
	out := Seen{Robots: []Why{}}
	l := newLook(s.Now())
	for i := range facts {
		f := &facts[i]
		if f.Thing <= which.After || which.Phase > 0 && r.phaseAt(r.placeOf(f)) != which.Phase-1 {
			continue
		}
		m := w.Members[f.Thing]
		f.Busy = w.Busy[f.Thing]
		y := r.judge(f, m, l)
		y.Code = cmp.Or(y.Code, WhyCap)
		if y.Code == WhyNotIn || which.Code != "" && which.Code != y.Code {
			continue
		}
		if out.Robots = append(out.Robots, r.inWords(y, m)); len(out.Robots) == which.Limit {
			break
		}
	}
	for _, m := range w.Members {
		switch {
		case m.State == Through && !m.Updated.IsZero():
			out.Updated = append(out.Updated, m.Updated)
		case m.State == Failed || m.State == Lost || m.State == Fell:
			out.Failed = append(out.Failed, m.At)
		}
	}
	slices.SortFunc(out.Updated, time.Time.Compare)
	slices.SortFunc(out.Failed, time.Time.Compare)
	return out, nil
}

// Forecast counts the robots of a rollout as if it began now.
type Forecast struct {
	Robots int     // that the rollout is for
	Have   int     // of Robots, that run the release or a newer one
	Small  bool    // too few for evidence: a person releases each stage
	Stages []Stage // none without robots
}

// Forecast returns how many robots a rollout with these decisions is for, and how many each stage has; Invalid, NotFound for a cohort that is not there. A stage's robots are those that
// need the release.
func (s *Service) Forecast(ctx context.Context, spec Spec) (Forecast, error) {
	if err := spec.Check(); err != nil {
		return Forecast{}, err
	}
	r := &Rollout{Spec: spec, Salt: rand.Text()}
	facts, err := s.facts(ctx, r, nil, "")
	if err != nil {
		return Forecast{}, err
	}
	l := newLook(s.Now())
	var out Forecast
	var places []float64
	for i := range facts {
		f := &facts[i]
		if !r.in(f) {
			continue
		}
		if out.Robots++; l.newer(f.Running, r.Version) >= 0 {
			out.Have++
		} else {
			places = append(places, r.placeOf(f))
		}
	}
	slices.Sort(places)
	r.plan(places)
	out.Small, out.Stages = r.Small, r.Stages
	return out, nil
}
