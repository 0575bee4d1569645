package console

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/alert"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

//go:embed assets pages parts
var files embed.FS

// Auth opens and ends sessions of people. It owns the cookies; the middleware before the console reads them and puts the auth.Caller into
// the context.
type Auth interface {
	// SignIn checks e-mail and password and sets the session's cookies on w. Errors: Unauthenticated if they are not accepted, Exhausted
	// after too many attempts.
	SignIn(w http.ResponseWriter, r *http.Request, email, password string) error
	// SignOut ends the session of r and removes its cookies.
	SignOut(w http.ResponseWriter, r *http.Request) error
}

// Config configures the console. Fleet, Auth and Log are required; any other nil field has no page, or no section on the robot's page.
type Config struct {
	Fleet      Fleet
	Auth       Auth
	Docs       Documents
	Commands   Commands
	Events     Events
	Vitals     Vitals
	Look       Look
	Cohorts    Cohorts
	Bulk       Bulk
	Alerts     Alerts
	AlertDesk  AlertDesk                              // not nil where Alerts is not
	Troubles   func(ctx context.Context) []alert.Part // parts of the cloud that need attention; nil: the pages do not say
	Identities Identities
	Owners     Owners
	Tokens     Tokens
	AuditLog   AuditLog
	// VerifyAudit computes the chain of the audit log again from a place on; nil: the page does not offer it. audit.Log has it.
	VerifyAudit func(ctx context.Context, from audit.Anchor) (audit.Report, error)
	Operators   Operators
	Webhooks    Webhooks
	Releases    Releases
	Archives    Archives // with Releases
	// Passkeys has the keys of the signed-in operator; *account.Passkeys is one. nil: there is no page /me.
	Passkeys Passkeys
	// PasskeySites are the origins at which browsers take passkeys, such as https://kennel.example; none: passkeys are not offered.
	PasskeySites []string
	// Provider is the display name of the identity provider behind /login/oidc; "": there is none.
	Provider string
	// Audit writes one line about an action of the signed-in operator; an action that cannot be logged is not done. Required by all
	// parts that change something.
	Audit func(ctx context.Context, action, object, detail string) error
	// Mine: there are pages for owners, to which this console leads an owner who came here.
	Mine bool
	// More are pages that slices bring along, in the order of the menu.
	More []page.Extra
	Log  *slog.Logger
}

const (
	pageTimeout = 10 * time.Second
	signInTime  = 20 * time.Second // a password may wait for its turn
)

// console serves the pages. It is safe for concurrent use.
type console struct {
	Config
	*page.Site
	now   func() time.Time
	tails tails
}

// Mount adds the pages to mux: / (the overview), /login, /logout, /me, /help, /things (the fleet) and what is below /things/{thing}, /cohorts, /bulk, /alerts, /events, /experiments, /tail,
// /certificates, /audit, /operators, /releases, /webhooks, /live, /theme, /assets/. Who may see one or send its forms is in access.HTTP, by the route's pattern.
func Mount(mux *http.ServeMux, cfg Config) error {
	c, err := newConsole(cfg)
	if err != nil {
		return err
	}
	handle := func(pattern string, limit time.Duration, h http.Handler) {
		mux.Handle(pattern, c.Handler(limit, h))
	}
	show := func(pattern string, h view) { handle(pattern, pageTimeout, c.Show(h)) }
	act := func(pattern string, a action) { handle(pattern, pageTimeout, c.act(a)) }
	handle("GET /{$}", pageTimeout, c.frontDoor(c.Show(c.overview)))
	c.mountFleet(show, act)
	c.mountThing(show, act)
	if cfg.Events != nil {
		show("GET /events", c.queryEvents)
		show("GET /experiments", c.experiments)
		show("GET /tail", c.tail)
		handle("GET /tail/stream", 0, http.HandlerFunc(c.tailStream))
	}
	show("GET /help", c.help)
	if cfg.Alerts != nil {
		c.mountAlerts(show, act)
	}
	if cfg.Identities != nil {
		show("GET /certificates", c.certificates)
		c.mountCertificates(act)
	}
	if cfg.AuditLog != nil {
		show("GET /audit", c.audit)
		handle("GET /audit/export", 0, http.HandlerFunc(c.exportAudit))
	}
	if cfg.Operators != nil {
		c.mountOperators(show, act)
	}
	if cfg.Releases != nil {
		c.mountReleases(show, act)
	}
	if cfg.Webhooks != nil {
		c.mountWebhooks(show, act)
	}
	if cfg.Passkeys != nil {
		show("GET /me", c.me)
		c.mountMe(act)
	}
	handle("GET /login", pageTimeout, http.HandlerFunc(c.loginPage))
	handle("POST /login", signInTime, http.HandlerFunc(c.login))
	handle("POST /logout", pageTimeout, c.SignOut(c.Auth.SignOut))
	handle("POST /theme", pageTimeout, page.SetTheme("/"))
	handle("GET /live", 0, http.HandlerFunc(c.live))
	handle("GET /assets/{file}", 0, http.HandlerFunc(c.Asset))
	handle("GET /{path...}", 0, http.HandlerFunc(c.lost))
	for _, e := range cfg.More {
		c.mountExtra(e, show, act)
	}
	return nil
}

func newConsole(cfg Config) (*console, error) {
	if cfg.Fleet == nil || cfg.Auth == nil || cfg.Log == nil {
		return nil, errors.New("console: want Fleet, Auth and Log")
	}
	if cfg.Audit == nil && (cfg.Identities != nil || cfg.Owners != nil || cfg.Tokens != nil || cfg.Operators != nil || cfg.Docs != nil || cfg.Commands != nil || cfg.Cohorts != nil || cfg.Bulk != nil || cfg.Alerts != nil) {
		return nil, errors.New("console: want Audit, because pages make changes")
	}
	c := &console{Config: cfg, now: time.Now}
	funcs := template.FuncMap{"micros": micros, "species": thing.Species.Name, "count": count, "short": short, "initial": initial, "explain": registry.Explain, "presence": presence}
	c.Site = &page.Site{Login: "/login", Dones: maps.Clone(dones), Allowed: operator, Dress: c.dress, Message: c.message}
	var err error
	c.Set, err = page.Load(files, "/assets/", funcs, cfg.Log, c.Fail)
	return c, err
}

type (
	frame = page.Frame
	link  = page.Link
	said  = page.Said
	view  = page.View
)

// able tells templates the rights of the viewer; it is embedded in the pages' data.
type able struct{ role auth.Role }

// May reports whether a form may be sent, by its route's pattern.
func (a able) May(pattern string) bool { return access.HTTP.Check(pattern, a.role) == nil }

func ableOf(ctx context.Context) able { return able{auth.CallerFrom(ctx).Role} }

// action is a form on a page.
type action struct {
	form func(r *http.Request) string // its name on the page
	do   func(ctx context.Context, r *http.Request, v url.Values) (outcome, error)
	page view
	back func(r *http.Request) string // the page's address
}

// outcome is the result of a form.
type outcome struct {
	done   string // a key of dones
	secret string // newly made; shown only once
	back   string // where it leads; "": to the form's page
}

// dones holds the texts that pages show after a form; the address carries the key.
var dones = map[string]string{
	"thing-revoked":    "Certificates revoked. They are refused everywhere within two seconds.",
	"thing-released":   "Identity reset. The former key no longer works. Give the robot this secret; it is shown only once.",
	"owner-released":   "Owner removed.",
	"token-revoked":    "Access token revoked, with every token refreshed from it.",
	"tokens-revoked":   "All access tokens revoked. The owner must sign in again with an app.",
	"app-removed":      "App removed. It can no longer connect to this robot.",
	"apps-removed":     "All apps removed. None can connect to this robot.",
	"approved":         "Robot approved. It gets its certificate within a minute.",
	"refused":          "Robot refused for a day.",
	"batch-put":        "Batch saved.",
	"batch-disabled":   "Batch disabled. Its factory certificates are refused.",
	"batch-enabled":    "Batch enabled.",
	"factory-revoked":  "Factory certificate refused.",
	"operator-added":   "Operator added. Pass on this one-time password: it is shown only once, and must be changed at the first sign-in.",
	"operator-reset":   "One-time password created, and all of the operator's sessions ended. Pass it on: it is shown only once, and must be changed at the next sign-in.",
	"operator-role":    "Role changed.",
	"operator-off":     "Operator disabled and signed out everywhere.",
	"operator-on":      "Operator enabled.",
	"operator-out":     "Sessions ended.",
	"operator-gone":    "Operator removed.",
	"alert-rule":       "Rule saved. It applies within 15 seconds.",
	"threshold-added":  "Threshold added. It applies within 15 seconds.",
	"threshold-gone":   "Threshold removed. Its alerts resolve within a minute.",
	"alert-mail":       "Recipients saved.",
	"alert-acked":      "Alert acknowledged, until it resolves or gets worse.",
	"alert-unacked":    "Acknowledgement removed.",
	"alert-silenced":   "Alert silenced. It sends no e-mail until the time shown.",
	"silence-ended":    "Silence ended. The alert sends e-mail again.",
	"release-added":    "Release added. Roll it out, or set it as a target version.",
	"release-uploaded": "Release uploaded. Roll it out, or set it as a target version.",
	"release-wanted":   "Target set. Robots learn of it when they connect, and once an hour.",
	"release-unwant":   "Target removed.",
	"channel-set":      "Channel set. Original robots find the release when they next look for updates.",
	"webhook-added":    "Webhook added. The receiver checks signatures with this secret; it is shown only once.",
	"webhook-tested":   "Test sent. The answer is the first delivery in the list.",
	"webhook-disable":  "Webhook turned off.",
	"webhook-enable":   "Webhook turned on.",
	"webhook-secret":   "New secret created; it is shown only once. Requests are signed with the old secret too for one day.",
	"webhook-replay":   "Queued for another attempt.",
	"webhook-removed":  "Webhook deleted.",
	"cohort-put":       "Filter saved.",
	"cohort-gone":      "Cohort removed. Its robots are unchanged.",
	"bulk-begun":       "Bulk action started. You can leave this page.",
	"bulk-cancelled":   "Remaining robots cancelled.",
	"tagged":           "Tags changed.",
	"setting-set":      "Setting changed. The robot gets it as soon as it is online.",
	"command-sent":     "Command sent. The answer appears below.",
	"robot-stopped":    "Stop sent. Motion below shows whether the robot has stopped.",
	"robot-poked":      "Sent to the simulator. The robot's reaction shows below. If it was not possible, Commands says why.",
	"passkey-added":    "Passkey added. You can now sign in with it.",
	"passkey-removed":  "Passkey removed. Delete it from your device too.",
}

// frontDoor leads owners from the address of the site to their own pages.
func (c *console) frontDoor(overview http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.Mine && auth.CallerFrom(r.Context()).Role == auth.Owner {
			http.Redirect(w, r, "/my", http.StatusSeeOther)
			return
		}
		overview.ServeHTTP(w, r)
	})
}

// operator refuses callers who are not one. An operator with a first password was led to the page that changes it before
// (accountapi.Authenticator).
func operator(c auth.Caller) error {
	if !c.Role.Staff() {
		return errs.New(errs.Denied, "this page is for operators; %s is not an operator account", c.Name)
	}
	return nil
}

// act serves a form.
func (c *console) act(a action) http.Handler {
	return c.Act(page.Action{Form: a.form, Page: a.page, Back: a.back, Do: func(ctx context.Context, r *http.Request, v url.Values) (page.Outcome, error) {
		o, err := a.do(ctx, r, v)
		return page.Outcome{Done: o.done, Secret: o.secret, Back: o.back}, err
	}})
}

// maxReason is the longest reason an operator gives, in bytes; certsapi has the same.
const maxReason = 400

// reason reads the reason for an action; the audit log keeps it.
func reason(v url.Values) (string, error) {
	s := strings.TrimSpace(v.Get("reason"))
	if s == "" || len(s) > maxReason || strings.ContainsRune(s, 0) {
		return "", errs.Coded(errs.Invalid, "reason", "enter a reason of 1 to %d characters; the audit log keeps it", maxReason)
	}
	return s, nil
}

// lost answers at addresses where nothing is: people with a page and a way on, programs as the API does.
func (c *console) lost(w http.ResponseWriter, r *http.Request) {
	err := errs.Coded(errs.NotFound, "no_page", "page not found; check the address")
	if strings.HasPrefix(r.URL.Path, "/v1/") || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		kithttp.WriteError(w, err)
		return
	}
	c.Fail(w, r, err)
}

// dress fills in what every page has.
func (c *console) dress(r *http.Request, _ string, f *frame) {
	caller := auth.CallerFrom(r.Context())
	f.User, f.Me, f.Role, f.Theme = caller.Name, "/account/password", caller.Role, page.Theme(r)
	f.Folded = page.Folded(r)
	if f.Here = "/"; r.Method == http.MethodGet && caller.Role != "" {
		f.Here = r.URL.RequestURI()
	}
	if c.Passkeys != nil && caller.Role.Staff() {
		f.Me = "/me"
	}
	if n := len(f.Crumbs); n > 0 {
		f.Crumbs[n-1].Current = true
	}
	if caller.Role.Staff() {
		type entry struct {
			link
			menu  string
			there bool
		}
		entries := []entry{{link{Label: "Overview", Address: "/"}, "", true}, {fleetLink, "", true}, {link{Label: "Alerts", Address: "/alerts"}, "", c.Alerts != nil},
			{link{Label: "Events", Address: "/events"}, "", c.Events != nil}, {link{Label: "Live tail", Address: "/tail"}, "", c.Events != nil},
			{link{Label: "Experiments", Address: "/experiments"}, page.Updates, c.Events != nil}, {link{Label: "Releases", Address: "/releases"}, page.Updates, c.Releases != nil},
			{link{Label: "Certificates", Address: "/certificates"}, page.Connections, c.Identities != nil}, {link{Label: "Webhooks", Address: "/webhooks"}, page.Cloud, c.Webhooks != nil},
			{link{Label: "Operators", Address: "/operators"}, page.Cloud, c.Operators != nil}, {link{Label: "Audit", Address: "/audit"}, page.Cloud, c.AuditLog != nil}}
		for _, e := range c.More {
			entries = append(entries, entry{link{Label: e.Label, Address: e.Address}, e.Menu, e.Show != nil && !e.Aside})
			if e.Aside && access.HTTP.Check("GET "+e.Address, caller.Role) == nil {
				f.Aside = append(f.Aside, link{Label: e.Label, Address: e.Address})
			}
		}
		for _, l := range entries {
			pattern := "GET " + l.Address
			if l.Address == "/" {
				pattern = "GET /{$}"
			}
			if !l.there || access.HTTP.Check(pattern, caller.Role) != nil {
				continue
			}
			l.Current = f.Path == l.Address || l.Address != "/" && strings.HasPrefix(f.Path, l.Address+"/") || l.link == fleetLink && (strings.HasPrefix(f.Path, "/bulk") || f.Path == "/cohorts")
			if i := slices.IndexFunc(f.Nav, func(m page.Menu) bool { return l.menu != "" && m.Label == l.menu }); i >= 0 {
				f.Nav[i].Links = append(f.Nav[i].Links, l.link)
			} else {
				f.Nav = append(f.Nav, page.Menu{Label: l.menu, Links: []link{l.link}})
			}
		}
	}
}

type messageView struct {
	Heading, Text string
	Home          bool // offer the way back to the fleet
	In            bool // offer to sign in
	My            bool // offer the way to the owners' pages
}

func (c *console) message(caller auth.Caller, heading, text string) any {
	return messageView{Heading: heading, Text: text, Home: caller.Role.Staff(), In: caller.Role == "", My: caller.Role == auth.Owner && c.Mine}
}

// words returns what a page says of err; what is ours to mend is logged as what.
func (c *console) words(r *http.Request, what string, err error) string {
	if page.Expected(err) {
		return page.Words(err)
	}
	c.Log.ErrorContext(r.Context(), what, logging.Err, err)
	return "Something went wrong on the server. Try again in a moment."
}
