package compiler

// genTest emits a jump to label if the condition is sense. It returns 1 for a condition that is always true, -1 for one that is
// always false, and otherwise 0.
func (c *compiler) genTest(n *node, label int32, sense bool) int {
	test := c.inTest
	c.inTest = true
	c.bitwise = 0
	defer func() { c.inTest = test; c.freeHeap(0) }()
	if n.op == nComma {
		for _, e := range n.list[:len(n.list)-1] {
			c.genExpr(e)
			c.freeHeap(0)
		}
		n = n.list[len(n.list)-1]
	}
	return c.genCond(n, label, sense, true)
}

// genCond is genTest for one expression; whole tells that it is the complete condition.
func (c *compiler) genCond(n *node, label int32, sense, whole bool) int {
	if n.op == nLogic && !c.allConst(n) {
		c.genShort(n, label, sense)
		return 0
	}
	v := c.genExpr(n)
	switch {
	case v.kind == vNone || !c.needCell(n, &v):
		return 0
	case v.kind == vConst:
		if whole {
			number := 205
			if v.value != 0 {
				number = 206
			}
			c.report(n.pos, number)
		}
		if (v.value != 0) == sense {
			c.emit(opJump, label)
		}
		if v.value != 0 {
			return 1
		}
		return -1
	}
	c.checkResult(n, &v)
	c.load(&v)
	if v.tag != 0 && v.tag != c.boolTag {
		if f := c.operator("!", v.tag, -1); f != nil {
			c.callOperator(f, 1, false)
			sense = !sense
		}
	}
	c.freeHeap(0)
	op := opJzer
	if sense {
		op = opJnz
	}
	c.emit(op, label)
	return 0
}

// allConst reports whether every operand of a chain is constant.
func (c *compiler) allConst(n *node) bool {
	mark, quiet, flag, effect := len(c.code), c.quiet, c.errFlag, c.effect
	c.quiet++
	defer func() { c.code, c.quiet, c.errFlag, c.effect = c.code[:mark], quiet, flag, effect }()
	for _, e := range n.list {
		if e.op == nNumber || e.op == nTag {
			continue
		}
		if e.op != nName || c.findConstOnly(e.name) == nil {
			return false
		}
	}
	return true
}

// genShort emits a chain of && or || as jumps.
func (c *compiler) genShort(n *node, label int32, sense bool) {
	// a chain that is left by its deciding value jumps where that value leads
	decides := n.tok == tOrOr
	target := label
	if decides != sense {
		target = c.newLabel()
	}
	for i, e := range n.list {
		if i == len(n.list)-1 {
			c.genCond(e, label, sense, false)
			break
		}
		c.genCond(e, target, decides, false)
	}
	if target != label {
		c.emit(opLabel, target)
	}
}

func (c *compiler) genIf(n *node) {
	otherwise := c.newLabel()
	c.genTest(n.a, otherwise, false)
	c.last = nEmpty
	c.genStatement(n.b)
	first := c.last
	if n.c == nil {
		c.emit(opLabel, otherwise)
		c.last = nIf
		return
	}
	end := c.newLabel()
	if first != nReturn && first != nGoto {
		c.emit(opJump, end)
	}
	c.emit(opLabel, otherwise)
	c.last = nEmpty
	c.genStatement(n.c)
	c.emit(opLabel, end)
	if c.last != first || first == nEmpty {
		c.last = nIf
	}
}

// genLoop emits while, do and for. The condition is at the end, so one jump is taken for a turn.
func (c *compiler) genLoop(n *node) {
	mark, declared, saved := len(c.scope), c.declared, c.endless
	cond, step := n.a, (*node)(nil)
	if n.op == nFor {
		cond, step = n.list[1], n.list[2]
		if init := n.list[0]; init != nil && init.op == nDeclare {
			c.nest++
			c.genDeclare(init)
		} else if init != nil {
			c.genEffect(init)
		}
	}
	top, next, test, exit := c.newLabel(), c.newLabel(), c.newLabel(), c.newLabel()
	begin := len(c.code)
	c.errFlag = false
	always := 1
	if n.op != nDo {
		c.mark(n.pos)
	}
	if cond != nil {
		always = c.genTest(cond, top, true)
	} else {
		c.emit(opJump, top)
	}
	condition := append([]instr(nil), c.code[begin:]...)
	c.code = c.code[:begin]
	c.endless = always == 1
	if n.op != nDo {
		c.emit(opJump, test)
	}
	c.emit(opLabel, top)
	c.loops = append(c.loops, loop{next: next, exit: exit, declared: c.declared, scope: len(c.scope)})
	c.last = nEmpty
	c.genStatement(n.b)
	c.loops = c.loops[:len(c.loops)-1]
	c.emit(opLabel, next)
	if step != nil {
		c.errFlag = false
		c.genEffect(step)
	}
	c.emit(opLabel, test)
	c.code = append(c.code, condition...)
	c.emit(opLabel, exit)
	if n.op == nFor {
		c.destroy(mark)
	}
	if n.op == nFor && c.declared > declared {
		c.emit(opStack, 4*(c.declared-declared))
	}
	if n.op == nFor && n.list[0] != nil && n.list[0].op == nDeclare {
		c.closeScope(mark)
		c.declared = declared
		c.nest--
	}
	c.last = nFor
	if c.endless && always == 1 {
		c.last = nForever
	}
	c.endless = saved
}

func (c *compiler) genLeave(n *node) {
	if len(c.loops) == 0 {
		c.report(n.pos, 24)
		return
	}
	l := c.loops[len(c.loops)-1]
	c.destroy(l.scope)
	if c.declared != l.declared {
		c.emit(opStack, 4*(c.declared-l.declared))
	}
	if n.op == nBreak {
		c.endless = false
		c.emit(opJump, l.exit)
	} else {
		c.emit(opJump, l.next)
	}
}

// maxCases bounds the cases of one switch.
const maxCases = 1 << 16

func (c *compiler) genSwitch(n *node) {
	table, exit := c.newLabel(), c.newLabel()
	v := c.genExpr(n.a)
	if c.needCell(n.a, &v) {
		c.checkResult(n.a, &v)
	}
	c.load(&v)
	c.freeHeap(0)
	c.emit(opSwitch, table)
	otherwise := exit
	cases := map[int32]int32{}
	var order []int32
	for _, cs := range n.list {
		c.errFlag = false
		label := c.newLabel()
		if cs.flag {
			otherwise = label
		}
		for _, e := range cs.list {
			from := e
			if e.op == nRange {
				from = e.a
			}
			first := c.constant(from).value
			last := first
			if e.op == nRange {
				if last = c.constant(e.b).value; last <= first {
					c.report(e.pos, 50)
					continue
				}
			}
			for k := int64(first); k <= int64(last); k++ {
				if _, double := cases[int32(k)]; double {
					c.report(e.pos, 40, int32(k))
					continue
				}
				if cases[int32(k)] = label; len(cases) > maxCases {
					c.report(e.pos, 102, "number of cases", maxCases)
				}
				order = append(order, int32(k))
			}
		}
		c.emit(opLabel, label)
		c.genStatement(cs.a)
		c.emit(opJump, exit)
	}
	c.emit(opLabel, table)
	c.emitTable(order, cases, otherwise)
	c.emit(opLabel, exit)
}
