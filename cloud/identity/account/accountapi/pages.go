package accountapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"kennel/cloud/identity/account"
	"kennel/cloud/page/language"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

// The pages that letters lead to, and those for people without an account. They need no script. Looking at one changes nothing, because mail
// programs and their scanners look at every link; only the button does.

// pageStyle has the colours and shapes of the owners' pages (cloud/web/companion), to which these lead; staffStyle has the console's.
const (
	pageStyle = `:root{--ground:#faf3ea;--surface:#fffdfa;--line:#e8d9c6;--strong:#8f7b66;--ink:#2b211a;--ink2:#66564a;--accent:#b4491f;` +
		`--on:#fffaf5;--soft:#fbe3d3;--fail:#b3261e;--round:22px;--field:14px;--pill:99px;color-scheme:light dark}` +
		`@media(prefers-color-scheme:dark){:root{--ground:#1b1511;--surface:#261e18;--line:#3d3026;--strong:#a08a75;--ink:#f6ece1;--ink2:#c9b7a5;` +
		`--accent:#ff9a63;--on:#2a1206;--soft:#472a1b;--fail:#ff968c}}` +
		`*{box-sizing:border-box}body{margin:0;min-height:100vh;display:flex;flex-direction:column;background:var(--ground);color:var(--ink);` +
		`font:1.0625rem/1.55 ui-rounded,Quicksand,Nunito,system-ui,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif}` +
		`main,footer,header{width:100%;max-width:36rem;margin-inline:auto;padding:1rem}header{font-weight:700;font-size:1.25rem}` +
		`footer{color:var(--ink2);font-size:.875rem;text-align:center}main{flex:1}` +
		`section{background:var(--surface);border:1px solid var(--line);border-radius:var(--round);padding:1.75rem 1.5rem}` +
		`h1{margin:0 0 .75rem;font-size:1.75rem;line-height:1.2;letter-spacing:-.02em}` +
		`label{display:block;margin:1rem 0;font-weight:600}input{display:block;width:100%;min-height:3.25rem;margin-top:.5rem;padding:0 1rem;` +
		`font:inherit;color:inherit;background:var(--surface);border:1.5px solid var(--strong);border-radius:var(--field)}` +
		`button,.go{display:inline-flex;align-items:center;min-height:3.25rem;padding:0 1.5rem;font:inherit;font-weight:700;color:var(--on);` +
		`background:var(--accent);border:0;border-radius:var(--pill);text-decoration:none;cursor:pointer}` +
		`a{color:var(--accent);text-underline-offset:.2em}.ways{margin:1rem 0 0}` +
		`.ways a{display:inline-flex;align-items:center;min-height:2.75rem;margin-right:1rem}` +
		`:focus-visible{outline:3px solid var(--accent);outline-offset:3px}.bad{color:var(--fail);font-weight:600}` +
		`.good{padding:.75rem 1rem;background:var(--soft);border-radius:var(--field);font-weight:600}code{overflow-wrap:anywhere}`
	staffStyle = pageStyle +
		`:root{--ground:#f6f5f2;--surface:#fff;--line:#e0ded8;--strong:#85847e;--ink:#1c1e21;--ink2:#50535a;--accent:#0b6b61;--on:#fff;` +
		`--soft:#dceeea;--round:12px;--field:8px;--pill:8px}` +
		`@media(prefers-color-scheme:dark){:root{--ground:#121416;--surface:#1a1d20;--line:#2d3237;--strong:#7c838a;--ink:#eceeee;--ink2:#b6bbc0;` +
		`--accent:#5cc9b8;--on:#06231f;--soft:#17322e}}` +
		`body{font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif}`
)

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark"><title>{{.Title}} - {{.Site}}</title><style>{{.Style}}</style></head><body><header translate="no">{{.Site}}</header><main><section>
<h1>{{.Title}}</h1>
{{with .Problem}}<p class="bad" role="alert">{{.}}</p>{{end}}
{{with .Done}}<p class="good" role="status">{{.}}</p>{{end}}
{{with .Next}}<p><a class="go" href="{{.Address}}">{{.Text}}</a></p>{{end}}
{{if .Fields}}<p>{{.Intro}}</p>
<form method="post" action="/account/{{.Name}}">
{{range .Fields}}<label>{{.Label}}<input name="{{.Name}}" type="{{.Type}}" value="{{.Value}}" autocomplete="{{.Complete}}" required{{if eq .Type "password"}} maxlength="256"{{end}}></label>
{{end}}<button>{{.Button}}</button>
</form>{{end}}{{with .Ways}}<p class="ways">{{range .}}<a href="{{.Address}}">{{.Text}}</a> {{end}}</p>{{end}}
</section></main><footer>Your data stays on this server.</footer></body></html>
`))

// pagePolicy lets the pages' own styles through and nothing else.
var pagePolicy = func() string {
	hash := func(style string) string {
		sum := sha256.Sum256([]byte(style))
		return " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src" + hash(pageStyle) + hash(staffStyle) + "; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

type pageField struct{ Name, Label, Type, Complete, Value string }

type pageLink struct{ Text, Address string }

type accountPage struct {
	Name, Title, Intro, Button string
	Fields                     []pageField
	Ways                       []pageLink
	done                       string
	next                       pageLink     // where the person continues afterwards; "": nowhere
	then                       *accountPage // the form that follows instead
	act                        func(c pageCall) error
}

// pageCall is one form that was sent.
type pageCall struct {
	ctx  context.Context
	w    http.ResponseWriter
	r    *http.Request
	f    map[string]string
	addr string
}

func (c pageCall) secret(name string) logging.Secret { return logging.Secret(c.f[name]) }

var (
	emailField   = pageField{Name: "email", Label: "E-mail", Type: "email", Complete: "email"}
	codeField    = pageField{Name: "code", Label: "Code from the e-mail", Type: "text", Complete: "one-time-code"}
	chosenField  = pageField{Name: "password", Label: "The password you chose", Type: "password", Complete: "current-password"}
	currentField = pageField{Name: "old", Label: "Current password", Type: "password", Complete: "current-password"}
	newField     = pageField{Name: "password", Label: "New password, at least 10 characters", Type: "password", Complete: "new-password"}
	repeatField  = pageField{Name: "again", Label: "New password again", Type: "password", Complete: "new-password"}
	firstField   = pageField{Name: "password", Label: "Password, at least 10 characters", Type: "password", Complete: "new-password"}
	toSignIn     = pageLink{"Sign in", "/my/login"}
)

const letterSent = "If the address is correct, we have sent an e-mail to it. Enter the code here or follow the link."

func mountPages(mux *http.ServeMux, o ownersAPI) {
	verify := accountPage{Name: "verify", Title: "Confirm your e-mail", Button: "Confirm",
		Intro:  "Enter the code from the e-mail and the password that you chose when you signed up. If you did not sign up, close this page.",
		Fields: []pageField{codeField, chosenField}, Ways: []pageLink{{"Send the e-mail again", "/account/again"}},
		done: "Your account is ready.", next: pageLink{"Continue", "/my"}, act: o.verifyHere}
	reset := accountPage{Name: "reset", Title: "Choose a new password", Intro: "You will be signed out everywhere. Sign in again with the new password.",
		Button: "Set password", Fields: []pageField{codeField, newField}, Ways: []pageLink{toSignIn},
		done: "Password changed. You can sign in with it now.", next: toSignIn,
		act: func(c pageCall) error {
			device, err := o.Letters.ResetFrom(c.ctx, c.secret("code"), c.secret("password"), from(c.r, c.addr))
			if err == nil {
				http.SetCookie(c.w, deviceCookie(c.r, device))
			}
			return err
		}}
	for _, p := range []accountPage{verify, reset,
		{Name: "signup", Title: "Sign up", Intro: "An account lets you add your robot and change its settings.", Button: "Sign up",
			Fields: []pageField{emailField, firstField}, Ways: []pageLink{{"I have an account", "/my/login"}},
			done: letterSent, then: &verify, act: o.signUpHere},
		{Name: "again", Title: "Send the e-mail again", Intro: "We will send the sign-up e-mail again.", Button: "Send",
			Fields: []pageField{emailField}, Ways: []pageLink{{"Sign up", "/account/signup"}},
			done: letterSent, then: &verify,
			act: func(c pageCall) error { return o.Letters.AskAgain(c.ctx, c.f["email"], c.addr) }},
		{Name: "forgot", Title: "Forgot your password?", Intro: "We will send you an e-mail with a code.", Button: "Send",
			Fields: []pageField{emailField}, Ways: []pageLink{toSignIn}, done: letterSent, then: &reset,
			act: func(c pageCall) error { return o.Letters.AskReset(c.ctx, c.f["email"], "", c.addr) }},
		{Name: "email", Title: "Confirm your new e-mail", Intro: "Your account will use this address from now on.", Button: "Confirm",
			Fields: []pageField{codeField}, done: "Your account now uses the new address.", next: toSignIn,
			act: func(c pageCall) error { return o.Letters.ChangeEmail(c.ctx, c.secret("code"), c.addr) }},
		{Name: "password", Title: "Choose a new password", Button: "Set password",
			Intro:  "A first password must be replaced before you continue. Your other sessions will end.",
			Fields: []pageField{currentField, newField, repeatField}, done: "Password changed.", next: pageLink{"Continue", "/"}, act: o.changeHere},
	} {
		mux.Handle("GET /account/"+p.Name, o.show(p))
		mux.Handle("POST /account/"+p.Name, o.sameSite(o.act(p)))
	}
}

func (o ownersAPI) changeHere(c pageCall) error {
	id, _ := caller(c.ctx)
	if id == "" {
		return errs.New(errs.Unauthenticated, "sign in first")
	}
	if c.f["again"] != c.f["password"] {
		return errs.New(errs.Invalid, "the two new passwords are not the same")
	}
	return o.SignIn.ChangePassword(c.ctx, id, c.secret("old"), c.secret("password"), sessionToken(c.ctx), c.addr)
}

// signupCookie holds the session of a sign-up in the browser that signed up, which need not give the password again; an empty token deletes it.
// It is Lax, so that the browser sends it when the person follows the link of a letter on a mail provider's site.
func signupCookie(r *http.Request, token logging.Secret) *http.Cookie {
	c := sessionCookie(r, token)
	c.Name, c.SameSite = c.Name+"-signup", http.SameSiteLaxMode
	if token != "" {
		c.MaxAge = int(account.DefaultSignupTTL.Seconds())
	}
	return c
}

// signedUp returns the session of a sign-up that this browser has; "" if none.
func signedUp(r *http.Request) logging.Secret {
	c, err := r.Cookie(CookieName(r) + "-signup")
	if err != nil {
		return ""
	}
	return logging.Secret(c.Value)
}

func (o ownersAPI) signUpHere(c pageCall) error {
	s, err := o.Apps.SignUp(c.ctx, account.NewOwner{Email: c.f["email"], Password: c.secret("password")}, c.addr)
	if err != nil {
		return err
	}
	cookie := signupCookie(c.r, s.Token)
	http.SetCookie(c.w, cookie)
	c.r.AddCookie(cookie) // the form that follows knows it already
	return nil
}

// verifyHere proves an e-mail and signs the person in.
func (o ownersAPI) verifyHere(c pageCall) (err error) {
	var l account.Login
	if _, asked := c.f["password"]; !asked && signedUp(c.r) != "" {
		l, err = o.Apps.Verify(c.ctx, c.secret("code"), signedUp(c.r), c.addr)
	} else {
		var a account.Account
		if a, err = o.Letters.Verify(c.ctx, c.secret("code"), c.secret("password"), c.addr); err == nil {
			l, err = o.SignIn.LoginFrom(c.ctx, a.Email, c.secret("password"), from(c.r, c.addr))
		}
	}
	if err != nil && errs.CodeOf(err) != "other_signup" {
		return err
	}
	http.SetCookie(c.w, signupCookie(c.r, ""))
	if err != nil {
		c.r.Header.Del("Cookie") // the form asks for the password now
		return err
	}
	setCookies(c.w, c.r, l)
	return nil
}

// page answers with a page: its form, or after it was done the message with what comes next. A problem is why the last try failed.
func (o ownersAPI) page(w http.ResponseWriter, r *http.Request, p accountPage, code, problem, done string, status int) {
	p.Fields = slices.Clone(p.Fields)
	if p.Name == "verify" && signedUp(r) != "" {
		p.Intro, p.Fields = "Enter the code from the e-mail.", p.Fields[:1]
	}
	for i := range p.Fields {
		switch f := &p.Fields[i]; {
		case f.Name == "code":
			f.Value = code
		case p.Name == "again" && signedUp(r) != "":
			s, _ := o.Apps.Session(r.Context(), signedUp(r)) // else the field is empty
			f.Value = s.Record.Email
		}
	}
	v := struct {
		accountPage
		Site, Problem, Done string
		Next                *pageLink
		Style               template.CSS
	}{p, o.Site, problem, done, nil, pageStyle}
	staff := auth.CallerFrom(r.Context()).Role.Staff()
	if staff {
		v.Style = staffStyle
	}
	if done != "" && p.next.Address != "" {
		v.Next, v.Fields, v.Ways = &p.next, nil, nil
		if p.next.Address == "/" && !staff {
			v.Next.Address = "/my"
		}
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer") // the link has the code in it
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	html := b.Bytes()
	if !staff {
		html = language.Of(r).Answer(h, html)
	}
	w.WriteHeader(status)
	_, _ = w.Write(html) // the peer is gone
}

// shownCode is the code as the page repeats it.
func shownCode(code string) string {
	if len(code) > 100 {
		return ""
	}
	return code
}

func (o ownersAPI) show(p accountPage) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.page(w, r, p, shownCode(r.URL.Query().Get("code")), "", "", http.StatusOK)
	})
}

func (o ownersAPI) act(p accountPage) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := fields(r)
		if err == nil {
			ctx, cancel := context.WithTimeout(withPeer(r), timeout)
			defer cancel()
			err = p.act(pageCall{ctx, w, r, f, addr(r)})
		}
		if err != nil {
			o.note(r, err)
			problem := errs.Public(err) + "."
			o.page(w, r, p, shownCode(f["code"]), strings.ToUpper(problem[:1])+problem[1:], "", kithttp.RefuseForm(w, err))
			return
		}
		next := p
		if p.then != nil {
			next = *p.then
			next.next = pageLink{}
		}
		o.page(w, r, next, "", "", p.done, http.StatusOK)
	})
}
