package console

import (
	"cmp"
	"context"
	"encoding/csv"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/identity/account/audit"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// AuditLog returns lines with an id below before (0: from the newest), newest first; audit.Log has it.
type AuditLog func(ctx context.Context, before int64, limit int) ([]audit.Entry, error)

const (
	auditPage = 50
	auditRead = 1000  // lines read at once while a filter looks for its own
	auditLook = 20000 // lines that one page looks through; the next continues from there
)

// auditFilter selects lines.
type auditFilter struct {
	Who, Action, Object string
	From, Until         string // days, in UTC: 2026-05-06
	from, until         time.Time
}

type auditView struct {
	auditFilter
	Filtered    bool
	Rows        []auditRow
	Next, First string
	CSV         string // address of all lines that the filter selects
	Looked      int    // lines that were looked through without an end, with a filter; 0: to the end, or the page is full
	LookedTo    string // time of the last of them
	CanCheck    bool
	Anchor      string        // that the chain was checked from; "": from its beginning
	Check       *audit.Report // of the chain; nil: not asked for
}

type auditRow struct {
	audit.Entry
	Shown string // the object, for people
	Place string // address of the object's page; "": none
}

// readAuditFilter reads the filter of a request; Invalid.
func readAuditFilter(q url.Values) (f auditFilter, err error) {
	text := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	f = auditFilter{Who: text("who"), Action: text("action"), Object: text("object"), From: text("from"), Until: text("until")}
	if len(f.Who)+len(f.Action)+len(f.Object) > 400 {
		return f, errs.New(errs.Invalid, "the filter is longer than 400 bytes")
	}
	for _, d := range []struct {
		name, text string
		to         *time.Time
		plus       time.Duration
	}{{"from", f.From, &f.from, 0}, {"until", f.Until, &f.until, day}} {
		if d.text == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, d.text)
		if err != nil {
			return f, errs.New(errs.Invalid, "%s=%.40q: want a day such as 2026-05-06", d.name, d.text)
		}
		*d.to = at.Add(d.plus)
	}
	return f, nil
}

func (f auditFilter) empty() bool {
	return f.Who == "" && f.Action == "" && f.Object == "" && f.From == "" && f.Until == ""
}

// walkAudit calls use for each line below before (0: from the newest) that f selects, the newest first, until use returns false or the log, or the
// filter's time, ends. It reads so many lines at once and looks through at most limit; last is the last one it saw, and more whether others follow.
func (c *console) walkAudit(ctx context.Context, f auditFilter, before int64, read, limit int, use func(l audit.Entry) bool) (looked int, last audit.Entry, more bool, err error) {
	for looked < limit {
		lines, err := c.AuditLog(ctx, before, read)
		if err != nil {
			return looked, last, false, err
		}
		for _, l := range lines {
			if !f.from.IsZero() && l.At.Before(f.from) {
				return looked, last, false, nil
			}
			looked, last, before = looked+1, l, l.ID
			if f.wants(l) && !use(l) {
				return looked, last, false, nil
			}
		}
		if len(lines) < read {
			return looked, last, false, nil
		}
	}
	return looked, last, true, nil
}

// hookNames returns what people call webhooks, by id.
func (c *console) hookNames(ctx context.Context) (map[string]string, error) {
	names := map[string]string{}
	if c.Webhooks == nil {
		return names, nil
	}
	all, err := c.Webhooks.Hooks(ctx)
	for _, h := range all {
		names[h.ID] = "webhook " + hookView{h}.Host()
	}
	return names, err
}

func newAuditRow(l audit.Entry, hooks map[string]string) auditRow {
	l.On = cmp.Or(l.On, hooks[l.Object])
	row := auditRow{Entry: l, Shown: l.OnName()}
	if row.Shown == l.Object {
		row.Shown = short(l.Object)
	}
	if id, err := thing.Parse(l.Object); err == nil {
		row.Place = "/things/" + string(id)
	}
	return row
}

// audit shows what people did. The filter is applied here: the log is read in pages, and a page of this view looks through so many lines.
func (c *console) audit(ctx context.Context, r *http.Request, _ said) (string, frame, error) {
	q := r.URL.Query()
	f, err := readAuditFilter(q)
	if err != nil {
		return "", frame{}, err
	}
	v := auditView{auditFilter: f, Filtered: !f.empty(), CanCheck: c.VerifyAudit != nil, CSV: f.address("/audit/export", 0)}
	if check := q.Get("check"); v.CanCheck && check != "" {
		var from audit.Anchor
		if v.Anchor = strings.TrimSpace(q.Get("anchor")); v.Anchor != "" {
			if from, err = audit.ParseAnchor(v.Anchor); err != nil {
				return "", frame{}, err
			}
		}
		report, err := c.checkAudit(ctx, from)
		if err != nil {
			return "", frame{}, err
		}
		v.Check = &report
	}
	var before int64
	if text := q.Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before <= 0 {
			return "", frame{}, errs.New(errs.Invalid, "before=%.40q: want the number of a line", text)
		}
		v.First = f.address("/audit", 0)
	}
	hooks, err := c.hookNames(ctx)
	if err != nil {
		return "", frame{}, err
	}
	read := auditRead
	if f.empty() {
		read = 2 * auditPage
	}
	looked, last, more, err := c.walkAudit(ctx, f, before, read, auditLook, func(l audit.Entry) bool {
		if len(v.Rows) == auditPage {
			v.Next = f.address("/audit", v.Rows[auditPage-1].ID)
			return false
		}
		v.Rows = append(v.Rows, newAuditRow(l, hooks))
		return true
	})
	if err != nil {
		return "", frame{}, err
	}
	if more {
		v.Looked, v.LookedTo, v.Next = looked, last.At.UTC().Format("2006-01-02 15:04 MST"), f.address("/audit", last.ID)
	}
	return "audit", frame{Title: "Audit", Main: v}, nil
}

// exportAudit writes every line that the filter selects, with its result, as CSV.
func (c *console) exportAudit(w http.ResponseWriter, r *http.Request) {
	if !c.Admit(w, r) {
		return
	}
	f, err := readAuditFilter(r.URL.Query())
	if err != nil {
		c.Fail(w, r, err)
		return
	}
	if err := c.Audit(r.Context(), "audit.export", "", f.address("/audit", 0)); err != nil {
		c.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="audit.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write([]string{"line", "at", "actor", "name", "role", "address", "action", "object", "on", "detail", "result"}) // Flush tells
	if _, _, _, err := c.walkAudit(r.Context(), f, 0, auditRead, math.MaxInt, func(l audit.Entry) bool {
		row := []string{strconv.FormatInt(l.ID, 10), l.At.UTC().Format(time.RFC3339Nano), l.Actor, l.ByName(), string(l.Role), l.Addr, l.Action, l.Object, l.OnName(), l.Detail, l.Result()}
		for i, s := range row {
			if strings.IndexAny(s, "=+-@\t\r") == 0 { // a table calculator takes it for a formula
				row[i] = "'" + s
			}
		}
		return out.Write(row) == nil
	}); err != nil {
		c.Log.WarnContext(r.Context(), "audit export incomplete", logging.Err, err)
		panic(http.ErrAbortHandler) // the browser learns that the file is not complete
	}
	out.Flush()
}

// checkAudit computes the chain again from an anchor on.
func (c *console) checkAudit(ctx context.Context, from audit.Anchor) (audit.Report, error) {
	all := audit.Report{To: from}
	for {
		r, err := c.VerifyAudit(ctx, all.To)
		if err != nil {
			return all, err
		}
		r.Checked, r.Forgotten = r.Checked+all.Checked, r.Forgotten+all.Forgotten
		if all = r; r.Done || r.Broken != nil {
			return all, nil
		}
	}
}

func (f auditFilter) address(page string, before int64) string {
	a := url.Values{}
	for name, text := range map[string]string{"who": f.Who, "action": f.Action, "object": f.Object, "from": f.From, "until": f.Until} {
		if text != "" {
			a.Set(name, text)
		}
	}
	if before > 0 {
		a.Set("before", strconv.FormatInt(before, 10))
	}
	return strings.TrimSuffix(page+"?"+a.Encode(), "?")
}

// wants reports whether a line has what the filter asks for, in any case of letters.
func (f auditFilter) wants(l audit.Entry) bool {
	has := func(part string, in ...string) bool {
		for _, s := range in {
			if strings.Contains(strings.ToLower(s), strings.ToLower(part)) {
				return true
			}
		}
		return part == ""
	}
	return (f.until.IsZero() || l.At.Before(f.until)) && has(f.Who, l.Actor, l.ByName(), l.Addr, string(l.Role)) && has(f.Action, l.Action) && has(f.Object, l.Object, l.OnName(), l.Detail)
}
