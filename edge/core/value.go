package core

import (
	"math"
	"slices"
	"time"

	"kennel/edge/robot"
	"kennel/infra/api/live"
)

// Value holds the value of one slot of the tree.
type Value struct {
	Device  string // full name
	Slot    live.Slot
	Value   *live.Value // nil: it is not known, or its device is gone
	Changed bool        // since the update before
}

// Number returns v as a number, +Inf or -Inf where nothing is in range; false if v is not known, or text.
func (v *Value) Number() (n float64, ok bool) {
	switch {
	case v.Value == nil:
		return 0, false
	case v.Value.Infinite != 0:
		return math.Inf(v.Value.Infinite), true
	case v.Value.Number != nil:
		return *v.Value.Number, true
	}
	return 0, false
}

// Take gives v its value among those of all slots. first: there was no update before.
func (v *Value) Take(all []live.Value, first bool) {
	var now *live.Value
	if i := slices.IndexFunc(all, func(x live.Value) bool { return x.Slot == v.Slot.ID }); i >= 0 {
		now = &all[i]
	}
	before := *v
	v.Value = now
	v.Changed = first || !v.Same(&before)
}

// Same reports whether v reads as w does, whenever both were measured.
func (v *Value) Same(w *Value) bool {
	return (v.Value == nil) == (w.Value == nil) && (v.Value == nil || v.Value.Same(*w.Value))
}

// Update holds the values of a subscription at one moment.
type Update struct {
	At     time.Duration // CLOCK_MONOTONIC
	Missed uint64        // updates since the one before that newer ones replaced
	Values []Value       // of all slots, in the order of their names
	Place  *robot.Place  // the robot's pose at that moment; nil: this robotd sends none with an update
}
