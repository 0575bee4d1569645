package rolloutapi

import (
	"context"
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

// shown is how many rollouts the page shows.
const shown = 20

// answers are the answers in a few words, in the order of the funnel.
var answers = []struct {
	Code  rollout.WhyCode
	Words string
}{
	{rollout.WhyDone, "updated"}, {rollout.WhyUpdating, "updating"}, {rollout.WhyGranted, "about to begin"}, {rollout.WhyCap, "wait for a free place"}, {rollout.WhyPhase, "wait for their phase"},
	{rollout.WhyWindow, "outside their maintenance window"}, {rollout.WhyOffline, "offline"}, {rollout.WhyBattery, "low battery"}, {rollout.WhyBusy, "busy with another rollout"}, {rollout.WhyWished, "kept by a person's wish"},
	{rollout.WhyControl, "compared, not updated yet"}, {rollout.WhyFailed, "failed"}, {rollout.WhyFell, "fell back"}, {rollout.WhySilent, "silent since the update began"}, {rollout.WhyBack, "going back"}, {rollout.WhyReturned, "went back"},
	{rollout.WhyNewer, "run a newer version"}, {rollout.WhyExcluded, "not chosen"}, {rollout.WhyDraft, "wait for the start"}, {rollout.WhyApproval, "wait for approval"},
	{rollout.WhyHeld, "held"}, {rollout.WhyPaused, "paused"}, {rollout.WhyStopped, "held by the stop"}, {rollout.WhyAborted, "left as they are"},
}

// funnel is one line of it: how many robots have an answer.
type funnel struct {
	Words  string
	Robots int
}

// view is one rollout as the page shows it.
type view struct {
	rollout.Rollout
	Updated int
	Funnel  []funnel
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
	for _, a := range answers {
		if n := r.Progress.Why[a.Code]; n > 0 {
			v.Funnel = append(v.Funnel, funnel{a.Words, n})
		}
	}
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

var pageBody = template.Must(template.New("").Funcs(template.FuncMap{"ago": page.Ago, "inc": func(i int) int { return i + 1 }}).Parse(`
{{if .May}}<p class="chips"><a class="button" href="/rollouts/new">New rollout</a></p>{{end}}
{{range .Rollouts}}{{$r := .}}<section class="card wide" aria-labelledby="h-{{.ID}}">
  <h2 id="h-{{.ID}}">{{.Species}} {{.Version}} <span class="what">{{.Channel}}{{with .Cohort.String}}, {{.}}{{end}}</span></h2>
  <p><strong>{{.State}}</strong>, phase {{inc .Phase}} of {{with .Stages}}{{len .}}{{else}}{{len .Phases}}{{end}}, {{ago .Changed}}{{with .Why}}: {{.}}{{end}}</p>
  {{if eq .Channel "prod"}}{{if or (eq .State "waiting") (eq .State "held")}}<p>This rollout goes to prod, so someone other than {{.By}} must approve, resume or release it. If you are the only operator, add a second operator account.</p>{{end}}{{end}}
  {{if .Small}}<p>With fewer than {{.Progress.Least}} robots there are too few for statistics: 1, 2, 4, 8 robots and so on update, and a person releases each phase.</p>{{end}}
  {{with .Evidence}}<p>Robots: {{range $i, $x := .Robots}}{{if $i}}, {{end}}<a href="/things/{{$x}}">{{$x}}</a>{{end}}</p>{{end}}
  {{with .Progress}}{{if .Robots}}<p><meter min="0" max="{{.Robots}}" value="{{$r.Updated}}"></meter> {{$r.Updated}} of {{.Robots}} updated</p>{{end}}
  {{with .Phases}}<table class="plain"><caption class="hide">Phases</caption>
  <thead><tr><th scope="col">Phase</th><th scope="col" class="right">Share</th><th scope="col" class="right">Robots</th><th scope="col" class="right">Updated</th><th scope="col" class="right">Failed</th><th scope="col" class="right">Updating</th><th scope="col" class="right">Offline</th></tr></thead>
  <tbody>{{range $i, $p := .}}<tr><th scope="row">{{inc $i}}</th><td class="num right" data-label="Share">{{printf "%.3g" .Percent}} %</td><td class="num right" data-label="Robots">{{.Robots}}</td><td class="num right" data-label="Updated">{{.Done}}</td><td class="num right" data-label="Failed">{{.Failed}}</td><td class="num right" data-label="Updating">{{.Open}}</td><td class="num right" data-label="Offline">{{.Offline}}</td></tr>{{end}}</tbody></table>{{end}}
  {{with .Guards}}<table class="plain"><caption>Guards: updated robots compared with waiting robots</caption>
  <thead><tr><th scope="col">Guard</th><th scope="col" class="right">Updated, bad</th><th scope="col" class="right">Control, bad</th><th scope="col" class="right">Evidence of harm</th><th scope="col" class="right">Holds at</th><th scope="col" class="right">Stops at</th><th scope="col">Passes</th></tr></thead>
  <tbody>{{range .}}<tr data-guard="{{.Key}}"><th scope="row">{{.Key}}</th><td class="num right" data-label="Updated, bad">{{.Updated.Bad}} of {{.Updated.Of}}</td><td class="num right" data-label="Control, bad">{{if eq .Metric "failures"}}–{{else}}{{.Control.Bad}} of {{.Control.Of}}{{end}}</td><td class="num right" data-label="Evidence of harm">{{printf "%.3g" .Strength}}</td><td class="num right" data-label="Holds at">{{printf "%.3g" .HoldAt}}</td><td class="num right" data-label="Stops at">{{printf "%.3g" .StopAt}}</td><td data-label="Passes">{{if .Pass}}yes{{else}}not yet{{end}}</td></tr>{{end}}</tbody></table>{{end}}
  {{with .Lacks}}<h3>Needed before the next phase</h3><ul class="rows">{{range .}}<li data-lack="{{.Code}}">{{.Words}}</li>{{end}}</ul>{{end}}
  {{with .Codes}}<h3>Failed updates</h3><ul class="rows">{{range .}}<li><span class="num">{{.Robots}}</span> with code {{.Code}}: {{.Words}}</li>{{end}}</ul>{{end}}{{end}}
  {{with .Funnel}}<h3>Robots</h3><ul class="rows">{{range .}}<li><span class="num">{{.Robots}}</span> {{.Words}}</li>{{end}}</ul>{{end}}
  {{with .Actions}}<div class="chips">{{range .}}<form method="post" action="/rollouts"><input type="hidden" name="rollout" value="{{$r.ID}}"><input type="hidden" name="action" value="{{.Action}}"><button{{if .Danger}} class="danger"{{end}}>{{.Words}}<span class="hide"> of {{$r.Version}}</span></button></form> {{end}}</div>{{end}}
</section>
{{else}}<section class="card wide"><p class="none">No rollouts yet.</p></section>{{end}}`))

// Pages returns the page of rollouts, and what it says on the page of each robot.
func Pages(svc *rollout.Service, releases *ota.Service,
	audit func(ctx context.Context, action, object, detail string) error) []page.Extra {
	return []page.Extra{{
		Label: "Rollouts", Address: "/rollouts", Menu: page.Updates, Done: "Done.",
		Show: func(ctx context.Context) (template.HTML, error) {
			list, err := svc.List(ctx)
			if err != nil {
				return "", err
			}
			may := access.HTTP.Check("POST /rollouts", auth.CallerFrom(ctx).Role) == nil
			var views []view
			for _, r := range list[:min(len(list), shown)] {
				views = append(views, viewOf(r, may))
			}
			return page.HTML(pageBody, struct {
				May      bool
				Rollouts []view
			}{may, views})
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
	}, newPage(svc, releases, audit), robotTab(svc, releases.State)}
}
