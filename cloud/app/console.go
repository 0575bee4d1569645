package app

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"kennel/certs/thing"
	"kennel/cloud/account"
	"kennel/cloud/account/accountapi"
	"kennel/cloud/account/places"
	"kennel/cloud/api/events"
	"kennel/cloud/companion"
	"kennel/cloud/console"
	"kennel/cloud/das"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/jdocs"
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
		Fleet: c.Registry, Auth: browser, Docs: c.consoleDocs, Events: c.consoleEvents, Log: c.log,
		Identities: c.Certs, Owners: c.Owners, Tokens: c.Tokens, Operators: c.Accounts, AuditLog: c.Accounts.AuditLog, VerifyAudit: c.Accounts.VerifyAudit, Audit: audit,
		Beside: func(mux *http.ServeMux) error {
			docs := jdocsapi.NewPages(c.Docs, jdocsapi.WithNotifier(c.hinter), jdocsapi.WithOwns(c.Owners.Owns), jdocsapi.WithAccountChanged(c.accountChanged))
			return companion.Mount(mux, companion.Config{Robots: c.Owners, Tokens: c.Tokens, Fleet: c.Registry, Docs: docs, Places: places.Names(),
				People: ownPages{browser, c.People}, Audit: audit, Log: c.log})
		},
	}
}

// ownPages is what people do with their own accounts on pages.
type ownPages struct {
	accountapi.Browser
	people *account.Owners
}

// FirstPassword implements companion.People.
func (p ownPages) FirstPassword(ctx context.Context) (bool, error) {
	a, err := p.Accounts.Find(ctx, kit.CallerFrom(ctx).Name)
	return a.MustChange, err
}

// session returns the token of the session that r's caller was proved by: that of the cookie that is theirs.
func (p ownPages) session(r *http.Request) (account.Secret, error) {
	caller := kit.CallerFrom(r.Context())
	for _, name := range []string{accountapi.SecureCookie, accountapi.PlainCookie} {
		cookie, err := r.Cookie(name)
		if err != nil {
			continue
		}
		a, _, err := p.Accounts.Authenticate(r.Context(), account.Secret(cookie.Value), caller.Addr)
		switch {
		case err == nil && string(a.ID) == caller.Account:
			return account.Secret(cookie.Value), nil
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
	list, mine, err := p.people.Sessions(r.Context(), account.ID(kit.CallerFrom(r.Context()).Account), token)
	out := make([]companion.Session, 0, len(list))
	for _, s := range list {
		out = append(out, companion.Session{ID: s.ID, Current: s.ID == mine, App: s.App, Created: s.Created, LastSeen: s.LastSeen, Addr: s.Addr, Robot: s.Used})
	}
	return out, err
}

// EndSession implements companion.People.
func (p ownPages) EndSession(r *http.Request, id string) error {
	c := kit.CallerFrom(r.Context())
	return p.people.EndSession(r.Context(), account.ID(c.Account), id, c.Addr)
}

// EndOthers implements companion.People.
func (p ownPages) EndOthers(r *http.Request) error {
	token, err := p.session(r)
	if err != nil {
		return err
	}
	c := kit.CallerFrom(r.Context())
	_, err = p.people.EndOtherSessions(r.Context(), account.ID(c.Account), token, c.Addr)
	return err
}

// Delete implements companion.People.
func (p ownPages) Delete(r *http.Request, password string) error {
	c := kit.CallerFrom(r.Context())
	return p.people.Delete(r.Context(), account.ID(c.Account), account.Secret(password), c.Addr)
}

func (c *Cloud) consoleDocs(ctx context.Context, id thing.ID) ([]console.Doc, error) {
	list, err := c.Docs.List(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]console.Doc, 0, len(list))
	for _, l := range list {
		rev, err := c.Docs.Get(ctx, jdocs.Key{Thing: id, Name: l.Name})
		if err != nil {
			return nil, fmt.Errorf("document %s: %w", l.Name, err)
		}
		out = append(out, console.Doc{Name: string(l.Name), Version: rev.Version, At: rev.At, By: rev.By, JSON: string(rev.JSON)})
	}
	return out, nil
}

func (c *Cloud) consoleEvents(ctx context.Context, id thing.ID, limit int) ([]console.Event, error) {
	recs, err := c.Events.List(ctx, das.Filter{Thing: id}, limit, das.Cursor{})
	if err != nil {
		return nil, err
	}
	out := make([]console.Event, 0, len(recs))
	for _, r := range recs {
		out = append(out, console.Event{Received: r.Received, Level: string(r.Level), Name: r.Name, Values: values(&r.Event)})
	}
	return out, nil
}

// values shows what an event carries: its texts, then its numbers.
func values(e *events.Event) string {
	var out []string
	for _, s := range []string{e.S1, e.S2, e.S3, e.S4} {
		if s != "" {
			out = append(out, s)
		}
	}
	for _, i := range []events.Int{e.I1, e.I2, e.I3, e.I4} {
		if !i.IsZero() {
			out = append(out, fmt.Sprint(i.N))
		}
	}
	return strings.Join(out, "  ")
}
