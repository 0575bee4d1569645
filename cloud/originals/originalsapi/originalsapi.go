// Package originalsapi is package originals over HTTP, for operators, and as a page of the console.
package originalsapi

import (
	"context"
	_ "embed"
	"html/template"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/originals"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
)

const maxBody = 16 << 10 // bytes

// The answers.
type (
	Guide     = originals.Guide
	Admission = originals.Admission
)

// SelfTest is the body of POST /v1/originals/self-test.
type SelfTest struct {
	CSR string `json:"csr"` // certificate request in PEM; CN is vic:00efffff
}

// AuditSelfTest is the action of a self-test in the audit log.
const AuditSelfTest = "originals.self-test"

// Audit writes one line about what the caller in ctx does; what cannot be written down is not done.
type Audit func(ctx context.Context, action, object, detail string) error

// Operations returns what operators may do. DELETE lets the next self-test begin, too.
func Operations(svc *originals.Service, audit Audit) op.List {
	return op.List{
		op.Rule(op.Spec{Route: "GET /originals", Roles: auth.Changers, Page: true}),
		op.Rule(op.Spec{Route: "POST /originals", Roles: auth.Admins, Page: true, Plain: true}),
		op.New(op.Spec{Route: "GET /v1/originals", Tag: "Identity", Summary: "Show what original robots need: names, root certificate, server_config.json.", Roles: auth.Changers, Commands: []op.Command{{Use: "originals show"}}},
			func(context.Context, op.None) (Guide, error) { return svc.Guide() }),
		op.New(op.Spec{Route: "POST /v1/originals/self-test", Tag: "Identity", Summary: "Create the identity of a self-test, which simulates an original robot.", Roles: auth.Admins, MaxBody: maxBody},
			func(ctx context.Context, t SelfTest) (Admission, error) {
				if err := audit(ctx, AuditSelfTest, string(originals.TestThing), ""); err != nil {
					return Admission{}, err
				}
				return svc.Admit(ctx, []byte(t.CSR))
			}),
		op.New(op.Spec{Route: "DELETE /v1/originals/self-test", Tag: "Identity", Summary: "Erase what self-tests left behind.", Roles: auth.Admins, Plain: true},
			func(ctx context.Context, _ op.None) (op.None, error) { return op.None{}, svc.Dismiss(ctx) }),
	}
}

//go:embed page.html
var pageText string

var pageBody = template.Must(template.New("originals").Funcs(template.FuncMap{"ago": page.Ago, "lines": func(s string) int { return strings.Count(s, "\n") + 1 }}).Parse(pageText))

// Bounds of a self-test from the page, which has ten seconds in all.
const (
	pageTime   = 8 * time.Second
	framePause = 20 * time.Millisecond // a robot takes 120 ms, and six seconds for all of them
)

// Page is the page of the console. It shows the last self-test that this process made.
func Page(svc *originals.Service, log *slog.Logger) page.Extra {
	var mu sync.Mutex
	var last *originals.Result
	return page.Extra{
		Label: "Originals", Address: "/originals", Menu: page.Connections, Done: "The self-test is done.",
		Show: func(ctx context.Context) (template.HTML, error) {
			var v struct {
				originals.Guide
				Config, Trouble string
				May             bool
				Last            *originals.Result
			}
			g, err := svc.Guide()
			switch {
			case errs.KindOf(err) == errs.Conflict && err != nil:
				v.Trouble = page.Words(err)
			case err != nil:
				return "", err
			}
			mu.Lock()
			v.Guide, v.Config, v.Last = g, g.ServerConfig.JSON(), last
			mu.Unlock()
			v.May = access.HTTP.Check("POST /originals", auth.CallerFrom(ctx).Role) == nil
			return page.HTML(pageBody, v)
		},
		Do: func(ctx context.Context, _ url.Values) error {
			ctx, cancel := context.WithTimeout(ctx, pageTime)
			defer cancel()
			r, err := svc.SelfTest(ctx, framePause)
			if err != nil {
				return err
			}
			log.InfoContext(ctx, "self-test of original robots done", "ok", r.OK, "sentence", r.Sentence)
			mu.Lock()
			defer mu.Unlock()
			last = &r
			return nil
		},
	}
}
