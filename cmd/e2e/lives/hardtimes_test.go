package lives

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clouddas "kennel/cloud/telemetry/das"
	"kennel/cmd/e2e/housetest"
	"kennel/edge/agent/das"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/runner"
	"kennel/infra/thing"
)

// TestHardTimes: must hold 2 of the issue of telemetry; VEC-DAS-02, part of VEC-DAS-05, VEC-DAS-07, VEC-DAS-09, VEC-FLE-03. By a clock that the test turns, six robots
// record events for two hours, one each second in the full form. S3 is away for one of them; a fifth of all answers is lost; one robot's clock jumps 50 years ahead and another's as far back; the disk of one
// is full for half an hour; one is offline for longer than its quota lasts. No event that the cloud called stored is lost or doubled; what is not there was dropped, and the cloud was told how many; each raw
// batch is in S3 in the end.
func TestHardTimes(t *testing.T) {
	small, mounted := housetest.SmallVolume(t, 1<<20)
	synctest.Test(t, func(t *testing.T) {
		const (
			hours   = 2 * time.Hour
			outage  = 20 * time.Minute // when S3 goes
			back    = outage + time.Hour
			century = 50 * 365 * 24 * time.Hour
		)
		c := &hardCloud{rng: rand.New(rand.NewPCG(18, 2)), rows: map[clouddas.Key]map[uint64]events.Event{}, known: map[clouddas.Key]clouddas.Seqs{}, acked: map[thing.ID]int{}, raw: map[string]bool{}}
		in, err := clouddas.NewIngester(clouddas.Config{Writer: c, Blobs: c, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := in.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		begin := time.Now()
		now := func() time.Duration { return time.Since(begin) }
		within := func(from, to time.Duration) bool { return now() >= from && now() < to }
		c.away = func() bool { return within(outage, back) }
		robots := []*hardRobot{
			{name: "at home"}, {name: "another"},
			{name: "in the future", clock: func() time.Duration {
				if within(hours/4, hours/2) {
					return century
				}
				return 0
			}},
			{name: "in the past", clock: func() time.Duration {
				if within(hours/4, hours) {
					return -century
				}
				return 0
			}},
			{name: "with a full disk", dir: small},
			{name: "offline", config: `{"dasConfig":{"storage_quota":60000,"file_threshold_size":10000,"backup_quota":60000}}`, offline: func() bool { return within(hours/4, hours*3/4) }},
		}
		for i, r := range robots {
			r.run(t, ctx, &wg, in, c, thing.ID(fmt.Sprintf("vic:00e2d00%d", i)), func() bool { return now() < hours })
		}
		time.Sleep(hours / 4)
		if mounted {
			housetest.FillUp(t, small)
		}
		time.Sleep(hours / 4)
		if err := os.RemoveAll(filepath.Join(small, "ballast")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(hours/2 + time.Hour)
		for _, r := range robots {
			c.judge(t, r)
		}
		stop()
		wg.Wait()
		if len(c.waiting) > 0 || len(c.raw) == 0 || c.outage == 0 {
			t.Errorf("%d raw batches wait for S3, %d are there, %d came while it was away", len(c.waiting), len(c.raw), c.outage)
		}
	})
}

// hardRobot is one robot of TestHardTimes.
type hardRobot struct {
	name, config string
	clock        func() time.Duration // how wrong it is; nil: right
	offline      func() bool          // nil: never
	dir          string               // "": of its own

	id      thing.ID
	manager *das.Manager
	emitted int
}

// run records an event each second while it lives, and sends.
func (r *hardRobot) run(t *testing.T, ctx context.Context, wg *sync.WaitGroup, in *clouddas.Ingester, c *hardCloud, id thing.ID, lives func() bool) {
	t.Helper()
	dir := cmp.Or(r.dir, t.TempDir())
	if r.config != "" {
		f := filepath.Join(dir, das.ConfigFile)
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o755), os.WriteFile(f, []byte(r.config), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	if r.clock == nil {
		r.clock = func() time.Duration { return 0 }
	}
	if r.offline == nil {
		r.offline = func() bool { return false }
	}
	born := time.Now()
	r.id = id
	r.manager, err = das.New(das.Config{Root: root, Thing: id, BootID: "boot-" + id.Serial(), RobotVersion: "2.0.0.6074", FlushInterval: 20 * time.Second, SyncInterval: 30 * time.Second,
		Uptime: func() time.Duration { return time.Since(born) }, Now: func() time.Time { return time.Now().Add(r.clock()) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		publish := func(_ context.Context, _ string, payload []byte) error {
			if r.offline() {
				return errors.New("no network")
			}
			in.Handle(ctx, id, payload, func(a ack.Ack) { c.answer(r, a) })
			return nil
		}
		// As agentd keeps it going: it ends where its state cannot be written.
		if err := runner.Run(ctx, slog.New(slog.DiscardHandler), runner.Config{MinBackoff: time.Second, MaxBackoff: 30 * time.Second},
			runner.Service{Name: "events", Run: func(ctx context.Context) error { return r.manager.Run(ctx, publish) }}); err != nil {
			t.Error(err)
		}
	})
	every := time.Duration(housetest.Pick(4, 1)) * time.Second
	wg.Go(func() {
		for ; lives(); time.Sleep(every) {
			if _, err := r.manager.Emit(events.Event{Source: "test", Name: "test.lived", I1: events.Num(int64(r.emitted))}); err != nil {
				t.Error(err)
			}
			r.emitted++
		}
	})
}

// hardCloud is the storage of an Ingester, in memory.
type hardCloud struct {
	mu      sync.Mutex
	rng     *rand.Rand
	away    func() bool // S3
	rows    map[clouddas.Key]map[uint64]events.Event
	known   map[clouddas.Key]clouddas.Seqs
	doubled int
	acked   map[thing.ID]int // events in batches that their robot was told are stored
	waiting []clouddas.Raw
	raw     map[string]bool
	outage  int // batches that came while S3 was away
}

// answer hands a robot an answer, or loses it.
func (c *hardCloud) answer(r *hardRobot, a ack.Ack) {
	c.mu.Lock()
	lost := c.rng.IntN(5) == 0
	if !lost && a.Status == ack.Stored {
		c.acked[r.id]++
	}
	c.mu.Unlock()
	if !lost {
		r.manager.HandleAck(a)
	}
}

func (c *hardCloud) Commit(_ context.Context, g clouddas.Group, raw clouddas.Raw) (clouddas.Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh, out := clouddas.Plan(g.Items, c.known)
	for _, f := range fresh {
		key := clouddas.Key{Thing: f.Thing, BootID: f.Event.BootID}
		if c.rows[key] == nil {
			c.rows[key] = map[uint64]events.Event{}
		}
		if _, there := c.rows[key][f.Event.Seq]; there {
			c.doubled++
		}
		c.rows[key][f.Event.Seq] = *f.Event
	}
	if raw.Body != nil {
		c.waiting = append(c.waiting, raw)
	}
	if c.away() {
		c.outage++
	}
	return out, nil
}

func (c *hardCloud) MoveRaw(ctx context.Context, put func(ctx context.Context, key string, body []byte) error) (bool, error) {
	c.mu.Lock()
	if len(c.waiting) == 0 {
		c.mu.Unlock()
		return false, nil
	}
	r := c.waiting[0]
	c.mu.Unlock()
	if err := put(ctx, r.Key, r.Body); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = c.waiting[1:]
	return true, nil
}

// Put is S3.
func (c *hardCloud) Put(_ context.Context, key string, _ []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away() {
		return errors.New("no S3")
	}
	c.raw[key] = true
	return nil
}

// inFlight bounds the events that the robot had sent and was not told about when its quota dropped them: it counts them, and they are there.
const inFlight = 3 * 25

// judge compares what a robot recorded with what is there.
func (c *hardCloud) judge(t *testing.T, r *hardRobot) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	rows := c.rows[clouddas.Key{Thing: r.id, BootID: "boot-" + r.id.Serial()}]
	numbers, told := map[int64]bool{}, int64(0)
	last := uint64(0)
	for seq, e := range rows {
		last = max(last, seq)
		switch e.Name {
		case "test.lived":
			if numbers[e.I1.N] {
				t.Errorf("%s: event %d is there twice", r.name, e.I1.N)
			}
			numbers[e.I1.N] = true
		case "das.dropped":
			told = max(told, e.I2.N)
		}
	}
	dropped := int64(last) - int64(len(rows))
	t.Logf("%s: %d events recorded, %d there, %d dropped, %d batches called stored", r.name, r.emitted, len(numbers), dropped, c.acked[r.id])
	switch s := r.manager.Stats(); {
	case c.doubled > 0:
		t.Errorf("%d events were stored twice", c.doubled)
	case s.Events != 0:
		t.Errorf("%s: %d events still wait", r.name, s.Events)
	case r.config == "" && (len(numbers) != r.emitted || dropped != 0):
		t.Errorf("%s: %d of %d events are there, %d numbers are missing", r.name, len(numbers), r.emitted, dropped)
	case r.config != "" && (dropped == 0 || told != int64(s.Dropped) || told < dropped || told > dropped+inFlight):
		t.Errorf("%s: the quota dropped %d events; the robot counts %d, and told of %d", r.name, dropped, s.Dropped, told)
	}
}
