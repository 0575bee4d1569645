package compiler

import "slices"

// maxArgs is the largest number of formal or actual arguments.
const maxArgs = 64

// parseFormals reads the formal arguments behind the opening parenthesis. The first declaration of a function fixes them; a later
// one must be the same.
func (c *compiler) parseFormals(f *function, public bool) []arg {
	var args []arg
	start := c.peek().pos
	if !c.take(tClose) {
		for {
			a, ok := c.parseFormal(public)
			if ok {
				args = append(args, a)
			}
			if len(args) > maxArgs {
				c.report(start, 45)
				args = args[:maxArgs]
			}
			if ok && a.kind == argRest || !c.take(tComma) {
				break
			}
		}
		if !c.need(tClose) {
			for k := c.peek().kind; k != tClose && k != tEnd && k != tBrace; k = c.peek().kind {
				c.next()
			}
			c.take(tClose)
		}
	}
	c.resolveSizes(args)
	if f.sym.use&useProto != 0 {
		if !slices.EqualFunc(f.args, args, sameFormal) {
			c.report(start, 25, f.sym.name.text).see("declared first at " + c.place(f.sym.pos))
		}
		return args
	}
	f.args = args
	return args
}

// parseFormal reads one formal argument.
func (c *compiler) parseFormal(public bool) (arg, bool) {
	a := arg{tags: []int{0}}
	tagged := false
	for {
		t := c.next()
		a.pos = t.pos
		switch t.kind {
		case tAmp:
			if a.kind == argRef || tagged {
				c.report(t.pos, 1).want(`"&"`, "a name", `write "&" before the tag`)
			}
			a.kind = argRef
			continue
		case tConst:
			if a.kind == argRef || tagged || a.isConst {
				c.report(t.pos, 1).want(`"const"`, "a name", `write "const" first`)
			}
			a.isConst = true
			continue
		case tLabel:
			if tagged {
				c.report(t.pos, 1).want("a second tag", "a name", "put several tags into braces")
			}
			tagged = true
			a.tags = []int{c.tagOf(t.name.text)}
			continue
		case tBrace:
			if tagged {
				c.report(t.pos, 1).want("a second tag", "a name", "")
			}
			tagged = true
			a.tags = c.parseTags()
			continue
		case tEllipsis:
			if a.kind == argRef {
				c.report(t.pos, 10)
			}
			a.kind = argRest
			return a, true
		case tName:
			a.name = t.name
			if t.name.text[0] == '@' {
				c.report(t.pos, 56, t.name.text)
			}
			c.formalRest(&a, public)
			return a, true
		}
		c.report(t.pos, 10).want(t.String(), "an argument", "")
		if t.kind != tClose && t.kind != tComma {
			c.skipTo(tComma, tClose)
		} else {
			c.push(t)
		}
		return a, false
	}
}

// skipTo drops tokens before one of the kinds, at most to the end of the text or a brace.
func (c *compiler) skipTo(kinds ...kind) {
	for {
		k := c.peek().kind
		if k == tEnd || k == tBrace || k == tBraceEnd || slices.Contains(kinds, k) {
			return
		}
		c.next()
	}
}

// parseTags reads "a, b}:".
func (c *compiler) parseTags() []int {
	var tags []int
	for {
		t := c.next()
		switch t.kind {
		case tName, tUnderscore:
			tags = append(tags, c.tagOf(t.name.text))
		default:
			c.report(t.pos, 1).want(t.String(), "a tag", "")
			c.push(t)
			return append(tags, 0)
		}
		if len(tags) > maxArgs {
			c.report(t.pos, 102, "number of tags", maxArgs)
		}
		if c.take(tBraceEnd) {
			c.need(tColon)
			return tags
		}
		if !c.need(tComma) {
			return tags
		}
	}
}

// formalRest reads dimensions and default value behind the name of an argument.
func (c *compiler) formalRest(a *arg, public bool) {
	n := c.newNode(nVar, a.pos)
	n.name, n.tag = a.name, a.tags[0]
	c.parseDims(n)
	var root *symbol
	if len(n.list) > 0 {
		if a.kind == argRef {
			c.report(a.pos, 67, a.name.text).want("", "", `remove "&": arrays are passed by reference`)
		}
		a.kind = argArray
		a.dims, a.idxTags, root = c.evalDims(n.list)
	}
	if !c.take(tAssign) {
		return
	}
	if public {
		c.report(a.pos, 59, a.name.text)
	}
	if a.kind == argArray {
		n.a = c.parseInit(0)
		s := &symbol{name: a.name, kind: kindArray, tag: a.tags[0], dims: slices.Clone(a.dims), idxTags: slices.Clone(a.idxTags)}
		a.data, a.cells = c.initials(n, s, root)
		a.hasValue = true
		if len(a.data) == 0 {
			a.data = []int32{0}
		}
		a.cells = max(a.cells, int32(len(a.data)))
		return
	}
	if k := c.peek().kind; k == tSizeof || k == tTagof {
		a.tagof = k == tTagof
		c.next()
		c.parseSizeOf(a)
		return
	}
	v := c.constant(c.parseExpr())
	a.hasValue, a.value, a.valueTag = true, v.value, v.tag
	if v.kind != vNone && !tagsMatch(a.tags[0], v.tag, true) {
		c.report(a.pos, 213).want(c.tagName(v.tag)+":", c.tagName(a.tags[0])+":", "")
	}
}

// parseSizeOf reads the argument whose size or tag is the default value.
func (c *compiler) parseSizeOf(a *arg) {
	if a.kind == argRef {
		c.report(a.pos, 66, a.name.text)
	}
	parens := 0
	for c.take(tOpen) {
		parens++
	}
	t := c.next()
	if t.kind != tName {
		c.report(t.pos, 1).want(t.String(), "the name of an argument", "")
		c.push(t)
		return
	}
	a.sizeOf = t.name
	a.hasValue = true
	for !a.tagof && c.take(tBracket) {
		a.level++
		c.need(tBracketEnd)
	}
	for ; parens > 0; parens-- {
		c.need(tClose)
	}
}

// resolveSizes checks the arguments that are named in default values.
func (c *compiler) resolveSizes(args []arg) {
	for i := range args {
		a := &args[i]
		if a.name != nil {
			for k := range i {
				if args[k].name == a.name {
					c.report(a.pos, 21, a.name.text)
				}
			}
		}
		if a.sizeOf == nil {
			continue
		}
		k := slices.IndexFunc(args, func(o arg) bool { return o.name == a.sizeOf })
		if k < 0 {
			c.report(a.pos, 17, a.sizeOf.text).want("", "the name of an argument", "")
			continue
		}
		switch o := &args[k]; {
		case a.level > 0 && a.level >= len(o.dims):
			c.report(a.pos, 28, a.name.text)
		case a.tagof && o.kind == argArray && a.level > 0:
			c.report(a.pos, 81, a.name.text)
		case !a.tagof && o.kind != argArray:
			c.report(a.pos, 223, o.name.text)
		}
	}
}

// sameFormal reports whether two declarations of an argument are the same.
func sameFormal(a, b arg) bool {
	return a.name == b.name && a.kind == b.kind && a.isConst == b.isConst && slices.Equal(a.tags, b.tags) && slices.Equal(a.dims, b.dims) &&
		slices.Equal(a.idxTags, b.idxTags) && a.hasValue == b.hasValue && a.value == b.value && a.valueTag == b.valueTag &&
		a.sizeOf == b.sizeOf && a.tagof == b.tagof && a.level == b.level && slices.Equal(a.data, b.data)
}
