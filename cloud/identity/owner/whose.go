package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Whose knows whose a robot is; it is the part of Service that others ask at every request. Safe for concurrent use.
type Whose struct{ store WhoseStore }

// WhoseStore is the storage that Whose needs; every Store is one.
type WhoseStore interface {
	Current(ctx context.Context, id thing.ID) (Tenure, error)
}

// NewWhose returns what store knows.
func NewWhose(store WhoseStore) Whose { return Whose{store} }

// Owner returns whose a robot is; NotFound "no_owner".
func (w Whose) Owner(ctx context.Context, id thing.ID) (account string, err error) {
	t, err := w.Tenure(ctx, id)
	return t.Account, err
}

// Tenure returns the lasting ownership of a robot; NotFound "no_owner".
func (w Whose) Tenure(ctx context.Context, id thing.ID) (Tenure, error) {
	t, err := w.store.Current(ctx, id)
	switch {
	case errors.Is(err, ErrNone):
		return Tenure{}, errs.Coded(errs.NotFound, "no_owner", "%s has no owner", id)
	case err != nil:
		return Tenure{}, fmt.Errorf("owner of %s: %w", id, err)
	}
	return t, nil
}

// Owns reports since when an account owns a robot. It is an auth.Owns. ok is false for other people's robots and for unknown ones.
func (w Whose) Owns(ctx context.Context, account string, id thing.ID) (since time.Time, ok bool, err error) {
	t, err := w.store.Current(ctx, id)
	switch {
	case errors.Is(err, ErrNone) || err == nil && (account == "" || t.Account != account):
		return time.Time{}, false, nil
	case err != nil:
		return time.Time{}, false, fmt.Errorf("owner of %s: %w", id, err)
	}
	return t.Since, true, nil
}
