package ca

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"kennel/infra/errs"
)

// TestRootKeysOffline: the other authorities issue without the root's key, what needs it says so, and the key comes back only to its own root.
func TestRootKeysOffline(t *testing.T) {
	dir := t.TempDir()
	a, err := Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Rotate(Root, ""); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left")
	if _, err := a.TakeRootKeys(func([]byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("a disk that is full: %v", err)
	}
	if got, _ := filepath.Glob(filepath.Join(dir, "root*.key")); len(got) != 2 {
		t.Fatalf("keys after a refused taking: %v, want both", got)
	}
	var kept []byte
	names, err := a.TakeRootKeys(func(keys []byte) error { kept = bytes.Clone(keys); return nil })
	if err != nil || len(names) != 2 {
		t.Fatalf("%v, %v", names, err)
	}
	if got, _ := filepath.Glob(filepath.Join(dir, "root*.key")); len(got) != 0 {
		t.Errorf("left in the folder: %v", got)
	}
	if _, err := Init(dir); err != nil {
		t.Errorf("a start without the root's key: %v", err)
	}
	if _, err := a.IssueServer([]string{"localhost"}, 1e12); err != nil {
		t.Errorf("a server's certificate without the root's key: %v", err)
	}
	if _, err := a.Rotate(Device, ""); errs.CodeOf(err) != "no_root_key" {
		t.Errorf("rotate: %v", err)
	}
	if _, err := a.TakeRootKeys(func([]byte) error { t.Error("asked to keep nothing"); return nil }); errs.CodeOf(err) != "no_root_key" {
		t.Errorf("taken twice: %v", err)
	}
	other, err := Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.BringRootKeys(kept); errs.KindOf(err) != errs.Invalid {
		t.Errorf("to another installation: %v", err)
	}
	if _, err := a.BringRootKeys([]byte("oops")); errs.KindOf(err) != errs.Invalid {
		t.Errorf("no key: %v", err)
	}
	if names, err := a.BringRootKeys(kept); err != nil || len(names) != 2 {
		t.Fatalf("%v, %v", names, err)
	}
	if fi, err := os.Stat(filepath.Join(dir, "root.key")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("root.key: %v, %v", fi, err)
	}
	if _, err := a.Rotate(Device, ""); err != nil {
		t.Errorf("rotate with the key back: %v", err)
	}
}
