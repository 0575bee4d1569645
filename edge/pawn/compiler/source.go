package compiler

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// Limits that keep a hostile script from taking all memory or time.
const (
	maxLine     = 4095    // bytes of a line after the replacement of macros
	maxReplaced = 1000    // macro replacements in one line
	maxLines    = 4 << 20 // lines read, include files too
	maxIncludes = 64      // files open at once
	maxFiles    = 4096
	maxIfs      = 32 // nested #if, as in the reference
	maxName     = 31 // significant characters of a name
)

// source is a file that is being read.
type source struct {
	file    int16
	data    []byte
	at      int
	line    int32
	ifs     int  // depth of #if when it was opened
	utf8    bool // holds characters of more than one byte
	comment bool
	sep     byte // what ends a line
}

// scanner turns files into tokens.
type scanner struct {
	fileNames []string
	sources   []*source
	lines     int
	files     int

	text       []byte // the current line, with a 0 at its end
	at         int
	buf, spare []byte
	lineNo     int32
	file       int16
	isUTF8     bool
	fresh      bool // no token was taken from this line
	// columns of a line in which macros were replaced
	replEnd, macroCol, restCol int
	replaced                   int
	lineOnly                   bool // a directive is read: its line's end is the end of the text
	pendingDirective           bool

	ifs        []ifState
	skipping   int // depth of the innermost #if that is false, 0 none
	ctrl       byte
	tokens     [2]token // pushed back, the next one last
	pushed     int
	tabSize    int
	looseNext  bool  // indentation after a directive is not compared
	lineIndent int32 // indentation of the token that began the last statement line
	slab       []node
	localWords map[*name]bool // variables and arguments of the function that is read
}

func (c *compiler) initScanner() {
	c.ctrl = '\\'
	c.tabSize = 8
}

func (c *compiler) openSource(name string, data []byte) {
	id := -1
	for i, n := range c.fileNames {
		if n == name {
			id = i
		}
	}
	if id < 0 {
		c.fileNames = append(c.fileNames, name)
		id = len(c.fileNames) - 1
	}
	s := &source{file: int16(id), data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), ifs: len(c.ifs)}
	if s.sep = '\n'; bytes.IndexByte(s.data, '\n') < 0 {
		s.sep = '\r'
	}
	s.utf8 = !isASCII(s.data) && utf8.Valid(s.data)
	if len(s.data) != len(data) && !utf8.Valid(s.data) {
		c.report(pos{line: 1, col: 1, file: s.file}, 77)
	}
	c.sources = append(c.sources, s)
}

func isASCII(b []byte) bool {
	for _, x := range b {
		if x >= 0x80 {
			return false
		}
	}
	return true
}

// include opens the file that a directive names. local searches beside the current file first. It reports whether the file was
// found; silent leaves out the message.
func (c *compiler) include(file string, local, silent bool, p pos) bool {
	guard := []byte("_inc_" + path.Base(strings.ReplaceAll(file, "\\", "/")))
	if len(guard) > maxName-1 {
		guard = guard[:maxName-1]
	}
	for i, b := range guard {
		if !isAlnum(b) {
			guard[i] = '_'
		}
	}
	n := c.intern(string(guard))
	if len(n.global) > 0 {
		return true // a file is included once, whatever its path
	}
	if len(c.sources) >= maxIncludes || c.files >= maxFiles {
		c.report(p, 102, "number of include files", maxIncludes)
	}
	c.files++
	var dirs []string
	if local {
		dirs = append(dirs, path.Dir(c.fileName(c.file)))
	}
	if c.opt.Open != nil {
		for _, dir := range append(dirs, c.opt.Include...) {
			for _, ext := range []string{"", ".inc", ".p", ".pawn"} {
				full := path.Join(dir, strings.ReplaceAll(file, "\\", "/")) + ext
				if data, err := c.opt.Open(full); err == nil {
					c.predefine(Define{string(guard), 1}, 0)
					c.openSource(full, data)
					return true
				}
			}
		}
	}
	if !silent {
		c.report(p, 100, file).want("", "a file in "+strings.Join(append(dirs, c.opt.Include...), ", "), "add its folder with -i")
	}
	return false
}

// nextLine loads the next line that is not a directive, skipped or empty. It returns false at the end of the text.
func (c *compiler) nextLine() bool {
	for {
		if c.lineOnly {
			return false
		}
		if !c.readLine() {
			return false
		}
		i := 0
		for i < len(c.text) && c.text[i] <= ' ' && c.text[i] != 0 {
			i++
		}
		switch {
		case c.text[i] == '#':
			if c.exprDepth > 0 && !c.needSemi && c.skipping == 0 {
				c.pendingDirective = true
				c.at = i
				return true
			}
			c.at = i + 1
			c.directive()
		case c.text[i] != 0 && c.skipping == 0:
			c.at = i
			return true
		}
	}
}

// readLine loads a line without comments, joined with the lines that continue it.
func (c *compiler) readLine() bool {
	for len(c.sources) > 0 {
		s := c.sources[len(c.sources)-1]
		if s.at < len(s.data) {
			c.loadLine(s)
			return true
		}
		if s.comment {
			c.report(pos{line: s.line, col: 1, file: s.file}, 57).want("end of file", `"*/"`, "close the comment")
		}
		if len(c.ifs) > s.ifs && len(c.sources) > 1 {
			p := c.ifs[len(c.ifs)-1].pos
			c.report(p, 1).want("end of file", `"#endif"`, `add "#endif"`)
			c.ifs = c.ifs[:s.ifs]
			c.skipping = min(c.skipping, s.ifs)
		}
		if len(c.sources) == 1 {
			return false
		}
		c.sources = c.sources[:len(c.sources)-1]
		if len(c.sources) == 0 {
			return false
		}
		c.file = c.sources[len(c.sources)-1].file
	}
	return false
}

func (c *compiler) loadLine(s *source) {
	line, more := s.cut()
	c.lines++
	if c.lines > maxLines {
		c.report(pos{line: s.line, col: 1, file: s.file}, 102, "number of lines", maxLines)
	}
	c.lineNo, c.file, c.isUTF8 = s.line, s.file, s.utf8
	c.replEnd, c.macroCol, c.restCol, c.replaced = 0, 0, 0, 0
	c.fresh = true
	c.buf = append(c.buf[:0], line...)
	for more && s.at < len(s.data) {
		var next []byte
		next, more = s.cut()
		c.lines++
		c.buf = append(c.buf, bytes.TrimLeft(next, " \t")...)
		if len(c.buf) > 1<<16 {
			break
		}
	}
	for i := bytes.IndexByte(c.buf, 0); i >= 0; i = bytes.IndexByte(c.buf, 0) {
		c.buf[i] = ' '
	}
	if s.comment || bytes.IndexByte(c.buf, '/') >= 0 {
		c.stripComments(s)
	}
	c.buf = append(c.buf, 0)
	c.text, c.at = c.buf, 0
	if len(c.buf) > 1<<16 {
		c.report(c.here(), 75)
		c.text = append(c.text[:0], 0)
	}
}

// cut takes a line off the source, without its end. more tells that a backslash continues it.
func (s *source) cut() (line []byte, more bool) {
	rest := s.data[s.at:]
	n := bytes.IndexByte(rest, s.sep)
	if n < 0 {
		n = len(rest)
	}
	line = rest[:n]
	s.at += min(n+1, len(rest))
	s.line++
	if k := len(line); k > 0 && line[k-1] == '\r' {
		line = line[:k-1]
	}
	if t := bytes.TrimRight(line, " \t"); len(t) > 0 && t[len(t)-1] == '\\' {
		return t[:len(t)-1], true
	}
	return line, false
}

// stripComments puts spaces in place of comments in c.buf; strings are left alone.
func (c *compiler) stripComments(s *source) {
	b := c.buf
	for i := 0; i < len(b); i++ {
		switch {
		case s.comment:
			if b[i] == '*' && i+1 < len(b) && b[i+1] == '/' {
				s.comment = false
				b[i], b[i+1] = ' ', ' '
				i++
				continue
			}
			if b[i] == '/' && i+1 < len(b) && b[i+1] == '*' {
				c.report(pos{line: s.line, col: int32(i + 1), file: s.file}, 216)
			}
			if b[i] != '\t' {
				b[i] = ' '
			}
		case b[i] == '/' && i+1 < len(b) && b[i+1] == '*':
			s.comment = true
			b[i], b[i+1] = ' ', ' '
			i++
		case b[i] == '/' && i+1 < len(b) && b[i+1] == '/':
			c.buf = b[:i]
			return
		case b[i] == '"' || b[i] == '\'':
			i = c.endOfString(b, i)
		}
	}
}

// endOfString returns the index of the quote that closes the literal whose opening quote is at i, or the last index.
func (c *compiler) endOfString(b []byte, i int) int {
	raw := i > 0 && (b[i-1] == c.ctrl || b[i-1] == '!' && i > 1 && b[i-2] == c.ctrl)
	quote := b[i]
	if quote == '\'' && i > 0 && isDigit(b[i-1]) {
		return i // a thousands separator
	}
	for i++; i < len(b); i++ {
		if b[i] == c.ctrl && !raw {
			i++
		} else if b[i] == quote || b[i] == 0 {
			return i
		}
	}
	return len(b) - 1
}

// here is the place of the next character.
func (c *compiler) here() pos { return c.posAt(c.at) }

func (c *compiler) posAt(at int) pos {
	col := at + 1
	if c.replEnd > 0 {
		if col = c.restCol + at - c.replEnd; at < c.replEnd {
			col = c.macroCol
		}
	}
	return pos{line: c.lineNo, col: int32(max(col, 1)), file: c.file}
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isAlpha(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '@'
}

func isAlnum(b byte) bool { return isAlpha(b) || isDigit(b) }
