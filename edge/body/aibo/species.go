package aibo

import (
	"kennel/edge/body/species"
	"kennel/edge/robot"
	"kennel/infra/thing"
)

// Species is the AIBO.
var Species = func() species.Species {
	s := species.Species{Species: thing.AIBO, Tree: func() (*robot.Tree, error) { return Tree(Every) }}
	for _, m := range Models {
		s.Models = append(s.Models, species.Model{Name: m.String(), Tree: func() (*robot.Tree, error) { return Tree(m) }})
	}
	return s
}()
