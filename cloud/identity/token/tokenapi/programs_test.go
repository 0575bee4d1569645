package tokenapi_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
)

const gateway = "192.168.1.7:8443"

// programs is a robot's owner and others at the operations on programs.
type programs struct {
	*desk
	h    *tokentest.House
	at   string // where the robot serves programs
	hook func() // before the address is known
}

func newPrograms(t *testing.T, opts ...tokentest.Option) *programs {
	p := &programs{h: tokentest.New(t, pgtest.New(t)), at: gateway}
	p.desk = newDesk(t, p.h, append(opts, tokentest.WithConfig(func(c *token.Config) {
		c.Gateway = func(context.Context, thing.ID) (string, error) {
			if p.hook != nil {
				p.hook()
			}
			if p.at == "" {
				return "", errs.New(errs.NotFound, "no such thing")
			}
			return p.at, nil
		}
	}))...)
	p.h.Owners.Set(rex, anna)
	return p
}

// posts gives the cloud the robot's certificate, as its agent does without an association.
func (p *programs) posts(t *testing.T) {
	t.Helper()
	ok(t, "post the certificate", p.Service.StoreCertificate(t.Context(), token.Peer{Thing: rex}, tokentest.GatewayCert(t, "Vector-A1B2")))
}

func (p *programs) ask(c auth.Caller, method, path, body string) (int, string) {
	r := httptest.NewRequest(method, "/v1/my/robots/"+string(rex)+"/programs"+path, strings.NewReader(body))
	w := httptest.NewRecorder()
	p.mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), c)))
	return w.Code, w.Body.String()
}

func (p *programs) add(t *testing.T, body string) (f token.ProgramFile) {
	t.Helper()
	code, answer := p.ask(owner, "POST", "", body)
	if code != 200 {
		t.Fatalf("add %s: %d %s", body, code, answer)
	}
	return decode[token.ProgramFile](t, answer)
}

func (p *programs) doc(t *testing.T) string {
	t.Helper()
	key, err := jdocs.NewKey("", rex, jdocs.AppTokens)
	if err != nil {
		t.Fatal(err)
	}
	rev, err := p.h.Docs.Get(t.Context(), key)
	if err != nil && errs.KindOf(err) != errs.NotFound {
		t.Fatal(err)
	}
	return rev.JSON
}

// TestProgramsRefused: only the owner lists, adds and removes programs, and an owner adds none that the robot could not know or keep in check.
// What is refused leaves neither a token nor, before the owner is known, an audit line.
func TestProgramsRefused(t *testing.T) {
	p := newPrograms(t)
	good := `{"name":"wanderer","rights":["look","move"],"days":30}`
	for _, s := range []struct {
		at, body string
		posted   bool
		code     int
		has      string
	}{
		{gateway, good, false, 409, "no_session_certificate"},
		{"", good, true, 409, "no_gateway"},
		{"nonsense", good, true, 409, "no_gateway"},
		{gateway, `{"name":"x","rights":["fly"]}`, true, 400, "right_unknown"},
		{gateway, `{"name":"x","rights":["Look"]}`, true, 400, `right \"Look\": want look, talk, move, camera, settings, hear`},
		{gateway, `{"name":"x","rights":["` + strings.Repeat("z", 5000) + `"]}`, true, 400, "right_unknown"},
		{gateway, `{"name":"x","rights":[]}`, true, 400, "right_missing"},
		{gateway, `{"name":"x"}`, true, 400, "right_missing"},
		{gateway, `{"name":"` + strings.Repeat("n", 10<<10) + `","rights":["look"]}`, true, 400, "name has 10240 characters"},
		{gateway, `{"name":" ","rights":["look"]}`, true, 400, "name_missing"},
		{gateway, `{"name":"a\u0000b","rights":["look"]}`, true, 400, "name_malformed"},
		{gateway, `{"name":"x","rights":["look"],"days":-1}`, true, 400, "days_range"},
		{gateway, `{"name":"x","rights":["look"],"days":3651}`, true, 400, "days_range"},
		{gateway, `{"name":"x","rights":["look"],"expires_at":"never"}`, true, 400, "expires_at"},
		{gateway, `{"name":"x","rights":"look"}`, true, 400, "rights"},
	} {
		p.at = s.at
		if s.posted {
			p.posts(t)
		}
		if code, body := p.ask(owner, "POST", "", s.body); code != s.code || !strings.Contains(body, s.has) {
			t.Errorf("at %q, %.80s: %d %s; want %d with %s", s.at, s.body, code, body, s.code, s.has)
		}
	}
	if p.doc(t) != "" {
		t.Errorf("a refused program is in the document: %s", p.doc(t))
	}
	f := p.add(t, good)
	before := p.doc(t)
	p.audit = nil
	apps, err := p.Service.Apps(t.Context(), rex)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		auth.Caller
		code int
	}{"another owner": {stranger, 404}, "an operator": {support, 403}, "a viewer": {viewer, 403}, "an admin": {auth.Caller{Role: auth.Admin, Account: "boss"}, 403},
		"the robot": {auth.Caller{Role: auth.Thing, Thing: rex}, 403}, "an expired session": {auth.Caller{}, 401}} {
		for _, r := range [][3]string{{"GET", "", ""}, {"POST", "", good}, {"DELETE", "/" + apps[0].ID, ""}} {
			if code, body := p.ask(c.Caller, r[0], r[1], r[2]); code != c.code || strings.Contains(body, "wanderer") {
				t.Errorf("%s as %s: %d %s, want %d", r[0], name, code, body, c.code)
			}
		}
	}
	if code, body := p.ask(owner, "DELETE", "/0000000000000000", ""); code != 404 || !strings.Contains(body, "no_app") {
		t.Errorf("remove none: %d %s", code, body)
	}
	if p.doc(t) != before || !opens(t, p.h, rex, f.Token) || slices.ContainsFunc(p.audit, func(line string) bool { return !strings.HasPrefix(line, anna) }) {
		t.Errorf("others changed something: %s; audited %q", p.doc(t), p.audit)
	}
	p.fail = fmt.Errorf("the audit log is away")
	if code, _ := p.ask(owner, "POST", "", good); code != 500 || p.doc(t) != before {
		t.Errorf("added without an audit line: %d", code)
	}
	if code, _ := p.ask(owner, "DELETE", "/"+apps[0].ID, ""); code != 500 || p.doc(t) != before {
		t.Errorf("removed without an audit line: %d", code)
	}
}

// TestPrograms: the owner adds a program and gets its file, this once; the list says what it may and until when; removed, it no longer opens the
// gateway. An app of the original's is beside it, and stays. Part of VEC-AUTH-06 and 07.
func TestPrograms(t *testing.T) {
	p := newPrograms(t)
	p.posts(t)
	r := p.Robot(t, rex)
	r.Cert = tokentest.GatewayCert(t, "Vector-A1B2")
	ok(t, "associate", r.Associate(t.Context(), p.h.Sessions.Issue(anna)))
	f := p.add(t, `{"name":" wanderer ","rights":["move","look","move"],"days":30}`)
	block, _ := pem.Decode([]byte(f.Certificate))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || f.Thing != rex || f.Address != gateway || f.Name != "Vector-A1B2" || cert.Subject.CommonName != f.Name || !opens(t, p.h, rex, f.Token) {
		t.Errorf("%+v, %v", f, err)
	}
	ever := p.add(t, `{"name":"logger","rights":["look"]}`)
	if strings.Contains(p.doc(t), f.Token) || strings.Contains(strings.Join(p.audit, " "), f.Token) {
		t.Errorf("the token is in the document or in the audit log: %s %q", p.doc(t), p.audit)
	}
	code, body := p.ask(owner, "GET", "", "")
	list := decode[[]token.App](t, body)
	if code != 200 || len(list) != 3 || strings.Contains(body, f.Token) || strings.Contains(body, anna) {
		t.Fatalf("%d %s", code, body)
	}
	app, one, two := list[0], list[1], list[2]
	if app.Rights != nil || !app.Expires.IsZero() || two.Name != "logger" || !two.Expires.IsZero() || !slices.Equal(two.Rights, []string{"look"}) {
		t.Errorf("%+v", list)
	}
	if left := time.Until(one.Expires); one.Name != "wanderer" || one.AppID != "SDK" || !slices.Equal(one.Rights, []string{"look", "move"}) || left < 29*24*time.Hour || left > 31*24*time.Hour {
		t.Errorf("%+v", one)
	}
	if code, body := p.ask(owner, "DELETE", "/"+one.ID, ""); code != 204 {
		t.Errorf("remove: %d %s", code, body)
	}
	if opens(t, p.h, rex, f.Token) || !opens(t, p.h, rex, ever.Token) || !opens(t, p.h, rex, r.ClientToken) {
		t.Error("want the removed program out, and the others in")
	}
	if want := []string{anna + " programs.add vic:00e20100 look move, 30 days", anna + " programs.add vic:00e20100 look, no end", anna + " apps.revoke vic:00e20100 " + one.ID}; !slices.Equal(p.audit, want) {
		t.Errorf("audited %q, want %q", p.audit, want)
	}
}

// TestProgramsUntilFull: with 256 entries there is no place for another, unless one has expired.
func TestProgramsUntilFull(t *testing.T) {
	now := time.Now()
	p := newPrograms(t, tokentest.WithClock(func() time.Time { return now }))
	p.posts(t)
	day := p.add(t, `{"name":"for a day","rights":["look"],"days":1}`)
	for range token.MaxApps - 1 {
		if _, err := p.Service.AddProgram(t.Context(), rex, anna, token.NewProgram{Name: "x", Rights: []string{"look"}}); err != nil {
			t.Fatal(err)
		}
	}
	if code, body := p.ask(owner, "POST", "", `{"name":"one more","rights":["look"]}`); code != 429 || !strings.Contains(body, "too_many_apps") {
		t.Errorf("%d %s", code, body)
	}
	now = now.Add(24 * time.Hour)
	p.add(t, `{"name":"one more","rights":["look"]}`)
	if opens(t, p.h, rex, day.Token) {
		t.Error("the expired entry is still there")
	}
}

// TestProgramsEndWithTheOwnership: also if the robot last acted for another account than the one that ends, or for none, and also if the ownership
// ends while the program is being added. The next owner's stay, though the end is told late.
func TestProgramsEndWithTheOwnership(t *testing.T) {
	p := newPrograms(t)
	p.posts(t)
	for _, last := range []string{"", bert} {
		if last != "" {
			p.h.Owners.Set(rex, bert)
			r := p.Robot(t, rex)
			ok(t, "bert's app", r.Associate(t.Context(), p.h.Sessions.Issue(bert)))
			ok(t, "bert's end", p.Service.RevokeApps(t.Context(), rex))
		}
		p.h.Owners.Set(rex, anna)
		f := p.add(t, `{"name":"wanderer","rights":["look"]}`)
		ok(t, "told while it is hers", p.Service.TenureEnded(t.Context(), rex, anna, "never"))
		if !opens(t, p.h, rex, f.Token) {
			t.Error("the program is out while the robot is its owner's")
		}
		p.h.Owners.Set(rex, bert)
		next, err := p.Service.AddProgram(t.Context(), rex, bert, token.NewProgram{Name: "bert's", Rights: []string{"look"}})
		ok(t, "bert's program", err)
		ok(t, "anna's end, late", p.Service.TenureEnded(t.Context(), rex, anna, "given away"))
		if opens(t, p.h, rex, f.Token) || !opens(t, p.h, rex, next.Token) {
			t.Errorf("after %q: want anna's program out and bert's in", last)
		}
	}
	p.h.Owners.Set(rex, anna)
	before := p.doc(t)
	p.hook = func() { p.h.Owners.Set(rex, bert) }
	if code, body := p.ask(owner, "POST", "", `{"name":"late","rights":["look"]}`); code != 404 || !sameTokens(before, p.doc(t)) {
		t.Errorf("added to a robot that was given away meanwhile: %d %s; %s", code, body, p.doc(t))
	}
}

// sameTokens compares documents without regard to white space.
func sameTokens(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
