package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/page"
	"kennel/infra/api/status"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

const evil = `<script>alert("x")</script>' onload=alert(1) //`

// fleet is a registry in memory.
type fleet struct {
	things  []registry.Thing
	next    registry.Cursor
	err     error
	changes chan registry.Thing
	asked   registry.Selection // the last of the fleet's table
	desk    *desk
	owners  int // calls of Owners
}

func (f *fleet) Table(_ context.Context, q registry.Selection) (registry.Page, error) {
	if q.Limit == pageSize {
		f.asked = q
	}
	if f.err != nil {
		return registry.Page{}, f.err
	}
	var out []registry.Thing
	for _, t := range f.things {
		row := t.Row()
		if q.Filter.Match(&row, noon) {
			out = append(out, t)
		}
	}
	return registry.Page{Things: out, Next: f.next}, nil
}

func (f *fleet) Counts(_ context.Context, q filter.Filter) (registry.Counts, error) {
	c := registry.Counts{At: noon}
	for _, t := range f.things {
		row := t.Row()
		if !q.Match(&row, noon) {
			continue
		}
		if c.Total++; t.Presence == registry.Present {
			c.Present++
		}
	}
	c.Absent = c.Total - c.Present
	c.Version = []registry.Bucket{{Value: evil, Count: 1}, {Value: "2.0.1", Count: 1}, {Value: filter.None, Count: 1}}
	c.Problem = []registry.Bucket{{Value: "none", Count: 1}, {Value: "loop", Count: 1}, {Value: evil, Count: 1}}
	c.Presence = []registry.Bucket{{Value: "present", Count: c.Present}, {Value: "never", Count: 1}}
	for i := range 12 {
		c.Tag = append(c.Tag, registry.Bucket{Value: fmt.Sprintf("t%d", i), Count: 1})
	}
	return c, f.err
}

func (f *fleet) Tag(_ context.Context, id thing.ID, add, remove []string) ([]string, error) {
	return add, f.desk.do("tag", id, add, remove)
}

func (f *fleet) Thing(_ context.Context, id thing.ID) (registry.Thing, error) {
	for _, t := range f.things {
		if t.ID == id {
			return t, nil
		}
	}
	return registry.Thing{}, errs.New(errs.NotFound, "thing %s is not known to this fleet", id)
}

// Owners implements Fleet; it counts how often it is asked.
func (f *fleet) Owners(_ context.Context, ids []thing.ID) (map[thing.ID]string, error) {
	f.owners++
	out := map[thing.ID]string{}
	for _, id := range ids[:min(1, len(ids))] {
		out[id] = evil + "@example.com"
	}
	return out, nil
}

func (f *fleet) Doctor(_ context.Context, id thing.ID) (registry.Report, error) {
	if id == "vic:nobody" {
		return registry.Report{Thing: id, Level: registry.Fail, Verdict: "registered: the fleet does not know it"}, nil
	}
	return registry.Report{Thing: id, At: noon, Level: registry.Warn, Verdict: "documents: " + evil, Checks: []registry.Check{
		{Name: "registered", Level: registry.OK, Text: "known to the fleet"},
		{Name: "documents", Level: registry.Warn, Text: evil, Do: "Wait", Since: noon, Peer: evil, Version: evil}},
		Steps:   []registry.Outcome{{Name: "enroll", Code: "secret_mismatch", Detail: evil, Peer: evil, Version: evil, Last: noon, Times: 3, Do: "Put it in"}},
		Refusal: &registry.Refusal{Outcome: registry.Outcome{Name: "enroll", Code: "secret_mismatch", Detail: evil, Peer: evil, Version: evil, Last: noon, Times: 3, Do: "Put it in"}}}, nil
}

func (f *fleet) History(context.Context, thing.ID, int) ([]registry.Change, error) {
	return []registry.Change{{At: noon.Add(-time.Hour), Present: true}}, nil
}

func (f *fleet) Watch(context.Context) <-chan registry.Thing { return f.changes }

type door struct{ signedOut bool }

func (a *door) SignIn(w http.ResponseWriter, _ *http.Request, email, password string) error {
	switch {
	case email == "broken@example.org":
		return errors.New("secret detail")
	case password != "open sesame":
		return errs.New(errs.Unauthenticated, "e-mail and password are not accepted together")
	}
	http.SetCookie(w, &http.Cookie{Name: "s", Value: "1"})
	return nil
}

func (a *door) SignOut(http.ResponseWriter, *http.Request) error { a.signedOut = true; return nil }

func nasty() registry.Thing {
	return registry.Thing{ID: "vic:00e20100", Species: thing.Vector, Serial: "00e20100", Presence: registry.Present, Since: noon.Add(-time.Hour), LastSeen: noon, Created: noon.Add(-48 * time.Hour),
		Name: evil, Tags: []string{"lab", evil}, Kinds: []string{"loop", evil}, Problems: []status.Problem{{Kind: "loop", Text: evil}, {Kind: evil, Code: evil, Text: evil}}, Certificate: noon.Add(time.Hour), Facets: registry.Facets{Problems: []string{"loop"}, Version: evil},
		Status: &status.Message{TS: 1, Agent: evil, OS: evil, Problems: []string{evil}, Docs: map[string]uint64{"vic.RobotSettings": 2},
			Body: &status.Body{BatteryLevel: evil, Firmware: evil, BatteryVolts: 3.9},
			Loop: &status.Loop{Steps: 1_000_000, Missed: 3, LateP50: 12, LateP99: 740, LateP999: 800, LateMax: 12_345, StepP50: 40, StepP99: 90, StepMax: 700}}}
}

func open(t *testing.T, f *fleet) (*http.ServeMux, *door) {
	t.Helper()
	a := &door{}
	mux := http.NewServeMux()
	d := &desk{}
	f.desk = d
	err := Mount(mux, Config{Fleet: f, Auth: a, Identities: d, Owners: d, Tokens: d, Operators: staff{d}, AuditLog: d.auditLog, VerifyAudit: d.verify, Audit: d.audit, Log: slog.New(slog.DiscardHandler),
		Docs: papers{d}, Commands: outbox{d}, Events: diary{}, Vitals: curves, Look: glass{}, Cohorts: shelf{d}, Bulk: heap{d}, Alerts: bells{d}, AlertDesk: bells{d}})
	if err != nil {
		t.Fatal(err)
	}
	return mux, a
}

func do(t *testing.T, mux *http.ServeMux, role auth.Role, method, target, form string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if role != "" {
		r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: role, Account: "op-1", Name: "op@example.org"}))
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

// TestOwnerColumn: roles that may ask owner: see whose robots are, by one question for the page; for others there is no column.
func TestOwnerColumn(t *testing.T) {
	for _, role := range auth.Staff {
		f := &fleet{things: []registry.Thing{nasty(), {ID: "vic:zz", Species: thing.Vector, Serial: "zz", Presence: registry.Absent, Created: noon}}}
		mux, _ := open(t, f)
		body := do(t, mux, role, "GET", "/things", "").Body.String()
		want := 0
		if role == auth.Support || role == auth.Admin {
			want = 1
		}
		if got := strings.Count(body, `class="c-owner">Owner</th>`); got != want || f.owners != want || strings.Count(body, `<td class="c-owner"`) != 2*want ||
			strings.Contains(body, "@example.com") != (want == 1) {
			t.Errorf("%s: %d columns, %d questions, want %d; %s", role, got, f.owners, want, body)
		}
	}
}

// TestRelativeTimes: tables tell times by their distance from now, with the exact one in the title.
func TestRelativeTimes(t *testing.T) {
	mux, _ := open(t, &fleet{things: []registry.Thing{nasty()}})
	for path, label := range map[string]string{
		"/things/vic:00e20100?zoom=week&until=" + noon.Add(time.Hour).Format(time.RFC3339): `<tr class="t-[a-z]*"><td>`, "/things/vic:00e20100/settings": `<tr><td>`, "/things/vic:00e20100/access": `<td data-label="Valid to">`, "/certificates": `<td>`,
	} {
		body := do(t, mux, auth.Admin, "GET", path, "").Body.String()
		if !regexp.MustCompile(label + `<time class="ago" datetime="[^"]+" title="[^"]+ UTC">`).MatchString(body) {
			t.Errorf("%s: no relative time after %s", path, label)
		}
	}
}

func TestPages(t *testing.T) {
	f := &fleet{things: []registry.Thing{nasty(), {ID: "vic:zz", Species: thing.Vector, Serial: "zz", Presence: registry.Absent, Created: noon}}}
	mux, _ := open(t, f)
	for _, tt := range []struct {
		role auth.Role
		path string
		code int
		want string // part of the body, or of Location for 303
	}{
		{"", "/", 303, "/login?next=%2F"},
		{"", "/things/vic:00e20100?x=1", 303, "/login?next=%2Fthings%2Fvic%3A00e20100%3Fx%3D1"},
		{auth.Owner, "/", 403, "is not an operator account"},
		{auth.Viewer, "/", 200, `<a href="/things?q=presence%3Anever">`},
		{auth.Viewer, "/things", 200, `<a href="/things/vic:00e20100">vic:00e20100</a>`},
		{auth.Viewer, "/things", 200, `presence%3Aabsent&#43;-presence%3Anever">Offline <span class="num">0</span>`}, // who was never seen counts once
		{auth.Viewer, "/things?q=battery%3A%3C&sort=seen", 200, `id="q-problem" role="alert"`},
		{auth.Viewer, "/things?sort=x", 400, "Sort"},
		{auth.Viewer, "/things?q=presence%3Apresent+e2&sort=-seen", 200, `value="presence:present e2"`},
		{auth.Viewer, "/things/vic:00e20100?zoom=week&until=2026-05-01T00:00:00Z&about=event", 200, `aria-current="true">Week</a>`},
		{auth.Viewer, "/things/vic:00e20100?zoom=year", 400, "want hour, day, week or month"},
		{auth.Viewer, "/things/vic:00e20100?until=1066", 400, "Until"},
		{auth.Viewer, "/things/vic:00e20100/settings", 200, "Volume"},
		{auth.Viewer, "/things/vic:00e20100/commands", 200, `id="h-orders"`},
		{auth.Viewer, "/things/vic:00e20100/robot", 200, `id="h-tree"`},
		{auth.Viewer, "/things/vic:00e20100/events?level=error", 200, `class="plain events"`},
		{auth.Viewer, "/things/vic:00e20100/events?text=nominal", 200, `<span class="note">level</span> nominal`},
		{auth.Viewer, "/things/vic:00e20100/events?text=699+mV", 200, `<span class="note">battery</span> 699 mV`},
		{auth.Viewer, "/things/vic:00e20100/events?level=loud", 400, "want one of"},
		{auth.Viewer, "/things/vic:00e20100/events?before=x", 400, ""},
		{auth.Viewer, "/things/vic:00e20100/access", 200, "Certificates"},
		{auth.Viewer, "/things/vic:nobody/settings", 404, "not known to this fleet"},
		{auth.Viewer, "/tail?thing=e2", 200, `data-stream="/tail/stream?thing=e2"`},
		{"", "/tail/stream", 401, "sign in first"},
		{auth.Viewer, "/cohorts", 200, "tag:beta"},
		{auth.Viewer, "/alerts", 200, `at least <strong class="num">5</strong> robots`},
		{auth.Viewer, "/", 200, `1 alert is firing. <a href="/alerts">Show it</a>`},
		{auth.Viewer, "/alerts", 200, "It reports a fault code."},
		{auth.Viewer, "/bulk", 200, "Bulk actions"},
		{auth.Viewer, "/bulk/j-1?state=failed", 200, `id="h-results"`},
		{auth.Viewer, "/bulk/j-1?state=odd", 400, "want one of"},
		{auth.Viewer, "/bulk/new?do=tag", 403, "may not do this"},
		{auth.Support, "/bulk/new?do=tag", 200, "robot is selected"},
		{auth.Support, "/bulk/new?do=dance", 400, "want one of"},
		{auth.Support, "/bulk/new?do=tag&which=all&filter=presence:present", 200, `Confirm for <strong class="num">1</strong> robot<`},
		{auth.Viewer, "/help", 200, "presence:never"},
		{auth.Viewer, "/things/vic:00e20100", 200, `<h1>vic:00e20100</h1>`},
		{auth.Viewer, "/things/vic:zz", 200, "never seen"},
		{auth.Viewer, "/things/vic:stranger", 200, "not registered"},
		{auth.Viewer, "/things/vic:nobody", 404, "not known to this fleet"},
		{auth.Viewer, "/things/%3Cscript%3E", 400, "&lt;script&gt;"},
		{"", "/login?next=/things/vic:zz", 200, `value="/things/vic:zz"`},
		{auth.Viewer, "/login?next=/things/vic:zz", 303, "/things/vic:zz"},
		{"", "/live", 401, "sign in first"},
		{auth.Viewer, "/live?thing=x", 400, "thing id"},
		{auth.Viewer, "/live?every=1ms", 400, "want 500ms"},
		{"", "/assets/style.css", 200, "--ground"},
		{"", "/assets/none.css", 404, ""},
	} {
		w := do(t, mux, tt.role, "GET", tt.path, "")
		got := w.Body.String()
		if w.Code == 303 {
			got = w.Header().Get("Location")
		}
		if w.Code != tt.code || !strings.Contains(got, tt.want) {
			t.Errorf("%s as %q: %d %s; want %d and %q", tt.path, tt.role, w.Code, got, tt.code, tt.want)
		}
		policy := page.Policy
		if strings.HasSuffix(tt.path, "/robot") && w.Code == 200 { // the one page with a picture within itself
			policy = strings.Replace(policy, "img-src 'self'", "img-src 'self' data:", 1)
		}
		if csp := w.Header().Get("Content-Security-Policy"); csp != policy || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", tt.path, csp)
		}
	}
	if q := f.asked; q.Filter.String() != "presence:present e2" || q.Sort != registry.BySeen || !q.Desc || q.Limit != pageSize {
		t.Errorf("asked %+v", q)
	}
}

// TestRobotTextStaysText looks for what a robot said outside of text, and for what the policy would block.
func TestRobotTextStaysText(t *testing.T) {
	mux, _ := open(t, &fleet{things: []registry.Thing{nasty()}})
	for _, path := range []string{"/", "/things", "/things/vic:00e20100", "/things/vic:00e20100?about=event", "/things/vic:00e20100/settings", "/things/vic:00e20100/commands", "/things/vic:00e20100/robot", "/things/vic:00e20100/events", "/things/vic:00e20100/access",
		"/tail", "/bulk", "/bulk/j-1", "/cohorts", "/bulk/new?do=tag&which=all&filter=" + url.QueryEscape(evil), "/things?q=" + url.QueryEscape(evil), "/tail?text=" + url.QueryEscape(evil), "/cohorts?q=" + url.QueryEscape(evil)} {
		body := do(t, mux, auth.Admin, "GET", path, "").Body.String()
		for _, bad := range []string{"<script>", "</code><script", `" onload=`, " style=", "javascript:"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s contains %q", path, bad)
			}
		}
		if !strings.Contains(body, "&lt;script&gt;") {
			t.Errorf("%s does not show what the robot said", path)
		}
	}
}

// TestRevokedIsShown (30.5): the fleet's table tells a robot that was revoked from one that is only offline.
func TestRevokedIsShown(t *testing.T) {
	for _, revoked := range []bool{true, false} {
		mux, _ := open(t, &fleet{things: []registry.Thing{{ID: "vic:zz", Species: thing.Vector, Serial: "zz", Presence: registry.Absent, Created: noon, LastSeen: noon, Revoked: revoked}}})
		if body := do(t, mux, auth.Viewer, "GET", "/things", "").Body.String(); strings.Contains(body, "data-revoked") != revoked {
			t.Errorf("revoked %v is not what the table shows", revoked)
		}
	}
}

func TestEmptyFleetSaysWhatToDo(t *testing.T) {
	mux, _ := open(t, &fleet{})
	if body := do(t, mux, auth.Viewer, "GET", "/", "").Body.String(); !strings.Contains(body, "kennelctl robots register") {
		t.Error("an empty fleet does not say how to begin")
	}
	if body := do(t, mux, auth.Viewer, "GET", "/things", "").Body.String(); !strings.Contains(body, "kennelctl robots register") {
		t.Error("an empty table does not say how to begin")
	}
	if body := do(t, mux, auth.Viewer, "GET", "/things?q=zz", "").Body.String(); !strings.Contains(body, "No robot matches") || !strings.Contains(body, `href="/things"`) || strings.Contains(body, "the doctor knows") {
		t.Error("an empty search does not say so")
	}
	if body := do(t, mux, auth.Viewer, "GET", "/things?q=vic:00e20199", "").Body.String(); !strings.Contains(body, `<a href="/things/vic:00e20199">`) {
		t.Error("a search for an unregistered robot does not lead to the doctor")
	}
}

func TestTroubleIsAPage(t *testing.T) {
	f := &fleet{err: errs.RetryLater(time.Second, "the database is not available", errors.New("secret detail"))}
	mux, _ := open(t, f)
	w := do(t, mux, auth.Viewer, "GET", "/", "")
	if w.Code != 503 || !strings.Contains(w.Body.String(), "The database is not available.") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	f.err = errors.New("secret detail")
	if w = do(t, mux, auth.Viewer, "GET", "/", ""); w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestSignInAndOut(t *testing.T) {
	mux, a := open(t, &fleet{})
	form := func(email, password, next string) string {
		return url.Values{"email": {email}, "password": {password}, "next": {next}}.Encode()
	}
	w := do(t, mux, "", "POST", "/login", form("op@example.org", "open sesame", "/things/vic:zz"))
	if w.Code != 303 || w.Header().Get("Location") != "/things/vic:zz" || w.Header().Get("Set-Cookie") == "" {
		t.Errorf("sign in: %d %v", w.Code, w.Header())
	}
	w = do(t, mux, "", "POST", "/login", form("op@example.org", "wrong", "/"))
	if w.Code != 401 || !strings.Contains(w.Body.String(), "not accepted together") || !strings.Contains(w.Body.String(), `value="op@example.org"`) || strings.Contains(w.Body.String(), "wrong") {
		t.Errorf("wrong password: %d %s", w.Code, w.Body)
	}
	w = do(t, mux, "", "POST", "/login", form("broken@example.org", "x", "/"))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("broken: %d %s", w.Code, w.Body)
	}
	w = do(t, mux, "", "POST", "/login", form("op@example.org", strings.Repeat("x", page.MaxForm), "/"))
	if w.Code != 400 {
		t.Errorf("a huge form: %d", w.Code)
	}
	for _, site := range []string{"cross-site", "same-site"} {
		w = do(t, mux, auth.Viewer, "POST", "/logout", "", "Sec-Fetch-Site", site)
		if w.Code != 403 || a.signedOut {
			t.Errorf("sign out from %s: %d", site, w.Code)
		}
	}
	w = do(t, mux, auth.Viewer, "POST", "/logout", "", "Sec-Fetch-Site", "same-origin")
	if w.Code != 303 || !a.signedOut {
		t.Errorf("sign out: %d", w.Code)
	}
}

func FuzzLocal(f *testing.F) {
	for _, s := range []string{"/", "/things/vic:1", "//evil.example", "https://evil.example", `/\evil.example`, "/login?next=/", "/\t/evil.example", "javascript:alert(1)", "/%2f/evil"} {
		f.Add(s)
	}
	base, _ := url.Parse("https://kennel.example/login")
	f.Fuzz(func(t *testing.T, next string) {
		u, err := base.Parse(local(next))
		if err != nil || u.Host != "kennel.example" || u.Scheme != "https" {
			t.Fatalf("%q leads to %v, %v", next, u, err)
		}
	})
}

func TestAssetsAreCachedByContent(t *testing.T) {
	mux, _ := open(t, &fleet{})
	body := do(t, mux, "", "GET", "/login", "").Body.String()
	_, rest, ok := strings.Cut(body, `href="/assets/style.css?v=`)
	stamp, _, _ := strings.Cut(rest, `"`)
	if !ok || stamp == "" {
		t.Fatalf("no stamped style sheet in %s", body)
	}
	if w := do(t, mux, "", "GET", "/assets/style.css?v="+stamp, ""); !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("stamped: %v", w.Header())
	}
	if w := do(t, mux, "", "GET", "/assets/style.css?v=old", ""); strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("of another release: %v", w.Header())
	}
}

// streamed is a response that hands over what is flushed.
type streamed struct {
	*io.PipeWriter
	header http.Header
}

func (s streamed) Header() http.Header { return s.header }
func (s streamed) WriteHeader(int)     {}
func (s streamed) Flush()              {}

func TestLiveCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{things: []registry.Thing{nasty()}, changes: make(chan registry.Thing, 100)}
		mux, _ := open(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		out, in := io.Pipe()
		r := httptest.NewRequestWithContext(auth.WithCaller(ctx, auth.Caller{Role: auth.Viewer}), "GET", "/live?thing=vic:00e20100", nil)
		go func() { mux.ServeHTTP(streamed{in, http.Header{}}, r); in.Close() }()
		told := make(chan time.Time, 100)
		go func() {
			for sc := bufio.NewScanner(out); sc.Scan(); {
				if sc.Text() == "event: change" {
					told <- time.Now()
				}
			}
			close(told)
		}()
		first := <-told
		for range 50 { // a burst of one thing, and noise of another
			f.changes <- registry.Thing{ID: "vic:00e20100"}
			f.changes <- registry.Thing{ID: "vic:other"}
		}
		if d := (<-told).Sub(first); d > page.LiveEvery {
			t.Errorf("told after %v, want at most %v", d, page.LiveEvery)
		}
		time.Sleep(2 * page.LiveEvery)
		f.changes <- registry.Thing{ID: "vic:other"}
		time.Sleep(2 * page.LiveEvery)
		if n := len(told); n != 0 {
			t.Errorf("told %d more times, want none", n)
		}
		time.Sleep(liveSettle + page.LiveBeat)
		if n := len(told); n != 1 {
			t.Errorf("told %d more times when it was quiet, want once: counts are shared for a while", n)
		}
		<-told
		close(f.changes) // the watch was cut off: the browser reconnects
		if _, open := <-told; open {
			t.Error("the stream continues without a watch")
		}
		cancel()
	})
}
