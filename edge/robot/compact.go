package robot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The compact notation (GOSTAI-CMP-01 to 08). Localizations move to the end of the name; of the components only those stay that are needed
// to tell the device from all others. The standard gives examples, not an algorithm; this is the one of GOSTAI-CMP-06:
//
//  1. Localizers are stripped; their letters and numbers make the suffix.
//  2. A leaf that is an axis (yaw, pitch, roll, x, y, z) gives way to its parent if it is the parent's only part, as in kneeL; else both
//     stay, as in headYaw. Robot and body never represent their parts. Any other leaf is used alone.
//  3. As long as the kept names also fit another device, the nearest ancestor that tells at least one apart is added in front; if none
//     does (body.touch beside head.touch), the parent is, and that is all.
//  4. The names are joined in camel case, then the suffix.
//
// Names fit a path if they occur in it in this order and end where it ends. Paths are compared without localizers, so that all legs have
// the same names.

// axes are the leaves that are directions of their parent rather than parts with a name.
var axes = []string{"yaw", "pitch", "roll", "x", "y", "z"}

// bare is the path of a device without localizers.
type bare struct {
	names  []string // from robot to the device
	single bool     // an axis that is the only part of its parent, which represents it
}

// reduced returns the names up to the one that represents the device.
func (b bare) reduced() []string {
	if b.single {
		return b.names[:len(b.names)-1]
	}
	return b.names
}

// end returns the name that represents the device.
func (b bare) end() string { path := b.reduced(); return path[len(path)-1] }

// names returns the component names from the root to n, without localizers.
func (n *Node) names() []string {
	var out []string
	for ; n != nil; n = n.parent {
		if n.name != "" {
			out = append(out, n.name)
		}
	}
	slices.Reverse(out)
	return out
}

// allLocs returns the localizations of n and its ancestors in path order.
func (n *Node) allLocs() []Loc {
	var out []Loc
	for ; n != nil; n = n.parent {
		if n.name == "" {
			out = append(out, n.loc)
		}
	}
	slices.Reverse(out)
	return out
}

// bares returns the distinct bare paths of all devices.
func (t *Tree) bares() map[string]bare {
	// The names of a component's parts, over all its localizations.
	parts := map[string]map[string]bool{}
	t.root.walk(func(n *Node) {
		names := n.names()
		if parent := strings.Join(names[:len(names)-1], "."); n.name != "" && parent != "" {
			if parts[parent] == nil {
				parts[parent] = map[string]bool{}
			}
			parts[parent][n.name] = true
		}
	})
	out := map[string]bare{}
	for _, d := range t.devices {
		b := bare{names: d.names()}
		if n := len(b.names); n > 2 && slices.Contains(axes, b.names[n-1]) {
			parent := b.names[n-2]
			b.single = len(parts[strings.Join(b.names[:n-1], ".")]) == 1 && parent != "robot" && parent != "body"
		}
		out[strings.Join(b.names, ".")] = b
	}
	return out
}

// rivals are the devices whose reduced paths end in the same name, and of those the ones that have a certain name before it.
type rivals struct {
	count int
	with  map[string][]bare
}

func (r *rivals) add(b bare) {
	r.count++
	path := b.reduced()
	for i, name := range path[:len(path)-1] {
		if !slices.Contains(path[:i], name) {
			r.with[name] = append(r.with[name], b)
		}
	}
}

// left counts the rivals of b that names fit too.
func (r *rivals) left(b bare, names []string) (n int) {
	if len(names) == 1 {
		return r.count - 1
	}
	for _, o := range r.with[names[0]] {
		if fits(names, o.reduced()) && !slices.Equal(o.names, b.names) {
			n++
		}
	}
	return n
}

// keep returns which of b's names the compact name needs, to tell it from its rivals.
func (b bare) keep(r *rivals) []string {
	path := b.reduced()
	kept := []int{len(path) - 1}
	if !b.single && len(path) > 1 && slices.Contains(axes, path[len(path)-1]) {
		kept = []int{len(path) - 2, len(path) - 1}
	}
	pick := func(kept []int) []string {
		out := make([]string, len(kept))
		for i, k := range kept {
			out[i] = path[k]
		}
		return out
	}
	for left := r.left(b, pick(kept)); left > 0; {
		added := false
		for a := kept[0] - 1; a >= 0; a-- {
			with := append([]int{a}, kept...)
			if rest := r.left(b, pick(with)); rest < left {
				kept, left, added = with, rest, true
				break
			}
		}
		if !added {
			if parent := len(path) - 2; parent >= 0 && !slices.Contains(kept, parent) {
				kept = append(kept, parent)
				slices.Sort(kept)
			}
			break
		}
	}
	return pick(kept)
}

// fits reports whether names occur in path in this order, the last at its end.
func fits(names, path []string) bool {
	i := len(names) - 1
	if i < 0 || len(path) == 0 || names[i] != path[len(path)-1] {
		return false
	}
	i--
	for k := len(path) - 2; k >= 0 && i >= 0; k-- {
		if path[k] == names[i] {
			i--
		}
	}
	return i < 0
}

// camel joins names: headYaw.
func camel(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			n = strings.ToUpper(n[:1]) + n[1:]
		}
		b.WriteString(n)
	}
	return b.String()
}

func suffix(locs []Loc) string {
	var b strings.Builder
	for _, l := range locs {
		b.WriteString(l.suffix())
	}
	return b.String()
}

// nameAll gives every device its compact name and its aliases.
func (t *Tree) nameAll() (warnings []error) {
	all := t.bares()
	byEnd := map[string]*rivals{}
	for _, b := range all {
		if byEnd[b.end()] == nil {
			byEnd[b.end()] = &rivals{with: map[string][]bare{}}
		}
		byEnd[b.end()].add(b)
	}
	stem := make(map[string]string, len(all))
	for key, b := range all {
		stem[key] = camel(b.keep(byEnd[b.end()]))
	}
	users := map[string][]*Node{}
	for _, d := range t.devices {
		name := stem[strings.Join(d.names(), ".")] + suffix(d.allLocs())
		users[name] = append(users[name], d)
	}
	t.short, t.aliases = map[string]*Node{}, map[string]*Node{}
	for name, devices := range users {
		for _, d := range devices {
			d.compact = name
			if len(devices) > 1 {
				d.compact = d.Full()
			}
		}
		if len(devices) == 1 {
			t.short[name] = devices[0]
			continue
		}
		warnings = append(warnings, fmt.Errorf("%w: compact name %s of %s and %s; both have only their full names",
			ErrDuplicate, name, devices[0].Full(), devices[1].Full()))
	}
	alias := func(name string, d *Node) {
		if other := cmp.Or(t.short[name], t.aliases[name]); other != nil {
			warnings = append(warnings, fmt.Errorf("%w: alias %s of %s is already the name of %s", ErrDuplicate, name, d.Full(), other.Full()))
			return
		}
		t.aliases[name] = d
	}
	for _, d := range t.devices {
		for _, name := range d.part.Aliases {
			alias(name, d)
		}
	}
	for _, name := range mustResolve {
		if t.short[name] != nil || t.aliases[name] != nil {
			continue
		}
		if i := slices.IndexFunc(t.devices, func(d *Node) bool { return d.Name() == name }); i >= 0 {
			t.aliases[name] = t.devices[i]
		}
	}
	slices.SortFunc(warnings, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return warnings
}

// Aliases returns the further short names and what they stand for: those the body declares, and camera, speaker and micro where several
// stand behind them.
func (t *Tree) Aliases() map[string]*Node {
	out := make(map[string]*Node, len(t.aliases))
	for name, d := range t.aliases {
		out[name] = d
	}
	return out
}

// AliasesOf returns the further short names of n, sorted; none of what has none.
func (t *Tree) AliasesOf(n *Node) []string {
	var out []string
	for name, d := range t.aliases {
		if d == n {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// published returns the device of that compact name or alias, nil if there is none.
func (t *Tree) published(s Step) *Node {
	name := s.Name + suffix(s.Locs)
	return cmp.Or(t.short[name], t.aliases[name])
}

// shortNamed returns the devices that a short name means: a compact name, an alias, a longer form of a compact name as long as it is not
// ambiguous (GOSTAI-CMP-07), or, without its suffix, all the devices that only their places tell apart (GOSTAI-LOC-13).
func (t *Tree) shortNamed(s Step) ([]*Node, error) {
	if d := t.published(s); d != nil {
		return []*Node{d}, nil
	}
	var found []*Node
	for stem, locs := range s.stems() {
		for _, d := range t.devices {
			if slices.Equal(d.allLocs(), locs) && d.spelled(stem) {
				found = append(found, d)
			}
		}
	}
	if len(found) == 0 && len(s.Locs) == 0 {
		group := map[string]bool{}
		for _, d := range t.devices {
			if d.spelled(s.Name) {
				found = append(found, d)
				group[strings.Join(d.names(), ".")] = true
			}
		}
		if len(group) == 1 {
			return found, nil
		}
	}
	if len(found) > 1 {
		var names []string
		for _, d := range found[:min(len(found), 4)] {
			names = append(names, d.Full())
		}
		return nil, fmt.Errorf("%w: %s: %s", ErrAmbiguous, s, strings.Join(names, ", "))
	}
	return found, nil
}

// spelled reports whether stem joins names of d's path in their order and ends with the device's own, or with the parent of an axis.
func (d *Node) spelled(stem string) bool {
	names := d.names()
	if n := len(names); n > 2 && slices.Contains(axes, names[n-1]) && len(d.parent.children) == 1 && joins(stem, names[:n-1]) {
		return true
	}
	return joins(stem, names)
}

// joins reports whether stem is the camel case of some of names, the last among them.
func joins(stem string, names []string) bool {
	var open []int // how much of stem is still to be found, one for each way to get here
	for i := len(names) - 1; i >= 0; i-- {
		from := open
		if i == len(names)-1 {
			from = []int{len(stem)}
		}
		for _, left := range from {
			if stem[:left] == names[i] {
				return true
			}
			if rest, ok := strings.CutSuffix(stem[:left], camel([]string{"", names[i]})); ok && rest != "" && !slices.Contains(open, len(rest)) {
				open = append(open, len(rest))
			}
		}
	}
	return false
}

// stems returns the ways to read s as a name and its localizations: legFL is also leg with front and left.
func (s Step) stems() map[string][]Loc {
	out := map[string][]Loc{s.Name: s.Locs}
	var locs []Loc
	for i := len(s.Name) - 1; i > 0 && len(locs) < maxWords*2; i-- {
		l, ok := locOfLetter(s.Name[i])
		if !ok {
			break
		}
		locs = append([]Loc{l}, locs...)
		out[s.Name[:i]] = slices.Concat(locs, s.Locs)
	}
	return out
}
