// Package mqtt is one connection to a broker that comes back by itself: MQTT 3.1.1 over mutual TLS, clean sessions, QoS 0 and 1.
//
// It adds to its library (eclipse/paho): its own back-off with jitter, so that a fleet does not return in step; fresh credentials and will
// for each attempt, because certificates renew and a will carries the connection's number; every failure classified and explained
// (DownError); publish and subscribe that end with their context, fail at once without a connection, and return the broker's verdict.
// Incoming messages are acknowledged by the receiver, when it has taken them (infra/adr/0001).
package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"kennel/infra/api/topics"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// ErrDisconnected: there is no connection now. It is errs.Unavailable.
var ErrDisconnected = errs.Coded(errs.Unavailable, "disconnected", "no connection to the broker")

// Will is the message that the broker publishes when the connection ends without a goodbye. The payload must not be empty: some brokers refuse that.
type Will struct {
	Topic   string
	Payload []byte
	QoS     byte
}

// Config says how to connect. URL, ClientID and TLS are required; everything else has a default.
type Config struct {
	URL      string // ssl://host:port (also tls://, mqtts://); on port 443 the ALPN protocol "mqtt" is asked for
	ClientID string

	// TLS returns the credentials for one attempt: it is called before each, so that renewed certificates and roots take effect. The
	// server name is set from URL if empty.
	TLS func() (*tls.Config, error)
	// Will returns the will of one attempt, or nil.
	Will func() *Will

	// Dial makes the connection below TLS; nil: the system's.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	KeepAlive      time.Duration // default 30 s, whole seconds
	ConnectTimeout time.Duration // for name lookup, dial, TLS and login together; default 15 s
	// ProbeEvery is how often a connection is asked whether the broker still answers (see Answers); 0: never, so that it shows at the next keep-alive.
	ProbeEvery time.Duration
	MinBackoff time.Duration // first pause after a failure, give or take a half; default 1 s
	MaxBackoff time.Duration // longest, give or take a half; default 60 s

	// OnConnect runs when a connection is up, before Run waits for its end: subscribe here. ctx ends with the connection. An error
	// closes the connection.
	OnConnect func(ctx context.Context, c *Client) error
	// OnMessage takes one message. It must not block and must not publish: it runs on the goroutine that reads the connection. ack
	// tells the broker that the message was taken; call it at most once, from any goroutine. payload belongs to the receiver.
	OnMessage func(topic string, payload []byte, ack func())
	// OnDown is called when an attempt failed or a connection ended; err is a *DownError.
	OnDown func(err error)

	Log *slog.Logger
}

func (cfg Config) validate() (host string, err error) {
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil:
		return "", fmt.Errorf("mqtt: broker url: %w", err)
	case !slices.Contains([]string{"ssl", "tls", "mqtts"}, u.Scheme) || u.Hostname() == "" || u.Port() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "":
		return "", fmt.Errorf("mqtt: broker url %q: want ssl://host:port", cfg.URL)
	case cfg.ClientID == "":
		return "", errors.New("mqtt: want a client id")
	case cfg.TLS == nil:
		return "", errors.New("mqtt: want credentials for mutual TLS")
	}
	return u.Host, nil
}

// Client is a connection that reconnects while Run runs. It is safe for concurrent use.
type Client struct {
	cfg     Config
	host    string // host:port
	cur     atomic.Pointer[session]
	renewed atomic.Uint64 // calls of Renew
	wake    chan struct{} // holds one: Renew ends a pause
}

// session is one connection from login to loss.
type session struct {
	ctx  context.Context // ends with the connection; its cause says why
	lost context.CancelCauseFunc
	cl   paho.Client

	answered atomic.Int64 // when the broker last answered, in Unix nanoseconds
}

// errRenew ends a session in order to reconnect.
var errRenew = errors.New("reconnecting with new credentials")

// New returns a Client that does nothing until Run.
func New(cfg Config) (*Client, error) {
	host, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	setDefault(&cfg.KeepAlive, 30*time.Second)
	setDefault(&cfg.ConnectTimeout, 15*time.Second)
	setDefault(&cfg.MinBackoff, time.Second)
	setDefault(&cfg.MaxBackoff, time.Minute)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
	}
	return &Client{cfg: cfg, host: host, wake: make(chan struct{}, 1)}, nil
}

func setDefault(d *time.Duration, to time.Duration) {
	if *d == 0 {
		*d = to
	}
}

// Run connects, and again after every loss, until ctx ends; then it says goodbye to the broker (no will) and returns nil.
func (c *Client) Run(ctx context.Context) error {
	pause := backoff.Pause{Min: c.cfg.MinBackoff, Max: c.cfg.MaxBackoff}
	refusals := 0 // in a row
	for {
		up, err := c.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errRenew) {
			c.cfg.Log.InfoContext(ctx, "broker connection restored", logging.Addr, c.host, "up", up.Round(time.Millisecond))
			continue
		}
		// A broker that takes us and drops us at once is as good as down: a connection shortens the back-off only by the time that it lasted.
		if pause.Lasted(up); up > c.cfg.MaxBackoff {
			pause.Reset()
		}
		if refusals++; !refused(err) {
			refusals = 0
		}
		pause.Max = longest(c.cfg.MaxBackoff, refusals)
		wait := pause.Next(nil)
		c.cfg.Log.WarnContext(ctx, "broker connection down", logging.Addr, c.host, logging.Err, err, "up", up.Round(time.Millisecond), "retry_in",
			wait.Round(time.Millisecond))
		if c.cfg.OnDown != nil {
			c.cfg.OnDown(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-time.After(wait):
		}
	}
}

// A broker that refuses who we are may have lost its database for a while. After patientRefusals in a row, about a quarter of an hour, it means
// us, and nothing but new credentials or an operator changes that: the longest pause is refusedFactor times MaxBackoff.
const (
	patientRefusals = 20
	refusedFactor   = 10
)

// longest returns the longest pause after that many refusals in a row.
func longest(usual time.Duration, refusals int) time.Duration {
	if refusals > patientRefusals {
		return refusedFactor * usual
	}
	return usual
}

// refused reports whether the broker knows us and does not take us.
func refused(err error) bool {
	down, ok := errors.AsType[*DownError](err)
	return ok && slices.Contains([]Reason{OwnCertificate, NotAuthorised, ClientID}, down.Reason)
}

// once is one connection, from dialling to its end. up is how long it served; err is a *DownError unless ctx ended.
func (c *Client) once(ctx context.Context) (up time.Duration, err error) {
	renewed := c.renewed.Load() // before the credentials
	conn, creds, err := c.dial(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	sctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	s := &session{ctx: sctx, lost: lost, cl: paho.NewClient(c.options(&watched{conn, lost}, lost))}
	if err := c.login(sctx, s, conn, creds); err != nil {
		return 0, err
	}
	since := time.Now()
	s.answered.Store(since.UnixNano())
	c.cur.Store(s)
	defer c.cur.CompareAndSwap(s, nil)
	var probing sync.WaitGroup
	defer probing.Wait()
	defer lost(nil)
	if c.cfg.ProbeEvery > 0 {
		probing.Go(func() { c.probe(s) })
	}
	if c.renewed.Load() != renewed { // while it was made: Renew may not have seen it
		s.cl.Disconnect(goodbye)
		return 0, errRenew
	}
	c.cfg.Log.InfoContext(ctx, "broker connection up", logging.Addr, c.host)
	if c.cfg.OnConnect != nil {
		if err := c.cfg.OnConnect(sctx, c); err != nil && sctx.Err() == nil {
			s.cl.Disconnect(goodbye)
			return time.Since(since), c.down("subscribe", err)
		}
	}
	<-sctx.Done()
	if ctx.Err() != nil {
		s.cl.Disconnect(goodbye)
		return time.Since(since), ctx.Err()
	}
	if err := context.Cause(sctx); errors.Is(err, errRenew) {
		s.cl.Disconnect(goodbye) // the broker publishes no will
		return time.Since(since), err
	}
	return time.Since(since), c.down("session", context.Cause(sctx))
}

// Renew ends the connection politely, without its will, or the pause before the next, and makes Run open another at once, because Config.TLS has other credentials now: a
// session must not outlive the certificate that it began with. It returns before that is done; without a connection it does nothing.
func (c *Client) Renew() {
	c.renewed.Add(1)
	if s := c.cur.Load(); s != nil {
		s.lost(errRenew)
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// watched ends the session when reading fails, even if the library ignores that: a loss during its own set-up must not go unnoticed.
type watched struct {
	net.Conn
	lost context.CancelCauseFunc
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	switch {
	case errors.Is(err, net.ErrClosed): // by the library, which is about to say why
		time.AfterFunc(time.Second, func() { w.lost(err) })
	case err != nil:
		w.lost(err)
	}
	return n, err
}

// goodbye is how long, in milliseconds, DISCONNECT may take to get out.
const goodbye = 250

// dial opens the TCP and TLS connection. In TLS 1.3 the server's verdict on our certificate comes later, in login.
func (c *Client) dial(ctx context.Context) (*tls.Conn, *tls.Config, error) {
	cfg, err := c.cfg.TLS()
	if err != nil {
		return nil, nil, c.down("credentials", err)
	}
	cfg = cfg.Clone()
	host, port, _ := net.SplitHostPort(c.host) // validated by New
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	if port == "443" && cfg.NextProtos == nil {
		cfg.NextProtos = []string{"mqtt"}
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout)
	defer cancel()
	raw, err := c.cfg.Dial(ctx, "tcp", c.host)
	if err != nil {
		return nil, nil, c.down("dial", err)
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, nil, c.down("tls", err)
	}
	return conn, cfg, nil
}

func (c *Client) options(conn net.Conn, lost context.CancelCauseFunc) *paho.ClientOptions {
	o := paho.NewClientOptions().
		AddBroker("ssl://" + c.host).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) { return conn, nil }).
		SetClientID(c.cfg.ClientID).
		SetProtocolVersion(4).
		SetCleanSession(true).
		SetAutoReconnect(false). // Run does
		SetConnectRetry(false).
		SetKeepAlive(c.cfg.KeepAlive).
		SetPingTimeout(10 * time.Second).
		SetWriteTimeout(10 * time.Second).
		SetConnectTimeout(c.cfg.ConnectTimeout).
		SetAutoAckDisabled(true).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { c.receive(m) }).
		SetConnectionLostHandler(func(_ paho.Client, err error) { lost(err) })
	if c.cfg.Will != nil {
		if w := c.cfg.Will(); w != nil {
			o.SetBinaryWill(w.Topic, w.Payload, w.QoS, false)
		}
	}
	return o
}

// login sends CONNECT and reads the broker's verdict.
func (c *Client) login(ctx context.Context, s *session, conn net.Conn, creds *tls.Config) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	tok := s.cl.Connect()
	<-tok.Done() // ends with ConnectTimeout at the latest
	if err := tok.Error(); err != nil {
		return c.down("login", explainLogin(err, creds))
	}
	return nil
}

// receive hands one message on. A panic in the receiver loses that message, not the process.
func (c *Client) receive(m paho.Message) {
	defer func() {
		if p := recover(); p != nil {
			c.cfg.Log.Error("message handler panicked", "topic", m.Topic(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if c.cfg.OnMessage == nil {
		m.Ack()
		return
	}
	c.cfg.OnMessage(m.Topic(), m.Payload(), m.Ack)
}

// Connected reports whether there is a connection now.
func (c *Client) Connected() bool { return c.cur.Load() != nil }

// probeTopic is a filter without subscribers. A broker answers its UNSUBSCRIBE all the same, whatever the client may do there.
const probeTopic = "kennel/probe"

// probe asks the broker something small over and over until the session ends. One question is under way at a time.
func (c *Client) probe(s *session) {
	for backoff.Sleep(s.ctx, c.cfg.ProbeEvery) == nil {
		if _, err := s.await(s.ctx, func() paho.Token { return s.cl.Unsubscribe(probeTopic) }); err == nil {
			s.answered.Store(time.Now().UnixNano())
		}
	}
}

// Answers returns nil while there is a connection whose broker answers: ErrDisconnected without one, and with ProbeEvery an error once the broker has
// not answered for three times as long, although the connection is up.
func (c *Client) Answers() error {
	s := c.cur.Load()
	if s == nil {
		return ErrDisconnected
	}
	last := time.Unix(0, s.answered.Load())
	if silent := time.Since(last); c.cfg.ProbeEvery > 0 && silent > 3*c.cfg.ProbeEvery {
		return errs.Coded(errs.Unavailable, "broker_silent", "%s is connected, but has not answered since %s", c.host, last.UTC().Format("15:04:05 UTC"))
	}
	return nil
}

// Publish sends one message and waits until it is written (QoS 0) or the broker has it (QoS 1), ctx ends, or the connection does. It
// fails at once with ErrDisconnected when there is no connection. An error leaves open whether the message arrived; payload must not be
// changed afterwards.
func (c *Client) Publish(ctx context.Context, topic string, qos byte, retained bool, payload []byte) error {
	if len(payload) > topics.MaxPayload {
		return errs.Coded(errs.Invalid, "too_large", "publish on %s: payload of %d bytes: want at most %d", topic, len(payload), topics.MaxPayload)
	}
	s := c.cur.Load()
	if s == nil {
		return fmt.Errorf("publish on %s: %w", topic, ErrDisconnected)
	}
	if _, err := s.await(ctx, func() paho.Token { return s.cl.Publish(topic, qos, retained, payload) }); err != nil {
		return fmt.Errorf("publish on %s: %w", topic, err)
	}
	return nil
}

// Post hands one message to the connection's writer, at QoS 0, and does not wait until it is written: for answers, many in a row, which are
// asked for again when they get lost. It fails at once with ErrDisconnected when there is no connection; when one has just ended it may take
// the library's write limit of 10 s to return, so that it belongs on a goroutine which may wait. payload must not be changed afterwards.
func (c *Client) Post(topic string, payload []byte) error {
	if len(payload) > topics.MaxPayload {
		return errs.Coded(errs.Invalid, "too_large", "post on %s: payload of %d bytes: want at most %d", topic, len(payload), topics.MaxPayload)
	}
	s := c.cur.Load()
	if s == nil {
		return fmt.Errorf("post on %s: %w", topic, ErrDisconnected)
	}
	if tok := s.cl.Publish(topic, 0, false, payload); ended(tok) && tok.Error() != nil {
		return fmt.Errorf("post on %s: %w: %w", topic, ErrDisconnected, tok.Error())
	}
	return nil
}

// ended reports whether the library is done with a token: before that it may still write its result.
func ended(tok paho.Token) bool {
	select {
	case <-tok.Done():
		return true
	default:
		return false
	}
}

// Subscribe asks for filters and checks that every one was granted; a refused one is errs.Denied.
func (c *Client) Subscribe(ctx context.Context, qos byte, filters ...string) error {
	s := c.cur.Load()
	if s == nil {
		return fmt.Errorf("subscribe to %v: %w", filters, ErrDisconnected)
	}
	ask := make(map[string]byte, len(filters))
	for _, f := range filters {
		ask[f] = qos
	}
	tok, err := s.await(ctx, func() paho.Token { return s.cl.SubscribeMultiple(ask, nil) })
	var refused []string
	if sub, ok := tok.(*paho.SubscribeToken); ok && ended(sub) {
		for f, granted := range sub.Result() {
			if granted > 2 { // 0x80
				refused = append(refused, f)
			}
		}
	}
	if len(refused) > 0 {
		slices.Sort(refused)
		return errs.Coded(errs.Denied, "subscription_refused", "the broker refused the subscription to %s", strings.Join(refused, ", "))
	}
	if err != nil {
		return fmt.Errorf("subscribe to %v: %w", filters, err)
	}
	return nil
}

// await makes a call and waits for its token, the end of ctx, or the end of the connection. The library blocks inside the call, for as
// long as its write limit, when the connection has just ended, and the token of a lost connection may never complete; so neither is waited
// for on the caller's goroutine. The one started here ends with that limit at the latest. The token is nil if the call did not return.
func (s *session) await(ctx context.Context, call func() paho.Token) (tok paho.Token, err error) {
	called := make(chan paho.Token, 1)
	go func() { called <- call() }()
	select {
	case tok = <-called:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.ctx.Done():
		return nil, s.gone()
	}
	select {
	case <-tok.Done():
	case <-ctx.Done():
		return tok, ctx.Err()
	case <-s.ctx.Done():
		return tok, s.gone()
	}
	if err := tok.Error(); errors.Is(err, paho.ErrNotConnected) {
		return tok, ErrDisconnected
	} else if err != nil {
		return tok, err
	}
	return tok, nil
}

func (s *session) gone() error { return fmt.Errorf("%w: %w", ErrDisconnected, context.Cause(s.ctx)) }
