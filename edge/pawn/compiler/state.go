package compiler

import "slices"

// automaton is a state machine of the script. The first one has no name.
type automaton struct {
	name   *name
	states []*name // the state with number 1 first
	cell   *symbol // keeps the current state
}

// stateList is a set of states of one automaton.
type stateList struct {
	automaton int
	states    []int
}

func (l *stateList) add(state int) {
	if i, found := slices.BinarySearch(l.states, state); !found {
		l.states = slices.Insert(l.states, i, state)
	}
}

func (l *stateList) meets(o *stateList) bool {
	return l.automaton == o.automaton && slices.ContainsFunc(l.states, func(s int) bool { return slices.Contains(o.states, s) })
}

// automatonOf returns the number of an automaton, which it may add.
func (c *compiler) automatonOf(n *name) int {
	if i := c.findAutomaton(n); i >= 0 {
		return i
	}
	c.automata = append(c.automata, automaton{name: n})
	return len(c.automata) - 1
}

func (c *compiler) findAutomaton(n *name) int {
	return slices.IndexFunc(c.automata, func(a automaton) bool { return a.name == n })
}

// stateOf returns the number of a state, from 1, which it may add.
func (c *compiler) stateOf(a int, n *name) int {
	m := &c.automata[a]
	i := slices.Index(m.states, n)
	if i < 0 {
		m.states = append(m.states, n)
		i = len(m.states) - 1
	}
	return i + 1
}

// listOf returns the number of a list of states, from 1; equal lists share it.
func (c *compiler) listOf(l stateList) int {
	for i, o := range c.lists {
		if o.automaton == l.automaton && slices.Equal(o.states, l.states) {
			return i + 1
		}
	}
	c.lists = append(c.lists, l)
	return len(c.lists)
}

// findState resolves the automaton and state of n, or reports errors 86 and 87.
func (c *compiler) findState(n *node) (automaton, state int, ok bool) {
	if n.name2 == nil {
		return 0, 0, false // the name is missing, which was reported
	}
	machine := "(main)"
	if n.name != nil {
		machine = n.name.text
		if automaton = c.findAutomaton(n.name); automaton < 0 {
			c.report(n.pos, 86, machine).closest(machine, func() []string {
				var out []string
				for _, a := range c.automata[1:] {
					out = append(out, a.name.text)
				}
				return out
			})
			return 0, 0, false
		}
	}
	m := &c.automata[automaton]
	if state = slices.Index(m.states, n.name2) + 1; state == 0 {
		c.report(n.pos, 87, n.name2.text, machine).closest(n.name2.text, func() []string {
			var out []string
			for _, s := range m.states {
				out = append(out, s.text)
			}
			return out
		})
		return 0, 0, false
	}
	return automaton, state, true
}

// stateCell returns the variable that keeps the state of an automaton.
func (c *compiler) stateCell(a int) *symbol {
	m := &c.automata[a]
	if m.cell == nil {
		m.cell = &symbol{name: c.intern("(state)"), kind: kindVar, cells: 1, use: useDefined | useRead | useWritten}
	}
	return m.cell
}

// genInState leaves whether the automaton is in the state of n.
func (c *compiler) genInState(n *node) value {
	a, state, ok := c.findState(n)
	if !ok {
		return value{kind: vExpr, tag: c.boolTag}
	}
	c.emitSym(opLoadPri, c.stateCell(a), 0)
	c.emit(opEqCPri, int32(state))
	return value{kind: vExpr, tag: c.boolTag}
}

// genSetState changes the state of an automaton: it calls the exit function of the old state and the entry function of the new
// one, also when the state stays the same (PLEO-AMX-04).
func (c *compiler) genSetState(n *node) {
	var skip int32
	if n.a != nil {
		skip = c.newLabel()
		c.genTest(n.a, skip, false)
	}
	a, state, ok := c.findState(n)
	if ok {
		if f := c.hook("exit"); f != nil {
			c.callHook(f, nil)
		}
		c.emit(opConstPri, int32(state))
		c.emitSym(opStorPri, c.stateCell(a), 0)
		if f := c.hook("entry"); f != nil {
			for _, b := range f.bodies {
				if b.states > 0 && c.lists[b.states-1].automaton == a && slices.Contains(c.lists[b.states-1].states, state) {
					c.callHook(f, b)
					break
				}
			}
		}
	}
	if skip != 0 {
		c.emit(opLabel, skip)
	}
}

// hook returns the entry or exit function, if the script has one with states.
func (c *compiler) hook(word string) *function {
	for _, s := range c.intern(word).global {
		if s.kind == kindFunc && len(s.fn.bodies) > 0 && s.fn.bodies[0].states != 0 {
			return s.fn
		}
	}
	return nil
}

// callHook calls body b, or the body that the state selects when b is nil. Such a function returns with RET, which takes no
// arguments off the stack; in an overlay only IRETN exists and takes the count.
func (c *compiler) callHook(f *function, b *body) {
	c.reach(f)
	if c.overlay > 0 {
		c.emit(opPushC, 0)
	}
	c.code = append(c.code, instr{op: opCall, fn: f, body: b})
}
