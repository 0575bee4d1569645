// Package bodies lists what the folders of edge/body say of their species. all.go is made by make generate: a row of infra/thing is all that a species needs.
package bodies

import (
	"context"
	"os"
	"slices"
	"strings"

	"kennel/edge/body/species"
	"kennel/edge/env"
	"kennel/edge/env/robotfs"
	"kennel/infra/thing"
)

// All returns the species in the order of infra/thing. The slice is the caller's.
func All() []species.Species { return slices.Clone(all) }

// Driven returns the species whose bodies robotd can drive.
func Driven() []species.Species {
	return slices.DeleteFunc(All(), func(s species.Species) bool { return s.Open == nil })
}

// Words joins the words of species with commas, for help and errors.
func Words(list []species.Species) string {
	var words []string
	for _, s := range list {
		words = append(words, s.Word())
	}
	return strings.Join(words, ", ")
}

// Of returns what is known of a species; false for none.
func Of(s thing.Species) (species.Species, bool) {
	i := slices.IndexFunc(all, func(k species.Species) bool { return k.Species == s })
	if i < 0 {
		return species.Species{}, false
	}
	return all[i], true
}

// Memory returns the parameters that the body of the robot in the folder dir stores itself; nil: it stores none.
func Memory(dir string, id thing.ID) species.Memory {
	s, _ := Of(id.Species())
	if s.Memory == nil {
		return nil
	}
	return s.Memory(dir, id)
}

// Hardware answers for the robot's factory and boot loader as its species does; for a species that does not say, as for a Vector.
type Hardware struct{}

var _ env.Hardware = Hardware{}

// Serial returns the robot's serial number.
func (Hardware) Serial(root *os.Root) (string, error) { return of(root).Serial(root) }

// Boot returns how the system was started.
func (Hardware) Boot(root *os.Root) (env.Boot, error) { return of(root).Boot(root) }

// Display returns what opens the display of the robot in a folder; nil: its species has none.
func Display(root *os.Root) func(context.Context, *os.Root) (species.Display, error) {
	kind, err := robotfs.Species(root)
	if err != nil {
		kind = thing.Vector
	}
	s, _ := Of(kind)
	return s.Display
}

func of(root *os.Root) env.Hardware {
	kind, _ := robotfs.Species(root) // platform.ID reads it too, and says what is wrong with it
	if s, _ := Of(kind); s.Hardware != nil {
		return s.Hardware
	}
	s, _ := Of(thing.Vector)
	return s.Hardware
}
