package auth

import (
	"context"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Owns says since when an account owns a thing. ok is false if it does not, whether there is such a thing or not. It is how the APIs of other
// domains ask cloud/owner.
type Owns func(ctx context.Context, account string, id thing.ID) (since time.Time, ok bool, err error)

// RequireOwn is Require that lets the owner of the thing through as well that a request is about. Other people's things answer as unknown
// ones. A nil owns, and a request about no thing, are for roles alone.
func RequireOwn[Req any](owns Owns, of func(Req) thing.ID, roles ...Role) endpoint.Middleware {
	staff := Require(roles...)
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		others := staff(next)
		return func(ctx context.Context, request any) (any, error) {
			c := CallerFrom(ctx)
			req, ok := request.(Req)
			if c.Role != Owner || owns == nil || !ok || of(req) == "" {
				return others(ctx, request)
			}
			since, owned, err := owns(ctx, c.Account, of(req))
			switch {
			case err != nil:
				return nil, err
			case !owned:
				return nil, UnknownThing(of(req))
			}
			return next(context.WithValue(ctx, sinceKey{}, since), request)
		}
	}
}

type sinceKey struct{}

// OwnedSince returns since when the caller in ctx owns the thing that RequireOwn let it through for: earlier data are another owner's.
// ok is false for callers who came by their role.
func OwnedSince(ctx context.Context) (since time.Time, ok bool) {
	since, ok = ctx.Value(sinceKey{}).(time.Time)
	return since, ok
}

// UnknownThing is the answer to a request about a thing that is not registered, or not the caller's.
func UnknownThing(id thing.ID) error {
	return errs.Coded(errs.NotFound, "no_thing", "thing %s is not known to this fleet", id)
}
