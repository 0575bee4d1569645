package gateway

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"kennel/infra/cli"
)

func TestRefusedCommandLines(t *testing.T) {
	for name, args := range map[string][]string{
		"network":  {"-dir", "d", "-listen", "0.0.0.0:9000", "-access-key-file", "a", "-secret-key-file", "s"},
		"unknown":  {"-color", "red"},
		"argument": {"-dir", "d", "-listen", "127.0.0.1:9000", "-access-key-file", "a", "-secret-key-file", "s", "more"},
		"nothing":  nil,
	} {
		var out bytes.Buffer
		if code := Main(args, os.Getenv, &out, &out); code != cli.ExitUsage {
			t.Errorf("%s: exit %d, want %d: %s", name, code, cli.ExitUsage, out.Bytes())
		}
	}
}

// TestShowHidden (issue 16, finding 8): objects that an earlier version stored under .sgwtmp get a name that is listed, with their attributes; the library's own
// folder, and everything else, stays.
func TestShowHidden(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"kennel/logs/x/.sgwtmp/y", "kennel/logs/.sgwtmp/a/.sgwtmp/b", "kennel/.sgwtmp/multipart/1", "kennel/logs/z"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second finds nothing
		if err := showHidden(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"kennel/logs/x/%2Esgwtmp/y", "kennel/logs/%2Esgwtmp/a/%2Esgwtmp/b", "kennel/.sgwtmp/multipart/1", "kennel/logs/z"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
}
