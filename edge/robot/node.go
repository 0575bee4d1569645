package robot

import (
	"fmt"
	"slices"
	"strings"
)

// Kind says what a node of the tree is.
type Kind uint8

// The kinds of nodes.
const (
	Component Kind = iota // a part that only holds others
	Localizer             // tells identical parts apart by where they are
	Device                // implements at least one interface; it may have parts too
)

// String returns "component", "localizer" or "device".
func (k Kind) String() string { return [...]string{"component", "localizer", "device"}[min(k, Device)] }

// Node is a component, localizer or device. Trees are built by one goroutine; after Tree.Seal any number may read.
type Node struct {
	name      string // "" for a member of a localizer, which loc tells apart
	loc       Loc
	localizer bool
	parent    *Node
	children  []*Node
	byPlace   map[place]*Node // children
	is        []*Interface
	part      Part // what a device says about itself

	// Set by Tree.Seal.
	compact  string
	refs     []*Ref
	actuator int
}

// place tells a node from its siblings: its name, or where it is in its localizer.
type place struct {
	name string
	loc  Loc
}

// adopt makes c the last child of n.
func (n *Node) adopt(c *Node) {
	if n.byPlace == nil {
		n.byPlace = map[place]*Node{}
	}
	c.parent = n
	n.children = append(n.children, c)
	n.byPlace[place{c.name, c.loc}] = c
}

// NewComponent returns a component that is no part of anything yet.
func NewComponent(name string) (*Node, error) { return newNode(name, false) }

// NewLocalizer returns a localizer that is no part of anything yet (GOSTAI-SUP-08).
func NewLocalizer(name string) (*Node, error) { return newNode(name, true) }

func newNode(name string, localizer bool) (*Node, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return &Node{name: name, localizer: localizer, actuator: -1}, nil
}

// maxName bounds a component's name; own default.
const maxName = 40

// checkName refuses what cannot stand between the dots of a path.
func checkName(s string) error {
	ok := s != "" && len(s) <= maxName
	for i := 0; i < len(s) && ok; i++ {
		c := s[i]
		ok = c >= 'a' && c <= 'z' || i > 0 && (c >= 'A' && c <= 'Z' || c >= '0' && c <= '9')
	}
	if !ok {
		return fmt.Errorf("%w: component %.50q; want a lower-case letter, then letters and digits, at most %d", ErrName, s, maxName)
	}
	return nil
}

// Name returns the component's name; a member of a localizer has the localizer's name: wheel for robot.body.wheel[left].
func (n *Node) Name() string {
	for n.name == "" {
		n = n.parent
	}
	return n.name
}

// Loc returns where n is within its localizer; the zero Loc for what is in none.
func (n *Node) Loc() Loc { return n.loc }

// Parent returns what n is a part of, nil for the root.
func (n *Node) Parent() *Node { return n.parent }

// Children returns the parts of n in the order they were added (GOSTAI-TREE-06).
func (n *Node) Children() []*Node { return slices.Clone(n.children) }

// Kind says what n is.
func (n *Node) Kind() Kind {
	switch {
	case len(n.is) > 0:
		return Device
	case n.localizer:
		return Localizer
	}
	return Component
}

// Full returns the path of n from the root: robot.body.leg[front][left].hip.pitch (GOSTAI-TREE-02).
func (n *Node) Full() string {
	var b strings.Builder
	n.writeFull(&b)
	return b.String()
}

func (n *Node) writeFull(b *strings.Builder) {
	if n.parent != nil {
		n.parent.writeFull(b)
		if n.name == "" {
			writeLocs(b, []Loc{n.loc})
			return
		}
		b.WriteByte('.')
	}
	b.WriteString(n.name)
}

// Compact returns the short name of a device: kneeFL. It is Full where several devices would share it, and "" for what is no device.
func (n *Node) Compact() string { return n.compact }

// Interfaces returns what n implements, the most derived only (GOSTAI-SUP-02), in the order they were declared.
func (n *Node) Interfaces() []*Interface {
	var out []*Interface
	for _, i := range n.is {
		if !slices.ContainsFunc(n.is, func(o *Interface) bool { return o != i && o.Is(i) }) {
			out = append(out, i)
		}
	}
	return out
}

// Is reports whether n implements the interface of that name, itself or by a kind of it.
func (n *Node) Is(name string) bool {
	return slices.ContainsFunc(n.is, func(i *Interface) bool { return i.Is(byName[name]) })
}

// Slots returns the slots of n, also optional ones that it lacks, in the order of its interfaces (GOSTAI-TREE-06). Set by Tree.Seal.
func (n *Node) Slots() []*Ref { return n.refs }

// Slot returns the slot of that name, or nil. Where two interfaces have one of the same name the first declared wins (GOSTAI-IF-00b).
func (n *Node) Slot(name string) *Ref {
	for _, r := range n.refs {
		if r.Slot.Name == name || r.Slot.Alias == name && name != "" {
			return r
		}
	}
	return nil
}

// Actuator returns the number of n among the actuators of its tree, or -1.
func (n *Node) Actuator() int { return n.actuator }

// Implement adds interfaces to n (GOSTAI-SUP-01).
func (n *Node) Implement(names ...string) error {
	if n.localizer {
		return fmt.Errorf("%w: %s is a localizer; only its members implement interfaces", ErrName, n.Full())
	}
	for _, name := range names {
		i, err := InterfaceNamed(name)
		if err != nil {
			return err
		}
		if slices.Contains(n.is, i) {
			return fmt.Errorf("%w: %s already implements %s", ErrDuplicate, n.Full(), i.Name)
		}
		for _, c := range n.children {
			if i.Slot(c.name) != nil {
				return slotAndPart(n, c.name)
			}
		}
		n.is = append(n.is, i)
	}
	return nil
}

// AddComponent returns the part of n of that name, made if there is none (GOSTAI-SUP-03).
func (n *Node) AddComponent(name string) (*Node, error) { return n.add(name, false) }

// AddLocalizer returns the localizer of that name in n, made if there is none.
func (n *Node) AddLocalizer(name string) (*Node, error) { return n.add(name, true) }

func (n *Node) add(name string, localizer bool) (*Node, error) {
	if c := n.child(name); c != nil {
		if c.localizer != localizer {
			return nil, fmt.Errorf("%w: %s is already %s", ErrDuplicate, c.Full(), kindWord(c.localizer))
		}
		return c, nil
	}
	c, err := newNode(name, localizer)
	if err != nil {
		return nil, err
	}
	return c, n.Attach(c)
}

func kindWord(localizer bool) string {
	if localizer {
		return "a localizer"
	}
	return "a part of its own, not a localizer"
}

// Attach makes c, which NewComponent or NewLocalizer returned, a part of n. Names are unique among siblings (GOSTAI-TREE-05).
func (n *Node) Attach(c *Node) error {
	switch {
	case c.parent != nil:
		return fmt.Errorf("%w: %s is already a part of %s", ErrDuplicate, c.Full(), c.parent.Full())
	case n.localizer:
		return fmt.Errorf("%w: %s is a localizer; want a place for its part %s", ErrName, n.Full(), c.name)
	case c.name == "":
		return fmt.Errorf("%w: part of %s without a name", ErrName, n.Full())
	case c.name == "robot":
		return fmt.Errorf("%w: robot is the root of the tree, not a part of %s", ErrName, n.Full())
	case n.child(c.name) != nil:
		return fmt.Errorf("%w: %s.%s", ErrDuplicate, n.Full(), c.name)
	case slices.ContainsFunc(n.is, func(i *Interface) bool { return i.Slot(c.name) != nil }):
		return slotAndPart(n, c.name)
	}
	for p := n; p != nil; p = p.parent {
		if p == c {
			return fmt.Errorf("%w: %s cannot be a part of itself", ErrName, c.name)
		}
	}
	n.adopt(c)
	return nil
}

func slotAndPart(n *Node, name string) error {
	return fmt.Errorf("%w: %s.%s is both a slot and a part of the device; rename the part", ErrDuplicate, n.Full(), name)
}

// AddDevice adds a part that implements at least one interface; one of that name must not be there yet (GOSTAI-SUP-04).
func (n *Node) AddDevice(name string, interfaces ...string) (*Node, error) {
	c, err := newNode(name, false)
	if err != nil {
		return nil, err
	}
	if len(interfaces) == 0 {
		return nil, fmt.Errorf("%w: device %s.%s implements no interface", ErrName, n.Full(), name)
	}
	if err := c.Implement(interfaces...); err != nil {
		return nil, err
	}
	return c, n.Attach(c)
}

// Get returns the member of a localizer at locs, in any order that makes sense (GOSTAI-SUP-09). What is not there is an error, not made.
func (n *Node) Get(locs ...Loc) (*Node, error) {
	sorted, err := orderLocs(locs)
	if err != nil {
		return nil, err
	}
	if m := n.member(sorted); m != nil {
		return m, nil
	}
	var b strings.Builder
	writeLocs(&b, sorted)
	return nil, fmt.Errorf("%w: %s%s; %s", ErrNotFound, n.Full(), b.String(), n.what())
}

// Set puts c at locs of a localizer, making nested localizers where there are several locs (GOSTAI-SUP-09, GOSTAI-LOC-04). What is there
// already is not replaced. The name of c is forgotten: its place is its name.
func (n *Node) Set(c *Node, locs ...Loc) error {
	switch {
	case c.parent != nil:
		return fmt.Errorf("%w: %s is already a part of %s", ErrDuplicate, c.Full(), c.parent.Full())
	case !n.localizer || len(locs) == 0:
		return fmt.Errorf("%w: %s is %s", ErrName, n.Full(), kindWord(n.localizer))
	}
	sorted, err := orderLocs(locs)
	if err != nil {
		return err
	}
	at := n
	for i, l := range sorted {
		m := at.at(l)
		switch last := i == len(sorted)-1; {
		case m == nil && last:
			m = c
			m.name = ""
		case m == nil:
			m = &Node{localizer: true, actuator: -1}
		case last || !m.localizer:
			return fmt.Errorf("%w: %s", ErrDuplicate, m.Full())
		}
		if m.parent == nil {
			m.loc = l
			at.adopt(m)
		}
		at = m
	}
	return nil
}

// child returns the part of that name, nil if there is none.
func (n *Node) child(name string) *Node { return n.byPlace[place{name: name}] }

// at returns the direct member at l, nil if there is none.
func (n *Node) at(l Loc) *Node { return n.byPlace[place{loc: l}] }

// member follows ordered locs; nil if the way ends.
func (n *Node) member(locs []Loc) *Node {
	for _, l := range locs {
		if n = n.at(l); n == nil {
			return nil
		}
	}
	return n
}

// members returns what a localizer tells apart: the first nodes below it that are no localizers, or n itself if it is none.
func (n *Node) members() []*Node {
	if !n.localizer {
		return []*Node{n}
	}
	var out []*Node
	for _, c := range n.children {
		out = append(out, c.members()...)
	}
	return out
}

// locs returns where n is, from the outermost localizer of its name inwards.
func (n *Node) locs() []Loc {
	var out []Loc
	for ; n.name == ""; n = n.parent {
		out = append(out, n.loc)
	}
	slices.Reverse(out)
	return out
}

// what lists what is at n, for an error.
func (n *Node) what() string {
	var names []string
	for _, c := range n.children {
		if c.name == "" {
			names = append(names, "["+c.loc.String()+"]")
			continue
		}
		names = append(names, c.name)
	}
	for _, r := range n.refs {
		names = append(names, r.Slot.Name)
	}
	if len(names) == 0 {
		return "it has no parts"
	}
	const most = 14
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return "it has " + strings.Join(names, ", ")
}

// walk calls f for n and everything below it, parents first.
func (n *Node) walk(f func(*Node)) {
	f(n)
	for _, c := range n.children {
		c.walk(f)
	}
}
