package robotapp

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kennel/edge/body"
	"kennel/edge/control"
	"kennel/edge/faultcode"
	"kennel/edge/startup"
	"kennel/infra/errs"
	"kennel/infra/runner"
)

// Kind is how robotd opens and drives a kind of body.
type Kind struct {
	Device string // its usual port: a path below the root, or an address such as tcp:localhost:8101
	Model  func() (control.Model, error)
	Open   func(ctx context.Context, device string) (body.Body, error)
	Fault  func(error) faultcode.Code // the numbered fault for an error of Open or Read; 0, or nil: none in particular

	begin func(c *core) (opening, error) // how to drive it instead of Open alone, for a body with more to it than a port
}

// opening says how robotd opens one body, and which services run beside it.
type opening struct {
	open     func(context.Context) (b body.Body, unwell, err error) // unwell: it is open, and not as it should be
	before   []startup.Stage                                        // before anything runs
	services []runner.Service
}

// openTimeout is how long one attempt to open a body may take.
const openTimeout = 3 * time.Second

// kinds are the bodies that this program can drive, by the name that -body takes.
var kinds = map[string]Kind{"vector": vectorKind, "amigobot": amigobotKind}

// haltTimeout is how long a body may take to answer -halt; own default, half of the time in which a Vector halts by itself (VEC-WDOG-01).
const haltTimeout = 500 * time.Millisecond

// halt takes the power from the motors of a body whose robotd has died: opening a body halts it.
func halt(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, haltTimeout)
	defer cancel()
	b, err := cfg.kind.Open(ctx, cfg.port())
	if err != nil {
		return errs.New(errs.Unavailable, "halt the body: %w", err)
	}
	return b.Close()
}

func kindNames(all map[string]Kind) string { return strings.Join(slices.Sorted(maps.Keys(all)), ", ") }

// port returns the device to open.
func (c Config) port() string {
	device := c.Device
	if device == "" {
		device = c.kind.Device
		if !strings.Contains(device, ":") {
			device = filepath.Join(c.Root, device)
		}
	}
	return device
}
