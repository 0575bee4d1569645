package registryapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/infra/api/ack"
	"kennel/infra/api/status"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

// say hands a status in.
func say(t testing.TB, svc *registry.Service, id thing.ID, seq uint64, change func(*status.Message)) {
	t.Helper()
	m := status.Message{V: 1, State: status.Online, BootID: "b", ConnectSeq: 1, Seq: seq, Agent: "1.0", OS: "2.0.1.6076"}
	if change != nil {
		change(&m)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	svc.HandleStatus(t.Context(), id, b, func(ack.Ack) {})
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTableOverHTTP: pages in an order, exports, counts and tags, for those who may.
func TestTableOverHTTP(t *testing.T) {
	var lines []string
	var auditFails bool
	store := registrypg.New(pgtest.New(t), quiet)
	svc := registry.New(store, store, registry.Sources{Filter: filter.Sources{OwnedBy: func(ctx context.Context, _ string) ([]thing.ID, error) {
		if auth.CallerFrom(ctx).Role != auth.Support {
			return nil, errs.New(errs.Denied, "may not look for owners")
		}
		return []thing.ID{"vic:a1"}, nil
	}}, Names: func(context.Context, []thing.ID) (map[thing.ID]string, error) {
		return map[thing.ID]string{"vic:a1": "=HYPERLINK(\"http://evil\")"}, nil
	}}, quiet)
	mux := http.NewServeMux()
	Operations(svc, func(_ context.Context, action, object, detail string) error {
		lines = append(lines, action+" "+object+" "+detail)
		if auditFails {
			return errors.New("full")
		}
		return nil
	}).Mount(mux, op.Doors{Log: quiet})
	for i := range 5 {
		say(t, svc, thing.ID(fmt.Sprint("vic:a", i)), 1, func(m *status.Message) {
			m.OS = fmt.Sprintf("2.%d.0", i)
			m.Agent = []string{"+1", "-1", "@x", "1,2\"", "1.0"}[i]
			m.Problems = []string{"=1+1: x"}
		})
	}
	ask := func(role auth.Role, method, path, accept, body string) *http.Response {
		r := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: role, Name: "op"}), method, path, strings.NewReader(body))
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Result()
	}
	// Pages follow the links.
	var got []string
	for path := "/v1/things?sort=-version&limit=2&filter=" + url.QueryEscape("version:>2.0"); path != ""; {
		resp := ask(auth.Viewer, "GET", path, "", "")
		var page []registry.Thing
		if err := json.Unmarshal([]byte(text(t, resp)), &page); err != nil || len(page) > 2 {
			t.Fatal(len(page), err)
		}
		for _, th := range page {
			got = append(got, string(th.ID))
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(resp.Header.Get("Link"), "<"), ">")
	}
	if strings.Join(got, " ") != "vic:a4 vic:a3 vic:a2 vic:a1" {
		t.Errorf("pages: %v", got)
	}
	// Exports: nothing that a spreadsheet would run.
	resp := ask(auth.Viewer, "GET", "/v1/things?filter=species:vic", "text/csv", "")
	body := text(t, resp)
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != 6 || len(rows[1]) != len(csvHead) || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/csv") ||
		!strings.Contains(resp.Header.Get("Content-Disposition"), "attachment") {
		t.Fatalf("csv %v: %s, %v", resp.Header, body, err)
	}
	for _, row := range rows {
		for _, c := range row {
			if c != "" && strings.ContainsAny(c[:1], "=+-@\t\r") {
				t.Errorf("a formula: %q", c)
			}
		}
	}
	if rows[2][3] != `'=HYPERLINK("http://evil")` || rows[4][9] != `1,2"` || rows[1][18] != "'=1+1: x" {
		t.Errorf("csv: %q", rows)
	}
	lineCount := 0
	sc := bufio.NewScanner(strings.NewReader(text(t, ask(auth.Viewer, "GET", "/v1/things?format=ndjson", "", ""))))
	for ; sc.Scan(); lineCount++ {
		var th registry.Thing
		if err := json.Unmarshal(sc.Bytes(), &th); err != nil || th.Status == nil {
			t.Errorf("line %q: %v", sc.Text(), err)
		}
	}
	if lineCount != 5 {
		t.Errorf("%d lines, want 5", lineCount)
	}
	if len(lines) != 2 || lines[0] != "fleet.export csv species:vic" {
		t.Errorf("audit: %q", lines)
	}
	for _, c := range []struct {
		role               auth.Role
		method, path, body string
		code               int
		want               string
	}{
		{"", "GET", "/v1/things?format=csv", "", 401, "sign in first"},
		{auth.Owner, "GET", "/v1/things?format=csv", "", 403, "denied"},
		{auth.Viewer, "GET", "/v1/things?format=xml", "", 400, "want one of json, csv, ndjson"},
		{auth.Viewer, "GET", "/v1/things?sort=colour", "", 400, "want one of"},
		{auth.Viewer, "GET", "/v1/things?filter=colour:red", "", 400, "colour"},
		{auth.Viewer, "GET", "/v1/things?sort=seen&after=vic:a1", "", 400, "vic:a1"},
		{auth.Viewer, "GET", "/v1/things?filter=owner:ann", "", 403, "may not look for owners"},
		{auth.Support, "GET", "/v1/things?filter=owner:ann", "", 200, `"thing":"vic:a1"`},
		{auth.Viewer, "GET", "/v1/things?filter=cohort:x", "", 400, "cohorts cannot"},
		{auth.Viewer, "GET", "/v1/things?q=" + strings.Repeat("a", 101), "", 400, "at most 100"},
		{auth.Viewer, "GET", "/v1/fleet/counts?filter=version:2.1.0", "", 200, `"total":1,"present":1,"absent":0`},
		{auth.Owner, "GET", "/v1/fleet/counts", "", 403, "denied"},
		{auth.Viewer, "PATCH", "/v1/things/vic:a1/tags", `{"add":["lab"]}`, 403, "denied"},
		{auth.Support, "PATCH", "/v1/things/vic:a1/tags", `{"add":["lab","b"],"remove":["b"]}`, 200, `{"thing":"vic:a1","tags":["lab"]}`},
		{auth.Support, "PATCH", "/v1/things/vic:zz/tags", `{"add":["lab"]}`, 404, "no_thing"},
		{auth.Support, "PATCH", "/v1/things/vic:a1/tags", `{"add":["Lab"]}`, 400, "lower-case"},
		{auth.Support, "PATCH", "/v1/things/vic:a1/tags", `{"tags":["Lab"]}`, 400, "unknown field"},
		{auth.Viewer, "GET", "/v1/things/vic:a1", "", 200, `"tags":["lab"],"problem_kinds":["other"]`},
		{auth.Viewer, "GET", "/v1/watch?counts=perhaps", "", 400, "want true or false"},
		{auth.Viewer, "GET", "/v1/watch?filter=tag:", "", 400, "no value"},
	} {
		resp := ask(c.role, c.method, c.path, "", c.body)
		if b := text(t, resp); resp.StatusCode != c.code || !strings.Contains(b, c.want) {
			t.Errorf("%s %s as %q: %d %s; want %d with %q", c.method, c.path, c.role, resp.StatusCode, b, c.code, c.want)
		}
	}
	auditFails = true
	if resp := ask(auth.Viewer, "GET", "/v1/things?format=csv", "", ""); resp.StatusCode != 500 {
		t.Errorf("an export that cannot be written down: %d", resp.StatusCode)
	}
}

// updates are what the feed hands out when things come.
func updates(t testing.TB, svc *registry.Service, ids ...thing.ID) []*registry.Update {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	run, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	ch := svc.Follow(ctx)
	go func() { done <- svc.Run(run) }()
	for _, id := range ids {
		say(t, svc, id, 1, nil)
	}
	var out []*registry.Update
	seen := map[thing.ID]bool{}
	for len(out) < len(ids) {
		u, ok := <-ch
		if !ok {
			t.Fatal("the changes did not come")
		}
		if !seen[u.Thing.ID] {
			out = append(out, u)
		}
		seen[u.Thing.ID] = true
	}
	end()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStreamGathers: the first change goes at once, what comes soon after goes together, a robot that leaves the selection is told of once.
func TestStreamGathers(t *testing.T) {
	store := registrypg.New(pgtest.New(t), quiet)
	svc := registry.New(store, store, registry.Sources{}, quiet)
	us := updates(t, svc, "vic:a", "pleo:b", "vic:c")
	byID := map[thing.ID]*registry.Update{}
	for _, u := range us {
		byID[u.Thing.ID] = u
	}
	s := &stream{filter: filter.MustParse("species:vic"), pending: map[thing.ID]*registry.Update{}, out: map[thing.ID]bool{}}
	ch := make(chan *registry.Update, 16)
	writes := make(chan string, 16)
	ctx, stop := context.WithCancel(t.Context())
	end := make(chan struct{})
	go func() {
		s.run(ctx, ch, func(text string) bool { writes <- text; return true })
		close(end)
	}()
	ch <- byID["vic:a"]
	if w := <-writes; !strings.HasPrefix(w, "event: thing\ndata: {\"thing\":\"vic:a\"") || strings.Count(w, "event:") != 1 {
		t.Errorf("first: %s", w)
	}
	for _, id := range []thing.ID{"vic:c", "pleo:b", "vic:a", "vic:c", "pleo:b"} {
		ch <- byID[id]
	}
	if w := <-writes; strings.Count(w, "event: thing") != 2 || strings.Count(w, "event: left\ndata: {\"thing\":\"pleo:b\"}") != 1 {
		t.Errorf("then, together: %s", w)
	}
	ch <- byID["pleo:b"] // known to be outside
	ch <- byID["vic:a"]
	if w := <-writes; strings.Contains(w, "left") || strings.Count(w, "event: thing") != 1 {
		t.Errorf("at last: %s", w)
	}
	close(ch) // cut off
	<-end
	stop()
}

// TestWatchCounts: a watcher that asks for counts gets them at once and when they change.
func TestWatchCounts(t *testing.T) {
	svc, srv := server(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	resp := get(t, srv, auth.Viewer, "/v1/watch?counts=1&filter=species:vic")
	next := make(chan string, 64)
	go func() {
		sc := bufio.NewScanner(resp.Body)
		for sc.Scan() {
			if data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: ")); ok {
				next <- string(data)
			}
		}
		close(next)
	}()
	await := func(want string) {
		t.Helper()
		for data := range next {
			if strings.Contains(data, want) {
				return
			}
		}
		t.Fatalf("no %s", want)
	}
	await(`"total":0`)
	say(t, svc, "vic:a", 1, nil)
	say(t, svc, "pleo:a", 1, nil)
	await(`"thing":"vic:a"`)
	await(`"total":1,"present":1`)
}

// BenchmarkWatch measures the cost of one change in this process: made once, then looked at and written for each of ten watchers with filters. Reading it
// from Postgres is not in it (BenchmarkFeed).
func BenchmarkWatch(b *testing.B) {
	for _, watchers := range []int{1, 10} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			var streams []*stream
			for range watchers {
				streams = append(streams, &stream{filter: filter.MustParse("species:vic -tag:demo version:<3"), pending: map[thing.ID]*registry.Update{}, out: map[thing.ID]bool{}})
			}
			store := registrypg.New(pgtest.New(b), quiet)
			svc := registry.New(store, store, registry.Sources{}, quiet)
			var ids []thing.ID
			for i := range 250 { // of a quarter of a second
				ids = append(ids, thing.ID(fmt.Sprintf("vic:%04d", i)))
			}
			us := updates(b, svc, ids...)
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				// As if published again: its JSON is made once more.
				u := registry.NewUpdate(us[i%len(us)].Thing)
				for _, s := range streams {
					s.add(u)
					if len(s.order) == 250 {
						s.write(time.Now())
						s.flush(func(text string) bool { _, err := io.WriteString(io.Discard, text); return err == nil })
					}
				}
			}
		})
	}
}

// TestClientLeaves: when a client goes away, Postgres no longer works on what it asked for.
func TestClientLeaves(t *testing.T) {
	pool := pgtest.New(t)
	store := registrypg.New(pool, quiet)
	svc := registry.New(store, store, registry.Sources{}, quiet)
	mux := http.NewServeMux()
	Operations(svc, unwatched).Mount(mux, op.Doors{Log: quiet})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Viewer})))
	}))
	defer srv.Close()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `LOCK TABLE registry_facet IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	working := func() (n int) {
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
			AND query LIKE '%FROM registry_facet AS f%'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, path := range []string{"/v1/things?filter=tag:lab", "/v1/fleet/counts?filter=tag:lab"} {
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				t.Errorf("%s: %s while the table is locked", path, resp.Status)
				resp.Body.Close()
			}
		}()
		testwait.Until(t, 30*time.Second, path+": Postgres at work", testwait.Holds(func() bool { return working() == 1 }))
		began := time.Now()
		leave()
		<-gone
		testwait.Until(t, 30*time.Second, path+": Postgres at rest", testwait.Holds(func() bool { return working() == 0 }))
		// The bound on a statement, 5 s, is not what ended it.
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("%s: %v to stop", path, took)
		}
	}
}
