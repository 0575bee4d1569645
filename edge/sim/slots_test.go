package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership/wipe"
	"kennel/edge/agent/release"
	"kennel/edge/body/vector/factory"
	"kennel/edge/body/vector/factory/bootparam"
	"kennel/edge/env/platform"
	"kennel/edge/update"
	"kennel/edge/update/slot"
	"kennel/infra/api/events"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// TestSlots: a simulated robot is born with two slots, updates itself from the files in its folder as a robot at home does, runs the new release after
// the next boot, and returns to the old one if that never says that it is well (VEC-OTA-13, VEC-BOOT-10).
func TestSlots(t *testing.T) {
	dir := t.TempDir()
	b := Birth{Thing: thing.ID("vic:00e20100"), Secret: "s", RootPEM: testRoot(t), OSVersion: "1.0.0.1", ReleaseKey: archivetest.PublicPEM()}
	if err := Make(dir, b); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var data []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	defer srv.Close()
	at := func(context.Context) (string, error) { return srv.URL, nil }
	boot := func(want string, rescue bool) {
		t.Helper()
		if err := emptyRun(root); err != nil {
			t.Fatal(err)
		}
		sys, got, err := LoadSlot(root)
		if err != nil || got != rescue || !rescue && string(sys.Version) != want || platform.OSVersion(root) != want {
			t.Fatalf("started %s, recovery %t, %v; want %s, %t", platform.OSVersion(root), got, err, want, rescue)
		}
	}
	install := func(version ota.Version, m manifest.Manifest, images map[manifest.Part][]byte) release.Updater {
		t.Helper()
		m.Version = version
		data = archivetest.Make(m, images, "")
		dev, err := release.Slots(root, factory.Hardware{})
		if err != nil || dev == nil {
			t.Fatalf("slots: %v, %v", dev, err)
		}
		robot := host.Robot{Root: root, Hardware: factory.Hardware{}, OS: platform.OSVersion(root), Log: slog.New(slog.DiscardHandler), Getenv: func(string) string { return "" },
			Now: time.Now, Keep: func(context.Context, events.Event) error { return nil }}
		u, err := release.NewUpdater(robot, dev, nil, nil, robot.Now)
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Confirm(false); err != nil {
			t.Fatal(err)
		}
		if _, err := u.Run(t.Context(), update.Request{At: at}); err != nil {
			t.Fatal(err)
		}
		return u
	}
	production := func(v ota.Version) map[manifest.Part][]byte {
		return map[manifest.Part][]byte{manifest.Boot: []byte("kernel"), manifest.System: System{Version: v}.Image(50_000)}
	}
	boot("1.0.0.1", false)
	if p, err := bootparam.Read(root); err != nil || p.Slot != "a" {
		t.Errorf("the kernel is told slot %q, %v", p.Slot, err)
	}
	install("1.0.0.2", manifest.Manifest{}, production("1.0.0.2"))
	boot("1.0.0.2", false)
	u := install("1.0.0.3", manifest.Manifest{}, production("1.0.0.3")) // it says that 1.0.0.2 is well
	if _, err := u.Run(t.Context(), update.Request{At: at}); !errors.Is(err, update.ErrWaits) {
		t.Errorf("%v, want %v", err, update.ErrWaits)
	}
	for range slot.Tries {
		boot("1.0.0.3", false)
	}
	boot("1.0.0.2", false) // 1.0.0.3 never said so
	install("1.0.0.4", manifest.Manifest{}, production("1.0.0.4"))
	boot("1.0.0.4", false)
	dev, err := release.Slots(root, factory.Hardware{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(dev.Confirm(false), dev.RollBack("too many crashes", "")); err != nil {
		t.Fatal(err)
	}
	boot("1.0.0.2", false)
	install("1.0.0.5", manifest.Manifest{QSN: "00e20100"}, archivetest.Factory())
	boot("1.0.0.5", true)
	if _, err := release.Slots(root, factory.Hardware{}); err != nil || !wipe.Requested(root) {
		t.Errorf("%v: the owner's data are to be erased after a factory update", err)
	}
	if dev, err := release.Slots(root, factory.Hardware{}); err != nil || dev.Record().Wipe {
		t.Errorf("%v: the wipe is asked for once", err)
	}
}

// TestDiesOn: a bad release kills its share of robots, and the others never.
func TestDiesOn(t *testing.T) {
	for _, percent := range []float64{0, 5, 100} {
		n := 0
		for i := range 10_000 {
			if (System{Dies: percent}).DiesOn(thing.ID(fmt.Sprintf("vic:%08x", i))) {
				n++
			}
		}
		if got := float64(n) / 100; math.Abs(got-percent) > 1 {
			t.Errorf("%.1f %% of robots, want %.0f", got, percent)
		}
	}
}
