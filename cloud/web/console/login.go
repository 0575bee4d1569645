package console

import (
	"net/http"
	"net/url"
	"strings"

	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
)

// oidcPath is where signing in by way of the identity provider begins (accountapi.MountOIDC).
const oidcPath = "/login/oidc"

type loginView struct {
	Email, Next, Error string
	Provider, ByOIDC   string // what people call the identity provider, and where it begins; "": there is none
	Passkeys           page.Passkeys
	Owners             bool // owners sign in here too, and have their own pages
}

// refusals say why a provider's word, or a passkey's, was not enough. They tell a stranger nothing: what is wrong with an account, only its
// administrators see, in the log.
var refusals = map[string]string{
	"oidc_state":        "This sign-in was started in another browser or more than ten minutes ago. Start again.",
	"oidc_denied":       "The identity provider refused the sign-in, or you cancelled it.",
	"oidc_refused":      "The identity provider's answer was not valid. Try again. If it happens again, ask an administrator to check the log.",
	"oidc_email":        "Your e-mail address is not confirmed at the identity provider. Confirm it there, then try again.",
	"oidc_role":         "None of your groups has a role here. Ask an administrator for access.",
	"oidc_account":      "Your account here cannot sign in through the identity provider. Ask an administrator.",
	"oidc_away":         "The identity provider is not responding. Try again in a moment, or sign in another way.",
	"too_many_attempts": "Too many attempts from your address. Wait a moment, then try again.",
}

const refusedElse = "Sign-in failed. Try again."

// local returns next if it is a page of this console, else the fleet.
func local(next string) string { return page.Local(next, "/", "/login", "/live", "/assets") }

func (c *console) newLogin(r *http.Request, email, next string) loginView {
	v := loginView{Email: email, Next: local(next), Provider: c.Provider, Passkeys: page.PasskeysAt(r, c.PasskeySites), Owners: c.Mine}
	if v.Provider != "" {
		v.ByOIDC = oidcPath + "?" + url.Values{"next": {v.Next}}.Encode()
	}
	return v
}

func (c *console) loginPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	v := c.newLogin(r, "", q.Get("next"))
	if auth.CallerFrom(r.Context()).Role.Staff() {
		http.Redirect(w, r, v.Next, http.StatusSeeOther)
		return
	}
	code := http.StatusOK
	if why := q.Get("refused"); why != "" {
		known := false
		if v.Error, known = refusals[why]; !known {
			v.Error = refusedElse
		}
		code = http.StatusForbidden
	}
	c.Page(w, r, code, "login", frame{Title: "Sign in", Main: v})
}

func (c *console) login(w http.ResponseWriter, r *http.Request) {
	form, err := page.Form(r)
	if err != nil {
		c.Fail(w, r, err)
		return
	}
	v := c.newLogin(r, strings.TrimSpace(form.Get("email")), form.Get("next"))
	err = c.Auth.SignIn(w, r, v.Email, form.Get("password"))
	if err == nil {
		http.Redirect(w, r, v.Next, http.StatusSeeOther)
		return
	}
	v.Error = c.words(r, "sign-in failed", err)
	kithttp.RetryAfter(w, err)
	c.Page(w, r, kithttp.StatusOf(errs.KindOf(err)), "login", frame{Title: "Sign in", Main: v})
}
