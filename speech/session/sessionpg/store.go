package sessionpg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/speech/session"
)

// Store reads what a Keeper wrote, and forgets it. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a store; the schema must be migrated.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Sessions returns the latest sessions first. Their words are not kept.
func (s *Store) Sessions(ctx context.Context, w session.Which) ([]session.Session, error) {
	rows, err := s.pool.Query(ctx, `SELECT session, thing, at, kind, language, firmware, encoding, recognizer, '', intent, confidence, failed, why, audio_ms * 1000000::bigint, took_ms * 1000000::bigint, skip_das
		FROM speech_session WHERE ($1 = '' OR thing = $1) AND ($2 = '' OR firmware = $2) AND ($3 = '' OR language = $3) AND ($4 = '' OR failed = $4) AND (NOT $5 OR failed <> '') AND at >= $6
		ORDER BY at DESC, thing, session LIMIT $7`, w.Thing.String(), w.Firmware, w.Language, string(w.Step), w.Failed || w.Step != "", w.Since, w.Limit)
	if err != nil {
		return nil, pg.Wrap(err, "speech sessions")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[session.Session])
	return out, pg.Wrap(err, "speech sessions")
}

// Groups sums up the sessions since the day of a time, the most frequent group first.
func (s *Store) Groups(ctx context.Context, since time.Time, limit int) ([]session.Group, error) {
	rows, err := s.pool.Query(ctx, `SELECT firmware, language, sum(n)::bigint, coalesce(sum(n) FILTER (WHERE failed = ''), 0)::bigint,
			coalesce(jsonb_object_agg(failed, n) FILTER (WHERE failed <> ''), '{}'), (coalesce(sum(took) FILTER (WHERE failed = '') / max(n) FILTER (WHERE failed = ''), 0) * 1000000)::bigint
		FROM (SELECT firmware, language, failed, sum(sessions) AS n, sum(took_ms) AS took FROM speech_day WHERE day >= $1 GROUP BY firmware, language, failed) AS d
		GROUP BY firmware, language ORDER BY 3 DESC, 1, 2 LIMIT $2`, day(since), limit)
	if err != nil {
		return nil, pg.Wrap(err, "sums of speech sessions")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[session.Group])
	return out, pg.Wrap(err, "sums of speech sessions")
}

// Unmatched returns the phrases that were not understood since the day of a time and were said at least so many times, the most frequent first, and
// how many others there were.
func (s *Store) Unmatched(ctx context.Context, since time.Time, atLeast, limit int) (out []session.Phrase, rarer int64, err error) {
	const of = `WITH p AS (SELECT words, language, '' AS intent, sum(times)::bigint AS n, max(day)::timestamptz AS last FROM speech_words WHERE day >= $1 AND intent = '' GROUP BY 1, 2) `
	rows, err := s.pool.Query(ctx, of+`SELECT * FROM p WHERE n >= $2 ORDER BY n DESC, words, language LIMIT $3`, day(since), atLeast, limit)
	if err == nil {
		out, err = pgx.CollectRows(rows, pgx.RowToStructByPos[session.Phrase])
	}
	if err == nil {
		err = s.pool.QueryRow(ctx, of+`SELECT count(*) FROM p WHERE n < $2`, day(since), atLeast).Scan(&rarer)
	}
	return out, rarer, pg.Wrap(err, "unmatched phrases")
}

// Expire deletes sessions and words from before a time, and sums from before another. It may be repeated.
func (s *Store) Expire(ctx context.Context, before, sums time.Time) (int64, error) {
	t, err := s.pool.Exec(ctx, `DELETE FROM speech_session WHERE at < $1`, before)
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM speech_words WHERE day < $1`, day(before))
	}
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM speech_day WHERE day < $1`, day(sums))
	}
	return t.RowsAffected(), pg.Wrap(err, "expire speech sessions")
}

// Drop deletes a robot's sessions of a stretch of time, and returns how many.
func (s *Store) Drop(ctx context.Context, of thing.Stretch) (int, error) {
	t, err := s.pool.Exec(ctx, `DELETE FROM speech_session WHERE thing = $1 AND at >= $2 AND at < $3`, of.Thing.String(), of.Since, of.Until)
	return int(t.RowsAffected()), pg.Wrap(err, "delete speech sessions")
}

// Of returns a robot's sessions of a stretch of time.
func (s *Store) Of(ctx context.Context, of thing.Stretch) (any, error) {
	rows, err := s.pool.Query(ctx, `SELECT at, kind, language, firmware, intent, failed, why, audio_ms, took_ms FROM speech_session WHERE thing = $1 AND at >= $2 AND at < $3 ORDER BY at`,
		of.Thing.String(), of.Since, of.Until)
	if err != nil {
		return nil, pg.Wrap(err, "export speech sessions")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToMap)
	return out, pg.Wrap(err, "export speech sessions")
}

// SetAudio notes that an account wants the audio of its robot kept, or no longer.
func (s *Store) SetAudio(ctx context.Context, id thing.ID, account string, keep bool, now time.Time) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM speech_audio WHERE thing = $1 AND (NOT $3 OR owner <> $2)`, id.String(), account, keep)
	if err == nil && keep {
		_, err = s.pool.Exec(ctx, `INSERT INTO speech_audio (thing, owner, since) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, id.String(), account, now)
	}
	return pg.Wrap(err, "audio of %s", id)
}

// EndAudio forgets the wish for the audio of a robot, if it is from before a time.
func (s *Store) EndAudio(ctx context.Context, id thing.ID, before time.Time) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM speech_audio WHERE thing = $1 AND since < $2`, id.String(), before)
	return pg.Wrap(err, "audio of %s", id)
}

// Audio returns who wants the audio of a robot kept, and since when; "": no one.
func (s *Store) Audio(ctx context.Context, id thing.ID) (account string, since time.Time, err error) {
	err = s.pool.QueryRow(ctx, `SELECT owner, since FROM speech_audio WHERE thing = $1`, id.String()).Scan(&account, &since)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", since, nil
	}
	return account, since, pg.Wrap(err, "audio of %s", id)
}
