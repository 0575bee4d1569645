package robot

import (
	"fmt"
	"slices"
	"strings"
)

// Step is a component name with where it is: leg[front][left].
type Step struct {
	Name string
	Locs []Loc
}

// String returns s as written in a path.
func (s Step) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	writeLocs(&b, s.Locs)
	return b.String()
}

// Path is a name as people write it: body:robot.body.head.pitch.val->rangemin. It may begin at the robot, below it, or with a compact
// name, and may end with a slot and a property of it.
type Path struct {
	Body     string // "": the default body (GOSTAI-TREE-07)
	Steps    []Step
	Property string
}

// Bounds of a path; own defaults.
const (
	maxPath  = 400
	maxSteps = 24
)

// ParsePath reads a path. It knows no tree: what is there is Tree.Lookup's to say.
func ParsePath(s string) (Path, error) {
	var p Path
	if len(s) > maxPath {
		return p, fmt.Errorf("%w: %d characters, want at most %d", ErrName, len(s), maxPath)
	}
	rest := s
	if body, after, ok := strings.Cut(rest, ":"); ok {
		if body == "" || strings.ContainsFunc(body, func(r rune) bool { return !wordRune(r) && r != '-' && r != '_' }) {
			return p, fmt.Errorf("%w: body %.40q in %.60q", ErrName, body, s)
		}
		p.Body, rest = body, after
	}
	if before, prop, ok := strings.Cut(rest, "->"); ok {
		if prop == "" || strings.ContainsFunc(prop, func(r rune) bool { return !wordRune(r) }) {
			return p, fmt.Errorf("%w: property %.40q in %.60q", ErrName, prop, s)
		}
		p.Property, rest = prop, before
	}
	for part := range strings.SplitSeq(rest, ".") {
		step, err := parseStep(part)
		if err != nil {
			return p, fmt.Errorf("%w, in %.60q", err, s)
		}
		if p.Steps = append(p.Steps, step); len(p.Steps) > maxSteps {
			return p, fmt.Errorf("%w: more than %d parts in %.60q", ErrName, maxSteps, s)
		}
	}
	return p, nil
}

func wordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func parseStep(part string) (Step, error) {
	name, locs, found := strings.Cut(part, "[")
	if name == "" || name[0] >= '0' && name[0] <= '9' || strings.ContainsFunc(name, func(r rune) bool { return !wordRune(r) }) {
		return Step{}, fmt.Errorf("%w: component %.40q; want a lower-case letter, then letters and digits", ErrName, name)
	}
	step := Step{Name: name}
	for found {
		word, after, closed := strings.Cut(locs, "]")
		if !closed {
			return Step{}, fmt.Errorf("%w: %.40q lacks a closing bracket", ErrName, part)
		}
		l, err := ParseLoc(word)
		if err != nil {
			return Step{}, err
		}
		step.Locs = append(step.Locs, l)
		// Letters may follow a number in a compact name: touch[0]L of joint[0].touch[left] (GOSTAI-CMP-02).
		for after != "" && after[0] != '[' {
			l, ok := locOfLetter(after[0])
			if !ok {
				return Step{}, fmt.Errorf("%w: %.20q after a bracket in %.40q; want a dot, or place letters such as L", ErrName, after, part)
			}
			step.Locs, after = append(step.Locs, l), after[1:]
		}
		locs, found = strings.CutPrefix(after, "[")
	}
	return step, nil
}

// String returns p as it is written.
func (p Path) String() string {
	var b strings.Builder
	if p.Body != "" {
		b.WriteString(p.Body + ":")
	}
	for i, s := range p.Steps {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.String())
	}
	if p.Property != "" {
		b.WriteString("->" + p.Property)
	}
	return b.String()
}

// OldStyle reads the spelling of the standard's table, where a standard name carries its place as letters: armR is arm[right], legFL is
// leg[front][left] (GOSTAI-LOC-11). It reports whether name is one such.
func OldStyle(name string) (Step, bool) {
	if isStandard(name) {
		return Step{}, false
	}
	for stem, locs := range (Step{Name: name}).stems() {
		if stem != name && isStandard(stem) {
			return Step{stem, locs}, true
		}
	}
	return Step{}, false
}

// Target holds the nodes that a name means, or slots of them. A group has several (GOSTAI-LOC-13).
type Target struct {
	Nodes    []*Node // what was named, the slot aside
	Refs     []*Ref  // the slots named, of those nodes or of what is below them; empty if the name ends at a node
	Property string  // of the slots
}

// Lookup finds a full name (robot. may be left out), a compact name or an alias, with a slot and a property behind it. A localizer or a
// component means all below it: robot.wheel.val is the val of every wheel. A name that could mean two things is ErrAmbiguous.
func (t *Tree) Lookup(name string) (Target, error) {
	p, err := ParsePath(name)
	if err != nil {
		return Target{}, err
	}
	if p.Body != "" && p.Body != t.Name {
		return Target{}, fmt.Errorf("%w: body %.40q; want %s", ErrNotFound, p.Body, t.Name)
	}
	steps := p.Steps
	first := steps[0]
	isRobot := first.Name == "robot" && len(first.Locs) == 0
	if isRobot {
		steps = steps[1:]
	}
	target, err := walkSteps([]*Node{t.root}, steps)
	published := false
	// A published name goes before a path that leaves out robot: where a device is called serial, the robot's number is robot.serial only.
	if d := t.published(first); d != nil && !isRobot {
		if found, e := walkSteps([]*Node{d}, steps[1:]); e == nil {
			target, err, published = found, nil, true
		}
	}
	// A short name goes before what would be every slot of that name on the whole robot.
	all := err == nil && !published && len(steps) == 1 && len(target.Refs) > 0 && t.root.Slot(first.Name) == nil
	if (err != nil || all) && !isRobot && t.sealed {
		nodes, shortErr := t.shortNamed(first)
		switch {
		case shortErr != nil && err != nil:
			return Target{}, shortErr
		case len(nodes) > 0:
			target, err = walkSteps(nodes, steps[1:])
		}
	}
	if err != nil {
		return Target{}, fmt.Errorf("%.100q: %w", name, err)
	}
	if target.Property = p.Property; p.Property != "" && len(target.Refs) == 0 {
		return Target{}, fmt.Errorf("%.100q: %w: want -> after a slot, such as val", name, ErrName)
	}
	return target, nil
}

// walkSteps follows steps from all nodes at once. The last may be a slot.
func walkSteps(nodes []*Node, steps []Step) (Target, error) {
	for i, s := range steps {
		var next []*Node
		var problem error
		for _, n := range nodes {
			found, err := n.parts(s)
			if err != nil {
				problem = err
			}
			next = append(next, found...)
		}
		if len(next) > 0 {
			nodes = next
			continue
		}
		if i == len(steps)-1 && len(s.Locs) == 0 {
			refs, absent := slotsOf(nodes, s.Name)
			if len(refs) > 0 {
				return Target{Nodes: nodes, Refs: refs}, nil
			}
			if absent != nil {
				return Target{}, fmt.Errorf("%w: %s", ErrNotPresent, absent)
			}
		}
		if problem != nil {
			return Target{}, problem
		}
		return Target{}, fmt.Errorf("%w: %s in %s; %s", ErrNotFound, s, nodes[0].Full(), nodes[0].what())
	}
	return Target{Nodes: nodes}, nil
}

// parts returns what s means in n: a part, a member of a localizer, or all that fit where less is said than would tell them apart.
func (n *Node) parts(s Step) ([]*Node, error) {
	if n.localizer {
		var out []*Node
		for _, m := range n.members() {
			found, err := m.parts(s)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
		return out, nil
	}
	if c := n.child(s.Name); c != nil {
		return c.located(s.Locs)
	}
	// The old spelling of the standard's table: armR is arm[right] where no part is called armR (GOSTAI-LOC-11).
	stems := s.stems()
	for _, c := range n.children {
		if locs, ok := stems[c.name]; ok && c.localizer && c.name != "" {
			return c.located(locs)
		}
	}
	return nil, nil
}

// located returns n's members at locs: exactly that, or all whose places include it.
func (n *Node) located(locs []Loc) ([]*Node, error) {
	if len(locs) == 0 {
		return []*Node{n}, nil
	}
	sorted, err := orderLocs(locs)
	if err != nil {
		return nil, err
	}
	if m := n.member(sorted); m != nil {
		return []*Node{m}, nil
	}
	var out []*Node
	for _, m := range n.members() {
		if m != n && includes(m.locs(), sorted) {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		var b strings.Builder
		writeLocs(&b, sorted)
		return nil, fmt.Errorf("%w: %s%s; %s", ErrNotFound, n.Full(), b.String(), n.what())
	}
	return out, nil
}

// includes reports whether some occur in all in their order.
func includes(all, some []Loc) bool {
	for _, l := range some {
		i := slices.Index(all, l)
		if i < 0 {
			return false
		}
		all = all[i+1:]
	}
	return true
}

// slotsOf returns the slots of that name: a node's own, else those of what is below it. absent is one that is optional and not there.
func slotsOf(nodes []*Node, name string) (refs []*Ref, absent *Ref) {
	for _, n := range nodes {
		if r := n.Slot(name); r != nil && !r.Property {
			if r.Present {
				refs = append(refs, r)
			} else {
				absent = r
			}
			continue
		}
		below, missing := slotsOf(n.children, name)
		refs = append(refs, below...)
		if missing != nil {
			absent = missing
		}
	}
	return refs, absent
}
