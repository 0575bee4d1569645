package pawn

import (
	"cmp"
	"math/bits"
)

// cellIndex returns the index of the cell at addr; a value beyond any memory if addr is not a multiple of four.
func cellIndex(addr int32) uint { return uint(bits.RotateLeft32(uint32(addr), -2)) }

// Cell returns the cell at addr, and whether there is one.
func (m *Machine) Cell(addr int32) (int32, bool) {
	if i := cellIndex(addr); i < uint(len(m.mem)) {
		return m.mem[i], true
	}
	return 0, false
}

// Frame returns the frame of the function that runs, or that is paused, and those of its callers, the latest first, at most limit of them. The local variables
// of a function are at their addresses from its frame on.
func (m *Machine) Frame(limit int) (frames []int32) {
	for at := m.frm; at > 0 && at < m.stp && len(frames) < limit; {
		frames = append(frames, at)
		before, ok := m.Cell(at)
		if !ok || before <= at {
			break
		}
		at = before
	}
	return frames
}

// SetCell writes the cell at addr, and reports whether there is one.
func (m *Machine) SetCell(addr, v int32) bool {
	i := cellIndex(addr)
	if i >= uint(len(m.mem)) {
		return false
	}
	m.mem[i] = v
	return true
}

// Text returns the string at addr, packed (four characters in a cell, the first in the highest byte) or unpacked (one in a cell). It ends before a zero, at the
// end of the memory, or after limit characters; ok is false if no cell is at addr. Characters above 255 of unpacked strings come as UTF-8, others as bytes
// (part of PLEO-VM-21).
func (m *Machine) Text(addr int32, limit int) (text []byte, ok bool) {
	i := cellIndex(addr)
	if i >= uint(len(m.mem)) {
		return nil, false
	}
	packed := uint32(m.mem[i]) > unpackedMax
	for n := 0; n < limit; n++ {
		var c rune
		if packed {
			at := i + uint(n/4)
			if at >= uint(len(m.mem)) {
				break
			}
			c = rune(uint8(m.mem[at] >> (24 - 8*(n%4))))
		} else {
			at := i + uint(n)
			if at >= uint(len(m.mem)) {
				break
			}
			c = m.mem[at]
		}
		if c == 0 {
			break
		}
		if c > 0xFF {
			text = append(text, string(c)...)
		} else {
			text = append(text, byte(c))
		}
	}
	return text, true
}

// unpackedMax is the highest first cell of an unpacked string.
const unpackedMax = 0xFFFFFF

// SetText writes text to addr, packed or not, cut so that it and its zero take at most cells cells. It reports whether the memory is there.
func (m *Machine) SetText(addr int32, text []byte, packed bool, cells int) bool {
	i := cellIndex(addr)
	if cells < 1 || i >= uint(len(m.mem)) || cells > len(m.mem)-int(i) {
		return false
	}
	to := m.mem[i : int(i)+cells]
	if !packed {
		text = text[:min(len(text), cells-1)]
		for n, c := range text {
			to[n] = int32(c)
		}
		to[len(text)] = 0
		return true
	}
	text = text[:min(len(text), 4*cells-1)]
	clear(to[:len(text)/4+1])
	for n, c := range text {
		to[n/4] |= int32(uint32(c) << (24 - 8*(n%4)))
	}
	return true
}

// readable reports whether addr is not in the gap between heap and stack, nor at or above the top of the stack.
func (m *Machine) readable(addr, hea, stk int32) bool {
	return !(addr >= hea && addr < stk) && uint32(addr) < uint32(m.stp)
}

// span reports whether size bytes from addr are all on one side of the gap and below the top of the stack, as the reference checks blocks.
func (m *Machine) span(addr, size, hea, stk int32) bool {
	end := addr + size
	return size >= 0 && m.readable(addr, hea, stk) && !(end > hea && end < stk) && uint32(end) <= uint32(m.stp) && uint32(addr) <= uint32(end)
}

// byteAt returns the byte at addr, which must be inside the memory.
func (m *Machine) byteAt(addr int32) int32 {
	return int32(uint8(m.mem[uint32(addr)>>2] >> (8 * (uint32(addr) & 3))))
}

func (m *Machine) setByte(addr, v int32) {
	shift := 8 * (uint32(addr) & 3)
	p := &m.mem[uint32(addr)>>2]
	*p = *p&^(0xFF<<shift) | (v&0xFF)<<shift
}

// load returns size bytes (1, 2 or 4) at addr, little-endian, as lodb.i does; other sizes leave was.
func (m *Machine) load(addr, size, was int32) (int32, bool) {
	switch size {
	case 1:
		return m.byteAt(addr), true
	case 2:
		if uint32(addr)+1 >= uint32(m.stp) {
			return 0, false
		}
		return m.byteAt(addr) | m.byteAt(addr+1)<<8, true
	case 4:
		return m.Cell(addr)
	}
	return was, true
}

// store writes the low size bytes of v to addr.
func (m *Machine) store(addr, size, v int32) bool {
	switch size {
	case 1:
		m.setByte(addr, v)
	case 2:
		if uint32(addr)+1 >= uint32(m.stp) {
			return false
		}
		m.setByte(addr, v)
		m.setByte(addr+1, v>>8)
	case 4:
		return m.SetCell(addr, v)
	}
	return true
}

// move copies size bytes. Both spans were checked.
func (m *Machine) move(to, from, size int32) {
	if (to|from|size)&3 == 0 {
		copy(m.mem[to>>2:(to+size)>>2], m.mem[from>>2:(from+size)>>2])
		return
	}
	for i := int32(0); i < size; i++ {
		m.setByte(to+i, m.byteAt(from+i))
	}
}

// compare returns -1, 0 or 1: how the first byte at a that differs from the one at b compares with it.
func (m *Machine) compare(a, b, size int32) int32 {
	for i := int32(0); i < size; i++ {
		if c := cmp.Compare(m.byteAt(a+i), m.byteAt(b+i)); c != 0 {
			return int32(c)
		}
	}
	return 0
}
