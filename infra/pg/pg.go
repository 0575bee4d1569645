package pg

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/errs"
)

// Config says how to reach Postgres.
type Config struct {
	DSN          string        `koanf:"dsn"`           // postgres://user@host:port/database?sslmode=..., or keyword=value
	PasswordFile string        `koanf:"password_file"` // file with the password; "": as the DSN says
	MaxConns     int32         `koanf:"max_conns"`     // 0: 20
	AppName      string        `koanf:"app_name"`      // shown in pg_stat_activity; "": kennel
	ConnTimeout  time.Duration `koanf:"conn_timeout"`  // to open one connection; 0: 5 s

	Tracer pgx.QueryTracer `koanf:"-"` // sees every statement; may be nil
	// Full is told of each statement that Postgres refused because one of its volumes is full, with what Postgres says; may be nil.
	Full func(why string) `koanf:"-"`
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	if c.DSN == "" {
		return errs.New(errs.Invalid, "postgres: dsn is empty, want postgres://user@host:port/database")
	}
	if _, err := pgxpool.ParseConfig(c.DSN); err != nil {
		return errs.New(errs.Invalid, "postgres: dsn: %w", err)
	}
	if c.MaxConns < 0 || c.ConnTimeout < 0 {
		return errs.New(errs.Invalid, "postgres: max_conns %d, conn_timeout %v: want 0 or more", c.MaxConns, c.ConnTimeout)
	}
	return nil
}

// Open returns a pool that has answered once; the caller closes it. While Postgres is not there the error's kind is Unavailable.
// Every session runs in UTC.
func Open(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	pc, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, errs.New(errs.Invalid, "postgres: dsn: %w", err)
	}
	if c.PasswordFile != "" {
		b, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("postgres: password: %w", err)
		}
		pc.ConnConfig.Password = strings.TrimSpace(string(b))
	}
	pc.MaxConns = 20
	if c.MaxConns > 0 {
		pc.MaxConns = c.MaxConns
	}
	pc.ConnConfig.ConnectTimeout = 5 * time.Second
	if c.ConnTimeout > 0 {
		pc.ConnConfig.ConnectTimeout = c.ConnTimeout
	}
	// After a fail-over the new server has the same name: old connections must not keep using the old one for hours.
	pc.MaxConnLifetime, pc.MaxConnLifetimeJitter = 30*time.Minute, 5*time.Minute
	pc.HealthCheckPeriod = 15 * time.Second
	rp := pc.ConnConfig.RuntimeParams
	rp["timezone"] = "UTC"
	rp["application_name"] = cmp.Or(c.AppName, rp["application_name"], "kennel")
	pc.ConnConfig.Tracer = c.Tracer
	if c.Full != nil && c.Tracer != nil {
		pc.ConnConfig.Tracer = multitracer.New(c.Tracer, fullTracer(c.Full))
	} else if c.Full != nil {
		pc.ConnConfig.Tracer = fullTracer(c.Full)
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres %s: %w", where(pc.ConnConfig), Err(err))
	}
	return pool, nil
}

// where names a server without its password.
func where(c *pgx.ConnConfig) string { return fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database) }

// Beginner starts transactions: a pool, a connection, or a transaction (which nests by savepoint).
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Tx runs fn in a transaction: committed if fn returns nil, rolled back otherwise, also on a panic. Errors pass through Err, so that
// temporary ones are Unavailable; Tx itself never retries. If the connection breaks during the commit its outcome is unknown: writes must
// be idempotent.
func Tx(ctx context.Context, db Beginner, fn func(pgx.Tx) error) error {
	return Err(pgx.BeginFunc(ctx, db, fn))
}
