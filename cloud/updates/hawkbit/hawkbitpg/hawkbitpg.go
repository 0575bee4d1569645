// Package hawkbitpg keeps devices of package hawkbit in Postgres: table ddi_device (migration 0135).
package hawkbitpg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/updates/hawkbit"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Store is hawkbit.Store. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

var _ hawkbit.Store = (*Store)(nil)

// Device implements hawkbit.Store.
func (s *Store) Device(ctx context.Context, id thing.ID) (hawkbit.Device, error) {
	d := hawkbit.Device{Thing: id}
	var since *time.Time
	err := s.pool.QueryRow(ctx, `SELECT rev, token, action, release, since, state, terms, said, running, attributes, told FROM ddi_device WHERE thing = $1`, id).
		Scan(&d.Rev, &d.Token, &d.Action, &d.Release, &since, &d.State, &d.Terms, &d.Said, &d.Running, &d.Attributes, &d.Told)
	if errors.Is(err, pgx.ErrNoRows) {
		return d, nil
	}
	if since != nil {
		d.Since = since.UTC()
	}
	return d, pg.Wrap(err, "device %s", id)
}

// Save implements hawkbit.Store.
func (s *Store) Save(ctx context.Context, d hawkbit.Device) (bool, error) {
	tag, err := s.pool.Exec(ctx, `INSERT INTO ddi_device (thing, rev, action, release, since, state, terms, said, running, attributes, told) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (thing) DO UPDATE SET rev = excluded.rev, action = excluded.action, release = excluded.release, since = excluded.since, state = excluded.state, terms = excluded.terms, said = excluded.said,
			running = excluded.running, attributes = excluded.attributes, told = excluded.told WHERE ddi_device.rev = excluded.rev - 1`,
		d.Thing, d.Rev+1, d.Action, d.Release, d.Since, d.State, d.Terms, d.Said, d.Running, attributes(d), d.Told)
	return err == nil && tag.RowsAffected() == 1, pg.Wrap(err, "save device %s", d.Thing)
}

func attributes(d hawkbit.Device) map[string]string {
	if d.Attributes == nil {
		return map[string]string{}
	}
	return d.Attributes
}

// SetToken implements hawkbit.Store.
func (s *Store) SetToken(ctx context.Context, id thing.ID, token []byte) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO ddi_device (thing, token) VALUES ($1, $2) ON CONFLICT (thing) DO UPDATE SET token = excluded.token`, id, token)
	return pg.Wrap(err, "token of device %s", id)
}
