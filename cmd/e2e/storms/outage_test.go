package storms

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cmd/e2e/housetest"
)

// TestPostgresAway: while the database is down robots are paced and keep what they have, kenneld stays small, and when it is back
// everything arrives, without a storm.
func TestPostgresAway(t *testing.T) {
	away, robots := 8*time.Second, 20
	if housetest.Soak() {
		away = 10 * time.Minute
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	x := newChaos(t, ctx, robots, embedded)
	x.progress()
	before := x.rss("kenneld-a") + x.rss("kenneld-b")

	x.stopPostgres()
	gone := time.Now()
	peak := before
	for time.Since(gone) < away {
		housetest.Pause(ctx, 500*time.Millisecond)
		peak = max(peak, x.rss("kenneld-a")+x.rss("kenneld-b"))
	}
	if out, err := x.apis[0].call(ctx, "GET", "/v1/things", nil, nil); out != 0 && out != 503 {
		t.Errorf("the API while the database is down: %d, %v; want 503", out, err)
	}
	batches := x.stored.Count(t, x.logs())
	x.startPostgres()
	back := time.Now()
	rate := []int{} // batches acknowledged in each second of the recovery
	backlog := 0
	housetest.Await(t, 5*time.Minute, "the backlog arrives", func() error {
		if n := int(time.Since(back) / time.Second); n >= len(rate) {
			now := x.stored.Count(t, x.logs())
			rate, batches = append(rate, now-batches), now
		}
		db, err := x.tryConnect()
		if err != nil {
			return err
		}
		defer db.Close(ctx)
		// Of every robot's life, what happened before the database came back is stored, without a gap.
		err = db.QueryRow(ctx, `select count(*) from (select thing, boot_id from das_event group by 1, 2 having max(seq) <> count(*)) gaps`).Scan(&backlog)
		if err == nil && backlog > 0 {
			err = fmt.Errorf("%d robots have gaps", backlog)
		}
		if err != nil {
			return err
		}
		var late int
		err = db.QueryRow(ctx, `select count(*) from (select thing, max(ts) m from das_event group by 1 having max(ts) < $1) late`,
			back.UnixMilli()).Scan(&late)
		if err == nil && late > 0 {
			err = fmt.Errorf("%d robots have not delivered yet", late)
		}
		return err
	})
	took := time.Since(back).Round(100 * time.Millisecond)
	x.awaitPresent(2 * time.Minute)
	lost, double, events := housetest.Judge(housetest.AllTold(t, x.logs()), housetest.StoredSeqs(t, x.connect()))
	t.Logf("database away %v; both kenneld %d MiB before, %d MiB at most; %d events, all in step %v after its return; batches by second %v",
		away, before>>20, peak>>20, events, took, rate)
	if len(lost)+len(double) > 0 {
		t.Errorf("lost %d, double %d", len(lost), len(double))
	}
	if peak-before > 128<<20 {
		t.Errorf("kenneld grew by %d MiB while the database was away", (peak-before)>>20)
	}
}

// tryConnect is connect for a database that may be down.
func (c *cluster) tryConnect() (*pgx.Conn, error) {
	password, err := c.db.Password()
	if err != nil {
		return nil, err
	}
	cfg, err := pgx.ParseConfig(c.db.DSN())
	if err != nil {
		return nil, err
	}
	cfg.Password = password
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
	defer cancel()
	return pgx.ConnectConfig(ctx, cfg)
}

// rss reads the resident memory of a part, in bytes; 0 while it is down.
func (c *cluster) rss(name string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.kids[name].Pid()))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
