package amx

import (
	"errors"
	"fmt"
	"iter"
)

// ErrInstruction is wrapped by the Error about code that holds no instruction.
var ErrInstruction = errors.New("invalid instruction") // error 6 of the reference

// Instr is an instruction in the code of a program.
type Instr struct {
	Offset int // bytes in Program.Code
	Size   int // bytes, with the table of cases
	Op     *Op

	// Operands as the code has them, except that places in the code are byte offsets in Program.Code (also outside of it, if the code lies). Those past the
	// instruction's own are 0.
	Operands [5]int32

	Default int32  // of a table of cases: the place or overlay for no case
	Cases   []Case // of a table of cases
}

// Case is a case of a switch.
type Case struct {
	Value  int32
	Target int32 // place in the code, as in Operands, or the index of an overlay
}

// Instructions returns the instructions in Code[from:to], in order. An error is an *Error whose Offset is in Code; it ends the sequence.
func (p *Program) Instructions(from, to int) iter.Seq2[Instr, error] {
	return func(yield func(Instr, error) bool) {
		for at := from; at < to; {
			in, err := p.instruction(at, to)
			if !yield(in, err) || err != nil {
				return
			}
			at += in.Size
		}
	}
}

func bad(at int, found, want string, args ...any) error {
	return &Error{Offset: at, Field: "code", Found: found, Want: fmt.Sprintf(want, args...), Err: ErrInstruction}
}

func (p *Program) cell(at int) int32 { return int32(order.Uint32(p.Code[at:])) }

// place returns the offset that the cell at says, where at is also the place that distances count from, plus a cell.
func (p *Program) place(at int) int32 {
	if p.Version < 10 {
		return p.cell(at)
	}
	return p.cell(at) + int32(at) - CellSize
}

func (p *Program) instruction(at, end int) (Instr, error) {
	in := Instr{Offset: at, Size: CellSize}
	if at < 0 || at%CellSize != 0 || end > len(p.Code) || at+CellSize > end {
		return in, bad(at, "outside", "whole cells inside the code of %d bytes", len(p.Code))
	}
	c := p.cell(at)
	number := uint32(c)
	if p.Version >= 10 {
		number &= 0xFFFF
	}
	if number > ops212 {
		return in, bad(at, fmt.Sprintf("opcode %d", number), "an instruction of version %d", p.Version)
	}
	if in.Op = Numbered(p.Version, uint16(number)); in.Op == nil {
		return in, bad(at, fmt.Sprintf("opcode %d", number), "an instruction of version %d", p.Version)
	}
	if in.Op.Packed {
		in.Operands[0] = c >> 16
		return in, nil
	}
	if uint32(c) != number {
		return in, bad(at, fmt.Sprintf("%s with the upper half %#04x", in.Op.Name, uint32(c)>>16), "0 there: it is not packed")
	}
	in.Size = CellSize * in.Op.Cells()
	if at+in.Size > end {
		return in, bad(at, in.Op.Name+" that is cut off", "%d bytes", in.Size)
	}
	for i, k := range in.Op.Operands {
		operand := at + CellSize*(1+i)
		switch k {
		case Jump:
			in.Operands[i] = p.place(operand)
		case Distance:
			in.Operands[i] = p.cell(operand) + int32(operand) - CellSize
			if p.Version < 10 {
				in.Operands[i] += 2 * CellSize
			}
		case Cases, OverlayCases:
			return in, p.cases(&in, k, operand, end)
		default:
			in.Operands[i] = p.cell(operand)
		}
	}
	return in, nil
}

// cases reads the table whose number of cases is at.
func (p *Program) cases(in *Instr, k Kind, at, end int) error {
	n := p.cell(at)
	in.Operands[0] = n
	if n < 0 || int64(at)+2*CellSize+2*CellSize*int64(n) > int64(end) {
		return bad(in.Offset, fmt.Sprintf("%s of %d cases", in.Op.Name, n), "at most %d up to the end of the code", max(0, (end-at-2*CellSize)/(2*CellSize)))
	}
	place := p.place
	if k == OverlayCases {
		place = p.cell
	}
	in.Default = place(at + CellSize)
	in.Cases = make([]Case, n)
	for i := range in.Cases {
		at += 2 * CellSize
		in.Cases[i] = Case{p.cell(at), place(at + CellSize)}
	}
	in.Size += CellSize + 2*CellSize*int(n)
	return nil
}
