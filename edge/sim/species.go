package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kennel/infra/thing"
)

// species is a kind of robot that can be simulated.
type species struct {
	thing.Species
	volts float64                    // of its battery where a Birth does not say
	flags func(root string) []string // of robotd
	body  func(*robot, World) (body, error)
}

// all are the species that can be simulated.
var all = []species{
	{thing.Vector, 3.95, vectorFlags, newVector},
	{thing.AmigoBot, 13, amigobotFlags, newAmigobot},
}

// Boot says which system the head of a simulated robot starts.
type Boot string

// The boots.
const (
	BootUndecided Boot = "undecided"
	BootNormal    Boot = "normal"
	BootRecovery  Boot = "recovery"
)

// errPowerCut: the body cut the head's power. Its button starts both again.
var errPowerCut = errors.New("the body cut the power")

// body is a simulated body, and what it means for the power of the head on it.
type body interface {
	Hand
	ground

	// on runs the body, on lines below the robot's root, until ctx ends (nil) or the body cuts the head's power (an error that wraps errPowerCut).
	on(ctx context.Context) error
	// ready blocks until the body, which is on for the nth time, lets the head boot, and returns what it boots. off: it switched off instead.
	ready(ctx context.Context, nth uint64) (boot Boot, off bool, err error)
	// serve runs the simulated devices of the head until ctx ends.
	serve(ctx context.Context) error
}

// Species returns the names of the species, in lower case.
func Species() (names []string) {
	for _, s := range all {
		names = append(names, strings.ToLower(s.Name()))
	}
	return names
}

// speciesOf returns the species of a thing.
func speciesOf(id thing.ID) (species, error) {
	i := slices.IndexFunc(all, func(s species) bool { return s.Species == id.Species() })
	if i < 0 {
		return species{}, fmt.Errorf("no simulated body for %s: want one of %s", id, strings.Join(Species(), ", "))
	}
	return all[i], nil
}
