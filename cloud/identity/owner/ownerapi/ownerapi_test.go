package ownerapi

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

	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/infra/api/owners"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs/jdocspg"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rex = thing.ID("vic:00e20100")

type limits map[string]time.Duration

func (l limits) Allow(key string) time.Duration { return l[key] }

type fixture struct {
	svc   *owner.Service
	mux   *http.ServeMux
	lines []string // of the audit log
	err   error    // of writing one
	slow  limits
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{mux: http.NewServeMux(), slow: limits{}}
	pool, log := pgtest.New(t), slog.New(slog.DiscardHandler)
	var err error
	store := ownerpg.New(pool)
	audit := func(ctx context.Context, action, object, detail string) error {
		f.lines = append(f.lines, strings.Join([]string{auth.CallerFrom(ctx).Name, action, object, detail}, " "))
		return f.err
	}
	f.svc, err = owner.New(owner.Config{Store: store, Codes: store, Transfers: store, Remains: store, Secret: make([]byte, 32), ByThing: f.slow, ByAddr: f.slow, Docs: jdocspg.New(pool),
		Confirm: func(_ context.Context, _ string, by owner.Proof) error {
			if by.Password != "right" {
				return errs.Coded(errs.Unauthenticated, "wrong_password", "wrong")
			}
			return nil
		},
		Record: func(context.Context, owner.Step) {}, Audit: audit, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	Operations(f.svc, Config{
		Known: func(_ context.Context, id thing.ID) error {
			if id != rex {
				return auth.UnknownThing(id)
			}
			return nil
		},
		Audit: audit}).Mount(f.mux, op.Doors{Log: log})
	return f
}

// do sends a request as who: "ann" is an owner, others are roles.
func (f *fixture) do(t *testing.T, who, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	c := auth.Caller{Role: auth.Role(who), Account: who + "-id", Name: who + "@example.org", Addr: "192.0.2.1"}
	if slices.Contains([]string{"ann", "bob", "eve"}, who) {
		c.Role = auth.Owner
	}
	if who != "" {
		r = r.WithContext(auth.WithCaller(r.Context(), c))
	}
	w := httptest.NewRecorder()
	f.mux.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (f *fixture) ask(t *testing.T, method, body string) (string, error) {
	t.Helper()
	out, err := Handlers(f.svc)["owner/"+method](t.Context(), rex, []byte(body))
	return string(out), err
}

// TestRobotsRequests: what a robot asks over MQTT, read as the robot reads it.
func TestRobotsRequests(t *testing.T) {
	f := setUp(t)
	if got := len(Handlers(f.svc)); got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
	out, err := f.ask(t, owners.CodeMethod, `{"key":"k1"}`)
	if err != nil {
		t.Fatal(err)
	}
	code, err := owners.ParseCode([]byte(out))
	if err != nil || time.Duration(code.ExpiresInMS)*time.Millisecond > owner.CodeLife {
		t.Fatalf("%s: %+v, %v", out, code, err)
	}
	status := func(want owners.Status) {
		t.Helper()
		out, err := f.ask(t, owners.StatusMethod, "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := owners.ParseStatus([]byte(out))
		if (got.CodeExpiresInMS > 0) != (want.CodeExpiresInMS > 0) {
			t.Errorf("%s: code expires in %d ms", out, got.CodeExpiresInMS)
		}
		got.CodeExpiresInMS, want.CodeExpiresInMS = 0, 0
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", out, got, err, want)
		}
	}
	status(owners.Status{DataCollection: true, CodeExpiresInMS: 1, CodeTriesLeft: 5})
	if c, body := f.do(t, "ann", "POST", "/v1/my/robots/claim", `{"code":"`+strings.ToLower(code.Code)+`"}`); c != 200 || !strings.Contains(body, `"thing":"vic:00e20100"`) {
		t.Fatalf("claim: %d %s", c, body)
	}
	status(owners.Status{Owned: true, UserID: "ann-id"})
	if _, err := f.ask(t, owners.CodeMethod, `{"key":"k2"}`); errs.CodeOf(err) != "owned" {
		t.Errorf("code with an owner: %v", err)
	}
	if out, err := f.ask(t, owners.WipedMethod, `{"key":"w1"}`); err != nil || out != "{}" {
		t.Errorf("wiped: %s, %v", out, err)
	}
	status(owners.Status{DataCollection: true})
	for _, method := range []string{owners.CodeMethod, owners.WipedMethod} {
		for _, body := range []string{"", "{}", `{"key":""}`, `{"key":"a","thing":"vic:1"}`, strings.Repeat("x", owners.MaxBody+1)} {
			if out, err := f.ask(t, method, body); errs.KindOf(err) != errs.Invalid || errs.CodeOf(err) != "malformed" {
				t.Errorf("%s %.40q: %s, %v; want malformed", method, body, out, err)
			}
		}
	}
	f.slow[string(rex)] = time.Minute
	if _, err := f.ask(t, owners.CodeMethod, `{"key":"k3"}`); errs.KindOf(err) != errs.Exhausted || errs.RetryOf(err) != time.Minute {
		t.Errorf("codes too often: %v", err)
	}
}

func TestHTTP(t *testing.T) {
	f := setUp(t)
	show := func(key string) string {
		t.Helper()
		code, _, err := f.svc.OfferCode(t.Context(), rex, key)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	const my, ours = "/v1/my/robots", "/v1/things/vic:00e20100/owner"
	offer := ""
	for _, c := range []struct {
		name, who, method, path, body string
		code                          int
		want                          string
	}{
		{"nobody", "", "GET", my, "", 401, "sign in"},
		{"staff own nothing here", "admin", "GET", my, "", 403, "denied"},
		{"a thing", "thing", "POST", my + "/claim", `{"code":"x"}`, 403, "denied"},
		{"none yet", "ann", "GET", my, "", 200, "[]\n"},
		{"no owner yet", "viewer", "GET", ours, "", 200, `{"thing":"vic:00e20100","past":[]}`},
		{"nobody's to take away", "admin", "DELETE", ours, `{"reason":"found in the street"}`, 404, "no_owner"},
		{"no code", "ann", "POST", my + "/claim", `{}`, 400, "code_malformed"},
		{"a code that is none", "ann", "POST", my + "/claim", `{"code":"hello"}`, 400, "code_malformed"},
		{"a wrong code", "ann", "POST", my + "/claim", `{"code":"0000-0000"}`, 404, "code_refused"},
		{"another field", "ann", "POST", my + "/claim", `{"code":"0000-0000","account":"bob-id"}`, 400, "account"},
		{"a thing that is none", "ann", "POST", my + "/claim", `{"code":"0000-0000","thing":"robbie"}`, 400, "thing id"},
		{"too large", "ann", "POST", my + "/claim", `{"code":"` + strings.Repeat("0", 5000) + `"}`, 400, "larger than"},
		{"another robot's code", "ann", "POST", my + "/claim", `{"thing":"vic:00e20199","code":"` + show("k1") + `"}`, 404, "code_refused"},
		{"claim", "ann", "POST", my + "/claim", `{"thing":"vic:00e20100","code":"` + show("k1") + `"}`, 200, `"how":"code"`},
		{"too late", "bob", "POST", my + "/claim", `{"code":"` + show("k1") + `"}`, 404, "code_refused"},
		{"rename", "ann", "PATCH", my + "/vic:00e20100", `{"name":"Rex"}`, 200, `{"thing":"vic:00e20100","name":"Rex"`},
		{"a name that is none", "ann", "PATCH", my + "/vic:00e20100", `{"name":"a\u0007"}`, 400, "name_malformed"},
		{"list", "ann", "GET", my, "", 200, `"name":"Rex"`},
		{"another's list", "bob", "GET", my, "", 200, "[]\n"},
		{"operators see ids", "viewer", "GET", ours, "", 200, `"account":"ann-id"`},
		{"but no names", "viewer", "GET", ours, "", 200, `"how":"code","past":[]`},
		{"an owner is no operator", "ann", "GET", ours, "", 403, "denied"},
		{"rename another's", "bob", "PATCH", my + "/vic:00e20100", `{"name":"Mine"}`, 404, "vic:00e20100"},
		{"release another's", "bob", "DELETE", my + "/vic:00e20100", "", 404, "vic:00e20100"},
		{"release an unknown", "bob", "DELETE", my + "/vic:00e20199", "", 404, "vic:00e20199"},
		{"offer another's", "bob", "POST", my + "/vic:00e20100/transfer", `{"to":"eve@example.org","password":"right"}`, 404, "vic:00e20100"},
		{"offer with a session alone", "ann", "POST", my + "/vic:00e20100/transfer", `{"to":"bob@example.org"}`, 401, "wrong_password"},
		{"offer with a guess", "ann", "POST", my + "/vic:00e20100/transfer", `{"to":"bob@example.org","password":"guess"}`, 401, "wrong_password"},
		{"and nothing is offered", "ann", "GET", "/v1/my/transfers", "", 200, "[]"},
		{"offer without a recipient", "ann", "POST", my + "/vic:00e20100/transfer", `{"to":"","password":"right"}`, 400, "recipient_malformed"},
		{"offer to oneself", "ann", "POST", my + "/vic:00e20100/transfer", `{"to":"ann@example.org","password":"right"}`, 400, "recipient_self"},
		{"offer", "ann", "POST", my + "/vic:00e20100/transfer", `{"to":"BOB@example.org","password":"right"}`, 200, `"mine":true`},
		{"accept another's", "eve", "POST", "/v1/my/transfers/OFFER/accept", "", 404, "no_transfer"},
		{"drop another's", "eve", "DELETE", "/v1/my/transfers/OFFER", "", 404, "no_transfer"},
		{"accept an unknown", "bob", "POST", "/v1/my/transfers/x/accept", "", 404, "no_transfer"},
		{"accept", "bob", "POST", "/v1/my/transfers/OFFER/accept", "", 200, `"how":"transfer"`},
		{"again", "bob", "POST", "/v1/my/transfers/OFFER/accept", "", 200, `"how":"transfer"`},
		{"gone", "ann", "DELETE", my + "/vic:00e20100", "", 404, "vic:00e20100"},
		{"no offers", "bob", "GET", "/v1/my/transfers", "", 200, "[]\n"},
		{"offer back", "bob", "POST", my + "/vic:00e20100/transfer", `{"to":"ann-id","password":"right"}`, 200, `"mine":true`},
		{"seen by the other", "ann", "GET", "/v1/my/transfers", "", 200, `"mine":false`},
		{"declined", "ann", "DELETE", "/v1/my/transfers/OFFER", "", 204, ""},
		{"who may not take away", "release-manager", "DELETE", ours, `{"reason":"x"}`, 403, "denied"},
		{"no reason", "support", "DELETE", ours, `{"reason":" "}`, 400, "reason_missing"},
		{"no body", "support", "DELETE", ours, "", 400, "empty"},
		{"an unknown robot", "support", "DELETE", "/v1/things/vic:00e20199/owner", `{"reason":"x"}`, 404, "no_thing"},
		{"an unknown robot's owner", "support", "GET", "/v1/things/vic:00e20199/owner", "", 404, "no_thing"},
		{"take away", "support", "DELETE", ours, `{"reason":" owner wrote letter 17 "}`, 204, ""},
		{"history", "viewer", "GET", ours, "", 200, `"past":[{"account":"bob-id","how":"transfer"`},
	} {
		code, body := f.do(t, c.who, c.method, strings.ReplaceAll(c.path, "OFFER", offer), c.body)
		if code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s; want %d with %q", c.name, code, body, c.code, c.want)
		}
		if strings.HasSuffix(c.path, "/transfer") && code == 200 {
			var o Transfer
			if err := json.Unmarshal([]byte(body), &o); err != nil {
				t.Fatal(err)
			}
			offer = o.ID
		}
	}
	f.lines = slices.DeleteFunc(f.lines, func(l string) bool { return !strings.Contains(l, " owner.release ") })
	if want := []string{"support@example.org owner.release vic:00e20100 owner wrote letter 17"}; !slices.Equal(f.lines, want) {
		t.Errorf("audit %q, want %q", f.lines, want)
	}

	// A change that cannot be audited is not made.
	if code, body := f.do(t, "ann", "POST", my+"/claim", `{"code":"`+show("k9")+`"}`); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	f.err = errors.New("the database is away")
	if code, _ := f.do(t, "admin", "DELETE", ours, `{"reason":"x"}`); code != 500 {
		t.Errorf("without audit: %d", code)
	}
	f.err = nil
	if code, _ := f.do(t, "ann", "DELETE", my+"/vic:00e20100", ""); code != 204 {
		t.Errorf("it is not ann's any more: %d", code)
	}

	// An address that tries too much.
	f.slow["192.0.2.1"] = time.Minute
	if code, body := f.do(t, "ann", "POST", my+"/claim", `{"code":"0000-0000"}`); code != 429 || !strings.Contains(body, "too_many_attempts") {
		t.Errorf("too often: %d %s", code, body)
	}
}

// TestOwnersLeaveAuditLines (issue 28.11): who claims, names, offers, accepts, declines or lets go of a robot is in the audit log before it is done; what cannot be written there is not done.
func TestOwnersLeaveAuditLines(t *testing.T) {
	f := setUp(t)
	code, _, err := f.svc.OfferCode(t.Context(), rex, "k")
	if err != nil {
		t.Fatal(err)
	}
	var offer Transfer
	offered := func(want int) {
		t.Helper()
		status, body := f.do(t, "ann", "POST", "/v1/my/robots/"+string(rex)+"/transfer", `{"to":"bob-id","password":"right"}`)
		if status != want {
			t.Fatal(status, body)
		}
		if want == 200 {
			if err := json.Unmarshal([]byte(body), &offer); err != nil {
				t.Fatal(err)
			}
		}
	}
	step := func(who, method, path, body string, want int, line string) {
		t.Helper()
		f.lines, f.err = nil, errors.New("the disk is full")
		if status, body := f.do(t, who, method, path, body); status < 500 {
			t.Errorf("%s %s without a line: %d %s", method, path, status, body)
		}
		f.lines, f.err = nil, nil
		if status, body := f.do(t, who, method, path, body); status != want || !slices.Equal(f.lines, []string{line}) {
			t.Errorf("%s %s: %d %s, lines %q; want %d, %q", method, path, status, body, f.lines, want, line)
		}
	}
	robot := "/v1/my/robots/" + string(rex)
	step("ann", "POST", "/v1/my/robots/claim", `{"code":"`+code+`"}`, 200, "ann@example.org owner.claim "+string(rex)+" ")
	step("ann", "PATCH", robot, `{"name":"Rex"}`, 200, "ann@example.org owner.rename "+string(rex)+" ")
	f.err = errors.New("the disk is full")
	offered(500)
	f.err, f.lines = nil, nil
	offered(200)
	if want := []string{"ann@example.org owner.offer " + string(rex) + " "}; !slices.Equal(f.lines, want) {
		t.Errorf("lines %q; want %q", f.lines, want)
	}
	step("bob", "DELETE", "/v1/my/transfers/"+offer.ID, "", 204, "bob@example.org owner.drop "+string(rex)+" ") // the robot, not the offer (30.5)
	offered(200)
	step("bob", "POST", "/v1/my/transfers/"+offer.ID+"/accept", "", 200, "bob@example.org owner.accept "+string(rex)+" ")
	step("bob", "DELETE", robot, "", 204, "bob@example.org owner.let_go "+string(rex)+" ")
}
