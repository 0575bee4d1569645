package certs_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certspg"
	"kennel/certs/internal/pemfile"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

const (
	vic   = thing.ID("vic:00e20100")
	other = thing.ID("vic:00e20101")
)

// steps is a Recorder that remembers.
type steps struct {
	mu  sync.Mutex
	all []certs.Step
}

func (s *steps) Record(_ context.Context, st certs.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, st)
}

func (s *steps) last(t *testing.T) certs.Step {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		t.Fatal("nothing recorded")
	}
	return s.all[len(s.all)-1]
}

type world struct {
	svc   *certs.Service
	ca    *ca.Authority
	store *certspg.Store
	steps *steps
}

func newWorld(t testing.TB, change ...func(*certs.Config)) world {
	t.Helper()
	authority, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{ca: authority, store: certspg.New(pgtest.New(t)), steps: new(steps)}
	cfg := certs.Config{Store: w.store, Batches: w.store, Requests: w.store, Issuer: authority, Recorder: w.steps,
		ByAddr: ratelimit.NewByAddr(time.Second, 1000), ByThing: ratelimit.New(time.Second, 1000)}
	for _, c := range change {
		c(&cfg)
	}
	if w.svc, err = certs.New(cfg); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w world) register(t testing.TB, id thing.ID) logging.Secret {
	t.Helper()
	s, err := w.svc.Register(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rsaKey returns a key that was made once with openssl, for tests alone: making one takes long on small machines.
func rsaKey(t testing.TB, bits int) crypto.Signer {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("testdata/rsa%d.pem", bits))
	if err != nil {
		t.Fatal(err)
	}
	key, err := pemfile.ParseKey(b)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func request(t testing.TB, key crypto.Signer, id thing.ID, change ...func(*x509.CertificateRequest)) []byte {
	t.Helper()
	tmpl := &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(id)}}
	for _, c := range change {
		c(tmpl)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, tmpl, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestEnrollThenRenew(t *testing.T) {
	w := newWorld(t)
	secret, key := w.register(t, vic), newKey(t)
	if len(secret.Reveal()) < 26 || strings.Contains(fmt.Sprintf("%v %+v %#v", secret, secret, secret), secret.Reveal()) {
		t.Errorf("secret is short or prints itself: %v", secret)
	}
	csr := request(t, key, vic)
	first, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: secret, CSR: csr, Addr: "192.0.2.1:99"})
	if err != nil {
		t.Fatal(err)
	}
	leaf := first.Chain[0]
	if leaf.Subject.CommonName != string(vic) || len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.URIs)+len(leaf.EmailAddresses) > 0 || leaf.IsCA {
		t.Errorf("leaf says more than CN = thing: %v %v", leaf.Subject, leaf.DNSNames)
	}
	if got := w.steps.last(t); got.Thing != vic || got.Step != certs.StepEnroll || !got.OK || got.Peer != "192.0.2.1:99" ||
		!strings.Contains(got.Reason, "valid to") || got.Shown != nil {
		t.Errorf("recorded %+v", got)
	}
	trust := certs.Trust{Devices: w.ca.DevicePool(), Services: w.ca.ServicePool()}
	if peer, err := trust.Identify(first.Chain, time.Now()); err != nil || peer != (certs.Peer{Thing: vic}) {
		t.Errorf("identified as %+v, %v", peer, err)
	}

	// The same key may come again with the secret: its certificate was lost on the way.
	csrPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})
	if _, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: secret, CSR: csrPEM}); err != nil {
		t.Errorf("same key again: %v", err)
	}
	second, err := w.svc.Renew(t.Context(), certs.RenewRequest{Certificate: first.PEM(), CSR: csr})
	if got := w.steps.last(t); !leaf.Equal(got.Shown) {
		t.Errorf("the record of a renewal has certificate %v, want the one that was shown", got.Shown)
	}
	if err != nil {
		t.Fatal(err)
	}
	if second.Chain[0].SerialNumber.Cmp(leaf.SerialNumber) == 0 {
		t.Error("renewed certificate has the old serial number")
	}
	rows, err := w.svc.Certificates(t.Context(), vic)
	if err != nil || len(rows) != 3 || rows[0].Method != certs.StepRenew || rows[0].Key != certs.KeyOf(leaf.RawSubjectPublicKeyInfo) {
		t.Errorf("inventory %+v, %v", rows, err)
	}
	if _, err := w.svc.Register(t.Context(), vic); errs.CodeOf(err) != "thing_exists" {
		t.Errorf("register after enrolment: %v", err)
	}
}

func TestExpiredCertificateRenewsAtAnyAge(t *testing.T) {
	w := newWorld(t, func(c *certs.Config) { c.TTL = 3 * time.Second })
	secret, key := w.register(t, vic), newKey(t)
	csr := request(t, key, vic)
	// Signed with a life of a nanosecond: expired when it arrives.
	parsed, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: secret, CSR: csr}); err != nil {
		t.Fatal(err)
	}
	chain, err := w.ca.IssueDevice(parsed, vic, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.Renew(t.Context(), certs.RenewRequest{Certificate: certs.Certificate{Chain: chain}.PEM(), CSR: csr}); err != nil {
		t.Errorf("expired certificate: %v", err)
	}
}

// A refusal tells the operator exactly and the peer little. Each case uses a world where vic is registered and enrolled, other only registered.
func TestHostileEnrolment(t *testing.T) {
	w := newWorld(t)
	own, otherSecret, key := w.register(t, vic), w.register(t, other), newKey(t)
	good := request(t, key, vic)
	if _, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: own, CSR: good}); err != nil {
		t.Fatal(err)
	}
	weakKey, bigKey := rsaKey(t, 1024), rsaKey(t, 4104)
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	broken := append([]byte(nil), good...)
	broken[len(broken)-1] ^= 1
	const gone = "vic:00000000"
	for _, c := range []struct {
		name   string
		thing  string
		secret logging.Secret
		csr    []byte
		kind   errs.Kind
		code   string // what the peer learns
		record string // what the operator learns
	}{
		{"wrong secret", string(vic), "AAAAAAAAAAAAAAAAAAAAAAAAAA", good, errs.Unauthenticated, "claim_refused", "secret_mismatch"},
		{"no secret and another key", string(vic), "", request(t, newKey(t), vic), errs.Unavailable, "waiting_approval", "waiting_approval"},
		{"unknown thing", gone, own + "x", request(t, key, gone), errs.Unauthenticated, "claim_refused", "unknown_thing"},
		{"secret of another serial", string(vic), otherSecret, good, errs.Unauthenticated, "claim_refused", "secret_of_other"},
		{"secret of another key", string(vic), own, request(t, newKey(t), vic), errs.Denied, "key_mismatch", "key_mismatch"},
		{"CSR with another CN", string(vic), own, request(t, key, other), errs.Invalid, "csr_subject", "csr_subject"},
		{"CSR without CN", string(vic), own, request(t, key, ""), errs.Invalid, "csr_subject", "csr_subject"},
		{"CSR with extra subject", string(vic), own, request(t, key, vic, func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"Kennel"} }), errs.Invalid, "csr_extra", "csr_extra"},
		{"CSR with two CNs", string(vic), own, request(t, key, "", func(r *x509.CertificateRequest) {
			cn := pkix.AttributeTypeAndValue{Type: []int{2, 5, 4, 3}, Value: string(other)}
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{cn, {Type: cn.Type, Value: string(vic)}}
		}), errs.Invalid, "csr_extra", "csr_extra"},
		{"CSR with a DNS name", string(vic), own, request(t, key, vic, func(r *x509.CertificateRequest) { r.DNSNames = []string{"cloud.example"} }), errs.Invalid, "csr_extra", "csr_extra"},
		{"CSR with an address", string(vic), own, request(t, key, vic, func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{{127, 0, 0, 1}} }), errs.Invalid, "csr_extra", "csr_extra"},
		{"CSR that wants to be an authority", string(vic), own, request(t, key, vic, func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: []int{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
		}), errs.Invalid, "csr_extra", "csr_extra"},
		{"CSR signed by no one", string(vic), own, broken, errs.Invalid, "csr_signature", "csr_signature"},
		{"RSA 1024", string(vic), own, request(t, weakKey, vic), errs.Invalid, "key_weak", "key_weak"},
		{"RSA 4104", string(vic), own, request(t, bigKey, vic), errs.Invalid, "key_weak", "key_weak"},
		{"RSA with exponent 3", string(vic), own, request(t, rsaKey(t, 3), vic), errs.Invalid, "key_weak", "key_weak"},
		{"P-521", string(vic), own, request(t, p521, vic), errs.Invalid, "key_weak", "key_weak"},
		{"CSR that is text", string(vic), own, []byte("let me in"), errs.Invalid, "csr_malformed", "csr_malformed"},
		{"CSR that is a key", string(vic), own, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: good}), errs.Invalid, "csr_malformed", "csr_malformed"},
		{"CSR of 1 MiB", string(vic), own, make([]byte, 1<<20), errs.Invalid, "csr_malformed", "csr_malformed"},
		{"no CSR", string(vic), own, nil, errs.Invalid, "csr_malformed", "csr_malformed"},
		{"malformed thing", "vic:../../etc", own, good, errs.Invalid, "thing_malformed", "thing_malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cert, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: c.thing, Secret: c.secret, CSR: c.csr, Addr: "192.0.2.7"})
			if err == nil || cert.Chain != nil {
				t.Fatal("enrolled")
			}
			if errs.KindOf(err) != c.kind || errs.CodeOf(err) != c.code {
				t.Errorf("peer got %v %q (%v), want %v %q", errs.KindOf(err), errs.CodeOf(err), err, c.kind, c.code)
			}
			got := w.steps.last(t)
			if got.OK || got.Code != c.record || got.Reason == "" || got.Peer != "192.0.2.7" || got.At.IsZero() {
				t.Errorf("recorded %+v, want code %s", got, c.record)
			}
			if c.secret != "" && strings.Contains(got.Reason+err.Error(), c.secret.Reveal()) {
				t.Error("the secret is in the answer or the record")
			}
		})
	}
}

// The peer cannot tell an unknown thing from a wrong secret: one text, one code, one kind.
func TestRefusedClaimsLookAlike(t *testing.T) {
	w := newWorld(t)
	w.register(t, vic)
	key := newKey(t)
	_, wrong := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: "wrong", CSR: request(t, key, vic)})
	_, unknown := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(other), Secret: "wrong", CSR: request(t, key, other)})
	var a, b *errs.Error
	if !errors.As(wrong, &a) || !errors.As(unknown, &b) || *a != *b {
		t.Errorf("wrong secret: %#v\nunknown thing: %#v", wrong, unknown)
	}
}

func TestHostileRenewal(t *testing.T) {
	w, stranger := newWorld(t), newWorld(t)
	secret, key := w.register(t, vic), newKey(t)
	csr := request(t, key, vic)
	cert, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: secret, CSR: csr})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := stranger.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: stranger.register(t, vic), CSR: csr})
	if err != nil {
		t.Fatal(err)
	}
	service, err := w.ca.IssueService("kenneld", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificateRequest(request(t, key, other))
	if err != nil {
		t.Fatal(err)
	}
	unregistered, err := w.ca.IssueDevice(parsed, other, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name         string
		cert, csr    []byte
		code, record string
	}{
		{"another cloud's certificate", foreign.PEM(), csr, "foreign_certificate", "foreign_certificate"},
		{"a service's certificate", service.Chain, csr, "foreign_certificate", "foreign_certificate"},
		{"our root", w.ca.Root(), csr, "foreign_certificate", "foreign_certificate"},
		{"another key", cert.PEM(), request(t, newKey(t), vic), "key_mismatch", "key_mismatch"},
		{"another thing's CN", cert.PEM(), request(t, key, other), "csr_subject", "csr_subject"},
		{"a thing no longer registered", certs.Certificate{Chain: unregistered}.PEM(), request(t, key, other), "revoked", "unknown_thing"},
		{"text", []byte("hello"), csr, "certificate_malformed", "certificate_malformed"},
		{"damaged DER", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1, 2, 3}}), csr, "certificate_malformed", "certificate_malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.svc.Renew(t.Context(), certs.RenewRequest{Certificate: c.cert, CSR: c.csr, Addr: "192.0.2.7"})
			if errs.CodeOf(err) != c.code || w.steps.last(t).Code != c.record {
				t.Errorf("peer got %v, recorded %+v; want %s and %s", err, w.steps.last(t), c.code, c.record)
			}
		})
	}
	if n, err := w.svc.Revoke(t.Context(), vic, "stolen"); err != nil || n != 1 {
		t.Fatalf("revoked %d, %v", n, err)
	}
	if _, err := w.svc.Renew(t.Context(), certs.RenewRequest{Certificate: cert.PEM(), CSR: csr}); errs.CodeOf(err) != "revoked" {
		t.Errorf("renewal after revocation: %v", err)
	}
	if _, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: secret, CSR: csr}); errs.CodeOf(err) != "revoked" {
		t.Errorf("enrolment after revocation: %v", err)
	}
}

func TestBruteForceIsSlowed(t *testing.T) {
	w := newWorld(t, func(c *certs.Config) {
		c.ByAddr, c.ByThing = ratelimit.NewByAddr(time.Minute, 10), ratelimit.New(time.Minute, 20)
	})
	w.register(t, vic)
	csr := request(t, newKey(t), vic)
	tried := 0
	for i := range 1000 {
		_, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), Secret: logging.Secret(fmt.Sprint(i)), CSR: csr, Addr: "192.0.2.1"})
		switch errs.KindOf(err) {
		case errs.Unauthenticated:
			tried++
		case errs.Exhausted:
			if errs.RetryOf(err) <= 0 {
				t.Fatalf("no pause named: %v", err)
			}
		default:
			t.Fatal(err)
		}
	}
	if tried != 10 {
		t.Errorf("%d secrets were looked at, want 10", tried)
	}
	if n := len(w.steps.all); n > 100 {
		t.Errorf("a flood of 1000 left %d records", n)
	}
	if got := w.steps.last(t); got.Code != "too_many_attempts" {
		t.Errorf("recorded %+v", got)
	}
	for i := range 100 { // from as many addresses
		_, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), CSR: csr, Addr: fmt.Sprintf("198.51.100.%d", i)})
		if errs.KindOf(err) == errs.Unauthenticated {
			tried++
		}
	}
	if tried > 20 {
		t.Errorf("%d secrets of one thing were looked at, want at most 20", tried)
	}
}

func TestKindsOfKeys(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"Ed25519": ed, "P-384": p384, "RSA 2048": rsaKey(t, 2048)} {
		if _, err := certs.CheckRequest(request(t, key, vic), vic); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIdentifyNamesTheTrouble(t *testing.T) {
	w, stranger := newWorld(t), newWorld(t)
	trust := certs.Trust{Devices: w.ca.DevicePool(), Services: w.ca.ServicePool()}
	parsed, err := x509.ParseCertificateRequest(request(t, newKey(t), vic))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := w.ca.IssueDevice(parsed, vic, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	weak := *parsed
	weak.PublicKey = rsaKey(t, 3).Public()
	three, err := w.ca.IssueDevice(&weak, vic, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := stranger.ca.IssueDevice(parsed, vic, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := w.ca.IssueService("bridge", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	tc, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := trust.Identify([]*x509.Certificate{tc.Leaf}, time.Now()); err != nil || p != (certs.Peer{Service: "bridge"}) {
		t.Errorf("service: %+v, %v", p, err)
	}
	for name, c := range map[string]struct {
		chain []*x509.Certificate
		at    time.Time
		want  string
	}{
		"none":    {nil, time.Now(), "no client certificate"},
		"foreign": {foreign, time.Now(), "unknown authority"},
		"expired": {chain, time.Now().Add(2 * time.Hour), "expired"},
		"the CA":  {chain[1:], time.Now(), "thing id"},
		"RSA e=3": {three, time.Now(), "exponent 3"},
	} {
		if p, err := trust.Identify(c.chain, c.at); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %q", name, p, err, c.want)
		}
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	if _, err := certs.New(certs.Config{}); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("got %v", err)
	}
}

func FuzzCheckRequest(f *testing.F) {
	key := newKey(f)
	f.Add(request(f, key, vic))
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request(f, key, vic)}))
	f.Add(request(f, key, other))
	f.Fuzz(func(t *testing.T, b []byte) {
		csr, err := certs.CheckRequest(b, vic)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid || errs.CodeOf(err) == "" {
				t.Fatalf("refusal without kind or code: %v", err)
			}
			return
		}
		if csr.Subject.CommonName != string(vic) || len(csr.Extensions) > 0 {
			t.Fatalf("accepted %v %v", csr.Subject, csr.Extensions)
		}
	})
}
