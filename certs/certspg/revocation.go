package certspg

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/certs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// revokedChannel is notified by a trigger on every revocation, also one made by hand in SQL.
const revokedChannel = "certs_revoked"

// Revocations is a certs.Feed. Safe for concurrent use.
type Revocations struct {
	pool *pgxpool.Pool
	log  *slog.Logger
}

// NewRevocations returns the feed on a migrated database.
func NewRevocations(pool *pgxpool.Pool, log *slog.Logger) *Revocations {
	return &Revocations{pool, log}
}

func (r *Revocations) Revocations(ctx context.Context, after int64, now time.Time, limit int) ([]certs.Revocation, error) {
	rows, err := r.pool.Query(ctx, `
		SELECT seq, serial, key, thing, not_after, revoked_at, reason
		FROM certs_revocation WHERE seq > $1 AND not_after > $2 ORDER BY seq LIMIT $3`, after, now, limit)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (certs.Revocation, error) {
		var x certs.Revocation
		var key []byte
		var id string
		if err := row.Scan(&x.Seq, &x.Serial, &key, &id, &x.NotAfter, &x.At, &x.Reason); err != nil {
			return x, err
		}
		copy(x.Key[:], key)
		x.Thing, x.NotAfter, x.At = thing.ID(id), x.NotAfter.UTC(), x.At.UTC()
		return x, nil
	})
	return out, pg.Err(err)
}

func (r *Revocations) Follow(ctx context.Context, every time.Duration, read func(context.Context) error) error {
	return pg.Follow(ctx, r.pool, r.log, revokedChannel, every, read)
}

// Blocked returns the things that a broker should refuse by name: something of theirs is revoked, and nothing in the inventory is in force.
// A thing that was revoked and has enrolled again with another key is not among them; its old certificate is refused for itself.
func (r *Revocations) Blocked(ctx context.Context) (map[thing.ID]string, error) {
	rows, err := r.pool.Query(ctx, `
		SELECT DISTINCT ON (r.thing) r.thing, r.reason FROM certs_revocation r
		WHERE r.not_after > now() AND r.thing <> ''
		AND NOT EXISTS (SELECT FROM certs_certificate c WHERE c.thing = r.thing AND c.revoked_at IS NULL AND c.not_after > now())
		ORDER BY r.thing, r.seq DESC`)
	if err != nil {
		return nil, fmt.Errorf("read the blocked things: %w", pg.Err(err))
	}
	out := map[thing.ID]string{}
	var id, reason string
	if _, err := pgx.ForEachRow(rows, []any{&id, &reason}, func() error {
		out[thing.ID(id)] = reason
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read blocked things: %w", pg.Err(err))
	}
	return out, nil
}

// CRLNumber returns the number of the next revocation list: larger than every one before, from whichever process.
func (r *Revocations) CRLNumber(ctx context.Context) (int64, error) {
	var n int64
	if err := r.pool.QueryRow(ctx, `SELECT nextval('certs_crl_number')`).Scan(&n); err != nil {
		return 0, fmt.Errorf("number of the revocation list: %w", pg.Err(err))
	}
	return n, nil
}
