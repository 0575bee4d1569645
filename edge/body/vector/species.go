// Package vector describes Vector to the programs of a robot. Its driver is vectordriver, its plant vectorplant, its simulator vectorsim.
package vector

import (
	"context"
	"os"

	"kennel/edge/body"
	"kennel/edge/body/species"
	"kennel/edge/body/vector/factory"
	"kennel/edge/body/vector/panel"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorplant"
	"kennel/edge/core/control"
	"kennel/edge/faultcode"
	"kennel/infra/thing"
)

// Species is Vector.
var Species = species.Species{
	Species: thing.Vector,
	Tree:    vectordriver.Tree,
	Device:  vectordriver.DefaultDevice,
	Model:   func() (control.Model, error) { return vectorplant.Model(vectorplant.Default()) },
	Open: func(ctx context.Context, device string) (body.Body, error) {
		b, _, err := open(ctx, vectordriver.Config{Device: device, Timeout: species.OpenTimeout})
		return b, err
	},
	Fault:    func(err error) faultcode.Code { return faultcode.Code(vectordriver.FaultOf(err)) },
	Equip:    equip,
	Hardware: factory.Hardware{},
	Display:  func(ctx context.Context, root *os.Root) (species.Display, error) { return panel.Open(ctx, root) },
}
