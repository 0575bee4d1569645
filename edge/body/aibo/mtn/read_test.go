package mtn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// pads returns a file whose blocks 1 and 2, or all, have lengths of a multiple of align.
func pads(f *File, align int, blocks ...int) *File {
	h := head(f.Minor)
	sizes := [4]int{header, headSize + 3 + len(f.Name) + len(f.Author) + len(f.Format), headSize + 2, h + len(f.Keyframes)*(frameSize+4*len(f.Joints))}
	for _, j := range f.Joints {
		sizes[2] += 1 + len(j)
	}
	for _, n := range blocks {
		f.Layout.Pad[n] = make([]byte, (align-sizes[n]%align)%align)
	}
	return f
}

// variants are motions in every layout that the rows name.
func variants(each func(name string, f *File, warns ...string)) {
	rnd := rand.New(rand.NewPCG(35, 1))
	for _, p := range Platforms() {
		for _, minor := range []uint16{0, 1, 2} {
			for _, align := range []int{0, 1, 4, 8} {
				f := made(rnd, p, minor, 1+rnd.IntN(5))
				if align > 0 {
					pads(f, align, 1, 2)
				}
				each(fmt.Sprintf("%s 1.%d aligned to %d", p.Format, minor, align), f)
			}
		}
	}
	p, _ := PlatformFor(210)
	old, _ := PlatformFor(110)
	edit := func(f *File, change func(f *File)) *File { change(f); return f }
	each("doubled and wrong names", edit(made(rnd, p, 2, 3), func(f *File) { f.Joints[3], f.Joints[7] = f.Joints[2], "PRM:/r1/c1" }))
	each("part of the joints", edit(made(rnd, p, 2, 3), func(f *File) {
		f.Joints = f.Joints[:2]
		for i := range f.Keyframes {
			f.Keyframes[i].Joints = f.Keyframes[i].Joints[:2]
		}
	}))
	each("no joints", edit(made(rnd, p, 2, 2), func(f *File) {
		f.Joints = []string{}
		for i := range f.Keyframes {
			f.Keyframes[i].Joints = []int32{}
		}
	}))
	each("zero ticks", edit(made(rnd, p, 2, 4), func(f *File) { f.Keyframes[2].Interp = 0 }))
	each("one keyframe", made(rnd, p, 2, 1))
	each("no keyframe", edit(made(rnd, p, 2, 0), func(f *File) { f.Keyframes = nil }), CodeEmpty)
	each("no keyframe of ERS-110", edit(made(rnd, old, 1, 0), func(f *File) { f.Keyframes = nil }), CodeEmpty)
	each("block 3 padded to 8", pads(made(rnd, old, 1, 3), 8, 3))
	each("block 3 says 80 more than there is", edit(made(rnd, p, 2, 4), func(f *File) { f.Layout.Length = new(uint32(8 + 4*96 + 80)) }), CodeLength)
	each("block 3 says less than there is", edit(made(rnd, p, 2, 4), func(f *File) { f.Layout.Length = new(uint32(20)) }), CodeLength)
	each("length of ERS-110 with 8", edit(made(rnd, old, 1, 3), func(f *File) { f.Layout.Length = new(uint32(8 + 3*88)) }))
	each("length of ERS-110 that wraps", edit(made(rnd, old, 1, 800), func(f *File) { f.Layout.Length = new(uint32(uint16((6 + 800*88) & 0xFFFF))) }))
	each("a keyframe less, and a part of it", edit(made(rnd, p, 2, 3), func(f *File) {
		f.Layout.Count, f.Layout.Pad[3], f.Layout.Length = new(uint16(4)), Bytes{1, 2, 3}, new(uint32(8+4*96))
	}), CodeMissing, CodeLength)
	each("the form of ERS-110 in version 1.2", edit(made(rnd, old, 2, 3), func(f *File) { f.Layout.Head = 10 }), CodeForm)
	each("bytes behind", edit(made(rnd, p, 2, 3), func(f *File) { f.Layout.Tail = Bytes("more") }), CodeTail)
	each("a moved block", edit(made(rnd, p, 0, 3), func(f *File) {
		f.Author, f.Layout.Pad[1], f.Layout.Gap[2] = "of six", Bytes{}, make(Bytes, 2)
	}), CodeRepaired)
	each("a block at the next multiple of 8", edit(made(rnd, p, 0, 3), func(f *File) {
		f.Author, f.Layout.Pad[1], f.Layout.Gap[2] = "ends at 9", Bytes{}, make(Bytes, 7) // 0x49, where 0x4C holds zeros
	}), CodeRepaired)
	each("padding that is not zero", edit(made(rnd, p, 2, 3), func(f *File) { f.Layout.Pad[2] = Bytes("xy\x00\x00") }), CodePadding)
	each("a longer header", edit(made(rnd, p, 2, 3), func(f *File) { f.Layout.Pad[0] = make(Bytes, 4) }), CodeBlockLength)
	each("odd constants", edit(made(rnd, p, 2, 3), func(f *File) {
		f.Major, f.Options, f.DataType, f.Layout.Sections, f.Rate = 2, 7, 1, new(uint32(5)), 20
	}), CodeSections, CodeVersion, CodeOptions, CodeDataType)
	each("a version to come", edit(made(rnd, p, 2, 3), func(f *File) { f.Minor = 3 }), CodeVersion)
	each("other bytes in strings", edit(made(rnd, p, 2, 2), func(f *File) { f.Name, f.Author, f.Format = "\xff\x00", "", "\n\"" }))
}

// TestParseAgain: a File that is used for one file after another holds nothing of the one before, and costs nothing for the same one.
func TestParseAgain(t *testing.T) {
	var f File
	variants(func(name string, file *File, _ ...string) {
		b := must(t, file)
		if _, err := f.Parse(b, Lenient); err != nil {
			t.Fatal(name, err)
		}
		if again := must(t, &f); !bytes.Equal(again, b) {
			t.Errorf("%s, after another file:\n%x\n%x", name, b, again)
		}
	})
	b := example(t)
	if n := testing.AllocsPerRun(100, func() { _, _ = f.Parse(b, Lenient) }); n != 0 {
		t.Errorf("the same file again: %v allocations", n)
	}
	buf := make([]byte, 0, len(b))
	if n := testing.AllocsPerRun(100, func() { buf, _ = Append(buf[:0], &f) }); n != 0 {
		t.Errorf("writing into enough room: %v allocations", n)
	}
}

// TestVariants: every layout comes back to the byte, with the warnings that it deserves, and Strict refuses exactly those with one.
func TestVariants(t *testing.T) {
	variants(func(name string, f *File, warns ...string) {
		b := must(t, f)
		got, found, err := Parse(b, Lenient)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if again := must(t, got); !bytes.Equal(again, b) {
			t.Errorf("%s: written again, from layout %+v:\n%x\n%x", name, got.Layout, b, again)
		}
		if !slices.EqualFunc(got.Keyframes, f.Keyframes, func(a, b Keyframe) bool {
			return a.Interp == b.Interp && a.RPY == b.RPY && slices.Equal(a.Joints, b.Joints)
		}) || !slices.Equal(got.Joints, f.Joints) ||
			got.Name != f.Name || got.Author != f.Author || got.Format != f.Format {
			t.Errorf("%s: %+v\nwant %+v", name, got, f)
		}
		var codes []string
		for _, x := range found {
			if x.Severity == Warning {
				codes = append(codes, x.Code)
			}
		}
		if !slices.Equal(codes, warns) {
			t.Errorf("%s: warnings %v, want %v", name, found, warns)
		}
		_, _, err = Parse(b, Strict)
		if x, ok := errors.AsType[Finding](err); (err != nil) != (len(warns) > 0) || ok && (x.Severity != Fault || x.Code != warns[0]) {
			t.Errorf("%s, strict: %v, want %v", name, err, warns)
		}
	})
}

// TestRefuses: each damage is refused with its code, block and offset, and with what was expected and found (MTN-07, MTN-24).
func TestRefuses(t *testing.T) {
	b := example(t)
	put := func(at int, v ...byte) []byte { return append(append(bytes.Clone(b[:at]), v...), b[at+len(v):]...) }
	for _, tc := range []struct {
		name   string
		b      []byte
		code   string
		block  int
		offset int64
	}{
		{"empty", nil, CodeSignature, -1, 0},
		{"another file", []byte("RIFF\x00\x00\x00\x00"), CodeSignature, -1, 0},
		{"signature alone", b[:4], CodeTruncated, 0, 4},
		{"block 0 begins otherwise", put(4, 9), CodeBlockNumber, 0, 4},
		{"header too short", put(8, 23), CodeBlockLength, 0, 8},
		{"header beyond the file", put(8, 0xFF, 0xFF, 0xFF, 0xFF), CodeBlockLength, 0, 8},
		{"no block 1", b[:28], CodeTruncated, 1, 28},
		{"block 1 beyond the file", put(0x20, 0, 0, 0, 0x80), CodeBlockLength, 1, 0x20},
		{"block 1 shorter than its head", put(0x20, 7), CodeBlockLength, 1, 0x20},
		{"name beyond its block", put(0x24, 0xFF), CodeString, 1, 0x24},
		{"format beyond its block", put(0x45, 11), CodeString, 1, 0x45},
		{"no room for the format", put(0x3D, 18), CodeString, 1, 0x50},
		{"block 2 missing", put(0x50, 3), CodeBlockNumber, 2, 0x50},
		{"block 2 without a count", put(0x54, 9, 0), CodeBlockLength, 2, 0x54},
		{"more joints than bytes", put(0x58, 0xFF, 0xFF), CodeString, 2, 0x58},
		{"more joints than names", put(0x58, 25), CodeString, 2, 0x248},
		{"name of a joint beyond its block", put(0x231, 23), CodeString, 2, 0x231},
		{"block 3 missing", b[:0x248], CodeTruncated, 3, 0x248},
		{"no whole keyframe", b[:0x2A0], CodeTruncated, 3, 0x250},
	} {
		_, _, err := Parse(tc.b, Lenient)
		x, ok := errors.AsType[Finding](err)
		if !ok || x.Code != tc.code || x.Block != tc.block || x.Offset != tc.offset || x.Expected == "" || x.Found == "" || x.Severity != Fault {
			t.Errorf("%s: %+v (%v); want %s in block %d at %#x", tc.name, x, err, tc.code, tc.block, tc.offset)
		} else if tc.block >= 0 && !strings.HasPrefix(err.Error(), fmt.Sprintf("offset %#x, block %d: ", tc.offset, tc.block)) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	// Every cut before the last keyframe is refused, or has fewer keyframes and says so.
	for n := range len(b) {
		f, found, err := Parse(b[:n], Lenient)
		if err == nil && (len(f.Keyframes) != 1 || len(found) == 0) {
			t.Errorf("%d bytes of %d: %d keyframes, %v", n, len(b), len(f.Keyframes), found)
		}
		if _, _, err := Parse(b[:n], Strict); err == nil {
			t.Errorf("%d bytes of %d, strict: no error", n, len(b))
		}
	}
}

// TestAppendRefuses: what the format cannot hold (MTN-23, MTN-39).
func TestAppendRefuses(t *testing.T) {
	p, _ := PlatformFor(110)
	for name, change := range map[string]func(*File){
		"long name":           func(f *File) { f.Name = strings.Repeat("x", 256) },
		"long joint":          func(f *File) { f.Joints[1] = strings.Repeat("x", 256) },
		"uneven":              func(f *File) { f.Keyframes[1].Joints = nil },
		"too much of ERS-110": func(f *File) { *f = *made(rand.New(rand.NewPCG(1, 1)), p, 1, 745) },
		"too many keyframes":  func(f *File) { f.Joints, f.Keyframes = nil, make([]Keyframe, 65536) },
		"time of the first":   func(f *File) { f.Keyframes[0].Interp = 3 },
		"head":                func(f *File) { f.Layout.Head = 11 },
		"gap":                 func(f *File) { f.Layout.Gap[0] = Bytes{0} },
	} {
		f := made(rand.New(rand.NewPCG(1, 1)), p, 1, 3)
		change(f)
		if b, err := Append([]byte("before"), f); err == nil || string(b) != "before" {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	if _, err := Append(nil, made(rand.New(rand.NewPCG(1, 1)), p, 1, 744)); err != nil {
		t.Errorf("744 keyframes of 18 joints: %v", err) // 6 + 744 × 88 = 65478 bytes
	}
}

// spent returns the bytes that f allocates.
func spent(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// perByte and constant bound the memory that a file may cost: a name of no letters takes a byte of the file and 16 of a string.
const perByte, constant = 24, 16 << 10

// TestMemory: counts and lengths that lie cost nothing.
func TestMemory(t *testing.T) {
	b := example(t)
	for at := 4; at+4 <= len(b); at++ {
		c := bytes.Clone(b)
		binary.LittleEndian.PutUint32(c[at:], 0xFFFF_FFF0)
		if got := spent(func() { _, _, _ = Parse(c, Lenient) }); got > uint64(perByte*len(c)+constant) {
			t.Fatalf("a great number at %#x costs %d bytes", at, got)
		}
	}
}

// FuzzParse: no panic, bounded memory, and every file that is read is written as it was.
func FuzzParse(f *testing.F) {
	f.Add(example(f), false)
	variants(func(_ string, file *File, _ ...string) {
		if len(file.Keyframes) < 100 {
			f.Add(must(f, file), false)
		}
	})
	f.Fuzz(func(t *testing.T, b []byte, strict bool) {
		mode := Lenient
		if strict {
			mode = Strict
		}
		file, found, err := Parse(b, mode)
		if file != nil {
			size := 16*cap(file.Joints) + 40*cap(file.Keyframes) + 4*len(file.Keyframes)*len(file.Joints)
			if size > perByte*len(b)+constant {
				t.Errorf("%d bytes became %d", len(b), size)
			}
		}
		if x, ok := errors.AsType[Finding](err); err != nil && (!ok || x.Expected == "" || x.Found == "" || x.Offset < 0 && x.Code != CodeEmpty || x.Offset > int64(len(b))) {
			t.Errorf("%#v", err)
		}
		if err != nil {
			return
		}
		if again, err := Append(nil, file); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%v, layout %+v, found %v:\n%x\n%x", err, file.Layout, found, b, again)
		}
	})
}

// TestOffsets: the places of a file's parts, in every layout.
func TestOffsets(t *testing.T) {
	variants(func(name string, f *File, _ ...string) {
		b, o := must(t, f), f.Offsets()
		if got := string(b[o.Name+1:][:b[o.Name]]); got != f.Name {
			t.Errorf("%s: name %q", name, got)
		}
		if got := string(b[o.Format+1:][:b[o.Format]]); got != f.Format {
			t.Errorf("%s: format %q", name, got)
		}
		for i, at := range o.Joints {
			if got := string(b[at+1:][:b[at]]); got != f.Joints[i] {
				t.Errorf("%s: joint %d: %q", name, i, got)
			}
		}
		for i, k := range f.Keyframes {
			if got := binary.LittleEndian.Uint32(b[o.Keyframe(i):]); i > 0 && got != k.Interp {
				t.Errorf("%s: keyframe %d: %d", name, i, got)
			}
			for j, v := range k.Joints {
				if got := int32(binary.LittleEndian.Uint32(b[o.Angle(i, j):])); got != v {
					t.Fatalf("%s: keyframe %d, joint %d: %d", name, i, j, got)
				}
			}
		}
	})
}
