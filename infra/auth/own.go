package auth

import (
	"context"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Owns says since when an account owns a thing. ok is false if it does not, whether there is such a thing or not. It is how the APIs of other
// domains ask cloud/identity/owner.
type Owns func(ctx context.Context, account string, id thing.ID) (since time.Time, ok bool, err error)

// Own lets callers through whose role is among roles, and the owner of the thing: other people's things answer as unknown ones. A nil owns, and
// a request about no thing, are for roles alone. The context returned knows since when the owner has it (OwnedSince).
func Own(ctx context.Context, owns Owns, id thing.ID, roles ...Role) (context.Context, error) {
	c := CallerFrom(ctx)
	if c.Role != Owner || owns == nil || id == "" {
		return ctx, Check(c.Role, roles)
	}
	since, owned, err := owns(ctx, c.Account, id)
	if err == nil && !owned {
		err = UnknownThing(id)
	}
	return context.WithValue(ctx, sinceKey{}, since), err
}

// RequireOwn is Own for endpoints; of returns the thing that a request is about.
func RequireOwn[Req any](owns Owns, of func(Req) thing.ID, roles ...Role) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (any, error) {
			var id thing.ID
			if req, ok := request.(Req); ok {
				id = of(req)
			}
			ctx, err := Own(ctx, owns, id, roles...)
			if err != nil {
				return nil, err
			}
			return next(ctx, request)
		}
	}
}

type sinceKey struct{}

// OwnedSince returns since when the caller in ctx owns the thing that Own let it through for: earlier data are another owner's.
// ok is false for callers who came by their role.
func OwnedSince(ctx context.Context) (since time.Time, ok bool) {
	since, ok = ctx.Value(sinceKey{}).(time.Time)
	return since, ok
}

// UnknownThing is the answer to a request about a thing that is not registered, or not the caller's.
func UnknownThing(id thing.ID) error {
	return errs.Coded(errs.NotFound, "no_thing", "thing %s is not in this fleet", id)
}
