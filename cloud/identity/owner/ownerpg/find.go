package ownerpg

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// maxNamed is the longest that Postgres looks for names.
const maxNamed = 5 * time.Second

// Named returns, for each of the texts, which are in lower case, robots whose owners call them by a name with that text in it: at most limit for
// each text on average. One statement, however many texts.
func (s *Store) Named(ctx context.Context, texts []string, limit int) (map[string][]thing.ID, error) {
	patterns := make([]string, len(texts))
	for i, text := range texts {
		patterns[i] = "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
	}
	out := map[string][]thing.ID{}
	sql := `SELECT thing, lower(name) FROM owner_tenure WHERE until IS NULL AND name <> '' AND lower(name) LIKE ANY($1) LIMIT $2`
	err := pg.Ask(ctx, s.pool, maxNamed, sql, []any{patterns, limit * len(texts)}, func(rows pgx.Rows) error {
		var id thing.ID
		var name string
		_, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error {
			for _, text := range texts {
				if strings.Contains(name, text) {
					out[text] = append(out[text], id)
				}
			}
			return nil
		})
		return err
	})
	if errors.Is(err, pg.ErrTooLong) {
		return nil, errs.Coded(errs.Exhausted, "filter_slow", "search for %d words in the names of robots: stopped after %v; use fewer and longer words", len(texts), maxNamed)
	}
	return out, pg.Wrap(err, "robots by name")
}

// Names returns what owners call those of the robots that have a name.
func (s *Store) Names(ctx context.Context, ids []thing.ID) (map[thing.ID]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT thing, name FROM owner_tenure WHERE thing = ANY($1) AND until IS NULL AND name <> ''`, ids)
	if err != nil {
		return nil, pg.Wrap(err, "names of robots")
	}
	out := map[thing.ID]string{}
	var id thing.ID
	var name string
	_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error { out[id] = name; return nil })
	return out, pg.Wrap(err, "names of robots")
}

// Accounts returns the accounts of those of the robots that have an owner.
func (s *Store) Accounts(ctx context.Context, ids []thing.ID) (map[thing.ID]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT thing, account FROM owner_tenure WHERE thing = ANY($1) AND until IS NULL`, ids)
	if err != nil {
		return nil, pg.Wrap(err, "owners of robots")
	}
	out := map[thing.ID]string{}
	var id thing.ID
	var account string
	_, err = pgx.ForEachRow(rows, []any{&id, &account}, func() error { out[id] = account; return nil })
	return out, pg.Wrap(err, "owners of robots")
}

// Owned returns how many of the robots have an owner.
func (s *Store) Owned(ctx context.Context, ids []thing.ID) (n int, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM owner_tenure WHERE thing = ANY($1) AND until IS NULL`, ids).Scan(&n)
	return n, pg.Wrap(err, "robots with an owner")
}

// OwnedBy returns the robots of accounts.
func (s *Store) OwnedBy(ctx context.Context, accounts []string) ([]thing.ID, error) {
	rows, err := s.pool.Query(ctx, `SELECT thing FROM owner_tenure WHERE account = ANY($1) AND until IS NULL`, accounts)
	if err != nil {
		return nil, pg.Wrap(err, "robots of owners")
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[thing.ID])
	return out, pg.Wrap(err, "robots of owners")
}
