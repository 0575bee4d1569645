package app

import (
	"context"
	"net/http"

	"kennel/cloud/account"
	"kennel/cloud/account/accountapi"
	"kennel/cloud/account/places"
	"kennel/cloud/companion"
	"kennel/cloud/console"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/jdocs/jdocsapi"
)

// console tells the pages whom to ask. The owners' pages are beside them.
func (c *Cloud) console() console.Config {
	browser := accountapi.Browser{Accounts: c.Accounts, Log: c.log}
	audit := accountapi.Auditor(c.Accounts)
	provider := ""
	if c.provider != nil {
		provider = c.provider.Name()
	}
	return console.Config{
		Passkeys: c.Accounts, PasskeySites: c.passkeys.Sites(), Provider: provider,
		Fleet: c.Registry, Auth: browser, Docs: c.Docs, Commands: c.Commands, Events: c.Events, Vitals: c.vitals.List, Look: c.Look, Cohorts: c.Cohorts, Bulk: c.Bulk, Alerts: c.Alerts, Log: c.log,
		Identities: c.Certs, Owners: c.Owners, Tokens: c.Tokens, Operators: c.Accounts, AuditLog: c.Accounts.AuditLog, VerifyAudit: c.Accounts.VerifyAudit, Audit: audit,
		Beside: func(mux *http.ServeMux) error {
			docs := jdocsapi.NewPages(c.Docs, jdocsapi.WithNotifier(c.hinter), jdocsapi.WithOwns(c.Owners.Owns), jdocsapi.WithAccountChanged(c.accountChanged))
			return companion.Mount(mux, companion.Config{Robots: c.Owners, Tokens: c.Tokens, Fleet: c.Registry, Docs: docs, Places: places.Names(),
				People: ownPages{browser, c.People}, Audit: audit, Log: c.log})
		},
	}
}

// ownPages serves the pages where people manage their own accounts.
type ownPages struct {
	accountapi.Browser
	people *account.Owners
}

// FirstPassword implements companion.People.
func (p ownPages) FirstPassword(ctx context.Context) (bool, error) {
	a, err := p.Accounts.Find(ctx, auth.CallerFrom(ctx).Name)
	return a.MustChange, err
}

// session returns the token of the session that authenticated r's caller, from the caller's own cookie.
func (p ownPages) session(r *http.Request) (logging.Secret, error) {
	caller := auth.CallerFrom(r.Context())
	for _, name := range []string{accountapi.SecureCookie, accountapi.PlainCookie} {
		cookie, err := r.Cookie(name)
		if err != nil {
			continue
		}
		a, _, err := p.Accounts.Authenticate(r.Context(), logging.Secret(cookie.Value), caller.Addr)
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
	return p.people.Delete(r.Context(), account.ID(c.Account), logging.Secret(password), c.Addr)
}
