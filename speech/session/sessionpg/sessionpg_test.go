package sessionpg

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/speech/session"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	now   = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	rex   = thing.MustParse("vic:00e20100")
	quiet = slog.New(slog.NewTextHandler(io.Discard, nil))
)

func all(context.Context, thing.ID) func(time.Time) bool { return func(time.Time) bool { return true } }

// keep stores sessions as a process does that begins and ends.
func keep(t *testing.T, pool *pgxpool.Pool, allowed Consent, sessions ...session.Session) *Keeper {
	t.Helper()
	k := NewKeeper(pool, allowed, quiet)
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	for _, s := range sessions {
		k.Keep(ctx, s)
	}
	end()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return k
}

func spoken(n int, change ...func(*session.Session)) session.Session {
	s := session.Session{ID: fmt.Sprint(n), Thing: rex, At: now.Add(time.Duration(n) * time.Second), Kind: "intent", Language: "en-US", Firmware: "2.0.1", Encoding: "opus", Recognizer: "fixed",
		Text: "Go  Forward", Cloud: "intent_imperative_forward", Confidence: 0.5, Audio: time.Second, Took: 100 * time.Millisecond}
	for _, f := range change {
		f(&s)
	}
	return s
}

func failed(step session.Step, text string) func(*session.Session) {
	return func(s *session.Session) { s.Failed, s.Why, s.Text, s.Cloud = step, "of a test", text, "" }
}

// TestKeepAndRead: what is kept is read, without its words (VEC-NLP-07), and sums are right.
func TestKeepAndRead(t *testing.T) {
	pool := pgtest.New(t)
	keep(t, pool, all, spoken(1), spoken(1), spoken(2, failed(session.Match, "sing me a song")), spoken(3, failed(session.Match, "Sing me a SONG")),
		spoken(4, failed(session.Recognize, "")), spoken(5, failed(session.Match, "my name is Ada")), spoken(6, func(s *session.Session) { s.Language, s.Took = "de-DE", 300*time.Millisecond }))
	s := NewStore(pool)
	got, err := s.Sessions(t.Context(), session.Which{Thing: rex, Limit: 1})
	want := spoken(6, func(s *session.Session) { s.Language, s.Took, s.Text = "de-DE", 300*time.Millisecond, "" })
	if err != nil || len(got) != 1 || !got[0].At.Equal(want.At) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got[0].At = want.At; !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := s.Sessions(t.Context(), session.Which{Failed: true, Language: "en-US", Limit: 10}); err != nil || len(got) != 4 || got[0].ID != "5" || got[0].Why != "of a test" {
		t.Errorf("failed: %+v, %v; want 5, 4, 3, 2", got, err)
	}
	groups, err := s.Groups(t.Context(), now, 10)
	wantGroups := []session.Group{
		{Firmware: "2.0.1", Language: "en-US", Sessions: 5, Ended: 1, Failed: map[session.Step]int64{session.Match: 3, session.Recognize: 1}, Took: 100 * time.Millisecond},
		{Firmware: "2.0.1", Language: "de-DE", Sessions: 1, Ended: 1, Failed: map[session.Step]int64{}, Took: 300 * time.Millisecond},
	}
	if err != nil || !reflect.DeepEqual(groups, wantGroups) {
		t.Errorf("groups %+v, %v; want %+v", groups, err, wantGroups)
	}
	phrases, rarer, err := s.Unmatched(t.Context(), now, 2, 10)
	if err != nil || rarer != 1 || len(phrases) != 1 || phrases[0].Words != "sing me a song" || phrases[0].Times != 2 {
		t.Errorf("unmatched %+v and %d rarer, %v; want one phrase of 2, and one rarer", phrases, rarer, err)
	}
}

// TestWordsLeadToNoRobot (VEC-NLP-07): no table of the database has a robot, or what a session is found by, in a row with words that a person said.
func TestWordsLeadToNoRobot(t *testing.T) {
	pool := pgtest.New(t)
	keep(t, pool, all, spoken(1, failed(session.Match, "xylophone"), func(s *session.Session) { s.Why = `nothing matches "Xylophone"` }))
	rows, err := pool.Query(t.Context(), `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	found := 0
	for _, table := range tables {
		var row string
		if err := pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(r::text, ' '), '') FROM `+table+` AS r WHERE lower(r::text) LIKE '%xylophone%'`).Scan(&row); err != nil {
			t.Fatal(err)
		}
		if row == "" {
			continue
		}
		if found++; table != "speech_words" || strings.Contains(row, "00e20100") || strings.Contains(row, "12:00") {
			t.Errorf("%s has %s", table, row)
		}
	}
	if found != 1 {
		t.Errorf("%d tables have the words, want 1", found)
	}
}

// TestNoWordsAgainstTheOwner (VEC-NLP-07, peer facts section 6): with skip_das, without consent for the time when they were said, and of a robot that did not prove which one it is, the session counts and no words are kept.
func TestNoWordsAgainstTheOwner(t *testing.T) {
	pool := pgtest.New(t)
	keep(t, pool, all, spoken(1, func(s *session.Session) { s.SkipDAS = true }))
	changed := spoken(3).At // its owner
	keep(t, pool, func(_ context.Context, id thing.ID) func(time.Time) bool {
		return func(at time.Time) bool { return id != rex || at.After(changed) }
	}, spoken(2), spoken(3))
	keep(t, pool, all, spoken(4, func(s *session.Session) { s.Thing = "" }))
	var sessions, words int
	if err := pool.QueryRow(t.Context(), `SELECT (SELECT sum(sessions) FROM speech_day), (SELECT count(*) FROM speech_words)`).Scan(&sessions, &words); err != nil || sessions != 4 || words != 0 {
		t.Errorf("%d sessions and %d phrases, %v; want 4 and none", sessions, words, err)
	}
}

// TestHostileFields: whatever a robot names is stored, cut to size.
func TestHostileFields(t *testing.T) {
	pool := pgtest.New(t)
	long := strings.Repeat("é\x00\xff", 1000)
	k := keep(t, pool, all, spoken(1, func(s *session.Session) {
		s.ID, s.Language, s.Firmware, s.Text, s.Why, s.Audio, s.Took = long, long, long, long, "x"+strings.Repeat("ü\x00\xff", 1000), -1, 1<<62
	}))
	got, err := NewStore(pool).Sessions(t.Context(), session.Which{Limit: 10})
	if err != nil || k.Dropped() != 0 || len(got) != 1 || len(got[0].ID) != maxField || len(got[0].Why) < maxWhy-3 || len(got[0].Why) > maxWhy || got[0].Audio != 0 || got[0].Took != maxTime {
		t.Errorf("%+v, %v, %d dropped", got, err, k.Dropped())
	}
}

// TestFullQueueDropsAndCounts: a robot never waits for the database.
func TestFullQueueDropsAndCounts(t *testing.T) {
	k := NewKeeper(pgtest.New(t), all, quiet)
	for n := range queued + 10 {
		k.Keep(t.Context(), spoken(n))
	}
	if k.Dropped() != 10 {
		t.Errorf("%d dropped, want 10", k.Dropped())
	}
}

// TestDatabaseAway: what could not be written is written when the database is back, once.
func TestDatabaseAway(t *testing.T) {
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `ALTER TABLE speech_session RENAME TO away`); err != nil {
		t.Fatal(err)
	}
	k := NewKeeper(pool, all, quiet)
	refused := k.write(t.Context(), []session.Session{clean(spoken(1))})
	if len(refused) != 0 || k.Dropped() != 1 {
		t.Errorf("%d wait and %d dropped; a statement that never works is not repeated", len(refused), k.Dropped())
	}
	if _, err := pool.Exec(t.Context(), `ALTER TABLE away RENAME TO speech_session`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	waits := k.write(ctx, []session.Session{clean(spoken(2))})
	if len(waits) != 1 {
		t.Fatalf("%d wait, want 1", len(waits))
	}
	for range 2 {
		if left := k.write(t.Context(), []session.Session{clean(spoken(2))}); len(left) != 0 {
			t.Errorf("%d wait, want none", len(left))
		}
	}
	var n int
	if err := pool.QueryRow(t.Context(), `SELECT sum(sessions) FROM speech_day`).Scan(&n); err != nil || n != 1 || k.words[phrase{day(now), "2.0.1", "en-US", "intent_imperative_forward", "go forward"}] != 1 {
		t.Errorf("%d sessions counted, words %v, %v; want each once", n, k.words, err)
	}
}

// TestRunWrites: a session is readable while the process runs.
func TestRunWrites(t *testing.T) {
	pool := pgtest.New(t)
	k := NewKeeper(pool, all, quiet)
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	k.Keep(ctx, spoken(1))
	testwait.Until(t, 30*time.Second, "session in the database", testwait.Holds(func() bool {
		got, err := NewStore(pool).Sessions(t.Context(), session.Which{Limit: 1})
		return err == nil && len(got) == 1
	}))
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestExpireAndDrop: sessions and words end after their time, sums later; an owner's go when the owner does.
func TestExpireAndDrop(t *testing.T) {
	pool := pgtest.New(t)
	s := NewStore(pool)
	old := func(x *session.Session) { x.At = x.At.AddDate(0, 0, -40) }
	keep(t, pool, all, spoken(1, old), spoken(2), spoken(3), spoken(4))
	if n, err := s.Expire(t.Context(), now.AddDate(0, 0, -30), now.AddDate(-1, 0, 0)); err != nil || n != 1 {
		t.Errorf("%d expired, %v; want 1", n, err)
	}
	if n, err := s.Drop(t.Context(), thing.Stretch{Thing: rex, Since: now, Until: now.Add(4 * time.Second)}); err != nil || n != 2 {
		t.Errorf("%d dropped, %v; want 2", n, err)
	}
	v, err := s.Of(t.Context(), thing.Stretch{Thing: rex, Since: now, Until: now.Add(time.Hour)})
	if rows, ok := v.([]map[string]any); err != nil || !ok || len(rows) != 1 {
		t.Errorf("exported %v, %v; want one session", v, err)
	}
	var words, sums int
	if err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM speech_words), (SELECT sum(sessions) FROM speech_day)`).Scan(&words, &sums); err != nil || words != 1 || sums != 4 {
		t.Errorf("%d rows of words and %d sessions in sums, %v; want 1 and 4", words, sums, err)
	}
}

// TestVersionsAreBounded: a robot that names another version each time fills no table of sums.
func TestVersionsAreBounded(t *testing.T) {
	pool := pgtest.New(t)
	var many []session.Session
	for n := range 2 * maxVersions {
		many = append(many, spoken(n, func(s *session.Session) { s.Firmware = fmt.Sprint("v", n) }))
	}
	keep(t, pool, all, many...)
	groups, err := NewStore(pool).Groups(t.Context(), now, 2*maxVersions)
	if err != nil || len(groups) != maxVersions+1 || groups[0].Firmware != "other" || groups[0].Sessions != maxVersions {
		t.Errorf("%d groups, %v; want %d and one of all others", len(groups), err, maxVersions)
	}
}
