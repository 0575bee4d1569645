package reportline

import (
	"errors"
	"strings"
	"testing"
)

func sampleDrives() Drives {
	d := Drives{Count: 2}
	d.Properties[6], d.Properties[10] = 2, 1
	copy(d.Drives[0].Name[:], "hunger")
	d.Drives[0].Value, d.Drives[0].Low, d.Drives[0].High = 40, -25, 25
	copy(d.Drives[1].Name[:], "social_need2")
	d.Drives[1].Value = -3
	return d
}

const drivesLine = "drives 1 0 0 0 0 0 0 2 0 0 0 1 2 hunger 40 -25 25 social_need2 -3 0 0 *"

// TestDrives: the line of two drives, written down from the layout (PLEO-DRV-01).
func TestDrives(t *testing.T) {
	d := sampleDrives()
	if got := string(AppendDrives(nil, &d)); got != string(seal(drivesLine)) {
		t.Errorf("%s\nwant\n%s", got, seal(drivesLine))
	}
	var back Drives
	if err := ParseDrives(seal(drivesLine), &back); err != nil || back != d {
		t.Errorf("%+v, %v", back, err)
	}
	largest := Drives{Count: MaxDrives}
	for i := range largest.Properties {
		largest.Properties[i] = -1 << 31
	}
	for i := range largest.Drives {
		x := &largest.Drives[i]
		copy(x.Name[:], "abcdefghijkl")
		x.Value, x.Low, x.High = -1<<31, -1<<31, -1<<31
	}
	buf := AppendDrives(nil, &largest)
	if len(buf) > MaxLine {
		t.Errorf("a line of drives has %d bytes, want at most %d", len(buf), MaxLine)
	}
	if n := testing.AllocsPerRun(100, func() {
		buf = AppendDrives(buf[:0], &largest)
		if ParseDrives(buf, &back) != nil {
			t.Error("lost")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestDrivesRefused: what is wrong is named with its column, and the drives stay as they were.
func TestDrivesRefused(t *testing.T) {
	replace := func(old, new string) []byte { return seal(strings.Replace(drivesLine, old, new, 1)) }
	for name, tc := range map[string]struct {
		line   []byte
		column int
		what   string
	}{
		"a report":     {seal(line), 1, "line"},
		"7 drives":     {replace(" 2 hunger", " 7 hunger"), 32, "number of drives"},
		"no name":      {replace("hunger", "-"), 34, "name of a drive"},
		"long name":    {replace("need2", "needing"), 51, "name of a drive"},
		"one more":     {replace(" 2 hunger", " 1 hunger"), 51, "end"},
		"no threshold": {replace("-3 0 0", "-3 0"), 69, "high trigger"},
	} {
		d := sampleDrives()
		var e *Error
		if err := ParseDrives(tc.line, &d); !errors.As(err, &e) || e.Column != tc.column || e.What != tc.what || d != sampleDrives() {
			t.Errorf("%s: %v, want column %d, %s", name, err, tc.column, tc.what)
		}
	}
}

// FuzzParseDrives: what is taken is written as the same line again.
func FuzzParseDrives(f *testing.F) {
	f.Add(drivesLine)
	f.Add("drives 1 0 0 0 0 0 0 0 0 0 0 0 0 *")
	f.Fuzz(func(t *testing.T, s string) {
		var d Drives
		if strings.HasSuffix(s, "*") {
			s = string(seal(s))
		}
		if ParseDrives([]byte(s), &d) == nil && string(AppendDrives(nil, &d)) != s {
			t.Fatalf("%q is written as %q", s, AppendDrives(nil, &d))
		}
	})
}
