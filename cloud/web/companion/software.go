package companion

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
)

// Updates are the releases that robots are to run; *ota.Service is one.
type Updates interface {
	Update(ctx context.Context, id thing.ID) (ota.Update, error)
	Choose(ctx context.Context, id thing.ID, w ota.When) (ota.Update, error)
}

// softwareView is the software of a robot on its page.
type softwareView struct {
	ota.Update
	Original bool // it fetches releases by itself, and hears of no choice
	Runs     string
	Says     []string  // how far the update is
	Told     string    // the robot's own reason, where it has no word for it
	Failure  string    // why the last attempt failed
	At       time.Time // of that attempt
	About    []string  // the notes, by paragraphs
	Choices  []when
	Offline  bool
	Moving   bool // the page looks again by itself
}

type when struct {
	When, Label string
	wait        time.Duration
	Default     bool
}

// whens are what an owner can choose on the page, by the values of the form.
var whens = []when{{When: "now", Label: "Install now"}, {When: "tonight", Label: "Tonight", Default: true},
	{When: "1d", Label: "In 1 day", wait: 24 * time.Hour}, {When: "3d", Label: "In 3 days", wait: 3 * 24 * time.Hour}, {When: "7d", Label: "In 1 week", wait: 7 * 24 * time.Hour}}

// causes say why a robot waits.
var causes = map[ota.Cause]string{
	ota.WaitCharger: "It waits until your robot is on its charger.",
	ota.WaitBattery: "It waits until your robot’s battery is charged.",
	ota.WaitHeat:    "It waits until your robot has cooled down.",
	ota.WaitBody:    "It waits because your robot does not know the state of its battery.",
	ota.WaitTrial:   "It waits until the running version has proven itself.",
	ota.WaitArchive: "It waits for a file that the operator of this server has not provided yet.",
	ota.WaitTurn:    "It waits for its turn, because other robots are updating.",
	ota.WaitNever:   "Your robot cannot install updates by itself.",
}

// failures say why an update failed. A code that is not among them is something else.
var failures = map[ota.Code]string{
	ota.BadURL:       "The download was not found.",
	ota.TimedOut:     "The download stopped, because the connection was lost.",
	ota.DiskFailed:   "Your robot’s storage is full or damaged.",
	ota.NotAuthentic: "Your robot could not verify the update and did not install it.",
	ota.BadArchive:   "The download was damaged.",
	ota.WrongVersion: "The update does not fit your robot’s current version.",
	ota.WrongBase:    "The update does not fit your robot’s current version.",
	ota.WrongKind:    "The update is not meant for this robot.",
	ota.WrongUnit:    "The update is not meant for this robot.",
}

// software fills in the software of a robot.
func (c *companion) software(ctx context.Context, v *robotPage, t registry.Thing) (err error) {
	if c.Updates == nil {
		return nil
	}
	s := &softwareView{Original: t.Presence == registry.Calls, Offline: v.State.Mood == "away" || v.State.Mood == "new"}
	v.Software = s
	if s.Update, err = c.Updates.Update(ctx, v.Thing); err != nil {
		return err
	}
	if s.Runs = cmp.Or(v.State.Release, s.Running); s.Release == "" || s.Original {
		return nil
	}
	for p := range strings.SplitSeq(strings.ReplaceAll(s.Notes, "\r\n", "\n"), "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			s.About = append(s.About, p)
		}
	}
	if f := s.Failed; f != nil {
		s.At, s.Failure = f.Received, cmp.Or(failures[ota.Code(f.Code)], "Something went wrong.")
		if f.Phase == ota.FellBack {
			s.Failure = "The new version did not work well, so your robot returned to the previous one."
		}
	}
	s.progress()
	if !s.Latest.IsZero() {
		for _, x := range whens {
			if !c.now().Add(x.wait).After(s.Latest) {
				s.Choices = append(s.Choices, x)
			}
		}
	}
	return nil
}

// progress says how far the update is.
func (s *softwareView) progress() {
	switch {
	case s.Back:
		s.Says = append(s.Says, "The operator of this server returns your robot to an earlier version.")
	case s.Phase == ota.Downloading:
		s.Moving, s.Says = true, append(s.Says, "Your robot is downloading it.")
		return
	case s.Phase == ota.Installed:
		s.Moving, s.Says = true, append(s.Says, "It is installed and starts when your robot next restarts.")
		return
	case s.When == ota.WhenNow:
		s.Moving, s.Says = true, append(s.Says, "It is installed as soon as your robot is ready.")
	case s.When == ota.WhenTonight && s.Window == nil:
		s.Says = append(s.Says, "It is installed at night.")
	}
	if cause := causes[s.Waits]; cause != "" {
		s.Says = append(s.Says, cause)
	} else if s.Waits == "" && s.Phase == ota.Pending && s.When != ota.WhenPostponed {
		s.Told = s.Reason // of an agent that has no word for it
	}
}

// choose keeps when the owner wants the update.
func (c *companion) choose(ctx context.Context, _ auth.Caller, id thing.ID, v url.Values) (string, error) {
	for _, x := range whens {
		if x.When != v.Get("when") {
			continue
		}
		if err := c.Audit(ctx, ota.AuditChoose, string(id), x.When); err != nil {
			return "", err
		}
		_, err := c.Updates.Choose(ctx, id, ota.When{Now: x.When == "now", Tonight: x.When == "tonight", Postpone: x.wait})
		return "update", err
	}
	return "", errs.New(errs.Invalid, "choose when your robot installs its update")
}
