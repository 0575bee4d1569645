package crashpg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/telemetry/crash"
	"kennel/infra/pg"
)

var _ crash.SymbolStore = (*Store)(nil)

// PutSymbols implements crash.SymbolStore.
func (s *Store) PutSymbols(ctx context.Context, f crash.Symbols) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO crash_symbols (debug_id, module, os, cpu, key, size, functions, uploaded, by_whom) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (debug_id) DO UPDATE SET module = excluded.module, os = excluded.os, cpu = excluded.cpu, key = excluded.key, size = excluded.size, functions = excluded.functions,
			uploaded = excluded.uploaded, by_whom = excluded.by_whom`, f.DebugID, f.Module, f.OS, f.CPU, f.Key, f.Size, f.Functions, f.Uploaded, f.By)
	return pg.Wrap(err, "list symbols %s", f.DebugID)
}

// Symbols implements crash.SymbolStore.
func (s *Store) Symbols(ctx context.Context, debugIDs []string) ([]crash.Symbols, error) {
	rows, err := s.pool.Query(ctx, `SELECT debug_id, module, os, cpu, size, functions, uploaded, by_whom, key FROM crash_symbols WHERE $1::text[] IS NULL OR debug_id = ANY ($1)
		ORDER BY module, uploaded DESC, debug_id`, debugIDs)
	if err != nil {
		return nil, pg.Wrap(err, "symbols")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[crash.Symbols])
	return out, pg.Wrap(err, "symbols")
}

// DeleteSymbols implements crash.SymbolStore.
func (s *Store) DeleteSymbols(ctx context.Context, debugID string) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM crash_symbols WHERE debug_id = $1`, debugID)
	return pg.Wrap(err, "forget symbols %s", debugID)
}

// UnlistedSymbols implements crash.SymbolStore.
func (s *Store) UnlistedSymbols(ctx context.Context, keys []string) ([]string, error) {
	return s.words(ctx, "unlisted symbols", `SELECT k FROM unnest($1::text[]) k WHERE NOT EXISTS (SELECT FROM crash_symbols WHERE key = k)`, keys)
}

// Stale implements crash.SymbolStore.
func (s *Store) Stale(ctx context.Context, after string, limit int) ([]string, error) {
	return s.words(ctx, "crashes with new symbols", `SELECT DISTINCT c.id::text FROM crash_symbols AS s JOIN crash_crash AS c ON c.modules @> ARRAY[s.debug_id] AND c.looked < s.uploaded
		WHERE c.id::text > $1 ORDER BY 1 LIMIT $2`, after, limit)
}

// Refuse implements crash.SymbolStore.
func (s *Store) Refuse(ctx context.Context, id, problem string, looked time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE crash_crash SET problem = $2, looked = $3 WHERE id = $1`, id, problem, looked)
	return pg.Wrap(err, "record the problem of crash %s", id)
}
