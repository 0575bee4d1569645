package compiler

import (
	"encoding/binary"
	"slices"

	"kennel/edge/pawn/amx"
)

// linker lays out code and data and makes the tables.
type linker struct {
	c       *compiler
	bodies  []*body // in the order of the code
	addr    []int32 // of labels
	code    []byte
	overlay []*body // by index, from the first one behind the fixed overlays
	noState *body
	noExit  *body
	exit    *body
	shared  []shared
}

func (c *compiler) link() *amx.Program {
	l := &linker{c: c}
	l.layData()
	l.collect()
	l.place()
	for _, b := range l.bodies {
		l.write(b)
	}
	p := l.program()
	c.checkCompact(p)
	c.checkRecursion()
	c.stackCells, c.stackWhy = c.estimate()
	size := c.programSize(p)
	if c.opt.Debug >= 2 {
		p.Flags |= amx.FlagDebug
		p.Debug = l.debugInfo()
	}
	switch data := len(p.Data) + 4*c.stack; {
	case c.limit > 0 && size > c.limit:
		c.report(pos{line: 1, col: 1}, 106, size, c.limit)
	case c.dataLimit > 0 && data > c.dataLimit:
		c.report(pos{line: 1, col: 1}, 106, data, c.dataLimit)
	}
	if c.overlay > 0 {
		for _, b := range l.bodies {
			if int(b.size) > c.overlay && b.fn != nil {
				c.report(b.pos, 112, b.fn.sym.name.text, int(b.size)-c.overlay)
			}
		}
	}
	return p
}

// checkCompact switches the compact encoding off where it makes the file longer. No machine reads such a file.
func (c *compiler) checkCompact(p *amx.Program) {
	if !c.compact {
		return
	}
	if _, err := p.Append(nil); err != nil {
		c.report(pos{line: 1, col: 1}, 232).want("", "", "use -C-")
		p.Flags &^= amx.FlagCompact
	}
}

// checkRecursion reports the functions that call themselves, directly or by others, if the script is compiled for debugging: the room that their stack needs is
// not known.
func (c *compiler) checkRecursion() {
	if c.opt.Debug < 2 {
		return
	}
	const unseen, open, closed = 0, 1, 2
	state := map[*function]int{}
	var path []*function
	cyclic := map[*function]bool{}
	var visit func(f *function)
	visit = func(f *function) {
		state[f] = open
		path = append(path, f)
		for _, b := range f.bodies {
			for i := range b.code {
				switch to := b.code[i].fn; {
				case to == nil || to.sym.use&useNative != 0:
				case state[to] == unseen:
					visit(to)
				case state[to] == open:
					for _, f := range path[slices.Index(path, to):] {
						cyclic[f] = true
					}
				}
			}
		}
		path = path[:len(path)-1]
		state[f] = closed
	}
	for _, f := range c.functions {
		if f.reached && state[f] == unseen {
			visit(f)
		}
	}
	for _, f := range c.functions {
		if cyclic[f] {
			c.report(f.bodies[0].pos, 237, f.sym.name.text)
		}
	}
}

// programSize is the room that a machine needs: the file as it is expanded, and stack and heap.
func (c *compiler) programSize(p *amx.Program) int {
	n := len(p.Code) + len(p.Data) + 4*c.stack + 60
	for _, t := range [][]amx.Entry{p.Publics, p.Natives, p.Libraries, p.Pubvars, p.Tags} {
		for _, e := range t {
			n += 8 + len(e.Name) + 1
		}
	}
	return n + 8*len(p.Overlays)
}

// layData gives each variable and literal its address. Variables that nothing uses have none.
func (l *linker) layData() {
	c := l.c
	var cells []*symbol
	for i := range c.automata {
		if i > 0 || len(c.automata[0].states) > 0 || c.automata[i].cell != nil {
			cells = append(cells, c.stateCell(i))
		}
	}
	c.data = append(cells, c.data...)
	at := int32(0)
	for _, s := range c.data {
		if s.use&(useRead|useWritten) == 0 {
			continue
		}
		s.laid = true
		if s.value = l.share(s, at); s.value == at {
			at += 4 * s.cells
		}
	}
}

// shared is a cell that variables of states use, one automaton's in turn.
type shared struct {
	addr   int32
	states stateList
}

// maxShared bounds the cells that are searched for a place.
const maxShared = 4096

// share returns the address of a variable, which begins at next unless it is one of states: those can lie where variables of the same automaton lie, if they have
// no state in common. The first such place is taken, as in the reference.
func (l *linker) share(s *symbol, next int32) int32 {
	if s.states == 0 || len(s.init) > 0 { // the tables of an array must stay
		return next
	}
	own := l.c.lists[s.states-1]
	place, run := next, int32(0)
	for i, cell := range l.shared {
		switch {
		case cell.states.automaton != own.automaton || cell.states.meets(&own):
			run = 0
		case run > 0 && l.shared[i-1].addr+4 == cell.addr:
			run++
		default:
			run = 1
		}
		if run == s.cells {
			place = cell.addr - 4*(run-1)
			for k := range run {
				to := &l.shared[i-int(k)].states
				*to = stateList{to.automaton, slices.Clone(to.states)}
				for _, st := range own.states {
					to.add(st)
				}
			}
			break
		}
	}
	for k := int32(0); place == next && k < s.cells && len(l.shared) < maxShared; k++ {
		l.shared = append(l.shared, shared{next + 4*k, own})
	}
	return place
}

// collect puts the bodies in order: the fixed ones, the selectors of functions with states, and the rest as in the source.
func (l *linker) collect() {
	c := l.c
	fixed := func(code ...instr) *body {
		b := &body{code: code, label: c.newLabel()}
		l.bodies = append(l.bodies, b)
		return b
	}
	l.exit = fixed(instr{op: opHalt})
	withStates := false
	for _, f := range c.functions {
		withStates = withStates || f.reached && f.bodies[0].states != 0
	}
	if withStates || c.overlay > 0 {
		l.noState = fixed(instr{op: opHalt, a: errNoState})
	}
	if c.hook("exit") != nil {
		ret := opRet
		if c.overlay > 0 {
			ret = opIretn
		}
		l.noExit = fixed(instr{op: opProc}, instr{op: ret})
	}
	l.number()
	for _, f := range c.functions {
		if f.reached && f.bodies[0].states != 0 && f.sym.name.text != "entry" {
			f.stub.code = l.selector(f)
			l.bodies = append(l.bodies, f.stub)
		}
	}
	for _, b := range c.bodies {
		if b.fn != nil && b.fn.reached && slices.Contains(b.fn.bodies, b) {
			l.bodies = append(l.bodies, b)
		}
	}
}

// number makes the selectors and gives every function its overlay.
func (l *linker) number() {
	c := l.c
	l.overlay = []*body{l.exit}
	for _, b := range []*body{l.noState, l.noExit} {
		if b != nil {
			b.overlay = len(l.overlay)
			l.overlay = append(l.overlay, b)
		}
	}
	add := func(b *body) {
		b.overlay = len(l.overlay)
		l.overlay = append(l.overlay, b)
	}
	for _, f := range c.functions {
		if !f.reached {
			continue
		}
		if f.bodies[0].states != 0 && f.sym.name.text != "entry" {
			f.stub = &body{fn: f, label: c.newLabel(), pos: f.bodies[0].pos}
			add(f.stub)
		}
		for _, b := range f.bodies {
			add(b)
		}
	}
}

// selector makes the code that jumps to the implementation for the current state.
func (l *linker) selector(f *function) []instr {
	c := l.c
	list := 0
	otherwise := l.noState
	if f.sym.name.text == "exit" {
		otherwise = l.noExit
	}
	for _, b := range f.bodies {
		if b.states < 0 {
			otherwise = b
		} else {
			list = b.states
		}
	}
	a := 0
	if list > 0 {
		a = c.lists[list-1].automaton
	}
	table := c.newLabel()
	code := []instr{{op: opLoadPri, sym: c.stateCell(a)}}
	head, entry := opSwitch, opCase
	tbl := opCasetbl
	if c.overlay > 0 {
		head, entry, tbl = opIswitch, opICase, opIcasetbl
	}
	code = append(code, instr{op: head, a: table}, instr{op: opLabel, a: table}, instr{op: tbl}, instr{op: entry, body: otherwise, b: otherwise.label})
	at := len(code) - 1
	for i := range c.automata[a].states {
		if b := f.bodyFor(c, i+1); b != nil {
			code = append(code, instr{op: entry, a: int32(i + 1), body: b, b: b.label})
			code[at].a++
		}
	}
	return code
}

// place gives every instruction and label its address.
func (l *linker) place() {
	l.addr = make([]int32, l.c.labels+1)
	at := int32(0)
	for _, b := range l.bodies {
		b.addr = at
		l.addr[b.label] = at
		for i := range b.code {
			in := &b.code[i]
			if in.op == opLabel {
				l.addr[in.a] = at
				continue
			}
			at += l.size(in)
		}
		b.size = at - b.addr
	}
	l.code = make([]byte, 0, at)
}

// operand is the first operand with the address of its symbol.
func (in *instr) operand() int32 {
	if in.sym != nil {
		return in.a + in.sym.value
	}
	return in.a
}

// packed reports whether the instruction has its operand in the same cell.
func (l *linker) packed(in *instr) bool {
	if l.c.opt.Optimise < 2 || packedOps[in.op] == nil {
		return false
	}
	v := in.operand()
	return v == int32(int16(v))
}

func (l *linker) size(in *instr) int32 {
	switch {
	case in.op == opCase || in.op == opICase:
		return 8
	case in.op == opCasetbl || in.op == opIcasetbl:
		return 4
	case l.packed(in):
		return 4
	}
	return 4 * int32(machineOps[in.op].Cells())
}

// write appends the code of a body. Places in the code are distances from the instruction, and in tables from the entry.
func (l *linker) write(b *body) {
	word := func(v int32) { l.code = binary.LittleEndian.AppendUint32(l.code, uint32(v)) }
	for i := range b.code {
		in := &b.code[i]
		at := int32(len(l.code))
		switch in.op {
		case opLabel:
			continue
		case opCase:
			word(in.a)
			word(l.addr[in.b] - at)
			continue
		case opICase:
			word(in.a)
			word(int32(in.body.overlay))
			continue
		case opCasetbl, opIcasetbl:
			word(int32(machineOps[in.op].Number))
			continue
		case opCall:
			l.writeCall(in, at, word)
			continue
		}
		if l.packed(in) {
			cell, _ := packedOps[in.op].Pack(in.operand())
			word(int32(cell))
			continue
		}
		op := machineOps[in.op]
		word(int32(op.Number))
		if op.Cells() == 1 {
			continue
		}
		switch op.Operands[0] {
		case amx.Jump:
			word(l.addr[in.a] - at)
		default:
			word(in.operand())
		}
		if op.Cells() > 2 {
			word(in.b)
		}
	}
}

func (l *linker) writeCall(in *instr, at int32, word func(int32)) {
	b := in.body
	if b == nil {
		if b = in.fn.stub; b == nil {
			b = in.fn.bodies[0]
		}
	}
	if l.c.overlay > 0 {
		word(int32(machineOps[opIcall].Number))
		word(int32(b.overlay))
		return
	}
	word(int32(machineOps[opCall].Number))
	word(l.addr[b.label] - at)
}

// entryOf is the value of a function in the tables.
func (l *linker) entryOf(f *function) int32 {
	b := f.stub
	if b == nil {
		b = f.bodies[0]
	}
	if l.c.overlay > 0 {
		return int32(b.overlay)
	}
	return b.addr
}

func (l *linker) program() *amx.Program {
	c := l.c
	p := &amx.Program{Version: amx.MaxVersion, Code: l.code, Main: amx.NoMain, StackHeapCells: int32(c.stack)}
	for flag, on := range map[amx.Flags]bool{amx.FlagOverlay: c.overlay > 0, amx.FlagCompact: c.compact, amx.FlagSleep: c.sleeps,
		amx.FlagNoChecks: c.opt.Debug == 0} {
		if on {
			p.Flags |= flag
		}
	}
	for _, s := range c.data {
		if !s.laid || int(s.value) < len(p.Data) { // not used, or in the place of another one
			continue
		}
		if s.use&usePublic != 0 && s.kind == kindVar {
			p.Pubvars = append(p.Pubvars, amx.Entry{Name: s.name.text, Value: uint32(s.value)})
		}
		for _, v := range s.init {
			p.Data = binary.LittleEndian.AppendUint32(p.Data, uint32(v))
		}
		p.Data = append(p.Data, make([]byte, 4*(int(s.cells)-len(s.init)))...)
	}
	for _, f := range c.functions {
		if !f.reached {
			continue
		}
		if f.sym.use&usePublic != 0 {
			p.Publics = append(p.Publics, amx.Entry{Name: f.sym.name.text, Value: uint32(l.entryOf(f))})
		}
		if f.sym.name.text == "main" && f.operator == "" {
			p.Main = l.entryOf(f)
		}
	}
	byName := func(a, b amx.Entry) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	}
	slices.SortFunc(p.Publics, byName)
	slices.SortFunc(p.Pubvars, byName)
	var used []string
	for _, f := range c.natives {
		e := amx.Entry{Name: f.sym.name.text}
		if f.alias != "" {
			e.Name = f.alias
		}
		p.Natives = append(p.Natives, e)
		used = append(used, f.nativeLib)
	}
	for _, lib := range c.libraries {
		if !c.noLibs && slices.Contains(used, lib) {
			p.Libraries = append(p.Libraries, amx.Entry{Name: lib})
		}
	}
	for _, t := range c.tags {
		if t.exported {
			p.Tags = append(p.Tags, amx.Entry{Name: t.name, Value: uint32(c.names[t.name].tag)})
		}
	}
	if c.overlay > 0 {
		for _, b := range l.overlay {
			p.Overlays = append(p.Overlays, amx.Overlay{Offset: b.addr, Size: b.size})
		}
	}
	return p
}
