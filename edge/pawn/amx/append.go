package amx

// Append appends the file of p to dst. Publics must be sorted by name. An *Error says what no file can hold. With FlagCompact the code must get shorter, as
// the reference demands.
func (p *Program) Append(dst []byte) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	l, err := p.layout()
	if err != nil {
		return nil, err
	}
	var compact []byte
	size := l.cod + len(p.Code) + len(p.Data)
	if p.Flags&FlagCompact != 0 {
		for _, part := range [][]byte{p.Code, p.Data} {
			for i := 0; i < len(part); i += CellSize {
				compact = appendCompact(compact, order.Uint32(part[i:]))
			}
		}
		if plain := len(p.Code) + len(p.Data); len(compact) > plain {
			return nil, refuse(l.cod, "compact code", len(compact), "at most %d bytes, the plain size", plain)
		}
		size = l.cod + len(compact)
	}
	dst = p.appendHeader(dst, l, size)
	name := l.nametable + 2
	for _, t := range p.named() {
		for _, e := range *t.entries {
			dst = order.AppendUint32(dst, e.Value)
			dst = order.AppendUint32(dst, uint32(name))
			name += len(e.Name) + 1
		}
	}
	for _, o := range p.Overlays {
		dst = order.AppendUint32(dst, uint32(o.Offset))
		dst = order.AppendUint32(dst, uint32(o.Size))
	}
	dst = order.AppendUint16(dst, p.nameLimit())
	for _, t := range p.named() {
		for _, e := range *t.entries {
			dst = append(append(dst, e.Name...), 0)
		}
	}
	dst = append(dst, l.padding...)
	if p.Flags&FlagCompact != 0 {
		dst = append(dst, compact...)
	} else {
		dst = append(append(dst, p.Code...), p.Data...)
	}
	return append(dst, p.Debug...), nil
}

func (p *Program) appendHeader(dst []byte, l places, size int) []byte {
	dat := l.cod + len(p.Code)
	hea := dat + len(p.Data)
	dst = order.AppendUint32(dst, uint32(size))
	dst = order.AppendUint16(dst, magic)
	dst = append(dst, p.Version, p.machine())
	dst = order.AppendUint16(dst, uint16(p.Flags))
	dst = order.AppendUint16(dst, entrySize)
	for _, v := range []int{l.cod, dat, hea, hea + CellSize*int(p.StackHeapCells), int(p.Main), l.publics, l.natives, l.libraries, l.pubvars, l.tags, l.nametable} {
		dst = order.AppendUint32(dst, uint32(int32(v)))
	}
	if p.Version >= 10 {
		dst = order.AppendUint32(dst, uint32(l.overlays))
	}
	return dst
}
