package reportline

import (
	"errors"
	"strings"
	"testing"

	"kennel/edge/body/pleo/hdlc"
)

func sample() Report {
	r := Report{Seq: 7, Firmware: 110, Held: 1 << 11, Stalled: 3, App: true, Sounds: 2, Left: 99, Joints: [Joints]int16{0: -300, 11: 123, 13: -1}}
	r.Sensors[Index(2)], r.Sensors[Index(26)], r.Sensors[Index(6)] = 88, -128, 1
	return r
}

const line = "report 1 7 110 2048 3 1 2 99 -300 0 0 0 0 0 0 0 0 0 0 123 0 -1 88 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 -128 0 0 0 0 0 0 0 0 0 0 0 0 *"

// seal gives a line a check sequence that fits.
func seal(s string) []byte {
	const digits = "0123456789abcdef"
	fcs := hdlc.FCS([]byte(s[:len(s)-1]))
	return append([]byte(s), digits[fcs>>12], digits[fcs>>8&15], digits[fcs>>4&15], digits[fcs&15])
}

// TestGolden: the line of one report, written down from the layout.
func TestGolden(t *testing.T) {
	r := sample()
	if got := string(Append(nil, &r)); got != string(seal(line)) {
		t.Errorf("%s\nwant\n%s", got, seal(line))
	}
	var back Report
	if err := Parse(seal(line), &back); err != nil || back != r || back.Sensor(2) != 88 {
		t.Errorf("%+v, %v", back, err)
	}
	largest := Report{Seq: 1<<32 - 1, Firmware: 1<<16 - 1, Held: 1<<Joints - 1, Stalled: 1<<Joints - 1, Sounds: 1<<32 - 1, Left: 1<<32 - 1}
	for i := range largest.Joints {
		largest.Joints[i] = -1800
	}
	for i := range largest.Sensors {
		largest.Sensors[i] = -1 << 31
	}
	if n := len(Append(nil, &largest)); n > MaxLine {
		t.Errorf("a report has %d bytes, want at most %d", n, MaxLine)
	}
}

// TestRefused: what is wrong is named with its column, and the report stays as it was; no line with a changed byte, and no piece of one, is a report.
func TestRefused(t *testing.T) {
	replace := func(old, new string) []byte { return seal(strings.Replace(line, old, new, 1)) }
	for name, tc := range map[string]struct {
		line   []byte
		column int
		what   string
	}{
		"another line": {[]byte("INFO: vm: hello"), 1, "line"},
		"too long":     {[]byte("report " + strings.Repeat("1 ", 400)), 1, "line"},
		"no end":       {[]byte("report 1 7"), 10, "check sequence"},
		"wrong sum":    {append(seal(line)[:len(line)], "0000"...), len(line) + 1, "check sequence"},
		"version 2":    {replace("report 1", "report 2"), 8, "version"},
		"no number":    {replace(" 110 ", " x "), 12, "firmware"},
		"leading zero": {replace(" 110 ", " 0110 "), 12, "firmware"},
		"minus zero":   {replace(" -1 88", " -0 88"), 61, "joint"},
		"15 joints":    {replace(" 2048 ", " 16384 "), 16, "joints that are held"},
		"far joint":    {replace(" -300 ", " -3000 "), 30, "joint"},
		"a field more": {replace(" *", " 0 *"), len(line), "end"},
		"a field less": {replace(" 0 *", " *"), len(line) - 2, "sensor"},
	} {
		r := sample()
		var e *Error
		if err := Parse(tc.line, &r); !errors.As(err, &e) || e.Column != tc.column || e.What != tc.what || r != sample() {
			t.Errorf("%s: %v, want column %d, %s", name, err, tc.column, tc.what)
		}
	}
	good := seal(line)
	var r Report
	for i := range good {
		if Parse(good[:i], &r) == nil {
			t.Errorf("%d bytes are a report", i)
		}
		for bit := range 8 {
			good[i] ^= 1 << bit
			if Parse(good, &r) == nil {
				t.Errorf("byte %d, bit %d: taken", i, bit)
			}
			good[i] ^= 1 << bit
		}
	}
}

// TestFrugal: neither end allocates.
func TestFrugal(t *testing.T) {
	buf := make([]byte, 0, MaxLine)
	r := sample()
	if n := testing.AllocsPerRun(100, func() {
		buf = Append(buf[:0], &r)
		if Parse(buf, &r) != nil {
			t.Error("lost")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzParse: what is taken is written as the same line again.
func FuzzParse(f *testing.F) {
	f.Add(line)
	f.Add("report 1 *")
	f.Fuzz(func(t *testing.T, s string) {
		var r Report
		if strings.HasSuffix(s, "*") {
			s = string(seal(s)) // or no fuzzer gets beyond the check sequence
		}
		if Parse([]byte(s), &r) == nil && string(Append(nil, &r)) != s {
			t.Fatalf("%q is written as %q", s, Append(nil, &r))
		}
	})
}
