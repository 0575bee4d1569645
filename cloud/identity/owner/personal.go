package owner

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	if _, err := s.Leave(ctx, account); err != nil {
		return err
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

// Owned returns when which robots were an account's, until now if they are.
func (s *Service) Owned(ctx context.Context, account string) ([]thing.Stretch, error) {
	all, err := s.Store.Tenures(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("former robots of an account: %w", err)
	}
	out := []thing.Stretch{}
	for _, t := range all {
		out = append(out, t.Stretch(s.Now()))
	}
	return out, nil
}

// Leave releases an account's robots because the person is being erased, and returns when which robots were theirs. It may be repeated, until
// Erase takes the account out of that history.
func (s *Service) Leave(ctx context.Context, account string) ([]thing.Stretch, error) {
	robots, err := s.Robots(ctx, account)
	if err != nil {
		return nil, err
	}
	for _, t := range robots {
		if _, err := s.Store.End(ctx, t.Thing, account, EndErased); err != nil && !errors.Is(err, ErrNone) {
			return nil, fmt.Errorf("release %s: %w", t.Thing, err)
		}
	}
	return s.Owned(ctx, account)
}

// Held exports and erases the data of another domain about robots: data of the time when a robot was a person's are the person's. All fields
// are required. It is an account.Personal, and counts.
type Held struct {
	Kind   string // of what Drop counts
	Owners *Service
	List   func(ctx context.Context, s thing.Stretch) (any, error)
	// Drop erases what is held of a stretch, and returns how much that was. It may be repeated.
	Drop func(ctx context.Context, s thing.Stretch) (int, error)
}

// Export implements account.Personal.
func (h Held) Export(ctx context.Context, account string) (any, error) {
	type of struct {
		thing.Stretch
		Data any `json:"data"`
	}
	all, err := h.Owners.Owned(ctx, account)
	out := []of{}
	for _, s := range all {
		v, err := h.List(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, of{s, v})
	}
	return out, err
}

// Erase implements account.Personal.
func (h Held) Erase(ctx context.Context, account string) error {
	return h.EraseCounting(ctx, account, func(context.Context, string, int) error { return nil })
}

// EraseCounting implements account.Counting.
func (h Held) EraseCounting(ctx context.Context, account string, note func(ctx context.Context, kind string, n int) error) error {
	all, err := h.Owners.Leave(ctx, account)
	if err != nil {
		return err
	}
	for _, s := range all {
		n, err := h.Drop(ctx, s)
		if err := errors.Join(err, note(ctx, h.Kind, n)); err != nil {
			return err
		}
	}
	return nil
}

// Filed is a Held whose export has files besides: of each stretch those that Each adds. It is an account.Filing.
type Filed struct {
	Held
	Each func(ctx context.Context, s thing.Stretch, add func(name string, write func(io.Writer) error) error) error
}

// Files implements account.Filing.
func (f Filed) Files(ctx context.Context, account string, add func(name string, write func(io.Writer) error) error) error {
	all, err := f.Owners.Owned(ctx, account)
	for _, s := range all {
		err = errors.Join(err, f.Each(ctx, s, add))
	}
	if err != nil {
		return fmt.Errorf("export %s: %w", f.Kind, err)
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
