package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kennel/certs"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/token"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Owners is the robot page's access to ownership; *owner.Service is one.
type Owners interface {
	History(ctx context.Context, id thing.ID, limit int) ([]owner.Tenure, error)
	Owner(ctx context.Context, id thing.ID) (account string, err error)
	TakeAway(ctx context.Context, account string, id thing.ID) error
}

// Tokens is the robot page's access to tokens and apps; *token.Service is one.
type Tokens interface {
	Tokens(ctx context.Context, id thing.ID) ([]token.TokenInfo, error)
	RevokeToken(ctx context.Context, id thing.ID, name, why string) (int, error)
	RevokeThing(ctx context.Context, id thing.ID, why string) (int, error)
	Apps(ctx context.Context, id thing.ID) ([]token.App, error)
	RevokeApp(ctx context.Context, id thing.ID, app string) error
	RevokeApps(ctx context.Context, id thing.ID) error
}

// The robot's page shows this much of long lists.
const (
	shownOwners = 20
	shownTokens = 10
	shownCerts  = 10
)

// thingHead is the head of all pages of one robot.
type thingHead struct {
	able
	said
	registry.Thing
	Stranger bool   // not registered; only the doctor knows it
	Kind     string // of the species
	Tabs     []link
	AuditAt  string // the audit log's lines about it; "": not for this viewer
}

type thingView struct {
	thingHead
	Report    registry.Report
	Battery   *batteryView
	Uptime    string
	Clock     string
	Lateness  *scale
	StepTime  *scale
	MissedPct string
	Life      lifeView
}

type accessView struct {
	thingHead
	HasCerts bool
	Certs    []certView
	Revoked  bool // the newest certificate is
	HasOwner bool
	Owner    *owner.Tenure // nil: it has no owner
	Past     []owner.Tenure
	HasApps  bool
	Apps     []token.App
	Tokens   []tokenView
	InForce  int // tokens
}

type certView struct {
	certs.Record
	State string // in force, ended, revoked, given up
	Bad   bool
}

type tokenView struct {
	token.TokenInfo
	State string
	Good  bool
}

// head reads what a robot's pages begin with; tab is the last part of the page's address.
func (c *console) head(ctx context.Context, r *http.Request, s said, tab string) (thingHead, frame, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return thingHead{}, frame{}, err
	}
	h := thingHead{able: ableOf(ctx), said: s}
	if h.Thing, err = c.Fleet.Thing(ctx, id); err != nil {
		return h, frame{Title: string(id)}, err
	}
	if err := c.tabs(ctx, &h, tab); err != nil {
		return h, frame{Title: string(id)}, err
	}
	f := frame{Title: string(id), Live: "/live?thing=" + url.QueryEscape(string(id)), Crumbs: []link{fleetLink, {Label: string(id), Address: place(id)}}}
	for _, l := range h.Tabs {
		if l.Current && tab != "" {
			f.Title = l.Label + " of " + string(id)
			f.Crumbs = append(f.Crumbs, l)
		}
	}
	return h, f, nil
}

// place is the address of a robot's page.
func place(id thing.ID) string { return "/things/" + string(id) } // the alphabet of ids needs no escape

func (c *console) tabs(ctx context.Context, h *thingHead, tab string) error {
	h.Kind = h.Species.Name()
	type entry struct {
		link
		there bool
	}
	tabs := []entry{{link{Label: "Overview"}, true}, {link{Label: "Robot", Address: "robot"}, c.Look != nil}, {link{Label: "Settings", Address: "settings"}, c.Docs != nil}, {link{Label: "Commands", Address: "commands"}, c.Commands != nil},
		{link{Label: "Events", Address: "events"}, c.Events != nil}, {link{Label: "Access", Address: "access"}, c.Identities != nil || c.Owners != nil || c.Tokens != nil}}
	for _, e := range c.More {
		if address, ok := strings.CutPrefix(e.Address, ofThing); ok && e.Label != "" {
			there := true
			if e.Of != nil {
				var err error
				if there, err = e.Of(ctx, h.ID); err != nil {
					return err
				}
			}
			tabs = append(tabs, entry{link{Label: e.Label, Address: address}, there})
		}
	}
	for _, t := range tabs {
		if t.there {
			t.Current = t.Address == tab
			t.Address = strings.TrimSuffix(place(h.ID)+"/"+t.Address, "/")
			h.Tabs = append(h.Tabs, t.link)
		}
	}
	if c.AuditLog != nil && h.May("GET /audit") {
		h.AuditAt = "/audit?" + url.Values{"object": {string(h.ID)}}.Encode()
	}
	return nil
}

// thing is the page that says how a robot is, and what happened to it.
func (c *console) thing(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	id, err := kithttp.Thing(r)
	if err != nil {
		return "", frame{}, err
	}
	report, err := c.Fleet.Doctor(ctx, id)
	if err != nil {
		return "", frame{}, err
	}
	h, f, err := c.head(ctx, r, s, "")
	if errs.KindOf(err) == errs.NotFound && len(report.Steps) > 0 {
		h.Thing, h.Stranger = registry.Thing{ID: id, Species: id.Species(), Presence: registry.Absent}, true
		f.Main = thingView{thingHead: h, Report: report}
		f.Crumbs = []link{fleetLink, {Label: string(id), Address: place(id)}}
		return "thing", f, nil
	}
	if err != nil {
		return "", frame{}, err
	}
	v := newThingView(h, report)
	if v.Life, err = c.life(ctx, r.URL.Query(), h, report); err != nil {
		return "", frame{}, err
	}
	f.Main = v
	return "thing", f, nil
}

// access is the page that says who a robot is to others: its certificates, its owner, apps and tokens.
func (c *console) access(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	h, f, err := c.head(ctx, r, s, "access")
	if err != nil {
		return "", frame{}, err
	}
	v := accessView{thingHead: h}
	if err := c.identity(ctx, &v); err != nil {
		return "", frame{}, err
	}
	f.Main, f.Live = v, ""
	return "access", f, nil
}

// identity adds certificates, owner, apps and tokens.
func (c *console) identity(ctx context.Context, v *accessView) error {
	if v.HasCerts = c.Identities != nil; v.HasCerts {
		all, err := c.Identities.Certificates(ctx, v.ID)
		if err != nil {
			return fmt.Errorf("certificates of %s: %w", v.ID, err)
		}
		v.Certs = newCerts(all, c.now())
		v.Revoked = len(all) > 0 && !all[0].Revoked.IsZero()
	}
	if v.HasOwner = c.Owners != nil; v.HasOwner {
		all, err := c.Owners.History(ctx, v.ID, shownOwners)
		if err != nil {
			return fmt.Errorf("owners of %s: %w", v.ID, err)
		}
		for _, t := range all {
			if t.Until == nil {
				v.Owner = &t
			} else {
				v.Past = append(v.Past, t)
			}
		}
	}
	if v.HasApps = c.Tokens != nil; v.HasApps {
		var err error
		if v.Apps, err = c.Tokens.Apps(ctx, v.ID); err != nil {
			return fmt.Errorf("apps of %s: %w", v.ID, err)
		}
		all, err := c.Tokens.Tokens(ctx, v.ID)
		if err != nil {
			return fmt.Errorf("tokens of %s: %w", v.ID, err)
		}
		v.Tokens, v.InForce = newTokens(all, c.now())
	}
	return nil
}

func newThingView(h thingHead, report registry.Report) thingView {
	v := thingView{thingHead: h, Report: report}
	if m := h.Status; m != nil {
		v.Battery = newBattery(m.Body)
		v.Uptime = duration(time.Duration(m.UptimeMS) * time.Millisecond)
		v.Clock = offset(h.ClockMS, m.TS != 0)
		if l := m.Loop; l != nil {
			v.Lateness = newScale(lateBar, mark{"p50", l.LateP50}, mark{"p99", l.LateP99}, mark{"p99.9", l.LateP999}, mark{"worst", l.LateMax})
			v.StepTime = newScale(stepBar, mark{"p50", l.StepP50}, mark{"p99", l.StepP99}, mark{"worst", l.StepMax})
			if all := l.Steps + l.Missed; all > 0 {
				v.MissedPct = percent(float64(l.Missed) / float64(all))
			}
		}
	}
	return v
}

// newCerts shows the newest certificates; the oldest of them last.
func newCerts(all []certs.Record, now time.Time) []certView {
	var out []certView
	for _, r := range all[:min(len(all), shownCerts)] {
		v := certView{Record: r, State: "in force"}
		switch {
		case r.Released:
			v.State = "given up"
		case !r.Revoked.IsZero():
			v.State, v.Bad = "revoked", true
		case r.NotAfter.Before(now):
			v.State = "ended"
		}
		out = append(out, v)
	}
	return out
}

// newTokens shows those in force, and the newest of the others up to shownTokens in all. n is how many are in force.
func newTokens(all []token.TokenInfo, now time.Time) (out []tokenView, n int) {
	for _, t := range all {
		v := tokenView{TokenInfo: t}
		switch {
		case !t.Revoked.IsZero():
			v.State = "revoked"
		case t.Expires.Before(now):
			v.State = "ended"
		default:
			v.State, v.Good = "in force", true
			n++
		}
		if v.Good || len(out) < shownTokens {
			out = append(out, v)
		}
	}
	return out, n
}

// short returns the beginning of an id, enough to recognise it.
func short(id string) string {
	if len(id) <= 13 {
		return id
	}
	return id[:8] + "…"
}

func thingAddress(r *http.Request) string { return "/things/" + url.PathEscape(r.PathValue("thing")) }

func tabAddress(tab string) func(r *http.Request) string {
	return func(r *http.Request) string { return strings.TrimSuffix(thingAddress(r)+"/"+tab, "/") }
}

// mountThing adds the pages of a robot and their forms.
func (c *console) mountThing(show func(pattern string, h view), act func(pattern string, a action)) {
	add := func(pattern string, form func(*http.Request) string, tab string, page view, do func(ctx context.Context, id thing.ID, r *http.Request, v url.Values) (outcome, error)) {
		act(pattern, action{form, func(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
			id, err := kithttp.Thing(r)
			if err != nil {
				return outcome{}, err
			}
			if _, err := c.Fleet.Thing(ctx, id); err != nil {
				return outcome{}, err
			}
			return do(ctx, id, r, v)
		}, page, tabAddress(tab)})
	}
	show("GET /things/{thing}", c.thing)
	if c.Audit != nil {
		add("POST /things/{thing}/tags", page.Called("tags"), "", c.thing, c.tagThing)
	}
	if c.Docs != nil {
		show("GET /things/{thing}/settings", c.settings)
		add("POST /things/{thing}/settings", func(r *http.Request) string {
			return settingForm(jdocs.Name(r.PostForm.Get("doc")), r.PostForm.Get("field"))
		}, "settings", c.settings, c.setField)
	}
	if c.Commands != nil {
		show("GET /things/{thing}/commands", c.orders)
		add("POST /things/{thing}/commands", page.Called("command"), "commands", c.orders, c.sendCommand)
	}
	if c.Look != nil {
		show("GET /things/{thing}/robot", c.robot)
		if c.Commands != nil {
			add("POST /things/{thing}/stop", page.Called("stop"), "robot", c.robot, c.stopRobot)
			add("POST /things/{thing}/poke", page.Called("poke"), "robot", c.robot, c.pokeRobot)
		}
	}
	if c.Events != nil {
		show("GET /things/{thing}/events", c.thingEvents)
	}
	if c.Identities != nil || c.Owners != nil || c.Tokens != nil {
		show("GET /things/{thing}/access", c.access)
	}
	if c.Identities != nil {
		add("POST /things/{thing}/revoke", page.Called("revoke"), "access", c.access, c.revokeThing)
		add("POST /things/{thing}/release", page.Called("release"), "access", c.access, c.releaseThing)
	}
	if c.Owners != nil {
		add("POST /things/{thing}/owner/release", page.Called("owner"), "access", c.access, c.takeAway)
	}
	if c.Tokens != nil {
		add("POST /things/{thing}/tokens/revoke", page.Called("tokens"), "access", c.access, c.revokeTokens)
		add("POST /things/{thing}/apps/revoke", page.Called("apps"), "access", c.access, c.revokeApps)
	}
}

func (c *console) revokeThing(ctx context.Context, id thing.ID, _ *http.Request, v url.Values) (outcome, error) {
	why, err := reason(v)
	if err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "thing.revoke", string(id), why); err != nil {
		return outcome{}, err
	}
	_, err = c.Identities.Revoke(ctx, id, why)
	return outcome{done: "thing-revoked"}, err
}

func (c *console) releaseThing(ctx context.Context, id thing.ID, _ *http.Request, v url.Values) (outcome, error) {
	why, err := reason(v)
	if err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "thing.release", string(id), why); err != nil {
		return outcome{}, err
	}
	secret, err := c.Identities.Release(ctx, id, why)
	return outcome{done: "thing-released", secret: secret.Reveal()}, err
}

func (c *console) takeAway(ctx context.Context, id thing.ID, _ *http.Request, v url.Values) (outcome, error) {
	why, err := reason(v)
	if err != nil {
		return outcome{}, err
	}
	account, err := c.Owners.Owner(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "owner.release", string(id), why); err != nil {
		return outcome{}, err
	}
	return outcome{done: "owner-released"}, c.Owners.TakeAway(ctx, account, id)
}

// byOperator says who ended a token, in the table of tokens; tokenapi says the same.
func byOperator(ctx context.Context) string {
	return "by an operator, role " + string(auth.CallerFrom(ctx).Role)
}

// revokeTokens ends the token of the form, or all without one.
func (c *console) revokeTokens(ctx context.Context, id thing.ID, _ *http.Request, v url.Values) (outcome, error) {
	name := strings.TrimSpace(v.Get("token"))
	if name == "" {
		if err := c.Audit(ctx, "tokens.revoke", string(id), "all"); err != nil {
			return outcome{}, err
		}
		_, err := c.Tokens.RevokeThing(ctx, id, byOperator(ctx))
		return outcome{done: "tokens-revoked"}, err
	}
	if err := c.Audit(ctx, "tokens.revoke", string(id), name); err != nil {
		return outcome{}, err
	}
	_, err := c.Tokens.RevokeToken(ctx, id, name, byOperator(ctx))
	return outcome{done: "token-revoked"}, err
}

// revokeApps removes the app of the form, or all without one.
func (c *console) revokeApps(ctx context.Context, id thing.ID, _ *http.Request, v url.Values) (outcome, error) {
	app := strings.TrimSpace(v.Get("app"))
	if app == "" {
		if err := c.Audit(ctx, "apps.revoke", string(id), "all"); err != nil {
			return outcome{}, err
		}
		return outcome{done: "apps-removed"}, c.Tokens.RevokeApps(ctx, id)
	}
	if err := c.Audit(ctx, "apps.revoke", string(id), app); err != nil {
		return outcome{}, err
	}
	return outcome{done: "app-removed"}, c.Tokens.RevokeApp(ctx, id, app)
}
