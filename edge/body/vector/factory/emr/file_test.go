package emr

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func openRoot(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// TestWriteOnlyInFactory is VEC-STOR-02 and part of VEC-STOR-05: only a build that permits it writes, and only until the robot is packed.
func TestWriteOnlyInFactory(t *testing.T) {
	root := openRoot(t)
	if _, err := Read(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no record: %v", err)
	}
	r := Record{ESN: 0x00e20100, LotCode: 21836201}
	if err := Write(root, r, false); !errors.Is(err, ErrNotFAC) {
		t.Errorf("a build without factory mode wrote: %v", err)
	}
	steps := []struct {
		change func()
		stage  string
	}{{func() {}, "FAC 01"}, {func() { r.PlaypenReady = 1 }, "FAC 02"}, {func() { r.PlaypenPassed = 1 }, "FAC 03"},
		{func() { r.PackedOut, r.PackedOutDate = 1, 1535932800 }, ""}}
	for _, s := range steps {
		s.change()
		if err := Write(root, r, true); err != nil {
			t.Fatalf("stage %q: %v", s.stage, err)
		}
		got, err := Read(root)
		if err != nil || got != r || got.Stage() != s.stage {
			t.Errorf("read %v, %v; stage %q, want %q", got.Serial(), err, got.Stage(), s.stage)
		}
		if FactoryMode(got, false) || FactoryMode(got, true) != (s.stage != "") {
			t.Errorf("stage %q: factory mode %v", s.stage, FactoryMode(got, true))
		}
	}
	forged := r
	forged.ESN, forged.PackedOut = 1, 0
	if err := Write(root, forged, true); !errors.Is(err, ErrReleased) {
		t.Errorf("a released robot's record was written: %v", err)
	}
	if got, err := Read(root); err != nil || got != r {
		t.Errorf("after the refusal: %v, %v", got.Serial(), err)
	}
}

// The partition is larger than the record; what follows stays. A record that is cut short is one that was never finished.
func TestWriteKeepsThePartition(t *testing.T) {
	root := openRoot(t)
	tail := bytes.Repeat([]byte{0xA5}, 3000)
	if err := errors.Join(root.MkdirAll("dev/block/bootdevice/by-name", 0o755),
		root.WriteFile(Path, append(Record{ESN: 1}.Append(nil), tail...), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := Write(root, Record{ESN: 2}, true); err != nil {
		t.Fatal(err)
	}
	b, err := root.ReadFile(Path)
	if err != nil || len(b) != Size+len(tail) || !bytes.Equal(b[Size:], tail) || b[0] != 2 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if err := root.WriteFile(Path, []byte("short"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(root); err == nil || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("short record: %v", err)
	}
	if err := Write(root, Record{ESN: 3}, true); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(root); err != nil || got.ESN != 3 {
		t.Errorf("%v, %v", got.ESN, err)
	}
}

func TestDump(t *testing.T) {
	r := Record{ESN: 0x00e20100, HardwareRev: 7, Model: 1, LotCode: 21836201, PlaypenReady: 1, PlaypenPassed: 1, PackedOut: 1, PackedOutDate: 1535932800}
	r.Fixture[191] = 0xbeef
	var out bytes.Buffer
	if err := r.Dump(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"00e20100", "2 18 36 201", "raw 21836201", "week 36 of 2018", "2018-09-03", "fixture[191]", "0x0000beef"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("dump lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "stage") {
		t.Error("a released robot shows a factory stage")
	}
}

// TestLotRoundTrip is VEC-STOR-06.
func TestLotRoundTrip(t *testing.T) {
	for _, l := range []Lot{{2, 2018, 36, 201}, {1, 2000, 1, 0}, {99, 2099, 53, 999}} {
		code, ok := l.Code()
		back, ok2 := ParseLot(code)
		if !ok || !ok2 || back != l {
			t.Errorf("%v: code %d, back %v", l, code, back)
		}
	}
	for _, l := range []Lot{{0, 2018, 1, 1}, {100, 2018, 1, 1}, {2, 1999, 1, 1}, {2, 2018, 0, 1}, {2, 2018, 54, 1}, {2, 2018, 1, 1000}} {
		if code, ok := l.Code(); ok {
			t.Errorf("%+v made code %d", l, code)
		}
	}
}

func FuzzLot(f *testing.F) {
	f.Add(uint32(21836201))
	f.Fuzz(func(t *testing.T, code uint32) {
		if l, ok := ParseLot(code); ok {
			if back, ok := l.Code(); !ok || back != code {
				t.Fatalf("%d -> %+v -> %d, %v", code, l, back, ok)
			}
		}
	})
}
