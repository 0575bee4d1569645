package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/cmd/e2e/housetest"
)

// TestBackupAndRestore: what was saved comes back in another folder, robots and all that is known of them.
func TestBackupAndRestore(t *testing.T) {
	h := housetest.New(t, "-robots", "1")
	h.Start()
	id := h.AwaitPresent(1)[0]
	h.Set(id, "master_volume=2")
	file := filepath.Join(t.TempDir(), "kennel.backup")
	if out, err := housetest.Kenneld("backup", "-data", h.Dir, "-out", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := housetest.Kenneld("restore", "-data", h.Dir, "-in", file); err == nil || !strings.Contains(out, "empty") {
		t.Errorf("restore over a folder with data: %v\n%s", err, out)
	}
	h.Stop() // a robot and its copy cannot both live
	other := housetest.New(t, "-robots", "1")
	if err := os.Remove(other.Dir); err != nil {
		t.Fatal(err)
	}
	if out, err := housetest.Kenneld("restore", "-data", other.Dir, "-in", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	other.Start()
	other.AwaitPresent(1)
	other.CloudHas(id, "master_volume", 2)
	housetest.FileHas(t, other.RobotRoot(id), "master_volume", 2)
	var rows []housetest.RobotRow
	if err := other.CtlJSON(&rows, "robots", "list"); err != nil || !slices.ContainsFunc(rows, func(r housetest.RobotRow) bool { return r.Thing == id }) {
		t.Errorf("robots after restore: %+v, %v", rows, err)
	}
}
