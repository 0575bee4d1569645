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

	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/token"
	"kennel/cloud/page"
	"kennel/cloud/page/language"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
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
	Offer(ctx context.Context, account, email string, id thing.ID, to string, by owner.Proof) (owner.Offer, error)
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
	AddProgram(ctx context.Context, id thing.ID, account string, p token.NewProgram) (token.ProgramFile, error)
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

// Passkey is a key by which the signed-in person signs in.
type Passkey struct {
	ID, Name          string
	Created, LastUsed time.Time // zero LastUsed: never
}

// People is the account of the signed-in person, by the request's session.
type People interface {
	Passkeys(ctx context.Context) ([]Passkey, error)
	// RemovePasskey forgets one of them; NotFound. Adding one is a dialogue between the browser and POST /v1/me/passkeys.
	RemovePasskey(ctx context.Context, id string) error
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

// Config configures the pages; everything but Places and PasskeySites is required.
type Config struct {
	Robots Robots
	Tokens Tokens
	Fleet  Fleet
	Docs   Docs
	Logs   Logs // what robots uploaded; nil: the pages do not say
	// Recordings of what robots heard; nil: the pages do not say.
	Recordings Recordings
	Answers    Answers  // where the answers of robots come from; nil: the pages do not say
	Updates    Updates  // the releases that robots are to run; nil: the pages do not say
	Says       Says     // tells robots what to do; nil: the pages do not offer it
	Motions    Motions  // what robots can do by their joints; nil: there is no page of it
	Places     []string // that default_location is chosen from; others may be typed
	People     People
	// PasskeySites are the origins at which browsers take passkeys of this cloud; none: there are no passkeys.
	PasskeySites []string
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
	*page.Site
	now func() time.Time
}

type (
	said  = page.Said
	frame = page.Frame
)

// action is a form: what it does, which says what was done by a key of dones, and the page that it is on.
type action struct {
	form func(r *http.Request) string // its name on the page
	do   func(ctx context.Context, r *http.Request, v url.Values) (done string, err error)
	page page.View
	back func(r *http.Request) string // where the person continues
}

// Mount adds the pages to mux: /my and below. Who may see one or send its forms is in access.HTTP, by the route's pattern.
func Mount(mux *http.ServeMux, cfg Config) error {
	if cfg.Robots == nil || cfg.Tokens == nil || cfg.Fleet == nil || cfg.Docs == nil || cfg.People == nil || cfg.Audit == nil || cfg.Log == nil {
		return errors.New("companion: want robots, tokens, fleet, documents, people, audit and log")
	}
	c := &companion{Config: cfg, now: time.Now}
	c.Site = &page.Site{Login: "/my/login", Dones: dones, Headings: headings, Allowed: notStaff, Dress: dress, Message: message}
	var err error
	if c.Set, err = page.Load(files, "/my/assets/", map[string]any{"day": day, "picture": picture, "right": rightWord}, cfg.Log, c.Fail); err != nil {
		return err
	}
	c.Language = language.Of
	handle := func(pattern string, limit time.Duration, h http.HandlerFunc) {
		mux.Handle(pattern, c.Handler(limit, h))
	}
	show := func(pattern string, v page.View) { handle(pattern, pageTimeout, c.Show(v)) }
	act := func(pattern string, a action) {
		handle(pattern, pageTimeout, c.Act(page.Action{Form: a.form, Page: a.page, Back: a.back,
			Do: func(ctx context.Context, r *http.Request, v url.Values) (page.Outcome, error) {
				done, err := a.do(ctx, r, v)
				return page.Outcome{Done: done}, err
			}}))
	}
	show("GET /my", c.home)
	show("GET /my/robots/{thing}", c.robot)
	show("GET /my/robots/{thing}/settings", c.settings)
	show("GET /my/robots/{thing}/life", c.life)
	show("GET /my/robots/{thing}/motions", c.motions)
	c.mountRobots(act)
	handle("POST /my/robots/{thing}/programs", pageTimeout, c.Act(page.Action{Form: page.Called("programs"), Page: c.program, Do: c.addProgram}))
	handle("GET /my/live", 0, c.live)
	show("GET /my/account", c.account)
	show("GET /my/privacy", c.privacy)
	c.mountAccount(act)
	handle("POST /my/account/delete", passwordTime, c.leave)
	handle("GET /my/goodbye", pageTimeout, c.goodbye)
	handle("GET /my/login", pageTimeout, c.loginPage)
	handle("POST /my/login", passwordTime, c.login)
	handle("POST /my/logout", pageTimeout, c.SignOut(c.People.SignOut))
	handle("GET /my/assets/{file}", 0, c.Asset)
	return nil
}

// dones holds the texts that pages show after a form; the address carries the key.
var dones = map[string]string{
	"claimed":    "The robot is yours. Would you like to name it?",
	"told":       "Sent to your robot.",
	"named":      "Name saved.",
	"unnamed":    "Name removed.",
	"released":   "Robot removed from your account. Anyone who has it can add it with the code that it shows.",
	"offered":    "Offer sent. Your robot stays yours until it is accepted.",
	"accepted":   "The robot is yours. Would you like to name it?",
	"dropped":    "Offer ended.",
	"app":        "App removed.",
	"apps":       "All apps removed.",
	"set":        "Saved.",
	"consent":    "Your robots now share diagnostic data.",
	"no-consent": "Your robots no longer share diagnostic data.",
	"update":     "Saved. Your robot is told now, or when it is online again.",
	"audio":      "Recordings are now kept for a week.",
	"talk":       "Saved.",
	"forgotten":  "Your robot has forgotten all of it.",
	"no-audio":   "Recordings are no longer kept. Earlier ones are deleted.",
	"tokens":     "Robot signed out. Sign in again with an app.",
	"session":    "Session ended.",
	"passkey":    "Passkey added. You can now sign in with it.",
	"no-passkey": "Passkey removed.",
	"sessions":   "Signed out everywhere else.",
}

// notStaff refuses operators.
func notStaff(c auth.Caller) error {
	if c.Role.Staff() {
		return errs.New(errs.Denied, "these pages are for owners of robots; %s is an operator's account", c.Name)
	}
	return nil
}

// dress fills in what every page has.
func dress(r *http.Request, name string, f *frame) {
	f.Area = "robots"
	switch {
	case strings.HasPrefix(f.Path, "/my/privacy"), name == "privacy":
		f.Area = "privacy"
	case strings.HasPrefix(f.Path, "/my/account"):
		f.Area = "me"
	}
	if caller := auth.CallerFrom(r.Context()); caller.Role == auth.Owner {
		f.User = caller.Name
	}
}

type messageView struct {
	Heading, Text string
	Console       bool // offer the way to the operators' pages
}

func message(c auth.Caller, heading, text string) any {
	return messageView{heading, text, c.Role.Staff()}
}

var headings = map[errs.Kind]string{errs.Denied: "Not allowed", errs.Exhausted: "Too many requests"}

type loginView struct {
	Email, Next, Error string
	Passkeys           page.Passkeys
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
	c.Page(w, r, http.StatusOK, "login", frame{Title: "Sign in", Main: loginView{Next: next, Passkeys: page.PasskeysAt(r, c.PasskeySites)}})
}

func (c *companion) login(w http.ResponseWriter, r *http.Request) {
	form, err := page.Form(r)
	if err != nil {
		c.Fail(w, r, err)
		return
	}
	v := loginView{Email: strings.TrimSpace(form.Get("email")), Next: local(form.Get("next")), Passkeys: page.PasskeysAt(r, c.PasskeySites)}
	if err = c.People.SignIn(w, r, v.Email, form.Get("password")); err == nil {
		http.Redirect(w, r, v.Next, http.StatusSeeOther)
		return
	}
	if !page.Expected(err) {
		c.Fail(w, r, err)
		return
	}
	v.Error = page.Words(err)
	c.Page(w, r, kithttp.RefuseForm(w, err), "login", frame{Title: "Sign in", Main: v})
}
