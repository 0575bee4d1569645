// Package tufrepopg keeps the metadata of releases in Postgres: table vouch_metadata (migration 0136).
package tufrepopg

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/updates/tufrepo"
	"kennel/infra/pg"
	"kennel/ota/trust"
)

// Store is tufrepo.Store. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

var _ tufrepo.Store = (*Store)(nil)

const root = "root"

// Read returns what is published, in one statement, so that its parts belong together.
func (s *Store) Read(ctx context.Context, after int64) (*trust.Known, [][]byte, error) {
	return read(ctx, s.pool, after)
}

func read(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, after int64) (*trust.Known, [][]byte, error) {
	rows, err := db.Query(ctx, `(SELECT DISTINCT ON (role) role, body, true FROM vouch_metadata ORDER BY role, version DESC)
		UNION ALL (SELECT role, body, false FROM vouch_metadata WHERE role = 'root' AND version > $1 ORDER BY version LIMIT $2)`, after, trust.MaxRoots)
	if err != nil {
		return nil, nil, pg.Wrap(err, "read release metadata")
	}
	k := &trust.Known{Roles: map[string][]byte{}}
	var roots [][]byte
	var role string
	var body []byte
	var last bool
	_, err = pgx.ForEachRow(rows, []any{&role, &body, &last}, func() error {
		switch b := bytes.Clone(body); {
		case !last:
			roots = append(roots, b)
		case role == root:
			k.Root = b
		default:
			k.Roles[role] = b
		}
		return nil
	})
	return k, roots, pg.Wrap(err, "read release metadata")
}

// Change replaces what is published. Of roles other than root the latest versions are kept, for people who look for what happened.
func (s *Store) Change(ctx context.Context, by string, f func(*trust.Known) (*trust.Known, [][]byte, error)) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('vouch', 0))`); err != nil {
			return pg.Wrap(err, "lock release metadata")
		}
		k, _, err := read(ctx, tx, 0)
		if err != nil {
			return err
		}
		next, roots, err := f(k)
		if err != nil || next.Equal(k) {
			return err
		}
		add := func(role string, body []byte) {
			if err == nil {
				_, err = tx.Exec(ctx, `WITH old AS (DELETE FROM vouch_metadata WHERE role = $1 AND role <> 'root' AND version IN
						(SELECT version FROM vouch_metadata WHERE role = $1 ORDER BY version DESC OFFSET 9))
					INSERT INTO vouch_metadata (role, version, body, by_whom) VALUES ($1, $2, $3, $4)`, role, trust.Version(body), body, by)
			}
		}
		for _, b := range roots {
			add(root, b)
		}
		for role, b := range next.Roles {
			if !bytes.Equal(b, k.Roles[role]) {
				add(role, b)
			}
		}
		return pg.Wrap(err, "store release metadata")
	})
}
