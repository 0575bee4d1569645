package update

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/update/disk"
	"kennel/edge/update/disktest"
	"kennel/edge/update/slot"
	"kennel/infra/api/events"
	"kennel/ota"
	"kennel/ota/archive/archivetest"
	"kennel/ota/delta"
	"kennel/ota/manifest"
)

// robot is a robot with slots, and a server with its archives.
type robot struct {
	t      *testing.T
	disk   *disktest.Disk
	booted slot.Started
	server *httptest.Server
	sent   atomic.Pointer[atomic.Int64] // bytes of archives, by the requests since forget
	unit   Unit

	mu     sync.Mutex
	files  map[string][]byte // by path
	events []events.Event
}

func newRobot(t *testing.T) *robot {
	t.Helper()
	r := &robot{t: t, disk: disktest.New(), files: map[string][]byte{}, unit: Unit{Running: archivetest.Running, QSN: archivetest.QSN}}
	contents := [2]slot.Content{{Version: archivetest.Running}, {Version: "0.9.0.1"}}
	for n, images := range []map[manifest.Part][]byte{
		oldImages(),
		{manifest.ABoot: archivetest.Image(93, 900), manifest.Recovery: archivetest.Image(94, 900), manifest.RecoveryFS: archivetest.Image(95, 900)},
	} {
		contents[n].Images = map[manifest.Part]slot.Sum{}
		for part, data := range images {
			f, err := r.disk.Write(slot.File(part, slot.A))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(data, 0); err != nil {
				t.Fatal(err)
			}
			sum, err := slot.SumOf(f, int64(len(data)))
			if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
				t.Fatal(err)
			}
			contents[n].Images[part] = sum
		}
	}
	if err := errors.Join(r.disk.SyncDir("slots"), slot.Make(r.disk, contents[0], contents[1])); err != nil {
		t.Fatal(err)
	}
	r.forget()
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		data, ok := r.files[req.URL.Path]
		r.mu.Unlock()
		if !ok {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprint(len(data), req.URL.Path)))
		http.ServeContent(&counted{w, r.sent.Load()}, req, "", time.Time{}, bytes.NewReader(data))
	}))
	t.Cleanup(r.server.Close)
	r.boot()
	return r
}

// forget counts from zero. A request that was given up may still be sending: it has a count of its own.
func (r *robot) forget() { r.sent.Store(new(atomic.Int64)) }

type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

func oldImages() map[manifest.Part][]byte {
	return map[manifest.Part][]byte{manifest.Boot: archivetest.Image(91, 9_000), manifest.System: archivetest.Image(92, 60_000)}
}

// deltaArchive changes the old images to new ones.
func deltaArchive(t *testing.T, base ota.Version, next map[manifest.Part][]byte) []byte {
	t.Helper()
	var parts []delta.Part
	for _, part := range []manifest.Part{manifest.Boot, manifest.System} {
		if data, ok := next[part]; ok {
			parts = append(parts, delta.Part{Name: string(part), Base: bytes.NewReader(oldImages()[part]), New: bytes.NewReader(data)})
		}
	}
	var payload bytes.Buffer
	if err := delta.Make(&payload, parts...); err != nil {
		t.Fatal(err)
	}
	return archivetest.Make(manifest.Manifest{Images: []manifest.Image{{Base: base}}}, map[manifest.Part][]byte{manifest.Changes: payload.Bytes()}, "")
}

// rebuilt is the old system with something in its midst, larger than before.
func rebuilt() map[manifest.Part][]byte {
	old := oldImages()
	system := slices.Concat(old[manifest.System][:20_000], []byte("a new function"), old[manifest.System][20_000:])
	return map[manifest.Part][]byte{manifest.Boot: append(old[manifest.Boot], 1, 2, 3), manifest.System: system}
}

// boot starts what the boot loader chooses; the files in memory are gone.
func (r *robot) boot() slot.Started {
	r.t.Helper()
	r.disk.Power(disktest.Kept, "run")
	var err error
	if r.booted, err = slot.Boot(r.disk); err != nil {
		r.t.Fatal(err)
	}
	r.unit.Running = r.booted.Version
	r.unit.Recovery = r.booted.Recovery
	return r.booted
}

func (r *robot) engine(change ...func(*Config)) *Engine {
	r.t.Helper()
	dev, err := slot.Open(r.disk, r.booted.Slot)
	if err != nil {
		r.t.Fatal(err)
	}
	cfg := Config{Disk: r.disk, Device: dev, Unit: r.unit, Env: func() Env { return Env{BaseURL: r.server.URL, Type: "diff"} }, Key: &archivetest.Key().PublicKey,
		Client: r.server.Client(), Log: slog.New(slog.DiscardHandler), Quiet: 10 * time.Second, Patience: 10 * time.Second,
		Record: func(_ context.Context, e events.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		}}
	for _, c := range change {
		c(&cfg)
	}
	e := New(cfg)
	e.piece, e.keep = 8<<10, 20<<10
	return e
}

func (r *robot) put(path string, data []byte) Address {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[path] = data
	return func(context.Context) (string, error) { return r.server.URL + path + "?signature=secret", nil }
}

// TestUpdate is the whole way of an update of each kind: status folder, slots, events, the next boot (VEC-OTA-14, part of VEC-OTA-15, VEC-OTA-22).
func TestUpdate(t *testing.T) {
	r := newRobot(t)
	data := archivetest.Make(manifest.Manifest{Reboot: true}, archivetest.Production(), "")
	at := r.put("/v/full/2.ota", data)
	var phases []Phase
	e := r.engine(func(c *Config) { c.Changed = func(p Phase, _ ota.Version) { phases = append(phases, p) } })
	got, err := e.Run(t.Context(), Request{At: at})
	if err != nil || got != (Result{archivetest.Version, true, true}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := []Phase{Starting, Downloading, Downloading, Finished}; !slices.Equal(phases, want) {
		t.Errorf("phases %q, want %q", phases, want)
	}
	s, err := e.Status()
	if want := (Status{Phase: Finished, Version: archivetest.Version, Done: true, Expected: int64(len(data)), Progress: s.Progress}); err != nil || s != want || s.Progress < 20_000 {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
	for name, want := range map[string]string{sizeFile: "90000", doneFile: ""} {
		if b, err := disk.Get(r.disk, name, 100); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %q", name, b, err, want)
		}
	}
	if _, err := e.Run(t.Context(), Request{At: at}); !errors.Is(err, ErrWaits) {
		t.Errorf("before the reboot: %v, want %v", err, ErrWaits)
	}
	if len(r.events) != 2 || r.events[0].Name != EventStart || r.events[0].S1 != r.server.URL+"/v/full/2.ota" || r.events[1].Name != EventEnd ||
		r.events[1].S1 != "success" || r.events[1].S2 != string(archivetest.Version) || r.events[1].I2.N != int64(len(data)) {
		t.Errorf("events %+v", r.events)
	}
	if s := r.boot(); s.Version != archivetest.Version || s.Slot != slot.B {
		t.Errorf("started %+v", s)
	}
}

// TestFactoryUpdate: a factory update starts the recovery system and asks for the owner's data to be erased, also if the power fails at once
// (VEC-OTA-12).
func TestFactoryUpdate(t *testing.T) {
	r := newRobot(t)
	at := r.put("/f.ota", archivetest.Make(manifest.Manifest{QSN: archivetest.QSN}, archivetest.Factory(), ""))
	if _, err := r.engine().Run(t.Context(), Request{At: at}); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(r.disk.Names(), wipeFile) {
		t.Error("no", wipeFile)
	}
	r.disk.Power(disktest.Lost, "run")
	if s := r.boot(); !s.Recovery || s.Version != archivetest.Version {
		t.Errorf("started %+v", s)
	}
	dev, err := slot.Open(r.disk, r.booted.Slot)
	if err != nil || !dev.Record().Wipe {
		t.Errorf("%v, %+v: want Wipe", err, dev.Record())
	}
	// The recovery system gets the release that is there, whatever its version.
	r.put("/full/latest.ota", archivetest.Make(manifest.Manifest{Version: "0.5.0.1"}, archivetest.Production(), ""))
	if _, err := r.engine().Run(t.Context(), Request{}); err != nil {
		t.Fatal(err)
	}
	if s := r.boot(); s.Recovery || s.Version != "0.5.0.1" {
		t.Errorf("started %+v", s)
	}
}

// TestCutAtEveryCall: the power fails at every write, sync, rename and removal of an update of each kind, one after the other, whatever the disk makes
// of it. The robot boots a whole system each time, and the next try ends updated; an image that was kept is not sent again, a factory update never
// forgets the owner's data, and the new system knows for which wish of the cloud it was installed (issue 17, VEC-OTA-12).
func TestCutAtEveryCall(t *testing.T) {
	const wish = "2.0.1.6076 2026-01-01T00:00:00Z"
	factory := archivetest.Make(manifest.Manifest{QSN: archivetest.QSN}, archivetest.Factory(), "")
	for _, kind := range []struct {
		name    string
		archive []byte
		version ota.Version
		resumes bool
		rescue  bool // the recovery system runs
	}{
		{"full", archivetest.Make(manifest.Manifest{}, archivetest.Production(), ""), archivetest.Version, true, false},
		{"delta", deltaArchive(t, archivetest.Running, rebuilt()), archivetest.Version, false, false},
		{"factory", factory, archivetest.Version, true, false},
		{"rescue", archivetest.Make(manifest.Manifest{Version: "0.5.0.1"}, archivetest.Production(), ""), "0.5.0.1", true, true},
	} {
		for _, loss := range disktest.Losses {
			t.Run(fmt.Sprintf("%s, loss %d", kind.name, loss), func(t *testing.T) {
				t.Parallel()
				resumed := 0
				for n := 1; ; n++ {
					r := newRobot(t)
					if kind.rescue {
						if _, err := r.engine().Run(t.Context(), Request{At: r.put("/f.ota", factory)}); err != nil || !r.boot().Recovery {
							t.Fatal(err, r.booted)
						}
					}
					before := r.booted
					request := Request{At: r.put("/v.ota", kind.archive), Wish: wish}
					r.disk.CutAt(n)
					_, err := r.engine().Run(t.Context(), request)
					r.disk.Power(loss, "run")
					s := r.boot()
					whole := err == nil && s.Version == kind.version
					if s != before && s.Version != kind.version {
						t.Fatalf("cut at %d: started %+v", n, s)
					}
					if s == before {
						if readCheckpoint(r.disk) != nil {
							resumed++
						}
						if _, err := r.engine().Run(t.Context(), request); err != nil {
							t.Fatalf("cut at %d: again: %v", n, err)
						}
						s = r.boot()
					}
					dev, err := slot.Open(r.disk, s.Slot)
					if err != nil {
						t.Fatal(err)
					}
					got := dev.Record().Slots[s.Slot].Content
					if kind.name == "factory" {
						if got = dev.Record().Factory; !dev.Record().Wipe || !s.Recovery {
							t.Fatalf("cut at %d: started %+v, wipe %t", n, s, dev.Record().Wipe)
						}
					}
					if s.Version != kind.version || got.Wish != wish {
						t.Fatalf("cut at %d: started %+v for %q", n, s, got.Wish)
					}
					r.server.Close()
					if whole {
						t.Logf("%d calls; %d tries continued", n-1, resumed)
						if n < 25 || kind.resumes && resumed == 0 {
							t.Error("want an update of more calls, and some that are continued")
						}
						return
					}
				}
			})
		}
	}
}

// TestWithdrawn: an update that waits can be taken back: the next boot starts what runs, the status folder says so, and another update can be installed. What
// waits is known to an engine that was made later, whatever the folder says.
func TestWithdrawn(t *testing.T) {
	const wish = "2.0.1.6076 yesterday"
	r := newRobot(t)
	at := r.put("/v.ota", archivetest.Make(manifest.Manifest{Reboot: true}, archivetest.Production(), ""))
	e := r.engine()
	waits := func(want *slot.Waiting) {
		t.Helper()
		s, err := e.State(wish)
		if err != nil || (s.Waits == nil) != (want == nil) || want != nil && *s.Waits != *want {
			t.Fatalf("%+v, %v; want %+v", s.Waits, err, want)
		}
		if st, err := e.Status(); err != nil || st.Done != (want != nil) {
			t.Fatalf("%+v, %v", st, err)
		}
	}
	installed := &slot.Waiting{Version: archivetest.Version, Wish: wish, Reboot: true}
	if err := e.Withdraw(); err != nil {
		t.Fatal(err)
	}
	for _, forget := range []func(){func() {}, func() {
		if err := r.disk.Remove(doneFile); err != nil { // the program ended before it wrote that
			t.Fatal(err)
		}
		e = r.engine()
	}} {
		if _, err := e.Run(t.Context(), Request{At: at, Wish: wish}); err != nil {
			t.Fatal(err)
		}
		forget()
		waits(installed)
		if _, err := e.Run(t.Context(), Request{At: at, Wish: wish}); !errors.Is(err, ErrWaits) {
			t.Errorf("%v, want %v", err, ErrWaits)
		}
		if err := e.Withdraw(); err != nil {
			t.Fatal(err)
		}
		waits(nil)
		if s, err := e.Status(); err != nil || s != (Status{Phase: Sleeping}) {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if _, err := e.Run(t.Context(), Request{At: at, Wish: wish}); err != nil {
		t.Fatal(err)
	}
	r.disk.Fail("state.json", errors.New("input/output error"))
	if err := e.Withdraw(); ota.CodeOf(err) != ota.SlotFailed {
		t.Errorf("%v, want code %d", err, ota.SlotFailed)
	}
	waits(installed)
	r.disk.Fail("", nil)
	if err := e.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if err := e.newBoard().put(doneFile, ""); err != nil { // the program ended before it removed that
		t.Fatal(err)
	}
	e = r.engine()
	waits(nil)
	if s := r.boot(); s.Version != archivetest.Running {
		t.Errorf("started %+v", s)
	}
}

// TestDelta: changes make the new system of the running one; an image without changes is taken over; where they do not fit, or are missing, the
// whole release is installed (VEC-OTA-11, VEC-OTA-18).
func TestDelta(t *testing.T) {
	const diff, full = "/diff/" + string(archivetest.Running) + ".ota", "/full/latest.ota"
	next := rebuilt()
	damaged := archivetest.Make(manifest.Manifest{Images: []manifest.Image{{Base: archivetest.Running}}},
		map[manifest.Part][]byte{manifest.Changes: []byte("no delta")}, "")
	other := newImagesOf(next, func(b []byte) []byte { return append([]byte{7}, b...) })
	for _, tt := range []struct {
		name string
		diff []byte // nil: there is none
		want map[manifest.Part][]byte
	}{
		{"both images", deltaArchive(t, archivetest.Running, next), next},
		{"one image", deltaArchive(t, archivetest.Running, map[manifest.Part][]byte{manifest.System: next[manifest.System]}),
			map[manifest.Part][]byte{manifest.Boot: oldImages()[manifest.Boot], manifest.System: next[manifest.System]}},
		{"none", nil, other},
		{"damaged", damaged, other},
		{"for another version", deltaArchive(t, "1.7.0.1", next), other},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRobot(t)
			r.put(full, archivetest.Make(manifest.Manifest{}, other, ""))
			if tt.diff != nil {
				r.put(diff, tt.diff)
			}
			if _, err := r.engine().Run(t.Context(), Request{}); err != nil {
				t.Fatal(err)
			}
			if s := r.boot(); s.Version != archivetest.Version || s.Slot != slot.B {
				t.Fatalf("started %+v", s)
			}
			for part, want := range tt.want {
				f, err := r.disk.Open(slot.File(part, slot.B))
				if err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(want))
				if _, err := f.ReadAt(got, 0); err != nil && err != io.EOF || !bytes.Equal(got, want) {
					t.Errorf("%s: not the new image, %v", part, err)
				}
			}
		})
	}
}

func newImagesOf(images map[manifest.Part][]byte, change func([]byte) []byte) map[manifest.Part][]byte {
	out := map[manifest.Part][]byte{}
	for part, b := range images {
		out[part] = change(b)
	}
	return out
}

// TestContinued: after a reboot an update continues in the image at which it ended; one that changed meanwhile starts from the beginning.
func TestContinued(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(r *robot, data []byte)
		most   func(whole, first int64) int64
	}{
		{"as it was", func(*robot, []byte) {}, func(whole, first int64) int64 { return whole - first }},
		{"another archive", func(r *robot, _ []byte) {
			r.put("/v.ota", archivetest.Make(manifest.Manifest{Version: "2.0.2.1"}, archivetest.Production(), ""))
		}, nil},
		{"damaged image", func(r *robot, _ []byte) {
			f, err := r.disk.Write(slot.File(manifest.Boot, slot.B))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("x"), 77); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"damaged record", func(r *robot, _ []byte) {
			if err := disk.Put(r.disk, checkpointFile, []byte(`{"at":9,"tag":"x","image":7}`)); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRobot(t)
			data := archivetest.Make(manifest.Manifest{}, archivetest.Production(), "")
			at := r.put("/v.ota", data)
			r.disk.Fail("system_b", errors.New("input/output error"))
			if _, err := r.engine().Run(t.Context(), Request{At: at}); ota.CodeOf(err) != ota.DiskFailed {
				t.Fatal(err)
			}
			c := readCheckpoint(r.disk)
			if c == nil || c.Image != 1 {
				t.Fatalf("checkpoint %+v", c)
			}
			r.disk.Fail("", nil)
			tt.change(r, data)
			r.boot()
			r.forget()
			got, err := r.engine().Run(t.Context(), Request{At: at})
			if err != nil {
				t.Fatal(err)
			}
			if tt.most != nil && r.sent.Load().Load() > tt.most(int64(len(data)), c.At) {
				t.Errorf("%d bytes were sent after byte %d of %d", r.sent.Load().Load(), c.At, len(data))
			}
			if s := r.boot(); s.Version != got.Version {
				t.Errorf("started %+v, want %s", s, got.Version)
			}
		})
	}
}

// TestTold: the numbers that an app hears over the robot's API and over Bluetooth (VEC-OTA-21, part of VEC-UPD-01, VEC-MSG-16).
func TestTold(t *testing.T) {
	for _, tt := range []struct {
		name     string
		s        Status
		sdk, ble int
	}{
		{"nothing yet", Status{}, 0, 0},
		{"starting", Status{Phase: Starting, Error: unclean}, 4, 2},
		{"downloading", Status{Phase: Downloading, Error: unclean}, 2, 2},
		{"installed", Status{Phase: Finished, Done: true}, 1, 3},
		{"its program ended", Status{Phase: Sleeping, Error: unclean}, 3, 5},
		{"no data", Status{Phase: Sleeping, Code: ota.TimedOut, Error: "x"}, 3, 215},
		{"not newer", Status{Phase: Sleeping, Code: ota.WrongVersion, Error: "x"}, 0, 216},
		{"no archive", Status{Phase: Sleeping, Code: ota.BadURL, Error: "x"}, 0, 203},
		{"not signed", Status{Phase: Sleeping, Code: ota.NotAuthentic, Error: "x"}, 6, 209},
	} {
		if sdk, ble := tt.s.SDK(), tt.s.BLE(); sdk != tt.sdk || ble != tt.ble {
			t.Errorf("%s: %d and %d, want %d and %d", tt.name, sdk, ble, tt.sdk, tt.ble)
		}
	}
}

// TestProgramEnds: an update whose program ended is over: nothing waits for it, and its error stays (part of VEC-OTA-15).
func TestProgramEnds(t *testing.T) {
	r := newRobot(t)
	b := &board{disk: r.disk}
	if err := errors.Join(b.clear(), b.put(phaseFile, string(Downloading))); err != nil {
		t.Fatal(err)
	}
	s, err := r.engine().Status()
	if want := (Status{Phase: Sleeping, Error: unclean}); err != nil || s != want {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
}

// TestEventNames: what the dashboards of the original look for (VEC-OTA-22).
func TestEventNames(t *testing.T) {
	if got := []string{EventStart, EventStalled, EventEnd}; !slices.Equal(got, []string{"robot.ota_download_start", "robot.ota_download_stalled", "robot.ota_download_end"}) {
		t.Errorf("%q", got)
	}
}
