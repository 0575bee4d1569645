package tokenapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokenapi"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

type desk struct {
	*tokentest.Process
	mux   *http.ServeMux
	audit []string
	fail  error // of the audit
}

func newDesk(t *testing.T, h *tokentest.House, opts ...tokentest.Option) *desk {
	t.Helper()
	d := &desk{Process: h.Start(t, opts...), mux: http.NewServeMux()}
	tokenapi.Mount(d.mux, d.Service, d.Keys.JWKS)
	tokenapi.Operations(d.Service, tokenapi.Config{
		Known: func(_ context.Context, id thing.ID) error {
			if id != rex && id != bo {
				return errs.Coded(errs.NotFound, "no_thing", "%s is not known", id)
			}
			return nil
		},
		Audit: func(ctx context.Context, action, object, detail string) error {
			d.audit = append(d.audit, strings.Join([]string{auth.CallerFrom(ctx).Account, action, object, detail}, " "))
			return d.fail
		},
	}).Mount(d.mux, op.Doors{Log: h.Log.Logger(), Owns: func(ctx context.Context, account string, id thing.ID) (time.Time, bool, error) {
		of, err := h.Owners.Owner(ctx, id)
		if errs.KindOf(err) == errs.NotFound {
			err = nil
		}
		return time.Time{}, of == account, err
	}})
	return d
}

func (d *desk) do(t *testing.T, c auth.Caller, method, path string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	w := httptest.NewRecorder()
	d.mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), c)))
	return w.Code, w.Body.String()
}

func decode[T any](t *testing.T, body string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

var (
	owner    = auth.Caller{Role: auth.Owner, Account: anna, Name: "anna@example.net"}
	stranger = auth.Caller{Role: auth.Owner, Account: bert, Name: "bert@example.net"}
	support  = auth.Caller{Role: auth.Support, Account: "op", Name: "op@example.net"}
	viewer   = auth.Caller{Role: auth.Viewer, Account: "v", Name: "v@example.net"}
)

func TestOwnersAndOperators(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	d := newDesk(t, h)
	ctx := t.Context()
	r := d.Robot(t, rex)
	r.Cert = tokentest.GatewayCert(t, "Vector-A1B2")
	ok(t, "bert's time", r.Associate(ctx, h.Sessions.Issue(bert)))
	ok(t, "disassociate", r.Disassociate(ctx))
	ok(t, "associate", r.Associate(ctx, h.Sessions.Issue(anna)))
	ok(t, "secondary", r.Secondary(ctx, h.Sessions.Issue(anna), "laptop", "SDK"))
	laptop := r.ClientToken

	type info struct {
		ID      string     `json:"id"`
		User    string     `json:"user_id"`
		How     string     `json:"how"`
		Revoked *time.Time `json:"revoked_at"`
		Reason  string     `json:"reason"`
	}
	code, body := d.do(t, owner, "GET", "/v1/things/vic:00e20100/tokens")
	if list := decode[[]info](t, body); code != 200 || len(list) != 1 || list[0].User != anna || list[0].How != token.StepAssociate || list[0].Revoked != nil {
		t.Errorf("%d %s", code, body)
	}
	code, body = d.do(t, viewer, "GET", "/v1/things/vic:00e20100/tokens")
	if list := decode[[]info](t, body); code != 200 || len(list) != 2 || list[1].Reason != "disassociated by the robot" {
		t.Errorf("%d %s", code, body)
	}
	if strings.Contains(body, r.Token) {
		t.Error("the list has a token itself in it")
	}
	code, body = d.do(t, owner, "GET", "/v1/things/vic:00e20100/apps")
	apps := decode[[]token.App](t, body)
	if code != 200 || len(apps) != 2 || apps[1].Name != "laptop" || apps[1].AppID != "SDK" || time.Since(apps[1].Issued) > time.Minute {
		t.Errorf("%d %s", code, body)
	}
	if strings.Contains(body, entries(t, h, rex)[0]["hash"]) {
		t.Error("the list has hashes in it")
	}

	// Refused callers, and their answers.
	other := decode[map[string]string](t, func() string {
		_, b := d.do(t, support, "GET", "/v1/things/vic:00e20199/apps")
		return b
	}())
	for _, path := range []string{"/tokens", "/apps"} {
		code, body := d.do(t, stranger, "GET", "/v1/things/vic:00e20100"+path)
		if p := decode[map[string]string](t, body); code != 404 || p["code"] != other["code"] {
			t.Errorf("%s of another's robot: %d %s", path, code, body)
		}
	}
	for _, tc := range []struct {
		c      auth.Caller
		method string
		code   int
	}{{stranger, "DELETE", 404}, {viewer, "DELETE", 403}, {auth.Caller{}, "GET", 401}, {auth.Caller{Role: auth.Thing, Thing: rex}, "GET", 403}, {auth.Caller{}, "DELETE", 401}} {
		for _, path := range []string{"/tokens", "/apps"} {
			if code, body := d.do(t, tc.c, tc.method, "/v1/things/vic:00e20100"+path); code != tc.code {
				t.Errorf("%s %s as %q: %d %s, want %d", tc.method, path, tc.c.Role, code, body, tc.code)
			}
		}
	}
	if len(d.audit) != 0 {
		t.Errorf("audit of what was refused: %v", d.audit)
	}

	// One app, then all.
	if code, body := d.do(t, owner, "DELETE", "/v1/things/vic:00e20100/apps/"+apps[1].ID); code != 204 || opens(t, h, rex, laptop) {
		t.Errorf("revoke one app: %d %s", code, body)
	}
	if code, _ := d.do(t, owner, "DELETE", "/v1/things/vic:00e20100/apps/"+apps[1].ID); code != 404 {
		t.Errorf("revoke it again: %d", code)
	}
	if n := len(entries(t, h, rex)); n != 1 {
		t.Errorf("%d apps left, want 1", n)
	}
	if code, _ := d.do(t, support, "DELETE", "/v1/things/vic:00e20100/apps"); code != 204 || len(entries(t, h, rex)) != 0 {
		t.Errorf("revoke all: %d, %v", code, entries(t, h, rex))
	}

	// One token, then all.
	ok(t, "refresh", r.RefreshJWT(ctx))
	id := r.Claims["token_id"].(string)
	if code, body := d.do(t, support, "DELETE", "/v1/things/vic:00e20101/tokens/"+id); code != 404 {
		t.Errorf("under another robot: %d %s", code, body)
	}
	if code, body := d.do(t, owner, "DELETE", "/v1/things/vic:00e20100/tokens/"+id); code != 200 || strings.TrimSpace(body) != `{"revoked":1}` {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := d.do(t, owner, "DELETE", "/v1/things/vic:00e20100/tokens/x"); code != 404 {
		t.Errorf("no id: %d", code)
	}
	if code, body := d.do(t, support, "DELETE", "/v1/things/vic:00e20100/tokens"); code != 200 || strings.TrimSpace(body) != `{"revoked":1}` {
		t.Errorf("%d %s", code, body)
	}
	if err := r.RefreshJWT(ctx); err == nil {
		t.Error("refreshed after all were revoked")
	}
	if want := []string{anna + " apps.revoke vic:00e20100 " + apps[1].ID, anna + " apps.revoke vic:00e20100 " + apps[1].ID, "op apps.revoke vic:00e20100 all",
		"op tokens.revoke vic:00e20101 " + id, anna + " tokens.revoke vic:00e20100 " + id, anna + " tokens.revoke vic:00e20100 x",
		"op tokens.revoke vic:00e20100 all"}; !slices.Equal(d.audit, want) {
		t.Errorf("audit\n%s\nwant\n%s", strings.Join(d.audit, "\n"), strings.Join(want, "\n"))
	}
	d.fail = errs.New(errs.Unavailable, "no audit")
	ok(t, "associate", r.Associate(ctx, h.Sessions.Issue(anna)))
	if code, _ := d.do(t, support, "DELETE", "/v1/things/vic:00e20100/tokens"); code != 503 {
		t.Errorf("without an audit line: %d", code)
	}
	ok(t, "refresh of what could not be audited", r.RefreshJWT(ctx))
	if code, _ := d.do(t, support, "GET", "/v1/things/Rex/tokens"); code != 400 {
		t.Errorf("no thing: %d", code)
	}
}

// TestPublic: what anybody may read.
func TestPublic(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	d := newDesk(t, h)
	nobody := auth.Caller{}
	r := d.Robot(t, rex)
	r.Cert = tokentest.GatewayCert(t, "Vector-A1B2")
	ok(t, "associate", r.Associate(t.Context(), h.Sessions.Issue(anna)))
	for _, esn := range []string{"00e20100", "00E20100"} {
		if code, body := d.do(t, nobody, "GET", "/vic/"+esn); code != 200 || body != string(r.Cert) {
			t.Errorf("%s: %d %q", esn, code, body)
		}
	}
	for path, want := range map[string]int{"/vic/00e20199": 404, "/vic/_": 400, "/vic/" + strings.Repeat("0", 99): 400} {
		if code, body := d.do(t, nobody, "GET", path); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
	h.ByAddr.Stop("192.0.2.1:1234") // httptest's address
	if code, _ := d.do(t, nobody, "GET", "/vic/00e20100"); code != 429 {
		t.Errorf("too fast: %d", code)
	}
	w := httptest.NewRecorder()
	d.mux.ServeHTTP(w, httptest.NewRequest("GET", "/.well-known/jwks.json", nil))
	set := decode[token.JWKS](t, w.Body.String())
	if w.Code != 200 || len(set.Keys) != 1 || set.Keys[0].Type != "EC" || w.Header().Get("Cache-Control") != "public, max-age=300" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	if strings.Contains(w.Body.String(), `"d"`) {
		t.Error("a private half is published")
	}
}

// TestExportAndErase is issue 4, "what must hold" 6, for tokens: nothing names the person afterwards.
func TestExportAndErase(t *testing.T) {
	h := tokentest.New(t, pgtest.New(t))
	p := h.Start(t)
	ctx := t.Context()
	r, other := p.Robot(t, rex), p.Robot(t, bo)
	ok(t, "associate", r.Associate(ctx, h.Sessions.Issue(anna)))
	ok(t, "laptop", r.Secondary(ctx, h.Sessions.Issue(anna), "Anna's laptop", "SDK"))
	ok(t, "bo", other.Associate(ctx, h.Sessions.Issue(anna)))
	ok(t, "bo leaves", other.Disassociate(ctx))
	_, err := r.Reassociate(ctx, h.Sessions.Issue(bert), "x", "y")
	want(t, "bert at anna's", err, codes.InvalidArgument)
	ok(t, "bo is bert's", other.Associate(ctx, h.Sessions.Issue(bert)))
	berts := other.ClientToken

	v, err := p.Service.Export(ctx, anna)
	if err != nil {
		t.Fatal(err)
	}
	out := v.(token.Exported)
	if !slices.Equal(out.Things, []thing.ID{rex, bo}) || len(out.Tokens) != 2 || len(out.Apps) != 2 || out.Apps[1].Name != "Anna's laptop" {
		t.Errorf("%+v", out)
	}
	if b, err := json.Marshal(v); err != nil || strings.Contains(string(b), "hash") {
		t.Errorf("%s, %v", b, err)
	}
	for range 2 {
		ok(t, "erase", p.Service.Erase(ctx, anna))
	}
	want(t, "refresh", r.RefreshJWT(ctx), codes.PermissionDenied)
	if len(entries(t, h, rex)) != 0 || !opens(t, h, bo, berts) {
		t.Error("apps: the person's are there, or another's are not")
	}
	ok(t, "bert's robot", other.RefreshJWT(ctx))
	rows, err := h.Pool.Query(ctx, `SELECT to_jsonb(a)::text FROM token_association a UNION ALL SELECT to_jsonb(t)::text FROM token_token t UNION ALL SELECT to_jsonb(c)::text FROM token_session_certificate c`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		if n++; strings.Contains(text, anna) || strings.Contains(text, "Anna") {
			t.Errorf("left: %s", text)
		}
	}
	if n < 5 {
		t.Errorf("only %d rows searched", n)
	}
	for what, text := range map[string]string{"record": fmt.Sprint(h.Recorder.Steps(rex), h.Recorder.Steps(bo)), "log": h.Log.String()} {
		if strings.Contains(text, anna) || strings.Contains(text, "Anna") || !strings.Contains(text, string(rex)) {
			t.Errorf("the %s names the person, or nothing: %s", what, text)
		}
	}
	if v, err := p.Service.Export(ctx, anna); err != nil || len(v.(token.Exported).Things) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if err := p.Service.Erase(ctx, ""); err == nil {
		t.Error("no account was erased")
	}
}
