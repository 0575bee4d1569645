// Package originalsapi is package originals over HTTP, for operators, and as a page of the console:
//
//	GET    /v1/originals             what original robots and their network need            changers
//	POST   /v1/originals/self-test   {csr}: the identity of a self-test                     administrators
//	DELETE /v1/originals/self-test   erases what a self-test left, and lets the next begin  administrators
package originalsapi

import (
	"context"
	_ "embed"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/access"
	"kennel/cloud/console/page"
	"kennel/cloud/originals"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
)

const (
	timeout = 10 * time.Second
	maxBody = 16 << 10
)

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

// Mount adds the endpoints to mux.
func Mount(mux *http.ServeMux, svc *originals.Service, audit Audit, log *slog.Logger) {
	wrap := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout))
	none := func(*http.Request) (any, error) { return struct{}{}, nil }
	mux.Handle("GET /v1/originals", kithttp.Handler(wrap(auth.Require(auth.Changers...)(kit.Typed(func(context.Context, struct{}) (originals.Guide, error) {
		return svc.Guide()
	}))), none))
	admins := endpoint.Chain(wrap, auth.Require(auth.Admins...))
	mux.Handle("POST /v1/originals/self-test", kithttp.Handler(admins(kit.Typed(func(ctx context.Context, t SelfTest) (originals.Admission, error) {
		if err := audit(ctx, AuditSelfTest, string(originals.TestThing), ""); err != nil {
			return originals.Admission{}, err
		}
		return svc.Admit(ctx, []byte(t.CSR))
	})), func(r *http.Request) (any, error) {
		var t SelfTest
		err := kithttp.ReadJSON(r, &t, maxBody)
		return t, err
	}))
	mux.Handle("DELETE /v1/originals/self-test", kithttp.Handler(admins(kit.Typed(func(ctx context.Context, _ struct{}) (any, error) {
		return nil, svc.Dismiss(ctx)
	})), none))
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
			var out strings.Builder
			err = pageBody.Execute(&out, v)
			return template.HTML(out.String()), err
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
