package pawn

import (
	"fmt"

	"kennel/edge/pawn/amx"
)

// margin is the room between heap and stack that a function needs, in bytes.
const margin = 16 * amx.CellSize

// Options are the parts of a machine that its host decides.
type Options struct {
	// Natives returns the native function of that name; nil: there is none, and New refuses a program that asks for it (PLEO-AMX-06).
	Natives func(name string) Native
	// MaxMemory is the limit of data, heap and stack in bytes. 0: 16 MiB.
	MaxMemory int
	// Statement is called before each statement of a program that has breaks, which compilers add to symbols; true pauses the call there. offset is a byte of
	// the program's code. nil: programs run at full speed.
	Statement func(offset int32) bool
}

const defaultMemory = 16 << 20

// Machine is a program with its memory. It is not safe for concurrent use.
type Machine struct {
	code     []instr // with sequences joined
	plain    []instr // as the program has it
	places   []int32 // of each instruction: its byte offset in the program's code
	index    []int32 // of each cell of the program's code: the instruction that begins there, or -1
	switches []table
	overlays []overlay
	natives  []binding
	publics  []amx.Entry
	main     int32

	statement func(offset int32) bool

	mem  []int32 // data, heap and stack
	data []int32 // as the program has it
	hlw  int32   // where the heap begins
	stp  int32   // where the stack ends

	hea, stk, frm int32    // as natives see them
	top           *Running // the latest call that has not ended
}

// New prepares a program. It returns a *LoadError for one that cannot run. Later changes of p do not matter.
func New(p *amx.Program, o Options) (*Machine, error) {
	limit := o.MaxMemory
	if limit == 0 {
		limit = defaultMemory
	}
	if size := int64(len(p.Data)) + amx.CellSize*int64(p.StackHeapCells); size > int64(limit) {
		return nil, &LoadError{ErrMemory, -1, fmt.Sprintf("%d bytes of data, heap and stack, want at most %d", size, limit)}
	}
	m := &Machine{statement: o.Statement, publics: append([]amx.Entry(nil), p.Publics...), main: p.Main}
	for _, e := range p.Natives {
		var f Native
		if o.Natives != nil {
			f = o.Natives(e.Name)
		}
		if f == nil {
			return nil, &LoadError{ErrNotFound, -1, fmt.Sprintf("native function %q is not known here", e.Name)}
		}
		m.natives = append(m.natives, binding{e.Name, f})
	}
	m.hlw = int32(len(p.Data))
	m.stp = m.hlw + amx.CellSize*(p.StackHeapCells-1) // the last cell is the zero behind strings
	m.data = make([]int32, len(p.Data)/amx.CellSize)
	for i := range m.data {
		b := p.Data[amx.CellSize*i:]
		m.data[i] = int32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
	}
	if err := m.translate(p); err != nil {
		return nil, err
	}
	if err := m.entries(p); err != nil {
		return nil, err
	}
	m.join()
	m.mem = make([]int32, m.stp/amx.CellSize)
	m.Reset()
	return m, nil
}

// entries refuses functions that begin where no instruction does.
func (m *Machine) entries(p *amx.Program) error {
	all := p.Publics
	if p.Main != amx.NoMain {
		all = append([]amx.Entry{{Name: "main", Value: uint32(p.Main)}}, all...)
	}
	for _, e := range all {
		limit := uint32(len(p.Code))
		if len(m.overlays) > 0 {
			limit = uint32(len(m.overlays))
		}
		if e.Value >= limit {
			return &LoadError{ErrBounds, -1, fmt.Sprintf("%s begins at %d, want less than %d", e.Name, e.Value, limit)}
		}
		if len(m.overlays) == 0 && (e.Value%amx.CellSize != 0 || m.index[e.Value/amx.CellSize] < 0) {
			return &LoadError{ErrBounds, int(e.Value), e.Name + " begins here, want an instruction"}
		}
	}
	return nil
}

// Reset gives the memory its first content and forgets calls that have not ended.
func (m *Machine) Reset() {
	clear(m.mem)
	copy(m.mem, m.data)
	m.hea, m.stk, m.frm, m.top = m.hlw, m.stp, 0, nil
}

// Main is the index of the function main in Begin.
const Main = -1

// Public returns the index of the public function of that name, and whether there is one.
func (m *Machine) Public(name string) (int, bool) {
	lo, hi := 0, len(m.publics)
	for lo < hi {
		mid := (lo + hi) / 2
		if m.publics[mid].Name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(m.publics) && m.publics[lo].Name == name
}

// Running is a call of a public function between its begin and its end. The zero value is ready for Begin.
type Running struct {
	pri, alt, frm, stk, hea int32
	ip                      int32
	resetStk, resetHea      int32
	value                   int32 // of the latest halt
	below                   *Running
	name                    string
}

// Begin starts a call of a public function, or of Main, with these arguments. Calls nest: a call that sleeps or has used up its slice can be interrupted by
// another one, which must end before the first continues. It returns OK, ErrIndex or ErrStack.
func (m *Machine) Begin(r *Running, public int, args ...int32) Code {
	start, name := m.main, "main"
	if public >= 0 && public < len(m.publics) {
		start, name = int32(m.publics[public].Value), m.publics[public].Name
	} else if public != Main {
		return ErrIndex
	}
	if public == Main && start < 0 {
		return ErrIndex
	}
	first := start / amx.CellSize
	if len(m.overlays) > 0 {
		first = m.overlays[start].first
	}
	was := m.stk
	for i := len(args) - 1; i >= 0; i-- {
		if m.hea+margin > m.stk {
			m.stk = was
			return ErrStack
		}
		m.push(args[i])
	}
	*r = Running{ip: m.index[first], below: m.top, name: name, resetStk: was, resetHea: m.hea, hea: m.hea}
	ok := m.push(amx.CellSize*int32(len(args))) && m.push(0) // the return address: the first instruction, which ends the call
	r.stk = m.stk
	if !ok || m.hea+margin > m.stk {
		m.stk = was
		return ErrStack
	}
	m.top = r
	return OK
}

func (m *Machine) push(v int32) bool {
	m.stk -= amx.CellSize
	return m.SetCell(m.stk, v)
}

// State says whether a call has ended.
type State uint8

// The states of a call.
const (
	Ended     State = iota // Code says how
	Sleeping               // the script sleeps; Run continues it
	Preempted              // the budget is used up; Run continues it
	Paused                 // before a statement; Run continues with it
)

// Result is the report of Run.
type Result struct {
	State  State
	Code   Code   // of Ended; ErrSleep for Sleeping
	Value  int32  // of the function, or of exit, assert or the latest sleep; 0 after other errors
	Pri    int32  // the register pri, where a native function that sleeps left its value
	Public string // name of the function that was called
	Offset int32  // byte of the program's code: of the instruction that failed or ended the call, or where it continues
}

// Run continues a call for about budget instructions: it stops at the first jump, call or return after them, so that a slice is longer by at most the longest
// piece of code without one. r must be the latest call.
func (m *Machine) Run(r *Running, budget int64) Result {
	if m.top != r || r == nil {
		return Result{Code: ErrInit}
	}
	state, code := m.run(r, budget)
	if state == Ended {
		m.End(r)
	}
	return Result{State: state, Code: code, Value: r.value, Pri: r.pri, Public: r.name, Offset: m.places[r.ip]}
}

// End gives up a call that has not ended, if it is the latest.
func (m *Machine) End(r *Running) {
	if m.top == r && r != nil {
		m.top, m.stk, m.hea = r.below, r.resetStk, r.resetHea
	}
}
