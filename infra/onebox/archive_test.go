package onebox

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"kennel/infra/errs"
)

// pack makes an archive of a small tree.
func pack(t testing.TB) (archive []byte, from string) {
	t.Helper()
	from = t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(from, "objects", "empty"), 0o700), os.MkdirAll(filepath.Join(from, "skipped"), 0o700),
		os.WriteFile(filepath.Join(from, "skipped", "x"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(from, "objects", "a b"), []byte("hello"), 0o600)); err != nil {
		t.Fatal(err)
	}
	// A socket below the folder has a listener.
	if err := errors.Join(unix.Mknod(filepath.Join(from, "objects", "socket"), unix.S_IFSOCK|0o600, 0), unix.Mkfifo(filepath.Join(from, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	p, err := newPacker(&b, Manifest{Postgres: 15})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.tree("s3", from, "skipped"), p.file("ca/gone", filepath.Join(from, "gone")), p.close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), from
}

func into(t testing.TB) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestPackUnpack(t *testing.T) {
	archive, _ := pack(t)
	root := into(t)
	m, err := unpack(bytes.NewReader(archive), root)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Members) != 1 || m.Members["s3/objects/a b"].Size != 5 || m.Postgres != 15 {
		t.Errorf("manifest %+v, want one member of 5 bytes", m)
	}
	if b, err := root.ReadFile("s3/objects/a b"); string(b) != "hello" || err != nil {
		t.Errorf("member %q, %v", b, err)
	}
	if fi, err := root.Stat("s3/objects/empty"); err != nil || !fi.IsDir() {
		t.Errorf("empty folder: %v, %v", fi, err)
	}
	if _, err := root.Stat("s3/skipped"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("skipped folder: %v", err)
	}
}

func TestEveryCutIsCorrupt(t *testing.T) {
	archive, _ := pack(t)
	for n := range archive {
		if _, err := unpack(bytes.NewReader(archive[:n]), into(t)); errs.KindOf(err) != errs.Corrupt {
			t.Fatalf("first %d of %d bytes: %v, want corrupt", n, len(archive), err)
		}
	}
}

// craft makes an archive of members that pack would never write.
func craft(t testing.TB, m *Manifest, members ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	add := func(h tar.Header, body []byte) {
		h.Size = int64(len(body))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range members {
		if h.Typeflag == tar.TypeReg {
			add(h, []byte("x"))
		} else {
			add(h, nil)
		}
	}
	if m != nil {
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		add(tar.Header{Typeflag: tar.TypeReg, Name: manifestName}, body)
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileArchives(t *testing.T) {
	const xHash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	with := func(format int, names ...string) *Manifest {
		m := &Manifest{Format: format, Members: map[string]Member{}}
		for _, n := range names {
			m.Members[n] = Member{1, xHash}
		}
		return m
	}
	for name, c := range map[string]struct {
		archive []byte
		kind    errs.Kind
		says    string
	}{
		"parent":          {craft(t, with(1), file("../x")), errs.Corrupt, `"../x"`},
		"absolute":        {craft(t, with(1), file("/etc/passwd")), errs.Corrupt, `"/etc/passwd"`},
		"inside cluster":  {craft(t, with(1), file("pg/data/postgresql.conf")), errs.Corrupt, "pg/data"},
		"hidden parent":   {craft(t, with(1), file("s3/../../x")), errs.Corrupt, "s3/../../x"},
		"link":            {craft(t, with(1), tar.Header{Typeflag: tar.TypeSymlink, Name: "s3/l", Linkname: "/etc"}), errs.Corrupt, "type"},
		"twice":           {craft(t, with(1, "s3/x"), file("s3/x"), file("s3/x")), errs.Corrupt, "twice"},
		"not in manifest": {craft(t, with(1), file("s3/x")), errs.Corrupt, "not in the manifest"},
		"missing":         {craft(t, with(1, "s3/x")), errs.Corrupt, "missing"},
		"other content":   {craft(t, &Manifest{Format: 1, Members: map[string]Member{"s3/x": {1, "00"}}}, file("s3/x")), errs.Corrupt, "SHA-256"},
		"no manifest":     {craft(t, nil, file("s3/x")), errs.Corrupt, "manifest.json"},
		"newer format":    {craft(t, with(2, "s3/x"), file("s3/x")), errs.Invalid, "format 2"},
		"not an archive":  {[]byte("hello"), errs.Corrupt, "backup archive"},
		"empty":           {nil, errs.Corrupt, "truncated"},
	} {
		root := into(t)
		_, err := unpack(bytes.NewReader(c.archive), root)
		if errs.KindOf(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %q", name, err, c.kind, c.says)
		}
	}
	if _, err := unpack(bytes.NewReader(craft(t, with(1, "s3/x"), file("s3/x"))), into(t)); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

// FuzzUntar works below the compression, whose checksum would hide nearly every change.
func FuzzUntar(f *testing.F) {
	archive, _ := pack(f)
	z, err := zstd.NewReader(nil)
	if err != nil {
		f.Fatal(err)
	}
	defer z.Close()
	plain, err := z.DecodeAll(archive, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Add([]byte{})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		inner, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(inner)
		root, err := os.OpenRoot(inner)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		_, _ = untar(bytes.NewReader(b), root) // any answer will do, as long as it stays inside
		left, err := os.ReadDir(inner)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			if !slices.Contains(tops, e.Name()) {
				t.Errorf("%s is in the folder, want only %v", e.Name(), tops)
			}
		}
	})
}

func TestBytesAfterTheEndAreCorrupt(t *testing.T) {
	archive, _ := pack(t)
	if _, err := unpack(bytes.NewReader(append(archive, "more"...)), into(t)); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("bytes after the end: %v, want corrupt", err)
	}
}
