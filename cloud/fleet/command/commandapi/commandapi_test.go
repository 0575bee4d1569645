package commandapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/infra/api/commandwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

const rex = thing.ID("vic:00e20100")

type audit struct {
	lines []string
	err   error
}

func (a *audit) write(_ context.Context, action, object, detail string) error {
	a.lines = append(a.lines, action+" "+object+" "+detail)
	return a.err
}

func TestHTTP(t *testing.T) {
	svc := command.New(commandpg.New(pgtest.New(t)))
	mux, au := http.NewServeMux(), &audit{}
	Operations(svc, Config{Audit: au.write, Known: func(_ context.Context, id thing.ID) error {
		if id != rex {
			return errs.Coded(errs.NotFound, "no_thing", "thing %s is not known", id)
		}
		return nil
	}}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	do := func(role auth.Role, method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if role != "" {
			r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: role, Name: "op@example.org"}))
		}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const all = "/v1/things/vic:00e20100/commands"
	for _, tt := range []struct {
		role         auth.Role
		method, path string
		body         string
		code         int
		want         string
	}{
		{"", "GET", all, "", 401, "sign in first"},
		{"", "POST", all, `{"kind":"ping"}`, 401, "sign in first"},
		{auth.Owner, "GET", all, "", 403, "denied"},
		{auth.Viewer, "POST", all, `{"kind":"ping"}`, 403, "denied"},
		{auth.Viewer, "GET", all, "", 200, "[]\n"},
		{auth.Viewer, "GET", all + "?limit=0", "", 400, "limit"},
		{auth.Viewer, "GET", all + "?open=maybe", "", 400, "open"},
		{auth.Viewer, "GET", all + "/1", "", 404, "no_command"},
		{auth.Support, "POST", "/v1/things/cat:1/commands", `{"kind":"ping"}`, 400, "thing id"},
		{auth.Support, "POST", "/v1/things/vic:00e20199/commands", `{"kind":"ping"}`, 404, "no_thing"},
		{auth.Support, "POST", all, `{"kind":"dance"}`, 400, "want one of flush_events"},
		{auth.Support, "POST", all, `{"kind":"ping","expires_in_ms":-1}`, 400, "expires_in_ms"},
		{auth.Support, "POST", all, `{"kind":"ping","expires_in_ms":5}`, 400, "time to live"},
		{auth.Support, "POST", all, `{"kind":"ping","soon":true}`, 400, "soon"},
		{auth.Support, "POST", all, `{"kind":"set_lights","args":{"lights":[]}}`, 400, "0 lights"},
		{auth.Support, "POST", all, `{"kind":"ping","key":"k"}`, 200, `"state":"pending"`},
		{auth.Support, "POST", all, `{"kind":"ping","key":"k","args":{}}`, 200, `"kind":"ping"`},
		{auth.Support, "POST", all, `{"kind":"sync","key":"k"}`, 409, "key_used"},
		{auth.Admin, "POST", all, `{"kind":"intent","args":{"intent":"greeting","params":{"said":"secret"}}}`, 200, `"by":"op@example.org"`},
		{auth.Viewer, "GET", all + "?open=true&limit=1", "", 200, `"intent":"greeting"`},
	} {
		if code, body := do(tt.role, tt.method, tt.path, tt.body); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s %s %s: got %d %s, want %d %q", tt.role, tt.method, tt.path, tt.body, code, body, tt.code, tt.want)
		}
	}
	want := []string{"command.send vic:00e20100 ping", "command.send vic:00e20100 ping", "command.send vic:00e20100 sync", "command.send vic:00e20100 intent"}
	if !slices.Equal(au.lines, want) {
		t.Errorf("audit %q, want %q", au.lines, want)
	}
	// A command that cannot be audited is not given.
	au.err = errors.New("the database is away")
	if code, _ := do(auth.Admin, "POST", all, `{"kind":"ping"}`); code != 500 {
		t.Errorf("without audit: %d", code)
	}
	if list, err := svc.Commands(t.Context(), rex, true, 10); err != nil || len(list) != 2 {
		t.Errorf("%d open commands, %v; want 2", len(list), err)
	}
}

// TestOfflineIsSaidAtOnce (30.5): what would have to begin soon is refused for a robot that is offline; a stop and a hold, and what may wait, are taken.
func TestOfflineIsSaidAtOnce(t *testing.T) {
	offline := errs.Coded(errs.Unavailable, errs.CodeOffline, "it is offline")
	svc := command.New(commandpg.New(pgtest.New(t)), command.Online(func(context.Context, thing.ID) error { return offline }))
	mux := http.NewServeMux()
	var log strings.Builder
	Operations(svc, Config{Audit: new(audit).write, Known: func(context.Context, thing.ID) error { return nil }}).Mount(mux, op.Doors{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for body, want := range map[string]int{
		`{"kind":"robot_do","args":{"line":"robot.go(0.1)"}}`: 503, `{"kind":"robot_poke","args":{"verb":"lift"}}`: 503, `{"kind":"robot_release"}`: 503,
		`{"kind":"intent","args":{"intent":"greeting"}}`: 503, `{"kind":"robot_stop"}`: 200, `{"kind":"robot_hold","args":{"reason":"why"}}`: 200, `{"kind":"ping"}`: 200,
	} {
		r := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: auth.Support, Name: "op@example.org"}), "POST", "/v1/things/vic:00e20100/commands", strings.NewReader(body))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if refused := strings.Contains(w.Body.String(), `"code":"`+errs.CodeOffline+`"`); w.Code != want || refused != (want == 503) {
			t.Errorf("%s: %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	if open, err := svc.Commands(t.Context(), rex, true, 10); err != nil || len(open) != 3 {
		t.Errorf("%d open commands, %v; want 3", len(open), err)
	}
	if log.Len() > 0 {
		t.Errorf("logged as a failure: %s", &log)
	}
}

// TestOwners: an owner commands an own robot, and learns nothing of what was before or of who works here.
func TestOwners(t *testing.T) {
	svc := command.New(commandpg.New(pgtest.New(t)))
	before, err := svc.Send(t.Context(), command.Draft{Thing: rex, Kind: commandwire.Ping, By: command.ByOwner, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	since := before.Created.Add(time.Microsecond)
	staffs, err := svc.Send(t.Context(), command.Draft{Thing: rex, Kind: commandwire.Sync, By: "op@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	mux, au := http.NewServeMux(), &audit{}
	Operations(svc, Config{Audit: au.write, Known: func(context.Context, thing.ID) error { return nil }}).Mount(mux,
		op.Doors{Log: slog.New(slog.DiscardHandler), Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
			return since, account == "ann" && id == rex, nil
		}})
	do := func(account, method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Owner, Account: account, Name: account + "@example.org"})))
		return w.Code, w.Body.String()
	}
	const all = "/v1/things/vic:00e20100/commands"
	for _, c := range []struct {
		name, account, method, path, body string
		code                              int
		want, not                         string
	}{
		{"list", "ann", "GET", all, "", 200, `"by":"operator"`, before.ID},
		{"one", "ann", "GET", all + "/" + staffs.ID, "", 200, `"by":"operator"`, "op@"},
		{"one from before", "ann", "GET", all + "/" + before.ID, "", 404, "no_command", "ping"},
		{"send", "ann", "POST", all, `{"kind":"intent","args":{"intent":"greeting"},"key":"mine"}`, 200, `"by":"owner"`, "ann"},
		{"again", "ann", "POST", all, `{"kind":"intent","args":{"intent":"greeting"},"key":"mine"}`, 200, `"by":"owner"`, "ann"},
		{"a key of before", "ann", "POST", all, `{"kind":"ping","key":"k"}`, 409, "key_used", before.ID},
		{"a key of before, other arguments", "ann", "POST", all, `{"kind":"sync","key":"k"}`, 409, "key_used", before.ID},
		{"another's", "bob", "POST", all, `{"kind":"ping"}`, 404, "thing vic:00e20100", ""},
		{"another's list", "bob", "GET", all, "", 404, "no_thing", "sync"},
		{"another's command", "bob", "GET", all + "/" + staffs.ID, "", 404, "no_thing", "sync"},
		{"an unknown robot's", "ann", "GET", "/v1/things/vic:00e20199/commands", "", 404, "thing vic:00e20199", ""},
	} {
		code, body := do(c.account, c.method, c.path, c.body)
		if code != c.code || !strings.Contains(body, c.want) || c.not != "" && strings.Contains(body, c.not) {
			t.Errorf("%s: %d %s; want %d with %q, without %q", c.name, code, body, c.code, c.want, c.not)
		}
	}
	if open, err := svc.Commands(t.Context(), rex, true, 10); err != nil || len(open) != 3 {
		t.Errorf("%d open commands, %v; want 3", len(open), err)
	}
}

func TestRobotsRequests(t *testing.T) {
	svc := command.New(commandpg.New(pgtest.New(t)))
	h := Handlers(svc)
	pull, result := h["command/pull"], h["command/result"]
	c, err := svc.Send(t.Context(), command.Draft{Thing: rex, Kind: commandwire.Ping, By: "op"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := pull(t.Context(), rex, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := commandwire.ParsePull(b)
	if err != nil || len(p.Commands) != 1 || p.Commands[0].ID != c.ID || p.Commands[0].ExpiresInMS > command.DefaultTTL.Milliseconds() {
		t.Fatalf("pulled %+v, %v", p, err)
	}
	body, err := commandwire.Result{ID: c.ID, Status: commandwire.Done}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":1,"id":"` + c.ID + `","state":"done"}`
	for range 2 {
		if got, err := result(t.Context(), rex, body); err != nil || string(got) != want {
			t.Errorf("answered %s, %v; want %s", got, err, want)
		}
	}
	if _, err := result(t.Context(), "vic:00e20199", body); errs.CodeOf(err) != "no_command" {
		t.Errorf("another robot: %v", err)
	}
	if _, err := result(t.Context(), rex, []byte("rubbish")); errs.KindOf(err) != errs.Invalid {
		t.Errorf("rubbish: %v", err)
	}
	if b, err = pull(t.Context(), rex, nil); err != nil || string(b) != `{"v":1,"commands":[]}` {
		t.Errorf("nothing open: %s, %v", b, err)
	}
}

// FuzzResult: whatever a robot sends, the answer is one a robot reads, or an error with a kind that tells it what to do.
func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"v":1,"id":"0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11","status":"done","detail":"x","finished_ms":1}`))
	h := Handlers(command.New(closer{}))[commandwire.Service+"/"+commandwire.ResultMethod]
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := h(t.Context(), rex, body)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		if _, err := commandwire.ParseAnswer(out); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if !json.Valid(body) {
			t.Fatalf("%q was taken", body)
		}
	})
}

// closer closes everything, without a database.
type closer struct{ command.Store }

func (closer) Close(_ context.Context, id thing.ID, name string, s command.State, r command.Result) (command.Command, error) {
	return command.Command{ID: name, Thing: id, State: s, Result: &r}, nil
}

// TestRepeatedWhileOffline: a sender who lost the answer and asks again, with the same key, hears of the command that was taken, although the robot is
// offline by now; a key that was not used is refused.
func TestRepeatedWhileOffline(t *testing.T) {
	var err error
	svc := command.New(commandpg.New(pgtest.New(t)), command.Online(func(context.Context, thing.ID) error { return err }))
	draft := command.Draft{Thing: rex, Kind: "robot_do", Args: json.RawMessage(`{"line":"robot.go(0.1)"}`), By: "op@example.org", Key: "once", TTL: time.Second}
	first, sent := svc.Send(t.Context(), draft)
	if sent != nil {
		t.Fatal(sent)
	}
	err = errs.Coded(errs.Unavailable, errs.CodeOffline, "it is offline")
	if again, got := svc.Send(t.Context(), draft); got != nil || again.ID != first.ID {
		t.Errorf("again: %+v, %v; want %s", again, got, first.ID)
	}
	for name, change := range map[string]func(*command.Draft){"another key": func(d *command.Draft) { d.Key = "twice" }, "no key": func(d *command.Draft) { d.Key = "" }, "another sender": func(d *command.Draft) { d.By = "eve@example.org" }} {
		d := draft
		change(&d)
		if _, got := svc.Send(t.Context(), d); errs.CodeOf(got) != errs.CodeOffline {
			t.Errorf("%s: %v", name, got)
		}
	}
}
