package platform

import (
	"strings"
	"testing"
)

// TestLoadTrees is VEC-CLD-03.
func TestLoadTrees(t *testing.T) {
	for body, want := range map[string]Trees{
		`{}`: DefaultTrees(),
		`{ // moved
  "DataPlatformPersistentPath": "/mnt/p/", "DataPlatformCachePath": "run/cache" /* "DataPlatformResourcesPath": "x" */ }`: {"run/cache", "mnt/p", DefaultTrees().Resources},
		`{"DataPlatformResourcesPath": "anki/other"}`:              {DefaultTrees().Cache, DefaultTrees().Persistent, "anki/other"},
		`{"DataPlatformPersistentPath": "../../data/x", "new": 1}`: {DefaultTrees().Cache, "data/x", DefaultTrees().Resources},
	} {
		got, err := LoadTrees(newRoot(t, map[string]string{PlatformFile: body}))
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", body, got, err, want)
		}
	}
	if got, err := LoadTrees(newRoot(t, nil)); err != nil || got != DefaultTrees() {
		t.Errorf("no file: %+v, %v", got, err)
	}
	for _, bad := range []string{"/", ".", "factory", "factory/x", "persist/kennel", "dev/block", "run", "anki/data", "etc/x", "a\u0000b"} {
		root := newRoot(t, map[string]string{PlatformFile: `{"DataPlatformPersistentPath": "` + strings.ReplaceAll(bad, "\x00", `\u0000`) + `"}`})
		if got, err := LoadTrees(root); err == nil || got != DefaultTrees() || !strings.Contains(err.Error(), "DataPlatformPersistentPath") {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
	if _, err := LoadTrees(newRoot(t, map[string]string{PlatformFile: "{\n\"a\" 1}"})); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("damaged file: %v", err)
	}
}

func FuzzPersonal(f *testing.F) {
	f.Add("data/x")
	f.Add("factory/../data")
	f.Fuzz(func(t *testing.T, p string) {
		if Personal(p) && (strings.HasPrefix(p, "factory/") && !strings.Contains(p, "..") || p == "." || p == "") {
			t.Fatalf("%q may be erased", p)
		}
	})
}
