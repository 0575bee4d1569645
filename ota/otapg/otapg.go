// Package otapg keeps releases, desired releases and robots' reports in Postgres: tables ota_release, ota_desired, ota_status, ota_round and ota_choice (migrations 0060, 0156, 0157, 0165).
package otapg

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/ota"
)

// MaxReports is how many reports are kept of one thing.
const MaxReports = 200

// Store is ota.Store. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

var _ ota.Store = (*Store)(nil)

// AddRelease keeps r; Conflict if it exists.
func (s *Store) AddRelease(ctx context.Context, r ota.Release) error {
	tag, err := s.pool.Exec(ctx, `INSERT INTO ota_release (species, version, notes, url, sha256, size, lowest) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
		r.Species, r.Version, r.Notes, r.URL, r.SHA256, r.Size, r.Lowest)
	if err == nil && tag.RowsAffected() == 0 {
		return errs.Coded(errs.Conflict, "release_exists", "release %s of %s exists", r.Version, r.Species)
	}
	return pg.Wrap(err, "add release %s of %s", r.Version, r.Species)
}

// Releases returns the newest first.
func (s *Store) Releases(ctx context.Context, species thing.Species) ([]ota.Release, error) {
	rows, err := s.pool.Query(ctx,
		`SELECT species, version, notes, created, url, sha256, size, lowest FROM ota_release WHERE $1 = '' OR species = $1
			ORDER BY created DESC, species, version LIMIT 1000`, species)
	if err != nil {
		return nil, pg.Wrap(err, "list releases")
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r ota.Release, err error) {
		return r, row.Scan(&r.Species, &r.Version, &r.Notes, &r.Created, &r.URL, &r.SHA256, &r.Size, &r.Lowest)
	})
	return out, pg.Wrap(err, "list releases")
}

// Release returns one; a zero Release if the species has no such version.
func (s *Store) Release(ctx context.Context, species thing.Species, v ota.Version) (r ota.Release, err error) {
	err = s.pool.QueryRow(ctx, `SELECT species, version, notes, created, url, sha256, size, lowest FROM ota_release WHERE species = $1 AND version = $2`, species, v).
		Scan(&r.Species, &r.Version, &r.Notes, &r.Created, &r.URL, &r.SHA256, &r.Size, &r.Lowest)
	if errors.Is(err, pgx.ErrNoRows) {
		return ota.Release{}, nil
	}
	return r, pg.Wrap(err, "release %s of %s", v, species)
}

// SetLowest stores the lowest version that a release can be installed on.
func (s *Store) SetLowest(ctx context.Context, species thing.Species, v, lowest ota.Version) error {
	tag, err := s.pool.Exec(ctx, `UPDATE ota_release SET lowest = $3 WHERE species = $1 AND version = $2`, species, v, lowest)
	if err == nil && tag.RowsAffected() == 0 {
		return errs.Coded(errs.NotFound, "no_release", "release %s of %s is unknown; add it first", v, species)
	}
	return pg.Wrap(err, "lowest version for release %s of %s", v, species)
}

// Path returns the releases on the way to v, the last first. Each is older than the one before.
func (s *Store) Path(ctx context.Context, species thing.Species, v ota.Version) ([]ota.Version, error) {
	rows, err := s.pool.Query(ctx, `WITH RECURSIVE p AS (
			SELECT lowest, 1 AS n FROM ota_release WHERE species = $1 AND version = $2
			UNION ALL SELECT r.lowest, n + 1 FROM p JOIN ota_release AS r ON r.species = $1 AND r.version = p.lowest)
		SELECT lowest FROM p WHERE lowest <> '' ORDER BY n`, species, v)
	if err != nil {
		return nil, pg.Wrap(err, "way to release %s of %s", v, species)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[ota.Version])
	return out, pg.Wrap(err, "way to release %s of %s", v, species)
}

// SetDesired stores a desired release, or removes it if v is empty.
func (s *Store) SetDesired(ctx context.Context, scope string, v ota.Version, by string) (since time.Time, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		if since, err = setDesired(ctx, tx, scope, v, by); err != nil || strings.Contains(scope, ":") {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO ota_round (species) VALUES ($1) ON CONFLICT (species) DO UPDATE SET num = DEFAULT, after = ''`, scope)
		return err
	})
	return since, pg.Wrap(err, "desired release of %s", scope)
}

func setDesired(ctx context.Context, tx pgx.Tx, scope string, v ota.Version, by string) (since time.Time, err error) {
	if v == "" {
		_, err := tx.Exec(ctx, `DELETE FROM ota_desired WHERE scope = $1`, scope)
		return time.Time{}, err
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO ota_desired AS d (scope, version, by_whom) VALUES ($1, $2, $3)
		ON CONFLICT (scope) DO UPDATE SET version = excluded.version, held = false,
			since = CASE WHEN d.version = excluded.version AND NOT d.held THEN d.since ELSE excluded.since END,
			by_whom = CASE WHEN d.version = excluded.version THEN d.by_whom ELSE excluded.by_whom END
		RETURNING since`, scope, v, by).Scan(&since)
	return since, err
}

var _ ota.Rounds = (*Store)(nil)

// Round implements ota.Rounds.
func (s *Store) Round(ctx context.Context, species thing.Species) (r ota.Round, err error) {
	err = s.pool.QueryRow(ctx, `SELECT num, after FROM ota_round WHERE species = $1`, species).Scan(&r.Num, &r.After)
	if errors.Is(err, pgx.ErrNoRows) {
		return ota.Round{}, nil
	}
	return r, pg.Wrap(err, "hints of %s", species)
}

// Hinted implements ota.Rounds.
func (s *Store) Hinted(ctx context.Context, species thing.Species, r ota.Round, over bool) error {
	sql := `UPDATE ota_round SET after = $3 WHERE species = $1 AND num = $2`
	args := []any{species, r.Num, string(r.After)}
	if over {
		sql, args = `DELETE FROM ota_round WHERE species = $1 AND num = $2`, args[:2]
	}
	_, err := s.pool.Exec(ctx, sql, args...)
	return pg.Wrap(err, "hints of %s", species)
}

// Unhinted implements ota.Rounds.
func (s *Store) Unhinted(ctx context.Context) ([]thing.Species, error) {
	rows, err := s.pool.Query(ctx, `SELECT species FROM ota_round ORDER BY species`)
	if err != nil {
		return nil, pg.Wrap(err, "species to be hinted")
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[thing.Species])
	return out, pg.Wrap(err, "species to be hinted")
}

// Desired returns the release desired for the thing itself, else for its species.
func (s *Store) Desired(ctx context.Context, id thing.ID) (d ota.Desired, own bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT version, since, scope = $1 FROM ota_desired WHERE scope IN ($1, $2) AND NOT held ORDER BY scope = $1 DESC LIMIT 1`,
		string(id), string(id.Species())).Scan(&d.Release, &d.Since, &own)
	if errors.Is(err, pgx.ErrNoRows) {
		return ota.Desired{}, false, nil
	}
	return d, own, pg.Wrap(err, "desired release of %s", id)
}

// Wishes returns every wish, those of species first.
func (s *Store) Wishes(ctx context.Context) ([]ota.Wish, error) {
	rows, err := s.pool.Query(ctx, `SELECT scope, version, by_whom, since FROM ota_desired ORDER BY position(':' IN scope) > 0, scope LIMIT 10000`)
	if err != nil {
		return nil, pg.Wrap(err, "list desired releases")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ota.Wish])
	return out, pg.Wrap(err, "list desired releases")
}

// Wished returns the robots that have a wish of their own: of these, or of all for nil.
func (s *Store) Wished(ctx context.Context, things []thing.ID) (map[thing.ID]bool, error) {
	rows, err := s.pool.Query(ctx, `SELECT scope FROM ota_desired WHERE position(':' IN scope) > 0 AND NOT held AND ($1::text[] IS NULL OR scope = ANY ($1))`, things)
	if err != nil {
		return nil, pg.Wrap(err, "robots with a desired release")
	}
	out := map[thing.ID]bool{}
	var id thing.ID
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error { out[id] = true; return nil })
	return out, pg.Wrap(err, "robots with a desired release")
}

// AddStatus keeps a report once, and the latest MaxReports of a thing.
func (s *Store) AddStatus(ctx context.Context, id thing.ID, st ota.Status) error {
	_, err := s.pool.Exec(ctx, `
		WITH added AS (
			INSERT INTO ota_status (thing, id, release, running, phase, code, reason, ts, waits, percent) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10, $11)
			ON CONFLICT DO NOTHING RETURNING 1)
		DELETE FROM ota_status WHERE EXISTS (SELECT FROM added) AND (thing, id) IN
			(SELECT thing, id FROM ota_status WHERE thing = $1 ORDER BY received DESC OFFSET $9)`,
		id, st.ID, st.Release, st.Running, st.Phase, st.Code, st.Reason, st.TS, MaxReports-1, st.Waits, st.Percent)
	return pg.Wrap(err, "update report of %s", id)
}

// Reports returns a thing's reports, the latest first.
func (s *Store) Reports(ctx context.Context, id thing.ID, limit int) ([]ota.Report, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT id, received, release, running, phase, code, reason, ts, waits, percent FROM ota_status WHERE thing = $1 ORDER BY received DESC LIMIT $2`, id, limit)
	if err != nil {
		return nil, pg.Wrap(err, "update reports of %s", id)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r ota.Report, err error) {
		r.V = 1
		err = row.Scan(&r.ID, &r.Received, &r.Release, &r.Running, &r.Phase, &r.Code, &r.Reason, &r.TS, &r.Waits, &r.Percent)
		return r, err
	})
	return out, pg.Wrap(err, "update reports of %s", id)
}
