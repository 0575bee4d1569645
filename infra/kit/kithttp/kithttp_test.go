package kithttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
)

func TestErrorsAreProblems(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int
		want Problem
	}{
		{errs.Coded(errs.NotFound, "no_doc", "document %q is not there", "x"), 404, Problem{`document "x" is not there`, "not_found", "no_doc"}},
		{errors.New("password=hunter2"), 500, Problem{"internal error", "internal", ""}},
		{errs.RetryLater(1500*time.Millisecond, "later", nil), 503, Problem{"later", "unavailable", "retry_after"}},
	} {
		w := httptest.NewRecorder()
		WriteError(w, tc.err)
		var got Problem
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got != tc.want || w.Code != tc.code {
			t.Errorf("%v: %d %+v, %v", tc.err, w.Code, got, err)
		}
		if errs.RetryOf(tc.err) > 0 && w.Header().Get("Retry-After") != "2" {
			t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
		}
	}
}

func TestHandler(t *testing.T) {
	type req struct {
		N int `json:"n"`
	}
	h := Handler(func(_ context.Context, r any) (any, error) { return map[string]int{"got": r.(req).N}, nil },
		func(r *http.Request) (any, error) {
			var v req
			err := ReadJSON(r, &v, 32)
			return v, err
		})
	for body, want := range map[string]string{
		`{"n":1}`:                          `{"got":1}`,
		`{"n":1}{"n":2}`:                   "after the JSON value",
		`{"m":1}`:                          `"error":"body: unknown field \"m\""`,
		`{"n":"x"}`:                        `"error":"body: n: got string"`,
		`[]`:                               `"error":"body: the value: got array"`,
		``:                                 "empty",
		`{`:                                "body:",
		`{"n":"` + strings.Repeat("x", 40): "larger than 32",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q: %d %s, want %q", body, w.Code, w.Body, want)
		}
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader(`{"n":1}`))
	r.Header.Set("Content-Type", "text/plain")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "application/json") {
		t.Errorf("text/plain: %d %s", w.Code, w.Body)
	}
}

func FuzzStrictJSON(f *testing.F) {
	f.Add([]byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var v any
		if err := StrictJSON(b, &v); err == nil && !json.Valid(b) {
			t.Fatalf("%q accepted", b)
		}
	})
}
