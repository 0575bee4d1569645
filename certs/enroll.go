package certs

import (
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"kennel/certs/thing"
	"kennel/infra/errs"
)

// EnrollRequest asks for a first certificate, or for another one with the same secret and key.
type EnrollRequest struct {
	Thing  string
	Secret Secret
	CSR    []byte // PEM or DER
	Addr   string // of the peer
}

// RenewRequest asks for a certificate in place of one that is still valid or has expired, at any age.
type RenewRequest struct {
	Certificate []byte // PEM, leaf first; what follows is not looked at
	CSR         []byte // PEM or DER, signed by the key of the certificate: that is the proof
	Addr        string // of the peer
}

// Certificate is what a robot gets.
type Certificate struct {
	Chain []*x509.Certificate // leaf first, up to but without the root
}

// PEM returns the chain as PEM.
func (c Certificate) PEM() []byte {
	var b bytes.Buffer
	for _, x := range c.Chain {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: x.Raw}) // a buffer takes everything
	}
	return b.Bytes()
}

// Enroll issues a device certificate for a claim secret and a request of the same thing. Errors: Exhausted with a pause; Invalid for a
// malformed thing or request; Unauthenticated "claim_refused" for an unknown thing and for a wrong secret alike; Denied "key_mismatch" if
// the secret was first used with another key; Denied "revoked".
func (s *Service) Enroll(ctx context.Context, req EnrollRequest) (Certificate, error) {
	id, err := thing.Parse(req.Thing)
	if wait := s.byAddr.Allow(req.Addr); wait > 0 {
		return Certificate{}, s.tooMany(ctx, StepEnroll, id, req.Addr, wait)
	}
	var cert Certificate
	if err != nil {
		err = errs.Coded(errs.Invalid, "thing_malformed", "%w", err)
	} else {
		cert, err = s.enroll(ctx, id, req)
	}
	return cert, s.note(ctx, StepEnroll, id, req.Addr, cert, err)
}

func (s *Service) enroll(ctx context.Context, id thing.ID, req EnrollRequest) (Certificate, error) {
	if wait := s.byThing.Allow(string(id)); wait > 0 {
		return Certificate{}, paced(wait)
	}
	csr, err := CheckRequest(req.CSR, id)
	if err != nil {
		return Certificate{}, err
	}
	claim, err := s.checkSecret(ctx, id, req.Secret)
	if err != nil {
		return Certificate{}, err
	}
	key := KeyOf(csr.RawSubjectPublicKeyInfo)
	if err := s.checkRevoked(ctx, key); err != nil {
		return Certificate{}, err
	}
	bound := claim.Key
	if bound == (Key{}) { // the store decides if two come at once
		if bound, err = s.store.Bind(ctx, id, key, s.now()); err != nil {
			return Certificate{}, fmt.Errorf("bind key of %s: %w", id, err)
		}
	}
	if bound != key {
		return Certificate{}, mismatch(bound, key)
	}
	return s.issue(ctx, StepEnroll, id, csr)
}

// checkSecret does the same work, and answers the peer the same, whether the thing is unknown or the secret is wrong.
func (s *Service) checkSecret(ctx context.Context, id thing.ID, secret Secret) (Claim, error) {
	claim, err := s.store.Claim(ctx, id)
	known := err == nil
	if err != nil && !errors.Is(err, ErrUnknown) {
		return Claim{}, fmt.Errorf("claim of %s: %w", id, err)
	}
	hash := secret.hash()
	if subtle.ConstantTimeCompare(hash[:], claim.Secret[:]) == 1 && known {
		return claim, nil
	}
	r := &refusal{Code: "secret_mismatch", Reason: "claim secret is not the one this thing was registered with", Public: errs.Coded(errs.Unauthenticated,
		"claim_refused", "this thing and this claim secret are not accepted together")}
	if !known {
		r.Code, r.Reason = "unknown_thing", "this thing was never registered"
	}
	switch owner, err := s.store.ClaimOf(ctx, hash); {
	case err == nil:
		r.Code, r.Reason = "secret_of_other", fmt.Sprintf("claim secret belongs to %s (%s)", owner, r.Reason)
	case !errors.Is(err, ErrUnknown):
		return Claim{}, fmt.Errorf("owner of claim secret: %w", err)
	}
	return Claim{}, r
}

// Renew issues a certificate in place of an earlier one of ours, of any age, for the same thing and key. Errors as for Enroll, and Invalid
// "certificate_malformed"; Unauthenticated "foreign_certificate".
func (s *Service) Renew(ctx context.Context, req RenewRequest) (Certificate, error) {
	if wait := s.byAddr.Allow(req.Addr); wait > 0 {
		return Certificate{}, s.tooMany(ctx, StepRenew, "", req.Addr, wait)
	}
	id, cert, err := s.renew(ctx, req)
	return cert, s.note(ctx, StepRenew, id, req.Addr, cert, err)
}

func (s *Service) renew(ctx context.Context, req RenewRequest) (id thing.ID, cert Certificate, err error) {
	leaf, err := parseLeaf(req.Certificate)
	if err != nil {
		return "", cert, err
	}
	if err := s.issuer.VerifyDevice(leaf); err != nil {
		return "", cert, &refusal{Code: "foreign_certificate", Reason: fmt.Sprintf("certificate CN %.60q of issuer %.60q is not from our device authority: %v", leaf.Subject.CommonName, leaf.Issuer.CommonName, err),
			Public: errs.Coded(errs.Unauthenticated, "foreign_certificate", "the certificate was not issued by the device authority of this cloud")}
	}
	id, err = thing.Parse(leaf.Subject.CommonName)
	if err != nil {
		return "", cert, errs.Coded(errs.Invalid, "thing_malformed", "%w", err)
	}
	if wait := s.byThing.Allow(string(id)); wait > 0 {
		return id, cert, paced(wait)
	}
	csr, err := CheckRequest(req.CSR, id)
	if err != nil {
		return id, cert, err
	}
	held, key := KeyOf(leaf.RawSubjectPublicKeyInfo), KeyOf(csr.RawSubjectPublicKeyInfo)
	if held != key {
		return id, cert, mismatch(held, key)
	}
	if err := s.checkRevoked(ctx, key); err != nil {
		return id, cert, err
	}
	claim, err := s.store.Claim(ctx, id)
	switch {
	case errors.Is(err, ErrUnknown):
		return id, cert, &refusal{Code: "unknown_thing", Reason: "this thing is no longer registered",
			Public: errs.Coded(errs.Denied, "revoked", "this certificate is no longer accepted")}
	case err != nil:
		return id, cert, fmt.Errorf("claim of %s: %w", id, err)
	case claim.Key != key: // the thing was given to another key since
		return id, cert, mismatch(claim.Key, key)
	}
	cert, err = s.issue(ctx, StepRenew, id, csr)
	return id, cert, err
}

func parseLeaf(b []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errs.Coded(errs.Invalid, "certificate_malformed", "no PEM block of type CERTIFICATE")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errs.Coded(errs.Invalid, "certificate_malformed", "certificate does not parse: %w", err)
	}
	return leaf, nil
}

func (s *Service) checkRevoked(ctx context.Context, key Key) error {
	revoked, err := s.store.Revoked(ctx, key)
	if err != nil {
		return fmt.Errorf("revocation of key %s: %w", key, err)
	}
	if revoked {
		return errs.Coded(errs.Denied, "revoked", "certificates of this key were revoked")
	}
	return nil
}

// issue signs and writes the inventory row; a certificate without its row is never handed out.
func (s *Service) issue(ctx context.Context, step string, id thing.ID, csr *x509.CertificateRequest) (Certificate, error) {
	chain, err := s.issuer.IssueDevice(csr, id, s.ttl)
	if err != nil {
		return Certificate{}, fmt.Errorf("issue certificate for %s: %w", id, err)
	}
	leaf := chain[0]
	err = s.store.AddCertificate(ctx, Record{
		Serial: leaf.SerialNumber.Text(16), Thing: id, Key: KeyOf(leaf.RawSubjectPublicKeyInfo),
		NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, Method: step,
	})
	if err != nil {
		return Certificate{}, fmt.Errorf("inventory of %s: %w", id, err)
	}
	return Certificate{Chain: chain}, nil
}

// refusal is an error whose exact reason is for the record, and Public for the peer.
type refusal struct {
	Code, Reason string
	Public       error
}

func (r *refusal) Error() string { return r.Reason }

func mismatch(bound, got Key) error {
	return &refusal{Code: "key_mismatch", Reason: fmt.Sprintf("bound to key %.16s, asked with key %.16s", bound, got),
		Public: errs.Coded(errs.Denied, "key_mismatch", "this identity is bound to another key; an operator can release it")}
}

func paced(wait time.Duration) error {
	return &errs.Error{Kind: errs.Exhausted, Code: "too_many_attempts", Msg: "too many attempts; wait", Retry: wait}
}

// tooMany refuses before anything was looked at. What a flood leaves in the record is itself limited.
func (s *Service) tooMany(ctx context.Context, step string, id thing.ID, addr string, wait time.Duration) error {
	err := paced(wait)
	if s.byThing.Allow("limited "+addr) == 0 {
		return s.note(ctx, step, id, addr, Certificate{}, err)
	}
	return err
}

// note records how an attempt went and returns what the peer may know of it.
func (s *Service) note(ctx context.Context, step string, id thing.ID, addr string, cert Certificate, err error) error {
	rec := Step{Thing: id, Step: step, Peer: addr, OK: err == nil, At: s.now()}
	var why *refusal
	switch {
	case err == nil:
		leaf := cert.Chain[0]
		rec.Reason = fmt.Sprintf("certificate %s, valid to %s", leaf.SerialNumber.Text(16), leaf.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &why):
		rec.Code, rec.Reason, err = why.Code, why.Reason, why.Public
	default:
		rec.Code, rec.Reason = errs.CodeOf(err), err.Error()
		if rec.Code == "" {
			rec.Code = errs.KindOf(err).String()
		}
	}
	s.recorder.Record(context.WithoutCancel(ctx), rec) // a peer that hangs up is recorded too
	return err
}
