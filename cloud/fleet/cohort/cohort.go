// Package cohort keeps filters of the fleet under names, so that a part of it can be spoken of: in other filters and by rollouts, as
// cohort:<name>. A cohort is a question, not a list: who belongs to it is found out when it is asked. Robots that are picked by hand come
// into a cohort whose filter is one tag (Tag).
package cohort

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Cohort is a saved filter.
type Cohort struct {
	Name    string        `json:"cohort"`
	Filter  filter.Filter `json:"filter"`
	Note    string        `json:"note,omitempty"` // purpose of the cohort
	By      string        `json:"by"`             // who wrote it last
	Created time.Time     `json:"created"`
	Changed time.Time     `json:"changed"`
	Rev     int64         `json:"rev"` // raised by every change
}

// Tag returns the tag by which robots belong to the cohort; ok is false for one that chooses them by anything else.
func (c Cohort) Tag() (tag string, ok bool) {
	if len(c.Filter.Terms) != 1 {
		return "", false
	}
	t := c.Filter.Terms[0]
	if t.Key != filter.Tag || t.Not || len(t.Values) != 1 || t.Values[0].Text == filter.None || t.Values[0].Text == filter.Any {
		return "", false
	}
	return t.Values[0].Text, true
}

// Limits.
const (
	MaxNote = 400 // bytes
	Max     = 500 // cohorts
)

// Revisions that Put takes besides the one that the writer knows.
const (
	Fresh    int64 = 0  // there must be none of that name
	Whatever int64 = -1 // replace what is there, or make it
)

// Store is the storage that Service needs.
type Store interface {
	// List returns all in the order of their names.
	List(ctx context.Context) ([]Cohort, error)
	// Get returns one; NotFound.
	Get(ctx context.Context, name string) (Cohort, error)
	// Put keeps c if what is there has revision rev (Fresh and Whatever as above) and returns what is kept; Conflict, Exhausted above Max.
	Put(ctx context.Context, c Cohort, rev int64) (Cohort, error)
	// Delete removes one; NotFound.
	Delete(ctx context.Context, name string) error
}

// Service holds the rules. It is safe for concurrent use.
type Service struct {
	store Store
	// Users return what uses a cohort, in words; "" is nothing. It then stays. They are added before the service is used.
	Users []func(ctx context.Context, name string) (string, error)
}

// New returns a service on store.
func New(store Store) *Service { return &Service{store: store} }

var names = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,38}[a-z0-9])?$`)

// CheckName reports why s is no name of a cohort.
func CheckName(s string) error {
	if !names.MatchString(s) {
		return errs.New(errs.Invalid, "cohort %.60q: want 1 to 40 lower-case letters, digits, and . _ - within", s)
	}
	return nil
}

// List returns all cohorts in the order of their names.
func (s *Service) List(ctx context.Context) ([]Cohort, error) { return s.store.List(ctx) }

// Get returns one; NotFound.
func (s *Service) Get(ctx context.Context, name string) (Cohort, error) {
	if err := CheckName(name); err != nil {
		return Cohort{}, err
	}
	return s.store.Get(ctx, name)
}

// Filter returns the filter of a cohort: the Cohort of filter.Sources.
func (s *Service) Filter(ctx context.Context, name string) (filter.Filter, error) {
	c, err := s.Get(ctx, name)
	return c.Filter, err
}

// Put saves a filter if the stored one has revision rev: the one that the writer saw, Fresh or Whatever. Errors: Invalid, Conflict,
// Exhausted.
func (s *Service) Put(ctx context.Context, c Cohort, by string, rev int64) (Cohort, error) {
	c.By, c.Note = by, strings.TrimSpace(c.Note)
	switch {
	case len(c.Note) > MaxNote || !utf8.ValidString(c.Note) || strings.ContainsRune(c.Note, 0):
		return Cohort{}, errs.New(errs.Invalid, "note of %d bytes: want at most %d of UTF-8 without NUL", len(c.Note), MaxNote)
	case len(c.Filter.Terms) == 0:
		return Cohort{}, errs.New(errs.Invalid, "cohort %.60q: the filter is empty and would select the whole fleet: want a term such as species:vic", c.Name)
	case c.Filter.Uses(filter.Owner):
		return Cohort{}, errs.New(errs.Invalid, "cohort %.60q: owner: is not allowed, because not everyone who uses cohorts may see owners: want a tag instead", c.Name)
	case rev < Whatever:
		return Cohort{}, errs.New(errs.Invalid, "revision %d: want the cohort's revision, or none", rev)
	}
	if err := CheckName(c.Name); err != nil {
		return Cohort{}, err
	}
	// It must not lead back to itself, nor to what is not there, nor cost more than a filter may.
	named := func(context.Context, []string) (map[string][]thing.ID, error) { return nil, nil }
	owned := func(context.Context, string) ([]thing.ID, error) { return nil, nil }
	_, err := c.Filter.Resolve(ctx, filter.Sources{Named: named, OwnedBy: owned, Cohort: func(ctx context.Context, name string) (filter.Filter, error) {
		if name == c.Name {
			return filter.Filter{}, errs.New(errs.Invalid, "cohort %s: its filter refers to itself", name)
		}
		f, err := s.Filter(ctx, name)
		if errs.KindOf(err) == errs.NotFound && err != nil {
			return f, errs.Coded(errs.Invalid, "no_cohort", "there is no cohort %s", name)
		}
		return f, err
	}})
	if err != nil {
		return Cohort{}, err
	}
	return s.store.Put(ctx, c, rev)
}

// Delete removes a cohort. NotFound; Conflict while another one, or one of Users, asks for it.
func (s *Service) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	all, err := s.store.List(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		for _, t := range c.Filter.Terms {
			for _, v := range t.Values {
				if t.Key == filter.Cohort && v.Text == name {
					return errs.Coded(errs.Conflict, "in_use", "cohort %s is used by cohort %s: change that one first", name, c.Name)
				}
			}
		}
	}
	for _, uses := range s.Users {
		switch what, err := uses(ctx, name); {
		case err != nil:
			return err
		case what != "":
			return errs.Coded(errs.Conflict, "in_use", "cohort %s is used by %s and cannot be deleted", name, what)
		}
	}
	if err := s.store.Delete(ctx, name); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
