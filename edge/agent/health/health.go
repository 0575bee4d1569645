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
	"kennel/edge/corelink"
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
	Changed   func()                      // asks for a status soon
	Stats     func(map[string]float64)    // takes increments of lifetime statistics
	Upload    func() bool                 // the owner allows logs to be sent
	Nightly   *platform.Rebooter          // nil: no reboot at night
	Reboot    []string                    // the program that reboots the robot; none: agentd ends
	End       func(why error)             // ends agentd
	Backup    func() error                // saves the events before a reboot
	Clock     func() (agrees, known bool) // whether the clock agrees with the cloud's
	Get       func(jdocs.Name) (jdocs.Doc, error)
	Host      func() string    // the robot's name; "": none yet
	Send      crashes.Uploader // sends a file to the cloud
}

// Health is made by New. Safe for concurrent use.
type Health struct {
	host.Robot
	cfg     Config
	vitals  *vitals.Vitals
	faults  *faults.Handler
	crashes *crashes.Collector
	keeper  *supervised // of the services that a fault stops
	core    coreWatch
	Nightly *nightly.Rebooter // nil: none
	last    nightly.Last      // the reboot before this start

	tracing bool                          // faults have a trace
	tracer  atomic.Pointer[tracer.Tracer] // nil: it has not begun
}

// New makes the parts, from the files of the original. A mistake in them leaves the rest in force.
func New(robot host.Robot, cfg Config) *Health {
	h := &Health{Robot: robot, cfg: cfg, vitals: vitals.New(robot.Emit, cfg.Changed, cfg.Stats), keeper: &supervised{command: cfg.Restart}}
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
	h.faults = faults.New(faults.Config{
		Root: h.Root, Handler: handler, Logs: logs, Allowed: cfg.Upload, Stay: build == platform.Development, Services: h.keeper, Trace: h.trace(handler),
		// Of its end and of its silence alike: the source gives 917 to vic-anim and only by a remark to vic-robot.
		Watched: []faults.Service{{Name: robotd, Failed: faultcode.RobotFailed, Hung: faultcode.RobotFailed, Silence: cfg.Silence}},
		Own:     faultcode.CloudFailed, // agentd has the part of the original's vic-cloud
		Emit:    h.Emit, Changed: cfg.Changed, Now: h.Now, Log: h.Log,
	})
	h.faults.Over(faultcode.CloudESN) // that kept an earlier agentd from starting
	if _, _, err := platform.Factory(h.Root, h.Thing); err != nil {
		h.Fault(faultcode.CloudCertificate, err)
	}
	return h
}

// trace returns a function that writes the trace of the last seconds; nil if faults have none (VEC-DGN-08).
func (h *Health) trace(c platform.FaultHandler) func(io.Writer) error {
	if h.tracing = c.UploadTrace > 0 && !h.Frugal; !h.tracing {
		return nil
	}
	return func(w io.Writer) error {
		t := h.tracer.Load()
		if t == nil {
			return errors.New("the trace has not begun")
		}
		return t.Snapshot(w)
	}
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

// Handle takes one message of robotd.
func (h *Health) Handle(m corelink.Message) {
	h.vitals.Handle(m)
	h.core.handle(m, time.Now())
	h.keeper.handle(m, h.faults)
}

// Fill adds the health to a status.
func (h *Health) Fill(m *status.Message) {
	h.vitals.Fill(m)
	m.Tell(h.faults.Problems()...) // the cloud tells them by their codes from the fault of the body
}

// Problems returns the faults that are open.
func (h *Health) Problems() []status.Problem { return h.faults.Problems() }

// Needs says which of battery and charger keeps the robot from an update (VEC-OTA-20); nil if none of those asked for does.
func (h *Health) Needs(battery, charger bool) error { return h.vitals.Needs(battery, charger) }

// Start returns robotd's last word on its start.
func (h *Health) Start() corelink.Start { return h.vitals.Start() }

// Services keep watch, after a nightly reboot was told.
func (h *Health) Services() []runner.Service {
	h.tellNight()
	all := []runner.Service{{Name: "telemetry", Run: h.telemetry}}
	if h.Nightly != nil {
		all = append(all, runner.Service{Name: "nightly reboot", Run: h.Nightly.Run})
	}
	if !h.Frugal { // without a FIFO and a display for faults: they are only reported
		all = append(all, h.crashes.Services()...)
		panics.Collect(h.Root, h.Emit, h.Log)
		if h.tracing {
			all = append(all, runner.Service{Name: "trace", Run: h.keepTrace})
		}
		all = append(all, runner.Service{Name: "faults", Run: h.faults.Run}, runner.Service{Name: "posted faults", Run: h.faults.Listen})
	}
	return all
}
