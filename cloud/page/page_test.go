package page

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kennel/infra/errs"
)

var files = fstest.MapFS{
	"pages/layout.html": {Data: []byte(`<html><link href="{{asset "a.css"}}">{{template "main" .}}</html>`)},
	"pages/one.html":    {Data: []byte(`{{define "main"}}<p>{{.}}</p>{{end}}`)},
	"pages/bad.html":    {Data: []byte(`{{define "main"}}half a page{{.Nothing}}{{end}}`)},
	"assets/a.css":      {Data: []byte("p{}")},
}

func load(t *testing.T) *Set {
	t.Helper()
	s, err := Load(files, "/assets/", nil, slog.New(slog.DiscardHandler), func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, errs.Public(err), http.StatusForbidden)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRender(t *testing.T) {
	s := load(t)
	w := httptest.NewRecorder()
	s.Render(w, httptest.NewRequest("GET", "/", nil), 200, "one", "<script>")
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, "&lt;script&gt;") || !strings.Contains(body, `href="/assets/a.css?v=`) {
		t.Errorf("%d %s", w.Code, body)
	}
	for _, name := range []string{"bad", "none"} {
		w = httptest.NewRecorder()
		s.Render(w, httptest.NewRequest("GET", "/", nil), 200, name, "x")
		if w.Code != 500 || strings.Contains(w.Body.String(), "half") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if _, err := Load(fstest.MapFS{}, "/", nil, nil, nil); err == nil {
		t.Error("a folder without pages is taken")
	}
}

func TestHandler(t *testing.T) {
	s := load(t)
	reached := false
	h := s.Handler(time.Minute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached = true
		if _, ok := r.Context().Deadline(); !ok {
			t.Error("no deadline")
		}
		if _, err := Form(r); err != nil {
			http.Error(w, Words(err), 400)
		}
	}))
	post := func(body, site string) *httptest.ResponseRecorder {
		reached = false
		r := httptest.NewRequest("POST", "/x", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", site)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Header().Get("Content-Security-Policy") != Policy || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("headers %v", w.Header())
		}
		return w
	}
	if w := post("a=1", "same-origin"); w.Code != 200 || !reached {
		t.Errorf("our own form: %d", w.Code)
	}
	for _, site := range []string{"cross-site", "same-site"} {
		if w := post("a=1", site); w.Code != 403 || reached {
			t.Errorf("a form from %s: %d, reached %v", site, w.Code, reached)
		}
	}
	if w := post("a="+strings.Repeat("x", MaxForm), "same-origin"); w.Code != 400 || !strings.Contains(w.Body.String(), "larger than 256 kB") {
		t.Errorf("a huge form: %d %s", w.Code, w.Body)
	}
	if w := post("%zz", "same-origin"); w.Code != 400 {
		t.Errorf("a broken form: %d", w.Code)
	}
}

func TestAsset(t *testing.T) {
	s := load(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{file}", s.Asset)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	at, err := s.address("a.css")
	if err != nil {
		t.Fatal(err)
	}
	w := get(at)
	if b, _ := io.ReadAll(w.Body); string(b) != "p{}" || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("%s: %q %v", at, b, w.Header())
	}
	if w := get("/assets/a.css?v=other"); strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Error("another release's address is kept for ever")
	}
	if w := get("/assets/none"); w.Code != 404 {
		t.Errorf("no asset: %d", w.Code)
	}
	if _, err := s.address("none"); err == nil {
		t.Error("an address of no asset")
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		err      error
		want     string
		expected bool
	}{
		{errs.New(errs.Invalid, "this cannot be"), "This cannot be.", true},
		{errs.New(errs.NotFound, "übrig"), "Übrig.", true},
		{errors.New("secret detail"), "Internal error.", false},
		{context.DeadlineExceeded, "The database takes too long to answer.", false},
	} {
		if got := Words(tt.err); got != tt.want || Expected(tt.err) != tt.expected {
			t.Errorf("%v: %q %v, want %q %v", tt.err, got, Expected(tt.err), tt.want, tt.expected)
		}
	}
	if Sentence("") != "" || Sentence("is it?") != "Is it?" || Sentence("vic:00e20100 has no app") != "vic:00e20100 has no app." || Sentence("batch: no") != "Batch: no." {
		t.Error("sentences")
	}
	if Time(time.Time{}) != "–" || Ago(time.Time{}) != "–" || !strings.Contains(string(Ago(time.Unix(0, 0))), `datetime="1970-01-01T00:00:00Z"`) {
		t.Error("times")
	}
}

func TestSaid(t *testing.T) {
	s := Refused("name", errs.New(errs.Invalid, "too long"), url.Values{"name": {"Rex"}})
	if s.Problem("name") != "Too long." || s.Value("name", "name") != "Rex" || s.Problem("other") != "" || s.Value("other", "name") != "" {
		t.Errorf("%+v", s)
	}
	if s.Lost([]string{"name"}) != "" || s.Lost([]string{"other"}) != "Too long." || (Said{}).Lost(nil) != "" {
		t.Error("lost problems")
	}
}

func FuzzLocal(f *testing.F) {
	for _, s := range []string{"/", "/things/vic:1", "//evil.example", "https://evil.example", `/\evil.example`, "/login?next=/", "/\t/evil.example", "javascript:alert(1)", "/%2f/evil", "/my/robots/x", "/my/../live"} {
		f.Add(s)
	}
	base, _ := url.Parse("https://kennel.example/login")
	f.Fuzz(func(t *testing.T, next string) {
		u, err := base.Parse(Local(next, "/", "/login"))
		if err != nil || u.Host != "kennel.example" || u.Scheme != "https" || strings.HasPrefix(u.Path, "/login") {
			t.Fatalf("%q leads to %v, %v", next, u, err)
		}
		u, err = base.Parse(Local(next, "/my"))
		if err != nil || u.Host != "kennel.example" || u.Path != "/my" && !strings.HasPrefix(u.Path, "/my/") {
			t.Fatalf("%q leads out of /my to %v, %v", next, u, err)
		}
	})
}
