package compiler

// stackUse says how many cells of stack and heap the calls of a script need at most: those of its main function and its publics, with the frames of all
// functions that they call, and what the machine keeps free.
type stackUse struct {
	total map[*function]int
	open  map[*function]bool
	why   string // it is not known
}

// The parts of a use that no code of the script shows.
const (
	entryCells  = 3  // count of arguments, return address, and the cell at the stack's end
	marginCells = 16 // the machine stops a script that has fewer left
)

// Why a use is not known.
const (
	sleeps   = "sleep instruction"
	recurses = "recursion"
	moves    = "jump out of a block"
)

// estimate returns the cells that the script needs, or why that is not known (PLEO-BLD-11).
func (c *compiler) estimate() (cells int, why string) {
	u := &stackUse{total: map[*function]int{}, open: map[*function]bool{}}
	for _, f := range c.functions {
		if !f.reached {
			continue
		}
		args := 0
		if len(f.bodies) > 0 {
			args = len(f.bodies[0].args)
		}
		if f.sym.use&usePublic != 0 || f.sym.name.text == "main" {
			cells = max(cells, entryCells+args+u.of(f))
		}
	}
	if u.why != "" {
		return 0, u.why
	}
	return cells + marginCells, ""
}

// of returns the cells above the arguments and the return address of a function.
func (u *stackUse) of(f *function) int {
	if n, known := u.total[f]; known {
		return n
	}
	if u.open[f] {
		u.why = recurses
		return 0
	}
	u.open[f] = true
	most := 0
	for _, b := range f.bodies {
		most = max(most, u.body(b))
	}
	u.open[f] = false
	u.total[f] = most
	return most
}

// body walks through the code of a body. Where a jump leads, the stack is as high as where it begins.
func (u *stackUse) body(b *body) (most int) {
	depth, heap, last := 0, 0, 0 // cells; last: arguments of the next call
	at := map[int32]int{}
	for i := range b.code {
		in := &b.code[i]
		called := 0
		switch in.op {
		case opLabel:
			if d, known := at[in.a]; known {
				depth = d
			}
		case opJump, opJzer, opJnz, opJeq, opJneq, opJsless, opJsleq, opJsgrtr, opJsgeq:
			at[in.a] = depth
		case opPushC:
			last = int(in.a / 4)
			depth++
		case opPushPri, opPushAlt, opPush, opPushS, opPushAdr, opProc:
			depth++
		case opPopPri, opPopAlt:
			depth--
		case opStack:
			depth -= int(in.a / 4)
		case opHeap:
			heap += int(in.a / 4)
		case opCall, opIcall:
			called = 1
			if in.fn != nil {
				called += u.of(in.fn)
			}
			if name := in.fn; name == nil || name.sym.name.text != "entry" && name.sym.name.text != "exit" || i > 0 && b.code[i-1].op == opPushC {
				most = max(most, depth+heap+called)
				depth, called = depth-last-1, 0
			}
		case opSysreqN:
			most = max(most, depth+heap+1)
			depth -= int(in.b / 4)
		case opHalt:
			if in.a == 12 {
				u.why = sleeps
			}
		case opSctrl:
			u.why = moves
		}
		most = max(most, depth+heap+called)
	}
	return most
}
