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
	"kennel/infra/errs"
)

// The pages that letters lead to, and those for people without an account. They need no script. Looking at one changes nothing, because mail
// programs and their scanners look at every link; only the button does.

const pageStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:26em;margin:3em auto;padding:0 1em;color:#222;background:#fff}` +
	`label{display:block;margin:1em 0}input{display:block;width:100%;box-sizing:border-box;font:inherit;padding:.5em}` +
	`button{font:inherit;padding:.6em 1.2em}.bad{color:#a00}@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}.bad{color:#f88}}`

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">
<title>{{.Title}} - {{.Site}}</title><style>` + pageStyle + `</style></head><body><main>
<h1>{{.Title}}</h1>
{{with .Problem}}<p class="bad" role="alert">{{.}}</p>{{end}}
{{if .Done}}<p role="status">{{.Done}}</p>{{if .Next}}<p><a href="{{.Next}}">Go on</a></p>{{end}}{{else}}<p>{{.Intro}}</p>
<form method="post">
{{range .Fields}}<label>{{.Label}}<input name="{{.Name}}" type="{{.Type}}" value="{{.Value}}" autocomplete="{{.Complete}}" required{{if eq .Type "password"}} maxlength="256"{{end}}></label>
{{end}}<button>{{.Button}}</button>
</form>{{end}}
</main></body></html>
`))

// pagePolicy lets the page's own style through and nothing else.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

type pageField struct{ Name, Label, Type, Complete, Value string }

type accountPage struct {
	name, title, intro, button, done string
	next                             string // where one goes on when it is done
	fields                           []pageField
	act                              func(ctx context.Context, f func(string) string, addr string) error
}

var (
	emailField   = pageField{Name: "email", Label: "E-mail", Type: "email", Complete: "email"}
	codeField    = pageField{Name: "code", Label: "Code from the letter", Type: "text", Complete: "one-time-code"}
	passwordOld  = pageField{Name: "password", Label: "The password you chose", Type: "password", Complete: "current-password"}
	passwordOf   = pageField{Name: "old", Label: "The password you have", Type: "password", Complete: "current-password"}
	passwordNew  = pageField{Name: "password", Label: "Password, at least 10 characters", Type: "password", Complete: "new-password"}
	letterOnPage = "If it is a good address, a letter is on its way. It says what to do."
)

func mountPages(mux *http.ServeMux, o ownersAPI, site string) error {
	for _, p := range []accountPage{
		{"signup", "Sign up", "With an account you can claim your robot.", "Sign up", letterOnPage, "", []pageField{emailField, passwordNew},
			func(ctx context.Context, f func(string) string, from string) error {
				_, err := o.o.SignUp(ctx, account.NewOwner{Email: f("email"), Password: account.Secret(f("password"))}, from)
				return err
			}},
		{"verify", "Confirm your e-mail", "Give the password you chose when you signed up. If you did not sign up, close this page.", "Confirm",
			"Your account is ready.", "", []pageField{codeField, passwordOld},
			func(ctx context.Context, f func(string) string, from string) error {
				_, err := o.o.Verify(ctx, account.Secret(f("code")), account.Secret(f("password")), from)
				return err
			}},
		{"forgot", "A new password", "We send a letter to the address of your account.", "Send", letterOnPage, "", []pageField{emailField},
			func(ctx context.Context, f func(string) string, from string) error {
				return o.o.AskReset(ctx, f("email"), "", from)
			}},
		{"reset", "Choose a new password", "All your sessions end; sign in again with the new password.", "Set password",
			"The password is set. Sign in with it.", "", []pageField{codeField, passwordNew},
			func(ctx context.Context, f func(string) string, from string) error {
				return o.o.Reset(ctx, account.Secret(f("code")), account.Secret(f("password")), from)
			}},
		{"email", "Confirm your new e-mail", "Your account will use this address from now on.", "Confirm",
			"Your account uses the new address.", "", []pageField{codeField},
			func(ctx context.Context, f func(string) string, from string) error {
				return o.o.ChangeEmail(ctx, account.Secret(f("code")), from)
			}},
		{"password", "Change your password", "A first password, which somebody else has seen, is good for this alone. Your other sessions end.", "Change",
			"Your password is changed.", "/", []pageField{passwordOf, passwordNew},
			func(ctx context.Context, f func(string) string, from string) error {
				id, _ := caller(ctx)
				if id == "" {
					return errs.New(errs.Unauthenticated, "sign in first")
				}
				return o.o.ChangePassword(ctx, id, account.Secret(f("old")), account.Secret(f("password")), sessionToken(ctx), from)
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
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, struct {
		Title, Site, Intro, Button, Problem, Done, Next string
		Fields                                          []pageField
	}{p.title, site, p.intro, p.button, problem, done, p.next, fields})
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
