package compiler

import "bytes"

// ifState is one open #if.
type ifState struct {
	pos    pos
	taken  bool // a branch was true
	orElse bool
}

var directives = []string{"assert", "define", "else", "elseif", "endif", "endinput", "error", "file", "if", "include", "line", "pragma", "tryinclude", "undef"}

// directive carries out the directive of the current line, whose # was passed.
func (c *compiler) directive() {
	depth, tags := c.exprDepth, c.noTags
	c.exprDepth, c.noTags, c.lineOnly, c.looseNext = 0, 0, true, true
	p := c.here()
	word := string(c.word())
	flag := c.errFlag
	c.errFlag = false
	if word == "if" || word == "elseif" || word == "else" || word == "endif" {
		c.doIf(word, p)
		c.endLine()
	} else if c.skipping == 0 {
		c.carryOut(word, p)
	}
	c.errFlag = flag
	c.exprDepth, c.noTags, c.lineOnly, c.pushed = depth, tags, false, 0
	c.buf = append(c.buf[:0], 0)
	c.text, c.at = c.buf, 0
}

// carryOut carries out a directive that is not part of a condition.
func (c *compiler) carryOut(word string, p pos) {
	switch word {
	case "include", "tryinclude":
		c.doInclude(p, word == "tryinclude")
	case "define":
		c.doDefine(p)
	case "undef":
		c.doUndef(p)
	case "assert":
		c.doAssertDirective(p)
	case "pragma":
		c.doPragma(p)
	case "error":
		c.doError(p)
	case "endinput":
		c.doEndInput()
	case "file":
		c.doFile(p)
	case "line":
		c.doLine(p)
	default:
		c.report(p, 31).closest(word, func() []string { return directives })
	}
}

// word reads a name from the current line, without macros.
func (c *compiler) word() []byte {
	c.blanks()
	from := c.at
	for isAlnum(c.text[c.at]) {
		c.at++
	}
	return c.text[from:c.at]
}

func (c *compiler) blanks() {
	for c.text[c.at] != 0 && c.text[c.at] <= ' ' {
		c.at++
	}
}

// endLine reports what is left on a directive's line.
func (c *compiler) endLine() {
	if c.skipping > 0 && !c.errFlag {
		return
	}
	if c.pushed > 0 {
		if t := c.peek(); t.kind != tEnd && t.kind != tTerm && t.kind != tSemi {
			c.report(t.pos, 38).want(t.String(), "end of line", "")
		}
		return
	}
	c.blanks()
	if b := c.text[c.at]; b != 0 && b != ';' {
		c.report(c.here(), 38).want(quote(string(c.text[c.at:len(c.text)-1])), "end of line", "")
	}
}

// lineValue evaluates the rest of the line as a constant expression.
func (c *compiler) lineValue() int32 {
	v := c.constant(c.parseExpr())
	c.errFlag = false
	return v.value
}

func (c *compiler) doIf(word string, p pos) {
	n := len(c.ifs)
	if word == "if" {
		if n >= maxIfs {
			c.report(p, 102, "nesting of #if", maxIfs)
		}
		c.ifs = append(c.ifs, ifState{pos: p})
		if c.skipping > 0 {
			return
		}
		if v := c.lineValue(); v != 0 {
			c.ifs[n].taken = true
		} else {
			c.skipping = n + 1
		}
		return
	}
	if n == 0 || len(c.sources) > 0 && n <= c.sources[len(c.sources)-1].ifs {
		c.report(p, 26).want(quote("#"+word), "", "")
		return
	}
	if c.skipping > 0 && c.skipping < n {
		if word == "endif" {
			c.ifs = c.ifs[:n-1]
		}
		return
	}
	s := &c.ifs[n-1]
	switch {
	case word == "endif":
		c.ifs = c.ifs[:n-1]
		c.skipping = 0
		return
	case s.orElse && word == "else":
		c.report(p, 60).want(quote("#else"), quote("#endif"), "")
	case s.orElse:
		c.report(p, 61).want(quote("#elseif"), quote("#endif"), "")
	case word == "else":
		s.orElse = true
	}
	c.skipping = 0
	truth := word == "else"
	if word == "elseif" && !s.taken {
		truth = c.lineValue() != 0
	} else if word == "elseif" {
		c.text[c.at] = 0
	}
	if s.taken || !truth {
		c.skipping = n
		return
	}
	s.taken = true
}

// checkIfs reports the #if that is open at the end of the script.
func (c *compiler) checkIfs() {
	if n := len(c.ifs); n > 0 {
		c.errFlag = false
		c.report(c.ifs[n-1].pos, 1).want("end of file", quote("#endif"), `add "#endif"`)
	}
}

func (c *compiler) doInclude(p pos, silent bool) {
	c.blanks()
	rest := bytes.TrimRight(c.text[c.at:len(c.text)-1], " \t")
	local := true
	if len(rest) > 0 && (rest[0] == '<' || rest[0] == '"') {
		end := byte('"')
		if rest[0] == '<' {
			end, local = '>', false
		}
		i := bytes.IndexByte(rest[1:], end)
		if i < 0 {
			c.report(p, 37).want("end of line", quote(string(end)), "close the name of the file")
			return
		}
		c.at += i + 2
		c.endLine()
		rest = bytes.TrimSpace(rest[1 : i+1])
	}
	if len(rest) == 0 {
		c.report(p, 37).want("nothing", "the name of a file", "")
		return
	}
	c.include(string(rest), local, silent, p)
}

func (c *compiler) doDefine(p pos) {
	c.blanks()
	from := c.at
	if !isAlpha(c.text[from]) {
		c.report(p, 74).want(quote(string(c.text[from:len(c.text)-1])), "a letter", "")
		return
	}
	word := c.word()
	n := c.intern(string(word))
	end := c.at
	var pattern []byte
	for c.text[end] > ' ' {
		if c.text[end] == c.ctrl && c.text[end+1] > ' ' {
			c.at = end
			pattern = append(pattern, byte(c.char(0)))
			end = c.at
			continue
		}
		pattern = append(pattern, c.text[end])
		end++
	}
	if k := len(pattern); k >= 2 && pattern[k-2] == '%' && isDigit(pattern[k-1]) {
		pattern = pattern[:k-2] // a parameter at the end could match anything
	}
	c.at = end
	c.blanks()
	m := &macro{pattern: pattern, replacement: bytes.Clone(bytes.TrimRight(c.text[c.at:len(c.text)-1], " \t")), pos: p}
	if old := n.macro; old != nil && (!bytes.Equal(old.pattern, m.pattern) || !bytes.Equal(old.replacement, m.replacement)) {
		c.report(p, 201, n.text+string(pattern))
	}
	n.macro = m
}

func (c *compiler) doUndef(p pos) {
	word := c.word()
	if len(word) == 0 {
		c.report(p, 20, quote(string(c.text[c.at:len(c.text)-1]))).want("", "a name", "")
		return
	}
	n := c.intern(string(word))
	switch {
	case n.macro != nil:
		n.macro = nil
	case len(n.global) == 1 && n.global[0].kind == kindConst && n.global[0].use&(useEnumRoot|useEnumField) == 0:
		n.global = nil
	default:
		c.report(p, 17, n.text).closest(n.text, c.globalNames)
	}
	c.endLine()
}

func (c *compiler) doAssertDirective(p pos) {
	text := string(bytes.TrimSpace(c.text[c.at : len(c.text)-1]))
	if c.opt.Debug == 0 {
		return
	}
	if c.lineValue() == 0 {
		c.report(p, 110, text)
	}
	c.endLine()
}

func (c *compiler) doError(p pos) {
	c.report(p, 111, string(bytes.TrimSpace(c.text[c.at:len(c.text)-1])))
}

func (c *compiler) doEndInput() {
	c.endLine()
	s := c.sources[len(c.sources)-1]
	s.at = len(s.data)
	c.ifs = c.ifs[:min(len(c.ifs), s.ifs)] // it is usually inside the #if of a file that was included before
}

func (c *compiler) doFile(p pos) {
	c.blanks()
	rest := bytes.TrimSpace(c.text[c.at : len(c.text)-1])
	if len(rest) < 2 || rest[0] != '"' || rest[len(rest)-1] != '"' {
		c.report(p, 37).want(quote(string(rest)), "a file name in quotes", "")
		return
	}
	if len(c.fileNames) >= maxFiles {
		c.report(p, 102, "number of file names", maxFiles)
	}
	c.fileNames = append(c.fileNames, string(rest[1:len(rest)-1]))
	c.sources[len(c.sources)-1].file = int16(len(c.fileNames) - 1)
}

func (c *compiler) doLine(p pos) {
	t := c.lex()
	if t.kind != tNumber {
		c.report(p, 8).want(t.String(), "a line number", "")
		return
	}
	c.sources[len(c.sources)-1].line = t.value - 1
	c.endLine()
}
