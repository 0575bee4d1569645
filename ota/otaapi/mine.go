package otaapi

import (
	"context"
	"strconv"
	"strings"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/ota"
)

type ofRobot struct {
	Thing thing.ID `path:"thing"`
}

// Choose holds what an owner chooses: exactly one of these.
type Choose struct {
	Now      bool   `json:"now,omitempty"`      // install at any hour; battery, charger and temperature still count
	Tonight  bool   `json:"tonight,omitempty"`  // install in the operator's window, or between 02:00 and 05:00 in the robot's time zone
	Postpone string `json:"postpone,omitempty"` // wait for days or hours, such as 3d or 36h, at most 14 days in all, then install at night
}

type choosing struct {
	Thing  thing.ID `path:"thing"`
	Choose Choose   `body:""`
}

// When reads a choice; Invalid.
func (c Choose) When() (w ota.When, detail string, err error) {
	w = ota.When{Now: c.Now, Tonight: c.Tonight}
	said := map[string]bool{"now": c.Now, "tonight": c.Tonight, "postpone " + c.Postpone: c.Postpone != ""}
	n := 0
	for words, yes := range said {
		if yes {
			n++
			detail = words
		}
	}
	if n != 1 {
		return w, "", errs.New(errs.Invalid, "%d choices: want exactly one of now, tonight and postpone", n)
	}
	if c.Postpone == "" {
		return w, detail, nil
	}
	if days, ok := strings.CutSuffix(c.Postpone, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		w.Postpone = time.Duration(min(max(n, -1), 1000)) * 24 * time.Hour
	} else {
		w.Postpone, err = time.ParseDuration(c.Postpone)
	}
	if err != nil || w.Postpone < time.Hour || w.Postpone > ota.MaxPostpone {
		return w, "", errs.New(errs.Invalid, "postpone %.20q: want days or hours such as 3d or 36h, 1 hour to 14 days", c.Postpone)
	}
	return w, detail, nil
}

// shownUpdate is how kennelctl shows a robot's software to its owner.
const shownUpdate = "thing; runs=or .running `unknown`; update=or .release `none`; postponed until?=.until; chosen?=.when; progress?=.phase; waits for?=.waits; can be postponed until?=.latest; notes?"

// mine are the operations of owners.
func mine(svc *ota.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	my := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Own robots", Summary: summary, Roles: []auth.Role{auth.Owner}, Own: true, Strict: true}
	}
	return op.List{
		op.New(my("GET /v1/my/robots/{thing}/update", "Show the software of your robot, the update that is planned for it, and how far that is.").With(
			op.Command{Use: "my updates THING", Short: "Show your robot's software and its next update", Table: shownUpdate}),
			func(ctx context.Context, r ofRobot) (ota.Update, error) { return svc.Update(ctx, r.Thing) }),
		op.New(my("PUT /v1/my/robots/{thing}/update", "Choose when your robot installs the update that is planned for it: now, tonight, or later. Battery, charger and temperature always count.").With(
			op.Command{Use: "my update THING -now -tonight -postpone", Short: "Choose when your robot installs its update", Example: "my update vic:00e20100 -tonight\nmy update vic:00e20100 -postpone 3d", Table: shownUpdate}),
			func(ctx context.Context, r choosing) (ota.Update, error) {
				w, detail, err := r.Choose.When()
				if err != nil {
					return ota.Update{}, err
				}
				if err := audit(ctx, ota.AuditChoose, string(r.Thing), detail); err != nil {
					return ota.Update{}, err
				}
				return svc.Choose(ctx, r.Thing, w)
			}),
	}
}
