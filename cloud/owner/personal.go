package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Export holds this domain's data about a person.
type Export struct {
	Robots []ExportTenure `json:"robots"` // owned now and before
	Offers []ExportOffer  `json:"transfers"`
}

// ExportTenure is one ownership.
type ExportTenure struct {
	Thing thing.ID   `json:"thing"`
	Name  string     `json:"name,omitempty"`
	How   string     `json:"how"`
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until,omitempty"`
	Ended string     `json:"ended,omitempty"`
}

// ExportOffer is one transfer under way.
type ExportOffer struct {
	ID      string    `json:"id"`
	Thing   thing.ID  `json:"thing"`
	Expires time.Time `json:"expires"`
	Mine    bool      `json:"mine"`
}

// Export returns everything kept here about an account.
func (s *Service) Export(ctx context.Context, account string) (any, error) {
	email, err := s.emailOf(ctx, account)
	if err != nil {
		return nil, err
	}
	all, err := s.Store.Tenures(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("export ownership: %w", err)
	}
	offers, err := s.Offers(ctx, account, email)
	if err != nil {
		return nil, err
	}
	out := Export{Robots: []ExportTenure{}, Offers: []ExportOffer{}}
	for _, t := range all {
		out.Robots = append(out.Robots, ExportTenure{t.Thing, t.Name, t.How, t.Since, t.Until, t.Ended})
	}
	for _, o := range offers {
		out.Offers = append(out.Offers, ExportOffer(o))
	}
	return out, nil
}

// Erase releases an account's robots, tells the other domains, and takes the account out of the history, which then says that the
// robot had an owner, not who. It may be repeated, and continues where it failed.
func (s *Service) Erase(ctx context.Context, account string) error {
	if account == "" {
		return errs.New(errs.Invalid, "erase: no account")
	}
	email, err := s.emailOf(ctx, account)
	if err != nil {
		return err
	}
	robots, err := s.Robots(ctx, account)
	if err != nil {
		return err
	}
	for _, t := range robots {
		if _, err := s.Store.End(ctx, t.Thing, account, EndErased, false); err != nil && !errors.Is(err, ErrNone) {
			return fmt.Errorf("release %s: %w", t.Thing, err)
		}
	}
	// Told while the rows still say whose they were.
	for {
		open, err := s.Remains.Unsettled(ctx, account, settleChunk)
		if err != nil {
			return fmt.Errorf("erase ownership: %w", err)
		}
		for _, t := range open {
			if err := s.settle(ctx, t); err != nil {
				return fmt.Errorf("erase ownership: %w", err)
			}
		}
		if len(open) < settleChunk {
			break
		}
	}
	if err := s.Remains.Erase(ctx, account, s.recipients(account, email)); err != nil {
		return fmt.Errorf("erase ownership: %w", err)
	}
	return nil
}

func (s *Service) emailOf(ctx context.Context, account string) (string, error) {
	if s.Email == nil {
		return "", nil
	}
	email, err := s.Email(ctx, account)
	if err != nil && errs.KindOf(err) != errs.NotFound {
		return "", fmt.Errorf("e-mail of an account: %w", err)
	}
	return email, nil
}
