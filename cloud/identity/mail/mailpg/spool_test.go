package mailpg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/mail"
	"kennel/cloud/identity/mail/mailspool"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
)

// In a folder: whole files, readable by the owner alone, without the address in the name; export and erasure find them by account and by address.
func TestSpoolExportErase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mail")
	spool, err := mailspool.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spool.Close() })
	h := build(t, pgtest.New(t), spool)
	stop := h.run(t)
	files := func() []os.DirEntry {
		t.Helper()
		l, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	h.post(t, "reset", "ada@example.com", "ada")
	h.post(t, "reset-unknown", "ADA@example.com", "") // from before she had an account
	h.post(t, "email-changed", "ada@old.example", "ada")
	h.post(t, "reset", "bob@example.com", "bob")
	for deadline := time.Now().Add(30 * time.Second); h.waiting(t) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("not sent in 30 s")
		}
	}
	stop()
	h.post(t, "reset", "ada@example.com", "ada") // these two wait
	h.post(t, "reset", "bob@example.com", "bob")
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 || len(files()) != 4 {
		t.Errorf("folder %v, %v, %d files", fi.Mode(), err, len(files()))
	}
	for _, f := range files() {
		if fi, err := f.Info(); err != nil || fi.Mode().Perm() != 0o600 || strings.Contains(f.Name(), "@") || filepath.Ext(f.Name()) != ".eml" {
			t.Errorf("%s %v %v", f.Name(), fi.Mode(), err)
		}
	}
	// A stranger's file in the folder is left alone.
	if err := os.WriteFile(filepath.Join(dir, "notes.eml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := h.svc.Export(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if held := got.(mail.Held); len(held.Waiting) != 1 || len(held.Sent) != 3 || strings.Contains(fmt.Sprint(held), "bob@") {
		t.Errorf("export %+v", held)
	}
	for range 2 { // it may be repeated
		if err := h.svc.Erase(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
	}
	if len(files()) != 2 || h.waiting(t) != 1 {
		t.Errorf("after erasure %d files, %d waiting; want bob's and the stranger's, and bob's", len(files()), h.waiting(t))
	}
	if err := h.svc.Erase(t.Context(), ""); err != nil || h.waiting(t) != 1 || len(files()) != 2 {
		t.Errorf("erasing nobody erased something: %v", err)
	}
	if err := spool.ForgetBefore(t.Context(), time.Now().Add(time.Minute)); err != nil || len(files()) != 1 {
		t.Errorf("forget: %v, %d files", err, len(files()))
	}
}

// The same mail sent twice, because a process died in between, is one file.
func TestSpoolKeepsOneOfAMail(t *testing.T) {
	dir := t.TempDir()
	spool, err := mailspool.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spool.Close() })
	for _, raw := range []string{"first", "second"} {
		if err := spool.Send(t.Context(), message("1", "a@b", raw)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, files[0].Name())); err != nil || !strings.HasSuffix(strings.TrimSpace(string(b)), "second") {
		t.Errorf("%q, %v", b, err)
	}
}

func TestExpired(t *testing.T) {
	s := newServer(t, false)
	h := build(t, pgtest.New(t), s.transport(t, ""))
	h.Keep = time.Nanosecond
	h.post(t, "reset", "ada@example.com", "ada")
	var id string
	if err := h.pool.QueryRow(t.Context(), `SELECT id FROM mail_outbox`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if err := h.svc.Send(t.Context(), id); err != nil || h.waiting(t) != 0 || len(s.got) != 0 {
		t.Errorf("an expired letter: %v, %d wait, %d sent", err, h.waiting(t), len(s.got))
	}
	h.post(t, "reset", "ada@example.com", "ada")
	if err := h.svc.Forget(t.Context()); err != nil || h.waiting(t) != 0 {
		t.Errorf("forget: %v, %d wait", err, h.waiting(t))
	}
	for _, id := range []string{"", "no id", id} {
		if err := h.svc.Send(t.Context(), id); err != nil {
			t.Errorf("a letter that is gone: %v", err)
		}
	}
	for _, bad := range []mail.Mail{{To: "a@b"}, {Kind: "reset"}, {Kind: "reset", To: "a@b\r\nBcc: c@d"}} {
		if err := h.Post(t.Context(), bad); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
