package robotapp

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector"
	"kennel/edge/faultcode"
	"kennel/edge/helm"
)

// kind is how robotd opens a kind of body.
type kind struct {
	device string // its usual port, below the root
	open   func(ctx context.Context, device string) (body.Body, error)
	// fault maps an error of open to the fault it stands for; 0: to none in particular.
	fault func(error) faultcode.Code
	model func() (helm.Model, error)
}

// openTimeout is how long one attempt to open a body may take.
const openTimeout = 3 * time.Second

// bodies is every kind of body this program can drive, by the name -body takes.
var bodies = map[string]kind{
	"vector": {
		device: vector.DefaultDevice,
		open: func(ctx context.Context, device string) (body.Body, error) {
			d, err := vector.Open(ctx, vector.Config{Device: device, Timeout: openTimeout, HoldProcessor: true})
			if err != nil {
				return nil, err // not a nil *Driver in an interface
			}
			return d, nil
		},
		model: helm.Vector,
		fault: func(err error) faultcode.Code { return faultcode.Code(vector.FaultOf(err)) },
	},
}

func bodyNames() string { return strings.Join(slices.Sorted(maps.Keys(bodies)), ", ") }

// port returns the device to open.
func (c Config) port() string {
	if c.Device != "" {
		return c.Device
	}
	return filepath.Join(c.Root, bodies[c.Body].device)
}
