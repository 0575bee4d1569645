package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Column is a sort key of the fleet's table.
type Column string

// The columns.
const (
	ByID       Column = "id"
	ByPresence Column = "presence" // absent before present
	BySince    Column = "since"
	BySeen     Column = "seen"
	ByCreated  Column = "created"
	ByVersion  Column = "version"
	ByAgent    Column = "agent"
	ByBody     Column = "body"
	ByBattery  Column = "battery"
	ByLoop     Column = "loop"
	ByProblems Column = "problems" // how many kinds
	ByCert     Column = "cert"
)

// Columns are all columns, in the order in which help shows them.
var Columns = []Column{ByID, ByPresence, BySince, BySeen, ByCreated, ByVersion, ByAgent, ByBody, ByBattery, ByLoop, ByProblems, ByCert}

// ParseSort reads a column, with a minus before it for the other way round; "" is ByID.
func ParseSort(s string) (c Column, desc bool, err error) {
	name, desc := strings.CutPrefix(s, "-")
	if c = Column(name); name == "" && !desc {
		return ByID, false, nil
	}
	if !slices.Contains(Columns, c) {
		return "", false, errs.New(errs.Invalid, "sort %.20q: want one of %s, with a leading - for descending order", s, errs.List(Columns))
	}
	return c, desc, nil
}

// Cursor is where a page ends: the next one begins after it, whatever changed meanwhile. It belongs to one order; by
// id, it is a thing id.
type Cursor string

// Place is the content of a cursor. Stores make and read it.
type Place struct {
	Sort  Column   `json:"s"`
	Desc  bool     `json:"d,omitempty"`
	Key   string   `json:"k,omitempty"` // the column's value as Postgres writes it; ByID has none
	Thing thing.ID `json:"t"`
}

// Cursor returns the place as people carry it about; by id it is the id.
func (p Place) Cursor() Cursor {
	if p.Sort == ByID {
		return Cursor(p.Thing)
	}
	b, _ := json.Marshal(p) // texts and a bool always encode
	return Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// Place reads a cursor for an order; errors are of kind Invalid.
func (c Cursor) Place(sort Column, desc bool) (Place, error) {
	if sort == ByID {
		id, err := thing.Parse(string(c))
		if err != nil {
			err = errs.New(errs.Invalid, "after: %w", err)
		}
		return Place{Sort: sort, Desc: desc, Thing: id}, err
	}
	var p Place
	b, err := base64.RawURLEncoding.DecodeString(string(c))
	if err != nil || len(b) > 400 || json.Unmarshal(b, &p) != nil {
		return p, errs.New(errs.Invalid, "after %.40q: want the cursor of the previous page", c)
	}
	if _, err := thing.Parse(string(p.Thing)); err != nil || strings.ContainsRune(p.Key, 0) {
		return p, errs.New(errs.Invalid, "after %.40q: it names no robot", c)
	}
	if p.Sort != sort || p.Desc != desc {
		return p, errs.New(errs.Invalid, "after: the cursor belongs to another sort order; start from the first page")
	}
	return p, nil
}

// Selection is one page's worth of a question.
type Selection struct {
	Filter filter.Filter
	Sort   Column // "": ByID
	Desc   bool
	After  Cursor // "": from the beginning
	Limit  int    // 0: DefaultLimit; at most MaxLimit
}

// Page is things in the order asked for.
type Page struct {
	Things []Thing
	Next   Cursor // "": this is the last page
}

// Bucket is how many robots have one value.
type Bucket struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Counts is a selection in numbers. Buckets stand in the order of their counts, the largest first; a value that a robot does not have is
// filter.None.
type Counts struct {
	Total    int       `json:"total"`
	Present  int       `json:"present"`
	Absent   int       `json:"absent"`          // those never seen among them
	Calls    int       `json:"calls,omitempty"` // original robots, which are neither present nor absent
	At       time.Time `json:"at"`
	Presence []Bucket  `json:"presence"` // present, absent, calls, never
	Species  []Bucket  `json:"species"`
	Version  []Bucket  `json:"version"`
	Agent    []Bucket  `json:"agent"`
	Body     []Bucket  `json:"body"`
	Battery  []Bucket  `json:"battery"` // levels
	Loop     []Bucket  `json:"loop"`
	Problem  []Bucket  `json:"problem"`
	Tag      []Bucket  `json:"tag"`
}

// MaxBuckets bounds the buckets of each kind; what is beyond is in none of them.
const MaxBuckets = 100

// Table returns one page of the fleet. Pages are stable under change: a row whose sort key does not change appears exactly once.
func (s *Service) Table(ctx context.Context, q Selection) (Page, error) {
	if q.Sort == "" {
		q.Sort = ByID
	}
	switch {
	case !slices.Contains(Columns, q.Sort):
		return Page{}, errs.New(errs.Invalid, "sort %.20q: want one of %s", q.Sort, errs.List(Columns))
	case q.Limit < 0 || q.Limit > MaxLimit:
		return Page{}, errs.New(errs.Invalid, "limit %d: want 1 to %d", q.Limit, MaxLimit)
	case q.Limit == 0:
		q.Limit = DefaultLimit
	}
	var after *Place
	if q.After != "" {
		p, err := q.After.Place(q.Sort, q.Desc)
		if err != nil {
			return Page{}, err
		}
		after = &p
	}
	f, err := q.Filter.Resolve(ctx, s.src.Filter)
	if err != nil {
		return Page{}, err
	}
	q.Filter = f
	things, next, err := s.table.Table(ctx, q, after)
	if err != nil {
		return Page{}, err
	}
	p := Page{Things: things}
	if next != nil {
		p.Next = next.Cursor()
	}
	return p, s.name(ctx, p.Things)
}

// Select returns the ids that the filter selects, in their order; Exhausted if they are more than limit.
func (s *Service) Select(ctx context.Context, f filter.Filter, limit int) ([]thing.ID, error) {
	f, err := f.Resolve(ctx, s.src.Filter)
	if err != nil {
		return nil, err
	}
	ids, err := s.table.Select(ctx, f, limit+1)
	if len(ids) > limit {
		return nil, errs.New(errs.Exhausted, "the filter selects more than %d robots", limit)
	}
	return ids, err
}

// mostSelected is how many robots Selected returns.
const mostSelected = 20_000

// Selected returns the ids that a filter selects, which is given as text; Exhausted if they are very many.
func (s *Service) Selected(ctx context.Context, text string) ([]thing.ID, error) {
	f, err := filter.Parse(text)
	if err != nil {
		return nil, err
	}
	return s.Select(ctx, f, mostSelected)
}

// Brief is a short account of one robot, for callers that decide about many at once.
type Brief struct {
	Thing   thing.ID
	In      bool // the filter selects it
	Version string
	Level   string // of its battery
	Present bool
	Since   time.Time // when it went; zero: it is present, or never was
	Codes   []string  // of its problems: kind/code, or the kind alone; of crashes those on the release that it runs (CrashToken)
}

// nothing selects no robot.
var nothing = filter.Filter{Terms: []filter.Term{{Key: filter.Cohort, Values: []filter.Value{{Text: filter.None}}}}}

// resolve resolves a filter that was kept. If it cannot be asked any more, as a cohort that it names is gone or has grown too costly, it selects nothing, and refused says why.
func (s *Service) resolve(ctx context.Context, f filter.Filter) (_ filter.Filter, refused, err error) {
	f, err = f.Resolve(ctx, s.src.Filter)
	if kind := errs.KindOf(err); err != nil && (kind == errs.NotFound || kind == errs.Invalid) {
		return nothing, err, nil
	}
	return f, nil, err
}

// Briefs returns what a filter selects, and those of also that exist, in no order. They share memory. A filter that cannot be asked selects nothing (Refused).
func (s *Service) Briefs(ctx context.Context, f filter.Filter, also []thing.ID) ([]Brief, error) {
	f, _, err := s.resolve(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.table.Briefs(ctx, f, also)
}

// Refused says why a filter that was kept selects nothing by now, such as that a cohort that it names is gone; "": it can be asked.
func (s *Service) Refused(ctx context.Context, f filter.Filter) (why string, err error) {
	_, refused, err := s.resolve(ctx, f)
	if refused != nil {
		why = errs.Public(refused)
	}
	return why, err
}

// Owners returns the e-mails of the owners of robots, for callers who may know (Denied); a robot without an owner has none.
func (s *Service) Owners(ctx context.Context, ids []thing.ID) (map[thing.ID]string, error) {
	if s.src.Owners == nil || len(ids) == 0 {
		return nil, nil
	}
	return s.src.Owners(ctx, ids)
}

// name fills in what owners call their robots.
func (s *Service) name(ctx context.Context, things []Thing) error {
	if s.src.Names == nil || len(things) == 0 {
		return nil
	}
	ids := make([]thing.ID, len(things))
	for i := range things {
		ids[i] = things[i].ID
	}
	names, err := s.src.Names(ctx, ids)
	if err != nil {
		return fmt.Errorf("names: %w", err)
	}
	for i := range things {
		things[i].Name = names[things[i].ID]
	}
	return nil
}

// Limits of tags.
const (
	MaxTags    = 32 // of one robot
	MaxTagSize = 32 // bytes
)

var tagPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

// TagsRequest is the body of PATCH /v1/things/{thing}/tags.
type TagsRequest struct {
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// Tags is its answer.
type Tags struct {
	Thing thing.ID `json:"thing"`
	Tags  []string `json:"tags"`
}

// CheckTag reports why s is no tag: lower-case letters, digits, and . _ - within.
func CheckTag(s string) error {
	if len(s) > MaxTagSize || !tagPattern.MatchString(s) || s == filter.None || s == filter.Any {
		return errs.New(errs.Invalid, "tag %.40q: want 1 to %d lower-case letters, digits, and . _ - within; not %s or %s", s, MaxTagSize, filter.None, filter.Any)
	}
	return nil
}

// Tag adds and removes tags of a thing and returns those it has then, in order. What is in both is removed. NotFound; Exhausted above MaxTags.
func (s *Service) Tag(ctx context.Context, id thing.ID, add, remove []string) ([]string, error) {
	if len(add)+len(remove) == 0 || len(add) > MaxTags || len(remove) > MaxTags {
		return nil, errs.New(errs.Invalid, "%d tags to add, %d to remove: want at least one and at most %d of each", len(add), len(remove), MaxTags)
	}
	for _, t := range slices.Concat(add, remove) {
		if err := CheckTag(t); err != nil {
			return nil, err
		}
	}
	return s.table.Tag(ctx, id, add, remove)
}

// SetCertificates says until when the newest certificates of things are good; a zero time: none is. Unknown things are passed over.
func (s *Service) SetCertificates(ctx context.Context, until map[thing.ID]time.Time) error {
	return s.table.SetCertificates(ctx, until)
}
