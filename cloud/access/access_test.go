package access_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

var roles = append([]auth.Role{"", auth.Thing, auth.Owner}, auth.Staff...)

// The table decides, and what is in no table is closed.
func TestGuard(t *testing.T) {
	mux := http.NewServeMux()
	for _, p := range []string{"POST /v1/things", "GET /v1/things/{thing}", "GET /ok", "GET /{$}", "GET /v1/nobody-thought-of-it"} {
		mux.HandleFunc(p, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	h := access.HTTP.Guard(mux, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		method, path string
		may          []auth.Role // nil: everybody
	}{
		{"POST", "/v1/things", auth.Admins},
		{"GET", "/v1/things/vic:00e20100", auth.People},
		{"HEAD", "/v1/things/vic:00e20100", auth.People},
		{"GET", "/v1/things/../things/vic:00e20100", auth.People},
		{"GET", "/ok", nil},
		{"GET", "/", nil}, // the page leads away itself
		{"GET", "/v1/nobody-thought-of-it", []auth.Role{}},
	} {
		for _, role := range roles {
			r := httptest.NewRequest(c.method, c.path, nil)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: role})))
			want := http.StatusNoContent
			switch {
			case c.may == nil || slices.Contains(c.may, role):
				if w.Code == http.StatusMovedPermanently || w.Code == http.StatusTemporaryRedirect { // the mux cleans the path first
					continue
				}
			case len(c.may) == 0:
				want = http.StatusNotFound
			case role == "":
				want = http.StatusUnauthorized
			default:
				want = http.StatusForbidden
			}
			if w.Code != want {
				t.Errorf("%s %s as %q: %d, want %d", c.method, c.path, role, w.Code, want)
			}
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/no/such/route", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("no route: %d", w.Code)
	}
}

func TestSeesOwners(t *testing.T) {
	for _, role := range append(auth.Staff, "", auth.Owner, auth.Thing) {
		if got, want := access.SeesOwners(role), role == auth.Support || role == auth.Admin; got != want {
			t.Errorf("%q: %v, want %v", role, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	if err := access.Requests.Check("jdocs/read", auth.Thing); err != nil {
		t.Error(err)
	}
	for _, role := range append(auth.Staff, "", auth.Owner) {
		if err := access.Requests.Check("jdocs/read", role); err == nil {
			t.Errorf("%q reads a robot's documents as the robot", role)
		}
	}
	if err := access.HTTP.Check("GET /nowhere", auth.Admin); errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
}

// TestViewersRead (30.5): a viewer reads what any operator reads, except what is about people, forms, and what this installation lacks.
func TestViewersRead(t *testing.T) {
	closed := []string{
		"GET /v1/audit", "GET /v1/audit/verify", "GET /audit", "GET /audit/export", // people: names and addresses
		"GET /v1/operators", "GET /v1/operators/{id}/sessions", "GET /operators", "GET /operators/{id}",
		"GET /bulk/new", "GET /rollouts/new", // forms
		"GET /v1/check", "GET /ready", "GET /v1/originals", "GET /originals", // what this installation lacks
	}
	for name, rule := range access.HTTP {
		if rule.Changes() || !slices.Contains(rule.Roles, auth.Admin) || !strings.HasPrefix(name, "GET ") {
			continue
		}
		if may := slices.Contains(rule.Roles, auth.Viewer); may == slices.Contains(closed, name) {
			t.Errorf("%s: a viewer may read it: %v", name, may)
		}
	}
}
