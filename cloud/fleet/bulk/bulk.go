// Package bulk does one thing to many robots: tags, a command, a setting. The robots are chosen by a filter or named; the choice is
// fixed when the job starts. A preview says how many robots match, and a job with more robots than its preview is refused.
//
// A job is parts of PartSize robots, each a task of infra/jobs, so that it continues after a kill, in any process. A robot may be done twice
// then: every action has the same effect twice as once. Each robot ends with one result; what may work later (a database that is away) is
// tried again, and robots that are offline are done: their commands and settings wait for them.
package bulk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/api/commandwire"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Kind is the kind of an action.
type Kind string

// The kinds.
const (
	Tag     Kind = "tag"     // Add and Remove tags
	Command Kind = "command" // give each a Command
	Set     Kind = "set"     // set Fields of a document
	Cohort  Kind = "cohort"  // add the tag of a cohort that is chosen by one
)

// Action is the action on each robot; each kind has its own fields.
type Action struct {
	Kind        Kind                       `json:"kind"`
	Add         []string                   `json:"add,omitempty"`
	Remove      []string                   `json:"remove,omitempty"`
	Command     string                     `json:"command,omitempty"`
	Args        json.RawMessage            `json:"args,omitempty"`
	ExpiresInMS int64                      `json:"expires_in_ms,omitempty"` // 0: command.DefaultTTL
	Doc         string                     `json:"doc,omitempty"`           // "" or vic.RobotSettings: the settings of each robot, by its species
	Fields      map[string]json.RawMessage `json:"fields,omitempty"`
	Force       bool                       `json:"force,omitempty"` // fields too that no robot is known to read
	Cohort      string                     `json:"cohort,omitempty"`
}

// Draft is a job to be: a filter, or things by name.
type Draft struct {
	Filter *filter.Filter
	Things []thing.ID
	Action Action
	Key    string // the caller's own, at most command.MaxKey bytes; "": every request is another job
	Expect *int   // what a preview counted: a job of more robots is refused
	By     string
}

// Chosen returns by what the robots were chosen, as it is kept: no name or address of a person is in it. "" if they were named.
func (d Draft) Chosen() string {
	if d.Filter == nil {
		return ""
	}
	return d.Filter.Nameless()
}

// State is the state of a job.
type State string

// The states of a job.
const (
	Running   State = "running"
	Done      State = "done"
	Cancelled State = "cancelled"
)

// Job is one job with its progress: Total = Open + Done + Failed + Dropped.
type Job struct {
	ID      string     `json:"job"` // a UUID
	Action  Action     `json:"action"`
	Text    string     `json:"text"`             // the action in words
	DoneIs  string     `json:"done_is"`          // Action.DoneIs
	Filter  string     `json:"filter,omitempty"` // Draft.Chosen
	By      string     `json:"by"`
	Created time.Time  `json:"created"`
	State   State      `json:"state"`
	Closed  *time.Time `json:"closed,omitempty"`
	Total   int        `json:"total"`
	Open    int        `json:"open"`
	Done    int        `json:"done"`
	Failed  int        `json:"failed"`
	Dropped int        `json:"dropped"` // not done, because the job was cancelled
}

// ItemState is the state of one robot in a job.
type ItemState string

// The states of a robot in a job.
const (
	ItemOpen    ItemState = "open"
	ItemDone    ItemState = "done"
	ItemFailed  ItemState = "failed"
	ItemDropped ItemState = "dropped"
)

// ItemStates are all of them.
var ItemStates = []ItemState{ItemOpen, ItemDone, ItemFailed, ItemDropped}

// Result is the result for one robot.
type Result struct {
	Thing  thing.ID   `json:"thing"`
	State  ItemState  `json:"state"`
	Detail string     `json:"detail,omitempty"` // the command's id, the document's version, why it failed
	At     *time.Time `json:"at,omitempty"`
}

// Preview describes the effect of a draft.
type Preview struct {
	Count  int        `json:"count"`
	Sample []thing.ID `json:"sample"`           // the first few
	Owned  int        `json:"owned"`            // robots whose owner's choice a Set replaces; 0 for other actions
	Text   string     `json:"text"`             // the action in words
	Filter string     `json:"filter,omitempty"` // Draft.Chosen
}

// Entry returns the words of the audit log for a job of draft d.
func (p Preview) Entry(d Draft) string {
	out := p.Text + "; named robots"
	if d.Filter != nil {
		out = p.Text + "; " + strconv.Quote(p.Filter)
	}
	if p.Owned > 0 {
		out += fmt.Sprintf("; replaces the choice of the owners of %d", p.Owned)
	}
	return out
}

// Limits and our own defaults.
const (
	MaxThings = 100_000 // of a job
	MaxNamed  = 10_000  // of them by name
	PartSize  = 200     // robots of one task: a few seconds of work, far below jobs.Timeout
	batch     = 20      // robots whose results are kept at once
	sample    = 10
	maxDetail = 300 // bytes
	maxShown  = 60  // bytes of a value in words
	// Keep is how long jobs are kept after their end.
	Keep = 90 * 24 * time.Hour

	DefaultLimit = 100
	MaxLimit     = 1000
)

// TaskRun is the name of the task that does a part of a job; its id comes from PartID.
const TaskRun = "bulk.run"

// PartID names a part of a job for TaskRun.
func PartID(job string, part int) string { return job + "/" + strconv.Itoa(part) }

// Store is the storage that Service needs.
type Store interface {
	// Add keeps a job with its things, in parts of PartSize, and orders TaskRun for each in the same transaction. With a key that the same
	// caller used before it returns that job and added false.
	Add(ctx context.Context, d Draft, things []thing.ID) (j Job, added bool, err error)
	// Get returns a job with its progress; NotFound.
	Get(ctx context.Context, id string) (Job, error)
	// List returns the newest jobs first.
	List(ctx context.Context, limit int) ([]Job, error)
	// Results returns results in the order of their things.
	Results(ctx context.Context, id string, state ItemState, after thing.ID, limit int) ([]Result, error)
	// Open returns at most limit open things of a part of a job that runs.
	Open(ctx context.Context, id string, part, limit int) ([]thing.ID, error)
	// Close keeps the results of things that are open.
	Close(ctx context.Context, id string, results []Result) error
	// Finish ends a running job that has nothing open.
	Finish(ctx context.Context, id string) error
	// Cancel ends a running job and drops what is open.
	Cancel(ctx context.Context, id string) error
	// Reorder orders TaskRun again for each part with something open, and ends jobs that have nothing open.
	Reorder(ctx context.Context) error
	// Forget removes jobs that ended longer than keep ago.
	Forget(ctx context.Context, keep time.Duration) error
}

// Robots carries out the actions, in the domains that own them.
type Robots struct {
	// Select returns what a filter selects; Exhausted above limit.
	Select func(ctx context.Context, f filter.Filter, limit int) ([]thing.ID, error)
	// Known returns NotFound for unregistered things.
	Known func(ctx context.Context, id thing.ID) error
	Tag   func(ctx context.Context, id thing.ID, add, remove []string) ([]string, error)
	Send  func(ctx context.Context, d command.Draft) (command.Command, error)
	// Set sets fields of a robot's document and has the robot told.
	Set func(ctx context.Context, key jdocs.Key, fields map[string]json.RawMessage, by string) (version uint64, err error)
	// Owned returns how many of the robots have an owner.
	Owned func(ctx context.Context, ids []thing.ID) (int, error)
	// Cohort returns a saved cohort.
	Cohort func(ctx context.Context, name string) (cohort.Cohort, error)
}

// Service holds the rules. It is safe for concurrent use.
type Service struct {
	store  Store
	robots Robots
}

// New returns a service on store.
func New(store Store, robots Robots) *Service { return &Service{store, robots} }

// check brings an action into the form in which it is kept, and reports what is wrong with it.
func (s *Service) check(ctx context.Context, a Action) (Action, error) {
	out := Action{Kind: a.Kind}
	switch a.Kind {
	case Tag:
		out.Add, out.Remove = a.Add, a.Remove
		if len(a.Add)+len(a.Remove) == 0 || len(a.Add)+len(a.Remove) > registry.MaxTags {
			return out, errs.New(errs.Invalid, "tag: want 1 to %d tags in add and remove", registry.MaxTags)
		}
		for _, t := range slices.Concat(a.Add, a.Remove) {
			if err := registry.CheckTag(t); err != nil {
				return out, err
			}
		}
	case Command:
		if commandwire.Moves(a.Command) {
			return out, errs.Coded(errs.Invalid, "one_at_a_time", "command %s: not for many robots; send it to one at a time", a.Command)
		}
		d := command.Draft{Kind: a.Command, Args: a.Args, TTL: time.Duration(a.ExpiresInMS) * time.Millisecond}
		if a.ExpiresInMS < 0 || a.ExpiresInMS > int64(1000*time.Hour/time.Millisecond) {
			return out, errs.New(errs.Invalid, "expires_in_ms %d: want 0 or more", a.ExpiresInMS)
		}
		if err := d.Check(); err != nil {
			return out, err
		}
		out.Command, out.Args, out.ExpiresInMS = d.Kind, d.Args, d.TTL.Milliseconds()
	case Set:
		name, err := jdocs.ParseName(cmp.Or(a.Doc, string(jdocs.RobotSettings)))
		if err != nil {
			return out, err
		}
		if name != jdocs.RobotSettings {
			return out, errs.New(errs.Invalid, "set: document %.80q: want %s, the only one that a bulk job changes", name, jdocs.RobotSettings)
		}
		if len(a.Fields) == 0 {
			return out, errs.New(errs.Invalid, "set: want at least one field")
		}
		if err := someTake(a); err != nil {
			return out, err
		}
		out.Doc, out.Fields = string(name), maps.Clone(a.Fields)
	case Cohort:
		c, err := s.robots.Cohort(ctx, a.Cohort)
		if err != nil {
			return out, err
		}
		if _, ok := c.Tag(); !ok {
			return out, errs.New(errs.Invalid, "cohort %s has the filter %s: want a cohort whose filter is a single tag, to which robots can be added", c.Name, c.Filter)
		}
		out.Cohort = c.Name
	default:
		return out, errs.New(errs.Invalid, "action %.20q: want one of %s, %s, %s, %s", a.Kind, Tag, Command, Set, Cohort)
	}
	// A field of another kind is a mistake, and is refused.
	rest := a
	switch a.Kind {
	case Tag:
		rest.Add, rest.Remove = nil, nil
	case Command:
		rest.Command, rest.Args, rest.ExpiresInMS = "", nil, 0
	case Set:
		rest.Doc, rest.Fields, rest.Force = "", nil, false
	case Cohort:
		rest.Cohort = ""
	}
	if len(rest.Add)+len(rest.Remove)+len(rest.Args)+len(rest.Fields) > 0 || rest.Force || rest.Command+rest.Doc+rest.Cohort != "" || rest.ExpiresInMS != 0 {
		return out, errs.New(errs.Invalid, "action %s: has fields of another action", a.Kind)
	}
	return out, nil
}

// DoneIs says what Done means for a robot of a job: "stored" if the robot has yet to act on it.
func (a Action) DoneIs() string {
	if a.Kind == Command || a.Kind == Set {
		return "stored"
	}
	return string(Done)
}

// String says an action in words. Arguments of commands and a place are not in it: they may be a person's words.
func (a Action) String() string {
	switch a.Kind {
	case Tag:
		var out []string
		if len(a.Add) > 0 {
			out = append(out, "add tag "+strings.Join(a.Add, ", "))
		}
		if len(a.Remove) > 0 {
			out = append(out, "remove tag "+strings.Join(a.Remove, ", "))
		}
		return strings.Join(out, ", ")
	case Command:
		return "send command " + a.Command
	case Set:
		var out []string
		for _, f := range slices.Sorted(maps.Keys(a.Fields)) {
			out = append(out, f+"="+shown(f, a.Fields[f]))
		}
		return "set " + strings.Join(out, ", ") + " of " + a.Doc
	case Cohort:
		return "put into cohort " + a.Cohort
	}
	return string(a.Kind)
}

// shown returns the value of a field as people may read it.
func shown(field string, value json.RawMessage) string {
	if field == "default_location" {
		return "(a place)"
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// someTake returns an error unless the robots of some species take all the settings; what Vectors say of them then.
func someTake(a Action) (first error) {
	for _, name := range jdocs.Settings() {
		err := take(name, a)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// take returns an error unless the fields are in a document of settings and it can have the values.
func take(name jdocs.Name, a Action) error {
	if !a.Force {
		if err := jdocs.CheckNames(name, "{}", true, a.Fields); err != nil {
			return err
		}
	}
	for _, f := range slices.Sorted(maps.Keys(a.Fields)) {
		if _, err := jdocs.CheckField(name, f, a.Fields[f]); err != nil {
			return err
		}
	}
	return nil
}

// choose checks a draft and returns the robots it is about.
func (s *Service) choose(ctx context.Context, d *Draft) ([]thing.ID, error) {
	switch {
	case (d.Filter == nil) == (len(d.Things) == 0):
		return nil, errs.New(errs.Invalid, "want either a filter or a list of things; an empty filter selects the whole fleet")
	case len(d.Things) > MaxNamed:
		return nil, errs.New(errs.Invalid, "%d things: want at most %d, or a filter", len(d.Things), MaxNamed)
	case len(d.Key) > command.MaxKey || strings.ContainsRune(d.Key, 0) || !utf8.ValidString(d.Key):
		return nil, errs.New(errs.Invalid, "key %.80q: want at most %d bytes of UTF-8 without NUL", d.Key, command.MaxKey)
	}
	var err error
	if d.Action, err = s.check(ctx, d.Action); err != nil {
		return nil, err
	}
	if d.Filter != nil {
		return s.robots.Select(ctx, *d.Filter, MaxThings)
	}
	things := slices.Clone(d.Things)
	for i, id := range things {
		if things[i], err = thing.Parse(string(id)); err != nil {
			return nil, errs.New(errs.Invalid, "things: %w", err)
		}
	}
	slices.Sort(things)
	return slices.Compact(things), nil
}

// Preview says what a draft would do, and to how many.
func (s *Service) Preview(ctx context.Context, d Draft) (Preview, error) {
	things, err := s.choose(ctx, &d)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Count: len(things), Sample: append([]thing.ID{}, things[:min(len(things), sample)]...), Text: d.Action.String(), Filter: d.Chosen()}
	if d.Action.Kind == Set {
		p.Owned, err = s.robots.Owned(ctx, things)
	}
	return p, err
}

// Start keeps a job and has it begun. The same caller's same key again returns the job of the first time; Conflict if that was another one, or
// if the job would be larger than expected.
func (s *Service) Start(ctx context.Context, d Draft) (Job, error) {
	things, err := s.choose(ctx, &d)
	if err != nil {
		return Job{}, err
	}
	if d.Expect != nil && len(things) > *d.Expect {
		return Job{}, errs.Coded(errs.Conflict, "more_than_expected", "selection has %d robots now, %d were expected: review it and try again", len(things), *d.Expect)
	}
	if len(things) == 0 {
		return Job{}, errs.Coded(errs.Invalid, "nothing_selected", "no robot is selected")
	}
	j, added, err := s.store.Add(ctx, d, things)
	if err != nil {
		return Job{}, err
	}
	if !added {
		if !same(j.Action, d.Action) || j.Filter != d.Chosen() {
			return Job{}, errs.Coded(errs.Conflict, "key_used", "key %q is already used by job %s, which does something else", d.Key, j.ID)
		}
	}
	return j.inWords(), nil
}

// inWords returns j with the words for its action.
func (j Job) inWords() Job {
	j.Text, j.DoneIs = j.Action.String(), j.Action.DoneIs()
	return j
}

// same compares actions as they are kept.
func same(a, b Action) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	var u, v any
	if errX != nil || errY != nil || json.Unmarshal(x, &u) != nil || json.Unmarshal(y, &v) != nil {
		return false
	}
	return fmt.Sprint(u) == fmt.Sprint(v)
}

// Job returns a job with its progress; NotFound.
func (s *Service) Job(ctx context.Context, id string) (Job, error) {
	j, err := s.store.Get(ctx, id)
	return j.inWords(), err
}

// Jobs returns the newest jobs first.
func (s *Service) Jobs(ctx context.Context, limit int) ([]Job, error) {
	if limit <= 0 || limit > MaxLimit {
		limit = DefaultLimit
	}
	out, err := s.store.List(ctx, limit)
	for i := range out {
		out[i] = out[i].inWords()
	}
	return out, err
}

// Results returns what became of the robots of a job, those of a state ("": all), in the order of their ids, after one.
func (s *Service) Results(ctx context.Context, id string, state ItemState, after thing.ID, limit int) ([]Result, error) {
	if state != "" && !slices.Contains(ItemStates, state) {
		return nil, errs.New(errs.Invalid, "state %.20q: want one of %s", state, errs.List(ItemStates))
	}
	if limit <= 0 || limit > MaxLimit {
		limit = DefaultLimit
	}
	if _, err := s.store.Get(ctx, id); err != nil {
		return nil, err
	}
	return s.store.Results(ctx, id, state, after, limit)
}

// Cancel ends a job: what is under way is done, the rest is dropped. A job that has ended stays as it is.
func (s *Service) Cancel(ctx context.Context, id string) (Job, error) {
	if _, err := s.store.Get(ctx, id); err != nil {
		return Job{}, err
	}
	if err := s.store.Cancel(ctx, id); err != nil {
		return Job{}, err
	}
	return s.Job(ctx, id)
}

// Run does a part of a job: TaskRun. An error means that the rest of the part is tried again.
func (s *Service) Run(ctx context.Context, partID string) error {
	id, num, _ := strings.Cut(partID, "/")
	part, err := strconv.Atoi(num)
	if err != nil {
		return nil // no job has such a part: it is gone
	}
	j, err := s.store.Get(ctx, id)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	for {
		// Read each time: a cancelled job has nothing open.
		things, err := s.store.Open(ctx, id, part, batch)
		if err != nil {
			return err
		}
		if len(things) == 0 {
			return s.store.Finish(ctx, id)
		}
		var results []Result
		var later error
		for _, t := range things {
			detail, err := s.one(ctx, j, t)
			switch {
			case err == nil:
				results = append(results, Result{Thing: t, State: ItemDone, Detail: clip(detail)})
			case ctx.Err() != nil || errs.KindOf(err) == errs.Unavailable:
				later = err
			default:
				results = append(results, Result{Thing: t, State: ItemFailed, Detail: clip(errs.Public(err))})
			}
			if later != nil {
				break
			}
		}
		if len(results) > 0 {
			// The results are kept although the time is over.
			kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			err := s.store.Close(kept, id, results)
			cancel()
			if err != nil {
				return err
			}
		}
		if later != nil {
			return later
		}
	}
}

// one does the action to one robot. Twice is as once.
func (s *Service) one(ctx context.Context, j Job, id thing.ID) (detail string, err error) {
	if err := s.robots.Known(ctx, id); err != nil {
		return "", err
	}
	a := j.Action
	switch a.Kind {
	case Cohort:
		c, err := s.robots.Cohort(ctx, a.Cohort)
		if err != nil {
			return "", err
		}
		tag, ok := c.Tag()
		if !ok {
			return "", errs.New(errs.Invalid, "cohort %s: its filter is no longer a single tag", a.Cohort)
		}
		a.Add = []string{tag}
		fallthrough
	case Tag:
		tags, err := s.robots.Tag(ctx, id, a.Add, a.Remove)
		return strings.Join(tags, " "), err
	case Command:
		c, err := s.robots.Send(ctx, command.Draft{Thing: id, Kind: a.Command, Args: a.Args, TTL: time.Duration(a.ExpiresInMS) * time.Millisecond, By: j.By, Key: "bulk " + j.ID})
		return "stored as command " + c.ID, err
	case Set:
		key := jdocs.Key{Thing: id, Name: jdocs.Name(a.Doc).Of(id)}
		if err := cmp.Or(jdocs.CheckSettings(key), take(key.Name, a)); err != nil {
			return "", err
		}
		v, err := s.robots.Set(ctx, key, a.Fields, j.By)
		if err != nil {
			return "", err
		}
		detail := "stored as version " + strconv.FormatUint(v, 10)
		if n, err := s.robots.Owned(ctx, []thing.ID{id}); err == nil && n > 0 {
			detail += "; replaces its owner's choice"
		}
		return detail, nil
	}
	return "", errs.New(errs.Invalid, "action %.20q: unknown to this release of Kennel", a.Kind)
}

// Resume orders again what was given up after many attempts; a periodic job.
func (s *Service) Resume(ctx context.Context) error { return s.store.Reorder(ctx) }

// Forget removes jobs that ended longer than Keep ago; a periodic job.
func (s *Service) Forget(ctx context.Context) error { return s.store.Forget(ctx, Keep) }

func clip(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\ufffd")
	if len(s) > maxDetail {
		s = strings.ToValidUTF8(s[:maxDetail], "") + "…"
	}
	return s
}
