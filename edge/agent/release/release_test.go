package release

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/agent/health/nightly"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/update"
	"kennel/edge/update/slot"
	"kennel/infra/api/ack"
	"kennel/infra/errs"
	"kennel/ota"
)

// cloud answers with wish, and keeps what it is told.
type cloud struct {
	mu   sync.Mutex
	wish ota.Desired
	err  error
	got  []ota.Status
}

func (c *cloud) Do(context.Context, string, string, []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	return c.wish.Encode()
}

func (c *cloud) publish(_ context.Context, name string, b []byte) error {
	s, err := ota.ParseStatus(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && name == "ota" {
		c.got = append(c.got, s)
	}
	return err
}

// ack confirms what the cloud was told last.
func (c *cloud) ack(a *Agent) {
	c.mu.Lock()
	last := c.got[len(c.got)-1]
	c.mu.Unlock()
	a.HandleAck(ack.Ack{Batch: last.ID, Status: ack.Stored})
}

// say changes what the cloud answers from now on.
func (c *cloud) say(wish ota.Version, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wish.Release, c.err = wish, err
}

func (c *cloud) wishFor(d ota.Desired) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wish = d
}

// told returns what the cloud was told so far.
func (c *cloud) told() []ota.Status {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

func TestReportsUntilConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{wish: ota.Desired{Release: "2.0.1.6076"}, err: errs.New(errs.Unavailable, "down")}
		a := New(Config{Running: "2.0.0.6074", Ask: c, Publish: c.publish, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()

		a.Connected(true)
		if len(c.told()) != 0 {
			t.Fatal("reported without knowing the wish")
		}
		c.say("2.0.1.6076", nil)
		time.Sleep(time.Minute) // the cloud is back; no confirmation yet
		got := c.told()
		if n := len(got); n < 2 || got[0].ID != got[n-1].ID {
			t.Fatalf("reports %+v: want the same one again and again", got)
		}
		first := got[0]
		if first.Phase != ota.Pending || first.Reason == "" || first.Release != "2.0.1.6076" {
			t.Errorf("report %+v", first)
		}
		if a.HandleAck(ack.Ack{Batch: "other", Status: ack.Stored}) || !a.HandleAck(ack.Ack{Batch: first.ID, Status: ack.Stored}) {
			t.Error("acks are not told apart")
		}
		time.Sleep(5 * time.Minute)
		n := len(c.told())
		time.Sleep(10 * time.Hour)
		if len(c.told()) != n {
			t.Error("a confirmed report was repeated")
		}
		c.say("2.0.0.6074", nil)
		a.Hint(nil)
		got = c.told()
		if last := got[len(got)-1]; last.Phase != ota.Current {
			t.Errorf("after the wish became what runs: %+v", last)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestAsksAtRandom: the cloud is asked after times by chance, from seconds to an hour (VEC-OTA-19).
func TestAsksAtRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		var asked []time.Time
		a := New(Config{Ask: asker(func() { asked = append(asked, time.Now()) }), Publish: c.publish, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		a.Connected(true)
		synctest.Wait()
		a.HandleAck(ack.Ack{Batch: a.pending.ID, Status: ack.Stored})
		time.Sleep(100 * time.Hour)
		cancel()
		<-done
		var waits []time.Duration
		for n := range asked[3:] {
			waits = append(waits, asked[n+3].Sub(asked[n+2]))
		}
		if low, high := slices.Min(waits), slices.Max(waits); len(waits) < 120 || low < soonest || low > 10*time.Minute || high > poll || high < 50*time.Minute {
			t.Errorf("asked %d times in 100 hours, after %v to %v", len(waits), low, high)
		}
	})
}

// asker answers that nothing is wanted.
type asker func()

func (a asker) Do(context.Context, string, string, []byte) ([]byte, error) {
	a()
	return ota.Desired{}.Encode()
}

// updater is one that a test lets end.
type updater struct {
	mu    sync.Mutex
	runs  []update.Request
	urls  []string // asked for, one for each connection
	end   chan error
	back  []ota.Version
	fall  *slot.Fall
	again bool          // a second connection is needed
	waits *slot.Waiting // an update is installed
	slots update.State  // the rest
	stuck error         // of a withdrawal
	bytes int64         // downloaded, of 1,000

	withdrawn int // times
}

func (u *updater) Status() (update.Status, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return update.Status{Done: u.waits != nil, Expected: 1000, Progress: u.bytes}, nil
}

func (u *updater) State(wish string) (update.State, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.slots
	if s.Waits = u.waits; u.fall != nil && u.fall.Wish == wish {
		s.Fall = u.fall
	}
	return s, nil
}

func (u *updater) Run(ctx context.Context, r update.Request) (update.Result, error) {
	u.mu.Lock()
	u.runs = append(u.runs, r)
	n := 1
	if u.again {
		n = 2
	}
	u.mu.Unlock()
	for range n {
		if r.At == nil {
			break // where the configuration says
		}
		url, err := r.At(ctx)
		if err != nil {
			return update.Result{}, err
		}
		u.mu.Lock()
		u.urls = append(u.urls, url)
		u.mu.Unlock()
	}
	select {
	case err := <-u.end:
		u.mu.Lock()
		defer u.mu.Unlock()
		if err == nil {
			u.waits = &slot.Waiting{Version: "2.0.1.6076", Wish: r.Wish, Reboot: true}
		}
		return update.Result{Version: "2.0.1.6076", Reboot: true}, err
	case <-ctx.Done():
		return update.Result{}, ctx.Err()
	}
}

func (u *updater) ran() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.runs)
}

func (u *updater) Confirm(core bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.slots.Trial, u.slots.Unproven, u.slots.Core = false, false, u.slots.Core || core
	return nil
}

func (u *updater) RollBack(v ota.Version, why, wish string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.back, u.waits = append(u.back, v), &slot.Waiting{Version: v, Wish: wish, Back: true}
	u.fall = &slot.Fall{Wish: "of what runs", For: wish, Why: why}
	return nil
}

func (u *updater) Withdraw() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.withdrawn++
	if u.stuck == nil {
		u.waits = nil
	}
	return u.stuck
}

// TestInstalls: a release that the cloud wants is installed within its window and when battery and charger permit; each step is told, and the reboot
// waits for the last report (VEC-OTA-19, VEC-OTA-20).
func TestInstalls(t *testing.T) {
	const next = ota.Version("2.0.1.6076")
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := ota.Desired{Release: next, Since: since, Artifact: ota.Artifact{URL: "https://o/1"}}
	with := func(change func(*ota.Desired)) ota.Desired {
		d := want
		change(&d)
		return d
	}
	night := with(func(d *ota.Desired) { d.Window = &ota.Window{From: "02:00", To: "03:00"} }) // the bubble's clock begins at midnight
	charged := with(func(d *ota.Desired) { d.Needs = &ota.Needs{Charger: true} })
	back := with(func(d *ota.Desired) { d.Rollback = true })
	for _, tt := range []struct {
		name  string
		wish  ota.Desired
		u     *updater
		do    func(a *Agent, c *cloud, u *updater)
		want  []ota.Phase // the different ones in order
		runs  int
		boots int
	}{
		{"installed", want, &updater{}, func(_ *Agent, _ *cloud, u *updater) { u.end <- nil }, []ota.Phase{ota.Downloading, ota.Installed}, 1, 1},
		{"window", night, &updater{}, func(_ *Agent, c *cloud, u *updater) {
			time.Sleep(119 * time.Minute)
			if got := c.told(); got[len(got)-1].Phase != ota.Pending || u.ran() != 0 {
				t.Errorf("before its window: %+v, %d runs", got, u.ran())
			}
			u.end <- nil
		}, []ota.Phase{ota.Pending, ota.Downloading, ota.Installed}, 1, 1},
		{"charger", charged, &updater{}, func(_ *Agent, _ *cloud, u *updater) { u.end <- nil }, []ota.Phase{ota.Pending, ota.Downloading, ota.Installed}, 1, 1},
		{"refused", want, &updater{}, func(_ *Agent, _ *cloud, u *updater) {
			u.end <- ota.Fail(ota.NotAuthentic, "signature")
			time.Sleep(5 * time.Hour)
		}, []ota.Phase{ota.Downloading, ota.Failed}, 1, 0},
		{"refused, wanted again", want, &updater{}, func(a *Agent, c *cloud, u *updater) {
			u.end <- ota.Fail(ota.NotAuthentic, "signature")
			synctest.Wait()
			c.ack(a)
			c.wishFor(with(func(d *ota.Desired) { d.Since = since.Add(time.Hour) }))
			a.Hint(nil)
			u.end <- nil
		}, []ota.Phase{ota.Downloading, ota.Failed, ota.Downloading, ota.Installed}, 2, 1},
		{"passing", want, &updater{}, func(_ *Agent, _ *cloud, u *updater) {
			u.end <- ota.Fail(ota.TimedOut, "no data")
			u.end <- nil // an hour later
		}, []ota.Phase{ota.Downloading, ota.Failed, ota.Downloading, ota.Installed}, 2, 1},
		{"taken back", want, &updater{}, func(a *Agent, c *cloud, _ *updater) {
			synctest.Wait()
			c.wishFor(ota.Desired{})
			a.Hint(nil)
		}, []ota.Phase{ota.Downloading, ota.Pending, ota.Current}, 1, 0},
		{"a new address", want, &updater{again: true}, func(_ *Agent, c *cloud, u *updater) { u.end <- nil }, []ota.Phase{ota.Downloading, ota.Installed}, 1, 1},
		{"no archive", with(func(d *ota.Desired) { d.URL = "" }), &updater{}, nil, []ota.Phase{ota.Pending}, 0, 0},
		{"fell back", want, &updater{fall: &slot.Fall{Wish: wish(want), From: next, Why: "it did not start"}}, nil, []ota.Phase{ota.FellBack}, 0, 0},
		{"fell back from another wish", want, &updater{fall: &slot.Fall{Wish: "2.0.1.6076 earlier"}}, func(_ *Agent, _ *cloud, u *updater) { u.end <- nil },
			[]ota.Phase{ota.Downloading, ota.Installed}, 1, 1},
		{"roll back", back, &updater{}, nil, []ota.Phase{ota.Downloading, ota.Installed}, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, u := &cloud{wish: tt.wish}, tt.u
				u.end = make(chan error)
				boots, charger := 0, false
				a := New(Config{Running: "2.0.0.6074", Ask: c, Publish: c.publish, Updater: u, Log: slog.New(slog.DiscardHandler),
					Local: func() (time.Time, bool) { return time.Now().UTC(), true },
					Needs: func(ota.Needs) error {
						if charger {
							return nil
						}
						charger = true // a minute later
						return errs.New(errs.Unavailable, "not on the charger")
					},
					Reboot: func(context.Context) error { boots++; return nil }})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- a.Run(ctx) }()
				a.Connected(true)
				if tt.do != nil {
					tt.do(a, c, u)
				}
				for range 3 { // each report is confirmed, and what follows from that comes
					synctest.Wait()
					c.ack(a)
					time.Sleep(2 * time.Second)
				}
				synctest.Wait()
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if phases := phasesOf(c.told()); !slices.Equal(phases, tt.want) || u.ran() != tt.runs {
					t.Errorf("phases %q in %d runs, want %q in %d", phases, u.ran(), tt.want, tt.runs)
				}
				if (boots > 0) != (tt.boots > 0) {
					t.Errorf("%d reboots, want %d", boots, tt.boots)
				}
			})
		})
	}
}

// TestWithdraws: the robot withdraws what waits for the next boot, before it does or says anything else, unless the cloud wants it or a person asked for it at
// the robot. Every report says which wish it is about and what the next boot starts.
func TestWithdraws(t *testing.T) {
	const runs, bad, next = ota.Version("2.0.0.6074"), ota.Version("2.0.1.1"), ota.Version("2.0.1.2")
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	want := func(v ota.Version, n int) ota.Desired {
		return ota.Desired{Release: v, Since: day(n), Artifact: ota.Artifact{URL: "https://o/1"}}
	}
	back := func(v ota.Version, n int) ota.Desired { return ota.Desired{Release: v, Since: day(n), Rollback: true} }
	installed := slot.Waiting{Version: bad, Wish: wish(want(bad, 1))}
	person := slot.Waiting{Version: bad}
	returns := slot.Waiting{Version: "1.0.0.1", Wish: wish(back("1.0.0.1", 1)), Back: true}
	for _, tt := range []struct {
		name      string
		waits     slot.Waiting
		wish      ota.Desired
		withdrawn bool
		stuck     error
		phase     ota.Phase // of the first report
		next      ota.Version
		code      ota.Code
	}{
		{"this wish", installed, want(bad, 1), false, nil, ota.Installed, bad, 0},
		{"this wish, told in full", installed, func() ota.Desired { d := want(bad, 1); d.Since = d.Since.Add(999); return d }(), false, nil, ota.Installed, bad, 0},
		{"nothing", installed, ota.Desired{}, true, nil, ota.Current, "", 0},
		{"what runs", installed, want(runs, 2), true, nil, ota.Current, "", 0},
		{"back to what runs", installed, back(runs, 2), true, nil, ota.Current, "", 0},
		{"another release", installed, want(next, 2), true, nil, ota.Downloading, "", 0},
		{"the same release once more", installed, want(bad, 2), true, nil, ota.Downloading, "", 0},
		{"back to another one", installed, back("1.0.0.1", 2), true, nil, ota.Downloading, "", 0},
		{"stuck", installed, ota.Desired{Since: day(2)}, true, ota.Fail(ota.DiskFailed, "input/output error"), ota.Failed, bad, ota.SlotFailed},
		{"a return", returns, back("1.0.0.1", 1), false, nil, ota.Installed, "1.0.0.1", 0},
		{"a return, nothing", returns, ota.Desired{}, true, nil, ota.Current, "", 0},
		{"a return, another release", returns, want(next, 2), true, nil, ota.Downloading, "", 0},
		{"a person's, nothing", person, ota.Desired{}, false, nil, ota.Current, bad, 0},
		{"a person's, the same release", person, want(bad, 1), false, nil, ota.Installed, bad, 0},
		{"a person's, another release", person, want(next, 1), false, nil, ota.Pending, bad, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, u := &cloud{wish: tt.wish}, &updater{waits: &tt.waits, stuck: tt.stuck, end: make(chan error)}
				a := New(Config{Running: string(runs), Ask: c, Publish: c.publish, Updater: u, Log: slog.New(slog.DiscardHandler)})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- a.Run(ctx) }()
				a.Connected(true)
				got := c.told()[0]
				if got.Phase != tt.phase || got.Next != tt.next || got.Code != int(tt.code) || got.Release != tt.wish.Release || !got.Since.Equal(tt.wish.Since) || got.Running != string(runs) {
					t.Errorf("%+v, want %s, next %q, code %d", got, tt.phase, tt.next, tt.code)
				}
				if (u.withdrawn > 0) != tt.withdrawn {
					t.Errorf("withdrawn %d times, want %t", u.withdrawn, tt.withdrawn)
				}
				if tt.stuck != nil { // it is tried again
					u.mu.Lock()
					u.stuck = nil
					u.mu.Unlock()
					time.Sleep(2 * needs)
					if got := c.told(); got[len(got)-1].Phase != ota.Current || got[len(got)-1].Next != "" {
						t.Errorf("%+v, want the end of the withdrawal", got[len(got)-1])
					}
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestHint: a hint makes the robot ask at once, whatever it waits for.
func TestHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{}
		a := New(Config{Running: "2.0.0.6074", Ask: c, Publish: c.publish, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		a.Connected(true)
		c.told()
		c.ack(a)
		for _, wish := range []ota.Desired{{Release: "2.0.1.1"}, {}, {Release: "2.0.1.2"}} {
			c.wishFor(wish)
			at := time.Now()
			a.Hint(nil)
			if got := c.told(); got[len(got)-1].Release != wish.Release || time.Since(at) > 5*time.Second {
				t.Errorf("told %+v after %v, want release %q", got[len(got)-1], time.Since(at), wish.Release)
			}
			c.ack(a)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestOrders: an update that is asked for at the robot runs to its end, one at a time, with and without a cloud; it can be stopped, and the robot
// reboots for it if it may (VEC-OTA-19, VEC-OTA-20, part of VEC-UPD-02, VEC-RBT-02).
func TestOrders(t *testing.T) {
	const url = "https://o/1"
	kind := func(err error) errs.Kind { t.Helper(); return errs.KindOf(err) }
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, a *Agent, c *cloud, u *updater, root *os.Root)
		runs int
		boot bool
	}{
		{"installed", func(t *testing.T, a *Agent, _ *cloud, u *updater, _ *os.Root) {
			if err := a.Restart(t.Context()); kind(err) != errs.NotFound {
				t.Errorf("restart without an update: %v", err)
			}
			r, err := a.Start(Order{URL: url, Downgrade: true})
			if err != nil || !r.Runs {
				t.Errorf("%+v, %v", r, err)
			}
			synctest.Wait()
			if r, err := a.Start(Order{}); err != nil || !r.Runs {
				t.Errorf("once more: %+v, %v", r, err)
			}
			if _, err := a.Start(Order{URL: "https://o/2"}); kind(err) != errs.Conflict {
				t.Errorf("another one: %v", err)
			}
			u.end <- nil
			synctest.Wait()
			if r, err := a.Report(); err != nil || r.Runs || !r.Done || r.BLE != rebooting {
				t.Errorf("%+v, %v", r, err)
			}
			if r, err := a.Start(Order{URL: url}); err != nil || r.Runs || !u.runs[0].Downgrade || u.urls[0] != url {
				t.Errorf("%+v, %v; runs %+v", r, err, u.runs)
			}
		}, 1, true},
		{"stopped", func(t *testing.T, a *Agent, _ *cloud, _ *updater, _ *os.Root) {
			if _, err := a.Start(Order{URL: url}); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Stop(); err != nil { // at once
				t.Fatal(err)
			}
			synctest.Wait()
			if r, err := a.Report(); err != nil || r.Runs || r.Code != ota.Other || r.Why == "" {
				t.Errorf("%+v, %v", r, err)
			}
		}, 1, false},
		{"hot", func(t *testing.T, a *Agent, _ *cloud, _ *updater, _ *os.Root) {
			a.cfg.Needs = func(ota.Needs) error { return errs.New(errs.Unavailable, "hot") }
			if _, err := a.Start(Order{URL: url}); kind(err) != errs.Conflict {
				t.Errorf("%v", err)
			}
			if _, err := a.Start(Order{URL: url, Force: true}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}, 1, false},
		{"no reboot now", func(t *testing.T, a *Agent, _ *cloud, u *updater, root *os.Root) {
			touch(t, root, nightly.Inhibitors[1])
			if _, err := a.Start(Order{}); err != nil {
				t.Fatal(err)
			}
			u.end <- nil
		}, 1, false},
		{"a file asks for one", func(t *testing.T, a *Agent, c *cloud, u *updater, root *os.Root) {
			touch(t, root, platform.UpdateEngineOneshotFile)
			c.say("2.0.0.6074", nil)
			a.Connected(true)
			u.end <- ota.Fail(ota.BadURL, "no archive")
			synctest.Wait()
			if _, err := root.Stat(platform.UpdateEngineOneshotFile); err == nil {
				t.Error("the file is still there")
			}
			time.Sleep(5 * time.Hour)
		}, 1, false},
		{"the cloud wants one", func(t *testing.T, a *Agent, c *cloud, u *updater, _ *os.Root) {
			c.wishFor(ota.Desired{Release: "2.0.1.6076", Artifact: ota.Artifact{URL: url}, Window: &ota.Window{From: "02:00", To: "03:00"}})
			a.Connected(true)
			synctest.Wait()
			if r, err := a.Start(Order{}); err != nil || r.Runs || r.Wanted != "2.0.1.6076" {
				t.Errorf("%+v, %v", r, err)
			}
			synctest.Wait()
			if r, err := a.Report(); err != nil || r.Soon() || !strings.Contains(r.Waits, "window") {
				t.Errorf("%+v, %v: want the window in it", r, err)
			}
			a.Connected(false)
			if r, _ := a.Report(); r.Waits == "" || r.Soon() {
				t.Errorf("without a connection: %+v", r)
			}
		}, 0, false},
		{"the cloud's waits for it", func(t *testing.T, a *Agent, c *cloud, u *updater, _ *os.Root) {
			if _, err := a.Start(Order{URL: "https://o/2"}); err != nil {
				t.Fatal(err)
			}
			c.wishFor(ota.Desired{Release: "2.0.1.6076", Artifact: ota.Artifact{URL: url}})
			a.Connected(true)
			synctest.Wait()
			if len(u.runs) != 1 {
				t.Errorf("%d run at once", len(u.runs))
			}
			u.end <- ota.Fail(ota.NotAuthentic, "signature")
			synctest.Wait()
		}, 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			synctest.Test(t, func(t *testing.T) {
				c, u := &cloud{}, &updater{end: make(chan error)}
				boots := 0
				a := New(Config{Running: "2.0.0.6074", Ask: c, Publish: c.publish, Updater: u, Root: root, Log: slog.New(slog.DiscardHandler),
					Reboot: func(context.Context) error { boots++; return nil }})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- a.Run(ctx) }()
				tt.do(t, a, c, u, root)
				time.Sleep(2 * farewell)
				synctest.Wait()
				if len(u.runs) != tt.runs || (boots > 0) != tt.boot {
					t.Errorf("%d runs and %d reboots, want %d and %t", len(u.runs), boots, tt.runs, tt.boot)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
	a := New(Config{Log: slog.New(slog.DiscardHandler)})
	if _, err := a.Start(Order{}); kind(err) != errs.Unavailable {
		t.Errorf("a robot without slots: %v", err)
	}
}

func touch(t *testing.T, root *os.Root, name string) {
	t.Helper()
	if err := robotfs.WriteFile(root, name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
