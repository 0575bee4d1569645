package rolloutapi

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"time"

	"kennel/cloud/chart"
	"kennel/cloud/page"
	"kennel/cloud/updates/rollout"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

//go:embed rollout.html
var rolloutText string

const (
	again       = 10_000 // ms after which a page is fetched again: a rollout takes a step as often
	shownRobots = 50     // on one page
	maxPoints   = 200    // of a line
)

// oneView is one rollout as its own page shows it.
type oneView struct {
	view
	Ahead    *aheadView // of one that has not begun
	Course   template.HTML
	Phasing  []phaseView
	Chips    []chipView
	Robots   []rollout.Why
	Filtered bool
	Gone     string // why its robots cannot be told
	Next     string
	Turns    []rollout.Turn
}

type phaseView struct {
	rollout.PhaseProgress
	Number  int
	Address string
}

// chipView is a filter of robots.
type chipView struct {
	Words, Address string
	Robots         int // 0: not shown
	Current        bool
}

// aheadView is a forecast for people.
type aheadView struct {
	rollout.Forecast
	Stages []stageView
}

type stageView struct{ Number, More, Robots int }

func ahead(f rollout.Forecast) *aheadView {
	v := &aheadView{Forecast: f}
	before := 0
	for i, s := range f.Stages {
		v.Stages = append(v.Stages, stageView{i + 1, s.Robots - before, s.Robots})
		before = s.Robots
	}
	return v
}

// answer says a code in a few words.
func answer(c rollout.WhyCode) string {
	for _, a := range answers {
		if a.Code == c {
			return a.Words
		}
	}
	return string(c)
}

var turns = map[string]string{
	rollout.TurnWaiting: "waits for approval", rollout.TurnStarted: "started", rollout.TurnPhase: "next phase", rollout.TurnBaking: "observing", rollout.TurnPaused: "paused", rollout.TurnResumed: "resumed",
	rollout.TurnHeld: "held", rollout.TurnFreed: "released", rollout.TurnStopped: "stopped", rollout.TurnAborted: "aborted", rollout.TurnRetried: "retried", rollout.TurnDone: "done",
}

// turnWords says the kind of a turn.
func turnWords(kind string) string {
	if w, ok := turns[kind]; ok {
		return w
	}
	return kind
}

// address is where some of a rollout's robots are shown; phase 0 and code "" are all.
func address(id string, phase int, code rollout.WhyCode, after thing.ID) string {
	v := url.Values{"id": {id}}
	if phase > 0 {
		v.Set("phase", strconv.Itoa(phase))
	}
	if code != "" {
		v.Set("why", string(code))
	}
	if after != "" {
		v.Set("after", string(after))
	}
	return "/rollouts/rollout?" + v.Encode()
}

// onePage is the page of one rollout.
func onePage(svc *rollout.Service) page.Extra {
	return page.Extra{Label: "Rollout", Address: "/rollouts/rollout", Again: again, Ask: func(ctx context.Context, q url.Values) (template.HTML, error) {
		which := rollout.Which{Code: rollout.WhyCode(q.Get("why")), After: thing.ID(q.Get("after")), Limit: shownRobots + 1}
		if text := q.Get("phase"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return "", errs.New(errs.Invalid, "phase %.20q: want a number from 1", text)
			}
			which.Phase = n
		}
		r, err := svc.Get(ctx, q.Get("id"))
		if err != nil {
			return "", err
		}
		v := oneView{view: viewOf(r, mayChange(ctx)), Filtered: which.Phase > 0 || which.Code != "" || which.After != ""}
		if v.Turns, err = svc.Turns(ctx, r.ID); err != nil {
			return "", err
		}
		seen, err := svc.See(ctx, r.ID, which)
		if err == nil && (r.State == rollout.Draft || r.State == rollout.Waiting) {
			var f rollout.Forecast
			if f, err = svc.Forecast(ctx, r.Spec); err == nil {
				v.Ahead = ahead(f)
			}
		}
		switch {
		case err != nil && !page.Expected(err):
			return "", err
		case err != nil: // such as a cohort that is gone
			v.Gone = page.Words(err)
		}
		if v.Robots = seen.Robots; len(v.Robots) > shownRobots {
			v.Robots = v.Robots[:shownRobots]
			v.Next = address(r.ID, which.Phase, which.Code, v.Robots[shownRobots-1].Thing) + "#robots"
		}
		for i, p := range r.Progress.Phases {
			v.Phasing = append(v.Phasing, phaseView{p, i + 1, address(r.ID, i+1, "", "") + "#robots"})
		}
		v.Chips = chips(r, which)
		v.Course = course(r, seen, v.Turns, svc.Now())
		return page.HTML(shared, v)
	}}
}

// chips are the filters of robots by phase and by answer; each keeps the other.
func chips(r rollout.Rollout, which rollout.Which) []chipView {
	out := []chipView{{Words: "All robots", Address: address(r.ID, 0, "", "") + "#robots", Robots: r.Progress.Robots, Current: which.Phase == 0 && which.Code == ""}}
	for i := range r.Progress.Phases {
		c := chipView{Words: fmt.Sprintf("phase %d", i+1), Address: address(r.ID, i+1, which.Code, ""), Current: which.Phase == i+1}
		if c.Current {
			c.Address = address(r.ID, 0, which.Code, "")
		}
		c.Address += "#robots"
		out = append(out, c)
	}
	for _, a := range answers {
		c := chipView{Words: a.Words, Address: address(r.ID, which.Phase, a.Code, ""), Robots: r.Progress.Why[a.Code], Current: which.Code == a.Code}
		if c.Current {
			c.Address = address(r.ID, which.Phase, "", "")
		}
		if c.Address += "#robots"; c.Robots > 0 || c.Current {
			out = append(out, c)
		}
	}
	return out
}

// course draws how many robots were updated, and how many updates failed, since the start; "" before one was.
func course(r rollout.Rollout, seen rollout.Seen, turns []rollout.Turn, now time.Time) template.HTML {
	if len(seen.Updated)+len(seen.Failed) == 0 {
		return ""
	}
	axis := chart.Axis{From: r.Created, To: now}
	var marks []chart.Mark
	for _, t := range turns {
		if t.Kind == rollout.TurnStarted {
			axis.From = t.At
		}
		tone := chart.Plain
		switch t.Kind {
		case rollout.TurnStopped, rollout.TurnAborted:
			tone = chart.Bad
		case rollout.TurnHeld, rollout.TurnPaused:
			tone = chart.Warn
		case rollout.TurnDone, rollout.TurnPhase:
			tone = chart.Good
		}
		marks = append(marks, chart.Mark{At: t.At, Tone: tone, Text: turnWords(t.Kind)})
	}
	for _, list := range [][]time.Time{seen.Updated, seen.Failed} { // one may have run the release before
		if len(list) > 0 && list[0].Before(axis.From) {
			axis.From = list[0]
		}
	}
	switch r.State {
	case rollout.Done, rollout.Aborted, rollout.Stopped:
		axis.To = r.Changed
		for _, list := range [][]time.Time{seen.Updated, seen.Failed} {
			if n := len(list); n > 0 && list[n-1].After(axis.To) {
				axis.To = list[n-1]
			}
		}
	}
	c := chart.Course{ID: "t-course", Caption: "Robots over time", Columns: []string{"Until (UTC)", "Updated", "Failed"}, Board: chart.Board{Axis: axis, Lanes: []chart.Lane{
		{Name: "Updated", Note: strconv.Itoa(len(seen.Updated)), Line: count(axis, seen.Updated, r.Progress.Robots), Tall: true},
		{Name: "Failed", Note: strconv.Itoa(len(seen.Failed)), Line: count(axis, seen.Failed, r.Progress.Robots), Tall: true},
		{Name: "History", Marks: marks}}}}
	row := func(at time.Time) {
		c.Rows = append([][]string{{at.UTC().Format("2 Jan 2006 15:04"), strconv.Itoa(until(seen.Updated, at)), strconv.Itoa(until(seen.Failed, at))}}, c.Rows...)
	}
	for _, t := range axis.Ticks() {
		row(t.At)
	}
	row(axis.To)
	return c.HTML()
}

// until counts the moments up to at; they are in order.
func until(list []time.Time, at time.Time) (n int) {
	for n < len(list) && !list[n].After(at) {
		n++
	}
	return n
}

// count is the line of how many moments have passed; high is the top of its scale.
func count(axis chart.Axis, list []time.Time, high int) *chart.Line {
	line := chart.Line{High: float64(max(high, len(list), 1))}
	add := func(at time.Time, n int) {
		line.Points = append(line.Points, chart.Point{At: at, Value: float64(n), Text: fmt.Sprintf("%d until %s UTC", n, at.UTC().Format("2 Jan 15:04"))})
	}
	add(axis.From, 0)
	step := max(1, len(list)/maxPoints)
	for i := step - 1; i < len(list); i += step {
		add(list[i], i+1)
	}
	add(axis.To, len(list))
	return &line
}
