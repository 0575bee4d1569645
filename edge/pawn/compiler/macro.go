package compiler

import "bytes"

// macro is a #define: a pattern that begins with a name and may have parameters %0 to %9, and its replacement.
type macro struct {
	pattern     []byte // behind the name
	replacement []byte
	pos         pos
}

// expand replaces the macro of n, whose name ends at index end of the line. It returns false if the pattern does not match.
func (c *compiler) expand(n *name, end int) bool {
	m := n.macro
	if c.afterDefined() {
		return false
	}
	var args [10][]byte
	stop, ok := c.match(m, end, &args)
	if !ok {
		return false
	}
	at := c.here()
	out := c.spare[:0]
	out = append(out, c.text[:c.at]...)
	begin := len(out)
	out = c.substitute(out, m, &args)
	length := len(out) - begin
	out = append(out, c.text[stop:]...)
	if c.replaced++; len(out) > maxLine || c.replaced > maxReplaced {
		c.report(at, 75).want("macro "+quote(n.text), "", "")
		out = append(out[:c.at], 0)
	}
	// the columns of the rest of the line are kept, for messages
	if stop < c.replEnd {
		c.replEnd += length - (stop - c.at)
	} else {
		c.restCol = int(c.posAt(stop).col)
		c.macroCol = int(at.col)
		c.replEnd = c.at + length
	}
	if c.replEnd == 0 { // an empty replacement at the start of the line: columns are shifted all the same
		c.replEnd = 1
		c.restCol++
	}
	c.buf, c.spare = out, c.buf[:0]
	c.text = c.buf
	return true
}

// afterDefined reports whether the name at c.at is the operand of "defined".
func (c *compiler) afterDefined() bool {
	i := c.at
	for i > 0 && (c.text[i-1] <= ' ' || c.text[i-1] == '(') {
		i--
	}
	return i < c.at && bytes.HasSuffix(c.text[:i], []byte("defined")) && (i == 7 || !isAlnum(c.text[i-8]))
}

// match matches the pattern of m with the line from s on. It returns the index behind the match and the parameters.
func (c *compiler) match(m *macro, s int, args *[10][]byte) (int, bool) {
	p := m.pattern
	for i := 0; i < len(p); {
		last := i == len(p)-1
		switch {
		case p[i] == '%' && i+1 < len(p) && isDigit(p[i+1]):
			arg := p[i+1] - '0'
			i += 2
			var until byte
			if i < len(p) {
				until = p[i]
			}
			e := s
			for c.text[e] != 0 && c.text[e] != until {
				e = c.skipGroup(e)
			}
			args[arg] = append([]byte(nil), c.text[s:e]...)
			if c.text[e] == 0 {
				if until == ';' && i == len(p)-1 && !c.needSemi {
					return e, true
				}
				return 0, false
			}
			s = e + 1
			i++
		case p[i] == ';' && last && !c.needSemi:
			for c.text[s] != 0 && c.text[s] <= ' ' {
				s++
			}
			if c.text[s] != ';' && c.text[s] != 0 {
				return 0, false
			}
			if c.text[s] == ';' {
				s++
			}
			i++
		default:
			if !isAlnum(p[i]) && (i == 0 || p[i-1] != p[i]) {
				for c.text[s] != 0 && c.text[s] <= ' ' {
					s++
				}
			}
			if c.text[s] != p[i] || c.text[s] == 0 {
				return 0, false
			}
			s++
			i++
		}
	}
	if len(p) > 0 && isAlnum(p[len(p)-1]) && isAlnum(c.text[s]) {
		return 0, false
	}
	return s, true
}

// skipGroup returns the index behind the character, string or bracketed group at e.
func (c *compiler) skipGroup(e int) int {
	if n, _ := c.stringStart(e); n > 0 {
		e += n - 1
	}
	if b := c.text[e]; b == '"' || b == '\'' {
		return min(c.endOfString(c.text, e)+1, len(c.text)-1)
	}
	var open, shut byte = c.text[e], 0
	switch open {
	case '(':
		shut = ')'
	case '[':
		shut = ']'
	case '{':
		shut = '}'
	default:
		return e + 1
	}
	nest := 0
	for ; c.text[e] != 0; e++ {
		switch b := c.text[e]; b {
		case open:
			nest++
		case shut:
			if nest--; nest == 0 {
				return e + 1
			}
		case '"', '\'':
			e = min(c.endOfString(c.text, e), len(c.text)-2)
		}
	}
	return e
}

// substitute appends the replacement of m with its parameters. #%1 makes a string of parameter 1.
func (c *compiler) substitute(dst []byte, m *macro, args *[10][]byte) []byte {
	r := m.replacement
	inString := false
	for i := 0; i < len(r); i++ {
		quoted := !inString && r[i] == '#' && i+2 < len(r) && r[i+1] == '%' && isDigit(r[i+2])
		if quoted {
			i++
		}
		if !inString && r[i] == '%' && i+1 < len(r) && isDigit(r[i+1]) {
			arg := args[r[i+1]-'0']
			if arg == nil {
				c.report(c.here(), 236).want(quote(string(r[i:i+2])), "a parameter of the pattern", "")
				dst = append(dst, r[i], r[i+1])
				i++
				continue
			}
			if quoted {
				dst = append(dst, '"')
			}
			dst = append(dst, arg...)
			if quoted {
				dst = append(dst, '"')
			}
			i++
			continue
		}
		if r[i] == '"' {
			inString = !inString
		}
		dst = append(dst, r[i])
		if len(dst) > maxLine+1 {
			return dst
		}
	}
	return dst
}
