package alert

import (
	"cmp"
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/das"
	"kennel/infra/api/events"
	"kennel/infra/errs"
)

// Kinds of thresholds, and of the alerts that they make.
const (
	CrashShare = "crash_share" // share of a version's robots that crashed
	FaultShare = "fault_share" // share of a version's robots that had a fault
	EventRate  = "event_rate"  // events of one name per robot of a version and hour in which it was heard of
)

// Bounds.
const (
	MaxThresholds = 50
	MaxRecipients = 20
	MaxHours      = int(das.KeepHours / time.Hour)
	// clear is the part of a level below which a value must fall before its alert can be resolved, so that one near the level makes one alert.
	clear = 0.8
)

// Limit is a threshold as a person sets it.
type Limit struct {
	Kind   string  `json:"kind"`         // crash_share, fault_share or event_rate
	Of     string  `json:"of,omitempty"` // fault_share: the code, "" each; event_rate: the event's name
	Level  float64 `json:"level"`        // at which the alert fires: a share from 0 to 1, or events per robot and hour
	Robots int     `json:"robots"`       // at least so many crashed, had the fault, or were heard of
	Hours  int     `json:"hours"`        // that are looked at, the current one among them
}

// Threshold is a limit; the versions of robots that cross it make an alert each.
type Threshold struct {
	ID int64 `json:"id"`
	Limit
	Changed time.Time `json:"changed"`
	By      string    `json:"by,omitempty"` // "": it was there from the beginning
}

// Words says in the audit log what a threshold is.
func (w Limit) Words() string {
	return fmt.Sprintf("%s %s, level %g, robots %d, hours %d", w.Kind, cmp.Or(w.Of, "any"), w.Level, w.Robots, w.Hours)
}

// Check reports why a threshold cannot be.
func (w Limit) Check() error {
	code, err := strconv.Atoi(w.Of)
	switch {
	case !slices.Contains([]string{CrashShare, FaultShare, EventRate}, w.Kind):
		return errs.New(errs.Invalid, "kind %.20q: want %s, %s or %s", w.Kind, CrashShare, FaultShare, EventRate)
	case w.Kind == CrashShare && w.Of != "":
		return errs.New(errs.Invalid, "of %.20q: a crash share is of all crashes", w.Of)
	case w.Kind == FaultShare && w.Of != "" && (err != nil || code < 1 || code > 9999):
		return errs.New(errs.Invalid, "of %.20q: want a fault code, or nothing for each", w.Of)
	case w.Kind == EventRate && events.CheckName(w.Of) != nil:
		return errs.New(errs.Invalid, "of %.40q: want the name of an event", w.Of)
	case w.Kind == EventRate && !(w.Level > 0 && w.Level <= 1e6):
		return errs.New(errs.Invalid, "level %v: want more than 0, at most 1000000 events per robot and hour", w.Level)
	case w.Kind != EventRate && !(w.Level > 0 && w.Level <= 1):
		return errs.New(errs.Invalid, "level %v: want a share, more than 0 and at most 1", w.Level)
	case w.Robots < 1 || w.Robots > 1_000_000:
		return errs.New(errs.Invalid, "robots %d: want 1 to 1000000", w.Robots)
	case w.Hours < 1 || w.Hours > MaxHours:
		return errs.New(errs.Invalid, "hours %d: want 1 to %d", w.Hours, MaxHours)
	}
	return nil
}

// Crossing is a version whose value is at a threshold, or not far enough below it to end an alert.
type Crossing struct {
	Threshold int64  `json:"threshold"`
	Kind      string `json:"kind"`
	Code      string `json:"code"` // the fault, or the event
	Release   string `json:"release"`
	Robots    int    `json:"robots"`  // that crashed or had the fault; of an event: that were heard of
	Present   int    `json:"present"` // that were heard of
	Reason    string `json:"reason"`
	Fires     bool   `json:"fires"`
}

// Sums are the sums of events; *daspg.Store has them.
type Sums interface {
	Tallies(ctx context.Context, of das.Slots) ([]das.Tally, error)
	Rates(ctx context.Context, event string, since time.Time) ([]das.Rates, error)
}

// crossings returns what crosses a threshold.
func (t Threshold) crossings(ctx context.Context, sums Sums, now time.Time) (out []Crossing, err error) {
	until := now.UTC().Truncate(das.Hour).Add(das.Hour)
	since := until.Add(-time.Duration(t.Hours) * das.Hour)
	add := func(release, code string, robots, present int, value float64, reason string) {
		if value >= clear*t.Level && robots >= t.Robots {
			out = append(out, Crossing{t.ID, t.Kind, code, release, robots, present, reason, value >= t.Level})
		}
	}
	if t.Kind == EventRate {
		rates, err := sums.Rates(ctx, t.Of, since)
		for _, r := range rates {
			add(r.Version, t.Of, r.Robots, r.Robots, r.PerHour, fmt.Sprintf("%s came %.3g times per robot and hour in the last %d hours; the limit is %g", t.Of, r.PerHour, t.Hours, t.Level))
		}
		return out, err
	}
	all, err := sums.Tallies(ctx, das.Slots{Every: das.Hour, Since: since, Until: until})
	heard := map[string]int{}
	for _, x := range all {
		if x.Class == das.All {
			heard[x.Version] = x.Robots
		}
	}
	for _, x := range all {
		code, what := "", "crashed"
		if t.Kind == CrashShare && x.Class != das.Crash {
			continue
		}
		if t.Kind == FaultShare {
			var is bool
			if code, is = strings.CutPrefix(string(x.Class), string(das.FaultClass)); !is || t.Of != "" && code != t.Of {
				continue
			}
			what = "had fault " + code
		}
		value := float64(x.Robots) / float64(heard[x.Version]) // each of them is in the class of all
		add(x.Version, code, x.Robots, heard[x.Version], value, fmt.Sprintf("%d of %d robots %s in the last %d hours, %.3g %%; the limit is %g %%", x.Robots, heard[x.Version], what, t.Hours, 100*value, 100*t.Level))
	}
	return out, err
}

// Thresholds returns all thresholds, the oldest first.
func (s *Service) Thresholds(ctx context.Context) ([]Threshold, error) {
	return s.store.Thresholds(ctx)
}

// AddThreshold adds one; it applies from the next look. Invalid, Exhausted.
func (s *Service) AddThreshold(ctx context.Context, w Limit, by string) (Threshold, error) {
	if err := w.Check(); err != nil {
		return Threshold{}, err
	}
	return s.store.AddThreshold(ctx, Threshold{Limit: w, Changed: time.Now().UTC(), By: by})
}

// DropThreshold removes one; NotFound. Its alerts are resolved.
func (s *Service) DropThreshold(ctx context.Context, id int64) error {
	return s.store.DropThreshold(ctx, id)
}

// Mailing says who gets a letter when an alert fires and when it is resolved.
type Mailing struct {
	To []string `json:"to"` // e-mail addresses
}

// Words says in the audit log how many they are: an address is a person's.
func (m Mailing) Words() string { return fmt.Sprintf("%d recipients", len(m.To)) }

// Check reports why letters cannot go there.
func (m Mailing) Check() error {
	if len(m.To) > MaxRecipients {
		return errs.New(errs.Invalid, "%d recipients: want at most %d", len(m.To), MaxRecipients)
	}
	for _, to := range m.To {
		if a, err := mail.ParseAddress(to); err != nil || a.Address != to || len(to) > 254 {
			return errs.New(errs.Invalid, "recipient %.80q: want an e-mail address, such as duty@example.org", to)
		}
	}
	return nil
}

// Mailing returns who gets letters.
func (s *Service) Mailing(ctx context.Context) (Mailing, error) {
	to, err := s.store.Recipients(ctx)
	return Mailing{append([]string{}, to...)}, err
}

// SetMailing sets that; Invalid.
func (s *Service) SetMailing(ctx context.Context, m Mailing) (Mailing, error) {
	if err := m.Check(); err != nil {
		return m, err
	}
	m.To = append([]string{}, slices.Compact(slices.Sorted(slices.Values(m.To)))...) // none is a list too
	return m, s.store.SetRecipients(ctx, m.To)
}
