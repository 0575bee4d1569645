// Package accountapi serves accounts over HTTPS: sign-in, people's own accounts and their pages, operators, the audit log, and the middleware that
// finds the caller of a request.
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
	MustChange bool       `json:"must_change"` // another person has seen the password, which is a first one
}

// LoginRequest is the body of POST /v1/login.
type LoginRequest struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	Code     string `json:"code,omitempty"` // of the authenticator app, or a recovery code; for operators who have one
	Cookie   bool   `json:"cookie,omitempty"`

	device logging.Secret // the browser's cookie
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

// Mount adds sign-in to mux, which must be behind Authenticator.
//
//	POST /v1/login         {email, password, code?, cookie?} -> {token, expires, account}   anyone; with cookie the token is set as one and not shown
//	POST /v1/logout                                   -> 204                         signed in
//	GET  /v1/me                                       -> {id, email, role, ...}      signed in
//	POST /v1/me/password   {old, new}                 -> 204                         signed in; ends the other sessions
func Mount(mux *http.ServeMux, in *account.SignIn, second *account.Second, log *slog.Logger) {
	wrap := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout))
	person := endpoint.Chain(wrap, auth.Require(auth.People...))
	a := api{in, second, log}
	mux.Handle("POST /v1/login", a.login(wrap(kit.Typed(a.signIn))))
	mux.Handle("POST /v1/logout", a.logout(person(kit.Typed(a.signOut))))
	mux.Handle("GET /v1/me", kithttp.Handler(person(kit.Typed(a.me)), none))
	mux.Handle("POST /v1/me/password", kithttp.Handler(person(kit.NoContent(kit.Typed(a.changePassword))), decodePassword))
}

type api struct {
	in     *account.SignIn
	second *account.Second
	log    *slog.Logger
}

type nothing struct{}

func none(*http.Request) (any, error) { return nothing{}, nil }

// login writes the cookie, which an endpoint cannot.
func (a api) login(ep endpoint.Endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req LoginRequest
		if err := kithttp.ReadJSON(r, &req, maxBody); err != nil {
			kithttp.WriteError(w, err)
			return
		}
		req.device = from(r, "").Device
		a.signedIn(w, r, ep, req, req.Cookie)
	})
}

// passkeyLogin is login with a passkey.
func (a api) passkeyLogin(ep endpoint.Endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req PasskeyAnswer
		if err := kithttp.ReadJSON(r, &req, maxPasskeyBody); err != nil {
			kithttp.WriteError(w, err)
			return
		}
		a.signedIn(w, r, ep, req, req.Cookie)
	})
}

// signedIn asks the endpoint for a session and hands it over, as a cookie if that is wanted.
func (a api) signedIn(w http.ResponseWriter, r *http.Request, ep endpoint.Endpoint, req any, cookie bool) {
	if cookie && kithttp.SameOrigin(r) != nil { // another site must not sign a browser in under its own account
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
		setCookies(w, r, l)
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
	return a.second.LoginWith(ctx, req.Email, logging.Secret(req.Password), logging.Secret(req.Code), account.From{Addr: auth.CallerFrom(ctx).Addr, Device: req.device})
}

func (a api) signOut(ctx context.Context, _ nothing) (nothing, error) {
	return nothing{}, a.in.Logout(ctx, sessionToken(ctx))
}

func (a api) me(ctx context.Context, _ nothing) (Account, error) {
	who, _, err := a.in.Authenticate(ctx, sessionToken(ctx), auth.CallerFrom(ctx).Addr)
	return shown(who), err
}

func (a api) changePassword(ctx context.Context, req PasswordRequest) (nothing, error) {
	c := auth.CallerFrom(ctx)
	return nothing{}, a.in.ChangePassword(ctx, account.ID(c.Account), logging.Secret(req.Old), logging.Secret(req.New), sessionToken(ctx), c.Addr)
}

func shown(a account.Account) Account { return Account{a.ID, a.Email, a.Role, a.MustChange} }

func decodePassword(r *http.Request) (any, error) {
	var req PasswordRequest
	err := kithttp.ReadJSON(r, &req, maxBody)
	return req, err
}
