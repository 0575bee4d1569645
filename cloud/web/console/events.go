package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kennel/cloud/page"
	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

// Events is the pages' access to robots' events; *das.Service is one.
type Events interface {
	List(ctx context.Context, f das.Filter, limit int, before das.Cursor) ([]das.Record, error)
	Counts(ctx context.Context, q das.CountsQuery) (das.Counts, error)
	Experiments(ctx context.Context, since time.Time) ([]das.Experiment, error)
	Compare(ctx context.Context, q das.CompareQuery) (das.Comparison, error)
	Losses(ctx context.Context, id thing.ID, from, to time.Time) ([]das.Loss, error)
	Tail(ctx context.Context, f das.Filter, fn func(das.Record) error) error
}

const (
	eventsPage = 100
	eventsRead = 1000 // records that are read at once while a filter looks for its own
	eventsLook = 5000 // that one page looks through; the next continues from there

	tailEvery   = 250 * time.Millisecond
	tailRows    = 50 // at most so many in tailEvery; what is beyond is counted and passed over
	tailStreams = 64 // at a time; each reads what the whole fleet reports
	tailFirst   = 50 // rows that a page begins with
	tailShown   = 500
)

// eventFilter narrows a list or a tail of events.
type eventFilter struct {
	Thing string // a thing id, or part of one
	Level string // at least so grave; "": all
	Event string // beginning of the name
	Text  string // part of the values or the name, any case
}

var levels = das.Levels

// gravity orders levels; one that is not known here is as grave as info.
func gravity(l events.Level) int {
	if i := slices.Index(levels, l); i >= 0 {
		return i
	}
	return slices.Index(levels, events.Info)
}

func readEventFilter(q url.Values) (eventFilter, error) {
	get := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	f := eventFilter{Thing: strings.ToLower(get("thing")), Level: get("level"), Event: get("event"), Text: get("text")}
	if len(f.Thing)+len(f.Level)+len(f.Event)+len(f.Text) > 400 {
		return f, errs.New(errs.Invalid, "the filter is longer than 400 bytes")
	}
	if f.Level != "" && !slices.Contains(levels, events.Level(f.Level)) {
		return f, errs.New(errs.Invalid, "level %.20q: want one of %s", f.Level, errs.List(levels))
	}
	return f, nil
}

// das is the part of the filter that the store applies; wants is the rest.
func (f eventFilter) das() das.Filter {
	id, _ := thing.Parse(f.Thing) // part of one: wants tells
	return das.Filter{Thing: id, Event: f.Event}
}

func (f eventFilter) wants(r *das.Record) bool {
	if f.Level != "" && gravity(r.Level) < gravity(events.Level(f.Level)) {
		return false
	}
	text := strings.ToLower(f.Text)
	return strings.Contains(string(r.Thing), f.Thing) && (text == "" || strings.Contains(strings.ToLower(r.Name), text) || strings.Contains(strings.ToLower(r.Words()), text))
}

// Any reports whether something is asked for.
func (f eventFilter) Any() bool { return f != eventFilter{} }

// values is the filter as a query.
func (f eventFilter) values() url.Values {
	a := url.Values{}
	for name, text := range map[string]string{"thing": f.Thing, "level": f.Level, "event": f.Event, "text": f.Text} {
		if text != "" {
			a.Set(name, text)
		}
	}
	return a
}

// eventRow is one event as lists show it.
type eventRow struct {
	Thing    thing.ID
	Received time.Time
	Level    string
	Name     string
	Values   []events.Value
	Misfit   string // in what it does not fit its description
	One      bool   // the list is of one robot
}

func newEventRow(r *das.Record, one bool) eventRow {
	return eventRow{r.Thing, r.Received, string(r.Level), r.Name, r.Values(), r.Misfit(), one}
}

type eventsView struct {
	thingHead
	Filter eventFilter
	Levels []events.Level
	Rows   []eventRow
	Next   string
	First  string
	Looked int // records that were looked through without an end, with a filter; 0: to the end, or the page is full
	Tail   string
}

// look reads events for one page: those that f wants, older than before. more is where the next page continues; looked is 0 unless the page
// ends because enough was looked through.
func (c *console) look(ctx context.Context, f eventFilter, limit int, before das.Cursor) (out []das.Record, more das.Cursor, looked int, err error) {
	read := limit + 1
	if f.Level != "" || f.Text != "" || f.Thing != "" && f.das().Thing == "" {
		read = eventsRead
	}
	for n := 0; ; {
		recs, err := c.Events.List(ctx, f.das(), read, before)
		if err != nil {
			return nil, more, 0, err
		}
		for i := range recs {
			r := &recs[i]
			n++
			if !f.wants(r) {
				continue
			}
			if len(out) == limit {
				return out, out[limit-1].Cursor(), 0, nil
			}
			out = append(out, *r)
		}
		if len(recs) < read {
			return out, das.Cursor{}, 0, nil
		}
		before = recs[len(recs)-1].Cursor()
		if n >= eventsLook {
			return out, before, n, nil
		}
	}
}

// thingEvents is the page of one robot's events.
func (c *console) thingEvents(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	h, f, err := c.head(ctx, r, s, "events")
	if err != nil {
		return "", frame{}, err
	}
	q := r.URL.Query()
	q.Set("thing", string(h.ID))
	v := eventsView{thingHead: h, Levels: levels}
	if v.Filter, err = readEventFilter(q); err != nil {
		return "", frame{}, err
	}
	before, err := das.ParseCursor(q.Get("before"))
	if err != nil {
		return "", frame{}, errs.New(errs.Invalid, "before: %w", err)
	}
	address := func(more das.Cursor) string {
		a := v.Filter.values()
		a.Del("thing")
		if s := more.String(); s != "" {
			a.Set("before", s)
		}
		return strings.TrimSuffix(place(h.ID)+"/events?"+a.Encode(), "?")
	}
	recs, more, looked, err := c.look(ctx, v.Filter, eventsPage, before)
	if err != nil {
		return "", frame{}, err
	}
	for i := range recs {
		v.Rows = append(v.Rows, newEventRow(&recs[i], true))
	}
	v.Looked = looked
	if more != (das.Cursor{}) {
		v.Next = address(more)
	}
	if before != (das.Cursor{}) {
		v.First, f.Live = address(das.Cursor{}), "" // older pages do not change
	}
	v.Tail = "/tail?" + v.Filter.values().Encode()
	f.Main = v
	return "events", f, nil
}

type tailView struct {
	Filter eventFilter
	Levels []events.Level
	Rows   []eventRow
	Stream string // address of what comes next
	Shown  int    // how many rows the page keeps
	Again  string // address of this page
}

// tail is the page of what robots report as they do. Without a script it shows the latest, and a link to look again.
func (c *console) tail(ctx context.Context, r *http.Request, _ said) (string, frame, error) {
	f, err := readEventFilter(r.URL.Query())
	if err != nil {
		return "", frame{}, err
	}
	recs, _, _, err := c.look(ctx, f, tailFirst, das.Cursor{})
	if err != nil {
		return "", frame{}, err
	}
	query := f.values().Encode()
	v := tailView{Filter: f, Levels: levels, Shown: tailShown, Stream: strings.TrimSuffix("/tail/stream?"+query, "?"), Again: strings.TrimSuffix("/tail?"+query, "?")}
	for i := range recs {
		v.Rows = append(v.Rows, newEventRow(&recs[i], false))
	}
	return "tail", frame{Title: "Live tail", Main: v}, nil
}

// tails counts the streams that are open.
type tails struct{ open atomic.Int64 }

// tailStream sends rows of the table of /tail as they come: server-sent events "rows", each a JSON text with table rows, made by the page's
// own template. What comes too fast for a reader is counted in "skipped".
func (c *console) tailStream(w http.ResponseWriter, r *http.Request) {
	caller := auth.CallerFrom(r.Context())
	if !caller.Role.Staff() {
		kithttp.WriteError(w, errs.New(errs.Unauthenticated, "sign in first"))
		return
	}
	f, err := readEventFilter(r.URL.Query())
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	if c.tails.open.Add(1) > tailStreams {
		c.tails.open.Add(-1)
		kithttp.WriteError(w, errs.New(errs.Exhausted, "%d tails are open already; close one", tailStreams))
		return
	}
	defer c.tails.open.Add(-1)
	ctx, cancel := context.WithTimeout(r.Context(), page.LiveLife)
	defer cancel()
	send := kithttp.Stream(w, writeTimeout)
	if !send("retry: 2000\n: here\n\n") {
		return
	}
	rows := make(chan das.Record, tailRows) // what waits for the next word
	var skipped atomic.Int64
	go func() {
		defer cancel()
		_ = c.Events.Tail(ctx, f.das(), func(rec das.Record) error { // an end of the stream is all that its error leads to
			if !f.wants(&rec) {
				return nil
			}
			select {
			case rows <- rec:
			default:
				skipped.Add(1)
			}
			return nil
		})
	}()
	word := time.NewTicker(tailEvery)
	defer word.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-word.C:
		}
		var made bytes.Buffer
		for range len(rows) {
			rec := <-rows
			if err := c.Part(&made, "tail", "eventrow", newEventRow(&rec, false)); err != nil {
				c.Log.ErrorContext(ctx, "row not rendered", "err", err)
				return
			}
		}
		text := ""
		if made.Len() > 0 {
			body, err := json.Marshal(made.String())
			if err != nil {
				return
			}
			text = "event: rows\ndata: " + string(body) + "\n\n"
		}
		if n := skipped.Swap(0); n > 0 {
			text += fmt.Sprintf("event: skipped\ndata: %d\n\n", n)
		}
		if text == "" && time.Since(last) > page.LiveBeat {
			text = ": beat\n\n"
		}
		if text == "" {
			continue
		}
		if last = time.Now(); !send(text) {
			return
		}
	}
}
