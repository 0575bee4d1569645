package accountapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

// Names of the session cookie, which a port other than the usual one is added to: browsers send a cookie to every port of a host, so that two clouds at one
// name would take each other's for their own. On a loopback host, where one cloud follows another at the same port, the name of the cloud is added too. Browsers hold a __Host- cookie to Secure, this host and Path=/. The plain name is for plain HTTP on this very
// machine, where browsers keep no Secure cookies.
const (
	SecureCookie = "__Host-kennel"
	PlainCookie  = "kennel"
)

// CSRFHeader, with any value, proves that a request with a cookie was made by a script of ours: other origins cannot set it. Browsers that
// send Sec-Fetch-Site or Origin need it not.
const CSRFHeader = "X-Kennel-CSRF"

// Authenticator returns the middleware that turns a session token, from Authorization: Bearer or from the cookie, into the auth.Caller of the
// request's context. A request without a token passes: endpoints say what they need with auth.Require. Refused are a bearer token that has
// expired (401); a request that changes something, carries the cookie and was not made by our own pages (403); and every request with a token
// while the database is away (503). An operator with a first password, which another person has seen, may only choose another one: other
// requests are refused (403 "password_must_change"), and browsers are led to the page. So is an operator whose session lacks a second factor (403
// "second_factor", "second_factor_setup"). A long request that reads ends when its session does. A
// request that changes something is not cut off halfway: it may be the one that ends the session.
func Authenticator(in *account.SignIn, log *slog.Logger) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r = r.WithContext(context.WithValue(r.Context(), instanceKey{}, in.Instance()))
			caller := auth.Caller{Addr: peer(r)}
			var who account.Account
			token, cookie := tokenOf(r)
			if token != "" {
				a, session, err := in.Authenticate(r.Context(), token, caller.Addr)
				switch {
				case err == nil && cookie && !ours(r):
					kithttp.WriteError(w, errs.Coded(errs.Denied, "cross_site", "this request was not made by a page of this site; programs use Authorization: Bearer, scripts send %s", CSRFHeader))
					return
				case err == nil && account.OnlyNewPassword(a, session) && !forNewPassword(r):
					if cookie && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
						http.Redirect(w, r, passwordPage, http.StatusSeeOther)
						return
					}
					kithttp.WriteError(w, errs.Coded(errs.Denied, "password_must_change",
						"this is a one-time password; first choose your own, with kennelctl password or on the page %s", passwordPage))
					return
				case err == nil && !account.OnlyNewPassword(a, session) && in.Lacks(a, session) != account.LacksNothing && !forSecond(r, in.Lacks(a, session)):
					if cookie && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
						http.Redirect(w, r, secondPage, http.StatusSeeOther)
						return
					}
					kithttp.WriteError(w, lackRefused(in.Lacks(a, session)))
					return
				case err == nil:
					who = a
					caller.Role, caller.Account, caller.Name = a.Role, string(a.ID), a.Email
				case errs.KindOf(err) != errs.Unauthenticated:
					log.ErrorContext(r.Context(), "session not checked", "err", err)
					kithttp.WriteError(w, err)
					return
				case !cookie: // a browser with an old cookie may still see the page that signs in
					kithttp.WriteError(w, err)
					return
				default:
					token = ""
				}
			}
			ctx := auth.WithCaller(r.Context(), caller)
			if token != "" {
				ctx = context.WithValue(ctx, tokenKey{}, token)
				if r.Method == http.MethodGet {
					var end func()
					ctx, end = whileGood(ctx, in, token, who)
					defer end()
				}
			}
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// ours reports whether a request with a cookie is safe, or was made by a page of this origin. A request without any sign of where it comes
// from must carry CSRFHeader.
func ours(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	if kithttp.SameOrigin(r) != nil {
		return false
	}
	return r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "" || r.Header.Get(CSRFHeader) != ""
}

// passwordPage is where people change a password that they know.
const passwordPage = "/account/password"

// forNewPassword reports whether a request is one that a person with a first password may make.
func forNewPassword(r *http.Request) bool {
	return slices.Contains([]string{"GET /v1/me", "POST /v1/me/password", "POST /v1/login", "POST /v1/logout", "POST /login", "POST /logout",
		"GET " + passwordPage, "POST " + passwordPage}, r.Method+" "+r.URL.Path) || strings.HasPrefix(r.URL.Path, "/assets/")
}

// recheck is how often a request that lasts (a stream) is asked whether its session is still good.
const recheck = time.Second

// whileGood returns a context that ends when the session of a request that lasts ends, here or in another process. end must be called. A check that
// cannot be made, because the database is away, is made again.
func whileGood(ctx context.Context, in *account.SignIn, token logging.Secret, who account.Account) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex // held until timer is set
	mu.Lock()
	defer mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(recheck, func() {
		if ctx.Err() != nil {
			return
		}
		if good, err := in.StillGood(ctx, token, who); !good && err == nil {
			cancel()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		timer.Reset(recheck)
	})
	return ctx, func() { cancel(); timer.Stop() }
}

type (
	tokenKey    struct{}
	instanceKey struct{}
)

// sessionToken returns the token that authenticated this request; "" if none did.
func sessionToken(ctx context.Context) logging.Secret {
	t, _ := ctx.Value(tokenKey{}).(logging.Secret)
	return t
}

// tokenOf returns the token a request carries, and whether it came as a cookie. A bearer token wins.
func tokenOf(r *http.Request) (logging.Secret, bool) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, token, _ := strings.Cut(h, " ")
		if strings.EqualFold(scheme, "Bearer") {
			return logging.Secret(strings.TrimSpace(token)), false
		}
	}
	if c, err := r.Cookie(CookieName(r)); err == nil {
		return logging.Secret(c.Value), true
	}
	return "", false
}

// CookieName is PlainCookie on plain HTTP between a browser and this very machine, else SecureCookie: behind a load balancer the connection
// is plain too, but the browser's is not. A port in the address that the browser asked for is added, and on a loopback host the instance that
// Authenticator noted in r's context.
func CookieName(r *http.Request) string {
	name := SecureCookie
	if kithttp.PlainLocal(r) {
		name = PlainCookie
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "-" + port
	}
	if instance, _ := r.Context().Value(instanceKey{}).(string); instance != "" && kithttp.Loopback(r.Host) {
		name += "-" + instance
	}
	return name
}

// peer returns the address of the caller without its port.
func peer(r *http.Request) string {
	if h, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return h
	}
	return r.RemoteAddr
}

// sessionCookie returns the cookie for a token; an empty token deletes it.
func sessionCookie(r *http.Request, token logging.Secret) *http.Cookie {
	c := &http.Cookie{Name: CookieName(r), Value: token.Reveal(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: !kithttp.PlainLocal(r)}
	if token == "" {
		c.MaxAge = -1
	}
	return c
}

// deviceCookie holds what makes a browser known, so that strangers who guess elsewhere do not keep its people out. It opens nothing.
func deviceCookie(r *http.Request, device logging.Secret) *http.Cookie {
	c := sessionCookie(r, device)
	c.Name += "-device"
	c.MaxAge = int(account.DeviceTTL.Seconds())
	return c
}

// from says where a request that signs in comes from.
func from(r *http.Request, addr string) account.From {
	f := account.From{Addr: addr}
	if c, err := r.Cookie(CookieName(r) + "-device"); err == nil && len(c.Value) <= 512 {
		f.Device = logging.Secret(c.Value)
	}
	return f
}

// setCookies makes a browser signed in, and known.
func setCookies(w http.ResponseWriter, r *http.Request, l account.Login) {
	http.SetCookie(w, sessionCookie(r, l.Token))
	if l.Device != "" {
		http.SetCookie(w, deviceCookie(r, l.Device))
	}
}
