package compiler

import (
	"slices"
)

// Fixed overlays.
const (
	overlayExit    = iota // where a function returns to that the host called
	overlayNoState        // a function without implementation for the current state
	overlayNoExit         // an exit function without implementation for the current state
)

const (
	errNoState   = 13   // a function is called in a state in which it has no implementation
	maxGenerated = 2000 // bodies that wait for the result of another one
)

// reach marks a function as used, so its bodies are generated.
func (c *compiler) reach(f *function) {
	f.sym.use |= useRead
	if f.reached || f.sym.use&useNative != 0 {
		return
	}
	f.reached = true
}

// generate emits all functions that an entry point reaches and reports what nothing uses.
func (c *compiler) generate() {
	entry := false
	for _, f := range c.functions {
		name := f.sym.name.text
		if f.sym.use&usePublic != 0 || name == "main" && f.operator == "" {
			entry = true // a heading that promises a public function is enough
		}
		if len(f.bodies) == 0 {
			continue
		}
		if f.sym.use&usePublic != 0 || name == "main" && f.operator == "" {
			f.reached = true
		}
		if (name == "entry" || name == "exit") && f.bodies[0].states != 0 {
			f.reached = true
		}
	}
	for again := true; again; {
		again = false
		for _, b := range c.bodies {
			if b.fn != nil && b.fn.reached && !b.done && slices.Contains(b.fn.bodies, b) {
				again = true
				c.genBody(b)
			}
		}
	}
	c.errFlag = false
	for _, f := range c.functions {
		c.checkFunction(f)
	}
	for _, s := range c.globals {
		if c.errFlag = false; c.errors > 0 {
			break
		}
		if s.kind != kindConst && s.use&(useWritten|useRead|useStock) == 0 {
			c.report(s.pos, 203, s.name.text)
		} else if s.kind != kindConst && s.use&(useRead|useStock|usePublic) == 0 {
			c.report(s.pos, 204, s.name.text)
		}
	}
	if !entry && c.errors == 0 {
		c.report(pos{line: int32(max(c.lineNo, 1)), col: 1}, 13).want("", "", `define "main" or a public function`)
	}
}

// checkFunction reports functions that nothing uses and states without implementation.
func (c *compiler) checkFunction(f *function) {
	c.errFlag = false
	s := f.sym
	if len(f.bodies) == 0 {
		return
	}
	if !f.reached && c.errors == 0 && s.use&(useStock|usePublic|useNative) == 0 {
		c.report(f.bodies[0].pos, 203, s.name.text)
	}
	if !f.reached || f.bodies[0].states == 0 {
		return
	}
	fallback, list := false, 0
	for _, b := range f.bodies {
		if b.states < 0 {
			fallback = true
		} else {
			list = b.states
		}
	}
	if list == 0 {
		c.report(f.bodies[0].pos, 85, s.name.text)
		return
	}
	if fallback || s.name.text == "entry" || s.name.text == "exit" {
		return
	}
	for i, st := range c.automata[c.lists[list-1].automaton].states {
		if f.bodyFor(c, i+1) == nil {
			c.report(f.bodies[0].pos, 230, st.text, s.name.text)
		}
	}
}

// bodyFor returns the implementation of a function for a state, the fall-back not counted.
func (f *function) bodyFor(c *compiler, state int) *body {
	for _, b := range f.bodies {
		if b.states > 0 && slices.Contains(c.lists[b.states-1].states, state) {
			return b
		}
	}
	return nil
}

// resolveResult makes sure that it is known whether f returns an array before a call of it is emitted.
func (c *compiler) resolveResult(f *function) {
	if f.cell || f.returnsArray() || f.sym.use&useNative != 0 || c.depthGen > maxGenerated {
		return
	}
	for _, b := range f.bodies {
		if !c.mayReturnArray(b, 0) {
			continue
		}
		if b.busy {
			c.guessResult(f, b.node)
		} else if !b.done {
			c.depthGen++
			f.reached = true
			c.genBody(b)
			c.depthGen--
		}
		return
	}
	f.cell = true
}

// mayReturnArray reports whether a return statement of b names an array.
func (c *compiler) mayReturnArray(b *body, depth int) bool {
	found := false
	eachReturn(b.node, func(n *node) {
		e := n.a
		for e != nil && e.op == nChoose {
			e = e.b
		}
		for e != nil && e.op == nIndex {
			e = e.a
		}
		if found || e == nil {
			return
		}
		switch e.op {
		case nName:
			found = declaresArray(b, e.name)
			for _, s := range e.name.global {
				found = found || s.kind == kindArray
			}
		case nCall:
			for _, s := range e.a.name.global {
				if s.kind == kindFunc && depth < 8 {
					for _, o := range s.fn.bodies {
						found = found || s.fn.returnsArray() || o != b && c.mayReturnArray(o, depth+1)
					}
				}
			}
		}
	})
	return found
}

// eachReturn visits the return statements with a value below n.
func eachReturn(n *node, visit func(*node)) {
	if n == nil || n.op < nBlock {
		return
	}
	if n.op == nReturn {
		if n.a != nil {
			visit(n)
		}
		return
	}
	eachReturn(n.a, visit)
	eachReturn(n.b, visit)
	eachReturn(n.c, visit)
	for _, m := range n.list {
		eachReturn(m, visit)
	}
}

// declaresArray reports whether b has a local array or an array argument of that name.
func declaresArray(b *body, n *name) bool {
	for i := range b.args {
		if b.args[i].name == n {
			return b.args[i].kind == argArray
		}
	}
	found := false
	var walk func(m *node)
	walk = func(m *node) {
		if m == nil || m.op < nBlock || found {
			return
		}
		if m.op == nDeclare {
			for _, v := range m.list {
				found = found || v.name == n && len(v.list) > 0
			}
		}
		walk(m.a)
		walk(m.b)
		walk(m.c)
		for _, k := range m.list {
			walk(k)
		}
	}
	walk(b.node)
	return found
}

// guessResult finds the array that a function which calls itself returns: the variable of its return statement is in scope.
func (c *compiler) guessResult(f *function, n *node) {
	eachReturn(n, func(r *node) {
		if r.a.op != nName || f.returnsArray() {
			return
		}
		if s := c.lookup(r.a.name); s != nil && (s.kind == kindArray || s.kind == kindRefArray) {
			f.retDims, f.retIdx = s.dims, s.idxTags
		}
	})
}

// genBody emits one body. The bodies that wait for it keep their state.
func (c *compiler) genBody(b *body) {
	b.done, b.busy = true, true
	saved, states, flag := c.generator, c.curStates, c.errFlag
	for _, s := range saved.scope {
		s.name.local = s.name.local[:len(s.name.local)-1]
	}
	c.generator = generator{body: b, labels: saved.labels, data: saved.data, natives: saved.natives, sleeps: saved.sleeps, marks: map[*name]*symbol{},
		depthGen: saved.depthGen, arrays: saved.arrays}
	if c.depthGen == 0 {
		c.code, c.argCode = c.spareCode[:0], saved.argCode[:0]
	}
	c.curStates = b.states
	c.genFunction(b)
	if c.opt.Optimise > 0 {
		b.code = optimise(c.code, c.opt.Optimise)
	} else {
		b.code = slices.Clone(c.code)
	}
	if c.depthGen == 0 {
		c.spareCode, saved.argCode = c.code, c.argCode
	}
	saved.labels, saved.data, saved.natives, saved.sleeps, saved.arrays = c.labels, c.data, c.natives, c.sleeps, c.arrays
	c.generator, c.curStates, c.errFlag = saved, states, flag
	for _, s := range saved.scope {
		s.name.local = append(s.name.local, s)
	}
	b.busy = false
	if b.label == 0 {
		b.label = c.newLabel()
	}
}

func (c *compiler) genFunction(b *body) {
	f := b.fn
	c.errFlag = false
	c.emit(opProc, 0)
	for i := range b.args {
		a := &b.args[i]
		if a.kind == argRest {
			continue
		}
		s := &symbol{name: a.name, kind: [...]symKind{kindVar, kindRef, kindRefArray}[a.kind], local: true, use: useDefined, tag: a.tags[0],
			value: 4 * int32(i+3), dims: a.dims, idxTags: a.idxTags, pos: a.pos, cells: 1}
		if a.isConst {
			s.use |= useConst
		}
		if a.kind == argRef || f.sym.use&usePublic != 0 {
			s.use |= useRead
		}
		if g := c.findGlobal(a.name); g != nil && g.kind != kindFunc && c.visible(g) {
			c.report(a.pos, 219, a.name.text)
		}
		c.declareLocal(s)
	}
	if f.operator != "" && f.operator != "~" || f.sym.use&useReturns != 0 {
		c.returns = returnsValue
	}
	c.nest = 0
	c.genStatement(b.node)
	if c.declared != 0 && b.node.op != nBlock {
		c.emit(opStack, 4*c.declared)
	}
	if c.last != nReturn && c.last != nGoto {
		c.emit(opZeroPri, 0)
		c.emit(c.returnOp(f), 0)
		if c.returns&returnsValue != 0 && c.last != nForever {
			c.errFlag = false
			c.report(b.pos, 209, f.sym.name.text)
		}
	}
	for n, s := range c.marks {
		c.errFlag = false
		if s.use&useDefined == 0 {
			c.report(s.pos, 19, n.text).closest(n.text, c.labelNames)
		} else if s.use&useRead == 0 {
			c.report(s.pos, 203, n.text)
		}
	}
	c.closeScope(0)
}

func (c *compiler) labelNames() []string {
	var out []string
	for n, s := range c.marks {
		if s.use&useDefined != 0 {
			out = append(out, n.text)
		}
	}
	slices.Sort(out)
	return out
}

// emitTable emits the table of a switch, sorted by value.
func (c *compiler) emitTable(values []int32, labels map[int32]int32, otherwise int32) {
	slices.Sort(values)
	c.emit(opCasetbl, 0)
	c.code = append(c.code, instr{op: opCase, a: int32(len(values)), b: otherwise})
	for _, v := range values {
		c.code = append(c.code, instr{op: opCase, a: v, b: labels[v]})
	}
}
