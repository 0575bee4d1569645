package minidump

import (
	"fmt"

	"kennel/infra/errs"
)

// CPU is the architecture of the processor, as system info numbers it.
type CPU uint16

// The architectures whose contexts are known.
const (
	X86      CPU = 0
	ARM      CPU = 5
	AMD64    CPU = 9
	ARM64    CPU = 12
	ARM64Old CPU = 0x8003
)

// String returns the name of the architecture as symbol files have it.
func (c CPU) String() string {
	switch c {
	case X86:
		return "x86"
	case ARM:
		return "arm"
	case AMD64:
		return "x86_64"
	case ARM64, ARM64Old:
		return "arm64"
	}
	return fmt.Sprintf("processor %d", uint16(c))
}

// Word is the size of an address in bytes.
func (c CPU) Word() int {
	if c == X86 || c == ARM {
		return 4
	}
	return 8
}

// Registers are the general registers by the names that symbol files have for them.
type Registers map[string]uint64

// layout is where the registers of an architecture are in a context.
type layout struct {
	size           int // of the part that is read
	places         map[string]int
	PC, SP, FP, LR string // LR "": it has no link register
}

// numbered adds the registers from number first to before end, which begin at a place, to others.
func numbered(prefix string, first, end, place, size int, more map[string]int) map[string]int {
	for i := first; i < end; i++ {
		more[fmt.Sprintf("%s%d", prefix, i)] = place + (i-first)*size
	}
	return more
}

var (
	x86Layout = layout{204, map[string]int{"$edi": 156, "$esi": 160, "$ebx": 164, "$edx": 168, "$ecx": 172, "$eax": 176, "$ebp": 180, "$eip": 184, "$esp": 196}, "$eip", "$esp", "$ebp", ""}
	amdLayout = layout{256, numbered("$r", 8, 16, 184, 8, map[string]int{"$rax": 120, "$rcx": 128, "$rdx": 136, "$rbx": 144, "$rsp": 152, "$rbp": 160, "$rsi": 168, "$rdi": 176, "$rip": 248}), "$rip", "$rsp", "$rbp", ""}
	armLayout = layout{72, numbered("r", 0, 16, 4, 4, map[string]int{"fp": 48, "sp": 56, "lr": 60, "pc": 64}), "pc", "sp", "fp", "lr"}
	a64Layout = layout{272, numbered("x", 0, 31, 8, 8, map[string]int{"sp": 256, "pc": 264}), "pc", "sp", "x29", "x30"}
	layouts   = map[CPU]*layout{X86: &x86Layout, AMD64: &amdLayout, ARM: &armLayout, ARM64: &a64Layout, ARM64Old: &a64Layout}
)

// Names returns what the instruction and stack pointer, the frame pointer and the link register are called; link is "" if there is none. ok is false for an unknown processor.
func (c CPU) Names() (pc, sp, fp, link string, ok bool) {
	l := layouts[c]
	if l == nil {
		return "", "", "", "", false
	}
	return l.PC, l.SP, l.FP, l.LR, true
}

// context reads the context that a location (size, place) names; nil if there is none or the processor is not known.
func (d *Dump) context(f file, location []byte, what string) (Registers, error) {
	size, place := uint64(u32(location)), uint64(u32(location[4:]))
	b, err := f.at(place, size, what)
	l := layouts[d.CPU]
	if err != nil || l == nil || size == 0 {
		return nil, err
	}
	if int(size) < l.size {
		return nil, errs.New(errs.Invalid, "minidump: %s at byte %d has %d bytes: want at least %d for %s", what, place, size, l.size, d.CPU)
	}
	r := Registers{}
	for name, at := range l.places {
		if d.CPU.Word() == 4 {
			r[name] = uint64(u32(b[at:]))
		} else {
			r[name] = u64(b[at:])
		}
	}
	return r, nil
}
