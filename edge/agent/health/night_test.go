package health

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/edge/agent/health/nightly"
	"kennel/edge/agent/host"
	"kennel/edge/env/envtest"
)

// TestUpdateThatWaitsForTheNight: seed line 14901: the file of the original's updater.
func TestUpdateThatWaitsForTheNight(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	h := &Health{Robot: host.Robot{Root: root, Hardware: envtest.Hardware{}}}
	if got := h.updating(); got != nightly.NoUpdate {
		t.Errorf("%v without a file", got)
	}
	if err := root.MkdirAll("run/update-engine", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile(nightly.DoneFile, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := h.updating(); got != nightly.UpdateWaits {
		t.Errorf("%v with one", got)
	}
}

// TestRebootCommand: what an operator configured boots the robot, and its failure is told.
func TestRebootCommand(t *testing.T) {
	dir := t.TempDir()
	h := &Health{cfg: Config{Backup: func() error { return nil }}} // without a host to end
	done := filepath.Join(dir, "booted")
	h.cfg.Reboot = []string{"touch", done}
	if err := h.Reboot(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(done); err != nil {
		t.Error(err)
	}
	h.cfg.Reboot = []string{"cat", filepath.Join(dir, "nothing")}
	if err := h.Reboot(t.Context()); err == nil || !strings.Contains(err.Error(), "No such file") {
		t.Errorf("a program that fails: %v", err)
	}
}
