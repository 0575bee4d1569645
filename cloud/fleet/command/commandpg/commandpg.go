// Package commandpg keeps the outbox of commands in Postgres: tables command_outbox and command_due (migration 0080).
//
// command_due has one row per thing that ever got a command. A transaction that changes which of a thing's commands is the oldest open one locks that
// row first and reads the commands in a later statement: a statement that waited for the row would still see the commands of before.
package commandpg

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/command"
	"kennel/infra/api/commandwire"
	"kennel/infra/errs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Channel is notified whenever a command may be due.
const Channel = "command_due"

// chunk is how many rows one statement of Expire and Forget changes.
const chunk = 1000

// Store is command.Store and command.Outbox. It is safe for concurrent use.
type Store struct {
	pool       *pgxpool.Pool
	first, max time.Duration
}

var (
	_ command.Store  = (*Store)(nil)
	_ command.Outbox = (*Store)(nil)
)

// Option changes a Store.
type Option func(*Store)

// WithPace sets the first and the longest pause before a command is sent again.
func WithPace(first, longest time.Duration) Option {
	return func(s *Store) { s.first, s.max = first, longest }
}

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool, opts ...Option) *Store {
	s := &Store{pool, command.Resend, command.MaxResend}
	for _, o := range opts {
		o(s)
	}
	return s
}

const columns = `id::text, thing, kind, args, by_whom, created, expires, state, sends, closed, status, detail, finished_ms`

func scan(row pgx.CollectableRow) (c command.Command, err error) {
	var status, detail *string
	var finished *int64
	err = row.Scan(&c.ID, &c.Thing, &c.Kind, (*[]byte)(&c.Args), &c.By, &c.Created, &c.Expires, &c.State, &c.Sends, &c.Closed, &status, &detail, &finished)
	if status != nil {
		c.Result = &command.Result{Status: commandwire.Status(*status), Detail: value(detail), FinishedMS: value(finished)}
	}
	return c, err
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Add keeps d and notifies the senders.
func (s *Store) Add(ctx context.Context, d command.Draft) (c command.Command, added bool, err error) {
	if commandwire.Waits(d.Kind) { // a flood of what is refused must not hold the thing's row, which senders pass by while it is locked
		var full bool
		err := s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM command_outbox WHERE thing = $1 AND closed IS NULL) >= $2
			AND NOT EXISTS (SELECT FROM command_outbox WHERE thing = $1 AND by_whom = $3 AND key = $4)`, d.Thing, commandwire.MaxOpen-commandwire.MaxUrgent, d.By, optional(d.Key)).Scan(&full)
		if err != nil {
			return c, false, pg.Wrap(err, "command for %s", d.Thing)
		}
		if full {
			return c, false, tooMany(d.Thing)
		}
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		// From here on the thing's other commands wait for this one.
		_, err := tx.Exec(ctx, `INSERT INTO command_due AS d (thing, next_send) VALUES ($1, now())
			ON CONFLICT (thing) DO UPDATE SET next_send = CASE WHEN d.next_send = 'infinity' OR $2 THEN now() ELSE d.next_send END,
				tries = CASE WHEN d.next_send = 'infinity' OR $2 THEN 0 ELSE d.tries END`, d.Thing, !commandwire.Waits(d.Kind))
		if err != nil {
			return err
		}
		if d.Key != "" {
			c, err = one(tx.Query(ctx, keyed, d.Thing, d.By, d.Key))
			if !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
		}
		var open int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM command_outbox WHERE thing = $1 AND closed IS NULL`, d.Thing).Scan(&open); err != nil {
			return err
		}
		switch waits := commandwire.Waits(d.Kind); {
		case waits && open >= commandwire.MaxOpen-commandwire.MaxUrgent, !commandwire.Urgent(d.Kind) && open >= commandwire.MaxOpen:
			return tooMany(d.Thing)
		case open >= commandwire.MaxOpen: // a stop is never refused: it takes the place of an earlier one, or of a hold if there is none
			if _, err := tx.Exec(ctx, `UPDATE command_outbox SET state = 'expired', closed = clock_timestamp() WHERE id =
				(SELECT id FROM command_outbox WHERE thing = $1 AND closed IS NULL ORDER BY kind = $3 DESC, kind = ANY ($2) DESC, num LIMIT 1)`, d.Thing, commandwire.UrgentKinds, commandwire.RobotStop); err != nil {
				return err
			}
		}
		c, err = one(tx.Query(ctx, `INSERT INTO command_outbox (thing, kind, args, by_whom, key, account, expires, created)
			VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7::interval, GREATEST(clock_timestamp(),
				(SELECT created + interval '1 us' FROM command_outbox WHERE thing = $1 ORDER BY num DESC LIMIT 1))) RETURNING `+columns,
			d.Thing, d.Kind, []byte(d.Args), d.By, optional(d.Key), optional(d.Account), d.TTL))
		if err != nil {
			return err
		}
		added = true
		_, err = tx.Exec(ctx, `SELECT pg_notify($1, $2)`, Channel, string(d.Thing))
		return err
	})
	if errs.KindOf(err) == errs.Exhausted { // a sender may have passed the thing by meanwhile
		_, nerr := s.pool.Exec(ctx, `SELECT pg_notify($1, $2)`, Channel, string(d.Thing))
		return c, false, errors.Join(err, nerr)
	}
	return c, added, pg.Wrap(err, "command for %s", d.Thing)
}

func tooMany(id thing.ID) error {
	return errs.Coded(errs.Exhausted, "too_many_open", "%s has too many open commands; wait for results or expiry", id)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func one(rows pgx.Rows, err error) (command.Command, error) {
	if err != nil {
		return command.Command{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scan)
}

// keyed selects the command of a thing that a sender gave with a key of their own.
const keyed = `SELECT ` + columns + ` FROM command_outbox WHERE thing = $1 AND by_whom = $2 AND key = $3`

// Keyed implements command.Store.
func (s *Store) Keyed(ctx context.Context, d command.Draft) (command.Command, error) {
	c, err := one(s.pool.Query(ctx, keyed, d.Thing, d.By, optional(d.Key)))
	if errors.Is(err, pgx.ErrNoRows) {
		return c, unknown(d.Thing, d.Key)
	}
	return c, pg.Wrap(err, "command of %s with key %q", d.Thing, d.Key)
}

// Get returns one command of a thing.
func (s *Store) Get(ctx context.Context, id thing.ID, name string) (command.Command, error) {
	if !commandwire.IsID(name) {
		return command.Command{}, unknown(id, name)
	}
	c, err := one(s.pool.Query(ctx, `SELECT `+columns+` FROM command_outbox WHERE id = $1 AND thing = $2`, name, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return c, unknown(id, name)
	}
	return c, pg.Wrap(err, "command %s of %s", name, id)
}

func unknown(id thing.ID, name string) error {
	return errs.Coded(errs.NotFound, "no_command", "%s has no command %.64q", id, name)
}

// List returns the newest first.
func (s *Store) List(ctx context.Context, id thing.ID, open bool, limit int) ([]command.Command, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+columns+` FROM command_outbox WHERE thing = $1 AND (closed IS NULL OR NOT $2) ORDER BY num DESC LIMIT $3`, id, open, limit)
	if err != nil {
		return nil, pg.Wrap(err, "commands of %s", id)
	}
	out, err := pgx.CollectRows(rows, scan)
	return out, pg.Wrap(err, "commands of %s", id)
}

// pause is the SQL of the time until the next sending after $tries: first * 2^tries, at most max, and up to a quarter more.
const pause = `LEAST($1::interval * power(2, LEAST(d.tries, 20)), $2::interval) * (1 + random() / 4)`

// Open returns what may still begin and counts it as sent: the senders leave the thing alone for the first pause.
func (s *Store) Open(ctx context.Context, id thing.ID) (out []command.Outgoing, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE command_due d SET tries = 1, next_send = now() + $1::interval WHERE thing = $2 AND next_send < 'infinity'`, s.first, id)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		rows, err := tx.Query(ctx, `UPDATE command_outbox SET state = 'sent', sends = sends + 1 WHERE thing = $1 AND closed IS NULL AND expires > clock_timestamp()
			RETURNING num, id::text, thing, kind, args, created, expires - clock_timestamp()`, id)
		if err != nil {
			return err
		}
		out, err = outgoing(rows)
		return err
	})
	return out, pg.Wrap(err, "open commands of %s", id)
}

// outgoing reads rows and puts them into the order in which commands were given.
func outgoing(rows pgx.Rows) ([]command.Outgoing, error) {
	type numbered struct {
		num int64
		out command.Outgoing
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n numbered, err error) {
		err = row.Scan(&n.num, &n.out.ID, &n.out.Thing, &n.out.Kind, (*[]byte)(&n.out.Args), &n.out.Given, &n.out.Expire)
		return n, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b numbered) int { return cmp.Compare(a.num, b.num) })
	out := make([]command.Outgoing, len(list))
	for i, n := range list {
		out[i] = n.out
	}
	return out, nil
}

// Due takes what is to be sent now: the oldest open command of each thing whose time has come, what is urgent before any other.
func (s *Store) Due(ctx context.Context, limit int) (out []command.Outgoing, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT thing FROM command_due WHERE next_send <= now() ORDER BY next_send LIMIT $1 FOR UPDATE SKIP LOCKED`, limit)
		if err != nil {
			return err
		}
		things, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(things) == 0 {
			return err
		}
		rows, err = tx.Query(ctx, `UPDATE command_outbox o SET state = 'sent', sends = o.sends + 1
			FROM unnest($1::text[]) t (thing) CROSS JOIN LATERAL
				(SELECT id FROM command_outbox c WHERE c.thing = t.thing AND c.closed IS NULL AND c.expires > clock_timestamp() ORDER BY c.kind = ANY($2) DESC, c.kind = $3 DESC, c.num LIMIT 1) h
			WHERE o.id = h.id AND o.closed IS NULL
			RETURNING o.num, o.id::text, o.thing, o.kind, o.args, o.created, o.expires - clock_timestamp()`, things, commandwire.UrgentKinds, commandwire.RobotRelease)
		if err != nil {
			return err
		}
		if out, err = outgoing(rows); err != nil {
			return err
		}
		busy := make([]string, len(out))
		for i, o := range out {
			busy[i] = string(o.Thing)
		}
		_, err = tx.Exec(ctx, `UPDATE command_due d SET tries = d.tries + 1,
				next_send = CASE WHEN d.thing = ANY($3) THEN now() + `+pause+` ELSE 'infinity' END
			WHERE d.thing = ANY($4)`, s.first, s.max, busy, things)
		return err
	})
	if err != nil {
		return nil, pg.Wrap(err, "commands to send")
	}
	return out, nil
}

// Close keeps the first result and makes the thing's next command due.
func (s *Store) Close(ctx context.Context, id thing.ID, name string, state command.State, r command.Result) (c command.Command, err error) {
	if !commandwire.IsID(name) {
		return c, unknown(id, name)
	}
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT FROM command_due WHERE thing = $1 FOR UPDATE`, id); err != nil {
			return err
		}
		c, err = one(tx.Query(ctx, `UPDATE command_outbox SET state = $3, status = $4, detail = $5, finished_ms = $6, closed = clock_timestamp()
			WHERE id = $1 AND thing = $2 AND closed IS NULL RETURNING `+columns, name, id, state, r.Status, r.Detail, r.FinishedMS))
		if errors.Is(err, pgx.ErrNoRows) {
			// Closed before, or unknown: the stored state is the answer.
			c, err = one(tx.Query(ctx, `SELECT `+columns+` FROM command_outbox WHERE id = $1 AND thing = $2`, name, id))
			if errors.Is(err, pgx.ErrNoRows) {
				return unknown(id, name)
			}
			return err
		}
		if err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, `UPDATE command_due SET tries = 0, next_send = now() WHERE thing = $1`, id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `SELECT pg_notify($1, $2)`, Channel, string(id))
		return err
	})
	return c, pg.Wrap(err, "result of command %s of %s", name, id)
}

// Expire closes what is open later than grace after its expiry.
func (s *Store) Expire(ctx context.Context, grace time.Duration) (int, error) {
	n, err := s.inChunks(ctx, `UPDATE command_outbox SET state = 'expired', closed = clock_timestamp() WHERE id IN
		(SELECT id FROM command_outbox WHERE closed IS NULL AND expires < now() - $1::interval ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)`, grace)
	return n, pg.Wrap(err, "expire commands")
}

// Forget removes what was closed longer than keep ago.
func (s *Store) Forget(ctx context.Context, keep time.Duration) (int, error) {
	n, err := s.inChunks(ctx, `DELETE FROM command_outbox WHERE id IN
		(SELECT id FROM command_outbox WHERE closed < now() - $1::interval LIMIT $2 FOR UPDATE SKIP LOCKED)`, keep)
	return n, pg.Wrap(err, "forget commands")
}

// inChunks repeats sql until it finds less than a chunk: short transactions, and what was done stays done when the time is up.
func (s *Store) inChunks(ctx context.Context, sql string, age time.Duration) (total int, err error) {
	for {
		tag, err := s.pool.Exec(ctx, sql, age, chunk)
		if err != nil {
			return total, err
		}
		n := int(tag.RowsAffected())
		if total += n; n < chunk {
			return total, nil
		}
	}
}

func (s *Store) Follow(ctx context.Context, log *slog.Logger, every time.Duration, send func(context.Context) error) error {
	return pg.Follow(ctx, s.pool, log, Channel, every, send)
}
