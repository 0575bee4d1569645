package compiler

// optimise shortens the code of a body. Level 2 also uses the instructions that do the work of two. It goes once over the code and
// after each instruction replaces what the last ones amount to, until nothing changes. A pattern never contains a label, so no jump
// leads into it.
func optimise(code []instr, level int) []instr {
	o := optimiser{level: level, out: make([]instr, 0, len(code))}
	dead := false
	for i := range code {
		in := code[i]
		if dead && in.op != opLabel {
			if in.op != opCase && in.op != opCasetbl {
				continue
			}
		}
		dead = false
		if in.op == opLabel { // a jump to the next instruction is nothing
			if k := len(o.out); k > 0 && o.out[k-1].op == opJump && o.out[k-1].a == in.a {
				o.out = o.out[:k-1]
			}
		}
		o.out = append(o.out, in)
		o.rest = code[i+1:]
		for o.reduce() {
		}
		switch in.op {
		case opJump, opRet, opRetn, opIretn:
			dead = true
		}
	}
	return o.out
}

type optimiser struct {
	level int
	out   []instr
	rest  []instr // what follows
}

// loadsPri reports whether the instruction only puts a value into PRI; the next opcode does the same with ALT.
func loadsPri(op opcode) bool {
	switch op {
	case opLoadPri, opLoadSPri, opLrefSPri, opConstPri, opAddrPri, opZeroPri:
		return true
	}
	return false
}

// worksOnPri reports whether the instruction changes nothing but PRI and memory, and reads neither ALT nor the stack.
func worksOnPri(op opcode) bool {
	switch op {
	case opAddC, opSmulC, opShlCPri, opShrCPri, opBounds, opLoadI, opLodbI, opNeg, opNot, opInvert, opEqCPri, opIncPri, opDecPri, opAlignPri,
		opInc, opIncS, opDec, opDecS:
		return true
	}
	return loadsPri(op)
}

// priIsDead reports whether nothing reads PRI before it is set again.
func (o *optimiser) priIsDead() bool {
	for i := range min(len(o.rest), 12) {
		switch op := o.rest[i].op; op {
		case opPushC, opPush, opPushS, opPushAdr, opPushAlt, opStack, opHeap, opBreak, opZero, opZeroS, opInc, opIncS, opDec, opDecS:
		case opCall, opSysreqC, opPopPri, opMovePri:
			return true
		default:
			return loadsPri(op)
		}
	}
	return false
}

// reduce replaces the last instructions by fewer ones, and reports whether it did.
func (o *optimiser) reduce() bool {
	n := len(o.out)
	if n < 2 {
		return false
	}
	a, b := &o.out[n-2], &o.out[n-1]
	switch b.op {
	case opPopAlt:
		return o.popAlt(n)
	case opAdd, opSub, opSmul, opShl, opShr, opEq:
		return o.withConst(n, a, b)
	case opAddC:
		return o.addConst(n, a, b)
	case opLoadI:
		return o.loadIndirect(n, a)
	case opStorI:
		return o.storeIndirect(n)
	case opPushPri:
		return o.push(n, a)
	case opJzer, opJnz:
		return o.jump(n, a, b)
	case opStorPri, opStorSPri:
		return o.store(n, a, b)
	case opStack:
		return o.stack(n, a, b)
	case opNot:
		if a.op == opEqCPri && a.a == 0 {
			return false
		}
	case opEqCPri:
		if b.a == 0 {
			*b = instr{op: opNot}
			return true
		}
	default:
		if loadsPri(b.op) {
			return o.load(n, a, b)
		}
	}
	return false
}

// cut replaces the last k instructions by with.
func (o *optimiser) cut(k int, with ...instr) bool {
	o.out = append(o.out[:len(o.out)-k], with...)
	return true
}

// popAlt turns "push.pri, work on PRI, pop.alt" into "move.alt, work on PRI".
func (o *optimiser) popAlt(n int) bool {
	for i := n - 2; i >= 0 && i >= n-8; i-- {
		op := o.out[i].op
		if op == opPushPri {
			if i+1 == n-1 {
				return o.cut(2, instr{op: opMoveAlt})
			}
			if !loadsPri(o.out[i+1].op) {
				return false
			}
			work := o.out[i+1 : n-1]
			o.out[i] = instr{op: opMoveAlt}
			o.out = o.out[:n-1]
			if i > 0 && loadsPri(o.out[i-1].op) { // the value was just loaded: load ALT instead
				in := o.out[i-1]
				in.op++
				o.out[i-1] = in
				copy(o.out[i:], work)
				o.out = o.out[:n-2]
			}
			return true
		}
		if !worksOnPri(op) {
			return false
		}
	}
	return false
}

// withConst uses the instructions that have a constant operand.
func (o *optimiser) withConst(n int, a, b *instr) bool {
	v := a.a
	switch {
	case a.op == opZeroAlt:
		v = 0
	case a.op != opConstAlt || a.sym != nil:
		return false
	}
	switch b.op {
	case opAdd:
		return o.cut(2, instr{op: opAddC, a: v})
	case opSub:
		return o.cut(2, instr{op: opAddC, a: -v})
	case opSmul:
		return o.cut(2, instr{op: opSmulC, a: v})
	case opEq:
		return o.cut(2, instr{op: opEqCPri, a: v})
	case opShl, opShr:
		if v < 0 || v > 31 {
			return false
		}
		op := opShlCPri
		if b.op == opShr {
			op = opShrCPri
		}
		return o.cut(2, instr{op: op, a: v})
	}
	return false
}

func (o *optimiser) addConst(n int, a, b *instr) bool {
	switch {
	case b.a == 0:
		return o.cut(1)
	case a.op == opAddrPri || a.op == opAddC || a.op == opConstPri:
		in := *a
		in.a += b.a
		return o.cut(2, in)
	}
	return false
}

// loadIndirect loads a variable or element at once.
func (o *optimiser) loadIndirect(n int, a *instr) bool {
	switch {
	case a.op == opAddrPri:
		return o.cut(2, instr{op: opLoadSPri, a: a.a})
	case a.op == opConstPri && a.sym != nil:
		return o.cut(2, instr{op: opLoadPri, a: a.a, sym: a.sym})
	case a.op == opIdxaddr:
		return o.cut(2, instr{op: opLidx})
	}
	return false
}

// storeIndirect stores into a known address at once.
func (o *optimiser) storeIndirect(n int) bool {
	if n < 3 {
		return false
	}
	// the value between the address and stor.i takes instructions that leave ALT alone
	for i := n - 2; i >= 0 && i >= n-8; i-- {
		in := o.out[i]
		switch {
		case in.op == opAddrAlt:
			copy(o.out[i:], o.out[i+1:n-1])
			return o.cut(2, instr{op: opStorSPri, a: in.a})
		case in.op == opConstAlt && in.sym != nil:
			copy(o.out[i:], o.out[i+1:n-1])
			return o.cut(2, instr{op: opStorPri, a: in.a, sym: in.sym})
		case !worksOnPri(in.op):
			return false
		}
	}
	return false
}

// push pushes constants and variables directly where PRI is not needed afterwards.
func (o *optimiser) push(n int, a *instr) bool {
	var op opcode
	switch a.op {
	case opConstPri, opZeroPri:
		op = opPushC
	case opLoadPri:
		op = opPush
	case opLoadSPri:
		op = opPushS
	case opAddrPri:
		op = opPushAdr
	default:
		return false
	}
	if !o.priIsDead() {
		return false
	}
	in := *a
	in.op = op
	if a.op == opZeroPri {
		in.a = 0
	}
	return o.cut(2, in)
}

var compareJumps = map[opcode][2]opcode{opSless: {opJsgeq, opJsless}, opSleq: {opJsgrtr, opJsleq}, opSgrtr: {opJsleq, opJsgrtr},
	opSgeq: {opJsless, opJsgeq}, opEq: {opJneq, opJeq}, opNeq: {opJeq, opJneq}}

// jump joins a comparison and the jump that depends on it.
func (o *optimiser) jump(n int, a, b *instr) bool {
	if a.op == opNot {
		op := opJzer + opJnz - b.op
		return o.cut(2, instr{op: op, a: b.a})
	}
	ops, ok := compareJumps[a.op]
	if !ok {
		return false
	}
	return o.cut(2, instr{op: ops[b.op-opJzer], a: b.a})
}

// store increments, clears or sets a variable in place where the value is not needed afterwards.
func (o *optimiser) store(n int, a, b *instr) bool {
	same := func(x *instr, load opcode) bool { return x.op == load && x.a == b.a && x.sym == b.sym }
	local := b.op == opStorSPri
	load, step, clr, set := opLoadPri, opInc, opZero, opConst
	if local {
		load, step, clr, set = opLoadSPri, opIncS, opZeroS, opConstS
	}
	if !o.priIsDead() {
		return false
	}
	switch {
	case n >= 3 && a.op == opAddC && (a.a == 1 || a.a == -1) && same(&o.out[n-3], load):
		if a.a == -1 {
			step += opDec - opInc
		}
		return o.cut(3, instr{op: step, a: b.a, sym: b.sym})
	case a.op == opZeroPri:
		return o.cut(2, instr{op: clr, a: b.a, sym: b.sym})
	case a.op == opConstPri && a.sym == nil && o.level > 1:
		return o.cut(2, instr{op: set, a: b.a, sym: b.sym, b: a.a})
	}
	return false
}

// stack joins adjustments of the stack, and calls a native with its arguments at once.
func (o *optimiser) stack(n int, a, b *instr) bool {
	switch {
	case a.op == opStack && (n < 3 || o.out[n-3].op != opSysreqC):
		in := instr{op: opStack, a: a.a + b.a}
		if in.a == 0 {
			return o.cut(2)
		}
		return o.cut(2, in)
	case o.level > 1 && n >= 3 && a.op == opSysreqC && o.out[n-3].op == opPushC && b.a == o.out[n-3].a+4:
		in := *a
		in.op, in.b = opSysreqN, o.out[n-3].a
		return o.cut(3, in)
	}
	return false
}

// load loads both registers at once.
func (o *optimiser) load(n int, a, b *instr) bool {
	if a.op == opMoveAlt && n >= 3 && loadsPri(o.out[n-3].op) {
		first := o.out[n-3]
		first.op++
		return o.cut(3, first, *b)
	}
	return false
}
