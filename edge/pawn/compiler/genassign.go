package compiler

import (
	"fmt"
	"strings"
)

func (c *compiler) genAssign(n *node) value {
	if c.inTest && n.tok == tAssign && !n.paren {
		c.report(n.pos, 211).want("", "", `write "==", or put the assignment in parentheses`)
	}
	left := c.genExpr(n.a)
	if left.kind == vNone {
		c.genExpr(n.b)
		return left
	}
	if left.kind == vArray {
		return c.assignArray(n, left)
	}
	if !left.lvalue() || left.isConst {
		c.report(n.a.pos, 22).want(c.describe(&left), "a variable", "")
		c.genExpr(n.b)
		return value{kind: vNone}
	}
	c.effect = true
	test := c.inTest
	c.inTest = false
	defer func() { c.inTest, c.effect = test, true }()
	if n.tok != tAssign {
		return c.assignOperation(n, left)
	}
	indirect := left.kind == vCell || left.kind == vChar
	if indirect {
		c.emit(opPushPri, 0)
	}
	right := c.genExpr(n.b)
	if right.kind == vArray && left.kind == vCell && left.value > 1 { // the field of an enumeration is an array
		dst := value{kind: vArray, sym: left.sym, dims: []int32{left.value}, idxTags: left.sym.idxTags[len(left.sym.idxTags)-1:], field: left.field}
		c.emit(opPopAlt, 0)
		c.emit(opMovs, 4*c.arrayLength(n.pos, &dst, &right))
		return value{kind: vExpr, tag: left.tag}
	}
	switch right.kind {
	case vNone:
		return right
	case vArray:
		c.report(n.pos, 6).want("an array", "a cell", "add an index")
		return value{kind: vNone}
	case vFunc:
		c.needCell(n.b, &right)
		return value{kind: vNone}
	}
	c.checkResult(n.b, &right)
	c.selfAssigned(n, &left, &right)
	c.load(&right)
	if f := c.operator("=", right.tag, left.tag); f != nil {
		right = c.callOperator(f, 1, false)
	}
	if indirect {
		c.emit(opPopAlt, 0)
	}
	c.store(&left)
	if !tagsMatch(left.tag, right.tag, true) {
		c.report(n.pos, 213).want(c.tagName(right.tag)+":", c.tagName(left.tag)+":", "")
	}
	return value{kind: vExpr, tag: left.tag}
}

// selfAssigned reports "a = a" and "a[1] = a[1]".
func (c *compiler) selfAssigned(n *node, left, right *value) {
	if left.kind != right.kind || left.sym == nil || left.sym != right.sym {
		return
	}
	if left.kind == vVar || left.kind == vCell && sameIndex(n.a, n.b) {
		c.report(n.pos, 226, left.name())
	}
}

// sameIndex reports whether two elements of an array have the same constant indices.
func sameIndex(a, b *node) bool {
	for a.op == nIndex && b.op == nIndex {
		x, y := a.b, b.b
		if x.op != y.op || x.value != y.value || x.name != y.name || x.op != nNumber {
			return false
		}
		a, b = a.a, b.a
	}
	return a.op == nName && b.op == nName && a.name == b.name
}

// assignOperation emits +=, <<= and so on. The address is evaluated once, before the value.
func (c *compiler) assignOperation(n *node, left value) value {
	indirect := left.kind == vCell || left.kind == vChar
	if indirect {
		c.emit(opPushPri, 0)
	}
	work := left
	c.load(&work)
	v := c.genOperation(n, n.tok, work, n.b)
	if v.kind == vNone {
		return v
	}
	c.load(&v)
	if f := c.operator("=", v.tag, left.tag); f != nil {
		v = c.callOperator(f, 1, false)
	}
	if indirect {
		c.emit(opPopAlt, 0)
	}
	c.store(&left)
	return value{kind: vExpr, tag: left.tag}
}

func (c *compiler) assignArray(n *node, left value) value {
	switch {
	case n.tok != tAssign:
		c.report(n.pos, 23).want(operators[n.tok]+"=", `"="`, "")
		return value{kind: vNone}
	case left.literal || left.result != nil:
		c.report(n.a.pos, 22).want(c.describe(&left), "a variable", "")
		return value{kind: vNone}
	case left.isConst:
		c.report(n.a.pos, 22).want(c.describe(&left), "a variable", "")
		return value{kind: vNone}
	case arrayCells(left.dims) == 0:
		c.report(n.a.pos, 46, left.name())
		return value{kind: vNone}
	}
	test := c.inTest
	c.inTest = false
	defer func() { c.inTest, c.effect = test, true }()
	c.emit(opPushPri, 0)
	right := c.genExpr(n.b)
	if right.kind == vNone {
		return right
	}
	if right.kind == vCell && right.value > 1 {
		right = value{kind: vArray, sym: right.sym, dims: []int32{right.value}, idxTags: []int{0}, literal: true, value: -right.value}
	}
	if right.kind != vArray {
		c.report(n.pos, 33, left.name()).want("a cell", "an array", "")
		return value{kind: vNone}
	}
	if !tagsMatch(left.tag, right.tag, true) {
		c.report(n.pos, 213).want(c.tagName(right.tag)+":", c.tagName(left.tag)+":", "")
	}
	cells := c.arrayLength(n.pos, &left, &right)
	if cells == 0 {
		return value{kind: vNone}
	}
	if left.sym != nil {
		left.sym.use |= useWritten
	}
	c.emit(opPopAlt, 0)
	if len(left.dims) == 1 || left.root && right.root {
		c.emit(opMovs, 4*cells)
	} else {
		c.copyRows(left.dims[0], left.dims[1])
	}
	return value{kind: vExpr, tag: left.tag}
}

// copyRows copies an array of two dimensions row by row: PRI and ALT have the addresses of the source and of the destination, and the indirection tables of
// both stay as they are.
func (c *compiler) copyRows(rows, cells int32) {
	top := c.newLabel()
	c.emit(opPushAlt, 0)
	c.emit(opPushPri, 0)
	c.emit(opZeroAlt, 0)
	c.emit(opLabel, top)
	c.emit(opPushAlt, 0) // index; below it source and destination
	c.rowAddress(8)      // destination
	c.emit(opPushPri, 0)
	c.emit(opPick, 4)
	c.emit(opMoveAlt, 0)
	c.rowAddress(8) // source, one cell deeper now
	c.emit(opPopAlt, 0)
	c.emit(opMovs, 4*cells)
	c.emit(opPopAlt, 0)
	c.emit(opIncAlt, 0)
	c.emit(opEqCAlt, rows)
	c.emit(opJzer, top)
	c.emit(opPopPri, 0)
	c.emit(opPopAlt, 0)
}

// rowAddress puts the address of row ALT of the array whose address is at depth on the stack into PRI.
func (c *compiler) rowAddress(depth int32) {
	c.emit(opPick, depth)
	c.emit(opXchg, 0)
	c.emit(opIdxaddr, 0)
	c.emit(opMoveAlt, 0)
	c.emit(opLoadI, 0)
	c.emit(opAdd, 0)
}

// genIndex emits a[i] and a{i}.
func (c *compiler) genIndex(n *node) value {
	mark := len(c.code)
	base := c.genExpr(n.a)
	if base.kind == vCell && base.value > 1 && base.field != nil { // a field of an enumeration is an array itself
		base = value{kind: vArray, sym: base.sym, tag: base.tag, dims: []int32{base.value}, idxTags: []int{base.field.fieldTag}, isConst: base.isConst,
			field: base.field}
		mark = -1
	}
	if base.kind != vArray || base.literal || base.result != nil {
		if base.kind != vNone {
			c.report(n.pos, 28, nameOf(n.a)).want("", "an array", "")
		}
		c.genExpr(n.b)
		return value{kind: vNone}
	}
	if len(base.dims) > 1 && n.flag {
		c.report(n.pos, 51)
		return value{kind: vNone}
	}
	// the base of a whole variable is one instruction, which can be emitted again behind the index
	var again *instr
	if mark >= 0 && len(c.code) == mark+1 && n.a.op == nName {
		in := c.code[mark]
		again = &in
	}
	test, effect := c.inTest, c.effect
	c.inTest = false
	end := len(c.code)
	if again == nil {
		c.emit(opPushPri, 0)
	} else {
		c.code = c.code[:mark]
	}
	index := c.genTagged(n.b, base.idxTags[0])
	c.inTest = test
	if index.kind == vNone || !c.needCell(n.b, &index) {
		return value{kind: vNone}
	}
	c.checkResult(n.b, &index)
	if n.b.op == nCall {
		c.effect = effect
	}
	if !tagsMatch(base.idxTags[0], index.tag, true) {
		c.report(n.b.pos, 213).want(c.tagName(index.tag)+":", c.tagName(base.idxTags[0])+":", "")
	}
	v := value{kind: vCell, sym: base.sym, tag: base.tag, isConst: base.isConst, index: -1}
	if index.kind == vConst {
		c.code = c.code[:end]
		if again != nil {
			c.code = append(c.code[:mark], *again)
		}
		c.constIndex(n, &base, &index, &v)
	} else {
		c.computedIndex(n, &base, &index, again)
	}
	if len(base.dims) > 1 {
		c.emit(opMoveAlt, 0)
		c.emit(opLoadI, 0)
		c.emit(opAdd, 0)
		return value{kind: vArray, sym: base.sym, tag: base.tag, dims: base.dims[1:], idxTags: base.idxTags[1:], isConst: base.isConst}
	}
	if n.flag {
		v.kind = vChar
	}
	return v
}

func nameOf(n *node) string {
	for n.op == nIndex || n.op == nCall {
		n = n.a
	}
	if n.name != nil {
		return n.name.text
	}
	return "(expression)"
}

// constIndex adds a constant index to the address in PRI.
func (c *compiler) constIndex(n *node, base, index, v *value) {
	size, unit := int64(base.dims[0]), int32(4)
	if n.flag {
		size, unit = 4*size, 1
	}
	if index.value < 0 || size > 0 && int64(index.value) >= size {
		c.report(n.b.pos, 32, base.name()).want(fmt.Sprint(index.value), fmt.Sprintf("0 to %d", size-1), "")
		return
	}
	v.index = index.value
	if index.value != 0 {
		c.emit(opAddC, unit*index.value)
	}
	if n.flag {
		c.emit(opAlignPri, 1)
	}
	if f := index.field; f != nil && f.size > 0 && len(base.dims) == 1 && f.use&useEnumField != 0 {
		v.tag, v.value, v.field = f.itemTag, f.size, f
	}
}

// computedIndex turns the index in PRI into an address.
func (c *compiler) computedIndex(n *node, base, index *value, again *instr) {
	c.load(index)
	if size := base.dims[0]; size != 0 && c.opt.Debug > 0 {
		if n.flag {
			size *= 4
		}
		c.emit(opBounds, size-1)
	}
	if again != nil {
		in := *again
		in.op++ // load.s.pri, addr.pri and const.pri are followed by their twins for ALT
		c.code = append(c.code, in)
	} else {
		c.emit(opPopAlt, 0)
	}
	if !n.flag {
		c.emit(opIdxaddr, 0)
		return
	}
	c.emit(opAdd, 0)
	c.emit(opAlignPri, 1)
}

func dimText(dims []int32) string {
	var b strings.Builder
	for _, d := range dims {
		fmt.Fprintf(&b, "[%d]", d)
	}
	return b.String()
}
