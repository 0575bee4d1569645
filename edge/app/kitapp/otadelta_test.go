package kitapp

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/infra/cli"
	"kennel/ota/archive"
	"kennel/ota/archive/archivetest"
	"kennel/ota/delta"
	"kennel/ota/manifest"
)

// partition is a partition in memory.
type partition []byte

func (s *partition) WriteAt(b []byte, at int64) (int, error) {
	*s = append((*s)[:at], b...) // in order, and once
	return len(b), nil
}

// nextRelease is archivetest.Production with a few lines more in it.
func nextRelease() map[manifest.Part][]byte {
	next := maps.Clone(archivetest.Production())
	next[manifest.System] = slices.Concat(next[manifest.System][:30_000], []byte("a few lines more"), next[manifest.System][30_000:])
	return next
}

// releases writes two releases, as archives and as folders.
func releases(t *testing.T, password string) {
	old := archivetest.Make(manifest.Manifest{Version: archivetest.Running}, archivetest.Production(), password)
	next := archivetest.Make(manifest.Manifest{Reboot: true, QSN: archivetest.QSN}, nextRelease(), password)
	files := map[string][]byte{"old.ota": old, "new.ota": next, "new.changed": bytes.Replace(next, []byte("reboot_after_install=1"), []byte("reboot_after_install=0"), 1)}
	for folder, images := range map[string]map[manifest.Part][]byte{"old": archivetest.Production(), "new": nextRelease(), "bare": {}} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for p, b := range images {
			files[filepath.Join(folder, imageFiles[p])] = b
		}
	}
	for name, b := range files {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOTADelta: a robot makes the new images out of its own and the archive, whatever the releases were given as (VEC-OTA-11).
func TestOTADelta(t *testing.T) {
	otaDesk(t)
	for _, tt := range []struct{ args, password string }{
		{"old.ota new.ota", ""},
		{"old.ota new.ota -password-file ota.pas", "swordfish"},
		{"old new.ota -base 1.8.0.6051", ""},
		{"old new -base 1.8.0.6051 -version 2.0.1.6076 -reboot -qsn " + archivetest.QSN, ""},
	} {
		releases(t, tt.password)
		if code, out, errOut := run(t, strings.Fields("ota delta "+tt.args+" d.ota -key ota.key")...); code != cli.ExitOK || !strings.Contains(out, "1.8.0.6051") {
			t.Fatalf("%s: %d %s%s", tt.args, code, out, errOut)
		}
		f, err := os.Open("d.ota")
		if err != nil {
			t.Fatal(err)
		}
		a, err := archive.Open(f, archive.Options{Key: &archivetest.Key().PublicKey, Password: []byte(tt.password)})
		if err != nil {
			t.Fatal(err)
		}
		i, err := a.Next()
		if err != nil {
			t.Fatal(err)
		}
		if m := a.Manifest; m.Version != archivetest.Version || i.Base != archivetest.Running || !m.Reboot || m.QSN != archivetest.QSN || i.Bytes > 2000 {
			t.Errorf("%s: %+v", tt.args, m)
		}
		slots := map[string]*partition{}
		if _, err := delta.Apply(i, func(m delta.Image) (io.ReaderAt, io.WriterAt, error) {
			slots[m.Name] = &partition{}
			return bytes.NewReader(archivetest.Production()[manifest.Part(m.Name)]), slots[m.Name], nil
		}); err != nil {
			t.Errorf("%s: %v", tt.args, err)
		}
		if _, err := a.Next(); err != io.EOF {
			t.Errorf("%s: %v, want the end", tt.args, err)
		}
		for p, want := range nextRelease() {
			if !bytes.Equal(*slots[string(p)], want) {
				t.Errorf("%s: %s is not the new image", tt.args, p)
			}
		}
		f.Close() // it was only read
	}
}

// TestOTADeltaRefuses: what cannot be two releases is named, and nothing is left behind.
func TestOTADeltaRefuses(t *testing.T) {
	otaDesk(t)
	releases(t, "")
	if code, _, errOut := run(t, strings.Fields("ota delta old.ota new.ota d.ota -key ota.key")...); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	before, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"old.ota new.ota", cli.ExitUsage, "missing OUT.ota"},
		{"old.ota new.ota out.ota -key nowhere", cli.ExitNotFound, "-key: open nowhere"},
		{"nowhere new.ota out.ota", cli.ExitNotFound, "nowhere"},
		{"old.ota nowhere out.ota", cli.ExitNotFound, "nowhere"},
		{"old.ota d.ota out.ota", cli.ExitUsage, "d.ota: delta update"},
		{"old.ota new.changed out.ota", cli.ExitFailed, "new.changed: update code 209"},
		{"ota.pub new.ota out.ota", cli.ExitFailed, "ota.pub: update code 204"},
		{"old new.ota out.ota", cli.ExitUsage, "old is a folder. -base: version"},
		{"old.ota new out.ota -version 2.0", cli.ExitUsage, "new is a folder. -version: version"},
		{"old.ota new.ota out.ota -version 2.0.1.6077", cli.ExitUsage, "-version: new.ota"},
		{"bare new.ota out.ota -base 2.0.1.6075", cli.ExitNotFound, "bare/"},
		{"old new out.ota -base 1.8.0.6051 -version 2.0.1.6076 -qsn ../etc", cli.ExitUsage, `qsn="../etc"`},
		{"old.ota new.ota nowhere/out.ota", cli.ExitFailed, "nowhere"},
	} {
		args := strings.Fields("ota delta " + tt.args)
		if !slices.Contains(args, "-key") {
			args = append(args, "-key", "ota.key")
		}
		if code, out, errOut := run(t, args...); code != tt.code || !strings.Contains(errOut, tt.want) {
			t.Errorf("%s: exit %d, want %d with %q\n%s%s", tt.args, code, tt.code, tt.want, out, errOut)
		}
	}
	if after, err := os.ReadDir("."); err != nil || len(after) != len(before) {
		t.Errorf("%d files, want %d: %v", len(after), len(before), err)
	}
}
