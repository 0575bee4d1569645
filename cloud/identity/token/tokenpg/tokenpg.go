// Package tokenpg keeps access tokens and their signing keys in Postgres. A refresh is one round trip and one durable insert.
//
// A change of an association locks its row, so that a refresh comes before the end and is revoked with the rest, or after it and is
// refused. Revocations go by the database's clock, and other processes are told of them.
package tokenpg

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/token"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Channels are notified when a token may have been revoked, and when a signing key may have changed.
const (
	RevokedChannel = "token_revoked"
	KeyChannel     = "token_key"
)

// chunk is how many rows one statement of Prune removes.
const chunk = 1000

// Store is token.Store, token.Inventory, token.KeyStore and token.RevocationStore. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// New returns a store; the schema must be migrated.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// end ends associations that match, and revokes their tokens. It returns what was in force.
func end(ctx context.Context, tx pgx.Tx, where string, arg any, why string) (e token.End, err error) {
	rows, err := tx.Query(ctx, `UPDATE token_association SET ended_at = clock_timestamp(), reason = $2 WHERE `+where+` AND ended_at IS NULL RETURNING id::text, thing`, arg, why)
	if err != nil {
		return e, err
	}
	var ids []string
	var id, name string
	if _, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error {
		ids, e.Things = append(ids, id), append(e.Things, thing.ID(name))
		return nil
	}); err != nil || len(ids) == 0 {
		return e, err
	}
	// A new statement, so that it sees what refreshes stored that held the rows before.
	e.Tokens, err = revoke(ctx, tx, `association = ANY($1::uuid[])`, ids, why)
	return e, err
}

// revoke marks tokens that match, tells everybody, and returns how many were in force.
func revoke(ctx context.Context, tx pgx.Tx, where string, arg any, why string) (n int, err error) {
	err = tx.QueryRow(ctx, `WITH r AS (UPDATE token_token SET revoked_at = greatest(clock_timestamp(), (SELECT max(revoked_at) FROM token_token WHERE revoked_at IS NOT NULL)), reason = $2 WHERE `+where+` AND revoked_at IS NULL RETURNING expires_at)
		SELECT count(*) FILTER (WHERE expires_at > now()) FROM r`, arg, why).Scan(&n)
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `SELECT pg_notify($1, '')`, RevokedChannel)
	return n, err
}

func (s *Store) Associate(ctx context.Context, a token.Association) error {
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		// Two of one robot at once: the second waits, and ends what the first began.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('token ' || $1, 0))`, a.Thing); err != nil {
			return err
		}
		var id, user string
		err := tx.QueryRow(ctx, `SELECT id::text, user_id FROM token_association WHERE thing = $1 AND ended_at IS NULL FOR UPDATE`, a.Thing).Scan(&id, &user)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if id == "" || !a.Keep || user != a.User {
			if _, err := end(ctx, tx, `thing = $1`, a.Thing, "another association began"); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, `INSERT INTO token_association (thing, user_id, created_at) VALUES ($1, $2, $3) RETURNING id::text`,
				a.Thing, a.User, a.First.Issued).Scan(&id); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `INSERT INTO token_token (id, association, how, issued_at, expires_at) VALUES ($1, $2, $3, $4, $5)`,
			a.First.ID, id, a.First.How, a.First.Issued, a.First.Expires); err != nil {
			return err
		}
		if a.Certificate == nil {
			return nil
		}
		_, err = tx.Exec(ctx, setCertificate, a.Thing, a.Certificate)
		return err
	})
	return pg.Wrap(err, "associate %s", a.Thing)
}

// beginTime is how long before its association the credentials that begin with it may have been made.
const beginTime = 30 * time.Second

// Acts reports whether a robot still acts for a user with what it got at time at: that association lasts, and not every token of it was revoked.
func (s *Store) Acts(ctx context.Context, id thing.ID, user string, at time.Time) (acts bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM token_association a WHERE thing = $1 AND user_id = $2 AND ended_at IS NULL AND created_at <= $3
		AND EXISTS (SELECT FROM token_token t WHERE t.association = a.id AND t.revoked_at IS NULL))`, id, user, at.Add(beginTime)).Scan(&acts)
	return acts, pg.Wrap(err, "association of %s", id)
}

func (s *Store) LastUser(ctx context.Context, id thing.ID) (user string, err error) {
	err = s.pool.QueryRow(ctx, `SELECT user_id FROM token_association WHERE thing = $1 ORDER BY num DESC LIMIT 1`, id).Scan(&user)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return user, pg.Wrap(err, "user of %s", id)
}

const (
	// hold keeps the association from ending until the transaction has. It is a statement of its own, so that the next one sees what was
	// committed while it waited.
	hold = `SELECT FROM token_association WHERE thing = $1 AND ended_at IS NULL FOR SHARE`

	// good is the row of an association for which a token that says $1 thing, $2 user, $3 issued, $4 id is good.
	good = `FROM token_association a WHERE a.thing = $1 AND a.user_id = $2 AND a.ended_at IS NULL AND a.created_at <= $3
		AND NOT EXISTS (SELECT FROM token_token t WHERE t.id = $4 AND t.revoked_at IS NOT NULL)`

	refresh = `INSERT INTO token_token (id, association, parent, how, issued_at, expires_at) SELECT $5, a.id, $4, $6, $7, $8 ` + good
)

func (s *Store) Refresh(ctx context.Context, shown token.Access, next token.Token) (token.Standing, error) {
	var b pgx.Batch // one round trip, one transaction
	b.Queue(hold, shown.Thing)
	b.Queue(refresh, shown.Thing, shown.User, shown.Issued, shown.ID, next.ID, next.How, next.Issued, next.Expires)
	res := s.pool.SendBatch(ctx, &b)
	_, err := res.Exec()
	var stored int64
	if err == nil {
		tag, e := res.Exec()
		stored, err = tag.RowsAffected(), e
	}
	if e := res.Close(); err == nil { // commits
		err = e
	}
	if err != nil {
		return 0, pg.Wrap(err, "refresh token of %s", shown.Thing)
	}
	if stored == 1 {
		return token.Good, nil
	}
	st, err := s.Standing(ctx, shown)
	if err == nil && st == token.Good {
		st = token.Ended // another association of the same user's began between the two questions
	}
	return st, err
}

func (s *Store) Standing(ctx context.Context, shown token.Access) (token.Standing, error) {
	var ok, revoked, other bool
	err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT `+good+`),
		EXISTS (SELECT FROM token_token WHERE id = $4 AND revoked_at IS NOT NULL),
		EXISTS (SELECT FROM token_association WHERE thing = $1 AND user_id <> $2 AND ended_at IS NULL)`,
		shown.Thing, shown.User, shown.Issued, shown.ID).Scan(&ok, &revoked, &other)
	switch {
	case err != nil:
		return 0, pg.Wrap(err, "token of %s", shown.Thing)
	case ok:
		return token.Good, nil
	case other:
		return token.OtherUsers, nil
	case revoked:
		return token.IsRevoked, nil
	}
	return token.Ended, nil
}

func (s *Store) End(ctx context.Context, id thing.ID, why string) (e token.End, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		e, err = end(ctx, tx, `thing = $1`, id, why)
		return err
	})
	return e, pg.Wrap(err, "end association of %s", id)
}

func (s *Store) EndUser(ctx context.Context, user, why string) (e token.End, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		// In one order, so that two of them never wait for each other.
		if _, err := tx.Exec(ctx, `SELECT FROM token_association WHERE user_id = $1 AND ended_at IS NULL ORDER BY thing FOR UPDATE`, user); err != nil {
			return err
		}
		e, err = end(ctx, tx, `user_id = $1`, user, why)
		return err
	})
	return e, pg.Wrap(err, "end associations of a user")
}

func (s *Store) RevokeToken(ctx context.Context, id thing.ID, name, why string) (n int, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		// Refreshes of the association wait, and then see what was revoked.
		var association string
		err := tx.QueryRow(ctx, `SELECT a.id::text FROM token_association a JOIN token_token t ON t.association = a.id
			WHERE t.id = $1 AND (a.thing = $2 OR $2 = '') FOR UPDATE OF a`, name, id).Scan(&association)
		if errors.Is(err, pgx.ErrNoRows) {
			return token.ErrUnknown
		}
		if err != nil {
			return err
		}
		n, err = revoke(ctx, tx, `id IN (WITH RECURSIVE line (id) AS (SELECT $1::uuid UNION SELECT t.id FROM token_token t JOIN line ON t.parent = line.id
			WHERE t.association = (SELECT association FROM token_token WHERE id = $1)) SELECT id FROM line)`, name, why)
		return err
	})
	return n, pg.Wrap(err, "revoke token %s", name)
}

const infos = `SELECT t.id::text, t.issued_at, t.expires_at, t.how, a.thing, a.user_id, coalesce(t.parent::text, ''), t.revoked_at, t.reason
	FROM token_token t JOIN token_association a ON a.id = t.association `

func scan(row pgx.CollectableRow) (t token.TokenInfo, err error) {
	var revoked *time.Time
	err = row.Scan(&t.ID, &t.Issued, &t.Expires, &t.How, &t.Thing, &t.User, &t.Parent, &revoked, &t.Reason)
	if revoked != nil {
		t.Revoked = *revoked
	}
	return t, err
}

func (s *Store) Tokens(ctx context.Context, id thing.ID, limit int) ([]token.TokenInfo, error) {
	rows, err := s.pool.Query(ctx, infos+`WHERE a.thing = $1 ORDER BY t.issued_at DESC, a.num DESC, t.id LIMIT $2`, id, limit)
	if err != nil {
		return nil, pg.Wrap(err, "tokens of %s", id)
	}
	out, err := pgx.CollectRows(rows, scan)
	return out, pg.Wrap(err, "tokens of %s", id)
}

func (s *Store) UserTokens(ctx context.Context, user string) ([]token.TokenInfo, error) {
	rows, err := s.pool.Query(ctx, infos+`WHERE a.user_id = $1 ORDER BY t.issued_at, t.id`, user)
	if err != nil {
		return nil, pg.Wrap(err, "tokens of a user")
	}
	out, err := pgx.CollectRows(rows, scan)
	return out, pg.Wrap(err, "tokens of a user")
}

func (s *Store) UserThings(ctx context.Context, user string) ([]thing.ID, error) {
	rows, err := s.pool.Query(ctx, `SELECT DISTINCT thing FROM token_association WHERE user_id = $1 ORDER BY thing`, user)
	if err != nil {
		return nil, pg.Wrap(err, "robots of a user")
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[thing.ID])
	return out, pg.Wrap(err, "robots of a user")
}

func (s *Store) Forget(ctx context.Context, user string) error {
	_, err := s.pool.Exec(ctx, `UPDATE token_association SET user_id = '' WHERE user_id = $1 AND ended_at IS NOT NULL`, user)
	return pg.Wrap(err, "forget a user")
}

func (s *Store) RevokedPage(ctx context.Context, after string, limit int) ([]string, error) {
	if after == "" {
		after = "00000000-0000-0000-0000-000000000000"
	}
	rows, err := s.pool.Query(ctx, `SELECT id::text FROM token_token WHERE revoked_at IS NOT NULL AND expires_at > now() AND id > $1 ORDER BY id LIMIT $2`, after, limit)
	if err != nil {
		return nil, pg.Wrap(err, "revoked tokens")
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, pg.Wrap(err, "revoked tokens")
}

func (s *Store) RevokedSince(ctx context.Context, since time.Time) ([]token.Revoked, error) {
	rows, err := s.pool.Query(ctx, `SELECT id::text, revoked_at, expires_at FROM token_token WHERE revoked_at >= $1 AND expires_at > now()`, since)
	if err != nil {
		return nil, pg.Wrap(err, "revoked tokens")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[token.Revoked])
	return out, pg.Wrap(err, "revoked tokens")
}

func (s *Store) FollowRevoked(ctx context.Context, log *slog.Logger, every time.Duration, read func(context.Context) error) error {
	return pg.Follow(ctx, s.pool, log, RevokedChannel, every, read)
}

const setCertificate = `INSERT INTO token_session_certificate (thing, pem) VALUES ($1, $2)
	ON CONFLICT (thing) DO UPDATE SET pem = excluded.pem, changed_at = clock_timestamp()`

func (s *Store) Certificate(ctx context.Context, id thing.ID) (cert []byte, err error) {
	err = s.pool.QueryRow(ctx, `SELECT pem FROM token_session_certificate WHERE thing = $1`, id).Scan(&cert)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return cert, pg.Wrap(err, "session certificate of %s", id)
}

func (s *Store) SetCertificate(ctx context.Context, id thing.ID, cert []byte) error {
	_, err := s.pool.Exec(ctx, setCertificate, id, cert)
	return pg.Wrap(err, "session certificate of %s", id)
}

func (s *Store) Prune(ctx context.Context, expired, revoked time.Time) error {
	for {
		tag, err := s.pool.Exec(ctx, `DELETE FROM token_token WHERE id IN (SELECT id FROM token_token
			WHERE expires_at < $1 AND (revoked_at IS NULL OR issued_at < $2) LIMIT $3 FOR UPDATE SKIP LOCKED)`, expired, revoked, chunk)
		if err != nil {
			return pg.Wrap(err, "forget tokens")
		}
		if tag.RowsAffected() < chunk {
			break
		}
	}
	for {
		tag, err := s.pool.Exec(ctx, `DELETE FROM token_association WHERE id IN (SELECT a.id FROM token_association a WHERE a.ended_at < $1
			AND NOT EXISTS (SELECT FROM token_token t WHERE t.association = a.id)
			AND EXISTS (SELECT FROM token_association b WHERE b.thing = a.thing AND b.num > a.num) LIMIT $2 FOR UPDATE SKIP LOCKED)`, expired, chunk)
		if err != nil {
			return pg.Wrap(err, "forget associations")
		}
		if tag.RowsAffected() < chunk {
			return nil
		}
	}
}
