package agentapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/agent/health"
	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/host"
	"kennel/edge/agent/link"
	"kennel/edge/agent/orders"
	"kennel/edge/agent/ownership"
	"kennel/edge/app/agentapp/recovery"
	"kennel/edge/app/agentapp/talk"
	"kennel/edge/coreclient"
	"kennel/edge/corelink"
	"kennel/edge/startup"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
	"kennel/infra/cli/version"
	"kennel/infra/runner"
	"kennel/infra/sdnotify"
)

// Agent is the robot's network side: its parts and their connections. Its exported methods are safe for concurrent use; Run is
// called once.
type Agent struct {
	host.Robot
	cfg     Config
	cloud   *link.Cloud
	orders  *orders.Orders
	health  *health.Health
	people  *ownership.People
	logs    health.Logs
	report  *diagnosis.Keeper
	talk    *talk.Talk // nil: it hears nothing
	core    Core
	client  *coreclient.Client // of core
	restart chan error         // why agentd is to restart; one slot
	start   *start
	slots   link.Slots
	unasked atomic.Bool    // there is a connection, over which the cloud has not said who the owner is
	crash   health.Capture // of this process; nil: none

	localTime func() (time.Time, bool)
}

// New makes the agent of the robot below root, from the files there; it starts nothing. A wipe of the user data that was asked for is done
// first. root must stay open while Run runs.
func New(root *os.Root, cfg Config) (*Agent, error) {
	cfg = cfg.withDefaults()
	started := time.Now()
	a := &Agent{cfg: cfg, core: cfg.Core, restart: make(chan error, 1), Robot: host.Robot{Root: root, Dir: cfg.Root, Hardware: hardware, Frugal: cfg.Frugal,
		Recovery: cfg.Recovery, Now: cfg.Now, Uptime: func() time.Duration { return time.Since(started) }, Getenv: cfg.Getenv, Log: cfg.Log}}
	a.start = newStart(a)
	if err := a.start.rec.Walk(context.Background(), a.making()...); err != nil {
		a.crash.End()
		return nil, err
	}
	return a, nil
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
	a.start.made()
	services := append(a.cloud.Services(link.Talk{Down: a.orders.Down(), Up: a.linkUp, Lost: func() { a.orders.Connected(false) }}),
		runner.Service{Name: "restart", Run: a.awaitRestart, Fatal: true}, runner.Service{Name: "core", Run: a.listenToCore})
	services = append(services, a.orders.Services()...)
	services = append(services, a.talk.Services()...)
	services = append(services, a.people.Services()...)
	services = append(services, a.health.Services()...)
	services = append(services, a.logs.Services()...)
	services = append(services, a.cfg.Console.Services(a.Robot)...)
	if !a.Frugal {
		services = append(services, runner.Service{Name: "diagnosis", Run: a.report.Run})
		services = append(services, a.start.services()...)
	}
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
	_ = a.status() // that it answers is the news
	return true
}

// Set changes settings on the robot, as its owner's app would (VEC-DOC-13).
func (a *Agent) Set(ctx context.Context, fields map[string]json.RawMessage) error {
	return a.orders.Set(ctx, fields)
}

// Emit records an event of the robot (VEC-DAS-05).
func (a *Agent) Emit(e events.Event) { a.cloud.Emit(e) }

// Events counts this agent's events: emitted since New, and the spool as it is now.
func (a *Agent) Events() (emitted uint64, spool status.Spool) {
	return a.cloud.Events().Emitted(), a.cloud.Events().Stats()
}

// Identity returns the state of the robot's identity; false before the agent knows which cloud to ask for one.
func (a *Agent) Identity() (devicecert.State, bool) { return a.cloud.Identity() }

// listenToCore hands robotd's messages to the parts, and starts over whenever robotd does.
func (a *Agent) listenToCore(ctx context.Context) error {
	return a.core.Run(ctx, func(m corelink.Message) {
		a.client.Handle(m)
		a.health.Handle(m)
		a.orders.Handle(m)
		a.talk.Handle(m)
		if m, ok := m.(*corelink.Power); ok && a.cloud.Permit(m.Cloud) {
			if m.Cloud {
				a.Log.InfoContext(ctx, "battery charged; cloud connection allowed again")
			} else {
				a.Log.WarnContext(ctx, "battery low; cloud connection closed until it is charged", "shed", m.Shed)
			}
		}
		if _, ok := m.(*corelink.Hello); ok {
			a.start.reached(a.start.core)
			a.meetCore()
		}
	})
}

// meetCore sends robotd the robot's identity, for the root of its tree. It does so for each robotd, and again when the name is made.
func (a *Agent) meetCore() {
	if !a.Frugal {
		a.client.Introduce(a.people.Name(), a.Thing.Serial(), hostAddress())
	}
}

// hostAddress returns the address at which others reach this robot; "" if it has none yet.
func hostAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// linkUp tells the parts that have data for the cloud.
func (a *Agent) linkUp() {
	a.start.reached(a.start.cloud)
	a.orders.Connected(true)
	a.unasked.Store(a.people.Owned())
	if !a.people.Owned() {
		a.orders.Sync()
	}
	a.people.Connected()
	a.logs.Look()
	a.health.Look()
}

// consented hears that the cloud said what the owner allows. Until then, over each connection, changes of documents stay on the robot: they may be a
// former owner's.
func (a *Agent) consented() {
	a.logs.Look()
	a.health.Look()
	if a.unasked.Swap(false) {
		a.orders.Sync()
	}
}

// sendLogs sends logs that the cloud asked for.
func (a *Agent) sendLogs(ctx context.Context, r health.LogRequest) (name string, err error) {
	if err := a.people.Confirm(ctx); err != nil {
		return "", err
	}
	return a.logs.Send(ctx, r)
}

// status returns the robot's status.
func (a *Agent) status() status.Message {
	spool := a.cloud.Events().Stats()
	m := status.Message{Agent: version.String(), OS: a.OS, Recovery: a.Recovery, UptimeMS: a.Uptime().Milliseconds(), Spool: &spool}
	if a.Recovery {
		m.Tell(recovery.Problem)
	}
	a.orders.Fill(&m)
	a.health.Fill(&m)
	if st, known := a.cloud.Identity(); known && !st.OK && st.Problem != "" {
		m.Tell(status.Problem{Kind: status.KindIdentity, Code: st.Code, Text: st.Step + ": " + st.Problem})
	}
	return m
}

// texts are problems as people read them.
func texts(problems []status.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// facts collects the parts' facts about the way to the cloud.
func (a *Agent) facts() diagnosis.Facts {
	d := a.orders.Docs()
	f := diagnosis.Facts{Thing: a.Thing, Agent: version.String(), OS: a.OS, Boot: a.Boot, System: a.Now(), Docs: texts(d.Problems()), Dirty: d.Dirty(),
		Faults: texts(a.health.Problems()), Start: a.start.facts(), Name: a.people.Name()}
	a.cloud.Facts(&f)
	f.Tokens, f.Claim = a.people.State()
	return f
}

// errAnew ends agentd so that its supervisor restarts it.
var errAnew = errors.New("restart of agentd requested")

// startAnew ends agentd, because of why.
func (a *Agent) startAnew(why error) {
	select {
	case a.restart <- fmt.Errorf("%w: %w", errAnew, why):
	default: // asked for already
	}
}

// awaitRestart fails once a restart was asked for.
func (a *Agent) awaitRestart(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.restart:
		return err
	}
}
