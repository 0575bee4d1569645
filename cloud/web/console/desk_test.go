package console

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"html"
	"html/template"
	"log/slog"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/certs"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/token"
	"kennel/cloud/page"
	"kennel/cloud/updates/artifact"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/manifest"
)

const rex = thing.ID("vic:00e20100")

var print = certs.KeyOf([]byte("a key")).Short()

// desk is every service behind the pages; it writes down what it is asked to change.
type desk struct {
	did      []string
	err      error // of every change
	auditErr error
	lines    []audit.Entry // of the audit log, the newest first
	broken   *audit.Break
	bundle   []byte
}

func (d *desk) do(what string, args ...any) error {
	if d.err == nil {
		d.did = append(d.did, strings.TrimSpace(what+" "+fmt.Sprintln(args...)))
	}
	return d.err
}

func (d *desk) audit(_ context.Context, action, object, detail string) error {
	d.did = append(d.did, strings.TrimSpace("audit "+action+" "+object+" "+detail))
	return d.auditErr
}

func (d *desk) auditLog(_ context.Context, before int64, limit int) ([]audit.Entry, error) {
	var out []audit.Entry
	for _, l := range d.lines {
		if (before == 0 || l.ID < before) && len(out) < limit {
			out = append(out, l)
		}
	}
	return out, nil
}

func (d *desk) verify(_ context.Context, from audit.Anchor) (audit.Report, error) {
	to := audit.Anchor{Seq: min(from.Seq+2, 5)} // two lines in one go
	return audit.Report{Checked: int(to.Seq - from.Seq), To: to, Done: to.Seq == 5, Broken: d.broken}, nil
}

func (d *desk) Waiting(context.Context) ([]certs.Waiting, error) {
	key := certs.KeyOf([]byte("a key"))
	return []certs.Waiting{{Thing: rex, Key: key, Addr: evil, First: noon, Last: noon, Times: 3, Reason: evil, Refused: noon},
		{Thing: "vic:00e20101", Key: key, Addr: "192.0.2.1", First: noon, Last: noon, Times: 1, Known: true},
		{Thing: "vic:00e20102", Key: key, Bound: true}, {Thing: "vic:00e20103", Key: key, Revoked: true}}, nil
}
func (d *desk) Approve(_ context.Context, id thing.ID, f string) error { return d.do("approve", id, f) }
func (d *desk) Refuse(_ context.Context, id thing.ID, f, r string) error {
	return d.do("refuse", id, f, r)
}
func (d *desk) Batches(context.Context) ([]certs.Batch, []certs.FactoryRevocation, error) {
	return []certs.Batch{{Name: "vector-2018", Bundle: d.bundle, Species: "vic", Organization: evil, ValidAfter: certs.FactoryValidAfter, SerialFrom: "00e20000", Created: noon},
			{Name: "old", Species: "vic", Organization: "Anki Inc.", Disabled: noon, Reason: evil}},
		[]certs.FactoryRevocation{{CertificateID: "5a17", Reason: evil, At: noon}}, nil
}
func (d *desk) PutBatch(_ context.Context, b certs.Batch) error {
	return d.do("put batch", b.Name, b.Species, b.Organization, b.ValidAfter.Format(time.DateOnly), b.SerialFrom, b.SerialTo, len(b.Bundle))
}
func (d *desk) DisableBatch(_ context.Context, n, r string) error { return d.do("disable batch", n, r) }
func (d *desk) EnableBatch(_ context.Context, n string) error     { return d.do("enable batch", n) }
func (d *desk) RevokeFactoryCertificate(_ context.Context, id, r string) error {
	return d.do("refuse factory certificate", id, r)
}
func (d *desk) Revocations(_ context.Context, before time.Time, limit int) ([]certs.Record, error) {
	var out []certs.Record
	for i := range limit {
		if at := noon.Add(-time.Duration(i) * time.Second); before.IsZero() || at.Before(before) {
			out = append(out, certs.Record{Serial: fmt.Sprint(i), Thing: rex, Revoked: at, Reason: evil})
		}
	}
	return out, nil
}
func (d *desk) Certificates(context.Context, thing.ID) ([]certs.Record, error) {
	return []certs.Record{{Serial: "5a17", Thing: rex, NotBefore: noon, NotAfter: noon.Add(1e6 * time.Hour), Method: "enroll"},
		{Serial: "5a16", Thing: rex, NotAfter: noon, Revoked: noon, Reason: evil}, {Serial: "5a15", Thing: rex, NotAfter: noon, Revoked: noon, Released: true}, {Serial: "5a14", NotAfter: noon}}, nil
}
func (d *desk) Revoke(_ context.Context, id thing.ID, r string) (int, error) {
	return 1, d.do("revoke", id, r)
}
func (d *desk) Release(_ context.Context, id thing.ID, r string) (logging.Secret, error) {
	return "K7SECRET", d.do("release", id, r)
}

func (d *desk) History(context.Context, thing.ID, int) ([]owner.Tenure, error) {
	return []owner.Tenure{{Thing: rex, Account: "acc-1", How: evil, Since: noon, Name: evil}, {Thing: rex, How: "code", Since: noon, Until: &noon, Ended: evil}}, nil
}
func (d *desk) Owner(context.Context, thing.ID) (string, error) { return "acc-1", nil }
func (d *desk) TakeAway(_ context.Context, account string, id thing.ID) error {
	return d.do("take away", account, id)
}

func (d *desk) Tokens(context.Context, thing.ID) ([]token.TokenInfo, error) {
	return []token.TokenInfo{{Token: token.Token{ID: "t-1", Issued: noon, Expires: noon.Add(1e6 * time.Hour), How: evil}, Thing: rex},
		{Token: token.Token{ID: "t-2", Expires: noon}, Revoked: noon, Reason: evil}, {Token: token.Token{ID: "t-3", Expires: noon}}}, nil
}
func (d *desk) RevokeToken(_ context.Context, id thing.ID, name, why string) (int, error) {
	return 1, d.do("revoke token", id, name, why)
}
func (d *desk) RevokeThing(_ context.Context, id thing.ID, why string) (int, error) {
	return 1, d.do("revoke tokens", id, why)
}
func (d *desk) Apps(context.Context, thing.ID) ([]token.App, error) {
	return []token.App{{ID: "app-1", Name: evil, AppID: evil, Issued: noon}}, nil
}
func (d *desk) RevokeApp(_ context.Context, id thing.ID, app string) error {
	return d.do("remove app", id, app)
}
func (d *desk) RevokeApps(_ context.Context, id thing.ID) error { return d.do("remove apps", id) }

// staff is the desk's operators.
type staff struct{ *desk }

func (d staff) List(context.Context) ([]account.Operator, error) {
	return []account.Operator{{Account: account.Account{ID: "op-1", Email: "op@example.org", Role: auth.Admin, Created: noon}, Sessions: 2, LastSeen: noon},
		{Account: account.Account{ID: "op-2", Email: evil, Role: auth.Viewer, MustChange: true}},
		{Account: account.Account{ID: "op-3", Email: "gone@example.org", Role: auth.Support, Disabled: true}}}, nil
}
func (d staff) Add(_ context.Context, by account.By, email string, role auth.Role) (account.Account, logging.Secret, error) {
	return account.Account{}, "one-time-pass", d.do("add operator", by.ID, email, role)
}
func (d staff) SetRole(_ context.Context, by account.By, id account.ID, role auth.Role) error {
	return d.do("role", by.ID, id, role)
}
func (d staff) SetDisabled(_ context.Context, by account.By, id account.ID, disabled bool) error {
	return d.do("stop", by.ID, id, disabled)
}
func (d staff) Reset(_ context.Context, by account.By, id account.ID) (logging.Secret, error) {
	return "another-pass", d.do("reset", by.ID, id)
}
func (d staff) Remove(_ context.Context, by account.By, id account.ID) error {
	return d.do("remove operator", by.ID, id)
}
func (d staff) Sessions(_ context.Context, id account.ID) ([]account.SessionInfo, error) {
	return []account.SessionInfo{{ID: "5e55", Created: noon, LastSeen: noon, Expires: noon.Add(1e6 * time.Hour), Addr: evil}}, nil
}
func (d staff) EndSession(_ context.Context, by account.By, id account.ID, session string) (int, error) {
	return 2, d.do("end sessions", by.ID, id, session)
}

func (d *desk) Person(_ context.Context, id account.ID) (account.Account, []account.Passkey, error) {
	return account.Account{ID: id, Email: "ops@example.org", Role: auth.Admin, Created: noon},
		[]account.Passkey{{ID: []byte("AB"), Account: id, Name: evil, Created: noon, LastUsed: noon}, {ID: []byte("C"), Account: id, Name: "the key ring", Created: noon}}, nil
}
func (d *desk) Remove(_ context.Context, id account.ID, key []byte, _ string) error {
	return d.do("remove passkey", id, string(key))
}

// depot is the desk's releases.
type depot struct{ *desk }

func (d depot) Releases(context.Context, thing.Species) ([]ota.Release, error) {
	return []ota.Release{{Species: thing.Vector, Version: "2.0.1.6076", Notes: evil, Created: noon}, {Species: thing.Pleo, Version: "1.0.0.1", Created: noon}}, nil
}
func (d depot) List(context.Context, thing.Species, ota.Version) ([]artifact.Artifact, error) {
	return []artifact.Artifact{{Species: thing.Vector, Version: "2.0.1.6076", Kind: manifest.Production, Size: 180 << 20}, {Species: thing.Vector, Version: "2.0.1.6076", Kind: manifest.Delta, Base: "1.8.0.6051", Size: 3 << 20, Dev: true},
		{Species: thing.Pleo, Version: "2.0.1.6076", Kind: manifest.Factory}}, nil
}
func (d depot) Channels(context.Context, thing.Species) ([]artifact.Channel, error) {
	return []artifact.Channel{{Species: thing.Vector, Channel: "prod", Version: "2.0.1.6076", Since: noon, By: evil}, {Species: thing.Vector, Channel: "beta", Since: noon, By: "op@example.org"}}, nil
}
func (d depot) SetChannel(_ context.Context, c artifact.Channel) (artifact.Channel, error) {
	return c, d.do("set channel", c.Species, c.Channel, c.Version, c.By)
}
func (d depot) Wishes(context.Context) ([]ota.Wish, error) {
	return []ota.Wish{{Scope: "vic", Release: "2.0.1.6076", By: evil, Since: noon}, {Scope: string(rex), Release: "2.0.1.6076", By: "op@example.org", Since: noon}}, nil
}
func (d depot) AddRelease(_ context.Context, r ota.Release) error {
	return d.do("add release", r.Species, r.Version, r.Notes)
}
func (d depot) SetDesired(_ context.Context, id thing.ID, v ota.Version, by string) (ota.Desired, error) {
	return ota.Desired{}, d.do("want", id, v, by)
}
func (d depot) SetSpeciesDesired(_ context.Context, s thing.Species, v ota.Version, by string) (ota.Desired, error) {
	return ota.Desired{}, d.do("want for all", s, v, by)
}

// TestOperators: a table of all, and a page of each with the sessions.
func TestOperators(t *testing.T) {
	mux, _ := openDesk(t)
	list := do(t, mux, auth.Admin, "GET", "/operators", "").Body.String()
	for _, want := range []string{`<a href="/operators/op-1">op@example.org</a> <span class="note">you</span>`, `data-label="Sessions">2<`, ">one-time password<", ">disabled<", `data-label="Last seen">never<`} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in\n%s", want, list)
		}
	}
	if one := do(t, mux, auth.Admin, "GET", "/operators/op-2", "").Body.String(); !strings.Contains(one, `name="session" value="5e55"`) || !strings.Contains(one, "Remove account") {
		t.Errorf("the page of an operator:\n%s", one)
	}
	if me := do(t, mux, auth.Admin, "GET", "/operators/op-1", "").Body.String(); strings.Contains(me, "Remove account") || !strings.Contains(me, "End all your sessions") {
		t.Errorf("one's own page:\n%s", me)
	}
	if w := do(t, mux, auth.Admin, "GET", "/operators/none", ""); w.Code != 404 {
		t.Errorf("an operator that is not there: %d", w.Code)
	}
}

// TestPickAll: an operator with the right to act on many robots can pick a whole page.
func TestPickAll(t *testing.T) {
	mux, _ := openDesk(t)
	for role, want := range map[auth.Role]bool{auth.Admin: true, auth.Viewer: false} {
		if got := strings.Contains(do(t, mux, role, "GET", "/things", "").Body.String(), `id="pick-all"`); got != want {
			t.Errorf("%s: %v, want %v", role, got, want)
		}
	}
}

// TestCommandsSayTheirArguments: the table shows what a command was given, and its time in words.
func TestCommandsSayTheirArguments(t *testing.T) {
	for args, want := range map[string]string{`{"side":"back"}`: `{"side":"back"}`, "{}": "", "null": "", "": ""} {
		if got := (orderRow{Command: command.Command{Args: []byte(args)}}).Arguments(); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

// TestYoungTimeline: the axis does not begin before there was a robot, and the shortest view advises no shorter one.
func TestYoungTimeline(t *testing.T) {
	c := &console{Config: Config{Fleet: &fleet{}, Log: slog.New(slog.DiscardHandler)}, now: func() time.Time { return noon }}
	for created, from := range map[time.Time]time.Time{noon.Add(-time.Hour): noon.Add(-time.Hour), noon.Add(-48 * time.Hour): noon.Add(-24 * time.Hour), noon.Add(-time.Minute): noon.Add(-24 * time.Hour)} {
		v, err := c.life(t.Context(), url.Values{}, thingHead{Thing: registry.Thing{ID: rex, Created: created}}, registry.Report{})
		if err != nil || !v.From.Equal(from) || v.Shortest {
			t.Errorf("of a robot from %v: from %v, shortest %v, %v", created, v.From, v.Shortest, err)
		}
	}
	if v, err := c.life(t.Context(), url.Values{"zoom": {"hour"}}, thingHead{Thing: registry.Thing{ID: rex}}, registry.Report{}); err != nil || !v.Shortest {
		t.Errorf("an hour is the shortest: %v, %v", v.Shortest, err)
	}
}

// TestReleases: who runs each release, who should, and on whose word.
func TestReleases(t *testing.T) {
	mux, _ := openDesk(t)
	page := html.UnescapeString(do(t, mux, auth.Viewer, "GET", "/releases", "").Body.String())
	for _, want := range []string{">2.0.1.6076<", `data-label="Target of">vic, vic:00e20100<`, `data-label="Target of">–<`, `<a href="/things/vic:00e20100">vic:00e20100</a>`, `">every Vector</a>`, `data-label="By">op@example.org<`, "Also in use", "2.0.1 <",
		`data-label="Archives"><span class="what">production, 180.0 MiB</span><span class="what">delta from 1.8.0.6051, 3.0 MiB, for development robots</span></td>`, `data-label="Archives">none<`,
		`<th scope="row">prod</th><td>Vector</td><td data-label="Offers">2.0.1.6076<`, `data-label="Offers">nothing<`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "<button>Take back") {
		t.Error("a viewer may take wishes back")
	}
	for form, want := range map[string]string{form("scope", "cat", "version", "2.0.1.6076"): "neither a robot nor a species", form("scope", "vic", "version", "2"): "Want four numbers"} {
		if w := do(t, mux, auth.Admin, "POST", "/releases/want", form); w.Code != 400 || !strings.Contains(w.Body.String(), want) && !strings.Contains(w.Body.String(), strings.ToLower(want[:1])+want[1:]) {
			t.Errorf("%s: %d without %q", form, w.Code, want)
		}
	}
}

func authority2018(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: evil}, NotBefore: noon, NotAfter: noon.Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func openDesk(t *testing.T) (*http.ServeMux, *desk) {
	t.Helper()
	d := &desk{bundle: authority2018(t), lines: []audit.Entry{{ID: 7, At: noon, Actor: "acc-7", Name: evil, Role: auth.Admin, Addr: evil, Action: evil, Object: string(rex), Detail: evil}}}
	mux := http.NewServeMux()
	err := Mount(mux, Config{Fleet: &fleet{things: []registry.Thing{nasty()}, desk: d}, Auth: &door{}, Identities: d, Owners: d, Tokens: d, Operators: staff{d}, Webhooks: hooks{d}, Releases: depot{d}, Archives: depot{d},
		AuditLog: d.auditLog, VerifyAudit: d.verify, Audit: d.audit, Passkeys: d, PasskeySites: []string{"https://kennel.example"}, Docs: papers{d}, Commands: outbox{d}, Events: diary{}, Vitals: curves, Look: glass{}, Cohorts: shelf{d}, Bulk: heap{d}, Alerts: bells{d}, AlertDesk: bells{d}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return mux, d
}

func TestAudit(t *testing.T) {
	mux, d := openDesk(t)
	d.lines = nil
	for id := int64(120); id > 0; id-- {
		l := audit.Entry{ID: id, At: noon.Add(time.Duration(id) * time.Second), Actor: "acc-1", Name: "ann@example.org", Role: auth.Admin, Addr: "192.0.2.1", Action: "thing.register", Object: fmt.Sprintf("vic:%08x", id)}
		if id%40 == 0 {
			l.Name, l.Action, l.Detail = "bob@example.org", "thing.revoke", "Stolen"
		}
		d.lines = append(d.lines, l)
	}
	get := func(path string) string {
		w := do(t, mux, auth.Admin, "GET", path, "")
		if w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	rows := func(body string) int { return strings.Count(body, "<code>thing.") }
	first := get("/audit")
	next := regexp.MustCompile(`href="([^"]+)" *>Older|rel="next" href="([^"]+)"|href="([^"]+)">Older`).FindStringSubmatch(first)
	if rows(first) != auditPage || next == nil || !strings.Contains(first, `href="/things/vic:00000078"`) {
		t.Fatalf("%d rows, next %v", rows(first), next)
	}
	if body := get("/audit?before=71"); rows(body) != auditPage || !strings.Contains(body, "vic:00000046") || !strings.Contains(body, `href="/audit">Newest`) {
		t.Errorf("second page: %d rows", rows(body))
	}
	if body := get("/audit?before=21"); rows(body) != 20 || strings.Contains(body, "Older") {
		t.Errorf("last page: %d rows", rows(body))
	}
	for _, tt := range []struct {
		query string
		rows  int
	}{{"who=BOB", 3}, {"who=192.0.2.1&action=revoke", 3}, {"action=revoke&object=vic:00000078", 1}, {"object=stolen", 3}, {"object=nothing", 0}} {
		if body := get("/audit?" + tt.query); rows(body) != tt.rows || tt.rows == 0 && !strings.Contains(body, "No entry matches") {
			t.Errorf("%s: %d rows, want %d", tt.query, rows(body), tt.rows)
		}
	}
	for query, n := range map[string]int{"from=2026-05-07": 0, "until=2026-05-05": 0, "from=2026-05-06&until=2026-05-06": auditPage} {
		if body := get("/audit?" + query); rows(body) != n {
			t.Errorf("%s: %d rows, want %d", query, rows(body), n)
		}
	}
	// A refused action says so on its own line; objects have names; the export has every line.
	d.lines = append([]audit.Entry{{ID: 124, At: noon.Add(time.Hour), Actor: "acc-1", Action: "operator.role", Object: "op-1", On: "op@example.org", Detail: "=admin"},
		{ID: 122, At: noon.Add(time.Hour), Actor: "acc-1", Action: "webhook.add", Object: "x.example", Detail: "ping", Refused: "invalid"}, {ID: 121, At: noon.Add(time.Hour), Actor: "kenneld", Action: "webhook.disabled", Object: "h-1"}}, d.lines...)
	body := get("/audit?from=2026-05-06")
	if strings.Count(body, "webhook.add") != 1 || !strings.Contains(body, ">not done: invalid<") || !strings.Contains(body, ">op@example.org<") || !strings.Contains(body, ">webhook hooks.example.org<") {
		t.Errorf("results and names:\n%s", body)
	}
	if !strings.Contains(body, `href="/audit/export?from=2026-05-06" download`) {
		t.Error("no export of what is shown")
	}
	w := do(t, mux, auth.Admin, "GET", "/audit/export?action=webhook", "")
	if lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "line,at,actor") || !strings.Contains(lines[1], "not done: invalid") || w.Header().Get("Content-Disposition") == "" {
		t.Errorf("export: %d %v\n%s", w.Code, w.Header(), w.Body)
	}
	if w := do(t, mux, auth.Admin, "GET", "/audit/export?action=role", ""); !strings.Contains(w.Body.String(), ",'=admin") {
		t.Errorf("a formula is exported as one: %s", w.Body)
	}
	if last := d.did[len(d.did)-1]; last != "audit audit.export  /audit?action=role" {
		t.Errorf("the export is not in the log: %q", last)
	}
	if w := do(t, mux, auth.Viewer, "GET", "/audit/export", ""); w.Code != 403 {
		t.Errorf("a viewer exports the log: %d", w.Code)
	}
	d.lines = d.lines[3:]
	// A log that is longer than one look: the page says how far it came and continues from there.
	for id := int64(-1); id > -int64(auditLook)-500; id-- {
		d.lines = append(d.lines, audit.Entry{ID: id + auditLook*2, At: noon, Action: "x"})
	}
	slices.SortFunc(d.lines, func(a, b audit.Entry) int { return int(b.ID - a.ID) })
	if body := get("/audit?who=bob"); rows(body) != 0 || !strings.Contains(body, "No match in the 20000 entries") || !strings.Contains(body, "Older") {
		t.Errorf("a long log: %d rows", rows(body))
	}
	for _, bad := range []string{"before=x", "before=-1", "from=x", "until=6.5.2026", "check=1&anchor=x", "who=" + strings.Repeat("x", 500)} {
		if w := do(t, mux, auth.Admin, "GET", "/audit?"+bad, ""); w.Code != 400 {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
	if body := get("/audit?check=1"); !strings.Contains(body, "None of the 5 entries has been changed") || !strings.Contains(body, "<code>5:") {
		t.Error("the chain is not said to be whole")
	}
	if body := get("/audit?check=1&anchor=2"); !strings.Contains(body, "none of the 3 entries since has been changed") {
		t.Error("the chain since an anchor is not said to be whole")
	}
	d.broken = &audit.Break{Seq: 3, Why: "its hash is another"}
	if body := get("/audit?check=1"); !strings.Contains(body, "Entry 3 was changed after it was written: its hash is another.") {
		t.Error("a broken chain is not told")
	}
}

func TestRevocationsPage(t *testing.T) {
	mux, _ := openDesk(t)
	body := do(t, mux, auth.Viewer, "GET", "/certificates", "").Body.String()
	m := regexp.MustCompile(`rel="next" href="(/certificates\?before=[^"#]+)`).FindStringSubmatch(body)
	if m == nil || !strings.Contains(body, "<code>49</code>") || strings.Contains(body, "<code>50</code>") {
		t.Fatalf("next %v", m)
	}
	if body := do(t, mux, auth.Viewer, "GET", html.UnescapeString(m[1]), "").Body.String(); !strings.Contains(body, "<code>50</code>") || strings.Contains(body, "<code>49</code>") {
		t.Error("the second page is not the second")
	}
	if w := do(t, mux, auth.Viewer, "GET", "/certificates?before=x", ""); w.Code != 400 {
		t.Errorf("before=x: %d", w.Code)
	}
	for _, want := range []string{print, "release it on its page first, if this is the genuine robot after a wipe", "certificates of vic:00e20103 were revoked", "from 00e20000", "2100-01-01"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestMountWantsItsParts(t *testing.T) {
	d := &desk{}
	for name, cfg := range map[string]Config{"nothing": {}, "no audit": {Fleet: &fleet{}, Auth: &door{}, Log: slog.New(slog.DiscardHandler), Tokens: d}} {
		if err := Mount(http.NewServeMux(), cfg); err == nil {
			t.Errorf("%s: mounted", name)
		}
	}
	mux := http.NewServeMux()
	if err := Mount(mux, Config{Fleet: &fleet{}, Auth: &door{}, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Error(err)
	}
	if w := do(t, mux, auth.Admin, "GET", "/audit", ""); w.Code != 404 {
		t.Errorf("no audit log: %d", w.Code)
	}
}

// Owners and operators come to one address: its sign-in page is for both, and leads each to their own pages.
func TestOwnersAtTheFrontDoor(t *testing.T) {
	for _, my := range []bool{true, false} {
		mux := http.NewServeMux()
		if err := Mount(mux, Config{Fleet: &fleet{}, Auth: &door{}, Log: slog.New(slog.DiscardHandler), Mine: my}); err != nil {
			t.Fatal(err)
		}
		w := do(t, mux, auth.Owner, "GET", "/", "")
		if got := w.Code == http.StatusSeeOther && w.Header().Get("Location") == "/my"; got != my {
			t.Errorf("with owners' pages %v, an owner at the front door gets %d %v", my, w.Code, w.Header())
		}
		if w := do(t, mux, auth.Owner, "GET", "/things", ""); w.Code != http.StatusForbidden {
			t.Errorf("an owner in the fleet: %d", w.Code)
		}
		if w := do(t, mux, "", "GET", "/login", ""); strings.Contains(w.Body.String(), `href="/account/signup"`) != my {
			t.Errorf("with owners' pages %v: %s", my, w.Body)
		}
	}
}

// TestExtraPages: a page that a slice brings along has the console's frame, a place in the menu, and a form whose problems it shows. Its address is one of
// the access table's, like every other.
func TestExtraPages(t *testing.T) {
	var said string
	mux := http.NewServeMux()
	if err := Mount(mux, Config{Fleet: &fleet{things: []registry.Thing{nasty()}}, Auth: &door{}, Log: slog.New(slog.DiscardHandler), More: []page.Extra{{
		Label: "Echo", Address: "/cohorts/extra", Show: func(context.Context) (template.HTML, error) { return "<p>heard</p>", nil },
	}, {
		Label: "Alarms", Address: "/alerts", Done: "It is said.", Show: func(context.Context) (template.HTML, error) { return "<p>nothing</p>", nil },
	}, {
		Label: "Rules", Address: "/alerts/rule", Done: "It is said.", Show: func(context.Context) (template.HTML, error) { return "<p>rules</p>", nil },
		Do: func(_ context.Context, v url.Values) error {
			if said = v.Get("text"); said == "" {
				return errs.New(errs.Invalid, "say something")
			}
			return nil
		},
	}, {
		Label: "Papers", Address: "/things/{thing}/logs", Tab: func(_ context.Context, r *http.Request) (string, template.HTML, error) {
			return "Papers", template.HTML("<p>papers of " + r.PathValue("thing") + "</p>"), nil
		},
	}, {
		Label: "New rule", Address: "/rollouts/new", Done: "It is made.", Then: "/alerts", Ask: func(_ context.Context, v url.Values) (template.HTML, error) {
			return template.HTML("<p>for " + v.Get("release") + "</p>"), nil
		},
		Do: func(_ context.Context, v url.Values) error {
			if v.Get("cap") == "" {
				return errs.New(errs.Invalid, "say how many")
			}
			return nil
		},
	}, {
		Address: "/things/{thing}/logs/{log}", Tab: func(_ context.Context, r *http.Request) (string, template.HTML, error) {
			return "Paper " + r.PathValue("log"), "<p>one paper</p>", nil
		},
	}}}); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string][]string{
		"/things/vic:00e20100":        {`href="/things/vic:00e20100/logs">Papers</a>`},
		"/things/vic:00e20100/logs":   {`href="/things/vic:00e20100/logs" aria-current="page">Papers</a>`, "<p>papers of vic:00e20100</p>", "<h1>vic:00e20100</h1>", "<title>Papers of vic:00e20100"},
		"/things/vic:00e20100/logs/7": {`href="/things/vic:00e20100/logs" aria-current="page">Papers</a>`, "<p>one paper</p>", "<title>Paper 7", `<a href="/things/vic:00e20100/logs">Papers</a>`, `<span aria-current="page">Paper 7</span>`},
	} {
		w := do(t, mux, auth.Viewer, "GET", address, "")
		for _, s := range want {
			if w.Code != 200 || !strings.Contains(w.Body.String(), s) {
				t.Errorf("%s: %d, want %s in %s", address, w.Code, s, w.Body)
			}
		}
	}
	if w := do(t, mux, auth.Viewer, "GET", "/", ""); strings.Contains(w.Body.String(), "Papers") {
		t.Error("a robot's tab is in the menu")
	}
	if w := do(t, mux, auth.Viewer, "GET", "/things/vic:00e20199/logs", ""); w.Code != 404 {
		t.Errorf("a tab of no robot: %d", w.Code)
	}
	if w := do(t, mux, auth.Owner, "GET", "/things/vic:00e20100/logs", ""); w.Code != 403 {
		t.Errorf("a tab for an owner: %d", w.Code)
	}
	if w := do(t, mux, auth.Viewer, "GET", "/alerts", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "<p>nothing</p>") || !strings.Contains(w.Body.String(), "<h1>Alarms</h1>") || !strings.Contains(w.Body.String(), `href="/alerts"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(t, mux, auth.Viewer, "GET", "/cohorts/extra", ""); w.Code == 200 {
		t.Errorf("a page that is not in the access table: %d", w.Code)
	}
	if w := do(t, mux, auth.Viewer, "POST", "/alerts/rule", "text=hello"); w.Code != 403 || said != "" {
		t.Errorf("a viewer: %d, said %q", w.Code, said)
	}
	if w := do(t, mux, auth.Admin, "POST", "/alerts/rule", "text="); w.Code < 400 || !strings.Contains(w.Body.String(), "Say something.") {
		t.Errorf("nothing: %d %s", w.Code, w.Body)
	}
	if w := do(t, mux, auth.Admin, "GET", "/rollouts/new?release=vic+1", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "<p>for vic 1</p>") || strings.Contains(w.Body.String(), `href="/rollouts/new"`) {
		t.Errorf("a page with parameters: %d %s", w.Code, w.Body)
	}
	if w := do(t, mux, auth.Admin, "POST", "/rollouts/new", "release=vic+2"); w.Code != 400 || !strings.Contains(w.Body.String(), "<p>for vic 2</p>") || !strings.Contains(w.Body.String(), "Say how many.") {
		t.Errorf("a form that is refused keeps what was typed: %d %s", w.Code, w.Body)
	}
	if w := do(t, mux, auth.Admin, "POST", "/rollouts/new", "cap=1"); w.Code != 303 || !strings.HasPrefix(w.Header().Get("Location"), "/alerts?") {
		t.Errorf("a form that leads elsewhere: %d %s", w.Code, w.Header())
	}
	if w := do(t, mux, auth.Admin, "POST", "/alerts/rule", "text=hello"); w.Code != 303 || said != "hello" {
		t.Errorf("hello: %d, said %q", w.Code, said)
	}
}
