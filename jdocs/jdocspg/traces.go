package jdocspg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/certs/thing"
	"kennel/infra/pg"
	"kennel/jdocs"
)

// OfRobot is a document of a robot as an export for its owner shows it (VEC-JDS-11).
type OfRobot struct {
	Thing   thing.ID   `json:"thing"`
	Doc     jdocs.Name `json:"doc_name"`
	Version uint64     `json:"doc_version"`
	At      time.Time  `json:"at"`
	JSON    string     `json:"jdoc"`
}

// OfRobots returns the current documents of robots.
func (s *Store) OfRobots(ctx context.Context, robots []thing.ID) ([]OfRobot, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT thing, name, doc_version, changed_at, json_doc FROM jdocs_doc WHERE NOT deleted AND thing = ANY($1) AND thing <> '' ORDER BY thing, name`, robots)
	if err != nil {
		return nil, fmt.Errorf("documents of robots: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[OfRobot])
	if err != nil {
		return nil, fmt.Errorf("documents of robots: %w", pg.Err(err))
	}
	return out, nil
}

// tellTales lists documents of robots that speak of a person: where they live, what their apps are called.
var tellTales = []string{string(jdocs.RobotSettings), string(jdocs.AppTokens)}

// EraseTraces deletes what the history of robots' documents said of a person, and takes the person's id off what they changed. It may be
// repeated. The current documents of robots stay: a person's words in them are the caller's to change before.
func (s *Store) EraseTraces(ctx context.Context, account string, robots []thing.ID) error {
	if account == "" {
		return nil
	}
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`DELETE FROM jdocs_history h USING jdocs_doc d
			WHERE h.thing = ANY($1) AND h.name = ANY($2) AND (d.thing, d.account, d.name) = (h.thing, h.account, h.name) AND h.doc_version < d.doc_version`, robots, tellTales)
		b.Queue(`UPDATE jdocs_doc SET changed_by = 'erased' WHERE changed_by = $1`, account)
		b.Queue(`UPDATE jdocs_history SET changed_by = 'erased' WHERE changed_by = $1`, account)
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return fmt.Errorf("erase traces in documents: %w", err)
	}
	return nil
}
