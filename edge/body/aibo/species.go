package aibo

import (
	"context"
	"errors"

	"kennel/edge/body"
	"kennel/edge/body/species"
	"kennel/edge/core/control"
	"kennel/edge/faultcode"
	"kennel/edge/robot"
	"kennel/infra/thing"
)

// Usual is the model of a robot whose folder names none.
const Usual = ERS7

// Species is the AIBO.
var Species = func() species.Species {
	s := species.Species{
		Species: thing.AIBO,
		Tree:    func() (*robot.Tree, error) { return Tree(Every) },
		Device:  DefaultDevice,
		Model:   func() (control.Model, error) { return ModelOf(Usual) },
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
	for _, m := range Models {
		s.Models = append(s.Models, species.Model{Name: m.String(), Tree: func() (*robot.Tree, error) { return Tree(m) },
			Control: func() (control.Model, error) { return ModelOf(m) }})
	}
	return s
}()
