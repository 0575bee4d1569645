package jdocsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/infra/api/hints"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
	"kennel/jdocs/jdocswire"
	"kennel/jdocs/people"

	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	robot    = thing.MustParse("vic:00e20100")
	other    = thing.MustParse("vic:00e20101")
	settings = jdocs.Key{Thing: robot, Name: jdocs.RobotSettings}
)

// listen listens to changes of documents and returns what waits until those wanted were heard.
func listen(t *testing.T, pool *pgxpool.Pool) func(want ...string) {
	heard := make(chan string, 100) // more than come
	ctx, cancel := context.WithCancel(t.Context())
	listener := &jdocspg.Listener{Pool: pool, Log: slog.New(slog.DiscardHandler), Changed: func(_ context.Context, key jdocs.Key, version uint64) {
		heard <- fmt.Sprintf("%s %d", key, version)
	}}
	var listening sync.WaitGroup
	listening.Go(func() { _ = listener.Run(ctx) }) // nil by contract
	t.Cleanup(func() { cancel(); listening.Wait() })
	return func(want ...string) {
		t.Helper()
		for len(want) > 0 {
			select {
			case change := <-heard:
				want = slices.DeleteFunc(want, func(w string) bool { return w == change })
			case <-time.After(30 * time.Second):
				t.Fatalf("not told of %v", want)
			}
		}
	}
}

// ask sends one request as a caller of that role and returns status and body.
func ask(t *testing.T, h http.Handler, role auth.Role, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: role, Name: "ann@example.com"}), method, path,
		strings.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

func TestHTTP(t *testing.T) {
	pool := pgtest.New(t)
	svc := jdocs.New(jdocspg.New(pool))
	told := listen(t, pool)
	mux := http.NewServeMux()
	Operations(&people.Documents{Docs: svc, Exists: func(_ context.Context, id thing.ID) error {
		if id != robot {
			return errs.New(errs.NotFound, "no robot %s", id)
		}
		return nil
	}}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	const docs = "/v1/things/vic:00e20100/jdocs"
	for _, c := range []struct {
		name         string
		role         auth.Role
		method, path string
		body         string
		status       int
		want         string // part of the answer
	}{
		{"none yet", auth.Viewer, "GET", docs, "", 200, "[]"},
		{"no such document", auth.Viewer, "GET", docs + "/vic.RobotSettings", "", 404, "no such document"},
		{"nobody", "", "GET", docs, "", 401, "sign in"},
		{"a thing is no operator", auth.Thing, "GET", docs, "", 403, "may not do this"},
		{"a viewer may not change", auth.Viewer, "PATCH", docs + "/vic.RobotSettings", `{"set":{"master_volume":3}}`, 403, "viewer"},
		{"set", auth.Support, "PATCH", docs + "/vic.RobotSettings", `{"set":{"master_volume":3,"custom_eye_color.hue":0.4}}`, 200, `"hue":0.4`},
		{"set again", auth.Support, "PATCH", docs + "/vic.RobotSettings", `{"set":{"master_volume":"high"}}`, 200, `"doc_version":2`},
		{"what is allowed", auth.Admin, "PATCH", docs + "/vic.RobotSettings", `{"set":{"master_volume":9}}`, 400, "5 HIGH"},
		{"nothing to set", auth.Admin, "PATCH", docs + "/vic.RobotSettings", `{"set":{}}`, 400, "at least one field"},
		{"another body", auth.Admin, "PATCH", docs + "/vic.RobotSettings", `{"sett":{}}`, 400, "sett"},
		{"a mistyped field", auth.Admin, "PATCH", docs + "/vic.RobotSettings", `{"set":{"eye_colour":1}}`, 400, "did you mean eye_color"},
		{"a mistyped field below another", auth.Admin, "PATCH", docs + "/vic.RobotSettings", `{"set":{"custom_eye_color.hew":1}}`, 400, "did you mean custom_eye_color.hue"},
		{"a mistyped document", auth.Admin, "PATCH", docs + "/vic.Settings", `{"set":{"a":1}}`, 400, "did you mean vic.RobotSettings"},
		{"a mistyped statistic", auth.Admin, "PATCH", docs + "/vic.RobotLifetimeStats", `{"set":{"Alive.second":1}}`, 400, "did you mean Alive.seconds"},
		{"not JSON", auth.Admin, "PATCH", docs + "/vic.RobotSettings", `{`, 400, "body"},
		{"get", auth.Viewer, "GET", docs + "/vic.RobotSettings", "", 200, `"master_volume":5`},
		{"list", auth.Viewer, "GET", docs, "", 200, `"doc_name":"vic.RobotSettings","doc_version":2`},
		{"history", auth.Viewer, "GET", docs + "/vic.RobotSettings/history", "", 200, `"doc_version":1`},
		{"newest of the history", auth.Viewer, "GET", docs + "/vic.RobotSettings/history?limit=1", "", 200, `"by":"ann@example.com"`},
		{"limit in words", auth.Viewer, "GET", docs + "/vic.RobotSettings/history?limit=all", "", 400, "limit"},
		{"limit 0", auth.Viewer, "GET", docs + "/vic.RobotSettings/history?limit=0", "", 400, "1 to 1000"},
		{"a thing id that is none", auth.Viewer, "GET", "/v1/things/robbie/jdocs", "", 400, "species:serial"},
		{"an unknown thing", auth.Viewer, "GET", "/v1/things/vic:00e20101/jdocs", "", 404, "no robot"},
		{"an unknown field on demand", auth.Admin, "PATCH", docs + "/vic.RobotSettings", `{"set":{"new.thing":1},"force":true}`, 200, `"thing":1`},
		{"which is then one of the document's", auth.Admin, "PATCH", docs + "/vic.RobotSettings", `{"set":{"new.other":2}}`, 200, `"other":2`},
		{"an unknown document on demand", auth.Admin, "PATCH", docs + "/our.Notes", `{"set":{"a":1},"force":true}`, 200, `"a":1`},
		{"an unknown thing is not given documents", auth.Admin, "PATCH", "/v1/things/vic:00e20101/jdocs/vic.RobotSettings", `{"set":{"a":1}}`, 404, "no robot"},
		{"a name that is none", auth.Viewer, "GET", docs + "/.hidden", "", 400, "document name"},
	} {
		status, body := ask(t, mux, c.role, c.method, c.path, c.body)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s; want %d with %q", c.name, status, body, c.status, c.want)
		}
	}
	told("vic:00e20100/vic.RobotSettings 4", "vic:00e20100/our.Notes 1")
}

// direct carries requests of one thing to handlers, without a broker.
type direct struct {
	svc jdocs.Service
	id  thing.ID
}

func (d direct) Do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	h, ok := Handlers(jdocs.Robots{Docs: d.svc}, slog.New(slog.DiscardHandler))[service+"/"+method]
	if !ok {
		return nil, errs.New(errs.NotFound, "no %s/%s", service, method)
	}
	return h(ctx, d.id, body)
}

func TestClientAndHandlers(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	c := jdocswire.NewClient(direct{svc, robot})
	d := jdocs.Doc{FmtVersion: 2, ClientMeta: "m", JSON: `{ "a": "<1>" }`}
	if got, err := c.Write(t.Context(), settings.Name, d); err != nil || got != (jdocs.WriteResult{Status: jdocs.Accepted, Latest: 1}) {
		t.Fatalf("write: %v, %v", got, err)
	}
	if got, err := c.Write(t.Context(), settings.Name, d); err != nil || got != (jdocs.WriteResult{Status: jdocs.RejectedBadDocVersion, Latest: 1}) {
		t.Errorf("write again: %v, %v; want a rejection", got, err)
	}
	d.Version = 1
	got, err := c.Read(t.Context(), []jdocs.Item{{Name: settings.Name}, {Name: settings.Name, MyVersion: 1}, {Name: jdocs.RobotLifetimeStats}})
	head := d
	head.JSON = ""
	want := []jdocs.ReadResult{{Status: jdocs.Changed, Doc: d}, {Status: jdocs.Unchanged, Doc: head}, {Status: jdocs.NotFound}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read: %v, %v; want %v", got, err, want)
	}
	if _, err := svc.Set(t.Context(), settings, map[string]json.RawMessage{"b": json.RawMessage("1")}, "ann"); err != nil {
		t.Fatal(err)
	}
	for v, wantMine := range map[uint64]bool{1: true, 2: false} {
		if rev, mine, found, err := c.Revision(t.Context(), settings.Name, v); err != nil || !found || mine != wantMine || rev.Version != v {
			t.Errorf("revision %d: %v, mine %v, found %v, %v; want mine %v", v, rev, mine, found, err, wantMine)
		}
	}
	if _, _, found, err := c.Revision(t.Context(), settings.Name, 3); err != nil || found {
		t.Errorf("revision 3: found %v, %v; want none", found, err)
	}
	if v, err := c.Delete(t.Context(), settings.Name); err != nil || v != 3 {
		t.Errorf("delete: %d, %v; want 3", v, err)
	}
	if _, err := c.Write(t.Context(), jdocs.AccountSettings, d); errs.CodeOf(err) != "no_owner" {
		t.Errorf("write of an account's document: %v, want no_owner", err)
	}
}

// TestAThingReachesOnlyItsOwn: VEC-FLE-01, VEC-TOK-02.
func TestAThingReachesOnlyItsOwn(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	if _, err := svc.Set(t.Context(), settings, map[string]json.RawMessage{"a": json.RawMessage("1")}, "ann"); err != nil {
		t.Fatal(err)
	}
	for method, body := range map[string]string{
		"read":     `{"thing":"vic:00e20100","items":[{"doc_name":"vic.RobotSettings"}]}`,
		"write":    `{"thing":"vic:00e20100","doc_name":"vic.RobotSettings","doc":{"doc_version":1,"fmt_version":2,"json_doc":"{}"}}`,
		"delete":   `{"thing":"vic:00e20100","doc_name":"vic.RobotSettings"}`,
		"revision": `{"thing":"vic:00e20100","doc_name":"vic.RobotSettings","doc_version":1}`,
	} {
		if got, err := (direct{svc, other}).Do(t.Context(), "jdocs", method, []byte(body)); errs.KindOf(err) != errs.Denied {
			t.Errorf("%s of another thing's document: %s, %v; want denied", method, got, err)
		}
	}
	got, err := (direct{svc, other}).Do(t.Context(), "jdocs", "read", []byte(`{"items":[{"doc_name":"vic.RobotSettings"}]}`))
	if err != nil || !strings.Contains(string(got), "NOT_FOUND") {
		t.Errorf("its own: %s, %v; want NOT_FOUND", got, err)
	}
}

// TestPublishedBodies: both spellings in, the published ones out; a doc is there even when there is none.
func TestPublishedBodies(t *testing.T) {
	d := direct{jdocs.New(jdocspg.New(pgtest.New(t))), robot}
	for _, c := range []struct{ method, body, want string }{
		{"write", `{"user_id":"u","thing":"vic:00e20100","doc_name":"vic.RobotSettings","doc":{"doc_version":"0","fmt_version":1,"client_meta":"m","json_doc":"{}"}}`,
			`{"status":"ACCEPTED","latest_doc_version":1}`},
		{"write", `{"account":"u","doc_name":"vic.RobotSettings","doc":{"doc_version":0,"fmt_version":"1","json_doc":"{}"}}`,
			`{"status":"REJECTED_BAD_DOC_VERSION","latest_doc_version":1}`},
		{"write", `{"doc_name":"vic.RobotSettings","doc":{"doc_version":1,"json_doc":"{}"}}`,
			`{"status":"REJECTED_BAD_FMT_VERSION","latest_doc_version":1}`},
		{"read", `{"items":[{"doc_name":"vic.RobotSettings"},{"doc_name":"vic.Other","my_doc_version":"3"}]}`,
			`{"items":[{"status":"CHANGED","doc":{"doc_version":1,"fmt_version":1,"client_metadata":"m","json_doc":"{}"}},` +
				`{"status":"NOT_FOUND","doc":{"doc_version":0,"fmt_version":0,"client_metadata":"","json_doc":""}}]}`},
		{"delete", `{"doc_name":"vic.RobotSettings"}`, `{"status":"ACCEPTED","latest_version":2,"latest_doc_version":2}`},
		{"delete", `{"doc_name":"vic.RobotSettings"}`, `{"status":"ACCEPTED","latest_version":0,"latest_doc_version":0}`},
	} {
		got, err := d.Do(t.Context(), "jdocs", c.method, []byte(c.body))
		if err != nil || string(got) != c.want {
			t.Errorf("%s %s\ngot  %s, %v\nwant %s", c.method, c.body, got, err, c.want)
		}
	}
	for _, body := range []string{``, `[]`, `{"items":{}}`, `{"items":[{"doc_name":"vic.RobotSettings","my_doc_version":-1}]}`,
		`{"items":[{"doc_name":"/"}]}`} {
		if got, err := d.Do(t.Context(), "jdocs", "read", []byte(body)); errs.KindOf(err) != errs.Invalid {
			t.Errorf("read %q: %s, %v; want invalid", body, got, err)
		}
	}
}

func FuzzHandlers(f *testing.F) {
	f.Add("read", []byte(`{"items":[{"doc_name":"vic.RobotSettings","my_doc_version":1}]}`))
	f.Add("write", []byte(`{"doc_name":"vic.RobotSettings","doc":{"doc_version":0,"fmt_version":2,"json_doc":"{}"}}`))
	f.Add("delete", []byte(`{"doc_name":"vic.RobotSettings"}`))
	f.Add("revision", []byte(`{"doc_name":"vic.RobotSettings","doc_version":"1"}`))
	svc := jdocs.New(jdocspg.New(pgtest.New(f)))
	f.Fuzz(func(t *testing.T, method string, body []byte) {
		got, err := (direct{svc, robot}).Do(t.Context(), "jdocs", method, body)
		if err == nil && !json.Valid(got) {
			t.Errorf("%s %q: answer %q is not JSON", method, body, got)
		}
		if k := errs.KindOf(err); err != nil && k != errs.Invalid && k != errs.Denied && k != errs.NotFound {
			t.Errorf("%s %q: kind %v: %v", method, body, k, err)
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add("vic.RobotSettings", []byte(`{"set":{"master_volume":3}}`))
	f.Add("vic.RobotLifetimeStats", []byte(`{"set":{"Pet.ms":"3"}}`))
	f.Add("vic.AccountSettings", []byte(`{"set":null}`))
	mux := http.NewServeMux()
	Operations(&people.Documents{Docs: jdocs.New(jdocspg.New(pgtest.New(f)))}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	f.Fuzz(func(t *testing.T, doc string, body []byte) {
		r := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: auth.Admin}), "PATCH",
			"/v1/things/vic:00e20100/jdocs/x", strings.NewReader(string(body)))
		r.URL.Path = "/v1/things/vic:00e20100/jdocs/" + doc
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%q %q: %d %s", doc, body, w.Code, w.Body)
		}
	})
}

type failing struct{}

func (failing) List(context.Context, thing.ID) ([]jdocs.Listing, error) {
	return nil, errors.New("away")
}

// TestFormerName: an AmigoBot with earlier software calls its settings vic.RobotSettings. It reads and writes the one document that a robot with
// later software calls by its own name, as do people's programs, and is hinted of it.
func TestFormerName(t *testing.T) {
	const amigo, own = thing.ID("amigo:1"), jdocs.Name("amigo.RobotSettings")
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	log := slog.New(slog.DiscardHandler)
	old, now := jdocswire.NewClient(direct{svc, amigo}), jdocswire.NewClient(direct{svc, amigo})
	write := func(c *jdocswire.Client, name jdocs.Name, version uint64, text string) {
		t.Helper()
		if res, err := c.Write(t.Context(), name, jdocs.Doc{Version: version, FmtVersion: 2, JSON: text}); err != nil || res.Status != jdocs.Accepted || res.Latest != version+1 {
			t.Fatalf("%s at %d: %+v, %v", name, version, res, err)
		}
	}
	write(old, jdocs.RobotSettings, 0, `{"locale":"fr-FR"}`)
	write(now, own, 1, `{"locale":"de-DE"}`)
	write(old, jdocs.RobotSettings, 2, `{"locale":"it-IT"}`)
	for name, c := range map[jdocs.Name]*jdocswire.Client{jdocs.RobotSettings: old, own: now} {
		if res, err := c.Read(t.Context(), []jdocs.Item{{Name: jdocs.RobotLifetimeStats}, {Name: name}}); err != nil || res[1].Doc.JSON != `{"locale":"it-IT"}` || res[1].Doc.Version != 3 {
			t.Errorf("read %s: %+v, %v", name, res, err)
		}
		if d, mine, found, err := c.Revision(t.Context(), name, 2); err != nil || !mine || !found || d.JSON != `{"locale":"de-DE"}` {
			t.Errorf("revision of %s: %+v, %v, %v, %v", name, d, mine, found, err)
		}
	}
	mux := http.NewServeMux()
	Operations(&people.Documents{Docs: svc}).Mount(mux, op.Doors{Log: log})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PATCH", "amigo:1/jdocs/vic.RobotSettings", `{"set":{"master_volume":"LOW"}}`, 200, `"doc_version":4`},
		{"GET", "amigo:1/jdocs/amigo.RobotSettings", "", 200, `"master_volume":1`},
		{"GET", "amigo:1/jdocs", "", 200, `[{"thing":"amigo:1","doc_name":"amigo.RobotSettings","doc_version":4`},
		{"PATCH", "amigo:1/jdocs/amigo.RobotSettings", `{"set":{"eye_color":1}}`, 400, "amigo.RobotSettings has no field"},
		{"PATCH", "vic:00e20100/jdocs/amigo.RobotSettings", `{"set":{"master_volume":1}}`, 400, "its settings are vic.RobotSettings"},
		{"PATCH", "pleo:1/jdocs/vic.RobotSettings", `{"set":{"master_volume":1}}`, 400, "pleo.RobotSettings has no field"},
	} {
		if status, body := ask(t, mux, auth.Admin, c.method, "/v1/things/"+c.path, c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %s: %d %s; want %d with %q", c.method, c.path, c.body, status, body, c.status, c.want)
		}
	}
	var hint string
	NewHinter(svc, func(_ context.Context, id thing.ID, _ string, payload []byte) {
		hint = string(id) + " " + string(payload)
	}, log).
		DocChanged(t.Context(), jdocs.Key{Thing: amigo, Name: jdocs.RobotSettings}, 4) // as kenneld of the previous release says it
	if want := `amigo:1 {"docs":{"amigo.RobotSettings":4,"vic.RobotSettings":4}}`; hint != want {
		t.Errorf("hint %s, want %s", hint, want)
	}
}

func TestHinter(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	for _, n := range []jdocs.Name{jdocs.RobotSettings, jdocs.RobotLifetimeStats} {
		if _, err := svc.Write(t.Context(), jdocs.Key{Thing: robot, Name: n}, jdocs.Doc{FmtVersion: 2, JSON: "{}"}, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	var sent []string
	publish := func(_ context.Context, id thing.ID, name string, payload []byte) {
		if _, err := hints.ParseJdocs(payload); err != nil {
			t.Error(err)
		}
		sent = append(sent, fmt.Sprintf("%s %s %s", id, name, payload))
	}
	log := slog.New(slog.DiscardHandler)
	h := NewHinter(svc, publish, log)
	h.DocChanged(t.Context(), settings, 1)
	if want := `[vic:00e20100 jdocs {"docs":{"vic.RobotLifetimeStats":1,"vic.RobotSettings":1}}]`; fmt.Sprint(sent) != want {
		t.Errorf("sent %v, want %s", sent, want)
	}
	h.DocChanged(t.Context(), jdocs.Key{Account: "ann", Name: jdocs.AccountSettings}, 1)
	NewHinter(failing{}, publish, log).DocChanged(t.Context(), settings, 1)
	if len(sent) != 1 {
		t.Errorf("sent %v, want nothing more", sent[1:])
	}
}
