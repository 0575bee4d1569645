package onebox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kennel/infra/durable"
	"kennel/infra/errs"
	"kennel/infra/pg/pgserver"
	"kennel/infra/proc"
)

const dumpName = "postgres.dump"

// gatewayTemp is where the gateway keeps uploads in progress inside a bucket: no objects yet.
const gatewayTemp = ".sgwtmp"

// robotTemp are folders of a simulated robot that a new life does without: what is gone after a boot, sockets, its log, and events not
// yet delivered, which change while they are read.
var robotTemp = []string{"run", "socket", "vic-logmgr", "das", "das-backup"}

// Backup writes everything that the instance in dir must not lose into one file: a dump of the database, the objects, the certificate
// authority, the simulated robots and the secrets (so the file, mode 0600, is as secret as they are). It works while the instance runs, and starts Postgres
// alone when it does not. The dump is taken first, so that the objects it speaks of are in the archive too. out appears whole or not
// at all.
func Backup(ctx context.Context, dir, out string, log *slog.Logger) (err error) {
	p, err := PathsOf(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(p.cluster(), "PG_VERSION")); err != nil {
		return errs.New(errs.NotFound, "backup: %s holds no instance (no Postgres cluster in %s)", p.Root, p.cluster())
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(out), ".kennel-backup-")
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer os.RemoveAll(work)
	dump := filepath.Join(work, dumpName)
	var major int
	err = withDatabase(ctx, p, log, func(db *Postgres) error {
		major = db.Binaries().Major
		return pgTool(ctx, db, "pg_dump", "--format=custom", "--compress=0", "--no-owner", "--file="+dump)
	})
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(work, "archive"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer f.Close()
	a, err := newPacker(f, Manifest{Created: time.Now().UTC(), Postgres: major})
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	for _, step := range []func() error{
		func() error { return a.file(dumpName, dump) },
		func() error { return a.tree("s3", p.S3, gatewayTemp) },
		func() error { return a.tree("ca", p.CA) },
		func() error { return a.tree("secrets", p.Secrets) },
		func() error { return a.tree("robots", p.Robots, robotTemp...) },
		a.close, f.Sync, f.Close,
		func() error { return os.Rename(f.Name(), out) },
		func() error { return durable.Sync(filepath.Dir(out)) },
	} {
		if err := errors.Join(context.Cause(ctx), step()); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	return nil
}

// withDatabase calls fn with the instance's Postgres: the running one, or one that it starts for the time of the call.
func withDatabase(ctx context.Context, p Paths, log *slog.Logger, fn func(*Postgres) error) error {
	if err := p.make(); err != nil {
		return err
	}
	l, err := takeLock(p)
	if errs.CodeOf(err) == "locked" {
		addr, err := runningServer(p)
		if err != nil {
			return err
		}
		db, err := newPostgres(p, log, addr, p.secret(postgresName))
		if err != nil {
			return err
		}
		return fn(db)
	}
	if err != nil {
		return err
	}
	err = startedDatabase(ctx, p, log, fn)
	return errors.Join(err, l.release())
}

// startedDatabase runs Postgres for the time of fn. The caller holds the lock.
func startedDatabase(ctx context.Context, p Paths, log *slog.Logger, fn func(*Postgres) error) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	db, err := newPostgres(p, log, addr, p.secret(postgresName))
	if err != nil {
		return err
	}
	rctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- db.Run(rctx) }()
	select {
	case err := <-done:
		return errors.Join(err, context.Cause(ctx))
	case <-db.Ready():
	}
	err = fn(db)
	stop()
	return errors.Join(err, <-done)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// runningServer reads the address of the running server from its postmaster.pid: line 4 is the port, line 6 the listen address.
func runningServer(p Paths) (string, error) {
	name := filepath.Join(p.cluster(), "postmaster.pid")
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errs.New(errs.Unavailable, "the instance in %s is running, but its Postgres is not: try again when it is up", p.Root)
	}
	if err != nil {
		return "", err
	}
	addr, err := parsePostmaster(string(b))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return addr, nil
}

func parsePostmaster(s string) (string, error) {
	lines := strings.Split(s, "\n")
	if len(lines) < 6 {
		return "", errs.New(errs.Unavailable, "%d lines, want at least 6: the server is starting", len(lines))
	}
	port, err := strconv.ParseUint(strings.TrimSpace(lines[3]), 10, 16)
	if err != nil || port == 0 {
		return "", errs.New(errs.Corrupt, "line 4 is %q, want a port", lines[3])
	}
	ip := net.ParseIP(strings.TrimSpace(lines[5]))
	if ip == nil {
		return "", errs.New(errs.Corrupt, "line 6 is %q, want an IP address", lines[5])
	}
	return net.JoinHostPort(ip.String(), strconv.FormatUint(port, 10)), nil
}

// pgTool runs one of Postgres's own programs on the instance's database.
func pgTool(ctx context.Context, db *Postgres, tool string, args ...string) error {
	pw, err := db.Password()
	if err != nil {
		return err
	}
	return proc.Once(ctx, proc.Spec{Name: tool, Path: db.Binaries().Path(tool), Args: append([]string{"--dbname=" + db.DSN(), "--no-password"}, args...),
		Env: append(pgserver.Env(), "PGPASSWORD="+pw), Dir: "/"})
}
