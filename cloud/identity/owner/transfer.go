package owner

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// recipients are the hashes by which offers to a person are found. Offers hold no address and no account, and an offer to an e-mail
// without an account is made like any other: it does not tell who has an account.
func (s *Service) recipients(account, email string) [][]byte {
	var out [][]byte
	for _, to := range []string{account, normal(email)} {
		if to != "" {
			h := s.keyed("recipient", to)
			out = append(out, h[:])
		}
	}
	return out
}

func normal(to string) string { return strings.ToLower(strings.TrimSpace(to)) }

// Proof shows that the owner offers a robot, and not who holds a session of the owner's.
type Proof struct {
	Password logging.Secret
	Addr     string // of the request
}

// Offer offers the caller's own robot to another person, by e-mail or by the id of an account. An earlier offer of it is over. NotFound as Release;
// Invalid if to is neither, or the caller; the errors of Config.Confirm.
func (s *Service) Offer(ctx context.Context, account, email string, id thing.ID, to string, by Proof) (Offer, error) {
	to = normal(to)
	if strings.Contains(to, "@") {
		if a, err := mail.ParseAddress(to); err != nil || a.Address != to || len(to) > 254 {
			return Offer{}, errs.Coded(errs.Invalid, "email_malformed", "e-mail %.80q: want name@host", to)
		}
	} else if err := checkAccount(to); err != nil {
		return Offer{}, errs.Coded(errs.Invalid, "recipient_malformed", "to: want an e-mail or the id of an account")
	}
	if to == account || to == normal(email) {
		return Offer{}, errs.Coded(errs.Invalid, "recipient_self", "you already own the robot")
	}
	if err := s.Confirm(ctx, account, by); err != nil {
		return Offer{}, err
	}
	if err := s.note(ctx, "owner.offer", string(id)); err != nil {
		return Offer{}, err
	}
	h := s.keyed("recipient", to)
	o, err := s.Transfers.PutOffer(ctx, id, account, h[:], TransferLife)
	switch {
	case errors.Is(err, ErrNone):
		return Offer{}, none(id)
	case err != nil:
		return Offer{}, fmt.Errorf("offer %s: %w", id, err)
	}
	return o, nil
}

// Offers returns what the caller offers, and what is offered to the caller.
func (s *Service) Offers(ctx context.Context, account, email string) ([]Offer, error) {
	out, err := s.Transfers.Offers(ctx, account, s.recipients(account, email))
	if err != nil {
		return nil, fmt.Errorf("offers: %w", err)
	}
	return out, nil
}

// noteOffer writes down what the caller does with an offer: about its robot, if there is such an offer of or to the caller, else about its id.
func (s *Service) noteOffer(ctx context.Context, action, account, email, id string) error {
	all, err := s.Offers(ctx, account, email)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.ID == id {
			return s.note(ctx, action, string(o.Thing))
		}
	}
	return s.note(ctx, action, id)
}

// Accept makes the caller the owner of a robot that was offered to them. Repeating it changes nothing. NotFound "no_transfer" for an offer that
// does not exist, is for another person or has ended.
func (s *Service) Accept(ctx context.Context, account, email, id string) (Tenure, error) {
	if err := checkAccount(account); err != nil {
		return Tenure{}, err
	}
	if err := s.noteOffer(ctx, "owner.accept", account, email, id); err != nil {
		return Tenure{}, err
	}
	t, before, err := s.Transfers.AcceptOffer(ctx, id, account, s.recipients(account, email))
	switch {
	case errors.Is(err, ErrNone):
		return Tenure{}, noTransfer()
	case err != nil:
		return Tenure{}, fmt.Errorf("accept a transfer: %w", err)
	}
	if before.ID != 0 {
		s.ended(ctx, before)
		s.step(ctx, t.Thing, StepOwner, "", "", "has an owner: "+HowTransfer)
	}
	return t, nil
}

// Drop takes back an offer of the caller's, or declines one to the caller. NotFound as Accept.
func (s *Service) Drop(ctx context.Context, account, email, id string) error {
	if err := s.noteOffer(ctx, "owner.drop", account, email, id); err != nil {
		return err
	}
	err := s.Transfers.DropOffer(ctx, id, account, s.recipients(account, email))
	switch {
	case errors.Is(err, ErrNone):
		return noTransfer()
	case err != nil:
		return fmt.Errorf("drop a transfer: %w", err)
	}
	return nil
}

func noTransfer() error {
	return errs.Coded(errs.NotFound, "no_transfer", "no such transfer from you or to you")
}
