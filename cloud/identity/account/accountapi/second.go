package accountapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"html/template"
	"image/png"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/op"
)

// Second is an operator's second factor as GET /v1/me/second shows it.
type Second struct {
	App           bool      `json:"app"`
	Since         time.Time `json:"since,omitzero"`
	RecoveryCodes int       `json:"recovery_codes"` // not used yet
	Required      bool      `json:"required"`       // operators must have a second factor
}

// SecondBegin is the body of POST /v1/me/second/begin and of POST /v1/me/second/remove.
type SecondBegin struct {
	Password string `json:"password"`
}

// SecondApp holds the otpauth address that an authenticator app reads.
type SecondApp struct {
	URI string `json:"uri"`
}

// SecondCode is the body of POST /v1/me/second.
type SecondCode struct {
	Code string `json:"code"`
}

// SecondCodes are recovery codes, shown only once; each is good once in place of a code of the app.
type SecondCodes struct {
	RecoveryCodes []string `json:"recovery_codes"`
}

// SecondOperations returns what operators do with their second factors, for a server behind Authenticator.
func SecondOperations(second *account.Second) op.List {
	return op.List{
		op.New(op.Spec{Route: "GET /v1/me/second", Tag: "Session", Summary: "Show your second factor.", Roles: auth.Staff, Timeout: timeout}.With(
			op.Command{Use: "second status", Short: "Show whether you have an authenticator app", Table: "app; since; recovery codes; required"}),
			func(ctx context.Context, _ op.None) (Second, error) {
				id, _ := caller(ctx)
				st, err := second.State(ctx, id)
				return Second{st.App, st.Since.UTC(), st.Left, st.Required}, err
			}),
		op.New(op.Spec{Route: "POST /v1/me/second/begin", Tag: "Session", Summary: "Start to add an authenticator app.", Roles: auth.Staff, Quiet: true, Timeout: timeout, MaxBody: maxBody},
			func(ctx context.Context, b SecondBegin) (SecondApp, error) {
				id, from := caller(ctx)
				uri, err := second.Begin(ctx, id, logging.Secret(b.Password), from)
				return SecondApp{uri.Reveal()}, err
			}),
		op.New(op.Spec{Route: "POST /v1/me/second", Tag: "Session", Summary: "Confirm an authenticator app with its first code. The answer has recovery codes.", Roles: auth.Staff, Timeout: timeout, MaxBody: maxBody},
			func(ctx context.Context, c SecondCode) (SecondCodes, error) {
				_, from := caller(ctx)
				codes, err := second.Confirm(ctx, sessionToken(ctx), logging.Secret(c.Code), from)
				return SecondCodes{codes}, err
			}),
		op.New(op.Spec{Route: "POST /v1/me/second/remove", Tag: "Session", Summary: "Remove your authenticator app.", Roles: auth.Staff, Timeout: timeout, MaxBody: maxBody},
			func(ctx context.Context, b SecondBegin) (op.None, error) {
				id, from := caller(ctx)
				return op.None{}, second.Remove(ctx, id, logging.Secret(b.Password), from)
			}),
	}
}

// MountSecond adds the page that does the same, and asks for the code of a session that lacks one.
func MountSecond(mux *http.ServeMux, in *account.SignIn, second *account.Second, site string, log *slog.Logger) {
	s := secondAPI{in, second, site, log}
	cross := http.NewCrossOriginProtection()
	mux.HandleFunc("GET "+secondPage, func(w http.ResponseWriter, r *http.Request) { s.page(w, r, secondView{}, http.StatusOK) })
	mux.Handle("POST "+secondPage, cross.Handler(http.HandlerFunc(s.act)))
}

type secondAPI struct {
	in     *account.SignIn
	second *account.Second
	site   string
	log    *slog.Logger
}

// secondPage is where a second factor is set up, asked for and removed.
const secondPage = "/account/second"

// forSecond reports whether a request is one that a session may make which lacks a second factor.
func forSecond(r *http.Request, lacks account.Lack) bool {
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/me", "POST /v1/login", "POST /v1/logout", "POST /login", "POST /logout", "GET " + secondPage, "POST " + secondPage,
		"POST /v1/login/passkey/begin", "POST /v1/login/passkey":
		return true
	case "GET /v1/me/second", "POST /v1/me/second/begin", "POST /v1/me/second", "POST /v1/me/passkeys/begin", "POST /v1/me/passkeys", "GET /v1/me/passkeys":
		return lacks == account.LacksSecond
	}
	return strings.HasPrefix(r.URL.Path, "/assets/")
}

// lackRefused is the refusal of a request of a session that lacks something.
func lackRefused(lacks account.Lack) error {
	switch lacks {
	case account.LacksCode:
		return errs.Coded(errs.Denied, "second_factor", "this session has no second factor; enter the code of your authenticator app at %s, or sign in again with it", secondPage)
	case account.LacksPasskey:
		return errs.Coded(errs.Denied, "second_factor", "operators here need a second factor, and yours is a passkey; sign in again with it")
	}
	return errs.Coded(errs.Denied, "second_factor_setup", "operators here need a second factor; first set one up, with kennelctl second add or on the page %s", secondPage)
}

type secondView struct {
	Site, Problem, Done string
	Style               template.CSS
	Lacks               account.Lack
	State               account.SecondState
	QR                  template.URL // of the app being added
	Secret              string       // the same for typing
	Codes               []string     // recovery codes
	Next                string
}

var secondTemplate = template.Must(template.New("second").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark"><title>Second step - {{.Site}}</title><style>{{.Style}}</style></head><body><header>{{.Site}}</header><main><section>
<h1>{{if .Codes}}Recovery codes{{else}}Second step{{end}}</h1>
{{with .Problem}}<p class="bad" role="alert">{{.}}</p>{{end}}
{{with .Done}}<p class="good" role="status">{{.}}</p>{{end}}
{{if .Codes}}<p>Keep these on paper or in your password manager. Each signs you in once if you lose the app. They are shown only now.</p>
<ul>{{range .Codes}}<li><code>{{.}}</code></li>{{end}}</ul><p><a class="go" href="/">I have kept them</a></p>
{{else if eq .Lacks "code"}}<p>Enter the code that your authenticator app shows, or a recovery code.</p>
<form method="post" action="/account/second"><input type="hidden" name="step" value="give">
<label>Code<input name="code" type="text" inputmode="text" autocomplete="one-time-code" autocapitalize="off" spellcheck="false" required maxlength="64" autofocus></label><button>Continue</button></form>
{{else if eq .Lacks "passkey"}}<p>Operators here sign in with a second factor, and yours is a passkey. Sign out, and choose "Use a passkey" on the page that follows.</p>
{{else if .State.App}}<p>Your authenticator app is asked for a code whenever you sign in with your password. You have {{.State.Left}} recovery codes left.</p>
<form method="post" action="/account/second"><input type="hidden" name="step" value="remove">
<label>Current password<input name="password" type="password" autocomplete="current-password" required maxlength="256"></label><button>Remove the app</button></form>
<p class="ways"><a href="/me">Back to your account</a></p>
{{else if .QR}}<p>Scan this with an authenticator app, then enter the code that it shows.</p>
<p><img src="{{.QR}}" width="240" height="240" alt="QR code of the secret below"></p><p>Or type this into the app: <code>{{.Secret}}</code></p>
<form method="post" action="/account/second"><input type="hidden" name="step" value="confirm">
<label>Code from the app<input name="code" type="text" inputmode="numeric" autocomplete="one-time-code" required maxlength="64" autofocus></label><button>Continue</button></form>
{{else}}<p>{{if eq .Lacks "second"}}Operators here must have a second factor. Set up an authenticator app to continue.{{else}}An authenticator app on your phone gives a code whenever you sign in, so that your password alone is not enough.{{end}}</p>
<form method="post" action="/account/second"><input type="hidden" name="step" value="begin">
<label>Current password<input name="password" type="password" autocomplete="current-password" required maxlength="256" autofocus></label><button>Set up an app</button></form>
{{if eq .Lacks ""}}<p class="ways"><a href="/me">Back to your account</a></p>{{end}}
{{end}}{{if ne .Lacks ""}}<form class="ways" method="post" action="/logout"><button>Sign out</button></form>{{end}}
</section></main><footer>Your data stays on this server.</footer></body></html>
`))

// page shows what the session may do now.
func (s secondAPI) page(w http.ResponseWriter, r *http.Request, v secondView, status int) {
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy+"; img-src data:")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	id, from := caller(ctx)
	if !auth.CallerFrom(ctx).Role.Staff() {
		http.Redirect(w, r, "/login?next="+secondPage, http.StatusSeeOther)
		return
	}
	a, x, err := s.in.Authenticate(ctx, sessionToken(ctx), from)
	if err == nil {
		v.Lacks = s.in.Lacks(a, x)
		v.State, err = s.second.State(ctx, id)
	}
	if err == nil && v.State.Awaited && (v.Lacks == account.LacksNothing || v.Lacks == account.LacksSecond) {
		err = s.qr(ctx, id, &v)
	}
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	v.Site, v.Style = s.site, staffStyle
	var b bytes.Buffer
	if err := secondTemplate.Execute(&b, v); err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the peer is gone
}

func (s secondAPI) qr(ctx context.Context, id account.ID, v *secondView) error {
	k, err := s.second.Awaited(ctx, id)
	if err != nil {
		return err
	}
	img, err := k.Image(240, 240)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return err
	}
	v.QR, v.Secret = template.URL("data:image/png;base64,"+base64.StdEncoding.EncodeToString(b.Bytes())), k.Secret()
	return nil
}

// may refuses the forms that a session which lacks its second factor does not show: it could remove what it lacks.
func (s secondAPI) may(ctx context.Context, step, addr string) error {
	a, x, err := s.in.Authenticate(ctx, sessionToken(ctx), addr)
	lacks := s.in.Lacks(a, x)
	if err == nil && (lacks == account.LacksCode || lacks == account.LacksPasskey) && step != "give" || err == nil && lacks == account.LacksSecond && step == "remove" {
		err = lackRefused(lacks)
	}
	return err
}

// act does what a form of the page asks for.
func (s secondAPI) act(w http.ResponseWriter, r *http.Request) {
	if role := auth.CallerFrom(r.Context()).Role; !role.Staff() {
		err := errs.New(errs.Unauthenticated, "sign in first")
		if role != "" {
			err = errs.New(errs.Denied, "role %s may not do this: authenticator apps are for operators", role)
		}
		kithttp.WriteError(w, err)
		return
	}
	f, err := fields(r)
	var v secondView
	ctx, cancel := context.WithTimeout(withPeer(r), timeout)
	defer cancel()
	id, addr := caller(ctx)
	if err == nil {
		err = s.may(ctx, f["step"], addr)
	}
	if err == nil {
		switch f["step"] {
		case "begin":
			_, err = s.second.Begin(ctx, id, logging.Secret(f["password"]), addr)
		case "confirm":
			v.Codes, err = s.second.Confirm(ctx, sessionToken(ctx), logging.Secret(f["code"]), addr)
		case "remove":
			if err = s.second.Remove(ctx, id, logging.Secret(f["password"]), addr); err == nil {
				v.Done = "The app is removed."
			}
		case "give":
			var device logging.Secret
			if device, err = s.second.Give(ctx, sessionToken(ctx), logging.Secret(f["code"]), from(r, addr)); err == nil {
				http.SetCookie(w, deviceCookie(r, device))
				http.Redirect(w, r, "/", http.StatusSeeOther)
				return
			}
		default:
			err = errs.New(errs.Invalid, "step %.20q: want begin, confirm, give or remove", f["step"])
		}
	}
	if err != nil {
		s.log.InfoContext(ctx, "second factor refused", "addr", addr, "code", errs.CodeOf(err), logging.Err, err)
		problem := errs.Public(err) + "."
		v.Problem = strings.ToUpper(problem[:1]) + problem[1:]
		s.page(w, r, v, kithttp.RefuseForm(w, err))
		return
	}
	s.page(w, r, v, http.StatusOK)
}
