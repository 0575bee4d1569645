package amx

// Compact encoding writes a cell as groups of seven bits, the highest first. All bytes but the last have bit 7 set. Bit 6 of the first byte is the sign, which is
// repeated to the left; the fifth group has only four bits. It is the shortest form that keeps the value.

const (
	groups    = 5
	more      = 0x80 // another byte of the cell follows
	sign      = 0x40
	lastGroup = 0x0F // bits of the fifth group
)

// appendCompact appends v in its shortest form.
func appendCompact(dst []byte, v uint32) []byte {
	n := 1
	for n < groups {
		if rest := int32(v) >> (7*n - 1); rest == 0 || rest == -1 {
			break
		}
		n++
	}
	for n--; n > 0; n-- {
		dst = append(dst, byte(v>>(7*n))&^more|more)
	}
	return append(dst, byte(v)&^more)
}

// compactCell returns the cell at the start of b and the bytes it took. why is set if there is none.
func compactCell(b []byte) (v uint32, n int, why string) {
	if len(b) > 0 && b[0]&sign != 0 {
		v = ^uint32(0)
	}
	for n < len(b) {
		if n == groups {
			return 0, n, "a cell of more than 5 bytes"
		}
		if n == groups-1 && b[0]&^(more|lastGroup) != 0 {
			return 0, n, "a cell of more than 32 bits"
		}
		v = v<<7 | uint32(b[n]&^more)
		n++
		if b[n-1]&more == 0 {
			return v, n, ""
		}
	}
	return 0, n, "a cell that is cut off"
}

// expand returns the cells in b, which begins at that byte of the file, in plain encoding. They must be exactly want bytes, which the caller has compared with len(b).
func expand(b []byte, at, want int) ([]byte, error) {
	out := make([]byte, 0, want)
	for i := 0; i < len(b); {
		v, n, why := compactCell(b[i:])
		if why != "" {
			return nil, refuse(at+i, "compact code", why, "1 to 5 bytes with 32 bits")
		}
		if len(out) == want {
			return nil, refuse(at+i, "compact code", "longer", "%d cells", want/CellSize)
		}
		out = order.AppendUint32(out, v)
		i += n
	}
	if len(out) != want {
		return nil, refuse(at+len(b), "compact code", len(out)/CellSize, "%d cells", want/CellSize)
	}
	return out, nil
}
