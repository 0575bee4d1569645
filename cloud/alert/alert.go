// Package alert tells when many robots of one release have the same problem, which points to the release rather than to a robot, when a version's share of
// crashes or faults, or its rate of an event, crosses a threshold, and when a part of the cloud itself does not work or soon will not.
//
// Look runs as a periodic job: it counts present robots by release and problem, and compares the counts with the one rule that operators
// set. An alert fires as soon as the rule holds, and is resolved when the rule has not held for ResolveAfter; then it is kept for Keep. Webhooks
// hear of both (alert.firing, alert.resolved), and so do people by letter.
package alert

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kennel/cloud/mail"
	"kennel/cloud/registry"
	"kennel/infra/errs"
)

// Own defaults.
const (
	LookEvery    = 15 * time.Second
	ResolveAfter = 30 * time.Second    // so that problems that come and go make one alert
	Keep         = 90 * 24 * time.Hour // of a resolved alert
	MaxListed    = 200
	TellEvery    = 10 * time.Second
	TellAfter    = 10 * time.Second // a part that fails for a shorter time makes no alert
	PartAfter    = time.Minute      // an alert about a part is resolved when its process has not told it for so long
)

// Kinds of alerts about a part of the cloud, whose name is the alert's code.
const (
	PartFailing = "part_failing"
	PartWarning = "part_warning" // it works, and soon will not
)

// Rule says when an alert fires: when at least Robots present robots of one release have the same problem, and they are at least Share of
// that release's present robots.
type Rule struct {
	Robots  int       `json:"robots"`
	Share   float64   `json:"share"` // 0 to 1
	Changed time.Time `json:"changed,omitzero"`
	By      string    `json:"by,omitempty"` // who changed it; "": it is the default
}

// Wanted is a rule as a person sets it.
type Wanted struct {
	Robots int     `json:"robots"`
	Share  float64 `json:"share"` // 0 to 1
}

// DefaultRule is in force until an operator sets another.
var DefaultRule = Rule{Robots: 5, Share: 0.1}

// Percent is Share as people read it.
func (r Rule) Percent() float64 { return r.Share * 100 }

// Words says in the audit log what a rule is changed to.
func (r Rule) Words() string { return fmt.Sprintf("robots %d, share %g", r.Robots, r.Share) }

// Actions in the audit log.
const (
	AuditRule   = "alert.rule"
	AuditLimit  = "alert.threshold.add"
	AuditUnset  = "alert.threshold.remove"
	AuditLetter = "alert.mail"
)

// Check reports why a rule cannot be.
func (r Rule) Check() error {
	if r.Robots < 1 || r.Robots > 1_000_000 {
		return errs.New(errs.Invalid, "robots %d: want 1 to 1000000", r.Robots)
	}
	if !(r.Share >= 0 && r.Share <= 1) {
		return errs.New(errs.Invalid, "share %v: want 0 to 1", r.Share)
	}
	return nil
}

// Holds reports whether the rule fires for a count.
func (r Rule) Holds(c registry.ProblemCount) bool {
	return c.Robots >= r.Robots && float64(c.Robots) >= r.Share*float64(c.Present)
}

// Alert is one problem of one release, a threshold that one crossed, or a problem of one part of the cloud, firing or resolved.
type Alert struct {
	ID       int64      `json:"id"`
	Release  string     `json:"release"` // "": the robots name none
	Kind     string     `json:"kind"`    // of the problem or the threshold
	Code     string     `json:"code,omitempty"`
	Robots   int        `json:"robots"`  // with the problem, when last looked at while it fired
	Present  int        `json:"present"` // robots of the release that were present then
	Since    time.Time  `json:"since"`
	Resolved *time.Time `json:"resolved,omitempty"` // nil: it fires
	Place    string     `json:"place,omitempty"`    // the process that tells of a part; "": it is about robots
	Reason   string     `json:"reason,omitempty"`   // what is wrong with the part, or what crossed the threshold
}

// Part is a part of the cloud that needs attention, as one process sees it.
type Part struct {
	Name    string
	Failing bool // false: a warning
	Reason  string
	Since   time.Time
}

// Store is the storage that Service needs.
type Store interface {
	// Rule returns the rule that was set; NotFound.
	Rule(ctx context.Context) (Rule, error)
	SetRule(ctx context.Context, r Rule) error
	// Alerts returns those that fire, then the latest resolved, at most limit.
	Alerts(ctx context.Context, limit int) ([]Alert, error)
	// Found makes these fire: it adds new ones, updates the numbers of others, and resolves those that it was not given for ResolveAfter.
	Found(ctx context.Context, counts []registry.ProblemCount) error
	// Thresholds returns all, the oldest first. AddThreshold adds one and sets its number; Exhausted. DropThreshold removes one; NotFound.
	Thresholds(ctx context.Context) ([]Threshold, error)
	AddThreshold(ctx context.Context, t Threshold) (Threshold, error)
	DropThreshold(ctx context.Context, id int64) error
	// Crossed makes these fire that Fire, updates the numbers of alerts that exist, and resolves those that it was not given for ResolveAfter.
	Crossed(ctx context.Context, all []Crossing) error
	// Recipients returns who gets letters; SetRecipients sets that.
	Recipients(ctx context.Context) ([]string, error)
	SetRecipients(ctx context.Context, to []string) error
	// Untold gives tell every alert of which no letter was posted since it fired or was resolved, and notes those for which it returns nil.
	Untold(ctx context.Context, tell func(Alert) error) error
	// Told makes alerts of the parts that the process at place tells, and resolves those that no process has told for PartAfter.
	Told(ctx context.Context, place string, parts []Part) error
}

// Service holds the rules. Safe for concurrent use.
type Service struct {
	// Sums are what thresholds compare, and Mail takes letters. nil: there are no such alerts, or no letters. Set them before the service is used.
	Sums Sums
	Mail interface {
		Post(ctx context.Context, m mail.Mail) error
	}

	store Store
	count func(ctx context.Context, atLeast int) ([]registry.ProblemCount, error)
}

// New returns a service. count returns how many present robots of each release have each problem, leaving out what fewer than atLeast have.
func New(store Store, count func(ctx context.Context, atLeast int) ([]registry.ProblemCount, error)) *Service {
	return &Service{store: store, count: count}
}

// Rule returns the rule in force.
func (s *Service) Rule(ctx context.Context) (Rule, error) {
	r, err := s.store.Rule(ctx)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return DefaultRule, nil
	}
	return r, err
}

// SetRule sets the rule; it applies from the next look.
func (s *Service) SetRule(ctx context.Context, robots int, share float64, by string) (Rule, error) {
	r := Rule{Robots: robots, Share: share, Changed: time.Now().UTC(), By: by}
	if err := r.Check(); err != nil {
		return Rule{}, err
	}
	return r, s.store.SetRule(ctx, r)
}

// Alerts returns those that fire, then the latest resolved.
func (s *Service) Alerts(ctx context.Context) ([]Alert, error) { return s.store.Alerts(ctx, MaxListed) }

// Look compares the fleet with the rule once.
func (s *Service) Look(ctx context.Context) error {
	rule, err := s.Rule(ctx)
	if err != nil {
		return err
	}
	counts, err := s.count(ctx, rule.Robots)
	if err != nil {
		return err
	}
	var found []registry.ProblemCount
	for _, c := range counts {
		if rule.Holds(c) {
			found = append(found, c)
		}
	}
	return errors.Join(s.store.Found(ctx, found), s.LookAtSums(ctx))
}

// LookAtSums compares the sums of events with the thresholds once, and posts the letters that are due.
func (s *Service) LookAtSums(ctx context.Context) error {
	if s.Sums != nil {
		list, err := s.Thresholds(ctx)
		if err != nil {
			return err
		}
		var all []Crossing
		for _, t := range list {
			some, err := t.crossings(ctx, s.Sums, time.Now())
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
		if err := s.store.Crossed(ctx, all); err != nil {
			return err
		}
	}
	if s.Mail == nil {
		return nil
	}
	return s.tell(ctx)
}

// Watch tells what is wrong with the parts of the process at place, until ctx ends. parts returns those that need attention. What cannot be stored now,
// for instance because the database is away, is told again later.
func (s *Service) Watch(ctx context.Context, place string, parts func(context.Context) []Part, failed func(error)) error {
	tick := time.NewTicker(TellEvery)
	defer tick.Stop()
	told := false
	for {
		var now []Part
		for _, p := range parts(ctx) {
			if !p.Failing || time.Since(p.Since) >= TellAfter {
				now = append(now, p)
			}
		}
		if told || len(now) > 0 {
			if err := s.store.Told(ctx, place, now); err != nil && ctx.Err() == nil {
				failed(err)
			}
		}
		told = len(now) > 0
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
