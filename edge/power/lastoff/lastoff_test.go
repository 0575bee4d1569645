package lastoff

import (
	"os"
	"path/filepath"
	"testing"
)

// VEC-PWR-42: each start says how the one before it ended.
func TestLastOff(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	started := func(what string, want Last) {
		t.Helper()
		if got, err := Started(root); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	off := func() {
		t.Helper()
		if err := GoingOff(root); err != nil {
			t.Fatal(err)
		}
	}
	started("the first start", Never)
	started("after a brown-out", Unmeant)
	off()
	started("after a clean end", Clean)
	started("and a brown-out after that", Unmeant)
	off()
	off()
	started("after two ends", Clean)
	for _, damage := range []string{"", "cle", "clean\n\n"} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(File)), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		started("a file that says "+damage, Unmeant)
	}
	for l, want := range map[Last]string{Never: "never on before", Clean: "clean", Unmeant: "unmeant", 9: "last(9)"} {
		if l.String() != want {
			t.Errorf("%d prints as %q, want %q", uint8(l), l, want)
		}
	}
}

func TestLastOffThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(File)), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Started(root); err == nil {
		t.Error("a folder in the marker's place is no error of Started")
	}
	if err := GoingOff(root); err == nil {
		t.Error("a folder in the marker's place is no error of GoingOff")
	}
}
