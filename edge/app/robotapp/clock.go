package robotapp

import (
	"context"
	"fmt"
	"os"
	"time"

	"kennel/infra/logging"
)

// clockEvery is how often it is looked whether the clock has to change: as often as the processor's temperature.
const clockEvery = heatEvery

// capClock sets the processor's highest clock to the permitted one until ctx ends (VEC-PWR-12, VEC-PWR-23); the last setting stays. Without
// a file for it, robotd does not manage the clock.
func (c *core) capClock(ctx context.Context) error {
	if c.cfg.CPUClock == "" {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	said, failed := uint32(0), false
	for {
		if mhz := c.peers.CPUMHz(); mhz != said {
			err := writeClock(c.cfg.CPUClock, mhz)
			switch {
			case err == nil:
				c.log.DebugContext(ctx, "processor clock set", "mhz", mhz)
				said = mhz
			case !failed: // once is enough for an operator
				c.log.WarnContext(ctx, "processor clock not set", logging.Err, err)
			}
			failed = err != nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// writeClock writes it as Linux reads it, in kHz (kernel documentation, CPU performance scaling: scaling_max_freq). The kernel limits it to
// the processor's range.
func writeClock(name string, mhz uint32) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d\n", mhz*1000)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
