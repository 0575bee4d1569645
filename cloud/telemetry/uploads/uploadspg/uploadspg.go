// Package uploadspg keeps the list of robots' uploads in Postgres: table uploads_log (migrations 0109 and later).
package uploadspg

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/telemetry/uploads"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Store implements uploads.Store. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

var _ uploads.Store = (*Store)(nil)

// New returns a Store on the pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Put implements uploads.Store.
func (s *Store) Put(ctx context.Context, l uploads.Log) error {
	return s.insert(ctx, l, "UPDATE SET size = EXCLUDED.size, os = EXCLUDED.os, at = EXCLUDED.at, name = EXCLUDED.name, sha256 = EXCLUDED.sha256, reason = EXCLUDED.reason")
}

// Add implements uploads.Store.
func (s *Store) Add(ctx context.Context, l uploads.Log) error { return s.insert(ctx, l, "NOTHING") }

func (s *Store) insert(ctx context.Context, l uploads.Log, conflict string) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO uploads_log (key, thing, account, name, size, os, at, sha256, reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (key) DO `+conflict,
		l.Key, string(l.Thing), l.Account, l.Name, l.Size, l.OS, l.At, l.SHA256, l.Reason)
	if err != nil {
		return fmt.Errorf("list log %s: %w", l.Key, pg.Err(err))
	}
	return nil
}

// Taken implements uploads.Store.
func (s *Store) Taken(ctx context.Context, id thing.ID, sha256 []byte, name string) (known bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM uploads_log WHERE thing = $1 AND sha256 = $2 AND name = $3)`, string(id), sha256, name).Scan(&known)
	if err != nil {
		return false, fmt.Errorf("look for log %s of %s: %w", name, id, pg.Err(err))
	}
	return known, nil
}

const columns = "id::text, key, thing, account, name, size, os, at, kind, reason"

func (s *Store) rows(ctx context.Context, what, query string, args ...any) ([]uploads.Log, error) {
	rows, err := s.pool.Query(ctx, "SELECT "+columns+" FROM uploads_log "+query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, pg.Err(err))
	}
	logs, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (l uploads.Log, err error) {
		err = r.Scan(&l.ID, &l.Key, &l.Thing, &l.Account, &l.Name, &l.Size, &l.OS, &l.At, &l.Kind, &l.Reason)
		l.At = l.At.UTC()
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, pg.Err(err))
	}
	return logs, nil
}

// List implements uploads.Store. A page after a log that is gone by now is ErrUnknown.
func (s *Store) List(ctx context.Context, q uploads.Query) ([]uploads.Log, error) {
	where, args := "WHERE true", []any(nil)
	and := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where += " AND " + condition
	}
	if q.Thing != "" {
		and("thing = ?", string(q.Thing))
	}
	if q.Account != "" {
		and("account = ?", q.Account)
	}
	if q.Name != "" {
		and("strpos(lower(name), lower(?)) > 0", q.Name)
	}
	if q.Version != "" {
		and("(os = ? OR starts_with(os, ? || '.'))", q.Version, q.Version)
	}
	if q.Kind != "" {
		and("kind = ?", q.Kind)
	}
	if q.Reason != "" {
		and("reason = ?", q.Reason)
	}
	if !q.Day.IsZero() {
		and("at >= ? AND at < ?", q.Day, q.Day.AddDate(0, 0, 1))
	}
	if q.After != "" {
		last, err := s.Get(ctx, q.Thing, q.After)
		if err != nil {
			return nil, err
		}
		and("(at, id) < (?, ?::uuid)", last.At, last.ID)
	}
	args = append(args, q.Limit)
	return s.rows(ctx, "logs of "+string(q.Thing), fmt.Sprintf("%s ORDER BY at DESC, id DESC LIMIT $%d", where, len(args)), args...)
}

var ids = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Get implements uploads.Store.
func (s *Store) Get(ctx context.Context, id thing.ID, log string) (uploads.Log, error) {
	if !ids.MatchString(log) {
		return uploads.Log{}, uploads.ErrUnknown
	}
	logs, err := s.rows(ctx, "log "+log, "WHERE id = $1::uuid AND ($2 = '' OR thing = $2)", log, string(id))
	if err == nil && len(logs) == 0 {
		err = uploads.ErrUnknown
	}
	if err != nil {
		return uploads.Log{}, err
	}
	return logs[0], nil
}

// Unlisted implements uploads.Store.
func (s *Store) Unlisted(ctx context.Context, keys []string) ([]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT k FROM unnest($1::text[]) k WHERE NOT EXISTS (SELECT FROM uploads_log WHERE key = k)`, keys)
	if err != nil {
		return nil, fmt.Errorf("unlisted logs: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("unlisted logs: %w", pg.Err(err))
	}
	return out, nil
}

// Before implements uploads.Store.
func (s *Store) Before(ctx context.Context, t time.Time, after string, limit int) ([]uploads.Log, error) {
	return s.rows(ctx, "logs before "+t.Format(time.RFC3339), "WHERE at < $1 AND key > $2 ORDER BY key LIMIT $3", t, after, limit)
}

// Delete implements uploads.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM uploads_log WHERE key = $1`, key); err != nil {
		return fmt.Errorf("forget log %s: %w", key, pg.Err(err))
	}
	return nil
}

// DeleteAccount implements uploads.Store.
func (s *Store) DeleteAccount(ctx context.Context, account string) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM uploads_log WHERE account = $1`, account); err != nil {
		return fmt.Errorf("forget logs of an account: %w", pg.Err(err))
	}
	return nil
}
