package companion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/token"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/uploads"
	"kennel/cloud/voice/answers"
	"kennel/cloud/voice/voice"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// robotView is one robot of the owner's.
type robotView struct {
	owner.Tenure
	Title  string // its name, or what it is
	Kind   string // what it is
	Serial string
	State  state
	Offer  *owner.Offer // it is offered to another person
	How    string       // how it came
	Eyes   string       // their colour
	Tab    string       // which of its pages this is
	Moves  bool         // it has joints that move by motions
	Ask    bool         // its owner has not said whether robots may send what happens to them
	metric bool
	locale string // that the owner chose; "": this kind of robot has none
	known  registry.Thing
}

type homeView struct {
	said
	Robots []robotView
	Offers []offerView // to the owner
	First  bool        // another person has seen the password
	Gone   string      // what is wrong with a form that is not here any more
}

type offerView struct {
	owner.Offer
	Kind, Form string
}

func (c *companion) home(ctx context.Context, _ *http.Request, s said) (string, frame, error) {
	me := auth.CallerFrom(ctx)
	v := homeView{said: s}
	mine, err := c.Robots.Robots(ctx, me.Account)
	if err != nil {
		return "", frame{}, err
	}
	offers, err := c.Robots.Offers(ctx, me.Account, me.Name)
	if err != nil {
		return "", frame{}, err
	}
	for _, t := range mine {
		x, err := c.newRobot(ctx, t, offers)
		if err != nil {
			return "", frame{}, err
		}
		v.Robots = append(v.Robots, x)
	}
	forms := []string{"claim"}
	for _, o := range offers {
		if !o.Mine {
			x := offerView{o, o.Thing.Species().Name(), offerForm(o.ID)}
			v.Offers, forms = append(v.Offers, x), append(forms, x.Form)
		}
	}
	v.Gone = s.Lost(forms)
	if v.First, err = c.People.FirstPassword(ctx); err != nil {
		return "", frame{}, err
	}
	f := frame{Title: "My robots", Main: v}
	if len(mine) > 0 {
		f.Live = liveOf("")
	}
	return "home", f, nil
}

func (c *companion) newRobot(ctx context.Context, t owner.Tenure, offers []owner.Offer) (robotView, error) {
	v := robotView{Tenure: t, Kind: t.Thing.Species().Name(), Serial: t.Thing.Serial(), How: how[t.How]}
	if v.Title = t.Name; v.Title == "" {
		v.Title = "Your " + v.Kind
	}
	r, err := c.Fleet.Thing(ctx, t.Thing)
	if err != nil && errs.KindOf(err) != errs.NotFound {
		return v, fmt.Errorf("state of %s: %w", t.Thing, err)
	}
	if err != nil {
		r = registry.Thing{} // an original robot that calls without a status
	}
	v.known, v.State = r, newState(r, c.now())
	settings := jdocs.SettingsOf(t.Thing.Species())
	wants, err := c.document(ctx, t.Thing, settings)
	if err != nil {
		return v, err
	}
	is := readSettings(settings, wants.JSON)
	v.Eyes, v.metric, v.locale = is.Color(), is.yes("dist_is_metric"), is.text("locale")
	_, asked, err := c.consent(ctx, t.Thing)
	if err != nil {
		return v, err
	}
	v.Ask = !asked
	for _, o := range offers {
		if o.Mine && o.Thing == t.Thing {
			v.Offer = &o
		}
	}
	if c.Motions != nil {
		v.Moves, err = c.Motions.Has(ctx, t.Thing)
	}
	return v, err
}

type robotPage struct {
	said
	robotView
	Apps     []token.App
	Uses     []useView // what programs did
	Rights   []tick    // that a program can be given; nil: the robot serves none
	SignedIn bool      // it has an access token in force
	Renewed  time.Time // the newest
	Gone     string
	Logs     []uploads.Log // the newest
	Tell     *tellView     // nil: it does not say what it can do
	KeepDays int
	Audio    *voice.AudioWish // nil: the page does not say
	Weather  *answers.Weather // likewise
	Talk     *answers.Talk    // nil: there is neither a language model nor anything kept of one
	Software *softwareView    // likewise
	now      time.Time
}

// Over reports whether a time has passed.
func (v robotPage) Over(t time.Time) bool { return !v.now.Before(t) }

// mine returns the caller's tenure of the robot in the path; NotFound for another's and for one that does not exist.
func (c *companion) mine(ctx context.Context, r *http.Request) (owner.Tenure, error) {
	id, err := thing.Parse(r.PathValue("thing"))
	if err != nil {
		return owner.Tenure{}, notYours()
	}
	all, err := c.Robots.Robots(ctx, auth.CallerFrom(ctx).Account)
	if err != nil {
		return owner.Tenure{}, err
	}
	for _, t := range all {
		if t.Thing == id {
			return t, nil
		}
	}
	return owner.Tenure{}, notYours()
}

func notYours() error {
	return errs.Coded(errs.NotFound, "no_thing", "you have no such robot")
}

func (c *companion) robot(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	t, err := c.mine(ctx, r)
	if err != nil {
		return "", frame{}, err
	}
	me := auth.CallerFrom(ctx)
	offers, err := c.Robots.Offers(ctx, me.Account, me.Name)
	if err != nil {
		return "", frame{}, err
	}
	v, forms := robotPage{said: s, now: c.now()}, []string{"name", "release", "offer", "apps", "tokens", "audio", "update"}
	if v.robotView, err = c.newRobot(ctx, t, offers); err != nil {
		return "", frame{}, err
	}
	v.Tab = "now"
	if v.Apps, err = c.Tokens.Apps(ctx, t.Thing); err != nil {
		return "", frame{}, err
	}
	if st := v.known.Status; st != nil && st.Gateway != "" {
		v.Rights, v.Uses, forms = ticks(s), v.uses(), append(forms, "programs")
	}
	tokens, err := c.Tokens.Tokens(ctx, t.Thing)
	if err != nil {
		return "", frame{}, err
	}
	for _, x := range tokens {
		if x.User == me.Account && x.Revoked.IsZero() && x.Expires.After(c.now()) && x.Issued.After(v.Renewed) {
			v.SignedIn, v.Renewed = true, x.Issued
		}
	}
	if err := errors.Join(c.logs(ctx, &v), c.audio(ctx, &v), c.answers(ctx, &v), c.software(ctx, &v, v.known)); err != nil {
		return "", frame{}, err
	}
	if v.Tell, err = c.tells(ctx, t, v.State.Can, v.locale); err != nil {
		return "", frame{}, err
	}
	if v.Tell != nil {
		forms = append(forms, "tell")
	}
	if v.Talk != nil {
		forms = append(forms, "talk")
	}
	v.Gone = s.Lost(forms)
	return "robot", frame{Title: v.Title, Live: liveOf(t.Thing), Main: v}, nil
}

// shownLogs is how many logs the page of a robot lists.
const shownLogs = 20

// Logs lists what robots uploaded; *uploads.Service is one.
type Logs interface {
	List(ctx context.Context, q uploads.Query) ([]uploads.Log, error)
	Keep() time.Duration
}

// logs are what a robot uploaded for its owner.
func (c *companion) logs(ctx context.Context, v *robotPage) (err error) {
	if c.Logs == nil {
		return nil
	}
	v.KeepDays = int(c.Logs.Keep() / (24 * time.Hour))
	v.Logs, err = c.Logs.List(ctx, uploads.Query{Thing: v.Thing, Account: auth.CallerFrom(ctx).Account, Limit: shownLogs})
	return err
}

func home(*http.Request) string { return "/my" }

func robotAddress(r *http.Request) string {
	return "/my/robots/" + url.PathEscape(r.PathValue("thing"))
}

func offerForm(id string) string { return "offer " + id }

func (c *companion) mountRobots(act func(pattern string, a action)) {
	claimed := func(r *http.Request) string { return "/my/robots/" + url.PathEscape(r.PathValue("claimed")) }
	act("POST /my/claim", action{form: page.Called("claim"), page: c.home, back: claimed, do: func(ctx context.Context, r *http.Request, v url.Values) (string, error) {
		me := auth.CallerFrom(ctx)
		t, err := c.Robots.Claim(ctx, me.Account, me.Addr, "", v.Get("code"))
		r.SetPathValue("claimed", string(t.Thing))
		return "claimed", err
	}})
	act("POST /my/transfers/{id}/accept", action{form: ofOffer, page: c.home, back: claimed, do: func(ctx context.Context, r *http.Request, _ url.Values) (string, error) {
		me := auth.CallerFrom(ctx)
		t, err := c.Robots.Accept(ctx, me.Account, me.Name, r.PathValue("id"))
		r.SetPathValue("claimed", string(t.Thing))
		return "accepted", err
	}})
	act("POST /my/transfers/{id}/drop", action{form: ofOffer, page: c.home, back: home, do: func(ctx context.Context, r *http.Request, _ url.Values) (string, error) {
		me := auth.CallerFrom(ctx)
		return "dropped", c.Robots.Drop(ctx, me.Account, me.Name, r.PathValue("id"))
	}})
	of := func(pattern, form string, back func(*http.Request) string, do func(ctx context.Context, me auth.Caller, id thing.ID, v url.Values) (string, error)) {
		act(pattern, action{form: page.Called(form), page: c.robot, back: back, do: func(ctx context.Context, r *http.Request, v url.Values) (string, error) {
			t, err := c.mine(ctx, r)
			if err != nil {
				return "", err
			}
			return do(ctx, auth.CallerFrom(ctx), t.Thing, v)
		}})
	}
	act("POST /my/robots/{thing}/settings", action{form: settingsForm, page: c.settings, do: c.change, back: func(r *http.Request) string {
		return robotAddress(r) + "/settings#h-" + url.PathEscape(r.PostForm.Get("card"))
	}})
	of("POST /my/robots/{thing}/name", "name", robotAddress, func(ctx context.Context, me auth.Caller, id thing.ID, v url.Values) (string, error) {
		t, err := c.Robots.Rename(ctx, me.Account, id, v.Get("name"))
		if err == nil && t.Name == "" {
			return "unnamed", nil
		}
		return "named", err
	})
	of("POST /my/robots/{thing}/release", "release", home, func(ctx context.Context, me auth.Caller, id thing.ID, v url.Values) (string, error) {
		if v.Get("sure") != "yes" {
			return "", errs.New(errs.Invalid, "confirm that you want to remove the robot")
		}
		return "released", c.Robots.Release(ctx, me.Account, id)
	})
	of("POST /my/robots/{thing}/offer", "offer", robotAddress, func(ctx context.Context, me auth.Caller, id thing.ID, v url.Values) (string, error) {
		_, err := c.Robots.Offer(ctx, me.Account, me.Name, id, strings.TrimSpace(v.Get("to")), owner.Proof{Password: logging.Secret(v.Get("password")), Addr: me.Addr})
		return "offered", err
	})
	of("POST /my/robots/{thing}/tell", "tell", func(r *http.Request) string { return robotAddress(r) + "#told" }, c.tell)
	of("POST /my/robots/{thing}/apps", "apps", robotAddress, c.endApps)
	if c.Updates != nil {
		of("POST /my/robots/{thing}/update", "update", func(r *http.Request) string { return robotAddress(r) + "#software" }, c.choose)
	}
	if c.Recordings != nil {
		of("POST /my/robots/{thing}/audio", "audio", robotAddress, c.setAudio)
	}
	if c.Answers != nil {
		of("POST /my/robots/{thing}/talk", "talk", robotAddress, c.setTalk)
		of("POST /my/robots/{thing}/forget", "talk", robotAddress, c.forgetTalk)
	}
	of("POST /my/robots/{thing}/tokens", "tokens", robotAddress, func(ctx context.Context, _ auth.Caller, id thing.ID, _ url.Values) (string, error) {
		if err := c.Audit(ctx, "tokens.revoke", string(id), "all"); err != nil {
			return "", err
		}
		_, err := c.Tokens.RevokeThing(ctx, id, "by its owner")
		return "tokens", err
	})
}

func ofOffer(r *http.Request) string { return offerForm(r.PathValue("id")) }

// endApps removes the app of the form, or all without one.
func (c *companion) endApps(ctx context.Context, _ auth.Caller, id thing.ID, v url.Values) (string, error) {
	app := strings.TrimSpace(v.Get("app"))
	if app == "" {
		if err := c.Audit(ctx, "apps.revoke", string(id), "all"); err != nil {
			return "", err
		}
		return "apps", c.Tokens.RevokeApps(ctx, id)
	}
	if err := c.Audit(ctx, "apps.revoke", string(id), app); err != nil {
		return "", err
	}
	return "app", c.Tokens.RevokeApp(ctx, id, app)
}
