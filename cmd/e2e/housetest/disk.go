package housetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// SmallSize is the size of a small volume on which a house can start, in bytes.
const SmallSize = 480 << 20

// SmallVolume returns a folder on a small file system of its own. It reports false where this account may not mount one; the levels themselves are tested in
// infra/diskspace.
func SmallVolume(t *testing.T, size int64) (dir string, small bool) {
	t.Helper()
	dir, err := os.MkdirTemp(Work, "small-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, MountSmall(t, dir, size)
}

// MountSmall puts a small file system at dir until the test ends. It reports false where this account may not.
func MountSmall(t *testing.T, dir string, size int64) bool {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", size)); err != nil {
		t.Logf("no small volume (%v): a full disk is not tested", err)
		return false
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return true
}

// FillUp takes all the room of a volume.
func FillUp(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
