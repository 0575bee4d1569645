package compiler

import "encoding/binary"

// debugMagic begins the debug information behind a program.
const debugMagic = 0xf1ef

// Kinds and classes of symbols in debug information, as debuggers know them.
const (
	debugVar      = 1
	debugRef      = 2
	debugArray    = 3
	debugRefArray = 4
	debugFunc     = 9

	debugGlobal = 0
	debugLocal  = 1
	debugStatic = 2
)

// localMark is a local variable and the labels between which it is in scope.
type localMark struct {
	sym      *symbol
	from, to int32
}

// noteLocal remembers where a local variable comes into scope; only with symbols.
func (c *compiler) noteLocal(s *symbol) {
	if c.opt.Debug < 2 || s.kind == kindConst || s.kind == kindLabel {
		return
	}
	label := c.newLabel()
	c.emit(opLabel, label)
	c.body.locals = append(c.body.locals, localMark{sym: s, from: label})
}

// closeLocals remembers where the variables of a scope end.
func (c *compiler) closeLocals(scope []*symbol) {
	if c.opt.Debug < 2 || len(scope) == 0 {
		return
	}
	label := c.newLabel()
	c.emit(opLabel, label)
	for i := range c.body.locals {
		l := &c.body.locals[i]
		for _, s := range scope {
			if l.sym == s {
				l.to = label
			}
		}
	}
}

// debugTables are the tables of debug information: files, lines, symbols, tags, automata and states.
type debugTables struct {
	bytes [6][]byte
	count [6]int
}

const (
	tableFiles = iota
	tableLines
	tableSymbols
	tableTags
	tableAutomata
	tableStates
)

var le = binary.LittleEndian

// add appends an entry: numbers of 2 or 4 bytes, as their types say, and a name.
func (d *debugTables) add(table int, numbers []any, name string) {
	b := d.bytes[table]
	for _, n := range numbers {
		switch n := n.(type) {
		case int32:
			b = le.AppendUint32(b, uint32(n))
		case int16:
			b = le.AppendUint16(b, uint16(n))
		case byte:
			b = append(b, n)
		}
	}
	if table != tableLines {
		b = append(append(b, name...), 0)
	}
	d.bytes[table] = b
	d.count[table]++
}

func (d *debugTables) symbol(s *symbol, addr, from, to int32, kind, class byte) {
	d.add(tableSymbols, []any{addr, int16(s.tag), from, to, kind, class, int16(len(s.dims))}, s.name.text)
	for i, n := range s.dims {
		d.bytes[tableSymbols] = le.AppendUint32(le.AppendUint16(d.bytes[tableSymbols], uint16(s.idxTags[i])), uint32(n))
	}
}

var debugKinds = [...]byte{debugVar, debugRef, debugArray, debugRefArray}

// debugInfo makes the debug information. Lines count from 0.
func (l *linker) debugInfo() []byte {
	c := l.c
	var d debugTables
	l.debugLines(&d)
	for _, s := range c.globals {
		if s.laid {
			d.symbol(s, s.value, 0, int32(len(l.code)), debugKinds[s.kind], debugGlobal)
		}
	}
	for _, b := range l.bodies {
		if b.fn != nil {
			l.debugBody(&d, b)
		}
	}
	for _, t := range c.tags {
		d.add(tableTags, []any{int16(c.names[t.name].tag)}, t.name)
	}
	for i, a := range c.automata {
		name, addr := "", int32(0)
		if a.name != nil {
			name = a.name.text
		}
		if a.cell != nil {
			addr = a.cell.value
		}
		d.add(tableAutomata, []any{int16(i), addr}, name)
		for k, s := range a.states {
			d.add(tableStates, []any{int16(k + 1), int16(i)}, s.text)
		}
	}
	size := 22
	for _, b := range d.bytes {
		size += len(b)
	}
	out := le.AppendUint32(nil, uint32(size))
	out = append(le.AppendUint16(out, debugMagic), 10, 10, 0, 0) // versions of the file and of the machine, flags
	for _, n := range d.count {
		out = le.AppendUint16(out, uint16(n))
	}
	for _, b := range d.bytes {
		out = append(out, b...)
	}
	return out
}

// debugLines adds the files and lines in the order of the code.
func (l *linker) debugLines(d *debugTables) {
	file := int16(-1)
	for _, b := range l.bodies {
		if b.node == nil {
			continue
		}
		if b.file != file {
			file = b.file
			d.add(tableFiles, []any{b.addr}, l.c.fileName(file))
		}
		at := b.addr
		d.add(tableLines, []any{at, max(b.pos.line-1, 0)}, "")
		for i := range b.code {
			in := &b.code[i]
			if in.op == opBreak {
				d.add(tableLines, []any{at, max(in.a-1, 0)}, "")
			}
			if in.op != opLabel {
				at += l.size(in)
			}
		}
	}
}

// debugBody adds a function and its local variables.
func (l *linker) debugBody(d *debugTables, b *body) {
	end := b.addr + b.size
	d.symbol(b.fn.sym, b.addr, b.addr, end, debugFunc, debugGlobal)
	for _, m := range b.locals {
		class, to := byte(debugLocal), end
		if !m.sym.local {
			class = debugStatic
		}
		if m.to != 0 {
			to = l.addr[m.to]
		}
		d.symbol(m.sym, m.sym.value, l.addr[m.from], to, debugKinds[m.sym.kind], class)
	}
}
