package accountapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
)

// Operator is one of the staff as GET /v1/operators shows one.
type Operator struct {
	ID         account.ID `json:"id"`
	Email      string     `json:"email"`
	Role       auth.Role  `json:"role"`
	MustChange bool       `json:"must_change"` // has not chosen a password yet
	Disabled   bool       `json:"disabled"`
	Created    time.Time  `json:"created"`
	Sessions   int        `json:"sessions"`
	LastSeen   time.Time  `json:"last_seen,omitzero"`
}

// NewOperator is the body of POST /v1/operators.
type NewOperator struct {
	Email string    `json:"email"`
	Role  auth.Role `json:"role"`
}

// FirstPassword answers it: the password is shown this once, and is good for choosing another one.
type FirstPassword struct {
	ID       account.ID `json:"id"`
	Email    string     `json:"email,omitempty"`
	Role     auth.Role  `json:"role,omitempty"`
	Password string     `json:"password"`
}

// OperatorChange is the body of PATCH /v1/operators/{id}; what is left out stays.
type OperatorChange struct {
	Role     *auth.Role `json:"role,omitempty"`
	Disabled *bool      `json:"disabled,omitempty"`
}

type operatorRequest struct {
	id      account.ID
	session string
	OperatorChange
}

// MountOperators adds the staff to mux, which must be behind Authenticator, for administrators:
//
//	GET    /v1/operators                                        -> [{id, email, role, ...}]
//	POST   /v1/operators                         {email, role}  -> {id, email, role, password}
//	PATCH  /v1/operators/{id}                    {role?, disabled?}
//	POST   /v1/operators/{id}/password                          -> {id, password}; the sessions end
//	DELETE /v1/operators/{id}                                   the account goes
//	GET    /v1/operators/{id}/sessions                          -> [{id, created, ...}]
//	DELETE /v1/operators/{id}/sessions                          -> {ended}
//	DELETE /v1/operators/{id}/sessions/{session}
func MountOperators(mux *http.ServeMux, ops *account.Operators, log *slog.Logger) {
	admin := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout), auth.Require(auth.Admins...))
	a := operatorsAPI{ops}
	mux.Handle("GET /v1/operators", kithttp.Handler(admin(kit.Typed(a.list)), none))
	mux.Handle("POST /v1/operators", kithttp.Handler(admin(kit.Typed(a.add)), decode[NewOperator]))
	mux.Handle("PATCH /v1/operators/{id}", kithttp.Handler(admin(kit.NoContent(kit.Typed(a.change))), decodeChange))
	mux.Handle("POST /v1/operators/{id}/password", kithttp.Handler(admin(kit.Typed(a.reset)), decodeOperator))
	mux.Handle("DELETE /v1/operators/{id}", kithttp.Handler(admin(kit.NoContent(kit.Typed(a.remove))), decodeOperator))
	mux.Handle("GET /v1/operators/{id}/sessions", kithttp.Handler(admin(kit.Typed(a.sessions)), decodeOperator))
	mux.Handle("DELETE /v1/operators/{id}/sessions", kithttp.Handler(admin(kit.Typed(a.endSessions)), decodeOperator))
	mux.Handle("DELETE /v1/operators/{id}/sessions/{session}", kithttp.Handler(admin(kit.NoContent(kit.Typed(a.endSessions))), decodeOperator))
}

type operatorsAPI struct{ ops *account.Operators }

func decodeOperator(r *http.Request) (any, error) {
	return operatorRequest{id: account.ID(r.PathValue("id")), session: r.PathValue("session")}, nil
}

func decodeChange(r *http.Request) (any, error) {
	req := operatorRequest{id: account.ID(r.PathValue("id"))}
	err := kithttp.ReadJSON(r, &req.OperatorChange, maxBody)
	if err == nil && (req.Role == nil) == (req.Disabled == nil) {
		err = errs.New(errs.Invalid, "want one of role and disabled")
	}
	return req, err
}

func by(ctx context.Context) account.By {
	id, addr := caller(ctx)
	return account.By{ID: id, Addr: addr}
}

func (a operatorsAPI) list(ctx context.Context, _ nothing) ([]Operator, error) {
	list, err := a.ops.List(ctx)
	out := make([]Operator, 0, len(list))
	for _, o := range list {
		out = append(out, Operator{o.ID, o.Email, o.Role, o.MustChange, o.Disabled, o.Created.UTC(), o.Sessions, o.LastSeen.UTC()})
	}
	return out, err
}

func (a operatorsAPI) add(ctx context.Context, req NewOperator) (FirstPassword, error) {
	o, password, err := a.ops.Add(ctx, by(ctx), req.Email, req.Role)
	return FirstPassword{o.ID, o.Email, o.Role, password.Reveal()}, err
}

func (a operatorsAPI) change(ctx context.Context, req operatorRequest) (nothing, error) {
	if req.Role != nil {
		return nothing{}, a.ops.SetRole(ctx, by(ctx), req.id, *req.Role)
	}
	return nothing{}, a.ops.SetDisabled(ctx, by(ctx), req.id, *req.Disabled)
}

func (a operatorsAPI) reset(ctx context.Context, req operatorRequest) (FirstPassword, error) {
	password, err := a.ops.Reset(ctx, by(ctx), req.id)
	return FirstPassword{ID: req.id, Password: password.Reveal()}, err
}

func (a operatorsAPI) remove(ctx context.Context, req operatorRequest) (nothing, error) {
	return nothing{}, a.ops.Remove(ctx, by(ctx), req.id)
}

func (a operatorsAPI) sessions(ctx context.Context, req operatorRequest) ([]Session, error) {
	list, err := a.ops.Sessions(ctx, req.id)
	out := make([]Session, 0, len(list))
	for _, s := range list {
		out = append(out, Session{ID: s.ID, App: s.App, Created: s.Created.UTC(), LastSeen: s.LastSeen.UTC(), Expires: s.Expires.UTC(), Addr: s.Addr, Robot: s.Used})
	}
	return out, err
}

func (a operatorsAPI) endSessions(ctx context.Context, req operatorRequest) (Ended, error) {
	n, err := a.ops.EndSession(ctx, by(ctx), req.id, req.session)
	return Ended{n}, err
}
