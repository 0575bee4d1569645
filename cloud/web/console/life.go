package console

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"kennel/cloud/chart"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/vitals"
	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Vitals returns samples of how a robot was, oldest first; *vitalspg.Store has it.
type Vitals func(ctx context.Context, id thing.ID, g vitals.Grain, from, to time.Time) ([]vitals.Sample, error)

const (
	day         = 24 * time.Hour
	lifeEvents  = 600 // that are read for one view
	lifeJournal = 40  // entries shown below the lanes
	eventSlots  = 96  // of one view
)

// zoom is a length of time that a robot's life is looked at in.
type zoom struct {
	Name, Label string
	Length      time.Duration
	Grain       vitals.Grain
}

var zooms = []zoom{{"hour", "Hour", time.Hour, vitals.Fine}, {"day", "Day", day, vitals.Fine}, {"week", "Week", 7 * day, vitals.Coarse}, {"month", "Month", 30 * day, vitals.Coarse}}

// lifeView is a robot's timeline and activity.
type lifeView struct {
	Zooms           []link
	Earlier, Later  string // addresses; Later "": this is now
	Now             string // address of the present; "": this is it
	From, To        time.Time
	Board           template.HTML
	Journal         []entry
	More            int // entries that are not shown
	Cut             bool
	Kinds           []link // filters of the journal
	Counted, Unread time.Time
	Shortest        bool // there is no shorter time to look at
}

// entry is one line of the journal.
type entry struct {
	At   time.Time
	Kind string // presence, connection, setting, command, fault, crash, update, loss, event
	Tone chart.Tone
	Text string
	By   string
	To   string // address of more; "": none
}

// shortestLife is the shortest time that a timeline shows of a young robot.
const shortestLife = 10 * time.Minute

// journalKinds are what the journal can be narrowed to.
var journalKinds = []struct{ Kind, Label string }{{"", "All"}, {"presence", "Online"}, {"connection", "Connection"}, {"setting", "Settings"}, {"command", "Commands"}, {"fault", "Faults"}, {"crash", "Crashes"}, {"update", "Updates"},
	{"loss", "Lost events"}, {"event", "Warnings"}}

func (c *console) life(ctx context.Context, q url.Values, h thingHead, report registry.Report) (lifeView, error) {
	now := c.now()
	if gone := h.Presence == registry.Absent && !h.LastSeen.IsZero() && now.Sub(h.LastSeen) > day; gone && !q.Has("zoom") && !q.Has("until") {
		q = maps.Clone(q)
		q.Set("until", h.LastSeen.Add(time.Hour).UTC().Format(time.RFC3339)) // of a robot that left, its last day
	}
	v, zoom, err := lifeAt(q, h.ID, now)
	if err != nil {
		return lifeView{}, err
	}
	if v.From.Before(h.Created) && h.Created.Before(v.To.Add(-shortestLife)) { // there was no robot yet
		v.From = h.Created
	}
	v.Shortest = zoom.Name == zooms[0].Name
	b := chart.Board{Axis: chart.Axis{From: v.From, To: v.To}}
	add := func(l chart.Lane, entries []entry, err error) error {
		b.Lanes, v.Journal = append(b.Lanes, l), append(v.Journal, entries...)
		return err
	}
	history, err := c.Fleet.History(ctx, h.ID, registry.MaxLimit)
	if err != nil {
		return v, err
	}
	_ = add(presenceLane(history, h.Thing, now), presenceEntries(history), nil)
	way, steps := wayLane(report)
	_ = add(way, steps, nil)
	if c.Docs != nil {
		err = add(c.settingsLane(ctx, h.ID))
	}
	if c.Commands != nil && err == nil {
		err = add(c.commandLane(ctx, h.ID, now))
	}
	if c.Events != nil && err == nil {
		var lanes []chart.Lane
		var told []entry
		lanes, told, err = c.mishapLanes(ctx, h.ID, b.Axis)
		b.Lanes, v.Journal = append(b.Lanes, lanes...), append(v.Journal, told...)
	}
	at := len(b.Lanes) // of events
	if c.Vitals != nil && err == nil {
		var samples []vitals.Sample
		samples, err = c.Vitals(ctx, h.ID, zoom.Grain, v.From, v.To)
		b.Lanes = append(b.Lanes, vitalLanes(samples, zoom.Grain, h.Status != nil && h.Status.Loop != nil)...)
	}
	var recs []das.Record
	if c.Events != nil && err == nil {
		if recs, err = c.Events.List(ctx, das.Filter{Thing: h.ID, Since: v.From}, lifeEvents, das.Cursor{Received: v.To.Add(time.Microsecond)}); err != nil {
			err = fmt.Errorf("events of %s: %w", h.ID, err)
		}
	}
	if err != nil {
		return v, err
	}
	if v.Later == "" {
		b.Axis.From = begin(b, recs)
		v.From = b.Axis.From
	}
	if c.Events != nil {
		lane, told := eventLane(h.ID, b.Axis, recs, &v.Unread)
		b.Lanes, v.Journal = slices.Insert(b.Lanes, at, lane), append(v.Journal, told...)
	}
	v.Board = b.HTML()

	about := q.Get("about")
	v.Journal = slices.DeleteFunc(v.Journal, func(e entry) bool { return !b.Axis.Has(e.At) || about != "" && e.Kind != about })
	slices.SortStableFunc(v.Journal, func(a, b entry) int { return b.At.Compare(a.At) })
	v.More = max(0, len(v.Journal)-lifeJournal)
	v.Journal = v.Journal[:len(v.Journal)-v.More]
	return v, nil
}

// begin returns where a view of the present begins: a little before the first thing that there is to see. recs are the latest events, the newest first.
func begin(b chart.Board, recs []das.Record) time.Time {
	first, n := b.First(), len(recs)
	switch {
	case n == lifeEvents: // older ones were not read
		return b.Axis.From
	case n > 0 && (first.IsZero() || recs[n-1].Received.Before(first)):
		first = recs[n-1].Received
	}
	if !first.After(b.Axis.From) {
		return b.Axis.From
	}
	from, young := first.Add(-b.Axis.To.Sub(first)/50), b.Axis.To.Add(-shortestLife)
	if young.Before(from) {
		from = young
	}
	if from.Before(b.Axis.From) {
		return b.Axis.From
	}
	return from
}

// lifeAt returns the view that an address asks for, with the addresses of the views around it.
func lifeAt(q url.Values, id thing.ID, now time.Time) (v lifeView, _ zoom, err error) {
	z := slices.IndexFunc(zooms, func(z zoom) bool { return z.Name == cmp.Or(q.Get("zoom"), "day") })
	if z < 0 {
		return v, zoom{}, errs.New(errs.Invalid, "zoom %.20q: want hour, day, week or month", q.Get("zoom"))
	}
	at := zooms[z]
	to := now
	if text := q.Get("until"); text != "" {
		if to, err = time.Parse(time.RFC3339, text); err != nil {
			return v, zoom{}, errs.New(errs.Invalid, "until=%.40q: want a time such as 2026-05-06T07:08:09Z", text)
		}
		if to.After(now) {
			to = now
		}
	}
	if now.Sub(to) > 100*365*day {
		return v, zoom{}, errs.New(errs.Invalid, "until=%.40q: want a time in the last 100 years", q.Get("until"))
	}
	v.From, v.To = to.Add(-at.Length), to
	about := q.Get("about")
	address := func(zoom string, until time.Time, about string) string {
		a := url.Values{}
		if zoom != "day" {
			a.Set("zoom", zoom)
		}
		if until.Before(now) {
			a.Set("until", until.UTC().Format(time.RFC3339))
		}
		if about != "" {
			a.Set("about", about)
		}
		if len(a) == 0 {
			return place(id) + "#life"
		}
		return place(id) + "?" + a.Encode() + "#life"
	}
	for _, o := range zooms {
		until := to
		if to.Before(now) { // the same middle, as far as there was time for it
			until = to.Add((o.Length - at.Length) / 2)
		}
		v.Zooms = append(v.Zooms, link{Label: o.Label, Address: address(o.Name, until, about), Current: o.Name == at.Name})
	}
	v.Earlier = address(at.Name, to.Add(-at.Length/2), about)
	if to.Before(now) {
		v.Later, v.Now = address(at.Name, to.Add(at.Length/2), about), address(at.Name, now, about)
	}
	for _, k := range journalKinds {
		v.Kinds = append(v.Kinds, link{Label: k.Label, Address: address(at.Name, to, k.Kind), Current: k.Kind == about})
	}
	return v, at, nil
}

func presenceEntries(history []registry.Change) (out []entry) {
	for _, x := range history {
		e := entry{At: x.At, Kind: "presence", Tone: chart.Good, Text: "Came online"}
		if !x.Present {
			e.Tone, e.Text = chart.Faint, "Went offline"
		}
		out = append(out, e)
	}
	return out
}

const clock = "2 Jan 15:04:05"

func moment(t time.Time) string { return t.UTC().Format(clock) + " UTC" }

// presenceLane shows when a robot was there. history is the latest first.
func presenceLane(history []registry.Change, t registry.Thing, now time.Time) chart.Lane {
	l := chart.Lane{Name: "Online", Note: presence(t.Presence)}
	end, present := now, t.Presence == registry.Present
	add := func(from time.Time) {
		if present {
			l.Spans = append(l.Spans, chart.Span{From: from, To: end, Tone: chart.Good, Text: "online " + moment(from) + " to " + moment(end)})
		}
	}
	for _, c := range history {
		if c.At.After(now) {
			continue
		}
		if c.Present {
			add(c.At)
		}
		end, present = c.At, !c.Present
	}
	if len(history) == 0 && !t.Since.IsZero() {
		add(t.Since)
	}
	return l
}

// wayLane shows the steps on a robot's way here: an outcome that came again is a span, its last time a mark.
func wayLane(report registry.Report) (chart.Lane, []entry) {
	l := chart.Lane{Name: "Connection"}
	var out []entry
	for _, o := range report.Steps {
		tone, text := chart.Good, o.Name+": ok"
		if !o.OK {
			tone, text = chart.Bad, o.Name+": refused"
			if o.Code != "" {
				text += " (" + o.Code + ")"
			}
		}
		e := entry{At: o.Last, Kind: "connection", Tone: tone, Text: text, By: o.Peer}
		if o.Detail != "" {
			e.Text += ": " + o.Detail
		}
		if o.Times > 1 {
			e.Text += fmt.Sprintf(" (%d times)", o.Times)
			l.Spans = append(l.Spans, chart.Span{From: o.First, To: o.Last, Tone: chart.Faint, Text: fmt.Sprintf("%s, %d times", text, o.Times)})
		}
		l.Marks = append(l.Marks, chart.Mark{At: o.Last, Tone: tone, Text: e.Text + ", " + moment(o.Last)})
		out = append(out, e)
	}
	// Refusals stand above what went well.
	slices.SortStableFunc(l.Marks, func(a, b chart.Mark) int { return cmp.Compare(rankOf(a.Tone), rankOf(b.Tone)) })
	return l, out
}

func rankOf(t chart.Tone) int { return slices.Index([]chart.Tone{chart.Warn, chart.Bad}, t) }

func (c *console) settingsLane(ctx context.Context, id thing.ID) (chart.Lane, []entry, error) {
	l := chart.Lane{Name: "Settings"}
	list, err := c.Docs.List(ctx, id)
	if err != nil {
		return l, nil, fmt.Errorf("documents of %s: %w", id, err)
	}
	var out []entry
	for _, d := range list {
		if counted(d.Name) {
			continue
		}
		history, err := c.Docs.History(ctx, jdocs.Key{Thing: id, Name: d.Name}, lookBack)
		if err != nil {
			return l, nil, fmt.Errorf("history of %s: %w", d.Name, err)
		}
		for _, e := range edits(id, d.Name, history) {
			text := e.Sentence()
			out = append(out, entry{At: e.At, Kind: "setting", Tone: chart.Plain, Text: text, By: e.By, To: place(id) + "/settings"})
			l.Marks = append(l.Marks, chart.Mark{At: e.At, Tone: chart.Plain, Text: text + ", by " + e.By + ", " + moment(e.At)})
		}
	}
	return l, out, nil
}

// Sentence says what changed.
func (e edit) Sentence() string {
	switch {
	case e.Deleted:
		return string(e.Doc) + " deleted"
	case e.Whole:
		return string(e.Doc) + " began"
	}
	return e.Label + ": " + e.From + " → " + e.To
}

func (c *console) commandLane(ctx context.Context, id thing.ID, now time.Time) (chart.Lane, []entry, error) {
	l := chart.Lane{Name: "Commands"}
	list, err := c.Commands.Commands(ctx, id, false, command.DefaultLimit)
	if err != nil {
		return l, nil, fmt.Errorf("commands of %s: %w", id, err)
	}
	var out []entry
	for _, o := range list {
		end, tone := now, chart.Plain
		if o.Closed != nil {
			end = *o.Closed
		}
		switch o.State {
		case command.Done:
			tone = chart.Good
		case command.Failed:
			tone = chart.Bad
		case command.Expired:
			tone = chart.Warn
		}
		text := o.Kind + ": " + string(o.State)
		if o.Result != nil && o.Result.Detail != "" {
			text += ": " + o.Result.Detail
		}
		l.Spans = append(l.Spans, chart.Span{From: o.Created, To: end, Tone: chart.Faint, Text: o.Kind + " given " + moment(o.Created)})
		l.Marks = append(l.Marks, chart.Mark{At: end, Tone: tone, Text: text + ", " + moment(end)})
		out = append(out, entry{At: o.Created, Kind: "command", Tone: tone, Text: text, By: o.By, To: place(id) + "/commands"})
	}
	return l, out, nil
}

// eventLane shows how many events came when, and warnings. It sets unread to the time before which events were not read, if there are any.
func eventLane(id thing.ID, axis chart.Axis, recs []das.Record, unread *time.Time) (l chart.Lane, out []entry) {
	l = chart.Lane{Name: "Events", Note: strconv.Itoa(len(recs)), Line: &chart.Line{Low: 0, Gap: axis.To.Sub(axis.From) / eventSlots * 3 / 2}}
	begin := axis.From
	if len(recs) == lifeEvents {
		begin = recs[len(recs)-1].Received
		*unread = begin
		l.Note += " read"
		l.Spans = append(l.Spans, chart.Span{From: axis.From, To: begin, Tone: chart.Faint, Text: fmt.Sprintf("there are more than %d events; these were not read", lifeEvents)})
	}
	slot := axis.To.Sub(axis.From) / eventSlots
	counts := map[int]int{}
	type kind struct {
		name string
		tone chart.Tone
		slot int // 0: all of them
	}
	times := map[kind]int{}
	var named []kind // of the entries
	for _, r := range recs {
		counts[int(r.Received.Sub(axis.From)/max(slot, 1))]++
		if r.Level != events.Warning && r.Level != events.Error {
			continue
		}
		tone := chart.Warn
		if r.Level == events.Error {
			tone = chart.Bad
		}
		text := r.Name
		if s := r.Words(); s != "" {
			text += ": " + s
		}
		// A repeated event is one line of the journal, and one mark of a slot: the latest.
		k := kind{r.Name, tone, 0}
		if times[k]++; times[k] == 1 {
			out = append(out, entry{At: r.Received, Kind: "event", Tone: tone, Text: text, To: place(id) + "/events?event=" + url.QueryEscape(r.Name)})
			named = append(named, k)
		}
		k.slot = 1 + int(r.Received.Sub(axis.From)/max(slot, 1))
		if times[k]++; times[k] == 1 {
			l.Marks = append(l.Marks, chart.Mark{At: r.Received, Tone: tone, Text: text + ", " + moment(r.Received)})
		}
	}
	for i, k := range named {
		if n := times[k]; n > 1 {
			out[i].Text += fmt.Sprintf(" (the last of %d)", n)
		}
	}
	most := 1
	for i := range eventSlots {
		at := axis.From.Add(time.Duration(i)*slot + slot/2)
		if at.Before(begin) {
			continue
		}
		n := counts[i]
		if n+counts[i-1]+counts[i+1] == 0 {
			continue // nothing is no line
		}
		most = max(most, n)
		l.Line.Points = append(l.Line.Points, chart.Point{At: at, Value: float64(n), Text: fmt.Sprintf("%d events about %s", n, moment(at))})
	}
	l.Line.High = float64(most)
	return l, out
}

// vitalLanes draws the curves of what the robot tells.
func vitalLanes(samples []vitals.Sample, g vitals.Grain, loop bool) []chart.Lane {
	volts := chart.Line{Gap: g.Every * 5 / 2}
	warm, late := volts, volts
	// Lateness spans decades: its lane is logarithmic, 10 µs to 100 ms.
	late.Low, late.High, late.Bar = 1, 5, math.Log10(lateBar)
	for _, s := range samples {
		at := s.At.Add(g.Every / 2)
		add := func(l *chart.Line, value *float64, text string) {
			if value != nil {
				l.Points = append(l.Points, chart.Point{At: at, Value: *value, Text: fmt.Sprintf(text, *value) + ", " + moment(s.At)})
			}
		}
		add(&volts, s.Low, "lowest %.2f V")
		add(&warm, s.Temperature, "warmest %.1f °C")
		if s.LateP99 != nil {
			late.Points = append(late.Points, chart.Point{At: at, Value: math.Log10(max(*s.LateP99, 10)), Text: "p99 of lateness " + micros(*s.LateP99) + ", " + moment(s.At)})
		}
	}
	var out []chart.Lane
	for _, x := range []struct {
		name string
		line *chart.Line
		say  func(float64) string
		show bool
	}{{"Battery", &volts, func(f float64) string { return fmt.Sprintf("%.2f V", f) }, true},
		{"Temperature", &warm, func(f float64) string { return fmt.Sprintf("%.1f °C", f) }, len(warm.Points) > 0}, {"Loop, p99 late", &late, func(f float64) string { return micros(math.Pow(10, f)) }, loop || len(late.Points) > 0}} {
		if !x.show {
			continue
		}
		l := chart.Lane{Name: x.name, Tall: true, Line: x.line, Note: "no sample"}
		if n := len(x.line.Points); n > 0 {
			low, high := x.line.Points[0].Value, x.line.Points[0].Value
			for _, p := range x.line.Points {
				low, high = min(low, p.Value), max(high, p.Value)
			}
			if l.Note = x.say(low); x.say(high) != x.say(low) {
				l.Note += " – " + x.say(high)
			}
		}
		out = append(out, l)
	}
	return out
}
