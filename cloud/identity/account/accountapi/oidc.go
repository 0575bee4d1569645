package accountapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"kennel/cloud/identity/account"
	"kennel/cloud/page"
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
	maxOIDCNext    = 2 << 10  // of the address to continue at: browsers keep no cookies larger than 4 KiB
	oidcPath       = "/login/oidc"
)

// MountOIDC adds signing in by way of an identity provider to mux, which must be behind Authenticator.
//
//	GET /login/oidc?next=      sends the browser to the provider; next: the page to continue at
//	GET /login/oidc/callback   takes what it brings back and sets the session's cookie
//
// What was sent along (state, nonce, PKCE verifier) is in a cookie of the browser that began: an answer that belongs to another browser's sign-in is
// refused, and any process can take it. A browser that is refused is led to /login?refused=CODE, which says what to do.
func MountOIDC(mux *http.ServeMux, ops *account.Operators, p IdentityProvider, log *slog.Logger) {
	o := oidcAPI{ops, p, log}
	mux.HandleFunc("GET "+oidcPath, o.begin)
	mux.HandleFunc("GET "+oidcPath+"/callback", o.callback)
}

type oidcAPI struct {
	ops *account.Operators
	p   IdentityProvider
	log *slog.Logger
}

// oidcCookie holds what began the sign-in; an empty value deletes it. Lax, because the provider's answer comes from another site.
func oidcCookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{Name: CookieName(r) + "-oidc", Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !kithttp.PlainLocal(r), MaxAge: oidcCookieTime}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

func (o oidcAPI) refuse(w http.ResponseWriter, r *http.Request, err error) {
	o.log.WarnContext(r.Context(), "login refused", logging.Addr, addr(r), "code", errs.CodeOf(err), logging.Err, err)
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		kithttp.WriteError(w, err)
		return
	}
	code := errs.CodeOf(err)
	switch {
	case errs.KindOf(err) == errs.Unavailable:
		code = "oidc_away"
	case code == "":
		code = "failed"
	}
	http.Redirect(w, r, "/login?"+url.Values{"refused": {code}}.Encode(), http.StatusSeeOther)
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
	next := base64.RawURLEncoding.EncodeToString([]byte(page.Local(r.URL.Query().Get("next"), "/", "/login")))
	if len(next) > maxOIDCNext {
		next = ""
	}
	http.SetCookie(w, oidcCookie(r, state+"."+nonce+"."+verifier+"."+next))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

const oidcStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:26em;margin:3em auto;padding:0 1em}`

// oidcDone leads on from a page of ours: on a redirect that began at the provider's site the browser would not send the new cookie.
var oidcDone = template.Must(template.New("done").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={{.}}"><title>Signed in</title><style>` + oidcStyle + `</style></head>
<body><p>You are signed in. <a href="{{.}}">Continue</a></p></body></html>
`))

var oidcPolicy = func() string {
	sum := sha256.Sum256([]byte(oidcStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'; base-uri 'none'"
}()

func (o oidcAPI) callback(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	l, next, err := o.login(ctx, r)
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
	_ = oidcDone.Execute(w, next) // the peer is gone
}

func (o oidcAPI) login(ctx context.Context, r *http.Request) (l account.Login, next string, err error) {
	began := errs.Coded(errs.Unauthenticated, "oidc_state", "this sign-in was not started here, or has expired: start again at %s", oidcPath)
	if len(r.URL.RawQuery) > maxOIDCQuery {
		return l, "", began
	}
	c, err := r.Cookie(CookieName(r) + "-oidc")
	if err != nil {
		return l, "", began
	}
	sent := strings.Split(c.Value, ".")
	q := r.URL.Query()
	if len(sent) != 4 || sent[0] == "" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(sent[0])) != 1 {
		return l, "", began
	}
	if err := o.ops.Pace(addr(r)); err != nil {
		return l, "", err
	}
	refused := errs.Coded(errs.Unauthenticated, "oidc_refused", "the identity provider's answer is not accepted: start again at %s", oidcPath)
	if q.Get("code") == "" {
		o.log.WarnContext(ctx, "identity provider refused", logging.Addr, addr(r), "answer", clipped(q.Get("error")))
		if q.Get("error") == "access_denied" { // RFC 6749, section 4.1.2.1
			refused = errs.Coded(errs.Unauthenticated, "oidc_denied", "the identity provider did not sign you in, or you cancelled there: start again at %s", oidcPath)
		}
		return l, "", refused
	}
	id, err := o.p.Identity(ctx, q.Get("code"), sent[1], sent[2])
	if errors.Is(err, account.ErrIdentity) {
		o.log.WarnContext(ctx, "identity provider's answer refused", logging.Addr, addr(r), logging.Err, err)
		return l, "", refused
	}
	if err != nil {
		return l, "", err
	}
	where, err := base64.RawURLEncoding.DecodeString(sent[3])
	if err != nil {
		return l, "", began
	}
	l, err = o.ops.LoginIdentity(ctx, id, addr(r))
	return l, page.Local(string(where), "/", "/login"), err
}

func clipped(s string) string { return s[:min(len(s), 100)] }
