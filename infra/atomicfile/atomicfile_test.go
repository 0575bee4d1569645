package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
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

func TestWrite(t *testing.T) {
	root, dir := open(t)
	// A temporary file that a killed process of our number left, readable by all, must not pass its mode to the new file.
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	left := fmt.Sprintf("a/b.%d.%d%s", os.Getpid(), tmpSeq.Load()+1, tmpSuffix)
	if err := root.WriteFile(left, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "two, longer", ""} {
		if err := Write(root, "a/b", []byte(want), 0o600, 0o700); err != nil {
			t.Fatal(err)
		}
		got, err := root.ReadFile("a/b")
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if fi, err := root.Stat("a/b"); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if names, _ := os.ReadDir(filepath.Join(dir, "a")); len(names) != 1 {
		t.Errorf("left beside the file: %v", names)
	}
	// A folder in the way of the rename: the error names the file, and nothing is left.
	if err := root.MkdirAll("c/d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(root, "c/d", []byte("x"), 0o600, 0o700); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if names, _ := os.ReadDir(filepath.Join(dir, "c")); len(names) != 1 {
		t.Errorf("left after a failure: %v", names)
	}
}

func TestCleanTemp(t *testing.T) {
	root, _ := open(t)
	if err := root.WriteFile("x.1.1"+tmpSuffix, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(CleanTemp(root, "."), CleanTemp(root, "missing")); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Stat("x.1.1" + tmpSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("leftover stays: %v", err)
	}
}
