package robotfs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/infra/errs"
)

func open(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root, dir
}

func TestWriteFileReplacesWhole(t *testing.T) {
	root, dir := open(t)
	for _, want := range []string{"one", "two, longer", ""} {
		if err := WriteFile(root, "a/b/c.json", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(root, "a/b/c.json")
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	names, _ := filepath.Glob(filepath.Join(dir, "a/b/*"))
	if len(names) != 1 {
		t.Errorf("left beside the file: %v", names)
	}
}

func TestNothingLeavesTheRoot(t *testing.T) {
	root, dir := open(t)
	if err := os.Symlink("/tmp", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "out/kennel-escape", "/etc/kennel-escape"} {
		if err := WriteFile(root, name, []byte("x"), 0o600); err == nil {
			t.Errorf("WriteFile(%q) left the root", name)
		}
	}
}

func TestCleanTemp(t *testing.T) {
	root, dir := open(t)
	if err := os.WriteFile(filepath.Join(dir, "x.1.1.kennel-tmp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(CleanTemp(root, "."), CleanTemp(root, "missing")); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Stat("x.1.1.kennel-tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("leftover stays: %v", err)
	}
}

// TestReadJSON is VEC-CLD-04 and VEC-CFG-01.
func TestReadJSON(t *testing.T) {
	root, _ := open(t)
	file := "{ // a \"comment\"\n \"a\": \"x // not\", /* \"b\": 1,\n */ \"c\": 2 }"
	if err := WriteFile(root, "c.json", []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	var v struct {
		A string
		C int
	}
	if err := ReadJSON(root, "c.json", &v); err != nil || v.A != "x // not" || v.C != 2 {
		t.Errorf("got %+v, %v", v, err)
	}
	for body, want := range map[string]string{"{\n\n\"a\" 1}": "line 3", "{ /* ": "not closed", "": "line 1"} {
		if err := WriteFile(root, "bad.json", []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := ReadJSON(root, "bad.json", &v); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "bad.json") {
			t.Errorf("%q: err = %v, want one with %q", body, err, want)
		}
	}
}

func TestParseEnv(t *testing.T) {
	got, err := ParseEnv([]byte("# c\nA=1\n B = \"x y\" \n\nC="))
	if err != nil || got["A"] != "1" || got["B"] != "x y" || got["C"] != "" || len(got) != 3 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ParseEnv([]byte("A=1\nnonsense")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("err = %v", err)
	}
}

func FuzzStripComments(f *testing.F) {
	f.Add([]byte("{ // x\n\"a\": /* y */ 1 }"))
	f.Add([]byte("\"\\"))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := StripComments(b)
		if err != nil {
			return
		}
		if len(out) != len(b) || bytes.Count(out, []byte("\n")) != bytes.Count(b, []byte("\n")) {
			t.Fatal("lines moved")
		}
		if json.Valid(b) && !bytes.Equal(out, b) {
			t.Fatalf("valid JSON changed: %q -> %q", b, out)
		}
	})
}

func FuzzParseEnv(f *testing.F) {
	f.Add([]byte("A=1\n#x\nB='2'"))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = ParseEnv(b) })
}

// TestCheckDefault (30.5): a root that was not named is a robot's, or is refused.
func TestCheckDefault(t *testing.T) {
	for name, want := range map[string]bool{"": false, "etc": false, "data": false, "anki/etc": true, "factory": true, Persistent: true, "dev/block/bootdevice/by-name/emr": true} {
		root, _ := open(t)
		if err := root.MkdirAll(filepath.Join(".", name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := CheckDefault(root); (err == nil) != want || err != nil && (errs.CodeOf(err) != "no_robot" || errs.KindOf(err) != errs.Invalid) {
			t.Errorf("with %q: %v, want it taken: %v", name, err, want)
		}
	}
}
