package pleo

import (
	"kennel/edge/body/species"
	"kennel/infra/thing"
)

// Species is the Pleo.
var Species = species.Species{Species: thing.Pleo, Tree: Tree}
