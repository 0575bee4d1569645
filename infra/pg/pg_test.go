package pg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/errs"
	"kennel/infra/migrations"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func exec(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func query[T any](t *testing.T, db *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSessionsRunInUTC(t *testing.T) {
	db := pgtest.New(t)
	if got := query[string](t, db, "SHOW timezone"); got != "UTC" {
		t.Errorf("timezone %s, want UTC", got)
	}
	if got := query[string](t, db, "SHOW application_name"); got != "test" {
		t.Errorf("application_name %s, want test", got)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	gone := "postgres://kennel@127.0.0.1:1/kennel?sslmode=disable"
	for name, c := range map[string]struct {
		cfg  pg.Config
		kind errs.Kind
		says string
	}{
		"no dsn":     {pg.Config{}, errs.Invalid, "dsn is empty"},
		"bad dsn":    {pg.Config{DSN: "postgres://%zz"}, errs.Invalid, "dsn"},
		"nobody":     {pg.Config{DSN: gone}, errs.Unavailable, "127.0.0.1:1/kennel"},
		"bad limits": {pg.Config{DSN: gone, MaxConns: -1}, errs.Invalid, "max_conns -1"},
	} {
		_, err := pg.Open(t.Context(), c.cfg)
		if errs.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v (kind %v), want %v that says %q", name, err, errs.KindOf(err), c.kind, c.says)
		}
	}
	missing := pg.Config{DSN: gone, PasswordFile: filepath.Join(t.TempDir(), "none")}
	if _, err := pg.Open(t.Context(), missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing password file: %v", err)
	}
}

func TestTxCommitsAndRollsBack(t *testing.T) {
	db := pgtest.New(t)
	exec(t, db, "CREATE TABLE n (v int PRIMARY KEY)")
	insert := func(v int, after error) error {
		return pg.Tx(t.Context(), db, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "INSERT INTO n VALUES ($1)", v)
			return errors.Join(err, after)
		})
	}
	if err := insert(1, nil); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	if err := insert(2, boom); !errors.Is(err, boom) {
		t.Errorf("err = %v, want boom", err)
	}
	err := insert(1, nil)
	if c, ok := pg.Violates(err); !ok || c != "n_pkey" || errs.KindOf(err) != errs.Internal {
		t.Errorf("duplicate: %v, constraint %q %v", err, c, ok)
	}
	func() {
		defer func() { _ = recover() }()
		_ = pg.Tx(t.Context(), db, func(tx pgx.Tx) error {
			_, _ = tx.Exec(t.Context(), "INSERT INTO n VALUES (3)")
			panic("robot fell over")
		})
	}()
	if got := query[string](t, db, "SELECT string_agg(v::text, ',') FROM n"); got != "1" {
		t.Errorf("rows %s, want 1", got)
	}
}

func TestSerializationFailureIsUnavailable(t *testing.T) {
	db := pgtest.New(t)
	exec(t, db, "CREATE TABLE n (v int)")
	exec(t, db, "INSERT INTO n VALUES (0)")
	err := pg.Tx(t.Context(), db, func(a pgx.Tx) error {
		if _, err := a.Exec(t.Context(), "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
			return err
		}
		var v int
		if err := a.QueryRow(t.Context(), "SELECT v FROM n").Scan(&v); err != nil {
			return err
		}
		exec(t, db, "UPDATE n SET v = 1")
		_, err := a.Exec(t.Context(), "UPDATE n SET v = 2")
		return err
	})
	if errs.KindOf(err) != errs.Unavailable || errs.RetryOf(err) <= 0 {
		t.Errorf("err = %v (%v), want unavailable with a pause", err, errs.KindOf(err))
	}
}

func TestEndedSessionIsUnavailable(t *testing.T) {
	db := pgtest.New(t)
	err := pg.Tx(t.Context(), db, func(tx pgx.Tx) error {
		var pid int
		if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return err
		}
		exec(t, db, "SELECT pg_terminate_backend($1)", pid)
		_, err := tx.Exec(t.Context(), "SELECT 1")
		return err
	})
	if errs.KindOf(err) != errs.Unavailable {
		t.Errorf("err = %v (%v), want unavailable", err, errs.KindOf(err))
	}
}

func TestRetriable(t *testing.T) {
	code := func(c string) error { return fmt.Errorf("store: %w", &pgconn.PgError{Code: c}) }
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nil":              {nil, false},
		"starting up":      {code("57P03"), true},
		"admin shutdown":   {code("57P01"), true},
		"too many clients": {code("53300"), true},
		"disk full":        {code("53100"), true},
		"disk broken":      {code("58030"), true},
		"file missing":     {code("58P01"), false}, // such as an extension that is not installed
		"deadlock":         {code("40P01"), true},
		"read-only":        {code("25006"), true},
		"unique":           {code("23505"), false},
		"syntax":           {code("42601"), false},
		"query canceled":   {code("57014"), false},
		"reset":            {&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, true},
		"end of stream":    {io.ErrUnexpectedEOF, true},
		"caller left":      {fmt.Errorf("x: %w", context.Canceled), false},
		"no rows":          {pgx.ErrNoRows, false},
	} {
		if got := pg.Retriable(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	kept := errs.New(errs.NotFound, "no such robot")
	if got := pg.Err(kept); got != kept {
		t.Errorf("an error with a kind became %v", got)
	}
}

func TestMigrateInManyProcessesAtOnce(t *testing.T) {
	db := pgtest.NewEmpty(t)
	files := fstest.MapFS{
		"0001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (); SELECT pg_sleep(0.2);\n")},
		"0003_c.sql": {Data: []byte("-- +goose Up\nCREATE TABLE c ();\n")},
	}
	var wg sync.WaitGroup
	applied := make([]int, 4)
	for i := range applied {
		wg.Go(func() {
			n, err := pg.Migrate(t.Context(), db, files)
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			applied[i] = n
		})
	}
	wg.Wait()
	total := 0
	for _, n := range applied {
		total += n
	}
	if total != 2 {
		t.Errorf("applied %v, want 2 in all", applied)
	}
	// Another slice's file with a lower number arrives later.
	files["0002_b.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE b ();\n")}
	if n, err := pg.Migrate(t.Context(), db, files); n != 1 || err != nil {
		t.Errorf("late file: %d, %v; want 1, nil", n, err)
	}
	files["0004_bad.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE a ();\n")}
	_, err := pg.Migrate(t.Context(), db, files)
	if err == nil || !strings.Contains(err.Error(), "0004_bad.sql") {
		t.Errorf("bad file: %v, want an error that names it", err)
	}
}

func TestMigrateTwiceDoesNothing(t *testing.T) {
	db := pgtest.New(t)
	if n, err := pg.Migrate(t.Context(), db, migrations.FS); n != 0 || err != nil {
		t.Errorf("second run: %d, %v; want 0, nil", n, err)
	}
}

func TestListenHearsAndComesBack(t *testing.T) {
	db := pgtest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	heard := make(chan string, 16) // more than the test sends
	done := make(chan error, 1)
	go func() {
		done <- pg.Listen(ctx, db, slog.New(slog.DiscardHandler), "kennel hints", func(p string) { heard <- p })
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-heard:
			if got != want {
				t.Fatalf("heard %q, want %q", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("heard nothing, want %q", want)
		}
	}
	next("") // connected
	for range 3 {
		exec(t, db, "SELECT pg_notify('kennel hints', 'vic:00e20100')")
		next("vic:00e20100")
		exec(t, db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()")
		next("") // connected again: read everything
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("listen = %v, want nil", err)
	}
}

// TestFollow: read is called at once and again, whatever it ended with; a failure that lasts is said once.
func TestFollow(t *testing.T) {
	db := pgtest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	var log bytes.Buffer
	looked := make(chan error) // what each reading is to end with
	done := make(chan error, 1)
	go func() {
		done <- pg.Follow(ctx, db, slog.New(slog.NewTextHandler(&log, nil)), "kennel follow", 50*time.Millisecond, func(ctx context.Context) error {
			select {
			case err := <-looked:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	for _, err := range []error{nil, errors.New("away"), errors.New("away"), nil, nil} {
		select {
		case looked <- err:
		case <-time.After(10 * time.Second):
			t.Fatal("not read within 10 s")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("follow = %v, want nil", err)
	}
	if n := strings.Count(log.String(), "following of changes interrupted"); n != 1 || !strings.Contains(log.String(), "following of changes resumed") {
		t.Errorf("%d words of one failure, want one and one of its end:\n%s", n, log.String())
	}
}

// TestFull (issue 16, finding 6): what Postgres refuses for lack of space is told, however it was sent; other refusals are not. The errors are raised by a
// real Postgres, whose volume has room.
func TestFull(t *testing.T) {
	var told []string
	c := pg.Config{DSN: pgtest.DSN(t)}
	c.Full = func(why string) { told = append(told, why) }
	db, err := pg.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	raise := func(code string) string {
		return fmt.Sprintf(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '%s', MESSAGE = 'could not extend file'; END $$`, code)
	}
	if _, err := db.Exec(t.Context(), raise("53200")); err == nil || len(told) > 0 {
		t.Errorf("out of memory: %v, told %q", err, told)
	}
	if _, err := db.Exec(t.Context(), raise("53100")); err == nil || len(told) != 1 || told[0] != "could not extend file" {
		t.Errorf("statement: %v, told %q", err, told)
	}
	b := &pgx.Batch{}
	b.Queue("SELECT 1")
	b.Queue(raise("53100"))
	if err := db.SendBatch(t.Context(), b).Close(); err == nil || len(told) < 2 {
		t.Errorf("batch: %v, told %q", err, told)
	}
}
