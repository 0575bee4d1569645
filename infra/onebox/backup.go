package onebox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/agefile"
	"kennel/infra/atomicfile"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/proc"
)

const dumpName = "postgres.dump"

// gatewayTemp is where the gateway keeps uploads in progress inside a bucket: no objects yet.
const gatewayTemp = ".sgwtmp"

// robotTemp are folders of a simulated robot that a new life does without: what is gone after a boot, sockets, its log, and events not
// yet delivered, which change while they are read.
var robotTemp = []string{"run", "socket", "vic-logmgr", "das", "das-backup"}

// Saving says what to save and where.
type Saving struct {
	Dir, Out string
	From     *Parts             // saved instead of the instance in Dir; nil: that
	To       agefile.Recipients // who can open the file; none: it is not encrypted
	RootKey  bool               // put the key of the root authority into it, which can sign every other authority
}

// Saved describes a backup that was made.
type Saved struct {
	File      string    `json:"file"`
	Bytes     int64     `json:"bytes"`
	Created   time.Time `json:"created"`
	Encrypted bool      `json:"encrypted"`
	RootKey   bool      `json:"root_key"`
}

// Backup writes everything that the instance in s.Dir must not lose into one file: a dump of the database, the objects, the certificate
// authority, the simulated robots and the secrets (so a file that is not encrypted, mode 0600, is as secret as they are). The key of the root
// authority is left out unless s says otherwise. It works while the instance runs, and starts Postgres alone when it does not. The dump is
// taken first, so that the objects it speaks of are in the archive too; it never lies unencrypted on the disk. s.Out appears whole or not at all.
func Backup(ctx context.Context, s Saving, log *slog.Logger) (Saved, error) {
	out, err := filepath.Abs(s.Out)
	if err != nil {
		return Saved{}, err
	}
	m, size, err := s.write(ctx, out, log)
	if err != nil {
		return Saved{}, fmt.Errorf("backup: %w", err)
	}
	return Saved{File: out, Bytes: size, Created: m.Created, Encrypted: len(s.To) > 0, RootKey: m.RootKey}, nil
}

func (s Saving) write(ctx context.Context, out string, log *slog.Logger) (m Manifest, size int64, err error) {
	p, err := PathsOf(s.Dir)
	if err != nil {
		return m, 0, err
	}
	if _, err := os.Stat(filepath.Join(p.cluster(), "PG_VERSION")); err != nil && s.From == nil {
		return m, 0, errs.New(errs.NotFound, "no instance in %s (no Postgres cluster in %s); for an installation with its own Postgres and S3 use -config FILE", p.Root, p.cluster())
	}
	f, err := os.CreateTemp(filepath.Dir(out), ".kennel-backup-") // mode 0600
	if err != nil {
		return m, 0, err
	}
	defer os.Remove(f.Name()) // finds nothing once it is renamed
	defer f.Close()
	sealed, err := agefile.Create(f, s.To)
	if err != nil {
		return m, 0, err
	}
	a, err := newPacker(sealed, Manifest{Created: time.Now().UTC(), RootKey: s.RootKey})
	if err != nil {
		return m, 0, err
	}
	a.omit = func(member string) bool { return !s.RootKey && isRootKey(member) }
	save := func() error { return a.instance(ctx, p, log) }
	if s.From != nil {
		save = func() error { return s.From.save(ctx, a) }
	}
	for _, step := range []func() error{
		save, a.close, sealed.Close, f.Sync,
		func() (err error) { size, err = f.Seek(0, io.SeekEnd); return err },
		f.Close,
		func() error { return os.Rename(f.Name(), out) },
		func() error { return atomicfile.Sync(filepath.Dir(out)) },
	} {
		if err := errors.Join(context.Cause(ctx), step()); err != nil {
			return m, 0, err
		}
	}
	return a.manifest, size, nil
}

// instance adds a one-machine instance.
func (p *packer) instance(ctx context.Context, from Paths, log *slog.Logger) error {
	for _, step := range []func() error{
		func() error {
			return WithDatabase(ctx, from.Root, log, func(db *Postgres) error {
				s, err := db.server()
				if err != nil {
					return err
				}
				return p.database(ctx, s)
			})
		},
		func() error { return p.tree("s3", from.S3, gatewayTemp) },
		func() error { return p.tree("ca", from.CA) },
		func() error { return p.tree("secrets", from.Secrets) },
		func() error { return p.tree("robots", from.Robots, robotTemp...) },
	} {
		if err := errors.Join(context.Cause(ctx), step()); err != nil {
			return err
		}
	}
	return nil
}

// isRootKey reports whether a member is a key of the root authority, such as ca/root-2.key.
func isRootKey(member string) bool {
	first, _ := path.Match("ca/root.key", member)
	later, _ := path.Match("ca/root-*.key", member)
	return first || later
}

// database adds the dump, and to the manifest what each table holds in it: both see the same moment.
func (p *packer) database(ctx context.Context, db server) error {
	p.manifest.Postgres = db.bin.Major // of pg_dump: its own version and later ones restore the dump
	return onSnapshot(ctx, db.Config, func(tx pgx.Tx, snapshot string) (err error) {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		dumped := make(chan error, 1)
		go func() {
			err := db.tool(ctx, proc.Spec{Name: "pg_dump", Stdout: w}, "--format=custom", "--compress=0", "--no-owner", "--snapshot="+snapshot)
			dumped <- errors.Join(err, w.Close())
		}()
		if err := p.stream(dumpName, r); err != nil {
			cancel(err)
			return errors.Join(err, <-dumped)
		}
		if err := <-dumped; err != nil {
			return err
		}
		p.manifest.Tables, err = Tables(ctx, tx)
		return err
	})
}

// onSnapshot calls fn with a transaction that sees one moment, and the name by which pg_dump sees the same.
func onSnapshot(ctx context.Context, cfg pg.Config, fn func(tx pgx.Tx, snapshot string) error) error {
	pool, err := pg.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var snapshot string
		if err := tx.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
			return fmt.Errorf("snapshot of the database: %w", err)
		}
		return fn(tx, snapshot)
	})
}

// Tables returns what each table of the database holds, as tx sees it. It reads every row once, in the database.
func Tables(ctx context.Context, tx pgx.Tx) (map[string]Table, error) {
	rows, err := tx.Query(ctx, `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' ORDER BY 1`)
	if err != nil {
		return nil, fmt.Errorf("tables: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("tables: %w", err)
	}
	out := make(map[string]Table, len(names))
	for _, n := range names {
		var t Table
		err := tx.QueryRow(ctx, "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)), 0)::text FROM "+n+" t").Scan(&t.Rows, &t.Sum)
		if err != nil {
			return nil, fmt.Errorf("rows of %s: %w", n, err)
		}
		out[n] = t
	}
	return out, nil
}

// WithDatabase calls fn with the Postgres of the instance in dir: the running one, or one that it starts for the time of the call.
func WithDatabase(ctx context.Context, dir string, log *slog.Logger, fn func(*Postgres) error) error {
	p, err := PathsOf(dir)
	if err != nil {
		return err
	}
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
	// A socket: a port that is free now may belong to a connection by the time Postgres listens on it.
	sockets, err := os.MkdirTemp("", "kennel-pg-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(sockets)
	db, err := newPostgres(p, log, sockets, p.secret(postgresName))
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

// runningServer reads the address of the running server from its postmaster.pid: line 4 is the port, line 5 the folder of its socket, line 6 the listen
// address. One of the last two is empty.
func runningServer(p Paths) (string, error) {
	name := filepath.Join(p.cluster(), "postmaster.pid")
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errs.New(errs.Unavailable, "the instance in %s is running, but its Postgres is not ready: try again later", p.Root)
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
		return "", errs.New(errs.Unavailable, "%d lines: want at least 6; the server is starting", len(lines))
	}
	port, err := strconv.ParseUint(strings.TrimSpace(lines[3]), 10, 16)
	if err != nil || port == 0 {
		return "", errs.New(errs.Corrupt, "line 4 is %q: want a port", lines[3])
	}
	if sockets := strings.TrimSpace(lines[4]); filepath.IsAbs(sockets) {
		return sockets, nil
	}
	ip := net.ParseIP(strings.TrimSpace(lines[5]))
	if ip == nil {
		return "", errs.New(errs.Corrupt, "line 6 is %q: want an IP address", lines[5])
	}
	return net.JoinHostPort(ip.String(), strconv.FormatUint(port, 10)), nil
}
