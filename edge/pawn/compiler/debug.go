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

// debugInfo makes the tables of files, lines, symbols, tags, automata and states. Lines count from 0.
func (l *linker) debugInfo() []byte {
	c := l.c
	le := binary.LittleEndian
	var files, lines, symbols, tags, automata, states []byte
	var count [6]int
	text := func(b []byte, s string) []byte { return append(append(b, s...), 0) }
	file := int16(-1)
	for _, b := range l.bodies {
		if b.node == nil {
			continue
		}
		if b.file != file {
			file = b.file
			files = text(le.AppendUint32(files, uint32(b.addr)), c.fileName(file))
			count[0]++
		}
		at := b.addr
		mark := func(line int32) {
			lines = le.AppendUint32(le.AppendUint32(lines, uint32(at)), uint32(max(line-1, 0)))
			count[1]++
		}
		mark(b.pos.line)
		for i := range b.code {
			in := &b.code[i]
			if in.op == opBreak {
				mark(in.a)
			}
			if in.op != opLabel {
				at += l.size(in)
			}
		}
	}
	symbol := func(s *symbol, addr, from, to int32, kind, class byte) {
		symbols = le.AppendUint32(symbols, uint32(addr))
		symbols = le.AppendUint16(symbols, uint16(s.tag))
		symbols = le.AppendUint32(le.AppendUint32(symbols, uint32(from)), uint32(to))
		symbols = append(symbols, kind, class)
		symbols = text(le.AppendUint16(symbols, uint16(len(s.dims))), s.name.text)
		for i, d := range s.dims {
			symbols = le.AppendUint32(le.AppendUint16(symbols, uint16(s.idxTags[i])), uint32(d))
		}
		count[2]++
	}
	for _, s := range c.globals {
		if s.laid {
			symbol(s, s.value, 0, int32(len(l.code)), [...]byte{debugVar, debugRef, debugArray, debugRefArray}[s.kind], debugGlobal)
		}
	}
	for _, b := range l.bodies {
		if b.fn == nil {
			continue
		}
		symbol(b.fn.sym, b.addr, b.addr, b.addr+b.size, debugFunc, debugGlobal)
		for _, m := range b.locals {
			class := byte(debugLocal)
			if !m.sym.local {
				class = debugStatic
			}
			end := b.addr + b.size
			if m.to != 0 {
				end = l.addr[m.to]
			}
			symbol(m.sym, m.sym.value, l.addr[m.from], end, [...]byte{debugVar, debugRef, debugArray, debugRefArray}[m.sym.kind], class)
		}
	}
	for _, t := range c.tags {
		tags = text(le.AppendUint16(tags, uint16(c.names[t.name].tag)), t.name)
		count[3]++
	}
	for i, a := range c.automata {
		name, addr := "", int32(0)
		if a.name != nil {
			name = a.name.text
		}
		if a.cell != nil {
			addr = a.cell.value
		}
		automata = text(le.AppendUint32(le.AppendUint16(automata, uint16(i)), uint32(addr)), name)
		count[4]++
		for k, s := range a.states {
			states = text(le.AppendUint16(le.AppendUint16(states, uint16(k+1)), uint16(i)), s.text)
			count[5]++
		}
	}
	const header = 22
	size := header + len(files) + len(lines) + len(symbols) + len(tags) + len(automata) + len(states)
	out := le.AppendUint32(nil, uint32(size))
	out = append(le.AppendUint16(out, debugMagic), 10, 10)
	out = le.AppendUint16(out, 0)
	for _, n := range count {
		out = le.AppendUint16(out, uint16(n))
	}
	for _, t := range [][]byte{files, lines, symbols, tags, automata, states} {
		out = append(out, t...)
	}
	return out
}
