package pawn

import "math/bits"

// Sequences of instructions that compilers write often are joined to one, which does the work of all if nothing can fail, and otherwise leaves them to be
// executed one by one. The first instruction of a sequence is replaced; the others stay, because jumps may lead to them.
const (
	opLocalConstJeq opcode = iota + firstJoined // load.s.pri, const.alt, jump; pri and alt as after them
	opLocalConstJneq
	opLocalConstJsless
	opLocalConstJsleq
	opLocalConstJsgrtr
	opLocalConstJsgeq
	opLocalsJeq // load.s.both, jump
	opLocalsJneq
	opLocalsJsless
	opLocalsJsleq
	opLocalsJsgrtr
	opLocalsJsgeq
	opLocalConst
	opLocalPush
	opLocalPopIndex
	opLocalPopElement
	opConstLocalIndex
	opConstLocalElement
	opConstLocalBoundsIndex
	opConstLocalBoundsElement
	opRow
	opRowPush
	opAddStore
	opPopAdd
	opPopAddStore
	opPopSmul
	opPopStore
	opStoreConst
	opLocalsAdd
	opLocalsAddStore
	opLocalAlt
	opLocalCopy
	opLocalAddC
	opLocalAddCPush
	opLocalConstAnd
	opPushCall
	opStepLocalConstJsgeq
	opStackJump
	opLocalTestJzer
	opLocalDivConst
	opLocalMulAdd
	opStepJump
	opProcLocalConstJsgeq
	opLocalBoundsPopIndex
	opLocalBoundsPopElement
	opConstLocalSet
	opLocalDivPower // opLocalDivConst of a power of 2, whose logarithm is c
)

// joint is a sequence that is joined to one instruction. Its operands are those of the sequence in order, at most three.
type joint struct {
	to   opcode
	from []opcode
}

// joints are the sequences, longer ones before those that they begin with.
var joints = []joint{
	{opStepLocalConstJsgeq, []opcode{opIncS, opLoadSPri, opConstAlt, opJsgeq}}, // of one variable
	{opStepJump, []opcode{opIncS, opJump}},
	{opProcLocalConstJsgeq, []opcode{opProc, opLoadSPri, opConstAlt, opJsgeq}},
	{opLocalTestJzer, []opcode{opLoadSPri, opConstAlt, opAnd, opJzer}},
	{opLocalDivConst, []opcode{opConstPri, opLoadSAlt, opSdivAlt}}, // of a constant that is not 0
	{opLocalMulAdd, []opcode{opLoadSPri, opSmulC, opAddC}},
	{opLocalConstJeq, []opcode{opLoadSPri, opConstAlt, opJeq}},
	{opLocalConstJneq, []opcode{opLoadSPri, opConstAlt, opJneq}},
	{opLocalConstJsless, []opcode{opLoadSPri, opConstAlt, opJsless}},
	{opLocalConstJsleq, []opcode{opLoadSPri, opConstAlt, opJsleq}},
	{opLocalConstJsgrtr, []opcode{opLoadSPri, opConstAlt, opJsgrtr}},
	{opLocalConstJsgeq, []opcode{opLoadSPri, opConstAlt, opJsgeq}},
	{opLocalConstAnd, []opcode{opLoadSPri, opConstAlt, opAnd}},
	{opLocalConst, []opcode{opLoadSPri, opConstAlt}},
	{opLocalBoundsPopElement, []opcode{opLoadSPri, opBounds, opPopAlt, opIdxaddr, opLoadI}},
	{opLocalBoundsPopIndex, []opcode{opLoadSPri, opBounds, opPopAlt, opIdxaddr}},
	{opLocalPopElement, []opcode{opLoadSPri, opPopAlt, opIdxaddr, opLoadI}},
	{opLocalPopIndex, []opcode{opLoadSPri, opPopAlt, opIdxaddr}},
	{opLocalAddCPush, []opcode{opLoadSPri, opAddC, opPushPri}},
	{opLocalAddC, []opcode{opLoadSPri, opAddC}},
	{opLocalPush, []opcode{opLoadSPri, opPushPri}},
	{opLocalCopy, []opcode{opLoadSPri, opStorSPri}},
	{opLocalAlt, []opcode{opLoadSPri, opLoadSAlt}},
	{opLocalsJeq, []opcode{opLoadSBoth, opJeq}},
	{opLocalsJneq, []opcode{opLoadSBoth, opJneq}},
	{opLocalsJsless, []opcode{opLoadSBoth, opJsless}},
	{opLocalsJsleq, []opcode{opLoadSBoth, opJsleq}},
	{opLocalsJsgrtr, []opcode{opLoadSBoth, opJsgrtr}},
	{opLocalsJsgeq, []opcode{opLoadSBoth, opJsgeq}},
	{opLocalsAddStore, []opcode{opLoadSBoth, opAdd, opStorSPri}},
	{opLocalsAdd, []opcode{opLoadSBoth, opAdd}},
	{opConstLocalBoundsElement, []opcode{opConstAlt, opLoadSPri, opBounds, opLidx}},
	{opConstLocalBoundsIndex, []opcode{opConstAlt, opLoadSPri, opBounds, opIdxaddr}},
	{opConstLocalElement, []opcode{opConstAlt, opLoadSPri, opLidx}},
	{opConstLocalSet, []opcode{opConstAlt, opLoadSPri, opIdxaddr, opMoveAlt, opConstPri, opStorI}},
	{opConstLocalIndex, []opcode{opConstAlt, opLoadSPri, opIdxaddr}},
	{opRowPush, []opcode{opMoveAlt, opLoadI, opAdd, opPushPri}},
	{opRow, []opcode{opMoveAlt, opLoadI, opAdd}},
	{opStoreConst, []opcode{opMoveAlt, opConstPri, opStorI}},
	{opAddStore, []opcode{opAdd, opStorSPri}},
	{opPopAddStore, []opcode{opPopAlt, opAdd, opStorSPri}},
	{opPopAdd, []opcode{opPopAlt, opAdd}},
	{opPopSmul, []opcode{opPopAlt, opSmul}},
	{opPopStore, []opcode{opPopAlt, opStorI}},
	{opPushCall, []opcode{opPushC, opCall}},
	{opStackJump, []opcode{opStack, opJump}},
}

// operandsOf returns the number of operands of an instruction in joints.
func operandsOf(op opcode) int {
	switch op {
	case opLoadSBoth, opCall:
		return 2
	case opProc, opAdd, opAnd, opSmul, opSdivAlt, opPopAlt, opPushPri, opMoveAlt, opLoadI, opStorI, opIdxaddr, opLidx:
		return 0
	}
	return 1
}

// join replaces the first instructions of sequences, and keeps all as they were in plain.
func (m *Machine) join() {
	for i := range m.code {
		in := &m.code[i]
		switch {
		case in.op == opLidxB && in.a == 2:
			*in = instr{op: opLidx}
		case in.op == opIdxaddrB && in.a == 2:
			*in = instr{op: opIdxaddr}
		case in.op == opZeroPri:
			*in = instr{op: opConstPri}
		case in.op == opZeroAlt:
			*in = instr{op: opConstAlt}
		}
	}
	m.plain = append([]instr(nil), m.code...)
	for i := range m.code {
		for _, j := range joints {
			if in, ok := j.match(m.plain[i:]); ok {
				m.code[i] = in
				break
			}
		}
	}
}

// match returns the instruction for a sequence that code begins with, and whether it does.
func (j *joint) match(code []instr) (instr, bool) {
	if len(code) < len(j.from) {
		return instr{}, false
	}
	var operands [4]int32
	n := 0
	for i, op := range j.from {
		if code[i].op != op {
			return instr{}, false
		}
		switch operandsOf(op) {
		case 2:
			operands[n], operands[n+1] = code[i].a, code[i].b
			n += 2
		case 1:
			operands[n] = code[i].a
			n++
		}
	}
	if by := operands[0]; j.to == opLocalDivConst {
		if by == 0 {
			return instr{}, false
		}
		if by > 0 && by&(by-1) == 0 {
			return instr{opLocalDivPower, by, operands[1], int32(bits.TrailingZeros32(uint32(by)))}, true
		}
	}
	if j.to == opStepLocalConstJsgeq {
		if operands[0] != operands[1] {
			return instr{}, false
		}
		operands[1], operands[2] = operands[2], operands[3]
	}
	return instr{j.to, operands[0], operands[1], operands[2]}, true
}
