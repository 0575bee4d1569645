package update

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"kennel/ota"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// TestVouched: a robot with release metadata installs only the archive whose length and hash they name, although the release key signed others; also when it
// continues after a reboot.
func TestVouched(t *testing.T) {
	data := archivetest.Make(manifest.Manifest{}, archivetest.Production(), "")
	longer := append(append([]byte{}, data...), make([]byte, 512)...) // zeros are padding to tar
	for _, tt := range []struct {
		name   string
		length int
		sum    manifest.Sum
		err    error
		sent   []byte
		code   ota.Code
		reason string
	}{
		{name: "right", length: len(data), sum: sha256.Sum256(data), sent: data},
		{name: "another archive", length: len(data), sum: sha256.Sum256(longer), sent: data, code: ota.NotAuthentic, reason: "in the release metadata"},
		{name: "longer", length: len(data), sum: sha256.Sum256(data), sent: longer, code: ota.NotAuthentic, reason: "the archive has"},
		{name: "shorter", length: len(longer), sum: sha256.Sum256(data), sent: data, code: ota.NotAuthentic, reason: "the archive has"},
		{name: "cut short", length: len(data), sum: sha256.Sum256(data), sent: data[:len(data)*2/3], code: ota.BadArchive, reason: "ends"}, // as without metadata
		{name: "not named", err: ota.Fail(ota.NotAuthentic, "no channel vouches"), sent: data, code: ota.NotAuthentic, reason: "no channel vouches"},
		{name: "cloud not reached", err: ota.Fail(ota.Other, "no answer"), sent: data, code: ota.Other, reason: "no answer"},
	} {
		for _, continued := range []bool{false, true} {
			if continued && tt.err != nil {
				continue
			}
			name := tt.name
			if continued {
				name += ", after a reboot"
			}
			t.Run(name, func(t *testing.T) {
				r := newRobot(t)
				at := r.put("/v.ota", tt.sent)
				asked := 0
				vouch := func(c *Config) {
					c.Vouch = func(_ context.Context, m *manifest.Manifest) (int64, manifest.Sum, error) {
						if asked++; m.Version != archivetest.Version {
							t.Errorf("asked about %s", m.Version)
						}
						return int64(tt.length), tt.sum, tt.err
					}
				}
				if continued && len(tt.sent) == tt.length {
					r.disk.Fail("system_b", errors.New("input/output error"))
					if _, err := r.engine(vouch).Run(t.Context(), Request{At: at}); ota.CodeOf(err) != ota.DiskFailed {
						t.Fatal(err)
					}
					if c := readCheckpoint(r.disk); c == nil || c.Hashed == 0 || c.Hashed > c.At {
						t.Fatalf("checkpoint %+v", c)
					}
					r.disk.Fail("", nil)
					r.boot()
					r.forget()
				}
				got, err := r.engine(vouch).Run(t.Context(), Request{At: at})
				if ota.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.reason) || asked == 0 {
					t.Fatalf("%v after %d questions: want code %d, ...%s...", err, asked, tt.code, tt.reason)
				}
				want := ota.Version(archivetest.Running)
				if err == nil {
					if want = archivetest.Version; got.Plain {
						t.Error("the result says that there were no release metadata")
					}
					if continued && r.sent.Load().Load() >= int64(len(data)) {
						t.Errorf("%d of %d bytes were sent again", r.sent.Load().Load(), len(data))
					}
				}
				if s := r.boot(); s.Version != want {
					t.Errorf("started %+v, want %s", s, want)
				}
			})
		}
	}
}

// TestVouchedFromPlain: a download that began without release metadata starts from the beginning.
func TestVouchedFromPlain(t *testing.T) {
	r := newRobot(t)
	data := archivetest.Make(manifest.Manifest{}, archivetest.Production(), "")
	at := r.put("/v.ota", data)
	r.disk.Fail("system_b", errors.New("input/output error"))
	if _, err := r.engine().Run(t.Context(), Request{At: at}); ota.CodeOf(err) != ota.DiskFailed {
		t.Fatal(err)
	}
	r.disk.Fail("", nil)
	r.boot()
	if _, err := r.engine(func(c *Config) {
		c.Vouch = func(context.Context, *manifest.Manifest) (int64, manifest.Sum, error) {
			return int64(len(data)), sha256.Sum256(data), nil
		}
	}).Run(t.Context(), Request{At: at}); err != nil {
		t.Fatal(err)
	}
	if s := r.boot(); s.Version != archivetest.Version {
		t.Errorf("started %+v", s)
	}
}
