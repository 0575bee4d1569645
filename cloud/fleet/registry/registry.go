package registry

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// Presence says whether a robot's lease runs.
type Presence string

// The presences.
const (
	Present Presence = "present"
	Absent  Presence = "absent"
	// Calls is the presence of an original robot, which calls and hangs up: when it last did so is all that is known (infra/adr/0019).
	Calls Presence = "calls"
)

// presenceOf returns the presence of a thing. One that was seen without ever having had a lease is one that calls.
func presenceOf(present bool, since, seen time.Time) Presence {
	switch {
	case present:
		return Present
	case since.IsZero() && !seen.IsZero():
		return Calls
	}
	return Absent
}

// Place sets the presence and its times.
func (t *Thing) Place(present bool, since, seen time.Time) {
	t.Presence, t.Since, t.LastSeen = presenceOf(present, since, seen), since, seen
}

// Thing is one robot as the fleet knows it.
type Thing struct {
	ID       thing.ID      `json:"thing"`
	Species  thing.Species `json:"species"`
	Serial   string        `json:"serial"`
	Created  time.Time     `json:"created"`
	Presence Presence      `json:"presence"`
	Since    time.Time     `json:"since,omitzero"`     // of this presence; absent from JSON: never seen
	LastSeen time.Time     `json:"last_seen,omitzero"` // receipt of the last status; of an original robot, its last call
	// ClockMS is the robot's clock minus the cloud's at that receipt, in milliseconds, the way of the message included.
	ClockMS int64           `json:"clock_offset_ms"`
	Status  *status.Message `json:"status,omitempty"` // the last one received; nil: none yet
	Rev     int64           `json:"rev"`              // raised by every change

	Name        string    `json:"name,omitempty"`             // what its owner calls it
	Tags        []string  `json:"tags,omitempty"`             // in order
	Kinds       []string  `json:"problem_kinds,omitempty"`    // of Problems, each once
	LoopHealth  string    `json:"loop_health,omitempty"`      // filter.OK, filter.Late or filter.None
	Certificate time.Time `json:"certificate_until,omitzero"` // zero: it has none in force
	// Revoked says why it is absent: it was here, and has no certificate in force, since an operator revoked it or reset its identity.
	Revoked bool `json:"revoked,omitempty"`
	// Problems are what is wrong with it by its last status (ProblemsOf), and its recent crashes.
	Problems []status.Problem `json:"problems,omitempty"`
	// Crashes are its recent crashes, the newest first.
	Crashes []Crashed `json:"crashes,omitempty"`
	// Facets are what it is filtered by.
	Facets Facets `json:"-"`
}

// Row returns what filters ask of the thing.
func (t *Thing) Row() filter.Row {
	f := &t.Facets
	return filter.Row{Thing: t.ID, Present: t.Presence == Present, Created: t.Created, Since: t.Since, Seen: t.LastSeen, Version: f.Version, Agent: f.Agent,
		Body: f.Body, Model: f.Model, Volts: f.Volts, Level: f.Level, Late: f.Late, Loop: f.Loop, Problems: f.Problems, Codes: f.Codes, Tags: t.Tags, Cert: t.Certificate}
}

// Limits of a list.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Query selects things, in the order of their ids; Table does more.
type Query struct {
	Presence Presence // "": all
	Search   string   // a word (package filter), which may have spaces
	After    thing.ID // only ids after this one
	Limit    int      // 0: DefaultLimit; at most MaxLimit
}

// Count is the fleet in a few numbers.
type Count struct {
	Present int `json:"present"`
	Absent  int `json:"absent"`
	Calls   int `json:"calls,omitempty"` // original robots, which are neither
}

// Store is the storage that Service needs. Times are the database's.
type Store interface {
	// Register makes a thing known; a known one stays as it is.
	Register(ctx context.Context, id thing.ID) error
	// Lease returns a thing's lease, its revision (0: unknown thing) and what time it is.
	Lease(ctx context.Context, id thing.ID) (l Lease, rev int64, now time.Time, err error)
	// SaveLease stores l and appends changes to the thing's history if its revision is still rev, and reports whether it was. rev 0
	// makes the thing known. A nil st leaves the last status as it is.
	SaveLease(ctx context.Context, id thing.ID, rev int64, l Lease, changes []Change, st *StatusAt) (bool, error)
	// Expire turns at most limit things absent whose lease ran out, and returns how many. Any number may do so at once.
	Expire(ctx context.Context, limit int) (int, error)
	// Changed returns which things changed at or after a time, in the order of change, at most limit. A zero time asks for the clock alone.
	Changed(ctx context.Context, since time.Time, limit int) (marks []Mark, latest time.Time, err error)
	// ThingsByID returns those of the things that exist, in no order.
	ThingsByID(ctx context.Context, ids []thing.ID) ([]Thing, error)
	History(ctx context.Context, id thing.ID, limit int) ([]Change, error)
	// Follow calls read when things may have changed, and after every so often, until ctx ends; it then returns nil (pg.Follow).
	Follow(ctx context.Context, every time.Duration, read func(context.Context) error) error
	// AddSteps counts steps under their outcomes, all or none; register makes their things known before. Of several steps with one outcome the last counts.
	AddSteps(ctx context.Context, steps []Step, register bool) error
	Steps(ctx context.Context, id thing.ID) ([]Outcome, error)
	// Seen makes a thing known and notes that it was seen now, unless it was within the last pace, or has a lease. made: it was not known.
	Seen(ctx context.Context, id thing.ID, version string, pace time.Duration) (made bool, err error)
	// Trim removes what the bounds of history and steps no longer allow.
	Trim(ctx context.Context) error
}

// Table keeps what the fleet is filtered by.
type Table interface {
	// Table returns a page after a place (nil: from the beginning) of a resolved filter, and where the next one begins; nil: there is none.
	Table(ctx context.Context, q Selection, after *Place) (things []Thing, next *Place, err error)
	// Select returns the ids that a resolved filter selects, in their order, at most limit.
	Select(ctx context.Context, f filter.Filter, limit int) ([]thing.ID, error)
	// Briefs returns what a resolved filter selects, and those of also that exist, in no order.
	Briefs(ctx context.Context, f filter.Filter, also []thing.ID) ([]Brief, error)
	// Counts counts what a resolved filter selects.
	Counts(ctx context.Context, f filter.Filter) (Counts, error)
	Count(ctx context.Context) (Count, error)
	// Tag adds and removes tags and returns those the thing has then; NotFound, Exhausted above MaxTags.
	Tag(ctx context.Context, id thing.ID, add, remove []string) ([]string, error)
	SetCertificates(ctx context.Context, until map[thing.ID]time.Time) error
	// Refit brings the facets of things in step whose status another rule than Fit read, or none, and returns how many there were.
	Refit(ctx context.Context, limit int) (int, error)
	// RecountCrashes ends crashes that are older than CrashedFor as problems of their robots, and adds crashes that came before their robot was known.
	RecountCrashes(ctx context.Context) error
	// Forget removes a thing from the fleet. Its recorded steps stay until Trim.
	Forget(ctx context.Context, id thing.ID) error
}

// Mark says that a thing changed, and which revision it had then.
type Mark struct {
	ID  thing.ID
	Rev int64
}

// StatusAt is a status with the offset of the robot's clock at its receipt.
type StatusAt struct {
	Message status.Message
	ClockMS int64
}

// Service holds the rules of the fleet. It is safe for concurrent use; Run must run for leases to end and for Watch to see changes.
type Service struct {
	store Store
	table Table
	src   Sources
	log   *slog.Logger
	feed  feed

	counter counter
	calls   *ratelimit.Keyed // by thing
	kinds   *ratelimit.Keyed // by thing and service
}

// New returns a service on store and table, which show the same things. src gives the doctor facts from other domains.
func New(store Store, table Table, src Sources, log *slog.Logger) *Service {
	return &Service{store: store, table: table, src: src, log: log, feed: feed{subs: map[*sub]struct{}{}}, counter: counter{kept: map[string]*counted{}},
		calls: ratelimit.New(callEvery, 1), kinds: ratelimit.New(kindEvery, 1)}
}

// Register makes a thing known to the fleet; a known one stays as it is.
func (s *Service) Register(ctx context.Context, id thing.ID) error { return s.store.Register(ctx, id) }

// Forget removes a thing from the fleet; an unknown one is no error. Pages that show it do so until they are loaded again. A robot that calls later is known again.
func (s *Service) Forget(ctx context.Context, id thing.ID) error { return s.table.Forget(ctx, id) }

// Thing returns one thing; NotFound if the fleet does not know it.
func (s *Service) Thing(ctx context.Context, id thing.ID) (Thing, error) {
	one, err := s.thing(ctx, id)
	if err == nil {
		err = s.name(ctx, one)
	}
	if err != nil {
		return Thing{}, err
	}
	return one[0], nil
}

// thing returns one thing without its name.
func (s *Service) thing(ctx context.Context, id thing.ID) ([]Thing, error) {
	one, err := s.store.ThingsByID(ctx, []thing.ID{id})
	if err == nil && len(one) == 0 {
		err = errs.Coded(errs.NotFound, "no_thing", "thing %s is not in this fleet", id)
	}
	return one, err
}

// Things returns the things that q selects.
func (s *Service) Things(ctx context.Context, q Query) ([]Thing, error) {
	switch {
	case q.Presence != "" && q.Presence != Present && q.Presence != Absent && q.Presence != Calls:
		return nil, errs.New(errs.Invalid, "presence %.20q: want present, absent or calls", q.Presence)
	case q.Limit < 0 || q.Limit > MaxLimit:
		return nil, errs.New(errs.Invalid, "limit %d: want 1 to %d", q.Limit, MaxLimit)
	case len(q.Search) > 100:
		return nil, errs.New(errs.Invalid, "search of %d bytes: at most 100", len(q.Search))
	}
	sel := Selection{After: Cursor(q.After), Limit: q.Limit}
	for key, text := range map[filter.Key]string{filter.Presence: string(q.Presence), filter.Word: strings.ReplaceAll(q.Search, "\x00", "")} {
		if strings.TrimSpace(text) == "" {
			continue
		}
		t, err := filter.Of(key, strings.ToValidUTF8(text, ""))
		if err != nil {
			return nil, err
		}
		sel.Filter = sel.Filter.With(t)
	}
	p, err := s.Table(ctx, sel)
	return p.Things, err
}

// Count returns how many things are present and absent.
func (s *Service) Count(ctx context.Context) (Count, error) { return s.table.Count(ctx) }

// History returns when a thing came and went, the latest first.
func (s *Service) History(ctx context.Context, id thing.ID, limit int) ([]Change, error) {
	if limit <= 0 || limit > MaxLimit {
		limit = DefaultLimit
	}
	if _, err := s.thing(ctx, id); err != nil {
		return nil, err
	}
	return s.store.History(ctx, id, limit)
}
