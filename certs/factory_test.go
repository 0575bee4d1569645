package certs_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/certspg"
	"kennel/certs/devicecert"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// factory is a manufacturer: an authority, and perhaps one below it that signs.
type factory struct {
	root   *x509.Certificate
	signer *x509.Certificate
	key    crypto.Signer
	chain  []*x509.Certificate // what a robot shows behind its own
}

func authorityOf(t testing.TB, name string, parent *factory, change ...func(*x509.Certificate)) *factory {
	t.Helper()
	key := newKey(t)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name, Organization: []string{"Anki Inc."}},
		NotBefore: time.Now().AddDate(-10, 0, 0), NotAfter: time.Now().AddDate(90, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	for _, c := range change {
		c(tmpl)
	}
	signer, signerKey := tmpl, crypto.Signer(key)
	if parent != nil {
		signer, signerKey = parent.signer, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, signer, key.Public(), signerKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	f := &factory{root: cert, signer: cert, key: key}
	if parent != nil {
		f.root, f.chain = parent.root, append([]*x509.Certificate{cert}, parent.chain...)
	}
	return f
}

func (f *factory) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.root.Raw})
}

// born makes a robot's factory certificate, as the original has it unless changed.
func (f *factory) born(t testing.TB, id thing.ID, change ...func(*x509.Certificate)) ([]*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key := newKey(t)
	return f.sign(t, id, key.Public(), change...), key
}

func (f *factory) sign(t testing.TB, id thing.ID, pub crypto.PublicKey, change ...func(*x509.Certificate)) []*x509.Certificate {
	t.Helper()
	serial := make([]byte, 12)
	_, _ = rand.Read(serial) // never fails
	tmpl := &x509.Certificate{SerialNumber: new(big.Int).SetBytes(serial),
		Subject:   pkix.Name{CommonName: string(id), Organization: []string{"Anki Inc."}},
		NotBefore: time.Now().AddDate(-8, 0, 0), NotAfter: time.Date(2118, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, c := range change {
		c(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, f.signer, pub, f.key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return append([]*x509.Certificate{leaf}, f.chain...)
}

func (w world) batch(t testing.TB, name string, f *factory, change ...func(*certs.Batch)) {
	t.Helper()
	b := certs.Batch{Name: name, Bundle: f.pem()}
	for _, c := range change {
		c(&b)
	}
	if err := w.svc.PutBatch(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// factoryRequest is a whole request with its proof.
func factoryRequest(t testing.TB, id thing.ID, chain []*x509.Certificate, factoryKey crypto.Signer, csr []byte) certs.EnrollRequest {
	t.Helper()
	proof, err := certs.FactoryProof(factoryKey, csr)
	if err != nil {
		t.Fatal(err)
	}
	return certs.EnrollRequest{Thing: string(id), CSR: csr, Factory: certs.Certificate{Chain: chain}.PEM(), FactoryProof: proof, Addr: "192.0.2.7"}
}

// The original's checks (VEC-TOK-02), each with its own code for the doctor; what the peer hears of a genuine but unwanted robot is one answer.
func TestFactoryCertificates(t *testing.T) {
	w := newWorld(t)
	lot, closed := authorityOf(t, "Factory 2018", nil), authorityOf(t, "Factory 2019", nil)
	old := authorityOf(t, "Closed factory", nil, func(c *x509.Certificate) { c.NotAfter = time.Now().AddDate(-1, 0, 0) })
	stranger := authorityOf(t, "Factory 2018", nil)
	below := authorityOf(t, "Line 3", lot)
	w.batch(t, "2018", lot)
	w.batch(t, "2018-pleo", lot, func(b *certs.Batch) {
		b.Species, b.Organization, b.ValidAfter, b.SerialFrom, b.SerialTo = thing.Pleo, "Ugobe", time.Now(), "100", "199"
	})
	w.batch(t, "2019", closed)
	w.batch(t, "old", old)
	if err := w.svc.DisableBatch(t.Context(), "2019", "key leaked"); err != nil {
		t.Fatal(err)
	}
	set := func(cn string, o ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: cn, Organization: o} }
	}
	until := func(year int) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	}
	for _, c := range []struct {
		name         string
		from         *factory
		change       func(*x509.Certificate)
		code, record string // "" both: accepted
		kind         errs.Kind
	}{
		{"genuine", lot, nil, "", "", 0},
		{"through an intermediate", below, nil, "", "", 0},
		{"of a factory whose authority has expired", old, func(c *x509.Certificate) { c.NotBefore = time.Now().AddDate(-5, 0, 0) }, "", "", 0},
		{"another organisation", lot, set(string(vic), "Evil Inc."), "wrong_organisation", "wrong_organisation", errs.Unauthenticated},
		{"no organisation", lot, set(string(vic)), "wrong_organisation", "wrong_organisation", errs.Unauthenticated},
		{"two organisations", lot, set(string(vic), "Anki Inc.", "Anki Inc."), "wrong_organisation", "wrong_organisation", errs.Unauthenticated},
		{"no thing", lot, set("Victor", "Anki Inc."), "wrong_name", "wrong_name", errs.Unauthenticated},
		{"capitals in the serial number", lot, set("vic:00E20100", "Anki Inc."), "wrong_name", "wrong_name", errs.Unauthenticated},
		{"short serial number", lot, set("vic:e20100", "Anki Inc."), "wrong_name", "wrong_name", errs.Unauthenticated},
		{"another species", lot, set("aibo:00e20100", "Anki Inc."), "wrong_name", "wrong_name", errs.Unauthenticated},
		{"an authority with a robot's name", lot, func(c *x509.Certificate) {
			c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		}, "wrong_name", "wrong_name", errs.Unauthenticated},
		{"ends in 2099", lot, until(2099), "factory_expired", "factory_expired", errs.Unauthenticated},
		{"ends with 2099", lot, until(2100), "factory_expired", "factory_expired", errs.Unauthenticated},
		{"of tomorrow", lot, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(24 * time.Hour) }, "factory_expired", "factory_expired", errs.Unauthenticated},
		{"of a stranger with the same names", stranger, nil, "foreign_factory", "foreign_factory", errs.Unauthenticated},
		{"of a disabled batch", closed, nil, "revoked", "batch_disabled", errs.Denied},
		{"another batch's rules", lot, func(c *x509.Certificate) {
			set("pleo:150", "Ugobe")(c)
			c.NotAfter = time.Now().AddDate(1, 0, 0)
		}, "", "", 0},
		{"beyond the batch's serials", lot, func(c *x509.Certificate) {
			set("pleo:200", "Ugobe")(c)
			c.NotAfter = time.Now().AddDate(1, 0, 0)
		}, "serial_outside_batch", "serial_outside_batch", errs.Unauthenticated},
		{"expired by the other batch's rules", lot, func(c *x509.Certificate) {
			set("pleo:150", "Ugobe")(c)
			c.NotAfter = time.Now().Add(-time.Hour)
		}, "factory_expired", "factory_expired", errs.Unauthenticated},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*x509.Certificate) {}
			}
			chain, key := c.from.born(t, vic, change)
			id, err := w.svc.IdentifyFactory(t.Context(), chain)
			if c.code == "" {
				if err != nil || string(id) != chain[0].Subject.CommonName {
					t.Fatalf("%v, %v", id, err)
				}
				return
			}
			code, reason := certs.Why(err)
			if err == nil || errs.CodeOf(err) != c.code || errs.KindOf(err) != c.kind || code != c.record || reason == "" {
				t.Errorf("%v: code %q for the peer, %q for the record, kind %v; want %q, %q, %v", err, errs.CodeOf(err), code, errs.KindOf(err), c.code,
					c.record, c.kind)
			}
			// The robot's own check, where it is about what the certificate says, agrees.
			if pleo := strings.HasPrefix(chain[0].Subject.CommonName, "pleo:"); !pleo && c.record != "foreign_factory" &&
				c.record != "batch_disabled" && c.name != "of tomorrow" && !chain[0].IsCA {
				if devicecert.CheckFactory(chain[0]) == nil {
					t.Error("the robot accepts what the cloud refuses")
				}
			}
			// The same over enrolment, with the exact reason in the record.
			_, err = w.svc.Enroll(t.Context(), factoryRequest(t, vic, chain, key, request(t, newKey(t), vic)))
			if got := w.steps.last(t); errs.CodeOf(err) != c.code || got.Code != c.record || got.OK || got.Thing != vic || got.Peer != "192.0.2.7" ||
				!chain[0].Equal(got.Shown) {
				t.Errorf("enrolment: %v, recorded %+v", err, got)
			}
		})
	}
}

func TestFactoryEnrolment(t *testing.T) {
	w := newWorld(t)
	lot := authorityOf(t, "Factory 2018", nil)
	w.batch(t, "2018", lot)
	chain, factoryKey := lot.born(t, vic)
	first := newKey(t)
	cert, err := w.svc.Enroll(t.Context(), factoryRequest(t, vic, chain, factoryKey, request(t, first, vic)))
	if err != nil {
		t.Fatal(err)
	}
	if cn := cert.Chain[0].Subject.CommonName; cn != string(vic) || !first.PublicKey.Equal(cert.Chain[0].PublicKey) {
		t.Errorf("certificate for %s", cn)
	}
	if _, err := w.svc.Renew(t.Context(), certs.RenewRequest{Certificate: cert.PEM(), CSR: request(t, first, vic)}); err != nil {
		t.Errorf("renewal: %v", err)
	}

	// After a wipe it comes with another key; the first never comes back, not even with the proof that was good once.
	replayed := factoryRequest(t, vic, chain, factoryKey, request(t, first, vic))
	second := newKey(t)
	if _, err := w.svc.Enroll(t.Context(), factoryRequest(t, vic, chain, factoryKey, request(t, second, vic))); err != nil {
		t.Fatalf("another key: %v", err)
	}
	rows, err := w.svc.Certificates(t.Context(), vic)
	if err != nil || len(rows) != 3 || !rows[0].Revoked.IsZero() || !rows[1].Released || !rows[2].Released || rows[0].Method != certs.MethodFactory {
		t.Errorf("inventory %+v, %v", rows, err)
	}
	if _, err := w.svc.Enroll(t.Context(), replayed); errs.CodeOf(err) != "key_released" {
		t.Errorf("the key before, replayed: %v", err)
	}
	if _, err := w.svc.Renew(t.Context(), certs.RenewRequest{Certificate: cert.PEM(), CSR: request(t, first, vic)}); errs.CodeOf(err) != "key_released" {
		t.Errorf("renewal with the key before: %v", err)
	}

	// Over TLS the handshake is the proof.
	if _, err := w.svc.Enroll(t.Context(), certs.EnrollRequest{Thing: string(vic), CSR: request(t, second, vic), FactoryPeer: chain}); err != nil {
		t.Errorf("factory certificate as TLS peer: %v", err)
	}

	csr := request(t, newKey(t), vic)
	good := factoryRequest(t, vic, chain, factoryKey, csr)
	otherChain, otherKey := lot.born(t, other)
	for name, c := range map[string]struct {
		change func(*certs.EnrollRequest)
		code   string
	}{
		"no proof":                   {func(r *certs.EnrollRequest) { r.FactoryProof = nil }, "factory_proof"},
		"proof over another request": {func(r *certs.EnrollRequest) { r.CSR = request(t, newKey(t), vic) }, "factory_proof"},
		"proof by another robot's key": {func(r *certs.EnrollRequest) {
			r.FactoryProof = factoryRequest(t, vic, chain, otherKey, csr).FactoryProof
		}, "factory_proof"},
		"another robot's factory identity": {func(r *certs.EnrollRequest) { *r = factoryRequest(t, vic, otherChain, otherKey, csr) }, "wrong_name"},
		"request for another thing":        {func(r *certs.EnrollRequest) { r.CSR = request(t, newKey(t), other) }, "csr_subject"},
		"certificate that is text":         {func(r *certs.EnrollRequest) { r.Factory = []byte("hello") }, "certificate_malformed"},
		"key in place of a certificate": {func(r *certs.EnrollRequest) {
			r.Factory = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: csr})
		}, "certificate_malformed"},
		"a chain of twenty":                  {func(r *certs.EnrollRequest) { r.Factory = []byte(strings.Repeat(string(r.Factory), 20)) }, "certificate_malformed"},
		"a device certificate as TLS's peer": {func(r *certs.EnrollRequest) { r.Factory, r.FactoryProof, r.FactoryPeer = nil, nil, cert.Chain }, "waiting_approval"},
	} {
		req := good
		c.change(&req)
		if got, err := w.svc.Enroll(t.Context(), req); errs.CodeOf(err) != c.code || got.Chain != nil {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}

	// A revoked thing stays out, whatever its factory says, until it is released.
	if _, err := w.svc.Revoke(t.Context(), vic, "stolen"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.Enroll(t.Context(), good); errs.CodeOf(err) != "revoked" {
		t.Errorf("a revoked thing: %v", err)
	}
	if _, err := w.svc.IdentifyFactory(t.Context(), chain); errs.CodeOf(err) != "revoked" {
		t.Errorf("a revoked thing at the door: %v", err)
	}
	if _, err := w.svc.Release(t.Context(), vic, "found"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.Enroll(t.Context(), good); err != nil {
		t.Errorf("after release: %v", err)
	}
}

func TestKindsOfFactoryKeys(t *testing.T) {
	w := newWorld(t)
	lot := authorityOf(t, "Factory", nil)
	w.batch(t, "lot", lot)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"RSA 2048": rsaKey(t, 2048), "Ed25519": ed} {
		chain := lot.sign(t, vic, key.Public())
		if _, err := w.svc.Enroll(t.Context(), factoryRequest(t, vic, chain, key, request(t, newKey(t), vic))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	weak := rsaKey(t, 1024)
	if _, err := w.svc.IdentifyFactory(t.Context(), lot.sign(t, vic, weak.Public())); errs.CodeOf(err) != "key_weak" {
		t.Errorf("RSA 1024: %v", err)
	}
	three := rsaKey(t, 3)
	if _, err := w.svc.IdentifyFactory(t.Context(), lot.sign(t, vic, three.Public())); errs.CodeOf(err) != "key_weak" || !strings.Contains(err.Error(), "exponent 3") {
		t.Errorf("RSA with exponent 3: %v", err)
	}

	// An authority's key is held to the same, also one that an earlier version stored.
	tmpl := *lot.root
	tmpl.SignatureAlgorithm, tmpl.PublicKey = x509.UnknownSignatureAlgorithm, three.Public()
	der, err := x509.CreateCertificate(rand.Reader, &tmpl, &tmpl, three.Public(), three)
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	old := &factory{root: root, signer: root, key: three}
	if err := w.svc.PutBatch(t.Context(), certs.Batch{Name: "weak", Bundle: old.pem()}); errs.CodeOf(err) != "batch_malformed" || !strings.Contains(err.Error(), "exponent 3") {
		t.Errorf("authority with exponent 3: %v", err)
	}
	if err := w.store.PutBatch(t.Context(), certs.Batch{Name: "weak", Bundle: old.pem(), Species: thing.Vector,
		Organization: certs.FactoryOrganization, ValidAfter: certs.FactoryValidAfter, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	later, err := certs.New(certs.Config{Store: w.store, Batches: w.store, Requests: w.store, Issuer: w.ca, Recorder: w.steps,
		ByAddr: ratelimit.NewByAddr(time.Second, 1000), ByThing: ratelimit.New(time.Second, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := later.IdentifyFactory(t.Context(), old.sign(t, vic, newKey(t).Public())); errs.CodeOf(err) != "foreign_factory" {
		t.Errorf("signed by a stored authority with exponent 3: %v", err)
	}
}

// One certificate is revoked by either of its names; its brothers stay. Another process with the same store sees it within two seconds.
func TestRevokedFactoryCertificate(t *testing.T) {
	w := newWorld(t)
	second, err := certs.New(certs.Config{
		Store: w.store, Batches: w.store, Requests: w.store, Issuer: w.ca, Recorder: w.steps, ByAddr: noLimit{},
		ByThing: noLimit{},
	})
	if err != nil {
		t.Fatal(err)
	}
	lot := authorityOf(t, "Factory", nil)
	w.batch(t, "lot", lot)
	bySerial, _ := lot.born(t, vic)
	bySum, _ := lot.born(t, vic)
	kept, _ := lot.born(t, vic)
	for _, c := range [][]*x509.Certificate{bySerial, bySum, kept} {
		if _, err := second.IdentifyFactory(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256(bySum[0].Raw)
	colons := strings.ToUpper(hex.EncodeToString(sum[:2])) + ":" + hex.EncodeToString(sum[2:])
	for _, id := range []string{"0" + bySerial[0].SerialNumber.Text(16), colons} {
		if err := w.svc.RevokeFactoryCertificate(t.Context(), id, "cloned"); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	for {
		_, e1 := second.IdentifyFactory(t.Context(), bySerial)
		_, e2 := second.IdentifyFactory(t.Context(), bySum)
		if e1 != nil && e2 != nil {
			if code, _ := certs.Why(e1); errs.CodeOf(e1) != "revoked" || code != "factory_revoked" {
				t.Errorf("%v, %s", e1, code)
			}
			break
		}
		if time.Since(began) > 5*2*time.Second {
			t.Fatal("another process accepts the certificate after five times 2 s")
		}
		time.Sleep(20 * time.Millisecond) // the other process is told nothing: it looks by itself
	}
	t.Logf("refused elsewhere after %v", time.Since(began).Round(time.Millisecond))
	if _, err := w.svc.IdentifyFactory(t.Context(), bySum); errs.CodeOf(err) != "revoked" {
		t.Errorf("here: %v", err)
	}
	if _, err := second.IdentifyFactory(t.Context(), kept); err != nil {
		t.Errorf("its brother: %v", err)
	}
	for _, bad := range []string{"", "xyz", strings.Repeat("a", 65), "-1"} {
		if err := w.svc.RevokeFactoryCertificate(t.Context(), bad, "x"); errs.KindOf(err) != errs.Invalid {
			t.Errorf("certificate id %q: %v", bad, err)
		}
	}
}

type noLimit struct{}

func (noLimit) Allow(string) time.Duration { return 0 }

func TestBatchesAreChecked(t *testing.T) {
	w := newWorld(t)
	lot := authorityOf(t, "Factory", nil)
	chain, _ := lot.born(t, vic)
	good := certs.Batch{Name: "lot", Bundle: append([]byte("Factory of 2018\x00\n"), lot.pem()...)}
	if err := w.svc.PutBatch(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	all, _, err := w.svc.Batches(t.Context())
	if err != nil || len(all) != 1 || all[0].Organization != "Anki Inc." || all[0].Species != thing.Vector ||
		!all[0].ValidAfter.Equal(certs.FactoryValidAfter) || string(all[0].Bundle) != string(lot.pem()) {
		t.Errorf("defaults: %+v, %v", all, err)
	}
	for name, change := range map[string]func(*certs.Batch){
		"no name":               func(b *certs.Batch) { b.Name = "" },
		"a path for a name":     func(b *certs.Batch) { b.Name = "../x" },
		"unknown species":       func(b *certs.Batch) { b.Species = "cat" },
		"no bundle":             func(b *certs.Batch) { b.Bundle = nil },
		"a robot's certificate": func(b *certs.Batch) { b.Bundle = certs.Certificate{Chain: chain[:1]}.PEM() },
		"a damaged block":       func(b *certs.Batch) { b.Bundle = append(lot.pem(), "-----BEGIN CERTIFICATE-----\n!"...) },
		"a large bundle":        func(b *certs.Batch) { b.Bundle = make([]byte, certs.MaxBundle+1) },
		"serials backwards":     func(b *certs.Batch) { b.SerialFrom, b.SerialTo = "10", "9" },
		"serials that are none": func(b *certs.Batch) { b.SerialFrom = "A" },
		"a zero byte":           func(b *certs.Batch) { b.Organization = "Anki\x00" },
	} {
		b := good
		change(&b)
		if err := w.svc.PutBatch(t.Context(), b); errs.KindOf(err) != errs.Invalid || errs.CodeOf(err) != "batch_malformed" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.svc.DisableBatch(t.Context(), "other", "x"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("disabled an unknown batch: %v", err)
	}
	if err := w.svc.DisableBatch(t.Context(), "lot", "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.IdentifyFactory(t.Context(), chain); errs.CodeOf(err) != "revoked" {
		t.Errorf("disabled: %v", err)
	}
	if err := w.svc.EnableBatch(t.Context(), "lot"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.IdentifyFactory(t.Context(), chain); err != nil {
		t.Errorf("enabled again: %v", err)
	}
	if _, err := w.svc.IdentifyFactory(t.Context(), nil); errs.CodeOf(err) != "no_certificate" {
		t.Errorf("no chain: %v", err)
	}
}

// errGranted is the answer of grants where a certificate would be signed.
var errGranted = errors.New("granted")

type grants struct{}

func (grants) IssueDevice(*x509.CertificateRequest, thing.ID, time.Duration) ([]*x509.Certificate, error) {
	return nil, errGranted
}
func (grants) VerifyDevice(*x509.Certificate) error { return errors.New("not ours") }

// FuzzFactory: for any bytes as a factory certificate and its proof, the answer is a refusal with a code, and never a certificate. Keys and
// times are fixed, because every process of the fuzzer makes its own.
func FuzzFactory(f *testing.F) {
	day := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)
	store := certspg.New(pgtest.New(f))
	svc, err := certs.New(certs.Config{
		Store: store, Batches: store, Requests: store, Issuer: grants{}, Recorder: nobody{}, ByAddr: noLimit{}, ByThing: noLimit{},
		Now: func() time.Time { return day },
	})
	if err != nil {
		f.Fatal(err)
	}
	key := func(n byte) ed25519.PrivateKey {
		return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
	}
	lot := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Factory"}, NotBefore: day.AddDate(-9, 0, 0),
		NotAfter: day.AddDate(9, 0, 0), IsCA: true, BasicConstraintsValid: true,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: string(vic), Organization: []string{"Anki Inc."}},
		NotBefore: day.AddDate(-8, 0, 0), NotAfter: time.Date(2118, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	var chain [2]*x509.Certificate
	for i, c := range []*x509.Certificate{lot, leaf} {
		der, err := x509.CreateCertificate(rand.Reader, c, lot, key(byte(i)).Public(), key(0))
		if err == nil {
			chain[i], err = x509.ParseCertificate(der)
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	if err := svc.PutBatch(f.Context(), certs.Batch{Name: "lot", Bundle: certs.Certificate{Chain: chain[:1]}.PEM()}); err != nil {
		f.Fatal(err)
	}
	good := factoryRequest(f, vic, chain[1:], key(1), request(f, key(2), vic))
	if _, err := svc.Enroll(f.Context(), good); !errors.Is(err, errGranted) {
		f.Fatalf("the genuine request: %v", err)
	}
	f.Add(good.Factory, good.FactoryProof)
	f.Add(good.Factory, []byte("no proof"))
	f.Add(certs.Certificate{Chain: chain[:1]}.PEM(), good.FactoryProof)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte{})
	f.Fuzz(func(t *testing.T, certificate, proof []byte) {
		if len(certificate) == 0 {
			return // no factory certificate: another way in
		}
		req := good
		req.Factory, req.FactoryProof = certificate, proof
		got, err := svc.Enroll(t.Context(), req)
		if errors.Is(err, errGranted) && bytes.Equal(proof, good.FactoryProof) {
			return // text around the genuine blocks
		}
		if err == nil || got.Chain != nil || errs.CodeOf(err) == "" {
			t.Fatalf("got %v, %v", got, err)
		}
	})
}

type nobody struct{}

func (nobody) Record(context.Context, certs.Step) {}
