package certs

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// The original robot's own rules for its factory certificate (VEC-TOK-02), the defaults of a Batch.
const FactoryOrganization = "Anki Inc."

// FactoryValidAfter is the date that a factory certificate must outlive (VEC-TOK-02).
var FactoryValidAfter = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// Bounds of input from strangers and operators.
const (
	MaxBundle   = 64 << 10 // bytes of a batch's PEM
	maxChain    = 16       // certificates of a batch, or of a peer
	factoryLoad = time.Second
)

// Batch is one manufacturing batch: whose factory certificates are accepted, and by which rules.
type Batch struct {
	Name         string        // a-z 0-9 . _ -
	Bundle       []byte        // authorities that signed its factory certificates, PEM
	Species      thing.Species // zero: vic
	Organization string        // exactly this one O; "": FactoryOrganization
	ValidAfter   time.Time     // certificates end later than this; zero: FactoryValidAfter
	SerialFrom   string        // of serials within, inclusive; "": no bound. Serials compare by length, then as text
	SerialTo     string
	Created      time.Time
	Disabled     time.Time // zero: in force
	Reason       string    // why it was disabled
}

// FactoryRevocation is one factory certificate that is no longer accepted.
type FactoryRevocation struct {
	CertificateID string // its serial number, or its SHA-256 over the DER, hex
	Reason        string
	At            time.Time
}

// FactoryState is all that decides about factory certificates, at one moment.
type FactoryState struct {
	Rev         uint64 // grows with each change
	Batches     []Batch
	Revoked     []FactoryRevocation
	RevokedThis []thing.ID // things whose identity was revoked
}

// Batches keeps manufacturing batches and revoked factory certificates.
type Batches interface {
	// Factory returns the state, or only its Rev if that is still known.
	Factory(ctx context.Context, known uint64) (FactoryState, error)
	// PutBatch makes or replaces a batch; one that is disabled stays so.
	PutBatch(ctx context.Context, b Batch) error
	// DisableBatch disables a batch, or with a zero at enables it; ErrUnknown.
	DisableBatch(ctx context.Context, name, reason string, at time.Time) error
	// RevokeFactory adds a revoked factory certificate; an existing entry stays as it is.
	RevokeFactory(ctx context.Context, r FactoryRevocation) error
}

var (
	batchName  = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	esnPattern = regexp.MustCompile(`^[0-9a-f]{8}$`) // a Vector's serial number (VEC-STOR-03)
	serialText = regexp.MustCompile(`^[0-9a-z-]{0,40}$`)
	hexID      = regexp.MustCompile(`^[0-9a-f]{1,64}$`)
)

// checked fills in the defaults of a batch and returns it with its authorities. Its errors are Invalid "batch_malformed".
func (b Batch) checked() (Batch, []*x509.Certificate, error) {
	fail := func(format string, args ...any) (Batch, []*x509.Certificate, error) {
		return Batch{}, nil, errs.Coded(errs.Invalid, "batch_malformed", "batch %.64q: "+format, append([]any{b.Name}, args...)...)
	}
	if b.Species == "" {
		b.Species = thing.Vector
	}
	if b.Organization == "" {
		b.Organization = FactoryOrganization
	}
	if b.ValidAfter.IsZero() {
		b.ValidAfter = FactoryValidAfter
	}
	if !batchName.MatchString(b.Name) {
		return fail("want a name of 1 to 63 characters a-z 0-9 . _ -, starting with a letter or digit")
	}
	if err := b.Species.Check(); err != nil {
		return fail("%w", err)
	}
	if len(b.Organization) > 200 || strings.ContainsRune(b.Organization, 0) {
		return fail("organization of %d bytes: want at most 200, without zero bytes", len(b.Organization))
	}
	if !serialText.MatchString(b.SerialFrom) || !serialText.MatchString(b.SerialTo) ||
		b.SerialFrom != "" && b.SerialTo != "" && serialLess(b.SerialTo, b.SerialFrom) {
		return fail("serials %.50q to %.50q: want characters 0-9 a-z -, and the first not after the last", b.SerialFrom, b.SerialTo)
	}
	if len(b.Bundle) > MaxBundle {
		return fail("bundle of %d bytes: want at most %d", len(b.Bundle), MaxBundle)
	}
	cas, err := parseChain(b.Bundle)
	if err != nil {
		return fail("bundle: %w", err)
	}
	for _, c := range cas {
		if !c.BasicConstraintsValid || !c.IsCA {
			return fail("bundle: certificate of %.60q: want an authority that signs factory certificates, not a robot's own certificate", c.Subject.CommonName)
		}
	}
	return b, cas, nil
}

func serialLess(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// holds reports whether a serial is within the batch's.
func (b Batch) holds(serial string) bool {
	return (b.SerialFrom == "" || !serialLess(serial, b.SerialFrom)) && (b.SerialTo == "" || !serialLess(b.SerialTo, serial))
}

// PutBatch makes or replaces a manufacturing batch. Errors are Invalid "batch_malformed" and name the fault.
func (s *Service) PutBatch(ctx context.Context, b Batch) error {
	b, cas, err := b.checked()
	if err != nil {
		return err
	}
	for _, c := range cas {
		if err := checkKey(c.PublicKey); err != nil {
			return errs.Coded(errs.Invalid, "batch_malformed", "batch %.64q: bundle: certificate of %.60q: %w", b.Name, c.Subject.CommonName, err)
		}
	}
	b.Bundle, b.Created = Certificate{cas}.PEM(), s.now() // without the text that people keep between the blocks
	if err := s.batches.PutBatch(ctx, b); err != nil {
		return fmt.Errorf("write batch %s: %w", b.Name, err)
	}
	s.factory.forget()
	return nil
}

// DisableBatch stops accepting the factory certificates of a batch; device certificates that were issued for them stay good. NotFound.
func (s *Service) DisableBatch(ctx context.Context, name, reason string) error {
	return s.setBatch(ctx, name, reason, s.now())
}

// EnableBatch accepts a disabled batch again. NotFound.
func (s *Service) EnableBatch(ctx context.Context, name string) error {
	return s.setBatch(ctx, name, "", time.Time{})
}

func (s *Service) setBatch(ctx context.Context, name, reason string, at time.Time) error {
	err := s.batches.DisableBatch(ctx, name, reason, at)
	if errors.Is(err, ErrUnknown) {
		return errs.Coded(errs.NotFound, "unknown_batch", "no batch %.64q", name)
	}
	if err != nil {
		return fmt.Errorf("write batch %s: %w", name, err)
	}
	s.factory.forget()
	return nil
}

// Batches returns the manufacturing batches by name, and the factory certificates that were revoked, latest first.
func (s *Service) Batches(ctx context.Context) ([]Batch, []FactoryRevocation, error) {
	st, err := s.batches.Factory(ctx, 0)
	return st.Batches, st.Revoked, err
}

// RevokeFactoryCertificate stops accepting one factory certificate, by its serial number or its SHA-256 over the DER, in hex. Colons and
// case are ignored.
func (s *Service) RevokeFactoryCertificate(ctx context.Context, certificateID, reason string) error {
	id := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(certificateID), ":", ""))
	if !hexID.MatchString(id) {
		return errs.Coded(errs.Invalid, "certificate_id", "certificate id %.70q: want a serial number or a SHA-256, 1 to 64 hex digits", certificateID)
	}
	if len(id) < 64 {
		if id = strings.TrimLeft(id, "0"); id == "" {
			id = "0"
		}
	}
	if err := s.batches.RevokeFactory(ctx, FactoryRevocation{CertificateID: id, Reason: reason, At: s.now()}); err != nil {
		return fmt.Errorf("revoke factory certificate %s: %w", id, err)
	}
	s.factory.forget()
	return nil
}

// IdentifyFactory returns the thing that a factory certificate names, whose key the peer has proved (by TLS, or by FactoryProof). chain is
// the peer's, leaf first. A change made by another process takes effect within a second.
//
// Errors: Unauthenticated "foreign_factory", "wrong_organisation", "wrong_name", "serial_outside_batch", "factory_expired", each of which says
// only what the peer's certificate says; "key_weak"; Denied "revoked" alike for a disabled batch, a revoked certificate and a revoked thing.
// The record has the exact reason: batch_disabled, factory_revoked, revoked. The caller records it, because it knows the peer.
func (s *Service) IdentifyFactory(ctx context.Context, chain []*x509.Certificate) (thing.ID, error) {
	if len(chain) == 0 || len(chain) > maxChain {
		return "", errs.Coded(errs.Unauthenticated, "no_certificate",
			"%d client certificates: want a factory certificate and at most %d intermediates", len(chain), maxChain-1)
	}
	view, err := s.factoryView(ctx)
	if err != nil {
		return "", err
	}
	return view.identify(chain, s.now())
}

// factoryView is a FactoryState made ready.
type factoryView struct {
	rev     uint64
	batches []batchView
	revoked map[string]string // certificate id: reason
	things  map[thing.ID]bool
}

type batchView struct {
	Batch
	pool *x509.CertPool
}

func newFactoryView(st FactoryState) (*factoryView, error) {
	v := &factoryView{rev: st.Rev, revoked: make(map[string]string, len(st.Revoked)), things: make(map[thing.ID]bool, len(st.RevokedThis))}
	for _, b := range st.Batches {
		b, cas, err := b.checked()
		if err != nil {
			return nil, fmt.Errorf("stored batch: %w", err)
		}
		pool := x509.NewCertPool()
		for _, c := range cas {
			if checkKey(c.PublicKey) == nil { // an earlier version took weaker ones
				pool.AddCert(c)
			}
		}
		v.batches = append(v.batches, batchView{b, pool})
	}
	for _, r := range st.Revoked {
		v.revoked[r.CertificateID] = r.Reason
	}
	for _, id := range st.RevokedThis {
		v.things[id] = true
	}
	return v, nil
}

// factoryCache holds the view for a second: original robots show their factory certificate with every call.
type factoryCache struct {
	mu   sync.Mutex
	view *factoryView
	read time.Time // when it was read, by the machine's clock; zero: read again
}

// forget makes the next reader look: this process changed something itself.
func (c *factoryCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = time.Time{}
}

// factoryView returns a view that is at most a second old. If it cannot be read that is an error, because a certificate may have been revoked since.
func (s *Service) factoryView(ctx context.Context) (*factoryView, error) {
	c := &s.factory
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.view != nil && now.Sub(c.read) < factoryLoad {
		return c.view, nil
	}
	known := uint64(0)
	if c.view != nil {
		known = c.view.rev
	}
	st, err := s.batches.Factory(ctx, known)
	if err != nil {
		return nil, fmt.Errorf("read batches: %w", err)
	}
	if c.view == nil || st.Rev != c.view.rev {
		v, err := newFactoryView(st)
		if err != nil {
			return nil, err
		}
		c.view = v
	}
	c.read = now
	return c.view, nil
}

// Ranks of a batch's verdict: of several batches, the error of the one that a certificate nearly matched is reported.
const (
	rankForeign = iota
	rankOrganisation
	rankName
	rankSerial
	rankExpired
	rankDisabled
	rankGood
)

func (v *factoryView) identify(chain []*x509.Certificate, now time.Time) (thing.ID, error) {
	leaf := chain[0]
	if err := checkKey(leaf.PublicKey); err != nil {
		return "", errs.Coded(errs.Unauthenticated, "key_weak", "factory certificate: %w", err)
	}
	inter := x509.NewCertPool()
	for _, c := range chain[1:] {
		inter.AddCert(c)
	}
	best, why := rankForeign, error(foreignFactory(leaf, len(v.batches)))
	for _, b := range v.batches {
		// A factory closes, and its authorities expire, before its robots do: the chain is verified at the day the certificate was made.
		if _, err := leaf.Verify(x509.VerifyOptions{
			Roots: b.pool, Intermediates: inter, CurrentTime: leaf.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		}); err != nil {
			continue
		}
		if rank, err := b.judge(leaf, now); rank > best {
			best, why = rank, err
		}
	}
	if best < rankGood {
		return "", why
	}
	id := thing.ID(leaf.Subject.CommonName)
	sum := sha256.Sum256(leaf.Raw)
	for _, certID := range []string{hex.EncodeToString(sum[:]), leaf.SerialNumber.Text(16)} {
		if reason, ok := v.revoked[certID]; ok {
			return "", noLonger("factory_revoked", fmt.Sprintf("factory certificate %s was revoked: %s", certID, reason))
		}
	}
	if v.things[id] {
		return "", noLonger("revoked", "the identity of this thing was revoked")
	}
	return id, nil
}

func foreignFactory(leaf *x509.Certificate, batches int) *refusal {
	return &refusal{Code: "foreign_factory", Reason: fmt.Sprintf("factory certificate CN %.60q of issuer %.60q is not signed by any of the %d "+
		"batches", leaf.Subject.CommonName, leaf.Issuer.CommonName, batches),
		Public: errs.Coded(errs.Unauthenticated, "foreign_factory", "the factory certificate does not belong to a manufacturing batch that this cloud accepts")}
}

// noLonger is the single answer to a genuine robot that is no longer accepted; only the record says why.
func noLonger(code, reason string) error {
	return &refusal{Code: code, Reason: reason, Public: errs.Coded(errs.Denied, "revoked", "this factory identity is no longer accepted")}
}

// judge applies the original's checks, as the batch has them, to a certificate that the batch signed.
func (b batchView) judge(leaf *x509.Certificate, now time.Time) (rank int, err error) {
	if o := leaf.Subject.Organization; len(o) != 1 || o[0] != b.Organization {
		return rankOrganisation, errs.Coded(errs.Unauthenticated, "wrong_organisation",
			"factory certificate has organisation %.80q: want exactly one, %q", o, b.Organization)
	}
	cn := leaf.Subject.CommonName
	id, err := thing.Parse(cn)
	switch {
	case err != nil:
		return rankName, errs.Coded(errs.Unauthenticated, "wrong_name", "factory certificate has CN %.60q: want a thing id", cn)
	case id.Species() != b.Species:
		return rankName, errs.Coded(errs.Unauthenticated, "wrong_name", "factory certificate has CN %s: want species %s", id, b.Species)
	case b.Species == thing.Vector && !esnPattern.MatchString(id.Serial()):
		return rankName, errs.Coded(errs.Unauthenticated, "wrong_name", "factory certificate has CN %s: want vic: and 8 hex digits", id)
	case leaf.IsCA:
		return rankName, errs.Coded(errs.Unauthenticated, "wrong_name", "factory certificate of %s: want a robot's certificate, not an authority's", id)
	case !b.holds(id.Serial()):
		return rankSerial, &refusal{Code: "serial_outside_batch", Reason: fmt.Sprintf("serial %s is not in batch %s, %s to %s", id.Serial(),
			b.Name, b.SerialFrom, b.SerialTo),
			Public: errs.Coded(errs.Unauthenticated, "serial_outside_batch", "the serial number %s does not belong to a manufacturing batch that this cloud "+
				"accepts", id.Serial())}
	case !leaf.NotAfter.After(b.ValidAfter):
		return rankExpired, errs.Coded(errs.Unauthenticated, "factory_expired", "factory certificate is valid to %s: want later than %s",
			leaf.NotAfter.UTC().Format(time.DateOnly), b.ValidAfter.UTC().Format(time.DateOnly))
	case now.After(leaf.NotAfter) || now.Before(leaf.NotBefore):
		return rankExpired, errs.Coded(errs.Unauthenticated, "factory_expired", "factory certificate is valid from %s to %s; the time here is %s",
			leaf.NotBefore.UTC().Format(time.DateOnly), leaf.NotAfter.UTC().Format(time.DateOnly), now.UTC().Format(time.DateOnly))
	case !b.Disabled.IsZero():
		return rankDisabled, noLonger("batch_disabled", fmt.Sprintf("batch %s was disabled on %s: %s", b.Name,
			b.Disabled.UTC().Format(time.DateOnly), b.Reason))
	}
	return rankGood, nil
}

// checkFactory says whether a request for id may be granted for the factory certificate that comes with it.
func (s *Service) checkFactory(ctx context.Context, id thing.ID, csr *x509.CertificateRequest, req EnrollRequest) error {
	chain := req.FactoryPeer
	if len(req.Factory) > 0 {
		var err error
		if chain, err = parseChain(req.Factory); err != nil {
			return errs.Coded(errs.Invalid, "certificate_malformed", "factory certificate: %w", err)
		}
	}
	named, err := s.IdentifyFactory(ctx, chain)
	if err != nil {
		return err
	}
	if named != id {
		return errs.Coded(errs.Unauthenticated, "wrong_name", "factory certificate is for %s: want %s, as in the request", named, id)
	}
	if len(req.Factory) > 0 && !provesFactory(chain[0].PublicKey, csr.Raw, req.FactoryProof) {
		return errs.Coded(errs.Unauthenticated, "factory_proof", "the request is not signed with the key of the factory certificate")
	}
	return nil
}

// factoryContext keeps a proof from being a signature over anything else.
const factoryContext = "kennel factory enrolment 1\x00"

// FactoryProof signs a certificate request (DER) with the factory key: proof that the robot has it. RSA uses PKCS #1 v1.5, which old
// security modules support.
func FactoryProof(key crypto.Signer, csr []byte) ([]byte, error) {
	msg := append([]byte(factoryContext), csr...)
	if _, ok := key.Public().(ed25519.PublicKey); ok {
		return key.Sign(rand.Reader, msg, crypto.Hash(0))
	}
	sum := sha256.Sum256(msg)
	return key.Sign(rand.Reader, sum[:], crypto.SHA256)
}

func provesFactory(pub any, csr, proof []byte) bool {
	msg := append([]byte(factoryContext), csr...)
	sum := sha256.Sum256(msg)
	switch k := pub.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], proof) == nil
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(k, sum[:], proof)
	case ed25519.PublicKey:
		return ed25519.Verify(k, msg, proof)
	}
	return false
}

// parseChain reads 1 to maxChain certificates, PEM. Anything else in b, apart from text between the blocks, is an error.
func parseChain(b []byte) ([]*x509.Certificate, error) {
	if len(b) > MaxBundle {
		return nil, fmt.Errorf("PEM of %d bytes: want at most %d", len(b), MaxBundle)
	}
	var chain []*x509.Certificate
	for {
		block, rest := pem.Decode(b)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("PEM block %d is %.40q: want CERTIFICATE", len(chain)+1, block.Type)
		}
		if len(chain) == maxChain {
			return nil, fmt.Errorf("more than %d certificates", maxChain)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse certificate %d: %w", len(chain)+1, err)
		}
		chain, b = append(chain, c), rest
	}
	if len(chain) == 0 {
		return nil, errors.New("no PEM block of type CERTIFICATE")
	}
	if bytes.Contains(b, []byte("-----BEGIN ")) {
		return nil, fmt.Errorf("the PEM block after certificate %d is damaged", len(chain))
	}
	return chain, nil
}
