package agentapp

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/agent/activity"
	"kennel/edge/agent/das"
	"kennel/edge/agent/docs"
	"kennel/edge/agent/feelings"
	"kennel/edge/agent/health"
	"kennel/edge/agent/health/diag"
	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/host"
	"kennel/edge/agent/intents"
	"kennel/edge/agent/link"
	"kennel/edge/agent/ownership"
	"kennel/edge/agent/parameters"
	"kennel/edge/agent/release"
	"kennel/edge/core/coreclient"
	"kennel/edge/crash"
	"kennel/edge/env/platform"
	"kennel/edge/mic"
	"kennel/edge/startup"
	"kennel/edge/update/slot"
	"kennel/edge/vectorsdk"
	"kennel/infra/api/events"
	"kennel/infra/api/live"
	"kennel/infra/api/status"
	"kennel/infra/cli/version"
	"kennel/infra/runner"
	"kennel/infra/sdnotify"
)

// Agent is the robot's network side: its parts and their connections. Its exported methods are safe for concurrent use; Run is
// called once.
type Agent struct {
	*host.Host
	cfg   Config
	start *start
	slots *slot.Device   // nil: the robot installs no releases
	crash *crash.Capture // of this process; nil: none

	// Values that parts need of other parts; nil before those are made, and if the list lacks them.

	report  *diagnosis.Keeper
	ways    platform.Uploads
	link    *link.Cloud
	events  *das.Gate
	client  *coreclient.Client // of the real-time core
	memory  parameters.Memory  // settings that the body stores; nil: it stores none
	docs    *docs.Part
	health  *health.Health
	deeds   *activity.Activity
	feels   *feelings.Feelings
	people  *ownership.People
	intents *intents.Intents
	sdk     *vectorsdk.Facade // the original's interface; nil: the robot does not serve it
	ears    mic.Tap           // what the robot hears
	updates *release.Agent
	logs    *diag.Logs
	playing func() *live.Playing // what plays for a person
}

// New makes the agent of the robot below root, from the files there; it starts nothing. A wipe of the user data that was asked for is done
// first. root must stay open while Run runs.
func New(root *os.Root, cfg Config) (*Agent, error) {
	cfg = cfg.withDefaults()
	started := time.Now()
	a := &Agent{cfg: cfg, Host: host.New(host.Robot{Root: root, Dir: cfg.Root, Hardware: hardware, Frugal: cfg.Frugal, Recovery: cfg.Recovery, Now: cfg.Now,
		Uptime: func() time.Duration { return time.Since(started) }, Getenv: cfg.Getenv, Log: cfg.Log})}
	a.start = newStart(a)
	list := a.full()
	if cfg.Frugal {
		list = a.light()
	}
	if err := a.start.rec.Walk(context.Background(), a.making(list)...); err != nil {
		a.crash.End()
		return nil, err
	}
	return a, nil
}

// making is list as a table of the start.
func (a *Agent) making(list []step) (stages []startup.Stage) {
	for _, s := range list {
		stages = append(stages, startup.Stage{Name: s.name, Do: func(ctx context.Context) error {
			if s.do != nil {
				if err := s.do(ctx); err != nil {
					return err
				}
			}
			for _, part := range s.parts {
				p, err := part(a.Host)
				if err == nil {
					err = a.Add(p)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return stages
}

// Run keeps every part going until ctx ends, then says goodbye.
func (a *Agent) Run(ctx context.Context) error {
	defer a.crash.End()
	var supervisor *sdnotify.Notifier
	err := a.start.rec.Walk(context.WithoutCancel(ctx), startup.Stage{Name: "supervisor", Do: func(context.Context) (err error) {
		supervisor, err = sdnotify.Open(a.cfg.Supervisor.Addr)
		return err
	}})
	if err != nil {
		return err
	}
	defer func() { _ = supervisor.Close() }() // datagrams: nothing is buffered
	a.Emit(events.Event{Source: "agentd", Name: "robot.boot_info", S1: version.String(), S2: a.OS, S3: a.Boot, I1: events.Flag(a.Recovery)})
	if a.start.system > 0 { // the first agentd of this boot
		a.Emit(events.Event{Source: "agentd", Name: "robot.power_on", I1: events.Num(a.start.system.Milliseconds())})
	}
	services := a.Services()
	if a.cfg.Supervisor.Addr != "" { // last: ready is an agent whose parts run. An unreachable cloud does not prevent it: the robot works without it
		services = append(services, runner.Service{Name: "supervisor", Run: func(ctx context.Context) error {
			return supervisor.Run(ctx, a.cfg.Supervisor.Every, a.healthy)
		}})
	}
	return runner.Run(ctx, a.Log, runner.Config{MinBackoff: 500 * time.Millisecond, MaxBackoff: 30 * time.Second, OnPanic: a.crash.Panicked}, services...)
}

// healthy asks every part how it is, as a status does: one that hangs with its state locked keeps the watchdog from being fed. An agent
// without a network or without its core is well.
func (a *Agent) healthy() bool {
	_ = a.Status() // that it answers is the news
	return true
}

// Set changes settings on the robot, as its owner's app would (VEC-DOC-13).
func (a *Agent) Set(ctx context.Context, fields map[string]json.RawMessage) error {
	return a.docs.Set(ctx, a.docs.Settings, fields)
}

// Emit records an event of the robot (part of VEC-DAS-05).
func (a *Agent) Emit(e events.Event) { a.Host.Emit(e) }

// Events counts this agent's events: emitted since New, and the spool as it is now.
func (a *Agent) Events() (emitted uint64, spool status.Spool) {
	return a.events.Emitted(), a.events.Stats()
}

// Identity returns the state of the robot's identity; false before the agent knows which cloud to ask for one.
func (a *Agent) Identity() (devicecert.State, bool) { return a.link.Identity() }

// texts are problems as people read them.
func texts(problems []status.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// facts collects the parts' facts about the way to the cloud.
func (a *Agent) facts() diagnosis.Facts {
	d := a.docs
	f := diagnosis.Facts{Thing: a.Thing, Agent: version.String(), OS: a.OS, Boot: a.Boot, System: a.Now(), Docs: texts(d.Problems()), Dirty: d.Dirty(),
		Faults: texts(a.health.Problems()), Start: a.start.facts(), Name: a.name()}
	a.link.Facts(&f)
	if a.people != nil {
		f.Tokens, f.Claim = a.people.State()
	}
	return f
}
