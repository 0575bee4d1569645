package lifeos

import (
	"fmt"
	"time"

	"kennel/edge/pawn"
	"kennel/edge/pawn/amx"
)

// VM is one of the four machines in which scripts run (PLEO-VM-01).
type VM int32

// The machines.
const (
	VMNone   VM = iota
	VMSensor    // sensors.amx: callbacks of sensors and properties
	VMMain      // main.amx: the application's main function and its drives
	VMAux       // the Behavior VM: one script after the other
	VMUser      // the startup script
	vmMax
)

func (v VM) String() string { return [...]string{"none", "sensor", "main", "behavior", "user"}[v] }

// Limits of scripts.
const (
	codePool    = 8 << 10                 // bytes of code of all machines (PLEO-LIM-01)
	quantum     = 10_000                  // instructions in a slice
	pace        = sensorTick              // from the end of a slice to the next one of the same script
	callsInTurn = 8                       // calls that can end in a turn of one machine
	mainAgain   = time.Second             // main is called again so long after an error (PLEO-VM-19)
	closeLimit  = 5 * time.Second         // a close function that takes longer is given up
	maxQueue    = 64                      // callbacks that wait for a machine
	minSleep    = Tick                    // yield
	maxSleep    = 24 * 24 * time.Hour     // about as long as 32 bits of milliseconds
	tooManyLine = "%s: %d callbacks wait" // queue full
)

// script is a script that can run in a machine.
type script struct {
	resource
	program *amx.Program
	amx     *pawn.Machine
}

// phase is a part of the life of a machine's script.
type phase uint8

const (
	vacant phase = iota
	opening
	running
	closing
)

// call is a call of a public function.
type call struct {
	run  pawn.Running
	main bool
	wake time.Duration
	wait *wait
	done func(value int32, code pawn.Code)
}

// callback is a call that waits for its machine.
type callback struct {
	name string
	done func(value int32, code pawn.Code)
	args []int32
}

// machine is one of the four VMs.
type machine struct {
	vm    VM
	phase phase
	script
	calls    []*call
	queue    []callback
	next     *script       // loaded when the present one has closed
	leave    bool          // the present one is to close
	again    time.Duration // when main may be called
	deadline time.Duration // of close
	aborted  bool          // main ended with an error
	paused   time.Duration // set by a native that sleeps: until when; -1: not by a native
	pausedOn *wait
}

// loadScript prepares a script for a machine: version, encoding, natives and size are checked (PLEO-LIM-03).
func (s *System) loadScript(vm VM, r resource) (*script, error) {
	p, err := amx.Read(r.data)
	if err != nil {
		return nil, err
	}
	low, high := s.cfg.Profile.Versions()
	if p.Version < low || p.Version > high {
		return nil, fmt.Errorf("AMX version %d, want %d to %d in profile %s", p.Version, low, high, s.cfg.Profile)
	}
	if p.Flags&amx.FlagCompact != 0 {
		return nil, fmt.Errorf("compact encoding; compile without it, with -C-") // PLEO-PBT-10, PLEO-LIM-07
	}
	head, _ := p.Offsets()
	if size, limit := int(head)+len(p.Data)+amx.CellSize*int(p.StackHeapCells), s.cfg.Profile.Block(vm); size > limit {
		return nil, fmt.Errorf("%d bytes of header, data and stack, want at most %d in the %s VM", size, limit, vm)
	}
	fixed, largest := codeOf(p)
	for other := VMSensor; other < vmMax; other++ {
		if p := s.machines[other].occupant(); other != vm && p != nil {
			f, l := codeOf(p)
			fixed, largest = fixed+f, max(largest, l)
		}
	}
	if fixed+largest > codePool {
		return nil, fmt.Errorf("%d bytes of code with the other scripts, want at most %d", fixed+largest, codePool)
	}
	out := &script{resource: r, program: p}
	m := s.machines[vm]
	if out.amx, err = pawn.New(p, pawn.Options{Natives: func(name string) pawn.Native { return s.native(m, name) }, MaxMemory: 64 << 10,
		Statement: s.watchStatements(m, out)}); err != nil {
		return nil, err
	}
	return out, nil
}

// occupant returns the program that has the machine, or that will have it; nil: none.
func (m *machine) occupant() *amx.Program {
	switch {
	case m.next != nil:
		return m.next.program
	case m.leave || m.phase == vacant || m.phase == closing:
		return nil
	}
	return m.program
}

// codeOf returns the code that a program keeps in the pool, and its largest overlay, which is paged through it (PLEO-AMX-05).
func codeOf(p *amx.Program) (fixed, overlay int) {
	if len(p.Overlays) == 0 {
		return len(p.Code), 0
	}
	for _, o := range p.Overlays {
		overlay = max(overlay, int(o.Size))
	}
	return 0, overlay
}

// exec lets a machine run a script after the present one has closed (PLEO-VM-10, PLEO-VM-13). It reports whether the script can run.
func (s *System) exec(vm VM, r resource) bool {
	if vm <= VMNone || vm >= vmMax {
		s.log(Warning, LogVM, "run %s: no machine %d", r.name, vm)
		return false
	}
	next, err := s.loadScript(vm, r)
	if err != nil {
		s.log(Error, LogVM, "load %s: %v", r.path(), err)
		return false
	}
	m := s.machines[vm]
	m.next, m.leave = next, m.phase != vacant
	return true
}

// unload lets the script of a machine close.
func (s *System) unload(vm VM) {
	m := s.machines[vm]
	m.next, m.leave = nil, m.phase != vacant
}

// queue lets a machine call a public function with these arguments when it is free, if its script has it. done may be nil.
func (s *System) queue(vm VM, name string, done func(int32, pawn.Code), args ...int32) bool {
	m := s.machines[vm]
	if m.phase == vacant || m.phase == closing {
		return false
	}
	if _, ok := m.amx.Public(name); !ok {
		return false
	}
	if len(m.queue) >= maxQueue {
		s.log(Warning, LogVM, tooManyLine, vm, maxQueue)
		return false
	}
	m.queue = append(m.queue, callback{name, done, args})
	return true
}

// begin puts a call of a public function, found by its name, on top of the machine's calls (PLEO-VM-04).
func (s *System) begin(m *machine, name string, done func(int32, pawn.Code), args ...int32) bool {
	index := pawn.Main
	if name != "main" {
		var ok bool
		if index, ok = m.amx.Public(name); !ok {
			return false
		}
	}
	c := &call{main: index == pawn.Main, done: done}
	if code := m.amx.Begin(&c.run, index, args...); code != pawn.OK {
		s.log(Error, LogVM, "%s: %s: %v (error %d)", m.name, name, code, int32(code))
		return false
	}
	m.calls = append(m.calls, c)
	return true
}

// schedule gives a machine its turn (PLEO-VM-18).
func (s *System) schedule(m *machine) {
	for range callsInTurn {
		s.advance(m)
		if len(m.calls) == 0 || !s.turn(m) {
			return
		}
	}
}

// advance moves a machine from one phase to the next, and begins the calls that are due.
func (s *System) advance(m *machine) {
	if m.leave && m.phase != closing {
		s.beginClose(m)
	}
	if m.phase == closing {
		if len(m.calls) > 0 && s.now < m.deadline {
			return
		}
		if len(m.calls) > 0 {
			s.log(Warning, LogVM, "%s: close takes longer than %v", m.name, closeLimit)
		}
		s.leaveMachine(m)
	}
	if m.phase == vacant && m.next != nil {
		if m.vm == VMMain && s.appConfig(appWaitForInit) != 0 && s.opening(VMSensor) {
			return
		}
		s.enterMachine(m)
	}
	if m.phase == opening && len(m.calls) == 0 {
		m.phase = running
		m.again = s.now
		if (m.vm == VMAux || m.vm == VMUser) && !s.begin(m, "main", func(_ int32, code pawn.Code) { m.leave, m.aborted = true, code != pawn.OK }) {
			m.leave = true // PLEO-VM-11: a script that runs once
		}
	}
	if m.phase == running {
		s.beginDue(m)
	}
}

// opening reports whether a machine has a script whose init has not ended.
func (s *System) opening(vm VM) bool {
	m := s.machines[vm]
	return m.phase == opening || m.phase == vacant && m.next != nil
}

// beginDue begins a callback on top of the main function, or the main function again. The Sensor VM takes one callback at a time (PLEO-VM-20).
func (s *System) beginDue(m *machine) {
	if m.vm == VMMain && len(m.calls) == 0 && s.now >= m.again && m.program.Main != amx.NoMain {
		s.begin(m, "main", func(_ int32, code pawn.Code) {
			m.again = s.now + minSleep // PLEO-VM-09
			if code != pawn.OK {
				m.again = s.now + mainAgain
			}
		})
	}
	if n := len(m.calls); n > 1 || n == 1 && !m.calls[0].main {
		return
	}
	if len(m.queue) > 0 {
		c := m.queue[0]
		m.queue = m.queue[1:]
		if !s.begin(m, c.name, c.done, c.args...) && c.done != nil {
			c.done(0, pawn.ErrStack)
		}
		return
	}
	if m.vm == VMSensor {
		s.deliver(m)
	}
}
