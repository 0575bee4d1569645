package amx_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"kennel/edge/pawn/amx"
)

// cells returns cells as they are in a file.
func cells(v ...int32) (out []byte) {
	for _, c := range v {
		out = append(out, byte(c), byte(c>>8), byte(c>>16), byte(c>>24))
	}
	return out
}

// sample returns a program of that version that uses every table.
func sample(version uint8) *amx.Program {
	p := &amx.Program{
		Version: version, Machine: version, Flags: amx.FlagSleep,
		Code:           cells(120, 0, 46, 11, 7, 48, 46, 11, -2, 48), // halt 0; main: proc, const.pri 7, retn; f: proc, const.pri -2, retn
		Data:           cells(1, -1, 70000),
		StackHeapCells: 100, Main: 8, NameLimit: amx.MaxName,
		Publics: []amx.Entry{{Name: "@f", Value: 24}}, Natives: []amx.Entry{{Name: "printf"}, {Name: "x"}},
		Libraries: []amx.Entry{{Name: "console"}}, Pubvars: []amx.Entry{{Name: "v", Value: 4}}, Tags: []amx.Entry{{Name: "Float", Value: 0x40000001}},
	}
	if version >= 10 {
		p.Flags |= amx.FlagOverlay
		p.Overlays = []amx.Overlay{{Offset: 0, Size: 8}, {Offset: 8, Size: 16}, {Offset: 24, Size: 16}}
		p.Main, p.Publics[0].Value = 1, 2
	}
	return p
}

// golden is sample(10) byte by byte, laid out by hand from the rows (PLEO-AMX-02, part of PLEO-AMX-05).
const golden = "dc000000 e0f1 0a 0a 0900 0800" + // size 220, magic, versions, overlay and sleep, entries of 8 bytes
	"a8000000 d0000000 dc000000 6c020000 01000000" + // cod 168, dat 208, hea 220, stp 620, main is overlay 1
	"3c000000 44000000 54000000 5c000000 64000000 84000000 6c000000" + // publics 60, natives 68, libraries 84, pubvars 92, tags 100, nametable 132, overlays 108
	"02000000 86000000" + "00000000 89000000" + "00000000 90000000" + "00000000 92000000" + "04000000 9a000000" + "01000040 9c000000" +
	"00000000 08000000" + "08000000 10000000" + "18000000 10000000" +
	"1f00 406600 7072696e746600 7800 636f6e736f6c6500 7600 466c6f617400" + "000000000000" +
	"78000000 00000000 2e000000 0b000000 07000000 30000000 2e000000 0b000000 feffffff 30000000" +
	"01000000 ffffffff 70110100"

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGolden(t *testing.T) {
	// The padding is six bytes: two would do, so it is kept as it is.
	want := sample(10)
	want.Padding = make([]byte, 6)
	file := unhex(t, golden)
	p, err := amx.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("read %+v, want %+v", p, want)
	}
	if got, err := p.Append(nil); err != nil || !bytes.Equal(got, file) {
		t.Errorf("wrote %x, %v", got, err)
	}
}

// TestRoundTrip: what is written is read again, in every version, plain and compact, with debug symbols or without.
func TestRoundTrip(t *testing.T) {
	for version := uint8(amx.MinVersion); version <= amx.MaxVersion; version++ {
		for _, flags := range []amx.Flags{0, amx.FlagCompact, amx.FlagDebug, amx.FlagCompact | amx.FlagDebug | amx.FlagNoChecks} {
			want := sample(version)
			want.Flags |= flags
			if flags&amx.FlagDebug != 0 {
				want.Debug = []byte{1, 2, 3}
			}
			file, err := want.Append([]byte("before"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := amx.Read(file[len("before"):])
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("version %d, flags %#x: read %+v, %v, want %+v", version, flags, got, err, want)
			}
		}
	}
}

// TestCompact has cells at the borders of each length. The forms are those that the reference compilers 3.2 and 3.3 wrote for such cells.
func TestCompact(t *testing.T) {
	for _, c := range []struct {
		v    int32
		form string
	}{
		{0, "00"}, {1, "01"}, {63, "3f"}, {64, "8040"}, {-1, "7f"}, {-64, "40"}, {-65, "ff3f"}, {127, "807f"}, {128, "8100"}, {8191, "bf7f"}, {8192, "80c000"},
		{-8192, "c000"}, {-8193, "ffbf7f"}, {1<<20 - 1, "bfff7f"}, {1 << 20, "80c08000"}, {1<<27 - 1, "bfffff7f"}, {1 << 27, "80c0808000"}, {-1 << 27, "c0808000"},
		{-1<<27 - 1, "8fbfffff7f"}, {1<<31 - 1, "87ffffff7f"}, {-1 << 31, "8880808000"},
	} {
		p := &amx.Program{Version: 10, Flags: amx.FlagCompact, Code: cells(0, 0, c.v), StackHeapCells: 1, Main: amx.NoMain}
		file, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(file[66:]); got != c.form {
			t.Errorf("%d is written as %s, want %s", c.v, got, c.form)
		}
		if back, err := amx.Read(file); err != nil || !bytes.Equal(back.Code, p.Code) {
			t.Errorf("%d is read as %v, %v", c.v, back, err)
		}
	}
}

// TestCut: no prefix of a file is a file.
func TestCut(t *testing.T) {
	for _, flags := range []amx.Flags{0, amx.FlagCompact} {
		p := sample(10)
		p.Flags |= flags
		file, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := range file {
			if _, err := amx.Read(file[:n]); !errors.Is(err, amx.ErrFormat) {
				t.Fatalf("the first %d bytes: %v", n, err)
			}
		}
	}
}

// TestLies: each field that lies is refused, and the error names it.
func TestLies(t *testing.T) {
	u32 := func(at int, v int32) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], cells(v)); return b }
	}
	one := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = v; return b }
	}
	for _, c := range []struct {
		what  string
		lie   func([]byte) []byte
		field string
		err   error
	}{
		{"size longer than the file", u32(0, 221), "header.size", amx.ErrFormat},
		{"size negative", u32(0, -1), "header.size", amx.ErrFormat},
		{"size before the code ends", u32(0, 212), "header.size", amx.ErrFormat},
		{"64-bit cells", one(4, 0xE1), "header.magic", amx.ErrFormat},
		{"version 7", one(6, 7), "header.file_version", amx.ErrVersion},
		{"version 11, Pawn 4", one(6, 11), "header.file_version", amx.ErrVersion},
		{"machine 11", one(7, 11), "header.amx_version", amx.ErrVersion},
		{"machine 5", one(7, 5), "header.amx_version", amx.ErrVersion},
		{"unknown flag", one(8, 0x49), "header.flags", amx.ErrFormat},
		{"overlays without the flag", one(8, 0x08), "header.flags", amx.ErrFormat},
		{"entries of 24 bytes", one(10, 24), "header.defsize", amx.ErrFormat},
		{"code in the name table", u32(12, 130), "header.cod", amx.ErrFormat},
		{"code not on a cell", u32(12, 166), "header.cod", amx.ErrFormat},
		{"data before the code", u32(16, 164), "header.dat", amx.ErrFormat},
		{"data not on a cell", u32(16, 206), "header.dat", amx.ErrFormat},
		{"heap before the data", u32(20, 204), "header.hea", amx.ErrFormat},
		{"no stack", u32(24, 220), "header.stp", amx.ErrFormat},
		{"main is no overlay", u32(28, 3), "header.cip", amx.ErrFormat},
		{"publics not behind the header", u32(32, 56), "header.publics", amx.ErrFormat},
		{"natives before publics", u32(36, 52), "header.natives", amx.ErrFormat},
		{"half an entry", u32(40, 80), "header.libraries", amx.ErrFormat},
		{"tags behind the file", u32(48, 1<<30), "header.tags", amx.ErrFormat},
		{"name table negative", u32(52, -4), "header.nametable", amx.ErrFormat},
		{"public is no overlay", u32(60, -1), "publics[0]", amx.ErrFormat},
		{"name elsewhere", u32(64, 0x85), "publics[0].name", amx.ErrFormat},
		{"variable outside the data", u32(92, 12), "pubvars[0]", amx.ErrFormat},
		{"overlay outside the code", u32(124, 28), "overlays[2]", amx.ErrFormat},
		{"overlay of negative size", u32(128, -8), "overlays[2]", amx.ErrFormat},
		{"name longer than the limit", one(132, 6), "libraries[0].name", amx.ErrFormat}, // "printf" has six bytes, "console" seven
		{"limit of 32", one(132, 32), "nametable.limit", amx.ErrFormat},
		{"name without an end", func(b []byte) []byte {
			return bytes.Replace(b, []byte("Float\x00\x00\x00\x00\x00\x00\x00"), []byte("Float!!!!!!!"), 1)
		}, "tags[0].name", amx.ErrFormat},
		{"bytes behind it", func(b []byte) []byte { return append(b, 0) }, "header.flags", amx.ErrFormat},
	} {
		file := c.lie(unhex(t, golden))
		p, err := amx.Read(file)
		var e *amx.Error
		if !errors.As(err, &e) || e.Field != c.field || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v, want an error about %s", c.what, p, err, c.field)
		}
	}
}

// TestUnwritable: what no file can hold is refused when it is written.
func TestUnwritable(t *testing.T) {
	for _, c := range []struct {
		field string
		spoil func(*amx.Program)
	}{
		{"header.file_version", func(p *amx.Program) { p.Version = 7 }},
		{"header.file_version", func(p *amx.Program) { p.Version, p.Overlays = 9, []amx.Overlay{{Size: 4}} }},
		{"code and data", func(p *amx.Program) { p.Data = p.Data[:3] }},
		{"stack and heap", func(p *amx.Program) { p.StackHeapCells = 0 }},
		{"header.stp", func(p *amx.Program) { p.StackHeapCells = 1 << 29 }},
		{"publics[1].name", func(p *amx.Program) { p.Publics = append(p.Publics, p.Publics[0]) }},
		{"natives[0].name", func(p *amx.Program) { p.Natives[0].Name = "a\x00b" }},
		{"natives[1].name", func(p *amx.Program) { p.Natives[1].Name = "" }},
		{"header.cod", func(p *amx.Program) { p.Padding = []byte{0} }},
		{"compact code", func(p *amx.Program) { p.Flags, p.Code = p.Flags|amx.FlagCompact, bytes.Repeat([]byte{0x80}, 40) }},
	} {
		p := sample(10)
		c.spoil(p)
		_, err := p.Append(nil)
		var e *amx.Error
		if !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("%v, want an error about %s", err, c.field)
		}
	}
}

// TestSamples reads and writes files that the reference compilers made from programs of ours: each comes out with the same bytes.
func TestSamples(t *testing.T) {
	names, err := filepath.Glob("testdata/*.amx")
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	for _, n := range names {
		file, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		p, err := amx.Read(file)
		if err != nil {
			t.Errorf("%s: %v", n, err)
			continue
		}
		if got, err := p.Append(nil); err != nil || !bytes.Equal(got, file) {
			t.Errorf("%s comes out different, %v", n, err)
		}
		end := 0
		for in, err := range p.Instructions(0, len(p.Code)) {
			if err != nil {
				t.Errorf("%s: %v", n, err)
			}
			end = in.Offset + in.Size
		}
		if end != len(p.Code) {
			t.Errorf("%s: instructions end at %d of %d", n, end, len(p.Code))
		}
	}
}

// TestSymbols: the lines and functions of sample.p, in the symbols that both reference compilers wrote.
func TestSymbols(t *testing.T) {
	for _, name := range []string{"version10_compact", "version9_compact_debug"} {
		file, err := os.ReadFile("testdata/" + name + ".amx")
		if err != nil {
			t.Fatal(err)
		}
		p, err := amx.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		lines := map[int]string{}
		for in := range p.Instructions(0, len(p.Code)) {
			if file, line, function := d.Source(int32(in.Offset)); in.Op.Name == "break" {
				lines[line] = file + " " + function
			}
		}
		want := map[int]string{}
		for line, function := range map[int]string{6: "fact", 7: "entry1", 8: "state_fn", 9: "state_fn", 10: "state_fn", 11: "main"} {
			want[line] = "b.p " + function
		}
		for _, line := range []int{13, 14, 15, 16, 17, 18, 19, 21, 22, 23, 24, 25, 26, 27} {
			want[line] = "b.p main"
		}
		for _, line := range []int{8, 9, 10} {
			want[line] = lines[line] // the compilers give each function of a state its own range, or none
		}
		if !reflect.DeepEqual(lines, want) {
			t.Errorf("%s: lines %v, want %v", name, lines, want)
		}
		if file, line, function := d.Source(0); file != "" || line != 0 || function != "" {
			t.Errorf("the first instruction is at %s:%d in %s", file, line, function)
		}
		for n := range p.Debug {
			q := *p
			q.Debug = p.Debug[:n]
			_, _ = q.Symbols() // does not panic; the last tables are not read
		}
		p.Debug[4] = 0
		if _, err := p.Symbols(); !errors.Is(err, amx.ErrFormat) {
			t.Errorf("another magic: %v", err)
		}
	}
}

// FuzzRead: what is read is written, and read as the same; canonical files come out with the same bytes.
func FuzzRead(f *testing.F) {
	for version := uint8(amx.MinVersion); version <= amx.MaxVersion; version++ {
		for _, flags := range []amx.Flags{0, amx.FlagCompact} {
			p := sample(version)
			p.Flags |= flags
			file, err := p.Append(nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(file)
		}
	}
	names, _ := filepath.Glob("testdata/*.amx")
	for _, n := range names {
		if file, err := os.ReadFile(n); err == nil {
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := amx.Read(file)
		if err != nil {
			var e *amx.Error
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		back, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.Flags&amx.FlagCompact == 0 && !bytes.Equal(back, file) {
			t.Fatalf("%x comes out as %x", file, back)
		}
		again, err := amx.Read(back)
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("%+v is read again as %+v, %v", p, again, err)
		}
		if d, err := p.Symbols(); err == nil {
			d.Source(p.Main)
		}
		at := 0
		for in, err := range p.Instructions(0, len(p.Code)) {
			if err != nil {
				break
			}
			if in.Offset != at || in.Size <= 0 {
				t.Fatalf("instruction at %d of %d bytes, want one at %d", in.Offset, in.Size, at)
			}
			at += in.Size
		}
	})
}
