package photos_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/photos"
	"kennel/edge/env/robotfs"
	"kennel/infra/errs"
)

const album = robotfs.Persistent + "/photos"

func open(t *testing.T, dir string) *photos.Album {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	a, err := photos.Open(root, "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func picture(n int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("picture %d ", n)), 100) }

func add(t *testing.T, a *photos.Album, n int) uint32 {
	t.Helper()
	id, err := a.Add(picture(n), picture(-n), time.Unix(int64(1000+n), 5))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func fetch(t *testing.T, a *photos.Album, id uint32, kind photos.Kind, want []byte) {
	t.Helper()
	if b, err := a.Fetch(id, kind); err != nil || !bytes.Equal(b, want) {
		t.Errorf("%s of %d: %.20q, %v, want %.20q", kind, id, b, err, want)
	}
}

// disk returns every file below dir.
func disk(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	if err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		all[strings.TrimPrefix(name, dir+"/")] = b
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAlbum: photos have numbers that are used once, stay over a restart, say what was fetched of them (part of VEC-PHO-01), and go when they are deleted.
func TestAlbum(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	if n := len(a.List()); n != 0 {
		t.Errorf("%d photos", n)
	}
	first, second := add(t, a, 1), add(t, a, 2)
	fetch(t, a, second, photos.Thumb, picture(-2))
	fetch(t, a, first, photos.Full, picture(1))
	for range 2 {
		want := []photos.Info{{ID: 1, Taken: time.Unix(1001, 0).UTC(), Copied: true}, {ID: 2, Taken: time.Unix(1002, 0).UTC(), Seen: true}}
		if got := a.List(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		a = open(t, dir)
	}
	fetch(t, a, first, photos.Full, picture(1))
	for range 2 {
		if err := a.Delete(second); (err == nil) != (len(disk(t, filepath.Join(dir, album))) == 3 && len(a.List()) == 1 && errs.KindOf(err) != errs.NotFound) {
			t.Errorf("delete: %v", err)
		}
	}
	if err := a.Delete(second); errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
	if _, err := a.Fetch(second, photos.Full); errs.KindOf(err) != errs.NotFound {
		t.Error(err)
	}
	if third := add(t, open(t, dir), 3); third != 3 {
		t.Errorf("the next photo is %d, want a number that none had", third)
	}
}

// TestEncrypted: no file shows a picture (VEC-PHO-02); one that was changed, or put in place of another, is refused; and an album that is erased makes a key
// of its own.
func TestEncrypted(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	add(t, a, 1)
	add(t, a, 2)
	var keys [][]byte
	for name, b := range disk(t, dir) {
		if bytes.Contains(b, []byte("picture")) {
			t.Errorf("%s shows it", name)
		}
		if strings.HasPrefix(name, "persist/") {
			keys = append(keys, b)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	place := func(id uint32, kind photos.Kind) string {
		return filepath.Join(dir, album, fmt.Sprintf("%d.%s", id, kind))
	}
	b, err := os.ReadFile(place(1, photos.Full))
	if err != nil || len(keys) != 1 {
		t.Fatal(err, len(keys))
	}
	for id, kind := range map[uint32]photos.Kind{2: photos.Full, 1: photos.Thumb} {
		if err := os.WriteFile(place(id, kind), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Fetch(id, kind); errs.KindOf(err) != errs.Corrupt {
			t.Errorf("another file as %s of %d: %v", kind, id, err)
		}
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(place(1, photos.Full), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Fetch(1, photos.Full); errs.KindOf(err) != errs.Corrupt {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	a = open(t, dir)
	fetch(t, a, add(t, a, 9), photos.Full, picture(9))
	if again := disk(t, dir)["persist/kennel/photos/key"]; bytes.Equal(again, keys[0]) {
		t.Error("the key of the album before")
	}
}

// TestInterrupted: whatever a power cut leaves of a photo that was being added or deleted, the next start has the photos of the index whole, and no others.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	add(t, a, 1)
	before := disk(t, dir)
	add(t, a, 2)
	for name, b := range disk(t, dir) {
		if _, old := before[name]; old && !strings.HasSuffix(name, "index.json") {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			cut := t.TempDir()
			for n, b := range before {
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(cut, n)), 0o755), os.WriteFile(filepath.Join(cut, n), b, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(cut, name), b, 0o600); err != nil { // alone, without those that belong to it
				t.Fatal(err)
			}
			a := open(t, cut)
			if got := a.List(); len(got) != 1 || got[0].ID != 1 {
				t.Errorf("%+v", got)
			}
			fetch(t, a, 1, photos.Full, picture(1))
			if n := len(disk(t, filepath.Join(cut, album))); n != 3 {
				t.Errorf("%d files, want those of one photo and the index", n)
			}
		})
	}
}

// TestFull: a full album refuses a photo and says what to do, as it refuses one without bytes; a damaged index is an error that names it.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	for n := range photos.MaxPhotos {
		add(t, a, n)
	}
	if _, err := a.Add(picture(1), picture(1), time.Now()); errs.CodeOf(err) != "album_full" {
		t.Error(err)
	}
	if err := a.Delete(1); err != nil {
		t.Fatal(err)
	}
	add(t, a, 100)
	for _, b := range [][]byte{nil, make([]byte, photos.MaxBytes+1)} {
		if _, err := a.Add(b, picture(1), time.Now()); errs.KindOf(err) != errs.Invalid {
			t.Error(err)
		}
	}
	name := filepath.Join(dir, album, "index.json")
	if err := os.WriteFile(name, []byte(`{"photos": 7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := photos.Open(root, ""); err == nil || !strings.Contains(err.Error(), "index.json") {
		t.Error(err)
	}
}
