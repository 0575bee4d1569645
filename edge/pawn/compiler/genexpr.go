package compiler

// genExpr emits the code of an expression.
func (c *compiler) genExpr(n *node) value {
	switch n.op {
	case nNumber:
		return value{kind: vConst, value: n.value}
	case nRational:
		return value{kind: vConst, value: n.value, tag: n.tag}
	case nString:
		cells := stringCells(nil, n.chars, n.flag)
		c.emitSym(opConstPri, c.litAt(cells), 4*int32(len(c.lit.init)-len(cells)))
		return value{kind: vArray, value: -int32(len(cells)), dims: []int32{int32(len(cells))}, idxTags: []int{0}, literal: true, root: true}
	case nLiteral:
		return c.genLiteral(n)
	case nName:
		return c.genName(n, 0)
	case nTag:
		v := c.genTagged(n.a, n.tag)
		v.tag = n.tag
		return v
	case nUnary:
		return c.genUnary(n)
	case nBinary:
		return c.genBinary(n)
	case nLogic:
		return c.genLogic(n)
	case nCompare:
		return c.genCompare(n)
	case nAssign:
		return c.genAssign(n)
	case nChoose:
		return c.genChoose(n)
	case nIndex:
		return c.genIndex(n)
	case nCall:
		return c.genCall(n)
	case nStep:
		return c.genStep(n)
	case nSizeof, nTagof, nDefined:
		return c.genOf(n)
	case nInState:
		return c.genInState(n)
	case nCells:
		return c.genCells(n)
	case nComma:
		return c.genComma(n)
	}
	return value{kind: vNone}
}

func (c *compiler) litAt(cells []int32) *symbol {
	c.literals(cells)
	return c.lit
}

// genTagged evaluates the operand of a tag override: among constants of one name the tag chooses.
func (c *compiler) genTagged(n *node, tag int) value {
	if n.op == nName {
		return c.genName(n, tag)
	}
	return c.genExpr(n)
}

// genValue evaluates n into PRI, or leaves a constant.
func (c *compiler) genValue(n *node) value {
	v := c.genExpr(n)
	if v.kind != vConst {
		c.load(&v)
	}
	return v
}

// genComma evaluates expressions in order; the last one is the value.
func (c *compiler) genComma(n *node) value {
	var v value
	for _, e := range n.list {
		v = c.genExpr(e)
	}
	return v
}

// genLiteral makes an array of constants.
func (c *compiler) genLiteral(n *node) value {
	var cells []int32
	tag := -1
	for _, e := range n.list {
		v := c.constant(e)
		if tag < 0 {
			tag = v.tag
		} else if !tagsMatch(tag, v.tag, false) {
			c.report(e.pos, 213)
		}
		cells = append(cells, v.value)
	}
	c.emitSym(opConstPri, c.litAt(cells), 4*int32(len(c.lit.init)-len(cells)))
	size := int32(len(cells))
	return value{kind: vArray, value: size, tag: max(tag, 0), dims: []int32{size}, idxTags: []int{0}, literal: true, root: true}
}

// lookup finds what a name means: a local symbol, a global variable or function.
func (c *compiler) lookup(n *name) *symbol {
	if k := len(n.local); k > 0 {
		return n.local[k-1]
	}
	return c.findGlobal(n)
}

// genName evaluates a name. want is the tag that is expected, to choose among constants.
func (c *compiler) genName(n *node, want int) value {
	if k, several := c.findConst(n.name, want); k != nil {
		if several {
			c.report(n.pos, 91, n.name.text).want("", "", "write the tag in front, such as "+c.tagName(k.tag)+":"+n.name.text)
		}
		k.use |= useRead
		return value{kind: vConst, value: k.value, tag: k.tag, field: k}
	}
	s := c.lookup(n.name)
	switch {
	case s == nil || s.kind == kindConst || !c.visible(s) || s.kind == kindFunc && s.fn == nil:
		m := c.undefined(n.pos, n.name.text)
		if m != nil && s != nil && s.kind != kindConst {
			m.Fix, m.See = "declare it before its use", "declared at "+c.place(s.pos)
		}
		return value{kind: vNone}
	case s.kind == kindLabel:
		c.report(n.pos, 29).want("label "+quote(n.name.text), "a value", "")
		return value{kind: vNone}
	case s.kind == kindFunc:
		return value{kind: vFunc, sym: s, tag: s.tag}
	case s.kind == kindArray || s.kind == kindRefArray:
		c.address(s, false)
		return value{kind: vArray, sym: s, tag: s.tag, dims: s.dims, idxTags: s.idxTags, isConst: s.use&useConst != 0, root: true}
	case s.kind == kindRef:
		return value{kind: vRef, sym: s, tag: s.tag, isConst: s.use&useConst != 0}
	}
	return value{kind: vVar, sym: s, tag: s.tag, isConst: s.use&useConst != 0}
}

// needCell reports error 33 if there is an array or function where a cell is needed.
func (c *compiler) needCell(n *node, v *value) bool {
	if v.kind == vArray {
		c.report(n.pos, 33, v.name()).want("an array", "a cell", "add an index")
		return false
	}
	if v.kind == vFunc {
		c.report(n.pos, 76).want("function "+quote(v.name()), "a value", "call it with ()")
		return false
	}
	return true
}

func (c *compiler) genUnary(n *node) value {
	v := c.genExpr(n.a)
	if v.kind == vNone || !c.needCell(n.a, &v) {
		return value{kind: vNone}
	}
	c.checkResult(n.a, &v)
	constant := v.kind == vConst
	load := func() { c.load(&v) }
	switch n.tok {
	case tTilde:
		if constant {
			v.value = ^v.value
			v.field = nil
			return v
		}
		load()
		c.emit(opInvert, 0)
	case tNot:
		if f := c.operator("!", v.tag, -1); f != nil {
			load()
			return c.callOperator(f, 1, false)
		}
		if constant {
			return value{kind: vConst, value: truth(v.value == 0), tag: c.boolTag}
		}
		load()
		c.emit(opNot, 0)
		v.tag = c.boolTag
	case tMinus:
		switch f := c.operator("-", v.tag, -1); {
		case constant && c.rationSet && v.tag == c.rationTag:
			if c.digits == 0 {
				v.value ^= -1 << 31
			} else {
				v.value = -v.value
			}
			return value{kind: vConst, value: v.value, tag: v.tag}
		case f != nil:
			load()
			return c.callOperator(f, 1, false)
		case constant:
			return value{kind: vConst, value: -v.value, tag: v.tag}
		}
		load()
		c.emit(opNeg, 0)
	}
	return value{kind: vExpr, tag: v.tag}
}

func truth(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// checkResult reports a function without result in an expression.
func (c *compiler) checkResult(n *node, v *value) {
	f := v.result
	if f == nil || f.sym.use&useNative != 0 || c.body != nil && f == c.body.fn || f.operator != "" {
		return
	}
	for _, b := range f.bodies {
		if b.node.returnsNothing {
			c.report(n.pos, 209, f.sym.name.text)
			return
		}
	}
}

// genStep emits ++ and --.
func (c *compiler) genStep(n *node) value {
	v := c.genExpr(n.a)
	if v.kind == vNone {
		return v
	}
	if !v.lvalue() || v.isConst {
		c.report(n.pos, 22).want(c.describe(&v), "a variable", "")
		return value{kind: vNone}
	}
	c.effect = true
	word, op, plain := "++", opIncPri, opInc
	if n.tok == tDec {
		word, op, plain = "--", opDecPri, opDec
	}
	indirect := v.kind == vCell || v.kind == vChar
	f := c.operator(word, v.tag, -1)
	lv := v
	if v.sym != nil {
		v.sym.use |= useWritten
	}
	switch {
	case f != nil && indirect:
		c.emit(opPushPri, 0) // address
		c.load(&v)
		if n.flag {
			c.emit(opSwapPri, 0) // the old value waits below, the address is in PRI
			c.emit(opPushPri, 0)
			lvOld := lv
			c.load(&lvOld)
		}
		c.callOperator(f, 1, false)
		c.emit(opPopAlt, 0)
		c.store(&lv)
		if n.flag {
			c.emit(opPopPri, 0)
		}
	case f != nil:
		c.load(&v)
		if n.flag {
			c.emit(opPushPri, 0)
		}
		c.callOperator(f, 1, false)
		c.store(&lv)
		if n.flag {
			c.emit(opPopPri, 0)
		}
	case v.kind == vVar && !n.flag:
		c.stepVar(plain, v.sym)
		c.load(&v)
	case v.kind == vVar:
		c.load(&v)
		c.stepVar(plain, v.sym)
	case v.kind == vRef:
		c.load(&v)
		if n.flag {
			c.emit(opPushPri, 0)
		}
		c.emit(op, 0)
		c.store(&lv)
		if n.flag {
			c.emit(opPopPri, 0)
		}
	default:
		c.emit(opMoveAlt, 0)
		c.load(&v)
		if n.flag {
			c.emit(opPushPri, 0)
		}
		c.emit(op, 0)
		c.store(&lv)
		if n.flag {
			c.emit(opPopPri, 0)
		}
	}
	return value{kind: vExpr, tag: v.tag}
}

// stepVar increments or decrements a variable in place.
func (c *compiler) stepVar(op opcode, s *symbol) {
	if s.local {
		op++ // inc.s, dec.s
	}
	c.emitVar(op, s)
	s.use |= useRead
}

func (c *compiler) describe(v *value) string {
	switch {
	case v.kind == vConst:
		return "a constant"
	case v.isConst:
		return "constant " + quote(v.name())
	case v.kind == vFunc:
		return "function " + quote(v.name())
	case v.kind == vArray:
		return "array " + quote(v.name())
	}
	return "a result"
}

// genCells converts a number of packed characters to cells: "20 char".
func (c *compiler) genCells(n *node) value {
	v := c.genExpr(n.a)
	if v.kind == vNone || !c.needCell(n.a, &v) {
		return value{kind: vNone}
	}
	if v.kind == vConst {
		v.value = (v.value + 3) / 4
		return value{kind: vConst, value: v.value, tag: v.tag}
	}
	c.load(&v)
	c.emit(opAddC, 3)
	c.emit(opShrCPri, 2)
	return value{kind: vExpr, tag: v.tag}
}

// genOf evaluates defined, sizeof and tagof.
func (c *compiler) genOf(n *node) value {
	s := c.lookup(n.name)
	k, _ := c.findConst(n.name, 0)
	if s == nil || s.kind == kindConst {
		s = k
	}
	if s != nil && !c.visible(s) && s.kind != kindFunc {
		s = nil
	}
	if n.op == nDefined {
		return value{kind: vConst, value: truth(s != nil || n.name.macro != nil), tag: c.boolTag}
	}
	if n.op == nTagof && n.flag {
		return c.tagValue(n.tag)
	}
	if s == nil {
		c.undefined(n.pos, n.name.text)
		return value{kind: vNone}
	}
	if n.op == nTagof {
		tag := s.tag
		if item := c.itemOf(n, s); item != nil {
			tag = item.itemTag
		}
		return c.tagValue(tag)
	}
	size := int32(1)
	switch s.kind {
	case kindConst:
		c.report(n.pos, 39).want("constant "+quote(n.name.text), "a variable", "")
	case kindFunc:
		c.report(n.pos, 72).want("function "+quote(n.name.text), "a variable", "")
	case kindArray, kindRefArray:
		switch level := len(n.list); {
		case level < len(s.dims):
			if size = s.dims[level]; size == 0 && !c.lineOnly {
				c.report(n.pos, 224, n.name.text)
			}
		case level > len(s.dims):
			c.report(n.pos, 28, n.name.text)
		default:
			if item := c.itemOf(n, s); item != nil && item.size > 0 {
				size = item.size
			}
		}
	}
	return value{kind: vConst, value: size}
}

// itemOf returns the enumeration's field that is the last index of "sizeof a[field]".
func (c *compiler) itemOf(n *node, s *symbol) *symbol {
	if len(n.list) != len(s.dims) || len(n.list) == 0 || n.list[len(n.list)-1] == nil {
		return nil
	}
	e := n.list[len(n.list)-1]
	if e.op == nName {
		k, several := c.findConst(e.name, s.idxTags[len(n.list)-1])
		switch {
		case k == nil:
			c.report(e.pos, 80, e.name.text).closest(e.name.text, c.allNames)
		case several:
			c.report(e.pos, 91, e.name.text)
		}
		return k
	}
	c.constant(e)
	return nil
}

func (c *compiler) tagValue(tag int) value {
	c.exportTag(tag)
	if tag != 0 {
		tag |= publicTag
	}
	return value{kind: vConst, value: int32(tag)}
}

// genChoose emits a ? b : c. Arrays that either side leaves on the heap take the same room on both.
func (c *compiler) genChoose(n *node) value {
	test, heap := c.inTest, c.heap
	otherwise, end := c.newLabel(), c.newLabel()
	cond := c.genExpr(n.a)
	if cond.kind == vConst {
		number := 205
		if cond.value != 0 {
			number = 206
		}
		c.report(n.a.pos, number)
	} else {
		c.needCell(n.a, &cond)
		c.checkResult(n.a, &cond)
	}
	c.load(&cond)
	c.freeHeap(heap)
	c.emit(opJzer, otherwise)
	c.inTest = false
	begin := len(c.code)
	left := c.genBranch(n.b)
	first := append([]instr(nil), c.code[begin:]...)
	heap1 := c.heap - heap
	c.code, c.heap = c.code[:begin], heap
	right := c.genBranch(n.c)
	second := append([]instr(nil), c.code[begin:]...)
	heap2 := c.heap - heap
	c.code, c.inTest = c.code[:begin], test
	top := max(heap1, heap2)
	if heap1 < top {
		c.emit(opHeap, 4*(top-heap1))
	}
	c.code = append(c.code, first...)
	c.emit(opJump, end)
	c.emit(opLabel, otherwise)
	if heap2 < top {
		c.emit(opHeap, 4*(top-heap2))
	}
	c.code = append(c.code, second...)
	c.emit(opLabel, end)
	c.heap = heap + top
	return c.chosen(n, left, right)
}

func (c *compiler) genBranch(n *node) value {
	v := c.genExpr(n)
	if v.kind == vFunc {
		c.needCell(n, &v)
	}
	c.load(&v)
	return v
}

// chosen is the value of a ? b : c, whose sides left and right were.
func (c *compiler) chosen(n *node, left, right value) value {
	c.effect = false
	if left.kind == vNone || right.kind == vNone {
		return value{kind: vNone}
	}
	if (left.kind == vArray) != (right.kind == vArray) {
		v := &left
		if right.kind == vArray {
			v = &right
		}
		c.report(n.pos, 33, v.name()).want("an array on one side", "two arrays or two cells", "")
		return value{kind: vNone}
	}
	if !tagsMatch(left.tag, right.tag, false) {
		c.report(n.pos, 213).want(c.tagPair(left.tag, right.tag), "", "")
	}
	if left.kind != vArray {
		return value{kind: vExpr, tag: left.tag}
	}
	if len(left.dims) != len(right.dims) {
		c.report(n.pos, 48)
	} else if len(left.dims) > 1 {
		c.sameDims(n.pos, &left, &right)
	}
	v := left
	v.literal, v.isConst = left.literal && right.literal, left.isConst || right.isConst
	if len(left.dims) == 1 && len(right.dims) == 1 && right.dims[0] > left.dims[0] {
		v.dims = right.dims
		v.value = right.value
	}
	return v
}

func (c *compiler) tagPair(a, b int) string {
	return c.tagName(a) + ": and " + c.tagName(b) + ":"
}
