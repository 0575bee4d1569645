package pawn

// loop executes the frequent instructions. Registers are local variables, and nothing is called, so that they stay in the processor's registers; hea is in m.
// Only places where the code does not continue with the next instruction count the instructions since the last such place.
func (m *Machine) loop(r *Running, budget *int64) (why exit, err Code) {
	var (
		code, mem          = m.code, m.mem
		pri, alt, frm, stk = r.pri, r.alt, r.frm, r.stk
		ip, from           = uint32(r.ip), uint32(r.ip) // next instruction; the first since the last jump
		in                 *instr
		to                 uint32
		ok                 bool
	)
	for {
		in = &code[ip]
		ip++
	again:
		switch in.op {
		case opLoadPri:
			if pri, ok = get(mem, in.a); !ok {
				goto noMemory
			}
		case opLoadAlt:
			if alt, ok = get(mem, in.a); !ok {
				goto noMemory
			}
		case opLoadSPri:
			if pri, ok = get(mem, frm+in.a); !ok {
				goto noMemory
			}
		case opLoadSAlt:
			if alt, ok = get(mem, frm+in.a); !ok {
				goto noMemory
			}
		case opLoadBoth:
			if pri, ok = get(mem, in.a); !ok {
				goto noMemory
			}
			if alt, ok = get(mem, in.b); !ok {
				goto noMemory
			}
		case opLoadSBoth:
			if pri, ok = get(mem, frm+in.a); !ok {
				goto noMemory
			}
			if alt, ok = get(mem, frm+in.b); !ok {
				goto noMemory
			}
		case opStorPri:
			if !put(mem, in.a, pri) {
				goto noMemory
			}
		case opStorAlt:
			if !put(mem, in.a, alt) {
				goto noMemory
			}
		case opStorSPri:
			if !put(mem, frm+in.a, pri) {
				goto noMemory
			}
		case opStorSAlt:
			if !put(mem, frm+in.a, alt) {
				goto noMemory
			}
		case opLrefSPri:
			if pri, ok = get(mem, frm+in.a); !ok {
				goto noMemory
			}
			if pri, ok = get(mem, pri); !ok {
				goto noMemory
			}
		case opSrefSPri:
			var to int32
			if to, ok = get(mem, frm+in.a); !ok {
				goto noMemory
			}
			if !put(mem, to, pri) {
				goto noMemory
			}
		case opLoadI:
			if pri >= m.hea && pri < stk {
				goto noMemory
			}
			if pri, ok = get(mem, pri); !ok {
				goto noMemory
			}
		case opStorI:
			if alt >= m.hea && alt < stk {
				goto noMemory
			}
			if !put(mem, alt, pri) {
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
			if pri, ok = get(mem, pri); !ok {
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
			if !put(mem, in.a, in.b) {
				goto noMemory
			}
		case opConstS:
			if !put(mem, frm+in.a, in.b) {
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
			if !put(mem, stk, pri) {
				goto noStack
			}
		case opPushAlt:
			stk -= cell
			if !put(mem, stk, alt) {
				goto noStack
			}
		case opPushC:
			stk -= cell
			if !put(mem, stk, in.a) {
				goto noStack
			}
		case opPush:
			var v int32
			if v, ok = get(mem, in.a); !ok {
				goto noMemory
			}
			stk -= cell
			if !put(mem, stk, v) {
				goto noStack
			}
		case opPushS:
			var v int32
			if v, ok = get(mem, frm+in.a); !ok {
				goto noMemory
			}
			stk -= cell
			if !put(mem, stk, v) {
				goto noStack
			}
		case opPushAdr:
			stk -= cell
			if !put(mem, stk, frm+in.a) {
				goto noStack
			}
		case opPopPri:
			if pri, ok = get(mem, stk); !ok {
				goto stackLow
			}
			stk += cell
		case opPopAlt:
			if alt, ok = get(mem, stk); !ok {
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
			if !put(mem, stk, frm) {
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
			if !add(mem, in.a, 1) {
				goto noMemory
			}
		case opIncS:
			if !add(mem, frm+in.a, 1) {
				goto noMemory
			}
		case opIncI:
			if !add(mem, pri, 1) {
				goto noMemory
			}
		case opDecPri:
			pri--
		case opDec:
			if !add(mem, in.a, -1) {
				goto noMemory
			}
		case opDecS:
			if !add(mem, frm+in.a, -1) {
				goto noMemory
			}
		case opBounds:
			if uint32(pri) > uint32(in.a) {
				err = ErrBounds
				goto fault
			}
		case opCall:
			stk -= cell
			if !put(mem, stk, in.b) {
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
		case opLocalConstJeq:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri, alt = mem[i], in.b
				ip += 2
				if pri == alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalConstJneq:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri, alt = mem[i], in.b
				ip += 2
				if pri != alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalConstJsless:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri, alt = mem[i], in.b
				ip += 2
				if pri < alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalConstJsleq:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri, alt = mem[i], in.b
				ip += 2
				if pri <= alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalConstJsgrtr:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri, alt = mem[i], in.b
				ip += 2
				if pri > alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalConstJsgeq:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri, alt = mem[i], in.b
				ip += 2
				if pri >= alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalsJeq:
			i, j := cellIndex(frm+in.a), cellIndex(frm+in.b)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri, alt = mem[i], mem[j]
				ip++
				if pri == alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalsJneq:
			i, j := cellIndex(frm+in.a), cellIndex(frm+in.b)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri, alt = mem[i], mem[j]
				ip++
				if pri != alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalsJsless:
			i, j := cellIndex(frm+in.a), cellIndex(frm+in.b)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri, alt = mem[i], mem[j]
				ip++
				if pri < alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalsJsleq:
			i, j := cellIndex(frm+in.a), cellIndex(frm+in.b)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri, alt = mem[i], mem[j]
				ip++
				if pri <= alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalsJsgrtr:
			i, j := cellIndex(frm+in.a), cellIndex(frm+in.b)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri, alt = mem[i], mem[j]
				ip++
				if pri > alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalsJsgeq:
			i, j := cellIndex(frm+in.a), cellIndex(frm+in.b)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri, alt = mem[i], mem[j]
				ip++
				if pri >= alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalConst:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri, alt = mem[i], in.b
				ip++
			} else {
				goto plainly
			}
		case opLocalPush:
			i, j := cellIndex(frm+in.a), cellIndex(stk-cell)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri = mem[i]
				mem[j] = pri
				stk -= cell
				ip++
			} else {
				goto plainly
			}
		case opLocalPopIndex:
			i, j := cellIndex(frm+in.a), cellIndex(stk)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				alt = mem[j]
				stk += cell
				pri = mem[i]*cell + alt
				ip += 2
			} else {
				goto plainly
			}
		case opLocalPopElement:
			i, j := cellIndex(frm+in.a), cellIndex(stk)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				at := mem[i]*cell + mem[j]
				if k := cellIndex(at); k < uint(len(mem)) && (at < m.hea || at >= stk+cell) {
					alt = mem[j]
					stk += cell
					pri = mem[k]
					ip += 3
					continue
				}
			}
			goto plainly
		case opLocalBoundsPopIndex:
			i, j := cellIndex(frm+in.a), cellIndex(stk)
			if i < uint(len(mem)) && j < uint(len(mem)) && uint32(mem[i]) <= uint32(in.b) {
				alt = mem[j]
				stk += cell
				pri = mem[i]*cell + alt
				ip += 3
			} else {
				goto plainly
			}
		case opLocalBoundsPopElement:
			i, j := cellIndex(frm+in.a), cellIndex(stk)
			if i < uint(len(mem)) && j < uint(len(mem)) && uint32(mem[i]) <= uint32(in.b) {
				at := mem[i]*cell + mem[j]
				if k := cellIndex(at); k < uint(len(mem)) && (at < m.hea || at >= stk+cell) {
					alt = mem[j]
					stk += cell
					pri = mem[k]
					ip += 4
					continue
				}
			}
			goto plainly
		case opConstLocalIndex:
			if i := cellIndex(frm + in.b); i < uint(len(mem)) {
				alt = in.a
				pri = mem[i]*cell + alt
				ip += 2
			} else {
				goto plainly
			}
		case opConstLocalElement:
			if i := cellIndex(frm + in.b); i < uint(len(mem)) {
				at := mem[i]*cell + in.a
				if k := cellIndex(at); k < uint(len(mem)) && (at < m.hea || at >= stk) {
					alt = in.a
					pri = mem[k]
					ip += 2
					continue
				}
			}
			goto plainly
		case opConstLocalBoundsIndex:
			if i := cellIndex(frm + in.b); i < uint(len(mem)) && uint32(mem[i]) <= uint32(in.c) {
				alt = in.a
				pri = mem[i]*cell + alt
				ip += 3
			} else {
				goto plainly
			}
		case opConstLocalBoundsElement:
			if i := cellIndex(frm + in.b); i < uint(len(mem)) && uint32(mem[i]) <= uint32(in.c) {
				at := mem[i]*cell + in.a
				if k := cellIndex(at); k < uint(len(mem)) && (at < m.hea || at >= stk) {
					alt = in.a
					pri = mem[k]
					ip += 3
					continue
				}
			}
			goto plainly
		case opRow:
			if i := cellIndex(pri); i < uint(len(mem)) && (pri < m.hea || pri >= stk) {
				alt = pri
				pri += mem[i]
				ip += 2
			} else {
				goto plainly
			}
		case opRowPush:
			i, j := cellIndex(pri), cellIndex(stk-cell)
			if i < uint(len(mem)) && j < uint(len(mem)) && (pri < m.hea || pri >= stk) {
				alt = pri
				pri += mem[i]
				mem[j] = pri
				stk -= cell
				ip += 3
			} else {
				goto plainly
			}
		case opAddStore:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri += alt
				mem[i] = pri
				ip++
			} else {
				goto plainly
			}
		case opPopAdd:
			if i := cellIndex(stk); i < uint(len(mem)) {
				alt = mem[i]
				pri += alt
				stk += cell
				ip++
			} else {
				goto plainly
			}
		case opPopAddStore:
			i, j := cellIndex(stk), cellIndex(frm+in.a)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				alt = mem[i]
				pri += alt
				mem[j] = pri
				stk += cell
				ip += 2
			} else {
				goto plainly
			}
		case opPopSmul:
			if i := cellIndex(stk); i < uint(len(mem)) {
				alt = mem[i]
				pri *= alt
				stk += cell
				ip++
			} else {
				goto plainly
			}
		case opPopStore:
			if i := cellIndex(stk); i < uint(len(mem)) {
				at := mem[i]
				if k := cellIndex(at); k < uint(len(mem)) && (at < m.hea || at >= stk+cell) {
					alt = at
					stk += cell
					mem[k] = pri
					ip++
					continue
				}
			}
			goto plainly
		case opStoreConst:
			if i := cellIndex(pri); i < uint(len(mem)) && (pri < m.hea || pri >= stk) {
				alt, pri = pri, in.a
				mem[i] = pri
				ip += 2
			} else {
				goto plainly
			}
		case opLocalsAdd:
			i, j := cellIndex(frm+in.a), cellIndex(frm+in.b)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				alt = mem[j]
				pri = mem[i] + alt
				ip++
			} else {
				goto plainly
			}
		case opLocalsAddStore:
			i, j, k := cellIndex(frm+in.a), cellIndex(frm+in.b), cellIndex(frm+in.c)
			if i < uint(len(mem)) && j < uint(len(mem)) && k < uint(len(mem)) {
				alt = mem[j]
				pri = mem[i] + alt
				mem[k] = pri
				ip += 2
			} else {
				goto plainly
			}
		case opLocalAlt:
			i, j := cellIndex(frm+in.a), cellIndex(frm+in.b)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri, alt = mem[i], mem[j]
				ip++
			} else {
				goto plainly
			}
		case opLocalCopy:
			i, j := cellIndex(frm+in.a), cellIndex(frm+in.b)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri = mem[i]
				mem[j] = pri
				ip++
			} else {
				goto plainly
			}
		case opLocalAddC:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri = mem[i] + in.b
				ip++
			} else {
				goto plainly
			}
		case opLocalAddCPush:
			i, j := cellIndex(frm+in.a), cellIndex(stk-cell)
			if i < uint(len(mem)) && j < uint(len(mem)) {
				pri = mem[i] + in.b
				mem[j] = pri
				stk -= cell
				ip += 2
			} else {
				goto plainly
			}
		case opLocalConstAnd:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				alt = in.b
				pri = mem[i] & alt
				ip += 2
			} else {
				goto plainly
			}
		case opPushCall:
			i := cellIndex(stk - 2*cell)
			if i+1 < uint(len(mem)) && i < uint(len(mem)) {
				mem[i+1], mem[i] = in.a, in.c
				stk -= 2 * cell
				ip++
				to = uint32(in.b)
				goto jump
			}
			goto plainly
		case opStepLocalConstJsgeq:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				mem[i]++
				pri, alt = mem[i], in.b
				ip += 3
				if pri >= alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opStackJump:
			if at := stk + in.a; m.hea+margin <= at && at <= m.stp {
				alt, stk = stk, at
				ip++
				to = uint32(in.b)
				goto jump
			}
			goto plainly
		case opLocalTestJzer:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				alt = in.b
				pri = mem[i] & alt
				ip += 3
				if pri == 0 {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		case opLocalDivConst:
			if i := cellIndex(frm + in.b); i < uint(len(mem)) {
				pri, alt = divide(mem[i], in.a)
				ip += 2
			} else {
				goto plainly
			}
		case opLocalDivPower: // a shift rounds down, as the division does
			if i := cellIndex(frm + in.b); i < uint(len(mem)) {
				pri, alt = mem[i]>>(uint32(in.c)&31), mem[i]&(in.a-1)
				ip += 2
			} else {
				goto plainly
			}
		case opConstLocalSet:
			if i := cellIndex(frm + in.b); i < uint(len(mem)) {
				at := mem[i]*cell + in.a
				if k := cellIndex(at); k < uint(len(mem)) && (at < m.hea || at >= stk) {
					alt, pri = at, in.c
					mem[k] = pri
					ip += 5
					continue
				}
			}
			goto plainly
		case opLocalMulAdd:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				pri = mem[i]*in.b + in.c
				ip += 2
			} else {
				goto plainly
			}
		case opStepJump:
			if i := cellIndex(frm + in.a); i < uint(len(mem)) {
				mem[i]++
				ip++
				to = uint32(in.b)
				goto jump
			}
			goto plainly
		case opProcLocalConstJsgeq:
			at := stk - cell
			i, j := cellIndex(at), cellIndex(at+in.a)
			if i < uint(len(mem)) && j < uint(len(mem)) && m.hea+margin <= at {
				mem[i] = frm
				frm, stk = at, at
				pri, alt = mem[j], in.b
				ip += 3
				if pri >= alt {
					to = uint32(in.c)
					goto jump
				}
			} else {
				goto plainly
			}
		default:
			goto leave
		}
		continue

	plainly: // one of the instructions that were joined cannot be executed: begin with the first, and find which
		in = &m.plain[ip-1]
		goto again
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
