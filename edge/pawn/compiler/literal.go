package compiler

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// Kinds of strings.
const (
	strPacked uint8 = 1 << iota
	strRaw
)

// lexNumber reads a binary, decimal, hexadecimal or rational number.
func (c *compiler) lexNumber(t *token) {
	t.kind = tNumber
	b := c.text[c.at:]
	switch {
	case b[0] == '0' && b[1] == 'b' && (b[2] == '0' || b[2] == '1'):
		i := 2
		var v uint32
		for ; b[i] == '0' || b[i] == '1' || b[i] == '_'; i++ {
			if b[i] != '_' {
				v = v<<1 | uint32(b[i]-'0')
			}
		}
		t.value = int32(v)
		c.endNumber(t, i)
	case b[0] == '0' && b[1] == 'x' && hexDigit(b[2]) >= 0:
		i := 2
		var v uint32
		for ; hexDigit(b[i]) >= 0 || b[i] == '_'; i++ {
			if b[i] != '_' {
				v = v<<4 | uint32(hexDigit(b[i]))
			}
		}
		t.value = int32(v)
		c.endNumber(t, i)
	default:
		c.lexDecimal(t, b)
	}
}

func (c *compiler) lexDecimal(t *token, b []byte) {
	i, group := 0, -1 // digits since a separator
	var v uint32
	for ; isDigit(b[i]) || b[i] == '\'' && isDigit(b[i+1]); i++ {
		if b[i] == '\'' {
			if group >= 0 && group != 3 {
				break
			}
			group = 0
			continue
		}
		v = v*10 + uint32(b[i]-'0')
		if group >= 0 {
			group++
		}
	}
	t.value = int32(v)
	if b[i] == '.' && isDigit(b[i+1]) {
		c.lexRational(t, b)
		return
	}
	if group >= 0 && group != 3 {
		c.report(t.pos, 92).want(quote(string(b[:i])), "groups of three digits", "")
	}
	c.endNumber(t, i)
}

func (c *compiler) endNumber(t *token, n int) {
	b := c.text[c.at:]
	if isAlnum(b[n]) {
		i := n
		for isAlnum(b[i]) {
			i++
		}
		c.report(t.pos, 92).want(quote(string(b[:i])), "a number", "")
		n, t.value = i, 0
	}
	c.at += n
}

// lexRational reads a number with a fraction: IEEE 754 or fixed point, as #pragma rational says.
func (c *compiler) lexRational(t *token, b []byte) {
	i := 0
	for isDigit(b[i]) || b[i] == '.' && isDigit(b[i+1]) {
		i++
	}
	mantissa := i
	if b[i] == 'e' || b[i] == 'E' {
		j := i + 1
		if b[j] == '-' || b[j] == '+' {
			j++
		}
		if isDigit(b[j]) {
			for isDigit(b[j]) {
				j++
			}
			i = j
		}
	}
	t.kind = tRational
	v, err := strconv.ParseFloat(string(b[:i]), 64)
	if err != nil && math.IsInf(v, 0) {
		c.report(t.pos, 105)
	} else if err != nil {
		c.report(t.pos, 92).want(quote(string(b[:i])), "a rational number", "")
	}
	switch {
	case !c.rationSet:
		c.rationEarly = true
		c.report(t.pos, 70).want(quote(string(b[:i])), "", `add "#pragma rational Float"`)
	case c.digits == 0:
		t.value = int32(math.Float32bits(float32(v)))
	default:
		fraction := 0
		for j := mantissa; j > 0 && b[j-1] != '.'; j-- {
			fraction++
		}
		if fraction > c.digits {
			c.report(t.pos, 222)
		}
		t.value = int32(int64(v*math.Pow10(c.digits) + 0.5))
	}
	c.endNumber(t, i)
}

func hexDigit(b byte) int {
	switch {
	case isDigit(b):
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

// lexChar reads a character constant.
func (c *compiler) lexChar(t *token) {
	c.at++
	t.kind = tNumber
	t.value = c.char(0)
	if c.text[c.at] == '\'' {
		c.at++
		return
	}
	m := c.report(t.pos, 27)
	for i := c.at; c.text[i] != 0; i++ {
		if c.text[i] == '\'' {
			m.want("several characters", "one character", "use double quotes for a string")
			c.at = i + 1
			return
		}
	}
	m.want("", `"'" after the character`, `add "'"`)
}

var escapes = map[byte]int32{'a': 7, 'b': 8, 'e': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11, '\'': '\'', '"': '"', '%': '%'}

// char reads one character, perhaps an escape, and moves on. flags has strRaw for a raw string and strPacked where characters
// are bytes.
func (c *compiler) char(flags uint8) int32 {
	b := c.text[c.at]
	if b == 0 {
		return 0
	}
	if b != c.ctrl || flags&strRaw != 0 {
		if c.isUTF8 && flags&strPacked == 0 && b >= 0x80 {
			r, n := utf8.DecodeRune(c.text[c.at:])
			c.at += n
			return int32(r)
		}
		c.at++
		return int32(b)
	}
	at := c.here()
	c.at++
	b = c.text[c.at]
	if b == c.ctrl {
		c.at++
		return int32(b)
	}
	if v, ok := escapes[b]; ok {
		c.at++
		return v
	}
	var v int32
	switch {
	case b == 'x':
		for c.at++; hexDigit(c.text[c.at]) >= 0; c.at++ {
			v = v<<4 + int32(hexDigit(c.text[c.at]))
		}
	case isDigit(b):
		for ; isDigit(c.text[c.at]); c.at++ {
			v = v*10 + int32(c.text[c.at]-'0')
		}
	default:
		c.report(at, 27).want(quote(string(rune(b))), "one of a b e f n r t v x or digits after the control character", "")
		if b != 0 {
			c.at++
		}
		return 0
	}
	if c.text[c.at] == ';' {
		c.at++
	}
	return v
}

// lexString reads a string whose opening quote was taken.
func (c *compiler) lexString(t *token, flags uint8) {
	t.kind, t.flags = tString, flags
	t.packed = flags&strPacked != 0 != c.packed
	mode := flags & strRaw
	if t.packed {
		mode |= strPacked
	}
	for c.text[c.at] != '"' {
		if c.text[c.at] == 0 {
			c.report(t.pos, 37).want("end of line", `"\""`, "close the string")
			return
		}
		at := c.here()
		v := c.char(mode)
		if t.packed && (v < 0 || v > 255) {
			c.report(at, 43)
			v &= 255
		}
		t.chars = append(t.chars, v)
	}
	c.at++
}

// stringCells appends the cells of a string with its terminating zero.
func stringCells(dst, chars []int32, packed bool) []int32 {
	if !packed {
		return append(append(dst, chars...), 0)
	}
	for i := 0; i <= len(chars); i += 4 {
		var cell uint32
		for k := range 4 {
			cell <<= 8
			if i+k < len(chars) {
				cell |= uint32(uint8(chars[i+k]))
			}
		}
		dst = append(dst, int32(cell))
	}
	return dst
}
