package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/certs"
	"kennel/certs/thing"
	"kennel/cloud/api/status"
	"kennel/cloud/owner"
	"kennel/cloud/registry"
	"kennel/cloud/token"
	"kennel/infra/errs"
	"kennel/infra/kit"
)

// Owners is what the robot's page asks about whose it is; *owner.Service is one.
type Owners interface {
	History(ctx context.Context, id thing.ID, limit int) ([]owner.Tenure, error)
	Owner(ctx context.Context, id thing.ID) (account string, err error)
	TakeAway(ctx context.Context, account string, id thing.ID) error
}

// Tokens is what the robot's page asks about tokens and apps; *token.Service is one.
type Tokens interface {
	Tokens(ctx context.Context, id thing.ID) ([]token.TokenInfo, error)
	RevokeToken(ctx context.Context, id thing.ID, name, why string) (int, error)
	RevokeThing(ctx context.Context, id thing.ID, why string) (int, error)
	Apps(ctx context.Context, id thing.ID) ([]token.App, error)
	RevokeApp(ctx context.Context, id thing.ID, app string) error
	RevokeApps(ctx context.Context, id thing.ID) error
}

// What the robot's page shows of long lists.
const (
	shownChanges = 8
	shownOwners  = 20
	shownTokens  = 10
	shownCerts   = 10
)

type thingView struct {
	able
	said
	registry.Thing
	Stranger  bool   // nobody registered it; there is only what the doctor knows
	Name      string // of the species
	Report    registry.Report
	Status    *status.Message
	Battery   *batteryView
	Uptime    string
	Clock     string
	Lateness  *scale
	StepTime  *scale
	MissedPct string
	Strip     []span
	Changes   []registry.Change // the latest few
	Docs      []docView
	Events    []Event
	HasDocs   bool
	HasEvents bool

	HasCerts bool
	Certs    []certView
	Revoked  bool // the newest certificate is
	HasOwner bool
	Owner    *owner.Tenure // nil: nobody owns it
	Past     []owner.Tenure
	HasApps  bool
	Apps     []token.App
	Tokens   []tokenView
	InForce  int // tokens
}

type docView struct {
	Doc
	Reported string // version on the robot; "" unknown
	InStep   bool
	Dirty    bool
	Pretty   string
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

func (c *console) thing(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	id, err := thingOf(r)
	if err != nil {
		return "", frame{}, err
	}
	report, err := c.Fleet.Doctor(ctx, id)
	if err != nil {
		return "", frame{}, err
	}
	t, err := c.Fleet.Thing(ctx, id)
	if err != nil && errs.KindOf(err) == errs.NotFound && len(report.Steps) > 0 { // why it never got in is what somebody wants to know
		v := thingView{able: ableOf(ctx), said: s, Thing: registry.Thing{ID: id, Species: id.Species(), Serial: id.Serial(), Presence: registry.Absent}, Report: report, Stranger: true}
		return "thing", frame{Title: string(id), Main: v}, nil
	}
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
	v := newThingView(t, report, history, docs, events, c.now())
	v.able, v.said = ableOf(ctx), s
	v.HasDocs, v.HasEvents = c.Docs != nil, c.Events != nil
	if err := c.identity(ctx, &v); err != nil {
		return "", frame{}, err
	}
	return "thing", frame{Title: string(id), Live: "/live?thing=" + url.QueryEscape(string(id)), Main: v}, nil
}

// identity adds certificates, owner, apps and tokens.
func (c *console) identity(ctx context.Context, v *thingView) error {
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

func newThingView(t registry.Thing, report registry.Report, history []registry.Change, docs []Doc, events []Event, now time.Time) thingView {
	v := thingView{Thing: t, Name: species(t.Species), Report: report, Status: t.Status, Events: events, Strip: newStrip(history, t.Presence, now)}
	v.Changes = history[:min(len(history), shownChanges)]
	if m := t.Status; m != nil {
		v.Battery = newBattery(m.Body)
		v.Uptime = duration(time.Duration(m.UptimeMS) * time.Millisecond)
		v.Clock = offset(t.ClockMS, m.TS != 0)
		if l := m.Loop; l != nil {
			v.Lateness = newScale(lateBar, mark{"p50", l.LateP50}, mark{"p99", l.LateP99}, mark{"p99.9", l.LateP999}, mark{"worst", l.LateMax})
			v.StepTime = newScale(stepBar, mark{"p50", l.StepP50}, mark{"p99", l.StepP99}, mark{"worst", l.StepMax})
			if all := l.Steps + l.Missed; all > 0 {
				v.MissedPct = percent(float64(l.Missed) / float64(all))
			}
		}
	}
	for _, d := range docs {
		dv := docView{Doc: d, Pretty: pretty(d.JSON)}
		if t.Status != nil {
			has := t.Status.Docs[d.Name]
			dv.Reported, dv.InStep = strconv.FormatUint(has, 10), has >= d.Version
			dv.Dirty = slices.Contains(t.Status.Dirty, d.Name)
		}
		v.Docs = append(v.Docs, dv)
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

// short is the beginning of an id that nobody reads out.
func short(id string) string {
	if len(id) <= 13 {
		return id
	}
	return id[:8] + "…"
}

func thingOf(r *http.Request) (thing.ID, error) {
	id, err := thing.Parse(r.PathValue("thing"))
	if err != nil {
		return "", errs.New(errs.Invalid, "%w", err)
	}
	return id, nil
}

func thingAddress(r *http.Request) string { return "/things/" + url.PathEscape(r.PathValue("thing")) }

// mountThing adds the forms of the robot's page.
func (c *console) mountThing(act func(pattern string, a action)) {
	add := func(pattern, form string, do func(ctx context.Context, id thing.ID, r *http.Request, v url.Values) (outcome, error)) {
		act(pattern, action{called(form), func(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
			id, err := thingOf(r)
			if err != nil {
				return outcome{}, err
			}
			if _, err := c.Fleet.Thing(ctx, id); err != nil {
				return outcome{}, err
			}
			return do(ctx, id, r, v)
		}, c.thing, thingAddress})
	}
	if c.Identities != nil {
		add("POST /things/{thing}/revoke", "revoke", c.revokeThing)
		add("POST /things/{thing}/release", "release", c.releaseThing)
	}
	if c.Owners != nil {
		add("POST /things/{thing}/owner/release", "owner", c.takeAway)
	}
	if c.Tokens != nil {
		add("POST /things/{thing}/tokens/revoke", "tokens", c.revokeTokens)
		add("POST /things/{thing}/apps/revoke", "apps", c.revokeApps)
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
	return "by an operator, role " + string(kit.CallerFrom(ctx).Role)
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
