package pawn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kennel/edge/pawn/amx"
)

// instr is an instruction of the machine: what to do, and its operands with places in the code resolved to instructions.
type instr struct {
	op      opcode
	a, b, c int32
}

// table is a table of cases, sorted by value. Of equal values the first remains.
type table struct {
	none  int32 // instruction for no case
	cases []amx.Case
}

// overlay is a part of the code that addresses count from.
type overlay struct {
	first, size int32 // cells
}

// translation is the work of New on the code.
type translation struct {
	m       *Machine
	p       *amx.Program
	tables  map[int32]amx.Instr // of cases, by place
	globals int32               // bytes of data
	stack   int32               // bytes of stack and heap
}

// translate fills code, places, index, switches and overlays.
func (m *Machine) translate(p *amx.Program) error {
	t := &translation{m: m, p: p, tables: map[int32]amx.Instr{}, globals: int32(len(p.Data)), stack: amx.CellSize * p.StackHeapCells}
	m.index = make([]int32, len(p.Code)/amx.CellSize+1)
	for i := range m.index {
		m.index[i] = -1
	}
	total := int64(0)
	for _, o := range p.Overlays {
		m.overlays = append(m.overlays, overlay{o.Offset / amx.CellSize, o.Size / amx.CellSize})
		total += int64(o.Size)
	}
	if len(m.overlays) == 0 {
		m.code = make([]instr, 0, len(p.Code)/amx.CellSize+1)
		if err := t.part(0, 0, int32(len(p.Code))); err != nil {
			return err
		}
		return t.resolve(0)
	}
	if total > int64(len(p.Code)) {
		return &LoadError{ErrOverlay, -1, fmt.Sprintf("overlays of %d bytes overlap in code of %d", total, len(p.Code))}
	}
	for i, o := range p.Overlays {
		if err := t.part(int32(i), o.Offset, o.Offset+o.Size); err != nil {
			return err
		}
		if err := t.resolve(int32(i)); err != nil {
			return err
		}
	}
	return nil
}

func (t *translation) fail(code Code, at int, format string, args ...any) error {
	return &LoadError{code, at, fmt.Sprintf(format, args...)}
}

// part appends the instructions between two byte offsets, which are overlay number of the program or all of its code. Jumps keep byte offsets.
func (t *translation) part(number, from, to int32) error {
	m := t.m
	for in, err := range t.p.Instructions(int(from), int(to)) {
		if err != nil {
			return t.fail(ErrInvInstr, in.Offset, "%v", err)
		}
		if m.index[in.Offset/amx.CellSize] >= 0 {
			return t.fail(ErrOverlay, in.Offset, "overlay %d overlaps another one", number)
		}
		m.index[in.Offset/amx.CellSize] = int32(len(m.code))
		if err := t.operands(in, from, to); err != nil {
			return err
		}
		if err := t.append(in, number, from, to); err != nil {
			return err
		}
	}
	if end := &m.index[to/amx.CellSize]; *end < 0 && len(m.overlays) == 0 {
		*end = int32(len(m.code)) // the reference lets jumps lead to the end of the code
	}
	m.add(to, instr{op: opBad})
	return nil
}

func (m *Machine) add(place int32, in instr) {
	m.code = append(m.code, in)
	m.places = append(m.places, place)
}

// operands makes the checks that the reference makes of operands when it loads a program: of plain loads and stores, not of packed ones.
func (t *translation) operands(in amx.Instr, from, to int32) error {
	checked := !in.Op.Packed && !strings.HasPrefix(in.Op.Name, "push") && !strings.HasPrefix(in.Op.Name, "addr") && !strings.HasPrefix(in.Op.Name, "zero") && !strings.HasPrefix(in.Op.Name, "const")
	for i, k := range in.Op.Operands {
		v := in.Operands[i]
		switch {
		case k == amx.Global && checked && (v < 0 || v >= t.globals):
			return t.fail(ErrBounds, in.Offset, "%s of address %d, want one in the data of %d bytes", in.Op.Name, v, t.globals)
		case k == amx.Frame && checked && (v < -t.stack || v > t.stack):
			return t.fail(ErrBounds, in.Offset, "%s of frame address %d, want at most the size of the stack, %d, to both sides", in.Op.Name, v, t.stack)
		case (k == amx.Jump || k == amx.Distance) && (v < from || v > to):
			return t.fail(ErrBounds, in.Offset, "%s to %d, want %d to %d", in.Op.Name, v, from, to)
		case k == amx.InOverlay && (v < 0 || int(v) >= len(t.m.overlays)):
			return t.fail(ErrOverlay, in.Offset, "%s of overlay %d of %d", in.Op.Name, v, len(t.m.overlays))
		}
	}
	for _, c := range append(in.Cases, amx.Case{Target: in.Default}) {
		switch in.Op.Name {
		case "casetbl":
			if c.Target < from || c.Target > to {
				return t.fail(ErrBounds, in.Offset, "case for %d leads to %d, want %d to %d", c.Value, c.Target, from, to)
			}
		case "icasetbl":
			if c.Target < 0 || int(c.Target) >= len(t.m.overlays) {
				return t.fail(ErrOverlay, in.Offset, "case for %d leads to overlay %d of %d", c.Value, c.Target, len(t.m.overlays))
			}
		}
	}
	return nil
}

// append translates one instruction. Those with several operands become several instructions.
func (t *translation) append(in amx.Instr, number, from, to int32) error {
	m, at := t.m, int32(in.Offset)
	name := plain(in.Op.Name)
	next := at + int32(in.Size) - from
	one := instr{op: byName[name], a: in.Operands[0], b: in.Operands[1]}
	switch name {
	case "casetbl", "icasetbl":
		t.tables[at] = in
	case "call":
		one.b = next
	case "icall":
		if len(m.overlays) == 0 {
			return t.fail(ErrOverlay, in.Offset, "icall in a program without overlays")
		}
		if next > 0xFFFF || number > 0xFFFF {
			return t.fail(ErrOverlay, in.Offset, "return address %d in overlay %d, want 16 bits each", next, number)
		}
		one.b = next<<16 | number
	case "iretn", "iswitch":
		if len(m.overlays) == 0 {
			return t.fail(ErrOverlay, in.Offset, "%s in a program without overlays", name)
		}
	case "ret", "retn", "call.pri", "jump.pri":
		one.a, one.b, one.c = from/amx.CellSize, (to-from)/amx.CellSize, next
	case "lctrl":
		cod, dat := t.p.Offsets()
		switch in.Operands[0] {
		case 0:
			one = instr{op: opConstPri, a: cod}
		case 1:
			one = instr{op: opConstPri, a: dat}
		case 6:
			one = instr{op: opConstPri, a: next}
		}
	case "sctrl":
		if one.b, one.c = from/amx.CellSize, (to-from)/amx.CellSize; in.Operands[0] == 6 {
			one = instr{op: opJumpPri, a: one.b, b: one.c}
		}
	case "sysreq.c", "sysreq.n":
		if one.a < 0 || int(one.a) >= len(m.natives) {
			return t.fail(ErrCallback, in.Offset, "%s of native function %d of %d", name, one.a, len(m.natives))
		}
	case "break":
		if m.statement != nil {
			m.add(at, instr{op: opBreak})
		}
		return nil // the index leads to the next one
	case "nop":
		return nil
	case "push2", "push3", "push4", "push5", "push2.c", "push3.c", "push4.c", "push5.c", "push2.s", "push3.s", "push4.s", "push5.s",
		"push2.adr", "push3.adr", "push4.adr", "push5.adr":
		for i := range in.Op.Operands {
			m.add(at, instr{op: byName["push"+name[len("push5"):]], a: in.Operands[i]})
		}
		return nil
	case "zero", "zero.s": // const 0
		one.b = 0
	}
	m.add(at, one)
	return nil
}

// plain returns the name of a packed instruction without the mark.
func plain(name string) string {
	before, after, packed := strings.Cut(name, ".p.")
	if packed {
		return before + "." + after
	}
	return strings.TrimSuffix(name, ".p")
}

// resolve replaces byte offsets by instructions in the part that was appended last.
func (t *translation) resolve(number int32) error {
	m := t.m
	start := int32(0)
	if len(m.overlays) > 0 {
		start = m.index[m.overlays[number].first]
	}
	for i := start; i < int32(len(m.code)); i++ {
		in := &m.code[i]
		at := int(m.places[i])
		switch {
		case in.op >= opCall && in.op <= lastJump:
			to := m.index[in.a/amx.CellSize]
			if to < 0 || in.a%amx.CellSize != 0 {
				return t.fail(ErrBounds, at, "jump to %d, want the begin of an instruction", in.a)
			}
			in.a = to
		case in.op == opSwitch || in.op == opISwitch:
			if err := t.cases(in, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// cases makes the table of a switch.
func (t *translation) cases(in *instr, at int) error {
	m := t.m
	from, ok := t.tables[in.a]
	if !ok || (from.Op.Name == "casetbl") != (in.op == opSwitch) {
		return t.fail(ErrInvInstr, at, "switch to %d, want a table of cases", in.a)
	}
	target := func(v int32) (int32, error) {
		if in.op == opISwitch {
			return v, nil
		}
		to := m.index[v/amx.CellSize]
		if to < 0 || v%amx.CellSize != 0 {
			return 0, t.fail(ErrBounds, from.Offset, "case leads to %d, want the begin of an instruction", v)
		}
		return to, nil
	}
	out := table{cases: slices.Clone(from.Cases)}
	var err error
	if out.none, err = target(from.Default); err != nil {
		return err
	}
	for i := range out.cases {
		if out.cases[i].Target, err = target(out.cases[i].Target); err != nil {
			return err
		}
	}
	slices.SortStableFunc(out.cases, func(a, b amx.Case) int { return cmp.Compare(a.Value, b.Value) })
	out.cases = slices.CompactFunc(out.cases, func(a, b amx.Case) bool { return a.Value == b.Value })
	in.a = int32(len(m.switches))
	m.switches = append(m.switches, out)
	return nil
}

// find returns the instruction, or the overlay, for a value.
func (t *table) find(v int32) int32 {
	lo, hi := 0, len(t.cases)
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); t.cases[mid].Value < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(t.cases) && t.cases[lo].Value == v {
		return t.cases[lo].Target
	}
	return t.none
}
