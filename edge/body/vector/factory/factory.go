// Package factory answers what other programs ask of a Vector's factory record (emr) and boot parameters (bootparam). Simulated robots of every
// species have both.
package factory

import (
	"os"

	"kennel/edge/body/vector/factory/bootparam"
	"kennel/edge/body/vector/factory/emr"
	"kennel/edge/env"
)

// Hardware reads them each time it is asked.
type Hardware struct{}

var _ env.Hardware = Hardware{}

// Serial returns the ESN of the robot's record (VEC-STOR-03).
func (Hardware) Serial(root *os.Root) (string, error) {
	r, err := emr.Read(root)
	if err != nil {
		return "", err
	}
	return r.Serial(), nil
}

// Boot returns the parameters that the kernel was given.
func (Hardware) Boot(root *os.Root) (env.Boot, error) { return bootparam.Read(root) }
