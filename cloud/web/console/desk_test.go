package console

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
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
	"kennel/cloud/access"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/webhook"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/token"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/alert"
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

// hooks is the desk's webhooks.
type hooks struct{ *desk }

var hook = webhook.Hook{ID: "h-1", URL: "https://hooks.example.org/secret?x=" + evil, Kinds: []webhook.Kind{webhook.Present, webhook.Revoked}, Filter: "tag:lab", Note: evil, By: "op@example.org", Created: noon,
	FailingSince: &noon, LastError: evil, Failures: 3, Open: 4, Dead: 2}

func (d hooks) Hooks(context.Context) ([]webhook.Hook, error) {
	off, fine := hook, hook
	off.ID, off.Disabled, off.DisabledWhy = "h-2", &noon, evil
	fine.ID, fine.FailingSince, fine.LastOK = "h-3", nil, &noon
	return []webhook.Hook{hook, off, fine}, nil
}
func (d hooks) Hook(_ context.Context, id string) (webhook.Hook, error) {
	if id != hook.ID {
		return webhook.Hook{}, webhook.ErrUnknown
	}
	return hook, nil
}
func (d hooks) Add(_ context.Context, by string, w webhook.Draft, _ string) (webhook.Hook, string, error) {
	return hook, "whsec_new", d.do("add webhook", by, *w.URL, *w.Kinds, *w.Filter, *w.Note)
}
func (d hooks) Change(_ context.Context, id string, w webhook.Draft) (webhook.Hook, error) {
	return hook, d.do("turn webhook off", id, *w.Disabled)
}
func (d hooks) Remove(_ context.Context, id string) error { return d.do("remove webhook", id) }
func (d hooks) NewSecret(_ context.Context, id string) (string, error) {
	return "whsec_other", d.do("new secret", id)
}
func (d hooks) Ping(_ context.Context, id string) (webhook.Delivery, error) {
	return webhook.Delivery{}, d.do("ping", id)
}
func (d hooks) Deliveries(_ context.Context, id string, q webhook.Query) ([]webhook.Delivery, error) {
	if q.State == "odd" {
		return nil, errs.New(errs.Invalid, "state")
	}
	out := []webhook.Delivery{{ID: 60, Hook: id, Kind: webhook.Ping, Created: noon, State: webhook.Done, Attempts: 1, Status: 204, LatencyUS: 1500},
		{ID: 59, Hook: id, Kind: "robot.danced", Thing: rex, Created: noon, State: webhook.Dead, Attempts: 12, Error: evil}, {ID: 58, Hook: id, Kind: webhook.Present, Thing: rex, Created: noon, State: webhook.Open}}
	for len(out) < q.Limit {
		out = append(out, webhook.Delivery{ID: int64(60 - len(out)), Hook: id, Kind: webhook.Present, Thing: rex, Created: noon, State: webhook.Done})
	}
	return out, nil
}
func (d hooks) Replay(_ context.Context, id string, delivery int64) (int, error) {
	return 1, d.do("replay", id, delivery)
}

// TestWebhooks: the list says how each is doing, the page of one what became of each delivery.
func TestWebhooks(t *testing.T) {
	mux, _ := openDesk(t)
	list := do(t, mux, auth.Admin, "GET", "/webhooks", "").Body.String()
	for _, want := range []string{`<a href="/webhooks/h-1">hooks.example.org</a>`, ">Failing<", ">Off<", ">Delivering<", "A robot comes online, A certificate is revoked", `<code>tag:lab</code>`, ">4</td>", ">2</td>"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in\n%s", want, list)
		}
	}
	if strings.Contains(list, "/secret") {
		t.Error("the list shows the whole address")
	}
	one := do(t, mux, auth.Admin, "GET", "/webhooks/h-1?state=dead", "").Body.String()
	for _, want := range []string{"/secret?x=", "A test", "HTTP 204 after 1.5 ms", "robot.danced", "12 attempts", `name="delivery" value="59"`, "waits for its turn", `href="/webhooks/h-1?before=11&amp;state=dead"`,
		`href="/webhooks/h-1?state=dead" aria-current="page"`, "Retry 2 failed"} {
		if !strings.Contains(one, want) {
			t.Errorf("no %q in\n%s", want, one)
		}
	}
	for path, code := range map[string]int{"/webhooks/none": 404, "/webhooks/h-1?before=x": 400, "/webhooks/h-1?state=odd": 400} {
		if w := do(t, mux, auth.Admin, "GET", path, ""); w.Code != code {
			t.Errorf("%s: %d, want %d", path, w.Code, code)
		}
	}
	refused := do(t, mux, auth.Admin, "POST", "/webhooks", form("url", "https://example.org")).Body.String()
	if !strings.Contains(refused, `role="alert"`) || !strings.Contains(refused, `value="https://example.org"`) {
		t.Errorf("without an occasion: %s", refused)
	}
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

func form(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

// orders is every form of the console, with what it must lead to.
var orders = []struct {
	pattern, path, form string
	api                 string // the operation of the public API that it is
	page                string // where it leads back to; "": it shows a secret at once
	did                 []string
	shows               string // a key of dones; or a part of the page that shows the secret
}{
	{"POST /things/{thing}/revoke", "/things/vic:00e20100/revoke", form("reason", "stolen"), "POST /v1/things/{thing}/revoke", "/things/vic:00e20100/access",
		[]string{"audit thing.revoke vic:00e20100 stolen", "revoke vic:00e20100 stolen"}, "thing-revoked"},
	{"POST /things/{thing}/release", "/things/vic:00e20100/release", form("reason", "new board"), "POST /v1/things/{thing}/release", "",
		[]string{"audit thing.release vic:00e20100 new board", "release vic:00e20100 new board"}, "K7SECRET"},
	{"POST /things/{thing}/owner/release", "/things/vic:00e20100/owner/release", form("reason", "sold"), "DELETE /v1/things/{thing}/owner", "/things/vic:00e20100/access",
		[]string{"audit owner.release vic:00e20100 sold", "take away acc-1 vic:00e20100"}, "owner-released"},
	{"POST /things/{thing}/tokens/revoke", "/things/vic:00e20100/tokens/revoke", form("token", "t-1"), "DELETE /v1/things/{thing}/tokens/{token}", "/things/vic:00e20100/access",
		[]string{"audit tokens.revoke vic:00e20100 t-1", "revoke token vic:00e20100 t-1 by an operator, role admin"}, "token-revoked"},
	{"POST /things/{thing}/tokens/revoke", "/things/vic:00e20100/tokens/revoke", "", "DELETE /v1/things/{thing}/tokens", "/things/vic:00e20100/access",
		[]string{"audit tokens.revoke vic:00e20100 all", "revoke tokens vic:00e20100 by an operator, role admin"}, "tokens-revoked"},
	{"POST /things/{thing}/apps/revoke", "/things/vic:00e20100/apps/revoke", form("app", "app-1"), "DELETE /v1/things/{thing}/apps/{app}", "/things/vic:00e20100/access",
		[]string{"audit apps.revoke vic:00e20100 app-1", "remove app vic:00e20100 app-1"}, "app-removed"},
	{"POST /things/{thing}/apps/revoke", "/things/vic:00e20100/apps/revoke", "", "DELETE /v1/things/{thing}/apps", "/things/vic:00e20100/access",
		[]string{"audit apps.revoke vic:00e20100 all", "remove apps vic:00e20100"}, "apps-removed"},
	{"POST /things/{thing}/tags", "/things/vic:00e20100/tags", form("add", "Lab, demo", "remove", "old"), "PATCH /v1/things/{thing}/tags", "/things/vic:00e20100",
		[]string{"audit thing.tag vic:00e20100 +lab +demo -old", "tag vic:00e20100 [lab demo] [old]"}, "tagged"},
	{"POST /things/{thing}/settings", "/things/vic:00e20100/settings", form("doc", "vic.RobotSettings", "field", "master_volume", "value", "1", "exact", "1"), "PATCH /v1/things/{thing}/jdocs/{doc}", "/things/vic:00e20100/settings",
		[]string{"audit setting.set vic:00e20100 vic.RobotSettings master_volume", `set vic:00e20100 vic.RobotSettings {"master_volume":1} op@example.org`}, "setting-set"},
	{"POST /things/{thing}/commands", "/things/vic:00e20100/commands", form("kind", "intent", "args", `{"intent":"intent_x"}`, "ttl", "1h0m0s", "sure", "yes"), "POST /v1/things/{thing}/commands", "/things/vic:00e20100/commands",
		[]string{"audit command.send vic:00e20100 intent", `send vic:00e20100 intent {"intent":"intent_x"} 30s op@example.org`}, "command-sent"},
	{"POST /things/{thing}/stop", "/things/vic:00e20100/stop", "", "POST /v1/things/{thing}/commands", "/things/vic:00e20100/robot",
		[]string{"audit command.send vic:00e20100 robot_stop", `send vic:00e20100 robot_stop {} 30s op@example.org`}, "robot-stopped"},
	{"POST /things/{thing}/poke", "/things/vic:00e20100/poke", form("do", "turn back"), "POST /v1/things/{thing}/commands", "/things/vic:00e20100/robot",
		[]string{"audit command.send vic:00e20100 robot_poke", `send vic:00e20100 robot_poke {"verb":"turn","side":"back"} 30s op@example.org`},
		"robot-poked"},
	{"POST /alerts/rule", "/alerts/rule", form("robots", "3", "percent", "12.5"), "PUT /v1/alerts/rule", "/alerts", []string{"audit alert.rule  robots 3, share 0.125, floor 0 robots and 0, excess 0", "rule 3 0.125 op@example.org"}, "alert-rule"},
	{"POST /alerts/thresholds", "/alerts/thresholds", form("kind", "crash_share", "level", "2.5", "robots", "3", "hours", "24"), "POST /v1/alerts/thresholds", "/alerts",
		[]string{"audit alert.threshold.add  crash_share any, level 0.025, robots 3, hours 24", "threshold {crash_share  0.025 3 24} op@example.org"}, "threshold-added"},
	{"POST /alerts/thresholds/{id}/delete", "/alerts/thresholds/3/delete", "", "DELETE /v1/alerts/thresholds/{id}", "/alerts", []string{"audit alert.threshold.remove 3", "drop threshold 3"}, "threshold-gone"},
	{"POST /alerts/mail", "/alerts/mail", form("to", "b@example.org a@example.org"), "PUT /v1/alerts/mail", "/alerts", []string{"audit alert.mail  2 recipients", "mail to [b@example.org a@example.org]"}, "alert-mail"},
	{"POST /alerts/{id}/ack", "/alerts/2/ack", form("why", "mine"), "PUT /v1/alerts/acks/{id}", "/alerts", []string{"audit alert.ack 2 mine", "ack 2 mine op@example.org"}, "alert-acked"},
	{"POST /alerts/{id}/unack", "/alerts/2/unack", "", "DELETE /v1/alerts/acks/{id}", "/alerts", []string{"audit alert.unack 2", "unack 2"}, "alert-unacked"},
	{"POST /alerts/{id}/silence", "/alerts/2/silence", form("why", "known"), "POST /v1/alerts/silences", "/alerts", []string{"audit alert.silence 2 alert 2, for 4h0m0s: known", "silence {2 240 known} op@example.org"}, "alert-silenced"},
	{"POST /alerts/{id}/silence", "/alerts/2/silence", form("why", "known", "minutes", "1440"), "POST /v1/alerts/silences", "/alerts", []string{"audit alert.silence 2 alert 2, for 24h0m0s: known", "silence {2 1440 known} op@example.org"}, "alert-silenced"},
	{"POST /alerts/silences/{id}/end", "/alerts/silences/5/end", "", "DELETE /v1/alerts/silences/{id}", "/alerts", []string{"audit alert.unsilence 5", "unsilence 5"}, "silence-ended"},
	{"POST /cohorts", "/cohorts", form("name", "late", "filter", "loop:late", "note", "x", "replace", "yes"), "POST /v1/cohorts", "/cohorts", []string{"audit cohort.put late loop:late", "put cohort late loop:late x op@example.org -1"}, "cohort-put"},
	{"POST /cohorts/{cohort}/delete", "/cohorts/beta/delete", "", "DELETE /v1/cohorts/{cohort}", "/cohorts", []string{"audit cohort.delete beta", "delete cohort beta"}, "cohort-gone"},
	{"POST /bulk", "/bulk", form("do", "set", "which", "all", "filter", "tag:lab", "field", "master_volume", "value", "Low", "expect", "1", "sure", "yes"), "POST /v1/bulk", "/bulk/j-1",
		[]string{`audit bulk.start 1 robots set master_volume=1 of vic.RobotSettings; "tag:lab"`, `start {"kind":"set","doc":"vic.RobotSettings","fields":{"master_volume":1}} 0 1 op@example.org`}, "bulk-begun"},
	{"POST /bulk", "/bulk", form("do", "untag", "thing", "vic:00e20100", "tag", "lab", "expect", "1", "sure", "yes"), "POST /v1/bulk", "/bulk/j-1",
		[]string{"audit bulk.start 1 robots remove tag lab; named robots", `start {"kind":"tag","remove":["lab"]} 1 1 op@example.org`}, "bulk-begun"},
	{"POST /bulk/{id}/cancel", "/bulk/j-1/cancel", "", "POST /v1/bulk/{id}/cancel", "/bulk/j-1", []string{"audit bulk.cancel j-1", "cancel j-1"}, "bulk-cancelled"},
	{"POST /certificates/waiting/{thing}/approve", "/certificates/waiting/vic:00e20101/approve", form("fingerprint", print, "compared", "yes"), "POST /v1/waiting/{thing}/approve", "/certificates",
		[]string{"audit thing.approve vic:00e20101 " + print, "approve vic:00e20101 " + print}, "approved"},
	{"POST /certificates/waiting/{thing}/refuse", "/certificates/waiting/vic:00e20101/refuse", form("fingerprint", print, "reason", "not ours"), "POST /v1/waiting/{thing}/refuse", "/certificates",
		[]string{"audit thing.refuse vic:00e20101 " + print + ": not ours", "refuse vic:00e20101 " + print + " not ours"}, "refused"},
	{"POST /certificates/batches", "/certificates/batches", form("name", "b-1", "species", "vic", "organization", "Anki Inc.", "valid_after", "2100-01-01", "serial_from", "1", "serial_to", "2", "bundle", "pem"),
		"PUT /v1/batches/{batch}", "/certificates", []string{"audit batch.put b-1", "put batch b-1 vic Anki Inc. 2100-01-01 1 2 3"}, "batch-put"},
	{"POST /certificates/batches/{batch}/disable", "/certificates/batches/b-1/disable", form("reason", "leaked"), "POST /v1/batches/{batch}/disable", "/certificates",
		[]string{"audit batch.disable b-1 leaked", "disable batch b-1 leaked"}, "batch-disabled"},
	{"POST /certificates/batches/{batch}/enable", "/certificates/batches/b-1/enable", "", "POST /v1/batches/{batch}/enable", "/certificates",
		[]string{"audit batch.enable b-1", "enable batch b-1"}, "batch-enabled"},
	{"POST /certificates/factory", "/certificates/factory", form("certificate_id", "5a:17", "reason", "copied"), "POST /v1/factory-certificates/revoke", "/certificates",
		[]string{"audit factory_certificate.revoke 5a:17 copied", "refuse factory certificate 5a:17 copied"}, "factory-revoked"},
	{"POST /me/passkeys/{id}/remove", "/me/passkeys/QUI/remove", "", "DELETE /v1/me/passkeys/{id}", "/me", []string{"remove passkey op-1 AB"}, "passkey-removed"},
	{"POST /releases", "/releases", form("species", "vic", "version", "2.0.1.6077", "notes", "n"), "POST /v1/releases", "/releases",
		[]string{"audit release.add vic 2.0.1.6077", "add release vic 2.0.1.6077 n"}, "release-added"},
	{"POST /releases/want", "/releases/want", form("scope", "vic", "version", "2.0.1.6076"), "PUT /v1/ota/desired/{species}", "/releases",
		[]string{"audit release.want vic 2.0.1.6076", "want for all vic 2.0.1.6076 op@example.org"}, "release-wanted"},
	{"POST /releases/unwant", "/releases/unwant", form("scope", string(rex)), "PUT /v1/things/{thing}/ota/desired", "/releases",
		[]string{"audit release.want vic:00e20100", "want vic:00e20100  op@example.org"}, "release-unwant"},
	{"POST /releases/channel", "/releases/channel", form("channel", "beta", "release", "vic 2.0.1.6076"), "PUT /v1/channels/{species}/{channel}", "/releases",
		[]string{"audit release.channel vic beta 2.0.1.6076", "set channel vic beta 2.0.1.6076 op@example.org"}, "channel-set"},
	{"POST /webhooks", "/webhooks", form("url", "https://example.org/x", "kind", "thing.present", "events", "battery.*", "filter", "tag:lab", "note", "n"), "POST /v1/webhooks", "",
		[]string{"add webhook op@example.org https://example.org/x [thing.present event:battery.] tag:lab n"}, "whsec_new"},
	{"POST /webhooks/{id}/test", "/webhooks/h-1/test", "", "POST /v1/webhooks/{id}/ping", "/webhooks/h-1", []string{"ping h-1"}, "webhook-tested"},
	{"POST /webhooks/{id}/disable", "/webhooks/h-1/disable", "", "PATCH /v1/webhooks/{id}", "/webhooks/h-1", []string{"turn webhook off h-1 true"}, "webhook-disable"},
	{"POST /webhooks/{id}/enable", "/webhooks/h-1/enable", "", "PATCH /v1/webhooks/{id}", "/webhooks/h-1", []string{"turn webhook off h-1 false"}, "webhook-enable"},
	{"POST /webhooks/{id}/secret", "/webhooks/h-1/secret", "", "POST /v1/webhooks/{id}/secret", "", []string{"new secret h-1"}, "whsec_other"},
	{"POST /webhooks/{id}/replay", "/webhooks/h-1/replay", form("delivery", "59"), "POST /v1/webhooks/{id}/replay", "/webhooks/h-1", []string{"replay h-1 59"}, "webhook-replay"},
	{"POST /webhooks/{id}/remove", "/webhooks/h-1/remove", form("sure", "yes"), "DELETE /v1/webhooks/{id}", "/webhooks", []string{"remove webhook h-1"}, "webhook-removed"},
	{"POST /operators", "/operators", form("email", "new@example.org", "role", "support"), "POST /v1/operators", "",
		[]string{"add operator op-1 new@example.org support"}, "one-time-pass"},
	{"POST /operators/{id}/role", "/operators/op-2/role", form("role", "admin"), "PATCH /v1/operators/{id}", "/operators/op-2", []string{"role op-1 op-2 admin"}, "operator-role"},
	{"POST /operators/{id}/disable", "/operators/op-2/disable", "", "PATCH /v1/operators/{id}", "/operators/op-2", []string{"stop op-1 op-2 true"}, "operator-off"},
	{"POST /operators/{id}/enable", "/operators/op-2/enable", "", "PATCH /v1/operators/{id}", "/operators/op-2", []string{"stop op-1 op-2 false"}, "operator-on"},
	{"POST /operators/{id}/password", "/operators/op-2/password", "", "POST /v1/operators/{id}/password", "", []string{"reset op-1 op-2"}, "another-pass"},
	{"POST /operators/{id}/sessions", "/operators/op-2/sessions", "", "DELETE /v1/operators/{id}/sessions", "/operators/op-2", []string{"end sessions op-1 op-2"}, "operator-out"},
	{"POST /operators/{id}/sessions", "/operators/op-2/sessions", form("session", "5e55"), "DELETE /v1/operators/{id}/sessions/{session}", "/operators/op-2", []string{"end sessions op-1 op-2 5e55"}, "operator-out"},
	{"POST /operators/{id}/remove", "/operators/op-2/remove", form("sure", "yes"), "DELETE /v1/operators/{id}", "/operators", []string{"remove operator op-1 op-2"}, "operator-gone"},
}

var everybody = append([]auth.Role{"", auth.Thing, auth.Owner}, auth.Staff...)

// TestOrders: each form does what the same operation of the API does, with the same line in the audit log, for the same roles.
func TestOrders(t *testing.T) {
	mux, d := openDesk(t)
	seen := map[string]bool{}
	for _, o := range orders {
		seen[o.pattern] = true
		name := o.pattern + " " + o.form
		api := slices.DeleteFunc(slices.Clone(access.HTTP[o.api].Roles), func(r auth.Role) bool { return r == auth.Owner }) // owners have pages of their own
		if page := access.HTTP[o.pattern].Roles; !slices.Equal(page, api) {
			t.Errorf("%s is for %v, %s for %v", name, page, o.api, api)
		}
		for _, role := range everybody {
			d.did = nil
			w := do(t, mux, role, "POST", o.path, o.form, "Sec-Fetch-Site", "same-origin")
			switch may := slices.Contains(access.HTTP[o.pattern].Roles, role); {
			case !may && (len(d.did) > 0 || w.Code != 403 && (role != "" || w.Code != 401)):
				t.Errorf("%s as %q: %d, did %q; want nothing", name, role, w.Code, d.did)
			case may && o.page != "" && (w.Code != 303 || w.Header().Get("Location") != o.page+"?done="+o.shows):
				t.Errorf("%s as %q: %d %v", name, role, w.Code, w.Header())
			case may && role == auth.Admin && !slices.Equal(d.did, o.did):
				t.Errorf("%s: did %q, want %q", name, d.did, o.did)
			case may && len(d.did) != len(o.did):
				t.Errorf("%s as %q: did %q", name, role, d.did)
			}
			if role != auth.Admin {
				continue
			}
			if o.page != "" {
				w = do(t, mux, role, "GET", w.Header().Get("Location"), "")
			} else if w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: a secret may be cached: %v", name, w.Header())
			}
			want := o.shows
			if o.page != "" {
				want = html.EscapeString(dones[o.shows])
			}
			if body := w.Body.String(); w.Code != 200 || want == "" || !strings.Contains(body, want) {
				t.Errorf("%s: %d without %q", name, w.Code, o.shows)
			}
		}
		d.did = nil
		for _, site := range []string{"cross-site", "same-site"} {
			if w := do(t, mux, auth.Admin, "POST", o.path, o.form, "Sec-Fetch-Site", site); w.Code != 403 || len(d.did) > 0 {
				t.Errorf("%s from %s: %d, did %q", name, site, w.Code, d.did)
			}
		}
		// An action that cannot be logged is not done.
		if strings.HasPrefix(o.did[0], "audit ") {
			d.auditErr = errors.New("away")
			if w := do(t, mux, auth.Admin, "POST", o.path, o.form); w.Code != 500 || len(d.did) != 1 {
				t.Errorf("%s without an audit log: %d, did %q", name, w.Code, d.did)
			}
			d.auditErr = nil
		}
		// A refusal is shown on the page, in words.
		d.err = errs.Coded(errs.Conflict, "no", "another <b>person</b> was first")
		w := do(t, mux, auth.Admin, "POST", o.path, o.form)
		if body := w.Body.String(); w.Code != 409 || !strings.Contains(body, `role="alert">Another &lt;b&gt;person&lt;/b&gt; was first.`) {
			t.Errorf("%s refused: %d %s", name, w.Code, body)
		}
		d.err = errors.New("secret detail")
		if w := do(t, mux, auth.Admin, "POST", o.path, o.form); w.Code != 500 || strings.Contains(w.Body.String(), "secret detail") {
			t.Errorf("%s broken: %d", name, w.Code)
		}
		d.err = nil
	}
	// Forms of pages that their slices bring along: TestPage, TestPages, TestSecondFactorOnThePages there.
	others := []string{"POST /originals", "POST /account/second", "POST /rollouts", "POST /rollouts/new", "POST /crashes/group"}
	for pattern, rule := range access.HTTP {
		if rule.Page && len(rule.Roles) > 0 && strings.HasPrefix(pattern, "POST ") && !strings.HasPrefix(pattern, "POST /my") && !slices.Contains(others, pattern) && !seen[pattern] {
			t.Errorf("%s is a form that this test does not send", pattern)
		}
	}
}

// TestProblemsStandBesideTheirForm: what was typed stays, and only the form that was sent says what is wrong with it.
func TestProblemsStandBesideTheirForm(t *testing.T) {
	mux, d := openDesk(t)
	long := strings.Repeat("x", maxReason+1)
	for _, tt := range []struct{ path, form, want, keeps string }{
		{"/things/vic:00e20100/revoke", form("reason", " "), "Enter a reason", ""},
		{"/things/vic:00e20100/revoke", form("reason", long), "Enter a reason", long},
		{"/things/vic:00e20100/release", "", "Enter a reason", ""},
		{"/things/vic:00e20100/owner/release", form("reason", "a\x00b"), "Enter a reason", ""},
		{"/things/vic:00e20100/tags", form("add", "no/tag"), "want 1 to 32", "no/tag"},
		{"/things/vic:00e20100/settings", form("doc", "vic.RobotSettings", "field", "time_zone", "value", "Mars/Olympus"), "time zone", "Mars/Olympus"},
		{"/things/vic:00e20100/settings", form("doc", "vic.RobotSettings", "field", "custom_eye_color.hue", "value", "7"), "0 to 1", `value="7"`},
		{"/things/vic:00e20100/commands", form("kind", "ping", "ttl", "1h"), "robot you mean", ""},
		{"/things/vic:00e20100/commands", form("kind", "intent", "args", `{"intent":1}`, "ttl", "1h", "sure", "yes"), "intent", "{&#34;intent&#34;:1}"},
		{"/things/vic:00e20100/commands", form("kind", "intent", "args", "{", "ttl", "1h", "sure", "yes"), "want JSON", ""},
		{"/alerts/rule", form("robots", "three", "percent", "12"), "whole number", `value="12"`},
		{"/alerts/rule", form("robots", "3", "percent", "120"), "want 0 to 1", `value="120"`},
		{"/alerts/thresholds", form("kind", "event_rate", "of", "no event", "level", "3", "robots", "3", "hours", "1"), "name of an event", `value="no event"`},
		{"/alerts/thresholds", form("kind", "fault_share", "of", "914", "level", "300", "robots", "3", "hours", "1"), "want a share", `<option value="fault_share" selected`},
		{"/alerts/2/silence", form("why", "known", "minutes", "50000"), "want 1 to 43200", ""},
		{"/alerts/mail", form("to", "nobody"), "e-mail address", ">nobody</textarea>"},
		{"/cohorts", form("name", "a b", "filter", "loop:late"), "", "loop:late"},
		{"/cohorts", form("name", "ab", "filter", "loop:odd"), "loop", "loop:odd"},
		{"/bulk", form("do", "tag", "thing", "vic:00e20100", "tag", "lab", "expect", "1"), "robots you mean", `value="lab"`},
		{"/bulk", form("do", "set", "thing", "vic:00e20100", "field", "master_volume", "value", "loudest", "expect", "1", "sure", "yes"), "want one of", `value="loudest"`},
		{"/certificates/waiting/vic:00e20101/approve", form("fingerprint", print), "Compare the fingerprint", ""},
		{"/certificates/waiting/vic:00e20101/refuse", form("fingerprint", print, "reason", ""), "Enter a reason", ""},
		{"/certificates/batches", form("name", "", "organization", "Maker & Sons"), "Give the batch a name", "Maker &amp; Sons"},
		{"/certificates/batches", form("name", "b", "valid_after", "soon"), "2100-01-01", "soon"},
		{"/certificates/batches/vector-2018/disable", "", "Enter a reason", ""},
		{"/certificates/factory", form("reason", "x"), "serial number or its SHA-256", ""},
		{"/operators/op-2/remove", "", "cannot be restored", ""},
		{"/webhooks/h-1/remove", "", "Confirm the removal", ""},
	} {
		w := do(t, mux, auth.Admin, "POST", tt.path, tt.form)
		body := w.Body.String()
		if w.Code != 400 || strings.Count(body, `role="alert"`) != 1 || !regexp.MustCompile(`role="alert">[^<]*`+regexp.QuoteMeta(tt.want)).MatchString(body) || tt.keeps != "" && !strings.Contains(body, tt.keeps) {
			t.Errorf("%s %s: %d, want one alert %q that keeps %q in\n%s", tt.path, tt.form, w.Code, tt.want, tt.keeps, body)
		}
		if strings.Contains(body, "data-live-from") {
			t.Errorf("%s: the answer to a form asks for itself again", tt.path)
		}
	}
	for _, path := range []string{"/things/vic:nobody/revoke", "/things/%3Cscript%3E/revoke"} {
		if w := do(t, mux, auth.Admin, "POST", path, form("reason", "x")); w.Code != 404 && w.Code != 400 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if len(d.did) > 0 {
		t.Errorf("did %q", d.did)
	}
	if body := do(t, mux, auth.Admin, "GET", "/operators?done=<script>", "").Body.String(); strings.Contains(body, `class="banner ok"`) {
		t.Error("an address says what was done")
	}
}

// TestWhatOthersSayStaysText: robots, makers, owners and operators, on every page and in every answer to a form.
func TestWhatOthersSayStaysText(t *testing.T) {
	mux, _ := openDesk(t)
	check := func(what, body string, code int) {
		for _, bad := range []string{"<script>alert", `" onload=`, "' onload=", " style=", "javascript:", "<b>"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s contains %q", what, bad)
			}
		}
		if code != 200 && code != 400 || !strings.Contains(html.UnescapeString(body), evil) {
			t.Errorf("%s: %d does not show what was said", what, code)
		}
	}
	for _, path := range []string{"/", "/things", "/things/vic:00e20100", "/things/vic:00e20100/access", "/things/vic:00e20100/settings", "/things/vic:00e20100/commands", "/things/vic:00e20100/events", "/things/vic:00e20100/robot", "/tail", "/events?since=2026-05-06T00:00:00Z&until=2026-05-06T13:00:00Z", "/events?by=event", "/experiments", "/bulk", "/bulk/j-1", "/cohorts",
		"/things/vic:stranger", "/certificates", "/certificates?before=2026-05-06T11:59:50Z", "/operators", "/operators/op-2", "/releases", "/webhooks", "/webhooks/h-1", "/audit", "/audit?who=script",
		"/audit?who=" + url.QueryEscape(evil)} {
		w := do(t, mux, auth.Admin, "GET", path, "")
		check(path, w.Body.String(), w.Code)
	}
	for _, path := range []string{"/things/vic:00e20100/revoke", "/certificates/batches", "/certificates/factory"} {
		w := do(t, mux, auth.Admin, "POST", path, form("reason", evil+strings.Repeat(" x", 300), "organization", evil, "valid_after", evil, "certificate_id", "x"))
		check("POST "+path, w.Body.String(), w.Code)
	}
}

// TestPagesShowWhatOneMay: no page shows a form that would refuse its viewer.
func TestPagesShowWhatOneMay(t *testing.T) {
	mux, _ := openDesk(t)
	action := regexp.MustCompile(`method="post" action="(/(?:things|certificates|operators|releases|webhooks|bulk|cohorts|alerts)[^"]*)"`)
	for _, role := range auth.Staff {
		for _, path := range []string{"/things/vic:00e20100", "/things/vic:00e20100/access", "/things/vic:00e20100/settings", "/things/vic:00e20100/commands", "/bulk/j-1", "/cohorts", "/alerts", "/certificates", "/operators", "/operators/op-2", "/releases", "/webhooks", "/webhooks/h-1", "/audit"} {
			w := do(t, mux, role, "GET", path, "")
			if want := access.HTTP.Check("GET "+path, role) == nil || strings.HasPrefix(path, "/things") || strings.HasPrefix(path, "/bulk") || strings.HasPrefix(path, "/webhooks") || role == auth.Admin; want != (w.Code == 200) || !want && w.Code != 403 {
				t.Errorf("%s as %s: %d", path, role, w.Code)
			}
			if n := strings.Count(w.Body.String(), `class="primary"`); n > 1 {
				t.Errorf("%s shows %s %d primary buttons", path, role, n)
			}
			if may := access.HTTP.Check("PUT /v1/releases/{species}/archives/{sum}", role) == nil; path == "/releases" && may != strings.Contains(w.Body.String(), `id="upload"`) {
				t.Errorf("%s may upload releases: %v, but is shown otherwise", role, may)
			}
			n := 0
			for _, m := range action.FindAllStringSubmatch(w.Body.String(), -1) {
				_, pattern := mux.Handler(mustRequest(t, "POST", html.UnescapeString(m[1])))
				if err := access.HTTP.Check(pattern, role); err != nil {
					t.Errorf("%s shows %s a form of %q: %v", path, role, pattern, err)
				}
				n++
			}
			if role == auth.Admin && path != "/audit" && n == 0 {
				t.Errorf("%s shows an administrator no form", path)
			}
			if role == auth.Viewer && n > 0 {
				t.Errorf("%s shows a viewer %d forms", path, n)
			}
			nav := strings.Contains(w.Body.String(), `href="/audit"`)
			if w.Code == 200 && nav != (role == auth.Admin) {
				t.Errorf("%s as %s: audit in the navigation: %v", path, role, nav)
			}
		}
	}
}

func mustRequest(t *testing.T, method, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
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

// bells are alerts.
type bells struct{ *desk }

func (bells) Alerts(context.Context) ([]alert.Alert, error) {
	over := noon.Add(-time.Hour)
	return []alert.Alert{{ID: 2, Release: evil, Kind: evil, Code: evil, Robots: 3, Present: 4, Since: noon},
		{ID: 1, Release: "2.0.1", Kind: "fault", Code: "914", Robots: 7, Present: 9, Since: over.Add(-time.Hour), Resolved: &over}}, nil
}

func (bells) Rule(context.Context) (alert.Rule, error) {
	return alert.Rule{Robots: 5, Share: 0.1, By: evil, Changed: noon}, nil
}

func (b bells) SetRule(_ context.Context, w alert.Wanted, by string) (alert.Rule, error) {
	return alert.Rule{}, b.do("rule", w.Robots, w.Share, by)
}

func (b bells) Ack(_ context.Context, id int64, n alert.Note, by string) error {
	return b.do("ack", id, n.Why, by)
}

func (b bells) Unack(_ context.Context, id int64) error { return b.do("unack", id) }

func (b bells) Silence(_ context.Context, h alert.Hush, by string) (alert.Silence, error) {
	return alert.Silence{}, b.do("silence", h, by)
}

func (bells) Silences(context.Context) ([]alert.Silence, error) {
	return []alert.Silence{{ID: 5, Kind: evil, Code: evil, Release: evil, Since: noon, Until: noon.Add(time.Hour), By: evil, Why: evil}}, nil
}

func (b bells) Unsilence(_ context.Context, id int64) error { return b.do("unsilence", id) }

func (bells) Thresholds(context.Context) ([]alert.Threshold, error) {
	return []alert.Threshold{{ID: 3, Limit: alert.Limit{Kind: alert.CrashShare, Level: 0.02, Robots: 3, Hours: 24}, By: evil, Changed: noon}}, nil
}

func (b bells) AddThreshold(_ context.Context, w alert.Limit, by string) (alert.Threshold, error) {
	return alert.Threshold{}, b.do("threshold", w, by)
}

func (b bells) DropThreshold(_ context.Context, id int64) error { return b.do("drop threshold", id) }

func (bells) Mailing(context.Context) (alert.Mailing, error) {
	return alert.Mailing{To: []string{"duty@example.org"}}, nil
}

func (b bells) SetMailing(_ context.Context, m alert.Mailing) (alert.Mailing, error) {
	return m, b.do("mail to", m.To)
}
