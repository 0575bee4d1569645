package jdocspg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// OfAccount returns the documents of an account, and the current documents of its robots.
func (s *Store) OfAccount(ctx context.Context, account string, robots []thing.ID) ([]jdocs.Held, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT thing, name, doc_version, changed_at, json_doc FROM jdocs_doc
		WHERE NOT deleted AND (account = $1 AND account <> '' OR thing = ANY($2) AND thing <> '') ORDER BY thing, name`, account, robots)
	if err != nil {
		return nil, fmt.Errorf("documents of an account: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[jdocs.Held])
	if err != nil {
		return nil, fmt.Errorf("documents of an account: %w", pg.Err(err))
	}
	return out, nil
}

// personal lists documents of robots with facts about a person: where they live, what their apps are called.
var personal = func() (names []string) {
	for _, s := range jdocs.Schemas {
		if s.Personal && !s.Account {
			names = append(names, string(s.Name))
		}
	}
	return names
}()

// EraseAccount deletes the documents of an account with their history and the history of its robots' personal documents, and removes its id
// from the changes it made. It may be repeated. The current documents of robots stay: the caller changes the owner's data in them.
func (s *Store) EraseAccount(ctx context.Context, account string, robots []thing.ID) error {
	if account == "" {
		return nil
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`DELETE FROM jdocs_history WHERE account = $1`, account)
		b.Queue(`DELETE FROM jdocs_doc WHERE account = $1`, account)
		b.Queue(`DELETE FROM jdocs_history h USING jdocs_doc d
			WHERE h.thing = ANY($1) AND h.name = ANY($2) AND (d.thing, d.account, d.name) = (h.thing, h.account, h.name)
				AND h.doc_version < d.doc_version`, robots, personal)
		b.Queue(`UPDATE jdocs_doc SET changed_by = 'erased' WHERE changed_by = $1`, account)
		b.Queue(`UPDATE jdocs_history SET changed_by = 'erased' WHERE changed_by = $1`, account)
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return fmt.Errorf("erase the documents of an account: %w", pg.Err(err))
	}
	return nil
}
