// Package hdlc frames packets on a serial line as RFC 1662 does, between the processor in Pleo's head and the one in its body (PLEO-PKT-01): a flag before and
// after each packet, two bytes for each one that would be taken for a flag, and a check sequence of 16 bits at its end.
//
//	7E | packet and FCS, with 7E as 7D 5E and 7D as 7D 5D | 7E
//
// Address, control and protocol fields are left out. The programming guide names the standard alone; the rest is an own choice.
package hdlc

import "errors"

// MaxPacket is the longest packet in bytes (PLEO-PKT-11).
const MaxPacket = 400

// The bytes with a meaning of their own.
const (
	flag   = 0x7E
	escape = 0x7D
	turn   = 0x20 // is XORed with an escaped byte
)

// good is the check sequence of a packet with its own check sequence behind it.
const good = 0xF0B8

// ErrLength says that a packet is empty, or longer than MaxPacket.
var ErrLength = errors.New("hdlc: packet: want 1 to 400 bytes")

// FCS returns the check sequence of b: the polynomial 0x8408 from 0xFFFF on, complemented.
func FCS(b []byte) uint16 { return ^run(0xFFFF, b) }

func run(sum uint16, b []byte) uint16 {
	for _, c := range b {
		sum ^= uint16(c)
		for range 8 {
			if sum&1 != 0 {
				sum = sum>>1 ^ 0x8408
			} else {
				sum >>= 1
			}
		}
	}
	return sum
}

// Append appends a packet as a frame to dst; ErrLength leaves dst as it was.
func Append(dst, packet []byte) ([]byte, error) {
	if len(packet) == 0 || len(packet) > MaxPacket {
		return dst, ErrLength
	}
	fcs := FCS(packet)
	dst = append(dst, flag)
	for _, c := range packet {
		dst = stuff(dst, c)
	}
	return append(stuff(stuff(dst, byte(fcs)), byte(fcs>>8)), flag), nil
}

func stuff(dst []byte, c byte) []byte {
	if c == flag || c == escape {
		return append(dst, escape, c^turn)
	}
	return append(dst, c)
}

// Counts are those of a Reader since it began.
type Counts struct {
	Packets uint64
	Corrupt uint64 // a wrong check sequence, an escape before a flag, or fewer than three bytes
	Long    uint64 // longer than MaxPacket
}

// Reader takes packets out of a stream. The zero value is ready; it is not safe for concurrent use.
type Reader struct {
	Counts
	buf     [MaxPacket + 2]byte
	n       int
	escaped bool
	skips   bool // the rest of a frame that is too long
}

// Take hands each whole packet in b to f; what is left waits for the next call. A packet is valid until f returns.
func (r *Reader) Take(b []byte, f func(packet []byte)) {
	for _, c := range b {
		switch {
		case c == flag:
			r.end(f)
		case r.skips:
		case c == escape && !r.escaped:
			r.escaped = true
		case r.n == len(r.buf):
			r.Long++
			r.skips = true
		default:
			if r.escaped {
				c ^= turn
			}
			r.escaped = false
			r.buf[r.n] = c
			r.n++
		}
	}
}

// end closes the frame; flags in a row are one.
func (r *Reader) end(f func([]byte)) {
	b, broken, skips := r.buf[:r.n], r.escaped, r.skips
	r.n, r.escaped, r.skips = 0, false, false
	switch {
	case skips || len(b) == 0 && !broken:
	case broken || len(b) < 3 || run(0xFFFF, b) != good:
		r.Corrupt++
	default:
		r.Packets++
		f(b[:len(b)-2])
	}
}
