package lifeos

import (
	"fmt"
	"time"

	"kennel/edge/pawn"
)

// turn runs the latest call of a machine for a slice, and reports whether it ended.
func (s *System) turn(m *machine) bool {
	c := m.calls[len(m.calls)-1]
	if s.debug.stopped || s.now < c.wake || c.wait != nil && !s.waited(c.wait) {
		return false
	}
	c.wait, m.paused, m.pausedOn = nil, -1, nil
	r := m.amx.Run(&c.run, quantum)
	switch r.State {
	case pawn.Paused:
		c.wake = s.now
		return false
	case pawn.Preempted:
		c.wake = s.now + pace
		return false
	case pawn.Sleeping:
		c.wait, c.wake = m.pausedOn, m.paused
		if m.paused < 0 { // the sleep statement, with milliseconds
			c.wake = s.now + min(max(time.Duration(r.Value)*time.Millisecond, minSleep), maxSleep)
		}
		return false
	}
	m.calls = m.calls[:len(m.calls)-1]
	if r.Code != pawn.OK {
		s.failed(m, r)
	}
	if c.done != nil {
		c.done(r.Value, r.Code)
	}
	return true
}

// failed logs the error of a script with its place in the source, as far as it is known (PLEO-VM-19).
func (s *System) failed(m *machine, r pawn.Result) {
	place := fmt.Sprintf("code byte %d", r.Offset)
	if d, err := m.program.Symbols(); err == nil {
		if file, line, function := d.Source(r.Offset); line > 0 {
			place = fmt.Sprintf("%s:%d in %s", file, line, function)
		}
	}
	s.log(Error, LogVM, "%s: %s: %v (error %d) at %s", m.name, r.Public, r.Code, int32(r.Code), place)
}

// waited reports whether a wait of a script is over.
func (s *System) waited(w *wait) bool {
	for _, c := range w.conditions {
		v := s.properties.values[c.id]
		holds := false
		switch c.compare {
		case compareEqual:
			holds = v == c.value
		case compareNotEqual:
			holds = v != c.value
		case compareLess:
			holds = v < c.value
		case compareGreater:
			holds = v > c.value
		}
		if holds {
			return true
		}
	}
	return false
}

// The comparisons of a wait (PLEO-XAPI-02).
const (
	compareEqual = 1 + iota
	compareNotEqual
	compareLess
	compareGreater
)

// wait is a set of conditions; a script that waits continues when one of them holds.
type wait struct {
	conditions []condition
}

type condition struct {
	id      Property
	value   int32
	compare int32
}

// enterMachine begins with the next script: init is called once (PLEO-VM-02).
func (s *System) enterMachine(m *machine) {
	m.script, m.next, m.phase = *m.next, nil, opening
	m.calls, m.queue = nil, nil
	s.log(Info, LogVM, "%s VM: %s loaded", m.vm, m.path())
	if m.vm == VMAux {
		s.SetProperty(PropScript, m.id)
		s.SetProperty(PropScriptStatus, statusPlaying)
	}
	if m.vm == VMUser || s.appConfig(appRunInit) != 0 {
		s.begin(m, "init", nil)
	}
}

// beginClose abandons the calls of a script and calls its close function (PLEO-VM-03).
func (s *System) beginClose(m *machine) {
	for i := len(m.calls) - 1; i >= 0; i-- {
		m.amx.End(&m.calls[i].run)
	}
	m.calls, m.queue, m.leave = nil, nil, false
	if m.vm == VMSensor {
		s.abandonTriggers()
	}
	m.phase, m.deadline = closing, s.now+closeLimit
	s.begin(m, "close", nil)
	if m.vm == VMMain {
		s.exitDrives(m)
	}
}

// leaveMachine forgets the script of a machine.
func (s *System) leaveMachine(m *machine) {
	s.log(Info, LogVM, "%s VM: %s unloaded", m.vm, m.path())
	aborted := m.aborted
	m.script, m.phase, m.calls, m.queue, m.leave, m.aborted = script{}, vacant, nil, nil, false, false
	if m.vm != VMAux || m.next != nil {
		return
	}
	s.SetProperty(PropScript, 0)
	status := int32(statusDone) // PLEO-VM-12
	if aborted {
		status = statusNone
	}
	s.SetProperty(PropScriptStatus, status)
}
