package pawn

import "kennel/edge/pawn/amx"

const cell = amx.CellSize

// run executes r until it ends, sleeps, or the budget is used up. Registers are local variables so that they stay in the processor's; instructions that are rare
// or long are in cold. Only places where the code does not go straight on count the instructions since the last such place.
func (m *Machine) run(r *Running, budget int64) (State, Code) {
	var (
		code, mem, index        = m.code, m.mem, m.index
		pri, alt, frm, stk, hea = r.pri, r.alt, r.frm, r.stk, r.hea
		ip, from                = uint32(r.ip), uint32(r.ip) // next instruction; the first since the last jump
		in                      *instr
		to                      uint32
		err                     Code
		state                   State
		ok                      bool
	)
	for {
		in = &code[ip]
		ip++
		switch in.op {
		case opLoadPri:
			if i := cellIndex(in.a); i < uint32(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
		case opLoadAlt:
			if i := cellIndex(in.a); i < uint32(len(mem)) {
				alt = mem[i]
			} else {
				goto noMemory
			}
		case opLoadSPri:
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
		case opLoadSAlt:
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
				alt = mem[i]
			} else {
				goto noMemory
			}
		case opLoadBoth:
			if i := cellIndex(in.a); i < uint32(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
			if i := cellIndex(in.b); i < uint32(len(mem)) {
				alt = mem[i]
			} else {
				goto noMemory
			}
		case opLoadSBoth:
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
			if i := cellIndex(frm + in.b); i < uint32(len(mem)) {
				alt = mem[i]
			} else {
				goto noMemory
			}
		case opStorPri:
			if i := cellIndex(in.a); i < uint32(len(mem)) {
				mem[i] = pri
			} else {
				goto noMemory
			}
		case opStorAlt:
			if i := cellIndex(in.a); i < uint32(len(mem)) {
				mem[i] = alt
			} else {
				goto noMemory
			}
		case opStorSPri:
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
				mem[i] = pri
			} else {
				goto noMemory
			}
		case opStorSAlt:
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
				mem[i] = alt
			} else {
				goto noMemory
			}
		case opLrefSPri:
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
			if i := cellIndex(pri); i < uint32(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
		case opSrefSPri:
			var to int32
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
				to = mem[i]
			} else {
				goto noMemory
			}
			if i := cellIndex(to); i < uint32(len(mem)) {
				mem[i] = pri
			} else {
				goto noMemory
			}
		case opLoadI:
			if pri >= hea && pri < stk {
				goto noMemory
			}
			if i := cellIndex(pri); i < uint32(len(mem)) {
				pri = mem[i]
			} else {
				goto noMemory
			}
		case opStorI:
			if alt >= hea && alt < stk {
				goto noMemory
			}
			if i := cellIndex(alt); i < uint32(len(mem)) {
				mem[i] = pri
			} else {
				goto noMemory
			}
		case opLodbI:
			if !m.readable(pri, hea, stk) {
				goto noMemory
			}
			if in.a == 1 {
				pri = int32(uint8(mem[uint32(pri)>>2] >> (8 * (uint32(pri) & 3))))
			} else if pri, ok = m.load(pri, in.a, pri); !ok {
				goto noMemory
			}
		case opStrbI:
			if !m.readable(alt, hea, stk) || !m.store(alt, in.a, pri) {
				goto noMemory
			}
		case opLidx:
			pri = pri*cell + alt
			if pri >= hea && pri < stk {
				goto noMemory
			}
			if i := cellIndex(pri); i < uint32(len(mem)) {
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
			if i := cellIndex(in.a); i < uint32(len(mem)) {
				mem[i] = in.b
			} else {
				goto noMemory
			}
		case opConstS:
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
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
			if i := cellIndex(stk); i < uint32(len(mem)) {
				mem[i] = pri
			} else {
				goto noStack
			}
		case opPushAlt:
			stk -= cell
			if i := cellIndex(stk); i < uint32(len(mem)) {
				mem[i] = alt
			} else {
				goto noStack
			}
		case opPushC:
			stk -= cell
			if i := cellIndex(stk); i < uint32(len(mem)) {
				mem[i] = in.a
			} else {
				goto noStack
			}
		case opPush:
			var v int32
			if i := cellIndex(in.a); i < uint32(len(mem)) {
				v = mem[i]
			} else {
				goto noMemory
			}
			stk -= cell
			if i := cellIndex(stk); i < uint32(len(mem)) {
				mem[i] = v
			} else {
				goto noStack
			}
		case opPushS:
			var v int32
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
				v = mem[i]
			} else {
				goto noMemory
			}
			stk -= cell
			if i := cellIndex(stk); i < uint32(len(mem)) {
				mem[i] = v
			} else {
				goto noStack
			}
		case opPushAdr:
			stk -= cell
			if i := cellIndex(stk); i < uint32(len(mem)) {
				mem[i] = frm + in.a
			} else {
				goto noStack
			}
		case opPopPri:
			if i := cellIndex(stk); i < uint32(len(mem)) {
				pri = mem[i]
			} else {
				goto stackLow
			}
			stk += cell
		case opPopAlt:
			if i := cellIndex(stk); i < uint32(len(mem)) {
				alt = mem[i]
			} else {
				goto stackLow
			}
			stk += cell
		case opStack:
			alt = stk
			stk += in.a
			if hea+margin > stk {
				goto noStack
			}
			if stk > m.stp {
				goto stackLow
			}
		case opHeap:
			alt = hea
			hea += in.a
			if hea+margin > stk {
				goto noStack
			}
			if hea < m.hlw {
				err = ErrHeapLow
				goto fault
			}
		case opProc:
			stk -= cell
			if i := cellIndex(stk); i < uint32(len(mem)) {
				mem[i] = frm
			} else {
				goto noStack
			}
			frm = stk
			if hea+margin > stk {
				goto noStack
			}
		case opRetn:
			i := cellIndex(stk)
			if i >= uint32(len(mem)) || i+2 >= uint32(len(mem)) {
				goto stackLow
			}
			frm = mem[i]
			if to = cellIndex(mem[i+1]); to >= uint32(in.b) {
				goto noMemory
			}
			stk += mem[i+2] + 3*cell
			if to = uint32(index[in.a+int32(to)]); int32(to) < 0 {
				goto noMemory
			}
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
				goto divide
			}
			pri, alt = divide(pri, alt)
		case opSdivAlt:
			if pri == 0 {
				goto divide
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
			if i := cellIndex(in.a); i < uint32(len(mem)) {
				mem[i]++
			} else {
				goto noMemory
			}
		case opIncS:
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
				mem[i]++
			} else {
				goto noMemory
			}
		case opIncI:
			if i := cellIndex(pri); i < uint32(len(mem)) {
				mem[i]++
			} else {
				goto noMemory
			}
		case opDecPri:
			pri--
		case opDec:
			if i := cellIndex(in.a); i < uint32(len(mem)) {
				mem[i]--
			} else {
				goto noMemory
			}
		case opDecS:
			if i := cellIndex(frm + in.a); i < uint32(len(mem)) {
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
			if i := cellIndex(stk); i < uint32(len(mem)) {
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
		case opSwitch:
			to = uint32(m.switches[in.a].find(pri))
			goto jump
		case opHalt, opSysreqC, opSysreqN, opSysreqPri:
			r.pri, r.alt, r.frm, r.stk, r.hea, r.ip = pri, alt, frm, stk, hea, int32(ip)
			state, err = m.call(r, in)
			if pri, stk = r.pri, r.stk; state == Sleeping {
				m.hea, m.stk, m.frm = r.hea, r.stk, r.frm
				return state, err
			}
			if err != OK || in.op == opHalt {
				goto fault
			}
		default:
			r.pri, r.alt, r.frm, r.stk, r.hea, r.ip = pri, alt, frm, stk, hea, int32(ip)
			var jump bool
			jump, err = m.cold(r, in)
			pri, alt, frm, stk, hea = r.pri, r.alt, r.frm, r.stk, r.hea
			if err != OK {
				goto fault
			}
			if to = uint32(r.ip); jump {
				goto jump
			}
		}
		continue

	jumpA:
		to = uint32(in.a)
	jump:
		budget -= int64(ip - from)
		ip, from = to, to
		if budget > 0 {
			continue
		}
		r.pri, r.alt, r.frm, r.stk, r.hea, r.ip = pri, alt, frm, stk, hea, int32(ip)
		m.hea, m.stk, m.frm = hea, stk, frm
		return Preempted, OK
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
divide:
	err = ErrDivide
fault:
	r.pri, r.alt, r.frm, r.stk, r.hea, r.ip = pri, alt, frm, stk, hea, int32(ip-1)
	return Ended, err
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
