// Package mqttlink is the robot's connection to the cloud over MQTT: it keeps it up, passes messages to their receivers, and tells the agent's
// parts when the cloud can be reached. Nothing here is durable: the sender keeps what must not be lost until the application has answered
// (infra/adr/0001).
package mqttlink

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/agent/link/presence"
	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
)

// Config holds the cloud's addresses and the receivers of messages.
type Config struct {
	ID  thing.ID
	URL string // ssl://host:port
	TLS func() (*tls.Config, error)
	// Large is the HTTPS address for requests that do not fit a broker message, and LargeTLS the credentials there; "": such requests fail.
	Large    string
	LargeTLS func() (*tls.Config, error)

	// Dial makes the connections below TLS; nil: the system's.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	Root *os.Root // holds the number of the last connection

	Presence *presence.Reporter
	// Down takes messages of down/<name>; the key is the name. A handler must not block.
	Down map[string]func(payload []byte)
	// OnUp is called when the robot can send and receive; ctx ends with the connection. It must not block.
	OnUp func(ctx context.Context)
	// OnDown is called when the connection ended or could not be made; err says why.
	OnDown func(err error)
	// OnTime gets the cloud's time from each response to a request that was not retried. It may be nil and must not block.
	OnTime func(cloud time.Time)

	Log *slog.Logger
}

// Link is safe for concurrent use.
type Link struct {
	cfg  Config
	mqtt *mqtt.Client
	req  *kitmqtt.Client
	size *bySize       // nil: none
	seq  atomic.Uint64 // of the connection that is up or being made
	wg   sync.WaitGroup
}

// New returns a link that does nothing until Run.
func New(cfg Config) (*Link, error) {
	l := &Link{cfg: cfg}
	var err error
	l.mqtt, err = mqtt.New(mqtt.Config{
		URL: cfg.URL, ClientID: string(cfg.ID), TLS: l.credentials, Will: l.will, Dial: cfg.Dial,
		OnConnect: l.onConnect, OnMessage: l.onMessage, OnDown: cfg.OnDown, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	l.req = kitmqtt.NewClient(cfg.ID, func(ctx context.Context, topic string, payload []byte) error {
		return l.mqtt.Publish(ctx, topic, 0, false, payload) // the answer is the acknowledgement; a PUBACK on each of two legs costs a fifth of a write
	}, kitmqtt.OnTime(cfg.OnTime))
	if cfg.Large != "" {
		l.size = newBySize(cfg.Large, cfg.LargeTLS, cfg.Dial)
	}
	return l, nil
}

// Run keeps the connection until ctx ends, then says goodbye.
func (l *Link) Run(ctx context.Context) error {
	err := l.mqtt.Run(ctx)
	l.wg.Wait()
	return err
}

// Do asks the cloud (kitmqtt.Requester): over the broker, and where question or answer does not fit a message, over HTTPS.
func (l *Link) Do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	answer, err := l.req.Do(ctx, service, method, body)
	if l.size != nil && errs.CodeOf(err) == "too_large" {
		return l.size.do(ctx, service, method, body)
	}
	return answer, err
}

// Publish sends one message on up/<name>. It fails at once without a connection.
func (l *Link) Publish(ctx context.Context, name string, payload []byte) error {
	return l.mqtt.Publish(ctx, topics.UpTopic(l.cfg.ID, name), 1, false, payload)
}

// Up reports whether there is a connection now.
func (l *Link) Up() bool { return l.mqtt.Connected() }

// Renew makes the connection again at once, because there is a new certificate: the broker ends a session with the one it began with.
func (l *Link) Renew() { l.mqtt.Renew() }

// Goodbye tells the cloud that the robot disconnects on purpose; call it before Run's context ends.
func (l *Link) Goodbye(ctx context.Context) {
	if l.Up() {
		l.cfg.Presence.Goodbye(ctx, l.seq.Load(), l.Publish)
	}
}

// credentials begins an attempt to connect: it gets its number before the will is made.
func (l *Link) credentials() (*tls.Config, error) {
	seq, err := presence.NextConnectSeq(l.cfg.Root)
	if err != nil {
		return nil, err
	}
	l.seq.Store(seq)
	return l.cfg.TLS()
}

func (l *Link) will() *mqtt.Will {
	b, err := l.cfg.Presence.Will(l.seq.Load())
	if err != nil {
		l.cfg.Log.Error("last will not created", logging.Err, err)
		return nil
	}
	return &mqtt.Will{Topic: topics.UpTopic(l.cfg.ID, topics.Status), Payload: b, QoS: 1}
}

func (l *Link) onConnect(ctx context.Context, c *mqtt.Client) error {
	if err := c.Subscribe(ctx, 0, topics.ThingFilters(l.cfg.ID)...); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	seq := l.seq.Load()
	l.cfg.Log.InfoContext(ctx, "connected to the cloud", logging.Addr, l.cfg.URL, "connect_seq", seq)
	l.wg.Go(func() { _ = l.cfg.Presence.Run(ctx, seq, l.Publish) }) // ends with the connection; its errors are ours and constant
	l.req.Connected()
	if l.cfg.OnUp != nil {
		l.cfg.OnUp(ctx)
	}
	return nil
}

func (l *Link) onMessage(topic string, payload []byte, taken func()) {
	defer taken()
	t, err := topics.Parse(topic)
	if err != nil || t.Thing != l.cfg.ID {
		l.cfg.Log.Warn("message on a foreign topic ignored", "topic", topic)
		return
	}
	switch t.Class {
	case topics.Res:
		if err := l.req.Deliver(topic, payload); err != nil {
			l.cfg.Log.Debug("unexpected answer ignored", "topic", topic, logging.Err, err)
		}
	case topics.Down:
		if f := l.cfg.Down[t.Name]; f != nil {
			f(payload)
			return
		}
		l.cfg.Log.Debug("message without a handler ignored", "topic", topic)
	}
}
