package accountapi

import (
	"context"
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

// mountOperators adds, for administrators:
//
//	GET    /v1/operators                                        -> [{id, email, role, ...}]
//	POST   /v1/operators                         {email, role}  -> {id, email, role, password}
//	PATCH  /v1/operators/{id}                    {role?, disabled?}
//	POST   /v1/operators/{id}/password                          -> {id, password}; the sessions end
//	DELETE /v1/operators/{id}                                   the account goes
//	GET    /v1/operators/{id}/sessions                          -> [{id, created, ...}]
//	DELETE /v1/operators/{id}/sessions                          -> {ended}
//	DELETE /v1/operators/{id}/sessions/{session}
func mountOperators(mux *http.ServeMux, a api, wrap endpoint.Middleware) {
	admin := endpoint.Chain(wrap, auth.Require(auth.Admins...))
	mux.Handle("GET /v1/operators", kithttp.Handler(admin(kit.Typed(a.operators)), none))
	mux.Handle("POST /v1/operators", kithttp.Handler(admin(kit.Typed(a.addOperator)), decode[NewOperator]))
	mux.Handle("PATCH /v1/operators/{id}", kithttp.Handler(admin(kit.NoContent(kit.Typed(a.changeOperator))), decodeChange))
	mux.Handle("POST /v1/operators/{id}/password", kithttp.Handler(admin(kit.Typed(a.resetOperator)), decodeOperator))
	mux.Handle("DELETE /v1/operators/{id}", kithttp.Handler(admin(kit.NoContent(kit.Typed(a.removeOperator))), decodeOperator))
	mux.Handle("GET /v1/operators/{id}/sessions", kithttp.Handler(admin(kit.Typed(a.operatorSessions)), decodeOperator))
	mux.Handle("DELETE /v1/operators/{id}/sessions", kithttp.Handler(admin(kit.Typed(a.endOperatorSessions)), decodeOperator))
	mux.Handle("DELETE /v1/operators/{id}/sessions/{session}", kithttp.Handler(admin(kit.NoContent(kit.Typed(a.endOperatorSessions))), decodeOperator))
}

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

func (a api) operators(ctx context.Context, _ nothing) ([]Operator, error) {
	list, err := a.svc.Operators(ctx)
	out := make([]Operator, 0, len(list))
	for _, o := range list {
		out = append(out, Operator{o.ID, o.Email, o.Role, o.MustChange, o.Disabled, o.Created.UTC(), o.Sessions, o.LastSeen.UTC()})
	}
	return out, err
}

func (a api) addOperator(ctx context.Context, req NewOperator) (FirstPassword, error) {
	o, password, err := a.svc.AddOperator(ctx, by(ctx), req.Email, req.Role)
	return FirstPassword{o.ID, o.Email, o.Role, password.Reveal()}, err
}

func (a api) changeOperator(ctx context.Context, req operatorRequest) (nothing, error) {
	if req.Role != nil {
		return nothing{}, a.svc.SetRole(ctx, by(ctx), req.id, *req.Role)
	}
	return nothing{}, a.svc.SetOperatorDisabled(ctx, by(ctx), req.id, *req.Disabled)
}

func (a api) resetOperator(ctx context.Context, req operatorRequest) (FirstPassword, error) {
	password, err := a.svc.ResetOperator(ctx, by(ctx), req.id)
	return FirstPassword{ID: req.id, Password: password.Reveal()}, err
}

func (a api) removeOperator(ctx context.Context, req operatorRequest) (nothing, error) {
	return nothing{}, a.svc.RemoveOperator(ctx, by(ctx), req.id)
}

func (a api) operatorSessions(ctx context.Context, req operatorRequest) ([]Session, error) {
	list, err := a.svc.OperatorSessions(ctx, req.id)
	out := make([]Session, 0, len(list))
	for _, s := range list {
		out = append(out, Session{ID: s.ID, App: s.App, Created: s.Created.UTC(), LastSeen: s.LastSeen.UTC(), Expires: s.Expires.UTC(), Addr: s.Addr, Robot: s.Used})
	}
	return out, err
}

func (a api) endOperatorSessions(ctx context.Context, req operatorRequest) (Ended, error) {
	n, err := a.svc.EndOperatorSession(ctx, by(ctx), req.id, req.session)
	return Ended{n}, err
}
