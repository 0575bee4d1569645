package onebox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// tokenFile keeps a session of this machine's operator in a file, for kennelctl and scripts. Every reader of the file can sign in with it, without
// the operator's password. A password change ends every session, this one too, and the file gets another at once. The file never
// holds an ended session: an operator who is stopped or removed has no file.
type tokenFile struct {
	in     *account.SignIn
	people *account.People
	email  string
	ttl    time.Duration
	write  func(b []byte) error // the whole file, or nothing of it
	file   string
	now    func() time.Time
	log    *slog.Logger

	who     account.Account
	token   logging.Secret // "": there is no file
	renewAt time.Time
}

// tokenCheck is how often the file is checked; a person notices no delay.
const tokenCheck = 200 * time.Millisecond

// run looks after the file until ctx ends. What fails, because the database is away, is done again.
func (t *tokenFile) run(ctx context.Context) error {
	tick := time.NewTicker(tokenCheck)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := t.check(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			t.log.WarnContext(ctx, "local operator's token file not checked; retrying", logging.Err, err)
		}
		failing = err != nil
	}
}

// check makes the file hold a valid session.
func (t *tokenFile) check(ctx context.Context) error {
	if t.token != "" && t.now().Before(t.renewAt) {
		if good, err := t.in.StillGood(ctx, t.token, t.who); good || err != nil {
			return err
		}
	}
	who, err := t.people.Find(ctx, t.email)
	if err != nil && errs.KindOf(err) != errs.NotFound {
		return fmt.Errorf("account of this machine's operator: %w", err)
	}
	if err != nil || who.Disabled {
		return t.remove(ctx)
	}
	session, err := t.in.IssueSession(ctx, who.ID, t.ttl)
	if err != nil {
		return fmt.Errorf("session of this machine's operator: %w", err)
	}
	if err := t.write([]byte(session.Token.Reveal() + "\n")); err != nil {
		return errors.Join(err, t.in.Logout(ctx, session.Token))
	}
	before := t.token
	t.who, t.token, t.renewAt = who, session.Token, t.now().Add(t.ttl/2)
	if before == "" {
		return nil
	}
	t.log.InfoContext(ctx, "local operator's token file renewed", "file", t.file)
	return t.in.Logout(ctx, before) // good still if only its time was half over, or the role another
}

// remove deletes the file when there is no operator to sign in.
func (t *tokenFile) remove(ctx context.Context) error {
	err := os.Remove(t.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		t.log.WarnContext(ctx, "local operator may no longer sign in; token file removed", "file", t.file)
	}
	t.token = ""
	return nil
}
