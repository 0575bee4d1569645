package das

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/thing"
)

const testThing = thing.ID("vic:00e20100")

func testRoot(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() }) // read only by then
	return root
}

func writeFile(t testing.TB, root *os.Root, name, body string) {
	t.Helper()
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(name, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newManager(t testing.TB, root *os.Root, boot string, change ...func(*Config)) *Manager {
	t.Helper()
	start := time.Now()
	c := Config{
		Root: root, Thing: testThing, BootID: boot, RobotVersion: "2.0.1.6091",
		Uptime: func() time.Duration { return time.Since(start) + time.Second },
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range change {
		f(&c)
	}
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// cloud is the other side: it stores what it gets and answers as told.
type cloud struct {
	t  testing.TB
	mu sync.Mutex
	m  *Manager
	// stored holds boot/seq -> the event's name and s1; a second, different event of the same number is an error.
	stored  map[string]string
	order   []string
	batches int
	offline bool
	answer  func(events.Batch) ack.Ack // nil: stored
}

func newCloud(t testing.TB) *cloud { return &cloud{t: t, stored: map[string]string{}} }

func (c *cloud) publish(_ context.Context, name string, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.offline {
		return errors.New("no connection")
	}
	if name != "das" {
		c.t.Errorf("published on up/%s", name)
	}
	c.batches++
	b, err := events.DecodeBatch(payload)
	if err != nil {
		c.t.Errorf("batch: %v", err)
		return nil
	}
	a := ack.Ack{Status: ack.Stored}
	if c.answer != nil {
		a = c.answer(b)
	}
	if a.Status == ack.Stored {
		for _, e := range b.Events {
			key, val := fmt.Sprint(e.BootID, "/", e.Seq), e.Name+" "+e.S1
			if old, ok := c.stored[key]; ok && old != val {
				c.t.Errorf("%s was %q and is now %q: a number was used twice", key, old, val)
			} else if !ok {
				c.order = append(c.order, key)
			}
			c.stored[key] = val
		}
	}
	if a.Status != "" {
		a.V, a.Batch = 1, b.Batch
		c.m.HandleAck(a)
	}
	return nil
}

func (c *cloud) set(f func()) { c.mu.Lock(); defer c.mu.Unlock(); f() }

func (c *cloud) got() []string { c.mu.Lock(); defer c.mu.Unlock(); return slices.Clone(c.order) }

// run starts m against c; stop ends it and waits.
func run(t testing.TB, m *Manager, c *cloud) (stop func()) {
	t.Helper()
	c.set(func() { c.m = m })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx, c.publish) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func emit(t testing.TB, m *Manager, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if _, err := m.Emit(events.Event{Source: "test", Name: "test.event", S1: s}); err != nil {
			t.Fatal(err)
		}
	}
}

func seqs(boot string, first, last int) (out []string) {
	for i := first; i <= last; i++ {
		out = append(out, fmt.Sprint(boot, "/", i))
	}
	return out
}

func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		m := newManager(t, root, "boot-1", func(c *Config) { c.Synced = func() bool { return false } })
		emit(t, m, "a", "b") // before Run
		stop := run(t, m, c)
		emit(t, m, "c")
		time.Sleep(5 * time.Second)
		if got, want := c.got(), seqs("boot-1", 1, 3); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if st := m.Stats(); st.Events != 0 {
			t.Errorf("Stats = %+v; want nothing waiting", st)
		}
		if c.batches > 2 {
			t.Errorf("%d batches for 3 events", c.batches)
		}
		stop()
		// The agent restarts within the same boot: numbers continue although everything was acknowledged.
		m = newManager(t, root, "boot-1")
		stop = run(t, m, c)
		emit(t, m, "d")
		m.Flush()
		time.Sleep(time.Second)
		stop()
		// Another boot starts from 1 again.
		m = newManager(t, root, "boot-2")
		stop = run(t, m, c)
		emit(t, m, "e")
		time.Sleep(5 * time.Second)
		stop()
		if got, want := c.got(), append(seqs("boot-1", 1, 4), "boot-2/1"); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestOwnIdentity: an event that comes with an identity keeps it, however often it is recorded, and the numbers of the others have no gap (VEC-CRS-06).
func TestOwnIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		for range 2 { // the agent restarts
			m := newManager(t, root, "boot-1")
			emit(t, m, "a")
			stop := run(t, m, c)
			if _, err := m.EmitDurable(t.Context(), events.Event{Name: "robot.crash", BootID: "crash-1", Seq: 1, S1: "robotd"}); err != nil {
				t.Error(err)
			}
			emit(t, m, "b")
			time.Sleep(5 * time.Second)
			stop()
		}
		if got, want := c.got(), []string{"boot-1/1", "crash-1/1", "boot-1/2", "boot-1/3", "boot-1/4"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Days offline and several boots: everything arrives, old boots first, in order (VEC-FLE-03).
func TestOfflineForBoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		c.offline = true
		var want []string
		for b := range 3 {
			boot := fmt.Sprint("boot-", b)
			m := newManager(t, root, boot)
			stop := run(t, m, c)
			for range 50 {
				emit(t, m, "x")
				time.Sleep(10 * time.Minute)
			}
			if n := m.Stats().Events; n < 50*uint64(b+1) {
				t.Errorf("%s: %d events wait", boot, n)
			}
			stop()
			next, err := m.Emit(events.Event{Name: "a.b"}) // shows the count, with the failure events in between
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, seqs(boot, 1, int(next-1))...)
			if b == 2 {
				c.set(func() { c.offline = false })
				stop = run(t, m, c)
				time.Sleep(time.Minute)
				stop()
				want = append(want, fmt.Sprint(boot, "/", next))
			}
		}
		if got := c.got(); !slices.Equal(got, want) {
			t.Errorf("got %d events, want %d:\n%v", len(got), len(want), got)
		}
	})
}

func TestResendUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		silent := 4
		c.answer = func(events.Batch) ack.Ack {
			if silent--; silent >= 0 {
				return ack.Ack{}
			}
			return ack.Ack{Status: ack.Stored}
		}
		m := newManager(t, root, "boot-1")
		stop := run(t, m, c)
		emit(t, m, "a")
		time.Sleep(3 * time.Minute)
		stop()
		if !slices.Equal(c.got(), seqs("boot-1", 1, 1)) || c.batches != 5 {
			t.Errorf("got %v after %d publishes; want it after 5", c.got(), c.batches)
		}
	})
}

// Robots that reconnect at the same moment do not keep sending at the same moment.
func TestFlushesSpreadAfterReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, testRoot(t), "boot-1")
		first, last := time.Hour, time.Duration(0)
		for range 200 { // robots
			u := newUploader(m, nil)
			u.flushNow(time.Now())
			if err := u.send(t.Context()); err != nil {
				t.Fatal(err)
			}
			first, last = min(first, time.Until(u.wake)), max(last, time.Until(u.wake))
			time.Sleep(time.Until(u.wake))
			if err := u.send(t.Context()); err != nil || time.Until(u.wake) != m.conf.FlushInterval {
				t.Fatalf("the flush after it comes in %v (%v), want %v", time.Until(u.wake), err, m.conf.FlushInterval)
			}
		}
		if span := m.conf.FlushInterval; first < span/2 || first > span*6/10 || last < span*14/10 || last > span*15/10 {
			t.Errorf("the first flushes come after %v to %v, want half to one and a half of %v", first, last, span)
		}
	})
}

// Storage full: the oldest go to backup, then are dropped, counted and reported (part of VEC-DAS-05).
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		writeFile(t, root, ConfigFile, `{"dasConfig":{ // as the original has it
			"storage_quota": 20000, "file_threshold_size": 5000, "backup_quota": 12000, "backup_path": "/data/das"}}`)
		c.offline = true
		m := newManager(t, root, "boot-1")
		stop := run(t, m, c)
		for i := range 300 {
			if _, err := m.EmitDurable(t.Context(), events.Event{Name: "test.event", S1: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		st := m.Stats()
		if st.Dropped == 0 || st.Bytes > 32000 || st.Bytes < 20000 {
			t.Errorf("Stats = %+v; want some dropped and 20 to 32 kB kept", st)
		}
		for dir, max := range map[string]int64{"run/dasLogs": 20000 + 500, "data/das": 12000} {
			if n := folderSize(t, root, dir); n > max || n == 0 {
				t.Errorf("%s holds %d bytes; want 1 to %d", dir, n, max)
			}
		}
		stop()
		m = newManager(t, root, "boot-1")
		if again := m.Stats(); again.Dropped != st.Dropped || again.Events != st.Events {
			t.Errorf("after a restart %+v; before %+v", again, st)
		}
		c.set(func() { c.offline = false })
		stop = run(t, m, c)
		time.Sleep(2 * time.Minute)
		stop()
		got := c.got()
		last := got[len(got)-1]
		var n int
		if _, err := fmt.Sscanf(last, "boot-1/%d", &n); err != nil {
			t.Fatal(err)
		}
		want := seqs("boot-1", int(st.Dropped)+1, n)
		if !slices.Equal(got, want) {
			t.Errorf("got %d events from %s to %s; want exactly those after the %d oldest", len(got), got[0], last, st.Dropped)
		}
		reported := false
		for _, v := range c.stored {
			reported = reported || strings.HasPrefix(v, "das.dropped quota")
		}
		if !reported {
			t.Error("no das.dropped event")
		}
		if n := folderSize(t, root, "data/das"); n != 0 {
			t.Errorf("%d bytes left in backup after all was sent", n)
		}
	})
}

func folderSize(t testing.TB, root *os.Root, dir string) (n int64) {
	t.Helper()
	d, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() // read only
	entries, err := d.ReadDir(-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".ndjson") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

func TestBackup(t *testing.T) {
	root := testRoot(t)
	m := newManager(t, root, "boot-1")
	emit(t, m, "a", "b")
	if err := m.Backup(); err != nil {
		t.Fatal(err)
	}
	if err := root.RemoveAll("run"); err != nil { // the reboot of a robot whose /run is memory
		t.Fatal(err)
	}
	if st := newManager(t, root, "boot-2").Stats(); st.Events != 2 {
		t.Errorf("Stats = %+v; want 2 events", st)
	}
}

// Incompressible events: batches shrink until they fit, none is lost.
func TestLargeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		m := newManager(t, root, "boot-1")
		stop := run(t, m, c)
		for i := range 200 {
			e := events.Event{Name: "test.large"}
			for n, s := range []*string{&e.S1, &e.S2, &e.S3, &e.S4} {
				*s = noise(uint64(i*4+n), events.MaxText)
			}
			if _, err := m.EmitDurable(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		stop()
		got := c.got()
		if len(got) < 200 || m.Stats().Quarantined != 0 {
			t.Errorf("%d events arrived, %+v", len(got), m.Stats())
		}
	})
}

// An event that no message can carry is set aside by the robot itself.
func TestEventTooLargeForTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		m := newManager(t, root, "boot-1", func(c *Config) { c.BatchBytes = 1000 })
		emit(t, m, "a", noise(1, events.MaxText), "b")
		stop := run(t, m, c)
		time.Sleep(30 * time.Second)
		stop()
		if got, want := c.got(), []string{"boot-1/1", "boot-1/3"}; !slices.Equal(got, want) || m.Stats().Quarantined != 1 || m.Stats().Events != 0 {
			t.Errorf("got %v, want %v; %+v", got, want, m.Stats())
		}
	})
}

func noise(seed uint64, n int) string {
	b := make([]byte, n)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = '!' + byte(seed>>33)%90
	}
	return string(b)
}

func TestEmitRefusesBadNames(t *testing.T) {
	m := newManager(t, testRoot(t), "boot-1")
	if _, err := m.Emit(events.Event{Name: "crash"}); err == nil {
		t.Error("a name without a module passed")
	}
	if seq, err := m.Emit(events.Event{Name: " rampost.dfu.desired_version "}); err != nil || seq != 1 {
		t.Errorf("seq %d, %v; want 1: the refused one took no number", seq, err)
	}
}

func TestSession(t *testing.T) {
	var s session
	in := func(name string, texts ...string) events.Event {
		texts = append(texts, "", "", "", "")
		e := events.Event{Name: name, S1: texts[0], S3: texts[2], S4: texts[3]}
		s.apply(&e)
		return e
	}
	in("profile_id.start", "p1")
	in("wifi_conn_id.start", "w1")
	in("ble_conn_id.start", "b1")
	in("behavior.feature.start", "", "", "run-1", "Onboarding")
	if e := in("robot.power_on"); e.ProfileID != "p1" || e.WifiConnID != "w1" || e.BLEConnID != "b1" || e.FeatureRunID != "run-1" ||
		e.FeatureType != "Onboarding" {
		t.Errorf("within the sessions: %+v", e)
	}
	if e := in("behavior.feature.pre_start", "", "", "run-2", "Fistbump"); e.FeatureRunID != "run-2" || e.FeatureType != "Fistbump" {
		t.Errorf("the pre-start of a feature belongs to the one before: %+v", e)
	}
	for _, name := range []string{"behavior.feature.start", "behavior.feature.end"} {
		if e := in(name, "Fistbump"); e.FeatureRunID != "run-2" || e.FeatureType != "Fistbump" {
			t.Errorf("%s has another run than its pre-start: %+v", name, e)
		}
	}
	if e := in("robot.power_on"); e.FeatureRunID != "" || e.FeatureType != "" {
		t.Errorf("after the end of the feature: %+v", e)
	}
	in("wifi_conn_id.stop")
	in("ble_conn_id.stop")
	in("profile_id.stop")
	if e := in("robot.power_on"); e.ProfileID != "" || e.WifiConnID != "" || e.BLEConnID != "" {
		t.Errorf("after them: %+v", e)
	}
}

// TestAllowFileComesLast: VEC-LOG-08: a program that sees AllowFile leaves a log at once, so the robot knows of the yes by then; else it would delete the log.
func TestAllowFileComesLast(t *testing.T) {
	root := testRoot(t)
	m := newManager(t, root, "boot-1")
	for range 20 {
		if err := m.SetAllowUpload(false); err != nil {
			t.Fatal(err)
		}
		early := make(chan bool)
		go func() {
			for {
				if _, err := root.Stat(AllowFile); err == nil {
					early <- !m.AllowUpload()
					return
				}
			}
		}()
		if err := m.SetAllowUpload(true); err != nil {
			t.Fatal(err)
		}
		if <-early {
			t.Fatal("the file was there before the yes")
		}
	}
}

// TestSessionSurvives: part of VEC-DAS-05, VEC-DAS-08, VEC-DAS-18: the profile survives a boot, the other sessions a restart of agentd within it; a profile that
// begins while the owner allows no events is the one of later events.
func TestSessionSurvives(t *testing.T) {
	root := testRoot(t)
	m := newManager(t, root, "boot-1")
	for _, e := range []events.Event{{Name: "profile_id.start", S1: "p1"}, {Name: "ble_conn_id.start", S1: "b1"}} {
		if _, err := m.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.SetAllowUpload(false); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Emit(events.Event{Name: "profile_id.start", S1: "p2"}); !errors.Is(err, ErrOptedOut) {
		t.Fatal(err)
	}
	if b, err := root.ReadFile(m.file.PersistentGlobals); err != nil || string(b) != `{"dasGlobals":{"allow_upload":false,"profile_id":"p2"}}` {
		t.Errorf("globals %s, %v", b, err)
	}
	if s := newManager(t, root, "boot-1").session; s.profile != "p2" || s.BLE != "b1" {
		t.Errorf("after a restart: %+v", s)
	}
	if err := root.RemoveAll("run"); err != nil {
		t.Fatal(err)
	}
	if s := newManager(t, root, "boot-2").session; s.profile != "p2" || s.BLE != "" {
		t.Errorf("after a boot: %+v", s)
	}
}
