package records

import (
	"kennel/cloud/originals/intake/intakewire"
	"kennel/cloud/wire"
)

// Intake holds the services that robots' files and events go to, and those that say whose they are.
type Intake = intakewire.Needs

// IntakePaths are where original robots send them.
type IntakePaths = intakewire.Paths

// WireIntake wires what takes files and events of robots over HTTP.
func WireIntake(b wire.Base, n Intake) (*intakewire.Intake, wire.Slice) { return intakewire.Wire(b, n) }
