package nightly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the days on which clocks change do not depend on the machine

	"kennel/edge/env/platform"
	"kennel/infra/api/events"
)

// original is the seed's table 579.
var original = platform.Rebooter{Earliest: time.Hour, Latest: 5 * time.Hour, InhibitorDelay: 17 * time.Second, MinimumUptime: 4 * time.Hour}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// robot is the rest of one, in a bubble whose time is the true one.
type robot struct {
	t        *testing.T
	dir      string
	root     *os.Root
	settings platform.Rebooter

	zone     *time.Location
	ahead    time.Duration // of its clock before the true time
	unset    bool
	awake    bool
	update   Update
	booted   time.Time
	boots    int
	refuse   error  // of Reboot
	deaf     bool   // Reboot changes nothing
	onRecord func() // called while an event is written
	onLook   func() // called before the clock is looked at
	setAt    time.Time

	reboots []time.Time // true times
	events  []events.Event
	starts  []Last
}

func newRobot(t *testing.T) *robot {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() }) // nothing is buffered
	for _, d := range []string{"data", "run"} {
		if err := root.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &robot{t: t, dir: dir, root: root, settings: original, zone: time.UTC, onRecord: func() {}, onLook: func() {}}
}

func (r *robot) clock() time.Time { return time.Now().Add(r.ahead).In(r.zone) }

func (r *robot) touch(name string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, filepath.FromSlash(name)), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *robot) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
}

func (r *robot) there(name string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, filepath.FromSlash(name)))
	return err == nil
}

// boot is one life of the robot's programs; it ends with a nightly reboot or with ctx.
func (r *robot) boot(ctx context.Context) {
	r.boots++
	r.booted = time.Now()
	boot := fmt.Sprintf("boot-%d", r.boots)
	last, err := Started(r.root, boot)
	if err != nil {
		r.t.Error(err)
	}
	r.starts = append(r.starts, last)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = New(Config{
		Root: r.root, BootID: boot, Settings: r.settings, Log: slog.New(slog.DiscardHandler),
		Clock: func() (time.Time, bool) {
			r.onLook()
			return r.clock(), !r.unset && !time.Now().Before(r.setAt)
		},
		Uptime:  func() time.Duration { return time.Since(r.booted) },
		Resting: func() bool { return !r.awake },
		Update:  func() Update { return r.update },
		Record: func(_ context.Context, e events.Event) {
			r.events = append(r.events, e)
			r.onRecord()
		},
		Reboot: func(context.Context) error {
			if r.refuse != nil {
				return r.refuse
			}
			if !r.there(AskedFile) {
				r.t.Errorf("%s is not there when the robot reboots", AskedFile)
			}
			r.reboots = append(r.reboots, time.Now())
			if !r.deaf {
				cancel()
			}
			return nil
		},
	}, last.At).Run(ctx)
	if err != nil {
		r.t.Error(err)
	}
}

// live runs the robot until a moment, boot after boot; run/ is empty after each.
func (r *robot) live(until time.Time) {
	ctx, cancel := context.WithDeadline(r.t.Context(), until)
	defer cancel()
	for ctx.Err() == nil {
		r.boot(ctx)
		for _, name := range []string{AfterFile, "run/inhibit_reboot"} {
			r.remove(name)
		}
	}
}

// outcomes are s1 and s2 of the events.
func (r *robot) outcomes() (out []string) {
	for _, e := range r.events {
		if e.Name != Event {
			r.t.Errorf("event %q", e.Name)
		}
		s := e.S1
		if e.S2 != "" {
			s += " " + e.S2
		}
		out = append(out, s)
	}
	return out
}

func (r *robot) wants(reboots int, outcomes ...string) {
	r.t.Helper()
	if len(r.reboots) != reboots || !slices.Equal(r.outcomes(), outcomes) {
		r.t.Errorf("%d reboots, events %q; want %d, %q", len(r.reboots), r.outcomes(), reboots, outcomes)
	}
}

// midnight is the beginning of the bubble's time.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// in runs f in a bubble, from midnight on.
func in(t *testing.T, f func(t *testing.T, r *robot)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newRobot(t)) })
}

// TestEachNight: VEC-BOOT-16: a robot that is left on and sleeps is rebooted once a night, at another moment each time, and its next start knows.
func TestEachNight(t *testing.T) {
	in(t, func(t *testing.T, r *robot) {
		r.live(midnight.Add(10 * day)) // the first night it was just booted
		if len(r.reboots) != 9 && len(r.reboots) != 10 {
			t.Fatalf("%d reboots in ten nights", len(r.reboots))
		}
		moments := map[time.Duration]bool{}
		for i, at := range r.reboots {
			if s := at.Sub(at.Truncate(day)); s < time.Hour || s > 5*time.Hour {
				t.Errorf("reboot %d at %v", i, at)
			} else {
				moments[s] = true
			}
			if got := r.starts[i+1]; !got.At.Equal(at) || !got.News || !got.Robot {
				t.Errorf("start after reboot %d at %v: %+v", i, at, got)
			}
		}
		if len(moments) < 8 {
			t.Errorf("moments are not by chance: %v", r.reboots)
		}
	})
}

// TestTimesOfDay: windows of other shapes, and days on which clocks change.
func TestTimesOfDay(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to time.Duration
		zone     string
		begin    time.Time // the robot has been up for long enough
		want     string    // the hours in which it may reboot, on the clock on the wall; "": none
		most     int
	}{
		"as the original's": {time.Hour, 5 * time.Hour, "Europe/Berlin", time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), "01 02 03 04", 1},
		"past midnight":     {23 * time.Hour, 2 * time.Hour, "Europe/Berlin", time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), "23 00 01", 1},
		"24:00 is midnight": {24 * time.Hour, 2 * time.Hour, "Europe/Berlin", time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), "00 01", 1},
		"until midnight":    {22 * time.Hour, 24 * time.Hour, "Europe/Berlin", time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), "22 23", 1},
		"one second":        {3 * time.Hour, 3 * time.Hour, "Europe/Berlin", time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), "03", 1},
		"spring forward":    {time.Hour, 5 * time.Hour, "Europe/Berlin", time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), "01 03 04", 1},
		"spring forward, in the hour that is not": {2*time.Hour + time.Second, 3*time.Hour - time.Second, "Europe/Berlin", time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), "", 0},
		"spring forward, from where it is not":    {2*time.Hour + 30*time.Minute, 4 * time.Hour, "America/Los_Angeles", time.Date(2026, 3, 7, 20, 0, 0, 0, time.UTC), "03", 1},
		"fall back":                               {time.Hour, 5 * time.Hour, "Europe/Berlin", time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC), "01 02 03 04", 1},
		"fall back, in the hour that is twice":    {time.Hour, 2*time.Hour - time.Second, "America/Los_Angeles", time.Date(2026, 10, 31, 20, 0, 0, 0, time.UTC), "01", 1},
		"midnight that is not":                    {0, 90 * time.Minute, "America/Sao_Paulo", time.Date(2018, 11, 3, 20, 0, 0, 0, time.UTC), "01", 1},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // moments by chance
				in(t, func(t *testing.T, r *robot) {
					r.settings.Earliest, r.settings.Latest, r.zone = tc.from, tc.to, zone(t, tc.zone)
					r.ahead = time.Until(tc.begin.Add(-5 * time.Hour))
					r.setAt = time.Now().Add(5 * time.Hour)
					r.live(r.setAt.Add(day - time.Hour))
					if len(r.reboots) > tc.most || tc.want != "" && len(r.reboots) == 0 && tc.from != tc.to {
						t.Fatalf("%d reboots at %v, %q", len(r.reboots), r.reboots, r.outcomes())
					}
					for _, at := range r.reboots {
						if hour := at.Add(r.ahead).In(r.zone).Format("15"); !slices.Contains(fields(tc.want), hour) {
							t.Errorf("at %v, want in the hours %q", at.Add(r.ahead).In(r.zone), tc.want)
						}
					}
				})
			}
		})
	}
}

func fields(s string) (out []string) {
	for i := 0; i+2 <= len(s); i += 3 {
		out = append(out, s[i:i+2])
	}
	return out
}

// TestNotThisNight: what speaks against it, all night long, is told once.
func TestNotThisNight(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(r *robot)
		want string
	}{
		"awake":             {func(r *robot) { r.awake = true }, NotRest},
		"update runs":       {func(r *robot) { r.update = UpdateRuns }, Updating},
		"inhibited in data": {func(r *robot) { r.touch("data/inhibit_reboot") }, Inhibited},
		"inhibited in run":  {func(r *robot) { r.touch("run/inhibit_reboot") }, Inhibited},
		"just booted":       {func(r *robot) { r.settings.MinimumUptime = 100 * time.Hour }, Uptime},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, r *robot) {
				tc.set(r)
				r.live(midnight.Add(day + 12*time.Hour)) // two nights
				r.wants(0, Skipped+" "+tc.want, Skipped+" "+tc.want)
				if r.there(AskedFile) {
					t.Errorf("%s is there", AskedFile)
				}
			})
		})
	}
}

// TestClockThatNobodySet: VEC-BOOT-14: without network time there is no night; with it the window that it is in counts.
func TestClockThatNobodySet(t *testing.T) {
	in(t, func(t *testing.T, r *robot) {
		r.setAt = midnight.Add(5*day + 3*time.Hour)
		r.live(r.setAt.Add(-time.Second))
		r.wants(0)
		r.live(midnight.Add(5*day + 6*time.Hour)) // booted at 3:00, too late for 4 hours
		r.wants(0, Skipped+" "+Uptime)
		r.live(midnight.Add(6*day + 6*time.Hour))
		r.wants(1, Skipped+" "+Uptime, Proceeding)
	})
}

// TestOnceANight: a clock that goes back, and a uptime that is enough again, bring no second reboot in the same window.
func TestOnceANight(t *testing.T) {
	in(t, func(t *testing.T, r *robot) {
		r.settings.MinimumUptime = 0
		r.onLook = func() {
			if len(r.reboots) == 1 {
				r.ahead = midnight.Add(time.Hour).Sub(r.reboots[0])
			}
		}
		r.live(midnight.Add(6 * time.Hour))
		if len(r.reboots) != 1 {
			t.Errorf("%d reboots in one night", len(r.reboots))
		}
	})
}

// TestInhibitedForAWhile: files that come while the robot waits count, and those that go; also those that come at the last moment.
func TestInhibitedForAWhile(t *testing.T) {
	in(t, func(t *testing.T, r *robot) {
		r.settings.MinimumUptime, r.settings.Latest = 0, time.Hour+10*time.Minute
		time.AfterFunc(59*time.Minute, func() { r.touch("run/inhibit_reboot") })
		gone := 69*time.Minute + 30*time.Second
		time.AfterFunc(gone, func() { r.remove("run/inhibit_reboot") })
		r.live(midnight.Add(12 * time.Hour))
		r.wants(1, Proceeding)
		if at := r.reboots[0].Sub(midnight); at < gone || at > gone+30*time.Second {
			t.Errorf("rebooted after %v, want soon after %v: the file is looked at each 17 s", at, gone)
		}
	})
	in(t, func(t *testing.T, r *robot) {
		r.settings.MinimumUptime = 0
		said := 0
		r.onRecord = func() {
			if said++; said == 1 { // after it is said that the reboot begins
				r.touch("data/inhibit_reboot")
			}
		}
		r.live(midnight.Add(12 * time.Hour))
		r.wants(0, Proceeding, PutOff+" "+Inhibited, Skipped+" "+Inhibited)
		if r.there(AskedFile) {
			t.Errorf("%s says that a reboot began", AskedFile)
		}
	})
}

// TestUpdateThatWaits: an update that is installed needs the reboot, and the robot need not rest for it; the files count all the same.
func TestUpdateThatWaits(t *testing.T) {
	in(t, func(t *testing.T, r *robot) {
		r.settings.MinimumUptime, r.awake, r.update = 0, true, UpdateWaits
		r.live(midnight.Add(12 * time.Hour))
		r.wants(1, Proceeding)
		r.touch(Inhibitors[0])
		r.live(midnight.Add(36 * time.Hour))
		r.wants(1, Proceeding, Skipped+" "+Inhibited)
	})
}

// TestRebootThatFails: it is told, not tried again before the next night, and no later start takes itself for one.
func TestRebootThatFails(t *testing.T) {
	for name, set := range map[string]func(r *robot) (tries int, why string){
		"refused": func(r *robot) (int, string) {
			r.refuse = errors.New("no such program")
			return 0, "no such program"
		},
		"nothing happens": func(r *robot) (int, string) {
			r.deaf = true
			return 1, "program still running after 5m0s"
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, r *robot) {
				r.settings.MinimumUptime = 0
				tries, why := set(r)
				r.live(midnight.Add(12 * time.Hour))
				r.wants(tries, Proceeding, Failed+" "+why)
				if r.there(AskedFile) || r.events[1].Level != events.Error {
					t.Errorf("%s is there: %v; %+v", AskedFile, r.there(AskedFile), r.events[1])
				}
			})
		})
	}
}

// TestNeverAgainstTheRules: in no sequence of events does a robot reboot outside its window, below its uptime, awake, inhibited, during an
// update, by a clock that was never set, or twice in a night; and where nothing was against it all night, it does.
func TestNeverAgainstTheRules(t *testing.T) {
	zones := []*time.Location{time.UTC, zone(t, "Europe/Berlin"), zone(t, "America/Los_Angeles"), zone(t, "Australia/Lord_Howe"),
		zone(t, "Asia/Kathmandu")}
	total := 0
	for seed := range uint64(12) {
		in(t, func(t *testing.T, r *robot) {
			rnd := rand.New(rand.NewPCG(seed, 16))
			r.settings = platform.Rebooter{
				Earliest: time.Duration(rnd.IntN(86401)) * time.Second, Latest: time.Duration(rnd.IntN(86401)) * time.Second,
				InhibitorDelay: time.Duration(rnd.IntN(60)) * time.Second, MinimumUptime: time.Duration(rnd.IntN(8*3600)) * time.Second,
			}
			r.ahead = time.Until(time.Date(2026, 3, 27, 0, 0, 0, 0, time.UTC)) // clocks change in Europe and in a part of Australia soon
			r.zone = zones[rnd.IntN(len(zones))]
			change := func() {
				switch rnd.IntN(9) {
				case 0, 1:
					r.awake = !r.awake
				case 2:
					r.touch(Inhibitors[rnd.IntN(2)])
				case 3, 4:
					r.remove(Inhibitors[rnd.IntN(2)])
				case 5:
					r.update = Update(rnd.IntN(3))
				case 6:
					r.update = NoUpdate
				case 7:
					r.unset = !r.unset
				case 8:
					if rnd.IntN(3) == 0 {
						r.zone = zones[rnd.IntN(len(zones))]
						r.ahead += time.Duration(rnd.IntN(7200)-3600) * time.Second
					}
				}
			}
			r.onRecord = func() {
				if rnd.IntN(2) == 0 {
					change() // in the middle of it
				}
			}
			var next time.Time
			r.onLook = func() {
				for time.Now().After(next) {
					next = time.Now().Add(time.Duration(rnd.IntN(3600)) * time.Second)
					change()
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*day)
			defer cancel()
			for ctx.Err() == nil {
				n := len(r.reboots)
				r.boot(ctx)
				if len(r.reboots) == n {
					continue
				}
				at := r.clock()
				h, m, s := at.Clock()
				sec, from, to := time.Duration(h*3600+m*60+s)*time.Second, r.settings.Earliest, r.settings.Latest
				inside := from <= sec && sec <= to
				if to < from {
					inside = from <= sec || sec <= to
				}
				if !inside || r.unset {
					t.Errorf("seed %d: at %v, set %v; want %v to %v", seed, at, !r.unset, from, to)
				}
				if r.there(Inhibitors[0]) || r.there(Inhibitors[1]) || r.update == UpdateRuns || r.awake && r.update != UpdateWaits {
					t.Errorf("seed %d: at %v awake %v, update %d, inhibited %v %v", seed, at, r.awake, r.update, r.there(Inhibitors[0]), r.there(Inhibitors[1]))
				}
				if up := time.Since(r.booted); up < r.settings.MinimumUptime {
					t.Errorf("seed %d: at %v up for %v, want %v", seed, at, up, r.settings.MinimumUptime)
				}
			}
			total += len(r.reboots)
		})
	}
	if total < 10 {
		t.Errorf("%d reboots in all: the histories show nothing", total)
	}
}

// TestStarted: VEC-BOOT-16, seed line 14915: the file moves to where the robot's programs look, whatever it holds; an agentd that alone restarted
// says so.
func TestStarted(t *testing.T) {
	r := newRobot(t)
	started := func(what, boot string, want Last) {
		t.Helper()
		if got, err := Started(r.root, boot); err != nil || !got.At.Equal(want.At) || got.News != want.News || got.Robot != want.Robot {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
		}
	}
	at := time.Date(2026, 5, 1, 3, 4, 5, 6, time.UTC)
	started("the first start", "a", Last{})
	if err := writeMark(r.root, mark{at, "a"}); err != nil || !Asked(r.root) {
		t.Fatal(err)
	}
	started("the start after it", "b", Last{at, true, true})
	if Asked(r.root) || !r.there(AfterFile) {
		t.Errorf("asked %v, after %v", Asked(r.root), r.there(AfterFile))
	}
	started("another start of the same boot", "b", Last{at, false, true})
	r.remove(AfterFile)
	started("the boot after that", "c", Last{})
	if err := writeMark(r.root, mark{at, "c"}); err != nil {
		t.Fatal(err)
	}
	started("agentd alone", "c", Last{at, true, false})
	r.touch(AskedFile)
	started("the original's file", "d", Last{time.Time{}, true, true})
	r.remove(AfterFile)
	if err := r.root.Mkdir(AskedFile, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Started(r.root, "e"); err == nil {
		t.Error("a folder in the file's place is no error")
	}
}

func FuzzParseMark(f *testing.F) {
	f.Add([]byte(""))
	f.Add(mark{midnight, "5f3c"}.append(nil))
	f.Add([]byte("2026-05-01T03:04:05+02:00 x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := parseMark(b)
		if !ok {
			return
		}
		again, ok := parseMark(m.append(nil))
		if !ok || !again.at.Equal(m.at) || again.boot != m.boot {
			t.Errorf("%q is %+v, and written %+v, %v", b, m, again, ok)
		}
	})
}
