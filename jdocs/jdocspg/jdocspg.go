// Package jdocspg keeps documents in Postgres: jdocs_doc holds the current versions, jdocs_history the earlier ones. Every
// change is one statement, so that two writers of one version cannot both be first and a kill leaves all of a change or nothing.
package jdocspg

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// History kept for each document: at least so many versions, unless they are older. Own defaults: the source gives no number. 64 revisions of statistics
// written every ten minutes cover most of a day; settings change seldom.
const (
	KeepVersions = 64
	KeepAge      = 365 * 24 * time.Hour

	pruneEvery = 16
)

// Channel carries a notification for each change that did not come from the robot itself: "<thing> <name> <version>". A robot's own
// writes are left out because the robot knows them, and because a notifying commit takes a lock of the whole server.
const Channel = "jdocs"

// Store implements jdocs.Store. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store over a migrated database (infra/migrations).
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

const columns = `doc_version, fmt_version, client_meta, json_doc, deleted, changed_by, changed_at`

// A statement whose part "put" returns the changed row is completed by hist, which keeps it in the history, and told, which notifies. $1 to
// $3 are the key, $4 is the author.
const (
	hist = `, hist AS (
	INSERT INTO jdocs_history (thing, account, name, ` + columns + `) SELECT $1, $2, $3, ` + columns + ` FROM put
)`
	told = `
SELECT doc_version, CASE WHEN $1 NOT IN ('', $4) THEN pg_notify('` + Channel + `', $1 || ' ' || $3 || ' ' || doc_version)::text END FROM put`
)

// pruned drops what is beyond the history's bounds, before told. To look for it costs as much as the change itself, so that only each
// pruneEvery-th version does.
const pruned = `, pruned AS (
	DELETE FROM jdocs_history h USING put
	WHERE h.thing = $1 AND h.account = $2 AND h.name = $3
	  AND (h.doc_version <= put.doc_version - %d OR h.changed_at < put.changed_at - '%d hours'::interval)
)`

// create also revives a deleted document, with the version after its last.
const create = `WITH put AS (
	INSERT INTO jdocs_doc AS d (thing, account, name, doc_version, fmt_version, client_meta, json_doc, changed_by, told_at)
	VALUES ($1, $2, $3, 1, $5, $6, $7, $4, CASE WHEN $1 NOT IN ('', $4) THEN clock_timestamp() END)
	ON CONFLICT (thing, account, name) DO UPDATE SET doc_version = d.doc_version + 1, fmt_version = excluded.fmt_version,
		client_meta = excluded.client_meta, json_doc = excluded.json_doc, deleted = false, changed_by = excluded.changed_by,
		changed_at = clock_timestamp(), told_at = CASE WHEN $1 IN ('', $4) THEN d.told_at ELSE clock_timestamp() END
	WHERE d.deleted
	RETURNING ` + columns + `)` + hist + told

const replace = `WITH put AS (
	UPDATE jdocs_doc SET doc_version = doc_version + 1, fmt_version = $5, client_meta = $6, json_doc = $7, changed_by = $4,
		changed_at = clock_timestamp(), told_at = CASE WHEN $1 IN ('', $4) THEN told_at ELSE clock_timestamp() END
	WHERE thing = $1 AND account = $2 AND name = $3 AND NOT deleted AND doc_version = $8 AND fmt_version <= $9
	RETURNING ` + columns + `)`

var (
	update      = replace + hist + told
	updatePrune = replace + hist + fmt.Sprintf(pruned, KeepVersions, int(KeepAge.Hours())) + told
)

const remove = `WITH put AS (
	UPDATE jdocs_doc SET doc_version = doc_version + 1, client_meta = '', json_doc = '', deleted = true, changed_by = $4,
		changed_at = clock_timestamp(), told_at = CASE WHEN $1 IN ('', $4) THEN told_at ELSE clock_timestamp() END
	WHERE thing = $1 AND account = $2 AND name = $3 AND NOT deleted
	RETURNING ` + columns + `)` + hist + told

// change runs one of the statements above; version 0 means that no row matched.
func (s *Store) change(ctx context.Context, sql string, key jdocs.Key, by string, args ...any) (version uint64, err error) {
	args = append([]any{string(key.Thing), key.Account, string(key.Name), by}, args...)
	var v int64
	err = s.pool.QueryRow(ctx, sql, args...).Scan(&v, nil)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return uint64(v), pg.Err(err)
}

func (s *Store) Put(ctx context.Context, key jdocs.Key, d jdocs.Doc, newest uint64, by string) (version uint64, cur jdocs.Revision, err error) {
	switch {
	case d.Version == 0:
		version, err = s.change(ctx, create, key, by, d.FmtVersion, d.ClientMeta, d.JSON)
	case d.Version <= math.MaxInt64: // no stored version is beyond
		sql := update
		if (d.Version+1)%pruneEvery == 0 {
			sql = updatePrune
		}
		version, err = s.change(ctx, sql, key, by, d.FmtVersion, d.ClientMeta, d.JSON, d.Version, newest)
	}
	if err != nil || version > 0 {
		return version, cur, err
	}
	cur, err = s.Get(ctx, key)
	switch {
	case err != nil && !errors.Is(err, jdocs.ErrNotFound):
		return 0, cur, err
	case err == nil && cur.Version == d.Version:
		return 0, cur, jdocs.ErrFormat
	}
	return 0, cur, jdocs.ErrStale
}

func (s *Store) Delete(ctx context.Context, key jdocs.Key, by string) (uint64, error) {
	return s.change(ctx, remove, key, by)
}

func (s *Store) Get(ctx context.Context, key jdocs.Key) (jdocs.Revision, error) {
	return one(s.pool.Query(ctx, `SELECT `+columns+` FROM jdocs_doc WHERE thing = $1 AND account = $2 AND name = $3 AND NOT deleted`,
		string(key.Thing), key.Account, string(key.Name)))
}

func (s *Store) Revision(ctx context.Context, key jdocs.Key, version uint64) (jdocs.Revision, error) {
	if version > math.MaxInt64 {
		return jdocs.Revision{}, jdocs.ErrNotFound
	}
	return one(s.pool.Query(ctx, `SELECT `+columns+` FROM jdocs_history WHERE thing = $1 AND account = $2 AND name = $3 AND doc_version = $4`,
		string(key.Thing), key.Account, string(key.Name), version))
}

func (s *Store) History(ctx context.Context, key jdocs.Key, limit int) ([]jdocs.Revision, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+` FROM jdocs_history WHERE thing = $1 AND account = $2 AND name = $3
		ORDER BY doc_version DESC LIMIT $4`, string(key.Thing), key.Account, string(key.Name), limit)
	if err != nil {
		return nil, pg.Err(err)
	}
	revs, err := pgx.CollectRows(rows, revision)
	return revs, pg.Err(err)
}

func (s *Store) List(ctx context.Context, id thing.ID) ([]jdocs.Listing, error) {
	// COLLATE "C": the order of the names' bytes, whatever the database's language.
	rows, err := s.pool.Query(ctx, `SELECT name, doc_version, fmt_version, changed_by, changed_at FROM jdocs_doc
		WHERE thing = $1 AND account = '' AND NOT deleted ORDER BY name COLLATE "C"`, string(id))
	if err != nil {
		return nil, pg.Err(err)
	}
	ls, err := pgx.CollectRows(rows, pgx.RowToStructByPos[jdocs.Listing])
	return ls, pg.Err(err)
}

// OfAccounts returns the document of a name of each account that has one.
func (s *Store) OfAccounts(ctx context.Context, name jdocs.Name, accounts []string) (map[string]string, error) {
	out := map[string]string{}
	rows, err := s.pool.Query(ctx, `SELECT account, json_doc FROM jdocs_doc WHERE thing = '' AND account = ANY($2) AND name = $1 AND NOT deleted`, string(name), accounts)
	if err != nil {
		return nil, pg.Wrap(err, "read documents of accounts")
	}
	var account, doc string
	_, err = pgx.ForEachRow(rows, []any{&account, &doc}, func() error { out[account] = doc; return nil })
	return out, pg.Wrap(err, "read documents of accounts")
}

// Having returns how many of the robots have a document of one of the names.
func (s *Store) Having(ctx context.Context, names []jdocs.Name, things []thing.ID) (n int, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(DISTINCT thing) FROM jdocs_doc WHERE name = ANY($1) AND account = '' AND NOT deleted AND thing = ANY($2)`, names, things).Scan(&n)
	return n, pg.Wrap(err, "count documents")
}

func revision(row pgx.CollectableRow) (jdocs.Revision, error) {
	var r jdocs.Revision
	err := row.Scan(&r.Version, &r.FmtVersion, &r.ClientMeta, &r.JSON, &r.Deleted, &r.By, &r.At)
	return r, err
}

func one(rows pgx.Rows, err error) (jdocs.Revision, error) {
	if err != nil {
		return jdocs.Revision{}, pg.Err(err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, revision)
	if errors.Is(err, pgx.ErrNoRows) {
		return jdocs.Revision{}, jdocs.ErrNotFound
	}
	return r, pg.Err(err)
}
