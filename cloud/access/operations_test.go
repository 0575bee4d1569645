package access

import (
	"context"
	"strings"
	"testing"

	"kennel/infra/auth"
	"kennel/infra/op"
)

// TestDeclared: the lines of declared operations give the rules they were made of, and a rule that differs from the declaration is found.
func TestDeclared(t *testing.T) {
	type robot struct {
		Thing string `path:"thing"`
	}
	declare := func(s op.Spec) op.Op {
		return op.New(s, func(context.Context, robot) (op.None, error) { return op.None{}, nil })
	}
	own := op.Spec{Route: "PUT /v1/things/{thing}/x", Roles: auth.Changers}
	page := op.Rule(op.Spec{Route: "GET /x", Roles: auth.Staff, Page: true})
	all := op.List{page, declare(own), declare(op.Spec{Route: "POST /v1/y/{thing}", By: "the claim secret", Plain: true}), declare(op.Spec{Route: "POST /v1/z/{thing}", Roles: []auth.Role{auth.Admin, auth.Viewer}, Quiet: true})}
	lines := Lines(all)
	if want := "route\troles\tmarks\tby\nGET /x\tviewer,support,release-manager,admin\tpage\t\nPOST /v1/y/{thing}\t\tplain\tthe claim secret\nPOST /v1/z/{thing}\tviewer,admin\tquiet\t\nPUT /v1/things/{thing}/x\tsupport,release-manager,admin\t\t\n"; lines != want {
		t.Errorf("%q, want %q", lines, want)
	}
	made := table(read(lines))
	if err := made.CheckDeclared(all); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(s *op.Spec){
		"another role":       func(s *op.Spec) { s.Roles = auth.Staff },
		"a decision":         func(s *op.Spec) { s.Roles, s.By = nil, "nothing" },
		"no line of its own": func(s *op.Spec) { s.Plain = true },
		"another route":      func(s *op.Spec) { s.Route += "/y" },
		"a page":             func(s *op.Spec) { s.Page = true },
		"a request":          func(s *op.Spec) { s.Route = "echo/say" },
		"a call":             func(s *op.Spec) { s.Route = "/echopb.Echo/Say" },
	} {
		s := own
		change(&s)
		if err := made.CheckDeclared(op.List{op.Rule(s)}); err == nil || !strings.Contains(err.Error(), s.Route) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(declared(overHTTP)) < 100 || !HTTP["GET /v1/things/{thing}"].Own || HTTP["POST /v1/bulk"].Own {
		t.Error("operations.tsv is not in the table")
	}
}
