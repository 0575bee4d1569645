// Package health says how a robot is and looks after it: battery and loop, its computer, its faults, the nightly reboot.
package health

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"kennel/edge/agent/health/crashes"
	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/health/nightly"
	"kennel/edge/agent/health/panics"
	"kennel/edge/agent/health/tracer"
	"kennel/edge/agent/health/vitals"
	"kennel/edge/agent/host"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/edge/faultcode"
	"kennel/infra/api/status"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/jdocs"
)

// Config holds what health needs beside the robot.
type Config struct {
	Telemetry time.Duration               // how often battery, loop and computer are reported as events
	Silence   time.Duration               // how long robotd may say nothing before it hangs
	Restart   []string                    // the command that restarts a service, whose name follows; none: the service's supervisor does
	Stats     func(map[string]float64)    // takes increments of lifetime statistics
	Upload    func() bool                 // the owner allows logs to be sent
	Nightly   *platform.Rebooter          // nil: no reboot at night
	Reboot    []string                    // the program that reboots the robot; none: agentd ends
	Backup    func() error                // saves the events before a reboot
	Clock     func() (agrees, known bool) // whether the clock agrees with the cloud's
	Get       func(jdocs.Name) (jdocs.Doc, error)
	Host      func() string    // the robot's name; "": none yet
	Send      crashes.Uploader // sends a file to the cloud
	Simulated func() bool      // the body is simulated
}

// Health is made by New. Safe for concurrent use.
type Health struct {
	host.Robot
	host    *host.Host
	cfg     Config
	vitals  *vitals.Vitals
	faults  *faults.Handler
	crashes *crashes.Collector
	keeper  *supervised // of the services that a fault stops
	core    coreWatch
	Nightly *nightly.Rebooter // nil: none
	last    nightly.Last      // the reboot before this start

	tracing bool                          // faults have a trace (VEC-DGN-08)
	tracer  atomic.Pointer[tracer.Tracer] // nil: it has not begun
}

// New makes the parts, from the files of the original. A mistake in them leaves the rest in force.
func New(on *host.Host, cfg Config) *Health {
	h := &Health{Robot: on.Robot, host: on, cfg: cfg, vitals: vitals.New(vitals.Config{Emit: on.Emit, Changed: on.Changed, Stats: cfg.Stats, Simulated: cfg.Simulated}), keeper: &supervised{command: cfg.Restart}}
	if cfg.Nightly != nil && !h.Recovery {
		h.newNightly()
	}
	h.crashes = h.openCrashes()
	h.keeper.crashes = h.crashes
	handler, err := platform.LoadFaultHandler(h.Root, h.Getenv)
	if err != nil {
		h.Log.Error("settings ignored", logging.Err, err)
	}
	logs, err := platform.LoadLogUploader(h.Root, h.Getenv)
	if err != nil {
		h.Log.Error("settings ignored", logging.Err, err)
	}
	build, err := platform.RobotBuild(h.Root, h.Hardware)
	if err != nil {
		h.Log.Error("robot build unreadable; assuming production", logging.Err, err)
	}
	h.tracing = handler.UploadTrace > 0
	h.faults = faults.New(faults.Config{
		Root: h.Root, Handler: handler, Logs: logs, Allowed: cfg.Upload, Stay: build == platform.Development, Services: h.keeper, Trace: h.writeTrace,
		// Of its end and of its silence alike: the source gives 917 to vic-anim and only by a remark to vic-robot.
		Watched: []faults.Service{{Name: robotd, Failed: faultcode.RobotFailed, Hung: faultcode.RobotFailed, Silence: cfg.Silence}},
		Own:     faultcode.CloudFailed, // agentd has the part of the original's vic-cloud
		Emit:    h.Emit, Changed: h.Changed, Now: h.Now, Log: h.Log,
	})
	h.faults.Over(faultcode.CloudESN) // that kept an earlier agentd from starting
	if _, _, err := platform.Factory(h.Root, h.Thing); err != nil {
		h.Fault(faultcode.CloudCertificate, err)
	}
	return h
}

// writeTrace writes the trace of the last seconds (VEC-DGN-08).
func (h *Health) writeTrace(w io.Writer) error {
	t := h.tracer.Load()
	if t == nil {
		return errors.New("the trace has not started")
	}
	return t.Snapshot(w)
}

// keepTrace keeps the last seconds until ctx ends.
func (h *Health) keepTrace(ctx context.Context) error {
	t, err := tracer.Begin()
	if err != nil {
		return err
	}
	h.tracer.Store(t)
	<-ctx.Done()
	t.End()
	return nil
}

// Fault reports a numbered fault of agentd; the robot keeps running.
func (h *Health) Fault(code faultcode.Code, err error) {
	h.faults.Raise(faults.Fault{Code: code, Service: "agentd", Err: err})
}

// Vitals is the part that says how the robot is.
func (h *Health) Vitals() host.Part {
	return host.Part{
		Name:     "vitals",
		Services: []runner.Service{{Name: "telemetry", Run: h.telemetry}},
		Hears: []host.Hearing{host.On(func(m corelink.Message) {
			h.vitals.Handle(m)
			h.core.handle(m, time.Now())
		})},
		Fill: h.vitals.Fill,
	}
}

// Faults is the part that reports numbered faults.
func (h *Health) Faults() host.Part {
	return host.Part{
		Name:  "faults",
		Hears: []host.Hearing{host.On(func(m corelink.Message) { h.keeper.handle(m, h.faults) })},
		Fill:  func(m *status.Message) { m.Tell(h.faults.Problems()...) }, // the cloud tells them by their codes from the fault of the body
	}
}

// FaultHandling is the part that shows faults, takes those that other programs post, and restarts services for them.
func (h *Health) FaultHandling() host.Part {
	p := host.Part{Name: "fault handling", Services: []runner.Service{{Name: "faults", Run: h.faults.Run}, {Name: "posted faults", Run: h.faults.Listen}}}
	if h.tracing {
		p.Services = append(p.Services, runner.Service{Name: "trace", Run: h.keepTrace})
	}
	return p
}

// Crashes is the part that sends the crashes of the robot's programs, and tells of panics of its kernel.
func (h *Health) Crashes() host.Part {
	return host.Part{
		Name:     "crashes",
		Begin:    func() { panics.Collect(h.Root, h.Emit, h.Log) },
		Services: h.crashes.Services(),
		Hears:    []host.Hearing{host.On(func(host.LinkUp) { h.crashes.Look() }), host.On(func(host.Consented) { h.crashes.Look() })},
	}
}

// Night is the part that reboots the robot at night, if it is configured.
func (h *Health) Night() host.Part {
	p := host.Part{Name: "nightly", Begin: h.tellNight}
	if h.Nightly != nil {
		p.Services = []runner.Service{{Name: "nightly reboot", Run: func(ctx context.Context) error { return h.Nightly.Run(ctx) }}}
	}
	return p
}

// Problems returns the faults that are open.
func (h *Health) Problems() []status.Problem { return h.faults.Problems() }

// Needs says which of battery and charger keeps the robot from an update (VEC-OTA-20); nil if none of those asked for does.
func (h *Health) Needs(battery, charger bool) error { return h.vitals.Needs(battery, charger) }

// Start returns robotd's last word on its start.
func (h *Health) Start() corelink.Start { return h.vitals.Start() }
