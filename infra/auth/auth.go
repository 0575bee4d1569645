// Package auth says who makes a request, and refuses those who may not: the roles, the caller in a context, and the middleware for
// endpoints. Which operation is open to which role is in the table of cloud/access.
package auth

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Role decides the rights of a caller. The zero value has none.
type Role string

// Roles, from least to most. A thing acts only for itself; an owner for the robots that are theirs.
const (
	Thing          Role = "thing"
	Owner          Role = "owner"
	Viewer         Role = "viewer"
	Support        Role = "support"
	ReleaseManager Role = "release-manager"
	Admin          Role = "admin"
)

// Staff is every operator role; Changers those that may change a robot's documents; Admins those that manage people and robots. People is
// every role that an account may have.
var (
	Staff    = []Role{Viewer, Support, ReleaseManager, Admin}
	Changers = Staff[1:]
	Admins   = Staff[3:]
	People   = append([]Role{Owner}, Staff...)
)

// Staff reports whether a role is an operator's, of any rank.
func (r Role) Staff() bool { return slices.Contains(Staff, r) }

// Caller is who makes a request, as the transport proved it.
type Caller struct {
	Role    Role
	Thing   thing.ID // of the role Thing
	Account string   // the account id of a person
	Name    string   // e-mail of a person, for the audit log
	Addr    string   // peer address
}

// Subject returns the caller in one word, for records of their actions: staff by name; owners by the id of their account,
// which names no person once they have left.
func (c Caller) Subject() string {
	switch c.Role {
	case Thing:
		return string(c.Thing)
	case Owner:
		return c.Account
	}
	return c.Name
}

type callerKey struct{}

// WithCaller returns ctx carrying c, for endpoints and for logs: a person goes into them by the account's id, not by name.
func WithCaller(ctx context.Context, c Caller) context.Context {
	if id := cmp.Or(string(c.Thing), c.Account); id != "" {
		ctx = logging.With(ctx, slog.String(logging.Caller, id))
	}
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller in ctx; the zero Caller (who may do nothing) if there is none.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Check refuses a role that is not among roles: Unauthenticated without a role, else Denied.
func Check(role Role, roles []Role) error {
	switch {
	case role == "":
		return errs.New(errs.Unauthenticated, "sign in first")
	case !slices.Contains(roles, role):
		return errs.New(errs.Denied, "your role, %s, may not do this; allowed: %v", role, roles)
	}
	return nil
}

// Require lets callers through whose role is among roles. Errors as Check.
func Require(roles ...Role) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (any, error) {
			if err := Check(CallerFrom(ctx).Role, roles); err != nil {
				return nil, err
			}
			return next(ctx, request)
		}
	}
}
