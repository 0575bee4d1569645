package corelink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// MaxPayload bounds the payload of a frame.
const MaxPayload = 64 << 10

// Errors of the decoders, wrapped with what was wrong.
var (
	// ErrShort: the bytes end before the frame or message does.
	ErrShort = errors.New("corelink: more bytes wanted")
	// ErrMalformed: no byte that may follow can make it right.
	ErrMalformed = errors.New("corelink: malformed")
)

// coder walks the fields of a message in one of two directions. A message describes its fields once, so both directions agree.
type coder struct {
	dec bool
	b   []byte // encoded so far, or left to decode
	err error
}

func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
}

// take returns the next n bytes to decode, or nil after an error.
func (c *coder) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if len(c.b) < n {
		c.err = fmt.Errorf("%w: message has %d bytes left, next field takes %d", ErrShort, len(c.b), n)
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *coder) u8(v *uint8) {
	if !c.dec {
		c.b = append(c.b, *v)
	} else if b := c.take(1); b != nil {
		*v = b[0]
	}
}

func (c *coder) u16(v *uint16) {
	if !c.dec {
		c.b = binary.LittleEndian.AppendUint16(c.b, *v)
	} else if b := c.take(2); b != nil {
		*v = binary.LittleEndian.Uint16(b)
	}
}

func (c *coder) u32(v *uint32) {
	if !c.dec {
		c.b = binary.LittleEndian.AppendUint32(c.b, *v)
	} else if b := c.take(4); b != nil {
		*v = binary.LittleEndian.Uint32(b)
	}
}

func (c *coder) u64(v *uint64) {
	if !c.dec {
		c.b = binary.LittleEndian.AppendUint64(c.b, *v)
	} else if b := c.take(8); b != nil {
		*v = binary.LittleEndian.Uint64(b)
	}
}

func (c *coder) i64(v *int64) {
	u := uint64(*v)
	c.u64(&u)
	*v = int64(u)
}

func (c *coder) bool(v *bool) {
	var u uint8
	if *v {
		u = 1
	}
	c.u8(&u)
	if u > 1 {
		c.fail("truth value %d, want 0 or 1", u)
	}
	*v = u == 1
}

func (c *coder) f64(v *float64) {
	u := math.Float64bits(*v)
	c.u64(&u)
	*v = math.Float64frombits(u)
	if math.IsNaN(*v) || math.IsInf(*v, 0) {
		c.fail("number %v, want a finite one", *v) // JSON has no form for it
	}
}

func (c *coder) string(v *string) {
	n := c.count(len(*v), MaxPayload-1)
	if !c.dec {
		if !utf8.ValidString(*v) {
			c.fail("text %.40q is not UTF-8", *v)
		}
		c.b = append(c.b, *v...)
		return
	}
	b := c.take(n)
	if !utf8.Valid(b) {
		c.fail("text %.40q is not UTF-8", b)
	}
	*v = string(b)
}

// count carries the length of a list or string, at most limit.
func (c *coder) count(n, limit int) int {
	u := uint16(min(n, math.MaxUint16))
	if n > limit {
		c.fail("count %d, want at most %d", n, limit)
	}
	c.u16(&u)
	if int(u) > limit {
		c.fail("count %d, want at most %d", u, limit)
	}
	if c.err != nil {
		return 0
	}
	return int(u)
}

// list carries a list of at most limit elements. An empty one decodes as nil. each carries one element, in at least a byte, so a
// count cannot ask for more memory than a few times the message's own size.
func list[T any](c *coder, v *[]T, limit int, each func(*coder, *T)) {
	n := c.count(len(*v), limit)
	if !c.dec {
		for i := range n {
			each(c, &(*v)[i])
		}
		return
	}
	*v = nil
	if n > len(c.b) {
		c.err = fmt.Errorf("%w: list of %d in %d bytes", ErrShort, n, len(c.b))
		return
	}
	for range n {
		var e T
		if each(c, &e); c.err != nil {
			return
		}
		*v = append(*v, e)
	}
}

func (c *coder) strings(v *[]string, limit int) {
	list(c, v, limit, func(c *coder, s *string) { c.string(s) })
}

// int carries a number from 0 up to below limit, which is 1<<8 or 1<<16, in as many bytes.
func (c *coder) int(v *int, limit int) {
	if *v < 0 || *v >= limit {
		c.fail("number %d, want 0 to %d", *v, limit-1)
	}
	u := uint16(*v)
	if limit == 1<<8 {
		b := uint8(*v)
		c.u8(&b)
		u = uint16(b)
	} else {
		c.u16(&u)
	}
	if c.dec {
		*v = int(u)
	}
}

// optional carries what may be absent, behind a byte that says so.
func optional[T any](c *coder, v **T, each func(*coder, *T)) {
	there := *v != nil
	c.bool(&there)
	if !there {
		return
	}
	if c.dec {
		*v = new(T)
	}
	each(c, *v)
}
