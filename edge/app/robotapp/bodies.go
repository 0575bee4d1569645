package robotapp

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"kennel/infra/errs"
)

// haltTimeout is how long a body may take to answer -halt; own default, half of the time in which a Vector halts by itself (VEC-WDOG-01).
const haltTimeout = 500 * time.Millisecond

// halt takes the power from the motors of a body whose robotd has died: opening a body halts it.
func halt(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, haltTimeout)
	defer cancel()
	b, err := cfg.species.Open(ctx, cfg.port())
	if err != nil {
		return errs.New(errs.Unavailable, "halt the body: %w", err)
	}
	return b.Close()
}

// port returns the device to open.
func (c Config) port() string {
	device := c.Device
	if device == "" {
		device = c.species.Device
		if !strings.Contains(device, ":") {
			device = filepath.Join(c.Root, device)
		}
	}
	return device
}
