package amx

import (
	"fmt"
	"slices"
)

// Older returns the program in the file format of an older version, 8 or 9, which firmware 1.0 of Pleo runs (PLEO-AMX-04). It has the same instructions: only
// places in the code are written in another way. A program of version 10 with overlays, packed instructions, or instructions that the older version lacks is
// refused with an *Error whose Offset is in Code.
func (p *Program) Older(version uint8) (*Program, error) {
	if p.Version != MaxVersion || version < MinVersion || version >= MaxVersion {
		return nil, fmt.Errorf("%w: version %d to %d, want %d to %d or %d", ErrVersion, p.Version, version, MaxVersion, MinVersion, MaxVersion-1)
	}
	if len(p.Overlays) > 0 {
		return nil, bad(0, fmt.Sprintf("%d overlays", len(p.Overlays)), "none in version %d", version)
	}
	out := *p
	out.Version, out.Machine = version, 0
	out.Flags &^= FlagOverlay
	out.Code = slices.Clone(p.Code)
	put := func(at int, v int32) { order.PutUint32(out.Code[at:], uint32(v)) }
	for in, err := range p.Instructions(0, len(p.Code)) {
		if err != nil {
			return nil, err
		}
		old := Named(version, in.Op.Name)
		if old == nil || in.Op.Packed {
			return nil, bad(in.Offset, in.Op.Name, "an instruction of version %d", version)
		}
		put(in.Offset, int32(old.Number))
		for i, k := range in.Op.Operands {
			at := in.Offset + CellSize*(1+i)
			switch k {
			case Jump:
				put(at, in.Operands[i])
			case Distance:
				put(at, in.Operands[i]-int32(at)-CellSize)
			case Cases:
				put(at+CellSize, in.Default)
				for n, c := range in.Cases {
					put(at+CellSize*(3+2*n), c.Target)
				}
			}
		}
	}
	return &out, nil
}
