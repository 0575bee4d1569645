package compiler

// class holds the class specifiers of a declaration.
type class struct {
	public, static, stock, constant bool
}

// parseFile reads all declarations.
func (c *compiler) parseFile() {
	for {
		c.errFlag = false
		before := c.progress()
		t := c.next()
		switch t.kind {
		case tEnd:
			return
		case tNew, tStatic, tPublic, tStock:
			cl, ok := c.parseClass(t)
			if ok {
				c.parseDeclaration(cl, t.kind == tNew)
			}
		case tConst:
			n := c.newNode(nConst, t.pos)
			c.parseConsts(n)
			c.declareConsts(n)
		case tEnum:
			n := c.newNode(nEnum, t.pos)
			c.parseEnum(n)
			c.declareEnum(n)
		case tNative, tForward:
			c.parsePrototype(t.kind == tNative)
		case tBraceEnd:
			c.report(t.pos, 54).want("", "", `remove "}" or add "{" before it`)
		case tBrace:
			c.report(t.pos, 55)
			c.skipLine()
		case tName, tLabel, tOperator, tExit, tAt:
			c.push(t)
			c.parseFunctionOnly()
		case tSemi, tTerm:
		default:
			c.report(t.pos, 10).want(t.String(), "a declaration or a function", "")
			c.skipLine()
		}
		if c.progress() == before {
			c.next()
		}
	}
}

// skipLine drops the rest of the line.
func (c *compiler) skipLine() {
	if c.pushed > 0 {
		if c.tokens[0].first {
			return
		}
		c.pushed = 0
	}
	if c.text != nil {
		c.at = len(c.text) - 1
	}
}

func (c *compiler) parseClass(first token) (class, bool) {
	var cl class
	t := first
	for {
		var flag *bool
		switch t.kind {
		case tNew:
			if t.pos != first.pos {
				c.push(t)
				return cl, true
			}
		case tPublic:
			flag = &cl.public
		case tStatic:
			flag = &cl.static
		case tStock:
			flag = &cl.stock
		case tConst:
			flag = &cl.constant
		default:
			c.push(t)
			if cl.static && cl.public {
				c.report(t.pos, 42).want("static and public", "one of them", "")
				c.skipLine()
				return cl, false
			}
			return cl, true
		}
		if flag != nil {
			if *flag {
				c.report(t.pos, 42).want("the same word twice", "", "")
				c.skipLine()
				return cl, false
			}
			*flag = true
		}
		t = c.next()
	}
}

// parseTag reads an optional tag.
func (c *compiler) parseTag() (tag int, explicit bool) {
	t := c.peek()
	if t.kind != tLabel {
		return 0, false
	}
	tag = c.tagOf(t.name.text)
	c.next()
	return tag, true
}

// parseDeclaration reads what follows class specifiers: variables, or a function unless only is set.
func (c *compiler) parseDeclaration(cl class, only bool) {
	tag, _ := c.parseTag()
	t := c.next()
	if t.kind == tExit {
		t.kind, t.name = tName, c.intern("exit")
	}
	switch {
	case t.kind == tNative:
		c.report(t.pos, 42).want("native", "", "")
		c.skipLine()
		return
	case t.kind == tOperator && !only:
		c.parseFunction(cl, tag, token{kind: tOperator, pos: t.pos})
		return
	case t.kind != tName:
		c.report(t.pos, 1).want(t.String(), "a name", "")
		c.push(t)
		c.skipLine()
		return
	}
	if c.peek().kind == tOpen && !only && !cl.constant && !(cl.public && cl.stock) {
		c.parseFunction(cl, tag, t)
		return
	}
	for first := true; ; first = false {
		if !first {
			tag, _ = c.parseTag()
			t = c.next()
			if t.kind != tName {
				c.report(t.pos, 20, t.String()).want(t.String(), "a name", "")
				c.push(t)
				c.skipLine()
				return
			}
		}
		v := c.parseVar(t, tag)
		c.declareGlobal(v, cl)
		if !c.takeComma() {
			break
		}
	}
	c.needTerm()
}

// parseVar reads dimensions, states and initial value behind the name of a variable.
func (c *compiler) parseVar(t token, tag int) *node {
	v := c.newNode(nVar, t.pos)
	v.name, v.tag = t.name, tag
	c.parseDims(v)
	v.states = int32(c.parseStates(t.name))
	if c.take(tAssign) {
		v.a = c.parseInit(0)
	}
	return v
}

// parseDims reads the sizes in brackets into n.list.
func (c *compiler) parseDims(n *node) {
	for c.peek().kind == tBracket {
		if t := c.next(); len(n.list) == 3 {
			c.report(t.pos, 53).want("a fourth dimension", "at most three", "")
			c.skipLine()
			return
		}
		if c.take(tBracketEnd) {
			n.list = append(n.list, nil)
			continue
		}
		n.list = append(n.list, c.parseExpr())
		c.need(tBracketEnd)
	}
}

// parseInit reads an initial value: an expression, or a list in braces.
func (c *compiler) parseInit(depth int) *node {
	t := c.peek()
	if t.kind != tBrace {
		return c.parseExpr()
	}
	c.enter(t.pos)
	defer func() { c.depth-- }()
	n := c.newNode(nInit, t.pos)
	c.next()
	for {
		t = c.peek()
		switch t.kind {
		case tBraceEnd:
			c.next()
			return n
		case tEllipsis:
			n.list = append(n.list, c.newNode(nFill, t.pos))
			c.next()
		default:
			n.list = append(n.list, c.parseInit(depth+1))
		}
		if len(n.list) > maxCells {
			c.report(t.pos, 102, "number of initial values", maxCells)
		}
		if !c.take(tComma) {
			break
		}
	}
	if c.peek().kind == tEllipsis { // the comma before it may be left out
		n.list = append(n.list, c.newNode(nFill, c.next().pos))
	}
	c.need(tBraceEnd)
	return n
}

// parseConsts reads "name = value, ..." into the list of n.
func (c *compiler) parseConsts(n *node) {
	for {
		tag, _ := c.parseTag()
		t := c.next()
		if t.kind != tName {
			c.report(t.pos, 20, t.String()).want(t.String(), "a name", "")
			c.push(t)
			c.skipLine()
			return
		}
		v := c.newNode(nVar, t.pos)
		v.name, v.tag = t.name, tag
		c.need(tAssign)
		v.a = c.parseExpr()
		n.list = append(n.list, v)
		if !c.takeComma() {
			break
		}
	}
	c.needTerm()
}

// parseEnum reads an enumeration: n.name, n.tag, n.tok and n.a for the increment, and the fields in n.list.
func (c *compiler) parseEnum(n *node) {
	n.op = nEnum
	n.tag, n.flag = c.parseTag()
	if t := c.peek(); t.kind == tName {
		n.name = t.name
		c.next()
		if !n.flag {
			n.tag = c.tagOf(n.name.text)
		}
	}
	if c.take(tOpen) {
		if t := c.next(); t.kind == tAddSet || t.kind == tMulSet || t.kind == tShlSet {
			n.tok = t.kind
			n.a = c.parseExpr()
		} else {
			c.report(t.pos, 1).want(t.String(), `"+=", "*=" or "<<="`, "")
			c.push(t)
		}
		c.need(tClose)
	}
	if !c.need(tBrace) {
		return
	}
	for c.peek().kind != tBraceEnd {
		f := c.newNode(nField, c.peek().pos)
		f.tag, _ = c.parseTag()
		t := c.next()
		f.pos, f.name = t.pos, t.name
		if t.kind != tName {
			c.report(t.pos, 1).want(t.String(), "the name of a field", "")
			c.push(t)
			break
		}
		if c.take(tBracket) {
			f.a = c.parseExpr()
			c.need(tBracketEnd)
		}
		if c.take(tAssign) {
			f.b = c.parseExpr()
		}
		n.list = append(n.list, f)
		if !c.take(tComma) && !(c.peek().first && !c.needSemi) {
			break
		}
	}
	c.need(tBraceEnd)
	c.takeSame(tSemi)
}

// parseLocals reads the variables of a declaration inside a function.
func (c *compiler) parseLocals(n *node) {
	n.paren = c.take(tConst) // const
	c.parseVars(n, true)
}

func (c *compiler) parseVars(n *node, term bool) {
	for {
		tag, _ := c.parseTag()
		t := c.next()
		if t.kind != tName {
			c.report(t.pos, 1).want(t.String(), "the name of a variable", "")
			c.push(t)
			c.skipLine()
			return
		}
		c.localWords[t.name] = true
		n.list = append(n.list, c.parseVar(t, tag))
		if !c.takeComma() {
			break
		}
	}
	if term {
		c.needTerm()
	}
}

// parseStates reads "<automaton:state, ...>" behind a name. It returns the number of the list, -1 for the fall-back "<>" and 0
// for nothing.
func (c *compiler) parseStates(n *name) int {
	if !c.take(tLess) {
		return 0
	}
	if c.take(tGreater) {
		return -1
	}
	list := stateList{automaton: -1}
	for {
		s := c.newNode(nInState, c.peek().pos)
		if !c.parseStateName(s) {
			break
		}
		if list.automaton < 0 || s.name != nil {
			a := c.automatonOf(s.name)
			if list.automaton >= 0 && a != list.automaton {
				c.report(s.pos, 83, n.text)
			}
			list.automaton = a
		}
		list.add(c.stateOf(list.automaton, s.name2))
		if !c.take(tComma) {
			break
		}
	}
	c.need(tGreater)
	if len(list.states) == 0 {
		return 0
	}
	return c.listOf(list)
}
