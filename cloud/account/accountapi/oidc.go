package accountapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"kennel/cloud/account"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

// IdentityProvider says who an operator is: an accountoidc.Provider.
type IdentityProvider interface {
	// URL returns where to send a browser.
	URL(ctx context.Context, state, nonce, verifier string) (string, error)
	// Identity exchanges the code that the browser brought back. Errors: account.ErrIdentity; Unavailable.
	Identity(ctx context.Context, code, nonce, verifier string) (account.Identity, error)
}

const (
	oidcCookieTime = 600      // seconds that a person may take at the provider
	maxOIDCQuery   = 16 << 10 // bytes
	oidcPath       = "/login/oidc"
)

// MountOIDC adds signing in by way of an identity provider to mux, which must be behind Authenticator.
//
//	GET /login/oidc            sends the browser to the provider
//	GET /login/oidc/callback   takes what it brings back and sets the session's cookie
//
// What was sent along (state, nonce, PKCE verifier) is in a cookie of the browser that began: an answer that belongs to another browser's sign-in is
// refused, and any process can take it.
func MountOIDC(mux *http.ServeMux, svc *account.Service, p IdentityProvider, log *slog.Logger) {
	o := oidcAPI{svc, p, log}
	mux.HandleFunc("GET "+oidcPath, o.begin)
	mux.HandleFunc("GET "+oidcPath+"/callback", o.callback)
}

type oidcAPI struct {
	svc *account.Service
	p   IdentityProvider
	log *slog.Logger
}

// oidcCookie holds what began the sign-in; an empty value deletes it. Lax, because the provider's answer comes from another site.
func oidcCookie(r *http.Request, value string) *http.Cookie {
	name := cookieName(r)
	c := &http.Cookie{Name: name + "-oidc", Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: name == SecureCookie, MaxAge: oidcCookieTime}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

func (o oidcAPI) refuse(w http.ResponseWriter, r *http.Request, err error) {
	o.log.WarnContext(r.Context(), "login refused", logging.Addr, addr(r), "code", errs.CodeOf(err), logging.Err, err)
	kithttp.WriteError(w, err)
}

func (o oidcAPI) begin(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	state, nonce, verifier := rand.Text(), rand.Text(), rand.Text()+rand.Text()
	to, err := o.p.URL(ctx, state, nonce, verifier)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	http.SetCookie(w, oidcCookie(r, state+"."+nonce+"."+verifier))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// oidcDone leads on from a page of ours: on a redirect that began at the provider's site the browser would not send the new cookie.
const oidcStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:26em;margin:3em auto;padding:0 1em}`

const oidcDone = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>Signed in</title><style>` + oidcStyle + `</style></head>
<body><p>You are signed in. <a href="/">Go on</a></p></body></html>
`

var oidcPolicy = func() string {
	sum := sha256.Sum256([]byte(oidcStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'; base-uri 'none'"
}()

func (o oidcAPI) callback(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	l, err := o.login(ctx, r)
	http.SetCookie(w, oidcCookie(r, "")) // it is good once
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address has the code in it
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	http.SetCookie(w, sessionCookie(r, l.Token))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", oidcPolicy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(oidcDone)) // the peer is gone: nobody to tell
}

func (o oidcAPI) login(ctx context.Context, r *http.Request) (account.Login, error) {
	began := errs.Coded(errs.Unauthenticated, "oidc_state", "this sign-in was not begun here, or too long ago: begin again at %s", oidcPath)
	if len(r.URL.RawQuery) > maxOIDCQuery {
		return account.Login{}, began
	}
	c, err := r.Cookie(cookieName(r) + "-oidc")
	if err != nil {
		return account.Login{}, began
	}
	sent := strings.Split(c.Value, ".")
	q := r.URL.Query()
	if len(sent) != 3 || sent[0] == "" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(sent[0])) != 1 {
		return account.Login{}, began
	}
	if err := o.svc.Pace(addr(r)); err != nil {
		return account.Login{}, err
	}
	refused := errs.Coded(errs.Unauthenticated, "oidc_refused", "the identity provider's answer is not accepted: begin again at %s", oidcPath)
	if q.Get("code") == "" {
		o.log.WarnContext(ctx, "identity provider refused", logging.Addr, addr(r), "answer", clipped(q.Get("error")))
		return account.Login{}, refused
	}
	id, err := o.p.Identity(ctx, q.Get("code"), sent[1], sent[2])
	if errors.Is(err, account.ErrIdentity) {
		o.log.WarnContext(ctx, "identity provider's answer refused", logging.Addr, addr(r), logging.Err, err)
		return account.Login{}, refused
	}
	if err != nil {
		return account.Login{}, err
	}
	return o.svc.LoginIdentity(ctx, id, addr(r))
}

func clipped(s string) string { return s[:min(len(s), 100)] }
