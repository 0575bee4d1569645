// Package preflight says what an installation lacks before strangers may reach it: a list of checks, made at the moment of the question. Rules are
// pure functions of facts; readyhost and the wiring gather the facts.
package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"kennel/infra/errs"
)

// State is the result of a check.
type State string

// The states. NotChecked is neither good nor bad: its facts are not available, and Says tells why.
const (
	OK         State = "ok"
	Missing    State = "missing"
	NotChecked State = "not checked"
)

// CheckItem is one result.
type CheckItem struct {
	Name  string `json:"name"`  // of the check, for programs
	Title string `json:"title"` // for people
	State State  `json:"state"`
	Says  string `json:"says"`         // what was found, a sentence
	Do    string `json:"do,omitempty"` // what to do about it, a sentence; only with Missing and NotChecked
}

// Result is a rule's judgement of facts.
type Result struct {
	State State
	Says  string
	Do    string
}

func good(format string, args ...any) Result {
	return Result{State: OK, Says: fmt.Sprintf(format, args...)}
}

func missing(do, format string, args ...any) Result {
	return Result{Missing, fmt.Sprintf(format, args...), do}
}

// Unknown is the result of a check whose facts could not be had.
func Unknown(do, format string, args ...any) Result {
	return Result{NotChecked, fmt.Sprintf(format, args...), do}
}

// Check is one question.
type Check struct {
	Name, Title string
	// Look gathers the facts and judges them. An error means that they could not be had.
	Look func(ctx context.Context, now time.Time) (Result, error)
}

// Checklist is all results, in the order of the checks.
type Checklist struct {
	At    time.Time   `json:"at"`
	Ready bool        `json:"ready"` // nothing is missing
	Items []CheckItem `json:"items"`
}

// checkTime bounds one check.
const checkTime = 4 * time.Second

// Service makes the checks. Safe for concurrent use.
type Service struct {
	checks []Check
	now    func() time.Time
}

// New returns the service. now may be nil: time.Now.
func New(now func() time.Time, checks ...Check) *Service {
	if now == nil {
		now = time.Now
	}
	return &Service{checks, now}
}

// Check makes all checks at once.
func (s *Service) Check(ctx context.Context) Checklist {
	r := Checklist{At: s.now().UTC(), Items: make([]CheckItem, len(s.checks))}
	var all sync.WaitGroup
	for i, c := range s.checks {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkTime)
			defer cancel()
			got, err := c.Look(ctx, r.At)
			if err != nil {
				got = Unknown("Try again; the log of kenneld says more.", "This could not be checked: %s.", errs.Public(err))
			}
			r.Items[i] = CheckItem{c.Name, c.Title, got.State, got.Says, got.Do}
		})
	}
	all.Wait()
	r.Ready = !slices.ContainsFunc(r.Items, func(i CheckItem) bool { return i.State == Missing })
	return r
}

// Kind names what is recorded.
type Kind string

// Records are of a backup that was made, a drill that restored one, a letter that the mail server took.
const (
	Backup Kind = "backup"
	Drill  Kind = "drill"
	Mail   Kind = "mail"
)

// Record is the last time that something worked, or that it did not.
type Record struct {
	Kind   Kind
	OK     bool
	At     time.Time
	Says   string          // a sentence
	Report json.RawMessage // may be nil
}

// Last is the last good and the last bad record of a kind; a zero Record: there is none.
type Last struct{ Good, Bad Record }

// Store is the storage that the checks need.
type Store interface {
	// Record keeps r unless a later one of its kind and outcome is there.
	Record(ctx context.Context, r Record) error
	Last(ctx context.Context, k Kind) (Last, error)
}
