package robot

import (
	"errors"
	"fmt"
)

// Finder looks names up in a tree, for tables that are made once. The zero value but Tree is ready.
type Finder struct {
	Tree *Tree
	Err  error // of all names that were not found, together
}

// Slot returns the ID of the one slot of that name; -1, and Err, if it is none or several.
func (f *Finder) Slot(name string) int {
	target, err := f.Tree.Lookup(name)
	if err == nil && len(target.Refs) != 1 {
		err = fmt.Errorf("%s matches %d slots, want one", name, len(target.Refs))
	}
	if err != nil {
		f.Err = errors.Join(f.Err, err)
		return -1
	}
	return target.Refs[0].ID
}

// Actuators returns the actuators of a part of the tree.
func (f *Finder) Actuators(name string) []int {
	target, err := f.Tree.Lookup(name)
	f.Err = errors.Join(f.Err, err)
	return f.Tree.ActuatorsOf(target)
}
