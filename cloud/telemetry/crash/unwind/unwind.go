// Package unwind walks the stacks of a minidump. From each frame it finds the caller by the surest way there is: by the call frame information of the module's
// symbols, by the frame pointer or the link register, or by scanning the stack for a word that could be a return address. Each frame says which it was.
package unwind

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"kennel/cloud/telemetry/crash/minidump"
	"kennel/cloud/telemetry/crash/symfile"
)

// Bounds: ours; the numbers of scanned words are Breakpad's.
const (
	MaxFrames  = 64
	firstScan  = 120  // words from the stack pointer of the frame where the thread was
	nextScan   = 40   // words from another one
	candidates = 8192 // words of a stack whose symbols are looked up
)

// Trust is how a frame was found.
type Trust string

// The trusts.
const (
	Scan    Trust = "scan"
	Pointer Trust = "fp"
	CFI     Trust = "cfi"
	Context Trust = "context"
)

// Frame is a function call.
type Frame struct {
	At     uint64           // the instruction; of a caller, the one it goes back to
	Module *minidump.Module // nil: none
	Symbol symfile.Symbol
	Trust  Trust
}

// Symbols are what symbol files say, by module and offset; a module that is missing has no symbols.
type Symbols map[*minidump.Module]map[uint64]symfile.Symbol

// Wanted adds to want the offsets whose symbols Walk may ask for, by module: all words of a stack that point into one.
func Wanted(d *minidump.Dump, t minidump.Thread, regs minidump.Registers, want map[*minidump.Module][]uint64) {
	pc, sp, _, _, ok := d.CPU.Names()
	if !ok || regs == nil {
		return
	}
	add := func(at uint64) {
		if m := d.Module(at); m != nil {
			want[m] = append(want[m], at-m.Base)
		}
	}
	add(regs[pc])
	for name, at := range regs { // the link register, and whatever else holds an address
		if name != sp {
			add(callSite(d, at))
		}
	}
	size := uint64(d.CPU.Word())
	at := max(regs[sp], t.Stack.Start)
	for range candidates {
		word, ok := d.Word(t.Stack, at)
		if !ok {
			return
		}
		add(callSite(d, word))
		at += size
	}
}

// callSite is an address in the call instruction before a return address. In ARM's Thumb mode the lowest bit is set.
func callSite(d *minidump.Dump, at uint64) uint64 {
	if d.CPU == minidump.ARM {
		at &^= 1
	}
	return at - 1
}

// walker is on its way through one stack.
type walker struct {
	*minidump.Dump
	stack            minidump.Region
	symbols          Symbols
	regs             minidump.Registers
	pc, sp, fp, link string
	size             uint64
}

// Walk returns the frames of a thread, the innermost first, and whether it ended because there are too many.
func Walk(d *minidump.Dump, t minidump.Thread, regs minidump.Registers, symbols Symbols) (out []Frame, more bool) {
	pc, sp, fp, link, ok := d.CPU.Names()
	if !ok || regs == nil {
		return nil, false
	}
	w := walker{Dump: d, stack: t.Stack, symbols: symbols, regs: regs, pc: pc, sp: sp, fp: fp, link: link, size: uint64(d.CPU.Word())}
	at, how := regs[pc], Context
	for len(out) < MaxFrames {
		look := at
		if how != Context {
			look = callSite(d, at)
		}
		f := Frame{At: at, Module: d.Module(look), Trust: how}
		f.Symbol, _ = w.symbol(look)
		out = append(out, f)
		before := w.regs[sp]
		var next minidump.Registers
		if next, how = w.caller(f, len(out) == 1); next == nil {
			return out, false
		}
		if at = next[pc]; at < 4096 || next[sp] <= before && !(len(out) == 1 && next[sp] == before) {
			return out, false
		}
		w.regs = next
	}
	return out, true
}

// symbol returns what is known of an address, and whether its module has symbols at all.
func (w *walker) symbol(at uint64) (symfile.Symbol, bool) {
	m := w.Module(at)
	if m == nil {
		return symfile.Symbol{}, false
	}
	of, ok := w.symbols[m]
	return of[at-m.Base], ok
}

// caller returns the caller's registers; nil: none was found.
func (w *walker) caller(f Frame, first bool) (minidump.Registers, Trust) {
	if f.Symbol.Rules != nil {
		if regs := w.byRules(f.Symbol.Rules); regs != nil && w.likely(regs[w.pc]) {
			return regs, CFI
		}
	}
	if regs := w.byPointer(f, first); regs != nil {
		return regs, Pointer
	}
	words := uint64(nextScan)
	if first {
		words = firstScan
	}
	for i := range words {
		at := w.regs[w.sp] + i*w.size
		word, ok := w.Word(w.stack, at)
		if !ok {
			return nil, ""
		}
		if w.likely(word) {
			return w.with(map[string]uint64{w.pc: word, w.sp: at + w.size}), Scan
		}
	}
	return nil, ""
}

// likely reports whether an address can be one that a call goes back to.
func (w *walker) likely(at uint64) bool {
	s, known := w.symbol(callSite(w.Dump, at))
	return w.Module(callSite(w.Dump, at)) != nil && (!known || s.Func != "")
}

// with returns the registers with some changed.
func (w *walker) with(changed map[string]uint64) minidump.Registers {
	out := minidump.Registers{}
	for name, v := range w.regs {
		out[name] = v
	}
	for name, v := range changed {
		out[name] = v
	}
	return out
}

// byPointer uses the frame pointer, or, where a function has not yet called another, the link register.
func (w *walker) byPointer(f Frame, first bool) minidump.Registers {
	if w.CPU != minidump.ARM { // there it is anywhere, or nowhere
		fp := w.regs[w.fp]
		last, ok1 := w.Word(w.stack, fp)
		back, ok2 := w.Word(w.stack, fp+w.size)
		if ok1 && ok2 && fp >= w.regs[w.sp] && fp%w.size == 0 && (last > fp || last == 0) && w.likely(back) {
			if first && w.link != "" && w.leaf(f) {
				return w.with(map[string]uint64{w.pc: w.regs[w.link]})
			}
			return w.with(map[string]uint64{w.pc: back, w.sp: fp + 2*w.size, w.fp: last})
		}
	}
	if first && w.link != "" && w.leaf(f) {
		return w.with(map[string]uint64{w.pc: w.regs[w.link]})
	}
	return nil
}

// near is how far apart addresses of one function are, where there are no symbols.
const near = 1 << 10

// leaf reports whether the link register leads to another function than the one where the thread was: after a call it leads into the same one.
func (w *walker) leaf(f Frame) bool {
	back := w.regs[w.link]
	if !w.likely(back) {
		return false
	}
	if s, _ := w.symbol(callSite(w.Dump, back)); s.Func != "" && f.Symbol.Func != "" {
		return s.Func != f.Symbol.Func
	}
	return back-f.At > near && f.At-back > near
}

// byRules evaluates the rules of call frame information; nil if they cannot be.
func (w *walker) byRules(rules map[string]string) minidump.Registers {
	cfa, err := w.eval(rules[".cfa"], 0)
	if err != nil {
		return nil
	}
	back, err := w.eval(rules[".ra"], cfa)
	if err != nil {
		return nil
	}
	out := w.with(map[string]uint64{w.sp: cfa, w.pc: back})
	for name, rule := range rules {
		if name == ".cfa" || name == ".ra" || name == w.pc {
			continue
		}
		if v, err := w.eval(rule, cfa); err == nil {
			out[name] = v
		}
	}
	// The same register under two names.
	if w.CPU == minidump.ARM {
		for _, same := range [][2]string{{"r11", "fp"}, {"r13", "sp"}, {"r14", "lr"}} {
			for i := range same {
				if _, ok := rules[same[i]]; ok {
					out[same[1-i]] = out[same[i]]
				}
			}
		}
		out["r13"], out["r15"] = out[w.sp], out[w.pc]
	}
	return out
}

var errRule = errors.New("rule cannot be evaluated")

// eval evaluates a postfix expression of numbers, registers, + - * / %, @ (align) and ^ (the word at an address).
func (w *walker) eval(rule string, cfa uint64) (uint64, error) {
	var stack []uint64
	for _, word := range strings.Fields(rule) {
		n := len(stack)
		switch word {
		case "+", "-", "*", "/", "%", "@":
			if n < 2 {
				return 0, errRule
			}
			a, b := stack[n-2], stack[n-1]
			if stack = stack[:n-2]; b == 0 && strings.Contains("/%@", word) {
				return 0, errRule
			}
			switch word {
			case "+":
				a += b
			case "-":
				a -= b
			case "*":
				a *= b
			case "/":
				a /= b
			case "%":
				a %= b
			case "@":
				a -= a % b
			}
			stack = append(stack, w.narrow(a))
		case "^":
			if n < 1 {
				return 0, errRule
			}
			v, ok := w.Word(w.stack, stack[n-1])
			if !ok {
				return 0, errRule
			}
			stack[n-1] = v
		case ".cfa":
			stack = append(stack, cfa)
		default:
			v, ok := w.regs[word]
			if !ok {
				i, err := strconv.ParseInt(word, 10, 64)
				if err != nil {
					return 0, errRule
				}
				v = w.narrow(uint64(i))
			}
			stack = append(stack, v)
		}
	}
	if len(stack) != 1 {
		return 0, errRule
	}
	return stack[0], nil
}

func (w *walker) narrow(v uint64) uint64 {
	if w.size == 4 {
		return v & math.MaxUint32
	}
	return v
}
