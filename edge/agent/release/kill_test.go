package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/update"
	"kennel/edge/update/disk"
	"kennel/edge/update/disktest"
	"kennel/edge/update/slot"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/ota"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// The releases of TestKills: the one that the robot was born with, one that is withdrawn, and the one in its place.
const (
	sound  ota.Version = "1.0.0.1"
	bad    ota.Version = "2.0.0.1"
	hotfix ota.Version = "2.0.0.2"
)

var releases = sync.OnceValue(func() map[string][]byte {
	out := map[string][]byte{}
	for n, v := range []ota.Version{bad, hotfix} {
		images := map[manifest.Part][]byte{manifest.Boot: archivetest.Image(uint64(n), 900), manifest.System: archivetest.Image(uint64(n)+7, 2000)}
		out["/"+string(v)] = archivetest.Make(manifest.Manifest{Version: v}, images, "")
	}
	return out
})

// subject is a robot with slots whose agent follows wishes, and the cloud that has them.
type subject struct {
	t      *testing.T
	disk   *disktest.Disk
	booted slot.Started
	wish   func(running string) ota.Desired
	core   func() Core // nil: it has none

	mu     sync.Mutex
	got    []ota.Status
	reboot bool
}

func newSubject(t *testing.T, system slot.Content) *subject {
	t.Helper()
	s := &subject{t: t, disk: disktest.New()}
	system.Images = map[manifest.Part]slot.Sum{}
	for _, part := range []manifest.Part{manifest.Boot, manifest.System} {
		f, err := s.disk.Write(slot.File(part, slot.A))
		if err == nil {
			_, err = f.WriteAt([]byte(part), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		sum, err := slot.SumOf(f, int64(len(part)))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		system.Images[part] = sum
	}
	if err := errors.Join(s.disk.SyncDir("slots"), slot.Make(s.disk, system, slot.Content{})); err != nil {
		t.Fatal(err)
	}
	s.boot()
	return s
}

// boot starts what the boot loader chooses; the files in memory are gone.
func (s *subject) boot() {
	s.t.Helper()
	s.disk.Power(disktest.Kept, "run")
	var err error
	if s.booted, err = slot.Boot(s.disk); err != nil || s.booted.Recovery {
		s.t.Fatalf("started %+v, %v", s.booted, err)
	}
}

// off reports whether the power is cut.
func (s *subject) off() bool {
	_, err := disk.Get(s.disk, "slots/state.json", 1<<16)
	return errors.Is(err, disktest.ErrCut)
}

// Do is the cloud's answer.
func (s *subject) Do(_ context.Context, _, _ string, body []byte) ([]byte, error) {
	var r ota.DesiredRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wish(r.Running).Encode()
}

// RoundTrip sends an archive.
func (s *subject) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	data := releases()[r.URL.Path]
	w.Header().Set("ETag", fmt.Sprintf("%q", r.URL.Path))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	return w.Result(), nil
}

// last is the newest report.
func (s *subject) last() (st ota.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) > 0 {
		st = s.got[len(s.got)-1]
	}
	return st
}

// config is the agent's.
func (s *subject) config() Config {
	s.t.Helper()
	dev, err := slot.Open(s.disk, s.booted.Slot)
	if err != nil {
		s.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	e := update.New(update.Config{Disk: s.disk, Device: dev, Unit: update.Unit{Running: s.booted.Version}, Env: func() update.Env { return update.Env{} },
		Key: &archivetest.Key().PublicKey, Client: &http.Client{Transport: s}, Log: log, Record: func(context.Context, events.Event) {}})
	return Config{Running: string(s.booted.Version), Ask: s, Updater: e, Core: s.core, Log: log,
		Publish: func(_ context.Context, _ string, b []byte) error {
			st, err := ota.ParseStatus(b)
			s.mu.Lock()
			defer s.mu.Unlock()
			if err == nil && !s.off() { // else this robot is dead
				s.got = append(s.got, st)
			}
			return err
		},
		Reboot: func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reboot = true
			return nil
		}}
}

// live runs the agent until it is idle, asks for a reboot or has lost its power. do is called once it is idle.
func (s *subject) live(do ...func(*Agent)) {
	s.t.Helper()
	a := New(s.config())
	s.reboot = false
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	a.Connected(true)
	for quiet := 0; quiet < 3 && !s.off(); {
		synctest.Wait()
		s.mu.Lock()
		reboot, n := s.reboot, len(s.got)
		s.mu.Unlock()
		if reboot {
			break
		}
		if n > 0 {
			a.HandleAck(ack.Ack{Batch: s.last().ID, Status: ack.Stored})
		}
		time.Sleep(5 * time.Second)
		s.mu.Lock()
		quiet++
		if len(s.got) != n {
			quiet = 0
		}
		s.mu.Unlock()
		if quiet == 3 && len(do) > 0 {
			do[0](a)
			do, quiet = do[1:], 0
		}
	}
	cancel()
	if err := <-done; err != nil {
		s.t.Error(err)
	}
}

// TestKills: the power fails, or the agent is killed, at each call to the disk while a release is installed, waits for its reboot at night, and is withdrawn:
// by a wish for nothing, for what runs, or for another release; likewise while the robot returns to the release before, and while that is taken back.
// Whatever is cut, a robot that asks the cloud again boots whole systems, ends on what the cloud wants, and never starts a release of which it has said
// that it does not wait any longer. KENNEL_SOAK cuts at each call, and a second time soon after; the usual test cuts at every third one.
func TestKills(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	want := func(v ota.Version, since int) ota.Desired {
		return ota.Desired{Release: v, Since: day(since), Artifact: ota.Artifact{URL: "https://cloud/" + string(v)}}
	}
	back := func(v ota.Version, since int) ota.Desired {
		return ota.Desired{Release: v, Since: day(since), Rollback: true}
	}
	always := func(d ota.Desired) func(string) ota.Desired { return func(string) ota.Desired { return d } }
	unless := func(d ota.Desired) func(string) ota.Desired { // a robot that runs the bad release returns to the one before
		return func(running string) ota.Desired {
			if running == string(bad) {
				return back(sound, 2)
			}
			return d
		}
	}
	for _, tt := range []struct {
		name  string
		first func(running string) ota.Desired
		then  func(running string) ota.Desired
		runs  ota.Version // at the end
		from  bool        // it runs the bad release at the beginning
	}{
		{"nothing is wanted", always(want(bad, 1)), unless(ota.Desired{}), sound, false},
		{"what runs is wanted", always(want(bad, 1)), unless(back(sound, 2)), sound, false},
		{"another release is wanted", always(want(bad, 1)), unless(want(hotfix, 2)), hotfix, false},
		{"it returns", always(back(sound, 2)), always(back(sound, 2)), sound, true},
		{"the return is taken back", always(back(sound, 2)), always(want(bad, 3)), bad, true},
	} {
		for _, loss := range append([]disktest.Loss{-1}, disktest.Losses...) { // -1: only the agent is killed
			t.Run(fmt.Sprintf("%s, loss %d", tt.name, loss), func(t *testing.T) {
				stride, seconds := 3, []int{0}
				if os.Getenv("KENNEL_SOAK") != "" {
					stride = 1
					for second := range 30 {
						seconds = append(seconds, second+1)
					}
				}
				for n := 1 + int(loss+1)%stride; ; n += stride {
					calls := 0
					for _, second := range seconds {
						synctest.Test(t, func(t *testing.T) { calls = kill(t, n, second, loss, tt.first, tt.then, tt.runs, tt.from) })
						if t.Failed() {
							t.Fatalf("cut at %d and %d", n, second)
						}
					}
					if calls < n {
						t.Logf("%d calls", calls)
						if calls < 9 {
							t.Error("want more")
						}
						return
					}
				}
			})
		}
	}
}

// kill cuts at the nth call, and again at the second one after that; 0: not again. It returns how many calls there were until it cut. Of each two robots one
// has a core that is well.
func kill(t *testing.T, n, second int, loss disktest.Loss, first, then func(string) ota.Desired, runs ota.Version, from bool) (calls int) {
	s := newSubject(t, slot.Content{Version: sound})
	if n%2 == 1 {
		s.core = func() Core { return Core{Heard: true, Up: time.Hour} }
	}
	if from {
		s.wish = func(string) ota.Desired {
			return ota.Desired{Release: bad, Since: time.Unix(1, 0), Artifact: ota.Artifact{URL: "https://cloud/" + string(bad)}}
		}
		s.live()
		s.boot()
		s.live()
	}
	began := s.booted
	s.wish = first
	s.disk.CutAt(n)
	s.live(func(a *Agent) { // it waits
		s.mu.Lock()
		s.wish = then
		s.mu.Unlock()
		a.Hint(nil)
	})
	if s.reboot { // a return asks for it, and its wish is taken back just then
		s.wish = then
		s.live()
	}
	calls = s.disk.Calls()
	s.wish = then
	for range 6 {
		st, before := s.last(), s.booted
		switch {
		case s.off() && loss < 0:
			s.disk.Power(disktest.Kept)
		case s.off():
			s.disk.Power(loss, "run")
			s.boot()
		default:
			s.boot() // it is night
		}
		s.disk.CutAt(second)
		second = 0
		about := then(string(before.Version))
		if st.Release == about.Release && st.Since.Equal(about.Since) && st.Running == string(before.Version) && s.booted != before {
			if st.Phase == ota.Current && st.Next == "" {
				t.Errorf("started %+v, and had said that nothing waits", s.booted)
			}
			if st.Phase == ota.Installed && s.booted.Version != st.Release {
				t.Errorf("started %+v, and had said that %s is installed", s.booted, st.Release)
			}
		}
		s.live()
	}
	if s.booted.Version != runs {
		t.Errorf("began with %+v, ends with %+v, want %s; reports %+v", began, s.booted, runs, s.got)
	}
	if st := s.last(); st.Phase != ota.Current || st.Next != "" {
		t.Errorf("last report %+v", st)
	}
	if phases := phasesOf(s.got); slices.Contains(phases, ota.Failed) {
		t.Errorf("phases %q", phases)
	}
	return calls
}

// phasesOf are the different phases in their order.
func phasesOf(got []ota.Status) (phases []ota.Phase) {
	for _, s := range got {
		if len(phases) == 0 || phases[len(phases)-1] != s.Phase {
			phases = append(phases, s.Phase)
		}
	}
	return phases
}
