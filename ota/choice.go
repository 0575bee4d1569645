package ota

import (
	"context"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Limits of an owner's choice; our own defaults.
const (
	MaxPostpone = 14 * 24 * time.Hour // from the first postponement of a release
	NowFor      = 24 * time.Hour      // during which "now" holds, for a robot that is offline or low on battery
)

// Night is when a robot updates whose owner postponed, unless the operator has set another window.
var Night = Window{From: "02:00", To: "05:00"}

// Choice is when the owner of a robot wants the updates that operators release to it. It moves the time at which the robot begins, and nothing else.
type Choice struct {
	Release Version   `json:"release"` // that it was made about
	Now     bool      `json:"now"`     // at any hour, while Until is to come
	Until   time.Time `json:"until"`   // otherwise: postponed until then, and at night from then on
	First   time.Time `json:"first_postponed,omitzero"`
	Chosen  time.Time `json:"chosen"` // zero: no choice was made
}

// At reports what a choice says at a time: nothing (""), WhenNow, WhenTonight or WhenPostponed.
func (c Choice) At(now time.Time) string {
	switch open := now.Before(c.Until); {
	case c.Chosen.IsZero(), c.Now && !open:
		return ""
	case c.Now:
		return WhenNow
	case open:
		return WhenPostponed
	}
	return WhenTonight
}

// The answers of Choice.At.
const (
	WhenNow       = "now"
	WhenTonight   = "tonight"
	WhenPostponed = "postponed"
)

// Window returns when the robot may begin, given the operator's window; nil is at any hour.
func (c Choice) Window(w *Window, now time.Time) *Window {
	switch when := c.At(now); {
	case when == WhenNow:
		return nil
	case when != "" && w == nil:
		return &Night
	}
	return w
}

// latest returns until when its owner may postpone a release.
func (c Choice) latest(v Version, now time.Time) time.Time {
	if c.First.IsZero() || c.Release != v {
		return now.Add(MaxPostpone)
	}
	return c.First.Add(MaxPostpone)
}

// apply changes when the robot begins. A robot returns to an earlier release whatever its owner chose: the one that it runs does harm.
func (c Choice) apply(d Desired, now time.Time) Desired {
	if d.Rollback {
		return d
	}
	d.Window = c.Window(d.Window, now)
	if c.At(now) == WhenPostponed {
		d.NotBefore = c.Until
	}
	return d
}

// Choices keeps owners' choices.
type Choices interface {
	// Choices returns those of these robots, or of all for nil.
	Choices(ctx context.Context, things []thing.ID) (map[thing.ID]Choice, error)
	SetChoice(ctx context.Context, id thing.ID, c Choice) error
	EndChoice(ctx context.Context, id thing.ID) error
}

// Heed has owners' choices count from now on; it is called before the service is used.
func (s *Service) Heed(c Choices) { s.choices = c }

// Choices returns the choices of these robots' owners, or all for nil.
func (s *Service) Choices(ctx context.Context, things []thing.ID) (map[thing.ID]Choice, error) {
	if s.choices == nil {
		return nil, nil
	}
	return s.choices.Choices(ctx, things)
}

// When holds what an owner can choose: exactly one of these.
type When struct {
	Now, Tonight bool
	Postpone     time.Duration
}

// Update tells the owner of a robot about its software.
type Update struct {
	Thing   thing.ID  `json:"thing"`
	Running string    `json:"running,omitempty"`
	Release Version   `json:"release,omitempty"` // that it is to get; "": none
	Back    bool      `json:"back,omitempty"`    // the operator takes it back to this release
	Notes   string    `json:"notes,omitempty"`
	Size    int64     `json:"size,omitempty"`  // bytes, at most
	Phase   Phase     `json:"phase,omitempty"` // by the robot's last report about it; "": it has not reported
	Percent int       `json:"percent,omitempty"`
	Waits   Cause     `json:"waits,omitempty"`  // why it has not begun
	Reason  string    `json:"reason,omitempty"` // likewise, in the robot's own words
	Failed  *Report   `json:"failed,omitempty"` // the last attempt that failed, if none succeeded since
	Window  *Window   `json:"window,omitempty"` // in which it begins; nil: at any hour, or not known yet
	When    string    `json:"when,omitempty"`   // what the owner chose: now, tonight or postponed
	Until   time.Time `json:"until,omitzero"`   // to when it is postponed
	Latest  time.Time `json:"latest,omitzero"`  // until when it can be postponed; zero: it is too late for a choice
}

// recent is how many reports are searched for the last failure.
const recent = 20

// Update returns what the owner of a robot is told.
func (s *Service) Update(ctx context.Context, id thing.ID) (Update, error) {
	u := Update{Thing: id}
	st, err := s.State(ctx, id, recent)
	if err != nil {
		return u, err
	}
	u.Release, u.Back, u.Window = st.Desired.Release, st.Desired.Rollback, st.Desired.Window
	if st.Last != nil {
		u.Running = st.Last.Running
	}
	for i, r := range st.History {
		if r.Phase == Failed || r.Phase == FellBack {
			u.Failed = &st.History[i]
		}
		if u.Failed != nil || r.Phase == Current && r.Release != "" {
			break
		}
	}
	if u.Release == "" && s.rollouts != nil {
		if u.Release, u.Waits, err = s.rollouts.Coming(ctx, id); err != nil {
			return u, err
		}
	}
	if u.Release == "" || string(u.Release) == u.Running {
		u.Release, u.Back = "", false
		return u, nil
	}
	if last := st.Last; last != nil && last.Release != "" && (last.Release == u.Release || last.Release == st.First) && st.Desired.Release != "" {
		u.Phase, u.Percent, u.Waits, u.Reason = last.Phase, last.Percent, last.Waits, last.Reason
	}
	return u, s.describe(ctx, &u)
}

// describe fills in what is in the release, and what its owner chose.
func (s *Service) describe(ctx context.Context, u *Update) error {
	r, err := s.store.Release(ctx, u.Thing.Species(), u.Release)
	if err != nil {
		return err
	}
	a, err := s.artifact(ctx, u.Thing.Species(), u.Running, u.Release)
	if err != nil {
		return err
	}
	all, err := s.Choices(ctx, []thing.ID{u.Thing})
	u.Notes, u.Size = r.Notes, a.Size
	if u.Back || u.Phase == Downloading || u.Phase == Installed || s.choices == nil {
		return err
	}
	c, now := all[u.Thing], time.Now()
	if u.When = c.At(now); u.When == WhenPostponed {
		u.Until = c.Until
	}
	u.Latest = c.latest(u.Release, now)
	return err
}

// Choose keeps what the owner of a robot chose, and hints the robot. Conflict if there is nothing to choose about, or if the robot has begun; Invalid if it
// would be postponed for longer than MaxPostpone.
func (s *Service) Choose(ctx context.Context, id thing.ID, w When) (Update, error) {
	u, err := s.Update(ctx, id)
	if err != nil {
		return u, err
	}
	all, err := s.Choices(ctx, []thing.ID{id})
	if err != nil {
		return u, err
	}
	c, now := all[id], time.Now().UTC()
	latest := c.latest(u.Release, now)
	switch {
	case u.Release == "":
		return u, errs.New(errs.Conflict, "no update is planned for this robot")
	case u.Latest.IsZero():
		return u, errs.New(errs.Conflict, "the update has already begun")
	case now.Add(w.Postpone).After(latest):
		return u, errs.New(errs.Invalid, "an update can be postponed for at most 14 days in all: want a time before %s", latest.UTC().Format("2 January 2006 15:04 MST"))
	}
	if c.Release != u.Release {
		c.First = time.Time{}
	}
	c.Release, c.Now, c.Until, c.Chosen = u.Release, w.Now, now.Add(w.Postpone), now
	switch {
	case w.Now:
		c.Until = now.Add(NowFor)
	case w.Postpone > 0 && c.First.IsZero():
		c.First = now
	}
	if err := s.choices.SetChoice(ctx, id, c); err != nil {
		return u, err
	}
	if _, err := s.tell(ctx, id); err != nil {
		return u, err
	}
	return s.Update(ctx, id)
}
