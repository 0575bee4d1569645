package accountapi

import (
	"log/slog"
	"net/http"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Browser signs people in and out of pages with forms, under the same cookie as POST /v1/login gives.
type Browser struct {
	In  *account.SignIn
	Log *slog.Logger
}

// SignIn checks e-mail and password and sets the session's cookie. Errors as SignIn.Login.
func (b Browser) SignIn(w http.ResponseWriter, r *http.Request, email, password string) error {
	l, err := b.In.LoginFrom(r.Context(), email, logging.Secret(password), from(r, auth.CallerFrom(r.Context()).Addr))
	if err != nil {
		b.Log.WarnContext(r.Context(), "login refused", "addr", peer(r), "code", errs.CodeOf(err), "err", err)
		return err
	}
	setCookies(w, r, l)
	return nil
}

// SignOut ends the session of r and removes its cookie; without one it only removes the cookie.
func (b Browser) SignOut(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, sessionCookie(r, ""))
	if t := sessionToken(r.Context()); t != "" {
		return b.In.Logout(r.Context(), t)
	}
	return nil
}
