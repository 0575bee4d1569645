package console

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"

	"kennel/cloud/identity/account"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

// Passkeys is the access of an operator's own page to their keys; *account.Passkeys is one. It writes the audit log itself. Adding one is a
// dialogue between the browser and POST /v1/me/passkeys, which assets/passkey.js leads.
type Passkeys interface {
	Person(ctx context.Context, id account.ID) (account.Account, []account.Passkey, error)
	Remove(ctx context.Context, id account.ID, key []byte, addr string) error
}

type meView struct {
	said
	account.Account
	Does string
	Gone string // what is wrong with a form that is not here any more
	Keys []keyView
	At   page.Passkeys
}

type keyView struct {
	account.Passkey
	ID, Form string
}

func (c *console) me(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	a, keys, err := c.Passkeys.Person(ctx, account.ID(auth.CallerFrom(ctx).Account))
	if err != nil {
		return "", frame{}, err
	}
	v := meView{said: s, Account: a, At: page.PasskeysAt(r, c.PasskeySites)}
	for _, role := range roles {
		if role.Role == a.Role {
			v.Does = role.Does
		}
	}
	var forms []string
	for _, k := range keys {
		id := base64.RawURLEncoding.EncodeToString(k.ID)
		v.Keys = append(v.Keys, keyView{k, id, keyForm(id)})
		forms = append(forms, keyForm(id))
	}
	v.Gone = s.Lost(forms)
	return "me", frame{Title: "You", Main: v}, nil
}

func keyForm(id string) string { return "passkey " + id }

func (c *console) mountMe(act func(pattern string, a action)) {
	act("POST /me/passkeys/{id}/remove", action{func(r *http.Request) string { return keyForm(r.PathValue("id")) },
		func(ctx context.Context, r *http.Request, _ url.Values) (outcome, error) {
			key, err := base64.RawURLEncoding.DecodeString(r.PathValue("id"))
			if err != nil {
				return outcome{}, errs.New(errs.NotFound, "no such passkey")
			}
			who := by(ctx)
			return outcome{done: "passkey-removed"}, c.Passkeys.Remove(ctx, who.ID, key, who.Addr)
		}, c.me, func(*http.Request) string { return "/me" }})
}
