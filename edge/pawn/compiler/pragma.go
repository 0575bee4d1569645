package compiler

import (
	"bytes"
	"slices"
)

// maxStack is the largest stack and heap that a script can ask for, in cells.
const maxStack = 1 << 22

var pragmas = []string{"align", "amxlimit", "amxram", "codepage", "compress", "ctrlchar", "deprecated", "dynamic", "library",
	"overlaysize", "pack", "rational", "semicolon", "tabsize", "unused"}

func (c *compiler) doPragma(p pos) {
	word := string(c.word())
	switch word {
	case "amxlimit":
		c.limit = int(c.lineValue())
	case "amxram":
		c.dataLimit = int(c.lineValue())
	case "codepage", "align":
		c.text[c.at] = 0 // strings are UTF-8 or bytes; every cell is aligned
	case "compress":
		c.compact = c.lineValue() != 0
	case "ctrlchar":
		c.pragmaCtrl(p)
	case "deprecated":
		c.isDeprec, c.deprecated = true, string(bytes.TrimSpace(c.text[c.at:len(c.text)-1]))
		return
	case "dynamic":
		if c.stack = int(c.lineValue()); c.stack < 0 || c.stack > maxStack {
			c.report(p, 102, "size of stack and heap", maxStack)
		}
	case "library":
		c.pragmaLibrary()
	case "overlaysize":
		if c.overlay = int(c.lineValue()); c.old() {
			c.overlay = 0
		}
		c.intern("overlaysize").global[0].value = int32(c.overlay)
	case "pack":
		c.packed = c.lineValue() != 0
	case "rational":
		c.pragmaRational(p)
	case "semicolon":
		c.needSemi = c.lineValue() != 0
	case "tabsize":
		if n := c.lineValue(); n >= 2 && n <= 8 {
			c.tabSize = int(n)
		}
	case "unused":
		c.pragmaUnused(p)
	default:
		c.report(p, 207).closest(word, func() []string { return pragmas })
		return
	}
	c.endLine()
}

func (c *compiler) pragmaCtrl(p pos) {
	c.blanks()
	if c.text[c.at] == 0 {
		c.ctrl = '\\'
		return
	}
	if t := c.lex(); t.kind != tNumber || t.value <= ' ' || t.value > 126 || isAlnum(byte(t.value)) {
		c.report(p, 27).want(t.String(), "a character constant such as '^'", "")
	} else {
		c.ctrl = byte(t.value)
	}
}

func (c *compiler) pragmaLibrary() {
	c.blanks()
	name := string(bytes.Trim(bytes.TrimSpace(c.text[c.at:len(c.text)-1]), `"`))
	c.text[c.at] = 0
	switch {
	case name == "":
		c.nativeLib = ""
	case name == "-":
		c.noLibs = true
	case !slices.Contains(c.libraries, name):
		c.libraries = append(c.libraries, name)
		c.nativeLib = name
	}
}

// rationalLater ends a reading of a script whose rational numbers come before the pragma; Compile recovers it.
type rationalLater struct {
	tag    string
	digits int
}

func (c *compiler) pragmaRational(p pos) {
	tag := c.tagOf(string(c.word()))
	digits := 0
	c.blanks()
	if c.text[c.at] == '(' {
		c.at++
		digits = int(c.lineValue())
		c.take(tClose)
		if digits <= 0 || digits > 9 {
			c.report(p, 68)
			digits = 0
		}
	}
	if c.rationSet && (c.rationTag != tag || c.digits != digits) {
		c.report(p, 69)
		return
	}
	if c.rationEarly {
		panic(rationalLater{c.tagName(tag), digits})
	}
	c.exportTag(tag)
	c.rationSet, c.rationTag, c.digits = true, tag, digits
}

// pragmaUnused marks symbols as used. Inside a function the names are kept for its body, where the local ones are known.
func (c *compiler) pragmaUnused(p pos) {
	for {
		n := c.intern(string(c.word()))
		switch {
		case c.parsing != nil:
			c.parsing.unused = append(c.parsing.unused, unusedName{n, p})
		case len(n.global) > 0:
			n.global[0].use |= useRead | useWritten
		default:
			c.report(p, 17, n.text).closest(n.text, c.globalNames)
		}
		c.blanks()
		if c.text[c.at] != ',' {
			return
		}
		c.at++
	}
}
