package console

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"

	"kennel/cloud/chart"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
)

// experimentsView is the page of experiments: which there are, and how the variations of one differ.
type experimentsView struct {
	Asked   url.Values
	List    []das.Experiment
	Shares  []template.HTML // of List: robots by variation
	Known   []string
	Problem string
	Result  *das.Comparison
	Unit    string // of the means
}

// Get returns what was asked for in a field.
func (v experimentsView) Get(field string) string { return v.Asked.Get(field) }

// Number is a value for people.
func (experimentsView) Number(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e9 {
		return fmt.Sprint(int64(f))
	}
	return fmt.Sprintf("%.4g", f)
}

func (c *console) experiments(ctx context.Context, r *http.Request, _ said) (string, frame, error) {
	v := experimentsView{Asked: r.URL.Query(), Known: events.Known()}
	var err error
	if v.List, err = c.Events.Experiments(ctx, c.now().Add(-30*day)); err != nil {
		return "", frame{}, err
	}
	for _, e := range v.List {
		var parts []chart.Part
		for i, a := range e.Variations {
			parts = append(parts, chart.Part{Size: a.Robots, Tone: []chart.Tone{chart.Plain, chart.Good, chart.Warn}[i%3], Text: fmt.Sprintf("%s: %d robots", a.Variation, a.Robots)})
		}
		v.Shares = append(v.Shares, chart.Share(0, parts...))
	}
	if v.Get("key") != "" {
		q, err := das.ReadCompare(v.Get("key"), v.Asked, c.now())
		var result das.Comparison
		if err == nil {
			result, err = c.Events.Compare(ctx, q)
		}
		switch {
		case err == nil:
			v.Result, v.Unit = &result, "events a robot and day"
			if q.Of != "" {
				v.Unit = "mean of " + q.Of
			}
		case page.Expected(err):
			v.Problem = page.Words(err)
		default:
			return "", frame{}, err
		}
	}
	return "experiments", frame{Title: "Experiments", Main: v}, nil
}
