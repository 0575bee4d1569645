package jdocspg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/jdocs"
)

// Personal is one document of an account's as it was once accepted.
type Personal struct {
	Doc     jdocs.Name      `json:"doc_name"`
	Version uint64          `json:"doc_version"`
	At      time.Time       `json:"at"`
	By      string          `json:"by"`
	Deleted bool            `json:"deleted,omitempty"`
	JSON    json.RawMessage `json:"jdoc,omitempty"`
}

// Export returns every revision that is kept of an account's documents (VEC-JDS-11).
func (s *Store) Export(ctx context.Context, account string) (any, error) {
	rows, err := s.pool.Query(ctx, `SELECT name, doc_version, changed_at, changed_by, deleted, json_doc FROM jdocs_history
		WHERE thing = '' AND account = $1 AND account <> '' ORDER BY name COLLATE "C", doc_version`, account)
	if err != nil {
		return nil, fmt.Errorf("export documents: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Personal, err error) {
		var text string
		err = row.Scan(&p.Doc, &p.Version, &p.At, &p.By, &p.Deleted, &text)
		p.JSON = json.RawMessage(text) // it was checked when it came; a deletion has none
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("export documents: %w", pg.Err(err))
	}
	return out, nil
}

// Erase removes an account's documents and their history, versions and all: no account gets its id again (VEC-JDS-11). Done again it changes
// nothing. Robots that may still write them must have lost their owner before.
func (s *Store) Erase(ctx context.Context, account string) error {
	if account == "" { // would be the robots'
		return errs.New(errs.Invalid, "erase documents: no account")
	}
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM jdocs_doc WHERE thing = '' AND account = $1`, account); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM jdocs_history WHERE thing = '' AND account = $1`, account)
		return err
	})
	if err != nil {
		return fmt.Errorf("erase documents: %w", err)
	}
	return nil
}
