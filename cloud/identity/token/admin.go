package token

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// MaxTokens bounds what one list of tokens returns; pageSize one page of revoked ids, which fits a message.
const (
	MaxTokens = 1000
	pageSize  = 1000
)

// Page is part of the ids of revoked tokens.
type Page struct {
	Tokens  []string
	LastKey string
	Done    bool
}

// ListRevokedTokens returns ids of revoked tokens in force, in order, those after previous.
func (s *Service) ListRevokedTokens(ctx context.Context, p Peer, previous string) (page Page, err error) {
	err = s.service(ctx, p, StepListRevoked, false, func(string) error {
		if previous != "" && !IsID(previous) {
			return errs.Coded(errs.Invalid, "key_malformed", "previous_key: want the last_key of the previous page")
		}
		ids, err := s.cfg.Store.RevokedPage(ctx, previous, pageSize+1)
		if err != nil {
			return err
		}
		page.Done = len(ids) <= pageSize
		page.Tokens = ids[:min(len(ids), pageSize)]
		page.LastKey = previous
		if n := len(page.Tokens); n > 0 {
			page.LastKey = page.Tokens[n-1]
		}
		return nil
	})
	if err != nil {
		return Page{}, err
	}
	return page, nil
}

// service lets a call of services through: the app key, and with a certificate the name of one of ours.
func (s *Service) service(ctx context.Context, p Peer, step string, certificate bool, do func(by string) error) error {
	err := s.appKey(p)
	if p.Thing != "" { // a robot is never a service
		err = unproved("not_a_service", "the caller is a robot, not a service", nil)
	}
	by := ""
	if err == nil && certificate {
		switch {
		case len(p.Chain) == 0:
			err = unproved("certificate_missing", "no client certificate", nil)
		case s.cfg.Services == nil:
			err = unproved("not_a_service", "no service authority is configured", nil)
		default:
			if by, err = s.cfg.Services.Service(p.Chain); err != nil {
				err = s.turn(err, "not_a_service", unproved)
			}
		}
	}
	if err == nil {
		err = do(by)
	}
	if err == nil {
		return nil // what it did has its own record
	}
	if slow := s.pace(s.cfg.ByAddr, p.Addr); slow != nil {
		return slow
	}
	return s.record(ctx, p, step, "", "", err)
}

// RevokeFactoryCertificate takes a factory certificate out of use, and ends what its robot has here.
func (s *Service) RevokeFactoryCertificate(ctx context.Context, p Peer, certificateID string) error {
	return s.service(ctx, p, StepFactory, true, func(by string) error {
		if s.cfg.Certificates == nil {
			return errs.Coded(errs.Invalid, "no_factory_certificates", "this cloud cannot revoke factory certificates")
		}
		id, err := s.cfg.Certificates.RevokeFactory(ctx, certificateID, by)
		if err != nil {
			return fmt.Errorf("factory certificate: %w", err)
		}
		if _, err := s.cfg.Store.End(ctx, id, "factory certificate revoked by "+by); err != nil {
			return err
		}
		return s.record(ctx, p, StepFactory, id, "by "+by, nil)
	})
}

// RevokeTokens revokes the tokens whose claim of that name (user_id, requestor_id, token_id) is key, and returns how many were in force.
func (s *Service) RevokeTokens(ctx context.Context, p Peer, claim, key string) (n int, err error) {
	err = s.service(ctx, p, StepRevoke, true, func(by string) error {
		why := "by " + by
		switch claim {
		case "requestor_id":
			id, err := thing.Parse(key)
			if err != nil {
				return errs.Coded(errs.Invalid, "key_malformed", "key: %w", err)
			}
			n, err = s.RevokeThing(ctx, id, why)
			return err
		case "user_id":
			if !isUser(key) {
				return errs.Coded(errs.Invalid, "key_malformed", "key: want an account id")
			}
			n, err = s.RevokeUser(ctx, key, why)
			return err
		case "token_id":
			n, err = s.RevokeToken(ctx, "", key, why)
			return err
		}
		return errs.Coded(errs.Invalid, "index_unknown", "search_by_index %.40q: want user_id, requestor_id or token_id", claim)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// RevokeThing ends the association of a robot: its access tokens are refused everywhere within 2 s, and cannot be refreshed. It returns how
// many were in force. Code that changes a robot's owner without the robot, or takes its identity away, calls it.
func (s *Service) RevokeThing(ctx context.Context, id thing.ID, why string) (int, error) {
	end, err := s.cfg.Store.End(ctx, id, why)
	if err != nil {
		return 0, fmt.Errorf("revoke tokens of %s: %w", id, err)
	}
	s.recordEnd(ctx, end, why)
	return end.Tokens, nil
}

// RevokeUser is RevokeThing for all robots of a user.
func (s *Service) RevokeUser(ctx context.Context, user, why string) (int, error) {
	end, err := s.cfg.Store.EndUser(ctx, user, why)
	if err != nil {
		return 0, fmt.Errorf("revoke tokens of a user: %w", err)
	}
	s.recordEnd(ctx, end, why)
	return end.Tokens, nil
}

func (s *Service) recordEnd(ctx context.Context, end End, why string) {
	for _, id := range end.Things {
		s.ok.forget(string(id))
		s.cfg.Recorder.Record(ctx, Step{Thing: id, Step: StepRevoke, OK: true, Reason: why, At: s.now()})
	}
}

// RevokeToken revokes one token and all that were refreshed from it, and returns how many were in force; NotFound. An empty thing means any.
func (s *Service) RevokeToken(ctx context.Context, id thing.ID, token, why string) (int, error) {
	unknown := errs.Coded(errs.NotFound, "no_token", "no such token")
	if !IsID(token) {
		return 0, unknown
	}
	n, err := s.cfg.Store.RevokeToken(ctx, id, token, why)
	if errors.Is(err, ErrUnknown) {
		return 0, unknown
	}
	if err != nil {
		return 0, fmt.Errorf("revoke token: %w", err)
	}
	return n, nil
}

// Tokens returns the access tokens of a robot, newest first, at most MaxTokens.
func (s *Service) Tokens(ctx context.Context, id thing.ID) ([]TokenInfo, error) {
	return s.cfg.Inventory.Tokens(ctx, id, MaxTokens)
}

// Exported holds this domain's data about a person: which robots acted for them, and when.
type Exported struct {
	Things []thing.ID      `json:"things"`
	Tokens []ExportedToken `json:"tokens"`
	Apps   []ExportedApp   `json:"apps"`
}

// ExportedToken is one access token, without what would make it one.
type ExportedToken struct {
	ID      string    `json:"id"`
	Thing   thing.ID  `json:"thing"`
	Issued  time.Time `json:"issued_at"`
	Expires time.Time `json:"expires_at"`
	How     string    `json:"how"`
	Revoked time.Time `json:"revoked_at,omitzero"`
}

// ExportedApp is one app of one robot.
type ExportedApp struct {
	Thing thing.ID `json:"thing"`
	App
}

// Export returns all that is held here of an account.
func (s *Service) Export(ctx context.Context, account string) (any, error) {
	out := Exported{Things: []thing.ID{}, Tokens: []ExportedToken{}, Apps: []ExportedApp{}}
	things, err := s.cfg.Inventory.UserThings(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("export tokens: %w", err)
	}
	tokens, err := s.cfg.Inventory.UserTokens(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("export tokens: %w", err)
	}
	out.Things = append(out.Things, things...)
	for _, t := range tokens {
		out.Tokens = append(out.Tokens, ExportedToken{ID: t.ID, Thing: t.Thing, Issued: t.Issued, Expires: t.Expires, How: t.How, Revoked: t.Revoked})
	}
	for _, id := range things {
		user, err := s.cfg.Store.LastUser(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("export tokens: %w", err)
		}
		if user != account {
			continue // the apps are another person's
		}
		apps, err := s.Apps(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, a := range apps {
			out.Apps = append(out.Apps, ExportedApp{id, a})
		}
	}
	return out, nil
}

// Erase ends everything of an account and forgets that it was theirs. Ids of revoked tokens stay until those expire: they name no person. It
// may be repeated, and continues where it was stopped. Names of apps in the history of the robot's documents are jdocs' to erase.
func (s *Service) Erase(ctx context.Context, account string) error {
	if !isUser(account) {
		return errs.New(errs.Invalid, "erase: want an account id")
	}
	things, err := s.cfg.Inventory.UserThings(ctx, account)
	if err != nil {
		return fmt.Errorf("erase tokens: %w", err)
	}
	if _, err := s.RevokeUser(ctx, account, "account deleted"); err != nil {
		return err
	}
	for _, id := range things {
		user, err := s.cfg.Store.LastUser(ctx, id)
		if err != nil {
			return fmt.Errorf("erase tokens: %w", err)
		}
		if user != account {
			continue // another person's robot by now
		}
		if err := s.dropApps(ctx, id, all); err != nil {
			return err
		}
	}
	if err := s.cfg.Inventory.Forget(ctx, account); err != nil { // last, so that a repetition finds the robots
		return fmt.Errorf("erase tokens: %w", err)
	}
	return nil
}

// TenureEnded withdraws the rights that an ownership gave: the robot no longer acts for that account, and neither the account's apps nor the programs that
// it let in talk to it any longer. A robot that already acts for another account lost its apps when it began to; one that is the same account's again keeps everything.
func (s *Service) TenureEnded(ctx context.Context, id thing.ID, account, why string) error {
	user, err := s.cfg.Store.LastUser(ctx, id)
	if err != nil {
		return err
	}
	if now, err := s.cfg.Owners.Owner(ctx, id); err == nil && now == account {
		return nil
	} else if err != nil && errs.KindOf(err) != errs.NotFound {
		return err
	}
	apps := user == account || user == ""
	if apps {
		if _, err := s.RevokeThing(ctx, id, "its owner let it go: "+why); err != nil {
			return err
		}
	}
	return s.dropApps(ctx, id, func(e entry) bool { return e.By == account || apps && e.By == "" })
}
