package crashapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/crash"
	"kennel/cloud/telemetry/crash/crashapi"
	"kennel/cloud/telemetry/crash/crashpg"
	"kennel/infra/auth"
	"kennel/infra/blob/blobtest"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type rig struct {
	svc   *crash.Service
	h     http.Handler
	pages []page.Extra
	lines []string // of the audit log
}

func newRig(t *testing.T) *rig {
	t.Helper()
	store := crashpg.New(pgtest.New(t))
	log := slog.New(slog.DiscardHandler)
	svc, err := crash.New(crash.Config{Store: store, Symbols: store, Objects: blobtest.New(t), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{svc: svc}
	audit := func(_ context.Context, action, object, detail string) error {
		r.lines = append(r.lines, strings.TrimSpace(action+" "+object+" "+detail))
		return nil
	}
	mux := http.NewServeMux()
	crashapi.Operations(svc, audit, log).Mount(mux, op.Doors{Log: log})
	r.h, r.pages = access.HTTP.Guard(mux, log), crashapi.Pages(svc, audit)
	return r
}

// call sends a request as a role.
func (r *rig) call(t *testing.T, role auth.Role, method, path, body string, into any) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	r.h.ServeHTTP(w, req.WithContext(auth.WithCaller(req.Context(), auth.Caller{Role: role, Account: "a", Name: "ann@example.org"})))
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
	return w
}

func (r *rig) take(t *testing.T, dump string) string {
	t.Helper()
	id, err := r.svc.Take(t.Context(), crash.Report{Thing: "vic:00e20100", Name: "x.dmp", Program: "a/gentd", Version: "2.0.0.6074", Dump: []byte(dump), Log: []byte("last words")})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func record(f string) string {
	return "kennel-crash 1\nversion: 2.0.0.6074\n\npanic: <b>boom</b>\n\ngoroutine 1 [running]:\n" + f + "()\n\t/x.go:7 +0x1\n"
}

func TestAPI(t *testing.T) {
	r := newRig(t)
	id := r.take(t, record("main.f"))
	r.take(t, record("main.g"))
	var groups []crash.Group
	w := r.call(t, auth.Viewer, "GET", "/v1/crash-groups?limit=1", "", &groups)
	if link := w.Header().Get("Link"); len(groups) != 1 || !strings.Contains(link, "after="+groups[0].ID) {
		t.Fatalf("%+v, link %q", groups, link)
	}
	r.call(t, auth.Viewer, "GET", "/v1/crash-groups?state=open&program="+url.QueryEscape("a/gentd")+"&version=2.0.0.6074&after="+groups[0].ID, "", &groups)
	if len(groups) != 1 || groups[0].Signature != "main.f" {
		t.Fatalf("the second page: %+v", groups)
	}
	var crashes []crash.Crash
	r.call(t, auth.Viewer, "GET", "/v1/crashes?thing=vic:00e20100&version=2.0.0.6074&group="+groups[0].ID, "", &crashes)
	if len(crashes) != 1 || crashes[0].ID != id || crashes[0].Analysis != nil {
		t.Fatalf("%+v", crashes)
	}
	var one crash.Crash
	if r.call(t, auth.Viewer, "GET", "/v1/crashes/"+id, "", &one); one.Analysis == nil || one.Analysis.Threads[0].Frames[0].File != "/x.go" {
		t.Errorf("%+v", one)
	}
	for path, want := range map[string]string{"/dump": record("main.f"), "/log": "last words"} {
		if w := r.call(t, auth.Viewer, "GET", "/v1/crashes/"+id+path, "", nil); w.Body.String() != want || !strings.Contains(w.Header().Get("Content-Disposition"), "a-gentd-"+id) || w.Header().Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
	}
	group := "/v1/crash-groups/" + groups[0].ID
	var g crash.Group
	if r.call(t, auth.Support, "PATCH", group, `{"state": "resolved", "fixed_in": "2.0.1.1", "note": "n"}`, &g); g.State != crash.Resolved || g.FixedIn != "2.0.1.1" || g.Note != "n" || g.By == "" {
		t.Errorf("%+v", g)
	}
	if want := "crash.group " + g.ID + " resolved, fixed in 2.0.1.1, note"; !slices.Contains(r.lines, want) || !slices.Contains(r.lines, "crash.download "+id) {
		t.Errorf("audit %q", r.lines)
	}
	sym, err := os.ReadFile("../minidump/testdata/breakpad-amd64.sym")
	if err != nil {
		t.Fatal(err)
	}
	var s crash.Symbols
	if r.call(t, auth.Support, "POST", "/v1/crash-symbols", string(sym), &s); s.Module != "vic-engine" {
		t.Errorf("%+v", s)
	}
	var all []crash.Symbols
	if r.call(t, auth.Viewer, "GET", "/v1/crash-symbols", "", &all); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	for _, c := range []struct {
		role               auth.Role
		method, path, body string
		code               int
	}{
		{auth.Support, "DELETE", "/v1/crash-symbols/" + s.DebugID, "", 204}, {auth.Support, "DELETE", "/v1/crash-symbols/" + s.DebugID, "", 404},
		{auth.Support, "POST", "/v1/crash-symbols", "rubbish", 400}, {auth.Viewer, "POST", "/v1/crash-symbols", string(sym), 403}, {auth.Viewer, "PATCH", group, `{"state":"open"}`, 403},
		{auth.Owner, "GET", "/v1/crashes", "", 403}, {auth.Owner, "GET", "/v1/crashes/" + id + "/dump", "", 403}, {auth.Viewer, "GET", "/v1/crashes/nothing", "", 404},
		{auth.Viewer, "GET", "/v1/crash-groups/nothing", "", 404}, {auth.Viewer, "GET", "/v1/crash-groups?stat=open", "", 400}, {auth.Viewer, "GET", "/v1/crash-groups?state=shut", "", 400},
		{auth.Viewer, "GET", "/v1/crashes?thing=x", "", 400}, {auth.Viewer, "GET", "/v1/crashes?limit=0", "", 400}, {auth.Viewer, "GET", "/v1/crashes?after=nothing", "", 404},
		{auth.Support, "PATCH", group, `{}`, 400}, {auth.Support, "PATCH", group, `{"state":"regressed"}`, 400},
	} {
		if w := r.call(t, c.role, c.method, c.path, c.body, nil); w.Code != c.code {
			t.Errorf("%s %s %s: %d %s, want %d", c.role, c.method, c.path, w.Code, w.Body, c.code)
		}
	}
}

func TestPages(t *testing.T) {
	r := newRig(t)
	id := r.take(t, record("main.f"))
	dump, err := os.ReadFile("../minidump/testdata/breakpad-amd64.dmp")
	if err != nil {
		t.Fatal(err)
	}
	mini := r.take(t, string(dump))
	c, err := r.svc.Crash(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	ctx := auth.WithCaller(t.Context(), auth.Caller{Role: auth.Support, Account: "a"})
	at := func(address string) page.Extra {
		return r.pages[slices.IndexFunc(r.pages, func(e page.Extra) bool { return e.Address == address })]
	}
	for _, p := range []struct {
		address, query string
		want           []string
	}{
		{"/crashes", "", []string{"main.f", "&lt;b&gt;boom", `href="/crashes/group?id=` + c.Group, "1 today"}},
		{"/crashes", "state=resolved&done=x", []string{"No matching crash groups."}},
		{"/crashes/group", "id=" + c.Group, []string{"/x.go:7", "Resolve", "vic:00e20100", "/v1/crashes/" + id + "/dump"}},
		{"/crashes/group", "id=" + c.Group + "&version=1", []string{"have expired"}},
		{"/crashes/crash", "id=" + mini, []string{"SIGSEGV (SEGV_MAPERR)", "vic-engine&#43;0x24cc", "3983974E3E1BE0D45C55B2B5C59FD7DF0", "missing", "x86_64"}},
		{"/crashes/symbols", "", []string{"No symbol files yet."}},
	} {
		q, _ := url.ParseQuery(p.query)
		body, err := at(p.address).Ask(ctx, q)
		for _, w := range p.want {
			if err != nil || !strings.Contains(string(body), w) {
				t.Fatalf("%s?%s: %v, want %q in\n%s", p.address, p.query, err, w, body)
			}
		}
	}
	req := httptest.NewRequest("GET", "/things/vic:00e20100/crashes", nil)
	req.SetPathValue("thing", "vic:00e20100")
	if _, body, err := at("/things/{thing}/crashes").Tab(ctx, req); err != nil || !strings.Contains(string(body), "/crashes/crash?id="+mini) {
		t.Errorf("a robot's crashes: %v %s", err, body)
	}
	if err := at("/crashes/group").Do(ctx, url.Values{"id": {c.Group}, "state": {"resolved"}, "note": {""}}); err != nil {
		t.Fatal(err)
	}
	body, err := at("/crashes/group").Ask(auth.WithCaller(ctx, auth.Caller{Role: auth.Viewer}), url.Values{"id": {c.Group}})
	if err != nil || strings.Contains(string(body), "<form") || !strings.Contains(string(body), `class="pill ok">resolved`) {
		t.Errorf("a resolved group for those who may not change it: %v %s", err, body)
	}
}
