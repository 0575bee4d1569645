package dasapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/infra/api/events"
	"kennel/infra/auth"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type fixture struct {
	store *daspg.Store
	svc   *das.Service
	srv   *httptest.Server
}

func quiet(owns auth.Owns) op.Doors { return op.Doors{Log: slog.New(slog.DiscardHandler), Owns: owns} }

func setUp(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{store: daspg.Open(pgtest.New(t))}
	f.svc = das.NewService(f.store)
	mux := http.NewServeMux()
	Operations(f.svc, Config{}).Mount(mux, quiet(nil))
	f.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if role := r.Header.Get("Test-Role"); role != "" {
			r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Role(role)}))
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.srv.Close)
	return f
}

func (f *fixture) put(t *testing.T, id thing.ID, first, last uint64) {
	t.Helper()
	it := das.Item{Thing: id}
	for seq := first; seq <= last; seq++ {
		it.Events = append(it.Events, events.Event{Seq: seq, TS: time.Now().UnixMilli(), Level: events.Info, RobotID: id.Serial(), BootID: "b", Name: "robot.boot", I1: events.Num(0)})
	}
	if _, err := f.store.Commit(t.Context(), das.Group{Received: time.Now(), Items: []das.Item{it}}, das.Raw{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	f.svc.Wake()
}

func (f *fixture) get(t *testing.T, path, role, lastID string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Test-Role", role)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := f.srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestList(t *testing.T) {
	f := setUp(t)
	f.put(t, "vic:1", 1, 3)
	f.put(t, "vic:2", 1, 2)
	for _, tc := range []struct {
		path, role string
		code       int
		want       string
	}{
		{"/v1/events", "viewer", 200, "vic:2/2 vic:2/1 vic:1/3 vic:1/2 vic:1/1"},
		{"/v1/events?thing=vic:1&event=robot.&limit=2", "admin", 200, "vic:1/3 vic:1/2"},
		{"/v1/events?since=2999-01-01T00:00:00Z", "viewer", 200, ""},
		{"/v1/events", "", 401, "sign in"},
		{"/v1/events", "owner", 403, "your role, owner"},
		{"/v1/events/tail", "", 401, "sign in"},
		{"/v1/events/tail?since=now", "viewer", 400, "since"},
		{"/v1/events?limit=1001", "viewer", 400, "1 to 1000"},
		{"/v1/events?thing=cat:1", "viewer", 400, "species"},
		{"/v1/events?before=x", "viewer", 400, "before"},
		{"/v1/events?evnt=x", "viewer", 400, "evnt"},
		{"/v1/events?event=a&event=b", "viewer", 400, "given 2 times"},
	} {
		resp := f.get(t, tc.path, tc.role, "")
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tc.code {
			t.Errorf("%s as %q: %d %s; want %d", tc.path, tc.role, resp.StatusCode, body, tc.code)
			continue
		}
		if tc.code != 200 {
			if !strings.Contains(string(body), tc.want) {
				t.Errorf("%s: %s; want %q", tc.path, body, tc.want)
			}
			continue
		}
		var recs []das.Record
		if err := json.Unmarshal(body, &recs); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range recs {
			got = append(got, fmt.Sprint(r.Thing, "/", r.Seq))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v; want %s", tc.path, got, tc.want)
		}
	}
	// Page by page.
	var got []string
	for path := "/v1/events?limit=2"; path != ""; {
		resp := f.get(t, path, "viewer", "")
		var recs []das.Record
		if err := json.NewDecoder(resp.Body).Decode(&recs); err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			got = append(got, fmt.Sprint(r.Thing, "/", r.Seq))
		}
		path = ""
		if link := resp.Header.Get("Link"); link != "" {
			path = link[1:strings.IndexByte(link, '>')]
		}
	}
	if s := strings.Join(got, " "); s != "vic:2/2 vic:2/1 vic:1/3 vic:1/2 vic:1/1" {
		t.Errorf("by pages: %s", s)
	}
}

// TestOwners: an owner sees the events of an own robot since it is theirs, for as long as it is.
func TestOwners(t *testing.T) {
	store := daspg.Open(pgtest.New(t))
	f := &fixture{store: store, svc: das.NewService(store)}
	f.put(t, "vic:1", 1, 2) // of the time before
	var mu sync.Mutex
	since, owner := time.Now(), "ann"
	mux := http.NewServeMux()
	owns := func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return since, account == owner && id == "vic:1", nil
	}
	Operations(f.svc, Config{Owns: owns}).Mount(mux, quiet(owns))
	f.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Owner, Account: r.Header.Get("Test-Role")})))
	}))
	t.Cleanup(f.srv.Close)
	f.put(t, "vic:1", 3, 3)
	f.put(t, "vic:2", 1, 1)
	for _, tc := range []struct {
		path, account string
		code          int
		want, not     string
	}{
		{"/v1/events?thing=vic:1", "ann", 200, `"seq":3`, `"seq":2`},
		{"/v1/events?thing=vic:1&since=2020-01-01T00:00:00Z", "ann", 200, `"seq":3`, `"seq":2`},
		{"/v1/events?thing=vic:1&since=2999-01-01T00:00:00Z", "ann", 200, "[]", ""},
		{"/v1/events?thing=vic:2", "ann", 404, "thing vic:2", ""},
		{"/v1/events?thing=vic:9", "ann", 404, "thing vic:9", ""},
		{"/v1/events?thing=vic:1", "bob", 404, "no_thing", ""},
		{"/v1/events", "ann", 403, "denied", ""},
		{"/v1/events/tail", "ann", 403, "denied", ""},
		{"/v1/events/tail?thing=cat", "ann", 400, "thing_malformed", ""},
		{"/v1/events/tail?thing=vic:2", "ann", 404, "no_thing", ""},
		{"/v1/events/tail?thing=vic:1&thing=vic:2", "ann", 400, "given 2 times", ""},
	} {
		resp := f.get(t, tc.path, tc.account, "")
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tc.code || !strings.Contains(string(body), tc.want) || tc.not != "" && strings.Contains(string(body), tc.not) {
			t.Errorf("%s as %s: %d %s; want %d with %q, without %q", tc.path, tc.account, resp.StatusCode, body, tc.code, tc.want, tc.not)
		}
	}
	resp := f.get(t, "/v1/events/tail?thing=vic:1&since=2020-01-01T00:00:00Z", "ann", "")
	s := sse{t, bufio.NewReader(resp.Body)}
	if _, rec := s.next(); rec.Seq != 3 {
		t.Errorf("tail begins with %d, want 3", rec.Seq)
	}
	mu.Lock()
	owner, since = "bob", time.Now()
	mu.Unlock()
	ended := make(chan string)
	go func() { b, _ := io.ReadAll(s.r); ended <- string(b) }() // an error is an end too
	start := time.Now()
	for seq := uint64(4); ; seq++ { // the robot continues
		f.put(t, "vic:1", seq, seq)
		select {
		case <-ended:
			t.Logf("the tail ended %v after the ownership", time.Since(start))
			return
		default:
		}
		if time.Since(start) > 5*2*time.Second {
			t.Fatal("the former owner still gets events 10 s after the robot changed hands")
		}
	}
}

// sse reads events of a stream.
type sse struct {
	t *testing.T
	r *bufio.Reader
}

func (s sse) next() (id string, rec das.Record) {
	s.t.Helper()
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			s.t.Fatal(err)
		}
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(v), &rec); err != nil {
				s.t.Fatal(err)
			}
			return id, rec
		}
	}
}

func TestTail(t *testing.T) {
	f := setUp(t)
	f.put(t, "vic:1", 1, 1) // before the tail: not shown
	resp := f.get(t, "/v1/events/tail?thing=vic:1&since="+time.Now().UTC().Format(time.RFC3339Nano), "viewer", "")
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "text/event-stream" {
		t.Fatalf("%d %s", resp.StatusCode, ct)
	}
	f.put(t, "vic:2", 1, 1)
	f.put(t, "vic:1", 2, 4)
	s := sse{t, bufio.NewReader(resp.Body)}
	_, rec := s.next()
	id, rec3 := s.next()
	if rec.Seq != 2 || rec3.Seq != 3 || rec.Thing != "vic:1" || !rec.I1.Set {
		t.Errorf("got %+v, %+v", rec, rec3)
	}
	_ = resp.Body.Close() // the connection is lost
	f.put(t, "vic:1", 5, 5)
	s = sse{t, bufio.NewReader(f.get(t, "/v1/events/tail?thing=vic:1", "viewer", id).Body)}
	if _, rec := s.next(); rec.Seq != 4 {
		t.Errorf("after the loss: %+v; want 4", rec)
	}
	if _, rec := s.next(); rec.Seq != 5 {
		t.Errorf("then: %+v; want 5", rec)
	}
	if resp := f.get(t, "/v1/events/tail", "viewer", "yesterday"); resp.StatusCode != 400 {
		t.Errorf("bad Last-Event-ID: %d", resp.StatusCode)
	}
}

// A silent stream shows that it lives, and ends with its client.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() { defer close(done); stream(ctx, kithttp.Stream(w, writeTimeout), nil) }()
		time.Sleep(31 * time.Second)
		cancel()
		<-done
		if n := strings.Count(w.Body.String(), ": still here\n\n"); n != 2 {
			t.Errorf("%d heartbeats in 31 s: %q", n, w.Body)
		}
	})
}

func FuzzQuery(f *testing.F) {
	f.Add("thing=vic:1&event=a.b&since=2026-05-06T12:00:00Z&limit=3&before=1~vic:1~b~2")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := url.ParseQuery(s)
		if err != nil {
			return
		}
		q, err := op.Query[listed](v)
		if err == nil && (q.Limit < 1 || q.Limit > das.MaxLimit) {
			t.Fatalf("%q gives %+v", s, q)
		}
		_, err = q.read(t.Context(), "limit", "before")
		before, e2 := das.ParseCursor(q.Before)
		if err != nil || e2 != nil {
			return
		}
		if again, err := das.ParseCursor(before.String()); err != nil || again != before {
			t.Fatalf("%+v read again %+v, %v", before, again, err)
		}
	})
}
