package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kennel/cloud/account"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// AuditLog returns lines with an id below before (0: from the newest), newest first; *account.Service has it.
type AuditLog func(ctx context.Context, before int64, limit int) ([]account.Entry, error)

const (
	auditPage = 50
	auditRead = 1000  // lines read at once while a filter looks for its own
	auditLook = 20000 // lines that one page looks through; the next continues from there
)

type auditView struct {
	Who, Action, Object string // the filter
	Filtered            bool
	Rows                []auditRow
	Next, First         string
	Looked              int    // lines that were looked through without an end, with a filter; 0: to the end, or the page is full
	Until               string // time of the last of them
	CanCheck            bool
	Check               *account.AuditReport // of the whole chain; nil: not asked for
}

type auditRow struct {
	account.Entry
	Whom  string // who did it, for people
	Place string // address of the object's page; "": none
}

// audit shows what people did. The filter is applied here: the log is read in pages, and a page of this view looks through so many lines.
func (c *console) audit(ctx context.Context, r *http.Request, _ said) (string, frame, error) {
	q := r.URL.Query()
	v := auditView{Who: strings.TrimSpace(q.Get("who")), Action: strings.TrimSpace(q.Get("action")), Object: strings.TrimSpace(q.Get("object"))}
	v.Filtered = v.Who != "" || v.Action != "" || v.Object != ""
	if len(v.Who)+len(v.Action)+len(v.Object) > 400 {
		return "", frame{}, errs.New(errs.Invalid, "the filter is longer than 400 bytes")
	}
	if v.CanCheck = c.VerifyAudit != nil; v.CanCheck && q.Get("check") != "" {
		report, err := c.checkAudit(ctx)
		if err != nil {
			return "", frame{}, err
		}
		v.Check = &report
	}
	var before int64
	if text := q.Get("before"); text != "" {
		var err error
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before <= 0 {
			return "", frame{}, errs.New(errs.Invalid, "before=%.40q: want the number of a line", text)
		}
		v.First = v.address(0)
	}
	limit := auditPage + 1
	if v.Filtered {
		limit = auditRead
	}
	for looked := 0; ; {
		lines, err := c.AuditLog(ctx, before, limit)
		if err != nil {
			return "", frame{}, err
		}
		for _, l := range lines {
			looked++
			before = l.ID
			if !v.wants(l) {
				continue
			}
			if len(v.Rows) == auditPage {
				v.Next = v.address(v.Rows[auditPage-1].ID)
				return "audit", frame{Title: "Audit", Main: v}, nil
			}
			v.Rows = append(v.Rows, newAuditRow(l))
		}
		if len(lines) < limit {
			return "audit", frame{Title: "Audit", Main: v}, nil
		}
		if looked >= auditLook {
			v.Looked, v.Until, v.Next = looked, lines[len(lines)-1].At.UTC().Format("2006-01-02 15:04 MST"), v.address(before)
			return "audit", frame{Title: "Audit", Main: v}, nil
		}
	}
}

// checkAudit computes the whole chain again.
func (c *console) checkAudit(ctx context.Context) (account.AuditReport, error) {
	var all account.AuditReport
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

func (v auditView) address(before int64) string {
	a := url.Values{}
	for name, text := range map[string]string{"who": v.Who, "action": v.Action, "object": v.Object} {
		if text != "" {
			a.Set(name, text)
		}
	}
	if before > 0 {
		a.Set("before", strconv.FormatInt(before, 10))
	}
	if len(a) == 0 {
		return "/audit"
	}
	return "/audit?" + a.Encode()
}

// wants reports whether a line has what the filter asks for, in any case of letters.
func (v auditView) wants(l account.Entry) bool {
	has := func(part string, in ...string) bool {
		for _, s := range in {
			if strings.Contains(strings.ToLower(s), strings.ToLower(part)) {
				return true
			}
		}
		return part == ""
	}
	return has(v.Who, l.Actor, l.Name, l.Addr, string(l.Role)) && has(v.Action, l.Action) && has(v.Object, l.Object, l.Detail)
}

func newAuditRow(l account.Entry) auditRow {
	row := auditRow{Entry: l, Whom: cmp.Or(l.Name, l.Actor, "nobody signed in")}
	if id, err := thing.Parse(l.Object); err == nil {
		row.Place = "/things/" + string(id)
	}
	return row
}
