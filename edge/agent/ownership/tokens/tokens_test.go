package tokens

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/faultcode"
	"kennel/infra/api/tokenwire"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
)

const me = thing.ID("vic:00e20100")

// house is the cloud's side: its rules as the wire shows them, and the document.
type house struct {
	mu       sync.Mutex
	now      func() time.Time
	asked    []string
	at       []time.Time
	sessions map[string]string // session -> user, good once
	owner    string
	jwt      string // the only one that is good
	n        int
	life     time.Duration
	fail     error // answers everything but documents
	hook     func(method string)
	entries  []Client
	version  uint64
	docErr   error
	reads    int
	edit     func(b *tokenwire.Bundle)
}

func newHouse() *house {
	return &house{now: time.Now, sessions: map[string]string{}, life: 24 * time.Hour}
}

func token(user string, id thing.ID, n int, issued time.Time, life time.Duration) string {
	claims, _ := json.Marshal(map[string]any{"token_id": fmt.Sprintf("t%d", n), "token_type": "user+robot", "requestor_id": string(id), "user_id": user,
		"iat": issued.UTC().Format(time.RFC3339), "expires": issued.Add(life).UTC().Format(time.RFC3339), "permissions": nil})
	return "eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
}

func (h *house) sign() string {
	h.n++
	h.jwt = token(h.owner, me, h.n, h.now(), h.life)
	return h.jwt
}

// client makes a client token and its entry.
func (h *house) client(name, app string) string {
	h.n++
	t, salt := sha256.Sum256(fmt.Append(nil, "token", h.n)), sha256.Sum256(fmt.Append(nil, "salt", h.n))
	s := sha256.Sum256(append(slices.Clone(t[:16]), salt[:16]...))
	h.entries = append(h.entries, Client{
		AppID: app, ClientName: name, Hash: base64.StdEncoding.EncodeToString(append(s[:], salt[:16]...)),
		IssuedAt: "2026-11-21T14:00:00Z",
	})
	h.version++
	return base64.StdEncoding.EncodeToString(t[:16])
}

func (h *house) burn(session string) (string, error) {
	user, ok := h.sessions[session]
	if !ok {
		return "", errs.New(errs.Unauthenticated, "not accepted; the operator's doctor knows why")
	}
	delete(h.sessions, session)
	return user, nil
}

func (h *house) Do(_ context.Context, service, method string, body []byte) ([]byte, error) {
	if h.hook != nil {
		h.hook(method)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked, h.at = append(h.asked, method), append(h.at, h.now())
	if h.fail != nil {
		return nil, h.fail
	}
	if service != tokenwire.Service {
		return nil, errors.New("wrong service " + service)
	}
	denied := errs.New(errs.Denied, "access token is not accepted")
	var b tokenwire.Bundle
	switch method {
	case tokenwire.AssociateMethod:
		r, err := tokenwire.Parse[tokenwire.Associate](body)
		if err != nil {
			return nil, err
		}
		user, err := h.burn(r.UserSession)
		if err != nil {
			return nil, err
		}
		if h.owner != "" && h.owner != user {
			return nil, errs.New(errs.Invalid, "the robot belongs to another account")
		}
		if r.SessionCertificate != "CERT" {
			return nil, errs.New(errs.Corrupt, "no certificate")
		}
		h.owner = user
		b = tokenwire.Bundle{ClientToken: h.client(r.ClientName, r.AppID), Token: h.sign()}
	case tokenwire.SecondaryMethod:
		r, err := tokenwire.Parse[tokenwire.Secondary](body)
		if err != nil {
			return nil, err
		}
		if r.AccessToken != h.jwt {
			return nil, denied // before the session is burned
		}
		user, err := h.burn(r.UserSession)
		if err != nil {
			return nil, err
		}
		if user != h.owner {
			return nil, errs.New(errs.Invalid, "the robot belongs to another account")
		}
		b = tokenwire.Bundle{Token: h.jwt, ClientToken: h.client(r.ClientName, r.AppID)}
	case tokenwire.RefreshMethod:
		r, err := tokenwire.Parse[tokenwire.Refresh](body)
		if err != nil {
			return nil, err
		}
		if r.AccessToken != h.jwt {
			return nil, denied
		}
		b.Token = h.sign()
	default:
		return nil, errors.New("wrong method " + method)
	}
	if h.edit != nil {
		h.edit(&b)
	}
	return json.Marshal(b)
}

func (h *house) Read(_ context.Context, items []jdocs.Item) ([]jdocs.ReadResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	switch {
	case h.docErr != nil:
		return nil, h.docErr
	case h.version == 0:
		return []jdocs.ReadResult{{Status: jdocs.NotFound}}, nil
	case items[0].MyVersion == h.version:
		return []jdocs.ReadResult{{Status: jdocs.Unchanged, Doc: jdocs.Doc{Version: h.version}}}, nil
	}
	b, err := json.Marshal(map[string]any{"client_tokens": h.entries})
	return []jdocs.ReadResult{{Status: jdocs.Changed, Doc: jdocs.Doc{Version: h.version, FmtVersion: 1, JSON: string(b)}}}, err
}

func (h *house) count(method string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, m := range h.asked {
		if m == method {
			n++
		}
	}
	return n
}

type plate struct{ posted int }

func (*plate) PEM() []byte         { return []byte("CERT") }
func (p *plate) NotePosted() error { p.posted++; return nil }

type robot struct {
	*Agent
	root   *os.Root
	users  []string
	faults []faultcode.Code
	doubts int
	plate  plate
	log    bytes.Buffer
}

func wakeUp(t testing.TB, h *house, root *os.Root) *robot {
	t.Helper()
	r := &robot{root: root}
	var err error
	r.Agent, err = New(Config{Root: root, Thing: me, Ask: h, Docs: h, Plate: &r.plate, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		OnUser: func(u string) { r.users = append(r.users, u) }, Doubt: func() { r.doubts++ }, Fault: func(c faultcode.Code, _ error) { r.faults = append(r.faults, c) }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func openRoot(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// TestExchange is VEC-AUTH-05 to 07, VEC-TOK-05, part of VEC-AUTH-08, part of 10: first owner, second app, other people, used sessions, restarts, revocation.
func TestExchange(t *testing.T) {
	h, root := newHouse(), openRoot(t)
	r := wakeUp(t, h, root)
	for s, u := range map[string]string{"s1": "alice", "s2": "alice", "s3": "bob", "s4": "alice"} {
		h.sessions[s] = u
	}
	long := strings.Repeat("ä", 80)
	app, err := r.Exchange(t.Context(), "s1", long, "companion-app")
	if err != nil {
		t.Fatal(err)
	}
	if r.User() != "alice" || !slices.Equal(r.users, []string{"", "alice"}) || r.plate.posted != 1 {
		t.Errorf("owner %q, heard %q, posted %d", r.User(), r.users, r.plate.posted)
	}
	if !r.Authorized(t.Context(), app.Reveal()) {
		t.Error("the new client is not let in")
	}
	if c := r.Clients()[0]; c.ClientName != strings.Repeat("ä", 64) || c.AppID != "companion-app" || c.IsPrimary {
		t.Errorf("entry %+v", c)
	}
	if _, err := r.Exchange(t.Context(), "s1", "again", "SDK"); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("used session: %v", err)
	}
	sdk, err := r.Exchange(t.Context(), "s2", "desk", "SDK")
	if err != nil {
		t.Fatal(err)
	}
	if h.count("associate") != 1 || h.count("secondary") != 2 {
		t.Errorf("asked %q", h.asked)
	}
	if _, err := r.Exchange(t.Context(), "s3", "bob's", "SDK"); errs.KindOf(err) != errs.Invalid {
		t.Errorf("another account: %v", err)
	}
	// A new login never invalidates another app's token.
	for _, c := range []logging.Secret{app, sdk} {
		if !r.Authorized(t.Context(), c.Reveal()) {
			t.Error("a client was put out by another's login")
		}
	}
	// Nothing but hashes is on disk.
	b, err := root.ReadFile(HashesFile)
	if err != nil || bytes.Contains(b, []byte(app.Reveal())) || bytes.Contains(b, []byte(sdk.Reveal())) {
		t.Errorf("hashes file: %s, %v", b, err)
	}
	// Without the cloud: known clients get access after a restart, new ones do not (VEC-AUTH-11).
	h.fail, h.docErr = errs.New(errs.Unavailable, "away"), errs.New(errs.Unavailable, "away")
	r = wakeUp(t, h, root)
	if r.User() != "alice" || !r.Authorized(t.Context(), app.Reveal()) || !r.Authorized(t.Context(), sdk.Reveal()) {
		t.Error("offline after a restart: the known do not come in")
	}
	if _, err := r.Exchange(t.Context(), "s4", "x", "SDK"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("offline: %v", err)
	}
	if got, _ := r.JWT(); got.Reveal() != h.jwt {
		t.Error("the access token was not kept")
	}
	if strings.Contains(r.log.String()+fmt.Sprintf("%v %+v %#v", r.State(), app, sdk), app.Reveal()) {
		t.Error("a token is in log or state")
	}
}

// An access token that ended costs its robot nothing: it is refreshed, or the same session makes a new association.
func TestExchangeWithEndedToken(t *testing.T) {
	h := newHouse()
	r := wakeUp(t, h, openRoot(t))
	h.sessions["s1"], h.sessions["s2"] = "alice", "alice"
	if _, err := r.Exchange(t.Context(), "s1", "a", "SDK"); err != nil {
		t.Fatal(err)
	}
	h.jwt = "another's" // the cloud ended the association
	if _, err := r.Exchange(t.Context(), "s2", "b", "SDK"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"associate", "secondary", "refresh", "associate"}; !slices.Equal(h.asked, want) {
		t.Errorf("asked %q, want %q", h.asked, want)
	}
	if got, ok := r.JWT(); !ok || got.Reveal() != h.jwt {
		t.Error("the new token is not in use")
	}
}

// Answers that are not whole change nothing.
func TestAnswersThatAreNotWhole(t *testing.T) {
	for name, edit := range map[string]func(*tokenwire.Bundle){
		"no client token":       func(b *tokenwire.Bundle) { b.ClientToken = "" },
		"a short client token":  func(b *tokenwire.Bundle) { b.ClientToken = "AAAA" },
		"no access token":       func(b *tokenwire.Bundle) { b.Token = "" },
		"another robot's token": func(b *tokenwire.Bundle) { b.Token = token("alice", "vic:00e20999", 1, time.Now(), time.Hour) },
		"no token at all":       func(b *tokenwire.Bundle) { b.Token = "a.b.c" },
		"half an STS":           func(b *tokenwire.Bundle) { b.STS = &tokenwire.STS{AccessKeyID: "x"} },
	} {
		h := newHouse()
		h.edit = edit
		r := wakeUp(t, h, openRoot(t))
		h.sessions["s1"] = "alice"
		if _, err := r.Exchange(t.Context(), "s1", "a", "SDK"); errs.KindOf(err) != errs.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok := r.JWT(); ok || len(r.Clients()) != 0 {
			t.Errorf("%s: something was kept", name)
		}
		if st := r.State(); st.Code != "corrupt" || st.Problem == "" {
			t.Errorf("%s: state %+v", name, st)
		}
	}
}

// The stored token decides at start: an empty user deletes it, a damaged or foreign one is fault 851 (VEC-TOK-08), and the robot keeps running.
func TestStoreAtStart(t *testing.T) {
	now := time.Now()
	claims := func(s string) string { return "h." + base64.RawURLEncoding.EncodeToString([]byte(s)) + ".s" }
	for _, tc := range []struct {
		name, content string
		kept          bool
		fault         bool
	}{
		{"good", token("alice", me, 1, now, time.Hour), true, false},
		{"expired", token("alice", me, 1, now.Add(-400*24*time.Hour), time.Hour), true, false}, // the cloud decides
		{"with a line end", token("alice", me, 1, now, time.Hour) + "\n", true, false},
		{"empty user", token("", me, 1, now, time.Hour), false, false},
		{"another robot's", token("alice", "vic:00e20999", 1, now, time.Hour), false, true},
		{"empty file", "", false, true},
		{"text", "hello", false, true},
		{"numbers in place of strings", claims(`{"token_id":"a","token_type":"b","requestor_id":"vic:00e20100","user_id":"u","iat":1,"expires":2}`), false, true},
		{"no user claim", claims(`{"token_id":"a","token_type":"b","requestor_id":"vic:00e20100","iat":"2026-01-01T00:00:00Z","expires":"2026-01-01T00:00:00Z"}`), false, true},
		{"too long", strings.Repeat("a", maxJWT) + ".b.c", false, true},
	} {
		root := openRoot(t)
		if err := writeJWT(root, JWTFile, logging.Secret(tc.content)); err != nil {
			t.Fatal(err)
		}
		r := wakeUp(t, newHouse(), root)
		_, ok := r.JWT()
		_, err := root.Stat(JWTFile)
		if ok != tc.kept || (err == nil) != tc.kept || slices.Contains(r.faults, faultcode.CloudTokenStore) != tc.fault {
			t.Errorf("%s: kept %v, file %v, faults %v", tc.name, ok, err, r.faults)
		}
		if fi, err := root.Stat(JWTFile); err == nil && fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", tc.name, fi.Mode())
		}
	}
	// A damaged list of hashes is a fault too; the cloud has another.
	h, root := newHouse(), openRoot(t)
	c := h.client("a", "SDK")
	if err := writeHashes(root, hashes{}); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(HashesFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := wakeUp(t, h, root)
	if !slices.Contains(r.faults, faultcode.CloudTokenStore) || !r.Authorized(t.Context(), c) {
		t.Errorf("faults %v", r.faults)
	}
	// A disk that cannot be used is an error of New.
	root = openRoot(t)
	if err := root.MkdirAll(JWTFile, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Root: root, Thing: me, Ask: h, Docs: h, Plate: new(plate), Log: slog.New(slog.DiscardHandler)}); err == nil ||
		!strings.Contains(err.Error(), "fault 851") {
		t.Errorf("a folder in place of the token: %v", err)
	}
}

// at runs the agent on a bubble's clock.
func at(t *testing.T, f func(t *testing.T, h *house, r *robot)) {
	t.Helper()
	root := openRoot(t)
	synctest.Test(t, func(t *testing.T) {
		h := newHouse()
		r := wakeUp(t, h, root)
		h.sessions["s1"] = "alice"
		if _, err := r.Exchange(t.Context(), "s1", "a", "SDK"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = r.Run(ctx); close(done) }()
		synctest.Wait()
		f(t, h, r)
		cancel()
		<-done
	})
}

// A document that was read before a client came in does not put it out.
func TestReadingOvertaken(t *testing.T) {
	h := newHouse()
	r := wakeUp(t, h, openRoot(t))
	h.sessions["s1"] = "alice"
	stale, err := h.Read(t.Context(), []jdocs.Item{{Name: jdocs.AppTokens}})
	if err != nil {
		t.Fatal(err)
	}
	before := r.added
	c, err := r.Exchange(t.Context(), "s1", "a", "SDK")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.take(stale[0], before); !again || err != nil {
		t.Errorf("a stale answer was taken: %v, %v", again, err)
	}
	if !r.Authorized(t.Context(), c.Reveal()) {
		t.Error("the new client was put out")
	}
}

// The genuine form, made by other means (peer facts, section 2).
func TestHashForm(t *testing.T) {
	tok, salt := []byte("0123456789abcdef"), []byte("fedcba9876543210")
	s := sha256.Sum256([]byte("0123456789abcdeffedcba9876543210"))
	doc := fmt.Sprintf(`{"client_tokens":[{"hash":"broken"},7,{"hash":%q,"client_name":"n","app_id":"SDK","issued_at":"x","new_field":1}],"other":true}`,
		base64.StdEncoding.EncodeToString(append(s[:], salt...)))
	h, err := parseHashes([]byte(doc))
	if err != nil || len(h.Clients) != 1 {
		t.Fatalf("%+v, %v", h.Clients, err)
	}
	in := func(bearer string) bool { _, ok := h.client(bearer); return ok }
	if !in(base64.StdEncoding.EncodeToString(tok)) || in(string(tok)) || in(base64.StdEncoding.EncodeToString(salt)) {
		t.Error("wrong verdict")
	}
	b, err := h.encode()
	if err != nil || !strings.Contains(string(b), `"is_primary":false`) {
		t.Errorf("%s, %v", b, err)
	}
}

func FuzzParseJWT(f *testing.F) {
	f.Add(token("alice", me, 1, time.Unix(0, 0), time.Hour))
	f.Add("a.e30.b")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseJWT(logging.Secret(s))
		if err == nil && (a.Thing == "" || a.Expires.IsZero() && a.Issued.IsZero() && a.TokenID == "" && len(s) == 0) {
			t.Fatalf("accepted %+v", a)
		}
	})
}

func FuzzParseHashes(f *testing.F) {
	f.Add([]byte(`{"client_tokens":[{"hash":"AAAA"}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHashes(b)
		if err != nil {
			return
		}
		out, err := h.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseHashes(out)
		if err != nil || !slices.Equal(again.digests, h.digests) {
			t.Fatalf("%d clients came back as %d, %v", len(h.digests), len(again.digests), err)
		}
	})
}

func FuzzParseBundle(f *testing.F) {
	f.Add([]byte(`{"token":"a","sts_token":{"access_key_id":"x"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := ParseBundle(b)
		if err == nil && out.STS != nil && out.STS.SecretAccessKey == "" {
			t.Fatal("half an STS accepted")
		}
	})
}

func BenchmarkAuthorized(b *testing.B) {
	h := newHouse()
	for range 256 {
		h.client("a", "SDK")
	}
	doc, _ := json.Marshal(map[string]any{"client_tokens": h.entries})
	hs, err := parseHashes(doc)
	if err != nil {
		b.Fatal(err)
	}
	bearer := base64.StdEncoding.EncodeToString(make([]byte, 16))
	for b.Loop() {
		hs.client(bearer)
	}
}
