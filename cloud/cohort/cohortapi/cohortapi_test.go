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

	"kennel/cloud/cohort"
	"kennel/cloud/cohort/cohortpg"
	"kennel/cloud/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestCohorts: from making to removing one, for those who may, in the order of a life.
func TestCohorts(t *testing.T) {
	svc := cohort.New(cohortpg.New(pgtest.New(t)))
	var lines []string
	var full bool
	mux := http.NewServeMux()
	Mount(mux, svc, Config{Log: slog.New(slog.DiscardHandler),
		Count: func(_ context.Context, f filter.Filter) (int, error) { return len(f.Terms), nil },
		Audit: func(_ context.Context, action, object, detail string) error {
			if full {
				return errors.New("the disk is full")
			}
			lines = append(lines, strings.TrimSpace(action+" "+object+" "+detail))
			return nil
		}})
	for _, c := range []struct {
		role               kit.Role
		method, path, body string
		code               int
		want               string
	}{
		{"", "GET", "/v1/cohorts", "", 401, "sign in first"},
		{kit.RoleOwner, "GET", "/v1/cohorts", "", 403, "denied"},
		{kit.RoleViewer, "GET", "/v1/cohorts", "", 200, "[]\n"},
		{kit.RoleViewer, "POST", "/v1/cohorts", `{"cohort":"a","filter":"tag:x"}`, 403, "denied"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"labs","filter":" TAG:lab   version:<2.1","note":"ours"}`, 200, `"cohort":"labs","filter":"tag:lab version:<2.1","note":"ours","by":"op"`},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"labs","filter":"tag:y"}`, 409, "cohort_exists"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"Labs","filter":"tag:y"}`, 400, "lower-case"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"a","filter":""}`, 400, "the filter is empty"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"a","filter":"colour:red"}`, 400, "there is no key"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"a","filter":"owner:ann"}`, 400, "not for all who may use a cohort"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"a","filter":"cohort:none"}`, 400, "there is no cohort none"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"a","filter":"cohort:a"}`, 400, "would ask for itself"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"a","filter":"tag:x","rev":3}`, 400, "rev is for a cohort that exists"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"a","filter":"tag:x","note":"` + strings.Repeat("n", 401) + `"}`, 400, "note of 401 bytes"},
		{kit.RoleSupport, "POST", "/v1/cohorts", `{"cohort":"old","filter":"cohort:labs seen:>3d"}`, 200, `"rev":1`},
		{kit.RoleSupport, "PUT", "/v1/cohorts/labs", `{"filter":"cohort:old"}`, 400, "would ask for itself"}, // by way of another one
		{kit.RoleViewer, "GET", "/v1/cohorts/labs", "", 200, `"robots":2`},
		{kit.RoleViewer, "GET", "/v1/cohorts/nope", "", 404, "no_cohort"},
		{kit.RoleViewer, "GET", "/v1/cohorts/%00", "", 400, "lower-case"},
		{kit.RoleSupport, "PUT", "/v1/cohorts/labs", `{"filter":"tag:lab","rev":1}`, 200, `"rev":2`},
		{kit.RoleSupport, "PUT", "/v1/cohorts/labs", `{"filter":"tag:lab","rev":1}`, 409, "it has revision 2, not 1"},
		{kit.RoleSupport, "PUT", "/v1/cohorts/nope", `{"filter":"tag:lab","rev":1}`, 404, "no_cohort"},
		{kit.RoleSupport, "PUT", "/v1/cohorts/labs", `{"cohort":"other","filter":"tag:lab"}`, 400, "want the same"},
		{kit.RoleSupport, "PUT", "/v1/cohorts/made", `{"filter":"tag:made"}`, 200, `"rev":1`},
		{kit.RoleSupport, "DELETE", "/v1/cohorts/labs", "", 409, "labs is part of cohort old"},
		{kit.RoleViewer, "DELETE", "/v1/cohorts/old", "", 403, "denied"},
		{kit.RoleSupport, "DELETE", "/v1/cohorts/old", "", 204, ""},
		{kit.RoleSupport, "DELETE", "/v1/cohorts/old", "", 404, "no_cohort"},
		{kit.RoleSupport, "DELETE", "/v1/cohorts/labs", "", 204, ""},
		{kit.RoleViewer, "GET", "/v1/cohorts", "", 200, `[{"cohort":"made"`},
	} {
		r := httptest.NewRequestWithContext(kit.WithCaller(t.Context(), kit.Caller{Role: c.role, Name: "op"}), c.method, c.path, strings.NewReader(c.body))
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
	r := httptest.NewRequestWithContext(kit.WithCaller(t.Context(), kit.Caller{Role: kit.RoleAdmin}), "DELETE", "/v1/cohorts/made", nil)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if _, err := svc.Get(t.Context(), "made"); w.Code != 500 || err != nil {
		t.Errorf("what cannot be written down was done: %d, %v", w.Code, err)
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
