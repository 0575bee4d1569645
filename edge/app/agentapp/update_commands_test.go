package agentapp

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/health"
	"kennel/edge/agent/health/nightly"
	"kennel/edge/agent/release"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/edge/sim"
	"kennel/edge/update/disk"
	"kennel/edge/update/slot"
	"kennel/infra/cli"
	"kennel/ota"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// TestUpdateCommand: the original's update-os: a release is installed from an address with the running agentd, without a cloud; its failure is the exit
// code, and the robot restarts into it on request (VEC-OTA-16, VEC-OTA-19, VEC-OTA-21, part of VEC-UPD-02).
func TestUpdateCommand(t *testing.T) {
	dir, root := born(t, archivetest.PublicPEM())
	if s, err := slot.Boot(disk.Of(root)); err != nil || s.Version != "2.0.0.6074" {
		t.Fatalf("%+v, %v", s, err)
	}
	files := map[string][]byte{"/2.ota": archivetest.Make(manifest.Manifest{Version: "2.0.1.1"}, archivetest.Production(), "")}
	files["/bad.ota"] = bytes.Replace(files["/2.ota"], []byte("2.0.1.1"), []byte("2.0.1.2"), 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if files[r.URL.Path] == nil {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[r.URL.Path]))
	}))
	defer srv.Close()
	a := newAgent(t, dir, root, nil)
	ended := make(chan error)
	go func() { ended <- a.Run(t.Context()) }()
	awaitCommand(t, dir, "", "battery and charger", "update", "start", srv.URL+"/2.ota") // there is no real-time core
	report := func(args ...string) (r release.Report, exit int, problem string) {
		t.Helper()
		exit, out, problem := runCommand(dir, "", append(args, "-o", "json")...)
		if err := json.Unmarshal([]byte(out), &r); err != nil && exit < 200 && exit != cli.ExitNotFound {
			t.Errorf("%v: %v\n%s%s", args, err, out, problem)
		}
		return r, exit, problem
	}
	if _, exit, problem := report("update", "restart"); exit != cli.ExitNotFound {
		t.Errorf("restart without an update: %d, %s", exit, problem)
	}
	for _, tt := range []struct {
		name string
		args []string
		exit int
		says string
		sdk  int
	}{
		{"not signed", []string{srv.URL + "/bad.ota"}, int(ota.NotAuthentic), "signature", 6},
		{"no archive", []string{srv.URL + "/none.ota"}, int(ota.BadURL), "404", 0},
		{"nothing configured", nil, int(ota.BadURL), "UPDATE_ENGINE_BASE_URL", 0},
		{"installed", []string{srv.URL + "/2.ota"}, cli.ExitOK, "", 1},
	} {
		r, exit, problem := report(append([]string{"update", "start", "-force"}, tt.args...)...)
		if exit != tt.exit || !strings.Contains(problem, tt.says) || exit != 0 && int(r.Code) != exit || r.SDK != tt.sdk || r.Done != (exit == 0) {
			t.Errorf("%s: exit code %d, %+v, %s; want %d and %q", tt.name, exit, r, problem, tt.exit, tt.says)
		}
	}
	if r, exit, _ := report("update", "status"); exit != 0 || r.Version != "2.0.1.1" || r.BLE != 3 || r.Running != "2.0.0.6074" {
		t.Errorf("%+v", r)
	}
	if code, _, problem := runCommand(dir, "", "update", "restart"); code != 0 {
		t.Fatalf("restart: %s", problem)
	}
	if err := <-ended; !errors.Is(err, health.ErrNight) {
		t.Errorf("%v: want the end of agentd", err)
	}
	if s, err := slot.Boot(disk.Of(root)); err != nil || s.Version != "2.0.1.1" {
		t.Errorf("started %+v, %v", s, err)
	}
}

// TestReleaseWhoseCoreDies: agentd leaves a new release whose robotd ends again and again, with no cloud to ask, and ends so that its supervisor starts the
// release before it.
func TestReleaseWhoseCoreDies(t *testing.T) {
	dir, root := born(t, archivetest.PublicPEM())
	if _, _, err := sim.LoadSlot(root); err != nil {
		t.Fatal(err)
	}
	dev, err := slot.Open(disk.Of(root), slot.A)
	if err == nil {
		err = errors.Join(dev.Begin(), root.WriteFile(slot.File(manifest.System, slot.B), sim.System{Version: "2.0.1.1"}.Image(100), 0o600),
			dev.Activate(slot.Content{Version: "2.0.1.1", Wish: "2.0.1.1 today"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	if sys, _, err := sim.LoadSlot(root); err != nil || platform.OSVersion(root) != "2.0.1.1" {
		t.Fatalf("%+v, %v", sys, err)
	}
	core := scriptedCore{make(chan corelink.Message)}
	a := newAgent(t, dir, root, func(c *Config) { c.Core = core })
	ended := make(chan error)
	go func() { ended <- a.Run(t.Context()) }()
	for pid := range uint32(4) { // three of them end
		core.says <- &corelink.Hello{Program: "robotd", PID: 1_000_000_000 + pid}
	}
	if err := <-ended; !errors.Is(err, health.ErrNight) {
		t.Errorf("%v: want the end of agentd", err)
	}
	if !nightly.Installed(root) {
		t.Error("the supervisor is not told why")
	}
	if s, err := slot.Boot(disk.Of(root)); err != nil || s.Version != "2.0.0.6074" {
		t.Errorf("started %+v, %v", s, err)
	}
	if dev, err = slot.Open(disk.Of(root), slot.A); err != nil {
		t.Fatal(err)
	}
	if f := dev.Fall("2.0.1.1 today"); f == nil || f.From != "2.0.1.1" || !strings.Contains(f.Why, "ended 3 times") {
		t.Errorf("fall %+v", f)
	}
}
