package accountpg_test

import (
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accounttest"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// people is every row that says who may sign in how, or that a letter was posted.
func (h *home) people(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, table := range []string{"account_account", "account_session", "account_user_session", "account_signup", "account_ticket", "account_passkey", "account_totp", "account_recovery",
		"account_deletion", "mail_outbox"} {
		row := "x"
		if table == "account_passkey" {
			row = "x.id" // its last use may be noted
		}
		rows, err := h.pool.Query(t.Context(), `SELECT `+row+`::text FROM `+table+` x ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range all {
			out[table] += row + "\n"
		}
	}
	return out
}

// TestNothingIsDoneUnwritten: with a full disk under the audit log, a password, a letter, a passkey or an app that is right is refused, and nothing is changed;
// with room again the same works (issue 28, must hold 3).
func TestNothingIsDoneUnwritten(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a, op, other := h.create(t, ada, auth.Owner), h.create(t, "op@staff.example", auth.Admin), h.create(t, "other@staff.example", auth.Viewer)
	_, err := h.o.Letters.SignUp(ctx, account.NewOwner{Email: "new@example.com", Password: password}, here)
	must(err)
	verify := logging.Secret(h.one(t).code)
	must(h.o.Letters.AskReset(ctx, ada, "", here))
	reset := logging.Secret(h.one(t).code)
	must(h.o.Letters.AskEmail(ctx, other.ID, "ada@other.example", password, here))
	email := logging.Secret(h.one(t).code)
	mine, err := h.Login(ctx, ada, password, here)
	must(err)
	theirs, err := h.Login(ctx, other.Email, password, here)
	must(err)
	staff, err := h.Login(ctx, op.Email, password, here)
	must(err)
	uri, err := h.Second.Begin(ctx, op.ID, password, here)
	must(err)
	key, err := otp.NewKeyFromURL(uri.Reveal())
	must(err)
	code, err := totp.GenerateCode(key.Secret(), *h.now.Load())
	must(err)
	must(h.Passkeys.Add(ctx, account.Passkey{ID: []byte{1}, Account: a.ID, Name: "blue", Credential: []byte("{}")}, here))
	h.letters(t)

	empty := accounttest.FillAudit(t, h.pool)
	before := h.people(t)
	valid := password
	then := func(next logging.Secret, set func(logging.Secret) error) error {
		err := set(next)
		if err == nil {
			valid = next
		}
		return err
	}
	steps := []struct {
		name string
		do   func() error
	}{
		{"sign up", func() error {
			_, err := h.o.Letters.SignUp(ctx, account.NewOwner{Email: "more@example.com", Password: password}, here)
			return err
		}},
		{"verify", func() error { _, err := h.o.Letters.Verify(ctx, verify, password, here); return err }},
		{"sign in", func() error { _, err := h.Login(ctx, ada, password, here); return err }},
		{"add passkey", func() error {
			return h.Passkeys.Add(ctx, account.Passkey{ID: []byte{2}, Account: a.ID, Name: "red", Credential: []byte("{}")}, here)
		}},
		{"passkey", func() error {
			_, err := h.Passkeys.Login(ctx, a, account.Passkey{ID: []byte{1}, Account: a.ID, Credential: []byte("{}")}, []byte("{}"), here)
			return err
		}},
		{"remove passkey", func() error { return h.Passkeys.Remove(ctx, a.ID, []byte{1}, here) }},
		{"confirm app", func() error { _, err := h.Second.Confirm(ctx, staff.Token, logging.Secret(code), here); return err }},
		{"end session", func() error { return h.EndSession(ctx, other.ID, account.SessionID(theirs.Token.Sum()), here) }},
		{"end others", func() error { _, err := h.EndOtherSessions(ctx, a.ID, mine.Token, here); return err }},
		{"ask for e-mail", func() error { return h.o.Letters.AskEmail(ctx, other.ID, "else@example.com", password, here) }},
		{"change e-mail", func() error { return h.o.Letters.ChangeEmail(ctx, email, here) }},
		{"reset", func() error {
			return then("a third horse battery", func(p logging.Secret) error { return h.o.Letters.Reset(ctx, reset, p, here) })
		}},
		{"change password", func() error {
			return then("another horse battery", func(p logging.Secret) error { return h.ChangePassword(ctx, a.ID, valid, p, mine.Token, here) })
		}},
		{"end sessions of an operator", func() error { _, err := h.Operators.EndSession(ctx, account.By{ID: op.ID}, other.ID, ""); return err }},
		{"remove operator", func() error { return h.Operators.Remove(ctx, account.By{ID: op.ID}, other.ID) }},
		{"issue", func() error { _, err := h.IssueSession(ctx, op.ID, 1); return err }},
		{"delete", func() error { return h.o.Privacy.Delete(ctx, a.ID, valid, here) }},
	}
	for _, s := range steps {
		if err := s.do(); errs.CodeOf(err) != "audit_unwritten" || errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s: %v; want it refused", s.name, err)
		}
		if after := h.people(t); !maps.Equal(before, after) {
			t.Errorf("%s: done all the same:\n%v\n%v", s.name, before, after)
			before = after
		}
	}
	empty()
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Errorf("%s, with room again: %v", s.name, err)
		}
	}
}
