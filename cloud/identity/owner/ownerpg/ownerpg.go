// Package ownerpg keeps whose a robot is in Postgres: the tables owner_* (migration 0095).
//
// The row of a thing in owner_thing is the lock of its ownership: a transaction that changes an owner or a code takes it first and reads in a later
// statement, because a statement that waited for the row would still see what was before. That a thing has one owner at most is an index.
package ownerpg

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/owner"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Channel is notified when a thing got another owner, or its owner other settings.
const Channel = "owner_changed"

// Store is every store that an owner.Service needs. Safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	turns chan struct{} // changes that may wait for a Hold, each with a connection
}

// maxTurns leaves those who hold owners the connections that end their Holds.
const maxTurns = 2

// New returns the store on a migrated database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool, make(chan struct{}, maxTurns)} }

const columns = `id, thing, account, how, since, until, ended, name`

// lasting is the tenure of the thing $1 that has not ended.
const lasting = `SELECT ` + columns + ` FROM owner_tenure WHERE thing = $1 AND until IS NULL`

func tenure(row pgx.CollectableRow) (t owner.Tenure, err error) {
	err = row.Scan(&t.ID, &t.Thing, &t.Account, &t.How, &t.Since, &t.Until, &t.Ended, &t.Name)
	return t, err
}

// one reads a tenure; owner.ErrNone without a row.
func one(rows pgx.Rows, err error) (owner.Tenure, error) {
	if err != nil {
		return owner.Tenure{}, pg.Err(err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, tenure)
	if err != nil {
		return owner.Tenure{}, missing(err)
	}
	return t, nil
}

func many(rows pgx.Rows, err error) ([]owner.Tenure, error) {
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, tenure)
	return out, pg.Err(err)
}

func missing(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return owner.ErrNone
	}
	return pg.Err(err)
}

// lock holds the ownership of a thing until the transaction ends.
func lock(ctx context.Context, tx pgx.Tx, id thing.ID) error {
	_, err := tx.Exec(ctx, `INSERT INTO owner_thing (thing) VALUES ($1) ON CONFLICT (thing) DO UPDATE SET thing = excluded.thing`, id)
	return err
}

// tell notes that something about a thing changed, for every process.
func tell(ctx context.Context, tx pgx.Tx, id thing.ID) error {
	_, err := tx.Exec(ctx, `WITH t AS (UPDATE owner_thing SET changed_at = clock_timestamp() WHERE thing = $1) SELECT pg_notify($2, $1)`, string(id), Channel)
	return err
}

// start begins a tenure. Times of one thing never go back, whatever the clock does.
func start(ctx context.Context, tx pgx.Tx, id thing.ID, account, how string, transfer pgtype.UUID) (owner.Tenure, error) {
	t, err := one(tx.Query(ctx, `INSERT INTO owner_tenure (thing, account, how, transfer, since)
		VALUES ($1, $2, $3, $4, greatest(clock_timestamp(), (SELECT max(until) FROM owner_tenure WHERE thing = $1))) RETURNING `+columns,
		id, account, how, transfer))
	if err != nil {
		return owner.Tenure{}, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO owner_news (account, thing, name, ended, why, at) VALUES ($1, $2, '', false, $3, $4)`, account, id, how, t.Since); err != nil {
		return owner.Tenure{}, err
	}
	return t, tell(ctx, tx, id)
}

// finish ends the lasting tenure of a locked thing if it is account's ("": anyone's), and with it its name, offer and code.
func finish(ctx context.Context, tx pgx.Tx, id thing.ID, account, why string) (owner.Tenure, error) {
	if why != owner.EndErased { // an erased account hears of nothing
		if _, err := tx.Exec(ctx, `INSERT INTO owner_news (account, thing, name, ended, why, at) SELECT account, thing, name, true, $3, greatest(clock_timestamp(), since)
			FROM owner_tenure WHERE thing = $1 AND until IS NULL AND ($2 = '' OR account = $2)`, id, account, why); err != nil {
			return owner.Tenure{}, err
		}
	}
	t, err := one(tx.Query(ctx, `UPDATE owner_tenure SET until = greatest(clock_timestamp(), since), ended = $3, settled = false, name = ''
		WHERE thing = $1 AND until IS NULL AND ($2 = '' OR account = $2) RETURNING `+columns, id, account, why))
	if err != nil {
		return owner.Tenure{}, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM owner_transfer WHERE tenure = $1`, t.ID); err != nil {
		return owner.Tenure{}, err
	}
	if err := dropCode(ctx, tx, id); err != nil {
		return owner.Tenure{}, err
	}
	return t, tell(ctx, tx, id)
}

func dropCode(ctx context.Context, tx pgx.Tx, id thing.ID) error {
	_, err := tx.Exec(ctx, `DELETE FROM owner_code WHERE thing = $1`, id)
	return err
}

// locked runs fn while no other transaction can change the ownership of a thing, and none holds it.
func (s *Store) locked(ctx context.Context, id thing.ID, fn func(tx pgx.Tx) error) error {
	return s.unheld(ctx, []thing.ID{id}, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, id); err != nil {
			return err
		}
		return fn(tx)
	})
}

func (s *Store) Current(ctx context.Context, id thing.ID) (owner.Tenure, error) {
	return one(s.pool.Query(ctx, lasting, id))
}

func (s *Store) Robots(ctx context.Context, account string) ([]owner.Tenure, error) {
	return many(s.pool.Query(ctx, `SELECT `+columns+` FROM owner_tenure WHERE account = $1 AND until IS NULL ORDER BY thing COLLATE "C"`, account))
}

func (s *Store) History(ctx context.Context, id thing.ID, limit int) ([]owner.Tenure, error) {
	return many(s.pool.Query(ctx, `SELECT `+columns+` FROM owner_tenure WHERE thing = $1 ORDER BY id DESC LIMIT $2`, id, limit))
}

func (s *Store) Tenures(ctx context.Context, account string) ([]owner.Tenure, error) {
	return many(s.pool.Query(ctx, `SELECT `+columns+` FROM owner_tenure WHERE account = $1 ORDER BY since, id`, account))
}

func (s *Store) Begin(ctx context.Context, id thing.ID, account, how string, replace bool) (t, before owner.Tenure, err error) {
	err = s.locked(ctx, id, func(tx pgx.Tx) error {
		t, err = one(tx.Query(ctx, lasting, id))
		switch {
		case err == nil && t.Account == account:
			return nil
		case err == nil && !replace:
			return owner.ErrOwned
		case err == nil:
			if before, err = finish(ctx, tx, id, "", owner.EndWiped); err != nil {
				return err
			}
		case !errors.Is(err, owner.ErrNone):
			return err
		}
		if err := dropCode(ctx, tx, id); err != nil {
			return err
		}
		t, err = start(ctx, tx, id, account, how, pgtype.UUID{})
		return err
	})
	return t, before, err
}

// ours reports with ErrNone that the lasting tenure of a thing is not account's ("": that there is none). It comes before the lock, which
// leaves a trace and takes time: others' things and unknown ones cost the same statement.
func (s *Store) ours(ctx context.Context, id thing.ID, account string) error {
	t, err := s.Current(ctx, id)
	if err == nil && account != "" && t.Account != account {
		return owner.ErrNone
	}
	return err
}

func (s *Store) End(ctx context.Context, id thing.ID, account, why string) (t owner.Tenure, err error) {
	if err := s.ours(ctx, id, account); err != nil {
		return owner.Tenure{}, err
	}
	err = s.locked(ctx, id, func(tx pgx.Tx) error {
		t, err = finish(ctx, tx, id, account, why)
		return err
	})
	return t, err
}

func (s *Store) Wiped(ctx context.Context, id thing.ID, key string) (t owner.Tenure, ok bool, err error) {
	err = s.locked(ctx, id, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE owner_thing SET wipe_key = $2 WHERE thing = $1 AND wipe_key <> $2`, id, key)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		t, err = finish(ctx, tx, id, "", owner.EndWiped)
		if errors.Is(err, owner.ErrNone) {
			return dropCode(ctx, tx, id)
		}
		ok = err == nil
		return err
	})
	return t, ok && err == nil, err
}

func (s *Store) Rename(ctx context.Context, id thing.ID, account, name string) (owner.Tenure, error) {
	return one(s.pool.Query(ctx, `UPDATE owner_tenure SET name = $3 WHERE thing = $1 AND account = $2 AND until IS NULL RETURNING `+columns, id, account, name))
}

// standing selects the state of thing $1's claim code.
const standing = `SELECT hash, extract(epoch FROM expires_at - clock_timestamp())::float8, tries, tenure IS NOT NULL FROM owner_code WHERE thing = $1`

func readStanding(row pgx.Row) (owner.Standing, error) {
	var st owner.Standing
	var hash []byte
	var left float64
	if err := row.Scan(&hash, &left, &st.Tries, &st.Used); err != nil {
		return owner.Standing{}, missing(err)
	}
	copy(st.Hash[:], hash)
	st.Expires = time.Duration(left * float64(time.Second))
	return st, nil
}

func (s *Store) PutCode(ctx context.Context, c owner.Code, life time.Duration) (st owner.Standing, err error) {
	err = s.locked(ctx, c.Thing, func(tx pgx.Tx) error {
		st, err = readStanding(tx.QueryRow(ctx, standing, c.Thing))
		if err == nil && st.Hash == c.Hash && !st.Used || err != nil && !errors.Is(err, owner.ErrNone) {
			return err
		}
		if _, err := one(tx.Query(ctx, lasting, c.Thing)); !errors.Is(err, owner.ErrNone) {
			if err == nil {
				err = owner.ErrOwned
			}
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO owner_code (thing, locator, hash, expires_at) VALUES ($1, $2, $3, clock_timestamp() + $4::interval)
			ON CONFLICT (thing) DO UPDATE SET locator = excluded.locator, hash = excluded.hash, expires_at = excluded.expires_at, tries = 0, tenure = NULL`,
			c.Thing, c.Locator, c.Hash[:], life); err != nil {
			return err
		}
		st, err = readStanding(tx.QueryRow(ctx, standing, c.Thing))
		return err
	})
	return st, err
}

func (s *Store) CodeStanding(ctx context.Context, id thing.ID) (owner.Standing, error) {
	return readStanding(s.pool.QueryRow(ctx, standing, id))
}

// TryCode takes no lock of a thing: each of its rows counts by itself.
func (s *Store) TryCode(ctx context.Context, t owner.Try, window time.Duration, max int) (out owner.Tried, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		var left float64
		if err := tx.QueryRow(ctx, `INSERT INTO owner_attempt AS a (account, tries, since) VALUES ($1, 1, clock_timestamp())
			ON CONFLICT (account) DO UPDATE SET
				tries = CASE WHEN a.since < clock_timestamp() - $2::interval THEN 1 ELSE a.tries + 1 END,
				since = CASE WHEN a.since < clock_timestamp() - $2::interval THEN clock_timestamp() ELSE a.since END
			RETURNING tries, extract(epoch FROM since + $2::interval - clock_timestamp())::float8`, t.Account, window).Scan(&out.Attempts, &left); err != nil {
			return err
		}
		out.Window = time.Duration(left * float64(time.Second))
		if out.Attempts > max {
			return nil
		}
		rows, err := tx.Query(ctx, `UPDATE owner_code SET tries = tries + 1
			WHERE CASE WHEN $1 = '' THEN locator = $2 ELSE thing = $1 END AND expires_at > clock_timestamp() AND tries < $4
			RETURNING thing, hash = $3, tries`, string(t.Thing), t.Code.Locator, t.Code.Hash[:], owner.MaxTries)
		if err != nil {
			return err
		}
		out.Things, err = pgx.CollectRows(rows, pgx.RowToStructByPos[owner.TriedThing])
		return err
	})
	return out, err
}

func (s *Store) UseCode(ctx context.Context, c owner.Code, account string) (t owner.Tenure, err error) {
	err = s.locked(ctx, c.Thing, func(tx pgx.Tx) error {
		var used *int64
		if err := tx.QueryRow(ctx, `SELECT tenure FROM owner_code WHERE thing = $1 AND hash = $2 AND expires_at > clock_timestamp()`, c.Thing, c.Hash[:]).Scan(&used); err != nil {
			return missing(err)
		}
		t, err = one(tx.Query(ctx, lasting, c.Thing))
		switch {
		case err == nil && used != nil && t.ID == *used && t.Account == account:
			return nil // the answer was lost
		case used != nil && (err == nil || errors.Is(err, owner.ErrNone)):
			return owner.ErrNone
		case err == nil:
			return owner.ErrOwned
		case !errors.Is(err, owner.ErrNone):
			return err
		}
		if t, err = start(ctx, tx, c.Thing, account, owner.HowCode, pgtype.UUID{}); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE owner_code SET tenure = $2, tries = 0 WHERE thing = $1`, c.Thing, t.ID)
		return err
	})
	return t, err
}

// offers are those that have not expired; what follows chooses.
const offers = `SELECT o.id::text, t.thing, o.expires_at, t.account = $1 FROM owner_transfer o JOIN owner_tenure t ON t.id = o.tenure
	WHERE o.expires_at > clock_timestamp() AND t.until IS NULL `

func (s *Store) PutOffer(ctx context.Context, id thing.ID, account string, recipient []byte, life time.Duration) (o owner.Offer, err error) {
	if err := s.ours(ctx, id, account); err != nil {
		return owner.Offer{}, err
	}
	err = s.locked(ctx, id, func(tx pgx.Tx) error {
		return missing(tx.QueryRow(ctx, `INSERT INTO owner_transfer (tenure, recipient, created_at, expires_at)
			SELECT id, $3, clock_timestamp(), clock_timestamp() + $4::interval FROM owner_tenure WHERE thing = $1 AND account = $2 AND until IS NULL
			ON CONFLICT (tenure) DO UPDATE SET id = gen_random_uuid(), recipient = excluded.recipient, created_at = excluded.created_at, expires_at = excluded.expires_at
			RETURNING id::text, expires_at`, id, account, recipient, life).Scan(&o.ID, &o.Expires))
	})
	if err != nil {
		return owner.Offer{}, err
	}
	o.Thing, o.Mine = id, true
	return o, nil
}

func (s *Store) Offers(ctx context.Context, account string, recipients [][]byte) ([]owner.Offer, error) {
	rows, err := s.pool.Query(ctx, offers+`AND (t.account = $1 OR o.recipient = ANY($2)) ORDER BY o.created_at, o.id`, account, recipients)
	if err != nil {
		return nil, pg.Err(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[owner.Offer])
	return out, pg.Err(err)
}

func (s *Store) AcceptOffer(ctx context.Context, id, account string, recipients [][]byte) (began, before owner.Tenure, err error) {
	began, err = one(s.pool.Query(ctx, `SELECT `+columns+` FROM owner_tenure WHERE account = $1 AND transfer = $2 AND until IS NULL`, account, pg.UUID(id)))
	if !errors.Is(err, owner.ErrNone) {
		return began, before, err // the answer was lost, or the database is
	}
	var th thing.ID
	const good = `FROM owner_transfer o JOIN owner_tenure t ON t.id = o.tenure
		WHERE o.id = $1 AND o.recipient = ANY($2) AND o.expires_at > clock_timestamp() AND t.until IS NULL AND t.account <> $3`
	err = s.pool.QueryRow(ctx, `SELECT t.thing `+good, pg.UUID(id), recipients, account).Scan(&th)
	if err != nil {
		return owner.Tenure{}, owner.Tenure{}, missing(err)
	}
	err = s.locked(ctx, th, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT t.thing `+good, pg.UUID(id), recipients, account).Scan(&th); err != nil {
			return missing(err)
		}
		if before, err = finish(ctx, tx, th, "", owner.EndTransferred); err != nil {
			return err
		}
		began, err = start(ctx, tx, th, account, owner.HowTransfer, pg.UUID(id))
		return err
	})
	if err != nil {
		return owner.Tenure{}, owner.Tenure{}, err
	}
	return began, before, nil
}

func (s *Store) DropOffer(ctx context.Context, id, account string, recipients [][]byte) error {
	const found = `FROM owner_transfer o JOIN owner_tenure t ON t.id = o.tenure WHERE o.id = $1 AND (t.account = $2 OR o.recipient = ANY($3))`
	var th thing.ID
	if err := s.pool.QueryRow(ctx, `SELECT t.thing `+found, pg.UUID(id), account, recipients).Scan(&th); err != nil {
		return missing(err)
	}
	return s.locked(ctx, th, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM owner_transfer WHERE id = $1`, pg.UUID(id))
		if err == nil && tag.RowsAffected() == 0 {
			return owner.ErrNone
		}
		return err
	})
}

func (s *Store) Unsettled(ctx context.Context, account string, limit int) ([]owner.Tenure, error) {
	return many(s.pool.Query(ctx, `SELECT `+columns+` FROM owner_tenure WHERE NOT settled AND ($1 = '' OR account = $1) ORDER BY id LIMIT $2`, account, limit))
}

func (s *Store) Settle(ctx context.Context, id int64) error {
	_, err := s.pool.Exec(ctx, `UPDATE owner_tenure SET settled = true WHERE id = $1 AND NOT settled`, id)
	return pg.Err(err)
}

// Touch tells every process that an account's settings changed, once what is stored by the settings of before is stored.
func (s *Store) Touch(ctx context.Context, account string) error {
	robots, err := s.Robots(ctx, account)
	if err != nil || len(robots) == 0 {
		return err
	}
	ids := make([]thing.ID, len(robots))
	for i, t := range robots {
		ids[i] = t.Thing
	}
	return s.unheld(ctx, ids, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `WITH t AS (UPDATE owner_thing SET changed_at = clock_timestamp() WHERE thing = ANY($1) RETURNING thing)
			SELECT pg_notify($2, thing) FROM t`, ids, Channel)
		return err
	})
}

func (s *Store) Erase(ctx context.Context, account string, recipients [][]byte) error {
	return pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE owner_tenure SET account = '' WHERE account = $1`, account); err != nil {
			return err // one that lasts breaks a rule of the table
		}
		if _, err := tx.Exec(ctx, `DELETE FROM owner_transfer WHERE recipient = ANY($1)`, recipients); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM owner_news WHERE account = $1`, account); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM owner_attempt WHERE account = $1`, account)
		return err
	})
}

// TellNews locks the rows while they are told.
func (s *Store) TellNews(ctx context.Context, max int, told func(ctx context.Context, n owner.News) error) error {
	var first error
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		type row struct {
			ID int64
			owner.News
		}
		first = nil
		rows, err := tx.Query(ctx, `SELECT id, account, thing, name, ended, why, at FROM owner_news ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED`, max)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (x row, err error) {
			err = r.Scan(&x.ID, &x.Account, &x.Thing, &x.Name, &x.Ended, &x.Why, &x.At)
			return x, err
		})
		if err != nil || len(found) == 0 {
			return err
		}
		var done []int64
		for _, x := range found {
			if err := told(ctx, x.News); err != nil {
				first = cmp.Or(first, err)
				continue
			}
			done = append(done, x.ID)
		}
		_, err = tx.Exec(ctx, `DELETE FROM owner_news WHERE id = ANY($1)`, done)
		return err
	})
	return cmp.Or(err, first)
}

func (s *Store) Prune(ctx context.Context, window time.Duration) error {
	for _, sql := range []string{
		`DELETE FROM owner_code WHERE expires_at < clock_timestamp() - $1::interval`,
		`DELETE FROM owner_transfer WHERE expires_at < clock_timestamp() - $1::interval`,
		`DELETE FROM owner_attempt WHERE since < clock_timestamp() - $1::interval`,
	} {
		if _, err := s.pool.Exec(ctx, sql, window); err != nil {
			return pg.Err(err)
		}
	}
	return nil
}

const (
	lookEvery = time.Second
	// overlap is how far a look goes back: longer than a transaction takes.
	overlap = 5 * time.Second
)

// Watch calls changed for every thing whose owner, or whose owner's settings, any process changed, at least once, until ctx ends; then it
// returns nil. Notifications make it fast; what they lose is found by looking each second. changed is called from one goroutine.
func (s *Store) Watch(ctx context.Context, log *slog.Logger, changed func(ctx context.Context, id thing.ID)) error {
	seen := map[thing.ID]time.Time{}
	since := time.Time{}
	return pg.Follow(ctx, s.pool, log, Channel, lookEvery, func(ctx context.Context) (err error) {
		since, err = s.look(ctx, since, seen, changed)
		return err
	})
}

// look tells what changed since shortly before since, but what was seen, and returns the time it looked, by the database's clock. After the
// zero time it begins a moment ago.
func (s *Store) look(ctx context.Context, since time.Time, seen map[thing.ID]time.Time, changed func(context.Context, thing.ID)) (time.Time, error) {
	var now time.Time
	if err := s.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return since, pg.Err(err)
	}
	from := since.Add(-overlap)
	if since.IsZero() {
		from = now.Add(-overlap)
	}
	rows, err := s.pool.Query(ctx, `SELECT thing, changed_at FROM owner_thing WHERE changed_at >= $1 ORDER BY changed_at`, from)
	if err != nil {
		return since, pg.Err(err)
	}
	type change struct {
		Thing thing.ID
		At    time.Time
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[change])
	if err != nil {
		return since, pg.Err(err)
	}
	for _, c := range found {
		if !seen[c.Thing].Equal(c.At) {
			seen[c.Thing] = c.At
			changed(ctx, c.Thing)
		}
	}
	for id, at := range seen {
		if at.Before(from) {
			delete(seen, id)
		}
	}
	return now, nil
}
