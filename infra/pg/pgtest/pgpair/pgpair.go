// Package pgpair gives a test two real Postgres of its own, of which the second follows the first, for what happens when the first dies.
package pgpair

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/infra/freeaddr"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
)

const password = "a password of tests"

// server runs a Postgres that is not started again when it dies.
func server(t testing.TB, dir, addr string) *pgserver.Server {
	t.Helper()
	word := filepath.Join(filepath.Dir(dir), "password")
	if err := os.WriteFile(word, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := pgserver.New(pgserver.Config{Dir: dir, Listen: addr, PasswordFile: word, LogFile: dir + ".log",
		Restart: proc.Restart{Limit: 1, Window: time.Hour, MinBackoff: time.Hour, MaxBackoff: time.Hour}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Keep(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	select {
	case <-s.Ready():
	case err := <-ended:
		ended <- err
		log, _ := os.ReadFile(dir + ".log")
		t.Fatalf("%v\n%s", err, log)
	}
	return s
}

// Start returns two real Postgres, the second a synchronous standby of the first, and the connection string that names both.
func Start(t testing.TB) (primary, standby *pgserver.Server, dsn string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kennel-pair-") // t.TempDir's is closed to Postgres' account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // leftovers are in the folder for temporary files
	account, err := pgserver.FindAccount()
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, b := freeaddr.For(t), freeaddr.For(t)
	primary = server(t, filepath.Join(dir, "a"), a)
	copied := filepath.Join(dir, "b")
	if err := os.Mkdir(copied, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := account.Own(copied); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(a) // of freeaddr
	if err := proc.Once(t.Context(), proc.Spec{
		Name: "pg_basebackup", Path: primary.Binaries().Path("pg_basebackup"), Dir: "/", LogFile: copied + ".log", Credential: account.Credential,
		Env:  append(pgserver.Env(), "PGPASSWORD="+password, "PGAPPNAME=standby"),
		Args: []string{"-D", copied, "-h", host, "-p", port, "-U", pgserver.Superuser, "-R", "-c", "fast", "-X", "stream"},
	}); err != nil {
		t.Fatal(err)
	}
	standby = server(t, copied, b)
	return primary, standby, fmt.Sprintf("postgres://%s:%s@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write", pgserver.Superuser, "a%20password%20of%20tests", a, b)
}
