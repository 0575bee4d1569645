package release

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/update/slot"
	"kennel/infra/errs"
	"kennel/ota"
)

// TestTrial: a new release is confirmed once the cloud was reached and the core was well for the settling time, and left if its core ends again and again or
// is not well in time, unless the body is silent. A robot without a core is confirmed by its cloud.
func TestTrial(t *testing.T) {
	trial := Trial{Settle: time.Minute, Ends: 3, Patience: 15 * time.Minute}
	up := func(age time.Duration) Core { return Core{Heard: true, Up: age} }
	type outcome struct {
		confirmed, core bool
		left            string // part of the reason
	}
	for _, tt := range []struct {
		name   string
		core   func(age time.Duration) Core // nil: the robot has none
		before bool                         // an earlier system had one
		away   bool                         // the cloud is not reached
		at     map[time.Duration]outcome
	}{
		{"well", up, true, false, map[time.Duration]outcome{50 * time.Second: {}, 62 * time.Second: {true, true, ""}}},
		{"well, without the cloud", up, true, true, map[time.Duration]outcome{time.Hour: {}}},
		{"no core", nil, false, false, map[time.Duration]outcome{time.Second: {true, false, ""}}},
		{"no core, without the cloud", nil, false, true, map[time.Duration]outcome{time.Hour: {}}},
		{"never heard of one", func(time.Duration) Core { return Core{} }, false, false,
			map[time.Duration]outcome{110 * time.Second: {}, 122 * time.Second: {true, false, ""}}},
		{"heard before this release", func(time.Duration) Core { return Core{} }, true, false,
			map[time.Duration]outcome{14 * time.Minute: {}, 16 * time.Minute: {false, false, "does not answer"}}},
		{"ends, and the cloud is reached", func(age time.Duration) Core {
			return Core{Heard: true, Up: age % (20 * time.Second), Ends: int(age / (20 * time.Second))}
		}, false, false, map[time.Duration]outcome{55 * time.Second: {}, 62 * time.Second: {false, false, "ended 3 times"}}},
		{"ends once", func(age time.Duration) Core {
			if age < 30*time.Second {
				return up(age)
			}
			return Core{Heard: true, Up: age - 30*time.Second, Ends: 1}
		}, true, false, map[time.Duration]outcome{80 * time.Second: {}, 92 * time.Second: {true, true, ""}}},
		{"a fault", func(age time.Duration) Core { return Core{Heard: true, Up: age, Why: "fault 916"} }, true, false,
			map[time.Duration]outcome{14 * time.Minute: {}, 16 * time.Minute: {false, false, "fault 916"}}},
		{"a fault that ends", func(age time.Duration) Core {
			c := up(age)
			if age < 10*time.Minute {
				c.Why = "fault 916"
			}
			return c
		}, true, false, map[time.Duration]outcome{9 * time.Minute: {}, 602 * time.Second: {true, true, ""}}},
		{"pauses", func(age time.Duration) Core { return Core{Heard: true, Up: age % (49 * time.Second)} }, true, false,
			map[time.Duration]outcome{14 * time.Minute: {}, 16 * time.Minute: {false, false, "pauses"}}},
		{"pauses, without the cloud", func(age time.Duration) Core { return Core{Heard: true, Up: age % (49 * time.Second)} }, true, true,
			map[time.Duration]outcome{16 * time.Minute: {false, false, "pauses"}}},
		{"a silent body", func(age time.Duration) Core { return Core{Heard: true, Up: age, Silent: true} }, true, false,
			map[time.Duration]outcome{time.Hour: {}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, u := &cloud{}, &updater{}
				u.slots.Trial, u.slots.Unproven, u.slots.Core = true, true, tt.before
				if tt.away {
					c.err = errs.New(errs.Unavailable, "down")
				}
				began := time.Now()
				var boots atomic.Int32
				cfg := Config{Running: "2.0.1.6076", Ask: c, Publish: c.publish, Updater: u, Trial: trial, Log: slog.New(slog.DiscardHandler),
					Reboot: func(context.Context) error { boots.Add(1); return nil }}
				if tt.core != nil {
					cfg.Core = func() Core { return tt.core(time.Since(began)) }
				}
				a := New(cfg)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- a.Run(ctx) }()
				a.Connected(true)
				for age := time.Duration(0); len(tt.at) > 0; age += time.Second {
					synctest.Wait()
					want, ok := tt.at[age]
					delete(tt.at, age)
					u.mu.Lock()
					got := outcome{!u.slots.Trial, u.slots.Core && !tt.before, ""}
					if u.fall != nil {
						got.left = u.fall.Why
					}
					u.mu.Unlock()
					want.core = want.core && !tt.before
					if ok && (got.confirmed != want.confirmed || got.core != want.core || (got.left != "") != (want.left != "") || !strings.Contains(got.left, want.left)) {
						t.Errorf("after %v: %+v, want %+v", age, got, want)
					}
					if (boots.Load() > 0) != (got.left != "") {
						t.Errorf("after %v: %d reboots, left because of %q", age, boots.Load(), got.left)
					}
					time.Sleep(time.Second)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestEndsInOneBoot: the ends of a core count in the whole boot, also over agents that start again.
func TestEndsInOneBoot(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	u := &updater{}
	u.slots.Trial, u.slots.Unproven = true, true
	for n, ends := range []int{1, 0, 1, 1} {
		if u.fall != nil {
			t.Errorf("left before agent %d", n)
		}
		synctest.Test(t, func(t *testing.T) {
			a := New(Config{Running: "2.0.1.6076", Ask: &cloud{}, Updater: u, Root: root, Log: slog.New(slog.DiscardHandler),
				Core: func() Core { return Core{Heard: true, Ends: ends} }})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- a.Run(ctx) }()
			time.Sleep(5 * looks)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	if u.fall == nil || !strings.Contains(u.fall.Why, "ended 3 times") {
		t.Errorf("fall %+v", u.fall)
	}
}

// TestOnTrial: nothing is installed over the only system that was well, for the cloud or for a person, until the running one is confirmed; the cloud can take
// the robot back at once.
func TestOnTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, u := &cloud{wish: ota.Desired{Release: "2.0.1.6077", Artifact: ota.Artifact{URL: "https://o/1"}}}, &updater{end: make(chan error)}
		u.slots.Trial, u.slots.Unproven = true, true
		began := time.Now()
		a := New(Config{Running: "2.0.1.6076", Ask: c, Publish: c.publish, Updater: u, Log: slog.New(slog.DiscardHandler),
			Core: func() Core { return Core{Heard: true, Up: time.Since(began)} }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		a.Connected(true)
		time.Sleep(30 * time.Second)
		if got := c.told(); got[len(got)-1].Phase != ota.Pending || u.ran() != 0 {
			t.Errorf("%+v, %d runs", got[len(got)-1], u.ran())
		}
		if _, err := a.Start(Order{URL: "https://o/2", Force: true}); errs.KindOf(err) != errs.Conflict {
			t.Errorf("at the robot: %v", err)
		}
		time.Sleep(32 * time.Second)
		if got := c.told(); got[len(got)-1].Phase != ota.Downloading || u.ran() != 1 {
			t.Errorf("%+v, %d runs", got[len(got)-1], u.ran())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, u := &cloud{wish: ota.Desired{Release: "2.0.0.6074", Rollback: true}}, &updater{}
		u.slots.Trial, u.slots.Unproven = true, true
		a := New(Config{Running: "2.0.1.6076", Ask: c, Publish: c.publish, Updater: u, Log: slog.New(slog.DiscardHandler), Core: func() Core { return Core{} }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		a.Connected(true)
		if c.told(); len(u.back) != 1 {
			t.Errorf("returned %d times", len(u.back))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestFallsBackOnce: a release whose core dies is left for the one before, which says so with the reason, and does not install that release again for the same
// wish: not after restarts, and not after another release was installed meanwhile. Another wish for it is another matter.
func TestFallsBackOnce(t *testing.T) {
	const next = bad
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := ota.Desired{Release: next, Since: since, Artifact: ota.Artifact{URL: "https://cloud/" + string(next)}}
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(t, slot.Content{Version: sound})
		var mu sync.Mutex
		desired := want
		wishFor := func(d ota.Desired) { mu.Lock(); desired = d; mu.Unlock() }
		s.wish = func(string) ota.Desired { mu.Lock(); defer mu.Unlock(); return desired }
		s.live()
		if got := s.last(); got.Phase != ota.Installed || got.Next != next {
			t.Fatalf("%+v", got)
		}
		s.boot()
		s.core = func() Core { return Core{Heard: true, Ends: 3} }
		s.live()
		if !s.reboot {
			t.Fatal("the release was not left")
		}
		s.core = nil
		for range 3 {
			s.boot()
			s.live()
			if got := s.last(); s.booted.Version != sound || got.Phase != ota.FellBack || !strings.Contains(got.Reason, "ended 3 times") || got.Release != next || !got.Since.Equal(since) {
				t.Fatalf("runs %s: %+v", s.booted.Version, got)
			}
		}
		other := want
		other.Release, other.URL, other.Since = hotfix, "https://cloud/"+string(hotfix), since.Add(time.Hour)
		wishFor(other)
		s.live()
		s.boot()
		s.live()
		if s.booted.Version != hotfix {
			t.Fatalf("runs %s", s.booted.Version)
		}
		wishFor(want)
		s.live()
		if got := s.last(); got.Phase != ota.FellBack {
			t.Fatalf("%+v", got)
		}
	})
}
