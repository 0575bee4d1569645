// Package alert tells when many robots of one release have the same problem, which points to the release rather than to a robot, when many of them vanish, when a version's
// share of crashes or faults, or its rate of an event, crosses a threshold, and when a part of the cloud itself does not work or soon will not.
//
// Look runs as a periodic job: it counts present robots by release and problem, and compares the counts with the one rule that operators
// set. An alert fires as soon as the rule holds, and is resolved when the count has been half of it, or less, for ResolveAfter; then it is kept for Keep. One that fires again
// within ReopenWithin is the same alert. Webhooks hear of both (alert.firing, alert.resolved).
//
// People hear by letter that an alert fires, again when it becomes more severe (ten times the robots, or a warning that is a failure by now), and that it is resolved once it
// has stayed so for ReopenWithin. Silenced alerts post none.
package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/mail"
	"kennel/infra/api/status"
	"kennel/infra/errs"
)

// Own defaults.
const (
	LookEvery    = 15 * time.Second
	ResolveAfter = 30 * time.Second // so that problems that come and go make one alert
	ReopenWithin = 30 * time.Minute
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

// Rule says when an alert fires: when at least Robots present robots of one release have the same problem, and either
//
//   - they are at least Share of that release's present robots, or
//   - the problem is a fault or another that no robot should have, and they are at least FloorRobots and FloorShare of these robots, or
//   - their share is above the share of the same species on other releases by at least Excess, and that is no chance (excess).
//
// Crashes have thresholds of their own.
type Rule struct {
	Robots int     `json:"robots"`
	Share  float64 `json:"share"` // 0 to 1
	Floor
	Excess  float64   `json:"excess"` // 0 to 1; 1: never
	Changed time.Time `json:"changed,omitzero"`
	By      string    `json:"by,omitempty"` // who changed it; "": it is the default
}

// Floor is how many robots with a fault are many, whatever the share.
type Floor struct {
	FloorRobots int     `json:"floor_robots"`
	FloorShare  float64 `json:"floor_share"` // 0 to 1
}

// Wanted is a rule as a person sets it. What is missing stays as it is by default.
type Wanted struct {
	Robots      int      `json:"robots"`
	Share       float64  `json:"share"`                  // 0 to 1
	FloorRobots *int     `json:"floor_robots,omitempty"` // a fault of at least so many robots is told,
	FloorShare  *float64 `json:"floor_share,omitempty"`  // if they are at least this share, 0 to 1
	Excess      *float64 `json:"excess,omitempty"`       // and any problem that is by so much more common than on other releases, 0 to 1
}

// Rule returns the rule that is wanted.
func (w Wanted) Rule() Rule {
	r := DefaultRule
	r.Robots, r.Share = w.Robots, w.Share
	if w.FloorRobots != nil {
		r.FloorRobots = *w.FloorRobots
	}
	if w.FloorShare != nil {
		r.FloorShare = *w.FloorShare
	}
	if w.Excess != nil {
		r.Excess = *w.Excess
	}
	return r
}

// DefaultRule is in force until an operator sets another.
var DefaultRule = Rule{Robots: 5, Share: 0.1, Floor: Floor{FloorRobots: 10, FloorShare: 0.01}, Excess: 0.02}

// grave are the kinds of problems that no robot should have, unlike a low battery.
var grave = []string{status.KindFault, status.KindBody, status.KindRobotd, status.KindRecovery, status.KindIdentity}

// Percent is Share as people read it.
func (r Rule) Percent() float64 { return r.Share * 100 }

// FloorPercent and ExcessPoints are FloorShare and Excess as people read them.
func (r Rule) FloorPercent() float64 { return r.FloorShare * 100 }
func (r Rule) ExcessPoints() float64 { return r.Excess * 100 }

// Words says in the audit log what a rule is changed to.
func (r Rule) Words() string {
	return fmt.Sprintf("robots %d, share %g, floor %d robots and %g, excess %g", r.Robots, r.Share, r.FloorRobots, r.FloorShare, r.Excess)
}

// Actions in the audit log.
const (
	AuditRule   = "alert.rule"
	AuditLimit  = "alert.threshold.add"
	AuditUnset  = "alert.threshold.remove"
	AuditLetter = "alert.mail"
	AuditAck    = "alert.ack"
	AuditUnack  = "alert.unack"
	AuditHush   = "alert.silence"
	AuditUnhush = "alert.unsilence"
)

// Check reports why a rule cannot be.
func (r Rule) Check() error {
	if r.Robots < 1 || r.Robots > 1_000_000 {
		return errs.New(errs.Invalid, "robots %d: want 1 to 1000000", r.Robots)
	}
	if r.FloorRobots < 0 || r.FloorRobots > 1_000_000 {
		return errs.New(errs.Invalid, "floor_robots %d: want 0 to 1000000", r.FloorRobots)
	}
	for name, v := range map[string]float64{"share": r.Share, "floor_share": r.FloorShare, "excess": r.Excess} {
		if !(v >= 0 && v <= 1) {
			return errs.New(errs.Invalid, "%s %v: want 0 to 1", name, v)
		}
	}
	return nil
}

// Holds reports whether the rule fires for a count.
func (r Rule) Holds(c registry.ProblemCount) bool {
	by, low := excess(c.Robots, c.Present, c.Others, c.OthersPresent)
	return r.reaches(c, 1) || r.common(c, 1) && low > 0 && by >= r.Excess
}

// stays reports whether an alert about a count lasts: it is not below clear of what makes one fire.
func (r Rule) stays(c registry.ProblemCount) bool {
	by, _ := excess(c.Robots, c.Present, c.Others, c.OthersPresent)
	return r.reaches(c, clear) || r.common(c, clear) && c.OthersPresent > 0 && by >= clear*r.Excess
}

// common reports whether enough robots have the problem for any alert.
func (r Rule) common(c registry.ProblemCount, part float64) bool {
	n, least := float64(c.Robots), part*float64(r.Robots)
	return c.Kind != status.KindCrash && (n > least || part == 1 && n == least) // one of two is no longer many
}

// reaches reports whether a count is at a part of the share or of the floor.
func (r Rule) reaches(c registry.ProblemCount, part float64) bool {
	n, of := float64(c.Robots), float64(c.Present)
	return r.common(c, part) && (n >= part*r.Share*of || slices.Contains(grave, c.Kind) && n >= part*max(float64(r.FloorRobots), r.FloorShare*of))
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
	Ack      *Ack       `json:"ack,omitempty"`      // nil: no person takes care of it
	Silenced *Silence   `json:"silenced,omitempty"` // nil: it posts letters
}

// Found is a problem of a release that fires, or is not far enough below that to end an alert.
type Found struct {
	Release string `json:"release"`
	Kind    string `json:"kind"`
	Code    string `json:"code"`
	Robots  int    `json:"robots"`
	Present int    `json:"present"`
	Reason  string `json:"reason"`
	Fires   bool   `json:"fires"`
}

// Letter is an alert that people are to be told of, and why.
type Letter struct {
	Alert
	Worse bool // they were told that it fires, and it is more severe by now
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
	// Found makes these fire that Fire, updates the numbers of alerts that exist, and resolves those that it was not given for ResolveAfter, but none of the releases away. One that
	// fires again within ReopenWithin continues.
	Found(ctx context.Context, all []Found, away []string) error
	// Thresholds returns all, the oldest first. AddThreshold adds one and sets its number; Exhausted. DropThreshold removes one; NotFound.
	Thresholds(ctx context.Context) ([]Threshold, error)
	AddThreshold(ctx context.Context, t Threshold) (Threshold, error)
	DropThreshold(ctx context.Context, id int64) error
	// Crossed is Found for thresholds. It resolves what is Known and was no crossing for its time, and what has no threshold any longer or no data for UnheardAfter.
	Crossed(ctx context.Context, c Compared) error
	// Recipients returns who gets letters; SetRecipients sets that.
	Recipients(ctx context.Context) ([]string, error)
	SetRecipients(ctx context.Context, to []string) error
	// Untold gives tell every alert that a letter is due about, and notes those for which it returns nil. It ends acknowledgements of alerts that were resolved or became more severe.
	Untold(ctx context.Context, tell func(Letter) error) error
	// Told makes alerts of the parts that the process at place tells, and resolves those that no process has told for PartAfter.
	Told(ctx context.Context, place string, parts []Part) error
}

// Service holds the rules. Safe for concurrent use.
type Service struct {
	// Sums are what thresholds compare, Presence and History tell which robots vanished, and Mail takes letters. nil: there are no such alerts, or no letters. Desk keeps what
	// people do about alerts. Set them before the service is used.
	Sums     Sums
	Presence Presence
	History  History
	Desk     Desk
	Mail     interface {
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

// SetRule sets the rule; it applies from the next look. Invalid.
func (s *Service) SetRule(ctx context.Context, w Wanted, by string) (Rule, error) {
	r := w.Rule()
	r.Changed, r.By = time.Now().UTC(), by
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
	var counts []registry.ProblemCount
	var found []Found
	var away []string
	both, bctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) { counts, err = s.count(bctx, max(1, int(clear*float64(rule.Robots)))); return err })
	both.Go(func() (err error) { found, away, err = s.vanished(bctx); return err })
	if err := both.Wait(); err != nil {
		return err
	}
	for _, c := range counts {
		if fires := rule.Holds(c); fires || rule.stays(c) {
			found = append(found, Found{Release: c.Release, Kind: c.Kind, Code: c.Code, Robots: c.Robots, Present: c.Present, Fires: fires})
		}
	}
	return errors.Join(s.store.Found(ctx, found, away), s.LookAtSums(ctx))
}

// LookAtSums compares the sums of events with the thresholds once, and posts the letters that are due.
func (s *Service) LookAtSums(ctx context.Context) error {
	if s.Sums != nil {
		list, err := s.Thresholds(ctx)
		if err != nil {
			return err
		}
		c, err := compare(ctx, s.Sums, list, time.Now())
		if err != nil {
			return err
		}
		if err := s.store.Crossed(ctx, c); err != nil {
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
