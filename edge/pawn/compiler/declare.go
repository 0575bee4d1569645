package compiler

import "fmt"

// place names a position in a message.
func (c *compiler) place(p pos) string { return fmt.Sprintf("%s(%d)", c.fileName(p.file), p.line) }

// evalDims evaluates the sizes of an array; 0 means []. root is the enumeration that the last size names.
func (c *compiler) evalDims(list []*node) (dims []int32, tags []int, root *symbol) {
	for _, n := range list {
		root = nil
		if n == nil {
			dims, tags = append(dims, 0), append(tags, 0)
			continue
		}
		v := c.constant(n)
		if v.value < 0 || v.value > maxCells || c.rationSet && v.tag == c.rationTag {
			c.report(n.pos, 9).want(fmt.Sprint(v.value), fmt.Sprintf("1 to %d", maxCells), "")
			v.value = 1
		}
		if v.field != nil && v.field.use&useEnumRoot != 0 {
			root = v.field
		}
		dims, tags = append(dims, v.value), append(tags, v.tag)
	}
	return dims, tags, root
}

// declareGlobal adds a global variable.
func (c *compiler) declareGlobal(v *node, cl class) {
	c.errFlag = false
	public := cl.public || v.name.text[0] == '@'
	s := &symbol{name: v.name, tag: v.tag, pos: v.pos, use: useDefined, states: max(int(v.states), 0), cells: 1}
	var root *symbol
	s.dims, s.idxTags, root = c.evalDims(v.list)
	if len(s.dims) > 0 {
		s.kind = kindArray
		if public {
			c.report(v.pos, 56, v.name.text).want("", "", "make the array private, or the variable a cell")
		}
	}
	switch {
	case v.states < 0:
		c.report(v.pos, 85, v.name.text)
	case v.states > 0 && public:
		c.report(v.pos, 88, v.name.text)
	case v.states > 0 && v.a != nil:
		c.report(v.pos, 89, v.name.text)
	}
	for _, old := range v.name.global {
		hidden := old.use&useStatic != 0 && old.pos.file != v.pos.file
		switch {
		case s.states > 0 && old.states == 0 && old.kind != kindConst && old.kind != kindFunc:
			c.report(v.pos, 233, v.name.text)
		case s.states > 0 && old.states > 0 && c.lists[s.states-1].automaton != c.lists[old.states-1].automaton:
		case s.states > 0 && old.states > 0 && !c.lists[s.states-1].meets(&c.lists[old.states-1]):
		case s.states == 0 && old.states > 0 && old.kind != kindConst:
		case !hidden:
			c.report(v.pos, 21, v.name.text).see("declared first at " + c.place(old.pos))
		}
	}
	s.init, s.cells = c.initials(v, s, root)
	for flag, on := range map[usage]bool{usePublic: public, useConst: cl.constant, useStock: cl.stock, useStatic: cl.static} {
		if on {
			s.use |= flag
		}
	}
	s.order = c.nextOrder()
	c.countData(int(s.cells))
	v.name.global = append(v.name.global, s)
	c.globals = append(c.globals, s)
	c.data = append(c.data, s)
}

// declareConsts adds the constants of n.
func (c *compiler) declareConsts(n *node) {
	for _, v := range n.list {
		c.errFlag = false
		k := c.constant(v.a)
		if k.kind != vNone && !tagsMatch(v.tag, k.tag, false) {
			c.report(v.pos, 213).want(c.tagName(k.tag)+":", c.tagName(v.tag)+":", "")
		}
		c.addConst(v.name, k.value, v.tag, v.pos, false)
	}
}

// declareEnum adds the constants of an enumeration. Its name is a constant with the value that a next field would have.
func (c *compiler) declareEnum(n *node) {
	c.errFlag = false
	var root *symbol
	if n.name != nil {
		if root = c.addConst(n.name, 0, n.tag, n.pos, false); root != nil {
			root.use |= useEnumRoot
		}
	}
	step, factor := int32(1), int32(1)
	if n.a != nil {
		k := c.constant(n.a).value
		switch n.tok {
		case tAddSet:
			step = k
		case tMulSet:
			factor = k
		case tShlSet:
			factor = 1 << min(uint32(k), 31)
		}
	}
	next := int32(0)
	for _, f := range n.list {
		size, fieldTag := step, 0
		if f.a != nil {
			k := c.constant(f.a)
			if size, fieldTag = k.value, k.tag; size <= 0 || size > maxCells {
				c.report(f.pos, 9).want(fmt.Sprint(size), fmt.Sprintf("1 to %d", maxCells), "")
				size = 1
			}
		}
		if f.b != nil {
			next = c.constant(f.b).value
		}
		s := c.addConst(f.name, next, n.tag, f.pos, true)
		if s == nil {
			c.errFlag = false
			continue
		}
		s.itemTag, s.fieldTag, s.size = f.tag, fieldTag, size
		if root != nil {
			s.use |= useEnumField
			root.fields = append(root.fields, s)
		}
		if factor == 1 {
			next += size
		} else {
			next *= size * factor
		}
	}
	if root != nil {
		root.value = next
	}
}

// initials evaluates the initial value of a variable and completes its dimensions. It returns the cells up to the last that is
// set, and the number of cells that the variable has.
func (c *compiler) initials(v *node, s *symbol, root *symbol) ([]int32, int32) {
	switch {
	case len(s.dims) == 0 && v.a == nil:
		return nil, 1
	case len(s.dims) == 0:
		if v.a.op == nString || v.a.op == nInit || v.a.op == nLiteral {
			c.report(v.a.pos, 6).want("an array", "a cell", "add [] to the name")
			return nil, 1
		}
		k := c.constant(v.a)
		if k.kind != vNone && !tagsMatch(s.tag, k.tag, true) {
			c.report(v.a.pos, 213).want(c.tagName(k.tag)+":", c.tagName(s.tag)+":", "")
		}
		return []int32{k.value}, 1
	}
	last := len(s.dims) - 1
	if v.a == nil {
		for i, d := range s.dims {
			if d == 0 {
				c.report(v.pos, 9).want("no size", "a size in brackets", "")
				s.dims[i] = 1
			}
		}
		if arrayCells(s.dims) > maxCells {
			c.report(v.pos, 9).want(dimText(s.dims), fmt.Sprintf("at most %d cells", maxCells), "")
			s.dims = []int32{1}
			s.idxTags = s.idxTags[:1]
		}
		size := arrayCells(s.dims)
		return c.tables(s.dims, nil), size
	}
	if last == 0 {
		b := builder{c: c, tag: s.tag, root: root}
		cells := b.vector(v.a, s.dims[0], false)
		if s.dims[0] == 0 {
			s.dims[0] = int32(len(cells))
			if len(cells) == 0 {
				c.report(v.a.pos, 9)
				s.dims[0] = 1
			}
		}
		return cells, s.dims[0]
	}
	return c.initMulti(v, s, root)
}

// initMulti evaluates the initial value of an array with several dimensions.
func (c *compiler) initMulti(v *node, s *symbol, root *symbol) ([]int32, int32) {
	if arrayCells(s.dims) > maxCells {
		c.report(v.pos, 9).want(dimText(s.dims), fmt.Sprintf("at most %d cells", maxCells), "")
		s.dims, s.idxTags = []int32{1}, s.idxTags[:1]
		return nil, 1
	}
	b := builder{c: c, tag: s.tag, root: root, counted: make([]int32, len(s.dims))}
	b.rows = nil
	b.level(v.a, s.dims, 0)
	last := len(s.dims) - 1
	bad := b.failed
	for i := range last {
		switch {
		case s.dims[i] == 0:
			s.dims[i] = b.counted[i]
		case b.counted[i] < s.dims[i]:
			if !b.failed {
				c.report(v.a.pos, 52).want(fmt.Sprint(b.counted[i]), fmt.Sprintf("%d rows", s.dims[i]), "")
			}
			bad = true
		}
		if s.dims[i] == 0 {
			if !bad {
				c.report(v.a.pos, 9)
			}
			bad = true
		}
	}
	rows := int32(1)
	for _, d := range s.dims[:last] {
		rows *= max(d, 1)
	}
	if bad || int(rows) != len(b.rows) {
		if !bad {
			c.report(v.a.pos, 52).want(fmt.Sprint(len(b.rows)), fmt.Sprintf("%d rows", rows), "")
		}
		for i := range s.dims {
			s.dims[i] = max(s.dims[i], 1)
		}
		return nil, min(arrayCells(s.dims), maxCells)
	}
	if s.dims[last] == 0 {
		same := true
		for _, r := range b.rows {
			same = same && len(r) == len(b.rows[0])
		}
		if same {
			s.dims[last] = int32(len(b.rows[0]))
		}
	}
	cells := c.tables(s.dims, b.rows)
	for _, r := range b.rows {
		cells = append(cells, r...)
	}
	return cells, int32(len(cells))
}

// tables makes the indirection tables of an array: each entry is the distance in bytes from itself to the row or table of its
// index. rows give the lengths where the last dimension has none.
func (c *compiler) tables(dims []int32, rows [][]int32) []int32 {
	last := len(dims) - 1
	if last == 0 {
		return nil
	}
	var out []int32
	total, level := int32(0), int32(1)
	for _, d := range dims[:last] {
		level *= d
		total += level
	}
	level = 1
	base := int32(0)
	for i, d := range dims[:last] {
		level *= d
		next := base + level // where the tables or rows of the next level begin
		at := next
		for k := range level {
			out = append(out, 4*(at-(base+k)))
			switch {
			case i < last-1:
				at += dims[i+1]
			case rows != nil && int(k) < len(rows):
				at += int32(len(rows[k]))
			default:
				at += dims[last]
			}
		}
		base = next
	}
	return out
}

// builder collects initial values.
type builder struct {
	c       *compiler
	tag     int
	root    *symbol
	rows    [][]int32
	counted []int32
	failed  bool
	total   int
}

// level reads the rows of dimension i.
func (b *builder) level(n *node, dims []int32, i int) {
	c := b.c
	if n.op != nInit {
		c.report(n.pos, 1).want("a value", `"{"`, "put each row into braces")
		b.failed = true
		return
	}
	count := int32(0)
	for _, e := range n.list {
		if dims[i] != 0 && count >= dims[i] {
			c.report(e.pos, 18).want(fmt.Sprint(len(n.list)), fmt.Sprintf("%d rows", dims[i]), "")
			b.failed = true
			return
		}
		count++
		if i+2 < len(dims) {
			b.level(e, dims, i+1)
			continue
		}
		row := b.vector(e, dims[i+1], true)
		if b.total += len(row); b.total > maxCells {
			c.report(e.pos, 9)
			panic(stopped{})
		}
		if len(row) == 0 {
			c.report(e.pos, 9)
			b.failed = true
			row = []int32{0}
		}
		b.rows = append(b.rows, row)
	}
	if b.counted[i] > 0 && count != b.counted[i] {
		number := 52
		if count > b.counted[i] {
			number = 18
		}
		c.report(n.pos, number).want(fmt.Sprint(count), fmt.Sprintf("%d rows", b.counted[i]), "")
		b.failed = true
	}
	b.counted[i] = max(b.counted[i], count)
}

// vector reads the values of one dimension of size cells, 0 for any. fill adds zeros up to the size.
func (b *builder) vector(n *node, size int32, fill bool) []int32 {
	c := b.c
	var out []int32
	ellipsis := false
	if n.op != nInit {
		out = b.value(out, n, b.tag)
	} else {
		out, ellipsis = b.values(n)
	}
	if ellipsis {
		step := int32(0)
		k := len(out)
		if k > 1 {
			step = out[k-1] - out[k-2]
		}
		switch {
		case size == 0 || k == 0:
			c.report(n.pos, 41)
		case k >= int(size):
			c.report(n.pos, 18).want(fmt.Sprintf("%d values and an ellipsis", k), fmt.Sprintf("%d cells", size), "")
		}
		for k > 0 && len(out) < int(size) {
			out = append(out, out[len(out)-1]+step)
		}
	}
	for fill && len(out) < int(size) {
		out = append(out, 0)
	}
	if size > 0 && len(out) > int(size) {
		c.report(n.pos, 18).want(fmt.Sprintf("%d cells", len(out)), fmt.Sprintf("%d cells", size), "")
		out = out[:size]
	}
	return out
}

// values reads a list in braces. With an enumeration as size each value fills its field.
func (b *builder) values(n *node) (out []int32, ellipsis bool) {
	c := b.c
	for i, e := range n.list {
		if e.op == nFill {
			return out, true
		}
		if b.root == nil {
			out = b.value(out, e, b.tag)
			continue
		}
		if i >= len(b.root.fields) {
			c.report(e.pos, 227)
			out = b.value(out, e, b.tag)
			continue
		}
		f := b.root.fields[i]
		begin := len(out)
		var step int32
		if e.op == nInit {
			for k, x := range e.list {
				if x.op == nFill {
					if k > 1 {
						step = out[len(out)-1] - out[len(out)-2]
					}
					for begin < len(out) && len(out)-begin < int(f.size) {
						out = append(out, out[len(out)-1]+step)
					}
					break
				}
				out = b.value(out, x, f.itemTag)
			}
		} else {
			out = b.value(out, e, f.itemTag)
		}
		if len(out)-begin > int(f.size) {
			c.report(e.pos, 228).want(fmt.Sprintf("%d cells", len(out)-begin), fmt.Sprintf("%d cells", f.size), "")
		}
		for len(out)-begin < int(f.size) {
			out = append(out, 0)
		}
	}
	return out, false
}

// value appends one value: a constant or a string.
func (b *builder) value(out []int32, n *node, tag int) []int32 {
	c := b.c
	switch n.op {
	case nString:
		return stringCells(out, n.chars, n.flag)
	case nInit:
		c.report(n.pos, 8).want("braces", "a value", "")
		return append(out, 0)
	}
	v := c.constant(n)
	if v.kind != vNone && !tagsMatch(tag, v.tag, true) {
		c.report(n.pos, 213).want(c.tagName(v.tag)+":", c.tagName(tag)+":", "")
	}
	return append(out, v.value)
}
