// Package accountapi serves sign-in over HTTPS, and has the middleware that says who calls.
//
//	POST /v1/login         {email, password, cookie?} -> {token, expires, account}   anyone; with cookie the token is set as one and not shown
//	POST /v1/logout                                   -> 204                         signed in
//	GET  /v1/me                                       -> {id, email, role, ...}      signed in
//	POST /v1/me/password   {old, new}                 -> 204                         signed in; ends the other sessions
//	GET  /v1/audit?before=&limit=                     -> [{id, at, actor, ...}]      admin
//	GET  /v1/audit/verify?from=                       -> {checked, anchor, done, ...} admin; from: an anchor; go on from the last until done
//	     /v1/operators...                             (mountOperators)               admin
package accountapi

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

const (
	timeout = 15 * time.Second // a password may wait for its turn
	maxBody = 16 << 10         // bytes
)

// Account is a person as the API shows one.
type Account struct {
	ID         account.ID `json:"id"`
	Email      string     `json:"email"`
	Role       auth.Role  `json:"role"`
	MustChange bool       `json:"must_change"` // the password is a first one that somebody else has seen
}

// LoginRequest is the body of POST /v1/login.
type LoginRequest struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	Cookie   bool   `json:"cookie,omitempty"`
}

// LoginAnswer is its answer.
type LoginAnswer struct {
	Token   string    `json:"token,omitempty"` // for Authorization: Bearer
	Expires time.Time `json:"expires"`
	Account Account   `json:"account"`
}

// PasswordRequest is the body of POST /v1/me/password.
type PasswordRequest struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// AuditEntry is one line of GET /v1/audit.
type AuditEntry struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Name   string    `json:"name,omitempty"`
	Role   string    `json:"role,omitempty"`
	Addr   string    `json:"addr,omitempty"`
	Action string    `json:"action"`
	Object string    `json:"object,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

type auditRequest struct {
	before int64
	limit  int
}

// Mount adds the endpoints to mux, which must be behind Authenticator.
func Mount(mux *http.ServeMux, svc *account.Service, log *slog.Logger) {
	wrap := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout))
	person := endpoint.Chain(wrap, auth.Require(auth.People...))
	a := api{svc, log}
	mux.Handle("POST /v1/login", a.login(wrap(kit.Typed(a.signIn))))
	mux.Handle("POST /v1/logout", a.logout(person(kit.Typed(a.signOut))))
	mux.Handle("GET /v1/me", kithttp.Handler(person(kit.Typed(a.me)), none))
	mux.Handle("POST /v1/me/password", kithttp.Handler(person(kit.NoContent(kit.Typed(a.changePassword))), decodePassword))
	mux.Handle("GET /v1/audit", kithttp.Handler(wrap(auth.Require(auth.Admins...)(kit.Typed(a.audit))), decodeAudit))
	mountOperators(mux, a, wrap)
	mux.Handle("GET /v1/audit/verify", kithttp.Handler(wrap(auth.Require(auth.Admins...)(kit.Typed(a.verifyAudit))), decodeAnchor))
}

type api struct {
	svc *account.Service
	log *slog.Logger
}

type nothing struct{}

func none(*http.Request) (any, error) { return nothing{}, nil }

// login writes the cookie, which an endpoint cannot.
func (a api) login(ep endpoint.Endpoint) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req LoginRequest
		if err := kithttp.ReadJSON(r, &req, maxBody); err != nil {
			kithttp.WriteError(w, err)
			return
		}
		a.signedIn(w, r, ep, req, req.Cookie, cross)
	})
}

// passkeyLogin is login with a passkey.
func (a api) passkeyLogin(ep endpoint.Endpoint) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req PasskeyAnswer
		if err := kithttp.ReadJSON(r, &req, maxPasskeyBody); err != nil {
			kithttp.WriteError(w, err)
			return
		}
		a.signedIn(w, r, ep, req, req.Cookie, cross)
	})
}

// signedIn asks the endpoint for a session and hands it over, as a cookie if that is wanted.
func (a api) signedIn(w http.ResponseWriter, r *http.Request, ep endpoint.Endpoint, req any, cookie bool, cross *http.CrossOriginProtection) {
	if cookie && cross.Check(r) != nil { // another site must not sign a browser in under its own account
		kithttp.WriteError(w, errs.Coded(errs.Denied, "cross_site", "this request was not made by a page of this site"))
		return
	}
	resp, err := ep(r.Context(), req)
	if err != nil {
		a.log.WarnContext(r.Context(), "login refused", "addr", peer(r), "code", errs.CodeOf(err), "err", err)
		kithttp.WriteError(w, err)
		return
	}
	l := resp.(account.Login)
	answer := LoginAnswer{Token: l.Token.Reveal(), Expires: l.Expires, Account: shown(l.Account)}
	if cookie {
		answer.Token = ""
		http.SetCookie(w, sessionCookie(r, l.Token))
	}
	kithttp.WriteJSON(w, http.StatusOK, answer)
}

func (a api) logout(ep endpoint.Endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := ep(r.Context(), nothing{}); err != nil {
			kithttp.WriteError(w, err)
			return
		}
		http.SetCookie(w, sessionCookie(r, ""))
		w.WriteHeader(http.StatusNoContent)
	})
}

func (a api) signIn(ctx context.Context, req LoginRequest) (account.Login, error) {
	return a.svc.Login(ctx, req.Email, logging.Secret(req.Password), auth.CallerFrom(ctx).Addr)
}

func (a api) signOut(ctx context.Context, _ nothing) (nothing, error) {
	return nothing{}, a.svc.Logout(ctx, sessionToken(ctx))
}

func (a api) me(ctx context.Context, _ nothing) (Account, error) {
	who, _, err := a.svc.Authenticate(ctx, sessionToken(ctx), auth.CallerFrom(ctx).Addr)
	return shown(who), err
}

func (a api) changePassword(ctx context.Context, req PasswordRequest) (nothing, error) {
	c := auth.CallerFrom(ctx)
	return nothing{}, a.svc.ChangePassword(ctx, account.ID(c.Account), logging.Secret(req.Old), logging.Secret(req.New), sessionToken(ctx), c.Addr)
}

func (a api) audit(ctx context.Context, req auditRequest) ([]AuditEntry, error) {
	lines, err := a.svc.AuditLog(ctx, req.before, req.limit)
	if err != nil {
		return nil, err
	}
	out := make([]AuditEntry, 0, len(lines))
	for _, l := range lines {
		out = append(out, AuditEntry{l.ID, l.At.UTC(), l.Actor, l.Name, string(l.Role), l.Addr, l.Action, l.Object, l.Detail})
	}
	return out, nil
}

func shown(a account.Account) Account { return Account{a.ID, a.Email, a.Role, a.MustChange} }

func decodePassword(r *http.Request) (any, error) {
	var req PasswordRequest
	err := kithttp.ReadJSON(r, &req, maxBody)
	return req, err
}

func decodeAudit(r *http.Request) (any, error) {
	q := r.URL.Query()
	before, err := number(q.Get("before"))
	if err != nil {
		return nil, errs.New(errs.Invalid, "before: %w", err)
	}
	limit, err := number(q.Get("limit"))
	if err != nil {
		return nil, errs.New(errs.Invalid, "limit: %w", err)
	}
	return auditRequest{before, int(min(limit, 1<<20))}, nil
}

func number(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.ParseInt(s, 10, 64)
}
