package accountapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"

	"kennel/cloud/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// The pages that letters lead to, and those for people without an account. They need no script. Looking at one changes nothing, because mail
// programs and their scanners look at every link; only the button does.

// pageStyle has the colours and shapes of the owners' pages (cloud/companion), to which these lead.
const pageStyle = `:root{--ground:#faf3ea;--surface:#fffdfa;--line:#e8d9c6;--strong:#8f7b66;--ink:#2b211a;--ink2:#66564a;--accent:#b4491f;--on:#fffaf5;--soft:#fbe3d3;--fail:#b3261e;color-scheme:light dark}` +
	`@media(prefers-color-scheme:dark){:root{--ground:#1b1511;--surface:#261e18;--line:#3d3026;--strong:#a08a75;--ink:#f6ece1;--ink2:#c9b7a5;--accent:#ff9a63;--on:#2a1206;--soft:#472a1b;--fail:#ff968c}}` +
	`*{box-sizing:border-box}body{margin:0;min-height:100vh;display:flex;flex-direction:column;background:var(--ground);color:var(--ink);font:1.0625rem/1.55 ui-rounded,Quicksand,Nunito,system-ui,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif}` +
	`main,footer,header{width:100%;max-width:36rem;margin-inline:auto;padding:1rem}header{font-weight:700;font-size:1.25rem}footer{color:var(--ink2);font-size:.875rem;text-align:center}main{flex:1}` +
	`section{background:var(--surface);border:1px solid var(--line);border-radius:22px;padding:1.75rem 1.5rem}h1{margin:0 0 .75rem;font-size:1.75rem;line-height:1.2;letter-spacing:-.02em}` +
	`label{display:block;margin:1rem 0;font-weight:600}input{display:block;width:100%;min-height:3.25rem;margin-top:.5rem;padding:0 1rem;font:inherit;color:inherit;background:var(--surface);border:1.5px solid var(--strong);border-radius:14px}` +
	`button,.go{display:inline-flex;align-items:center;min-height:3.25rem;padding:0 1.5rem;font:inherit;font-weight:700;color:var(--on);background:var(--accent);border:0;border-radius:99px;text-decoration:none;cursor:pointer}` +
	`a{color:var(--accent);text-underline-offset:.2em}.ways{margin:1rem 0 0}.ways a{display:inline-flex;align-items:center;min-height:2.75rem;margin-right:1rem}` +
	`:focus-visible{outline:3px solid var(--accent);outline-offset:3px}.bad{color:var(--fail);font-weight:600}.good{padding:.75rem 1rem;background:var(--soft);border-radius:14px;font-weight:600}`

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark"><title>{{.Title}} - {{.Site}}</title><style>` + pageStyle + `</style></head><body><header>{{.Site}}</header><main><section>
<h1>{{.Title}}</h1>
{{with .Problem}}<p class="bad" role="alert">{{.}}</p>{{end}}
{{if .Done}}<p class="good" role="status">{{.Done}}</p>{{with .Next}}<p><a class="go" href="{{.Address}}">{{.Text}}</a></p>{{end}}{{else}}<p>{{.Intro}}</p>
<form method="post">
{{range .Fields}}<label>{{.Label}}<input name="{{.Name}}" type="{{.Type}}" value="{{.Value}}" autocomplete="{{.Complete}}" required{{if eq .Type "password"}} maxlength="256"{{end}}></label>
{{end}}<button>{{.Button}}</button>
</form>{{with .Ways}}<p class="ways">{{range .}}<a href="{{.Address}}">{{.Text}}</a> {{end}}</p>{{end}}{{end}}
</section></main><footer>Everything here stays on this Kennel.</footer></body></html>
`))

// pagePolicy lets the page's own style through and nothing else.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

type pageField struct{ Name, Label, Type, Complete, Value string }

type pageLink struct{ Text, Address string }

type accountPage struct {
	name, title, intro, button, done string
	next                             pageLink // where one goes on when it is done; "": nowhere
	ways                             []pageLink
	fields                           []pageField
	act                              func(ctx context.Context, f func(string) string, addr string) error
}

var (
	emailField   = pageField{Name: "email", Label: "E-mail", Type: "email", Complete: "email"}
	codeField    = pageField{Name: "code", Label: "Code from the letter", Type: "text", Complete: "one-time-code"}
	passwordOld  = pageField{Name: "password", Label: "The password you chose", Type: "password", Complete: "current-password"}
	passwordOf   = pageField{Name: "old", Label: "The password you have", Type: "password", Complete: "current-password"}
	passwordNew  = pageField{Name: "password", Label: "Password, at least 10 characters", Type: "password", Complete: "new-password"}
	toSignIn     = pageLink{"Sign in", "/my/login"}
	letterOnPage = "If it is a good address, a letter is on its way. It says what to do."
)

func mountPages(mux *http.ServeMux, o ownersAPI, site string) error {
	for _, p := range []accountPage{
		{"signup", "Sign up", "With an account you can claim your robot.", "Sign up", letterOnPage, pageLink{}, []pageLink{{"I have an account", "/my/login"}}, []pageField{emailField, passwordNew},
			func(ctx context.Context, f func(string) string, from string) error {
				_, err := o.o.SignUp(ctx, account.NewOwner{Email: f("email"), Password: logging.Secret(f("password"))}, from)
				return err
			}},
		{"verify", "Confirm your e-mail", "Give the password you chose when you signed up. If you did not sign up, close this page.", "Confirm",
			"Your account is ready.", toSignIn, nil, []pageField{codeField, passwordOld},
			func(ctx context.Context, f func(string) string, from string) error {
				_, err := o.o.Verify(ctx, logging.Secret(f("code")), logging.Secret(f("password")), from)
				return err
			}},
		{"forgot", "A new password", "We send a letter to the address of your account.", "Send", letterOnPage, pageLink{}, []pageLink{toSignIn}, []pageField{emailField},
			func(ctx context.Context, f func(string) string, from string) error {
				return o.o.AskReset(ctx, f("email"), "", from)
			}},
		{"reset", "Choose a new password", "All your sessions end; sign in again with the new password.", "Set password",
			"The password is set. Sign in with it.", toSignIn, nil, []pageField{codeField, passwordNew},
			func(ctx context.Context, f func(string) string, from string) error {
				return o.o.Reset(ctx, logging.Secret(f("code")), logging.Secret(f("password")), from)
			}},
		{"email", "Confirm your new e-mail", "Your account will use this address from now on.", "Confirm",
			"Your account uses the new address.", toSignIn, nil, []pageField{codeField},
			func(ctx context.Context, f func(string) string, from string) error {
				return o.o.ChangeEmail(ctx, logging.Secret(f("code")), from)
			}},
		{"password", "Change your password", "A first password, which somebody else has seen, is good for this alone. Your other sessions end.", "Change",
			"Your password is changed.", pageLink{"Go on", "/"}, nil, []pageField{passwordOf, passwordNew},
			func(ctx context.Context, f func(string) string, from string) error {
				id, _ := caller(ctx)
				if id == "" {
					return errs.New(errs.Unauthenticated, "sign in first")
				}
				return o.o.ChangePassword(ctx, id, logging.Secret(f("old")), logging.Secret(f("password")), sessionToken(ctx), from)
			}},
	} {
		mux.Handle("GET /account/"+p.name, o.show(p, site))
		mux.Handle("POST /account/"+p.name, o.sameSite(o.act(p, site)))
	}
	return nil
}

// page answers with a page; a problem is why the last try failed.
func (o ownersAPI) page(w http.ResponseWriter, p accountPage, site, code, problem, done string, status int) {
	fields := append([]pageField(nil), p.fields...)
	for i := range fields {
		if fields[i].Name == "code" {
			fields[i].Value = code
		}
	}
	var next *pageLink
	if p.next.Address != "" {
		next = &p.next
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, struct {
		Title, Site, Intro, Button, Problem, Done string
		Next                                      *pageLink
		Ways                                      []pageLink
		Fields                                    []pageField
	}{p.title, site, p.intro, p.button, problem, done, next, p.ways, fields})
	if err != nil {
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
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the peer is gone: nobody to tell
}

func (o ownersAPI) show(p accountPage, site string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := r.URL.Query().Get("code")
		if len(code) > 100 {
			code = ""
		}
		o.page(w, p, site, code, "", "", http.StatusOK)
	})
}

func (o ownersAPI) act(p accountPage, site string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := fields(r)
		if err == nil {
			ctx, cancel := context.WithTimeout(withPeer(r), timeout)
			defer cancel()
			err = p.act(ctx, func(name string) string { return f[name] }, addr(r))
		}
		if err == nil {
			if auth.CallerFrom(r.Context()).Role == auth.Owner && p.next.Address == "/" {
				p.next.Address = "/my"
			}
			o.page(w, p, site, "", "", p.done, http.StatusOK)
			return
		}
		o.note(r, err)
		code := f["code"]
		if len(code) > 100 {
			code = ""
		}
		problem := errs.Public(err) + "."
		o.page(w, p, site, code, strings.ToUpper(problem[:1])+problem[1:], "", pageStatus(err))
	})
}

// pageStatus is kithttp's table without 401, at which browsers ask for a password of their own.
func pageStatus(err error) int {
	switch errs.KindOf(err) {
	case errs.Invalid:
		return http.StatusBadRequest
	case errs.Unauthenticated, errs.Denied:
		return http.StatusForbidden
	case errs.Conflict:
		return http.StatusConflict
	case errs.Exhausted:
		return http.StatusTooManyRequests
	case errs.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
