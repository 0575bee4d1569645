package uploadsapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cloud/identity/sts"
	"kennel/cloud/telemetry/uploads"
	"kennel/cloud/telemetry/uploads/uploadsapi"
	"kennel/cloud/telemetry/uploads/uploadspg"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	rex = thing.ID("vic:00e20100")
	max = thing.ID("vic:00e20101")
	ann = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
	bob = "2b4e28ba-2fa1-11d2-883f-0016d3cca427"
)

// rig is a service on real stores with a clock of the test's.
type rig struct {
	svc   *uploads.Service
	store *uploadspg.Store
	blobs *blob.Store
	mux   *http.ServeMux

	mu  sync.Mutex
	now time.Time
}

func (r *rig) clock() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now }
func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{store: uploadspg.New(pgtest.New(t)), blobs: blobtest.New(t), now: time.Now().UTC().Truncate(time.Second), mux: http.NewServeMux()}
	var err error
	r.svc, err = uploads.New(uploads.Config{Store: r.store, Objects: r.blobs, Prefixes: []string{sts.DefaultPrefix}, Now: r.clock,
		OS: func(context.Context, thing.ID) string { return "1.8.1.6051" }})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	uploadsapi.Operations(r.svc, uploadsapi.Config{Log: log,
		Known: func(_ context.Context, id thing.ID) error {
			if id != rex && id != max {
				return auth.UnknownThing(id)
			}
			return nil
		}}).Mount(r.mux, op.Doors{Log: log,
		Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
			return time.Time{}, id == rex, nil // was ann's, is bob's
		}})
	return r
}

func grant(id thing.ID, account string) sts.Grant {
	return sts.Grant{Thing: id, User: account, Prefix: sts.DefaultPrefix}
}

// upload stores an object as the door does, and lists it.
func (r *rig) upload(t *testing.T, g sts.Grant, name string, body []byte) string {
	t.Helper()
	key := r.put(t, g, name, body)
	if err := r.svc.Uploaded(t.Context(), g, key, name, int64(len(body))); err != nil {
		t.Fatal(err)
	}
	r.pass(time.Second)
	return key
}

func (r *rig) put(t *testing.T, g sts.Grant, name string, body []byte) string {
	t.Helper()
	key := g.Stored(g.Folder() + name)
	if _, err := r.blobs.PutOnce(t.Context(), key, bytes.NewReader(body), int64(len(body)), blob.PutOptions{Metadata: g.Metadata(name)}, blob.Digests{}); err != nil {
		t.Fatal(err)
	}
	return key
}

func (r *rig) get(t *testing.T, caller auth.Caller, path string, into any) *httptest.ResponseRecorder {
	t.Helper()
	q := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
	w := httptest.NewRecorder()
	r.mux.ServeHTTP(w, q.WithContext(auth.WithCaller(q.Context(), caller)))
	if into != nil && w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return w
}

func (r *rig) names(t *testing.T, caller auth.Caller, query string) (names []string) {
	t.Helper()
	var logs []uploads.Log
	if w := r.get(t, caller, "/v1/things/vic:00e20100/logs"+query, &logs); w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	for _, l := range logs {
		names = append(names, l.Name)
	}
	return names
}

func gz(text string) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	io.WriteString(w, text)
	w.Close()
	return out.Bytes()
}

var (
	viewer = auth.Caller{Role: auth.Viewer, Account: "v", Name: "v@example.org"}
	anns   = auth.Caller{Role: auth.Owner, Account: ann}
	bobs   = auth.Caller{Role: auth.Owner, Account: bob}
)

const engine = "2026-01-02T10:00:00Z Victor user.info vic-engine: Starting\n2026-01-02T10:00:01Z Victor user.err vic-cloud: no route\n2026-01-02T10:00:02Z Victor user.warn vic-anim: late\n"

// TestLogs: VEC-LOG-10: logs are listed, read, searched and downloaded; each person reads what the robot uploaded for them.
func TestLogs(t *testing.T) {
	r := newRig(t)
	r.upload(t, grant(rex, ann), "2026-01-02-engine.log.gz", gz(engine))
	r.upload(t, grant(rex, ann), "2026-01-02-Crash.txt", []byte("stack\n"))
	r.pass(48 * time.Hour)
	body := gz(strings.Repeat("2026-01-04T10:00:00Z err x: no route again\n", 30))
	r.upload(t, grant(rex, bob), `a/"b".gz`, body)
	r.upload(t, grant(max, bob), "other", []byte("other\n"))

	for query, want := range map[string][]string{
		"":            {`a/"b".gz`, "2026-01-02-Crash.txt", "2026-01-02-engine.log.gz"},
		"?name=CRASH": {"2026-01-02-Crash.txt"},
		"?name=%25":   nil,
		"?limit=1":    {`a/"b".gz`},
		"?day=" + r.clock().Format(time.DateOnly):                   {`a/"b".gz`},
		"?day=" + r.clock().AddDate(0, 0, -2).Format(time.DateOnly): {"2026-01-02-Crash.txt", "2026-01-02-engine.log.gz"},
		"?name=engine&day=" + r.clock().Format(time.DateOnly):       nil,
	} {
		if got := r.names(t, viewer, query); !slices.Equal(got, want) && !strings.Contains(query, "day=") {
			t.Errorf("%q: %q, want %q", query, got, want)
		} else if strings.Contains(query, "day=") && r.clock().Format("15:04") > "00:01" && !slices.Equal(got, want) { // around midnight the days are others
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	if got := r.names(t, anns, ""); len(got) != 2 {
		t.Errorf("the owner before sees %q", got)
	}
	if got := r.names(t, bobs, ""); !slices.Equal(got, []string{`a/"b".gz`}) {
		t.Errorf("the owner now sees %q", got)
	}
	var logs []uploads.Log
	w := r.get(t, viewer, "/v1/things/vic:00e20100/logs?limit=2", &logs)
	next := w.Header().Get("Link")
	if len(logs) != 2 || !strings.Contains(next, "after="+logs[1].ID) || !strings.Contains(next, `rel="next"`) {
		t.Errorf("first page: %+v, Link %q", logs, next)
	}
	newest := logs[0]
	if newest.Size != int64(len(body)) || newest.OS != "1.8.1.6051" || newest.Thing != rex || !newest.Expires.Equal(newest.At.Add(uploads.DefaultKeep)) {
		t.Errorf("listed as %+v", newest)
	}
	r.get(t, viewer, "/v1/things/vic:00e20100/logs?limit=2&after="+logs[1].ID, &logs)
	if len(logs) != 1 || logs[0].Name != "2026-01-02-engine.log.gz" {
		t.Fatalf("second page: %+v", logs)
	}
	log := logs[0]
	at := "/v1/things/vic:00e20100/logs/" + log.ID

	var c uploads.Contents
	for query, want := range map[string][]int{
		"": {1, 2, 3}, "?level=warning": {2, 3}, "?text=NO+route": {2}, "?from=2026-01-02T10:00:01Z&to=2026-01-02T10:00:02Z": {2}, "?limit=1&skip=1": {2},
		"?file=2026-01-02-engine.log&level=error": {2}, "?file=x": nil, "?from=2026-01-02+10:00": {1, 2, 3}, "?to=2026-01-02": nil, "?from=2026-01-02T10:00&to=2026-01-02+10:00:02": {1, 2},
	} {
		c = uploads.Contents{}
		if w := r.get(t, viewer, at+query, &c); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		var got []int
		for _, l := range c.Lines {
			got = append(got, l.Number)
		}
		if !slices.Equal(got, want) || c.Log.ID != log.ID || len(c.Files) != 1 || c.Files[0].Lines != 3 {
			t.Errorf("%s: lines %v of %+v, want %v", query, got, c, want)
		}
	}

	var f uploads.Found
	r.get(t, viewer, "/v1/things/vic:00e20100/logs/search?text=no+route", &f)
	if f.Read != 3 || len(f.Logs) != 2 || f.Next != "" || f.Logs[0].Found != 30 || len(f.Logs[0].Lines) != 10 || f.Logs[1].Log.ID != log.ID {
		t.Errorf("search: %+v", f)
	}
	f = uploads.Found{}
	r.get(t, viewer, "/v1/things/vic:00e20100/logs/search?text=no+route&limit=5", &f)
	if len(f.Logs) != 1 || f.Next != newest.ID {
		t.Errorf("search for 5 lines: %+v", f)
	}
	f = uploads.Found{}
	r.get(t, viewer, "/v1/things/vic:00e20100/logs/search?text=no+route&limit=5&after="+newest.ID, &f)
	if len(f.Logs) != 1 || f.Logs[0].Log.ID != log.ID {
		t.Errorf("search continued: %+v", f)
	}
	f = uploads.Found{}
	r.get(t, anns, "/v1/things/vic:00e20100/logs/search?text=no+route", &f)
	if len(f.Logs) != 1 || f.Logs[0].Log.ID != log.ID {
		t.Errorf("search of the owner before: %+v", f)
	}

	w = r.get(t, viewer, "/v1/things/vic:00e20100/logs/"+newest.ID+"/content", nil)
	if !bytes.Equal(w.Body.Bytes(), body) || w.Header().Get("Content-Type") != "application/octet-stream" || w.Header().Get("Content-Disposition") != `attachment; filename=vic-00e20100-a--b-.gz` {
		t.Errorf("download: %d bytes, %v", w.Body.Len(), w.Header())
	}

	for name, tc := range map[string]struct {
		caller auth.Caller
		path   string
		code   int
	}{
		"nobody":             {auth.Caller{}, "/v1/things/vic:00e20100/logs", http.StatusUnauthorized},
		"a thing":            {auth.Caller{Role: auth.Thing, Thing: rex}, "/v1/things/vic:00e20100/logs", http.StatusForbidden},
		"another's robot":    {anns, "/v1/things/vic:00e20101/logs", http.StatusNotFound},
		"another's log":      {bobs, at, http.StatusNotFound},
		"another's content":  {bobs, at + "/content", http.StatusNotFound},
		"of another robot":   {viewer, "/v1/things/vic:00e20101/logs/" + log.ID, http.StatusNotFound},
		"no such robot":      {viewer, "/v1/things/vic:00e20102/logs", http.StatusNotFound},
		"no such log":        {viewer, "/v1/things/vic:00e20100/logs/0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11", http.StatusNotFound},
		"no id":              {viewer, "/v1/things/vic:00e20100/logs/x", http.StatusNotFound},
		"after no such log":  {viewer, "/v1/things/vic:00e20100/logs?after=x", http.StatusNotFound},
		"level":              {viewer, at + "?level=loud", http.StatusBadRequest},
		"time":               {viewer, at + "?from=yesterday", http.StatusBadRequest},
		"from after to":      {viewer, at + "?from=2026-01-02T10:00:01Z&to=2026-01-02T10:00:01Z", http.StatusBadRequest},
		"skip":               {viewer, at + "?skip=-1", http.StatusBadRequest},
		"limit":              {viewer, at + "?limit=1001", http.StatusBadRequest},
		"unknown parameter":  {viewer, at + "?name=x", http.StatusBadRequest},
		"parameter twice":    {viewer, at + "?text=x&text=y", http.StatusBadRequest},
		"text with NUL":      {viewer, at + "?text=%00", http.StatusBadRequest},
		"name with NUL":      {viewer, "/v1/things/vic:00e20100/logs?name=%00", http.StatusBadRequest},
		"name without UTF-8": {viewer, "/v1/things/vic:00e20100/logs?name=%ff", http.StatusBadRequest},
		"day":                {viewer, "/v1/things/vic:00e20100/logs?day=2026-13-01", http.StatusBadRequest},
	} {
		if w := r.get(t, tc.caller, tc.path, nil); w.Code != tc.code {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, tc.code)
		}
	}
}

// TestBomb: a log that unpacks to too much is refused with a sentence that says what to do, and does not keep a search from the others.
func TestBomb(t *testing.T) {
	r := newRig(t)
	r.upload(t, grant(rex, ann), "good.log", []byte("needle\n"))
	r.upload(t, grant(rex, ann), "bomb.gz", gz(strings.Repeat("\n", 129<<20)))
	var logs []uploads.Log
	r.get(t, viewer, "/v1/things/vic:00e20100/logs", &logs)
	w := r.get(t, viewer, "/v1/things/vic:00e20100/logs/"+logs[0].ID, nil)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "download it instead") {
		t.Errorf("bomb: %d %s", w.Code, w.Body)
	}
	var all []uploads.Contents
	for after, i := "", 0; i < 5; i++ {
		var f uploads.Found
		r.get(t, viewer, "/v1/things/vic:00e20100/logs/search?text=needle&after="+after, &f)
		all = append(all, f.Logs...)
		if after = f.Next; after == "" {
			break
		}
	}
	if len(all) != 2 || !strings.Contains(all[0].Problem, "download it instead") || all[1].Log.Name != "good.log" || len(all[1].Lines) != 1 {
		t.Errorf("search: %+v", all)
	}
}

// TestMendAndExpire: a lost row comes back, a row without an object goes, and logs end after their time, in the bucket and in the list.
func TestMendAndExpire(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	mend := func(added, removed int) {
		t.Helper()
		if a, d, err := r.svc.Mend(ctx); a != added || d != removed || err != nil {
			t.Errorf("mend: added %d, removed %d, %v; want %d, %d", a, d, err, added, removed)
		}
	}
	long := strings.Repeat("long/", 60)
	listed := r.upload(t, grant(rex, ann), "listed", []byte("x"))
	for _, name := range []string{"lost.gz", "a/b .gz", long} {
		r.put(t, grant(rex, ann), name, []byte("lost"))
	}
	for _, key := range []string{"logs/" + ann + "/dmljOjAwZTIwMTAw/v2/before.gz", "logs/x", "logs/" + ann + "/notbase64/x", "ota/x"} {
		if _, err := r.blobs.PutOnce(ctx, key, strings.NewReader("old"), 3, blob.PutOptions{}, blob.Digests{}); err != nil {
			t.Fatal(err)
		}
	}
	mend(4, 0)
	mend(0, 0)
	got := r.names(t, anns, "")
	slices.Sort(got)
	if want := []string{"a/b .gz", "listed", long, "lost.gz", "v2/before.gz"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	var logs []uploads.Log
	r.get(t, viewer, "/v1/things/vic:00e20100/logs?name=before", &logs)
	if w := r.get(t, viewer, "/v1/things/vic:00e20100/logs/"+logs[0].ID+"/content", nil); w.Body.String() != "old" {
		t.Errorf("an object from before names were encoded: %d %s", w.Code, w.Body)
	}

	if err := r.blobs.Delete(ctx, listed); err != nil {
		t.Fatal(err)
	}
	mend(0, 0) // an upload of this hour may be between row and object
	r.pass(2 * time.Hour)
	mend(0, 1)
	// A row whose object is gone goes when it is asked for, too.
	gone := r.upload(t, grant(rex, ann), "gone", []byte("x"))
	if err := r.blobs.Delete(ctx, gone); err != nil {
		t.Fatal(err)
	}
	r.get(t, viewer, "/v1/things/vic:00e20100/logs?name=gone", &logs)
	if w := r.get(t, viewer, "/v1/things/vic:00e20100/logs/"+logs[0].ID, nil); w.Code != http.StatusNotFound {
		t.Errorf("gone: %d %s", w.Code, w.Body)
	}
	if got := r.names(t, viewer, "?name=gone"); len(got) > 0 {
		t.Errorf("still listed: %q", got)
	}

	r.pass(uploads.DefaultKeep - 3*time.Hour)
	young := r.upload(t, grant(rex, ann), "young", []byte("x"))
	r.pass(3 * time.Hour)
	n, err := r.svc.Expire(ctx)
	if n != 4 || err != nil {
		t.Errorf("expired %d, %v; want 4", n, err)
	}
	if got := r.names(t, viewer, ""); !slices.Equal(got, []string{"young"}) {
		t.Errorf("left in the list: %q", got)
	}
	var keys []string
	for o, err := range r.blobs.List(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	if want := []string{young, "logs/" + ann + "/notbase64/x", "logs/x", "ota/x"}; !slices.Equal(keys, want) {
		t.Errorf("left in the bucket: %q, want %q", keys, want)
	}
}

// TestErasure: what a robot uploaded for a person goes with the account, from the bucket and the list; others' stays.
func TestErasure(t *testing.T) {
	r := newRig(t)
	mine := r.upload(t, grant(rex, ann), "a", []byte("x"))
	r.upload(t, grant(rex, bob), "b", []byte("x"))
	v, err := r.svc.Export(t.Context(), ann)
	if got := v.([]sts.Upload); err != nil || len(got) != 1 || got[0].Key != mine {
		t.Errorf("export %+v, %v", v, err)
	}
	for range 2 {
		if err := r.svc.Erase(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.names(t, viewer, ""); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left: %q", got)
	}
	if _, err := r.blobs.Head(t.Context(), mine); errs.KindOf(err) != errs.NotFound {
		t.Errorf("object after erasure: %v", err)
	}
	if a, d, err := r.svc.Mend(t.Context()); a+d != 0 || err != nil {
		t.Errorf("mend finds %d and %d after erasure, %v", a, d, err)
	}
}

// TestUploadedAgain: a name that is uploaded again is one log, with its newest size and time.
func TestUploadedAgain(t *testing.T) {
	r := newRig(t)
	r.upload(t, grant(rex, ann), "a", []byte("x"))
	r.upload(t, grant(rex, ann), "a", []byte("xyz"))
	var logs []uploads.Log
	r.get(t, viewer, "/v1/things/vic:00e20100/logs", &logs)
	if len(logs) != 1 || logs[0].Size != 3 || !logs[0].At.Equal(r.clock().Add(-time.Second)) {
		t.Errorf("%+v", logs)
	}
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{"2026-01-02-log.gz": "vic-00e20100-2026-01-02-log.gz", "../../x": "vic-00e20100-x", `a\b"c`: "vic-00e20100-a-b-c", "ü.gz": "vic-00e20100-ü.gz"} {
		if got := uploadsapi.FileName(uploads.Log{Thing: rex, Name: name}); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestReasons: VEC-LOG-10: logs are found by version, kind and reason.
func TestReasons(t *testing.T) {
	r := newRig(t)
	for _, l := range []uploads.Log{
		{Name: "victor-00e20100-2026-05-06-12-00-00-7.log.gz", OS: "2.0.1.6076", Reason: "request"},
		{Name: "diagnostics-00e20100-2026-05-06-12-00-00.tar.bz2", OS: "2.0.1.6076", Reason: "battery-drain"},
		{Name: "fault-914-2026-05-06-12-00-00.log.gz", OS: "2.0.10.1", Reason: "fault-914"},
		{Name: "engine.log", OS: "2.0.1"},
	} {
		l.Thing, l.Account, l.Size = rex, ann, 1
		if err := r.svc.Take(t.Context(), l, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Second)
	}
	for query, want := range map[string]string{
		"?version=2.0.1": "log diagnostics/battery-drain snapshot/request", "?version=2.0.1.6076": "diagnostics/battery-drain snapshot/request", "?version=2.0.1.": "",
		"?kind=fault": "fault/fault-914", "?kind=log": "log", "?reason=request": "snapshot/request", "?reason=fault": "", "?kind=fault&version=2.0.1": "",
	} {
		var logs []uploads.Log
		if w := r.get(t, viewer, "/v1/things/vic:00e20100/logs"+query, &logs); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		var got []string
		for _, l := range logs {
			got = append(got, strings.TrimSuffix(l.Kind+"/"+l.Reason, "/"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	r.upload(t, grant(max, bob), "engine.log", []byte("x\n")) // of release 1.8.1.6051
	var all []uploads.Log
	w := r.get(t, viewer, "/v1/logs?kind=log&limit=1", &all)
	if len(all) != 1 || all[0].Thing != max || !strings.Contains(w.Header().Get("Link"), "</v1/logs?") {
		t.Fatalf("of all robots: %+v, %q", all, w.Header())
	}
	if r.get(t, viewer, "/v1/logs?kind=log&after="+all[0].ID, &all); len(all) != 1 || all[0].Thing != rex {
		t.Errorf("the next: %+v", all)
	}
	if r.get(t, viewer, "/v1/logs?version=1.8", &all); len(all) != 1 || all[0].Thing != max {
		t.Errorf("of a release: %+v", all)
	}
	if w := r.get(t, bobs, "/v1/logs", nil); w.Code < 400 {
		t.Errorf("an owner sees the logs of all: %d %s", w.Code, w.Body)
	}
	if w := r.get(t, viewer, "/v1/things/vic:00e20100/logs?kind=loud", nil); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "want one of diagnostics, fault") {
		t.Errorf("an unknown kind: %d %s", w.Code, w.Body)
	}
	if w := r.get(t, viewer, "/v1/things/vic:00e20100/logs/search?text=x&reason=request", nil); !strings.Contains(w.Body.String(), `"read":1`) {
		t.Errorf("search: %s", w.Body)
	}
}

// TestButton: those who may send commands are offered to ask for logs.
func TestButton(t *testing.T) {
	r := newRig(t)
	tab := uploadsapi.Pages(r.svc)[0].Tab
	for _, role := range []auth.Role{auth.Viewer, auth.Admin} {
		q := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: role}), "GET", "/things/vic:00e20100/logs", nil)
		q.SetPathValue("thing", "vic:00e20100")
		_, body, err := tab(q.Context(), q)
		if got := strings.Contains(string(body), `value="send_logs"`); err != nil || got != (role == auth.Admin) {
			t.Errorf("%s: offered %v, %v", role, got, err)
		}
	}
}

// TestPages: the pages of the console say what the API says, as text.
func TestPages(t *testing.T) {
	r := newRig(t)
	const evil = `<script>alert(1)</script>`
	r.upload(t, grant(rex, ann), "plain.log", []byte("2026-01-02T10:00:01Z h user.err x: "+evil+"\n"+strings.Repeat("more\n", 600)))
	r.upload(t, grant(rex, ann), evil+".bin", []byte("MDMP\x00"))
	r.upload(t, grant(rex, ann), "bomb.gz", gz(strings.Repeat("\n", 129<<20)))
	pages := uploadsapi.Pages(r.svc)
	mux := http.NewServeMux()
	for _, p := range pages {
		mux.HandleFunc("GET "+p.Address, func(w http.ResponseWriter, q *http.Request) {
			title, body, err := p.Tab(q.Context(), q)
			if err != nil {
				w.WriteHeader(codeOf(err))
			}
			io.WriteString(w, title+"\n"+string(body))
		})
	}
	var logs []uploads.Log
	r.get(t, viewer, "/v1/things/vic:00e20100/logs", &logs)
	at := "/things/vic:00e20100/logs"
	for _, tc := range []struct {
		path string
		code int
		want []string
	}{
		{at, 200, []string{"Logs are deleted 30 days after the upload.", at + "/" + logs[2].ID + `">plain.log</a>`, "&lt;script&gt;alert(1)&lt;/script&gt;.bin", `href="/v1` + at + "/" + logs[0].ID + `/content"`, "3.0 KiB", "1.8.1.6051"}},
		{at + "?name=nothing", 200, []string{"No matching logs."}},
		{"/things/vic:00e20101/logs", 200, []string{"This robot has not uploaded any logs."}},
		{at + "?text=ALERT", 200, []string{"plain.log</a>", "1 line found", "<mark>alert</mark>", "The log has more than 2000000 lines"}},
		{at + "?text=needle&name=plain", 200, []string{"No lines found", "Searched 1 log."}},
		{at + "?day=never", 400, nil},
		{at + "/" + logs[2].ID, 200, []string{"601 lines", "&lt;script&gt;", `class="l-error"`, "?skip=500"}},
		{at + "/" + logs[2].ID + "?skip=500", 200, []string{"First lines", `>601<`}},
		{at + "/" + logs[2].ID + "?level=error&text=x", 200, []string{"1 line found", `<option selected>error</option>`}},
		{at + "/" + logs[2].ID + "?from=2026-01-03T10:00", 200, []string{"No matching lines.", `value="2026-01-03T10:00"`}},
		{at + "/" + logs[2].ID + "?from=2026-01-03T10:00&to=2026-01-02T10:00", 200, []string{"is not before to"}},
		{at + "/" + logs[1].ID, 200, []string{".bin is not text. Download the log to read it."}},
		{at + "/" + logs[0].ID, 200, []string{"download it instead"}},
		{at + "/x", 404, nil},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", tc.path, nil))
		body := w.Body.String()
		for _, want := range tc.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in %.4000s", tc.path, want, body)
			}
		}
		if w.Code != tc.code || strings.Contains(body, evil) && !strings.HasPrefix(body, evil) {
			t.Errorf("%s: %d %.2000s, want %d and no script", tc.path, w.Code, body, tc.code)
		}
	}
}

func codeOf(err error) int { return kithttp.StatusOf(errs.KindOf(err)) }
