package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"kennel/cloud/account"
	"kennel/cloud/console/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Operators is the staff, which the administrators among them look after; *account.Service is one. It writes the audit log itself.
type Operators interface {
	Operators(ctx context.Context) ([]account.Operator, error)
	AddOperator(ctx context.Context, by account.By, email string, role auth.Role) (account.Account, logging.Secret, error)
	SetRole(ctx context.Context, by account.By, id account.ID, role auth.Role) error
	SetOperatorDisabled(ctx context.Context, by account.By, id account.ID, disabled bool) error
	ResetOperator(ctx context.Context, by account.By, id account.ID) (logging.Secret, error)
	RemoveOperator(ctx context.Context, by account.By, id account.ID) error
	EndOperatorSession(ctx context.Context, by account.By, id account.ID, session string) (int, error)
}

type operatorsView struct {
	able
	said
	Gone  string // what is wrong with a form that is not here any more
	Rows  []operatorView
	Roles []roleView
}

type operatorView struct {
	account.Operator
	Form string
	Me   bool
}

type roleView struct {
	auth.Role
	Does string
}

// roles says in words what each may do; access.HTTP has it exactly.
var roles = []roleView{
	{auth.Viewer, "sees everything but people, changes nothing"},
	{auth.Support, "settings, commands, waiting robots, tokens, owners"},
	{auth.ReleaseManager, "settings, commands, tokens, releases"},
	{auth.Admin, "everything, and people"},
}

func (c *console) operators(ctx context.Context, _ *http.Request, s said) (string, frame, error) {
	all, err := c.Operators.Operators(ctx)
	if err != nil {
		return "", frame{}, err
	}
	v := operatorsView{able: ableOf(ctx), said: s, Roles: roles}
	forms := []string{"add"}
	for _, o := range all {
		x := operatorView{o, operatorForm(string(o.ID)), string(o.ID) == auth.CallerFrom(ctx).Account}
		v.Rows, forms = append(v.Rows, x), append(forms, x.Form)
	}
	v.Gone = s.Lost(forms)
	return "operators", frame{Title: "Operators", Main: v}, nil
}

func operatorForm(id string) string { return "operator " + id }

func (c *console) mountOperators(act func(pattern string, a action)) {
	back := func(*http.Request) string { return "/operators" }
	act("POST /operators", action{page.Called("add"), func(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
		_, secret, err := c.Operators.AddOperator(ctx, by(ctx), strings.TrimSpace(v.Get("email")), auth.Role(v.Get("role")))
		return outcome{done: "operator-added", secret: secret.Reveal()}, err
	}, c.operators, back})
	of := func(pattern, done string, do func(ctx context.Context, id account.ID, v url.Values) (logging.Secret, error)) {
		act(pattern, action{func(r *http.Request) string { return operatorForm(r.PathValue("id")) }, func(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
			secret, err := do(ctx, account.ID(r.PathValue("id")), v)
			return outcome{done: done, secret: secret.Reveal()}, err
		}, c.operators, back})
	}
	of("POST /operators/{id}/role", "operator-role", func(ctx context.Context, id account.ID, v url.Values) (logging.Secret, error) {
		return "", c.Operators.SetRole(ctx, by(ctx), id, auth.Role(v.Get("role")))
	})
	of("POST /operators/{id}/disable", "operator-off", func(ctx context.Context, id account.ID, _ url.Values) (logging.Secret, error) {
		return "", c.Operators.SetOperatorDisabled(ctx, by(ctx), id, true)
	})
	of("POST /operators/{id}/enable", "operator-on", func(ctx context.Context, id account.ID, _ url.Values) (logging.Secret, error) {
		return "", c.Operators.SetOperatorDisabled(ctx, by(ctx), id, false)
	})
	of("POST /operators/{id}/password", "operator-reset", func(ctx context.Context, id account.ID, _ url.Values) (logging.Secret, error) {
		return c.Operators.ResetOperator(ctx, by(ctx), id)
	})
	of("POST /operators/{id}/sessions", "operator-out", func(ctx context.Context, id account.ID, _ url.Values) (logging.Secret, error) {
		_, err := c.Operators.EndOperatorSession(ctx, by(ctx), id, "")
		return "", err
	})
	of("POST /operators/{id}/remove", "operator-gone", func(ctx context.Context, id account.ID, v url.Values) (logging.Secret, error) {
		if v.Get("sure") != "yes" {
			return "", errs.New(errs.Invalid, "tick that you are sure: a removed account does not come back")
		}
		return "", c.Operators.RemoveOperator(ctx, by(ctx), id)
	})
}

// by is the signed-in operator.
func by(ctx context.Context) account.By {
	caller := auth.CallerFrom(ctx)
	return account.By{ID: account.ID(caller.Account), Addr: caller.Addr}
}
