package cohortapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/cohort/cohortpg"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestCohorts: from making to removing one, for those who may, in the order of a life.
func TestCohorts(t *testing.T) {
	svc := cohort.New(cohortpg.New(pgtest.New(t)))
	var lines []string
	var full bool
	mux := http.NewServeMux()
	Operations(svc, Config{
		Count: func(_ context.Context, f filter.Filter) (int, error) { return len(f.Terms), nil },
		Audit: func(_ context.Context, action, object, detail string) error {
			if full {
				return errors.New("the disk is full")
			}
			lines = append(lines, strings.TrimSpace(action+" "+object+" "+detail))
			return nil
		}}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	for _, c := range []struct {
		role               auth.Role
		method, path, body string
		code               int
		want               string
	}{
		{"", "GET", "/v1/cohorts", "", 401, "sign in first"},
		{auth.Owner, "GET", "/v1/cohorts", "", 403, "denied"},
		{auth.Viewer, "GET", "/v1/cohorts", "", 200, "[]\n"},
		{auth.Viewer, "POST", "/v1/cohorts", `{"cohort":"a","filter":"tag:x"}`, 403, "denied"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"labs","filter":" TAG:lab   version:<2.1","note":"ours"}`, 200, `"cohort":"labs","filter":"tag:lab version:<2.1","note":"ours","by":"op"`},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"labs","filter":"tag:y"}`, 409, "cohort_exists"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"Labs","filter":"tag:y"}`, 400, "lower-case"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"a","filter":""}`, 400, "the filter is empty"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"a","filter":"colour:red"}`, 400, "colour"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"a","filter":"owner:ann"}`, 400, "owner:"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"a","filter":"cohort:none"}`, 400, "there is no cohort none"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"a","filter":"cohort:a"}`, 400, "refers to itself"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"a","filter":"tag:x","rev":3}`, 400, "PUT /v1/cohorts/{cohort}"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"a","filter":"tag:x","note":"` + strings.Repeat("n", 401) + `"}`, 400, "note of 401 bytes"},
		{auth.Support, "POST", "/v1/cohorts", `{"cohort":"old","filter":"cohort:labs seen:>3d"}`, 200, `"rev":1`},
		{auth.Support, "PUT", "/v1/cohorts/labs", `{"filter":"cohort:old"}`, 400, "refers to itself"}, // by way of another one
		{auth.Viewer, "GET", "/v1/cohorts/labs", "", 200, `"robots":2`},
		{auth.Viewer, "GET", "/v1/cohorts/nope", "", 404, "no_cohort"},
		{auth.Viewer, "GET", "/v1/cohorts/%00", "", 400, "lower-case"},
		{auth.Support, "PUT", "/v1/cohorts/labs", `{"filter":"tag:lab","rev":1}`, 200, `"rev":2`},
		{auth.Support, "PUT", "/v1/cohorts/labs", `{"filter":"tag:lab","rev":1}`, 409, "revision 2, not 1"},
		{auth.Support, "PUT", "/v1/cohorts/nope", `{"filter":"tag:lab","rev":1}`, 404, "no_cohort"},
		{auth.Support, "PUT", "/v1/cohorts/labs", `{"cohort":"other","filter":"tag:lab"}`, 400, "want the same"},
		{auth.Support, "PUT", "/v1/cohorts/made", `{"filter":"tag:made"}`, 200, `"rev":1`},
		{auth.Support, "DELETE", "/v1/cohorts/labs", "", 409, "labs is used by cohort old"},
		{auth.Viewer, "DELETE", "/v1/cohorts/old", "", 403, "denied"},
		{auth.Support, "DELETE", "/v1/cohorts/old", "", 204, ""},
		{auth.Support, "DELETE", "/v1/cohorts/old", "", 404, "no_cohort"},
		{auth.Support, "DELETE", "/v1/cohorts/labs", "", 204, ""},
		{auth.Viewer, "GET", "/v1/cohorts", "", 200, `[{"cohort":"made"`},
	} {
		r := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: c.role, Name: "op"}), c.method, c.path, strings.NewReader(c.body))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if b, _ := io.ReadAll(w.Body); w.Code != c.code || !strings.Contains(string(b), c.want) {
			t.Errorf("%s %s %s as %q: %d %s; want %d with %q", c.method, c.path, c.body, c.role, w.Code, b, c.code, c.want)
		}
	}
	if len(lines) == 0 || lines[0] != "cohort.put labs tag:lab version:<2.1" {
		t.Errorf("audit %q", lines)
	}
	full = true
	r := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: auth.Admin}), "DELETE", "/v1/cohorts/made", nil)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if _, err := svc.Get(t.Context(), "made"); w.Code != 500 || err != nil {
		t.Errorf("what cannot be written down was done: %d, %v", w.Code, err)
	}
}

// A cohort that something outside this package asks for stays, and the answer names what that is.
func TestUsedCohortStays(t *testing.T) {
	svc := cohort.New(cohortpg.New(pgtest.New(t)))
	if _, err := svc.Put(t.Context(), cohort.Cohort{Name: "beta", Filter: filter.MustParse("tag:beta")}, "op", cohort.Fresh); err != nil {
		t.Fatal(err)
	}
	use, down := "rollout 2.0 of vic", errors.New("down")
	svc.Users = append(svc.Users, func(_ context.Context, name string) (string, error) {
		if name != "beta" {
			t.Errorf("asked about %s", name)
		}
		return use, down
	})
	if err := svc.Delete(t.Context(), "beta"); !errors.Is(err, down) {
		t.Errorf("deleted although nobody knows what uses it: %v", err)
	}
	down = nil
	if err := svc.Delete(t.Context(), "beta"); errs.KindOf(err) != errs.Conflict || errs.CodeOf(err) != "in_use" || !strings.Contains(errs.Public(err), use) {
		t.Errorf("%v, want a conflict that names %q", err, use)
	}
	use = ""
	if err := svc.Delete(t.Context(), "beta"); err != nil {
		t.Error(err)
	}
}

// TestManyMakeOne: of several who make a cohort at once one does, and the others are told.
func TestManyMakeOne(t *testing.T) {
	svc := cohort.New(cohortpg.New(pgtest.New(t)))
	var wg sync.WaitGroup
	results := make(chan error, 6)
	for i := range 6 {
		wg.Go(func() {
			_, err := svc.Put(t.Context(), cohort.Cohort{Name: "one", Filter: filter.MustParse(fmt.Sprint("tag:t", i))}, "op", cohort.Fresh)
			results <- err
		})
	}
	wg.Wait()
	close(results)
	made := 0
	for err := range results {
		switch {
		case err == nil:
			made++
		case errs.KindOf(err) != errs.Conflict:
			t.Errorf("%v, want a conflict", err)
		}
	}
	if made != 1 {
		t.Errorf("%d made it, want one", made)
	}
	c, err := svc.Get(t.Context(), "one")
	if tag, ok := c.Tag(); err != nil || !ok || !strings.HasPrefix(tag, "t") || c.Rev != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, text := range []string{"-tag:a", "tag:a,b", "tag:a species:vic", "tag:any", "species:vic"} {
		if _, ok := (cohort.Cohort{Filter: filter.MustParse(text)}).Tag(); ok {
			t.Errorf("%s takes robots by hand", text)
		}
	}
}
