// Package kit holds the few pieces every go-kit endpoint here shares: the one type assertion, who is calling, and the middleware that
// knows only "a request".
package kit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Typed makes an endpoint of a typed function. go-kit's any is asserted here and nowhere else.
func Typed[Req, Resp any](fn func(context.Context, Req) (Resp, error)) endpoint.Endpoint {
	return func(ctx context.Context, request any) (any, error) {
		req, ok := request.(Req)
		if !ok {
			return nil, fmt.Errorf("kit: endpoint got %T, want %T", request, req)
		}
		return fn(ctx, req)
	}
}

// Role decides the rights of a caller. The zero value has none.
type Role string

// Roles, from least to most. A thing acts only for itself; an owner for the robots that are theirs.
const (
	RoleThing          Role = "thing"
	RoleOwner          Role = "owner"
	RoleViewer         Role = "viewer"
	RoleSupport        Role = "support"
	RoleReleaseManager Role = "release-manager"
	RoleAdmin          Role = "admin"
)

// Caller is who makes a request, as the transport proved it.
type Caller struct {
	Role    Role
	Thing   thing.ID // RoleThing
	Account string   // the account id of a person
	Name    string   // e-mail of a person, for the audit log
	Addr    string   // peer address
}

// Subject returns the caller in one word, for records of their actions: staff by name; owners by the id of their account,
// which names no person once they have left.
func (c Caller) Subject() string {
	switch c.Role {
	case RoleThing:
		return string(c.Thing)
	case RoleOwner:
		return c.Account
	}
	return c.Name
}

// Operator reports whether the caller is staff, of any rank.
func (c Caller) Operator() bool {
	switch c.Role {
	case RoleViewer, RoleSupport, RoleReleaseManager, RoleAdmin:
		return true
	}
	return false
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

// Require refuses callers whose role is not among roles: Unauthenticated without a caller, else Denied.
func Require(roles ...Role) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (any, error) {
			c := CallerFrom(ctx)
			if c.Role == "" {
				return nil, errs.New(errs.Unauthenticated, "sign in first")
			}
			for _, r := range roles {
				if c.Role == r {
					return next(ctx, request)
				}
			}
			return nil, errs.New(errs.Denied, "role %s may not do this; it needs one of %v", c.Role, roles)
		}
	}
}

// Staff is every operator role; Changers those that may change a robot's documents; Admins those that manage people and robots.
var (
	Staff    = []Role{RoleViewer, RoleSupport, RoleReleaseManager, RoleAdmin}
	Changers = []Role{RoleSupport, RoleReleaseManager, RoleAdmin}
	Admins   = []Role{RoleAdmin}
)

// Recover turns a panic of one request into an Internal error, logged with its stack: the process lives on.
func Recover(log *slog.Logger) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (resp any, err error) {
			defer func() {
				if p := recover(); p != nil {
					log.ErrorContext(ctx, "request panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
					resp, err = nil, errs.New(errs.Internal, "internal error")
				}
			}()
			return next(ctx, request)
		}
	}
}

// Timeout bounds one request.
func Timeout(d time.Duration) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			return next(ctx, request)
		}
	}
}
