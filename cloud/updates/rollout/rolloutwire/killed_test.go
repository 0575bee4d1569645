package rolloutwire_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/updates/rollout"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
)

// cut breaks the connection to Postgres once: at a message from us, which is then lost, or at Postgres's answer to it, when it has done what we asked for.
type cut struct {
	n      atomic.Int64
	at     int64
	answer bool
	done   atomic.Bool
}

type cutConn struct {
	net.Conn
	*cut
	deaf atomic.Bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.n.Add(1) == c.at {
		c.done.Store(true)
		if !c.answer {
			c.Close()
			return 0, net.ErrClosed
		}
		c.deaf.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// pool returns another pool of the same database, whose connections c breaks.
func (c *cut) pool(t *testing.T, of *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	cfg := of.Config()
	cfg.MaxConns = 2
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &cutConn{Conn: conn, cut: c}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// bot is a robot with two slots, as edge/agent/release has it.
type bot struct {
	id      thing.ID
	running string
	next    string    // waits for its reboot
	since   time.Time // of the wish that it was installed for
	loads   bool      // its download runs
	away    bool
	seq     int
	booted  int // the release
}

func (b *bot) status(d ota.Desired, phase ota.Phase) ota.Status {
	b.seq++
	return ota.Status{ID: fmt.Sprintf("%s/%d", b.id, b.seq), Release: d.Release, Since: d.Since, Running: b.running, Next: ota.Version(b.next), Phase: phase}
}

// turn asks, does what the answer says, and reports it.
func (b *bot) turn(ctx context.Context, c *cloud) error {
	d, err := c.releases.Ask(ctx, b.id, b.running)
	if err != nil {
		return err
	}
	if b.next != "" && (d.Release == "" || !d.Since.Equal(b.since)) {
		b.next = ""
	}
	if d.Release == "" || string(d.Release) == b.running {
		b.loads = false
		return c.releases.Report(ctx, b.id, b.status(d, ota.Current))
	}
	if d.Rollback || b.loads {
		b.next, b.since, b.loads = string(d.Release), d.Since, false
	}
	if b.next != "" {
		return c.releases.Report(ctx, b.id, b.status(d, ota.Installed))
	}
	b.loads = true
	return c.releases.Report(ctx, b.id, b.status(d, ota.Downloading))
}

// boot starts what waits for it.
func (b *bot) boot() {
	if b.next != "" {
		b.running, b.next = b.next, ""
		if b.running == string(newer) {
			b.booted++
		}
	}
}

// TestKilledBetweenSteps (issue 27, "what must hold" 4; the robot's half is TestKills in edge/update): a rollout is ended and its robots taken back, while kenneld or Postgres dies at each message
// between them, before Postgres has done what it asks for and after, and robots that wait for their reboot get it at each stage. No robot ends on the
// release, and none counts as returned that runs it or would boot it.
func TestKilledBetweenSteps(t *testing.T) {
	pool := pgtest.New(t)
	all := takeBack(t, pool, &cut{}, true, rounds-1)
	every := 101
	if os.Getenv("KENNEL_SOAK") == "1" {
		every = 1
	}
	runs := 0
	for at := 1; at <= all; at++ {
		for v := range 4 * 3 {
			if (12*at+v)%every != 0 {
				continue
			}
			c := &cut{at: int64(at), answer: v%2 == 1}
			takeBack(t, pool, c, v/2%2 == 1, []int{0, 1, rounds - 1}[v/4])
			if runs++; !c.done.Load() {
				t.Logf("message %d of %d was not sent", at, all) // the order of robots' work differs a little
			}
		}
	}
	t.Logf("%d of %d messages broken, %d runs", all/every, all, runs)
}

const rounds = 8

// takeBack plays the story, which c breaks, and returns how many messages went to Postgres. Then kenneld starts again (killed) or continues. What waits for its
// reboot gets it in round nightly.
func takeBack(t *testing.T, plain *pgxpool.Pool, c *cut, killed bool, nightly int) int {
	t.Helper()
	what := fmt.Sprintf("message %d, answer %t, killed %t, reboot in round %d", c.at, c.answer, killed, nightly)
	ctx := t.Context()
	for _, table := range []string{"rollout_rollout", "ota_status", "ota_release", "registry_thing"} {
		exec(t, plain, `DELETE FROM `+table)
	}
	first := open(plain)
	fill(t, plain, first, 9)
	r := create(t, first, rollout.Spec{Phases: []rollout.Phase{{Percent: 100, BakeS: 3600}}, Cap: 9, Guards: []rollout.Guard{}})
	if err := first.StepOne(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	bots := make([]*bot, 9)
	knows := func(b *bot) { // the registry, from the robot's own state
		exec(t, plain, `UPDATE registry_facet SET os = $2, present = $3 WHERE thing = $1`, b.id, b.running, !b.away)
	}
	for i := range bots {
		b := &bot{id: robot(i + 1), running: older}
		bots[i] = b
		for range []int{2, 2, 2, 1, 1, 0, 2, 2, 0}[i] { // turns until it is installed
			if err := b.turn(ctx, first); err != nil {
				t.Fatal(err)
			}
		}
		switch i {
		case 0, 1, 7: // they run it, the last of them is away since
			b.boot()
			b.away = i == 7
			if err := b.turn(ctx, first); err != nil {
				t.Fatal(err)
			}
		case 4, 8: // its download is over, and the cloud does not know it; of the last not even that it began
			d, err := first.releases.Desired(ctx, b.id)
			b.next, b.since, b.loads = string(d.Release), d.Since, false
			if err != nil {
				t.Fatal(err)
			}
		case 6:
			b.away = true
		}
		knows(b)
	}
	under := c.pool(t, plain)
	defer func() { under.Close() }()
	cloud := open(under)
	failed := func(err error) bool {
		t.Helper()
		if err != nil && !c.done.Load() {
			t.Fatalf("%s: %v", what, err)
		}
		if err != nil && killed {
			under.Close()
			under = c.pool(t, plain)
			cloud = open(under)
		}
		return err != nil
	}
	start := c.n.Load()
	for tries := 0; ; tries++ { // a person
		_, err := cloud.Do(ctx, r.ID, rollout.GoBack, "", "a person")
		if !failed(err) {
			break
		}
		if tries == 3 {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for round := range rounds {
		failed(cloud.StepOne(ctx, r.ID))
		for _, b := range bots {
			if round == nightly {
				b.boot()
			}
			if round == rounds/2 {
				b.away = false
			}
			if !b.away && !failed(b.turn(ctx, cloud)) && b.next == older {
				b.boot() // at once
			}
			knows(b)
		}
		w, err := open(plain).Store.Look(ctx, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bots {
			if m := w.Members[b.id]; m.State == rollout.Returned && (b.running == string(newer) || b.next == string(newer)) {
				t.Errorf("%s: %+v is returned", what, b)
			}
		}
	}
	failed(cloud.StepOne(ctx, r.ID))
	w, err := open(plain).Store.Look(ctx, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bots {
		m := w.Members[b.id]
		if b.running != older || b.next != "" || m.State != rollout.Returned && m.State != rollout.Idle {
			t.Errorf("%s: robot %d ends as %+v, %+v", what, i, *b, m)
		}
		if nightly == rounds-1 && b.booted > 0 && !slices.Contains([]int{0, 1, 7}, i) {
			t.Errorf("%s: robot %d booted the release, long after it was withdrawn", what, i)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return int(c.n.Load() - start)
}
