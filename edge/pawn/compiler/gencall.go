package compiler

import "fmt"

// opKey identifies an operator that the script defines. tag2 is -1 for one operand, and the tag of the result for "=".
type opKey struct {
	op         string
	tag1, tag2 int
}

// operator returns the function that the script defines for an operator on these tags, nil for none. Inside that function the
// operator has its usual meaning.
func (c *compiler) operator(op string, tag1, tag2 int) *function {
	if tag1 == 0 && tag2 <= 0 || len(c.operators) == 0 {
		return nil
	}
	if op == "=" && tag1 == tag2 {
		return nil
	}
	f := c.operators[opKey{op, tag1, tag2}]
	if f == nil || c.body != nil && c.body.fn == f {
		return nil
	}
	return f
}

// callOperator calls an operator whose operands are in PRI (one) or in PRI and ALT. leftInPri tells the order.
func (c *compiler) callOperator(f *function, operands int32, leftInPri bool) value {
	if f.sym.use&useNative == 0 && len(f.bodies) == 0 {
		c.report(c.here(), 4, f.operator)
	}
	switch {
	case operands == 1:
		c.emit(opPushPri, 0)
	case leftInPri:
		c.emit(opPushAlt, 0)
		c.emit(opPushPri, 0)
	default:
		c.emit(opPushPri, 0)
		c.emit(opPushAlt, 0)
	}
	c.emitCall(f, operands)
	return value{kind: vExpr, tag: f.sym.tag, result: f}
}

// emitCall calls f with so many arguments on the stack; the stack is clean afterwards.
func (c *compiler) emitCall(f *function, args int32) {
	c.reach(f)
	c.emit(opPushC, 4*args)
	if f.sym.use&useNative == 0 {
		c.code = append(c.code, instr{op: opCall, fn: f})
		return
	}
	if f.native < 0 && !f.fixed {
		f.native = len(c.natives)
		c.natives = append(c.natives, f)
	}
	c.code = append(c.code, instr{op: opSysreqC, a: int32(f.native)})
	c.emit(opStack, 4*(args+1))
}

// call is the state of the arguments of one call.
type call struct {
	n     *node
	f     *function
	done  []bool
	from  []int // code of each argument in argCode
	to    []int
	sizes map[*name][]int32
	tags  map[*name]int
	count int
	heap  int32
	named bool
}

func (c *compiler) genCall(n *node) value {
	f := c.callee(n)
	if f == nil {
		for _, a := range n.list {
			if a.a != nil {
				c.genExpr(a.a)
			}
		}
		return value{kind: vNone}
	}
	if f.deprecated {
		c.report(n.pos, 234, f.sym.name.text, f.why)
	}
	c.resolveResult(f)
	heapBefore := c.heap
	var cells int32
	if f.returnsArray() {
		if cells = arrayCells(f.retDims); cells == 0 {
			c.report(n.pos, 46, f.sym.name.text)
			return value{kind: vNone}
		}
		c.modifyHeap(cells)
		c.emit(opPushAlt, 0)
	}
	k := &call{n: n, f: f}
	start := len(c.argCode)
	test := c.inTest
	c.inTest = false
	heap := c.heap
	total := max(len(f.args), len(n.list))
	k.done, k.from, k.to = make([]bool, total), make([]int, total), make([]int, total)
	ok := c.genArgs(k) && c.defaultArgs(k)
	c.inTest = test
	for i := total - 1; i >= 0; i-- { // the last argument is evaluated first (PLEO-AMX-04)
		c.code = append(c.code, c.argCode[k.from[i]:k.to[i]]...)
	}
	c.argCode = c.argCode[:start]
	if !ok {
		c.heap = heapBefore + cells
		return value{kind: vNone}
	}
	c.emitCall(f, int32(k.count))
	c.freeHeap(heap)
	c.effect = true
	v := value{kind: vExpr, tag: f.sym.tag, result: f}
	if f.returnsArray() {
		c.emit(opPopPri, 0)
		v.kind, v.dims, v.idxTags, v.root = vArray, f.retDims, f.retIdx, true
	}
	return v
}

// callee finds the function of a call.
func (c *compiler) callee(n *node) *function {
	name := n.a.name
	s := c.lookup(name)
	if s == nil || s.kind == kindFunc && s.fn == nil {
		if k, _ := c.findConst(name, 0); k == nil {
			c.undefined(n.pos, name.text)
			return nil
		}
	}
	if s == nil || s.kind != kindFunc {
		c.report(n.pos, 12).want(quote(name.text), "a function", "")
		return nil
	}
	f := s.fn
	if s.use&useNative == 0 && len(f.bodies) == 0 {
		c.report(n.pos, 4, name.text).want("", "", "write its body, or declare it native")
		return nil
	}
	if s.tag != 0 && s.use&useForward == 0 && len(f.bodies) > 0 && c.body != nil && f.bodies[0].order > c.body.order && !f.usedTagged {
		f.usedTagged = true
		c.report(f.bodies[0].pos, 208, name.text).want("", "", "declare it forward before its use")
	}
	return f
}

// genArgs evaluates the arguments that the call has. It returns false after an error that leaves the call without meaning.
func (c *compiler) genArgs(k *call) bool {
	ok := true
	index := 0
	f := k.f
	for i, a := range k.n.list {
		at := i
		switch {
		case a.name != nil:
			k.named = true
			if at = f.argNamed(a.name); at < 0 {
				c.report(a.pos, 17, a.name.text).closest(a.name.text, func() []string { return f.argNames() })
				return false
			}
			index = at
		case k.named:
			c.report(a.pos, 44)
			return false
		}
		if at >= 64 {
			c.report(a.pos, 45).want(fmt.Sprint(len(k.n.list)), "at most 64", "")
			return false
		}
		if k.done[at] {
			c.report(a.pos, 58)
			return false
		}
		var formal *arg
		if index < len(f.args) {
			formal = &f.args[index]
		}
		if a.a == nil {
			if formal == nil || formal.kind == argRest {
				c.report(a.pos, 202)
				return false
			}
			if !formal.hasValue {
				c.report(a.pos, 34, at+1)
				return false
			}
			index++
			continue
		}
		k.done[at] = true
		k.count++
		if formal == nil {
			c.report(a.pos, 202).want(fmt.Sprint(len(k.n.list)), fmt.Sprintf("%d arguments", len(f.args)), "")
			formal = &arg{kind: argRest, tags: []int{0}}
		}
		if formal.kind != argRest {
			index++
		}
		ok = c.collect(k, at, func() bool { return c.genArg(k, formal, a, at) }) && ok
	}
	return ok
}

// collect runs gen and keeps its code as the code of argument at.
func (c *compiler) collect(k *call, at int, gen func() bool) bool {
	mark := len(c.code)
	ok := gen()
	k.from[at] = len(c.argCode)
	c.argCode = append(c.argCode, c.code[mark:]...)
	k.to[at] = len(c.argCode)
	c.code = c.code[:mark]
	return ok
}

// onHeap puts PRI into a new cell on the heap and leaves its address in PRI.
func (c *compiler) onHeap() {
	c.modifyHeap(1)
	c.emit(opStorI, 0)
	c.emit(opMovePri, 0)
}

func (c *compiler) genArg(k *call, formal *arg, a *node, at int) bool {
	want := 0
	if len(formal.tags) == 1 {
		want = formal.tags[0]
	}
	v := c.genTagged(a.a, want)
	if v.kind == vNone {
		return false
	}
	ok := true
	mismatch := func(found, expected string) {
		c.report(a.pos, 35, at+1).want(found, expected, "")
		ok = false
	}
	switch formal.kind {
	case argRest:
		c.genRest(formal, &v, a)
	case argValue:
		if v.kind == vArray || v.kind == vFunc {
			mismatch(c.describe(&v), "a cell")
			return false
		}
		c.checkResult(a.a, &v)
		tag := v.tag
		c.load(&v)
		if f := c.operator("=", tag, want); f != nil && len(formal.tags) == 1 {
			v.tag = c.callOperator(f, 1, false).tag
		}
	case argRef:
		switch {
		case !v.lvalue() || v.kind == vChar:
			mismatch(c.describe(&v), "a variable")
		case v.isConst && !formal.isConst:
			mismatch(c.describe(&v), "a variable that may change")
		case v.kind == vVar || v.kind == vRef:
			c.address(v.sym, false)
		}
		if v.sym != nil {
			v.sym.use |= useWritten
		}
	case argArray:
		if v.kind != vArray && v.kind != vCell {
			mismatch("a cell", "an array")
			return false
		}
		if v.isConst && !formal.isConst {
			mismatch(c.describe(&v), "an array that may change")
			return false
		}
		ok = c.checkArrayArg(k, formal, &v, a)
	}
	if !c.tagAllowed(formal.tags, v.tag) {
		c.report(a.pos, 213).want(c.tagName(v.tag)+":", c.tagName(want)+":", "")
	}
	if v.tag != 0 && formal.name != nil {
		if k.tags == nil {
			k.tags = map[*name]int{}
		}
		k.tags[formal.name] = v.tag
	}
	c.emit(opPushPri, 0)
	return ok
}

func (c *compiler) tagAllowed(tags []int, tag int) bool {
	for _, t := range tags {
		if tagsMatch(t, tag, true) {
			return true
		}
	}
	return len(tags) == 0
}

// genRest passes an argument by reference, as the language passes all arguments in place of "...".
func (c *compiler) genRest(formal *arg, v *value, a *node) {
	switch v.kind {
	case vVar, vRef:
		if v.isConst && !formal.isConst {
			c.load(v)
			c.onHeap()
			return
		}
		c.address(v.sym, false)
	case vConst, vExpr, vChar:
		c.checkResult(a.a, v)
		c.load(v)
		c.onHeap()
	case vFunc:
		c.needCell(a.a, v)
	}
	if v.sym != nil {
		v.sym.use |= useWritten
	}
}

// checkArrayArg compares an array with the formal argument and notes its sizes, for arguments whose default is sizeof.
func (c *compiler) checkArrayArg(k *call, formal *arg, v *value, a *node) bool {
	if k.sizes == nil {
		k.sizes = map[*name][]int32{}
	}
	wrong := func(number int, found []int32) bool {
		c.report(a.pos, number).want(dimText(found), dimText(formal.dims), "")
		return false
	}
	if v.literal || v.kind == vCell {
		size := v.value
		if size < 0 {
			size = -size
		}
		if len(formal.dims) != 1 {
			return wrong(48, []int32{size})
		}
		switch d := formal.dims[0]; {
		case d == 0:
		case v.kind == vCell:
			return wrong(47, []int32{1})
		case v.value > 0 && d != size || v.value < 0 && d < size:
			return wrong(47, []int32{size})
		}
		if v.kind != vCell || size > 0 {
			k.sizes[formal.name] = []int32{size}
		}
		return true
	}
	if len(v.dims) != len(formal.dims) {
		return wrong(48, v.dims)
	}
	for i, d := range formal.dims {
		if d != 0 && v.dims[i] != d {
			return wrong(47, v.dims)
		}
		if !tagsMatch(formal.idxTags[i], v.idxTags[i], true) {
			c.report(a.pos, 229, v.name())
		}
	}
	k.sizes[formal.name] = v.dims
	return true
}

// defaultArgs pushes the default values of the arguments that the call leaves out; sizeof and tagof at the end, when all sizes are known.
func (c *compiler) defaultArgs(k *call) bool {
	for i := range k.f.args {
		formal := &k.f.args[i]
		if formal.kind == argRest || k.done[i] || formal.sizeOf != nil {
			continue
		}
		if !formal.hasValue {
			c.report(k.n.pos, 202).want(fmt.Sprint(len(k.n.list)), c.expectedArgs(k.f), "")
			return false
		}
		k.count++
		c.collect(k, i, func() bool { return c.pushDefault(k, formal) })
	}
	for i := range k.f.args {
		formal := &k.f.args[i]
		if formal.kind == argRest || k.done[i] || formal.sizeOf == nil {
			continue
		}
		v := int32(1)
		if formal.tagof {
			v = c.tagValue(k.tags[formal.sizeOf]).value
		} else if sizes, ok := k.sizes[formal.sizeOf]; ok && formal.level < len(sizes) {
			if v = sizes[formal.level]; v == 0 {
				c.report(k.n.pos, 224, formal.name.text)
			}
		}
		k.count++
		c.collect(k, i, func() bool { c.emit(opPushC, v); return true })
	}
	return true
}

func (c *compiler) expectedArgs(f *function) string {
	need := 0
	for _, a := range f.args {
		if a.kind != argRest && !a.hasValue && a.sizeOf == nil {
			need++
		}
	}
	if need == len(f.args) {
		return fmt.Sprintf("%d arguments", need)
	}
	return fmt.Sprintf("at least %d arguments", need)
}

func (c *compiler) pushDefault(k *call, formal *arg) bool {
	switch formal.kind {
	case argArray:
		if formal.dataSym == nil {
			formal.dataSym = &symbol{name: formal.name, kind: kindArray, use: useRead, init: formal.data, cells: int32(len(formal.data))}
			c.data = append(c.data, formal.dataSym)
			c.countData(len(formal.data))
		}
		c.emitSym(opConstPri, formal.dataSym, 0)
		if !formal.isConst {
			c.modifyHeap(formal.cells)
			c.emit(opMovs, 4*int32(len(formal.data)))
			c.emit(opMovePri, 0)
		}
		if k.sizes == nil {
			k.sizes = map[*name][]int32{}
		}
		k.sizes[formal.name] = formal.dims
		if len(formal.dims) == 1 {
			k.sizes[formal.name] = []int32{formal.cells}
		}
	case argRef:
		c.loadConst(opConstPri, formal.value)
		c.onHeap()
	default:
		c.loadConst(opConstPri, formal.value)
		if f := c.operator("=", formal.valueTag, formal.tags[0]); f != nil {
			c.callOperator(f, 1, false)
		}
	}
	c.emit(opPushPri, 0)
	return true
}

func (f *function) argNamed(n *name) int {
	for i, a := range f.args {
		if a.name == n && a.kind != argRest {
			return i
		}
	}
	return -1
}

func (f *function) argNames() []string {
	var out []string
	for _, a := range f.args {
		if a.name != nil {
			out = append(out, a.name.text)
		}
	}
	return out
}
