package sharedmem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMemory: what one writes the other reads; the file can be neither written to nor truncated.
func TestMemory(t *testing.T) {
	mem, f, err := Make("test", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Mmap(int(f.Fd()), 0, 10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); !errors.Is(err, unix.EACCES) {
		t.Errorf("mapped to be written to: %v", err)
	}
	if _, err := f.WriteString("x"); err == nil {
		t.Error("written to by a reader")
	}
	if err := os.Truncate(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), 10); err == nil {
		t.Error("cut under its readers")
	}
	m, err := Map(f, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	if mem[9_999] = 7; len(m.Bytes) != 10_000 || m.Bytes[9_999] != 7 || m.Bytes[0] != 0 {
		t.Errorf("%d bytes, the last is %d", len(m.Bytes), m.Bytes[len(m.Bytes)-1])
	}
	if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
}

// TestRefused: what is too large, empty, or could be truncated is not mapped.
func TestRefused(t *testing.T) {
	_, large, err := Make("test", 101)
	if err != nil {
		t.Fatal(err)
	}
	cuttable, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err == nil {
		_, err = cuttable.WriteString("content")
	}
	if err != nil {
		t.Fatal(err)
	}
	empty, err := os.Create(filepath.Join(t.TempDir(), "empty"))
	if err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]*os.File{"too large": large, "a file": cuttable, "empty": empty, "none": nil} {
		if m, err := Map(f, 100); err == nil {
			t.Errorf("%s: %d bytes", what, len(m.Bytes))
		}
	}
}
