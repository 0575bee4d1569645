package flash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strconv"
	"strings"
	"testing"
)

// TestTable: the keywords, kinds and defaults of the manual's table, constants first (AMIGO-FLASH-01 to 37); RevCount and the gains are
// critical (AMIGO-FLASH-39).
func TestTable(t *testing.T) {
	want := strings.Fields(`
		Type:string:Pioneer:c Subtype:string:Amigo:c Serial:string:SIM00001:c RotVelTop:int:360:c TransVelTop:int:2200:c RotAccTop:int:360:c
		TransAccTop:int:4000:c PwmMax:int:255:c Name:string:not_set: SInfoCycle:byte:0: HostBaud:byte:0: Aux1Baud:byte:0: Aux2Baud:byte:0:
		io0:byte:0: io1:byte:0: io2:byte:0: io3:byte:0: io4:byte:0: io5:byte:0: LowBattery:int:110: WatchDog:int:2000: RevCount:int:23310:!
		Mpacs:byte:0: StallVal:int:255: StallCount:int:100: RotVelMax:int:200: TransVelMax:int:300: RotAcc:int:50: RotDecel:int:50:
		RotKp:int:30:! RotKv:int:60:! RotKi:int:0:! TransAcc:int:300: TransDecel:int:300: TransKp:int:40:! TransKv:int:80:! TransKi:int:0:!`)
	if len(want) != int(Count) {
		t.Fatalf("%d parameters, want %d", Count, len(want))
	}
	v := Defaults()
	for k := range Count {
		p := k.Param()
		flags := ""
		if p.Constant {
			flags += "c"
		}
		if p.Critical {
			flags += "!"
		}
		if got := strings.Join([]string{p.Keyword, p.Kind.String(), v.Value(k), flags}, ":"); got != want[k] {
			t.Errorf("got %s, want %s", got, want[k])
		}
		if p.Doc == "" || p.Kind == Byte && p.Max > 255 {
			t.Errorf("%s: %+v", k, p)
		}
	}
}

// TestSet: decimal and hexadecimal numbers, names, ranges (AMIGO-CF-03, CF-04); keywords in any case; constants refused (CF-05).
func TestSet(t *testing.T) {
	for _, tt := range []struct{ name, keyword, value, want, err string }{
		{name: "decimal", keyword: "watchdog", value: "4000", want: "4000"},
		{name: "hexadecimal", keyword: "WATCHDOG", value: "0xfa0", want: "4000"},
		{name: "hexadecimal in capitals", keyword: "WatchDog", value: "0XFA0", want: "4000"},
		{name: "leading zero is decimal", keyword: "WatchDog", value: "010", want: "10"},
		{name: "name", keyword: "name", value: "Rover_2", want: "Rover_2"},
		{name: "name of 20", keyword: "Name", value: strings.Repeat("x", 20), want: strings.Repeat("x", 20)},
		{name: "name of 21", keyword: "Name", value: strings.Repeat("x", 21), err: "want 1 to 20 printable ASCII characters"},
		{name: "name with space", keyword: "Name", value: "my robot", err: "without spaces"},
		{name: "name with comment mark", keyword: "Name", value: "a;b", err: "without spaces, ; and #"},
		{name: "empty name", keyword: "Name", value: "", err: `Name "": want`},
		{name: "name outside ASCII", keyword: "Name", value: "Ämi", err: "printable ASCII"},
		{name: "byte out of range", keyword: "HostBaud", value: "3", err: `HostBaud "3": want a number from 0 to 2`},
		{name: "int out of range", keyword: "StallVal", value: "65536", err: "want a number from 0 to 65535"},
		{name: "above the hard limit", keyword: "TransVelMax", value: "2201", err: "from 0 to 2200 mm/s"},
		{name: "zero RevCount", keyword: "RevCount", value: "0", err: "from 1 to 65535 ticks"},
		{name: "negative", keyword: "RotKi", value: "-1", err: "from 0 to 65535"},
		{name: "fraction", keyword: "RotKi", value: "1.5", err: "from 0 to 65535"},
		{name: "bare prefix", keyword: "RotKi", value: "0x", err: "from 0 to 65535"},
		{name: "no value", keyword: "RotKi", value: "", err: `RotKi "": want`},
		{name: "constant", keyword: "pwmmax", value: "200", err: "PwmMax is a constant of the robot and cannot be changed"},
		{name: "unknown", keyword: "wachdog", value: "1", err: `unknown parameter "wachdog"; did you mean WatchDog`},
		{name: "unknown and long", keyword: strings.Repeat("rot", 1000), value: "1", err: "unknown parameter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := Defaults()
			err := v.Set(tt.keyword, tt.value)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || v != Defaults() {
					t.Errorf("got %v, want %q and nothing changed", err, tt.err)
				}
				return
			}
			if k, kerr := Lookup(tt.keyword); err != nil || kerr != nil || v.Value(k) != tt.want {
				t.Errorf("got %q %v %v, want %q", v.Value(k), err, kerr, tt.want)
			}
		})
	}
	v := Defaults()
	if err := v.SetSerial("AB12"); err != nil || v.Value(Serial) != "AB12" {
		t.Errorf("serial %q %v", v.Value(Serial), err)
	}
}

// TestRanges: each number takes both ends of its range and no number beyond them; the default is within.
func TestRanges(t *testing.T) {
	for k := range Count {
		p := k.Param()
		if p.Kind == Text {
			continue
		}
		for _, n := range []int{p.Min - 1, p.Min, p.Max, p.Max + 1} {
			v := Defaults()
			if err := v.put(k, strconv.Itoa(n)); (err == nil) != (n >= p.Min && n <= p.Max) {
				t.Errorf("%s %d: %v", k, n, err)
			}
		}
	}
}

// TestParse: the form of parameter files (AMIGO-CF-11, AMIGO-OPEN-04).
func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, file, keyword, want, err string }{
		{name: "empty", keyword: "Name", want: "not_set"},
		{name: "plain", file: "WatchDog 4000\nName Rover\n", keyword: "Name", want: "Rover"},
		{name: "comments, tabs, CRLF", file: "; set\r\n\r\n  watchdog\t0x10 ; 16 ms\r\n# end", keyword: "WatchDog", want: "16"},
		{name: "no value", file: "\nWatchDog ; soon\n", err: `line 2: WatchDog "": want a number`},
		{name: "unknown keyword", file: "Name x\nRotKpp 3\n", err: `line 2: unknown parameter "RotKpp"; did you mean RotKp`},
		{name: "constant", file: "Serial 1\n", err: "line 1: Serial is a constant"},
		{name: "twice", file: "Name x\n\nname y\n", err: "line 3: Name is already set in line 1"},
		{name: "all errors", file: "x 1\ny 2\n", err: "\nline 2: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := Defaults()
			err := v.Parse(tt.file)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || v != Defaults() {
					t.Errorf("got %v, want %q and nothing changed", err, tt.err)
				}
				return
			}
			if k, kerr := Lookup(tt.keyword); err != nil || kerr != nil || v.Value(k) != tt.want {
				t.Errorf("got %q %v %v, want %q", v.Value(k), err, kerr, tt.want)
			}
		})
	}
	v := Defaults()
	got := v.Format() // variables only (AMIGO-CF-11)
	if strings.Contains(got, "Serial") || strings.Count(got, "\n") != int(Count)-8 || !strings.HasPrefix(got, "Name not_set\nSInfoCycle 0\n") {
		t.Errorf("file\n%s", got)
	}
}

func FuzzParse(f *testing.F) {
	v := Defaults()
	f.Add(v.Format())
	f.Add("; c\nname a\nwatchdog 0xfa0 # x\n\nname b")
	f.Fuzz(func(t *testing.T, file string) {
		v := Defaults()
		if v.Parse(file) != nil {
			return
		}
		again := Defaults()
		if err := again.Parse(v.Format()); err != nil || again != v || again.Format() != v.Format() {
			t.Errorf("%v\n%s\n%s", err, v.Format(), again.Format())
		}
	})
}

// TestImage: every bit counts, every prefix is refused, and so is a value out of range under a good checksum.
func TestImage(t *testing.T) {
	v := Defaults()
	if err := v.Parse("Name Rover\nIO3 1\nRevCount 24000\n"); err != nil {
		t.Fatal(err)
	}
	image := AppendImage([]byte{1}, &v)[1:]
	if got, err := ParseImage(image); err != nil || got != v || len(image) != ImageSize {
		t.Fatalf("%d bytes: %v\n%s", len(image), err, got.Format())
	}
	for i := range image {
		damaged := bytes.Clone(image)
		damaged[i] ^= 0x10
		if _, err := ParseImage(damaged); !errors.Is(err, ErrImage) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := ParseImage(image[:i]); !errors.Is(err, ErrImage) {
			t.Errorf("%d bytes: %v", i, err)
		}
	}
	v.num[HostBaud] = 7
	if _, err := ParseImage(AppendImage(nil, &v)); err == nil || !strings.Contains(err.Error(), `HostBaud "7": want`) {
		t.Errorf("out of range: %v", err)
	}
}

func FuzzImage(f *testing.F) {
	v := Defaults()
	f.Add(AppendImage(nil, &v))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == ImageSize { // the fuzzer cannot guess a checksum
			binary.LittleEndian.PutUint32(b[ImageSize-4:], crc32.ChecksumIEEE(b[:ImageSize-4]))
		}
		if v, err := ParseImage(b); err == nil && !bytes.Equal(AppendImage(nil, &v), b) {
			t.Errorf("%x", b)
		}
	})
}
