package console

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"kennel/cloud/chart"
	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/thing"
)

// mishaps are the events that the timeline shows by themselves, however many others there are, by the kind of their entries.
var mishaps = map[string]string{"robot.fault_code": "fault", "robot.crash": "crash", "robot.ota_download_start": "update", "robot.ota_download_stalled": "update", "robot.ota_download_end": "update",
	"robot.maintenance_reboot": "update"}

// lifeMishaps is how many of them are read for one view.
const lifeMishaps = 500

// mishapLanes shows faults, crashes, updates and gaps in what the robot sent.
func (c *console) mishapLanes(ctx context.Context, id thing.ID, axis chart.Axis) (lanes []chart.Lane, out []entry, err error) {
	f := das.Filter{Thing: id, Since: axis.From}
	for name := range mishaps {
		f.Names = append(f.Names, name)
	}
	recs, err := c.Events.List(ctx, f, lifeMishaps, das.Cursor{Received: axis.To.Add(time.Microsecond)})
	if err != nil {
		return nil, nil, fmt.Errorf("faults of %s: %w", id, err)
	}
	losses, err := c.Events.Losses(ctx, id, axis.From, axis.To)
	if err != nil {
		return nil, nil, fmt.Errorf("gaps in the events of %s: %w", id, err)
	}
	faults, crashes, updates, lost := chart.Lane{Name: "Faults"}, chart.Lane{Name: "Crashes"}, chart.Lane{Name: "Updates"}, chart.Lane{Name: "Lost events"}
	lane := map[string]*chart.Lane{"fault": &faults, "crash": &crashes, "update": &updates}
	var begun time.Time // of the download that is shown next
	slices.Reverse(recs)
	for _, r := range recs {
		kind := mishaps[r.Name]
		l := lane[kind]
		if l == nil {
			continue
		}
		tone, text := mishap(&r.Event)
		switch {
		case r.Name == "robot.ota_download_start":
			begun = r.Received
		case r.Name == "robot.ota_download_end" && !begun.IsZero():
			l.Spans = append(l.Spans, chart.Span{From: begun, To: r.Received, Tone: chart.Faint, Text: "download, " + moment(begun) + " to " + moment(r.Received)})
			begun = time.Time{}
		}
		to := place(id) + "/events?event=" + url.QueryEscape(r.Name)
		if kind == "crash" && c.hasTab("crashes") {
			to = place(id) + "/crashes"
		}
		l.Marks = append(l.Marks, chart.Mark{At: r.Received, Tone: tone, Text: text + ", " + moment(r.Received)})
		out = append(out, entry{At: r.Received, Kind: kind, Tone: tone, Text: text, To: to})
	}
	missing := uint64(0)
	for _, x := range losses {
		missing += x.Events()
		text := fmt.Sprintf("%d events did not come (%d to %d of boot %s)", x.Events(), x.First, x.Last, x.BootID)
		lost.Spans = append(lost.Spans, chart.Span{From: x.From, To: x.To, Tone: chart.Warn, Text: text})
		out = append(out, entry{At: x.To, Kind: "loss", Tone: chart.Warn, Text: text})
	}
	for _, l := range []*chart.Lane{&faults, &crashes, &updates} {
		if l.Note = "none"; len(l.Marks) > 0 {
			l.Note = fmt.Sprint(len(l.Marks))
		}
	}
	if lost.Note = "none"; missing > 0 {
		lost.Note = fmt.Sprint(missing)
	}
	if len(recs) == lifeMishaps {
		faults.Note += ", the latest"
	}
	return []chart.Lane{faults, crashes, updates, lost}, out, nil
}

// mishap puts an event of mishaps in words.
func mishap(e *events.Event) (chart.Tone, string) {
	words := func(s ...string) string {
		return strings.Join(slices.DeleteFunc(s, func(s string) bool { return s == "" }), ", ")
	}
	switch e.Name {
	case "robot.fault_code":
		code := e.S1
		if e.I1.Set {
			code = fmt.Sprint(e.I1.N)
		}
		return chart.Bad, words("Fault "+code, e.S2)
	case "robot.crash":
		return chart.Bad, words("Crash of "+e.S1, e.S2, e.S3)
	case "robot.ota_download_start":
		return chart.Plain, words("Download started", e.S2)
	case "robot.ota_download_stalled":
		return chart.Warn, "Download stalled"
	case "robot.ota_download_end":
		if e.S1 == "success" {
			return chart.Good, words("Download done", e.S2)
		}
		return chart.Bad, words("Download failed", e.S2, e.S3)
	}
	return chart.Plain, words("Maintenance reboot", e.S1, e.S2)
}

// hasTab reports whether robots have a page that a slice brings along.
func (c *console) hasTab(name string) bool {
	for _, e := range c.More {
		if e.Tab != nil && e.Address == ofThing+name {
			return true
		}
	}
	return false
}
