package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"kennel/certs/thing"
	"kennel/cloud/registry"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

//go:embed assets pages
var files embed.FS

// Fleet is what the pages ask of the registry; *registry.Service is one.
type Fleet interface {
	Things(ctx context.Context, q registry.Query) ([]registry.Thing, error)
	Thing(ctx context.Context, id thing.ID) (registry.Thing, error)
	Count(ctx context.Context) (registry.Count, error)
	Doctor(ctx context.Context, id thing.ID) (registry.Report, error)
	History(ctx context.Context, id thing.ID, limit int) ([]registry.Change, error)
	Watch(ctx context.Context) <-chan registry.Thing
}

// Auth opens and ends sessions of people. It owns the cookies; the middleware before the console reads them and puts the kit.Caller into
// the context.
type Auth interface {
	// SignIn checks e-mail and password and sets the session's cookies on w. Errors: Unauthenticated if they are not accepted, Exhausted
	// after too many attempts.
	SignIn(w http.ResponseWriter, r *http.Request, email, password string) error
	// SignOut ends the session of r and removes its cookies.
	SignOut(w http.ResponseWriter, r *http.Request) error
}

// Doc is a document as a robot's page lists it.
type Doc struct {
	Name    string
	Version uint64    // latest in the cloud
	At      time.Time // of that version
	By      string
	JSON    string // its text
}

// Event is one line of a robot's recent events.
type Event struct {
	Received time.Time
	Level    string
	Name     string
	Values   string // what it carries, as text
}

// Config is what the console is made of. Fleet, Auth and Log are required; without Docs or Events the robot's page has no such section.
type Config struct {
	Fleet  Fleet
	Auth   Auth
	Docs   func(ctx context.Context, id thing.ID) ([]Doc, error)
	Events func(ctx context.Context, id thing.ID, limit int) ([]Event, error) // the newest first
	Log    *slog.Logger
}

const (
	pageSize     = 100
	recentEvents = 20
	pageTimeout  = 10 * time.Second
	maxForm      = 16 << 10
)

// policy is the Content-Security-Policy of every page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// console serves the pages. It is safe for concurrent use.
type console struct {
	Config
	pages  map[string]*template.Template
	assets map[string]asset
	now    func() time.Time
}

type asset struct {
	body  []byte
	kind  string
	stamp string // of its content, part of its address, so that it can be cached for ever
}

// Mount adds the pages to mux: /, /login, /logout, /things/{thing}, /live, /assets/.
func Mount(mux *http.ServeMux, cfg Config) error {
	c, err := newConsole(cfg)
	if err != nil {
		return err
	}
	// Pages change nothing but sessions; those two forms are refused from any other origin.
	same := http.NewCrossOriginProtection()
	same.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.fail(w, r, errs.New(errs.Denied, "this form was sent from another site; open the console and try again"))
	}))
	handle := func(pattern string, h http.Handler) { mux.Handle(pattern, c.headers(same.Handler(h))) }
	handle("GET /{$}", c.page(c.fleet))
	handle("GET /things/{thing}", c.page(c.thing))
	handle("GET /login", http.HandlerFunc(c.loginPage))
	handle("POST /login", http.HandlerFunc(c.login))
	handle("POST /logout", http.HandlerFunc(c.logout))
	handle("GET /live", http.HandlerFunc(c.live))
	handle("GET /assets/{file}", http.HandlerFunc(c.asset))
	return nil
}

func newConsole(cfg Config) (*console, error) {
	if cfg.Fleet == nil || cfg.Auth == nil || cfg.Log == nil {
		return nil, errors.New("console: want Fleet, Auth and Log")
	}
	c := &console{Config: cfg, pages: map[string]*template.Template{}, assets: map[string]asset{}, now: time.Now}
	names, err := fs.Glob(files, "assets/*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		body, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		c.assets[path.Base(name)] = asset{body, mime.TypeByExtension(path.Ext(name)), hex.EncodeToString(sum[:6])}
	}
	funcs := template.FuncMap{
		"asset": func(name string) (string, error) {
			a, ok := c.assets[name]
			if !ok {
				return "", fmt.Errorf("no asset %s", name)
			}
			return "/assets/" + name + "?v=" + a.stamp, nil
		},
		"version": version.String,
		"time":    timeTag,
		"ago":     agoTag,
		"micros":  micros,
		"species": species,
		"count":   count,
	}
	for _, page := range []string{"fleet", "thing", "login", "message"} {
		t, err := template.New("").Funcs(funcs).ParseFS(files, "pages/layout.html", "pages/"+page+".html")
		if err != nil {
			return nil, err
		}
		c.pages[page] = t
	}
	return c, nil
}

func (c *console) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// frame is what every page has around it.
type frame struct {
	Title string
	User  string // "" without a session
	Path  string // of the page, for the navigation
	Live  string // address of the stream that says when to fetch the page again; "": none
	Main  any
}

// page serves h to operators; others are led to the log-in page or told why not.
func (c *console) page(h func(ctx context.Context, r *http.Request) (name string, f frame, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := kit.CallerFrom(r.Context())
		switch {
		case caller.Role == "":
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
			return
		case !caller.Operator():
			c.fail(w, r, errs.New(errs.Denied, "this console is for operators; the account %s is not one", caller.Name))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
		defer cancel()
		name, f, err := h(ctx, r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		c.render(w, r, http.StatusOK, name, f)
	})
}

// render makes the page in memory first, so that a mistake in a template is an error page and not half a page.
func (c *console) render(w http.ResponseWriter, r *http.Request, code int, name string, f frame) {
	f.User, f.Path = kit.CallerFrom(r.Context()).Name, r.URL.Path
	var out bytes.Buffer
	if err := c.pages[name].ExecuteTemplate(&out, "layout.html", f); err != nil {
		c.Log.ErrorContext(r.Context(), "page not made", "page", name, logging.Err, err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes()) // the peer is gone: nobody to tell
}

type messageView struct {
	Heading, Text string
	Home          bool // offer the way back to the fleet
}

var headings = map[errs.Kind]string{
	errs.Invalid: "That cannot work", errs.NotFound: "Not found", errs.Denied: "Not allowed", errs.Exhausted: "Too much at once",
	errs.Unavailable: "Not right now", errs.Unauthenticated: "Sign in first",
}

// fail answers with an error page of err's kind.
func (c *console) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the browser left
	}
	kind := errs.KindOf(err)
	if errors.Is(err, context.DeadlineExceeded) {
		kind, err = errs.Unavailable, errs.New(errs.Unavailable, "the database takes too long to answer")
	}
	heading, known := headings[kind]
	if !known {
		heading = "Something broke on our side"
		c.Log.ErrorContext(r.Context(), "page failed", "path", r.URL.Path, logging.Err, err)
	}
	view := messageView{Heading: heading, Text: sentence(errs.Public(err)), Home: kit.CallerFrom(r.Context()).Operator()}
	c.render(w, r, kithttp.StatusOf(kind), "message", frame{Title: heading, Main: view})
}

func (c *console) fleet(ctx context.Context, r *http.Request) (string, frame, error) {
	v := r.URL.Query()
	q := registry.Query{Presence: registry.Presence(v.Get("presence")), Search: strings.TrimSpace(v.Get("q")), Limit: pageSize + 1}
	if after := v.Get("after"); after != "" {
		id, err := thing.Parse(after)
		if err != nil {
			return "", frame{}, errs.New(errs.Invalid, "after: %w", err)
		}
		q.After = id
	}
	things, err := c.Fleet.Things(ctx, q)
	if err != nil {
		return "", frame{}, err
	}
	count, err := c.Fleet.Count(ctx)
	if err != nil {
		return "", frame{}, err
	}
	return "fleet", frame{Title: "Fleet", Live: "/live", Main: newFleetView(q, things, count, c.now())}, nil
}

func (c *console) thing(ctx context.Context, r *http.Request) (string, frame, error) {
	id, err := thing.Parse(r.PathValue("thing"))
	if err != nil {
		return "", frame{}, errs.New(errs.Invalid, "%w", err)
	}
	t, err := c.Fleet.Thing(ctx, id)
	if err != nil {
		return "", frame{}, err
	}
	report, err := c.Fleet.Doctor(ctx, id)
	if err != nil {
		return "", frame{}, err
	}
	history, err := c.Fleet.History(ctx, id, registry.MaxLimit)
	if err != nil {
		return "", frame{}, err
	}
	var docs []Doc
	if c.Docs != nil {
		if docs, err = c.Docs(ctx, id); err != nil {
			return "", frame{}, fmt.Errorf("documents of %s: %w", id, err)
		}
	}
	var events []Event
	if c.Events != nil {
		if events, err = c.Events(ctx, id, recentEvents); err != nil {
			return "", frame{}, fmt.Errorf("events of %s: %w", id, err)
		}
	}
	view := newThingView(t, report, history, docs, events, c.now())
	view.HasDocs, view.HasEvents = c.Docs != nil, c.Events != nil
	return "thing", frame{Title: string(id), Live: "/live?thing=" + url.QueryEscape(string(id)), Main: view}, nil
}

type loginView struct {
	Email, Next, Error string
}

func (c *console) loginPage(w http.ResponseWriter, r *http.Request) {
	next := local(r.URL.Query().Get("next"))
	if kit.CallerFrom(r.Context()).Operator() {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	c.render(w, r, http.StatusOK, "login", frame{Title: "Sign in", Main: loginView{Next: next}})
}

func (c *console) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		c.fail(w, r, errs.New(errs.Invalid, "the form cannot be read: %w", err))
		return
	}
	view := loginView{Email: strings.TrimSpace(r.PostForm.Get("email")), Next: local(r.PostForm.Get("next"))}
	err := c.Auth.SignIn(w, r, view.Email, r.PostForm.Get("password"))
	if err == nil {
		http.Redirect(w, r, view.Next, http.StatusSeeOther)
		return
	}
	kind := errs.KindOf(err)
	switch kind {
	case errs.Unauthenticated, errs.Denied, errs.Invalid, errs.Exhausted, errs.Unavailable:
		view.Error = sentence(errs.Public(err))
	default:
		view.Error = "Something broke on our side. Try again in a moment."
		c.Log.ErrorContext(r.Context(), "sign-in failed", logging.Err, err)
	}
	c.render(w, r, kithttp.StatusOf(kind), "login", frame{Title: "Sign in", Main: view})
}

func (c *console) logout(w http.ResponseWriter, r *http.Request) {
	if err := c.Auth.SignOut(w, r); err != nil && errs.KindOf(err) != errs.Unauthenticated {
		c.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// local returns next if it is a page of this console, else the fleet: a log-in page must not send people elsewhere.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(u.Path, "//") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") ||
		strings.HasPrefix(u.Path, "/login") || strings.HasPrefix(u.Path, "/live") {
		return "/"
	}
	return u.RequestURI()
}

func (c *console) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := c.assets[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	if r.URL.Query().Get("v") == a.stamp {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(a.body) // the peer is gone: nobody to tell
}

// sentence makes a message of an error a sentence of a page.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
