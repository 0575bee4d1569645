// Package sessionpg keeps speech sessions in Postgres (migration 0147).
//
// A robot leads to its owner through other tables. Sessions, which name robots, are therefore kept without words, and words without robots: by
// day, version, language and intent, with how often they were said. Words are written in transactions of their own, sorted, at most once a
// minute, so that the order in which rows were written does not join the two either (VEC-NLP-07).
package sessionpg

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/logging"
	"kennel/infra/pg"
	"kennel/infra/thing"
	"kennel/speech/session"
)

const (
	queued      = 4096 // sessions that wait for the database; further ones are dropped
	batch       = 512
	batchEvery  = 250 * time.Millisecond
	wordsEvery  = time.Minute
	maxPhrases  = 10_000 // that wait to be written
	writeTime   = 10 * time.Second
	endTime     = 5 * time.Second
	maxTime     = 24 * time.Hour // of speech, or until an answer
	maxVersions = 200            // that are told apart on one day: a robot may name any
	maxField    = 64
	maxWords    = 200
	maxWhy      = 200
)

// Keeper is session.Keeper. Run must run. Safe for concurrent use.
type Keeper struct {
	pool     *pgxpool.Pool
	allowed  Consent
	log      *slog.Logger
	queue    chan session.Session
	dropped  atomic.Int64
	every    time.Duration // between two writes of words
	words    map[phrase]int64
	today    time.Time
	versions map[string]bool // of today
}

// phrase is the key of speech_words.
type phrase struct {
	day                               time.Time
	firmware, language, intent, words string
}

// Consent returns whether what was said to a robot at a time may be kept: its owner of now was its owner then, and allows data collection. Words are
// kept only then.
type Consent func(ctx context.Context, id thing.ID) func(at time.Time) bool

// NewKeeper returns a keeper.
func NewKeeper(pool *pgxpool.Pool, allowed Consent, log *slog.Logger) *Keeper {
	return &Keeper{pool: pool, allowed: allowed, log: log, queue: make(chan session.Session, queued), every: wordsEvery, words: map[phrase]int64{}, versions: map[string]bool{}}
}

// Keep implements session.Keeper: it never waits.
func (k *Keeper) Keep(_ context.Context, s session.Session) {
	select {
	case k.queue <- s:
	default:
		k.dropped.Add(1)
	}
}

// Dropped returns how many sessions were lost because the database was slow or away.
func (k *Keeper) Dropped() int64 { return k.dropped.Load() }

// Waiting returns how many sessions are queued.
func (k *Keeper) Waiting() int { return len(k.queue) }

// Run writes what is kept, a batch at a time, until ctx ends, and then the rest.
func (k *Keeper) Run(ctx context.Context) error {
	tick, words := time.NewTicker(batchEvery), time.NewTicker(k.every)
	defer tick.Stop()
	defer words.Stop()
	var waiting []session.Session
	for {
		take := k.queue
		if len(waiting) >= batch {
			take = nil // the database is away: the queue holds what comes
		}
		select {
		case s := <-take:
			if waiting = append(waiting, k.known(clean(s))); len(waiting) == batch {
				waiting = k.write(ctx, waiting)
			}
		case <-tick.C:
			waiting = k.write(ctx, waiting)
		case <-words.C:
			k.writeWords(ctx)
		case <-ctx.Done():
			return k.end(waiting)
		}
	}
}

// end writes what waits when the process ends.
func (k *Keeper) end(waiting []session.Session) error {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	for {
		select {
		case s := <-k.queue:
			waiting = append(waiting, k.known(clean(s)))
			continue
		default:
		}
		break
	}
	for part := range slices.Chunk(waiting, batch) {
		k.dropped.Add(int64(len(k.write(ctx, part))))
	}
	k.writeWords(ctx)
	return nil
}

// write stores sessions and returns those that are to be tried again. A session is stored and counted once, however often it is tried.
func (k *Keeper) write(ctx context.Context, all []session.Session) []session.Session {
	if len(all) == 0 {
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	fresh, err := store(ctx, k.pool, all)
	if err != nil && !pg.Retriable(err) && ctx.Err() == nil {
		k.dropped.Add(int64(len(all)))
		k.log.ErrorContext(ctx, "speech sessions refused by the database", "sessions", len(all), logging.Err, err)
		return all[:0]
	}
	if err != nil {
		k.log.WarnContext(ctx, "speech sessions not stored; retrying", "sessions", len(all), logging.Err, err)
		return all
	}
	asked := map[thing.ID]func(time.Time) bool{}
	for _, s := range all {
		if s.SkipDAS || s.Text == "" || !fresh[keyOf(s)] {
			continue
		}
		fresh[keyOf(s)] = false
		may, known := asked[s.Thing]
		if !known {
			may = k.allowed(ctx, s.Thing)
			asked[s.Thing] = may
		}
		p := phrase{day(s.At), s.Firmware, s.Language, s.Cloud, s.Text}
		switch {
		case s.Failed != "":
			p.intent = ""
		case p.intent == "":
			p.intent = s.Kind // a question that was answered
		}
		if _, there := k.words[p]; may(s.At) && (there || len(k.words) < maxPhrases) {
			k.words[p]++
		}
	}
	return all[:0]
}

// key identifies a session that is stored once.
type key struct {
	thing   string
	at      int64
	session string
}

func keyOf(s session.Session) key { return key{s.Thing.String(), s.At.UnixMicro(), s.ID} }

func millis(d time.Duration) int64 { return min(max(d, 0), maxTime).Milliseconds() }

func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// store returns which sessions were not stored before.
func store(ctx context.Context, pool *pgxpool.Pool, all []session.Session) (map[key]bool, error) {
	n := len(all)
	texts := make([][]string, 10)
	for i := range texts {
		texts[i] = make([]string, n)
	}
	at, sure, audio, took, skip := make([]time.Time, n), make([]float32, n), make([]int64, n), make([]int64, n), make([]bool, n)
	for i, s := range all {
		for c, v := range []string{s.Thing.String(), s.ID, s.Kind, s.Language, s.Firmware, s.Encoding, s.Recognizer, s.Cloud, string(s.Failed), s.Why} {
			texts[c][i] = v
		}
		at[i], sure[i], audio[i], took[i], skip[i] = s.At, float32(s.Confidence), millis(s.Audio), millis(s.Took), s.SkipDAS
	}
	args := []any{at, sure, audio, took, skip}
	for _, t := range texts {
		args = append(args, t)
	}
	rows, err := pool.Query(ctx, `WITH fresh AS (
			INSERT INTO speech_session (at, confidence, audio_ms, took_ms, skip_das, thing, session, kind, language, firmware, encoding, recognizer, intent, failed, why)
			SELECT * FROM unnest($1::timestamptz[], $2::real[], $3::int[], $4::int[], $5::bool[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
			ON CONFLICT DO NOTHING RETURNING *
		), days AS (
			INSERT INTO speech_day AS d (day, firmware, language, failed, sessions, took_ms)
			SELECT (at AT TIME ZONE 'UTC')::date, firmware, language, failed, count(*), sum(took_ms) FROM fresh GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
			ON CONFLICT (day, firmware, language, failed) DO UPDATE SET sessions = d.sessions + excluded.sessions, took_ms = d.took_ms + excluded.took_ms
		) SELECT thing, at, session FROM fresh`, args...)
	if err != nil {
		return nil, pg.Err(err)
	}
	defer rows.Close()
	fresh := map[key]bool{}
	for rows.Next() {
		var id, name string
		var t time.Time
		if err := rows.Scan(&id, &t, &name); err != nil {
			return nil, pg.Err(err)
		}
		fresh[key{id, t.UnixMicro(), name}] = true
	}
	return fresh, pg.Err(rows.Err())
}

// writeWords stores the phrases that wait, in the order of the alphabet. They wait on if that fails.
func (k *Keeper) writeWords(ctx context.Context) {
	if len(k.words) == 0 {
		return
	}
	all := slices.SortedFunc(maps.Keys(k.words), func(a, b phrase) int {
		if c := a.day.Compare(b.day); c != 0 {
			return c
		}
		return slices.Compare([]string{a.firmware, a.language, a.intent, a.words}, []string{b.firmware, b.language, b.intent, b.words})
	})
	n := len(all)
	days, firmware, language, intent, words, times := make([]time.Time, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]int64, n)
	for i, p := range all {
		days[i], firmware[i], language[i], intent[i], words[i], times[i] = p.day, p.firmware, p.language, p.intent, p.words, k.words[p]
	}
	if _, err := k.pool.Exec(ctx, `INSERT INTO speech_words AS w (day, firmware, language, intent, words, times)
		SELECT * FROM unnest($1::date[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
		ON CONFLICT (day, firmware, language, intent, words) DO UPDATE SET times = w.times + excluded.times`, days, firmware, language, intent, words, times); err != nil {
		k.log.WarnContext(ctx, "phrases not stored; retrying", "phrases", n, logging.Err, pg.Err(err))
		return
	}
	clear(k.words)
}

// clean returns s with fields that a database takes, whatever a robot sent, and without words where they do not belong.
func clean(s session.Session) session.Session {
	for _, f := range []*string{&s.ID, &s.Kind, &s.Language, &s.Firmware, &s.Encoding, &s.Recognizer, &s.Cloud} {
		*f = clip(*f, maxField)
	}
	said := words(s.Text)
	if said != "" && strings.Contains(words(s.Why), said) {
		s.Why = "" // the words stay out of what names the robot
	}
	s.Text, s.Why = clip(said, maxWords), clip(s.Why, maxWhy)
	if s.SkipDAS || s.Thing == "" { // an owner who is unknown allowed nothing
		s.Text = ""
	}
	s.At = s.At.Truncate(time.Microsecond)
	return s
}

// words returns s in lower case, with one space for each run of what is no printable letter or sign.
func words(s string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, " "), func(r rune) bool { return r == ' ' || unprintable(r) }), " "))
}

func unprintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// known returns s with a version that sums can have a row for. Those beyond the first maxVersions of a day are "other".
func (k *Keeper) known(s session.Session) session.Session {
	if d := day(s.At); d.After(k.today) {
		k.today = d
		clear(k.versions)
	}
	if len(k.versions) >= maxVersions && !k.versions[s.Firmware] {
		s.Firmware = "other"
		return s
	}
	k.versions[s.Firmware] = true
	return s
}

// clip returns the printable part of s, at most so many bytes.
func clip(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unprintable(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}
