package accountapi

import (
	"context"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
)

// Operator is one of the staff as GET /v1/operators shows one.
type Operator struct {
	ID         account.ID `json:"id"`
	Email      string     `json:"email"`
	Role       auth.Role  `json:"role"`
	MustChange bool       `json:"must_change"` // has not chosen a password yet
	Disabled   bool       `json:"disabled"`
	Created    time.Time  `json:"created"`
	Sessions   int        `json:"sessions"`
	LastSeen   time.Time  `json:"last_seen,omitzero"`
}

// NewOperator is the body of POST /v1/operators.
type NewOperator struct {
	Email string    `json:"email"`
	Role  auth.Role `json:"role"` // viewer, support, release-manager or admin
}

// FirstPassword answers it: the password is shown only once; its user sets another one with it.
type FirstPassword struct {
	ID       account.ID `json:"id"`
	Email    string     `json:"email,omitempty"`
	Role     auth.Role  `json:"role,omitempty"`
	Password string     `json:"password"`
}

// OperatorChange is the body of PATCH /v1/operators/{id}; what is left out stays.
type OperatorChange struct {
	Role     *auth.Role `json:"role,omitempty"`
	Disabled *bool      `json:"disabled,omitempty"`
}

type (
	operator struct {
		ID string `path:"id"`
	}
	operatorChanging struct {
		operator
		Change OperatorChange `body:""`
	}
	operatorSession struct {
		operator
		Session string `path:"session"`
	}
)

// firstPassword shows one to the person who made it.
const firstPassword = "id; password\n=Shown only once. The operator signs in with it and chooses their own."

// StaffOperations returns the operations of administrators on the staff.
func StaffOperations(ops *account.Operators) op.List {
	admins := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Staff", Summary: summary, Roles: auth.Admins}
	}
	return op.List{
		op.New(admins("GET /v1/operators", "List operators.").With(
			op.Command{Use: "operators list", Short: "List operators", Table: "E-MAIL=.email; ROLE; SESSIONS; LAST SEEN; SINCE=.created; NOTE={{if .disabled}}disabled{{else if .must_change}}one-time password{{end}}; ID"}), func(ctx context.Context, _ op.None) ([]Operator, error) {
			list, err := ops.List(ctx)
			out := make([]Operator, 0, len(list))
			for _, o := range list {
				out = append(out, Operator{o.ID, o.Email, o.Role, o.MustChange, o.Disabled, o.Created.UTC(), o.Sessions, o.LastSeen.UTC()})
			}
			return out, err
		}),
		op.New(admins("POST /v1/operators", "Add an operator. The answer has a one-time password, shown only once.").With(
			op.Command{Use: "operators add E-MAIL=email -role=viewer", Short: "Add an operator and print a one-time password", Example: "operators add grace@example.org -role support", Table: firstPassword}), func(ctx context.Context, n NewOperator) (FirstPassword, error) {
			o, password, err := ops.Add(ctx, by(ctx), n.Email, n.Role)
			return FirstPassword{o.ID, o.Email, o.Role, password.Reveal()}, err
		}),
		op.New(admins("PATCH /v1/operators/{id}", "Change an operator's role, or disable an operator.").With(
			op.Command{Use: "operators role OPERATOR ROLE", Short: "Change an operator's role", Example: "operators role grace@example.org release-manager", Says: "{{.OPERATOR}} now has role {{.ROLE}}"},
			op.Command{Use: "operators disable OPERATOR disabled:=true", Short: "Disable an operator and end their sessions", Says: "{{.OPERATOR}} disabled"},
			op.Command{Use: "operators enable OPERATOR disabled:=false", Short: "Enable a disabled operator", Says: "{{.OPERATOR}} enabled"}), func(ctx context.Context, r operatorChanging) (op.None, error) {
			id, c := account.ID(r.ID), r.Change
			switch {
			case (c.Role == nil) == (c.Disabled == nil):
				return op.None{}, errs.New(errs.Invalid, "want one of role and disabled")
			case c.Role != nil:
				return op.None{}, ops.SetRole(ctx, by(ctx), id, *c.Role)
			}
			return op.None{}, ops.SetDisabled(ctx, by(ctx), id, *c.Disabled)
		}),
		op.New(admins("DELETE /v1/operators/{id}", "Remove an operator.").With(
			op.Command{Use: "operators remove OPERATOR", Short: "Remove an operator and all data held about the person", Long: "The audit log keeps what the operator did, under an id without a name.", Says: "{{.OPERATOR}} removed"}),
			func(ctx context.Context, r operator) (op.None, error) {
				return op.None{}, ops.Remove(ctx, by(ctx), account.ID(r.ID))
			}),
		op.New(admins("POST /v1/operators/{id}/password", "Reset an operator's password. The answer has a one-time password; the operator's sessions end.").With(
			op.Command{Use: "operators password OPERATOR", Short: "Reset an operator's password, print a one-time password and end their sessions", Table: firstPassword}), func(ctx context.Context, r operator) (FirstPassword, error) {
			password, err := ops.Reset(ctx, by(ctx), account.ID(r.ID))
			return FirstPassword{ID: account.ID(r.ID), Password: password.Reveal()}, err
		}),
		op.New(admins("GET /v1/operators/{id}/sessions", "List an operator's sessions.").With(
			op.Command{Use: "operators sessions OPERATOR", Short: "List an operator's sessions", Table: "SESSION=.id; SINCE=.created; LAST SEEN; UNTIL=.expires; FROM=.addr"}), func(ctx context.Context, r operator) ([]Session, error) {
			list, err := ops.Sessions(ctx, account.ID(r.ID))
			out := make([]Session, 0, len(list))
			for _, s := range list {
				out = append(out, Session{ID: s.ID, App: s.App, Created: s.Created.UTC(), LastSeen: s.LastSeen.UTC(), Expires: s.Expires.UTC(), Addr: s.Addr, Robot: s.Used})
			}
			return out, err
		}),
		op.New(admins("DELETE /v1/operators/{id}/sessions", "End all of an operator's sessions.").With(
			op.Command{Use: "operators end OPERATOR", Short: "End an operator's sessions, or one of them", Says: "{{count .ended `session`}} ended"}), func(ctx context.Context, r operator) (Ended, error) {
			n, err := ops.EndSession(ctx, by(ctx), account.ID(r.ID), "")
			return Ended{n}, err
		}),
		op.New(admins("DELETE /v1/operators/{id}/sessions/{session}", "End one of an operator's sessions.").With(
			op.Command{Use: "operators end OPERATOR SESSION", Short: "End an operator's sessions, or one of them", Example: "operators end grace@example.org\noperators end grace@example.org 0f3a5c7e9b1d2f40", Says: "1 session ended", Done: `{"ended":1}`}), func(ctx context.Context, r operatorSession) (op.None, error) {
			_, err := ops.EndSession(ctx, by(ctx), account.ID(r.ID), r.Session)
			return op.None{}, err
		}),
	}
}

func by(ctx context.Context) account.By {
	id, addr := caller(ctx)
	return account.By{ID: id, Addr: addr}
}
