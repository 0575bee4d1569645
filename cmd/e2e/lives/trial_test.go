package lives

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/edge/agent/health/nightly"
	"kennel/edge/core/corelink"
	"kennel/edge/sim"
	"kennel/edge/update/disk"
	"kennel/edge/update/slot"
	"kennel/ota"
)

// TestReleaseOnTrial: a whole robot leaves a release whose robotd ends again and again, says why, and does not install it again; it confirms a release that
// serves; and an installed release that waits for its reboot is withdrawn as soon as the cloud takes its wish back.
func TestReleaseOnTrial(t *testing.T) {
	const old, bad, good, taken ota.Version = "2.0.0.6074", "2.0.0.9200", "2.0.0.9300", "2.0.0.9400"
	h := housetest.New(t, "-robots", "1", "-robot-env", "KENNEL_TRIAL_SETTLE_SEC=10", "-robot-env", "KENNEL_FAULT_RESTART_LIMIT=1000")
	h.Start()
	id := h.AwaitPresent(1)[0]
	dir := h.RobotRoot(id)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	runs := func() ota.Version {
		b, _ := os.ReadFile(filepath.Join(dir, "etc/os-version")) // "" while it boots
		return ota.Version(strings.TrimSpace(string(b)))
	}
	want := func(v string) {
		t.Helper()
		if out, err := h.Ctl("releases", "want", id, v); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	upload := func(v ota.Version) {
		t.Helper()
		if out, err := h.Ctl("releases", "upload", makeRelease(h, sim.System{Version: v}, 1<<10)); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	says := func(phase ota.Phase, running ota.Version, reason string) {
		t.Helper()
		housetest.Await(t, 2*time.Minute, "the robot says "+string(phase), func() error {
			var s struct{ Last ota.Status }
			if err := h.CtlJSON(&s, "releases", "show", id); err != nil {
				return err
			}
			if s.Last.Phase != phase || s.Last.Running != string(running) || !strings.Contains(s.Last.Reason, reason) {
				return fmt.Errorf("%+v", s.Last)
			}
			return nil
		})
	}
	device := func() *slot.Device {
		t.Helper()
		running := slot.A
		if runs() == good {
			running = slot.B
		}
		dev, err := slot.Open(disk.Of(root), running)
		if err != nil {
			t.Fatal(err)
		}
		return dev
	}

	upload(bad)
	want(string(bad))
	last := 0
	for range 3 {
		housetest.Await(t, 2*time.Minute, "robotd runs on the new release", func() error {
			pid := housetest.RobotPids(dir)["robotd"]
			if _, err := os.Stat(filepath.Join(dir, corelink.SocketPath)); runs() != bad || pid == 0 || pid == last || err != nil {
				return fmt.Errorf("runs %s, robotd is %d, %v", runs(), pid, err)
			}
			last = pid
			return nil
		})
		if err := syscall.Kill(last, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	says(ota.FellBack, old, "ended 3 times")
	if err := syscall.Kill(housetest.RobotPids(dir)["agentd"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	says(ota.FellBack, old, "ended 3 times")

	upload(good)
	want(string(good))
	says(ota.Current, good, "")
	housetest.Await(t, 2*time.Minute, "the release is confirmed", func() error {
		if dev := device(); dev.Trial() || !dev.Record().Core {
			return fmt.Errorf("%+v", dev.Record())
		}
		return nil
	})

	if err := root.WriteFile(nightly.Inhibitors[1], nil, 0o644); err != nil {
		t.Fatal(err)
	}
	upload(taken)
	want(string(taken))
	says(ota.Installed, good, "")
	if w := device().Waits(false); w == nil || w.Version != taken {
		t.Errorf("%+v waits, want %s", w, taken)
	}
	start := time.Now()
	want("-none")
	says(ota.Current, good, "")
	t.Logf("withdrawn and told after %v", time.Since(start).Round(100*time.Millisecond))
	if w := device().Waits(false); w != nil {
		t.Errorf("%+v waits", w)
	}
}
