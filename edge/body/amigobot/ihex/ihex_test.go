package ihex

import (
	"reflect"
	"strings"
	"testing"
)

// TestParse: the record types of AMIGO-DL-02; the data records are the usual examples of the format.
func TestParse(t *testing.T) {
	const eof = ":00000001FF\n"
	for _, tt := range []struct {
		name, file string
		want       []Segment
		err        string
	}{
		{name: "end alone", file: eof},
		{name: "data", file: ":0B0010006164647265737320676170A7\r\n\r\n" + eof, want: []Segment{{0x10, []byte("address gap")}}},
		{name: "lower case", file: ":03003000" + "02337a1e\n" + eof, want: []Segment{{0x30, []byte{2, 0x33, 0x7a}}}},
		{name: "upper half", file: ":020000040020DA\n:0100000055AA\n" + eof, want: []Segment{{0x200000, []byte{0x55}}}},
		{name: "paragraph", file: ":020000021200EA\n:0100000055AA\n" + eof, want: []Segment{{0x12000, []byte{0x55}}}},
		{name: "start addresses are ignored", file: ":0400000300003800C1\n:04000005000000CD2A\n:0100000055AA\n" + eof, want: []Segment{{0, []byte{0x55}}}},
		{name: "out of order, joined", file: ":0100010066" + "98\n:0100000055AA\n" + eof, want: []Segment{{0, []byte{0x55, 0x66}}}},
		{name: "over the border of 64 kB", file: ":02FFFF001122CD\n" + eof, want: []Segment{{0xFFFF, []byte{0x11, 0x22}}}},
		{name: "no end", file: ":0100000055AA\n", err: "no end record"},
		{name: "empty", err: "no end record"},
		{name: "after the end", file: eof + "\n:0100000055AA\n", err: "line 3: record after the end record"},
		{name: "checksum", file: "\n:0100000055AB\n" + eof, err: "line 2: checksum AB, want AA"},
		{name: "no colon", file: "0100000055AA\n" + eof, err: "line 1: damaged record"},
		{name: "odd digits", file: ":0100000055A\n" + eof, err: "damaged record"},
		{name: "shorter than it says", file: ":0200000055A9\n" + eof, err: "damaged record"},
		{name: "unknown type", file: ":00000006FA\n" + eof, err: "type 06; want 00 to 05"},
		{name: "wrong length of a type", file: ":0100000400FB\n" + eof, err: "type 04 with 1 bytes, want 2"},
		{name: "overlap", file: ":0100000055AA\n:0100000055AA\n" + eof, err: "two records for address 0x0"},
		{name: "behind the last address", file: ":02000004FFFFFC\n:02FFFF001122CD\n" + eof, err: "line 2: data after address 0xffffffff"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(tt.file)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v %v, want %v", got, err, tt.want)
			}
		})
	}
}

func TestFormat(t *testing.T) {
	long := make([]byte, 70_000)
	for i := range long {
		long[i] = byte(i * 7)
	}
	segments := []Segment{{0x10, []byte("address gap")}, {0x1FFF8, long}, {0xFFFFFFFF, []byte{1}}}
	text := Format(segments)
	if !strings.HasPrefix(text, ":0B0010006164647265737320676170A7\n:020000040001F9\n:08FFF8") || !strings.HasSuffix(text, ":00000001FF\n") {
		t.Errorf("%.120s", text)
	}
	if got, err := Parse(text); err != nil || !reflect.DeepEqual(got, segments) {
		t.Errorf("%v: %d segments", err, len(got))
	}
}

// FuzzParse: what is accepted is the same after it is written and read again.
func FuzzParse(f *testing.F) {
	f.Add(Format([]Segment{{0x10, []byte("address gap")}, {0x1FFFF, []byte{1, 2}}}))
	f.Add(":020000021200EA\n:0100000055AA\n:0400000300003800C1\n:00000001FF\n")
	f.Fuzz(func(t *testing.T, file string) {
		got, err := Parse(file)
		if err != nil {
			return
		}
		if again, err := Parse(Format(got)); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v: %v, then %v", err, got, again)
		}
	})
}
