// Package bulkpg keeps bulk jobs in Postgres: tables bulk_job and bulk_item (migration 0033), and orders the tasks that do them in the same
// transaction.
package bulkpg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/bulk"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Store is bulk.Store on a pool that others may use too. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	orders *jobs.Orders
}

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool, orders *jobs.Orders) *Store { return &Store{pool, orders} }

var _ bulk.Store = (*Store)(nil)

func uuid(id string) (u pgtype.UUID, ok bool) {
	return u, u.Scan(id) == nil
}

func unknown(id string) error {
	return errs.Coded(errs.NotFound, "no_job", "there is no bulk job %.64q", id)
}

const columns = `j.id::text, j.by_whom, j.action, j.filter, j.total, j.state, j.created, j.closed,
	(SELECT count(*) FROM bulk_item AS i WHERE i.job = j.id AND i.state = 'open'), (SELECT count(*) FROM bulk_item AS i WHERE i.job = j.id AND i.state = 'failed'),
	(SELECT count(*) FROM bulk_item AS i WHERE i.job = j.id AND i.state = 'dropped')`

func scan(row pgx.CollectableRow) (j bulk.Job, err error) {
	var action []byte
	if err := row.Scan(&j.ID, &j.By, &action, &j.Filter, &j.Total, &j.State, &j.Created, &j.Closed, &j.Open, &j.Failed, &j.Dropped); err != nil {
		return j, err
	}
	j.Done = j.Total - j.Open - j.Failed - j.Dropped
	return j, json.Unmarshal(action, &j.Action)
}

// Add keeps a job.
func (s *Store) Add(ctx context.Context, d bulk.Draft, things []thing.ID) (j bulk.Job, added bool, err error) {
	action, err := json.Marshal(d.Action)
	if err != nil {
		return j, false, fmt.Errorf("bulk job: %w", err)
	}
	var key *string
	if d.Key != "" {
		key = &d.Key
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var id string
		// A second request with the key waits for the first one's end, and then finds it.
		err := tx.QueryRow(ctx, `INSERT INTO bulk_job (key, by_whom, action, filter, total) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (by_whom, key) DO NOTHING
			RETURNING id::text`, key, d.By, action, d.Chosen(), len(things)).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			j, err = one(tx.Query(ctx, `SELECT `+columns+` FROM bulk_job AS j WHERE j.by_whom = $1 AND j.key = $2`, d.By, d.Key))
			return err
		}
		if err != nil {
			return err
		}
		u, _ := uuid(id)
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"bulk_item"}, []string{"job", "thing", "part"}, pgx.CopyFromSlice(len(things), func(i int) ([]any, error) {
			return []any{u, string(things[i]), i / bulk.PartSize}, nil
		}))
		if err != nil {
			return err
		}
		for part := 0; part*bulk.PartSize < len(things); part++ {
			if err := s.orders.AddTx(ctx, tx, bulk.TaskRun, bulk.PartID(id, part)); err != nil {
				return err
			}
		}
		added = true
		j, err = one(tx.Query(ctx, `SELECT `+columns+` FROM bulk_job AS j WHERE j.id = $1`, u))
		return err
	})
	return j, added, pg.Wrap(err, "bulk job")
}

func one(rows pgx.Rows, err error) (bulk.Job, error) {
	if err != nil {
		return bulk.Job{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scan)
}

// Get returns a job.
func (s *Store) Get(ctx context.Context, id string) (bulk.Job, error) {
	u, ok := uuid(id)
	if !ok {
		return bulk.Job{}, unknown(id)
	}
	j, err := one(s.pool.Query(ctx, `SELECT `+columns+` FROM bulk_job AS j WHERE j.id = $1`, u))
	if errors.Is(err, pgx.ErrNoRows) {
		return bulk.Job{}, unknown(id)
	}
	return j, pg.Wrap(err, "bulk job %s", id)
}

// List returns the newest jobs first.
func (s *Store) List(ctx context.Context, limit int) ([]bulk.Job, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+` FROM bulk_job AS j ORDER BY j.num DESC LIMIT $1`, limit)
	if err != nil {
		return nil, pg.Wrap(err, "bulk jobs")
	}
	out, err := pgx.CollectRows(rows, scan)
	return out, pg.Wrap(err, "bulk jobs")
}

// Results returns what became of robots.
func (s *Store) Results(ctx context.Context, id string, state bulk.ItemState, after thing.ID, limit int) ([]bulk.Result, error) {
	u, ok := uuid(id)
	if !ok {
		return nil, unknown(id)
	}
	rows, err := s.pool.Query(ctx, `SELECT thing, state, detail, at FROM bulk_item WHERE job = $1 AND ($2 = '' OR state = $2) AND thing > $3 ORDER BY thing LIMIT $4`,
		u, state, after, limit)
	if err != nil {
		return nil, pg.Wrap(err, "results of bulk job %s", id)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[bulk.Result])
	return out, pg.Wrap(err, "results of bulk job %s", id)
}

// Open returns open things of a part.
func (s *Store) Open(ctx context.Context, id string, part, limit int) ([]thing.ID, error) {
	rows, err := s.pool.Query(ctx, `SELECT i.thing FROM bulk_item AS i JOIN bulk_job AS j ON j.id = i.job
		WHERE i.job = $1::text::uuid AND i.part = $2 AND i.state = 'open' AND j.state = 'running' ORDER BY i.thing LIMIT $3`, id, part, limit)
	if err != nil {
		return nil, pg.Wrap(err, "bulk job %s", id)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[thing.ID])
	return out, pg.Wrap(err, "bulk job %s", id)
}

// Close keeps results.
func (s *Store) Close(ctx context.Context, id string, results []bulk.Result) error {
	things, states, details := make([]string, len(results)), make([]string, len(results)), make([]string, len(results))
	for i, r := range results {
		things[i], states[i], details[i] = string(r.Thing), string(r.State), r.Detail
	}
	// One that was dropped meanwhile was done all the same.
	_, err := s.pool.Exec(ctx, `UPDATE bulk_item AS i SET state = r.state, detail = r.detail, at = clock_timestamp()
		FROM unnest($2::text[], $3::text[], $4::text[]) AS r (thing, state, detail)
		WHERE i.job = $1::text::uuid AND i.thing = r.thing AND i.state IN ('open', 'dropped')`, id, things, states, details)
	return pg.Wrap(err, "bulk job %s", id)
}

// Finish ends a job that has nothing open.
func (s *Store) Finish(ctx context.Context, id string) error {
	_, err := s.pool.Exec(ctx, `UPDATE bulk_job AS j SET state = 'done', closed = clock_timestamp() WHERE j.id = $1::text::uuid AND j.state = 'running'
		AND NOT EXISTS (SELECT FROM bulk_item AS i WHERE i.job = j.id AND i.state = 'open')`, id)
	return pg.Wrap(err, "bulk job %s", id)
}

// Cancel ends a job.
func (s *Store) Cancel(ctx context.Context, id string) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE bulk_job SET state = 'cancelled', closed = clock_timestamp() WHERE id = $1::text::uuid AND state = 'running'`, id)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE bulk_item SET state = 'dropped', at = clock_timestamp() WHERE job = $1::text::uuid AND state = 'open'`, id)
		return err
	})
	return pg.Wrap(err, "cancel bulk job %s", id)
}

// Reorder orders open parts again. Those that wait or run already are not ordered twice (infra/jobs).
func (s *Store) Reorder(ctx context.Context) error {
	rows, err := s.pool.Query(ctx, `SELECT j.id::text, coalesce((SELECT array_agg(DISTINCT i.part) FROM bulk_item AS i WHERE i.job = j.id AND i.state = 'open'), '{}')
		FROM bulk_job AS j WHERE j.state = 'running' AND j.created < clock_timestamp() - interval '1 minute'`)
	if err != nil {
		return pg.Wrap(err, "bulk jobs")
	}
	open := map[string][]int{}
	var id string
	var parts []int
	if _, err = pgx.ForEachRow(rows, []any{&id, &parts}, func() error { open[id] = parts; parts = nil; return nil }); err != nil {
		return pg.Wrap(err, "bulk jobs")
	}
	for id, parts := range open {
		if len(parts) == 0 {
			if err := s.Finish(ctx, id); err != nil {
				return err
			}
		}
		for _, p := range parts {
			if err := s.orders.Add(ctx, bulk.TaskRun, bulk.PartID(id, p)); err != nil {
				return fmt.Errorf("bulk job %s: %w", id, err)
			}
		}
	}
	return nil
}

// Forget removes old jobs.
func (s *Store) Forget(ctx context.Context, keep time.Duration) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM bulk_job WHERE closed < clock_timestamp() - $1::interval`, keep)
	return pg.Wrap(err, "forget bulk jobs")
}
