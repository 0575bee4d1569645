package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/certs/thing"
	"kennel/edge/agent/platform"
)

func TestMake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "robot")
	b := Birth{Thing: thing.MustParse("vic:00e20100"), Secret: "s", RootPEM: []byte("pem"), OSVersion: "2.0.0.6074"}
	b.Endpoints.Kennel.API, b.Endpoints.Kennel.MQTT = "https://localhost:1", "ssl://localhost:2"
	if err := Make(dir, b); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if id, err := platform.ID(root); err != nil || id != b.Thing {
		t.Errorf("ID = %q, %v", id, err)
	}
	// Again, elsewhere: the cloud moved, the secret of its birth stays.
	again := b
	again.Secret = "other"
	again.Endpoints.Kennel.MQTT = "ssl://localhost:3"
	if err := Make(dir, again); err != nil {
		t.Fatal(err)
	}
	e, err := platform.LoadEndpoints(root)
	if err != nil || e.Kennel.MQTT != "ssl://localhost:3" {
		t.Errorf("endpoints %+v, %v", e, err)
	}
	claim, err := os.ReadFile(filepath.Join(dir, claimFile))
	if err != nil || !strings.Contains(string(claim), `"s"`) {
		t.Errorf("claim %s, %v", claim, err)
	}
	if fi, _ := os.Stat(filepath.Join(dir, claimFile)); fi.Mode().Perm() != 0o600 {
		t.Errorf("claim mode %v", fi.Mode())
	}
	b.Thing = "vic:00e20101"
	if err := Make(dir, b); err == nil || !strings.Contains(err.Error(), "vic:00e20100") {
		t.Errorf("another robot's folder: %v", err)
	}
	b.Thing = "vic:nothex"
	if err := Make(t.TempDir(), b); err == nil {
		t.Error("a serial that is not hex was accepted")
	}
}
