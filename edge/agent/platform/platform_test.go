package platform

import (
	"os"
	"strings"
	"testing"

	"kennel/edge/agent/robotfs"
	"kennel/edge/emr"
)

func newRoot(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	for name, body := range files {
		if err := robotfs.WriteFile(root, name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestLoadEndpoints is VEC-CLD-01 and VEC-CLD-04: comments are fine, mistakes are named.
func TestLoadEndpoints(t *testing.T) {
	ok := `{ // ours
 "appkey": "k", "kennel": {"api": "https://localhost:8443", "mqtt": "ssl://localhost:8883"}, "unknown": 1 }`
	e, err := LoadEndpoints(newRoot(t, map[string]string{ServerConfigFile: ok}))
	if err != nil || e.AppKey != "k" || e.Kennel.MQTT != "ssl://localhost:8883" {
		t.Errorf("got %+v, %v", e, err)
	}
	for body, want := range map[string]string{
		``:   "line 1",
		`{}`: "kennel.api",
		`{"kennel":{"api":"http://x","mqtt":"ssl://x:1"}}`: "https://host:port",
		`{"kennel":{"api":"https://x","mqtt":"ssl://x"}}`:  "port is missing",
	} {
		if _, err := LoadEndpoints(newRoot(t, map[string]string{ServerConfigFile: body})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want one with %q", body, err, want)
		}
	}
	if _, err := LoadEndpoints(newRoot(t, nil)); err == nil || !strings.Contains(err.Error(), "server_config.json") {
		t.Errorf("missing file: %v", err)
	}
}

func TestIdentity(t *testing.T) {
	rec := emr.Record{ESN: 0x00e20100, PackedOut: 1}
	root := newRoot(t, map[string]string{emr.Path: string(rec.Append(nil)), OSVersionFile: "2.0.0.6074\n"})
	id, err := ID(root)
	if err != nil || id != "vic:00e20100" {
		t.Errorf("ID = %q, %v", id, err)
	}
	if got := OSVersion(root); got != "2.0.0.6074" {
		t.Errorf("OSVersion = %q", got)
	}
	a, err := BootID(root)
	if err != nil || len(a) != 36 {
		t.Fatalf("BootID = %q, %v", a, err)
	}
	if b, _ := BootID(root); b != a {
		t.Errorf("boot id changed within one boot: %s, %s", a, b)
	}
	if _, err := ID(newRoot(t, nil)); err == nil {
		t.Error("a robot without a record has an id")
	}
}
