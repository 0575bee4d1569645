package compiler

// parseExpr reads one expression, without commas.
func (c *compiler) parseExpr() *node {
	c.exprDepth++
	n := c.parseAssign()
	c.exprDepth--
	return n
}

// parseList reads expressions between commas; a single one is returned itself.
func (c *compiler) parseList() *node {
	c.exprDepth++
	defer func() { c.exprDepth-- }()
	n := c.parseAssign()
	if c.peek().kind != tComma {
		return n
	}
	list := c.newNode(nComma, n.pos)
	list.list = append(list.list, n)
	for c.take(tComma) {
		list.list = append(list.list, c.parseAssign())
	}
	return list
}

var assignments = map[kind]kind{tAssign: tAssign, tMulSet: tStar, tDivSet: tSlash, tModSet: tPercent, tAddSet: tPlus, tSubSet: tMinus,
	tShlSet: tShl, tShruSet: tShru, tShrSet: tShr, tAndSet: tAmp, tXorSet: tCaret, tOrSet: tPipe}

func (c *compiler) parseAssign() *node {
	t := c.peek()
	c.enter(t.pos)
	defer func() { c.depth-- }()
	left := c.parseChoose()
	t = c.peek()
	if t.kind < tMulSet || t.kind > tAssign {
		return left
	}
	op, ok := assignments[t.kind]
	if !ok {
		return left
	}
	n := c.newNode(nAssign, t.pos)
	c.next()
	n.tok, n.a = op, left
	n.b = c.parseAssign()
	return n
}

func (c *compiler) parseChoose() *node {
	cond := c.parseBinary(0)
	if c.peek().kind != tQuestion {
		return cond
	}
	t := c.next()
	c.enter(t.pos)
	defer func() { c.depth-- }()
	n := c.newNode(nChoose, t.pos)
	n.a = cond
	c.noTags++
	n.b = c.parseChoose()
	c.noTags--
	c.need(tColon)
	n.c = c.parseChoose()
	return n
}

// levels are the binary operators, the weakest first.
var levels = [...][]kind{{tOrOr}, {tAndAnd}, {tEq, tNe}, {tLe, tGe, tLess, tGreater}, {tPipe}, {tCaret}, {tAmp}, {tShl, tShr, tShru},
	{tPlus, tMinus}, {tStar, tSlash, tPercent}}

// levelOf maps an operator to its level, counted from 1.
var levelOf = func() (table [tWhile + 1]int8) {
	for i, ops := range levels {
		for _, op := range ops {
			table[op] = int8(i + 1)
		}
	}
	return table
}()

const compareLevel = 4

// parseBinary reads a chain of binary operators whose level is above level.
func (c *compiler) parseBinary(level int8) *node {
	left := c.parseUnary()
	for terms := 0; ; terms++ {
		t := c.peek()
		l := levelOf[t.kind]
		if l <= level {
			return left
		}
		if terms > maxTerms {
			c.report(t.pos, 102, "number of operands", maxTerms)
		}
		if l <= 2 || l == compareLevel {
			left = c.parseChain(left, l)
			continue
		}
		p, op := t.pos, t.kind
		c.next()
		n := c.newNode(nBinary, p)
		n.tok, n.a = op, left
		n.b = c.parseBinary(l)
		left = n
	}
}

// parseChain reads the operands of && or ||, or of a chain of comparisons such as 1 < a < 10, into one node.
func (c *compiler) parseChain(left *node, level int8) *node {
	t := c.peek()
	n := c.newNode(nLogic, t.pos)
	n.tok = t.kind
	if level == compareLevel {
		n.op = nCompare
	}
	n.list = append(n.list, left)
	for levelOf[c.peek().kind] == level {
		if len(n.list) > maxTerms {
			c.report(n.pos, 102, "number of operands", maxTerms)
		}
		n.chars = append(n.chars, int32(c.next().kind))
		n.list = append(n.list, c.parseBinary(level))
	}
	return n
}

func (c *compiler) parseUnary() *node {
	t := c.next()
	switch t.kind {
	case tInc, tDec, tTilde, tNot, tMinus, tLabel:
		c.enter(t.pos)
		defer func() { c.depth-- }()
		n := c.newNode(nUnary, t.pos)
		n.tok = t.kind
		switch t.kind {
		case tInc, tDec:
			n.op = nStep
		case tLabel:
			n.op, n.tag = nTag, c.tagOf(t.name.text)
		}
		n.a = c.parseUnary()
		return n
	case tDefined, tSizeof, tTagof:
		return c.parseOf(t)
	case tState:
		n := c.newNode(nInState, t.pos)
		c.parseStateName(n)
		return n
	}
	c.push(t)
	return c.parsePostfix()
}

// parseOf reads the operand of defined, sizeof or tagof.
func (c *compiler) parseOf(op token) *node {
	n := c.newNode(nSizeof, op.pos)
	parens := 0
	for c.take(tOpen) {
		parens++
	}
	t := c.next()
	n.name, n.pos = t.name, t.pos
	switch {
	case op.kind == tTagof && t.kind == tLabel:
		n.op, n.tag, n.flag = nTagof, t.name.tag, true
	case t.kind != tName:
		c.report(t.pos, 20, t.String()).want(t.String(), "a name", "")
		n.op = nBad
		return n
	case op.kind == tDefined:
		n.op = nDefined
	case op.kind == tTagof:
		n.op = nTagof
	}
	for n.op != nDefined && !n.flag && c.take(tBracket) {
		if c.peek().kind == tBracketEnd {
			c.next()
			n.list = append(n.list, nil)
			continue
		}
		n.list = append(n.list, c.parseExpr())
		c.need(tBracketEnd)
	}
	for ; parens > 0; parens-- {
		c.need(tClose)
	}
	return n
}

// parseStateName reads "automaton:state" or "state" into name and name2.
func (c *compiler) parseStateName(n *node) bool {
	t := c.next()
	if t.kind != tLabel && t.kind != tName {
		c.report(t.pos, 1).want(t.String(), "the name of a state", "")
		c.push(t)
		return false
	}
	n.name2 = t.name
	if t.kind == tLabel || c.take(tColon) {
		n.name = t.name
		s := c.next()
		if s.kind != tName {
			c.report(s.pos, 1).want(s.String(), "the name of a state", "")
			c.push(s)
			return false
		}
		n.name2 = s.name
	}
	return true
}

func (c *compiler) parsePostfix() *node {
	n := c.parsePrimary()
	for {
		t := c.peek()
		switch t.kind {
		case tBracket, tBrace:
			if n.op != nName && n.op != nIndex || t.kind == tBrace && t.first {
				return n
			}
			index := c.newNode(nIndex, t.pos)
			index.flag = t.kind == tBrace
			end := tBracketEnd
			if index.flag {
				end = tBraceEnd
			}
			c.next()
			index.a = n
			tags := c.noTags
			c.noTags = 0
			index.b = c.parseAssign()
			c.noTags = tags
			c.need(end)
			n = index
			if index.flag {
				return c.parseSteps(n)
			}
		case tOpen:
			if n.op != nName {
				return c.parseSteps(n)
			}
			c.next()
			call := c.newNode(nCall, n.pos)
			call.a = n
			c.parseArgs(call)
			return c.parseSteps(call)
		default:
			return c.parseSteps(n)
		}
	}
}

// parseSteps reads ++, -- or char behind an operand.
func (c *compiler) parseSteps(n *node) *node {
	t := c.peek()
	if t.first && !c.needSemi {
		return n
	}
	switch t.kind {
	case tInc, tDec:
		s := c.newNode(nStep, t.pos)
		s.tok, s.flag, s.a = t.kind, true, n
		c.next()
		return s
	case tChar:
		s := c.newNode(nCells, t.pos)
		s.a = n
		c.next()
		return s
	}
	return n
}

// parseArgs reads arguments up to the closing parenthesis.
func (c *compiler) parseArgs(call *node) {
	tags := c.noTags
	c.noTags = 0
	defer func() { c.noTags = tags }()
	if c.take(tClose) {
		return
	}
	for {
		call.list = append(call.list, c.parseArg())
		if c.take(tClose) {
			return
		}
		if !c.need(tComma) {
			return
		}
	}
}

func (c *compiler) parseArg() *node {
	t := c.peek()
	n := c.newNode(nArg, t.pos)
	if c.take(tDot) {
		t := c.next()
		if t.kind != tName {
			c.report(t.pos, 1).want(t.String(), "the name of an argument", "")
			c.push(t)
			return n
		}
		n.name = t.name
		n.pos = t.pos
		c.need(tAssign)
	}
	if c.take(tUnderscore) {
		return n
	}
	n.a = c.parseAssign()
	return n
}

func (c *compiler) parsePrimary() *node {
	t := c.next()
	n := c.newNode(nNumber, t.pos)
	switch t.kind {
	case tNumber, tRational:
		n.value = t.value
		if t.kind == tRational {
			n.op, n.tag = nRational, c.rationTag
		}
	case tName:
		n.op, n.name = nName, t.name
	case tString:
		n.op = nString
		c.joinStrings(n, t)
	case tOpen:
		c.enter(t.pos)
		tags := c.noTags
		c.noTags = 0
		n = c.parseList()
		c.noTags = tags
		n.paren = true
		c.need(tClose)
		c.depth--
	case tBrace:
		c.enter(t.pos)
		n.op = nLiteral
		for {
			n.list = append(n.list, c.parseAssign())
			if !c.take(tComma) {
				break
			}
		}
		c.need(tBraceEnd)
		c.depth--
	default:
		c.report(t.pos, 29).want(t.String(), "a value", "")
		n.op = nBad
		c.push(t)
	}
	return n
}

// joinStrings reads the strings that an ellipsis joins to t.
func (c *compiler) joinStrings(n *node, t token) {
	n.chars, n.flag = t.chars, t.packed
	for c.peek().kind == tEllipsis {
		e := c.next()
		s := c.next()
		if s.kind != tString {
			c.report(e.pos, 37).want(s.String(), "a string after the ellipsis", "")
			c.push(s)
			return
		}
		if s.flags != t.flags {
			c.report(s.pos, 238)
		}
		n.chars = append(n.chars, s.chars...)
	}
}
