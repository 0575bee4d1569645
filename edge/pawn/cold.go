package pawn

// call executes halt and the calls of native functions. Sleeping: the script sleeps. Other codes end the call.
func (m *Machine) call(r *Running, in *instr) (State, Code) {
	if in.op == opHalt {
		r.value = r.pri
		if Code(in.a) == ErrSleep {
			return Sleeping, ErrSleep
		}
		return Ended, Code(in.a)
	}
	index := in.a
	switch in.op {
	case opSysreqPri:
		if index = r.pri; index < 0 || int(index) >= len(m.natives) {
			return Ended, ErrCallback
		}
	case opSysreqN:
		r.stk -= cell
		if !m.SetCell(r.stk, in.b) {
			return Ended, ErrStack
		}
	}
	if _, ok := m.Cell(r.stk); !ok {
		return Ended, ErrStackLow // no room for the number of arguments
	}
	m.hea, m.stk, m.frm = r.hea, r.stk, r.frm
	v, code := m.natives[index].call(Call{m, r.stk})
	r.pri = v
	if in.op == opSysreqN {
		r.stk += in.b + cell
	}
	if code == ErrSleep {
		return Sleeping, ErrSleep
	}
	return Ended, code
}

// outside executes the instructions that loop does not. It sets r.ip if the next instruction does not follow.
func (m *Machine) outside(r *Running, in *instr) Code {
	switch {
	case in.op >= opShrCPri && in.op <= opDecAlt:
		return r.arithmetic(in)
	case in.op >= opMovs:
		return m.block(r, in)
	case in.op >= opLrefPri:
		return m.reference(r, in)
	}
	switch in.op {
	case opLodbI, opStrbI: // of other sizes than 1
		return m.reference(r, in)
	case opSwitch:
		r.ip = m.switches[in.a].find(r.pri)
		return OK
	case opISwitch:
		return m.enter(r, m.switches[in.a].find(r.pri))
	case opICall:
		r.stk -= cell
		if !m.SetCell(r.stk, in.b) {
			return ErrStack
		}
		return m.enter(r, in.a)
	case opRet:
		frm, ok := m.Cell(r.stk)
		place, ok2 := m.Cell(r.stk + cell)
		if !ok || !ok2 {
			return ErrStackLow
		}
		r.frm, r.stk = frm, r.stk+2*cell
		return m.place(r, in.a, in.b, place)
	case opIRetn:
		frm, ok := m.Cell(r.stk)
		place, ok2 := m.Cell(r.stk + cell)
		size, ok3 := m.Cell(r.stk + 2*cell)
		if !ok || !ok2 || !ok3 {
			return ErrStackLow
		}
		r.frm, r.stk = frm, r.stk+3*cell+size
		number := int(uint32(place) & 0xFFFF)
		if number >= len(m.overlays) {
			return ErrMemAccess
		}
		return m.place(r, m.overlays[number].first, m.overlays[number].size, int32(uint32(place)>>16))
	case opCallPri:
		r.stk -= cell
		if !m.SetCell(r.stk, in.c) {
			return ErrStack
		}
		return m.place(r, in.a, in.b, r.pri)
	case opJumpPri:
		return m.place(r, in.a, in.b, r.pri)
	}
	return ErrInvInstr
}

// enter begins an overlay.
func (m *Machine) enter(r *Running, overlay int32) Code {
	r.ip = m.index[m.overlays[overlay].first]
	return OK
}

// place jumps to a byte offset in the part of the code that begins at cell first.
func (m *Machine) place(r *Running, first, size, offset int32) Code {
	i := cellIndex(offset)
	if i >= uint(size) {
		return ErrMemAccess
	}
	to := m.index[first+int32(i)]
	if to < 0 {
		return ErrMemAccess
	}
	r.ip = to
	return OK
}

// arithmetic executes what needs registers only.
func (r *Running) arithmetic(in *instr) Code {
	pri, alt := uint32(r.pri), uint32(r.alt)
	switch in.op {
	case opShrCPri:
		r.pri = int32(pri >> (uint32(in.a) & 31))
	case opShrCAlt:
		r.alt = int32(alt >> (uint32(in.a) & 31))
	case opUmul:
		r.pri = int32(pri * alt)
	case opUdiv:
		if alt == 0 {
			return ErrDivide
		}
		r.pri, r.alt = int32(pri/alt), int32(pri%alt)
	case opUdivAlt:
		if pri == 0 {
			return ErrDivide
		}
		r.pri, r.alt = int32(alt/pri), int32(alt%pri)
	case opSignPri:
		if pri&0x80 != 0 {
			r.pri |= ^0xFF
		}
	case opSignAlt:
		if alt&0x80 != 0 {
			r.alt |= ^0xFF
		}
	case opLess:
		r.pri = truth(pri < alt)
	case opLeq:
		r.pri = truth(pri <= alt)
	case opGrtr:
		r.pri = truth(pri > alt)
	case opGeq:
		r.pri = truth(pri >= alt)
	case opIncAlt:
		r.alt++
	case opDecAlt:
		r.alt--
	}
	return OK
}

// reference executes loads and stores of the kinds that compilers rarely write, and what reads or sets registers.
func (m *Machine) reference(r *Running, in *instr) Code {
	ok := true
	at := in.a
	switch in.op {
	case opLrefSAlt, opSrefSAlt:
		at += r.frm
		fallthrough
	case opLrefPri, opLrefAlt, opSrefPri, opSrefAlt:
		if at, ok = m.Cell(at); !ok {
			return ErrMemAccess
		}
	}
	switch in.op {
	case opLrefPri:
		r.pri, ok = m.Cell(at)
	case opLrefAlt, opLrefSAlt:
		r.alt, ok = m.Cell(at)
	case opSrefPri:
		ok = m.SetCell(at, r.pri)
	case opSrefAlt, opSrefSAlt:
		ok = m.SetCell(at, r.alt)
	case opLodbI:
		if !m.readable(r.pri, r.hea, r.stk) {
			return ErrMemAccess
		}
		r.pri, ok = m.load(r.pri, in.a, r.pri)
	case opStrbI:
		ok = m.readable(r.alt, r.hea, r.stk) && m.store(r.alt, in.a, r.pri)
	case opLidxB:
		at = r.pri<<(uint32(in.a)&31) + r.alt
		if !m.readable(at, r.hea, r.stk) {
			return ErrMemAccess
		}
		r.pri, ok = m.Cell(at)
	case opAlignAlt:
		if in.a >= 0 && in.a < cell {
			r.alt ^= cell - in.a
		}
	case opLctrl:
		switch in.a {
		case 2:
			r.pri = r.hea
		case 3:
			r.pri = m.stp
		case 4:
			r.pri = r.stk
		case 5:
			r.pri = r.frm
		}
	case opSctrl:
		switch in.a {
		case 2:
			r.hea = r.pri
		case 4:
			r.stk = r.pri
		case 5:
			r.frm = r.pri
		}
	case opPushR:
		for n := in.a; n != 0; n-- {
			if r.stk -= cell; !m.SetCell(r.stk, r.pri) {
				return ErrStack
			}
		}
	case opPick:
		r.pri, ok = m.Cell(r.stk + in.a)
	case opDecI:
		v, _ := m.Cell(r.pri)
		ok = m.SetCell(r.pri, v-1)
	}
	return access(ok)
}

// block executes what works on blocks of memory or on the top of the stack.
func (m *Machine) block(r *Running, in *instr) Code {
	switch in.op {
	case opSwapPri, opSwapAlt:
		v, ok := m.Cell(r.stk)
		if !ok {
			return ErrStackLow
		}
		if in.op == opSwapPri {
			v, r.pri = r.pri, v
		} else {
			v, r.alt = r.alt, v
		}
		m.SetCell(r.stk, v)
		return OK
	}
	size := in.a
	if !m.span(r.alt, size, r.hea, r.stk) || in.op != opFill && !m.span(r.pri, size, r.hea, r.stk) {
		return ErrMemAccess
	}
	switch in.op {
	case opMovs:
		m.move(r.alt, r.pri, size)
	case opCmps:
		r.pri = m.compare(r.alt, r.pri, size)
	case opFill:
		if r.alt&3 != 0 {
			return ErrMemAccess
		}
		for i := r.alt >> 2; i < (r.alt+size)>>2; i++ {
			m.mem[i] = r.pri
		}
	}
	return OK
}
