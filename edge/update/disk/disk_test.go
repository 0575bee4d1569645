package disk

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// TestOf: files of the machine are replaced whole, opened as they are, and removed; what is missing is said as such.
func TestOf(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	d := Of(root)
	for _, text := range []string{"first, and longer", "second"} {
		if err := Put(d, "slots/state.json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := Get(d, "slots/state.json", 100); err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
	if _, err := Get(d, "slots/state.json", 5); err == nil {
		t.Error("6 bytes were read where 5 are allowed")
	}
	f, err := d.Write("slots/state.json")
	if err != nil {
		t.Fatal(err)
	}
	if size, err := f.Size(); size != 6 || err != nil {
		t.Errorf("opening for writing left %d bytes, %v", size, err)
	}
	if err := errors.Join(f.Sync(), f.Close(), d.Remove("slots/state.json"), d.Remove("slots/state.json")); err != nil {
		t.Error(err)
	}
	if _, err := Get(d, "slots/state.json", 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v: want %v", err, fs.ErrNotExist)
	}
	if _, err := d.Write("../outside"); err == nil {
		t.Error("a file outside the folder was opened")
	}
}
