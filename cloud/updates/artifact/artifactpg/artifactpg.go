// Package artifactpg keeps the list of archives, and what channels offer, in Postgres: tables artifact_archive and artifact_channel (migrations 0122 and 0134).
package artifactpg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/updates/artifact"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/manifest"
)

// Store is artifact.Store. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

var _ artifact.Store = (*Store)(nil)

const columns = `species, version, kind, base, qsn, dev, size, sha256, sha1, md5, created, by_whom`

func scan(row pgx.CollectableRow) (a artifact.Artifact, err error) {
	return a, row.Scan(&a.Species, &a.Version, &a.Kind, &a.Base, &a.QSN, &a.Dev, &a.Size, &a.SHA256, &a.SHA1, &a.MD5, &a.Created, &a.By)
}

func one(rows pgx.Rows, err error, what string, args ...any) (artifact.Artifact, error) {
	var a artifact.Artifact
	if err == nil {
		a, err = pgx.CollectExactlyOneRow(rows, scan)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return a, errs.Coded(errs.NotFound, "no_archive", what+" is unknown", args...)
	}
	return a, pg.Wrap(err, what, args...)
}

// Get returns the archive with that SHA-256.
func (s *Store) Get(ctx context.Context, species thing.Species, sha256 string) (artifact.Artifact, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+` FROM artifact_archive WHERE species = $1 AND sha256 = $2`, species, sha256)
	return one(rows, err, "archive %s of %s", sha256, species)
}

// List returns the newest release's archives first.
func (s *Store) List(ctx context.Context, species thing.Species, v ota.Version) ([]artifact.Artifact, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+` FROM artifact_archive WHERE ($1 = '' OR species = $1) AND ($2 = '' OR version = $2)
		ORDER BY species, min(created) OVER (PARTITION BY species, version) DESC, version, kind DESC, base, qsn LIMIT 10000`, species, v)
	if err != nil {
		return nil, pg.Wrap(err, "list archives")
	}
	out, err := pgx.CollectRows(rows, scan)
	return out, pg.Wrap(err, "list archives")
}

// lock makes Add and Unless of one key wait for each other.
func lock(ctx context.Context, tx pgx.Tx, key string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('artifact ' || $1::text, 0))`, key)
	return pg.Wrap(err, "lock %s", key)
}

// Add keeps a, once its object is there.
func (s *Store) Add(ctx context.Context, a artifact.Artifact, exists func(context.Context) error) (artifact.Artifact, error) {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, a.Key()); err != nil {
			return err
		}
		if err := exists(ctx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO artifact_archive (species, version, kind, base, qsn, dev, size, sha256, sha1, md5, by_whom, manifest)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (species, sha256) DO NOTHING`,
			a.Species, a.Version, a.Kind, a.Base, a.QSN, a.Dev, a.Size, a.SHA256, a.SHA1, a.MD5, a.By, a.Manifest)
		if c, ok := pg.Violates(err); ok && c == "artifact_archive_place" {
			return artifact.Taken(a)
		}
		return pg.Wrap(err, "add archive %s", a.Key())
	})
	if err != nil {
		return a, err
	}
	return s.Get(ctx, a.Species, a.SHA256)
}

// Remove forgets an archive.
func (s *Store) Remove(ctx context.Context, a artifact.Artifact) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM artifact_archive WHERE species = $1 AND sha256 = $2`, a.Species, a.SHA256)
	return pg.Wrap(err, "remove archive %s", a.Key())
}

// Unless calls f if no archive has that object.
func (s *Store) Unless(ctx context.Context, key string, f func(context.Context) error) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, key); err != nil {
			return err
		}
		species, version, start, err := artifact.ParseKey(key)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT `+columns+` FROM artifact_archive WHERE species = $1 AND version = $2 AND starts_with(sha256, $3)`, species, version, start)
		if err != nil {
			return pg.Wrap(err, "archive of %s", key)
		}
		if list, err := pgx.CollectRows(rows, scan); err != nil || len(list) > 0 {
			return pg.Wrap(err, "archive of %s", key)
		}
		return f(ctx)
	})
}

// Best returns the smallest archive that brings any robot from running to v.
func (s *Store) Best(ctx context.Context, species thing.Species, running, v ota.Version) (artifact.Artifact, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+` FROM artifact_archive WHERE species = $1 AND version = $2 AND qsn = ''
		AND (kind = $3 OR kind = $4 AND base = $5) ORDER BY size LIMIT 1`, species, v, manifest.Production, manifest.Delta, running)
	return one(rows, err, "archive of release %s of %s", v, species)
}

// Offered returns the version of a channel that f means, and its archive.
func (s *Store) Offered(ctx context.Context, species thing.Species, f artifact.File) (v ota.Version, a artifact.Artifact, err error) {
	kind := manifest.Production
	if f.Delta {
		kind = manifest.Delta
	}
	err = s.pool.QueryRow(ctx, `SELECT c.version, coalesce(a.sha256, ''), coalesce(a.size, 0), coalesce(a.created, c.since) FROM
		(SELECT version, since FROM artifact_channel WHERE species = $1 AND channel = $2 AND ($3 = '' OR version = $3) ORDER BY num DESC LIMIT 1) c
		LEFT JOIN artifact_archive a ON a.species = $1 AND a.version = c.version AND a.kind = $4 AND a.base = $5 AND a.qsn = ''`,
		species, f.Channel, f.Version, kind, f.Base).Scan(&v, &a.SHA256, &a.Size, &a.Created)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", artifact.Artifact{}, nil
	}
	a.Species, a.Version, a.Kind, a.Base = species, v, kind, f.Base
	return v, a, pg.Wrap(err, "channel %s of %s", f.Channel, species)
}

const channels = `SELECT DISTINCT ON (species, channel) species, channel, version, since, by_whom FROM artifact_channel`

// SetChannel has a channel offer a release.
func (s *Store) SetChannel(ctx context.Context, c artifact.Channel) (artifact.Channel, error) {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, "channel "+string(c.Species)+" "+c.Channel); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, channels+` WHERE species = $1 AND channel = $2 ORDER BY species, channel, num DESC`, c.Species, c.Channel)
		if err != nil {
			return err
		}
		now, err := pgx.CollectRows(rows, pgx.RowToStructByPos[artifact.Channel])
		if err != nil {
			return err
		}
		if len(now) > 0 && now[0].Version == c.Version {
			c = now[0]
			return nil
		}
		return tx.QueryRow(ctx, `INSERT INTO artifact_channel (species, channel, version, by_whom) VALUES ($1, $2, $3, $4) RETURNING since`,
			c.Species, c.Channel, c.Version, c.By).Scan(&c.Since)
	})
	return c, pg.Wrap(err, "channel %s of %s", c.Channel, c.Species)
}

// Channels lists what channels offer.
func (s *Store) Channels(ctx context.Context, species thing.Species) ([]artifact.Channel, error) {
	rows, err := s.pool.Query(ctx, channels+` WHERE $1 = '' OR species = $1 ORDER BY species, channel, num DESC`, species)
	if err != nil {
		return nil, pg.Wrap(err, "list channels")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[artifact.Channel])
	return out, pg.Wrap(err, "list channels")
}
