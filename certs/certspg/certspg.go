// Package certspg keeps claims and the inventory of certificates in Postgres (tables certs_*).
package certspg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/certs"
	"kennel/certs/thing"
	"kennel/infra/pg"
)

// Store is a certs.Store. Safe for concurrent use. Its errors are certs.ErrUnknown and certs.ErrBound, Unavailable while the database is
// away, or our own fault.
type Store struct{ pool *pgxpool.Pool }

// New returns the store on a migrated database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// SetClaim implements certs.Store.
func (s *Store) SetClaim(ctx context.Context, id thing.ID, secret certs.Hash, at time.Time) error {
	tag, err := s.pool.Exec(ctx, `
		INSERT INTO certs_claim (thing, secret_hash, registered_at) VALUES ($1, $2, $3)
		ON CONFLICT (thing) DO UPDATE SET secret_hash = $2, registered_at = $3 WHERE certs_claim.key IS NULL`, string(id), secret[:], at)
	if err != nil {
		return fmt.Errorf("write claim: %w", pg.Err(err))
	}
	if tag.RowsAffected() == 0 {
		return certs.ErrBound
	}
	return nil
}

// Claim implements certs.Store.
func (s *Store) Claim(ctx context.Context, id thing.ID) (certs.Claim, error) {
	var secret, key []byte
	err := s.pool.QueryRow(ctx, `SELECT secret_hash, key FROM certs_claim WHERE thing = $1`, string(id)).Scan(&secret, &key)
	if err != nil {
		return certs.Claim{}, unknown("read claim", err)
	}
	c := certs.Claim{Thing: id}
	copy(c.Secret[:], secret)
	copy(c.Key[:], key) // NULL stays zero
	return c, nil
}

// ClaimOf implements certs.Store.
func (s *Store) ClaimOf(ctx context.Context, secret certs.Hash) (thing.ID, error) {
	var id string
	if err := s.pool.QueryRow(ctx, `SELECT thing FROM certs_claim WHERE secret_hash = $1`, secret[:]).Scan(&id); err != nil {
		return "", unknown("read claim by secret", err)
	}
	return thing.ID(id), nil
}

// Bind implements certs.Store. The row lock of the update decides a race: the second one sees the key of the first.
func (s *Store) Bind(ctx context.Context, id thing.ID, key certs.Key, at time.Time) (certs.Key, error) {
	var bound []byte
	err := s.pool.QueryRow(ctx, `
		UPDATE certs_claim SET key = COALESCE(key, $2), bound_at = COALESCE(bound_at, $3) WHERE thing = $1 RETURNING key`, string(id), key[:], at).Scan(&bound)
	if err != nil {
		return certs.Key{}, unknown("bind key", err)
	}
	return certs.Key(bound), nil
}

// Revoked implements certs.Store.
func (s *Store) Revoked(ctx context.Context, key certs.Key) (bool, error) {
	var yes bool
	err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM certs_certificate WHERE key = $1 AND revoked_at IS NOT NULL)`, key[:]).Scan(&yes)
	return yes, pg.Err(err)
}

// AddCertificate implements certs.Store.
func (s *Store) AddCertificate(ctx context.Context, r certs.Record) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO certs_certificate (serial, thing, key, method, not_before, not_after) VALUES ($1, $2, $3, $4, $5, $6)`,
		r.Serial, string(r.Thing), r.Key[:], r.Method, r.NotBefore, r.NotAfter)
	if err != nil {
		return fmt.Errorf("write certificate %s: %w", r.Serial, pg.Err(err))
	}
	return nil
}

// Certificates implements certs.Store.
func (s *Store) Certificates(ctx context.Context, id thing.ID) ([]certs.Record, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT serial, key, method, not_before, not_after, COALESCE(revoked_at, '0001-01-01Z'), reason
		FROM certs_certificate WHERE thing = $1 ORDER BY issued_at DESC, serial LIMIT 100`, string(id))
	if err != nil {
		return nil, fmt.Errorf("read certificates: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (certs.Record, error) {
		r := certs.Record{Thing: id}
		var key []byte
		if err := row.Scan(&r.Serial, &key, &r.Method, &r.NotBefore, &r.NotAfter, &r.Revoked, &r.Reason); err != nil {
			return r, err
		}
		copy(r.Key[:], key)
		r.NotBefore, r.NotAfter, r.Revoked = r.NotBefore.UTC(), r.NotAfter.UTC(), r.Revoked.UTC()
		return r, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read certificates: %w", pg.Err(err))
	}
	return out, nil
}

// Revoke implements certs.Store.
func (s *Store) Revoke(ctx context.Context, id thing.ID, reason string, at time.Time) (int, error) {
	tag, err := s.pool.Exec(ctx, `UPDATE certs_certificate SET revoked_at = $2, reason = $3 WHERE thing = $1 AND revoked_at IS NULL`, string(id), at, reason)
	return int(tag.RowsAffected()), pg.Err(err)
}

// unknown turns "no row" into ErrUnknown.
func unknown(what string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return certs.ErrUnknown
	}
	return fmt.Errorf("%s: %w", what, pg.Err(err))
}
