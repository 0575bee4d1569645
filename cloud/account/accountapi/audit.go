package accountapi

import (
	"context"
	"net/http"

	"kennel/cloud/account"
	"kennel/infra/errs"
)

// AuditReport is the answer of GET /v1/audit/verify.
type AuditReport struct {
	Checked   int         `json:"checked"`             // lines
	Forgotten int         `json:"forgotten,omitempty"` // of them, whose address is not kept any more
	Anchor    string      `json:"anchor"`              // the last line that is as it was written: keep it elsewhere, or go on from it
	Done      bool        `json:"done"`                // that is the end of the log
	Broken    *AuditBreak `json:"broken,omitempty"`
}

// AuditBreak is the first line that is not as it was written.
type AuditBreak struct {
	ID  int64  `json:"id"`
	Why string `json:"why"`
}

func decodeAnchor(r *http.Request) (any, error) {
	s := r.URL.Query().Get("from")
	if s == "" {
		return account.Anchor{}, nil
	}
	from, err := account.ParseAnchor(s)
	if err != nil {
		return nil, errs.New(errs.Invalid, "from: %w", err)
	}
	return from, nil
}

func (a api) verifyAudit(ctx context.Context, from account.Anchor) (AuditReport, error) {
	r, err := a.svc.VerifyAudit(ctx, from)
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
