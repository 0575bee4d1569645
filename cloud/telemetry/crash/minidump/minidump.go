// Package minidump reads minidumps as Breakpad and Crashpad write them (VEC-CRS-01, VEC-CRS-05).
//
//	0   "MDMP", version 0xA793, number of streams u32, place of the directory u32, checksum, time u32, flags u64
//	    directory: for each stream its type, size and place, u32 each
//
// A stream is a thread list, module list, memory list, exception, system or misc info, or, from Linux, a file of /proc as text. All numbers are little-endian,
// places count from the beginning of the file, and strings are UTF-16 behind their length in bytes. Everything is optional: a program that dies may not get far.
//
// Robots send these files, so nothing in them is believed: a place or count that is beyond the file, streams that overlap or are there twice, and strings
// that are none refuse the dump and name the place. Memory is bounded by the size of the file, because what is read aliases it.
//
// Layouts are from Breakpad's minidump_format.h and minidump_cpu_*.h; the older ARM64 context has its registers at the same places as the newer.
package minidump

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"kennel/cloud/telemetry/crash/record"
	"kennel/infra/errs"
)

// Magic is the beginning of a minidump.
const Magic = "MDMP"

// Bounds: ours, far above what programs have.
const (
	maxStreams = 128
	maxThreads = 4096
	maxModules = 4096
	maxRegions = 65536
	maxName    = 4096     // bytes of a string in the file
	maxText    = 64 << 10 // bytes that are kept of a text stream
)

// Types of streams.
const (
	threadList   = 3
	moduleList   = 4
	memoryList   = 5
	exception    = 6
	systemInfo   = 7
	memory64List = 9
	miscInfo     = 15
	threadNames  = 24
)

// texts are the Linux streams that are kept as text. The environment is not: it may hold secrets.
var texts = map[uint32]string{0x47670003: "cpuinfo", 0x47670004: "status", 0x47670005: "lsb-release", 0x47670006: "cmdline", 0x47670009: "maps"}

var names = map[uint32]string{threadList: "thread list", moduleList: "module list", memoryList: "memory list", exception: "exception", systemInfo: "system info",
	memory64List: "memory64 list", miscInfo: "misc info", threadNames: "thread names"}

// Dump is a minidump. It aliases the bytes that it was read from.
type Dump struct {
	Time      time.Time
	CPU       CPU
	OS        string // Linux, Android, macOS, Windows, or its number; "": not said
	OSVersion string
	PID       uint32            // 0: not said
	Exception *Exception        // nil: the dump was asked for
	Threads   []Thread          // in the order of the file
	Modules   []Module          // by address
	Main      string            // the first module of the file: the program
	Texts     map[string]string // cmdline, maps, status, lsb-release, cpuinfo
	memory    []Region          // by address
}

// Exception is why the dump was written.
type Exception struct {
	Thread  uint32
	Code    uint32 // Linux: the signal
	Flags   uint32 // Linux: its code
	Address uint64
	Context Registers // nil: none, or of a processor that is not known
}

// Thread is a thread as it was then.
type Thread struct {
	ID      uint32
	Name    string
	Stack   Region
	Context Registers // nil as above
}

// Module is a file that was mapped.
type Module struct {
	Name    string
	Version string // "": not said
	Base    uint64
	Size    uint64
	DebugID string // as symbol files have it; "": not said
}

// Region is a piece of memory.
type Region struct {
	Start uint64
	Bytes []byte
}

func (r Region) holds(at uint64, n int) bool {
	return at >= r.Start && at-r.Start <= uint64(len(r.Bytes)) && uint64(len(r.Bytes))-(at-r.Start) >= uint64(n)
}

// file is the bytes of a dump; all reading goes through at.
type file []byte

// at returns n bytes at a place; what is for the error.
func (f file) at(place, n uint64, what string) ([]byte, error) {
	if place > uint64(len(f)) || n > uint64(len(f))-place {
		return nil, errs.New(errs.Invalid, "minidump: %s at byte %d with %d bytes: the file ends at %d", what, place, n, len(f))
	}
	return f[place : place+n], nil
}

// text reads a string, which is UTF-16 behind its length in bytes.
func (f file) text(place uint64, what string) (string, error) {
	b, err := f.at(place, 4, what)
	if err != nil {
		return "", err
	}
	n := u32(b)
	if n%2 != 0 || n > maxName {
		return "", errs.New(errs.Invalid, "minidump: %s at byte %d: its length is %d; want an even number up to %d", what, place, n, maxName)
	}
	if b, err = f.at(place+4, uint64(n), what); err != nil {
		return "", err
	}
	u := make([]uint16, n/2)
	for i := range u {
		u[i] = u16(b[2*i:])
	}
	return record.Clean(strings.TrimRight(string(utf16.Decode(u)), "\x00")), nil
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// stream is an entry of the directory.
type stream struct {
	kind  uint32
	place uint64
	body  []byte
}

// name returns the stream's name for errors.
func (s stream) name() string {
	if n, ok := names[s.kind]; ok {
		return n
	}
	return cmp.Or(texts[s.kind], fmt.Sprintf("stream of type 0x%x", s.kind))
}

// list returns the entries of a list: a count, perhaps four bytes of padding, then count entries of size bytes.
func (s stream) list(size, most int) ([][]byte, error) {
	if len(s.body) < 4 {
		return nil, errs.New(errs.Invalid, "minidump: %s at byte %d has %d bytes: want at least 4", s.name(), s.place, len(s.body))
	}
	n := uint64(u32(s.body))
	if n > uint64(most) {
		return nil, errs.New(errs.Invalid, "minidump: %s at byte %d has %d entries: want at most %d", s.name(), s.place, n, most)
	}
	rest := s.body[4:]
	if uint64(len(rest)) == n*uint64(size)+4 {
		rest = rest[4:]
	}
	return s.entries(rest, n, size)
}

func (s stream) entries(b []byte, n uint64, size int) ([][]byte, error) {
	if n > uint64(len(b)/size) {
		return nil, errs.New(errs.Invalid, "minidump: %s at byte %d has %d entries of %d bytes in %d bytes", s.name(), s.place, n, size, len(b))
	}
	out := make([][]byte, n)
	for i := range out {
		out[i] = b[i*size : (i+1)*size]
	}
	return out, nil
}

// Parse reads a dump. Errors are of kind Invalid and say which part is wrong, and where it is.
func Parse(b []byte) (*Dump, error) {
	f := file(b)
	head, err := f.at(0, 32, "header")
	if err != nil {
		return nil, err
	}
	if string(head[:4]) != Magic || u16(head[4:]) != 0xa793 {
		return nil, errs.New(errs.Invalid, "minidump: begins with %q, version 0x%04x: want %q, 0xa793", head[:4], u16(head[4:]), Magic)
	}
	streams, err := f.directory(uint64(u32(head[8:])), uint64(u32(head[12:])))
	if err != nil {
		return nil, err
	}
	d := &Dump{Time: time.Unix(int64(u32(head[20:])), 0).UTC(), Texts: map[string]string{}}
	for _, step := range []struct {
		kind uint32
		read func(file, stream) error
	}{{systemInfo, d.system}, {miscInfo, d.misc}, {moduleList, d.modules}, {memoryList, d.regions}, {memory64List, d.regions64}, {threadList, d.threads}, {threadNames, d.names}, {exception, d.why}} {
		if s, ok := streams[step.kind]; ok {
			if err := step.read(f, s); err != nil {
				return nil, err
			}
		}
	}
	for kind, name := range texts {
		if s, ok := streams[kind]; ok {
			d.Texts[name] = lines(s.body[:min(len(s.body), maxText)])
		}
	}
	slices.SortStableFunc(d.memory, func(a, b Region) int { return cmp.Compare(a.Start, b.Start) })
	slices.SortStableFunc(d.Modules, func(a, b Module) int { return cmp.Compare(a.Base, b.Base) })
	return d, nil
}

// lines makes text of a file of /proc, where zero bytes part words.
func lines(b []byte) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		switch {
		case c == 0:
			return ' '
		case c < ' ' && c != '\n' && c != '\t' || c == 0x7f:
			return -1
		}
		return c
	}, strings.ToValidUTF8(string(b), "\uFFFD")))
}

// directory returns the streams by their type.
func (f file) directory(n, place uint64) (map[uint32]stream, error) {
	if n > maxStreams {
		return nil, errs.New(errs.Invalid, "minidump: %d streams: want at most %d", n, maxStreams)
	}
	b, err := f.at(place, n*12, "directory of streams")
	if err != nil {
		return nil, err
	}
	all, taken := map[uint32]stream{}, []stream{{place: 0, body: f[:32]}, {place: place, body: b}}
	for ; len(b) > 0; b = b[12:] {
		s := stream{kind: u32(b), place: uint64(u32(b[8:]))}
		if s.kind == 0 { // unused
			continue
		}
		if s.body, err = f.at(s.place, uint64(u32(b[4:])), s.name()); err != nil {
			return nil, err
		}
		if _, ok := all[s.kind]; ok {
			return nil, errs.New(errs.Invalid, "minidump: second %s at byte %d: want one", s.name(), s.place)
		}
		if all[s.kind] = s; len(s.body) > 0 {
			taken = append(taken, s)
		}
	}
	slices.SortFunc(taken, func(a, b stream) int { return cmp.Compare(a.place, b.place) })
	for i, s := range taken[1:] {
		if before := taken[i]; before.place+uint64(len(before.body)) > s.place {
			return nil, errs.New(errs.Invalid, "minidump: %s at byte %d overlaps the stream at byte %d", s.name(), s.place, before.place)
		}
	}
	return all, nil
}

var platforms = map[uint32]string{0x8201: "Linux", 0x8203: "Android", 0x8101: "macOS", 0x8102: "iOS", 2: "Windows"}

func (d *Dump) system(f file, s stream) error {
	if len(s.body) < 56 {
		return errs.New(errs.Invalid, "minidump: system info at byte %d has %d bytes: want 56", s.place, len(s.body))
	}
	d.CPU = CPU(u16(s.body))
	platform := u32(s.body[20:])
	d.OS = cmp.Or(platforms[platform], fmt.Sprintf("platform 0x%x", platform))
	d.OSVersion = fmt.Sprintf("%d.%d.%d", u32(s.body[8:]), u32(s.body[12:]), u32(s.body[16:]))
	place := u32(s.body[24:])
	if place == 0 {
		return nil
	}
	words, err := f.text(uint64(place), "system's version")
	if words != "" {
		d.OSVersion += " " + words
	}
	return err
}

func (d *Dump) misc(_ file, s stream) error {
	if len(s.body) < 12 {
		return errs.New(errs.Invalid, "minidump: misc info at byte %d has %d bytes: want at least 12", s.place, len(s.body))
	}
	if u32(s.body[4:])&1 != 0 {
		d.PID = u32(s.body[8:])
	}
	return nil
}

func (d *Dump) modules(f file, s stream) error {
	list, err := s.list(108, maxModules)
	for i, b := range list {
		m := Module{Base: u64(b), Size: uint64(u32(b[8:]))}
		if m.Base+m.Size < m.Base {
			return errs.New(errs.Invalid, "minidump: module %d has address 0x%x and %d bytes: it ends beyond the last address", i, m.Base, m.Size)
		}
		if m.Name, err = f.text(uint64(u32(b[20:])), fmt.Sprintf("name of module %d", i)); err != nil {
			return err
		}
		if info := b[24:]; u32(info) == 0xfeef04bd {
			hi, lo := u32(info[8:]), u32(info[12:])
			if m.Version = fmt.Sprintf("%d.%d.%d.%d", hi>>16, hi&0xffff, lo>>16, lo&0xffff); m.Version == "0.0.0.0" {
				m.Version = ""
			}
		}
		cv, err := f.at(uint64(u32(b[80:])), uint64(u32(b[76:])), fmt.Sprintf("debug record of module %d", i))
		if err != nil {
			return err
		}
		m.DebugID = debugID(cv)
		if i == 0 {
			d.Main = m.Name
		}
		d.Modules = append(d.Modules, m)
	}
	return err
}

// debugID is the id of a module in the form of symbol files: a GUID and an age, from a CodeView record ("RSDS") or an ELF build id ("BpEL" in Breakpad's byte order).
func debugID(cv []byte) string {
	var id [16]byte
	age := uint32(0)
	switch {
	case len(cv) >= 24 && string(cv[:4]) == "RSDS":
		copy(id[:], cv[4:])
		age = u32(cv[20:])
	case len(cv) > 4 && u32(cv) == 0x4270454c:
		copy(id[:], cv[4:])
	default:
		return ""
	}
	if id == [16]byte{} {
		return ""
	}
	return fmt.Sprintf("%08X%04X%04X%X%X", u32(id[:]), u16(id[4:]), u16(id[6:]), id[8:], age)
}

func (d *Dump) regions(f file, s stream) error {
	list, err := s.list(16, maxRegions)
	for i, b := range list {
		body, err := f.at(uint64(u32(b[12:])), uint64(u32(b[8:])), fmt.Sprintf("memory region %d", i))
		if err != nil {
			return err
		}
		d.memory = append(d.memory, Region{u64(b), body})
	}
	return err
}

func (d *Dump) regions64(f file, s stream) error {
	if len(s.body) < 16 {
		return errs.New(errs.Invalid, "minidump: memory64 list at byte %d has %d bytes: want at least 16", s.place, len(s.body))
	}
	n, place := u64(s.body), u64(s.body[8:])
	if n > maxRegions {
		return errs.New(errs.Invalid, "minidump: memory64 list at byte %d has %d entries: want at most %d", s.place, n, maxRegions)
	}
	list, err := s.entries(s.body[16:], n, 16)
	for i, b := range list {
		body, err := f.at(place, u64(b[8:]), fmt.Sprintf("memory64 region %d", i))
		if err != nil {
			return err
		}
		place += uint64(len(body))
		d.memory = append(d.memory, Region{u64(b), body})
	}
	return err
}

func (d *Dump) threads(f file, s stream) error {
	list, err := s.list(48, maxThreads)
	for i, b := range list {
		t := Thread{ID: u32(b), Stack: Region{Start: u64(b[24:])}}
		if t.Stack.Bytes, err = f.at(uint64(u32(b[36:])), uint64(u32(b[32:])), fmt.Sprintf("stack of thread %d", i)); err != nil {
			return err
		}
		if t.Context, err = d.context(f, b[40:], fmt.Sprintf("context of thread %d", i)); err != nil {
			return err
		}
		d.Threads = append(d.Threads, t)
	}
	return err
}

func (d *Dump) names(f file, s stream) error {
	list, err := s.list(12, maxThreads)
	for _, b := range list {
		name, err := f.text(u64(b[4:]), fmt.Sprintf("name of thread %d", u32(b)))
		if err != nil {
			return err
		}
		for i := range d.Threads {
			if d.Threads[i].ID == u32(b) {
				d.Threads[i].Name = name
				break
			}
		}
	}
	return err
}

func (d *Dump) why(f file, s stream) (err error) {
	if len(s.body) < 168 {
		return errs.New(errs.Invalid, "minidump: exception at byte %d has %d bytes: want 168", s.place, len(s.body))
	}
	e := &Exception{Thread: u32(s.body), Code: u32(s.body[8:]), Flags: u32(s.body[12:]), Address: u64(s.body[24:])}
	e.Context, err = d.context(f, s.body[160:], "context of the exception")
	d.Exception = e
	return err
}

// Module returns the module that an address is in; nil: none.
func (d *Dump) Module(at uint64) *Module {
	i, found := slices.BinarySearchFunc(d.Modules, at, func(m Module, at uint64) int { return cmp.Compare(m.Base, at) })
	if !found {
		i--
	}
	if i < 0 || at-d.Modules[i].Base >= d.Modules[i].Size {
		return nil
	}
	return &d.Modules[i]
}

// Word reads a word of memory, from a thread's stack or elsewhere.
func (d *Dump) Word(stack Region, at uint64) (uint64, bool) {
	n := d.CPU.Word()
	if !stack.holds(at, n) {
		i, found := slices.BinarySearchFunc(d.memory, at, func(r Region, at uint64) int { return cmp.Compare(r.Start, at) })
		if !found {
			i--
		}
		if i < 0 || !d.memory[i].holds(at, n) {
			return 0, false
		}
		stack = d.memory[i]
	}
	b := stack.Bytes[at-stack.Start:]
	if n == 4 {
		return uint64(u32(b)), true
	}
	return u64(b), true
}

// Reason says what the exception is, in the words of the system: SIGSEGV (SEGV_MAPERR).
func (d *Dump) Reason() string {
	e := d.Exception
	switch {
	case e == nil || e.Code == 0xffffffff || e.Code == 0x517a7ed: // Crashpad's code for a dump without a crash
		return "dump without a crash"
	case d.OS != "Linux" && d.OS != "Android":
		return fmt.Sprintf("exception 0x%08x", e.Code)
	}
	signal, ok := signals[e.Code]
	if !ok {
		return fmt.Sprintf("signal %d", e.Code)
	}
	if why := codes[[2]uint32{e.Code, e.Flags}]; why != "" {
		return signal + " (" + why + ")"
	}
	return signal
}

var signals = map[uint32]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV",
	12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 16: "SIGSTKFLT", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS"}

var codes = map[[2]uint32]string{{4, 1}: "ILL_ILLOPC", {4, 2}: "ILL_ILLOPN", {4, 4}: "ILL_ILLTRP", {7, 1}: "BUS_ADRALN", {7, 2}: "BUS_ADRERR", {7, 3}: "BUS_OBJERR",
	{8, 1}: "FPE_INTDIV", {8, 2}: "FPE_INTOVF", {8, 3}: "FPE_FLTDIV", {11, 1}: "SEGV_MAPERR", {11, 2}: "SEGV_ACCERR", {5, 1}: "TRAP_BRKPT", {31, 1}: "SYS_SECCOMP"}
