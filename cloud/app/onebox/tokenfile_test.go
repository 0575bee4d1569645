package onebox

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accounttest"
	"kennel/infra/auth"
	"kennel/infra/logging"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestTokenFile: whatever ends the operator's sessions, the file holds one that is good after the next look, or is not there.
func TestTokenFile(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	clock := func() time.Time { return now }
	svc := accounttest.New(t, pgtest.New(t), func(c *account.SignInConfig) { c.Now = clock })
	other, _, err := svc.CreateAccount(ctx, "other@example.com", auth.Admin, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	op, first, err := svc.CreateAccount(ctx, operatorEmail, auth.Admin, "")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	file := filepath.Join(t.TempDir(), "operator.token")
	var full error
	f := &tokenFile{in: svc.SignIn, people: svc.People, email: operatorEmail, ttl: tokenTTL, file: file, now: clock, log: slog.New(slog.NewTextHandler(&log, nil)),
		write: func(b []byte) error { return errors.Join(full, os.WriteFile(file, b, 0o600)) }}
	held := func() logging.Secret {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return logging.Secret(strings.TrimSpace(string(b)))
	}
	good := func(s logging.Secret) bool {
		t.Helper()
		a, x, err := svc.Authenticate(ctx, s, "")
		return err == nil && a.ID == op.ID && !account.OnlyNewPassword(a, x)
	}
	sessions := func() int {
		t.Helper()
		list, err := svc.Operators.Sessions(ctx, op.ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	check := func() {
		t.Helper()
		if err := f.check(ctx); err != nil {
			t.Fatal(err)
		}
	}
	check()
	last := held()
	if !good(last) {
		t.Fatal("the first is not good")
	}
	check()
	if held() != last || sessions() != 1 {
		t.Errorf("a session that is good was replaced; there are %d", sessions())
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"the first password is changed", func() error { return svc.ChangePassword(ctx, op.ID, first, "another horse", "", "") }},
		{"and again", func() error { return svc.ChangePassword(ctx, op.ID, "another horse", "correct horse", "", "") }},
		{"all sessions are ended", func() error {
			_, err := svc.Operators.EndSession(ctx, account.By{ID: other.ID}, op.ID, "")
			return err
		}},
		{"another administrator makes a one-time password", func() error { _, err := svc.Operators.Reset(ctx, account.By{ID: other.ID}, op.ID); return err }},
		{"another role", func() error { return svc.Operators.SetRole(ctx, account.By{ID: other.ID}, op.ID, auth.Support) }},
		{"half of its time is over", func() error { now = now.Add(tokenTTL / 2); return nil }},
		{"the machine slept for a month", func() error { now = now.Add(30 * 24 * time.Hour); return nil }},
	} {
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		check()
		if next := held(); next == last || !good(next) || good(last) {
			t.Errorf("%s: another %v, good %v, the one before %v", c.name, next != last, good(next), good(last))
		}
		last = held()
		check()
		if held() != last || sessions() != 1 {
			t.Errorf("%s: replaced again, or %d sessions are left", c.name, sessions())
		}
	}
	// A disk that is full: the session is not left behind, and the next look succeeds.
	if _, err := svc.Store.EndSessions(ctx, op.ID); err != nil {
		t.Fatal(err)
	}
	full = errors.New("no space left")
	if err := f.check(ctx); !errors.Is(err, full) || sessions() != 0 {
		t.Errorf("%v, %d sessions", err, sessions())
	}
	full = nil
	check()
	if !good(held()) {
		t.Error("not good after a full disk")
	}
	// An operator who may not sign in has no file, and gets it back later.
	for range 2 {
		if err := svc.Operators.SetDisabled(ctx, account.By{ID: other.ID}, op.ID, true); err != nil {
			t.Fatal(err)
		}
		check()
		check()
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a stopped operator has a file: %v", err)
		}
		if err := svc.Operators.SetDisabled(ctx, account.By{ID: other.ID}, op.ID, false); err != nil {
			t.Fatal(err)
		}
		check()
		if !good(held()) {
			t.Error("not good after being allowed again")
		}
	}
	if err := svc.Operators.Remove(ctx, account.By{ID: other.ID}, op.ID); err != nil {
		t.Fatal(err)
	}
	check()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a removed operator has a file: %v", err)
	}
	if strings.Contains(log.String(), "kst_") || !strings.Contains(log.String(), "token file removed") {
		t.Errorf("log: %s", &log)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := f.run(gone); err != nil {
		t.Error(err)
	}
}
