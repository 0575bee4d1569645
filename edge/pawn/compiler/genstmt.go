package compiler

// genStatement emits one statement.
func (c *compiler) genStatement(n *node) {
	if n == nil {
		return
	}
	c.errFlag = false
	if n.op != nBlock && n.op != nEmpty {
		c.mark(n.pos)
	}
	switch n.op {
	case nBlock:
		c.genBlock(n)
		return
	case nEmpty:
		return
	case nExpr:
		c.genEffect(n.a)
	case nDeclare:
		c.genDeclare(n)
	case nConst:
		c.declareConsts(n)
		return
	case nEnum:
		c.declareEnum(n)
		return
	case nIf:
		c.genIf(n)
		return
	case nWhile, nDo, nFor:
		c.genLoop(n)
		return
	case nSwitch:
		c.genSwitch(n)
	case nGoto:
		s := c.mention(n.name, n.pos)
		s.use |= useRead
		if s.use&useDefined != 0 {
			c.destroy(int(s.cells)) // the label is behind us: its blocks are known
		}
		c.emit(opJump, s.label)
		c.endless = false
	case nMark:
		c.genMark(n)
	case nReturn:
		c.genReturn(n)
	case nBreak, nContinue:
		c.genLeave(n)
	case nExit, nSleep:
		c.genHalt(n)
	case nAssertion:
		c.genAssertion(n)
	case nSetState:
		c.genSetState(n)
	}
	c.last = n.op
}

// mark emits the instruction at which a debugger stops.
func (c *compiler) mark(p pos) {
	if c.opt.Debug > 0 {
		c.code = append(c.code, instr{op: opBreak, a: p.line, b: int32(p.file)})
	}
}

// genEffect emits an expression whose value is not used.
func (c *compiler) genEffect(n *node) {
	list := []*node{n}
	if n.op == nComma && !n.paren {
		list = n.list
	}
	for _, e := range list {
		c.bitwise, c.effect = 0, false
		errors := c.errors
		v := c.genExpr(e)
		if v.kind == vFunc { // a call without arguments and parentheses
			call := c.newNode(nCall, e.pos)
			call.a, call.flag = e, true
			v = c.genExpr(call)
		}
		if !c.effect && v.kind != vNone && errors == c.errors {
			c.report(e.pos, 215)
		}
		c.freeHeap(0)
	}
	c.argCode = c.argCode[:0]
}

func (c *compiler) genBlock(n *node) {
	c.nest++
	mark, declared := len(c.scope), c.declared
	if len(n.list) == 0 {
		c.nest--
		return
	}
	for i, s := range n.list {
		if i > 0 && (c.last == nReturn || c.last == nBreak || c.last == nContinue || c.last == nForever) && s.op != nMark && s.op != nEmpty {
			c.report(s.pos, 225)
			c.last = nEmpty
		}
		c.genStatement(s)
	}
	switch c.last {
	case nReturn, nGoto, nBreak, nContinue:
	default:
		c.destroy(mark)
	}
	if c.last != nReturn && c.last != nGoto && c.declared != declared {
		c.emit(opStack, 4*(c.declared-declared))
	}
	c.closeScope(mark)
	c.declared = declared
	c.nest--
}

// nForever marks a loop without end as the last statement; no node has this kind.
const nForever = nEmpty + 1

// closeScope removes local symbols and reports those that were not used.
func (c *compiler) closeScope(mark int) {
	c.closeLocals(c.scope[mark:])
	for i := len(c.scope) - 1; i >= mark; i-- {
		s := c.scope[i]
		s.name.local = s.name.local[:len(s.name.local)-1]
	}
	for _, s := range c.scope[mark:] {
		c.unused(s)
	}
	c.scope = c.scope[:mark]
}

// unused reports a symbol that is never used, or only written.
func (c *compiler) unused(s *symbol) {
	for _, u := range c.body.unused {
		if u.name == s.name {
			s.use |= useRead | useWritten
		}
	}
	if c.errFlag = false; c.errors > 0 {
		return // a use may be hidden in what is wrong
	}
	switch {
	case s.kind == kindConst:
		if s.use&useRead == 0 {
			c.report(s.pos, 203, s.name.text)
		}
	case s.use&(useWritten|useRead|useStock) == 0:
		c.report(s.pos, 203, s.name.text)
	case s.use&(useRead|useStock|usePublic) == 0:
		c.report(s.pos, 204, s.name.text)
	}
}

func (c *compiler) declareLocal(s *symbol) {
	c.noteLocal(s)
	c.scope = append(c.scope, s)
	s.name.local = append(s.name.local, s)
}

// genDeclare emits local variables.
func (c *compiler) genDeclare(n *node) {
	for _, v := range n.list {
		c.errFlag = false
		if v.name.text[0] == '@' {
			c.report(v.pos, 56, v.name.text)
		}
		if k := len(v.name.local); k > 0 {
			number := 219
			if v.name.local[k-1].nest == c.nest {
				number = 21
			}
			c.report(v.pos, number, v.name.text)
		} else if g := c.findGlobal(v.name); g != nil && c.visible(g) && g.kind != kindFunc {
			c.report(v.pos, 219, v.name.text).see("declared first at " + c.place(g.pos))
		}
		if v.states != 0 {
			c.report(v.pos, 88, v.name.text)
		}
		s := &symbol{name: v.name, kind: kindVar, tag: v.tag, pos: v.pos, use: useDefined, nest: c.nest, cells: 1}
		if n.paren {
			s.use |= useConst
		}
		var root *symbol
		s.dims, s.idxTags, root = c.evalDims(v.list)
		if len(s.dims) > 0 {
			s.kind = kindArray
		}
		if n.flag {
			s.init, s.cells = c.initials(v, s, root)
			c.data = append(c.data, s)
			c.countData(int(s.cells))
			c.declareLocal(s)
			continue
		}
		s.local = true
		if s.kind == kindArray {
			c.declareArray(v, s, root)
		} else {
			c.declareCell(v, s)
		}
	}
}

// declareCell evaluates the initial value and pushes it: that is the variable.
func (c *compiler) declareCell(v *node, s *symbol) {
	if v.a != nil {
		c.bitwise = 0
		k := c.genExpr(v.a)
		switch k.kind {
		case vArray:
			c.report(v.a.pos, 33, k.name()).want("an array", "a cell", "add an index, or [] to the name")
		case vFunc:
			c.needCell(v.a, &k)
		}
		c.checkResult(v.a, &k)
		tag := k.tag
		constant := k.kind == vConst
		if f := c.operator("=", k.tag, s.tag); f != nil {
			c.load(&k)
			k, constant = c.callOperator(f, 1, false), false
			tag = k.tag
		}
		if k.kind != vNone && k.kind != vArray && !tagsMatch(s.tag, tag, true) {
			c.report(v.a.pos, 213).want(c.tagName(tag)+":", c.tagName(s.tag)+":", "")
		}
		if constant {
			c.emit(opPushC, k.value)
		} else {
			c.load(&k)
			c.freeHeap(0)
			c.emit(opPushPri, 0)
		}
		s.use |= useWritten
	} else {
		c.emit(opPushC, 0)
	}
	c.declared++
	s.value = -4 * c.declared
	c.declareLocal(s)
}

// declareArray makes room on the stack and fills it.
func (c *compiler) declareArray(v *node, s *symbol, root *symbol) {
	s.init, s.cells = c.initials(v, s, root)
	cells := s.init
	for len(cells) > 0 && cells[len(cells)-1] == 0 {
		cells = cells[:len(cells)-1]
	}
	c.declared += s.cells
	s.value = -4 * c.declared
	c.declareLocal(s)
	c.emit(opStack, -4*s.cells)
	fill := func(n int, value int32) {
		c.loadConst(opConstPri, value)
		c.emit(opAddrAlt, s.value)
		c.emit(opFill, 4*int32(n))
	}
	if len(cells) < int(s.cells) {
		fill(int(s.cells), 0)
	}
	if len(cells) == 0 {
		s.init = nil
		return
	}
	same := true
	for _, x := range cells {
		same = same && x == cells[0]
	}
	if same {
		fill(len(cells), cells[0])
	} else {
		at := c.literals(cells)
		c.emitSym(opConstPri, c.lit, at)
		c.emit(opAddrAlt, s.value)
		c.emit(opMovs, 4*int32(len(cells)))
	}
	s.init = nil
	if v.a != nil {
		s.use |= useWritten
	}
}

// genMark emits a label. A goto may come from another block, so the stack is set.
func (c *compiler) genMark(n *node) {
	s := c.mention(n.name, n.pos)
	if s.use&useDefined != 0 {
		c.report(n.pos, 21, n.name.text)
		return
	}
	s.use |= useDefined
	s.pos = n.pos
	s.cells = int32(len(c.scope))
	c.emit(opLabel, s.label)
	c.emit(opLctrl, 5)
	c.emit(opAddC, -4*c.declared)
	c.emit(opSctrl, 4)
}

// mention returns the label of that name.
func (c *compiler) mention(n *name, p pos) *symbol {
	s := c.marks[n]
	if s == nil {
		s = &symbol{name: n, kind: kindLabel, label: c.newLabel(), pos: p}
		c.marks[n] = s
	}
	return s
}

func (c *compiler) genReturn(n *node) {
	f := c.body.fn
	if n.a == nil {
		c.emit(opZeroPri, 0)
		if c.returns&returnsValue != 0 {
			c.report(n.pos, 209, f.sym.name.text)
		}
		c.returns |= returnsNothing
	} else {
		if c.returns&returnsNothing != 0 {
			c.report(n.pos, 78)
		}
		c.bitwise = 0
		v := c.genExpr(n.a)
		c.returnValue(n, f, &v)
		c.returns |= returnsValue
		c.freeHeap(0)
	}
	c.destroy(0)
	if c.declared != 0 {
		c.emit(opStack, 4*c.declared)
	}
	c.emit(c.returnOp(f), 0)
}

func (c *compiler) returnValue(n *node, f *function, v *value) {
	if v.kind == vNone || v.kind == vFunc && !c.needCell(n.a, v) {
		return
	}
	c.checkResult(n.a, v)
	if v.kind == vArray && v.literal {
		c.report(n.a.pos, 39).want("a literal array", "a variable", "put the literal into a variable first")
		return
	}
	array := v.kind == vArray
	if c.returns&returnsValue != 0 && array != f.returnsArray() {
		c.report(n.pos, 79)
		return
	}
	if array && f.sym.use&usePublic != 0 {
		c.report(n.pos, 90, f.sym.name.text)
		return
	}
	if !tagsMatch(f.sym.tag, v.tag, true) {
		c.report(n.a.pos, 213).want(c.tagName(v.tag)+":", c.tagName(f.sym.tag)+":", "")
	}
	if !array {
		c.load(v)
		return
	}
	cells := arrayCells(v.dims)
	if cells == 0 || cells > maxCells {
		c.report(n.a.pos, 46, v.name())
		return
	}
	if f.returnsArray() {
		if len(f.retDims) != len(v.dims) {
			c.report(n.pos, 48).want(dimText(v.dims), dimText(f.retDims), "")
			return
		}
		for i, d := range f.retDims {
			if d != v.dims[i] {
				c.report(n.pos, 47).want(dimText(v.dims), dimText(f.retDims), "")
				return
			}
		}
	} else {
		f.retDims, f.retIdx = v.dims, v.idxTags
	}
	c.emit(opLoadSAlt, 4*int32(len(f.args)+3)) // the hidden argument behind the last one
	c.emit(opMovs, 4*cells)
}

// returnOp is the instruction that leaves f. An entry or exit function has no count of arguments on the stack.
func (c *compiler) returnOp(f *function) opcode {
	switch name := f.sym.name.text; {
	case c.overlay > 0:
		return opIretn
	case (name == "entry" || name == "exit") && f.operator == "":
		return opRet
	}
	return opRetn
}

// genHalt emits exit and sleep: the machine gets the value and its tag.
func (c *compiler) genHalt(n *node) {
	code, tag := int32(1), 0
	if n.op == nSleep {
		code = 12
		c.sleeps = true
	}
	if n.a != nil {
		v := c.genExpr(n.a)
		if c.needCell(n.a, &v) {
			c.checkResult(n.a, &v)
		}
		tag = v.tag
		c.load(&v)
		c.freeHeap(0)
	} else {
		c.emit(opZeroPri, 0)
	}
	c.exportTag(tag)
	if n.op == nExit {
		c.destroy(0)
	}
	c.loadConst(opConstAlt, int32(tag))
	c.emit(opHalt, code)
}

// genAssertion emits assert, which stops the script with error 2. Without run-time checks it is only read.
func (c *compiler) genAssertion(n *node) {
	if n.a == nil {
		return
	}
	mark := len(c.code)
	ok := c.newLabel()
	c.genTest(n.a, ok, true)
	if c.opt.Debug == 0 {
		c.code = c.code[:mark]
		return
	}
	c.emit(opHalt, 2)
	c.emit(opLabel, ok)
}
