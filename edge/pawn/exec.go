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
		in := &m.plain[r.ip-1]
		switch in.op {
		case opBreak:
			if m.statement(m.places[r.ip-1]) {
				return Paused, OK
			}
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

// get returns the cell at addr, and whether there is one. It is inlined, like put and add.
func get(mem []int32, addr int32) (int32, bool) {
	if i := cellIndex(addr); i < uint(len(mem)) {
		return mem[i], true
	}
	return 0, false
}

// put writes the cell at addr, and reports whether there is one.
func put(mem []int32, addr, v int32) bool {
	i := cellIndex(addr)
	if i < uint(len(mem)) {
		mem[i] = v
	}
	return i < uint(len(mem))
}

// add adds to the cell at addr, and reports whether there is one.
func add(mem []int32, addr, v int32) bool {
	i := cellIndex(addr)
	if i < uint(len(mem)) {
		mem[i] += v
	}
	return i < uint(len(mem))
}

func truth(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// divide returns the quotient, rounded down, and the remainder, which has the sign of b (PLEO-AMX-04). b is not 0. The smallest number divided by -1 is itself.
func divide(a, b int32) (quotient, remainder int32) {
	q := a / b
	rest := a - q*b
	if rest != 0 && rest^b < 0 {
		return q - 1, rest + b
	}
	return q, rest
}
