package rolloutapi

import (
	"context"
	_ "embed"
	"html/template"
	"net/url"
	"slices"

	"kennel/cloud/access"
	"kennel/cloud/page"
	"kennel/cloud/updates/rollout"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/ota"
)

// shown is how many rollouts the list shows.
const shown = 100

// answers are the answers in a few words, in the order of the funnel.
var answers = []struct {
	Code  rollout.WhyCode
	Words string
}{
	{rollout.WhyDone, "updated"}, {rollout.WhyUpdating, "updating"}, {rollout.WhyGranted, "about to begin"}, {rollout.WhyCap, "wait for a free place"}, {rollout.WhyPhase, "wait for their phase"},
	{rollout.WhyWindow, "outside their maintenance window"}, {rollout.WhyOffline, "offline"}, {rollout.WhyBattery, "low battery"}, {rollout.WhyPostponed, "postponed by their owners"}, {rollout.WhyBusy, "busy with another rollout"}, {rollout.WhyWished, "kept by a person's wish"},
	{rollout.WhyControl, "held out for comparison"}, {rollout.WhyFailed, "failed"}, {rollout.WhyFell, "fell back"}, {rollout.WhySilent, "silent since the update began"}, {rollout.WhyBack, "going back"}, {rollout.WhyReturned, "went back"},
	{rollout.WhyNewer, "run a newer version"}, {rollout.WhyExcluded, "not chosen"}, {rollout.WhyDraft, "wait for the start"}, {rollout.WhyApproval, "wait for approval"},
	{rollout.WhyHeld, "held"}, {rollout.WhyPaused, "paused"}, {rollout.WhyStopped, "held by the stop"}, {rollout.WhyAborted, "left as they are"},
}

// view is one rollout as the list shows it.
type view struct {
	rollout.Rollout
	Updated int
	Actions []button
}

type button struct {
	Action rollout.Action
	Words  string
	Danger bool
}

// viewOf prepares a rollout for the page; may: the person may change it.
func viewOf(r rollout.Rollout, may bool) view {
	v := view{Rollout: r, Updated: r.Progress.Why[rollout.WhyDone]}
	if !may {
		return v
	}
	add := func(a rollout.Action, words string, danger bool) {
		v.Actions = append(v.Actions, button{a, words, danger})
	}
	switch r.State {
	case rollout.Running, rollout.Baking:
		add(rollout.Pause, "Pause", false)
	case rollout.Waiting:
		add(rollout.Approve, "Approve", false)
	case rollout.Draft:
		add(rollout.Resume, "Start", false)
	case rollout.Held:
		add(rollout.Release, map[bool]string{true: "Release next phase", false: "Continue anyway"}[r.Hold == rollout.HoldPhase], false)
		add(rollout.Pause, "Pause", false)
	case rollout.Paused, rollout.Stopped:
		if !r.Back {
			add(rollout.Resume, "Continue", false)
		}
	}
	if r.Progress.Why[rollout.WhyFailed]+r.Progress.Why[rollout.WhySilent] > 0 && (r.Grants() || r.State == rollout.Paused) {
		add(rollout.TryAgain, "Retry failed robots", false)
	}
	if r.State != rollout.Aborted {
		add(rollout.Abort, "Abort", true)
	}
	if !r.Back && r.Progress.Why[rollout.WhyDone] > 0 {
		add(rollout.GoBack, "Roll back", true)
	}
	return v
}

//go:embed list.html
var listText string

// shared are the functions and parts of all pages of rollouts.
var shared = template.Must(template.New("").Funcs(template.FuncMap{"ago": page.Ago, "time": page.Time, "inc": func(i int) int { return i + 1 }, "answer": answer, "turn": turnWords}).Parse(rolloutText))

var listBody = template.Must(template.Must(shared.Clone()).New("list").Parse(listText))

// listPage is the page of all rollouts; its forms are those on the page of one.
func listPage(svc *rollout.Service, audit func(ctx context.Context, action, object, detail string) error) page.Extra {
	return page.Extra{
		Label: "Rollouts", Address: "/rollouts", Menu: page.Updates, Done: "Done.", Again: again,
		Show: func(ctx context.Context) (template.HTML, error) {
			list, err := svc.List(ctx)
			if err != nil {
				return "", err
			}
			var views []view
			for _, r := range list[:min(len(list), shown)] {
				views = append(views, viewOf(r, false))
			}
			return page.HTML(listBody, struct {
				May      bool
				Rollouts []view
			}{mayChange(ctx), views})
		},
		Do: func(ctx context.Context, v url.Values) error {
			a := rollout.Action(v.Get("action"))
			if !slices.Contains(rollout.Actions, a) {
				return errs.New(errs.Invalid, "action %.20q: want one of %s", a, errs.List(rollout.Actions))
			}
			if err := audit(ctx, AuditPrefix+string(a), v.Get("rollout"), ""); err != nil {
				return err
			}
			_, err := svc.Do(ctx, v.Get("rollout"), a, "", auth.CallerFrom(ctx).Subject())
			return err
		},
		Back: func(v url.Values) string { return address(v.Get("rollout"), 0, "", "") },
	}
}

// Pages returns the pages of rollouts: the list, the form for a new one, what they say on the page of each robot, and one rollout.
func Pages(svc *rollout.Service, releases *ota.Service, audit func(ctx context.Context, action, object, detail string) error) []page.Extra {
	return []page.Extra{listPage(svc, audit), newPage(svc, releases, audit), robotTab(svc, releases.State), onePage(svc)}
}

// mayChange reports whether the caller may start and stop rollouts.
func mayChange(ctx context.Context) bool {
	return access.HTTP.Check("POST /rollouts", auth.CallerFrom(ctx).Role) == nil
}
