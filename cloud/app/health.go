package app

import (
	"context"
	"fmt"
	"net"
	"time"

	"kennel/infra/errs"
	"kennel/infra/runner"
	"kennel/infra/sdnotify"
	"kennel/infra/telemetry"
)

// MetricsConfig is the side that operators' machines look at.
type MetricsConfig struct {
	// Listen serves /metrics, /livez and /readyz, over plain HTTP and to anybody who reaches it: an address of this machine, or of a
	// network that only operators' machines are in. "": none.
	Listen string `koanf:"listen"`
}

// Validate reports an address that cannot be listened on (kind Invalid).
func (c MetricsConfig) Validate() error {
	if c.Listen == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return errs.New(errs.Invalid, "metrics.listen %q: want host:port, or nothing", c.Listen)
	}
	return nil
}

// metricsListener opens metrics.listen at once, so that a port in use ends the start; no service without one.
func (c *Cloud) metricsListener() ([]runner.Service, error) {
	if c.cfg.Metrics.Listen == "" {
		return nil, nil
	}
	l, err := c.front.Reserved("metrics", c.cfg.Metrics.Listen)
	if err != nil {
		return nil, fmt.Errorf("metrics.listen: %w", err)
	}
	return []runner.Service{c.front.Serve("metrics", l, c.base.Meters.Listener(c.ready))}, nil
}

// statusEvery is how often the supervisor's one line is looked at.
const statusEvery = 5 * time.Second

// watching returns what shows this process to operators and to the supervisor that started it, if one did (sd_notify): that it runs, in one
// line why it is not ready, and that it still gets to run at all. A process that waits for its database is not killed for that.
func (c *Cloud) watching(to sdnotify.Supervisor) ([]runner.Service, error) {
	out, err := c.metricsListener()
	if err != nil || to.Addr == "" {
		return out, err
	}
	n, err := sdnotify.Open(to.Addr)
	if err != nil {
		return nil, err
	}
	return append(out,
		runner.Service{Name: "supervisor", Run: func(ctx context.Context) error {
			return n.Run(ctx, to.Every, func() bool { return true }) // that this runs is the news
		}},
		runner.Service{Name: "status line", Run: func(ctx context.Context) error {
			return c.ready.Watch(ctx, statusEvery, func(r telemetry.Report) { n.Status(r.String()) })
		}},
	), nil
}
