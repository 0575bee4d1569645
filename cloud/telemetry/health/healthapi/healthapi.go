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
	Bad              int           // versions
	Trend            template.HTML // by day; "": there are not two days
	Hours            template.HTML // of the whole fleet
	Share            template.HTML
	Fleet            string // address of the robots in question
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
		if r.Cohort == "" {
			if v.Hours, err = hours(ctx, svc); err != nil {
				return "", err
			}
		}
		return page.HTML(body, v)
	}
	return page.Extra{Label: "Health", Address: "/health", Ask: ask, Show: func(ctx context.Context) (template.HTML, error) { return ask(ctx, nil) },
		Card: func(ctx context.Context) (template.HTML, error) { return card(ctx, svc) }}
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

// draw makes the charts.
func (v *view) draw() {
	v.Share = chart.Share(v.Robots, chart.Part{Size: v.Robots - v.Crashed, Tone: chart.Good, Text: robots(v.Robots-v.Crashed) + " without a crash"},
		chart.Part{Size: v.Crashed, Tone: chart.Bad, Text: robots(v.Crashed) + " with a crash"})
	if len(v.Course) == 0 {
		return
	}
	c := chart.Course{ID: "t-trend", Caption: "Robots by day", Columns: []string{"Day (UTC)", "Without a crash", "Robots", "Crashed"}}
	well, all := chart.Line{Gap: 36 * time.Hour}, chart.Line{Gap: 36 * time.Hour}
	for _, p := range v.Course {
		free := 1.0
		if p.Robots > 0 {
			free = 1 - float64(p.Crashed)/float64(p.Robots)
		}
		day := p.At.Format("2 Jan 2006")
		c.Rows = append([][]string{{day, percent(free), strconv.Itoa(p.Robots), strconv.Itoa(p.Crashed)}}, c.Rows...)
		well.Points = append(well.Points, chart.Point{At: p.At, Value: 100 * free, Text: day + ": " + percent(free) + " of " + robots(p.Robots)})
		all.Points = append(all.Points, chart.Point{At: p.At, Value: float64(p.Robots), Text: day + ": " + robots(p.Robots)})
		all.High = max(all.High, float64(p.Robots))
	}
	last := c.Rows[0]
	c.Board = chart.Board{Axis: chart.Axis{From: v.Course[0].At.Add(-12 * time.Hour), To: v.Until}, Lanes: []chart.Lane{
		{Name: "Without a crash", Note: last[1] + " today", Line: &well, Tall: true}, {Name: "Robots", Note: last[2] + " today", Line: &all, Tall: true}}}
	if len(v.Course) > 1 { // a point is no course
		v.Trend = c.HTML()
	}
}

var cardBody = template.Must(template.New("card").Parse(`<section class="card last" aria-labelledby="h-hours"><div class="cardhead"><h2 id="h-hours">Last hours</h2><a href="/health">Health</a></div>
{{.}}</section>`))

// card shows the last hours on the overview; "" if no robot was heard of.
func card(ctx context.Context, svc *health.Service) (template.HTML, error) {
	drawn, err := hours(ctx, svc)
	if err != nil || drawn == "" {
		return "", err
	}
	return page.HTML(cardBody, drawn)
}

// leastHours is how many hours are drawn of a fleet that is younger.
const leastHours = 6

// hours draws the last hours, since the first in which a robot was heard of; "" if none was.
func hours(ctx context.Context, svc *health.Service) (template.HTML, error) {
	all, err := svc.Hours(ctx)
	if err != nil || len(all) == 0 {
		return "", err
	}
	for len(all) > leastHours && all[0].Robots == 0 {
		all = all[1:]
	}
	c := chart.Course{ID: "t-hours", Caption: "Robots and crashes by hour", Columns: []string{"Hour (UTC)", "Robots that sent events", "Crashes"}}
	heard, crashes := chart.Line{High: 1}, chart.Line{High: 1}
	for _, h := range all {
		hour, r, n := h.At.Format("2 Jan 15:04"), strconv.Itoa(h.Robots), strconv.FormatInt(h.Crashes, 10)
		c.Rows = append([][]string{{hour, r, n}}, c.Rows...)
		at := h.At.Add(30 * time.Minute)
		heard.Points = append(heard.Points, chart.Point{At: at, Value: float64(h.Robots), Text: hour + ": " + robots(h.Robots)})
		crashes.Points = append(crashes.Points, chart.Point{At: at, Value: float64(h.Crashes), Text: hour + ": " + n + " crashes"})
		heard.High, crashes.High = max(heard.High, float64(h.Robots)), max(crashes.High, float64(h.Crashes))
	}
	c.Board = chart.Board{Axis: chart.Axis{From: all[0].At, To: all[len(all)-1].At.Add(time.Hour)}, Lanes: []chart.Lane{
		{Name: "Active robots", Note: c.Rows[0][1] + " this hour", Line: &heard, Tall: true}, {Name: "Crashes", Note: c.Rows[0][2] + " this hour", Line: &crashes, Tall: true}}}
	return c.HTML(), nil
}
