package certspg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/certs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// changed counts a change that affects factory certificates. The row's lock orders such changes, so that a reader that has seen a number
// has seen all changes before it.
func changed(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE certs_factory_change SET rev = rev + 1`)
	return err
}

// Factory implements certs.Batches. Its result is one consistent snapshot.
func (s *Store) Factory(ctx context.Context, known uint64) (st certs.FactoryState, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT rev FROM certs_factory_change`).Scan(&st.Rev); err != nil {
		return st, fmt.Errorf("read changes of batches: %w", pg.Err(err))
	}
	if st.Rev == known {
		return st, nil
	}
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		if err := tx.QueryRow(ctx, `SELECT rev FROM certs_factory_change`).Scan(&st.Rev); err != nil {
			return err
		}
		if st.Batches, err = collect(ctx, tx, scanBatch, `
			SELECT name, bundle, species, organization, valid_after, serial_from, serial_to, created_at, disabled_at, reason
			FROM certs_batch ORDER BY name`); err != nil {
			return err
		}
		if st.Revoked, err = collect(ctx, tx, scanFactoryRevocation, `
			SELECT certificate_id, reason, revoked_at FROM certs_factory_revoked ORDER BY revoked_at DESC, certificate_id`); err != nil {
			return err
		}
		st.RevokedThis, err = collect(ctx, tx, pgx.RowTo[thing.ID], `SELECT thing FROM certs_claim WHERE revoked_at IS NOT NULL`)
		return err
	})
	if err != nil {
		return certs.FactoryState{}, fmt.Errorf("read batches: %w", pg.Err(err))
	}
	return st, nil
}

func collect[T any](ctx context.Context, tx pgx.Tx, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

func scanBatch(row pgx.CollectableRow) (certs.Batch, error) {
	var b certs.Batch
	var bundle, species string
	var disabled *time.Time
	if err := row.Scan(&b.Name, &bundle, &species, &b.Organization, &b.ValidAfter, &b.SerialFrom, &b.SerialTo, &b.Created, &disabled,
		&b.Reason); err != nil {
		return b, err
	}
	b.Bundle, b.Species, b.ValidAfter, b.Created = []byte(bundle), thing.Species(species), b.ValidAfter.UTC(), b.Created.UTC()
	if disabled != nil {
		b.Disabled = disabled.UTC()
	}
	return b, nil
}

func scanFactoryRevocation(row pgx.CollectableRow) (r certs.FactoryRevocation, err error) {
	err = row.Scan(&r.CertificateID, &r.Reason, &r.At)
	r.At = r.At.UTC()
	return r, err
}

// change runs one statement and counts it; it returns how many rows it wrote.
func (s *Store) change(ctx context.Context, sql string, args ...any) (n int64, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		if err != nil {
			return err
		}
		n = tag.RowsAffected()
		return changed(ctx, tx)
	})
	return n, pg.Err(err)
}

func (s *Store) PutBatch(ctx context.Context, b certs.Batch) error {
	_, err := s.change(ctx, `
		INSERT INTO certs_batch (name, bundle, species, organization, valid_after, serial_from, serial_to, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (name) DO UPDATE SET bundle = $2, species = $3, organization = $4, valid_after = $5, serial_from = $6, serial_to = $7`,
		b.Name, string(b.Bundle), string(b.Species), b.Organization, b.ValidAfter, b.SerialFrom, b.SerialTo, b.Created)
	return err
}

func (s *Store) DisableBatch(ctx context.Context, name, reason string, at time.Time) error {
	var disabled *time.Time
	if !at.IsZero() {
		disabled = &at
	}
	n, err := s.change(ctx, `UPDATE certs_batch SET disabled_at = $2, reason = $3 WHERE name = $1`, name, disabled, reason)
	if err == nil && n == 0 {
		return certs.ErrUnknown
	}
	return err
}

func (s *Store) RevokeFactory(ctx context.Context, r certs.FactoryRevocation) error {
	_, err := s.change(ctx, `INSERT INTO certs_factory_revoked (certificate_id, reason, revoked_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		r.CertificateID, r.Reason, r.At)
	return err
}
