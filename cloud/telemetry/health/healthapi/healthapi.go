// Package healthapi is the fleet's health over HTTP and as a page of the console.
package healthapi

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"time"

	"kennel/cloud/chart"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/health"
	"kennel/infra/auth"
	"kennel/infra/op"
)

type asking struct {
	Period string `query:"period" about:"Period, up to now." enum:"24h,7d,30d"`
	Cohort string `query:"cohort" about:"Only robots of this cohort."`
}

// Operations returns the operation on the fleet's health.
func Operations(svc *health.Service) op.List {
	return op.List{op.New(op.Spec{Route: "GET /v1/fleet/health", Tag: "Fleet", Roles: auth.Staff,
		Summary: "Show the fleet's health: crashes by version, faults, batteries, voice and activation."},
		func(ctx context.Context, r asking) (health.Overview, error) {
			return svc.Report(ctx, r.Period, r.Cohort)
		})}
}

//go:embed page.html
var text string

var body = template.Must(template.New("health").Funcs(template.FuncMap{"percent": percent, "robots": robots, "volts": func(v float64) string { return fmt.Sprintf("%.2f V", v) }}).Parse(text))

// percent writes a share so that it is 100 % only if it is whole.
func percent(share float64) string {
	s := strconv.FormatFloat(100*share, 'f', 1, 64)
	if s == "100.0" && share < 1 {
		s = "99.9"
	}
	return s + " %"
}

func robots(n int) string {
	if n == 1 {
		return "1 robot"
	}
	return strconv.Itoa(n) + " robots"
}

type choice struct {
	Words, Address string
	Current        bool
}

type view struct {
	health.Overview
	Words            string // of the period
	Periods, Cohorts []choice
	Bad              int // versions
	Trend            template.HTML
	Past             []day
	Share            template.HTML
	Fleet            string // address of the robots in question
}

type day struct {
	At        string
	Robots    int
	Crashed   int
	CrashFree float64
}

// words are the periods for people.
var words = map[string]string{"24h": "24 hours", "7d": "7 days", "30d": "30 days"}

func address(period, cohort string) string {
	v := url.Values{"period": {period}}
	if cohort != "" {
		v.Set("cohort", cohort)
	}
	return "/health?" + v.Encode()
}

// Page is the page of the console.
func Page(svc *health.Service, cohorts func(context.Context) ([]cohort.Cohort, error)) page.Extra {
	ask := func(ctx context.Context, q url.Values) (template.HTML, error) {
		r, err := svc.Report(ctx, q.Get("period"), q.Get("cohort"))
		if err != nil {
			return "", err
		}
		list, err := cohorts(ctx)
		if err != nil {
			return "", err
		}
		v := view{Overview: r, Words: words[r.Period], Fleet: fleet(r.Cohort)}
		for _, p := range health.Periods {
			v.Periods = append(v.Periods, choice{words[p.Name], address(p.Name, r.Cohort), p.Name == r.Period})
		}
		v.Cohorts = []choice{{"Whole fleet", address(r.Period, ""), r.Cohort == ""}}
		for _, c := range list {
			v.Cohorts = append(v.Cohorts, choice{c.Name, address(r.Period, c.Name), c.Name == r.Cohort})
		}
		for _, x := range r.Versions {
			if x.State == health.Bad {
				v.Bad++
			}
		}
		v.draw()
		return page.HTML(body, v)
	}
	return page.Extra{Label: "Health", Address: "/health", Ask: ask, Show: func(ctx context.Context) (template.HTML, error) { return ask(ctx, nil) }}
}

// fleet is the address of the list of robots.
func fleet(cohort string) string {
	if cohort == "" {
		return "/things"
	}
	return "/things?" + url.Values{"q": {string(filter.Cohort) + ":" + cohort}}.Encode()
}

// Fault is the address of the robots that have a fault now.
func (view) Fault(code int) string {
	return "/things?" + url.Values{"q": {fmt.Sprintf("%s:fault/%d", filter.Problem, code)}}.Encode()
}

// draw makes the charts, and the list that says the same.
func (v *view) draw() {
	v.Share = chart.Share(v.Robots, chart.Part{Size: v.Robots - v.Crashed, Tone: chart.Good, Text: robots(v.Robots-v.Crashed) + " without a crash"},
		chart.Part{Size: v.Crashed, Tone: chart.Bad, Text: robots(v.Crashed) + " with a crash"})
	if len(v.Course) == 0 {
		return
	}
	line := chart.Line{Gap: 36 * time.Hour}
	for _, p := range v.Course {
		d := day{At: p.At.Format("2 Jan 2006"), Robots: p.Robots, Crashed: p.Crashed, CrashFree: 1}
		if p.Robots > 0 {
			d.CrashFree = 1 - float64(p.Crashed)/float64(p.Robots)
		}
		v.Past = append([]day{d}, v.Past...)
		line.Points = append(line.Points, chart.Point{At: p.At, Value: 100 * d.CrashFree, Text: d.At + ": " + percent(d.CrashFree) + " of " + robots(d.Robots)})
	}
	if len(v.Course) == 1 {
		return // a point is no course
	}
	last := v.Past[0]
	v.Trend = chart.Board{Axis: chart.Axis{From: v.Course[0].At.Add(-12 * time.Hour), To: v.Until},
		Lanes: []chart.Lane{{Name: "Without a crash", Note: percent(last.CrashFree) + " today", Line: &line, Tall: true}}}.HTML()
}
