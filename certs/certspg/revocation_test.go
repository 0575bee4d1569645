package certspg_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/certs"
	"kennel/certs/certspg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// issued writes an inventory row for a certificate of id that lives for life.
func issued(t testing.TB, pool *pgxpool.Pool, id thing.ID, life time.Duration) certs.Record {
	t.Helper()
	r := certs.Record{Serial: rand.Text(), Thing: id, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life), Method: certs.StepEnroll}
	_, _ = rand.Read(r.Key[:]) // never fails
	if err := certspg.New(pool).AddCertificate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRevocationFeed(t *testing.T) {
	pool := pgtest.New(t)
	feed, store := certspg.NewRevocations(pool, slog.New(slog.DiscardHandler)), certspg.New(pool)
	all := func(after int64) []certs.Revocation {
		t.Helper()
		list, err := feed.Revocations(t.Context(), after, time.Now(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	one, two, ended := issued(t, pool, "vic:1", time.Hour), issued(t, pool, "vic:1", time.Hour), issued(t, pool, "vic:1", -time.Minute)
	kept := issued(t, pool, "vic:2", time.Hour)
	if list := all(0); len(list) != 0 {
		t.Errorf("before: %v", list)
	}
	for range 2 { // the second time changes nothing
		if _, err := store.Revoke(t.Context(), "vic:1", "stolen", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	list := all(0)
	if len(list) != 2 || list[0].Seq >= list[1].Seq {
		t.Fatalf("got %v, want the two that have not ended", list)
	}
	for _, x := range list {
		want := one
		if x.Serial == two.Serial {
			want = two
		}
		if x.Serial != want.Serial || x.Key != want.Key || x.Thing != "vic:1" || x.Reason != "stolen" ||
			x.NotAfter.Sub(want.NotAfter).Abs() > time.Millisecond || x.At.IsZero() {
			t.Errorf("got %+v, want %+v", x, want)
		}
		if x.Serial == ended.Serial || x.Serial == kept.Serial {
			t.Errorf("%v is revoked", x)
		}
	}
	if rest := all(list[0].Seq); len(rest) != 1 || rest[0] != list[1] {
		t.Errorf("after the first: %v", rest)
	}
	if rest, err := feed.Revocations(t.Context(), 0, time.Now().Add(2*time.Hour), 10); err != nil || len(rest) != 0 {
		t.Errorf("after their end: %v, %v", rest, err)
	}

	blocked := func() map[thing.ID]string {
		t.Helper()
		m, err := feed.Blocked(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := blocked(); len(m) != 1 || m["vic:1"] != "stolen" {
		t.Errorf("blocked: %v", m)
	}
	issued(t, pool, "vic:1", time.Hour) // it enrolled again
	if m := blocked(); len(m) != 0 {
		t.Errorf("blocked although it has a new certificate: %v", m)
	}

	before := int64(0)
	for range 3 {
		n, err := feed.CRLNumber(t.Context())
		if err != nil || n <= before {
			t.Errorf("list number %d after %d, %v", n, before, err)
		}
		before = n
	}
}

// TestRevocationsInOrder: a reader that continues from its last position misses nothing, however many revocations run at once.
func TestRevocationsInOrder(t *testing.T) {
	pool := pgtest.New(t)
	feed, store := certspg.NewRevocations(pool, slog.New(slog.DiscardHandler)), certspg.New(pool)
	const things, each = 20, 5
	for i := range things {
		for range each {
			issued(t, pool, thing.ID("vic:"+string(rune('a'+i))), time.Hour)
		}
	}
	var wg sync.WaitGroup
	for i := range things {
		wg.Go(func() {
			if _, err := store.Revoke(t.Context(), thing.ID("vic:"+string(rune('a'+i))), "x", time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen := map[string]bool{}
	var last int64
	for ended := false; ; {
		list, err := feed.Revocations(t.Context(), last, time.Now(), 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if seen[x.Serial] || x.Seq <= last {
				t.Fatalf("%d after %d, seen before: %v", x.Seq, last, seen[x.Serial])
			}
			seen[x.Serial], last = true, x.Seq
		}
		if len(list) == 0 && ended {
			break
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	if len(seen) != things*each {
		t.Errorf("%d of %d revocations were seen", len(seen), things*each)
	}
}

// TestRevocationsInTwoProcesses: two sets on one database, as in two processes; each knows within two seconds what was revoked through
// anybody, and again after its connection was cut.
func TestRevocationsInTwoProcesses(t *testing.T) {
	pool := pgtest.New(t)
	store := certspg.New(pool)
	start := func() *certs.Revocations {
		r := certs.NewRevocations(certspg.NewRevocations(pool, slog.New(slog.DiscardHandler)))
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return r
	}
	sets := []*certs.Revocations{start(), start()}
	revoke := func(id thing.ID) {
		t.Helper()
		issued(t, pool, id, time.Hour)
		began := time.Now()
		if _, err := store.Revoke(t.Context(), id, "stolen", time.Now()); err != nil {
			t.Fatal(err)
		}
		for i, r := range sets {
			for {
				changed := r.Changed()
				if list, _ := r.List(0); len(list) > 0 && list[len(list)-1].Thing == id {
					break
				}
				select {
				case <-changed:
				case <-time.After(10 * time.Second):
					t.Fatalf("set %d does not learn of %s", i, id)
				}
			}
		}
		if took := time.Since(began); took > 5*2*time.Second {
			t.Errorf("%s: %v, want at most 2 s", id, took)
		} else {
			t.Logf("%s: %v", id, took.Round(time.Millisecond))
		}
	}
	revoke("vic:1")
	revoke("vic:2")
	if _, err := pool.Exec(t.Context(),
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`); err != nil {
		t.Fatal(err)
	}
	revoke("vic:3")
}
