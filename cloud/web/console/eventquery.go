package console

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"kennel/cloud/chart"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
)

const (
	queryRows   = 50 // events that the page of questions shows
	queryGroups = 50 // groups that it has in its table; the chart has all
	queryValues = 2  // fields for conditions
)

// queryView is the page that asks the store of events.
type queryView struct {
	Asked   url.Values
	Values  []string // the conditions, with room for one more
	Levels  []events.Level
	By      []das.Grouping
	Known   []string           // names of events whose layout is known
	Layout  []events.Described // of the event that is asked for
	Problem string             // why there is no answer
	Slow    string             // why a part of the answer is missing
	Counts  *das.Counts
	Board   template.HTML
	Groups  []groupRow
	More    int // groups that the table does not show
	Rows    []eventRow
	Next    string
	First   string
	Here    string // the same with the times it was answered for
	Files   []link
}

// groupRow is one group of the table.
type groupRow struct {
	das.Count
	At    time.Time // of a stretch of time
	Share template.HTML
	To    string // the question about this group alone
}

// Get returns what was asked for in a field.
func (v queryView) Get(field string) string { return v.Asked.Get(field) }

// queryEvents is the page that asks the store of events: a form, what was found in words, as a chart and as tables. All of it is in the address.
func (c *console) queryEvents(ctx context.Context, r *http.Request, _ said) (string, frame, error) {
	v := queryView{Asked: r.URL.Query(), Levels: levels, By: das.Groupings, Known: events.Known()}
	f := frame{Title: "Events"}
	if len(v.Asked) == 0 {
		v.Asked = url.Values{"since": {"1h"}}
	}
	for _, s := range v.Asked["value"] {
		if strings.TrimSpace(s) != "" {
			v.Values = append(v.Values, s)
		}
	}
	for len(v.Values) < queryValues {
		v.Values = append(v.Values, "")
	}
	v.Layout, _ = events.Describe(v.Get("name"))
	var before das.Cursor
	q, err := das.ReadCounts(v.Asked, c.now(), func(key, s string) (known bool, err error) {
		if key == "before" {
			before, err = das.ParseCursor(s)
			return true, err
		}
		return false, nil
	})
	if err == nil {
		err = c.answer(ctx, &v, q, before)
	}
	if err != nil && !page.Expected(err) {
		return "", frame{}, err
	}
	if err != nil {
		v.Problem = page.Words(err)
	}
	f.Main = v
	return "query", f, nil
}

// answer asks for counts and for events, at the same time.
func (c *console) answer(ctx context.Context, v *queryView, q das.CountsQuery, before das.Cursor) error {
	if q.Filter.Until.IsZero() {
		q.Filter.Until = c.now().UTC().Truncate(time.Second).Add(time.Second)
	}
	if q.Filter.Since.IsZero() {
		q.Filter.Since = q.Filter.Until.Add(-day)
	}
	var counts das.Counts
	var slow error
	var wait sync.WaitGroup
	wait.Go(func() { counts, slow = c.Events.Counts(ctx, q) })
	recs, err := c.Events.List(ctx, q.Filter, queryRows+1, before)
	wait.Wait()
	if err != nil {
		return err
	}
	fixed := q.Filter.Query()
	address := func(change ...string) string {
		a := url.Values{"by": {string(q.By)}}
		if q.Of != "" {
			a.Set("of", q.Of)
		}
		for key, s := range fixed {
			a[key] = s
		}
		for i := 0; i+1 < len(change); i += 2 {
			a.Set(change[i], change[i+1])
		}
		return "/events?" + a.Encode()
	}
	v.Here = address()
	for _, f := range []struct{ format, label string }{{"csv", "CSV"}, {"ndjson", "JSON lines"}, {"parquet", "Parquet"}} {
		v.Files = append(v.Files, link{Label: f.label, Address: "/v1/events/export?format=" + f.format + "&" + fixed.Encode()})
	}
	if len(recs) > queryRows {
		recs = recs[:queryRows]
		v.Next = address("before", recs[queryRows-1].Cursor().String())
	}
	if before != (das.Cursor{}) {
		v.First = v.Here
	}
	for i := range recs {
		v.Rows = append(v.Rows, newEventRow(&recs[i], false))
	}
	if slow != nil {
		if !page.Expected(slow) {
			return slow
		}
		v.Slow = page.Words(slow)
		return nil
	}
	v.Counts = &counts
	v.groups(address)
	return nil
}

// groups fills in the table and the chart.
func (v *queryView) groups(address func(...string) string) {
	c := v.Counts
	most := uint64(1)
	for _, g := range c.Groups {
		most = max(most, g.Events)
	}
	narrows := map[das.Grouping]string{das.ByEvent: "name", das.ByVersion: "version", das.BySource: "source", das.ByRobot: "thing"}
	length := time.Hour
	if c.By == das.ByDay {
		length = day
	}
	for _, g := range c.Groups {
		row := groupRow{Count: g, Share: chart.Share(int(most), chart.Part{Size: int(g.Events), Tone: chart.Plain, Text: count(g.Events) + " events"})}
		if c.By.Time() {
			row.At, _ = time.Parse(time.RFC3339, g.Key) // written by the database for this
			row.To = address("by", string(das.ByEvent), "since", g.Key, "until", row.At.Add(length).Format(time.RFC3339))
		} else if key := narrows[c.By]; key != "" && g.Key != "" {
			row.To = address(key, g.Key, "by", string(das.ByHour))
		}
		v.Groups = append(v.Groups, row)
	}
	if c.By.Time() && len(v.Groups) > 0 {
		v.Board = countsBoard(c, v.Groups, length)
		for i, j := 0, len(v.Groups)-1; i < j; i, j = i+1, j-1 { // the table begins with the latest
			v.Groups[i], v.Groups[j] = v.Groups[j], v.Groups[i]
		}
	}
	if v.More = max(0, len(v.Groups)-queryGroups); v.More > 0 {
		v.Groups = v.Groups[:queryGroups]
	}
}

// countsBoard draws events, robots and the quantiles of a number over time.
func countsBoard(c *das.Counts, groups []groupRow, length time.Duration) template.HTML {
	b := chart.Board{Axis: chart.Axis{From: c.Since, To: c.Until}}
	lane := func(name string, value func(das.Count) (float64, bool)) {
		l := chart.Lane{Name: name, Tall: true, Line: &chart.Line{Gap: length * 3 / 2}}
		for _, g := range groups {
			if n, ok := value(g.Count); ok {
				l.Line.High = max(l.Line.High, n)
				l.Line.Low = min(l.Line.Low, n)
				at := g.At.Add(length / 2)
				if at.After(c.Until) {
					at = c.Until
				}
				if at.Before(c.Since) {
					at = c.Since
				}
				l.Line.Points = append(l.Line.Points, chart.Point{At: at, Value: n, Text: strconv.FormatFloat(n, 'f', -1, 64) + ", " + moment(g.At)})
				l.Note = "up to " + strconv.FormatFloat(l.Line.High, 'f', -1, 64)
			}
		}
		b.Lanes = append(b.Lanes, l)
	}
	lane("Events", func(g das.Count) (float64, bool) { return float64(g.Events), true })
	lane("Robots", func(g das.Count) (float64, bool) { return float64(g.Robots), true })
	if c.Of != "" {
		for _, q := range []struct {
			name string
			of   func(*das.Numbers) float64
		}{{"Median", func(n *das.Numbers) float64 { return n.P50 }}, {"p99", func(n *das.Numbers) float64 { return n.P99 }}} {
			lane(fmt.Sprintf("%s of %s", q.name, c.Of), func(g das.Count) (float64, bool) {
				if g.Numbers == nil || g.Numbers.Count == 0 {
					return 0, false
				}
				return q.of(g.Numbers), true
			})
		}
	}
	return b.HTML()
}

// Each calls what a group is for people.
func (v queryView) Each() string {
	return cmp.Or(map[das.Grouping]string{das.ByHour: "Hour", das.ByDay: "Day", das.ByEvent: "Event", das.ByVersion: "Release", das.BySource: "Program", das.ByLevel: "Level", das.ByRobot: "Robot"}[v.Counts.By], "Group")
}
