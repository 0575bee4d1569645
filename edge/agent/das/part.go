package das

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"encoding/json"

	"kennel/edge/agent/commands"
	"kennel/edge/agent/host"
	"kennel/infra/api/ack"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/owners"
	"kennel/infra/api/status"
	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
)

// Gate is the robot's events, and the one place that says whether events, logs and crashes may leave the robot now: the owner allows it, and has been
// asked over this connection. Consent may have been withdrawn while the robot was away. Safe for concurrent use.
type Gate struct {
	*Manager
	host    *host.Host
	publish func(ctx context.Context, name string, payload []byte) error
	asked   atomic.Bool // the owner's consent, over this connection
}

// Open returns the events of h, and makes them those that h's parts record. publish sends over the link; nil: events stay on the robot (VEC-LOG-01).
// The other fields of c are set here.
func Open(h *host.Host, publish func(ctx context.Context, name string, payload []byte) error, c Config) (*Gate, error) {
	c.Root, c.Thing, c.BootID, c.RobotVersion, c.Uptime, c.Now, c.Log, c.Frugal = h.Root, h.Thing, h.Boot, h.OS, h.Uptime, h.Now, h.Log, h.Frugal
	m, err := New(c)
	if err == nil && h.Recovery {
		err = m.SetAllowUpload(false)
	}
	g := &Gate{Manager: m, host: h, publish: publish}
	h.Emit, h.Keep = g.emit, g.keep
	return g, err
}

// emit records an event (part of VEC-DAS-05). It logs a failure, because its callers cannot.
func (g *Gate) emit(e events.Event) {
	if _, err := g.Emit(e); err != nil && !errors.Is(err, ErrOptedOut) {
		g.host.Log.Warn("event not recorded", "event", e.Name, logging.Err, err)
	}
}

// keep records an event that must not be lost. If the owner wants no events there is nothing to lose.
func (g *Gate) keep(ctx context.Context, e events.Event) error {
	if _, err := g.EmitDurable(ctx, e); err != nil && !errors.Is(err, ErrOptedOut) {
		return err
	}
	return nil
}

// Part is the events as a part of agentd.
func (g *Gate) Part() host.Part {
	return host.Part{
		Name:     "events",
		Services: []runner.Service{{Name: "events", Run: func(ctx context.Context) error { return g.Run(ctx, g.send) }}},
		Hears: []host.Hearing{
			host.On(func(host.Dialing) { g.asked.Store(false) }), // before the connection is there: nothing leaves over it before the owner's word is known
			host.On(func(host.LinkUp) { g.asked.Store(false) }),
			host.On(func(host.Withhold) { g.asked.Store(false) }),
			host.On(func(host.Unowned) { g.open() }),
			host.On(func(s host.Consent) { g.consent(owners.Status(s)) }),
			host.On(g.HandleAck),
		},
		Down: map[string]func([]byte){topics.Ack: g.takeAck},
		Commands: map[string]commands.Executor{commandwire.FlushEvents: func(context.Context, json.RawMessage) (commands.Outcome, error) {
			g.Flush()
			return commands.Outcome{Detail: fmt.Sprintf("%d events were waiting", g.Stats().Events)}, nil
		}},
		Fill: func(m *status.Message) { spool := g.Stats(); m.Spool = &spool },
	}
}

// consent applies the owner's consent to data collection. A robot of a new owner sends no events until they opt in; the events of one without an
// owner are no person's data (VEC-DAS-08).
func (g *Gate) consent(s owners.Status) {
	allow := s.MayCollect()
	if allow != g.AllowUpload() {
		if err := g.SetAllowUpload(allow); err != nil {
			g.host.Log.Error("data collection consent not stored", "allow", allow, logging.Err, err)
			return
		}
	}
	g.open()
	g.host.Publish(host.Consented{})
}

// open sends what waited for the first word over this connection.
func (g *Gate) open() {
	if !g.asked.Swap(true) {
		g.Flush()
	}
}

func (g *Gate) maySend() error {
	if !g.AllowUpload() || !g.asked.Load() {
		return errs.New(errs.Unavailable, "waiting for the cloud to say whether the owner allows uploads")
	}
	return nil
}

// send sends a batch of events.
func (g *Gate) send(ctx context.Context, name string, payload []byte) error {
	if err := g.maySend(); err != nil {
		return err
	}
	if g.publish == nil {
		return errs.New(errs.Unavailable, "the upload of events is switched off")
	}
	return g.publish(ctx, name, payload)
}

// Uploads returns upload for files that leave the robot only while events may.
func (g *Gate) Uploads(upload func(context.Context, *http.Request) (*http.Response, error)) func(context.Context, *http.Request) (*http.Response, error) {
	return func(ctx context.Context, req *http.Request) (*http.Response, error) {
		if err := g.maySend(); err != nil {
			return nil, err
		}
		return upload(ctx, req)
	}
}

// takeAck tells every part what the cloud acknowledged.
func (g *Gate) takeAck(payload []byte) {
	k, err := ack.Parse(payload)
	if err != nil {
		g.host.Log.Warn("acknowledgement unreadable", logging.Err, err)
		return
	}
	if k.Code == OptedOut || k.Code == OwnerChanged {
		g.host.Publish(host.Doubt{})
	}
	g.host.Publish(k)
}
