package control

import (
	"slices"

	"kennel/edge/body"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
)

// Feed carries measurements to the slots of the tree that their channels name. It allocates nothing after Bind.
type Feed []struct{ channel, slot int }

// Bind returns the feed of the channels that name a slot, the same slot of several parts, or a measured property such as touch.val->raw. decides names those whose slot the plant fills by itself.
func Bind(d *body.Description, tree *robot.Tree, decides ...string) (f Feed) {
	for i, c := range d.Channels {
		target, err := tree.Lookup(c.Name)
		if err != nil || slices.Contains(decides, c.Name) {
			continue // the driver's own word
		}
		for _, r := range target.Refs {
			if target.Property == "" {
				f = append(f, struct{ channel, slot int }{i, r.ID})
				continue
			}
			for _, p := range r.Node.Slots() { // a property that is measured
				if p.Property && p.Slot.Name == target.Property {
					f = append(f, struct{ channel, slot int }{i, p.ID})
				}
			}
		}
	}
	return f
}

// Sense sets the slots of the channels that were measured, each with the time of its measurement.
func (f Feed) Sense(board *state.Board, s *body.Sense) {
	for _, b := range f {
		if at := s.Times[b.channel]; at > 0 {
			board.Set(b.slot, s.Values[b.channel], at)
		}
	}
}
