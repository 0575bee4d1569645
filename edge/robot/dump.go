package robot

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Dump writes the tree as people read it: a line a node, two spaces deeper a level, with its interfaces (GOSTAI-SUP-06).
func (t *Tree) Dump(w io.Writer) error {
	var err error
	var show func(n *Node, depth int)
	show = func(n *Node, depth int) {
		line := strings.Repeat("  ", depth) + n.name
		if n.name == "" {
			line += "[" + n.loc.String() + "]"
		}
		if is := n.Interfaces(); len(is) > 0 {
			line += " (" + JoinInterfaces(is) + ")"
		}
		if _, e := fmt.Fprintln(w, line); err == nil {
			err = e
		}
		for _, c := range n.children {
			show(c, depth+1)
		}
	}
	show(t.root, 0)
	return err
}

// JoinInterfaces returns the names separated by comma and space.
func JoinInterfaces(is []*Interface) string {
	names := make([]string, len(is))
	for i, x := range is {
		names[i] = x.Name
	}
	return strings.Join(names, ", ")
}

// FlatDump writes the compact names of all devices by the interface they implement (GOSTAI-SUP-07).
func (t *Tree) FlatDump(w io.Writer) error {
	by := map[string][]string{}
	for _, d := range t.devices {
		for _, i := range d.Interfaces() {
			by[i.Name] = append(by[i.Name], d.Compact())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[name])
		if _, err := fmt.Fprintf(w, "*** %s: %s\n", name, strings.Join(by[name], " ")); err != nil {
			return err
		}
	}
	return nil
}
