// Package link is a robot's way to its cloud: who the robot is there, a connection for as long as the battery permits one, requests over it, its status
// messages, and the cloud's time.
package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/host"
	"kennel/edge/agent/link/mqttlink"
	"kennel/edge/agent/link/presence"
	"kennel/edge/core/corelink"
	"kennel/edge/env/platform"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
	"kennel/infra/api/traceparent"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
)

// Config holds what a Cloud needs beside the robot.
type Config struct {
	TracePermille int                                                                        // share of requests, of a thousand, that ask the cloud to keep their trace
	Interval      time.Duration                                                              // of status messages; 0: presence.Interval
	Dial          func(ctx context.Context, network, addr string) (conn net.Conn, err error) // below TLS; nil: the system's
	OnUp          func()                                                                     // there is a connection, and every part was told
	OnDown        func(error)                                                                // a connection ended or could not be made
	News          func()                                                                     // there is news for the report
}

// Cloud is made by New. Safe for concurrent use; Services are run once.
type Cloud struct {
	host     *host.Host
	cfg      Config
	presence *presence.Reporter
	current  atomic.Pointer[mqttlink.Link] // nil until there is an identity
	permit   permit                        // of the battery, to use the cloud
	heard    atomic.Pointer[heard]         // of the time, newest; nil: nothing

	linking sync.Mutex // orders LinkUp and LinkDown
	links   int        // how many connections there were

	mu        sync.Mutex
	problem   string // why there is no connection, in words; "" while there is one
	identity  *devicecert.Identity
	api       string // of the cloud; "": not known
	configErr error  // of the server configuration
	state     diagnosis.Link
}

// New returns a Cloud that does nothing until its part runs. Its status is h's.
func New(h *host.Host, cfg Config) *Cloud {
	return &Cloud{host: h, cfg: cfg, presence: presence.New(h.Boot, h.Status, presence.Every(cmp.Or(cfg.Interval, presence.Interval)), presence.Clock(h.Now))}
}

// Part is the way to the cloud as a part of agentd.
func (c *Cloud) Part() host.Part {
	return host.Part{Name: "link", Services: []runner.Service{{Name: "cloud", Run: c.reach}}, Fill: c.fill,
		Hears: []host.Hearing{host.On(func(m *corelink.Power) { c.permitted(m) })}}
}

// Changed asks for a status soon.
func (c *Cloud) Changed() { c.presence.Changed() }

func (c *Cloud) fill(m *status.Message) {
	if st, known := c.Identity(); known && !st.OK && st.Problem != "" {
		m.Tell(status.Problem{Kind: status.KindIdentity, Code: st.Code, Text: st.Step + ": " + st.Problem})
	}
}

// permitted takes robotd's word whether the battery permits a connection (VEC-PWR-07).
func (c *Cloud) permitted(m *corelink.Power) {
	switch {
	case !c.permit.set(m.Cloud, permitLasts):
	case m.Cloud:
		c.host.Log.Info("battery charged; cloud connection allowed again")
	default:
		c.host.Log.Warn("battery low; cloud connection closed until it is charged", "shed", m.Shed)
	}
}

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

// TLS returns the robot's TLS configuration for a server of that name; nil before it knows which cloud to ask for an identity.
func (c *Cloud) TLS(name string) *tls.Config {
	i := c.identified()
	if i == nil {
		return nil
	}
	return i.TLSConfig(name)
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
	if c.host.Log.Enabled(ctx, slog.LevelDebug) {
		c.host.Log.DebugContext(ctx, "cloud request done", "service", service, "method", method, logging.Trace, trace.TraceID(), "sampled", trace.Sampled,
			"took", time.Since(start).Round(time.Millisecond), logging.Err, err)
	}
	return out, err
}

// Upload sends a file over the link (mqttlink.Link.Upload), or fails at once while there is no connection.
func (c *Cloud) Upload(ctx context.Context, req *http.Request) (*http.Response, error) {
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
func (c *Cloud) reach(ctx context.Context) error {
	said := ""
	for {
		e, err := platform.LoadEndpoints(c.host.Root, c.host.Hardware)
		c.mu.Lock()
		c.api, c.configErr = e.Kennel.API, err
		c.mu.Unlock()
		if err == nil {
			return c.stayLinked(ctx, e)
		}
		c.setProblem(err.Error())
		if said != err.Error() {
			c.host.Log.ErrorContext(ctx, "cloud not available; robot runs without it", logging.Err, err)
			said = err.Error()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(configRetry):
		}
	}
}

func (c *Cloud) stayLinked(ctx context.Context, e platform.Endpoints) error {
	id, err := devicecert.Open(devicecert.Config{Root: c.host.Root, Thing: c.host.Thing, Cloud: e.Kennel.API, Log: c.host.Log, Now: c.host.Now, Dial: c.cfg.Dial})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.identity = id
	c.mu.Unlock()
	if _, err := id.TLSCertificate(); err != nil && c.host.Recovery {
		// The key would end with the boot, and the claim is good only for the first key that used it.
		c.setProblem("recovery boot of a robot that has no certificate: it gets its first one after a normal boot")
		c.host.Log.ErrorContext(ctx, "recovery boot without a certificate; cloud not available")
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
	secure := credentials(id, url)
	l, err := mqttlink.New(mqttlink.Config{
		ID: c.host.Thing, URL: url, TLS: func() (*tls.Config, error) {
			c.host.Publish(host.Dialing{})
			return secure()
		}, Large: e.Kennel.API, LargeTLS: credentials(id, e.Kennel.API), Root: c.host.Root,
		Presence: c.presence, Log: c.host.Log, Dial: c.cfg.Dial, OnUp: c.up, OnDown: c.down, OnTime: c.HearTime,
		Down: c.host.Down(),
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
func (c *Cloud) up(ctx context.Context) {
	c.setProblem("")
	c.host.Emit(events.Event{Source: "agentd", Name: "vic.cloud.hello.world", S1: c.host.Boot})
	c.linking.Lock()
	defer c.linking.Unlock()
	c.links++
	this := c.links
	c.linkIs(true, nil)
	c.host.Publish(host.LinkUp{})
	c.cfg.OnUp()
	context.AfterFunc(ctx, func() {
		c.linking.Lock()
		defer c.linking.Unlock()
		if c.links == this { // else the next connection is up already: its predecessor's end is no news
			c.host.Publish(host.LinkDown{})
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
		c.host.Emit(events.Event{Source: "agentd", Level: events.Warning, Name: "robot.cloud_response_failed", S1: p.Code, S2: p.Words})
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
		c.state.Since = c.host.Now()
	}
	c.state.Up = up
	if up || err != nil {
		c.state.Err = err
	}
	c.mu.Unlock()
	c.cfg.News()
}
