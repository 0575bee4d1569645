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

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/errs"
)

// Kinds of thresholds, and of the alerts that they make.
const (
	CrashShare = "crash_share" // share of a version's robots that crashed
	FaultShare = "fault_share" // share of a version's robots that had a fault
	EventRate  = "event_rate"  // events of one name per robot of a version and hour in which it was heard of
	// By how much the share of a version is above the share of the other versions of the same species, where that is no chance (excess).
	CrashExcess = "crash_excess"
	FaultExcess = "fault_excess"
)

// LimitKinds are all kinds of thresholds.
var LimitKinds = []string{CrashShare, FaultShare, EventRate, CrashExcess, FaultExcess}

// Bounds.
const (
	MaxThresholds = 50
	MaxRecipients = 20
	MaxHours      = int(das.KeepHours / time.Hour)
	// clear is the part of a level below which a value must fall before its alert can be resolved, so that one near the level makes one alert.
	clear = 0.5
	// settleMost bounds how long it must stay there; the value is one of the whole window anyway.
	settleMost = time.Hour
	// staleAfter is how long no event of any robot may have come before the sums say nothing: then no alert is resolved.
	staleAfter = 10 * time.Minute
	// UnheardAfter is when an alert of a version that no robot was heard of is resolved.
	UnheardAfter = das.KeepHours
)

// Limit is a threshold as a person sets it.
type Limit struct {
	Kind   string  `json:"kind"`         // crash_share, fault_share, event_rate, crash_excess or fault_excess
	Of     string  `json:"of,omitempty"` // of faults: the code, "" each; event_rate: the event's name
	Level  float64 `json:"level"`        // level at which the alert fires: a share from 0 to 1, a difference of shares, or events per robot and hour
	Robots int     `json:"robots"`       // minimum number of robots that crashed, had the fault, or reported
	Hours  int     `json:"hours"`        // window in hours, up to now
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
	case !slices.Contains(LimitKinds, w.Kind):
		return errs.New(errs.Invalid, "kind %.20q: want one of %s", w.Kind, errs.List(LimitKinds))
	case (w.Kind == CrashShare || w.Kind == CrashExcess) && w.Of != "":
		return errs.New(errs.Invalid, "of %.20q: want nothing, because a crash share counts all crashes", w.Of)
	case (w.Kind == FaultShare || w.Kind == FaultExcess) && w.Of != "" && (err != nil || code < 1 || code > 9999):
		return errs.New(errs.Invalid, "of %.20q: want a fault code, or nothing for every code", w.Of)
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

// Known is a version that a threshold could be compared with: an alert of another version is neither confirmed nor resolved.
type Known struct {
	Threshold int64  `json:"threshold"`
	Release   string `json:"release"`
	Settle    int    `json:"settle"` // seconds below clear of the level after which an alert is resolved
}

// Compared is the result of one look at the sums.
type Compared struct {
	Thresholds []int64 // that there are
	Crossings  []Crossing
	Known      []Known
}

// Sums are the sums of events; *daspg.Store has them.
type Sums interface {
	// Recent returns the counts for windows that end now and are at most so long.
	Recent(ctx context.Context, now time.Time, longest time.Duration, of []das.EventSince) (das.Recent, error)
}

// window is the time that a threshold looks at, until now.
func (w Limit) window() time.Duration { return time.Duration(w.Hours) * time.Hour }

// settle is how long a value stays below clear of the level before the alert is resolved: the whole window, at most settleMost.
func (w Limit) settle() time.Duration { return min(w.window(), settleMost) }

func (w Limit) since(now time.Time) time.Time {
	return now.UTC().Add(-w.window()).Truncate(time.Minute)
}

// compare compares all thresholds with one reading of the sums.
func compare(ctx context.Context, sums Sums, list []Threshold, now time.Time) (out Compared, err error) {
	var longest time.Duration
	var of []das.EventSince
	for _, t := range list {
		out.Thresholds, longest = append(out.Thresholds, t.ID), max(longest, t.window())
		if t.Kind == EventRate {
			of = append(of, das.EventSince{Event: t.Of, Since: t.since(now)})
		}
	}
	if len(list) == 0 {
		return out, nil
	}
	recent, err := sums.Recent(ctx, now, longest, of)
	if err != nil {
		return out, err
	}
	fresh := slices.ContainsFunc(recent.Ages, func(a das.Age) bool { return a.Class == das.All && time.Duration(a.Minutes)*time.Minute < staleAfter })
	for _, t := range list {
		c := t.against(recent, now)
		if !fresh {
			c.Known = nil // no robot is heard of: that is no sign of health
		}
		out.Crossings, out.Known = append(out.Crossings, c.Crossings...), append(out.Known, c.Known...)
	}
	return out, nil
}

// against compares one threshold.
func (t Threshold) against(recent das.Recent, now time.Time) (out Compared) {
	type group struct{ species, version string }
	heard := map[group]int{}
	had := map[das.Class]map[group]int{}
	for _, a := range recent.Ages {
		if a.Minutes >= 60*t.Hours {
			continue
		}
		if a.Class == das.All {
			heard[group{a.Species, a.Version}] += a.Robots
			continue
		}
		if had[a.Class] == nil {
			had[a.Class] = map[group]int{}
		}
		had[a.Class][group{a.Species, a.Version}] += a.Robots
	}
	present := map[string]int{}
	for g, n := range heard {
		present[g.version] += n
	}
	for version := range present {
		out.Known = append(out.Known, Known{t.ID, version, int(t.settle().Seconds())})
	}
	add := func(release, code string, robots, present int, holds, fires bool, reason string) {
		if holds && robots >= t.Robots/2 || fires {
			out.Crossings = append(out.Crossings, Crossing{t.ID, t.Kind, code, release, robots, present, reason, fires && robots >= t.Robots})
		}
	}
	if t.Kind == EventRate {
		hours := map[string]float64{}
		for _, h := range recent.Heard {
			begin := h.At
			if since := now.Add(-t.window()); begin.Before(since) {
				begin = since
			}
			end := h.At.Add(das.Hour)
			if end.After(now) {
				end = now
			}
			if end.After(begin) {
				hours[h.Version] += end.Sub(begin).Hours() * float64(h.Robots)
			}
		}
		for _, e := range recent.Events {
			if e.Event != t.Of || !e.Since.Equal(t.since(now)) || hours[e.Version] == 0 {
				continue
			}
			rate, n := float64(e.N)/hours[e.Version], present[e.Version]
			add(e.Version, t.Of, n, n, rate >= clear*t.Level, rate >= t.Level, fmt.Sprintf("%s came %.3g times per robot and hour in the last %d hours; the limit is %g", t.Of, rate, t.Hours, t.Level))
		}
		return out
	}
	for class, groups := range had {
		code, what := "", "crashed"
		if class != das.Crash {
			code, _ = strings.CutPrefix(string(class), string(das.FaultClass))
			what = "had fault " + code
		}
		if crashes := t.Kind == CrashShare || t.Kind == CrashExcess; crashes != (class == das.Crash) || t.Of != "" && t.Of != code {
			continue
		}
		robots := map[string]int{}
		for g, n := range groups {
			robots[g.version] += n
		}
		for version, n := range robots {
			of := max(present[version], n) // events of a robot are noted to the minute, crashes exactly
			share := float64(n) / float64(of)
			words := fmt.Sprintf("%d of %d robots %s in the last %d hours, %.3g %%", n, of, what, t.Hours, 100*share)
			if t.Kind == CrashShare || t.Kind == FaultShare {
				add(version, code, n, of, share >= clear*t.Level, share >= t.Level, fmt.Sprintf("%s; the limit is %.4g %%", words, 100*t.Level))
				continue
			}
			others, total := 0, 0
			for g, m := range heard {
				if g.version != version && heard[group{g.species, version}] > 0 {
					others, total = others+groups[g], total+m
				}
			}
			if total == 0 {
				out.Known = slices.DeleteFunc(out.Known, func(k Known) bool { return k.Release == version }) // nothing to compare with
			}
			by, low := excess(n, of, others, total)
			add(version, code, n, of, total == 0 || by >= clear*t.Level, low > 0 && by >= t.Level,
				fmt.Sprintf("%s; of robots on other releases %.3g %%; the limit is %.4g points more", words, 100*float64(others)/float64(max(total, 1)), 100*t.Level))
		}
	}
	return out
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
