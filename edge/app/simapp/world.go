package simapp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/sim/plane"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// worldUsage is the help of -world.
var worldUsage = fmt.Sprintf("world around the body: one of %v, or a JSON file (default: an endless empty floor)", errs.List(plane.Names()))

// openWorld returns the world of that name, or of the file of that name, if it has room for Vector; "" is none.
func openWorld(where string) (*plane.Map, error) {
	m, err := readWorld(where)
	if err != nil || m == nil {
		return nil, err
	}
	if err := (vectorsim.Config{World: m}).Validate(); err != nil {
		return nil, cli.Usage("-world %s: %w", where, err)
	}
	return m, nil
}

func readWorld(where string) (*plane.Map, error) {
	if where == "" {
		return nil, nil
	}
	if slices.Contains(plane.Names(), where) {
		return plane.Builtin(where)
	}
	b, err := os.ReadFile(where)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usage("-world %.200q: want one of %s, or an existing file", where, errs.List(plane.Names()))
	}
	if err != nil {
		return nil, fmt.Errorf("-world: %w", err)
	}
	m, err := plane.Parse(b)
	if err != nil {
		return nil, cli.Usage("-world %s: %w", where, err)
	}
	return m, nil
}
