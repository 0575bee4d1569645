package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"kennel/cloud/identity/account"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Operators is the staff, which the administrators among them look after; *account.Operators is one. It writes the audit log itself.
type Operators interface {
	List(ctx context.Context) ([]account.Operator, error)
	Add(ctx context.Context, by account.By, email string, role auth.Role) (account.Account, logging.Secret, error)
	SetRole(ctx context.Context, by account.By, id account.ID, role auth.Role) error
	SetDisabled(ctx context.Context, by account.By, id account.ID, disabled bool) error
	Reset(ctx context.Context, by account.By, id account.ID) (logging.Secret, error)
	Remove(ctx context.Context, by account.By, id account.ID) error
	Sessions(ctx context.Context, id account.ID) ([]account.SessionInfo, error)
	EndSession(ctx context.Context, by account.By, id account.ID, session string) (int, error)
}

type operatorsView struct {
	able
	said
	Rows  []operatorView
	Roles []roleView
}

type operatorView struct {
	account.Operator
	Me bool
}

// onePersonView is the page of one operator.
type onePersonView struct {
	able
	said
	operatorView
	Roles []roleView
	Open  []account.SessionInfo // where they are signed in
}

type roleView struct {
	auth.Role
	Does string
}

// roles says in words what each may do; access.HTTP has it exactly.
var roles = []roleView{
	{auth.Viewer, "sees robots, updates, alerts and webhooks; not people, and not the audit log, which is about people. Changes nothing"},
	{auth.Support, "settings, commands, waiting robots, tokens, owners"},
	{auth.ReleaseManager, "settings, commands, tokens, releases"},
	{auth.Admin, "everything, and people"},
}

func (c *console) operators(ctx context.Context, _ *http.Request, s said) (string, frame, error) {
	all, err := c.Operators.List(ctx)
	if err != nil {
		return "", frame{}, err
	}
	v := operatorsView{able: ableOf(ctx), said: s, Roles: roles}
	for _, o := range all {
		v.Rows = append(v.Rows, operatorView{o, string(o.ID) == auth.CallerFrom(ctx).Account})
	}
	return "operators", frame{Title: "Operators", Main: v}, nil
}

// operator is the page of one: role, sessions, password.
func (c *console) operator(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	all, err := c.Operators.List(ctx)
	if err != nil {
		return "", frame{}, err
	}
	i := slices.IndexFunc(all, func(o account.Operator) bool { return string(o.ID) == r.PathValue("id") })
	if i < 0 {
		return "", frame{}, errs.New(errs.NotFound, "no such operator; the account may have been removed")
	}
	v := onePersonView{able: ableOf(ctx), said: s, operatorView: operatorView{all[i], string(all[i].ID) == auth.CallerFrom(ctx).Account}, Roles: roles}
	if v.Open, err = c.Operators.Sessions(ctx, all[i].ID); err != nil {
		return "", frame{}, err
	}
	return "operator", frame{Title: v.Email, Crumbs: []link{{Label: "Operators", Address: "/operators"}, {Label: v.Email}}, Main: v}, nil
}

func (c *console) mountOperators(show func(pattern string, h view), act func(pattern string, a action)) {
	list := func(*http.Request) string { return "/operators" }
	back := func(r *http.Request) string { return "/operators/" + url.PathEscape(r.PathValue("id")) }
	show("GET /operators", c.operators)
	show("GET /operators/{id}", c.operator)
	act("POST /operators", action{page.Called("add"), func(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
		_, secret, err := c.Operators.Add(ctx, by(ctx), strings.TrimSpace(v.Get("email")), auth.Role(v.Get("role")))
		return outcome{done: "operator-added", secret: secret.Reveal()}, err
	}, c.operators, list})
	form := func(r *http.Request) string { return r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:] }
	of := func(pattern, done string, do func(ctx context.Context, id account.ID, v url.Values) (logging.Secret, error)) {
		act(pattern, action{form, func(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
			secret, err := do(ctx, account.ID(r.PathValue("id")), v)
			return outcome{done: done, secret: secret.Reveal()}, err
		}, c.operator, back})
	}
	of("POST /operators/{id}/role", "operator-role", func(ctx context.Context, id account.ID, v url.Values) (logging.Secret, error) {
		return "", c.Operators.SetRole(ctx, by(ctx), id, auth.Role(v.Get("role")))
	})
	of("POST /operators/{id}/disable", "operator-off", func(ctx context.Context, id account.ID, _ url.Values) (logging.Secret, error) {
		return "", c.Operators.SetDisabled(ctx, by(ctx), id, true)
	})
	of("POST /operators/{id}/enable", "operator-on", func(ctx context.Context, id account.ID, _ url.Values) (logging.Secret, error) {
		return "", c.Operators.SetDisabled(ctx, by(ctx), id, false)
	})
	of("POST /operators/{id}/password", "operator-reset", func(ctx context.Context, id account.ID, _ url.Values) (logging.Secret, error) {
		return c.Operators.Reset(ctx, by(ctx), id)
	})
	of("POST /operators/{id}/sessions", "operator-out", func(ctx context.Context, id account.ID, v url.Values) (logging.Secret, error) {
		_, err := c.Operators.EndSession(ctx, by(ctx), id, v.Get("session"))
		return "", err
	})
	act("POST /operators/{id}/remove", action{form, func(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
		if v.Get("sure") != "yes" {
			return outcome{}, errs.New(errs.Invalid, "confirm the removal: a removed account cannot be restored")
		}
		return outcome{done: "operator-gone"}, c.Operators.Remove(ctx, by(ctx), account.ID(r.PathValue("id")))
	}, c.operator, list})
}

// by is the signed-in operator.
func by(ctx context.Context) account.By {
	caller := auth.CallerFrom(ctx)
	return account.By{ID: account.ID(caller.Account), Addr: caller.Addr}
}
