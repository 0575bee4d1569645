package accountpg_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"

	"github.com/jackc/pgx/v5"
)

// shelf is a domain with a table of its own, that can be made to fail.
type shelf struct {
	h     *home
	calls atomic.Int64
	fail  atomic.Bool
}

func (s *shelf) Export(ctx context.Context, id string) (any, error) {
	var n int
	err := s.h.pool.QueryRow(ctx, `SELECT count(*) FROM shelf WHERE account = $1`, id).Scan(&n)
	return map[string]int{"books": n}, err
}

func (s *shelf) Erase(ctx context.Context, id string) error {
	s.calls.Add(1)
	if _, err := s.h.pool.Exec(ctx, `DELETE FROM shelf WHERE account = $1`, id); err != nil {
		return err
	}
	if s.fail.Load() {
		return errors.New("the shelf collapsed")
	}
	return nil
}

// Files implements account.Filing.
func (s *shelf) Files(ctx context.Context, id string, add func(name string, write func(io.Writer) error) error) error {
	return add("diary.txt", func(w io.Writer) error {
		var title string
		err := s.h.pool.QueryRow(ctx, `SELECT title FROM shelf WHERE account = $1`, id).Scan(&title)
		_, _ = io.WriteString(w, title)
		return err
	})
}

// EraseCounting implements account.Counting.
func (s *shelf) EraseCounting(ctx context.Context, id string, note func(ctx context.Context, kind string, n int) error) error {
	var n int
	if err := s.h.pool.QueryRow(ctx, `SELECT count(*) FROM shelf WHERE account = $1`, id).Scan(&n); err != nil {
		return err
	}
	return errors.Join(s.Erase(ctx, id), note(ctx, "books", n))
}

// everywhere returns where a text is in the database: every column of every table.
func (h *home) everywhere(t *testing.T, text string) (found []string) {
	t.Helper()
	rows, err := h.pool.Query(t.Context(), `SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 20 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		var n int
		if err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` x WHERE position(lower($1) IN lower(x::text)) > 0`, text).Scan(&n); err != nil {
			t.Fatal(table, err)
		}
		if n > 0 {
			found = append(found, table)
		}
	}
	return found
}

// A person leaves: nothing is left that names her, in tables or letters; the audit log has a random id in place of hers. A run that was cut off continues where it
// ended, also after her account is gone.
func TestDeletionReallyDeletes(t *testing.T) {
	var books *shelf
	h := newHome(t, func(c *ownersConfig) {
		books = &shelf{}
		c.Personal = append([]account.Holder{{Name: "shelf", Personal: books}}, c.Personal...)
	})
	books.h = h
	if _, err := h.pool.Exec(t.Context(), `CREATE TABLE shelf (account text, title text)`); err != nil {
		t.Fatal(err)
	}
	if err := h.o.Letters.AskReset(t.Context(), ada, "", here); err != nil { // a letter from before there is an account
		t.Fatal(err)
	}
	h.one(t)
	if _, err := h.o.Letters.SignUp(t.Context(), account.NewOwner{Email: ada, Password: password, Change: account.Change{Given: ptr("Augusta"), Family: ptr("Lovelace")}}, here); err != nil {
		t.Fatal(err)
	}
	a, err := h.o.Letters.Verify(t.Context(), logging.Secret(h.one(t).code), password, here)
	if err != nil {
		t.Fatal(err)
	}
	bob := h.signUp(t, "bob@example.com")
	for _, id := range []account.ID{a.ID, bob.ID} {
		if _, err := h.pool.Exec(t.Context(), `INSERT INTO shelf VALUES ($1, 'a diary')`, string(id)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := h.Login(t.Context(), ada, password, here)
	if err != nil {
		t.Fatal(err)
	}
	app, _, err := h.o.Apps.Issue(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = h.Login(t.Context(), ada, "wrong password", here)
	if _, err := h.o.Letters.SignUp(t.Context(), account.NewOwner{Email: ada, Password: password}, here); err != nil { // another person tries again
		t.Fatal(err)
	}
	if err := h.o.Letters.AskReset(t.Context(), ada, "", here); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	if err := h.o.Privacy.Export(t.Context(), a.ID, here, func(name string, write func(io.Writer) error) error {
		var b strings.Builder
		err := write(&b)
		files[name] = b.String()
		return err
	}); err != nil || len(files) != 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for name, want := range map[string]string{"account.json": `"given_name": "Augusta"`, "shelf.json": `"books": 1`, "shelf/diary.txt": "a diary", "mail.json": `"to": "` + ada + `"`} {
		if !strings.Contains(files[name], want) || strings.Contains(files[name], "bob@") || strings.Contains(files[name], "argon2") {
			t.Errorf("%s: want %s, and nothing of others:\n%s", name, want, files[name])
		}
	}
	if err := h.o.Privacy.Delete(t.Context(), a.ID, "wrong password", here); errs.CodeOf(err) != "wrong_password" {
		t.Errorf("without the password: %v", err)
	}
	op := h.create(t, "op@example.com", auth.Admin)
	if err := h.o.Privacy.Delete(t.Context(), op.ID, password, here); errs.KindOf(err) != errs.Denied {
		t.Errorf("an operator: %v", err)
	}
	if len(h.everywhere(t, ada)) == 0 || len(h.everywhere(t, "lovelace")) == 0 {
		t.Fatal("the search finds nothing even now")
	}
	if err := h.o.Privacy.Delete(t.Context(), a.ID, password, here); err != nil {
		t.Fatal(err)
	}
	// From this moment on no session of hers works.
	if _, _, err := h.Authenticate(t.Context(), l.Token, here); errs.CodeOf(err) != "session_over" {
		t.Errorf("session: %v", err)
	}
	if _, err := h.o.Apps.Burn(t.Context(), app, "vic:1"); errs.CodeOf(err) != "session_unknown" {
		t.Errorf("app: %v", err)
	}
	if _, err := h.Login(t.Context(), ada, password, here); errs.CodeOf(err) != "login_refused" {
		t.Errorf("login: %v", err)
	}
	books.fail.Store(true)
	if err := h.o.Privacy.Erase(t.Context(), string(a.ID)); err == nil || !strings.Contains(err.Error(), "erase shelf") || strings.Contains(err.Error(), ada) {
		t.Errorf("a domain that fails: %v", err)
	}
	books.fail.Store(false)
	// Cut off after the shelf: the letters' part ends with the context of a process that stops.
	ctx, cancel := context.WithCancel(t.Context())
	h.o.Privacy.Erase(ctx, string(bob.ID)) // not hers, and no deletion: nothing happens
	cancel()
	if err := h.o.Privacy.Erase(ctx, string(a.ID)); err == nil {
		t.Error("erased without a database")
	}
	calls := books.calls.Load()
	var wg sync.WaitGroup
	for range 3 { // three processes resume at once
		wg.Go(func() {
			if err := h.o.Privacy.Resume(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if books.calls.Load() == calls {
		t.Error("the shelf was never finished")
	}
	calls = books.calls.Load()
	if err := h.o.Privacy.Erase(t.Context(), string(a.ID)); err != nil || books.calls.Load() != calls { // done is done
		t.Errorf("once more: %v", err)
	}
	for _, text := range []string{ada, "Augusta", "Lovelace"} {
		if found := h.everywhere(t, text); len(found) > 0 {
			t.Errorf("%q is still in %v", text, found)
		}
	}
	if found := h.everywhere(t, string(a.ID)); len(found) > 0 {
		t.Errorf("her id is in %v", found)
	}
	var by, erased string
	var finished bool
	if err := h.pool.QueryRow(t.Context(), `SELECT asked_by, finished_at >= requested_at, erased::text FROM account_erasure`).Scan(&by, &finished, &erased); err != nil ||
		by != "owner" || !finished || !strings.Contains(erased, `"books": 1`) || !strings.Contains(erased, `"mail": 0`) {
		t.Errorf("record: %q %v %s %v", by, finished, erased, err)
	}
	if lines, err := h.Audit.Lines(t.Context(), 0, 1); err != nil || lines[0].Action != "account.deleted" || !strings.Contains(lines[0].Detail, "asked for by owner") ||
		!strings.Contains(lines[0].Detail, "books 1") || lines[0].OnName() != "deleted account" {
		t.Errorf("%+v %v", lines, err)
	}
	err = fs.WalkDir(os.DirFS(h.spool), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(h.spool, path))
		if strings.Contains(string(b), "ada@") || strings.Contains(path, string(a.ID)) {
			t.Errorf("letter %s:\n%s", path, b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var attempts int
	if err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM account_attempt`).Scan(&attempts); err != nil || attempts > 2 { // bob's pace, op's
		t.Errorf("%d counted attempts, %v", attempts, err)
	}
	if _, err := h.Login(t.Context(), "bob@example.com", password, here); err != nil || len(h.everywhere(t, "diary")) != 1 {
		t.Errorf("bob lost something: %v", err)
	}
	// The e-mail is free again.
	h.sleep(25 * time.Hour)
	h.letters(t)
	h.signUp(t, ada)
}

// A deletion survives the kill of its process between any two domains: River starts a stuck task again, and domains that are done are not asked again.
func TestDeletionGoesOn(t *testing.T) {
	var first, second *shelf
	h := newHome(t, func(c *ownersConfig) {
		first, second = &shelf{}, &shelf{}
		c.Personal = []account.Holder{{Name: "first", Personal: first}, {Name: "second", Personal: second}}
	})
	first.h, second.h = h, h
	if _, err := h.pool.Exec(t.Context(), `CREATE TABLE shelf (account text, title text)`); err != nil {
		t.Fatal(err)
	}
	a := h.signUp(t, ada)
	if err := h.o.Privacy.Delete(t.Context(), a.ID, password, here); err != nil {
		t.Fatal(err)
	}
	second.fail.Store(true)
	for range 3 {
		if err := h.o.Privacy.Erase(t.Context(), string(a.ID)); err == nil {
			t.Fatal("finished")
		}
	}
	second.fail.Store(false)
	if err := h.o.Privacy.Erase(t.Context(), string(a.ID)); err != nil {
		t.Fatal(err)
	}
	if first.calls.Load() != 1 || second.calls.Load() != 4 {
		t.Errorf("first was asked %d times, second %d; want 1 and 4", first.calls.Load(), second.calls.Load())
	}
}

// Through River: what Delete orders is done by whichever process works on tasks, and a domain that fails at first is asked again.
func TestDeletionByTask(t *testing.T) {
	var books *shelf
	var orders *jobs.Orders
	h := newHome(t, func(c *ownersConfig) {
		books = &shelf{}
		c.Personal = append([]account.Holder{{Name: "shelf", Personal: books}}, c.Personal...)
		c.Order = func(ctx context.Context, id string) error {
			d, err := books.h.store.Deletion(ctx, id)
			return errors.Join(err, orders.Add(ctx, account.TaskDelete, d.Ref))
		}
	})
	books.h = h
	var err error
	if orders, err = jobs.NewOrders(h.pool); err != nil {
		t.Fatal(err)
	}
	if _, err := h.pool.Exec(t.Context(), `CREATE TABLE shelf (account text, title text)`); err != nil {
		t.Fatal(err)
	}
	a := h.signUp(t, ada)
	if err := h.o.Privacy.Delete(t.Context(), a.ID, password, here); err != nil {
		t.Fatal(err)
	}
	if err := h.o.Privacy.Resume(t.Context()); err != nil { // ordered twice, done once
		t.Fatal(err)
	}
	books.fail.Store(true)
	done := make(chan struct{}, 8)
	r, err := jobs.New(h.pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	err = r.Handle(jobs.Task{Name: account.TaskDelete, Run: func(ctx context.Context, id string) error {
		err := h.o.Privacy.Erase(ctx, id)
		if err == nil {
			done <- struct{}{}
		}
		books.fail.Store(false)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Error("not deleted in 60 s")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if found := h.everywhere(t, ada); len(found) > 0 || books.calls.Load() != 2 {
		t.Errorf("still in %v, the shelf was asked %d times", found, books.calls.Load())
	}
}
