// Package preflightapi is the checks of package preflight over HTTP and as a page of the console.
package preflightapi

import (
	"context"
	_ "embed"
	"html/template"

	"kennel/cloud/page"
	"kennel/cloud/preflight"
	"kennel/infra/auth"
	"kennel/infra/op"
)

// Operations returns what operators may do.
func Operations(svc *preflight.Service) op.List {
	return op.List{op.New(op.Spec{Route: "GET /v1/check", Tag: "Fleet", Summary: "Check whether this installation is ready for the internet.", Roles: auth.Admins},
		func(ctx context.Context, _ op.None) (preflight.Checklist, error) { return svc.Check(ctx), nil })}
}

//go:embed page.html
var text string

var body = template.Must(template.New("ready").Funcs(template.FuncMap{"time": page.Time}).Parse(text))

// Page is the page of the console.
func Page(svc *preflight.Service) page.Extra {
	return page.Extra{Label: "Ready for the internet?", Address: "/ready", Aside: true, Show: func(ctx context.Context) (template.HTML, error) {
		c := svc.Check(ctx)
		v := struct {
			preflight.Checklist
			Lacks int
		}{Checklist: c}
		for _, i := range c.Items {
			if i.State == preflight.Missing {
				v.Lacks++
			}
		}
		return page.HTML(body, v)
	}}
}
