package oem

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
)

// TestAreaIsWrittenInTheFactoryOnly is VEC-STOR-08, and VEC-STOR-07 for what the playpen leaves.
func TestAreaIsWrittenInTheFactoryOnly(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	fac := New(root, Factory)
	if logs, err := fac.Logs(); err != nil || logs != nil {
		t.Errorf("an empty robot has logs %v, %v", logs, err)
	}
	if _, err := fac.ReadNV("cal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no value: %v", err)
	}
	if err := errors.Join(fac.WriteLog("line7.log", []byte("ok")), fac.WriteNV("cal", []byte{1, 2}), fac.WriteNV("cal", []byte{3}),
		fac.WritePlaypen("cliff-0.jpg", []byte("jpeg")), root.MkdirAll("factory/cloud", 0o755), root.WriteFile("factory/nvStorage/readme", nil,
			0o644)); err != nil {
		t.Fatal(err)
	}
	for _, m := range []Mode{Home, Recovery} {
		a := New(root, m)
		for name, err := range map[string]error{"log": a.WriteLog("x", nil), "nv": a.WriteNV("cal", nil), "playpen": a.WritePlaypen("x", nil)} {
			if !errors.Is(err, ErrReadOnly) {
				t.Errorf("%s in mode %v: %v", name, m, err)
			}
		}
		logs, err := a.Logs()
		if err != nil || len(logs) != 1 || logs[0].Name != "line7.log" || logs[0].Size != 2 {
			t.Errorf("logs %+v, %v", logs, err)
		}
		if b, err := a.ReadLog("line7.log"); err != nil || string(b) != "ok" {
			t.Errorf("log %q, %v", b, err)
		}
		nv, err := a.NV()
		if err != nil || !slices.Equal(nv, []string{"cal"}) {
			t.Errorf("values %v, %v", nv, err)
		}
		if b, err := a.ReadNV("cal"); err != nil || !slices.Equal(b, []byte{3}) {
			t.Errorf("value %v, %v", b, err)
		}
		if p, err := a.Playpen(); err != nil || len(p) != 1 {
			t.Errorf("playpen %v, %v", p, err)
		}
	}
	for _, bad := range []string{"", "..", "../x", "a/b", ".hidden", "a\x00"} {
		if fac.WriteLog(bad, nil) == nil {
			t.Errorf("wrote a log named %q", bad)
		}
		if _, err := fac.ReadPlaypen(bad); err == nil {
			t.Errorf("read %q", bad)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("cal")
	f.Add("../../etc/passwd")
	root, err := os.OpenRoot(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	a := New(root, Factory)
	f.Fuzz(func(t *testing.T, name string) {
		if a.WriteNV(name, []byte("v")) != nil {
			return
		}
		names, err := a.NV()
		if err != nil || !slices.Contains(names, name) {
			t.Fatalf("%q was written and is not listed: %v, %v", name, names, err)
		}
	})
}
