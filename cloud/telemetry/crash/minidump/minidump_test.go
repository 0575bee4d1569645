package minidump

import (
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"testing"

	"kennel/cloud/telemetry/crash/minidump/minidumptest"
	"kennel/infra/errs"
)

var guid = []byte{0x8b, 0xa5, 0xbd, 0x4f, 0x1d, 0x5a, 0xa5, 0xf5, 0x79, 0xe3, 0xcf, 0x19, 0xa2, 0x35, 0xea, 0x09}

// sample is a dump of a program on 32-bit ARM, as a robot of the original maker sends it (VEC-CRS-05).
func sample() *minidumptest.Writer {
	w := &minidumptest.Writer{}
	w.SystemInfo(uint16(ARM))
	w.ModuleList(
		minidumptest.Module{Base: 0x10000, Size: 0x8000, Name: "/anki/bin/vic-engine", Debug: minidumptest.BuildID(guid...), Info: [13]uint32{0xfeef04bd, 0, 1<<16 | 8, 2<<16 | 6051}},
		minidumptest.Module{Base: 0x76000000, Size: 0x1000, Name: "/lib/libc.so.6", Debug: minidumptest.RSDS(guid, 0x1a, "libc.so.6")},
	)
	var r [16]uint32
	r[11], r[13], r[14], r[15] = 0xbef00010, 0xbef00000, 0x10211, 0x10100
	w.ThreadList(minidumptest.Thread{ID: 41, Start: 0xbef00000, Stack: minidumptest.Pack([8]uint32{1, 2, 0x10301}), Context: minidumptest.ARM([16]uint32{15: 0x76000004})}, minidumptest.Thread{ID: 42, Start: 0xbef10000, Stack: make([]byte, 16), Context: minidumptest.ARM(r)})
	w.Crash(41, 11, 1, 0x8, minidumptest.ARM(r))
	w.Stream(minidumptest.Memory, w.Values(uint32(1), uint64(0x20000), w.Bytes([]byte{1, 2, 3, 4, 5})))
	w.Stream(minidumptest.Misc, w.Values(uint32(24), uint32(1), uint32(812), [3]uint32{}))
	w.Stream(minidumptest.Names, w.Values(uint32(1), uint32(42), uint64(w.Text("animation"))))
	w.Stream(minidumptest.CmdLine, w.Bytes([]byte("/anki/bin/vic-engine\x00-c\x00x\x1b")))
	w.Stream(minidumptest.Environ, w.Bytes([]byte("SECRET=1\x00")))
	return w
}

func TestParse(t *testing.T) {
	d, err := Parse(sample().Dump())
	if err != nil {
		t.Fatal(err)
	}
	if d.Reason() != "SIGSEGV (SEGV_MAPERR)" || d.Exception.Thread != 41 || d.Exception.Address != 8 || d.Exception.Context["lr"] != 0x10211 || d.Exception.Context["r13"] != 0xbef00000 {
		t.Errorf("exception %s %+v", d.Reason(), d.Exception)
	}
	if d.OS != "Linux" || d.OSVersion != "3.18.66 Linux 3.18.66 armv7l" || d.CPU != ARM || d.PID != 812 || d.Time.Unix() != 1700000000 || d.Main != "/anki/bin/vic-engine" {
		t.Errorf("%+v", d)
	}
	if m := d.Modules[0]; m.DebugID != "4FBDA58B5A1DF5A579E3CF19A235EA090" || m.Version != "1.8.2.6051" || d.Modules[1].DebugID != "4FBDA58B5A1DF5A579E3CF19A235EA091A" {
		t.Errorf("modules %+v", d.Modules)
	}
	if len(d.Threads) != 2 || d.Threads[1].Name != "animation" || d.Threads[0].Context["pc"] != 0x76000004 || len(d.Texts) != 1 || d.Texts["cmdline"] != "/anki/bin/vic-engine -c x" {
		t.Errorf("threads %+v, texts %v", d.Threads, d.Texts)
	}
	for at, want := range map[uint64]uint64{0x20000: 0x04030201, 0x20001: 0x05040302, 0xbef00004: 2} {
		if got, ok := d.Word(d.Threads[0].Stack, at); !ok || got != want {
			t.Errorf("word at 0x%x: 0x%x, %v", at, got, ok)
		}
	}
	for _, at := range []uint64{0x20002, 0x1ffff, 0, ^uint64(0)} {
		if _, ok := d.Word(d.Threads[0].Stack, at); ok {
			t.Errorf("word at 0x%x", at)
		}
	}
	for at, want := range map[uint64]string{0x10000: "/anki/bin/vic-engine", 0x17fff: "/anki/bin/vic-engine", 0x76000fff: "/lib/libc.so.6"} {
		if m := d.Module(at); m == nil || m.Name != want {
			t.Errorf("module at 0x%x: %v", at, m)
		}
	}
	for _, at := range []uint64{0xffff, 0x18000, 0x75ffffff, 0x76001000, ^uint64(0)} {
		if m := d.Module(at); m != nil {
			t.Errorf("module at 0x%x: %v", at, m)
		}
	}
}

// The registers of each processor are where its context has them.
func TestContexts(t *testing.T) {
	for cpu, c := range map[CPU]struct {
		context []byte
		size    int
	}{
		X86:   {minidumptest.X86(0x1111, 0x2222, 0x3333), 716},
		AMD64: {minidumptest.AMD64(0x1111, 0x2222, 0x3333), 1232},
		ARM:   {minidumptest.ARM([16]uint32{11: 0x3333, 13: 0x2222, 15: 0x1111}), 368},
		ARM64: {minidumptest.ARM64([31]uint64{29: 0x3333}, 0x2222, 0x1111), 800},
	} {
		if len(c.context) != c.size {
			t.Fatalf("%s: the test's context has %d bytes, Breakpad's %d", cpu, len(c.context), c.size)
		}
		w := &minidumptest.Writer{}
		w.SystemInfo(uint16(cpu))
		w.ThreadList(minidumptest.Thread{ID: 1, Context: c.context})
		d, err := Parse(w.Dump())
		if err != nil {
			t.Fatal(err)
		}
		pc, sp, fp, _, _ := cpu.Names()
		if r := d.Threads[0].Context; r[pc] != 0x1111 || r[sp] != 0x2222 || r[fp] != 0x3333 {
			t.Errorf("%s: %x", cpu, r)
		}
		w.Stream(minidumptest.Exception, minidumptest.Location{})
		short := &minidumptest.Writer{}
		short.SystemInfo(uint16(cpu))
		short.ThreadList(minidumptest.Thread{ID: 1, Context: c.context[:40]})
		if _, err := Parse(short.Dump()); err == nil || !strings.Contains(err.Error(), "context of thread 0") {
			t.Errorf("%s with a short context: %v", cpu, err)
		}
	}
}

// genuine is a dump that Breakpad's own client wrote (testdata/README).
func genuine(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/breakpad-amd64.dmp")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGenuine(t *testing.T) {
	d, err := Parse(genuine(t))
	if err != nil {
		t.Fatal(err)
	}
	m := d.Module(d.Exception.Context["$rip"])
	if d.Reason() != "SIGSEGV (SEGV_MAPERR)" || d.Exception.Address != 0 || len(d.Threads) != 2 || len(d.Modules) != 7 || m == nil || m.Name != "/anki/bin/vic-engine" ||
		m.DebugID != "3983974E3E1BE0D45C55B2B5C59FD7DF0" || d.CPU != AMD64 || !strings.HasPrefix(d.Texts["maps"], "00400000-") || d.Texts["cmdline"] != "./vic-engine" {
		t.Errorf("%s %+v %+v", d.Reason(), d.Exception, d.Modules)
	}
}

// Hostile dumps are refused with what is wrong and where.
func TestRefuses(t *testing.T) {
	put := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
	}
	entry := func(kind uint32, field int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte {
			for at := 32; at < 32+16*12; at += 12 {
				if binary.LittleEndian.Uint32(b[at:]) == kind {
					return put(at+4*field, v)(b)
				}
			}
			panic("no such stream")
		}
	}
	inside := func(kind uint32, at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte {
			for e := 32; e < 32+16*12; e += 12 {
				if binary.LittleEndian.Uint32(b[e:]) == kind {
					return put(int(binary.LittleEndian.Uint32(b[e+8:]))+at, v)(b)
				}
			}
			panic("no such stream")
		}
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"other magic":      {put(0, 1), "want \"MDMP\", 0xa793"},
		"many streams":     {put(8, 1<<31), "streams: want at most 128"},
		"directory beyond": {put(12, 1<<31), "directory of streams at byte 2147483648"},
		"stream beyond":    {entry(minidumptest.Modules, 2, 1<<31), "module list at byte 2147483648"},
		"size beyond":      {entry(minidumptest.Modules, 1, 1<<31), "module list at byte"},
		"stream in header": {entry(minidumptest.CmdLine, 2, 8), "overlaps the stream at byte 0"},
		"overlap":          {entry(minidumptest.Memory, 1, 44), "overlaps the stream at byte"},
		"twice":            {entry(minidumptest.CmdLine, 0, minidumptest.Environ), "second stream of type 0x47670007"},
		"many threads":     {inside(minidumptest.Threads, 0, 5000), "thread list at byte"},
		"more threads":     {inside(minidumptest.Threads, 0, 3), "has 3 entries of 48 bytes in 96 bytes"},
		"many modules":     {inside(minidumptest.Modules, 0, 1<<30), "want at most 4096"},
		"many regions":     {inside(minidumptest.Memory, 0, 1<<30), "want at most 65536"},
		"region beyond":    {inside(minidumptest.Memory, 16, 1<<30), "memory region 0 at byte 1073741824"},
		"module name":      {inside(minidumptest.Modules, 4+20, 1<<30), "name of module 0 at byte 1073741824"},
		"odd name":         {inside(minidumptest.Modules, 4+20, 32), "name of module 0 at byte 32: its length is"},
		"module at the end": {func(b []byte) []byte {
			return inside(minidumptest.Modules, 4+4, 1<<32-1)(inside(minidumptest.Modules, 4, 1<<32-1)(b))
		}, "ends beyond the last address"},
		"debug record":      {inside(minidumptest.Modules, 4+80, 1<<30), "debug record of module 0"},
		"stack":             {inside(minidumptest.Threads, 4+36, 1<<30), "stack of thread 0 at byte 1073741824"},
		"exception":         {entry(minidumptest.Exception, 1, 100), "want 168"},
		"exception context": {inside(minidumptest.Exception, 164, 1<<30), "context of the exception at byte"},
		"short":             {func(b []byte) []byte { return b[:20] }, "header at byte 0 with 32 bytes: the file ends at 20"},
	} {
		if _, err := Parse(c.change(sample().Dump())); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := sample().Dump()
	for n := range whole {
		_, _ = Parse(whole[:n:n]) // an error or a dump, but no panic
	}
}

// A small file cannot make the reader take much memory.
func TestMemory(t *testing.T) {
	w := &minidumptest.Writer{}
	w.SystemInfo(uint16(ARM))
	context, name := w.Bytes(minidumptest.ARM([16]uint32{})), w.Bytes(minidumptest.Pack(uint32(4000), make([]byte, 4000)))
	list := minidumptest.Pack(uint32(4096))
	for range 4096 {
		list = append(list, minidumptest.Pack(uint32(1), uint32(0), uint32(0), uint32(0), uint64(0), uint64(0), minidumptest.Location{Size: 3000, Place: 300}, context)...)
	}
	w.Stream(minidumptest.Threads, w.Bytes(list))
	list = minidumptest.Pack(uint32(4096))
	for range 4096 {
		list = append(list, minidumptest.Pack(uint64(0), uint32(1), uint32(0), uint32(0), name.Place, [13]uint32{}, name, minidumptest.Location{}, [2]uint64{})...)
	}
	w.Stream(minidumptest.Modules, w.Bytes(list))
	b := w.Dump()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 32<<20 {
		t.Errorf("%d bytes held for a file of %d", held, len(b))
	}
	runtime.KeepAlive(d)
}

func FuzzMinidump(f *testing.F) {
	f.Add(sample().Dump())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse(b)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Fatalf("%v is not Invalid", err)
			}
			return
		}
		_ = d.Reason()
		for _, th := range d.Threads[:min(len(d.Threads), 10)] {
			for _, v := range th.Context {
				d.Module(v)
				d.Word(th.Stack, v)
			}
		}
	})
}
