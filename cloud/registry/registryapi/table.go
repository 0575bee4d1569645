package registryapi

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/registry"
	"kennel/cloud/registry/filter"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

// format is the form of a list.
type format string

const (
	asJSON   format = "json"
	asCSV    format = "csv"
	asNDJSON format = "ndjson" // one robot a line
)

// listRequest is GET /v1/things.
type listRequest struct {
	sel    registry.Selection
	format format
	paged  bool // a limit or a cursor was given: one page, in whatever form
}

func decodeListRequest(r *http.Request) (q listRequest, err error) {
	v := r.URL.Query()
	if q.sel.Filter, err = filterOf(v); err != nil {
		return q, err
	}
	if q.sel.Sort, q.sel.Desc, err = registry.ParseSort(v.Get("sort")); err != nil {
		return q, err
	}
	if q.sel.Limit, err = limitOf(v); err != nil {
		return q, err
	}
	q.sel.After = registry.Cursor(v.Get("after"))
	q.paged = v.Get("limit") != "" || q.sel.After != ""
	switch f := format(v.Get("format")); {
	case f == asJSON || f == asCSV || f == asNDJSON:
		q.format = f
	case f != "":
		return q, errs.New(errs.Invalid, "format %.20q: want json, csv or ndjson", f)
	case strings.HasPrefix(r.Header.Get("Accept"), "text/csv"):
		q.format = asCSV
	case strings.HasPrefix(r.Header.Get("Accept"), "application/x-ndjson"):
		q.format = asNDJSON
	default:
		q.format = asJSON
	}
	return q, nil
}

// filterOf reads filter=, with the older presence= and q= as terms more.
func filterOf(v url.Values) (filter.Filter, error) {
	f, err := filter.Parse(v.Get("filter"))
	if err != nil {
		return f, err
	}
	for _, p := range []struct {
		key  filter.Key
		text string
	}{{filter.Presence, v.Get("presence")}, {filter.Word, v.Get("q")}} {
		if strings.TrimSpace(p.text) == "" {
			continue
		}
		if p.key == filter.Presence && p.text != filter.Present && p.text != filter.Absent && p.text != filter.Never {
			return f, errs.New(errs.Invalid, "presence %.20q: want present or absent, or never", p.text)
		}
		t, err := filter.Of(p.key, p.text)
		if err != nil {
			return f, err
		}
		f = f.With(t)
	}
	if s := f.String(); len(s) > filter.MaxLength {
		return f, errs.New(errs.Invalid, "filter of %d bytes: at most %d", len(s), filter.MaxLength)
	}
	return f, nil
}

// export streams everything that is selected, page by page: what changes meanwhile is told as it is when its page is read.
func (a *api) export(w http.ResponseWriter, r *http.Request, q listRequest) {
	ctx := r.Context()
	if err := a.audit(ctx, "fleet.export", string(q.format), q.sel.Filter.Nameless()); err != nil {
		kithttp.WriteError(w, err)
		return
	}
	if !q.paged {
		q.sel.Limit = registry.MaxLimit
	}
	page, err := a.svc.Table(ctx, q.sel)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	var write func([]registry.Thing) error
	if q.format == asCSV {
		head.Set("Content-Type", "text/csv; charset=utf-8; header=present")
		head.Set("Content-Disposition", `attachment; filename="robots.csv"`)
		c := csv.NewWriter(w)
		write = func(things []registry.Thing) error { return writeCSV(c, things) }
		err = c.Write(csvHead)
	} else {
		head.Set("Content-Type", "application/x-ndjson")
		head.Set("Content-Disposition", `attachment; filename="robots.ndjson"`)
		write = func(things []registry.Thing) error { return writeLines(w, things) }
	}
	out := http.NewResponseController(w)
	for err == nil {
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // a server without deadlines writes without
		if err = write(page.Things); err != nil || page.Next == "" || q.paged {
			break
		}
		q.sel.After = page.Next
		page, err = a.svc.Table(ctx, q.sel)
	}
	if err != nil {
		// The status is sent: an answer that breaks off is how the peer learns that something is missing.
		panic(http.ErrAbortHandler)
	}
}

func writeLines(w io.Writer, things []registry.Thing) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range things {
		if err := enc.Encode(&things[i]); err != nil {
			return err
		}
	}
	return nil
}

var csvHead = []string{"thing", "species", "serial", "name", "presence", "since", "last_seen", "registered", "release", "agent", "firmware", "model", "battery_volts",
	"battery_level", "charging", "loop", "loop_late_p99_us", "problem_kinds", "problems", "tags", "certificate_until"}

func writeCSV(c *csv.Writer, things []registry.Thing) error {
	for i := range things {
		t := &things[i]
		row := []string{string(t.ID), string(t.Species), t.Serial, t.Name, string(t.Presence), stamp(t.Since), stamp(t.LastSeen), stamp(t.Created)}
		var body, loop []string
		var release, agent string
		if m := t.Status; m != nil {
			release, agent = m.OS, m.Agent
			if b := m.Body; b != nil {
				body = []string{b.Firmware, b.Model, strconv.FormatFloat(b.BatteryVolts, 'f', 2, 64), b.BatteryLevel, strconv.FormatBool(b.Charging)}
			}
			if l := m.Loop; l != nil {
				loop = []string{t.LoopHealth, strconv.FormatFloat(l.LateP99, 'f', 0, 64)}
			}
		}
		row = append(row, release, agent)
		row = append(row, append(body, make([]string, 5-len(body))...)...)
		row = append(row, append(loop, make([]string, 2-len(loop))...)...)
		row = append(row, strings.Join(t.Kinds, " "), registry.Words(t.Problems), strings.Join(t.Tags, " "), stamp(t.Certificate))
		for i := range row {
			row[i] = cell(row[i])
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// cell keeps text of robots and people from being a formula where the file is opened: a spreadsheet takes what begins so for one.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// list answers GET /v1/things.
func (a *api) list(w http.ResponseWriter, r *http.Request) {
	if err := a.allow(r.Context(), auth.Staff...); err != nil {
		kithttp.WriteError(w, err)
		return
	}
	q, err := decodeListRequest(r)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	if q.format != asJSON {
		a.export(w, r, q)
		return
	}
	page, err := a.svc.Table(r.Context(), q.sel)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	if page.Things == nil {
		page.Things = []registry.Thing{}
	}
	if page.Next != "" {
		next := r.URL.Query()
		next.Set("after", string(page.Next))
		w.Header().Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", r.URL.Path, next.Encode()))
	}
	kithttp.WriteJSON(w, http.StatusOK, page.Things)
}

type tagsRequest struct {
	id   thing.ID
	body registry.TagsRequest
}

func decodeTags(r *http.Request) (any, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return nil, err
	}
	q := tagsRequest{id: id}
	return q, kithttp.ReadJSON(r, &q.body, maxBody)
}

func (a *api) tag(ctx context.Context, q tagsRequest) (registry.Tags, error) {
	var detail []string
	for _, t := range q.body.Add {
		detail = append(detail, "+"+t)
	}
	for _, t := range q.body.Remove {
		detail = append(detail, "-"+t)
	}
	for _, t := range append(q.body.Add, q.body.Remove...) {
		if err := registry.CheckTag(t); err != nil {
			return registry.Tags{}, err
		}
	}
	if _, err := a.svc.Thing(ctx, q.id); err != nil {
		return registry.Tags{}, err
	}
	if err := a.audit(ctx, "robot.tag", string(q.id), strings.Join(detail, " ")); err != nil {
		return registry.Tags{}, err
	}
	tags, err := a.svc.Tag(ctx, q.id, q.body.Add, q.body.Remove)
	return registry.Tags{Thing: q.id, Tags: tags}, err
}
