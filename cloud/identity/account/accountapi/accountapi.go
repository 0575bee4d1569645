// Package accountapi serves accounts over HTTPS: sign-in, people's own accounts and their pages, operators, the audit log, and the middleware that
// finds the caller of a request.
package accountapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/op"
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

type login struct {
	Request *http.Request `request:""`
	Body    LoginRequest  `body:""`
}

// Operations returns signing in with a password and what a session may do with itself, for a server behind Authenticator.
func Operations(in *account.SignIn, second *account.Second, log *slog.Logger) op.List {
	return op.List{
		op.New(op.Spec{Route: "POST /v1/login", Tag: "Session", Summary: "Sign in. With cookie, the session is set as a cookie and not returned.", By: "e-mail and password",
			Timeout: timeout, MaxBody: maxBody, Described: LoginAnswer{}}, func(ctx context.Context, l login) (http.Handler, error) {
			return signedIn(l.Request, l.Body.Cookie, log, func() (account.Login, error) {
				from := account.From{Addr: auth.CallerFrom(ctx).Addr, Device: from(l.Request, "").Device}
				return second.LoginWith(ctx, l.Body.Email, logging.Secret(l.Body.Password), logging.Secret(l.Body.Code), from)
			})
		}),
		op.New(op.Spec{Route: "POST /v1/logout", Tag: "Session", Summary: "End this session.", Roles: auth.People, Plain: true, Timeout: timeout},
			func(ctx context.Context, _ op.None) (http.Handler, error) {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					http.SetCookie(w, sessionCookie(r, ""))
					w.WriteHeader(http.StatusNoContent)
				}), in.Logout(ctx, sessionToken(ctx))
			}),
		op.New(op.Spec{Route: "GET /v1/me", Tag: "Session", Summary: "Show who the caller is.", Roles: auth.People, Timeout: timeout}.With(
			op.Command{Use: "whoami", Short: "Show who you are signed in as, and your role", Table: "e-mail=.email; role; id\n={{if .must_change}}This is a one-time password. Choose your own with: kennelctl password{{end}}"}),
			func(ctx context.Context, _ op.None) (Account, error) {
				who, _, err := in.Authenticate(ctx, sessionToken(ctx), auth.CallerFrom(ctx).Addr)
				return shown(who), err
			}),
		op.New(op.Spec{Route: "POST /v1/me/password", Tag: "Session", Summary: "Change your password. Your other sessions end.", Roles: auth.People, Timeout: timeout, MaxBody: maxBody},
			func(ctx context.Context, p PasswordRequest) (op.None, error) {
				id, from := caller(ctx)
				return op.None{}, in.ChangePassword(ctx, id, logging.Secret(p.Old), logging.Secret(p.New), sessionToken(ctx), from)
			}),
	}
}

// signedIn asks for a session and hands it over, as a cookie if that is wanted.
func signedIn(r *http.Request, cookie bool, log *slog.Logger, ask func() (account.Login, error)) (http.Handler, error) {
	if cookie && kithttp.SameOrigin(r) != nil { // another site must not sign a browser in under its own account
		return nil, op.CrossSite()
	}
	l, err := ask()
	if err != nil {
		log.WarnContext(r.Context(), "login refused", "addr", peer(r), "code", errs.CodeOf(err), "err", err)
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := LoginAnswer{Token: l.Token.Reveal(), Expires: l.Expires, Account: shown(l.Account)}
		if cookie {
			answer.Token = ""
			setCookies(w, r, l)
		}
		kithttp.WriteJSON(w, http.StatusOK, answer)
	}), nil
}

func shown(a account.Account) Account { return Account{a.ID, a.Email, a.Role, a.MustChange} }
