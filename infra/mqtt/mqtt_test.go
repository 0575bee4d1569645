package mqtt_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

const (
	me   thing.ID = "vic:00e20100"
	long          = 10 * time.Second // for what must happen
)

// run runs a client and returns what it hears: each time it is up, and why it is down.
func run(t *testing.T, cfg mqtt.Config) (c *mqtt.Client, up chan bool, down chan *mqtt.DownError) {
	t.Helper()
	up, down = make(chan bool, 1000), make(chan *mqtt.DownError, 1000)
	cfg.MinBackoff, cfg.MaxBackoff = 10*time.Millisecond, 50*time.Millisecond
	then := cfg.OnConnect
	cfg.OnConnect = func(ctx context.Context, c *mqtt.Client) error {
		if then != nil {
			if err := then(ctx, c); err != nil {
				return err
			}
		}
		up <- true
		return nil
	}
	cfg.OnDown = func(err error) {
		if d, ok := errors.AsType[*mqtt.DownError](err); ok {
			down <- d
		} else {
			t.Errorf("OnDown got %T: %v", err, err)
		}
	}
	c, err := mqtt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return c, up, down
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	creds := func() (*tls.Config, error) { return &tls.Config{}, nil }
	for _, tc := range []struct {
		cfg  mqtt.Config
		want string
	}{
		{mqtt.Config{URL: "tcp://h:1883", ClientID: "x", TLS: creds}, "ssl://host:port"},
		{mqtt.Config{URL: "ssl://h", ClientID: "x", TLS: creds}, "ssl://host:port"},
		{mqtt.Config{URL: "ssl://:8883", ClientID: "x", TLS: creds}, "ssl://host:port"},
		{mqtt.Config{URL: "ssl://u:p@h:8883", ClientID: "x", TLS: creds}, "ssl://host:port"},
		{mqtt.Config{URL: "ssl://h:8883/path", ClientID: "x", TLS: creds}, "ssl://host:port"},
		{mqtt.Config{URL: "%", ClientID: "x", TLS: creds}, "url"},
		{mqtt.Config{URL: "ssl://h:8883", TLS: creds}, "client id"},
		{mqtt.Config{URL: "ssl://h:8883", ClientID: "x"}, "credentials"},
	} {
		if _, err := mqtt.New(tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.cfg.URL, err, tc.want)
		}
	}
}

// TestComesBack: a broker that restarts finds its clients again, with fresh credentials and will, and waiting calls end.
func TestComesBack(t *testing.T) {
	b := mqtttest.Start(t)
	var creds, wills atomic.Int64
	mine := b.Thing(t, me)
	c, up, down := run(t, mqtt.Config{
		URL: b.URL, ClientID: string(me),
		TLS: func() (*tls.Config, error) { creds.Add(1); return mine() },
		Will: func() *mqtt.Will {
			wills.Add(1)
			return &mqtt.Will{Topic: topics.UpTopic(me, topics.Status), Payload: []byte("gone")}
		},
		OnConnect: func(ctx context.Context, c *mqtt.Client) error {
			return c.Subscribe(ctx, 1, topics.ThingFilters(me)...)
		},
	})
	testwait.For(t, up, "first connection")
	for range 3 {
		b.Stop()
		if d := testwait.For(t, down, "the end"); d.Reason != mqtt.Lost || d.Step != "session" || d.Addr == "" {
			t.Errorf("%v (%s)", d, d.Reason)
		}
		for c.Connected() {
			time.Sleep(time.Millisecond)
		}
		began := time.Now()
		err := c.Publish(t.Context(), topics.UpTopic(me, topics.DAS), 1, false, nil)
		if !errors.Is(err, mqtt.ErrDisconnected) || errs.KindOf(err) != errs.Unavailable || time.Since(began) > 5*time.Second {
			t.Errorf("publish without a connection: %v after %v", err, time.Since(began))
		}
		if err := c.Subscribe(t.Context(), 1, "x"); !errors.Is(err, mqtt.ErrDisconnected) {
			t.Errorf("subscribe without a connection: %v", err)
		}
		if d := testwait.For(t, down, "an attempt"); d.Reason != mqtt.Unreachable || d.Step != "dial" {
			t.Errorf("%v (%s)", d, d.Reason)
		}
		b.Start(t)
		testwait.For(t, up, "the next connection")
		for len(down) > 0 {
			<-down
		}
		if err := c.Publish(t.Context(), topics.UpTopic(me, topics.DAS), 1, false, nil); err != nil {
			t.Error(err)
		}
	}
	if creds.Load() < 7 || wills.Load() != 4 {
		t.Errorf("%d credentials and %d wills for 4 connections and 3 failures", creds.Load(), wills.Load())
	}
	if err := c.Publish(t.Context(), topics.UpTopic(me, topics.DAS), 1, false, make([]byte, topics.MaxPayload+1)); errs.KindOf(err) != errs.Invalid {
		t.Errorf("too large: %v", err)
	}
}

// retries is a log that hands on how long the client waits before it tries again.
type retries struct {
	slog.Handler
	waits chan time.Duration
}

func (r retries) Handle(_ context.Context, rec slog.Record) error {
	rec.Attrs(func(a slog.Attr) bool {
		if a.Key == "retry_in" {
			r.waits <- a.Value.Duration()
		}
		return true
	})
	return nil
}

// TestAConnectionShortensTheWait: failures lengthen the wait before the next attempt, and a connection that ends shortens it by the time that it lasted.
func TestAConnectionShortensTheWait(t *testing.T) {
	b := mqtttest.Start(t)
	waits, up, fails := make(chan time.Duration, 1000), make(chan bool, 1000), 5
	c, err := mqtt.New(mqtt.Config{
		URL: b.URL, ClientID: string(me), TLS: b.Thing(t, me), MinBackoff: 10 * time.Millisecond, MaxBackoff: time.Hour,
		Log: slog.New(retries{slog.NewTextHandler(io.Discard, nil), waits}),
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if fails--; fails >= 0 {
				return nil, errors.New("no way")
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
		OnConnect: func(context.Context, *mqtt.Client) error { up <- true; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	for want := 10 * time.Millisecond; want <= 160*time.Millisecond; want *= 2 {
		if got := testwait.For(t, waits, "a failed attempt"); got < want/2 || got > want/2+want {
			t.Errorf("waits %v, want %v give or take a half", got, want)
		}
	}
	testwait.For(t, up, "a connection")
	time.Sleep(330 * time.Millisecond) // the connection lasts longer than the next wait, 320 ms
	b.Stop()
	if got := testwait.For(t, waits, "the end of the connection"); got > 15*time.Millisecond {
		t.Errorf("waits %v after a connection that lasted, want 10ms give or take a half", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRefusedSubscription: 0x80 is an error, and ends the connection when it is asked for at connect.
func TestRefusedSubscription(t *testing.T) {
	b := mqtttest.Start(t)
	_, _, down := run(t, mqtt.Config{URL: b.URL, ClientID: string(me), TLS: b.Thing(t, me), OnConnect: func(ctx context.Context, c *mqtt.Client) error {
		return c.Subscribe(ctx, 1, topics.ThingFilters(me)[0], "kennel/#")
	}})
	d := testwait.For(t, down, "the refusal")
	if d.Reason != mqtt.SubscribeRefused || d.Step != "subscribe" || !strings.Contains(d.Error(), "kennel/#") || strings.Contains(d.Error(), "down/+") {
		t.Errorf("%v (%s)", d, d.Reason)
	}
}

// TestPanickingReceiver: one message is lost, the connection stays.
func TestPanickingReceiver(t *testing.T) {
	b := mqtttest.Start(t)
	got := make(chan string, 10)
	c, up, down := run(t, mqtt.Config{
		URL: b.URL, ClientID: "kenneld-1", TLS: b.Cloud(t),
		OnConnect: func(ctx context.Context, c *mqtt.Client) error { return c.Subscribe(ctx, 1, "test") },
		OnMessage: func(_ string, payload []byte, ack func()) {
			defer ack()
			if string(payload) == "boom" {
				panic("boom")
			}
			got <- string(payload)
		},
	})
	testwait.For(t, up, "connection")
	for _, p := range []string{"boom", "fine"} {
		if err := c.Publish(t.Context(), "test", 1, false, []byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if p := testwait.For(t, got, "the next message"); p != "fine" || len(down) > 0 {
		t.Errorf("got %q", p)
	}
}

// TestReasons: every way not to connect has its own word.
func TestReasons(t *testing.T) {
	b := mqtttest.Start(t)
	good := b.Thing(t, me)
	at := func(now time.Time) func() (*tls.Config, error) {
		return func() (*tls.Config, error) {
			cfg, err := good()
			cfg.Time = func() time.Time { return now }
			return cfg, err
		}
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	go func() {
		for {
			c, err := plain.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 this is a mail server\r\n"))
			_ = c.Close()
		}
	}()
	strict, err := tls.Listen("tcp", "127.0.0.1:0", strictTLS(t, b)) // a broker whose TLS judges, as Mosquitto and AWS do
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	go func() {
		for {
			c, err := strict.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			_ = c.Close()
		}
	}()
	for name, tc := range map[string]struct {
		url, server string
		tls         func() (*tls.Config, error)
		step        string
		want        mqtt.Reason
	}{
		"no credentials":    {b.URL, "", func() (*tls.Config, error) { return nil, errors.New("no such file") }, "credentials", mqtt.Credentials},
		"no such name":      {"ssl://broker.invalid:8883", "", good, "dial", mqtt.NameLookup},
		"nobody there":      {"ssl://127.0.0.1:1", "", good, "dial", mqtt.Unreachable},
		"another protocol":  {"ssl://" + plain.Addr().String(), "", good, "tls", mqtt.Protocol},
		"unknown root":      {b.URL, "", func() (*tls.Config, error) { return &tls.Config{RootCAs: x509.NewCertPool()}, nil }, "tls", mqtt.ServerCertificate},
		"wrong server name": {b.URL, "elsewhere.example", good, "tls", mqtt.ServerCertificate},
		"certificate alert": {"ssl://" + strict.Addr().String(), "", b.With(mqtttest.NewCA(t, "Foreign CA").Issue(t, string(me))), "login", mqtt.OwnCertificate},
		"server expired":    {b.URL, "", at(time.Now().Add(48 * time.Hour)), "tls", mqtt.ServerCertificate},
	} {
		t.Run(name, func(t *testing.T) {
			creds := func() (*tls.Config, error) {
				cfg, err := tc.tls()
				if tc.server != "" {
					cfg.ServerName = tc.server
				}
				return cfg, err
			}
			_, _, down := run(t, mqtt.Config{URL: tc.url, ClientID: string(me), TLS: creds})
			if d := testwait.For(t, down, "a reason"); d.Reason != tc.want || d.Step != tc.step || d.Advice == "" && d.Reason != mqtt.Protocol {
				t.Errorf("%v (%s at %s), want %s at %s", d, d.Reason, d.Step, tc.want, tc.step)
			}
		})
	}
}

func strictTLS(t *testing.T, b *mqtttest.Broker) *tls.Config {
	t.Helper()
	clients := x509.NewCertPool()
	clients.AddCert(b.Device.Cert)
	return &tls.Config{Certificates: []tls.Certificate{b.Server.Issue(t, "localhost")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
}

// TestRenew: a connection is made again with the credentials of the moment, at once, without its will, and no loss is reported.
func TestRenew(t *testing.T) {
	b := mqtttest.Start(t)
	heard := make(chan string, 100)
	_, cloudUp, _ := run(t, mqtt.Config{URL: b.URL, ClientID: "kenneld-1", TLS: b.Cloud(t),
		OnConnect: func(ctx context.Context, c *mqtt.Client) error { return c.Subscribe(ctx, 1, topics.UpTopic(me, "+")) },
		OnMessage: func(_ string, payload []byte, ack func()) { ack(); heard <- string(payload) },
	})
	testwait.For(t, cloudUp, "the cloud")
	var creds atomic.Int64
	var client atomic.Pointer[mqtt.Client]
	mine := b.Thing(t, me)
	c, up, down := run(t, mqtt.Config{
		URL: b.URL, ClientID: string(me),
		TLS: func() (*tls.Config, error) {
			if creds.Add(1) == 3 { // while the second renewal is under way there is yet another certificate
				client.Load().Renew()
			}
			return mine()
		},
		Will: func() *mqtt.Will {
			return &mqtt.Will{Topic: topics.UpTopic(me, topics.Status), Payload: []byte("gone")}
		},
	})
	client.Store(c)
	testwait.For(t, up, "first connection")
	for i, want := range []int64{2, 4} {
		began := time.Now()
		c.Renew()
		testwait.For(t, up, "the next connection")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("renewal %d took %v", i, took)
		}
		if got := creds.Load(); got != want {
			t.Errorf("renewal %d: credentials were asked for %d times, want %d", i, got, want)
		}
	}
	if err := c.Publish(t.Context(), topics.UpTopic(me, topics.Status), 1, false, []byte("here")); err != nil {
		t.Fatal(err)
	}
	if got := testwait.For(t, heard, "a message"); got != "here" {
		t.Errorf("the cloud heard %q before %q: a will was published", got, "here")
	}
	if len(down) > 0 || len(up) > 0 {
		t.Errorf("%d losses told and %d more connections, want none", len(down), len(up))
	}
}

// frozen is a connection whose far side can be stopped: what it sends no longer arrives, and nothing is closed.
type frozen struct {
	net.Conn
	stop *atomic.Bool
}

func (f frozen) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	for f.stop.Load() {
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

// TestSilentBroker (issue 16, finding 6): a broker that does not answer shows although the connection is up; the same connection continues when it answers again.
func TestSilentBroker(t *testing.T) {
	b := mqtttest.Start(t)
	var stop atomic.Bool
	c, up, _ := run(t, mqtt.Config{URL: b.URL, ClientID: string(me), TLS: b.Thing(t, me), ProbeEvery: 100 * time.Millisecond,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return frozen{conn, &stop}, err
		}})
	if err := c.Answers(); !errors.Is(err, mqtt.ErrDisconnected) && err != nil {
		t.Errorf("before the connection: %v", err)
	}
	testwait.For(t, up, "a connection")
	testwait.Until(t, long, "an answer", c.Answers)
	stop.Store(true)
	testwait.Until(t, long, "silence that shows", func() error {
		if err := c.Answers(); errs.CodeOf(err) != "broker_silent" || !strings.Contains(err.Error(), "has not answered since") {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	if !c.Connected() {
		t.Error("the connection ended")
	}
	stop.Store(false)
	testwait.Until(t, long, "an answer again", c.Answers)
}
