package robot

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Range is a device's own limits of a slot (GOSTAI-IF-00f).
type Range struct{ Min, Max float64 }

// Clamp returns the value within r closest to v.
func (r Range) Clamp(v float64) float64 { return min(max(v, r.Min), r.Max) }

// Part is one device of a body, as its table lists it. All but Path and Is may be left out.
type Part struct {
	Path    string   // below robot: "body.leg[front][left].hip.pitch"; "" or "robot" is the robot itself
	Is      []string // interfaces
	Has     []string // optional slots that the device has; "*": all
	Ranges  map[string]Range
	Fixed   map[string]Value    // slots whose value never changes: model, xfov
	Props   map[string]Value    // properties of val, reached as path.val->name: native; unit where it is not the standard's, "" for none
	Live    []string            // properties of val that are measured: raw
	Aliases []string            // more short names
	Uses    map[string][]string // interface -> paths of the actuators that its use takes, such as Mobile -> wheels
	Endless bool                // turns without end: angle goes from 0 to 2π
}

// Ref is one slot of one device.
type Ref struct {
	ID        int // number within the sealed tree, for tables of values
	Node      *Node
	Interface *Interface
	Slot      *Slot
	Range     Range // the standard's range, narrowed by the device's own limits
	Present   bool  // false: an optional slot that the device lacks
	Property  bool  // a measured property of val, not a slot
}

// String returns the full name of the slot.
func (r *Ref) String() string {
	if r.Property {
		return r.Node.Full() + ".val->" + r.Slot.Name
	}
	return r.Node.Full() + "." + r.Slot.Name
}

// Fixed returns the value of a slot that never changes.
func (r *Ref) Fixed() (Value, bool) {
	v, ok := r.Node.part.Fixed[r.Slot.Name]
	return v, ok && !r.Property
}

// Unit returns the slot's unit. A device has its own where the standard leaves it open: a button's pressure is 0 or 1, not pascal
// (GOSTAI-IF-10.1), a bare Motor is an angle or an opening (GOSTAI-IF-03.1).
func (r *Ref) Unit() Unit {
	own, ok := r.Node.part.Props["unit"]
	if val := r.Node.Slot("val"); ok && val != nil && !r.Property && (r == val || r.Slot.Name == val.Slot.Points) {
		return Unit(own.Text)
	}
	return r.Slot.Unit
}

// Prop returns a fixed property of the slot: rangemin, rangemax and unit of any slot, and of val what the device says of itself.
func (r *Ref) Prop(name string) (Value, bool) {
	if v, ok := r.Node.part.Props[name]; ok && r.Slot.Name == "val" {
		return v, true
	}
	switch name {
	case "rangemin":
		return F(r.Range.Min), true
	case "rangemax":
		return F(r.Range.Max), true
	case "unit":
		return S(string(r.Unit())), true
	}
	return Value{}, false
}

// Bearing returns where a sensor looks, in radians counter-clockwise from the front; false where its body does not say.
func (n *Node) Bearing() (float64, bool) {
	v, ok := n.part.Props["bearing"]
	return v.Number, ok
}

// Endless reports whether the device turns without end, as wheels do.
func (n *Node) Endless() bool { return n.part.Endless }

// Tree is one body. Build it by one goroutine, then Seal it; from then on it may be read by any number.
type Tree struct {
	Name  string // of the body, the prefix of its names where there are several (GOSTAI-TREE-07)
	Frame Frame

	root      *Node
	sealed    bool
	devices   []*Node
	actuators []*Node
	refs      []*Ref
	short     map[string]*Node // compact names
	aliases   map[string]*Node
}

// New returns a tree that is only its root, robot.
func New(name string) *Tree {
	return &Tree{Name: name, root: &Node{name: "robot", actuator: -1}}
}

// Build returns the sealed tree of parts. Names that collide, or parts that the standard does not allow, are an error.
func Build(name string, frame Frame, parts []Part) (*Tree, error) {
	t := New(name)
	t.Frame = frame
	for _, p := range parts {
		if _, err := t.Add(p); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, p.Path, err)
		}
	}
	warnings, err := t.Seal()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(warnings) > 0 {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(warnings...))
	}
	return t, nil
}

// Root returns the robot.
func (t *Tree) Root() *Node { return t.root }

// Add adds the device p and the components and localizers on the way to it. A component that is there already becomes a device; a device
// stays what it is.
func (t *Tree) Add(p Part) (*Node, error) {
	n, err := t.Grow(p.Path)
	switch {
	case err != nil:
		return nil, err
	case len(p.Is) == 0:
		return nil, fmt.Errorf("%w: device %s implements no interface", ErrName, n.Full())
	case len(n.is) > 0:
		return nil, fmt.Errorf("%w: %s is already a device", ErrDuplicate, n.Full())
	}
	if err := n.Implement(p.Is...); err != nil {
		return nil, err
	}
	n.part = p
	return n, nil
}

// Grow returns the node at path below robot, made with all on the way to it if need be; "" and "robot" are the robot.
func (t *Tree) Grow(path string) (*Node, error) {
	if path == "" || path == "robot" {
		return t.root, nil
	}
	p, err := ParsePath(path)
	if err != nil {
		return nil, err
	}
	if p.Body != "" || p.Property != "" {
		return nil, fmt.Errorf("%w: part %q; want only names below robot", ErrName, path)
	}
	if p.Steps[0].Name == "robot" && len(p.Steps[0].Locs) == 0 {
		p.Steps = p.Steps[1:]
	}
	n := t.root
	for _, s := range p.Steps {
		if n, err = n.grow(s); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// grow returns the part of n that s names, made if need be.
func (n *Node) grow(s Step) (*Node, error) {
	if len(s.Locs) == 0 {
		return n.AddComponent(s.Name)
	}
	l, err := n.AddLocalizer(s.Name)
	if err != nil {
		return nil, err
	}
	sorted, err := orderLocs(s.Locs)
	if err != nil {
		return nil, err
	}
	if m := l.member(sorted); m != nil {
		if m.localizer {
			return nil, fmt.Errorf("%w: %s is a localizer", ErrDuplicate, m.Full())
		}
		return m, nil
	}
	m := &Node{actuator: -1}
	return m, l.Set(m, sorted...)
}

// Seal numbers slots and actuators and makes the compact names (makeCompactNames, GOSTAI-SUP-05). It may be called again after the tree
// grew; numbers, and names that became ambiguous, are then others. A device that would share its compact name has only its full one, and
// is warned of.
func (t *Tree) Seal() (warnings []error, err error) {
	t.devices, t.actuators, t.refs, t.sealed = nil, nil, nil, false
	t.root.walk(func(n *Node) {
		n.compact, n.refs, n.actuator = "", nil, -1
		if err == nil {
			err = t.seal(n)
		}
	})
	if err != nil {
		return nil, err
	}
	t.sealed = true
	warnings = t.nameAll()
	for _, d := range t.devices {
		for iface, paths := range d.part.Uses {
			for _, p := range paths {
				if target, err := t.Lookup(p); err != nil || len(target.Refs) > 0 || len(t.actuatorsBelow(target.Nodes)) == 0 {
					return nil, fmt.Errorf("%w: %s of %s uses %q, which is not an actuator", ErrNotFound, iface, d.Full(), p)
				}
			}
		}
	}
	return warnings, nil
}

func (t *Tree) seal(n *Node) error {
	if n.localizer && len(n.children) == 0 {
		return fmt.Errorf("%w: localizer %s has no members", ErrName, n.Full())
	}
	if len(n.is) == 0 {
		return nil
	}
	acts := false
	add := func(r *Ref) {
		r.ID = len(t.refs)
		n.refs, t.refs = append(n.refs, r), append(t.refs, r)
	}
	unknown := maps.Clone(n.part.Ranges)
	for _, i := range n.Interfaces() {
		acts = acts || i.Acts && n.part.Uses[i.Name] == nil
		for k := range i.Slots {
			s := &i.Slots[k]
			if n.Slot(s.Name) != nil {
				continue // the first declared wins
			}
			r := &Ref{Node: n, Interface: i, Slot: s, Range: Range{s.Min, s.Max}}
			r.Present = !s.Optional || slices.Contains(n.part.Has, s.Name) || slices.Contains(n.part.Has, "*")
			own, ok := n.part.Ranges[s.Name]
			if !ok && s.Points != "" {
				own, ok = n.part.Ranges[s.Points]
			}
			if ok {
				r.Range = Range{max(own.Min, s.Min), min(own.Max, s.Max)}
				if !(r.Range.Min <= r.Range.Max) {
					return fmt.Errorf("%w: %s from %v to %v", ErrRange, r, own.Min, own.Max)
				}
			}
			delete(unknown, s.Name)
			if v, ok := r.Fixed(); ok {
				if err := s.Allows(v); err != nil {
					return fmt.Errorf("%s: %w", n.Full(), err)
				}
			}
			add(r)
		}
	}
	for name := range unknown {
		return fmt.Errorf("%w: range of slot %s, which %s does not have", ErrNotFound, name, n.Full())
	}
	for _, name := range slices.Concat(n.part.Has, slices.Collect(maps.Keys(n.part.Fixed))) {
		if name != "*" && n.Slot(name) == nil {
			return fmt.Errorf("%w: slot %s of %s", ErrNotFound, name, n.Full())
		}
	}
	if val := n.Slot("val"); val != nil {
		for _, p := range n.part.Live {
			add(&Ref{Node: n, Interface: val.Interface, Range: Range{math.Inf(-1), math.Inf(1)}, Present: true, Property: true,
				Slot: &Slot{Name: p, Access: ReadOnly, Type: Float, Min: math.Inf(-1), Max: math.Inf(1), Doc: "measured property of val"}})
		}
	}
	t.devices = append(t.devices, n)
	if acts {
		n.actuator = len(t.actuators)
		t.actuators = append(t.actuators, n)
	}
	return nil
}

// Devices returns every device, parents first, in the order they were added.
func (t *Tree) Devices() []*Node { return slices.Clone(t.devices) }

// Nodes returns every node, parents first.
func (t *Tree) Nodes() []*Node {
	var out []*Node
	t.root.walk(func(n *Node) { out = append(out, n) })
	return out
}

// Slots returns every slot of every device by its ID.
func (t *Tree) Slots() []*Ref { return t.refs }

// Actuators returns the devices that have one owner at a time, by their number.
func (t *Tree) Actuators() []*Node { return slices.Clone(t.actuators) }

// ActuatorsOf returns the numbers of all actuators that using target takes, in order: what is named, what is below it, and what it uses
// in turn, such as the wheels for robot.go.
func (t *Tree) ActuatorsOf(target Target) []int {
	var found []int
	for _, r := range target.Refs {
		found = append(found, t.actuatorsFor(r.Node, r.Interface)...)
	}
	if len(target.Refs) == 0 {
		found = t.actuatorsBelow(target.Nodes)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (t *Tree) actuatorsBelow(nodes []*Node) (found []int) {
	for _, n := range nodes {
		n.walk(func(n *Node) {
			for _, i := range n.is {
				found = append(found, t.actuatorsFor(n, i)...)
			}
		})
	}
	return found
}

func (t *Tree) actuatorsFor(n *Node, i *Interface) (found []int) {
	if !i.Acts {
		return nil
	}
	for _, p := range n.part.Uses[i.Name] {
		if target, err := t.Lookup(p); err == nil {
			for _, u := range target.Nodes {
				u.walk(func(u *Node) {
					if u.actuator >= 0 {
						found = append(found, u.actuator)
					}
				})
			}
		}
	}
	if n.part.Uses[i.Name] == nil && n.actuator >= 0 {
		found = append(found, n.actuator)
	}
	return found
}

// Trees is the bodies of one agent, the first of them the default one (GOSTAI-TREE-07).
type Trees []*Tree

// Lookup is Tree.Lookup for a name that may begin with a body's and a colon: "left:robot.body.head".
func (ts Trees) Lookup(name string) (*Tree, Target, error) {
	if len(ts) == 0 {
		return nil, Target{}, fmt.Errorf("%w: no body", ErrNotFound)
	}
	t := ts[0]
	if body, _, ok := strings.Cut(name, ":"); ok {
		i := slices.IndexFunc(ts, func(t *Tree) bool { return t.Name == body })
		if i < 0 {
			return nil, Target{}, fmt.Errorf("%w: body %.40q; want one of %s", ErrNotFound, body, ts.names())
		}
		t = ts[i]
	}
	target, err := t.Lookup(name)
	return t, target, err
}

func (ts Trees) names() string {
	var out []string
	for _, t := range ts {
		out = append(out, t.Name)
	}
	slices.SortFunc(out, cmp.Compare)
	return strings.Join(out, ", ")
}
