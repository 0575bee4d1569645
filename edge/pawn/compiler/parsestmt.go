package compiler

// parseStatement reads one statement. decl tells that a declaration is allowed here.
func (c *compiler) parseStatement(decl bool) *node {
	c.errFlag = false
	t := c.next()
	c.enter(t.pos)
	defer func() { c.depth-- }()
	n := c.newNode(nEmpty, t.pos)
	switch t.kind {
	case tNew, tStatic:
		n.op = nDeclare
		n.flag = t.kind == tStatic
		c.parseLocals(n)
		if !decl {
			c.report(t.pos, 3).want("", "", "put the statement into braces")
		}
	case tBrace:
		c.parseBlock(n)
	case tSemi:
		c.report(t.pos, 36).want(`";"`, "a statement", `remove ";" or write "{}"`)
	case tIf:
		c.parseIf(n)
	case tWhile:
		n.op = nWhile
		n.a = c.parseCondition()
		n.b = c.parseStatement(false)
	case tDo:
		n.op = nDo
		n.b = c.parseStatement(false)
		c.need(tWhile)
		n.a = c.parseCondition()
		c.needTerm()
	case tFor:
		c.parseFor(n)
	case tSwitch:
		c.parseSwitch(n)
	case tCase, tDefault:
		c.report(t.pos, 14)
		c.noTags++
		if t.kind == tCase {
			c.parseExpr()
		}
		c.noTags--
		c.take(tColon)
	case tLabel:
		n.op, n.name = nMark, t.name
		if t.name.tag > 0 {
			c.report(t.pos, 221, t.name.text)
		}
	case tConst:
		n.op = nConst
		c.parseConsts(n)
	case tEnum:
		c.parseEnum(n)
	case tGoto, tReturn, tBreak, tContinue, tExit, tAssert, tSleep, tState:
		c.parseSimple(n, t.kind)
	case tEnd:
		c.report(t.pos, 36).want("end of file", "a statement", "")
	default:
		c.push(t)
		c.parseExprStatement(n)
	}
	return n
}

// parseBlock reads statements up to the closing brace.
func (c *compiler) parseBlock(n *node) {
	n.op = nBlock
	indent := int32(-1)
	for !c.take(tBraceEnd) {
		t := c.peek()
		if t.kind == tEnd {
			c.report(n.pos, 30, n.pos.line).want("end of file", `"}"`, `add "}"`)
			return
		}
		if t.first && t.kind != tLabel {
			if indent >= 0 && t.indent != indent && !c.looseNext {
				c.report(t.pos, 217)
			}
			indent = t.indent
			c.looseNext = false
		}
		before := c.progress()
		n.list = append(n.list, c.parseStatement(true))
		if c.progress() == before {
			c.next() // an error took nothing
		}
	}
	n.value = c.lineNo
}

// progress identifies the place in the text, to notice that an error took no token.
func (c *compiler) progress() [4]int { return [4]int{c.lines, c.at, c.pushed, c.replaced} }

// parseCondition reads a condition in parentheses.
func (c *compiler) parseCondition() *node {
	c.need(tOpen)
	n := c.parseList()
	c.need(tClose)
	return n
}

func (c *compiler) parseIf(n *node) {
	n.op = nIf
	indent := c.lineIndent
	n.a = c.parseCondition()
	n.b = c.parseStatement(false)
	if t := c.peek(); t.kind == tElse {
		if t.first && t.indent < indent {
			c.report(t.pos, 217)
		}
		c.next()
		n.c = c.parseStatement(false)
	}
}

func (c *compiler) parseFor(n *node) {
	n.op = nFor
	n.list = make([]*node, 3)
	end := tDo
	if c.take(tOpen) {
		end = tClose
	}
	if !c.take(tSemi) {
		if t := c.peek(); t.kind == tNew {
			c.next()
			d := c.newNode(nDeclare, t.pos)
			c.parseVars(d, false)
			c.need(tSemi)
			n.list[0] = d
		} else {
			n.list[0] = c.parseList()
			c.need(tSemi)
		}
	}
	if !c.take(tSemi) {
		n.list[1] = c.parseList()
		c.need(tSemi)
	}
	if !c.take(end) {
		n.list[2] = c.parseList()
		c.need(end)
	}
	n.b = c.parseStatement(false)
}

func (c *compiler) parseSwitch(n *node) {
	n.op = nSwitch
	n.a = c.parseCondition()
	if !c.need(tBrace) {
		return
	}
	dflt := false
	for {
		c.errFlag = false
		t := c.next()
		cs := c.newNode(nCase, t.pos)
		switch t.kind {
		case tBraceEnd:
			return
		case tCase:
			if dflt {
				c.report(t.pos, 15).want("", "", `move "default" to the end`)
			}
			c.noTags++
			for {
				v := c.parseExpr()
				if d := c.peek(); d.kind == tDots {
					r := c.newNode(nRange, d.pos)
					c.next()
					r.a, r.b = v, c.parseExpr()
					v = r
				}
				cs.list = append(cs.list, v)
				if !c.take(tComma) {
					break
				}
			}
			c.need(tColon)
			c.noTags--
		case tDefault, tLabel:
			if t.kind == tDefault {
				c.need(tColon)
			}
			if dflt {
				c.report(t.pos, 16)
			}
			dflt, cs.flag = true, true
		default:
			c.report(t.pos, 2).want(t.String(), `"case", "default" or "}"`, "put the statements of the case into braces")
			c.skipBlock(t)
			return
		}
		cs.a = c.parseStatement(false)
		n.list = append(n.list, cs)
	}
}

// skipBlock skips the rest of a block after an error in it; t was the first token.
func (c *compiler) skipBlock(t token) {
	for nest := 0; t.kind != tEnd; t = c.next() {
		switch t.kind {
		case tBrace:
			nest++
		case tBraceEnd:
			if nest--; nest < 0 {
				return
			}
		}
	}
}

// parseSimple reads the statements that are a word and perhaps an expression.
func (c *compiler) parseSimple(n *node, k kind) {
	switch k {
	case tBreak, tContinue:
		n.op = nBreak
		if k == tContinue {
			n.op = nContinue
		}
	case tGoto:
		n.op = nGoto
		t := c.next()
		if t.kind != tName {
			c.report(t.pos, 20, t.String()).want(t.String(), "a label", "")
			n.op = nEmpty
			break
		}
		n.name = t.name
	case tState:
		n.op = nSetState
		if c.take(tOpen) {
			n.a = c.parseList()
			c.need(tClose)
		}
		if !c.parseStateName(n) {
			n.op = nEmpty
		}
	default:
		switch k {
		case tReturn:
			n.op = nReturn
		case tExit:
			n.op = nExit
		case tSleep:
			n.op = nSleep
		case tAssert:
			n.op = nAssertion
		}
		if !c.ends() {
			n.a = c.parseList()
		} else if k == tAssert {
			c.report(n.pos, 29).want("nothing", "a condition", "")
		}
	}
	c.needTerm()
}

// parseExprStatement reads an expression, or the call of a function without parentheses.
func (c *compiler) parseExprStatement(n *node) {
	n.op = nExpr
	t := c.next()
	if t.kind != tName {
		c.push(t)
	} else if after := c.peek(); c.isCommand(&t, after) {
		call := c.newNode(nCall, t.pos)
		call.flag = true
		call.a = c.newNode(nName, t.pos)
		call.a.name = t.name
		if !c.ends() || c.peek().kind == tDot {
			c.exprDepth++
			for {
				call.list = append(call.list, c.parseArg())
				if !c.take(tComma) {
					break
				}
			}
			c.exprDepth--
		}
		n.a = call
		c.needTerm()
		return
	} else {
		c.push(t)
	}
	n.a = c.parseList()
	c.needTerm()
}

// isCommand reports whether the name t, followed by after, begins a call without parentheses.
func (c *compiler) isCommand(t, after *token) bool {
	switch after.kind {
	case tOpen, tBracket, tBrace, tInc, tDec, tQuestion, tComma, tColon, tClose, tBraceEnd:
		return false
	case tName, tLabel, tNumber, tRational, tString, tNot, tTilde, tUnderscore, tDot, tSizeof, tTagof, tDefined:
		return !after.first || after.kind == tDot || c.isFunction(t.name)
	case tMinus:
		return c.isFunction(t.name)
	case tSemi, tTerm, tEnd:
		return c.isFunction(t.name)
	}
	if after.kind >= tMulSet && after.kind <= tAssign || levelOf[after.kind] > 0 {
		return false
	}
	return after.first && c.isFunction(t.name)
}

// isFunction reports whether n can be a function: it is one already, or it is not a variable that is known here.
func (c *compiler) isFunction(n *name) bool {
	if len(c.localWords) > 0 && c.localWords[n] {
		return false
	}
	return len(n.global) == 0 || n.global[0].kind == kindFunc
}
