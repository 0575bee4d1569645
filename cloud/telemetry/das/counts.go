package das

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"kennel/infra/api/events"
	"kennel/infra/errs"
)

// Grouping says which events Counts puts together.
type Grouping string

// The groupings.
const (
	ByHour    Grouping = "hour"
	ByDay     Grouping = "day"
	ByEvent   Grouping = "event"
	ByVersion Grouping = "version"
	BySource  Grouping = "source"
	ByLevel   Grouping = "level"
	ByRobot   Grouping = "robot"
)

// Groupings are all of them.
var Groupings = []Grouping{ByHour, ByDay, ByEvent, ByVersion, BySource, ByLevel, ByRobot}

// Time reports whether groups are stretches of time.
func (g Grouping) Time() bool { return g == ByHour || g == ByDay }

// MaxGroups is how many groups an answer has at most: the largest, or the latest of stretches of time.
const MaxGroups = 800

// CountsQuery asks how many events there were. The zero Filter.Until is now, the zero Filter.Since a day before.
type CountsQuery struct {
	Filter Filter
	By     Grouping
	Of     string // a number, i1 to i4, of which quantiles are wanted; "": none
}

// Count says how many events there were in one group.
type Count struct {
	Key     string   `json:"key"` // the hour or day it begins with, such as 2026-05-06T12:00:00Z; else the name
	Events  uint64   `json:"events"`
	Robots  uint64   `json:"robots"`
	Misfits uint64   `json:"misfits"` // events that do not fit their description
	Numbers *Numbers `json:"numbers,omitempty"`
}

// Numbers says how a number was distributed over those events that have it.
type Numbers struct {
	Count uint64  `json:"count"`
	Min   int64   `json:"min"`
	Max   int64   `json:"max"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
}

// Counts is the answer to a CountsQuery.
type Counts struct {
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	By     Grouping  `json:"by"`
	Of     string    `json:"of,omitempty"`
	Total  Count     `json:"total"`
	Groups []Count   `json:"groups"` // stretches of time in their order, without those that have no event; others the largest first
	Cut    bool      `json:"cut"`    // there are more groups
}

// ReadCounts reads a query from the parameters of an address: those of a filter, by and of.
func ReadCounts(v url.Values, now time.Time, other func(key, value string) (bool, error)) (q CountsQuery, err error) {
	of := ""
	q.By = ByHour
	if q.Filter, err = ReadFilter(v, now, func(key, value string) (bool, error) {
		switch key {
		case "by":
			if q.By = Grouping(value); !slices.Contains(Groupings, q.By) {
				return true, fmt.Errorf("want one of %s", errs.List(Groupings))
			}
		case "of":
			of = value
		default:
			if other != nil {
				return other(key, value)
			}
			return false, nil
		}
		return true, nil
	}); err != nil || of == "" {
		return q, err
	}
	q.Of, err = NumberOf(q.Filter.Name, of)
	return q, err
}

// NumberOf returns the field of a number of an event, which is called by its field or by its name in the description.
func NumberOf(event, value string) (string, error) {
	field, ok := events.FieldOf(event, value)
	if !ok || !strings.HasPrefix(field, "i") {
		return "", errs.New(errs.Invalid, "of %.40q: want a number, %s", value, namesOf(event))
	}
	return field, nil
}

// Counts counts events.
func (s *Service) Counts(ctx context.Context, q CountsQuery) (Counts, error) {
	if q.Filter.Until.IsZero() {
		q.Filter.Until = s.now().UTC()
	}
	if q.Filter.Since.IsZero() {
		q.Filter.Since = q.Filter.Until.Add(-24 * time.Hour)
	}
	var err error
	if q.Filter, err = s.resolve(ctx, q.Filter); err != nil {
		return Counts{}, err
	}
	c, err := s.reader.Counts(ctx, q)
	c.Since, c.Until, c.By, c.Of = q.Filter.Since, q.Filter.Until, q.By, q.Of
	if c.Groups == nil {
		c.Groups = []Count{}
	}
	return c, err
}

// resolve finds out which robots a filter of the fleet selects.
func (s *Service) resolve(ctx context.Context, f Filter) (Filter, error) {
	if f.Robots == "" {
		return f, nil
	}
	if s.robots == nil {
		return f, errs.New(errs.Invalid, "robots %.60q: cannot be used here: want thing", f.Robots)
	}
	ids, err := s.robots(ctx, f.Robots)
	if err != nil {
		return f, fmt.Errorf("robots: %w", err)
	}
	if f.Things = ids; ids == nil {
		f.Things = ids[:0:0]
	}
	return f, nil
}
