package pawn

import "kennel/edge/pawn/amx"

const cell = amx.CellSize

// exit says why loop returned.
type exit uint8

const (
	exitOutside exit = iota // the instruction before ip is for outside
	exitBudget              // at a jump, the budget was used up
	exitFault               // the instruction before ip failed
)

// run executes r until it ends, sleeps, or the budget is used up.
func (m *Machine) run(r *Running, budget int64) (State, Code) {
	m.hea = r.hea
	for {
		why, err := m.loop(r, &budget)
		r.hea, m.stk, m.frm = m.hea, r.stk, r.frm
		switch why {
		case exitBudget:
			return Preempted, OK
		case exitFault:
			r.ip--
			return Ended, err
		}
		in := &m.code[r.ip-1]
		switch in.op {
		case opHalt, opSysreqC, opSysreqN, opSysreqPri:
			state, code := m.call(r, in)
			m.hea, m.stk, m.frm = r.hea, r.stk, r.frm
			if state == Sleeping {
				return state, code
			}
			if code != OK || in.op == opHalt {
				r.ip--
				return Ended, code
			}
		default:
			if code := m.outside(r, in); code != OK {
				r.ip--
				return Ended, code
			}
			m.hea = r.hea
			if in.op >= opMovs {
				budget -= int64(in.a) / cell // a block costs an instruction for each cell
			}
		}
		if budget <= 0 {
			return Preempted, OK
		}
	}
}

// loop executes the frequent instructions. Registers are local variables, and nothing is called, so that they stay in the processor's registers; hea is in m.
// Only places where the code does not continue with the next instruction count the instructions since the last such place.
func (m *Machine) loop(r *Running, budget *int64) (why exit, err Code) {
	var (
		code, mem          = m.code, m.mem
		pri, alt, frm, stk = r.pri, r.alt, r.frm, r.stk
		ip, from           = uint32(r.ip), uint32(r.ip) // next instruction; the first since the last jump
		in                 *instr
		to                 uint32
	)
	for {
		in = &code[ip]
		ip++
		switch in.op {
		case opLoadPri:
			if i := cellIndex(in.a); i < uint(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
		case opLoadAlt:
			if i := cellIndex(in.a); i < uint(len(mem)) {
				alt = mem[i]
			} else {
				goto noMemory
			}
		case opLoadSPri:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
		case opLoadSAlt:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				alt = mem[i]
			} else {
				goto noMemory
			}
		case opLoadBoth:
			if i := cellIndex(in.a); i < uint(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
			if i := cellIndex(in.b); i < uint(len(mem)) {
				alt = mem[i]
			} else {
				goto noMemory
			}
		case opLoadSBoth:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
			if i := cellIndex(frm + in.b); i < uint(len(mem)) {
				alt = mem[i]
			} else {
				goto noMemory
			}
		case opStorPri:
			if i := cellIndex(in.a); i < uint(len(mem)) {
				mem[i] = pri
			} else {
				goto noMemory
			}
		case opStorAlt:
			if i := cellIndex(in.a); i < uint(len(mem)) {
				mem[i] = alt
			} else {
				goto noMemory
			}
		case opStorSPri:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				mem[i] = pri
			} else {
				goto noMemory
			}
		case opStorSAlt:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				mem[i] = alt
			} else {
				goto noMemory
			}
		case opLrefSPri:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
			if i := cellIndex(pri); i < uint(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
		case opSrefSPri:
			var to int32
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				to = mem[i]
			} else {
				goto noMemory
			}
			if i := cellIndex(to); i < uint(len(mem)) {
				mem[i] = pri
			} else {
				goto noMemory
			}
		case opLoadI:
			if pri >= m.hea && pri < stk {
				goto noMemory
			}
			if i := cellIndex(pri); i < uint(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
		case opStorI:
			if alt >= m.hea && alt < stk {
				goto noMemory
			}
			if i := cellIndex(alt); i < uint(len(mem)) {
				mem[i] = pri
			} else {
				goto noMemory
			}
		case opLodbI:
			if pri >= m.hea && pri < stk {
				goto noMemory
			}
			if i := uint(uint32(pri) >> 2); i < uint(len(mem)) && in.a == 1 {
				pri = int32(uint8(mem[i] >> (uint32(pri) & 3 * 8)))
			} else {
				goto leave
			}
		case opStrbI:
			if alt >= m.hea && alt < stk {
				goto noMemory
			}
			if i := uint(uint32(alt) >> 2); i < uint(len(mem)) && in.a == 1 {
				shift := uint32(alt) & 3 * 8
				mem[i] = mem[i]&^(0xFF<<shift) | pri&0xFF<<shift
			} else {
				goto leave
			}
		case opLidx:
			pri = pri*cell + alt
			if pri >= m.hea && pri < stk {
				goto noMemory
			}
			if i := cellIndex(pri); i < uint(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
		case opIdxaddr:
			pri = pri*cell + alt
		case opIdxaddrB:
			pri = pri<<(uint32(in.a)&31) + alt
		case opAlignPri:
			if in.a >= 0 && in.a < cell {
				pri ^= cell - in.a
			}
		case opConstPri:
			pri = in.a
		case opConstAlt:
			alt = in.a
		case opConst:
			if i := cellIndex(in.a); i < uint(len(mem)) {
				mem[i] = in.b
			} else {
				goto noMemory
			}
		case opConstS:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				mem[i] = in.b
			} else {
				goto noMemory
			}
		case opAddrPri:
			pri = frm + in.a
		case opAddrAlt:
			alt = frm + in.a
		case opZeroPri:
			pri = 0
		case opZeroAlt:
			alt = 0
		case opMovePri:
			pri = alt
		case opMoveAlt:
			alt = pri
		case opXchg:
			pri, alt = alt, pri
		case opPushPri:
			stk -= cell
			if i := cellIndex(stk); i < uint(len(mem)) {
				mem[i] = pri
			} else {
				goto noStack
			}
		case opPushAlt:
			stk -= cell
			if i := cellIndex(stk); i < uint(len(mem)) {
				mem[i] = alt
			} else {
				goto noStack
			}
		case opPushC:
			stk -= cell
			if i := cellIndex(stk); i < uint(len(mem)) {
				mem[i] = in.a
			} else {
				goto noStack
			}
		case opPush:
			var v int32
			if i := cellIndex(in.a); i < uint(len(mem)) {
				v = mem[i]
			} else {
				goto noMemory
			}
			stk -= cell
			if i := cellIndex(stk); i < uint(len(mem)) {
				mem[i] = v
			} else {
				goto noStack
			}
		case opPushS:
			var v int32
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				v = mem[i]
			} else {
				goto noMemory
			}
			stk -= cell
			if i := cellIndex(stk); i < uint(len(mem)) {
				mem[i] = v
			} else {
				goto noStack
			}
		case opPushAdr:
			stk -= cell
			if i := cellIndex(stk); i < uint(len(mem)) {
				mem[i] = frm + in.a
			} else {
				goto noStack
			}
		case opPopPri:
			if i := cellIndex(stk); i < uint(len(mem)) {
				pri = mem[i]
			} else {
				goto stackLow
			}
			stk += cell
		case opPopAlt:
			if i := cellIndex(stk); i < uint(len(mem)) {
				alt = mem[i]
			} else {
				goto stackLow
			}
			stk += cell
		case opStack:
			alt = stk
			stk += in.a
			if m.hea+margin > stk {
				goto noStack
			}
			if stk > m.stp {
				goto stackLow
			}
		case opHeap:
			alt = m.hea
			m.hea += in.a
			if m.hea+margin > stk {
				goto noStack
			}
			if m.hea < m.hlw {
				err = ErrHeapLow
				goto fault
			}
		case opProc:
			stk -= cell
			if i := cellIndex(stk); i < uint(len(mem)) {
				mem[i] = frm
			} else {
				goto noStack
			}
			frm = stk
			if m.hea+margin > stk {
				goto noStack
			}
		case opRetn:
			i := cellIndex(stk)
			if i >= uint(len(mem)) || i+2 >= uint(len(mem)) {
				goto stackLow
			}
			frm = mem[i]
			if back := cellIndex(mem[i+1]); back < uint(in.b) {
				to = uint32(m.index[uint(in.a)+back])
			} else {
				goto noMemory
			}
			if int32(to) < 0 {
				goto noMemory
			}
			stk += mem[i+2] + 3*cell
			goto jump
		case opAdd:
			pri += alt
		case opSub:
			pri -= alt
		case opSubAlt:
			pri = alt - pri
		case opSmul:
			pri *= alt
		case opSdiv:
			if alt == 0 {
				goto noDivision
			}
			pri, alt = divide(pri, alt)
		case opSdivAlt:
			if pri == 0 {
				goto noDivision
			}
			pri, alt = divide(alt, pri)
		case opAnd:
			pri &= alt
		case opOr:
			pri |= alt
		case opXor:
			pri ^= alt
		case opNot:
			pri = truth(pri == 0)
		case opNeg:
			pri = -pri
		case opInvert:
			pri = ^pri
		case opShl:
			pri <<= uint32(alt) & 31
		case opShr:
			pri = int32(uint32(pri) >> (uint32(alt) & 31))
		case opSshr:
			pri >>= uint32(alt) & 31
		case opShlCPri:
			pri <<= uint32(in.a) & 31
		case opShlCAlt:
			alt <<= uint32(in.a) & 31
		case opAddC:
			pri += in.a
		case opSmulC:
			pri *= in.a
		case opEq:
			pri = truth(pri == alt)
		case opNeq:
			pri = truth(pri != alt)
		case opSless:
			pri = truth(pri < alt)
		case opSleq:
			pri = truth(pri <= alt)
		case opSgrtr:
			pri = truth(pri > alt)
		case opSgeq:
			pri = truth(pri >= alt)
		case opEqCPri:
			pri = truth(pri == in.a)
		case opEqCAlt:
			pri = truth(alt == in.a)
		case opIncPri:
			pri++
		case opInc:
			if i := cellIndex(in.a); i < uint(len(mem)) {
				mem[i]++
			} else {
				goto noMemory
			}
		case opIncS:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				mem[i]++
			} else {
				goto noMemory
			}
		case opIncI:
			if i := cellIndex(pri); i < uint(len(mem)) {
				mem[i]++
			} else {
				goto noMemory
			}
		case opDecPri:
			pri--
		case opDec:
			if i := cellIndex(in.a); i < uint(len(mem)) {
				mem[i]--
			} else {
				goto noMemory
			}
		case opDecS:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				mem[i]--
			} else {
				goto noMemory
			}
		case opBounds:
			if uint32(pri) > uint32(in.a) {
				err = ErrBounds
				goto fault
			}
		case opCall:
			stk -= cell
			if i := cellIndex(stk); i < uint(len(mem)) {
				mem[i] = in.b
			} else {
				goto noStack
			}
			goto jumpA
		case opJump:
			goto jumpA
		case opJzer:
			if pri == 0 {
				goto jumpA
			}
		case opJnz:
			if pri != 0 {
				goto jumpA
			}
		case opJeq:
			if pri == alt {
				goto jumpA
			}
		case opJneq:
			if pri != alt {
				goto jumpA
			}
		case opJsless:
			if pri < alt {
				goto jumpA
			}
		case opJsleq:
			if pri <= alt {
				goto jumpA
			}
		case opJsgrtr:
			if pri > alt {
				goto jumpA
			}
		case opJsgeq:
			if pri >= alt {
				goto jumpA
			}
		case opJless:
			if uint32(pri) < uint32(alt) {
				goto jumpA
			}
		case opJleq:
			if uint32(pri) <= uint32(alt) {
				goto jumpA
			}
		case opJgrtr:
			if uint32(pri) > uint32(alt) {
				goto jumpA
			}
		case opJgeq:
			if uint32(pri) >= uint32(alt) {
				goto jumpA
			}
		default:
			goto leave
		}
		continue

	jumpA:
		to = uint32(in.a)
	jump:
		*budget -= int64(ip - from)
		ip, from = to, to
		if *budget > 0 {
			continue
		}
		why = exitBudget
		goto leave
	}

noMemory:
	err = ErrMemAccess
	goto fault
noStack:
	err = ErrStack
	goto fault
stackLow:
	err = ErrStackLow
	goto fault
noDivision:
	err = ErrDivide
fault:
	why = exitFault
leave:
	*budget -= int64(ip - from)
	r.pri, r.alt, r.frm, r.stk, r.ip = pri, alt, frm, stk, int32(ip)
	return why, err
}

func truth(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// divide returns the quotient, rounded down, and the remainder, which has the sign of b (PLEO-AMX-04). b is not 0. The smallest number divided by -1 is itself.
func divide(a, b int32) (quotient, remainder int32) {
	q, rest := a/b, a%b
	if rest != 0 && rest^b < 0 {
		return q - 1, rest + b
	}
	return q, rest
}
