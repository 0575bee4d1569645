package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/fleet/webhook"
	"kennel/cloud/fleet/webhook/webhookpg"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// got is one request that the receiver took.
type got struct {
	id, kind, thing, signature string
	attempt                    string
	at                         int64
	body                       []byte
}

// receiver is a receiver's HTTPS server; answer may change how it answers.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	list   []got
	answer func(w http.ResponseWriter, r *http.Request, g got)
	came   chan got
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{came: make(chan got, 1000)}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var b struct{ Kind, Thing string }
		_ = json.Unmarshal(body, &b) // checked where it matters
		at, _ := strconv.ParseInt(req.Header.Get(webhook.TimestampHeader), 10, 64)
		g := got{id: req.Header.Get(webhook.IDHeader), kind: b.Kind, thing: b.Thing, signature: req.Header.Get(webhook.SignatureHeader),
			attempt: req.Header.Get(webhook.AttemptHeader), at: at, body: body}
		r.mu.Lock()
		r.list = append(r.list, g)
		answer := r.answer
		r.mu.Unlock()
		r.came <- g
		if answer != nil {
			answer(w, req, g)
		}
	}))
	r.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) // handshakes that tests break off
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(f func(w http.ResponseWriter, req *http.Request, g got)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func status(code int) func(http.ResponseWriter, *http.Request, got) {
	return func(w http.ResponseWriter, _ *http.Request, _ got) { w.WriteHeader(code) }
}

// took returns and forgets what came, as "kind thing attempt".
func (r *receiver) took() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, g := range r.list {
		out = append(out, g.kind+" "+g.thing+" "+g.attempt)
	}
	r.list = nil
	return out
}

// rig is the real rules on a real database, with a clock of the test's.
type rig struct {
	*webhook.Service
	t       *testing.T
	db      *pgxpool.Pool
	store   *webhookpg.Store
	now     time.Time
	ordered []string
	notices []string
	cohorts map[string]string
}

var key = secretbox.New()

// fleet is the real question to the fleet.
func fleet(db *pgxpool.Pool, cohorts *map[string]string) func(context.Context, filter.Filter, int) ([]thing.ID, error) {
	log := slog.New(slog.DiscardHandler)
	store := registrypg.New(db, log)
	return registry.New(store, store, registry.Sources{Filter: filter.Sources{Cohort: func(_ context.Context, name string) (filter.Filter, error) {
		f, ok := (*cohorts)[name]
		if !ok {
			return filter.Filter{}, errs.New(errs.NotFound, "there is no cohort %q", name)
		}
		return filter.Parse(f)
	}}}, log).Select
}

func newRig(t *testing.T, r *receiver, cfg webhook.SenderConfig) *rig {
	t.Helper()
	g := &rig{t: t, db: pgtest.New(t), now: time.Now().Truncate(time.Microsecond)}
	g.store = webhookpg.New(g.db)
	cfg.Roots = x509.NewCertPool()
	cfg.Roots.AddCert(r.Certificate())
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	sender, err := webhook.NewSender(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	g.Service, err = webhook.New(webhook.Config{Store: g.store, Outbox: g.store, Sealer: key.For("webhook"), Sender: sender, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Select: fleet(g.db, &g.cohorts),
		Order:  func(_ context.Context, hook string) error { g.ordered = append(g.ordered, hook); return nil },
		Notice: func(_ context.Context, h webhook.Hook, why string) { g.notices = append(g.notices, h.ID+" "+why) },
		Now:    func() time.Time { return g.now }})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var loopback = webhook.SenderConfig{Allow: []string{"127.0.0.0/8"}}

func (g *rig) add(url string, kinds []webhook.Kind, filters ...string) (webhook.Hook, string) {
	g.t.Helper()
	which := strings.Join(filters, " ")
	h, secret, err := g.Add(g.t.Context(), "op@example.org", webhook.Draft{URL: &url, Kinds: &kinds, Filter: &which}, "")
	if err != nil {
		g.t.Fatal(err)
	}
	return h, secret
}

func (g *rig) exec(sql string, args ...any) {
	g.t.Helper()
	if _, err := g.db.Exec(g.t.Context(), sql, args...); err != nil {
		g.t.Fatal(err)
	}
}

// presence writes the registry's row for a thing that comes or goes.
func (g *rig) presence(thing string, present bool) {
	g.t.Helper()
	g.exec(`INSERT INTO registry_presence (thing, at, present) VALUES ($1, clock_timestamp(), $2)`, thing, present)
}

// turn hands out events and does every task once.
func (g *rig) turn() {
	g.t.Helper()
	g.ordered = nil
	if err := g.Step(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
	for _, hook := range g.ordered {
		if err := g.Deliver(g.t.Context(), hook); err != nil {
			g.t.Fatal(err)
		}
	}
}

func (g *rig) hook(id string) webhook.Hook {
	g.t.Helper()
	h, err := g.Hook(g.t.Context(), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return h
}

func (g *rig) log(id string, state webhook.State) []webhook.Delivery {
	g.t.Helper()
	out, err := g.Deliveries(g.t.Context(), id, webhook.Query{State: state, Limit: webhook.MaxLimit})
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestEverySource: each source that writes an event in its own transaction is delivered, and only to the webhooks that asked for it.
func TestEverySource(t *testing.T) {
	r := newReceiver(t)
	g := newRig(t, r, loopback)
	g.presence("vic:0", true) // no webhook asked yet
	all, secret := g.add(r.URL+"/all", append(slices.Clone(webhook.Kinds), "event:robot."))
	g.add(r.URL+"/pleos", []webhook.Kind{webhook.Present}, "species:pleo", "-id:pleo:2")
	g.presence("vic:1", true)
	g.presence("vic:1", false)
	g.exec(`INSERT INTO certs_certificate (serial, thing, key, method, not_before, not_after) VALUES ('ab', 'vic:1', sha256('k'), 'enroll', now(), now() + interval '1 day'),
		('cd', 'vic:1', sha256('k'), 'renew', now(), now() + interval '1 day')`)
	g.exec(`UPDATE certs_certificate SET revoked_at = now(), reason = 'stolen' WHERE serial = 'ab'`)
	g.exec(`INSERT INTO jdocs_doc (thing, name, doc_version, fmt_version, json_doc, changed_by) VALUES ('vic:1', 'vic.RobotSettings', 1, 1, '{"master_volume":4,"eye_color":1}', 'vic:1'),
		('vic:1', 'vic.AppTokens', 1, 1, '{}', 'vic:1')`)
	g.exec(`UPDATE jdocs_doc SET doc_version = 2, json_doc = '{"master_volume":3,"default_location":"Home"}', changed_by = 'op@example.org' WHERE name = 'vic.RobotSettings'`)
	g.exec(`INSERT INTO command_outbox (thing, kind, args, by_whom, expires) VALUES ('vic:1', 'ping', '{}', 'op', now())`)
	g.exec(`UPDATE command_outbox SET sends = 1, state = 'sent'`)
	g.exec(`UPDATE command_outbox SET state = 'done', closed = now(), status = 'ok'`)
	g.exec(`INSERT INTO registry_thing (thing) VALUES ('pleo:1'), ('pleo:2'), ('vic:1')`)
	g.exec(`UPDATE registry_facet SET fit = 3, codes = '{fault/914,loop}' WHERE thing = 'vic:1'`)
	for range 3 { // one that comes and goes is raised once, and is gone when it has been away for a while
		g.exec(`UPDATE registry_facet SET codes = '{loop}' WHERE thing = 'vic:1'`)
		g.exec(`UPDATE registry_facet SET codes = '{body/914,fault/914,loop}' WHERE thing = 'vic:1'`) // under two kinds it is one problem
	}
	g.exec(`UPDATE registry_facet SET codes = '{loop}' WHERE thing = 'vic:1'`)
	g.turn()
	g.exec(`UPDATE webhook_problem SET gone = gone - interval '1 minute'`)
	g.turn()
	g.exec(`UPDATE registry_facet SET fit = 4, codes = '{loop,novel}' WHERE thing = 'vic:1'`) // by a newer rule: no news
	g.exec(`CREATE TABLE das_event_all PARTITION OF das_event DEFAULT`)
	g.exec(`INSERT INTO das_event (received, grp, thing, boot_id, seq, ts, uptime_ms, unsynced, level, source, robot_version, profile_id, feature_type, feature_run_id, event, s1, i1)
		SELECT '2026-11-22T10:00:00Z', 7, 'vic:1', 'b', seq, 5, 5, false, 'error', 'robotd', '', '', '', '', event, 'Home', 914
		FROM (VALUES (1, 'robot.fault_code'), (2, 'battery.low')) AS e (seq, event)`)
	g.exec(`INSERT INTO das_group (id, received, events, raw_key) OVERRIDING SYSTEM VALUE VALUES (7, '2026-11-22T10:00:00Z', 2, '')`)
	g.exec(`INSERT INTO alert_found (release, kind, code, robots, present, since) VALUES ('2.0', 'fault', '914', 5, 9, now())`)
	g.exec(`UPDATE alert_found SET robots = 6`)
	g.exec(`UPDATE alert_found SET resolved = now()`)
	g.presence("pleo:1", true)
	g.presence("pleo:2", true)
	g.turn()

	r.mu.Lock()
	list := slices.Clone(r.list)
	r.mu.Unlock()
	data := map[string][]string{}
	for _, e := range list {
		var b webhook.Body
		if err := json.Unmarshal(e.body, &b); err != nil {
			t.Fatal(err)
		}
		data[e.thing] = append(data[e.thing], e.kind+" "+string(b.Data))
		mac := hmac.New(sha256.New, must(base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))))
		fmt.Fprintf(mac, "%s.%d.%s", e.id, e.at, e.body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); e.signature != want && e.thing == "vic:1" {
			t.Errorf("signature %q, want %q", e.signature, want)
		}
		if b.ID != e.id || e.at != g.now.Unix() || b.At.IsZero() {
			t.Errorf("%+v", b)
		}
	}
	of := data["vic:1"]
	for i, want := range []string{`thing.present {}`, `thing.absent {}`, `thing.activated {"serial":"ab","not_after":`, `certificate.revoked {"serial":"ab","reason":"stolen"}`,
		`setting.changed {"doc":"vic.RobotSettings","version":1,"by":"robot","keys":["eye_color","master_volume"]}`,
		`setting.changed {"doc":"vic.RobotSettings","version":2,"by":"operator","keys":["default_location","eye_color","master_volume"]}`,
		`command.finished {"id":`, `problem.raised {"kind":"fault","code":"914"}`, `fault.raised {"code":"914"}`, `problem.raised {"kind":"loop","code":""}`,
		`problem.gone {"kind":"fault","code":"914"}`, `event:robot.fault_code {"event":"robot.fault_code","level":"error","source":"robotd","boot_id":"b","seq":1,"ts":5,"i1":914,`} {
		if i >= len(of) || !strings.HasPrefix(strings.ReplaceAll(of[i], `" : `, `":`), want) {
			t.Errorf("event %d of vic:1: want %s in %q", i, want, of)
		}
	}
	if all := fmt.Sprint(data); strings.Contains(all, "Home") || strings.Contains(all, "battery.low") || strings.Contains(all, "novel") {
		t.Errorf("a text of an event, an event that nobody wants or a problem by a newer rule was sent: %s", all)
	}
	if a := data[""]; len(a) != 2 || !strings.HasPrefix(a[0], "alert.firing ") || !strings.HasPrefix(a[1], "alert.resolved ") {
		t.Errorf("alerts %q", a)
	}
	if len(of) != 12 || len(data["pleo:1"]) != 2 || len(data["pleo:2"]) != 1 || len(data["vic:0"]) != 0 {
		t.Errorf("%d events of vic:1, %q of pleo:1, %q of vic:0; want 12, one for each hook, none", len(of), data["pleo:1"], data["vic:0"])
	}
	if h := g.hook(all.ID); h.Open != 0 || h.LastOK == nil {
		t.Errorf("%+v", h)
	}
	if l := g.log(all.ID, webhook.Done); len(l) != 16 || l[0].Status != 200 || l[0].LatencyUS <= 0 {
		t.Errorf("%d in the log: %+v", len(l), l)
	}
	var left int
	if err := g.db.QueryRow(t.Context(), `SELECT count(*) FROM webhook_event`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d events left, %v", left, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestOrderBackOffDeadReplay: a delivery that is refused holds up its own thing and no other, is tried again later and later, is dead at last,
// and can be replayed with the same id.
func TestOrderBackOffDeadReplay(t *testing.T) {
	r := newReceiver(t)
	g := newRig(t, r, loopback)
	h, _ := g.add(r.URL, []webhook.Kind{webhook.Present, webhook.Absent})
	r.answers(func(w http.ResponseWriter, _ *http.Request, e got) {
		if e.thing == "vic:1" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	g.presence("vic:1", true)
	g.presence("vic:1", false)
	g.presence("vic:2", true)
	g.presence("vic:2", false)
	g.turn()
	list := r.took()
	slices.Sort(list)
	same(t, "first turn", list, []string{"thing.absent vic:2 1", "thing.present vic:1 1", "thing.present vic:2 1"})
	g.turn()
	same(t, "too early", r.took(), nil)
	var pauses []time.Duration
	for n := 2; n <= webhook.MaxAttempts; n++ {
		next := g.log(h.ID, webhook.Open)[1].Next // the first of the two; the newest is shown first
		pauses = append(pauses, next.Sub(g.now))
		g.now = next
		g.turn()
		if n < webhook.MaxAttempts {
			same(t, "attempt", r.took(), []string{"thing.present vic:1 " + strconv.Itoa(n)})
		}
	}
	// The last attempt made it dead, and let the one behind it through in the same task.
	same(t, "last attempt", r.took(), []string{"thing.present vic:1 12", "thing.absent vic:1 1"})
	if pauses[0] < 7*time.Second || pauses[0] > 10*time.Second || pauses[len(pauses)-1] < 4*time.Hour || pauses[len(pauses)-1] > 6*time.Hour {
		t.Errorf("pauses %v", pauses)
	}
	dead := g.log(h.ID, webhook.Dead)
	if len(dead) != 1 || dead[0].Status != 400 || dead[0].Error != "answered 400 Bad Request" || dead[0].Attempts != webhook.MaxAttempts {
		t.Fatalf("%+v", dead)
	}
	if h := g.hook(h.ID); h.Disabled != nil || h.Failures != 0 || h.Dead != 1 || h.Open != 1 {
		t.Errorf("the endpoint is blamed: %+v", h)
	}

	r.answers(nil)
	if n, err := g.Replay(t.Context(), h.ID, 0); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := g.Replay(t.Context(), h.ID, dead[0].ID); !errors.Is(err, webhook.ErrUnknown) {
		t.Errorf("the same again: %v", err)
	}
	g.now = g.now.Add(7 * time.Hour)
	g.turn()
	same(t, "replay", r.took(), []string{"thing.absent vic:1 2", "thing.present vic:1 1"})
	done := g.log(h.ID, webhook.Done)
	if done[0].Event != dead[0].Event {
		t.Errorf("event %s replayed as %s", dead[0].Event, done[0].Event)
	}
	if n, err := g.Replay(t.Context(), h.ID, done[0].ID); n != 1 || err != nil { // also what arrived
		t.Error(n, err)
	}
	g.now = g.now.Add(webhook.KeepDone + time.Hour)
	if err := g.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(g.log(h.ID, webhook.Done)); n != 0 {
		t.Errorf("%d old ones kept", n)
	}
}

// TestEndpointDown: one delivery at a time asks an endpoint that does not answer; after days the hook is off, and operators are told once.
func TestEndpointDown(t *testing.T) {
	r := newReceiver(t)
	g := newRig(t, r, loopback)
	h, _ := g.add(r.URL, []webhook.Kind{webhook.Present})
	r.answers(status(http.StatusServiceUnavailable))
	for i := range 40 {
		g.presence(fmt.Sprintf("vic:%d", i), true)
	}
	g.turn()
	if n := len(r.took()); n == 0 || n > 8 {
		t.Errorf("%d attempts in the first turn, want at most as many as go side by side", n)
	}
	began, probes := g.now, 0
	for g.hook(h.ID).Disabled == nil {
		if g.now = g.now.Add(time.Hour); g.now.Sub(began) > 4*24*time.Hour {
			t.Fatal("still on")
		}
		g.turn()
		n := len(r.took())
		if probes += n; n > 1 {
			t.Fatalf("%d attempts at once at an endpoint that is down", n)
		}
	}
	if d := g.now.Sub(began); d < webhook.DisableAfter || d > webhook.DisableAfter+2*time.Hour || probes < 60 {
		t.Errorf("off after %v and %d probes", d, probes)
	}
	if len(g.notices) != 1 || !strings.Contains(g.notices[0], "503 Service Unavailable") {
		t.Errorf("notices %q", g.notices)
	}
	g.presence("vic:77", true) // no webhook is there to be told
	g.turn()
	same(t, "off", r.took(), nil)
	r.answers(nil)
	if d, err := g.Ping(t.Context(), h.ID); err != nil || d.State != webhook.Done || d.Status != 200 {
		t.Errorf("ping %+v, %v", d, err)
	}
	same(t, "ping", r.took(), []string{"ping  1"})
	on := false
	if got, err := g.Change(t.Context(), h.ID, webhook.Draft{Disabled: &on}); err != nil || got.Disabled != nil || got.FailingSince != nil {
		t.Fatal(got, err)
	}
	g.now = g.now.Add(7 * time.Hour)
	waited := g.hook(h.ID).Open
	g.turn()
	if n := len(r.took()); n != waited || n < 20 || g.hook(h.ID).Open != 0 {
		t.Errorf("%d of %d arrive once it is back", n, waited)
	}

	g.cohorts = map[string]string{"lab": "id:vic:1,vic:2"}
	g.exec(`INSERT INTO registry_thing (thing) VALUES ('vic:1'), ('vic:3')`)
	lab, _ := g.add(r.URL, []webhook.Kind{webhook.Absent}, "cohort:lab")
	g.presence("vic:1", false)
	g.presence("vic:3", false)
	g.turn()
	same(t, "a cohort", r.took(), []string{"thing.absent vic:1 1"})
	delete(g.cohorts, "lab")
	g.presence("vic:1", false)
	g.turn()
	if got := g.hook(lab.ID); got.Disabled == nil || !strings.Contains(got.DisabledWhy, `no cohort "lab"`) || len(g.notices) != 2 {
		t.Errorf("a hook of a cohort that is gone: %+v", got)
	}

	gone, _ := g.add(r.URL, []webhook.Kind{webhook.Absent})
	r.answers(status(http.StatusGone))
	g.presence("vic:1", false)
	g.turn()
	if got := g.hook(gone.ID); got.Disabled == nil || !strings.Contains(got.DisabledWhy, "410") || len(g.notices) != 3 {
		t.Errorf("after 410 Gone: %+v", got)
	}
}

// TestHostileEndpoints: redirects, addresses of our own, answers that never end.
func TestHostileEndpoints(t *testing.T) {
	r := newReceiver(t)
	cfg := loopback
	cfg.Timeout = 300 * time.Millisecond
	g := newRig(t, r, cfg)
	h, _ := g.add(r.URL, []webhook.Kind{webhook.Present})
	release := make(chan struct{})
	defer close(release)
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request, got)
		want   string
	}{
		"redirect": {func(w http.ResponseWriter, _ *http.Request, _ got) {
			w.Header().Set("Location", r.URL+"/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "redirect"},
		"silence": {func(_ http.ResponseWriter, req *http.Request, _ got) {
			select {
			case <-req.Context().Done():
			case <-release:
			}
			panic(http.ErrAbortHandler) // no answer, not even when the other end has hung up
		}, "no answer within 300ms"},
		"huge header": {func(w http.ResponseWriter, _ *http.Request, _ got) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "header"},
	} {
		r.answers(tc.answer)
		d, err := g.Ping(t.Context(), h.ID)
		if err != nil || d.State != webhook.Dead || !strings.Contains(strings.ToLower(d.Error), tc.want) {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if n := len(r.took()); n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	r.answers(func(w http.ResponseWriter, _ *http.Request, _ got) {
		chunk := bytes.Repeat([]byte("x"), 1<<16)
		for range 1000 { // until the sender hangs up
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		t.Error("64 MB of an answer were read")
	})
	if d, err := g.Ping(t.Context(), h.ID); err != nil || d.Status != 200 {
		t.Errorf("endless answer: %+v, %v", d, err)
	}

	// Without the setting, no name and no spelling leads to this machine: nothing arrives.
	r.answers(nil)
	closed := newRig(t, r, webhook.SenderConfig{})
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r.took()
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "169.254.169.254", "10.0.0.1", "[fd00::1]", "[64:ff9b::7f00:1]", "100.64.0.1"} {
		url, kinds := "https://"+host+":"+port+"/", []webhook.Kind{webhook.Present}
		if _, _, err := closed.Add(t.Context(), "op", webhook.Draft{URL: &url, Kinds: &kinds}, ""); errs.CodeOf(err) != "address_not_allowed" {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"localhost", "localhost.", "2130706433", "0x7f.1", "127.1"} { // names, or what some resolvers take for addresses
		h, _ := closed.add("https://"+host+":"+port+"/", []webhook.Kind{webhook.Present})
		if d, err := closed.Ping(t.Context(), h.ID); err != nil || d.State != webhook.Dead || d.Status != 0 {
			t.Errorf("%s: %+v, %v", host, d, err)
		} else if host == "localhost" && !strings.Contains(d.Error, "webhooks.allow") {
			t.Errorf("%s: %q", host, d.Error)
		}
	}
	same(t, "what came", r.took(), nil)

	// A certificate that does not hold is a reason to stop.
	stranger := newReceiver(t)
	stranger.TLS.Certificates = nil
	other, err := webhook.NewSender(webhook.SenderConfig{Allow: loopback.Allow, Roots: x509.NewCertPool()})
	if err != nil {
		t.Fatal(err)
	}
	svc, err := webhook.New(webhook.Config{Store: g.store, Outbox: g.store, Sealer: key.For("webhook"), Sender: other, Select: fleet(g.db, &g.cohorts), Order: func(context.Context, string) error { return nil }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := svc.Ping(t.Context(), h.ID); err != nil || d.State != webhook.Dead || !strings.Contains(d.Error, "certificate") {
		t.Errorf("untrusted: %+v, %v", d, err)
	}
}

func FuzzSettingData(f *testing.F) {
	f.Add([]byte(`{"doc":"vic.RobotSettings","version":2,"by":"owner","old":"{\"a\":1}","new":"{\"a\":2,\"b\":[\"secret\"]}"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var out struct{ Keys []string }
		if err := json.Unmarshal(webhook.SettingData(raw), &out); err != nil || out.Keys == nil {
			t.Errorf("%q makes %v, %v", raw, out, err)
		}
	})
}

func FuzzSecret(f *testing.F) {
	f.Add("whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("s"), 24)))
	f.Fuzz(func(t *testing.T, s string) {
		if key, err := webhook.ParseSecret(s); err == nil && (len(key) < 24 || len(key) > 64) {
			t.Errorf("%q is a key of %d bytes", s, len(key))
		}
	})
}
