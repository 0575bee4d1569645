// Package webhookpg keeps webhooks, their outbox and their deliveries in Postgres (tables webhook_*). What fills the outbox are triggers on the
// tables of other domains (infra/migrations/0100_webhook.sql, infra/adr/0013).
package webhookpg

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/webhook"
	"kennel/infra/errs"
	"kennel/infra/pg"
)

// Store is a webhook.Store and a webhook.Outbox. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns the store on a migrated database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// fanLock is the advisory lock of the one process that empties the outbox: two would mix up the order of one thing's events.
const fanLock = 0x6b686f6f // "khoo"

const hookColumns = `id::text, url, kinds, filter, note, by_whom, created, disabled, disabled_why, failures, failing_since, retry_at, last_ok, last_error, secret, old_secret, old_until`

func scanHook(row pgx.CollectableRow) (h webhook.Hook, err error) {
	err = row.Scan(&h.ID, &h.URL, &h.Kinds, &h.Filter, &h.Note, &h.By, &h.Created, &h.Disabled, &h.DisabledWhy, &h.Failures, &h.FailingSince, &h.RetryAt, &h.LastOK,
		&h.LastError, &h.Secret, &h.OldSecret, &h.OldUntil)
	return h, err
}

func scanCounted(row pgx.CollectableRow) (h webhook.Hook, err error) {
	err = row.Scan(&h.ID, &h.URL, &h.Kinds, &h.Filter, &h.Note, &h.By, &h.Created, &h.Disabled, &h.DisabledWhy, &h.Failures, &h.FailingSince, &h.RetryAt, &h.LastOK,
		&h.LastError, &h.Secret, &h.OldSecret, &h.OldUntil, &h.Open, &h.Dead)
	return h, err
}

// counted adds how many deliveries wait and how many were given up.
const counted = hookColumns + `, (SELECT count(*) FROM webhook_delivery WHERE hook = h.id AND state = 'open')::int,
	(SELECT count(*) FROM webhook_delivery WHERE hook = h.id AND state = 'dead' AND kind <> 'ping')::int`

func (s *Store) Hooks(ctx context.Context) ([]webhook.Hook, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+counted+` FROM webhook_hook h ORDER BY created, id`)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, scanCounted)
	return out, pg.Err(err)
}

func (s *Store) Hook(ctx context.Context, id string) (webhook.Hook, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+counted+` FROM webhook_hook h WHERE id = $1`, pg.UUID(id))
	if err != nil {
		return webhook.Hook{}, pg.Err(err)
	}
	h, err := pgx.CollectExactlyOneRow(rows, scanCounted)
	return h, unknown(err)
}

func unknown(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return webhook.ErrUnknown
	}
	return pg.Err(err)
}

func (s *Store) Add(ctx context.Context, h webhook.Hook) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM webhook_hook`).Scan(&n); err != nil {
			return err
		}
		if n >= webhook.MaxHooks {
			return errs.Coded(errs.Exhausted, "too_many_webhooks", "%d webhooks exist: want at most %d; remove one first", n, webhook.MaxHooks)
		}
		_, err := tx.Exec(ctx, `INSERT INTO webhook_hook (id, url, kinds, filter, secret, note, by_whom, created, disabled) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			pg.UUID(h.ID), h.URL, h.Kinds, h.Filter, h.Secret, h.Note, h.By, h.Created, h.Disabled)
		return err
	})
}

func (s *Store) Change(ctx context.Context, id string, f func(*webhook.Hook) error) (webhook.Hook, error) {
	var h webhook.Hook
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+hookColumns+` FROM webhook_hook WHERE id = $1 FOR UPDATE`, pg.UUID(id))
		if err != nil {
			return err
		}
		if h, err = pgx.CollectExactlyOneRow(rows, scanHook); err != nil {
			return unknown(err)
		}
		if err := f(&h); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE webhook_hook SET url = $2, kinds = $3, filter = $4, note = $5, disabled = $6, disabled_why = $7, failures = $8, failing_since = $9,
			retry_at = $10, secret = $11, old_secret = $12, old_until = $13 WHERE id = $1`,
			pg.UUID(id), h.URL, h.Kinds, h.Filter, h.Note, h.Disabled, h.DisabledWhy, h.Failures, h.FailingSince, h.RetryAt, h.Secret, h.OldSecret, h.OldUntil)
		return err
	})
	if err != nil {
		return webhook.Hook{}, err
	}
	return s.Hook(ctx, id)
}

func (s *Store) Remove(ctx context.Context, id string) error {
	tag, err := s.pool.Exec(ctx, `DELETE FROM webhook_hook WHERE id = $1`, pg.UUID(id))
	if err == nil && tag.RowsAffected() == 0 {
		return webhook.ErrUnknown
	}
	return pg.Err(err)
}

func (s *Store) FanOut(ctx context.Context, n int, plan func([]webhook.Hook, []webhook.Event) ([]webhook.Delivery, error)) (int, error) {
	taken := 0
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		taken = 0
		var mine bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, fanLock).Scan(&mine); err != nil || !mine {
			return err
		}
		if _, err := tx.Exec(ctx, `WITH over AS (DELETE FROM webhook_problem WHERE gone < clock_timestamp() - $1::interval RETURNING *)
			SELECT webhook_note('problem.gone', thing, gone, json_build_object('kind', split_part(code, '/', 1), 'code', split_part(code, '/', 2)))
			FROM over ORDER BY gone`, webhook.GoneAfter); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `WITH taken AS (
				DELETE FROM webhook_event WHERE seq IN (SELECT seq FROM webhook_event ORDER BY seq LIMIT $1) RETURNING seq, id::text, kind, thing, at, data)
			SELECT id, kind, thing, at, data FROM taken ORDER BY seq`, n)
		if err != nil {
			return err
		}
		events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e webhook.Event, err error) {
			var data []byte
			err = row.Scan(&e.ID, &e.Kind, &e.Thing, &e.At, &data)
			e.Data = data
			return e, err
		})
		if err != nil || len(events) == 0 {
			return err
		}
		if rows, err = tx.Query(ctx, `SELECT `+hookColumns+` FROM webhook_hook ORDER BY created, id FOR KEY SHARE`); err != nil {
			return err
		}
		hooks, err := pgx.CollectRows(rows, scanHook)
		if err != nil {
			return err
		}
		deliveries, err := plan(hooks, events)
		if err != nil {
			return err
		}
		taken = len(events)
		b := &pgx.Batch{}
		for _, d := range deliveries {
			b.Queue(`INSERT INTO webhook_delivery (hook, event, kind, thing, body, created, next_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
				pg.UUID(d.Hook), pg.UUID(d.Event), d.Kind, d.Thing, d.Body, d.Created, d.Next)
		}
		return tx.SendBatch(ctx, b).Close()
	})
	return taken, err
}

func (s *Store) Overfull(ctx context.Context, n int) ([]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT id::text FROM webhook_hook h WHERE disabled IS NULL AND
		EXISTS (SELECT 1 FROM webhook_delivery WHERE hook = h.id AND state = 'open' OFFSET $1)`, n)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Err(err)
}

func (s *Store) DueHooks(ctx context.Context, now time.Time) ([]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT id::text FROM webhook_hook h WHERE disabled IS NULL AND (retry_at IS NULL OR retry_at <= $1) AND
		EXISTS (SELECT 1 FROM webhook_delivery WHERE hook = h.id AND state = 'open' AND next_at <= $1)`, now)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Err(err)
}

const deliveryColumns = `id, hook::text, event::text, kind, thing, created, state, next_at, attempts, last_at, status, latency_us, error`

func scanDelivery(row pgx.CollectableRow) (d webhook.Delivery, err error) {
	err = row.Scan(&d.ID, &d.Hook, &d.Event, &d.Kind, &d.Thing, &d.Created, &d.State, &d.Next, &d.Attempts, &d.Last, &d.Status, &d.LatencyUS, &d.Error)
	return d, err
}

func (s *Store) Due(ctx context.Context, hook string, now time.Time, n int) ([]webhook.Delivery, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+deliveryColumns+`, body FROM webhook_delivery d WHERE hook = $1 AND state = 'open' AND next_at <= $2
		AND NOT EXISTS (SELECT 1 FROM webhook_delivery e WHERE e.hook = d.hook AND e.thing = d.thing AND e.state = 'open' AND e.id < d.id)
		ORDER BY next_at, id LIMIT $3`, pg.UUID(hook), now, n)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d webhook.Delivery, err error) {
		err = row.Scan(&d.ID, &d.Hook, &d.Event, &d.Kind, &d.Thing, &d.Created, &d.State, &d.Next, &d.Attempts, &d.Last, &d.Status, &d.LatencyUS, &d.Error, &d.Body)
		return d, err
	})
	return out, pg.Err(err)
}

func (s *Store) Finish(ctx context.Context, d webhook.Delivery, o webhook.Outcome) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		next := o.Next
		if o.State != webhook.Open {
			next = o.At
		}
		_, err := tx.Exec(ctx, `UPDATE webhook_delivery SET state = $2, next_at = $3, attempts = attempts + 1, last_at = $4, status = $5, latency_us = $6, error = $7
			WHERE id = $1`, d.ID, o.State, next, o.At, o.Status, o.Latency.Microseconds(), o.Error)
		if err != nil {
			return err
		}
		return standing(ctx, tx, d.Hook, o)
	})
}

// standing notes at the hook how its endpoint does.
func standing(ctx context.Context, tx pgx.Tx, hook string, o webhook.Outcome) error {
	var err error
	switch {
	case o.Trouble:
		_, err = tx.Exec(ctx, `UPDATE webhook_hook SET failures = failures + 1, failing_since = coalesce(failing_since, $2), retry_at = greatest(retry_at, $3), last_error = $4
			WHERE id = $1`, pg.UUID(hook), o.At, o.RetryAt, o.Error)
	case o.State == webhook.Done: // once a second is enough for the time
		_, err = tx.Exec(ctx, `UPDATE webhook_hook SET failures = 0, failing_since = NULL, retry_at = NULL, last_ok = $2
			WHERE id = $1 AND (failures > 0 OR last_ok IS NULL OR last_ok < $2::timestamptz - interval '1 second')`, pg.UUID(hook), o.At)
	default:
		_, err = tx.Exec(ctx, `UPDATE webhook_hook SET last_error = $2 WHERE id = $1`, pg.UUID(hook), o.Error)
	}
	return err
}

func (s *Store) Log(ctx context.Context, d webhook.Delivery, o webhook.Outcome) (id int64, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `INSERT INTO webhook_delivery (hook, event, kind, thing, body, created, state, next_at, attempts, last_at, status, latency_us, error)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $6, 1, $8, $9, $10, $11) RETURNING id`,
			pg.UUID(d.Hook), pg.UUID(d.Event), d.Kind, d.Thing, d.Body, d.Created, o.State, o.At, o.Status, o.Latency.Microseconds(), o.Error).Scan(&id)
		if _, gone := pg.Violates(err); gone {
			return webhook.ErrUnknown
		} else if err != nil {
			return err
		}
		return standing(ctx, tx, d.Hook, o)
	})
	return id, err
}

func (s *Store) Deliveries(ctx context.Context, hook string, q webhook.Query) ([]webhook.Delivery, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+deliveryColumns+` FROM webhook_delivery WHERE hook = $1 AND ($2 = '' OR state = $2) AND ($3 = 0 OR id < $3)
		ORDER BY id DESC LIMIT $4`, pg.UUID(hook), q.State, q.Before, q.Limit)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, scanDelivery)
	return out, pg.Err(err)
}

// Replay: a dead delivery makes room for its copy; one that was done stays in the log.
func (s *Store) Replay(ctx context.Context, hook string, id int64, now time.Time) (int, error) {
	var n int
	err := s.pool.QueryRow(ctx, `WITH again AS (SELECT * FROM webhook_delivery WHERE hook = $1 AND kind <> 'ping' AND state <> 'open' AND
				CASE WHEN $2 = 0 THEN state = 'dead' ELSE id = $2 END FOR UPDATE),
			gone AS (DELETE FROM webhook_delivery d USING again WHERE d.id = again.id AND again.state = 'dead'),
			made AS (INSERT INTO webhook_delivery (hook, event, kind, thing, body, created, next_at)
				SELECT hook, event, kind, thing, body, created, $3 FROM again ORDER BY id RETURNING 1)
		SELECT count(*) FROM made`, pg.UUID(hook), id, now).Scan(&n)
	return n, pg.Err(err)
}

func (s *Store) Forget(ctx context.Context, doneBefore, deadBefore time.Time) (int, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM webhook_delivery WHERE state = 'done' AND last_at < $1 OR state = 'dead' AND last_at < $2`, doneBefore, deadBefore)
	return int(tag.RowsAffected()), pg.Err(err)
}

func (s *Store) Follow(ctx context.Context, log *slog.Logger, every time.Duration, step func(context.Context) error) error {
	return pg.Follow(ctx, s.pool, log, "webhook_event", every, step)
}
