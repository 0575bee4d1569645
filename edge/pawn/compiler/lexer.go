package compiler

// next takes the next token.
func (c *compiler) next() token {
	if c.pushed > 0 {
		c.pushed--
		t := c.tokens[c.pushed]
		if t.kind == tTerm && c.exprDepth == 0 {
			return c.next()
		}
		return t
	}
	return c.lex()
}

// push puts t back; the next call of next returns it. At most two tokens wait.
func (c *compiler) push(t token) {
	c.tokens[c.pushed] = t
	c.pushed++
}

// peek returns the next token without taking it.
func (c *compiler) peek() *token {
	for {
		if c.pushed == 0 {
			c.push(c.lex())
		}
		t := &c.tokens[c.pushed-1]
		if t.kind != tTerm || c.exprDepth > 0 {
			return t
		}
		c.pushed-- // the statement before the directive has ended: its mark says nothing here
	}
}

// take takes the next token if it is of kind k.
func (c *compiler) take(k kind) bool {
	if c.peek().kind != k {
		return false
	}
	c.pushed--
	return true
}

// takeSame is take that does not carry out a directive which follows: the declaration before it has to be known first.
func (c *compiler) takeSame(k kind) bool {
	c.exprDepth++
	defer func() { c.exprDepth-- }()
	return c.take(k)
}

func (c *compiler) takeComma() bool { return c.takeSame(tComma) }

// need takes a token of kind k or reports error 1.
func (c *compiler) need(k kind) bool {
	if c.take(k) {
		return true
	}
	t := c.peek()
	c.report(t.pos, 1).want(t.String(), k.String(), "add "+k.String())
	return false
}

// takeTerm takes the end of a statement: a semicolon, or a new line where semicolons are optional.
func (c *compiler) takeTerm() bool {
	if c.pushed == 0 {
		c.exprDepth++ // a directive on the next line ends the statement; it is read afterwards
		c.push(c.lex())
		c.exprDepth--
	}
	t := &c.tokens[c.pushed-1]
	switch {
	case t.kind == tSemi || t.kind == tTerm:
		c.pushed--
		return true
	case !c.needSemi && (t.first || t.kind == tEnd):
		return true
	}
	return false
}

func (c *compiler) needTerm() {
	if !c.takeTerm() {
		t := c.peek()
		c.report(t.pos, 1).want(t.String(), `";"`, `add ";" or begin a new line`)
	}
}

// ends reports whether the statement ends before the next token, and takes nothing.
func (c *compiler) ends() bool {
	if c.pushed == 0 {
		c.exprDepth++
		c.push(c.lex())
		c.exprDepth--
	}
	t := &c.tokens[c.pushed-1]
	return t.kind == tSemi || t.kind == tTerm || !c.needSemi && (t.first || t.kind == tEnd)
}

// lex reads a token from the text.
func (c *compiler) lex() token {
	for {
		if c.text == nil || c.text[c.at] == 0 {
			if c.pendingDirective {
				c.pendingDirective = false
			}
			if !c.nextLine() {
				return token{kind: tEnd, first: true, pos: c.here()}
			}
			if c.pendingDirective {
				return token{kind: tTerm, pos: c.here()}
			}
			continue
		}
		if c.pendingDirective {
			if c.exprDepth > 0 {
				return token{kind: tTerm, pos: c.here()}
			}
			c.pendingDirective = false
			c.at++
			c.directive()
			c.text = append(c.text[:0], 0)
			c.at = 0
			continue
		}
		b := c.text[c.at]
		if b <= ' ' {
			c.at++
			continue
		}
		if isAlpha(b) {
			if t, ok := c.lexName(); ok {
				return t
			}
			continue // a macro was replaced
		}
		return c.lexOther(b)
	}
}

func (c *compiler) start() token {
	t := token{pos: c.here(), first: c.fresh}
	if c.fresh {
		t.indent = c.indent()
		c.lineIndent = t.indent
	}
	return t
}

// indent is the column of the next character, tabs counted as the script sets them.
func (c *compiler) indent() int32 {
	n := 0
	for _, b := range c.text[:min(c.at, len(c.text))] {
		if b == '\t' {
			n += c.tabSize - n%c.tabSize
		} else {
			n++
		}
	}
	return int32(n)
}

// lexName reads a name, reserved word or label. It returns false after it replaced a macro.
func (c *compiler) lexName() (token, bool) {
	end := c.at
	for isAlnum(c.text[end]) {
		end++
	}
	word := c.text[c.at:end]
	n := c.names[string(word)]
	if n == nil {
		n = c.intern(string(word))
	}
	if n.macro != nil && c.expand(n, end) {
		return token{}, false
	}
	t := c.start()
	c.fresh = false
	c.at = end
	if n.keyword != 0 {
		t.kind = n.keyword
		return t, true
	}
	if len(word) > maxName {
		short := string(word[:maxName])
		c.report(t.pos, 200, string(word), maxName)
		n = c.intern(short)
	}
	t.kind, t.name = tName, n
	switch {
	case len(word) == 1 && word[0] == '@':
		t.kind = tAt
		return t, true
	case len(word) == 1 && word[0] == '_':
		t.kind = tUnderscore
	}
	if c.text[c.at] == ':' && c.text[c.at+1] != ':' {
		if c.noTags == 0 {
			t.kind = tLabel
			c.at++
		} else if t.kind == tName && n.tag > 0 {
			c.report(t.pos, 220).want(quote(n.text+":"), "", "put the expression in parentheses")
		}
	}
	return t, true
}

// lexOther reads numbers, strings and operators.
func (c *compiler) lexOther(b byte) token {
	t := c.start()
	c.fresh = false
	if isDigit(b) {
		c.lexNumber(&t)
		return t
	}
	if b == '\'' {
		c.lexChar(&t)
		return t
	}
	if n, flags := c.stringStart(c.at); n > 0 {
		c.at += n
		c.lexString(&t, flags)
		return t
	}
	rest := c.text[c.at:]
	k, n := operatorAt(rest)
	if k == tOther {
		t.text = b
	}
	t.kind = k
	c.at += n
	return t
}

// stringStart returns the length of the opening of a string at i, with its quote, and its kind; 0 if there is none.
func (c *compiler) stringStart(i int) (n int, flags uint8) {
	for n = 0; n < 2; n++ {
		switch b := c.text[i+n]; {
		case b == '!' && flags&strPacked == 0:
			flags |= strPacked
		case b == c.ctrl && flags&strRaw == 0:
			flags |= strRaw
		case b == '"':
			return n + 1, flags
		default:
			return 0, 0
		}
	}
	if c.text[i+n] == '"' {
		return n + 1, flags
	}
	return 0, 0
}

// single holds the operators of one character.
var single = func() (table [128]kind) {
	for k, s := range operators {
		if len(s) == 1 {
			table[s[0]] = k
		}
	}
	return table
}()

// operatorAt returns the longest operator at the start of b, which ends with a 0, and its length.
func operatorAt(b []byte) (kind, int) {
	x, y := b[0], b[1]
	if x < 128 && single[x] != 0 {
		one := single[x]
		switch {
		case y == '=':
			switch x {
			case '*':
				return tMulSet, 2
			case '/':
				return tDivSet, 2
			case '%':
				return tModSet, 2
			case '+':
				return tAddSet, 2
			case '-':
				return tSubSet, 2
			case '&':
				return tAndSet, 2
			case '^':
				return tXorSet, 2
			case '|':
				return tOrSet, 2
			case '=':
				return tEq, 2
			case '!':
				return tNe, 2
			case '<':
				return tLe, 2
			case '>':
				return tGe, 2
			}
		case x == y:
			return doubled(b, x, one)
		}
		return one, 1
	}
	return tOther, 1
}

func doubled(b []byte, x byte, one kind) (kind, int) {
	switch x {
	case '|':
		return tOrOr, 2
	case '&':
		return tAndAnd, 2
	case '+':
		return tInc, 2
	case '-':
		return tDec, 2
	case '<':
		if b[2] == '=' {
			return tShlSet, 3
		}
		return tShl, 2
	case '>':
		switch {
		case b[2] == '>' && b[3] == '=':
			return tShruSet, 4
		case b[2] == '>':
			return tShru, 3
		case b[2] == '=':
			return tShrSet, 3
		}
		return tShr, 2
	case '.':
		if b[2] == '.' {
			return tEllipsis, 3
		}
		return tDots, 2
	}
	return one, 1
}
