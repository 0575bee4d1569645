package accountapi

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
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

type (
	auditPage struct {
		Before int64 `query:"before" about:"Only lines before the one with this number."`
		Limit  int   `query:"limit" about:"Maximum number of results." min:"1" max:"1000" default:"100"`
	}
	auditFrom struct {
		From string `query:"from" about:"Anchor to continue from."`
	}
)

// AuditOperations returns the operations of administrators on the audit log.
func AuditOperations(l *audit.Log, log *slog.Logger) op.List {
	admins := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Staff", Summary: summary, Roles: auth.Admins}
	}
	return op.List{
		op.New(admins("GET /v1/audit", "List what people did, the newest first. Link rel=\"next\" leads to the next page.").With(
			op.Command{Use: "audit list -limit=100 -before", Short: "List the audit log, the newest line first", Long: "Lines store account ids and show the accounts' current e-mail addresses. Network addresses are kept for 90 days, or until the person leaves.", Example: `audit list -limit 20
audit list -before 1200 -o json`, Table: "LINE=.id; TIME=clock .at; WHO=.name; ROLE; FROM=.addr; ACTION; OBJECT=.on; RESULT; DETAIL"}), func(ctx context.Context, r auditPage) (op.Page[AuditEntry], error) {
			lines, err := l.Lines(ctx, r.Before, r.Limit)
			out := make([]AuditEntry, 0, len(lines))
			for _, l := range lines {
				out = append(out, AuditEntry{l.ID, l.At.UTC(), l.Actor, l.ByName(), string(l.Role), l.Addr, l.Action, l.Object, l.OnName(), l.Detail, l.Result()})
			}
			return op.Before(out, r.Limit, func(e AuditEntry) string { return strconv.FormatInt(e.ID, 10) }), err
		}),
		op.New(admins("GET /v1/audit/verify", "Verify that the log is unaltered; repeat from the last anchor until done."), func(ctx context.Context, r auditFrom) (AuditReport, error) {
			var from audit.Anchor
			if r.From != "" {
				var err error
				if from, err = audit.ParseAnchor(r.From); err != nil {
					return AuditReport{}, errs.New(errs.Invalid, "from: %w", err)
				}
			}
			return verify(ctx, l, log, from)
		}),
	}
}

func verify(ctx context.Context, l *audit.Log, log *slog.Logger, from audit.Anchor) (AuditReport, error) {
	r, err := l.Verify(ctx, from)
	if err != nil {
		return AuditReport{}, err
	}
	out := AuditReport{Checked: r.Checked, Forgotten: r.Forgotten, Anchor: r.To.String(), Done: r.Done}
	if r.Broken != nil {
		out.Broken = &AuditBreak{r.Broken.Seq, r.Broken.Why}
		log.ErrorContext(ctx, "audit log altered", "line", r.Broken.Seq, "why", r.Broken.Why)
	}
	return out, nil
}
