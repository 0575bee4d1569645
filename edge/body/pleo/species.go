package pleo

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"kennel/edge/body"
	"kennel/edge/body/species"
	"kennel/edge/faultcode"
	"kennel/infra/thing"
)

// modelOf is in front of the generation of the firmware in the name of a model. The generations have the same body.
const modelOf = "pleo-"

// Generation returns the generation of the firmware of a model, such as 1.1; "" is the usual one.
func Generation(model string) string {
	return strings.TrimPrefix(cmp.Or(model, Species.Models[0].Name), modelOf)
}

// Species is the Pleo.
var Species = species.Species{
	Species: thing.Pleo,
	Tree:    Tree,
	Device:  DefaultDevice,
	Model:   Model,
	Models:  []species.Model{{Name: modelOf + "1.1", Tree: Tree}, {Name: modelOf + "1.0", Tree: Tree}},
	Page:    page(),
	Open: func(ctx context.Context, device string) (body.Body, error) {
		d, err := Open(ctx, Config{Device: device, Timeout: species.OpenTimeout})
		if err != nil {
			return nil, err // not a nil *Driver in an interface
		}
		return d, nil
	},
	Fault: func(err error) faultcode.Code {
		if errors.Is(err, ErrNoAnswer) {
			return faultcode.NoBody
		}
		return 0
	},
}
