package registryapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/infra/api/ack"
	"kennel/infra/api/status"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

func unwatched(context.Context, string, string, string) error { return nil }

// server serves the endpoints to a caller of that role, named in the header Role.
func server(t *testing.T) (*registry.Service, *httptest.Server) {
	store := registrypg.New(pgtest.New(t), quiet)
	svc := registry.New(store, store, registry.Sources{}, quiet)
	mux := http.NewServeMux()
	Operations(svc, unwatched).Mount(mux, op.Doors{Log: quiet})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Role(r.Header.Get("Role")), Name: "op"})))
	}))
	t.Cleanup(srv.Close)
	return svc, srv
}

func get(t *testing.T, srv *httptest.Server, role auth.Role, path string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Role", string(role))
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestEndpoints(t *testing.T) {
	svc, srv := server(t)
	for i := range 3 {
		if err := svc.Register(t.Context(), thing.ID(fmt.Sprint("vic:a", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		role auth.Role
		path string
		code int
		want string
	}{
		{"", "/v1/things", 401, "sign in first"},
		{auth.Owner, "/v1/things", 403, "denied"},
		{auth.Thing, "/v1/things/vic:a0", 403, "denied"},
		{auth.Viewer, "/v1/things", 200, `[{"thing":"vic:a0","species":"vic","serial":"a0","created":`},
		{auth.Viewer, "/v1/things?q=zzz", 200, "[]\n"},
		{auth.Viewer, "/v1/things?presence=maybe", 400, "want one of"},
		{auth.Viewer, "/v1/things?limit=100000", 400, "want 1 to 1000"},
		{auth.Viewer, "/v1/things?after=x", 400, "after: thing id"},
		{auth.Viewer, "/v1/things/vic:a0", 200, `"presence":"absent"`},
		{auth.Viewer, "/v1/things/vic:zz", 404, `"code":"no_thing"`},
		{auth.Viewer, "/v1/things/Robert'); --", 400, "thing id"},
		{auth.Viewer, "/v1/things/vic:a0/doctor", 200, `"verdict":"enrolment: not enrolled`},
		{auth.Viewer, "/v1/things/vic:zz/doctor", 200, `vic:zz is not registered`},
		{auth.Viewer, "/v1/things/vic:a0/history", 200, "[]\n"},
		{auth.Viewer, "/v1/things/vic:zz/history", 404, "no_thing"},
		{auth.Viewer, "/v1/fleet", 200, `{"present":0,"absent":3}`},
		{"", "/v1/watch", 401, "sign in first"},
	} {
		resp := get(t, srv, tt.role, strings.ReplaceAll(tt.path, " ", "%20"))
		var body strings.Builder
		if _, err := bufio.NewReader(resp.Body).WriteTo(&body); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tt.code || !strings.Contains(body.String(), tt.want) {
			t.Errorf("%s as %q: %d %s; want %d and %s", tt.path, tt.role, resp.StatusCode, body.String(), tt.code, tt.want)
		}
	}
}

// TestOwners: an owner sees the status of an own thing, and when it came and went since it is theirs.
func TestOwners(t *testing.T) {
	store := registrypg.New(pgtest.New(t), quiet)
	svc := registry.New(store, store, registry.Sources{}, quiet)
	const mine = thing.ID("vic:a0")
	if err := svc.Register(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if err := svc.Register(t.Context(), "vic:a1"); err != nil {
		t.Fatal(err)
	}
	b, err := status.Message{V: 1, State: status.Online, BootID: "b", ConnectSeq: 1, Seq: 1, Agent: "1.0"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	svc.HandleStatus(t.Context(), mine, b, func(ack.Ack) {})
	past, err := svc.History(t.Context(), mine, 10)
	if err != nil || len(past) != 1 {
		t.Fatalf("history %+v, %v; want that it came", past, err)
	}
	since := past[0].At
	mux := http.NewServeMux()
	Operations(svc, unwatched).Mount(mux, op.Doors{Log: quiet, Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return since, account == "ann" && id == mine, nil
	}})
	ask := func(account, path string) (int, string) {
		r := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: auth.Owner, Account: account}), "GET", path, nil)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		account, path string
		code          int
		want          string
	}{
		{"ann", "/v1/things/vic:a0", 200, `"presence":"present"`},
		{"ann", "/v1/things/vic:a0/history", 200, `"present":true`},
		{"ann", "/v1/things/vic:a1", 404, `"thing vic:a1 is not in this fleet"`},
		{"ann", "/v1/things/vic:a1/history", 404, "no_thing"},
		{"bob", "/v1/things/vic:a0", 404, "no_thing"},
		{"ann", "/v1/things/vic:a0/doctor", 403, "denied"}, // it tells addresses, and what was before
		{"ann", "/v1/things", 403, "denied"},
		{"ann", "/v1/fleet", 403, "denied"},
		{"ann", "/v1/watch", 403, "denied"},
	} {
		if code, body := ask(c.account, c.path); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s as %s: %d %s; want %d with %q", c.path, c.account, code, body, c.code, c.want)
		}
	}
	// Another's and an unknown one, word for word.
	_, another := ask("ann", "/v1/things/vic:a1")
	_, unknown := ask("ann", "/v1/things/vic:a2")
	_, err = svc.Thing(t.Context(), "vic:a2")
	if strings.ReplaceAll(another, "vic:a1", "vic:a2") != unknown || !strings.Contains(unknown, err.Error()) {
		t.Errorf("another's: %s; unknown: %s; as operators see one: %v", another, unknown, err)
	}
	since = since.Add(time.Microsecond)
	if code, body := ask("ann", "/v1/things/vic:a0/history"); code != 200 || body != "[]\n" {
		t.Errorf("what was before: %d %s; want none", code, body)
	}
}

func TestPagesFollowLinks(t *testing.T) {
	svc, srv := server(t)
	for i := range 5 {
		if err := svc.Register(t.Context(), thing.ID(fmt.Sprint("vic:a", i))); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for path := "/v1/things?limit=2&presence=absent"; path != ""; {
		resp := get(t, srv, auth.Viewer, path)
		var page []registry.Thing
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
			t.Fatal(err)
		}
		for _, th := range page {
			got = append(got, th.ID.Serial())
		}
		path = ""
		if link := resp.Header.Get("Link"); link != "" {
			path, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
		}
	}
	if want := "a0 a1 a2 a3 a4"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestWatchStreams(t *testing.T) {
	svc, srv := server(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	defer func() { cancel(); <-done }()
	resp := get(t, srv, auth.Viewer, "/v1/watch")
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Fatalf("content type %q", ct)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	deadline := time.After(10 * time.Second)
	registered := false
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatal("the stream ended")
			}
			if line == ": watching" && !registered {
				registered = true
				if err := svc.Register(t.Context(), "vic:a0"); err != nil {
					t.Fatal(err)
				}
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				var th registry.Thing
				if err := json.Unmarshal([]byte(data), &th); err != nil || th.ID != "vic:a0" {
					t.Errorf("got %s, %v", data, err)
				}
				resp.Body.Close()
				for range lines {
				}
				return
			}
		case <-deadline:
			t.Fatal("no event in 10 s")
		}
	}
}
