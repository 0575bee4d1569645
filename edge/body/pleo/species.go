package pleo

import (
	"context"
	"errors"

	"kennel/edge/body"
	"kennel/edge/body/species"
	"kennel/edge/faultcode"
	"kennel/infra/thing"
)

// Species is the Pleo.
var Species = species.Species{
	Species: thing.Pleo,
	Tree:    Tree,
	Device:  DefaultDevice,
	Model:   Model,
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
