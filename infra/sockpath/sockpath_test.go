package sockpath_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/infra/sockpath"
)

// A socket deeper than an address is long is listened at, twice in a row, and reached in both ways; only its owner gets into its folder.
func TestDeep(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("deep/", 40))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(deep)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const file = "run/own/socket"
	if err := root.MkdirAll("run/own", 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ln, err := sockpath.ListenPrivate(root, file)
		if err != nil {
			t.Fatal(err)
		}
		dial := func(path string) error {
			c, err := net.Dial("unix", path)
			if err != nil {
				return err
			}
			return c.Close()
		}
		if err := sockpath.Below(root, file, dial); err != nil {
			t.Error(err)
		}
		if err := sockpath.To(filepath.Join(deep, file), dial); err != nil {
			t.Error(err)
		}
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
	}
	if fi, err := root.Stat("run/own"); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("its folder is %v, %v; want mode 0700", fi, err)
	}
	for _, err := range []error{
		sockpath.Below(root, "none/socket", func(string) error { t.Error("a path in no folder"); return nil }),
		sockpath.To(filepath.Join(deep, "none/socket"), func(string) error { t.Error("a path in no folder"); return nil }),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without the folder: %v", err)
		}
	}
}
