package ownerpg

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Named returns at most limit robots whose owners call them by a name with that text in it, in lower case.
func (s *Store) Named(ctx context.Context, text string, limit int) ([]thing.ID, error) {
	pattern := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
	rows, err := s.pool.Query(ctx, `SELECT thing FROM owner_tenure WHERE until IS NULL AND name <> '' AND lower(name) LIKE $1 LIMIT $2`, pattern, limit)
	if err != nil {
		return nil, pg.Wrap(err, "robots by name")
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[thing.ID])
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
