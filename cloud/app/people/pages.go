package people

import (
	"context"
	"encoding/base64"
	"net/http"

	"kennel/cloud/app/records"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accountapi"
	"kennel/cloud/identity/account/places"
	"kennel/cloud/identity/token"
	"kennel/cloud/web/companion"
	"kennel/cloud/web/playground"
	"kennel/cloud/wire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// WirePages wires the pages of owners.
func WirePages(b wire.Base, a Accounts, owners Owners, tokens *token.Service, robots *registry.Service, docs records.Documents, logs companion.Logs, audio companion.Recordings, answers companion.Answers, updates companion.Updates, says companion.Says, motions companion.Motions) wire.Slice {
	return wire.Slice{Routes: func(mux *http.ServeMux, d wire.Doors) error {
		playground.Mount(mux)
		return companion.Mount(mux, companion.Config{Robots: owners, Tokens: tokens, Fleet: robots, Docs: docs.People, Logs: logs, Recordings: audio, Answers: answers, Updates: updates, Says: says, Motions: motions, Places: places.Names(),
			PasskeySites: a.Passkeys.Sites(),
			People:       ownPages{accountapi.Browser{In: a.SignIn, Log: b.Log}, a.People, a.Privacy, a.Keys}, Audit: d.Audit, Log: b.Log})
	}}
}

// ownPages serves the pages where people manage their own accounts.
type ownPages struct {
	accountapi.Browser
	people  *account.People
	privacy *account.Privacy
	keys    *account.Passkeys
}

// Passkeys implements companion.People.
func (p ownPages) Passkeys(ctx context.Context) ([]companion.Passkey, error) {
	_, keys, err := p.keys.Person(ctx, account.ID(auth.CallerFrom(ctx).Account))
	out := make([]companion.Passkey, 0, len(keys))
	for _, k := range keys {
		out = append(out, companion.Passkey{ID: base64.RawURLEncoding.EncodeToString(k.ID), Name: k.Name, Created: k.Created, LastUsed: k.LastUsed})
	}
	return out, err
}

// RemovePasskey implements companion.People.
func (p ownPages) RemovePasskey(ctx context.Context, id string) error {
	key, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return errs.New(errs.NotFound, "no such passkey")
	}
	c := auth.CallerFrom(ctx)
	return p.keys.Remove(ctx, account.ID(c.Account), key, c.Addr)
}

// FirstPassword implements companion.People.
func (p ownPages) FirstPassword(ctx context.Context) (bool, error) {
	a, err := p.people.Find(ctx, auth.CallerFrom(ctx).Name)
	return a.MustChange, err
}

// session returns the token of the session that authenticated r's caller, from the caller's own cookie.
func (p ownPages) session(r *http.Request) (logging.Secret, error) {
	caller := auth.CallerFrom(r.Context())
	if cookie, err := r.Cookie(accountapi.CookieName(r)); err == nil {
		a, _, err := p.In.Authenticate(r.Context(), logging.Secret(cookie.Value), caller.Addr)
		switch {
		case err == nil && string(a.ID) == caller.Account:
			return logging.Secret(cookie.Value), nil
		case err != nil && errs.KindOf(err) != errs.Unauthenticated:
			return "", err
		}
	}
	return "", errs.New(errs.Unauthenticated, "sign in with this browser first")
}

// Sessions implements companion.People.
func (p ownPages) Sessions(r *http.Request) ([]companion.Session, error) {
	token, err := p.session(r)
	if err != nil {
		return nil, err
	}
	list, mine, err := p.people.Sessions(r.Context(), account.ID(auth.CallerFrom(r.Context()).Account), token)
	out := make([]companion.Session, 0, len(list))
	for _, s := range list {
		out = append(out, companion.Session{ID: s.ID, Current: s.ID == mine, App: s.App, Created: s.Created, LastSeen: s.LastSeen, Addr: s.Addr, Robot: s.Used})
	}
	return out, err
}

// EndSession implements companion.People.
func (p ownPages) EndSession(r *http.Request, id string) error {
	c := auth.CallerFrom(r.Context())
	return p.people.EndSession(r.Context(), account.ID(c.Account), id, c.Addr)
}

// EndOthers implements companion.People.
func (p ownPages) EndOthers(r *http.Request) error {
	token, err := p.session(r)
	if err != nil {
		return err
	}
	c := auth.CallerFrom(r.Context())
	_, err = p.people.EndOtherSessions(r.Context(), account.ID(c.Account), token, c.Addr)
	return err
}

// Delete implements companion.People.
func (p ownPages) Delete(r *http.Request, password string) error {
	c := auth.CallerFrom(r.Context())
	return p.privacy.Delete(r.Context(), account.ID(c.Account), logging.Secret(password), c.Addr)
}
