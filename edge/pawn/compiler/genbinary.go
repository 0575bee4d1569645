package compiler

// Positions of operands: where the left one is when an operation is emitted.
const (
	leftInPri = iota // PRI left, ALT right
	leftInAlt        // ALT left, PRI right
)

// genOperands evaluates a and b. If both are constants nothing is emitted.
func (c *compiler) genOperands(a, b *node, left value) (l, r value, where int) {
	l = left
	if l.kind == vConst {
		r = c.genExpr(b)
		if r.kind != vConst && c.cellValue(b, &r) {
			c.load(&r)
			c.loadConst(opConstAlt, l.value)
		}
		return l, r, leftInAlt
	}
	arrayLeft := l.kind == vArray
	c.load(&l)
	mark := len(c.code)
	c.emit(opPushPri, 0)
	r = c.genExpr(b)
	if len(c.code) == mark+1 && r.simple() {
		c.code = c.code[:mark]
		keep := r.kind
		c.loadAlt(&r)
		if keep == vConst {
			r.kind = vConst
		}
		return l, r, leftInPri
	}
	if r.kind == vNone || r.kind == vArray && !arrayLeft {
		return l, r, leftInAlt
	}
	c.load(&r)
	c.emit(opPopAlt, 0)
	return l, r, leftInAlt
}

func (c *compiler) cellValue(n *node, v *value) bool {
	return v.kind != vNone && c.needCell(n, v)
}

// binaryOps are the instructions of operators: [0] with the left operand in PRI, [1] with it in ALT.
var binaryOps = map[kind][2]opcode{tPlus: {opAdd, opAdd}, tMinus: {opSub, opSubAlt}, tStar: {opSmul, opSmul}, tSlash: {opSdiv, opSdivAlt},
	tPercent: {opSdiv, opSdivAlt}, tAmp: {opAnd, opAnd}, tPipe: {opOr, opOr}, tCaret: {opXor, opXor}, tEq: {opEq, opEq}, tNe: {opNeq, opNeq},
	tShl: {opShl, opNone}, tShr: {opSshr, opNone}, tShru: {opShr, opNone}}

// operatorNames are the operators that scripts can define, as they are written.
var operatorNames = map[kind]string{tPlus: "+", tMinus: "-", tStar: "*", tSlash: "/", tPercent: "%", tEq: "==", tNe: "!=", tLess: "<",
	tGreater: ">", tLe: "<=", tGe: ">="}

func (c *compiler) genBinary(n *node) value {
	left := c.genExpr(n.a)
	if left.kind == vNone || left.kind == vFunc && !c.needCell(n.a, &left) {
		c.genExpr(n.b)
		return value{kind: vNone}
	}
	return c.genOperation(n, n.tok, left, n.b)
}

// genOperation emits "left op b".
func (c *compiler) genOperation(n *node, op kind, left value, b *node) value {
	comparison := op == tEq || op == tNe
	if left.kind == vArray && !comparison {
		c.needCell(n.a, &left)
		return value{kind: vNone}
	}
	l, r, where := c.genOperands(n.a, b, left)
	if r.kind == vNone || r.kind == vFunc && !c.needCell(b, &r) {
		return value{kind: vNone}
	}
	c.checkResult(n.a, &l)
	c.checkResult(b, &r)
	if l.result != nil || r.result != nil {
		c.effect = false // the result of a call is used: what matters is the use of this result
	}
	if op == tAmp || op == tPipe {
		c.bitwise++
	}
	switch {
	case comparison && l.kind == vArray && r.kind == vArray:
		return c.compareArrays(n, op, &l, &r)
	case l.kind == vArray:
		c.needCell(n.a, &l)
		return value{kind: vNone}
	case r.kind == vArray:
		c.needCell(b, &r)
		return value{kind: vNone}
	}
	if v, ok := c.userBinary(op, &l, &r, where); ok {
		return v
	}
	if !tagsMatch(l.tag, r.tag, false) {
		c.report(n.pos, 213).want(c.tagPair(l.tag, r.tag), "one tag", "")
	}
	tag := l.tag
	if comparison {
		tag = c.boolTag
	}
	if l.kind == vConst && r.kind == vConst {
		v, ok := fold(op, l.value, r.value)
		if !ok {
			c.report(n.pos, 29).want("division by zero", "", "")
		}
		return value{kind: vConst, value: v, tag: tag}
	}
	if (op == tSlash || op == tPercent) && where == leftInPri {
		c.dividendToAlt()
		where = leftInAlt
	}
	ops := binaryOps[op]
	if ops[where] == opNone {
		c.emit(opXchg, 0)
		where = leftInPri
	}
	c.emit(ops[where], 0)
	if op == tPercent {
		c.emit(opMovePri, 0)
	}
	return value{kind: vExpr, tag: tag}
}

// dividendToAlt moves the left operand to ALT: where the divisor was loaded into ALT, it is loaded into PRI. The reference machine's
// sdiv takes the remainder, and with it the rounding, from the wrong number; its sdiv.alt is right.
func (c *compiler) dividendToAlt() {
	divisor := c.code[len(c.code)-1]
	divisor.op-- // the instruction for PRI comes before its twin for ALT
	c.code = append(c.code[:len(c.code)-1], instr{op: opMoveAlt}, divisor)
}

// userBinary calls the operator that the script defines for these tags.
func (c *compiler) userBinary(op kind, l, r *value, where int) (value, bool) {
	word := operatorNames[op]
	if word == "" || l.tag == 0 && r.tag == 0 {
		return value{}, false
	}
	f, swapped := c.operator(word, l.tag, r.tag), false
	if f == nil && l.tag != r.tag && (op == tPlus || op == tStar || op == tEq || op == tNe) {
		f, swapped = c.operator(word, r.tag, l.tag), true
	}
	if f == nil {
		return value{}, false
	}
	if l.kind == vConst && r.kind == vConst { // neither was loaded
		c.loadConst(opConstPri, r.value)
		c.loadConst(opConstAlt, l.value)
		where = leftInAlt
	}
	return c.callOperator(f, 2, (where == leftInPri) != swapped), true
}

// fold calculates a constant. Division and remainder round towards minus infinity (PLEO-AMX-04).
func fold(op kind, a, b int32) (int32, bool) {
	switch op {
	case tPlus:
		return a + b, true
	case tMinus:
		return a - b, true
	case tStar:
		return a * b, true
	case tSlash, tPercent:
		if b == 0 {
			return 0, false
		}
		q, r := floorDiv(a, b)
		if op == tSlash {
			return q, true
		}
		return r, true
	case tAmp:
		return a & b, true
	case tPipe:
		return a | b, true
	case tCaret:
		return a ^ b, true
	case tEq:
		return truth(a == b), true
	case tNe:
		return truth(a != b), true
	case tShl:
		return int32(uint32(a) << uint32(b)), true
	case tShr:
		return a >> min(uint32(b), 31), true
	case tShru:
		return int32(uint32(a) >> uint32(b)), true
	case tLess:
		return truth(a < b), true
	case tLe:
		return truth(a <= b), true
	case tGreater:
		return truth(a > b), true
	case tGe:
		return truth(a >= b), true
	}
	return 0, false
}

func floorDiv(a, b int32) (q, r int32) {
	if b == -1 {
		return -a, 0
	}
	q, r = a/b, a%b
	if r != 0 && r^b < 0 {
		q--
		r += b
	}
	return q, r
}

// genLogic emits a chain of && or ||, which stops at the first operand that decides.
func (c *compiler) genLogic(n *node) value {
	all, known := true, truth(n.tok == tAndAnd)
	mark, heap := len(c.code), c.heap
	drop, end := c.newLabel(), c.newLabel()
	jump := opJnz
	if n.tok == tAndAnd {
		jump = opJzer
	}
	for _, e := range n.list {
		v := c.genExpr(e)
		if v.kind == vNone || !c.needCell(e, &v) {
			return value{kind: vNone}
		}
		c.checkResult(e, &v)
		if v.kind != vConst {
			all = false
		} else if n.tok == tAndAnd {
			known &= truth(v.value != 0)
		} else {
			known |= truth(v.value != 0)
		}
		c.load(&v)
		c.freeHeap(heap)
		c.emit(jump, drop)
	}
	if all {
		c.code = c.code[:mark]
		return value{kind: vConst, value: known, tag: c.boolTag}
	}
	c.loadConst(opConstPri, truth(n.tok == tAndAnd))
	c.emit(opJump, end)
	c.emit(opLabel, drop)
	c.loadConst(opConstPri, truth(n.tok == tOrOr))
	c.emit(opLabel, end)
	return value{kind: vExpr, tag: c.boolTag}
}

var compareOps = map[kind][2]opcode{tLess: {opSless, opSgrtr}, tGreater: {opSgrtr, opSless}, tLe: {opSleq, opSgeq}, tGe: {opSgeq, opSleq}}

// genCompare emits a chain of comparisons: 1 < a < 10 is 1 < a && a < 10 with a evaluated once, and all of it evaluated.
func (c *compiler) genCompare(n *node) value {
	if v, ok := c.foldCompare(n); ok {
		return v
	}
	left := c.genExpr(n.list[0])
	for i, e := range n.list[1:] {
		prev := n.list[i]
		if left.kind == vNone || !c.needCell(prev, &left) {
			return value{kind: vNone}
		}
		chain := len(n.list) > 2
		if i > 0 {
			if c.bitwise > 0 {
				c.report(n.pos, 212)
			}
			c.emit(opPushPri, 0) // the result so far
			c.emit(opMovePri, 0) // the operand of both comparisons
			left.kind = vExpr
		}
		mini := *n
		mini.a = prev
		var l, r value
		var where int
		if chain && left.kind == vConst {
			c.load(&left)
			left.kind = vExpr
		}
		l, r, where = c.genOperands(prev, e, left)
		if r.kind == vNone || !c.needCell(e, &r) {
			return value{kind: vNone}
		}
		c.checkResult(prev, &l)
		c.checkResult(e, &r)
		c.compareStep(&mini, kind(n.chars[i]), &l, &r, where, chain)
		if i > 0 {
			c.emit(opSwapAlt, 0)
			c.emit(opAnd, 0)
			c.emit(opPopAlt, 0)
		}
		left = r
	}
	c.effect = c.effect && !c.callIn(n)
	return value{kind: vExpr, tag: c.boolTag}
}

// callIn reports whether an operand is a call: its result is used, so the comparison alone has no effect.
func (c *compiler) callIn(n *node) bool {
	for _, e := range n.list {
		if e.op == nCall {
			return true
		}
	}
	return false
}

// compareStep emits one comparison. In a chain ALT has the right operand afterwards.
func (c *compiler) compareStep(n *node, op kind, l, r *value, where int, chain bool) {
	f := c.operator(operatorNames[op], l.tag, r.tag)
	if f != nil {
		if l.kind == vConst && r.kind == vConst {
			c.loadConst(opConstPri, r.value)
			c.loadConst(opConstAlt, l.value)
			where = leftInAlt
		}
		if chain {
			if where == leftInPri {
				c.emit(opPushAlt, 0)
			} else {
				c.emit(opPushPri, 0)
			}
		}
		c.callOperator(f, 2, where == leftInPri)
		if chain {
			c.emit(opPopAlt, 0)
		}
		return
	}
	if !tagsMatch(l.tag, r.tag, false) {
		c.report(n.pos, 213).want(c.tagPair(l.tag, r.tag), "one tag", "")
	}
	if l.kind == vConst && r.kind == vConst {
		v, _ := fold(op, l.value, r.value)
		c.loadConst(opConstPri, v)
		return
	}
	if chain && where == leftInAlt {
		c.emit(opXchg, 0)
		where = leftInPri
	}
	c.emit(compareOps[op][where], 0)
}

// foldCompare evaluates a chain of constants.
func (c *compiler) foldCompare(n *node) (value, bool) {
	mark, quiet, effect := len(c.code), c.quiet, c.effect
	c.quiet++
	defer func() { c.code, c.quiet, c.effect = c.code[:mark], quiet, effect }()
	result := int32(1)
	var last value
	for i, e := range n.list {
		if e.op != nNumber && e.op != nName && e.op != nUnary && e.op != nBinary && e.op != nTag && e.op != nSizeof && !e.paren && e.op != nRational {
			return value{}, false
		}
		if e.op == nName && c.findConstOnly(e.name) == nil {
			return value{}, false
		}
		flag := c.errFlag
		v := c.genExpr(e)
		c.errFlag = flag
		if v.kind != vConst {
			return value{}, false
		}
		if i > 0 {
			if c.operator(operatorNames[kind(n.chars[i-1])], last.tag, v.tag) != nil || !tagsMatch(last.tag, v.tag, false) {
				return value{}, false
			}
			t, _ := fold(kind(n.chars[i-1]), last.value, v.value)
			result &= t
		}
		last = v
	}
	return value{kind: vConst, value: result, tag: c.boolTag}, true
}

func (c *compiler) findConstOnly(n *name) *symbol {
	k, _ := c.findConst(n, 0)
	return k
}

// compareArrays emits == and != of arrays.
func (c *compiler) compareArrays(n *node, op kind, l, r *value) value {
	cells := c.arrayLength(n.pos, l, r)
	c.emit(opCmps, 4*cells)
	c.emit(opNot, 0)
	if op == tNe {
		c.emit(opNot, 0)
	}
	return value{kind: vExpr, tag: c.boolTag}
}

// arrayLength checks that r can be assigned to or compared with l, and returns the number of cells to copy or compare.
func (c *compiler) arrayLength(p pos, l, r *value) int32 {
	if len(l.dims) != len(r.dims) {
		c.report(p, 48).want(dimText(r.dims), dimText(l.dims), "")
		return 0
	}
	to, from := l.dims[0], r.dims[0]
	exact := true
	if len(l.dims) == 1 && l.idxTags[0] == 0 && r.idxTags[0] == 0 && (!r.literal || r.value < 0) {
		exact = false
	}
	switch {
	case to < from || exact && to > from || from == 0:
		c.report(p, 47).want(dimText(r.dims), dimText(l.dims), "")
		return 0
	case !tagsMatch(l.idxTags[0], r.idxTags[0], true) && l.sym != nil && l.field == nil:
		c.report(p, 229, r.name())
	}
	if len(l.dims) > 1 {
		c.sameDims(p, l, r)
		if l.root && r.root {
			return arrayCells(l.dims)
		}
	}
	return from
}

// sameDims reports arrays whose minor dimensions differ.
func (c *compiler) sameDims(p pos, l, r *value) {
	for i := range l.dims {
		if l.dims[i] != r.dims[i] {
			c.report(p, 47).want(dimText(r.dims), dimText(l.dims), "")
			return
		}
		if !tagsMatch(l.idxTags[i], r.idxTags[i], true) {
			c.report(p, 229, r.name())
		}
	}
}

// arrayCells returns the number of cells of an array with its indirection tables, 0 if a dimension is not known.
func arrayCells(dims []int32) int32 {
	n := int64(0)
	for i := len(dims) - 1; i >= 0; i-- {
		if dims[i] <= 0 {
			return 0
		}
		n = int64(dims[i]) + int64(dims[i])*n
		if n > maxCells {
			return maxCells + 1
		}
	}
	return int32(n)
}
