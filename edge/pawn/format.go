package pawn

import "strconv"

// maxText is the longest text that Format makes, in bytes.
const maxText = 64 << 10

// Format appends what printf(format, ...) prints, where argument first of c is the format and the others are references to values: %d decimal, %x hexadecimal
// in capitals, %c a character, %s a string, %% a percent sign. Between % and the letter may be +, - (left), 0 (fill), a width, and a longest length for %s after
// a point. Another letter is printed as it is. It returns ErrNative if arguments are missing, as the reference does, and ErrMemAccess for wrong addresses.
func Format(dst []byte, c Call, first int) ([]byte, Code) {
	format, ok := c.M.Text(c.Arg(first), maxText)
	if !ok {
		return dst, ErrMemAccess
	}
	result, next := OK, first+1
	for i := 0; i < len(format) && len(dst) < maxText; i++ {
		if format[i] != '%' {
			dst = append(dst, format[i])
			continue
		}
		spec := placeholder{digits: -1, fill: ' '}
		if i = spec.parse(format, i+1); i >= len(format) {
			break
		}
		letter := format[i]
		if letter == '%' && spec.bare {
			dst = append(dst, letter)
			continue
		}
		if next >= c.Args() {
			result = ErrNative
			continue
		}
		text, known, code := spec.text(c.M, letter, c.Arg(next))
		if code != OK {
			return dst, code
		}
		if known {
			next++
		}
		dst = append(dst, text...)
	}
	return dst, result
}

// placeholder holds the flags and numbers between % and the letter.
type placeholder struct {
	sign, fill    byte
	width, digits int  // digits -1: not given
	bare          bool // no width and no digits
}

// parse reads it from format[i:] and returns where the letter is.
func (p *placeholder) parse(format []byte, i int) int {
	p.bare = true
	for ; i < len(format); i++ {
		switch c := format[i]; {
		case p.bare && (c == '+' || c == '-'):
			p.sign = c
		case p.bare && c == '0':
			p.fill = c
		case p.digits < 0 && (c == '.' || c == ','):
			p.bare, p.digits = false, 0
		case c >= '0' && c <= '9' && p.digits >= 0:
			p.digits = min(p.digits*10+int(c-'0'), maxText)
		case c >= '0' && c <= '9':
			p.bare = false
			p.width = min(p.width*10+int(c-'0'), maxText)
		default:
			return i
		}
	}
	return i
}

// text returns what the placeholder prints for the value at addr, and whether the letter is known.
func (p *placeholder) text(m *Machine, letter byte, addr int32) (text []byte, known bool, code Code) {
	v, ok := m.Cell(addr)
	switch letter {
	case 'c':
		if v < 0 || v > 0xFF {
			text = append(text, string(rune(v))...)
		} else {
			text = append(text, byte(v))
		}
	case 'd':
		if p.sign == '+' && v >= 0 {
			text = append(text, '+')
		}
		text = strconv.AppendInt(text, int64(v), 10)
	case 'x':
		text = strconv.AppendUint(text, uint64(uint32(v)), 16)
		for i, c := range text {
			if c >= 'a' {
				text[i] = c - 'a' + 'A'
			}
		}
	case 's':
		limit := maxText
		if p.digits >= 0 {
			limit = p.digits
		}
		text, ok = m.Text(addr, limit)
		return text, true, access(ok)
	default:
		return []byte{letter}, false, OK
	}
	if !ok {
		return nil, true, ErrMemAccess
	}
	fill := make([]byte, max(0, p.width-len(text)))
	for i := range fill {
		fill[i] = p.fill
	}
	if p.sign == '-' {
		return append(text, fill...), true, OK
	}
	return append(fill, text...), true, OK
}
