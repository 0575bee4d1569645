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

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// EnrollRequest asks for a first certificate, or for another one with the same key. Secret or Factory is its proof; without either it waits
// for approval.
type EnrollRequest struct {
	Thing        string
	CSR          []byte // PEM or DER
	Secret       logging.Secret
	Factory      []byte              // factory certificate with its chain up to the batch's authority, PEM, leaf first
	FactoryProof []byte              // FactoryProof of the request
	FactoryPeer  []*x509.Certificate // in place of the two: the chain of a TLS peer, which has proved its key
	Addr         string              // of the peer
}

// shown is the factory certificate that came with the request; nil if there is none that can be read.
func (r EnrollRequest) shown() *x509.Certificate {
	if len(r.FactoryPeer) > 0 {
		return r.FactoryPeer[0]
	}
	leaf, err := parseLeaf(r.Factory)
	if err != nil {
		return nil // the refusal says so
	}
	return leaf
}

// RenewRequest asks for a certificate in place of one that is still valid or has expired, at any age.
type RenewRequest struct {
	Certificate []byte // PEM, leaf first; the rest is ignored
	CSR         []byte // PEM or DER, signed by the key of the certificate: that is the proof
	Addr        string // of the peer
}

// Certificate is the answer to a robot.
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

// Enroll issues a device certificate. Errors: Exhausted with a pause; Invalid for a malformed thing or request; Unauthenticated
// "claim_refused" for an unknown thing and for a wrong secret alike; Denied "key_mismatch" if the thing is bound to another key; Denied
// "key_released" for a key that was released; Denied "revoked". For a factory certificate those of IdentifyFactory, and Unauthenticated
// "factory_proof". Without any proof Unavailable "waiting_approval" with a pause, Exhausted "waiting_list_full", Denied "approval_refused".
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
	return cert, s.note(ctx, StepEnroll, id, req.Addr, req.shown(), cert, err)
}

func (s *Service) enroll(ctx context.Context, id thing.ID, req EnrollRequest) (Certificate, error) {
	if wait := s.byThing.Allow(string(id)); wait > 0 {
		return Certificate{}, paced(wait)
	}
	csr, err := CheckRequest(req.CSR, id)
	if err != nil {
		return Certificate{}, err
	}
	if len(req.FactoryPeer) > 0 && s.issuer.VerifyDevice(req.FactoryPeer[0]) == nil {
		req.FactoryPeer = nil // a device certificate of ours is no factory's
	}
	switch {
	case req.Secret != "" || s.noApproval && len(req.Factory)+len(req.FactoryPeer) == 0:
		hash := req.Secret.Sum()
		return s.certify(ctx, MethodEnroll, id, csr, func(st Standing) error { return s.checkSecret(ctx, st, hash, KeyOf(csr.RawSubjectPublicKeyInfo)) })
	case len(req.Factory)+len(req.FactoryPeer) > 0:
		if err := s.checkFactory(ctx, id, csr, req); err != nil {
			return Certificate{}, err
		}
		return s.certify(ctx, MethodFactory, id, csr, func(st Standing) error { return st.mayTakeKey() })
	}
	return s.certify(ctx, MethodKey, id, csr, func(st Standing) error { return s.checkApproved(ctx, id, csr, st, req.Addr) })
}

// certify issues a certificate for a request if allowed accepts the standing of thing and key. The store issues only while that standing is
// unchanged: if a key was bound, released or revoked in between, certify reads and asks again.
func (s *Service) certify(ctx context.Context, method string, id thing.ID, csr *x509.CertificateRequest,
	allowed func(Standing) error) (Certificate, error) {
	key := KeyOf(csr.RawSubjectPublicKeyInfo)
	for range 3 {
		st, err := s.store.Standing(ctx, id, key)
		if err != nil {
			return Certificate{}, fmt.Errorf("read state of %s: %w", id, err)
		}
		if err := allowed(st); err != nil {
			return Certificate{}, err
		}
		cert, err := s.issue(ctx, method, id, key, csr, st.Claim)
		if !errors.Is(err, ErrMoved) {
			return cert, err
		}
	}
	return Certificate{}, errs.RetryLater(time.Second, "lost to other requests for this thing", ErrMoved)
}

// checkSecret does the same work, and answers the peer the same, whether the thing is unknown or the secret is wrong.
func (s *Service) checkSecret(ctx context.Context, st Standing, hash Hash, key Key) error {
	if subtle.ConstantTimeCompare(hash[:], st.Secret[:]) == 1 && st.Known {
		if err := st.mayTakeKey(); err != nil {
			return err
		}
		if st.Key != (Key{}) && st.Key != key {
			return mismatch(st.Key, key)
		}
		return nil
	}
	r := &refusal{Code: "secret_mismatch", Reason: "claim secret differs from the one with which this thing was registered", Public: errs.Coded(errs.Unauthenticated,
		"claim_refused", "unknown thing, or wrong claim secret")}
	if !st.Known {
		r.Code, r.Reason = "unknown_thing", "this thing was never registered"
	}
	switch owner, err := s.store.ClaimOf(ctx, hash); {
	case err == nil:
		r.Code, r.Reason = "secret_of_other", fmt.Sprintf("claim secret belongs to %s (%s)", owner, r.Reason)
	case !errors.Is(err, ErrUnknown):
		return fmt.Errorf("owner of claim secret: %w", err)
	}
	return r
}

// mayTakeKey returns nil unless the thing or the key was revoked, or the key released.
func (st Standing) mayTakeKey() error {
	switch {
	case !st.Revoked.IsZero():
		return errs.Coded(errs.Denied, "revoked", "the identity of this thing was revoked")
	case st.KeyReleased:
		return errs.Coded(errs.Denied, "key_released", "this key was released: the robot must make a new one")
	case st.KeyRevoked:
		return errs.Coded(errs.Denied, "revoked", "the certificates of this key were revoked")
	}
	return nil
}

// Renew issues a certificate in place of an earlier one of ours, of any age, for the same thing and key. Errors as for Enroll, and Invalid
// "certificate_malformed"; Unauthenticated "foreign_certificate".
func (s *Service) Renew(ctx context.Context, req RenewRequest) (Certificate, error) {
	if wait := s.byAddr.Allow(req.Addr); wait > 0 {
		return Certificate{}, s.tooMany(ctx, StepRenew, "", req.Addr, wait)
	}
	leaf, err := parseLeaf(req.Certificate)
	if err != nil {
		return Certificate{}, s.note(ctx, StepRenew, "", req.Addr, nil, Certificate{}, err)
	}
	id, cert, err := s.renew(ctx, req, leaf)
	return cert, s.note(ctx, StepRenew, id, req.Addr, leaf, cert, err)
}

func (s *Service) renew(ctx context.Context, req RenewRequest, leaf *x509.Certificate) (id thing.ID, cert Certificate, err error) {
	if err := s.issuer.VerifyDevice(leaf); err != nil {
		return "", cert, &refusal{Code: "foreign_certificate", Reason: fmt.Sprintf("certificate CN %.60q of issuer %.60q is not from our device "+
			"authority: %v", leaf.Subject.CommonName, leaf.Issuer.CommonName, err),
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
	// Nearly always all is well: the store's own look is enough then, and the signature is for a key that holds a certificate of ours.
	if cert, err = s.issue(ctx, MethodRenew, id, key, csr, Claim{Thing: id, Key: key}); !errors.Is(err, ErrMoved) {
		return id, cert, err
	}
	cert, err = s.certify(ctx, MethodRenew, id, csr, func(st Standing) error {
		if err := st.mayTakeKey(); err != nil {
			return err
		}
		switch {
		case !st.Known:
			return &refusal{Code: "unknown_thing", Reason: "this thing is no longer registered",
				Public: errs.Coded(errs.Denied, "revoked", "this certificate is no longer accepted")}
		case st.Key != key: // the thing was given to another key since
			return mismatch(st.Key, key)
		}
		return nil
	})
	return id, cert, err
}

func parseLeaf(b []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errs.Coded(errs.Invalid, "certificate_malformed", "no PEM block of type CERTIFICATE")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errs.Coded(errs.Invalid, "certificate_malformed", "parse certificate: %w", err)
	}
	return leaf, nil
}

// issue signs and writes the inventory row; a certificate without its row is never handed out.
func (s *Service) issue(ctx context.Context, method string, id thing.ID, key Key, csr *x509.CertificateRequest, from Claim) (Certificate, error) {
	chain, err := s.issuer.IssueDevice(csr, id, s.ttl)
	if err != nil {
		return Certificate{}, fmt.Errorf("issue certificate for %s: %w", id, err)
	}
	leaf := chain[0]
	r := Record{Serial: leaf.SerialNumber.Text(16), Thing: id, Key: key, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, Method: method}
	if err := s.store.Issue(ctx, r, from, s.now()); err != nil {
		return Certificate{}, fmt.Errorf("inventory of %s: %w", id, err)
	}
	return Certificate{Chain: chain}, nil
}

// refusal is an error whose exact reason is for the record, and Public for the peer: errs.KindOf, CodeOf and Public see that alone.
type refusal struct {
	Code, Reason string
	Public       error
	Quiet        bool // the same as before, and not worth another record
}

func (r *refusal) Error() string { return r.Reason }

// Unwrap returns the error that the peer may see.
func (r *refusal) Unwrap() error { return r.Public }

// Why returns code and reason of a refusal as they are for the record; of another error its code, or its kind, and its text.
func Why(err error) (code, reason string) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.Code, r.Reason
	}
	if code = errs.CodeOf(err); code == "" {
		code = errs.KindOf(err).String()
	}
	return code, err.Error()
}

func mismatch(bound, got Key) error {
	return &refusal{Code: "key_mismatch", Reason: fmt.Sprintf("bound to key %.16s, request made with key %.16s", bound, got),
		Public: errs.Coded(errs.Denied, "key_mismatch", "this identity is bound to another key: an operator can release it")}
}

func paced(wait time.Duration) error {
	return &errs.Error{Kind: errs.Exhausted, Code: "too_many_attempts", Msg: "too many attempts; try again later", Retry: wait}
}

// tooMany refuses before anything is looked at. It also limits how many records a flood leaves.
func (s *Service) tooMany(ctx context.Context, step string, id thing.ID, addr string, wait time.Duration) error {
	err := paced(wait)
	if s.byThing.Allow("limited "+addr) == 0 {
		return s.note(ctx, step, id, addr, nil, Certificate{}, err)
	}
	return err
}

// note records the outcome of an attempt with the certificate that it used, and returns the error that the peer may see.
func (s *Service) note(ctx context.Context, step string, id thing.ID, addr string, shown *x509.Certificate, cert Certificate, err error) error {
	rec := Step{Thing: id, Step: step, Peer: addr, OK: err == nil, At: s.now(), Shown: shown}
	if err == nil {
		leaf := cert.Chain[0]
		rec.Reason = fmt.Sprintf("certificate %s, valid to %s", leaf.SerialNumber.Text(16), leaf.NotAfter.UTC().Format(time.RFC3339))
	} else {
		rec.Code, rec.Reason = Why(err)
	}
	why, refused := errors.AsType[*refusal](err)
	if !refused || !why.Quiet {
		s.recorder.Record(context.WithoutCancel(ctx), rec) // a peer that hangs up is recorded too
	}
	if refused {
		return why.Public
	}
	return err
}
