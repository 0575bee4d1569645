// Package readyapi is the checks of package ready over HTTP and as a page of the console:
//
//	GET /v1/check   what this installation lacks before strangers may reach it
//	GET /ready      the same as a page
package readyapi

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/console/page"
	"kennel/cloud/ready"
	"kennel/infra/auth"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
)

const timeout = 10 * time.Second

// Mount adds the endpoint to mux.
func Mount(mux *http.ServeMux, svc *ready.Service, log *slog.Logger) {
	reads := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout), auth.Require(auth.Admins...))
	mux.Handle("GET /v1/check", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, _ struct{}) (ready.Checklist, error) {
		return svc.Check(ctx), nil
	})), func(*http.Request) (any, error) { return struct{}{}, nil }))
}

//go:embed page.html
var text string

var body = template.Must(template.New("ready").Funcs(template.FuncMap{"time": page.Time}).Parse(text))

// Page is the page of the console.
func Page(svc *ready.Service) page.Extra {
	return page.Extra{Label: "Ready for the internet?", Address: "/ready", Aside: true, Show: func(ctx context.Context) (template.HTML, error) {
		c := svc.Check(ctx)
		v := struct {
			ready.Checklist
			Lacks int
		}{Checklist: c}
		for _, i := range c.Items {
			if i.State == ready.Missing {
				v.Lacks++
			}
		}
		var b bytes.Buffer
		err := body.Execute(&b, v)
		return template.HTML(b.String()), err
	}}
}
