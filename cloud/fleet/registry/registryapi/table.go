package registryapi

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/thing"
)

// format is the form of a list.
type format string

const (
	asJSON   format = "json"
	asCSV    format = "csv"
	asNDJSON format = "ndjson" // one robot a line
)

// selection says which robots.
type selection struct {
	Filter string `query:"filter" about:"Filter of robots, such as presence:offline tag:lab battery:<3.6 seen:>3d."`
	older
}

// older are terms more of a filter.
type older struct {
	Presence string `query:"presence" about:"A presence to add to the filter."`
	Word     string `query:"q" about:"A word to add to the filter."`
}

// listing is the request for a list.
type listing struct {
	Filter string `query:"filter" about:"Filter of robots, such as presence:offline tag:lab battery:<3.6 seen:>3d."`
	Sort   string `query:"sort" about:"Column to sort by; descending with a leading -."`
	Limit  int    `query:"limit" about:"Maximum number of results." min:"1" max:"1000"`
	After  string `query:"after" about:"Where the previous page ended."`
	older
	Format format `query:"format" about:"Format; csv and ndjson stream all robots." enum:"json,csv,ndjson"`
	Accept string `header:"Accept"`
}

// list answers a page as JSON, or writes a stream.
func (a *api) list(ctx context.Context, r listing) (any, error) {
	sel := registry.Selection{Limit: cmp.Or(r.Limit, registry.DefaultLimit), After: registry.Cursor(r.After)}
	var err error
	if sel.Filter, err = (selection{r.Filter, r.older}).filter(); err != nil {
		return nil, err
	}
	if sel.Sort, sel.Desc, err = registry.ParseSort(r.Sort); err != nil {
		return nil, err
	}
	switch {
	case r.Format != "":
	case strings.HasPrefix(r.Accept, "text/csv"):
		r.Format = asCSV
	case strings.HasPrefix(r.Accept, "application/x-ndjson"):
		r.Format = asNDJSON
	}
	if r.Format == asCSV || r.Format == asNDJSON {
		return a.export(ctx, sel, r.Format, r.Limit > 0 || r.After != "")
	}
	page, err := a.svc.Table(ctx, sel)
	return op.Page[registry.Thing]{Items: page.Things, More: string(page.Next)}, err
}

// filter reads the filter with its terms more.
func (s selection) filter() (filter.Filter, error) {
	f, err := filter.Parse(s.Filter)
	if err != nil {
		return f, err
	}
	for _, p := range []struct {
		key  filter.Key
		text string
	}{{filter.Presence, s.Presence}, {filter.Word, s.Word}} {
		if p.text == "" {
			continue
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

// export streams everything that is selected, page by page: what changes meanwhile is told as it is when its page is read. paged asks for one page.
func (a *api) export(ctx context.Context, sel registry.Selection, as format, paged bool) (http.Handler, error) {
	if err := a.audit(ctx, "fleet.export", string(as), sel.Filter.Nameless()); err != nil {
		return nil, err
	}
	if !paged {
		sel.Limit = registry.MaxLimit
	}
	page, err := a.svc.Table(ctx, sel)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.stream(w, r, sel, as, paged, page) }), err
}

// stream writes a page and, unless paged, those that follow it.
func (a *api) stream(w http.ResponseWriter, r *http.Request, sel registry.Selection, as format, paged bool, page registry.Page) {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	var write func([]registry.Thing) error
	var err error
	if as == asCSV {
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
		if err = write(page.Things); err != nil || page.Next == "" || paged {
			break
		}
		sel.After = page.Next
		page, err = a.svc.Table(r.Context(), sel)
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

func (a *api) tag(ctx context.Context, id thing.ID, r registry.TagsRequest) (registry.Tags, error) {
	var detail []string
	for _, t := range r.Add {
		detail = append(detail, "+"+t)
	}
	for _, t := range r.Remove {
		detail = append(detail, "-"+t)
	}
	for _, t := range append(r.Add, r.Remove...) {
		if err := registry.CheckTag(t); err != nil {
			return registry.Tags{}, err
		}
	}
	if _, err := a.svc.Thing(ctx, id); err != nil {
		return registry.Tags{}, err
	}
	if err := a.audit(ctx, "robot.tag", string(id), strings.Join(detail, " ")); err != nil {
		return registry.Tags{}, err
	}
	tags, err := a.svc.Tag(ctx, id, r.Add, r.Remove)
	return registry.Tags{Thing: id, Tags: tags}, err
}
