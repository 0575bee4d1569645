package accountapi

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
)

// AuditEntry is one line of GET /v1/audit.
type AuditEntry struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Name   string    `json:"name,omitempty"` // of the actor, for people
	Role   string    `json:"role,omitempty"`
	Addr   string    `json:"addr,omitempty"`
	Action string    `json:"action"`
	Object string    `json:"object,omitempty"`
	On     string    `json:"on,omitempty"` // the object's name, for people
	Detail string    `json:"detail,omitempty"`
	Result string    `json:"result"` // done, or "not done: " and the kind of the refusal
}

type auditRequest struct {
	before int64
	limit  int
}

// AuditReport is the answer of GET /v1/audit/verify.
type AuditReport struct {
	Checked   int         `json:"checked"`             // lines
	Forgotten int         `json:"forgotten,omitempty"` // checked lines whose address was deleted
	Anchor    string      `json:"anchor"`              // of the last intact line: keep it elsewhere, or continue from it
	Done      bool        `json:"done"`                // the anchor is the end of the log
	Broken    *AuditBreak `json:"broken,omitempty"`
}

// AuditBreak is the first line that was altered, removed or added.
type AuditBreak struct {
	ID  int64  `json:"id"`
	Why string `json:"why"`
}

// MountAudit adds the audit log to mux, which must be behind Authenticator, for administrators:
//
//	GET /v1/audit?before=&limit=   -> [{id, at, actor, ...}]
//	GET /v1/audit/verify?from=     -> {checked, anchor, done, ...}   from: an anchor; repeat from the answer's anchor until done
func MountAudit(mux *http.ServeMux, l *audit.Log, log *slog.Logger) {
	admin := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout), auth.Require(auth.Admins...))
	a := auditAPI{l, log}
	mux.Handle("GET /v1/audit", kithttp.Handler(admin(kit.Typed(a.lines)), decodeAudit))
	mux.Handle("GET /v1/audit/verify", kithttp.Handler(admin(kit.Typed(a.verify)), decodeAnchor))
}

type auditAPI struct {
	audit *audit.Log
	log   *slog.Logger
}

func (a auditAPI) lines(ctx context.Context, req auditRequest) ([]AuditEntry, error) {
	lines, err := a.audit.Lines(ctx, req.before, req.limit)
	if err != nil {
		return nil, err
	}
	out := make([]AuditEntry, 0, len(lines))
	for _, l := range lines {
		out = append(out, AuditEntry{l.ID, l.At.UTC(), l.Actor, l.ByName(), string(l.Role), l.Addr, l.Action, l.Object, l.OnName(), l.Detail, l.Result()})
	}
	return out, nil
}

func decodeAudit(r *http.Request) (any, error) {
	q := r.URL.Query()
	before, err := number(q.Get("before"))
	if err != nil {
		return nil, errs.New(errs.Invalid, "before: %w", err)
	}
	limit, err := number(q.Get("limit"))
	if err != nil {
		return nil, errs.New(errs.Invalid, "limit: %w", err)
	}
	return auditRequest{before, int(min(limit, 1<<20))}, nil
}

func number(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.ParseInt(s, 10, 64)
}

func decodeAnchor(r *http.Request) (any, error) {
	s := r.URL.Query().Get("from")
	if s == "" {
		return audit.Anchor{}, nil
	}
	from, err := audit.ParseAnchor(s)
	if err != nil {
		return nil, errs.New(errs.Invalid, "from: %w", err)
	}
	return from, nil
}

func (a auditAPI) verify(ctx context.Context, from audit.Anchor) (AuditReport, error) {
	r, err := a.audit.Verify(ctx, from)
	if err != nil {
		return AuditReport{}, err
	}
	out := AuditReport{Checked: r.Checked, Forgotten: r.Forgotten, Anchor: r.To.String(), Done: r.Done}
	if r.Broken != nil {
		out.Broken = &AuditBreak{r.Broken.Seq, r.Broken.Why}
		a.log.ErrorContext(ctx, "audit log altered", "line", r.Broken.Seq, "why", r.Broken.Why)
	}
	return out, nil
}
