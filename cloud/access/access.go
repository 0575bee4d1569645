// Package access is the authorisation matrix: which role may use which operation. Every transport reads it before it calls an endpoint.
//
// The tables list every operation of the cloud: HTTP routes and pages (HTTP), requests of robots over MQTT (Requests) and the gRPC calls of
// original robots (Calls). An operation that is in no table is refused. The roles, and the middleware by which endpoints check their callers
// too, are in infra/auth. A test in cmd/e2e/pages tries every operation in every role over the real transports, and fails if table and endpoints
// differ.
package access

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

// Rule says who may do one operation.
type Rule struct {
	Name string // as its door calls it: "POST /v1/things", "jdocs/read", "/tokenpb.Token/RefreshToken"
	// Roles may do it; empty: anyone who brings what By says.
	Roles []auth.Role
	// Own: a person with the role owner only for robots that are theirs; others' answer as unknown ones.
	Own bool
	// By says in words what decides where no role does: a claim secret, a device certificate, nothing.
	By string
	// Quiet: it changes nothing, though its method may; the audit log needs no line of it.
	Quiet bool
	// Plain: it changes something and writes no line of its own into the audit log; one about the request is written before it begins.
	Plain bool
	// Page: a web page, which leads a caller who is not signed in to the sign-in page instead of refusing.
	Page bool
}

// Groups beside those of package auth.
var (
	owners     = []auth.Role{auth.Owner}
	supporters = []auth.Role{auth.Support, auth.Admin}
)

// SeesOwners reports whether a role may ask whose robots are: the filter owner:, and the owner column of the fleet.
func SeesOwners(role auth.Role) bool { return slices.Contains(supporters, role) }

// Table is the rules of one door by name.
type Table map[string]Rule

func table(rules []Rule) Table {
	t := Table{}
	for _, r := range rules {
		if _, twice := t[r.Name]; twice || r.Name == "" || (len(r.Roles) == 0) == (r.By == "") {
			panic("access: rule " + r.Name + ": want it once, with either roles or the name of the check that decides")
		}
		t[r.Name] = r
	}
	return t
}

// Changes reports whether an operation of HTTP is one by which a person who is signed in changes something. The audit log has a line of each, done
// or refused; a change whose line cannot be written is refused.
func (r Rule) Changes() bool {
	return len(r.Roles) > 0 && !r.Quiet && !strings.HasPrefix(r.Name, http.MethodGet+" ")
}

// Names returns the operations in order.
func (t Table) Names() []string { return slices.Sorted(maps.Keys(t)) }

// Check returns nil if a caller of that role may do the operation, as far as the role decides. Errors: NotFound for an operation that is
// not in the table; Unauthenticated without a role; Denied.
func (t Table) Check(name string, role auth.Role) error {
	r, ok := t[name]
	switch {
	case !ok:
		return errs.Coded(errs.NotFound, "no_such_operation", "there is no operation %.100q", name)
	case len(r.Roles) == 0:
		return nil
	}
	return auth.Check(role, r.Roles)
}

// Guard is the HTTP door in front of mux: it lets a request through to the route that matches it if the route is in the table and the
// caller's role is among its roles. Pages redirect or refuse by themselves.
func (t Table) Guard(mux *http.ServeMux, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		if pattern != "" && !t[pattern].Page {
			if err := t.Check(pattern, auth.CallerFrom(r.Context()).Role); err != nil {
				if errs.KindOf(err) == errs.NotFound {
					log.ErrorContext(r.Context(), "route missing from the access table; request refused", "pattern", pattern)
				} else {
					log.InfoContext(r.Context(), "refused", "route", pattern, logging.Addr, auth.CallerFrom(r.Context()).Addr, logging.Err, err)
				}
				kithttp.WriteError(w, err)
				return
			}
		}
		mux.ServeHTTP(w, r)
	})
}
