package companion

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
)

// privacyView shows the data held about the owner, and their rights.
type privacyView struct {
	said
	Email  string
	Robots int
	Places int // sessions
	Events bool
	Gone   string
}

func (c *companion) privacy(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	me := auth.CallerFrom(ctx)
	v := privacyView{said: s, Email: me.Name, Gone: s.Lost([]string{"delete", "events"})}
	robots, err := c.Robots.Robots(ctx, me.Account)
	if err != nil {
		return "", frame{}, err
	}
	sessions, err := c.People.Sessions(r)
	if err != nil {
		return "", frame{}, err
	}
	v.Robots, v.Places = len(robots), len(sessions)
	if len(robots) > 0 {
		if v.Events, _, err = c.consent(ctx, robots[0].Thing); err != nil {
			return "", frame{}, err
		}
	}
	return "privacy", frame{Title: "Privacy", Main: v}, nil
}

type accountView struct {
	said
	Email    string
	Sessions []Session
	Others   int // sessions beside this one
	First    bool
	Keys     []keyView
	At       page.Passkeys
	Gone     string // what is wrong with a form that is not here any more
}

type keyView struct {
	Passkey
	Form string
}

func keyForm(id string) string { return "passkey " + id }

func (c *companion) account(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	v := accountView{said: s, Email: auth.CallerFrom(ctx).Name}
	var err error
	if v.Sessions, err = c.People.Sessions(r); err != nil {
		return "", frame{}, err
	}
	for _, x := range v.Sessions {
		if !x.Current {
			v.Others++
		}
	}
	if v.First, err = c.People.FirstPassword(ctx); err != nil {
		return "", frame{}, err
	}
	v.At = page.PasskeysAt(r, c.PasskeySites)
	keys, err := c.People.Passkeys(ctx)
	if err != nil {
		return "", frame{}, err
	}
	forms := []string{"sessions"}
	for _, k := range keys {
		v.Keys = append(v.Keys, keyView{k, keyForm(k.ID)})
		forms = append(forms, keyForm(k.ID))
	}
	v.Gone = s.Lost(forms)
	return "account", frame{Title: "My account", Main: v}, nil
}

func (c *companion) mountAccount(act func(pattern string, a action)) {
	back := func(*http.Request) string { return "/my/account" }
	act("POST /my/account/sessions", action{form: page.Called("sessions"), page: c.account, back: back, do: func(_ context.Context, r *http.Request, v url.Values) (string, error) {
		if id := strings.TrimSpace(v.Get("session")); id != "" {
			return "session", c.People.EndSession(r, id)
		}
		return "sessions", c.People.EndOthers(r)
	}})
	act("POST /my/account/passkeys/{id}/remove", action{form: func(r *http.Request) string { return keyForm(r.PathValue("id")) }, page: c.account, back: back,
		do: func(ctx context.Context, r *http.Request, _ url.Values) (string, error) {
			return "no-passkey", c.People.RemovePasskey(ctx, r.PathValue("id"))
		}})
	act("POST /my/privacy/events", action{form: page.Called("events"), page: c.privacy, back: func(*http.Request) string { return "/my/privacy" }, do: c.setConsent})
}

// leave begins the deletion of the account. Nothing is left to go back to: the session is over.
func (c *companion) leave(w http.ResponseWriter, r *http.Request) {
	if !c.Admit(w, r) {
		return
	}
	values, err := page.Form(r)
	if err != nil {
		c.Fail(w, r, err)
		return
	}
	if values.Get("sure") != "yes" {
		err = errs.New(errs.Invalid, "confirm that you want to delete everything")
	} else {
		err = c.People.Delete(r, values.Get("password"))
	}
	switch {
	case err == nil:
		if err := c.People.SignOut(w, r); err != nil { // the account is closed whatever becomes of the cookie
			c.Log.InfoContext(r.Context(), "cookie of a deleted account not removed", "err", err)
		}
		http.Redirect(w, r, "/my/goodbye", http.StatusSeeOther)
	case page.Expected(err):
		values.Del("password")
		c.View(w, r, kithttp.RefuseForm(w, err), c.privacy, page.Refused("delete", err, values))
	default:
		c.Fail(w, r, err)
	}
}

func (c *companion) goodbye(w http.ResponseWriter, r *http.Request) {
	c.Page(w, r, http.StatusOK, "goodbye", frame{Title: "Goodbye"})
}
