package token

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// AssociateRequest is a robot's request when its user becomes the owner.
type AssociateRequest struct {
	SessionCertificate []byte // PEM; nil: none
	ClientName, AppID  string
	SkipClientToken    bool
	RevokeClientTokens bool
	GenerateSTS        bool
	ExpirationMinutes  uint32
}

// ReassociateRequest is a robot's request when the owner logs in again.
type ReassociateRequest struct {
	ClientName, AppID string
	SkipClientToken   bool
	GenerateSTS       bool
	ExpirationMinutes uint32
}

// SecondaryRequest is a robot's request for another app of the owner's. The session is not the one in the Peer.
type SecondaryRequest struct {
	UserSession       logging.Secret
	ClientName, AppID string
}

// RefreshRequest says what is to be new.
type RefreshRequest struct {
	JWT, STS          bool
	ExpirationMinutes uint32
}

// asked finds out who asks, holds back who asks too often, and records what became of it. What good returns is the reason of a success.
func (s *Service) asked(ctx context.Context, p Peer, step string, do func(thing.ID) (good string, err error)) error {
	id, err := s.robot(p)
	if err != nil {
		// Steps of strangers are written as well: no faster than their address may ask.
		if slow := s.pace(s.cfg.ByAddr, p.Addr); slow != nil {
			return slow
		}
		return s.record(ctx, p, step, id, "", err)
	}
	if slow := s.pace(s.cfg.ByThing, string(id)); slow != nil {
		if s.ok.skip("slow "+string(id), time.Minute, s.now()) {
			return slow
		}
		return s.record(ctx, p, step, id, "", slow)
	}
	good, err := do(id)
	return s.record(ctx, p, step, id, good, err)
}

// AssociatePrimaryUser makes the user of the session the owner and returns the first access token of the association, and a client token
// unless it is not wanted. Everything is looked at before the session is burned, so that a mistake costs no session.
func (s *Service) AssociatePrimaryUser(ctx context.Context, p Peer, r AssociateRequest) (b Bundle, err error) {
	err = s.asked(ctx, p, StepAssociate, func(id thing.ID) (string, error) {
		if err := s.appKey(p); err != nil {
			return "", err
		}
		cert, err := sessionCertificate(r.SessionCertificate)
		if err != nil {
			return "", err
		}
		known, err := s.cfg.Store.Certificate(ctx, id)
		if err != nil {
			return "", err
		}
		how := HowAssociate
		if known != nil && cert != nil && !bytes.Equal(known, cert) {
			how = HowWiped
		}
		before, err := s.before(ctx, id)
		if err != nil {
			return "", err
		}
		user, err := s.burn(ctx, p.UserSession, id)
		if err != nil {
			return "", err
		}
		if err := s.cfg.Owners.Associate(ctx, id, user, how); err != nil {
			err = fmt.Errorf("owner of %s: %w", id, err)
			if errs.KindOf(err) == errs.Internal {
				return "", err
			}
			return "", s.turn(err, "wrong_account", func(code, reason string, _ error) *Refusal { return notOwner(code, reason) })
		}
		fresh := r.RevokeClientTokens || before != "" && before != user
		b, err = s.begin(ctx, id, user, begin{step: StepAssociate, name: r.ClientName, appID: r.AppID, skip: r.SkipClientToken, fresh: fresh,
			sts: r.GenerateSTS, minutes: r.ExpirationMinutes, cert: cert})
		return how, err
	})
	return b.unless(err)
}

// ReassociatePrimaryUser is another login of the owner's. The robot keeps the access token it has; the new one is the app's.
func (s *Service) ReassociatePrimaryUser(ctx context.Context, p Peer, r ReassociateRequest) (b Bundle, err error) {
	err = s.asked(ctx, p, StepReassociate, func(id thing.ID) (string, error) {
		if err := s.appKey(p); err != nil {
			return "", err
		}
		before, err := s.before(ctx, id)
		if err != nil {
			return "", err
		}
		user, err := s.burn(ctx, p.UserSession, id)
		if err != nil {
			return "", err
		}
		if err := s.owned(ctx, id, user); err != nil {
			return "", err
		}
		b, err = s.begin(ctx, id, user, begin{step: StepReassociate, name: r.ClientName, appID: r.AppID, skip: r.SkipClientToken,
			fresh: before != "" && before != user, sts: r.GenerateSTS, minutes: r.ExpirationMinutes, keep: true})
		return "by its owner", err
	})
	return b.unless(err)
}

// before returns whose the robot's apps are: the user of its latest association, else its owner's; "" if there is neither.
func (s *Service) before(ctx context.Context, id thing.ID) (string, error) {
	user, err := s.cfg.Store.LastUser(ctx, id)
	if err != nil || user != "" {
		return user, err
	}
	user, err = s.cfg.Owners.Owner(ctx, id)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return "", nil
	}
	return user, err
}

// owned refuses a user who is not the owner.
func (s *Service) owned(ctx context.Context, id thing.ID, user string) error {
	owner, err := s.cfg.Owners.Owner(ctx, id)
	switch {
	case err != nil && errs.KindOf(err) == errs.NotFound:
		return notOwner("no_owner", fmt.Sprintf("%s has no owner", id))
	case err != nil:
		return fmt.Errorf("owner of %s: %w", id, err)
	case owner != user:
		return notOwner("wrong_account", fmt.Sprintf("%s belongs to another account than the session", id))
	}
	return nil
}

type begin struct {
	step        string
	name, appID string
	skip, fresh bool // no client token; forget the earlier ones
	sts, keep   bool
	minutes     uint32
	cert        []byte
}

// begin makes what an association, or another login, consists of. The association is stored last: until then what the robot has stays good.
func (s *Service) begin(ctx context.Context, id thing.ID, user string, w begin) (b Bundle, err error) {
	if w.sts {
		if b.STS, err = s.mintSTS(ctx, id, user); err != nil {
			return Bundle{}, err
		}
	}
	switch {
	case !w.skip:
		if b.ClientToken, _, err = s.addApp(ctx, id, entry{Name: w.name, AppID: w.appID}, func(entry) bool { return w.fresh }); err != nil {
			return Bundle{}, err
		}
	case w.fresh:
		if err := s.dropApps(ctx, id, all); err != nil {
			return Bundle{}, err
		}
	}
	first := s.next(w.step, w.minutes)
	if b.Token, err = s.sign(id, user, first); err != nil {
		return Bundle{}, err
	}
	if err := s.cfg.Store.Associate(ctx, Association{Thing: id, User: user, First: first, Certificate: w.cert, Keep: w.keep}); err != nil {
		return Bundle{}, fmt.Errorf("association of %s: %w", id, err)
	}
	// An ownership that ended while this was made did not find the association; one that ends from here on does.
	if refused := s.owned(ctx, id, user); refused != nil {
		if _, err := s.RevokeThing(ctx, id, "its owner let it go meanwhile"); err != nil {
			return Bundle{}, err
		}
		return Bundle{}, cmp.Or(s.dropApps(ctx, id, all), refused)
	}
	return b, nil
}

func (s *Service) sign(id thing.ID, user string, t Token) (logging.Secret, error) {
	out, err := s.cfg.Keys.Sign(Access{ID: t.ID, Thing: id, User: user, Issued: t.Issued, Expires: t.Expires})
	return logging.Secret(out), err
}

// mintSTS returns complete credentials or an error: a robot reads through an answer without them and dies.
func (s *Service) mintSTS(ctx context.Context, id thing.ID, user string) (*Credentials, error) {
	c, err := s.cfg.STS.Mint(ctx, id, user)
	if err != nil {
		return nil, fmt.Errorf("temporary credentials for %s: %w", id, err)
	}
	if !c.complete() {
		return nil, fmt.Errorf("temporary credentials for %s are not complete", id)
	}
	return &c, nil
}

// AssociateSecondaryClient makes a client token for another app of the owner's. The robot keeps its access token.
func (s *Service) AssociateSecondaryClient(ctx context.Context, p Peer, r SecondaryRequest) (b Bundle, err error) {
	err = s.asked(ctx, p, StepSecondary, func(id thing.ID) (string, error) {
		if err := s.appKey(p); err != nil {
			return "", err
		}
		a, err := s.cfg.Verifier.VerifyFor(ctx, p.AccessToken, id)
		if err != nil {
			return "", err
		}
		if err := s.lasts(ctx, a); err != nil {
			return "", err
		}
		user, err := s.burn(ctx, r.UserSession, id)
		if err != nil {
			return "", err
		}
		if user != a.User {
			return "", notOwner("wrong_account", "the session is another account's than the access token")
		}
		if err := s.owned(ctx, id, user); err != nil {
			return "", err
		}
		b = Bundle{Token: p.AccessToken} // it stays
		b.ClientToken, _, err = s.addApp(ctx, id, entry{Name: r.ClientName, AppID: r.AppID}, func(entry) bool { return false })
		return "by its owner", err
	})
	return b.unless(err)
}

// lasts returns an error for a token that has ended according to the store.
func (s *Service) lasts(ctx context.Context, a Access) error {
	st, err := s.cfg.Store.Standing(ctx, a)
	if err != nil {
		return fmt.Errorf("token of %s: %w", a.Thing, err)
	}
	return st.refusal(a)
}

func (st Standing) refusal(a Access) error {
	switch st {
	case Good:
		return nil
	case IsRevoked:
		return badToken("token_revoked", fmt.Sprintf("token %s of %s was revoked", a.ID, a.Thing))
	case OtherUsers:
		return badToken("association_other", fmt.Sprintf("token %s is of an association of %s that has ended; another account's lasts", a.ID, a.Thing))
	}
	return badToken("association_ended", fmt.Sprintf("token %s is of an association of %s that has ended", a.ID, a.Thing))
}

// RefreshToken makes a new access token for one that may have expired, temporary credentials, or both.
func (s *Service) RefreshToken(ctx context.Context, p Peer, r RefreshRequest) (b Bundle, err error) {
	err = s.asked(ctx, p, StepRefresh, func(id thing.ID) (string, error) {
		if !r.JWT && !r.STS {
			return "", errs.Coded(errs.Invalid, "refresh_nothing", "nothing to refresh: want refresh_jwt_tokens, refresh_sts_tokens or both")
		}
		a, err := s.cfg.Verifier.old(ctx, p.AccessToken, id)
		if err != nil {
			return "", err
		}
		if !r.JWT {
			if err := s.lasts(ctx, a); err != nil {
				return "", err
			}
			b.STS, err = s.mintSTS(ctx, id, a.User)
			return "temporary credentials", err
		}
		next := s.next(StepRefresh, r.ExpirationMinutes)
		if b.Token, err = s.sign(id, a.User, next); err != nil {
			return "", err
		}
		st, err := s.cfg.Store.Refresh(ctx, a, next)
		if err != nil {
			return "", fmt.Errorf("refresh for %s: %w", id, err)
		}
		if err := st.refusal(a); err != nil {
			return "", err
		}
		if r.STS {
			b.STS, err = s.mintSTS(ctx, id, a.User)
		}
		return "access token", err
	})
	return b.unless(err)
}

// DisassociatePrimaryUser leaves the robot without an owner, its access tokens revoked and its apps forgotten.
func (s *Service) DisassociatePrimaryUser(ctx context.Context, p Peer) error {
	return s.asked(ctx, p, StepDisassociate, func(id thing.ID) (string, error) {
		a, err := s.cfg.Verifier.old(ctx, p.AccessToken, id)
		if err != nil {
			return "", err
		}
		if err := s.lasts(ctx, a); err != nil {
			return "", err
		}
		if err := s.owned(ctx, id, a.User); err == nil {
			err = s.cfg.Owners.Disassociate(ctx, id)
			if err != nil {
				return "", fmt.Errorf("owner of %s: %w", id, err)
			}
		} else if trouble(err) || errs.KindOf(err) == errs.Internal {
			return "", err
		} // else it has another owner by now, or none: that stays
		if err := s.dropApps(ctx, id, all); err != nil {
			return "", err
		}
		_, err = s.cfg.Store.End(ctx, id, "disassociated by the robot")
		return "by the robot", err
	})
}

// StoreCertificate keeps the robot's session certificate, for clients that pin it (VEC-AUTH-03). It is for robots that make a new one
// without a new association.
func (s *Service) StoreCertificate(ctx context.Context, p Peer, certPEM []byte) error {
	return s.asked(ctx, p, StepCertificate, func(id thing.ID) (string, error) {
		cert, err := sessionCertificate(certPEM)
		if err != nil {
			return "", err
		}
		if cert == nil {
			return "", errs.Coded(errs.Invalid, "session_certificate_missing", "no session certificate")
		}
		return "", s.cfg.Store.SetCertificate(ctx, id, cert)
	})
}

// SessionCertificate returns a robot's session certificate as PEM; NotFound. Anybody may ask, at the pace of their address.
func (s *Service) SessionCertificate(ctx context.Context, id thing.ID, addr string) ([]byte, error) {
	if err := s.pace(s.cfg.ByAddr, addr); err != nil {
		return nil, err
	}
	cert, err := s.cfg.Store.Certificate(ctx, id)
	if err == nil && cert == nil {
		err = errs.Coded(errs.NotFound, "no_session_certificate", "no robot with this serial number has registered its certificate")
	}
	return cert, err
}

// sessionCertificate returns the one certificate in text as PEM, nil for an empty text. What is wrong with it is Corrupt and not Invalid:
// Invalid would read "wrong account" in the app of an original robot.
func sessionCertificate(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	bad := func(why string) error {
		return errs.Coded(errs.Corrupt, "session_certificate_malformed", "session certificate: %s", why)
	}
	if len(text) > maxCert {
		return nil, bad(fmt.Sprintf("%d bytes: want at most %d", len(text), maxCert))
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil || block.Type != "CERTIFICATE" || len(block.Headers) > 0:
		return nil, bad("want one certificate in PEM")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, bad("data after the certificate")
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		return nil, bad("not an X.509 certificate")
	}
	return pem.EncodeToMemory(block), nil
}

// unless returns b, or nothing but the error.
func (b Bundle) unless(err error) (Bundle, error) {
	if err != nil {
		return Bundle{}, err
	}
	return b, nil
}
