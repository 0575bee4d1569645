// Package motionpg keeps the motions of robots in Postgres (migration 0167).
package motionpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/motion"
	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Store implements motion.Store. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Put implements motion.Store. Uploads for one robot wait for one another, so that none exceeds the limits.
func (s *Store) Put(ctx context.Context, id thing.ID, name string, file []byte, since time.Time, most int, bytes int64) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('motion ' || $1, 0))`, id); err != nil {
			return err
		}
		var n int
		var has int64
		if err := tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(length(file)), 0) FROM motion_file WHERE thing = $1 AND name <> $2 AND uploaded >= $3`, id, name, since).Scan(&n, &has); err != nil {
			return err
		}
		if n >= most || has+int64(len(file)) > bytes {
			return errs.Coded(errs.Exhausted, "too_many", "the robot has %d uploaded motions of %d bytes already; it may have %d of %d; delete some first", n, has, most, bytes)
		}
		_, err := tx.Exec(ctx, `INSERT INTO motion_file (thing, name, sha256, file) VALUES ($1, $2, $3, $4)
			ON CONFLICT (thing, name) DO UPDATE SET uploaded = now(), sha256 = excluded.sha256, file = excluded.file, judged = false, kept = false, verdict = '', made = NULL`,
			id, name, motionwire.Sum(file), file)
		return err
	})
	return pg.Wrap(err, "motion %s of %s", name, id)
}

func none(id thing.ID, name string) error {
	return errs.Coded(errs.NotFound, "no_motion", "%s has no motion %.60q of that kind", id, name)
}

// Delete implements motion.Store.
func (s *Store) Delete(ctx context.Context, id thing.ID, name string, since time.Time) error {
	tag, err := s.pool.Exec(ctx, `DELETE FROM motion_file WHERE thing = $1 AND name = $2 AND uploaded >= $3`, id, name, since)
	if err == nil && tag.RowsAffected() == 0 {
		return none(id, name)
	}
	return pg.Wrap(err, "motion %s of %s", name, id)
}

// Rows implements motion.Store.
func (s *Store) Rows(ctx context.Context, id thing.ID, since time.Time) ([]motion.Row, error) {
	rows, err := s.pool.Query(ctx, `SELECT name, sha256, length(file), uploaded, judged, kept, verdict FROM motion_file WHERE thing = $1 AND uploaded >= $2 ORDER BY name`, id, since)
	if err != nil {
		return nil, pg.Wrap(err, "motions of %s", id)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[motion.Row])
	return out, pg.Wrap(err, "motions of %s", id)
}

// File implements motion.Store.
func (s *Store) File(ctx context.Context, id thing.ID, name string, since time.Time) (file, made []byte, err error) {
	err = s.pool.QueryRow(ctx, `SELECT file, made FROM motion_file WHERE thing = $1 AND name = $2 AND uploaded >= $3`, id, name, since).Scan(&file, &made)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, none(id, name)
	}
	return file, made, pg.Wrap(err, "motion %s of %s", name, id)
}

// Judge implements motion.Store.
func (s *Store) Judge(ctx context.Context, id thing.ID, r motionwire.Ref, kept bool, verdict string, made []byte) error {
	tag, err := s.pool.Exec(ctx, `UPDATE motion_file SET judged = true, kept = $4, verdict = $5, made = $6 WHERE thing = $1 AND name = $2 AND sha256 = $3`, id, r.Name, r.SHA256, kept, verdict, made)
	if err == nil && tag.RowsAffected() == 0 {
		return none(id, r.Name)
	}
	return pg.Wrap(err, "verdict on %s of %s", r.Name, id)
}

// SetBody implements motion.Store. A body that no robot has any longer is removed.
func (s *Store) SetBody(ctx context.Context, id thing.ID, sum, body string) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO motion_body (sum, body) VALUES ($1, $2) ON CONFLICT (sum) DO UPDATE SET body = excluded.body`, sum, body); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO motion_robot AS r (thing, sum) VALUES ($1, $2) ON CONFLICT (thing) DO UPDATE SET sum = excluded.sum, since = now() WHERE r.sum <> excluded.sum`, id, sum)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE motion_file SET judged = false, kept = false, verdict = '', made = NULL WHERE thing = $1`, id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM motion_body b WHERE sum <> $1 AND NOT EXISTS (SELECT FROM motion_robot r WHERE r.sum = b.sum)`, sum)
		return err
	})
	return pg.Wrap(err, "body of %s", id)
}

// Body implements motion.Store.
func (s *Store) Body(ctx context.Context, id thing.ID) (sum, body string, err error) {
	err = s.pool.QueryRow(ctx, `SELECT b.sum, b.body FROM motion_robot r JOIN motion_body b ON b.sum = r.sum WHERE r.thing = $1`, id).Scan(&sum, &body)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", nil
	}
	return sum, body, pg.Wrap(err, "body of %s", id)
}

// Of returns what is kept of a stretch, without the files.
func (s *Store) Of(ctx context.Context, of thing.Stretch) (any, error) {
	rows, err := s.pool.Query(ctx, `SELECT name, sha256, length(file), uploaded, judged, kept, verdict FROM motion_file WHERE thing = $1 AND uploaded >= $2 AND uploaded < $3 ORDER BY name`, of.Thing, of.Since, of.Until)
	if err != nil {
		return nil, pg.Wrap(err, "motions of %s", of.Thing)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[motion.Row])
	return out, pg.Wrap(err, "motions of %s", of.Thing)
}

// Files adds the files of a stretch to an export.
func (s *Store) Files(ctx context.Context, of thing.Stretch, add func(name string, write func(io.Writer) error) error) error {
	rows, err := s.pool.Query(ctx, `SELECT name, file FROM motion_file WHERE thing = $1 AND uploaded >= $2 AND uploaded < $3 ORDER BY name`, of.Thing, of.Since, of.Until)
	if err != nil {
		return pg.Wrap(err, "motions of %s", of.Thing)
	}
	var name string
	var file []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &file}, func() error {
		return add(fmt.Sprintf("motions/%s/%s.motion", of.Thing.Serial(), name), func(w io.Writer) error {
			_, err := w.Write(file)
			return err
		})
	})
	return pg.Wrap(err, "motions of %s", of.Thing)
}

// Drop deletes everything that is kept of a stretch, and returns how much.
func (s *Store) Drop(ctx context.Context, of thing.Stretch) (int, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM motion_file WHERE thing = $1 AND uploaded >= $2 AND uploaded < $3`, of.Thing, of.Since, of.Until)
	return int(tag.RowsAffected()), pg.Wrap(err, "motions of %s", of.Thing)
}
