package agentapp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/agent/cloud/das"
	"kennel/edge/agent/cloud/docs"
	"kennel/edge/agent/cloud/link"
	"kennel/edge/agent/cloud/presence"
	"kennel/edge/agent/cloud/release"
	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/health/faults"
	"kennel/edge/agent/health/nightly"
	"kennel/edge/agent/health/vitals"
	"kennel/edge/agent/info/hoststats"
	"kennel/edge/agent/info/platform"
	"kennel/edge/agent/people/wipe"
	"kennel/edge/agent/work/commands"
	"kennel/edge/agent/work/parameters"
	"kennel/edge/agent/work/pilot"
	"kennel/edge/coreclient"
	"kennel/edge/corelink"
	"kennel/edge/stages"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/hints"
	"kennel/infra/api/status"
	"kennel/infra/api/topics"
	"kennel/infra/api/traceparent"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/sdnotify"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Agent is the robot's network side: its parts and their connections. Its exported methods are safe for concurrent use; Run is
// called once.
type Agent struct {
	cfg     Config
	root    *os.Root
	id      thing.ID
	boot    string
	os      string
	started time.Time
	log     *slog.Logger

	das        *das.Manager
	docs       *docs.Agent
	vitals     *vitals.Vitals
	presence   *presence.Reporter
	release    *release.Agent
	commands   *commands.Agent
	pilot      *pilot.Pilot
	core       Core
	client     *coreclient.Client // of core
	restart    chan error         // why agentd is to restart; one slot
	teller     *wipe.Teller
	faults     *faults.Handler
	keeper     *supervised               // of the services that a fault stops
	owned      *owned                    // nil: frugal
	cloud      atomic.Pointer[link.Link] // nil until there is an identity
	permit     permit                    // of the battery, to use the cloud
	heard      atomic.Pointer[heard]     // of the time, from the cloud, newest; nil: nothing
	start      *start
	nightly    *nightly.Rebooter  // nil: none
	parameters *parameters.Keeper // nil: the body stores none, or the agent is frugal
	night      nightly.Last       // the reboot before this start

	linking sync.Mutex // orders the notices of linkUp and of a connection's end
	links   int        // how many connections there were

	mu        sync.Mutex
	problem   string // why there is no cloud, in words; "" while there is one
	identity  *devicecert.Identity
	api       string // of the cloud; "": not known
	configErr error  // of the server configuration
	link      diagnosis.Link
}

// New makes the agent of the robot below root, from the files there; it starts nothing. A wipe of the user data that was asked for is done
// first. root must stay open while Run runs.
func New(root *os.Root, cfg Config) (*Agent, error) {
	cfg = cfg.withDefaults()
	a := &Agent{cfg: cfg, root: root, started: time.Now(), log: cfg.Log, core: cfg.Core, restart: make(chan error, 1)}
	a.start = newStart(a)
	if err := a.start.rec.Walk(context.Background(), a.making()...); err != nil {
		return nil, err
	}
	return a, nil
}

// Run keeps every part going until ctx ends, then says goodbye.
func (a *Agent) Run(ctx context.Context) error {
	var supervisor *sdnotify.Notifier
	err := a.start.rec.Walk(context.WithoutCancel(ctx), stages.Stage{Name: "supervisor", Do: func(context.Context) (err error) {
		supervisor, err = sdnotify.Open(a.cfg.Supervisor.Addr)
		return err
	}})
	if err != nil {
		return err
	}
	defer func() { _ = supervisor.Close() }() // datagrams: nothing is buffered
	a.emit(events.Event{Source: "agentd", Name: "robot.boot_info", S1: version.String(), S2: a.os, S3: a.boot})
	a.start.made()
	a.tellNight()
	services := []runner.Service{
		{Name: "events", Run: func(ctx context.Context) error { return a.das.Run(ctx, a.publish) }},
		{Name: "release", Run: a.release.Run},
		{Name: "commands", Run: a.commands.Run},
		{Name: "restart", Run: a.awaitRestart, Fatal: true},
		{Name: "core", Run: a.listenToCore},
		{Name: "pilot", Run: a.pilot.Run},
		{Name: "telemetry", Run: a.telemetry},
		{Name: "introduction", Run: func(ctx context.Context) error { return a.teller.Run(ctx, a.linked, a.introduce) }},
		{Name: "cloud", Run: a.reachCloud},
	}
	if !a.cfg.Recovery {
		services = append(services, runner.Service{Name: "documents", Run: a.docs.Run})
	}
	if a.parameters != nil {
		services = append(services, runner.Service{Name: "parameters", Run: a.parameters.Run})
	}
	if a.owned != nil {
		services = append(services, a.owned.services(a)...)
	}
	services = append(services, a.start.services()...)
	if a.nightly != nil {
		services = append(services, runner.Service{Name: "nightly reboot", Run: a.nightly.Run})
	}
	if !a.cfg.Frugal { // without a FIFO and a display for faults: they are only reported
		services = append(services, runner.Service{Name: "faults", Run: a.faults.Run}, runner.Service{Name: "posted faults", Run: a.faults.Listen})
	}
	if a.cfg.Supervisor.Addr != "" { // last: ready is an agent whose parts run. An unreachable cloud does not prevent it: the robot works without it
		services = append(services, runner.Service{Name: "supervisor", Run: func(ctx context.Context) error {
			return supervisor.Run(ctx, a.cfg.Supervisor.Every, a.healthy)
		}})
	}
	return runner.Run(ctx, a.log, runner.Config{MinBackoff: 500 * time.Millisecond, MaxBackoff: 30 * time.Second}, services...)
}

// healthy asks every part how it is, as a status does: one that hangs with its state locked keeps the watchdog from being fed. An agent
// without a network or without its core is well.
func (a *Agent) healthy() bool {
	_ = a.status() // that it answers is the news
	return true
}

func (a *Agent) uptime() time.Duration { return time.Since(a.started) }

// emit records an event. It logs a failure, because its callers cannot.
func (a *Agent) emit(e events.Event) {
	if _, err := a.das.Emit(e); err != nil && !errors.Is(err, das.ErrOptedOut) {
		a.log.Warn("event not recorded", "event", e.Name, logging.Err, err)
	}
}

// Emit records an event of the robot (VEC-DAS-05).
func (a *Agent) Emit(e events.Event) { a.emit(e) }

// Set changes settings on the robot, as its owner's app would (VEC-DOC-13).
func (a *Agent) Set(ctx context.Context, fields map[string]json.RawMessage) error {
	return a.docs.Set(ctx, jdocs.RobotSettings, fields)
}

// Events counts this agent's events: emitted since New, and the spool as it is now.
func (a *Agent) Events() (emitted uint64, spool status.Spool) {
	return a.das.Emitted(), a.das.Stats()
}

// Identity returns the state of the robot's identity; false before the agent knows which cloud to ask for one.
func (a *Agent) Identity() (devicecert.State, bool) {
	a.mu.Lock()
	id := a.identity
	a.mu.Unlock()
	if id == nil {
		return devicecert.State{}, false
	}
	return id.State(), true
}

// publish sends on up/<name>, or fails at once while there is no connection.
func (a *Agent) publish(ctx context.Context, name string, payload []byte) error {
	l := a.cloud.Load()
	if l == nil {
		return errs.New(errs.Unavailable, "no connection to the cloud yet")
	}
	return l.Publish(ctx, name, payload)
}

// requester asks the cloud over whatever link there is. Each request begins a trace, which the cloud's spans and log lines continue.
type requester struct{ a *Agent }

func (r requester) Do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	l := r.a.cloud.Load()
	if l == nil {
		return nil, errs.New(errs.Unavailable, "no connection to the cloud yet")
	}
	trace := traceparent.New(r.a.cfg.TracePermille)
	start := time.Now()
	out, err := l.Do(traceparent.With(ctx, trace), service, method, body)
	if r.a.log.Enabled(ctx, slog.LevelDebug) {
		r.a.log.DebugContext(ctx, "cloud request done", "service", service, "method", method, logging.Trace, trace.TraceID(), "sampled", trace.Sampled,
			"took", time.Since(start).Round(time.Millisecond), logging.Err, err)
	}
	return out, err
}

// listenToCore hands robotd's messages to the vitals and the pilot, and starts over whenever robotd does.
func (a *Agent) listenToCore(ctx context.Context) error {
	return a.core.Run(ctx, func(m corelink.Message) {
		a.client.Handle(m)
		a.vitals.Handle(m)
		a.pilot.Handle(m)
		a.keeper.handle(m, a.faults)
		if m, ok := m.(*corelink.Power); ok && a.permit.set(m.Cloud, permitLasts) {
			if m.Cloud {
				a.log.InfoContext(ctx, "battery charged; cloud connection allowed again")
			} else {
				a.log.WarnContext(ctx, "battery low; cloud connection closed until it is charged", "shed", m.Shed)
			}
		}
		if _, ok := m.(*corelink.Hello); ok {
			a.start.reached(a.start.core)
			if a.owned != nil {
				a.meetCore()
			}
		}
	})
}

// meetCore sends robotd the robot's identity, for the root of its tree. It does so for each robotd, and again when the name is made.
func (a *Agent) meetCore() { a.client.Introduce(a.owned.plate.Name(), a.id.Serial(), hostAddress()) }

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

// telemetry reports battery and loop at intervals, and counts the time alive (Alive.seconds).
func (a *Agent) telemetry(ctx context.Context) error {
	host := hoststats.Host(a.cfg.Root)
	report, alive := time.NewTicker(a.cfg.Telemetry), time.NewTicker(time.Minute)
	defer report.Stop()
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-report.C:
			a.vitals.Periodic()
			a.reportHost(host.Read())
		case <-alive.C:
			a.docs.AddStats(map[string]float64{"Alive.seconds": 60})
		}
	}
}

// reportHost says how the robot's computer is (VEC-DAS-14).
func (a *Agent) reportHost(h hoststats.Sample) {
	a.emit(events.Event{
		Source: "agentd", Name: "robot.memory_info", I1: events.Num(h.MemTotalKiB), I2: events.Num(h.MemAvailableKiB),
		I3: events.Num(h.SelfKiB),
	})
	a.emit(events.Event{Source: "agentd", Name: "robot.cpu_info", I1: events.Num(h.LoadMilli)})
	a.emit(events.Event{Source: "agentd", Name: "robot.disk_info", I1: events.Num(h.DiskTotalMiB), I2: events.Num(h.DiskFreeMiB)})
}

// configRetry is how often a server configuration that cannot be used is read again.
const configRetry = 5 * time.Second

// reachCloud gets an identity and keeps the link. Without a usable server configuration the robot works offline (VEC-CLD-01).
func (a *Agent) reachCloud(ctx context.Context) error {
	said := ""
	for {
		e, err := platform.LoadEndpoints(a.root)
		a.mu.Lock()
		a.api, a.configErr = e.Kennel.API, err
		a.mu.Unlock()
		if err == nil {
			return a.stayLinked(ctx, e)
		}
		a.setProblem(err.Error())
		if said != err.Error() {
			a.log.ErrorContext(ctx, "cloud not available; robot runs without it", logging.Err, err)
			said = err.Error()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(configRetry):
		}
	}
}

func (a *Agent) stayLinked(ctx context.Context, e platform.Endpoints) error {
	id, err := a.openIdentity(e.Kennel.API)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.identity = id
	a.mu.Unlock()
	if _, err := id.TLSCertificate(); err != nil && a.cfg.Recovery {
		// The key would end with the boot, and the claim is good only for the first key that used it.
		a.setProblem("recovery boot of a robot that has no certificate: it gets its first one after a normal boot")
		a.log.ErrorContext(ctx, "recovery boot without a certificate; cloud not available")
		<-ctx.Done()
		return nil
	}
	if err := a.permit.while(ctx, id.Ensure, silently); err != nil || ctx.Err() != nil {
		return nil // ctx ended
	}
	url := e.Kennel.MQTT
	if url == "" {
		url = id.MQTT()
	}
	l, err := link.New(link.Config{
		ID: a.id, URL: url, TLS: credentials(id, url), Large: e.Kennel.API, LargeTLS: credentials(id, e.Kennel.API), Root: a.root,
		Presence: a.presence, Log: a.log, Dial: a.cfg.Dial, OnUp: a.linkUp, OnDown: a.linkDown, OnTime: a.hearTime,
		Down: map[string]func([]byte){topics.Ack: a.takeAck, topics.Jdocs: a.takeDocHint, topics.OTA: a.release.Hint,
			topics.Cmd: a.commands.Handle, topics.Intent: a.commands.Handle, topics.Live: a.pilot.Look},
	})
	if err != nil {
		return err
	}
	a.cloud.Store(l)
	a.mu.Lock()
	a.link.Peer = strings.TrimPrefix(url, "ssl://")
	a.mu.Unlock()

	// The link outlives ctx by the time of a goodbye.
	lctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	ended := make(chan error, 2) // one each
	changed := id.Changed()      // before the first connection
	goodbye := func() {
		gctx, cancel := context.WithTimeout(lctx, goodbyeTime)
		l.Goodbye(gctx)
		cancel()
	}
	wg.Go(func() { ended <- a.permit.while(lctx, l.Run, goodbye) })
	wg.Go(func() { ended <- a.permit.while(lctx, id.Run, silently) })
	wg.Go(func() {
		for {
			select {
			case <-lctx.Done():
				return
			case <-changed:
				changed = id.Changed()
				l.Renew()
			}
		}
	})
	select {
	case err = <-ended:
	case <-ctx.Done():
		goodbye()
	}
	stop()
	wg.Wait()
	return err
}

// silently is a no-op leave callback.
func silently() {}

// linkUp tells every part that has data for the cloud.
func (a *Agent) linkUp(ctx context.Context) {
	a.setProblem("")
	a.emit(events.Event{Source: "agentd", Name: "vic.cloud.hello.world", S1: a.boot})
	a.start.reached(a.start.cloud)
	a.linking.Lock()
	defer a.linking.Unlock()
	a.links++
	this := a.links
	if !a.cfg.Recovery {
		a.docs.Connected()
	}
	a.release.Connected(true)
	a.commands.Connected(true)
	a.das.Flush()
	a.linkIs(true, nil)
	a.teller.Connected()
	a.cfg.OnUp()
	context.AfterFunc(ctx, func() {
		a.linking.Lock()
		defer a.linking.Unlock()
		if a.links == this { // else the next connection is up already: its predecessor's end is no news
			a.docs.Disconnected()
			a.release.Connected(false)
			a.commands.Connected(false)
			a.linkIs(false, nil)
		}
	})
}

// linkDown keeps why there is no connection and records it once for each reason.
func (a *Agent) linkDown(err error) {
	a.cfg.OnDown(err)
	a.linkIs(false, err)
	p := devicecert.Explain(err)
	if a.setProblem(p.Words) {
		a.emit(events.Event{Source: "agentd", Level: events.Warning, Name: "robot.cloud_response_failed", S1: p.Code, S2: p.Words})
	}
}

// setProblem returns whether the problem is new.
func (a *Agent) setProblem(words string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	changed := a.problem != words
	a.problem = words
	return changed
}

func (a *Agent) takeAck(payload []byte) {
	k, err := ack.Parse(payload)
	if err != nil {
		a.log.Warn("acknowledgement unreadable", logging.Err, err)
		return
	}
	if !a.release.HandleAck(k) {
		a.das.HandleAck(k)
	}
}

func (a *Agent) takeDocHint(payload []byte) {
	h, err := hints.ParseJdocs(payload)
	if err != nil {
		a.log.Warn("hint unreadable", logging.Err, err)
		return
	}
	a.docs.Hint(h.Docs)
	if a.owned != nil {
		a.owned.hinted(h)
	}
}

// docChanged records a changed setting (VEC-DOC-13).
func (a *Agent) docChanged(c docs.Change) {
	a.presence.Changed()
	if a.parameters != nil {
		a.parameters.Changed(c.Doc)
	}
	if c.Doc != jdocs.RobotSettings {
		return
	}
	names := make([]string, 0, len(c.Fields))
	for k := range c.Fields {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		a.emit(events.Event{Source: "agentd", Name: "robot.settings.updated", S1: k, S2: text(c.Fields[k]), S3: string(c.Source)})
		switch k {
		case "master_volume":
			if n, err := strconv.ParseInt(string(c.Fields[k]), 10, 64); err == nil {
				a.emit(events.Event{Source: "agentd", Name: "robot.settings.volume", I1: events.Num(n)})
			}
		case "locale":
			a.emit(events.Event{Source: "agentd", Name: "robot.locale", S1: text(c.Fields[k])})
		case "time_zone":
			a.emit(events.Event{Source: "agentd", Name: "robot.timezone", S1: text(c.Fields[k])})
		}
	}
}

func (a *Agent) docPushed(name jdocs.Name, v uint64) {
	a.presence.Changed()
	a.emit(events.Event{Source: "agentd", Name: "robot.settings.passed_to_cloud_jdoc", S1: string(name), I1: events.Num(int64(v))})
}

// text returns a JSON string's text, or other JSON as it is.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// status returns the status that the presence reporter sends.
func (a *Agent) status() status.Message {
	spool := a.das.Stats()
	m := status.Message{
		Agent: version.String(), OS: a.os, Recovery: a.cfg.Recovery, UptimeMS: a.uptime().Milliseconds(), Spool: &spool,
		Docs: a.docs.Versions(), Dirty: a.docs.Dirty(),
	}
	if a.cfg.Recovery {
		m.Tell(recoveryProblem)
	}
	m.Tell(a.docs.Problems()...)
	if a.parameters != nil && a.parameters.Waiting() != "" {
		m.Tell(status.Problem{Kind: status.KindParameters, Text: a.parameters.Waiting()})
	}
	a.vitals.Fill(&m)
	m.Tell(a.faults.Problems(func(f faults.Fault) bool {
		return f.Service == robotd && m.Body != nil && m.Body.Fault == int(f.Code) // it is reported already
	})...)
	a.mu.Lock()
	id := a.identity
	a.mu.Unlock()
	if id != nil {
		if st := id.State(); !st.OK && st.Problem != "" {
			m.Tell(status.Problem{Kind: status.KindIdentity, Code: st.Code, Text: st.Step + ": " + st.Problem})
		}
	}
	return m
}
