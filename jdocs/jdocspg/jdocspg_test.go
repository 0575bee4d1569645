package jdocspg

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var key = jdocs.Key{Thing: thing.MustParse("vic:00e20100"), Name: jdocs.RobotSettings}

func TestHistoryIsBounded(t *testing.T) {
	s := New(pgtest.New(t))
	const n = (KeepVersions/pruneEvery + 2) * pruneEvery
	for v := range uint64(n) {
		if _, _, err := s.Put(t.Context(), key, jdocs.Doc{Version: v, FmtVersion: 1, JSON: fmt.Sprint(v)}, 1, "test"); err != nil {
			t.Fatal(err)
		}
	}
	more, err := s.History(t.Context(), key, 2*n)
	if err != nil || len(more) != KeepVersions {
		t.Errorf("history of %d after %d versions, %v; want %d", len(more), n, err, KeepVersions)
	}
	for v := uint64(n); v < n+pruneEvery; v++ {
		if _, _, err := s.Put(t.Context(), key, jdocs.Doc{Version: v, FmtVersion: 1, JSON: fmt.Sprint(v)}, 1, "test"); err != nil {
			t.Fatal(err)
		}
		if revs, err := s.History(t.Context(), key, 2*n); err != nil || len(revs) < KeepVersions || len(revs) >= KeepVersions+pruneEvery {
			t.Errorf("history of %d, %v; want %d to %d", len(revs), err, KeepVersions, KeepVersions+pruneEvery-1)
		}
	}
	revs, err := s.History(t.Context(), key, 2*n)
	if err != nil {
		t.Fatal(err)
	}
	if len(revs) != KeepVersions || revs[0].Version != n+pruneEvery || revs[len(revs)-1].Version != n+pruneEvery-KeepVersions+1 {
		t.Errorf("history of %d, %d to %d; want the newest %d", len(revs), revs[0].Version, revs[len(revs)-1].Version, KeepVersions)
	}
}

func TestHistoryForgetsWhatIsOld(t *testing.T) {
	pool := pgtest.New(t)
	s := New(pool)
	for v := range uint64(pruneEvery) {
		if _, _, err := s.Put(t.Context(), key, jdocs.Doc{Version: v, FmtVersion: 1, JSON: "{}"}, 1, "test"); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), `UPDATE jdocs_history SET changed_at = changed_at - $1::interval WHERE doc_version = 1`,
			KeepAge+time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	revs, err := s.History(t.Context(), key, 2*pruneEvery)
	if err != nil || len(revs) != pruneEvery-1 || revs[len(revs)-1].Version != 2 {
		t.Errorf("history %+v, %v; want versions %d to 2", revs, err, pruneEvery)
	}
}

type change struct {
	key     jdocs.Key
	version uint64
}

// listen starts a Listener and waits until it hears.
func listen(t *testing.T, s *Store) chan change {
	t.Helper()
	heard := make(chan change, 64) // more than any test here makes
	l := &Listener{Pool: s.pool, Log: slog.New(slog.DiscardHandler), Changed: func(_ context.Context, k jdocs.Key, v uint64) {
		heard <- change{k, v}
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("listener: %v", err)
		}
	})
	return heard
}

func put(t *testing.T, s *Store, version uint64, by string) {
	t.Helper()
	if _, _, err := s.Put(t.Context(), key, jdocs.Doc{Version: version, FmtVersion: 1, JSON: "{}"}, 1, by); err != nil {
		t.Fatal(err)
	}
}

// await takes the next change of version want, passing over repetitions of earlier ones: a listener may repeat.
func await(t *testing.T, heard chan change, want uint64) {
	t.Helper()
	for {
		select {
		case c := <-heard:
			if c.key != key || c.version > want {
				t.Fatalf("heard %+v, want version %d of %s", c, want, key)
			}
			if c.version == want {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("heard nothing of version %d", want)
		}
	}
}

func TestListenerHearsWhatOthersChange(t *testing.T) {
	s := New(pgtest.New(t))
	put(t, s, 0, "ann")
	heard := listen(t, s)
	await(t, heard, 1) // changed before it listened: read again at the start
	put(t, s, 1, "ann")
	await(t, heard, 2)
	put(t, s, 2, string(key.Thing)) // the robot's own: not told
	put(t, s, 3, "ann")
	await(t, heard, 4)
}

func TestListenerCatchesUpAfterALostConnection(t *testing.T) {
	pool := pgtest.New(t)
	s := New(pool)
	put(t, s, 0, "ann")
	heard := listen(t, s)
	await(t, heard, 1)
	// Break its connection and change the document before it is back, in one statement that also makes the notification unheard.
	if _, err := pool.Exec(t.Context(),
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`); err != nil {
		t.Fatal(err)
	}
	put(t, s, 1, "ann")
	await(t, heard, 2)
}

func FuzzParsePayload(f *testing.F) {
	f.Add("vic:00e20100 vic.RobotSettings 7")
	f.Add("vic:00e20100 vic.RobotSettings -7")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		k, v, err := parsePayload(s)
		if err != nil {
			return
		}
		again, w, err := parsePayload(fmt.Sprintf("%s %s %d", k.Thing, k.Name, v))
		if err != nil || again != k || w != v {
			t.Errorf("%q: %v %d, again %v %d, %v", s, k, v, again, w, err)
		}
	})
}

func BenchmarkPut(b *testing.B) {
	s := New(pgtest.New(b))
	text := jdocs.Default(jdocs.RobotLifetimeStats).JSON
	for v := uint64(0); b.Loop(); v++ {
		if _, _, err := s.Put(b.Context(), key, jdocs.Doc{Version: v, FmtVersion: 1, JSON: text}, 1, string(key.Thing)); err != nil {
			b.Fatal(err)
		}
	}
}
