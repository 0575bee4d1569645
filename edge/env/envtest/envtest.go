// Package envtest is the hardware of a robot in tests.
package envtest

import (
	"io/fs"
	"os"

	"kennel/edge/env"
)

// Hardware says the same of any root. The zero value is a normal boot of a robot without a serial number.
type Hardware struct {
	ESN     string
	Started env.Boot
}

// Serial returns ESN; fs.ErrNotExist if there is none.
func (h Hardware) Serial(*os.Root) (string, error) {
	if h.ESN == "" {
		return "", fs.ErrNotExist
	}
	return h.ESN, nil
}

// Boot returns Started.
func (h Hardware) Boot(*os.Root) (env.Boot, error) { return h.Started, nil }
