// Package link is a robot's way to its cloud: who the robot is there, a connection for as long as the battery permits one, requests over it, what
// the robot tells by itself (status, events, release), and the cloud's time.
package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/agent/das"
	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/host"
	"kennel/edge/agent/link/mqttlink"
	"kennel/edge/agent/link/presence"
	"kennel/edge/agent/release"
	"kennel/edge/env/platform"
	"kennel/edge/update/slot"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/owners"
	"kennel/infra/api/status"
	"kennel/infra/api/topics"
	"kennel/infra/api/traceparent"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/ota"
)

// Config holds what a Cloud needs beside the robot.
type Config struct {
	TracePermille int                                                                        // share of requests, of a thousand, that ask the cloud to keep their trace
	KeepEvents    bool                                                                       // they stay on the robot (VEC-LOG-01)
	Doubted       func()                                                                     // the cloud says that the owner allows no events: ask again
	Consented     func()                                                                     // the cloud said whether the owner allows uploads; may be nil
	Flush         time.Duration                                                              // how long events wait for company
	Interval      time.Duration                                                              // of status messages; 0: presence.Interval
	Status        func() status.Message                                                      // the robot's status now
	Dial          func(ctx context.Context, network, addr string) (conn net.Conn, err error) // below TLS; nil: the system's
	OnUp          func()                                                                     // there is a connection, and every part was told
	OnDown        func(error)                                                                // a connection ended or could not be made
	Changed       func()                                                                     // there is news for the report
	Mirror        func(*events.Event)                                                        // sees each recorded event; nil: nothing does
	Slots         Slots                                                                      // nil: the robot installs no releases
	Needs         func(battery, charger bool) error                                          // which of them keeps the robot from an update
	Local         func() (time.Time, bool)                                                   // the robot's local time, if known
	Reboot        func(context.Context) error                                                // nil: never
	Core          func() Core                                                                // nil: the robot has no real-time core
	Trial         Trial                                                                      // of new releases
}

// Core and Trial say when a new release is well.
type (
	Core  = release.Core
	Trial = release.Trial
)

// Slots are the robot's two systems.
type Slots = *slot.Device

// OpenSlots returns nil for a robot that has none.
func OpenSlots(robot host.Robot) (Slots, error) { return release.Slots(robot.Root, robot.Hardware) }

// Talk tells others of the connection. Up and Lost are called in order, one at a time.
type Talk struct {
	Down map[string]func([]byte) // messages of the cloud, by name below down/
	Up   func()                  // there is a connection
	Lost func()                  // there is none any longer
}

// Cloud is made by New. Safe for concurrent use; Services are run once.
type Cloud struct {
	robot    host.Robot
	cfg      Config
	events   *das.Manager
	presence *presence.Reporter
	release  *release.Agent
	current  atomic.Pointer[mqttlink.Link] // nil until there is an identity
	permit   permit                        // of the battery, to use the cloud
	heard    atomic.Pointer[heard]         // of the time, newest; nil: nothing

	linking sync.Mutex  // orders Up and Lost
	links   int         // how many connections there were
	asked   atomic.Bool // the owner's consent, over this connection

	mu        sync.Mutex
	problem   string // why there is no connection, in words; "" while there is one
	identity  *devicecert.Identity
	api       string // of the cloud; "": not known
	configErr error  // of the server configuration
	state     diagnosis.Link
}

// New returns a Cloud that records events and sends nothing until Services run. The robot needs no Emit and Keep: these are the Cloud's.
func New(robot host.Robot, cfg Config) (*Cloud, error) {
	c := &Cloud{robot: robot, cfg: cfg}
	c.presence = presence.New(robot.Boot, cfg.Status, presence.Every(cmp.Or(cfg.Interval, presence.Interval)), presence.Clock(robot.Now))
	var err error
	c.events, err = das.New(das.Config{Root: robot.Root, Thing: robot.Thing, BootID: robot.Boot, RobotVersion: robot.OS, Uptime: robot.Uptime,
		Synced: c.ClockRight, Now: robot.Now, Log: robot.Log, Mirror: cfg.Mirror, FlushInterval: cfg.Flush, Frugal: robot.Frugal})
	if err == nil && robot.Recovery {
		err = c.events.SetAllowUpload(false)
	}
	robot.Keep = c.Keep
	c.release = release.New(release.Config{Running: robot.OS, Ask: c, Publish: c.Publish, Updater: c.updater(robot), Needs: func(n ota.Needs) error { return cfg.Needs(n.Battery, n.Charger) }, Local: cfg.Local,
		Core: cfg.Core, Trial: cfg.Trial, Reboot: cfg.Reboot, Root: robot.Root, Log: robot.Log})
	return c, err
}

// updater returns nil for a robot that cannot install releases.
func (c *Cloud) updater(robot host.Robot) release.Updater {
	if c.cfg.Slots == nil {
		return nil
	}
	u, err := release.NewUpdater(robot, c.cfg.Slots, c.cfg.Dial, c, c.Believed)
	if err != nil {
		robot.Log.Warn("the robot installs no releases", logging.Err, err)
	}
	return u
}

// Release returns the updates of the robot, for those who ask at the robot itself.
func (c *Cloud) Release() *release.Agent { return c.release }

// Emit records an event (VEC-DAS-05). It logs a failure, because its callers cannot.
func (c *Cloud) Emit(e events.Event) {
	if _, err := c.events.Emit(e); err != nil && !errors.Is(err, das.ErrOptedOut) {
		c.robot.Log.Warn("event not recorded", "event", e.Name, logging.Err, err)
	}
}

// Keep records an event that must not be lost. If the owner wants no events there is nothing to lose.
func (c *Cloud) Keep(ctx context.Context, e events.Event) error {
	if _, err := c.events.EmitDurable(ctx, e); err != nil && !errors.Is(err, das.ErrOptedOut) {
		return err
	}
	return nil
}

// Events returns the recorded events.
func (c *Cloud) Events() *das.Manager { return c.events }

// Consent applies the owner's consent to data collection. A robot of a new owner sends no events until they opt in; the events of one without an
// owner are no person's data (VEC-DAS-08).
func (c *Cloud) Consent(s owners.Status) {
	allow := !s.Owned || s.DataCollection
	if allow != c.events.AllowUpload() {
		if err := c.events.SetAllowUpload(allow); err != nil {
			c.robot.Log.Error("data collection consent not stored", "allow", allow, logging.Err, err)
			return
		}
	}
	if !c.asked.Swap(true) {
		c.events.Flush()
	}
	if c.cfg.Consented != nil {
		c.cfg.Consented()
	}
}

// Former says that the robot holds events, logs and crashes of a former owner: none leaves it before Consent is called.
func (c *Cloud) Former() { c.asked.Store(false) }

// MaySend reports whether events, logs and crashes may leave the robot now: the owner allows it, and has been asked over this connection. Consent may
// have been withdrawn while the robot was away. A frugal robot asks for no owner.
func (c *Cloud) MaySend() bool { return c.events.AllowUpload() && (c.asked.Load() || c.robot.Frugal) }

func (c *Cloud) maySend() error {
	if !c.MaySend() {
		return errs.New(errs.Unavailable, "the cloud has not said yet whether the owner allows uploads")
	}
	return nil
}

// publishEvents sends a batch of events.
func (c *Cloud) publishEvents(ctx context.Context, name string, payload []byte) error {
	if err := c.maySend(); err != nil {
		return err
	}
	if c.cfg.KeepEvents {
		return errs.New(errs.Unavailable, "the upload of events is switched off")
	}
	return c.Publish(ctx, name, payload)
}

// Changed asks for a status soon.
func (c *Cloud) Changed() { c.presence.Changed() }

// Services keep the connection, and send events and the release over it.
func (c *Cloud) Services(t Talk) []runner.Service {
	return []runner.Service{
		{Name: "events", Run: func(ctx context.Context) error { return c.events.Run(ctx, c.publishEvents) }},
		{Name: "release", Run: c.release.Run},
		{Name: "cloud", Run: func(ctx context.Context) error { return c.reach(ctx, t) }},
	}
}

func (c *Cloud) takeAck(payload []byte) {
	k, err := ack.Parse(payload)
	if err != nil {
		c.robot.Log.Warn("acknowledgement unreadable", logging.Err, err)
		return
	}
	if (k.Code == das.OptedOut || k.Code == das.OwnerChanged) && !c.robot.Frugal { // the cloud knows of an owner, or of a no, before the robot does
		c.asked.Store(false)
		c.cfg.Doubted()
	}
	if !c.release.HandleAck(k) {
		c.events.HandleAck(k)
	}
}

// Permit takes robotd's word whether the battery permits a connection, and reports whether that is new.
func (c *Cloud) Permit(open bool) bool { return c.permit.set(open, permitLasts) }

func (c *Cloud) identified() *devicecert.Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identity
}

// Identity returns the state of the robot's identity; false before the agent knows which cloud to ask for one.
func (c *Cloud) Identity() (devicecert.State, bool) {
	id := c.identified()
	if id == nil {
		return devicecert.State{}, false
	}
	return id.State(), true
}

// Linked reports whether there is a connection.
func (c *Cloud) Linked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Up
}

// Facts fills in the report about the way to the cloud.
func (c *Cloud) Facts(f *diagnosis.Facts) {
	c.mu.Lock()
	id := c.identity
	f.API, f.ConfigErr, f.Link = c.api, c.configErr, c.state
	c.mu.Unlock()
	if id != nil {
		st := id.State()
		f.Identity, f.Believed, f.Shown = &st, id.Now(), id.Seen()
		f.Roots, f.RootsErr = id.Roots()
	}
}

func (c *Cloud) connection() (*mqttlink.Link, error) {
	if l := c.current.Load(); l != nil {
		return l, nil
	}
	return nil, errs.New(errs.Unavailable, "no connection to the cloud yet")
}

// Publish sends on up/<name>, or fails at once while there is no connection.
func (c *Cloud) Publish(ctx context.Context, name string, payload []byte) error {
	l, err := c.connection()
	if err != nil {
		return err
	}
	return l.Publish(ctx, name, payload)
}

// Do asks the cloud over whatever link there is. Each request begins a trace, which the cloud's spans and log lines continue.
func (c *Cloud) Do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	l, err := c.connection()
	if err != nil {
		return nil, err
	}
	trace := traceparent.New(c.cfg.TracePermille)
	start := time.Now()
	out, err := l.Do(traceparent.With(ctx, trace), service, method, body)
	if c.robot.Log.Enabled(ctx, slog.LevelDebug) {
		c.robot.Log.DebugContext(ctx, "cloud request done", "service", service, "method", method, logging.Trace, trace.TraceID(), "sampled", trace.Sampled,
			"took", time.Since(start).Round(time.Millisecond), logging.Err, err)
	}
	return out, err
}

// Upload sends a file over the link (mqttlink.Link.Upload), or fails at once while there is no connection or it may send nothing.
func (c *Cloud) Upload(ctx context.Context, req *http.Request) (*http.Response, error) {
	if err := c.maySend(); err != nil {
		return nil, err
	}
	l, err := c.connection()
	if err != nil {
		return nil, err
	}
	return l.Upload(ctx, req)
}

// Secure returns how to reach the cloud for speech (mqttlink.Link.Secure).
func (c *Cloud) Secure() (addr string, conf *tls.Config, err error) {
	l, err := c.connection()
	if err != nil {
		return "", nil, err
	}
	return l.Secure()
}

// configRetry is how often a server configuration that cannot be used is read again.
const configRetry = 5 * time.Second

// reach gets an identity and keeps the connection. Without a usable server configuration the robot works offline (VEC-CLD-01).
func (c *Cloud) reach(ctx context.Context, t Talk) error {
	said := ""
	for {
		e, err := platform.LoadEndpoints(c.robot.Root, c.robot.Hardware)
		c.mu.Lock()
		c.api, c.configErr = e.Kennel.API, err
		c.mu.Unlock()
		if err == nil {
			return c.stayLinked(ctx, e, t)
		}
		c.setProblem(err.Error())
		if said != err.Error() {
			c.robot.Log.ErrorContext(ctx, "cloud not available; robot runs without it", logging.Err, err)
			said = err.Error()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(configRetry):
		}
	}
}

func (c *Cloud) stayLinked(ctx context.Context, e platform.Endpoints, t Talk) error {
	id, err := devicecert.Open(devicecert.Config{Root: c.robot.Root, Thing: c.robot.Thing, Cloud: e.Kennel.API, Log: c.robot.Log, Now: c.robot.Now, Dial: c.cfg.Dial})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.identity = id
	c.mu.Unlock()
	if _, err := id.TLSCertificate(); err != nil && c.robot.Recovery {
		// The key would end with the boot, and the claim is good only for the first key that used it.
		c.setProblem("recovery boot of a robot that has no certificate: it gets its first one after a normal boot")
		c.robot.Log.ErrorContext(ctx, "recovery boot without a certificate; cloud not available")
		<-ctx.Done()
		return nil
	}
	if err := c.permit.while(ctx, id.Ensure, silently); err != nil || ctx.Err() != nil {
		return nil // ctx ended
	}
	url := e.Kennel.MQTT
	if url == "" {
		url = id.MQTT()
	}
	down := map[string]func([]byte){topics.Ack: c.takeAck, topics.OTA: c.release.Hint}
	maps.Copy(down, t.Down)
	secure := credentials(id, url)
	l, err := mqttlink.New(mqttlink.Config{
		ID: c.robot.Thing, URL: url, TLS: func() (*tls.Config, error) {
			c.asked.Store(false) // before the connection is there: nothing leaves over it before the owner's word is known
			return secure()
		}, Large: e.Kennel.API, LargeTLS: credentials(id, e.Kennel.API), Root: c.robot.Root,
		Presence: c.presence, Log: c.robot.Log, Dial: c.cfg.Dial, OnUp: func(ctx context.Context) { c.up(ctx, t) }, OnDown: c.down, OnTime: c.HearTime,
		Down: down,
	})
	if err != nil {
		return err
	}
	c.current.Store(l)
	c.mu.Lock()
	c.state.Peer = strings.TrimPrefix(url, "ssl://")
	c.mu.Unlock()

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
	wg.Go(func() { ended <- c.permit.while(lctx, l.Run, goodbye) })
	wg.Go(func() { ended <- c.permit.while(lctx, id.Run, silently) })
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

// goodbyeTime bounds the time for the last messages of an orderly stop.
const goodbyeTime = 2 * time.Second

// up tells the parts that have data for the cloud.
func (c *Cloud) up(ctx context.Context, t Talk) {
	c.setProblem("")
	c.Emit(events.Event{Source: "agentd", Name: "vic.cloud.hello.world", S1: c.robot.Boot})
	c.linking.Lock()
	defer c.linking.Unlock()
	c.links++
	this := c.links
	c.asked.Store(false)
	c.linkIs(true, nil)
	c.release.Connected(true)
	t.Up()
	if c.robot.Frugal {
		c.events.Flush()
	}
	c.cfg.OnUp()
	context.AfterFunc(ctx, func() {
		c.linking.Lock()
		defer c.linking.Unlock()
		if c.links == this { // else the next connection is up already: its predecessor's end is no news
			c.release.Connected(false)
			t.Lost()
			c.linkIs(false, nil)
		}
	})
}

// down keeps why there is no connection and records it once for each reason.
func (c *Cloud) down(err error) {
	c.cfg.OnDown(err)
	c.linkIs(false, err)
	p := devicecert.Explain(err)
	if c.setProblem(p.Words) {
		c.Emit(events.Event{Source: "agentd", Level: events.Warning, Name: "robot.cloud_response_failed", S1: p.Code, S2: p.Words})
	}
}

// setProblem returns whether the problem is new.
func (c *Cloud) setProblem(words string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.problem != words
	c.problem = words
	return changed
}

// linkIs keeps the state of the connection for the report.
func (c *Cloud) linkIs(up bool, err error) {
	c.mu.Lock()
	if c.state.Up != up || c.state.Since.IsZero() {
		c.state.Since = c.robot.Now()
	}
	c.state.Up = up
	if up || err != nil {
		c.state.Err = err
	}
	c.mu.Unlock()
	c.cfg.Changed()
}
