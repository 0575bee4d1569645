package rolloutapi

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/page"
	"kennel/cloud/updates/rollout"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
)

//go:embed new.html
var newText string

var newBody = template.Must(template.Must(shared.Clone()).New("new").Parse(newText))

// The rows of the form, with what they suggest.
var (
	phaseRows = []struct{ Percent, Hours string }{{"1", "1"}, {"10", "1"}, {"50", "1"}, {"100", "1"}, {"", ""}}
	guardRows = []struct {
		Metric               rollout.Metric
		Words, Share, Sample string
	}{{rollout.Failures, "Failed updates", "5", "20"}, {rollout.Silent, "Robots gone silent", "3", "30"}, {rollout.Problems, "Robots with a new problem", "5", "30"}}
)

// newView is the form, and what was typed into it.
type newView struct {
	url.Values
	Releases []ota.Release
	Channels []rollout.Channel
	Phases   any
	Guards   any
	Ahead    *aheadView // nil: it cannot be said
	Problem  string     // why the robots could not be counted
}

// Text returns the i-th value of a field as it was typed, or what the form suggests.
func (v newView) Text(name string, i int, suggest string) string {
	if list := v.Values[name]; i < len(list) {
		return list[i]
	}
	return suggest
}

// count fills in how many robots the rollout would be for, as the form is filled in, or as it suggests.
func (v *newView) count(ctx context.Context, svc *rollout.Service) error {
	asked := v.Values
	if !asked.Has("percent") {
		asked = url.Values{"release": {v.Text("release", 0, string(v.Releases[0].Species)+" "+string(v.Releases[0].Version))}}
		for _, p := range phaseRows {
			asked.Add("percent", p.Percent)
		}
		for _, g := range guardRows {
			asked.Add("share", g.Share)
			asked.Add("sample", g.Sample)
		}
	}
	s, err := specOf(asked)
	if err == nil {
		var f rollout.Forecast
		if f, err = svc.Forecast(ctx, s); err == nil {
			v.Ahead = ahead(f)
			return nil
		}
	}
	if !page.Expected(err) {
		return err
	}
	if v.Has("count") { // a form that was refused has its problem above
		v.Problem = page.Words(err)
	}
	return nil
}

// newPage is the form that makes a rollout.
func newPage(svc *rollout.Service, releases *ota.Service, audit func(ctx context.Context, action, object, detail string) error) page.Extra {
	return page.Extra{
		Label: "New rollout", Address: "/rollouts/new", Done: "Rollout created.",
		Back: func(v url.Values) string { return address(v.Get("made"), 0, "", "") },
		Ask: func(ctx context.Context, v url.Values) (template.HTML, error) {
			list, err := releases.Releases(ctx, "")
			if err != nil {
				return "", err
			}
			out := newView{Values: v, Releases: list, Channels: []rollout.Channel{rollout.Prod, rollout.Beta, rollout.Dev}, Phases: phaseRows, Guards: guardRows}
			if len(list) > 0 {
				if err := out.count(ctx, svc); err != nil {
					return "", err
				}
			}
			return page.HTML(newBody, out)
		},
		Do: func(ctx context.Context, v url.Values) error {
			s, err := specOf(v)
			if err != nil {
				return err
			}
			made, err := create(ctx, svc, audit, Request{s, v.Has("draft")})
			v.Set("made", made.ID)
			return err
		},
	}
}

// create makes a rollout, with a line in the audit log.
func create(ctx context.Context, svc *rollout.Service, audit func(ctx context.Context, action, object, detail string) error, q Request) (rollout.Rollout, error) {
	if err := q.Check(); err != nil {
		return rollout.Rollout{}, err
	}
	id := uuid.NewString() // the line is written before the rollout is made
	if err := audit(ctx, AuditPrefix+"create", id, fmt.Sprintf("%s %s to %s", q.Species, q.Version, q.Channel)); err != nil {
		return rollout.Rollout{}, err
	}
	return svc.Create(ctx, id, q.Spec, q.Draft, auth.CallerFrom(ctx).Subject())
}

// specOf reads the form. Rows that were left empty are no phases and no guards.
func specOf(v url.Values) (s rollout.Spec, err error) {
	number := func(name string, i int, what string) (n float64) {
		text := strings.TrimSpace(newView{Values: v}.Text(name, i, ""))
		if text == "" {
			return 0
		}
		n, failed := strconv.ParseFloat(text, 64)
		if failed != nil && err == nil {
			err = errs.New(errs.Invalid, "%s: %.20q is not a number", what, text)
		}
		return n
	}
	species, version, _ := strings.Cut(v.Get("release"), " ")
	s = rollout.Spec{Species: thing.Species(species), Version: ota.Version(version), Channel: rollout.Channel(v.Get("channel")), Cap: int(number("cap", 0, "robots at once")),
		Bandwidth: int64(number("bandwidth", 0, "bytes a second")), Rollback: v.Has("rollback"), Note: strings.TrimSpace(v.Get("note")), Guards: []rollout.Guard{}}
	for i, text := range v["percent"] {
		if strings.TrimSpace(text) != "" {
			s.Phases = append(s.Phases, rollout.Phase{Percent: number("percent", i, "share of a phase"), BakeS: int64(3600 * number("bake", i, "hours"))})
		}
	}
	for i, g := range guardRows {
		if strings.TrimSpace(newView{Values: v}.Text("share", i, "")) != "" {
			s.Guards = append(s.Guards, rollout.Guard{Metric: g.Metric, Share: number("share", i, g.Words) / 100, Sample: int(number("sample", i, g.Words))})
		}
	}
	if from, to := v.Get("from"), v.Get("to"); from+to != "" {
		s.Window = &ota.Window{From: from, To: to}
	}
	if v.Has("battery") || v.Has("charger") {
		s.Needs = &ota.Needs{Battery: v.Has("battery"), Charger: v.Has("charger")}
	}
	if err != nil {
		return s, err
	}
	s.Cohort, err = filter.Parse(strings.TrimSpace(v.Get("cohort")))
	return s, err
}
