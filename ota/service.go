package ota

import (
	"context"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Store is the storage that Service needs.
type Store interface {
	// AddRelease keeps r. Conflict if that version of that species exists.
	AddRelease(ctx context.Context, r Release) error
	// Releases returns the newest first; species "" is all of them.
	Releases(ctx context.Context, species thing.Species) ([]Release, error)
	// Release returns one; a zero Release if the species has no such version.
	Release(ctx context.Context, species thing.Species, v Version) (Release, error)
	// SetLowest stores the lowest version that a release can be installed on; "" is any. NotFound if there is no such release.
	SetLowest(ctx context.Context, species thing.Species, v, lowest Version) error
	// Path returns the releases that a robot may need on its way to v, the last first: the lowest version of v, the lowest version of that, and so on.
	Path(ctx context.Context, species thing.Species, v Version) ([]Version, error)
	// SetDesired stores the release that scope (a thing id or a species) should run; v "" removes it. It returns the time since when that
	// release is desired: repeating the call changes nothing.
	SetDesired(ctx context.Context, scope string, v Version, by string) (time.Time, error)
	// Desired returns the release desired for the thing itself (own), else for its species, else a Desired without release.
	Desired(ctx context.Context, id thing.ID) (d Desired, own bool, err error)
	// Wishes returns every wish, those of species first.
	Wishes(ctx context.Context) ([]Wish, error)
	// Wished returns the robots that have a wish of their own: of these, or of all for nil.
	Wished(ctx context.Context, things []thing.ID) (map[thing.ID]bool, error)
	// AddStatus keeps a report once per (thing, s.ID).
	AddStatus(ctx context.Context, id thing.ID, s Status) error
	// Reports returns a thing's reports, the latest first, at most limit.
	Reports(ctx context.Context, id thing.ID, limit int) ([]Report, error)
}

// Wish is a release that a thing, or every thing of a species, should run.
type Wish struct {
	Scope   string    `json:"scope"` // a thing id or a species
	Release Version   `json:"release"`
	By      string    `json:"by"` // who asked
	Since   time.Time `json:"since"`
}

// Way is the answer to what a release needs.
type Way struct {
	Species thing.Species `json:"species"`
	Version Version       `json:"version"`
	Path    []Version     `json:"path"` // the releases that robots may get before it, the last first
}

// Report is a robot's report with the time the cloud stored it.
type Report struct {
	Status
	Received time.Time `json:"received"`
}

// State is the cloud's knowledge of one thing's release.
type State struct {
	Thing   thing.ID `json:"thing"`
	Desired Desired  `json:"desired"`
	Last    *Report  `json:"last,omitempty"`  // nil: it never reported
	First   Version  `json:"first,omitempty"` // the release that it gets before the desired one, which cannot be installed on what it last ran
	History []Report `json:"history"`         // the latest first
}

// Hinter tells a robot that something changed; it never blocks for long and a lost hint does no harm.
type Hinter interface {
	Hint(ctx context.Context, id thing.ID, name string, payload []byte)
}

// Rollouts decide for robots of which no person said what they should run. What they say goes before the wish for the species.
type Rollouts interface {
	// Desired returns what a robot should run; ok is false if no rollout has anything to say.
	Desired(ctx context.Context, id thing.ID) (d Desired, ok bool, err error)
	// Ask is Desired for a robot that asks and runs something now: it may be its turn.
	Ask(ctx context.Context, id thing.ID, running string) (d Desired, ok bool, err error)
	// Coming returns the release that a rollout has for a robot whose turn has come but which it has not told to begin, and why; "": none has.
	Coming(ctx context.Context, id thing.ID) (Version, Cause, error)
	// Reported hears of each report, also of repeated ones.
	Reported(ctx context.Context, id thing.ID, s Status) error
}

// Service holds the rules. It is safe for concurrent use.
type Service struct {
	store    Store
	hint     Hinter
	rollouts Rollouts // nil: none
	archives Archives // nil: none
	choices  Choices  // nil: owners have none
	crowd    *Crowd   // nil: robots of a species learn of a change when they ask
}

// Archives finds archives of releases.
type Archives interface {
	// Artifact returns where a robot that runs something gets release v: a delta from there, or the full archive; an empty one if there is neither.
	Artifact(ctx context.Context, species thing.Species, running string, v Version) (Artifact, error)
}

// HintName is the name of the hint below down/.
const HintName = "ota"

// New returns a service on store. hint may be nil: robots then learn of a change when they ask.
func New(store Store, hint Hinter) *Service { return &Service{store: store, hint: hint} }

// Follow has rollouts decide from now on; it is called before the service is used.
func (s *Service) Follow(r Rollouts) { s.rollouts = r }

// Supply has robots that ask be told where the archive is; it is called before the service is used.
func (s *Service) Supply(a Archives) { s.archives = a }

// AddRelease makes a release known.
func (s *Service) AddRelease(ctx context.Context, r Release) error {
	if _, err := ParseVersion(string(r.Version)); err != nil {
		return err
	}
	if err := r.Species.Check(); err != nil {
		return errs.New(errs.Invalid, "%w", err)
	}
	if err := r.Artifact.Check(); err != nil {
		return err
	}
	if len(r.Notes) > MaxNotes {
		return errs.New(errs.Invalid, "notes have %d bytes: want at most %d", len(r.Notes), MaxNotes)
	}
	if err := s.checkLowest(ctx, r.Species, r.Version, r.Lowest); err != nil {
		return err
	}
	return s.store.AddRelease(ctx, r)
}

// SetLowest says which version a release can be installed on at the lowest; "" is any. A robot that runs an older one gets that version first. Conflict if that
// is not an older release of the same kind with an archive; what is always older never leads in a circle.
func (s *Service) SetLowest(ctx context.Context, species thing.Species, v, lowest Version) error {
	if err := s.checkLowest(ctx, species, v, lowest); err != nil {
		return err
	}
	return s.store.SetLowest(ctx, species, v, lowest)
}

func (s *Service) checkLowest(ctx context.Context, species thing.Species, v, lowest Version) error {
	if lowest == "" {
		return nil
	}
	if err := s.Known(ctx, species, lowest); err != nil {
		return err
	}
	if lowest.Compare(v) >= 0 || lowest.Suffix() != v.Suffix() {
		return errs.Coded(errs.Conflict, "not_older", "release %s cannot require %s: want an older version with the same suffix", v, lowest)
	}
	a, err := s.artifact(ctx, species, "", lowest)
	if err == nil && a == (Artifact{}) {
		err = errs.Coded(errs.Conflict, "no_archive", "release %s of %s, which robots would need before %s, has no archive: upload it first", lowest, species, v)
	}
	return err
}

// Path returns the releases that a robot may need on its way to v, the last first.
func (s *Service) Path(ctx context.Context, species thing.Species, v Version) ([]Version, error) {
	return s.store.Path(ctx, species, v)
}

// Next returns the release that a robot gets next on its way to v, as First does.
func (s *Service) Next(ctx context.Context, species thing.Species, running string, v Version) (Version, error) {
	path, err := s.store.Path(ctx, species, v)
	return First(running, v, path), err
}

// First returns the release that a robot gets next on its way to v: v itself, or the one of path that can be installed on what it runs. One that does not say
// which version it runs gets v.
func First(running string, v Version, path []Version) Version {
	have, err := ParseVersion(running)
	if err != nil {
		return v
	}
	for _, lowest := range path {
		if have.Compare(lowest) >= 0 {
			break
		}
		v = lowest
	}
	return v
}

// Releases lists the releases of a species, or all of them for "", the newest first.
func (s *Service) Releases(ctx context.Context, species thing.Species) ([]Release, error) {
	return s.store.Releases(ctx, species)
}

// Wishes returns every wish, those of species first.
func (s *Service) Wishes(ctx context.Context) ([]Wish, error) { return s.store.Wishes(ctx) }

// Wished returns the robots that have a wish of their own: of these, or of all for nil.
func (s *Service) Wished(ctx context.Context, things []thing.ID) (map[thing.ID]bool, error) {
	return s.store.Wished(ctx, things)
}

// Size returns the bytes of a release's full archive; 0 if they are not known.
func (s *Service) Size(ctx context.Context, species thing.Species, v Version) (int64, error) {
	a, err := s.artifact(ctx, species, "", v)
	return a.Size, err
}

// Used says what uses a release: a wish, or another release that needs it first; "" is nothing.
func (s *Service) Used(ctx context.Context, species thing.Species, v Version) (string, error) {
	wishes, err := s.store.Wishes(ctx)
	if err != nil {
		return "", err
	}
	for _, w := range wishes {
		if kind, _, _ := strings.Cut(w.Scope, ":"); w.Release == v && kind == string(species) {
			return "the wish for " + w.Scope, nil
		}
	}
	releases, err := s.store.Releases(ctx, species)
	for _, r := range releases {
		if r.Lowest == v {
			return "release " + string(r.Version) + ", which robots get after it", err
		}
	}
	return "", err
}

// Desired returns the release that a thing should run.
func (s *Service) Desired(ctx context.Context, id thing.ID) (Desired, error) {
	return s.desired(ctx, id, func(r Rollouts) (Desired, bool, error) { return r.Desired(ctx, id) })
}

// Ask is Desired for a robot that asks, with what it needs to get the release. If the release cannot be installed on what the robot runs, it is the first one on
// the way there. A robot that does not say what it runs gets the full archive.
func (s *Service) Ask(ctx context.Context, id thing.ID, running string) (Desired, error) {
	d, err := s.desired(ctx, id, func(r Rollouts) (Desired, bool, error) { return r.Ask(ctx, id, running) })
	if err != nil || d.Release == "" || string(d.Release) == running || !d.NotBefore.IsZero() {
		return d, err
	}
	if !d.Rollback {
		if d.Release, err = s.Next(ctx, id.Species(), running, d.Release); err != nil {
			return d, err
		}
	}
	d.Artifact, err = s.artifact(ctx, id.Species(), running, d.Release)
	return d, err
}

// artifact returns where a release is: the archive that was uploaded, else the address that a person gave.
func (s *Service) artifact(ctx context.Context, species thing.Species, running string, v Version) (a Artifact, err error) {
	if s.archives != nil {
		a, err = s.archives.Artifact(ctx, species, running, v)
	}
	if err == nil && a == (Artifact{}) {
		var r Release
		r, err = s.store.Release(ctx, species, v)
		a = r.Artifact
	}
	return a, err
}

func (s *Service) desired(ctx context.Context, id thing.ID, ask func(Rollouts) (Desired, bool, error)) (Desired, error) {
	d, own, err := s.store.Desired(ctx, id)
	if err == nil && !own && s.rollouts != nil {
		var ok bool
		var by Desired
		if by, ok, err = ask(s.rollouts); ok {
			d = by
		}
	}
	d.V = 1
	if err != nil || d.Release == "" {
		return d, err
	}
	all, err := s.Choices(ctx, []thing.ID{id})
	return all[id].apply(d, time.Now()), err
}

// SetDesired asks one thing to run v, and hints it. An empty v removes the thing's own release, so that the species' one applies again.
// NotFound if its species has no such release. by is the operator who asked.
func (s *Service) SetDesired(ctx context.Context, id thing.ID, v Version, by string) (Desired, error) {
	if err := s.Known(ctx, id.Species(), v); err != nil {
		return Desired{}, err
	}
	if _, err := s.store.SetDesired(ctx, string(id), v, by); err != nil {
		return Desired{}, err
	}
	return s.tell(ctx, id)
}

// SetSpeciesDesired asks every thing of a species to run v; "" takes that back. Present robots are hinted (HintRate), others ask when they connect.
func (s *Service) SetSpeciesDesired(ctx context.Context, species thing.Species, v Version, by string) (Desired, error) {
	if err := species.Check(); err != nil {
		return Desired{}, errs.New(errs.Invalid, "%w", err)
	}
	if err := s.Known(ctx, species, v); err != nil {
		return Desired{}, err
	}
	since, err := s.store.SetDesired(ctx, string(species), v, by)
	if err == nil && s.crowd != nil {
		_ = s.crowd.Order(ctx, TaskHint, string(species)) // else ResumeHints does
	}
	return Desired{V: 1, Release: v, Since: since}, err
}

// Known returns NotFound for a release that the species does not have; "" is known.
func (s *Service) Known(ctx context.Context, species thing.Species, v Version) error {
	if v == "" {
		return nil
	}
	if _, err := ParseVersion(string(v)); err != nil {
		return err
	}
	r, err := s.store.Release(ctx, species, v)
	if err != nil {
		return err
	}
	if r.Version == "" {
		return errs.Coded(errs.NotFound, "no_release", "release %s of %s is unknown; add it first", v, species)
	}
	return nil
}

// Report stores a robot's report; a repeated report changes nothing.
func (s *Service) Report(ctx context.Context, id thing.ID, st Status) error {
	if err := s.store.AddStatus(ctx, id, st); err != nil {
		return err
	}
	if s.choices != nil && st.Phase == Current && st.Release != "" { // the next release is another choice
		if err := s.choices.EndChoice(ctx, id); err != nil {
			return err
		}
	}
	if s.rollouts == nil {
		return nil
	}
	return s.rollouts.Reported(ctx, id, st) // if it fails, the robot repeats the report
}

// State returns the state of a thing's release, with at most limit reports.
func (s *Service) State(ctx context.Context, id thing.ID, limit int) (State, error) {
	d, err := s.Desired(ctx, id)
	if err != nil {
		return State{}, err
	}
	reports, err := s.store.Reports(ctx, id, limit)
	if err != nil {
		return State{}, err
	}
	st := State{Thing: id, Desired: d, History: reports}
	if len(reports) > 0 {
		st.Last = &reports[0]
	}
	if st.Last != nil && d.Release != "" && !d.Rollback {
		if st.First, err = s.Next(ctx, id.Species(), st.Last.Running, d.Release); st.First == d.Release {
			st.First = ""
		}
	}
	return st, err
}
