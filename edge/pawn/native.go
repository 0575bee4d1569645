package pawn

import "kennel/edge/pawn/amx"

// Native is a function of the host that scripts call. It returns the value of the call and OK, or the code that stops the script. ErrSleep suspends the call: the
// script continues behind it. A native runs within Machine.Run and must not wait.
type Native func(c Call) (int32, Code)

// Call is a call of a native function, valid until the function returns.
type Call struct {
	M  *Machine
	at int32 // address of the number of bytes of arguments; they follow
}

// Args returns the number of arguments, at most as many as the stack has cells.
func (c Call) Args() int {
	n, _ := c.M.Cell(c.at)
	return min(int(uint32(n)/amx.CellSize), int(c.M.stp-c.at)/amx.CellSize-1)
}

// Arg returns argument i, from 0; 0 if there is none. Arrays, strings and references are addresses.
func (c Call) Arg(i int) int32 {
	if i < 0 || i >= c.Args() {
		return 0
	}
	v, _ := c.M.Cell(c.at + 4*int32(i+1))
	return v
}

// Frame returns the address of the frame of the function that calls: its number of bytes of arguments is 8 bytes above, its arguments follow.
func (c Call) Frame() int32 { return c.M.frm }

// binding is a native function as a program names it.
type binding struct {
	name string
	call Native
}

// Basics returns the native function of that name of those which every host can have, as the reference's core module: numargs, getarg, setarg, heapspace and
// funcidx. nil: there is none.
func Basics(name string) Native {
	switch name {
	case "numargs":
		return func(c Call) (int32, Code) {
			n, ok := c.M.Cell(c.Frame() + 8)
			return int32(uint32(n) / 4), access(ok)
		}
	case "getarg":
		return func(c Call) (int32, Code) {
			at, ok := c.argument()
			if !ok {
				return 0, ErrMemAccess
			}
			v, ok := c.M.Cell(at)
			return v, access(ok)
		}
	case "setarg":
		return func(c Call) (int32, Code) {
			at, ok := c.argument()
			if !ok || at < 0 || at >= c.M.hea && at < c.M.stk || !c.M.SetCell(at, c.Arg(2)) {
				return 0, OK
			}
			return 1, OK
		}
	case "heapspace":
		return func(c Call) (int32, Code) { return c.M.stk - c.M.hea, OK }
	case "funcidx":
		return func(c Call) (int32, Code) {
			const longest = 64
			name, ok := c.M.Text(c.Arg(0), longest)
			if !ok {
				return 0, ErrMemAccess
			}
			if len(name) >= longest {
				return 0, ErrNative
			}
			if i, ok := c.M.Public(string(name)); ok {
				return int32(i), OK
			}
			return -1, OK
		}
	}
	return nil
}

// argument returns the address of the variable that argument Arg(0) of the calling function refers to, Arg(1) cells into it if it is an array.
func (c Call) argument() (int32, bool) {
	v, ok := c.M.Cell(c.Frame() + 4*(c.Arg(0)+3))
	return v + 4*c.Arg(1), ok
}

func access(ok bool) Code {
	if !ok {
		return ErrMemAccess
	}
	return OK
}
