package registrypg

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/infra/thing"
)

// cpu returns the processor time that this process has used.
func cpu(t testing.TB) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestBurstIsReadOnce: every watcher hears the changes of a burst completely, and not again with each hint.
func TestBurstIsReadOnce(t *testing.T) {
	svc, store := open(t)
	seed(t, store, 400)
	if _, err := store.pool.Exec(t.Context(), `UPDATE registry_thing SET changed = now() - interval '1 hour'`); err != nil { // no news
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var heard [3]<-chan *registry.Update
	for i := range heard {
		heard[i] = svc.Follow(ctx)
	}
	go func() { done <- svc.Run(ctx) }()
	// A robot that changes last: when it was heard of, everything before it was.
	await := func(id thing.ID) (n [3]map[thing.ID]int) {
		for i, ch := range heard {
			n[i] = map[thing.ID]int{}
			for u := range ch {
				if n[i][u.Thing.ID]++; u.Thing.ID == id {
					break
				}
			}
		}
		return n
	}
	if err := svc.Register(ctx, "vic:first"); err != nil {
		t.Fatal(err)
	}
	await("vic:first")
	for range 3 {
		if _, err := store.pool.Exec(ctx, `UPDATE registry_thing SET present = NOT present, since = now(), rev = rev + 1, changed = clock_timestamp() WHERE thing <> 'vic:first'`); err != nil {
			t.Fatal(err)
		}
		if _, err := store.pool.Exec(ctx, `SELECT pg_notify($1, '')`, channel); err != nil {
			t.Fatal(err)
		}
	}
	if err := svc.Register(ctx, "vic:last"); err != nil {
		t.Fatal(err)
	}
	for i, n := range await("vic:last") {
		told := 0
		for _, k := range n {
			told += k
		}
		if len(n) != 401 || told > 3*400+1 {
			t.Errorf("watcher %d: told %d times of %d things, want each of 401 at least once and at most three times", i, told, len(n))
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// BenchmarkFeed is the share of a processor that this process takes while 1,000 robots a second, of 10,000, come and go and ten watch: the
// whole of Run, with reading from Postgres. Writing to the watchers is in BenchmarkWatch of registryapi.
func BenchmarkFeed(b *testing.B) {
	svc, store := open(b)
	seed(b, store, 10_000)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	var wg sync.WaitGroup
	var told [10]int
	for i := range told {
		ch := svc.Follow(ctx)
		wg.Go(func() {
			for u := range ch {
				if _, err := u.JSON(); err == nil {
					told[i]++
				}
			}
		})
	}
	go func() { done <- svc.Run(ctx) }()
	const steps, each = 10, 100
	before, began := cpu(b), time.Now()
	changes := 0
	tick := time.NewTicker(time.Second / steps)
	defer tick.Stop()
	for b.Loop() {
		for range steps {
			<-tick.C
			tag, err := store.pool.Exec(ctx, fmt.Sprintf(`
				WITH moved AS (SELECT thing FROM registry_thing OFFSET %d LIMIT %d)
				UPDATE registry_thing AS t SET present = NOT present, since = now(), rev = rev + 1, changed = clock_timestamp() FROM moved WHERE t.thing = moved.thing`,
				changes%9000, each))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := store.pool.Exec(ctx, `SELECT pg_notify($1, '')`, channel); err != nil {
				b.Fatal(err)
			}
			changes += int(tag.RowsAffected())
		}
	}
	took, used := time.Since(began), cpu(b)-before
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
	wg.Wait()
	b.ReportMetric(float64(used)/float64(took), "cores")
	b.ReportMetric(float64(changes)/took.Seconds(), "changes/s")
	b.ReportMetric(float64(used.Microseconds())/float64(changes), "µs/change")
	b.ReportMetric(float64(told[0])/float64(changes), "told/change")
}
