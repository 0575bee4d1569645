package ownerpg

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cloud/identity/consent"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// A Hold is a shared advisory lock of each thing's stripe, a change an exclusive one. Stripes bound the locks of a Hold of many things; a lock of the
// lock manager, unlike one of a row, lets no stream of Holds keep a change waiting.
const (
	stripes = `hashtext(thing) & 1023`
	class   = 0x6f776e // of the advisory locks
)

// Hold implements owner.Store.
func (s *Store) Hold(ctx context.Context, ids []thing.ID) (h consent.Hold, err error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return h, pg.Err(err)
	}
	h.Permits = make(map[thing.ID]consent.Permit, len(ids))
	h.Release = sync.OnceFunc(func() {
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		_ = tx.Rollback(rctx) // a connection that cannot is closed, and the locks end with it
	})
	if err := holdIn(ctx, tx, ids, &h); err != nil {
		h.Release()
		return h, pg.Err(err)
	}
	return h, nil
}

const releaseTime = 5 * time.Second

func holdIn(ctx context.Context, tx pgx.Tx, ids []thing.ID, h *consent.Hold) error {
	// Never waiting: who holds owners waits for no change, so that changes may wait for them. The second statement sees what was committed before the locks were there.
	b := &pgx.Batch{}
	b.Queue(`SELECT array_agg(thing) FILTER (WHERE pg_try_advisory_xact_lock_shared($2, `+stripes+`)) FROM unnest($1::text[]) AS u (thing)`, ids, class)
	b.Queue(`SELECT u.thing, CASE WHEN t.until IS NULL THEN coalesce(t.account, '') ELSE '' END, n.now,
			extract(epoch FROM n.now - coalesce(greatest(t.since, t.until), 'epoch'))::float8, extract(epoch FROM n.now - coalesce(o.changed_at, 'epoch'))::float8
		FROM (SELECT clock_timestamp() AS now) n, unnest($1::text[]) AS u (thing)
		LEFT JOIN LATERAL (SELECT account, since, until FROM owner_tenure WHERE thing = u.thing ORDER BY id DESC LIMIT 1) t ON true
		LEFT JOIN owner_thing o ON o.thing = u.thing`, ids)
	asking := time.Now()
	res := tx.SendBatch(ctx, b)
	defer res.Close() // the failed statement's error says it already
	var free []thing.ID
	if err := res.QueryRow().Scan(&free); err != nil {
		return err
	}
	for _, id := range free {
		h.Permits[id] = consent.Permit{}
	}
	rows, err := res.Query()
	if err != nil {
		return err
	}
	var id thing.ID
	var p consent.Permit
	var owned, settled float64
	_, err = pgx.ForEachRow(rows, []any{&id, &p.Account, &h.At, &owned, &settled}, func() error {
		if _, held := h.Permits[id]; held {
			p.Owned, p.Settled = seconds(owned), seconds(settled)
			h.Permits[id] = p
		}
		return nil
	})
	h.At, h.Asked = h.At.UTC(), time.Now()
	h.Took = h.Asked.Sub(asking)
	return err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// unheld runs fn in a transaction during which nothing is stored under Holds of things.
func (s *Store) unheld(ctx context.Context, ids []thing.ID, fn func(tx pgx.Tx) error) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($2, n) FROM (SELECT DISTINCT `+stripes+` AS n FROM unnest($1::text[]) AS u (thing) ORDER BY n) s`, ids, class); err != nil {
			return err
		}
		return fn(tx)
	})
}
