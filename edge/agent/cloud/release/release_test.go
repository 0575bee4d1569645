package release

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// updater is one that a test lets end.
type updater struct {
	mu    sync.Mutex
	runs  []update.Request
	urls  []string // asked for, one for each connection
	end   chan error
	back  []ota.Version
	fall  *slot.Fall
	again bool // a second connection is needed
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
		return update.Result{Version: "2.0.1.6076", Reboot: true}, err
	case <-ctx.Done():
		return update.Result{}, ctx.Err()
	}
}

func (u *updater) Confirm() error { return nil }

func (u *updater) Fall() (*slot.Fall, error) { return u.fall, nil }

func (u *updater) RollBack(v ota.Version, _ string) error {
	u.back = append(u.back, v)
	return nil
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
			if got := c.told(); got[len(got)-1].Phase != ota.Pending || len(u.runs) != 0 {
				t.Errorf("before its window: %+v, %d runs", got, len(u.runs))
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
				var phases []ota.Phase
				for _, s := range c.told() {
					if len(phases) == 0 || phases[len(phases)-1] != s.Phase {
						phases = append(phases, s.Phase)
					}
				}
				if !slices.Equal(phases, tt.want) || len(u.runs) != tt.runs {
					t.Errorf("phases %q in %d runs, want %q in %d", phases, len(u.runs), tt.want, tt.runs)
				}
				if (boots > 0) != (tt.boots > 0) {
					t.Errorf("%d reboots, want %d", boots, tt.boots)
				}
			})
		})
	}
}
