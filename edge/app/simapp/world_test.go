package simapp

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/infra/cli"
)

// TestOpenWorld: a built-in name, or a file.
func TestOpenWorld(t *testing.T) {
	file := filepath.Join(t.TempDir(), "yard.json")
	if err := os.WriteFile(file, []byte(`{"name":"yard","walls":[{"from":[0.5,-1],"to":[0.5,1]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]string{file: "yard", "room": "room", "table": "table", "empty": "empty"} {
		if m, err := openWorld(where); err != nil || m.Name != want {
			t.Errorf("%s: %+v, %v", where, m, err)
		}
	}
	if m, err := openWorld(""); m != nil || err != nil {
		t.Errorf("nowhere: %+v, %v", m, err)
	}
	startBoard(t, "-world", file) // waits for its power
	var out, errOut bytes.Buffer
	if code := Main([]string{"robot", "-root", t.TempDir(), "-world", "moon"}, noenv, &out, &errOut); code != cli.ExitUsage ||
		!strings.Contains(errOut.String(), "room, table") {
		t.Errorf("code %d, %s", code, &errOut)
	}
}
