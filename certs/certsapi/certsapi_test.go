package certsapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certsapi"
	"kennel/certs/certsclient"
	"kennel/certs/certspg"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const vic = thing.ID("vic:00e20100")

type steps struct {
	mu  sync.Mutex
	all []certs.Step
}

func (s *steps) Record(_ context.Context, st certs.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, st)
}

// api is the whole: HTTP, rules, Postgres. caller is who the authenticator would have found.
type api struct {
	*httptest.Server
	caller  auth.Caller
	audit   []string
	noAudit error
	owns    func(account string, id thing.ID) (bool, error)
	steps   steps
	ca      *ca.Authority
}

func newAPI(t testing.TB, store *certspg.Store) *api {
	t.Helper()
	authority, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &api{ca: authority}
	svc, err := certs.New(certs.Config{Store: store, Batches: store, Requests: store, Issuer: authority, Recorder: &a.steps,
		ByAddr: ratelimit.NewByAddr(time.Minute, 50), ByThing: ratelimit.New(time.Minute, 50)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	cfg := certsapi.Config{Root: authority.Root, MQTT: "ssl://cloud.example:8883", Log: slog.New(slog.DiscardHandler),
		Audit: func(ctx context.Context, action, object, _ string) error {
			if a.noAudit != nil {
				return a.noAudit
			}
			a.audit = append(a.audit, auth.CallerFrom(ctx).Subject()+" "+action+" "+object)
			return nil
		},
		Owns: func(_ context.Context, account string, id thing.ID) (bool, error) {
			if a.owns == nil {
				return false, nil
			}
			return a.owns(account, id)
		}}
	certsapi.Operations(svc, cfg).Mount(mux, op.Doors{Log: cfg.Log})
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), a.caller)))
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *api) post(t testing.TB, path, body string) (int, string, kithttp.Problem) {
	t.Helper()
	resp, err := http.Post(a.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var raw json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&raw); err != nil {
		t.Fatalf("%s: answer is not JSON: %v", path, err)
	}
	var p kithttp.Problem
	_ = json.Unmarshal(raw, &p) // a good answer has none of its fields
	return resp.StatusCode, string(raw), p
}

func request(t testing.TB, id thing.ID) (string, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(id)}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), key
}

func TestRegisterEnrollRenew(t *testing.T) {
	a := newAPI(t, certspg.New(pgtest.New(t)))
	a.caller = auth.Caller{Role: auth.Admin, Name: "ada@example.com"}
	code, body, _ := a.post(t, "/v1/things", `{"thing":"vic:00e20100"}`)
	var reg certsapi.Registration
	if err := json.Unmarshal([]byte(body), &reg); code != http.StatusOK || err != nil || reg.Thing != vic || reg.Secret == "" {
		t.Fatalf("register: %d %s", code, body)
	}
	if len(a.audit) != 1 || a.audit[0] != "ada@example.com thing.register vic:00e20100" {
		t.Errorf("audit %q", a.audit)
	}
	a.caller = auth.Caller{} // a robot has no account
	csr, _ := request(t, vic)
	client := certsclient.Client{BaseURL: a.URL, HTTP: a.Client()}
	first, err := client.Enroll(t.Context(), certsclient.Enroll{Thing: string(vic), Secret: reg.Secret, CSR: csr})
	if err != nil {
		t.Fatal(err)
	}
	if first.MQTT != "ssl://cloud.example:8883" || first.Root != string(a.ca.Root()) || time.Until(first.NotAfter) < 29*24*time.Hour {
		t.Errorf("answer %+v", first)
	}
	if _, err := client.Renew(t.Context(), certsclient.Renew{Certificate: first.Certificate, CSR: csr}); err != nil {
		t.Error(err)
	}
	other, _ := request(t, vic)
	_, err = client.Enroll(t.Context(), certsclient.Enroll{Thing: string(vic), Secret: reg.Secret, CSR: other})
	if errs.KindOf(err) != errs.Denied || errs.CodeOf(err) != "key_mismatch" {
		t.Errorf("another key: %v", err)
	}
	a.caller = auth.Caller{Role: auth.Viewer, Name: "val@example.com"}
	resp, err := http.Get(a.URL + "/v1/things/vic:00e20100/certificates")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var rows []certsapi.Certificate
	if err := json.NewDecoder(resp.Body).Decode(&rows); err != nil || len(rows) != 2 || rows[0].Method != "renew" || !rows[1].Revoked.IsZero() {
		t.Errorf("inventory %+v, %v", rows, err)
	}
	if n := len(a.steps.all); n != 4 || a.steps.all[3].Code != "key_mismatch" || !strings.HasPrefix(a.steps.all[3].Peer, "127.0.0.1:") {
		t.Errorf("recorded %+v", a.steps.all)
	}
}

func TestOnlyAdminsRegister(t *testing.T) {
	a := newAPI(t, certspg.New(pgtest.New(t)))
	for role, want := range map[auth.Role]int{"": 401, auth.Thing: 403, auth.Owner: 403, auth.Viewer: 403, auth.Support: 403, auth.ReleaseManager: 403} {
		a.caller = auth.Caller{Role: role}
		if code, body, _ := a.post(t, "/v1/things", `{"thing":"vic:00e20100"}`); code != want || strings.Contains(body, "secret\"") {
			t.Errorf("role %q: %d %s, want %d", role, code, body, want)
		}
	}
	a.caller = auth.Caller{Role: auth.Admin}
	a.noAudit = errors.New("disk full")
	if code, body, _ := a.post(t, "/v1/things", `{"thing":"vic:00e20100"}`); code != 500 {
		t.Errorf("registered without an audit line: %d %s", code, body)
	}
}

func TestHostileBodies(t *testing.T) {
	a := newAPI(t, certspg.New(pgtest.New(t)))
	for name, body := range map[string]string{
		"empty": "", "not JSON": "{", "another shape": `[1]`, "unknown field": `{"thing":"vic:1","admin":true}`,
		"two values": `{"thing":"vic:1"}{}`, "number for text": `{"thing":1}`, "oversize": `{"thing":"` + strings.Repeat("x", certsclient.MaxBody) + `"}`,
		"deep": strings.Repeat(`{"thing":`, 20000), "zero byte": "{\"thing\":\"vic:1\x00\"}",
	} {
		for _, path := range []string{certsclient.EnrollPath, certsclient.RenewPath} {
			code, _, p := a.post(t, path, body)
			if code != http.StatusBadRequest || p.Kind != "invalid" || p.Error == "" {
				t.Errorf("%s to %s: %d %+v", name, path, code, p)
			}
		}
	}
	if code, _, p := a.post(t, certsclient.EnrollPath, `{"thing":"vic:1","secret":"x","csr":"-----BEGIN"}`); code != 400 || p.Code != "csr_malformed" {
		t.Errorf("damaged request: %d %+v", code, p)
	}
}

// Unknown thing and wrong secret: the same bytes. A flood: 429 with a pause.
func TestAnswersDoNotTell(t *testing.T) {
	a := newAPI(t, certspg.New(pgtest.New(t)))
	a.caller = auth.Caller{Role: auth.Admin}
	if code, body, _ := a.post(t, "/v1/things", `{"thing":"vic:00e20100"}`); code != 200 {
		t.Fatal(code, body)
	}
	try := func(id thing.ID) (int, string) {
		csr, _ := request(t, id)
		b, err := json.Marshal(certsclient.Enroll{Thing: string(id), Secret: "wrong", CSR: csr})
		if err != nil {
			t.Fatal(err)
		}
		code, body, _ := a.post(t, certsclient.EnrollPath, string(b))
		return code, body
	}
	c1, known := try(vic)
	c2, unknown := try("vic:00000000")
	if c1 != 401 || c1 != c2 || known != unknown {
		t.Errorf("known thing: %d %s\nunknown: %d %s", c1, known, c2, unknown)
	}
	var last int
	for range 60 {
		last, _ = try(vic)
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("after 60 tries: %d, want 429", last)
	}
}

// FuzzEnrollBody: whatever comes, the answer is JSON with a kind, and never a certificate.
func FuzzEnrollBody(f *testing.F) {
	csr, _ := request(f, vic)
	good, err := json.Marshal(certsclient.Enroll{Thing: string(vic), Secret: "wrong", CSR: csr})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"thing":"vic:1","secret":"","csr":""}`))
	f.Add([]byte(`{"certificate":"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----","csr":""}`))
	authority, err := ca.Init(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	store := certspg.New(pgtest.New(f))
	svc, err := certs.New(certs.Config{Store: store, Batches: store, Requests: store, Issuer: authority, Recorder: new(steps),
		ByAddr: ratelimit.New(time.Nanosecond, 1<<30), ByThing: ratelimit.New(time.Nanosecond, 1<<30)})
	if err != nil {
		f.Fatal(err)
	}
	mux := http.NewServeMux()
	certsapi.Operations(svc, certsapi.Config{Log: slog.New(slog.DiscardHandler)}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{certsclient.EnrollPath, certsclient.RenewPath} {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body))))
			var p kithttp.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Kind == "" || w.Code < 400 || w.Code >= 500 {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	})
}
