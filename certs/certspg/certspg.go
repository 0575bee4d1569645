// Package certspg keeps claims, the inventory of certificates, manufacturing batches and the waiting list in Postgres (tables certs_*).
package certspg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/certs"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Store is a certs.Store, certs.Batches and certs.WaitingList. Safe for concurrent use. Its errors are the sentinels of package certs,
// Unavailable while the database is away, or our own fault.
type Store struct {
	pool *pgxpool.Pool
	// The queries of every enrolment and renewal are batched: after an outage a whole fleet comes back at once.
	standings *gather[standingQuery, certs.Standing]
	held      *gather[certs.Record, bool]
}

// New returns the store on a migrated database.
func New(pool *pgxpool.Pool) *Store {
	s := &Store{pool: pool}
	s.standings, s.held = newGather(s.readStandings), newGather(s.issueHeld)
	return s
}

type standingQuery struct {
	id  thing.ID
	key certs.Key
}

func (s *Store) SetClaim(ctx context.Context, id thing.ID, secret certs.Hash, at time.Time) error {
	tag, err := s.pool.Exec(ctx, `
		INSERT INTO certs_claim (thing, secret_hash, registered_at) VALUES ($1, $2, $3)
		ON CONFLICT (thing) DO UPDATE SET secret_hash = $2, registered_at = $3 WHERE certs_claim.key IS NULL AND certs_claim.revoked_at IS NULL`,
		string(id), secret[:], at)
	if err != nil {
		return fmt.Errorf("write claim: %w", pg.Err(err))
	}
	if tag.RowsAffected() == 0 {
		return certs.ErrBound
	}
	return nil
}

// SetClaims implements certs.Store. It checks for conflicts while it holds locks on the rows, so the result still holds when it writes them.
func (s *Store) SetClaims(ctx context.Context, claims []certs.NewClaim, at time.Time, limit int) ([]certs.LineProblem, error) {
	var problems []certs.LineProblem
	err := pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		problems = nil
		if _, err := tx.Exec(ctx, `CREATE TEMP TABLE certs_delivery (line int, thing text, secret_hash bytea) ON COMMIT DROP`); err != nil {
			return err
		}
		rows := pgx.CopyFromSlice(len(claims), func(i int) ([]any, error) {
			c := claims[i]
			return []any{int32(c.Line), string(c.Thing), c.Secret[:]}, nil
		})
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"certs_delivery"}, []string{"line", "thing", "secret_hash"}, rows); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `ANALYZE certs_delivery`); err != nil { // else the planner assumes 0 rows instead of 100,000
			return err
		}
		if _, err := tx.Exec(ctx, `
			SELECT FROM certs_claim WHERE thing IN (SELECT thing FROM certs_delivery) OR secret_hash IN (SELECT secret_hash FROM certs_delivery)
			ORDER BY thing FOR UPDATE`); err != nil {
			return err
		}
		found, err := tx.Query(ctx, `
			SELECT d.line, CASE WHEN c.revoked_at IS NOT NULL THEN d.thing || ' was revoked: want it released first'
				ELSE d.thing || ' has enrolled with a key of its own: want it released first' END AS problem
			FROM certs_delivery d JOIN certs_claim c USING (thing)
			WHERE (c.key IS NOT NULL AND c.secret_hash IS DISTINCT FROM d.secret_hash) OR c.revoked_at IS NOT NULL
			UNION ALL
			SELECT d.line, 'the secret hash of ' || d.thing || ' also belongs to ' || c.thing || ': want one secret for each thing'
			FROM certs_delivery d JOIN certs_claim c USING (secret_hash) WHERE c.thing <> d.thing
			ORDER BY line LIMIT $1`, limit)
		if err != nil {
			return err
		}
		problems, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (p certs.LineProblem, err error) {
			return p, row.Scan(&p.Line, &p.Problem)
		})
		if err != nil || len(problems) > 0 {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO certs_claim (thing, secret_hash, registered_at) SELECT thing, secret_hash, $1 FROM certs_delivery ORDER BY thing
			ON CONFLICT (thing) DO UPDATE SET secret_hash = excluded.secret_hash, registered_at = $1
			WHERE certs_claim.key IS NULL AND certs_claim.revoked_at IS NULL`, at)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write claims: %w", pg.Err(err))
	}
	return problems, nil
}

func (s *Store) ClaimOf(ctx context.Context, secret certs.Hash) (thing.ID, error) {
	var id string
	if err := s.pool.QueryRow(ctx, `SELECT thing FROM certs_claim WHERE secret_hash = $1`, secret[:]).Scan(&id); err != nil {
		return "", unknown("read claim by secret", err)
	}
	return thing.ID(id), nil
}

func (s *Store) Standing(ctx context.Context, id thing.ID, key certs.Key) (certs.Standing, error) {
	return s.standings.do(ctx, standingQuery{id, key})
}

func (s *Store) readStandings(ctx context.Context, all []standingQuery) ([]certs.Standing, error) {
	things, keys := make([]string, len(all)), make([][]byte, len(all))
	for i, q := range all {
		things[i], keys[i] = string(q.id), q.key[:]
	}
	rows, err := s.pool.Query(ctx, `
		SELECT COALESCE(c.thing, ''), c.secret_hash, c.key, c.revoked_at, COALESCE(k.released, false), COALESCE(k.revoked, false)
		FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY q (thing, key, i)
		LEFT JOIN certs_claim c ON c.thing = q.thing
		LEFT JOIN LATERAL (SELECT bool_or(released) AS released, bool_or(NOT released) AS revoked FROM certs_certificate
			WHERE key = q.key AND revoked_at IS NOT NULL) k ON true
		ORDER BY q.i`, things, keys)
	if err != nil {
		return nil, fmt.Errorf("read claims: %w", pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (st certs.Standing, err error) {
		var id string
		var secret, bound []byte
		var revoked *time.Time
		if err := row.Scan(&id, &secret, &bound, &revoked, &st.KeyReleased, &st.KeyRevoked); err != nil {
			return st, err
		}
		st.Known, st.Thing = id != "", thing.ID(id)
		copy(st.Secret[:], secret) // NULL stays zero
		copy(st.Key[:], bound)
		if revoked != nil {
			st.Revoked = revoked.UTC()
		}
		return st, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read claims: %w", pg.Err(err))
	}
	return out, nil
}

// Issue implements certs.Store: one statement, so that the claim cannot change between the look and the row.
func (s *Store) Issue(ctx context.Context, r certs.Record, from certs.Claim, at time.Time) error {
	if from.Key == r.Key {
		written, err := s.held.do(ctx, r)
		if err == nil && !written {
			err = certs.ErrMoved
		}
		return err
	}
	const row = `INSERT INTO certs_certificate (serial, thing, key, method, not_before, not_after) SELECT $1, $2, $3, $4, $5, $6 FROM c`
	args := []any{r.Serial, string(r.Thing), r.Key[:], r.Method, r.NotBefore, r.NotAfter, at}
	sql := `WITH c AS (INSERT INTO certs_claim (thing, key, registered_at, bound_at) VALUES ($2, $3, $7, $7)
		ON CONFLICT (thing) DO NOTHING RETURNING 1) ` + row
	if from != (certs.Claim{}) {
		sql = `WITH c AS (UPDATE certs_claim SET key = $3, bound_at = $7
				WHERE thing = $2 AND key IS NOT DISTINCT FROM $8 AND secret_hash IS NOT DISTINCT FROM $9 AND revoked_at IS NULL RETURNING 1),
			old AS (UPDATE certs_certificate SET revoked_at = $7, released = true, reason = 'replaced by another key'
				WHERE thing = $2 AND key = $8 AND revoked_at IS NULL AND EXISTS (SELECT FROM c)) ` + row
		args = append(args, orNull(from.Key), orNull(from.Secret))
	}
	tag, err := s.pool.Exec(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("write certificate %s: %w", r.Serial, pg.Err(err))
	}
	if tag.RowsAffected() == 0 {
		return certs.ErrMoved
	}
	return nil
}

// issueHeld writes the rows of certificates for keys that are bound, and reports which it wrote. Claims are looked at under a lock that many
// certificates share and a revocation waits for.
func (s *Store) issueHeld(ctx context.Context, all []certs.Record) ([]bool, error) {
	n := len(all)
	serials, things, keys, methods := make([]string, n), make([]string, n), make([][]byte, n), make([]string, n)
	from, to := make([]time.Time, n), make([]time.Time, n)
	at := make(map[string]int, n)
	for i, r := range all {
		serials[i], things[i], keys[i], methods[i], from[i], to[i] = r.Serial, string(r.Thing), r.Key[:], r.Method, r.NotBefore, r.NotAfter
		at[r.Serial] = i
	}
	rows, err := s.pool.Query(ctx, `
		WITH r AS (SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::timestamptz[], $6::timestamptz[])
			r (serial, thing, key, method, not_before, not_after)),
		c AS (SELECT thing, key FROM certs_claim WHERE thing = ANY ($2) AND revoked_at IS NULL FOR SHARE)
		INSERT INTO certs_certificate (serial, thing, key, method, not_before, not_after)
		SELECT r.* FROM r JOIN c USING (thing) WHERE c.key = r.key
			AND NOT EXISTS (SELECT FROM certs_certificate x WHERE x.key = r.key AND x.revoked_at IS NOT NULL)
		RETURNING serial`, serials, things, keys, methods, from, to)
	if err != nil {
		return nil, fmt.Errorf("write %d certificates: %w", n, pg.Err(err))
	}
	written, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("write %d certificates: %w", n, pg.Err(err))
	}
	out := make([]bool, n)
	for _, serial := range written {
		out[at[serial]] = true
	}
	return out, nil
}

// orNull returns nil for no key or secret.
func orNull[T ~[32]byte](v T) []byte {
	if v == (T{}) {
		return nil
	}
	return v[:]
}

const recordColumns = `serial, thing, key, method, not_before, not_after, revoked_at, released, reason`

func scanRecord(row pgx.CollectableRow) (certs.Record, error) {
	var r certs.Record
	var id string
	var key []byte
	var revoked *time.Time
	if err := row.Scan(&r.Serial, &id, &key, &r.Method, &r.NotBefore, &r.NotAfter, &revoked, &r.Released, &r.Reason); err != nil {
		return r, err
	}
	copy(r.Key[:], key)
	r.Thing, r.NotBefore, r.NotAfter = thing.ID(id), r.NotBefore.UTC(), r.NotAfter.UTC()
	if revoked != nil {
		r.Revoked = revoked.UTC()
	}
	return r, nil
}

func (s *Store) records(ctx context.Context, what, sql string, args ...any) ([]certs.Record, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, pg.Err(err))
	}
	out, err := pgx.CollectRows(rows, scanRecord)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, pg.Err(err))
	}
	return out, nil
}

func (s *Store) Certificates(ctx context.Context, id thing.ID) ([]certs.Record, error) {
	return s.records(ctx, "certificates",
		`SELECT `+recordColumns+` FROM certs_certificate WHERE thing = $1 ORDER BY issued_at DESC, serial LIMIT 100`, string(id))
}

func (s *Store) Revocations(ctx context.Context, before time.Time, limit int) ([]certs.Record, error) {
	var until *time.Time
	if !before.IsZero() {
		until = &before
	}
	return s.records(ctx, "revocations", `SELECT `+recordColumns+` FROM certs_certificate
		WHERE revoked_at IS NOT NULL AND ($1::timestamptz IS NULL OR revoked_at < $1) ORDER BY revoked_at DESC, serial DESC LIMIT $2`, until, limit)
}

// Revoke implements certs.Store. The claim is changed first: a certificate that is being issued either sees that change or is already there
// to be marked.
func (s *Store) Revoke(ctx context.Context, id thing.ID, reason string, at time.Time) (n int, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO certs_claim (thing, registered_at, revoked_at) VALUES ($1, $2, $2)
			ON CONFLICT (thing) DO UPDATE SET revoked_at = COALESCE(certs_claim.revoked_at, $2)`, string(id), at); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE certs_certificate SET revoked_at = $2, reason = $3 WHERE thing = $1 AND revoked_at IS NULL`, string(id),
			at, reason)
		if err != nil {
			return err
		}
		n = int(tag.RowsAffected())
		return changed(ctx, tx)
	})
	return n, pg.Err(err)
}

func (s *Store) Release(ctx context.Context, id thing.ID, secret certs.Hash, reason string, at time.Time) (n int, err error) {
	err = pg.Tx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE certs_claim
			SET secret_hash = $2, key = NULL, bound_at = NULL, revoked_at = NULL, registered_at = $3 WHERE thing = $1`,
			string(id), secret[:], at)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return certs.ErrUnknown
		}
		tag, err = tx.Exec(ctx, `UPDATE certs_certificate SET revoked_at = $2, released = true, reason = $3 WHERE thing = $1 AND revoked_at IS NULL`,
			string(id), at, cmp.Or(reason, "released"))
		if err != nil {
			return err
		}
		n = int(tag.RowsAffected())
		return changed(ctx, tx)
	})
	return n, pg.Err(err)
}

// unknown turns "no row" into ErrUnknown.
func unknown(what string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return certs.ErrUnknown
	}
	return fmt.Errorf("%s: %w", what, pg.Err(err))
}
