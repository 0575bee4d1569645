package httpjson

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
)

func server(t *testing.T, h http.HandlerFunc) *Server {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	s, err := New("the oracle", web.URL+"/ask?key=1", "s3cret", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAsk(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"said":"`+r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization")+" "+strings.ReplaceAll(string(b), `"`, "'")+`"}`)
	})
	var a struct{ Said string }
	if err := s.Get(t.Context(), url.Values{"q": {"a b"}}, &a); err != nil || a.Said != "GET /ask?key=1&q=a+b Bearer s3cret " {
		t.Errorf("%+v, %v", a, err)
	}
	if err := s.Post(t.Context(), map[string]int{"n": 1}, &a); err != nil || a.Said != "POST /ask?key=1 Bearer s3cret {'n':1}" {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestBadServers: each kind of failure has its kind of error, and says neither what was asked nor the token.
func TestBadServers(t *testing.T) {
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		kind errs.Kind
		say  string
	}{
		"unknown":   {http.NotFound, errs.NotFound, "has no answer"},
		"nothing":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, errs.NotFound, "has no answer"},
		"refused":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, errs.Invalid, "status 400"},
		"no key":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, errs.Unavailable, "status 401"},
		"broken":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, errs.Unavailable, "status 500"},
		"no json":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, errs.Unavailable, "invalid JSON"},
		"too large": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxAnswer+1)) }, errs.Unavailable, "more than 256 kB"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}, errs.Unavailable, "read answer of"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, errs.Unavailable, "cannot be reached"},
	} {
		err := server(t, c.h).Get(t.Context(), url.Values{"q": {"my words"}}, &struct{}{})
		if err == nil || errs.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "words") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v (%v), want %v that says %q", name, err, errs.KindOf(err), c.kind, c.say)
		}
	}
	for _, address := range []string{"", "example.org", "ftp://x", "https://", "http://%zz"} {
		if _, err := New("x", address, "", time.Second); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v, want invalid", address, err)
		}
	}
}

// TestTimeLimit: a server that hangs costs the limit, and the caller's own end of patience is not held against it.
func TestTimeLimit(t *testing.T) {
	s := server(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.limit = 10 * time.Millisecond
	if err := s.Get(t.Context(), nil, &struct{}{}); errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "in time") {
		t.Errorf("%v, want unavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 * failures {
		_ = s.Get(ctx, nil, &struct{}{})
	}
	if s.Problem() != "" {
		t.Errorf("%q, though callers went away", s.Problem())
	}
}

// TestBreaker: a server that keeps failing is no longer asked.
func TestBreaker(t *testing.T) {
	asked := 0
	s := server(t, func(w http.ResponseWriter, _ *http.Request) { asked++; w.WriteHeader(500) })
	for range 3 * failures {
		_ = s.Get(t.Context(), nil, &struct{}{})
	}
	err := s.Get(t.Context(), nil, &struct{}{})
	if asked != failures || errs.KindOf(err) != errs.Unavailable || errs.RetryOf(err) != pause || s.Problem() == "" {
		t.Errorf("asked %d times, %v, %q; want %d", asked, err, s.Problem(), failures)
	}
}
