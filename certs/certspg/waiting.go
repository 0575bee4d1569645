package certspg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/certs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// waitingLock is the advisory lock under which new rows are counted and added: the list never grows beyond its limits.
const waitingLock = 0x6b636572_77616974 // "kcerwait"

const waitingColumns = `w.thing, w.key, w.addr, w.first_at, w.last_at, w.times, w.refused_at, w.reason`

// Ask implements certs.WaitingList. A robot that asks again costs one statement; only a new one takes the lock.
func (s *Store) Ask(ctx context.Context, a certs.Ask, l certs.WaitingLimits) (w certs.Waiting, fresh bool, err error) {
	if w, err = s.askAgain(ctx, s.pool, a, l); !errors.Is(err, pgx.ErrNoRows) {
		return w, false, pg.Err(err)
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(waitingLock)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM certs_waiting WHERE `+expired, a.At.Add(-l.Expire), a.At.Add(-l.Refused)); err != nil {
			return err
		}
		w, err = s.askAgain(ctx, tx, a, l) // the same robot asked twice at once
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var all, network, things int
		if err := tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE network = $1), count(*) FILTER (WHERE thing = $2) FROM certs_waiting`,
			a.Network, string(a.Thing)).Scan(&all, &network, &things); err != nil {
			return err
		}
		if all >= l.Max || network >= l.PerNetwork || things >= l.PerThing {
			return certs.ErrFull
		}
		fresh = true
		w = certs.Waiting{Thing: a.Thing, Key: a.Key, Addr: a.Addr, First: a.At, Last: a.At, Times: 1}
		_, err := tx.Exec(ctx, `INSERT INTO certs_waiting (thing, key, addr, network, first_at, last_at) VALUES ($1, $2, $3, $4, $5, $5)`,
			string(a.Thing), a.Key[:], a.Addr, a.Network, a.At)
		return err
	})
	return w, fresh && err == nil, pg.Err(err)
}

// expired is true for an entry that the list has forgotten. $1 and $2 are the latest times at which a request and a refusal count as forgotten.
const expired = `CASE WHEN refused_at IS NULL THEN last_at < $1 ELSE refused_at < $2 END`

type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (s *Store) askAgain(ctx context.Context, db queryer, a certs.Ask, l certs.WaitingLimits) (certs.Waiting, error) {
	rows, err := db.Query(ctx, `UPDATE certs_waiting w SET last_at = $3, times = times + 1, addr = $4
		WHERE thing = $5 AND key = $6 AND NOT (`+expired+`) RETURNING `+waitingColumns,
		a.At.Add(-l.Expire), a.At.Add(-l.Refused), a.At, a.Addr, string(a.Thing), a.Key[:])
	if err != nil {
		return certs.Waiting{}, err
	}
	return pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (w certs.Waiting, err error) { return scanWaiting(row) })
}

func scanWaiting(row pgx.CollectableRow, more ...any) (certs.Waiting, error) {
	var w certs.Waiting
	var id string
	var key []byte
	var refused *time.Time
	if err := row.Scan(append([]any{&id, &key, &w.Addr, &w.First, &w.Last, &w.Times, &refused, &w.Reason}, more...)...); err != nil {
		return w, err
	}
	w.Thing, w.First, w.Last = thing.ID(id), w.First.UTC(), w.Last.UTC()
	copy(w.Key[:], key)
	if refused != nil {
		w.Refused = refused.UTC()
	}
	return w, nil
}

func (s *Store) Waiting(ctx context.Context, at time.Time, l certs.WaitingLimits) ([]certs.Waiting, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT `+waitingColumns+`, c.thing IS NOT NULL, c.key IS NOT NULL, c.revoked_at IS NOT NULL
		FROM certs_waiting w LEFT JOIN certs_claim c USING (thing) WHERE NOT (`+expired+`) ORDER BY w.first_at, w.thing, w.key`,
		at.Add(-l.Expire), at.Add(-l.Refused))
	if err != nil {
		return nil, fmt.Errorf("read waiting list: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (certs.Waiting, error) {
		var known, bound, revoked bool
		w, err := scanWaiting(row, &known, &bound, &revoked)
		w.Known, w.Bound, w.Revoked = known, bound, revoked
		return w, err
	})
	if err != nil {
		return nil, fmt.Errorf("read waiting list: %w", pg.Err(err))
	}
	return out, nil
}

func (s *Store) Approve(ctx context.Context, id thing.ID, key certs.Key, at time.Time) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM certs_waiting WHERE thing = $1 AND key = $2`, string(id), key[:])
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return certs.ErrUnknown
		}
		tag, err = tx.Exec(ctx, `INSERT INTO certs_claim (thing, key, registered_at, bound_at) VALUES ($1, $2, $3, $3)
			ON CONFLICT (thing) DO UPDATE SET key = $2, bound_at = $3
			WHERE certs_claim.revoked_at IS NULL AND (certs_claim.key IS NULL OR certs_claim.key = $2)`,
			string(id), key[:], at)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return certs.ErrBound // and the deletion is undone
		}
		_, err = tx.Exec(ctx, `DELETE FROM certs_waiting WHERE thing = $1`, string(id))
		return err
	})
	return pg.Err(err)
}

func (s *Store) Refuse(ctx context.Context, id thing.ID, key certs.Key, reason string, at time.Time) error {
	tag, err := s.pool.Exec(ctx, `UPDATE certs_waiting SET refused_at = $3, reason = $4 WHERE thing = $1 AND key = $2`, string(id), key[:], at, reason)
	if err != nil {
		return fmt.Errorf("write waiting list: %w", pg.Err(err))
	}
	if tag.RowsAffected() == 0 {
		return certs.ErrUnknown
	}
	return nil
}
