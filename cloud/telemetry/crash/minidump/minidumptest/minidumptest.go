// Package minidumptest writes minidumps for tests, from the layouts of Breakpad's minidump_format.h and independently of the reader: records are structs with
// the format's fields, which encoding/binary writes.
package minidumptest

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// Types of streams.
const (
	Threads   = 3
	Modules   = 4
	Memory    = 5
	Exception = 6
	System    = 7
	Memory64  = 9
	Misc      = 15
	Names     = 24
	CPUInfo   = 0x47670003
	Status    = 0x47670004
	CmdLine   = 0x47670006
	Environ   = 0x47670007
	Maps      = 0x47670009
)

// Location is a size and a place.
type Location struct{ Size, Place uint32 }

// Writer writes one dump.
type Writer struct {
	body    bytes.Buffer
	streams []struct {
		Kind uint32
		At   Location
	}
}

// head is the size of the header and of a directory of at most 16 streams.
const head = 32 + 16*12

// Bytes adds bytes, and returns where they are.
func (w *Writer) Bytes(b []byte) Location {
	at := Location{uint32(len(b)), uint32(head + w.body.Len())}
	w.body.Write(b)
	return at
}

// Values adds fixed-size values, and returns where they are.
func (w *Writer) Values(values ...any) Location { return w.Bytes(Pack(values...)) }

// Pack returns fixed-size values as bytes.
func Pack(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err) // a test that gives something else
		}
	}
	return b.Bytes()
}

// Text adds a string, and returns its place.
func (w *Writer) Text(s string) uint32 {
	u := utf16.Encode([]rune(s))
	return w.Values(uint32(2*len(u)), u, uint16(0)).Place
}

// Stream makes what is at a location a stream.
func (w *Writer) Stream(kind uint32, at Location) {
	w.streams = append(w.streams, struct {
		Kind uint32
		At   Location
	}{kind, at})
}

// SystemInfo adds the stream that says which processor it is, on Linux.
func (w *Writer) SystemInfo(cpu uint16) {
	version := w.Text("Linux 3.18.66 armv7l")
	w.Stream(System, w.Values(cpu, uint16(7), uint16(0), uint8(4), uint8(0), uint32(3), uint32(18), uint32(66), uint32(0x8201), version, uint32(0), [24]byte{}))
}

// Module is a module of a dump.
type Module struct {
	Base  uint64
	Size  uint32
	Name  string
	Debug []byte // the CodeView record
	Info  [13]uint32
}

// ModuleList adds the stream of modules.
func (w *Writer) ModuleList(modules ...Module) {
	list := Pack(uint32(len(modules)))
	for _, m := range modules {
		list = append(list, Pack(m.Base, m.Size, uint32(0), uint32(0), w.Text(m.Name), m.Info, w.Bytes(m.Debug), Location{}, [2]uint64{})...)
	}
	w.Stream(Modules, w.Bytes(list))
}

// Thread is a thread of a dump.
type Thread struct {
	ID      uint32
	Start   uint64 // of the stack
	Stack   []byte
	Context []byte
}

// ThreadList adds the stream of threads.
func (w *Writer) ThreadList(threads ...Thread) {
	list := Pack(uint32(len(threads)))
	for _, t := range threads {
		list = append(list, Pack(t.ID, uint32(0), uint32(0), uint32(0), uint64(0), t.Start, w.Bytes(t.Stack), w.Bytes(t.Context))...)
	}
	w.Stream(Threads, w.Bytes(list))
}

// Crash adds the exception stream.
func (w *Writer) Crash(thread, signal, code uint32, address uint64, context []byte) {
	w.Stream(Exception, w.Values(thread, uint32(0), signal, code, uint64(0), address, uint32(0), uint32(0), [15]uint64{}, w.Bytes(context)))
}

// Dump returns the file.
func (w *Writer) Dump() []byte {
	out := Pack([4]byte{'M', 'D', 'M', 'P'}, uint32(0xa793), uint32(len(w.streams)), uint32(32), uint32(0), uint32(1700000000), uint64(0))
	for _, s := range w.streams {
		out = append(out, Pack(s.Kind, s.At)...)
	}
	return append(append(out, make([]byte, head-len(out))...), w.body.Bytes()...)
}

// ARM is the context of a 32-bit ARM processor with these registers r0 to r15.
func ARM(r [16]uint32) []byte { return Pack(uint32(0x40000006), r, uint32(0x60000010), [296]byte{}) }

// ARM64 is the context of a 64-bit ARM processor with these registers x0 to x30.
func ARM64(x [31]uint64, sp, pc uint64) []byte {
	return Pack(uint32(0x00400003), uint32(0), x, sp, pc, [528]byte{})
}

// AMD64 is the context of an x86-64 processor.
func AMD64(rip, rsp, rbp uint64) []byte {
	return Pack([6]uint64{}, uint32(0x10000f), uint32(0), [6]uint16{}, uint32(0), [6]uint64{}, [4]uint64{}, rsp, rbp, [10]uint64{}, rip, [976]byte{})
}

// X86 is the context of a 32-bit x86 processor.
func X86(eip, esp, ebp uint32) []byte {
	return Pack(uint32(0x1000f), [6]uint32{}, [112]byte{}, [4]uint32{}, [6]uint32{}, ebp, eip, uint32(0), uint32(0), esp, uint32(0), [512]byte{})
}

// BuildID is the debug record of a module that has an ELF build id.
func BuildID(id ...byte) []byte { return append(Pack(uint32(0x4270454c)), id...) }

// RSDS is the debug record of a module that has a GUID of 16 bytes and an age.
func RSDS(guid []byte, age uint32, name string) []byte {
	return append(append(append([]byte("RSDS"), guid...), Pack(age)...), name...)
}
