package companion

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/console/page"
	"kennel/cloud/owner"
	"kennel/cloud/registry"
	"kennel/cloud/token"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

//go:embed assets pages
var files embed.FS

// Robots is whose the robots are; *owner.Service is one.
type Robots interface {
	Robots(ctx context.Context, account string) ([]owner.Tenure, error)
	Claim(ctx context.Context, account, addr string, id thing.ID, typed string) (owner.Tenure, error)
	Rename(ctx context.Context, account string, id thing.ID, name string) (owner.Tenure, error)
	Release(ctx context.Context, account string, id thing.ID) error
	Offer(ctx context.Context, account, email string, id thing.ID, to string) (owner.Offer, error)
	Offers(ctx context.Context, account, email string) ([]owner.Offer, error)
	Accept(ctx context.Context, account, email, id string) (owner.Tenure, error)
	Drop(ctx context.Context, account, email, id string) error
}

// Tokens is the pages' access to the tokens of apps and robots; *token.Service is one.
type Tokens interface {
	Tokens(ctx context.Context, id thing.ID) ([]token.TokenInfo, error)
	RevokeThing(ctx context.Context, id thing.ID, why string) (int, error)
	Apps(ctx context.Context, id thing.ID) ([]token.App, error)
	RevokeApp(ctx context.Context, id thing.ID, app string) error
	RevokeApps(ctx context.Context, id thing.ID) error
}

// Fleet tells how a robot is; *registry.Service does.
type Fleet interface {
	Thing(ctx context.Context, id thing.ID) (registry.Thing, error)
	// Watch tells of things as they change, until ctx ends; then, or when the watcher falls behind, the channel is closed.
	Watch(ctx context.Context) <-chan registry.Thing
}

// Session is where the person is signed in, or an app of theirs.
type Session struct {
	ID       string
	Current  bool // the request's own
	App      bool
	Created  time.Time
	LastSeen time.Time // zero for an app's
	Addr     string
	Robot    string // that used an app's
}

// People is the account of the signed-in person, by the request's session.
type People interface {
	// SignIn checks e-mail and password and sets the session's cookies. Errors: Unauthenticated, Exhausted.
	SignIn(w http.ResponseWriter, r *http.Request, email, password string) error
	// SignOut ends the session of r and removes its cookies.
	SignOut(w http.ResponseWriter, r *http.Request) error
	// FirstPassword reports whether another person has seen the password.
	FirstPassword(ctx context.Context) (bool, error)
	Sessions(r *http.Request) ([]Session, error)
	EndSession(r *http.Request, id string) error
	// EndOthers ends every session except r's.
	EndOthers(r *http.Request) error
	// Delete begins the deletion of the account. Errors: Unauthenticated for a wrong password, Exhausted.
	Delete(r *http.Request, password string) error
}

// Config configures the pages; everything but Places is required.
type Config struct {
	Robots Robots
	Tokens Tokens
	Fleet  Fleet
	Docs   Docs
	Places []string // that default_location is chosen from; others may be typed
	People People
	// Audit writes one line about an action of the signed-in person; an action that cannot be logged is not done.
	Audit func(ctx context.Context, action, object, detail string) error
	Log   *slog.Logger
}

const (
	pageTimeout  = 10 * time.Second
	passwordTime = 20 * time.Second // a password may wait for its turn
)

// companion serves the pages. It is safe for concurrent use.
type companion struct {
	Config
	set *page.Set
	now func() time.Time
}

type said = page.Said

// view makes a page. s is about a form that was sent from it.
type view func(ctx context.Context, r *http.Request, s said) (name string, f frame, err error)

// action is a form: what it does, which says what was done by a key of dones, and the page that it is on.
type action struct {
	form  func(r *http.Request) string // its name on the page
	do    func(ctx context.Context, r *http.Request, v url.Values) (done string, err error)
	page  view
	back  func(r *http.Request) string // where the person continues
	limit time.Duration                // 0: pageTimeout
}

// Mount adds the pages to mux: /my and below. Who may see one or send its forms is in access.HTTP, by the route's pattern.
func Mount(mux *http.ServeMux, cfg Config) error {
	if cfg.Robots == nil || cfg.Tokens == nil || cfg.Fleet == nil || cfg.Docs == nil || cfg.People == nil || cfg.Audit == nil || cfg.Log == nil {
		return errors.New("companion: want robots, tokens, fleet, documents, people, audit and log")
	}
	c := &companion{Config: cfg, now: time.Now}
	var err error
	if c.set, err = page.Load(files, "/my/assets/", map[string]any{"day": day}, cfg.Log, c.fail); err != nil {
		return err
	}
	handle := func(pattern string, limit time.Duration, h http.HandlerFunc) {
		mux.Handle(pattern, c.set.Handler(limit, h))
	}
	show := func(pattern string, v view) { handle(pattern, pageTimeout, c.show(v)) }
	act := func(pattern string, a action) {
		if a.limit == 0 {
			a.limit = pageTimeout
		}
		handle(pattern, a.limit, c.act(a))
	}
	show("GET /my", c.home)
	show("GET /my/robots/{thing}", c.robot)
	show("GET /my/robots/{thing}/settings", c.settings)
	show("GET /my/robots/{thing}/life", c.life)
	c.mountRobots(act)
	handle("GET /my/live", 0, c.live)
	show("GET /my/account", c.account)
	show("GET /my/privacy", c.privacy)
	c.mountAccount(act)
	handle("POST /my/account/delete", passwordTime, c.leave)
	handle("GET /my/goodbye", pageTimeout, c.goodbye)
	handle("GET /my/login", pageTimeout, c.loginPage)
	handle("POST /my/login", passwordTime, c.login)
	handle("POST /my/logout", pageTimeout, c.logout)
	handle("GET /my/assets/{file}", 0, c.set.Asset)
	return nil
}

// frame holds the parts around every page.
type frame struct {
	Title string
	User  string // "" without a session
	Path  string
	Area  string // robots, privacy or me
	Live  string // where the page hears that something changed; "": nowhere
	Said  said
	Main  any
}

// dones holds the texts that pages show after a form; the address carries the key.
var dones = map[string]string{
	"claimed":    "It is yours now. Give it a name?",
	"named":      "That is its name now.",
	"unnamed":    "It has no name now.",
	"released":   "You let it go. Whoever has it may claim it with the code that it shows.",
	"offered":    "It is offered. It stays yours until they accept.",
	"accepted":   "It is yours now. Give it a name?",
	"dropped":    "That offer is over.",
	"app":        "That app may not talk to your robot any more.",
	"apps":       "No app may talk to your robot any more.",
	"set":        "Saved. Below you see when your robot has it.",
	"consent":    "Your robots may send what happens to them.",
	"no-consent": "Your robots send nothing of what happens to them any more.",
	"tokens":     "Your robot is signed out. Sign it in again with an app.",
	"session":    "That session has ended.",
	"sessions":   "You are signed out everywhere else.",
}

// admit reports whether a request may continue; a caller who is not signed in is led to the login page.
func (c *companion) admit(w http.ResponseWriter, r *http.Request) bool {
	caller := auth.CallerFrom(r.Context())
	switch {
	case caller.Role == "" && r.Method == http.MethodGet:
		http.Redirect(w, r, "/my/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return false
	case caller.Role == "":
		c.fail(w, r, errs.New(errs.Unauthenticated, "your session has ended; sign in and try once more"))
		return false
	case caller.Role.Staff():
		c.fail(w, r, errs.New(errs.Denied, "these pages are for owners of robots; the account %s is an operator's", caller.Name))
		return false
	}
	if err := access.HTTP.Check(r.Pattern, caller.Role); err != nil {
		c.fail(w, r, err)
		return false
	}
	return true
}

func (c *companion) show(v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !c.admit(w, r) {
			return
		}
		c.view(w, r, http.StatusOK, v, said{Done: dones[r.URL.Query().Get("done")]})
	}
}

func (c *companion) view(w http.ResponseWriter, r *http.Request, code int, v view, s said) {
	name, f, err := v(r.Context(), r, s)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	f.Said = s
	c.render(w, r, code, name, f)
}

func (c *companion) act(a action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !c.admit(w, r) {
			return
		}
		values, err := page.Form(r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		done, err := a.do(r.Context(), r, values)
		switch {
		case err == nil:
			http.Redirect(w, r, a.back(r)+"?done="+done, http.StatusSeeOther)
		case page.Expected(err):
			c.view(w, r, codeOf(err), a.page, page.Refused(a.form(r), err, values))
		default:
			c.fail(w, r, err)
		}
	}
}

// codeOf is the status of err, but never the one at which browsers ask for a password of their own.
func codeOf(err error) int {
	if kind := errs.KindOf(err); kind != errs.Unauthenticated {
		return kithttp.StatusOf(kind)
	}
	return http.StatusForbidden
}

// called returns the name of a form that there is once on its page.
func called(name string) func(*http.Request) string {
	return func(*http.Request) string { return name }
}

func (c *companion) render(w http.ResponseWriter, r *http.Request, code int, name string, f frame) {
	f.Path, f.Area = r.URL.Path, "robots"
	switch {
	case strings.HasPrefix(f.Path, "/my/privacy"), name == "privacy":
		f.Area = "privacy"
	case strings.HasPrefix(f.Path, "/my/account"):
		f.Area = "me"
	}
	if r.Method != http.MethodGet {
		f.Live = "" // to fetch the page again would be to send the form again
	}
	if caller := auth.CallerFrom(r.Context()); caller.Role == auth.Owner {
		f.User = caller.Name
	}
	c.set.Render(w, r, code, name, f)
}

type messageView struct {
	Heading, Text string
	Console       bool // offer the way to the operators' pages
}

var headings = map[errs.Kind]string{
	errs.Invalid: "That cannot work", errs.NotFound: "Not found", errs.Denied: "Not here", errs.Exhausted: "A little slower, please",
	errs.Unavailable: "Not right now", errs.Unauthenticated: "Sign in first", errs.Conflict: "Somebody was first",
}

// fail answers with an error page of err's kind.
func (c *companion) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
		return // the browser left
	}
	kind := errs.KindOf(err)
	if errors.Is(err, context.DeadlineExceeded) {
		kind = errs.Unavailable
	}
	heading, known := headings[kind]
	if !known {
		heading = "Something broke on our side"
		c.Log.ErrorContext(r.Context(), "page failed", "path", r.URL.Path, logging.Err, err)
	}
	c.render(w, r, kithttp.StatusOf(kind), "message", frame{Title: heading, Main: messageView{heading, page.Words(err), auth.CallerFrom(r.Context()).Role.Staff()}})
}

type loginView struct {
	Email, Next, Error string
}

func local(next string) string {
	return page.Local(next, "/my", "/my/login", "/my/assets", "/my/goodbye")
}

func (c *companion) loginPage(w http.ResponseWriter, r *http.Request) {
	next := local(r.URL.Query().Get("next"))
	if auth.CallerFrom(r.Context()).Role == auth.Owner {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	c.render(w, r, http.StatusOK, "login", frame{Title: "Sign in", Main: loginView{Next: next}})
}

func (c *companion) login(w http.ResponseWriter, r *http.Request) {
	form, err := page.Form(r)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	v := loginView{Email: strings.TrimSpace(form.Get("email")), Next: local(form.Get("next"))}
	if err = c.People.SignIn(w, r, v.Email, form.Get("password")); err == nil {
		http.Redirect(w, r, v.Next, http.StatusSeeOther)
		return
	}
	if !page.Expected(err) {
		c.fail(w, r, err)
		return
	}
	v.Error = page.Words(err)
	c.render(w, r, codeOf(err), "login", frame{Title: "Sign in", Main: v})
}

func (c *companion) logout(w http.ResponseWriter, r *http.Request) {
	if err := c.People.SignOut(w, r); err != nil && errs.KindOf(err) != errs.Unauthenticated {
		c.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/my/login", http.StatusSeeOther)
}
