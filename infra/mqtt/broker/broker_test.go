package broker_test

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/broker"
	"kennel/infra/mqtt/brokeradmin/brokeradmintest"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

const (
	me    thing.ID = "vic:00e20100"
	other thing.ID = "vic:00e20101"
	long           = 10 * time.Second // for what must happen
)

type message struct{ topic, payload string }

// client is a connected client with what it received.
type client struct {
	*mqtt.Client
	got  chan message
	down chan *mqtt.DownError
	stop func()
}

// start runs a client that subscribes to filters. It does not wait for the connection.
func start(t *testing.T, b *mqtttest.Broker, id string, creds func() (*tls.Config, error), will *mqtt.Will,
	filters ...string) (*client, <-chan struct{}) {
	t.Helper()
	c := &client{got: make(chan message, 1000), down: make(chan *mqtt.DownError, 1000)}
	up := make(chan struct{}, 1000)
	var err error
	c.Client, err = mqtt.New(mqtt.Config{
		URL: b.URL, ClientID: id, TLS: creds, MinBackoff: 5 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
		Will: func() *mqtt.Will { return will },
		OnConnect: func(ctx context.Context, c *mqtt.Client) error {
			if len(filters) > 0 {
				if err := c.Subscribe(ctx, 1, filters...); err != nil {
					return err
				}
			}
			up <- struct{}{}
			return nil
		},
		OnMessage: func(topic string, payload []byte, ack func()) { ack(); c.got <- message{topic, string(payload)} },
		OnDown: func(err error) {
			var d *mqtt.DownError
			if !errors.As(err, &d) {
				t.Errorf("OnDown got %T: %v", err, err)
				return
			}
			c.down <- d
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	c.stop = func() { cancel(); <-done }
	t.Cleanup(c.stop)
	return c, up
}

func connect(t *testing.T, b *mqtttest.Broker, id string, creds func() (*tls.Config, error), will *mqtt.Will, filters ...string) *client {
	t.Helper()
	c, up := start(t, b, id, creds, will, filters...)
	testwait.For(t, up, id+" connected")
	return c
}

// refusals returns what the broker says about refused clients.
func refusals(t *testing.T, b *mqtttest.Broker) func(code string) brokerapi.Refusal {
	t.Helper()
	c := connect(t, b, "kenneld-doctor", b.Cloud(t), nil, brokerapi.RefusedTopic)
	return func(code string) brokerapi.Refusal {
		t.Helper()
		r, err := brokerapi.ParseRefusal([]byte(testwait.For(t, c.got, "refusal "+code).payload))
		if err != nil || r.Code != code || r.Reason == "" || r.Addr == "" {
			t.Errorf("got %+v, %v, want code %s", r, err, code)
		}
		return r
	}
}

// TestStrangersDrownNoRobot (issue 16): of many clients without a certificate a few are told of, and a robot that is refused beside them still is.
func TestStrangersDrownNoRobot(t *testing.T) {
	b := mqtttest.Start(t)
	heard := connect(t, b, "kenneld-doctor", b.Cloud(t), nil, brokerapi.RefusedTopic)
	for range 150 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.URL, "ssl://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, conn) // until the broker hangs up
		conn.Close()
	}
	start(t, b, string(other), b.Thing(t, me), nil) // with another's certificate
	strangers := 0
	for {
		r, err := brokerapi.ParseRefusal([]byte(testwait.For(t, heard.got, "refusal").payload))
		if err != nil {
			t.Fatal(err)
		}
		if r.CN != "" {
			if r.Code != brokerapi.CodeClientID || r.Muted != 0 {
				t.Errorf("%+v, want the robot's, and none of its kind held back", r)
			}
			break
		}
		strangers++
	}
	if strangers == 0 || strangers > 60 {
		t.Errorf("told of %d strangers, want some 50 of 150", strangers)
	}
}

// TestForbiddenPublish is issue 2, "what must hold" 5, writing: every class and name of another thing, and everything else that is not a
// thing's own to say. The connection ends, the reason is told, and no client receives a byte.
func TestForbiddenPublish(t *testing.T) {
	b := mqtttest.Start(t)
	reason := refusals(t, b)
	cloud := connect(t, b, "kenneld-all", b.Cloud(t), nil, "kennel/#", "other/#", brokerapi.KickTopic)
	victim := connect(t, b, string(other), b.Thing(t, other), nil, topics.ThingFilters(other)...)
	mine := b.Thing(t, me)

	attacker, up := start(t, b, string(me), mine, nil)
	for _, topic := range brokeradmintest.ForbiddenTopics(me, other) {
		for qos := range byte(2) {
			testwait.For(t, up, "attacker connected")
			err := attacker.Publish(t.Context(), topic, qos, false, []byte("forbidden"))
			if qos == 1 && err == nil {
				t.Errorf("QoS 1 publish on %q was acknowledged", topic)
			}
			if d := testwait.For(t, attacker.down, "end of the connection after "+topic); d.Reason != mqtt.Lost {
				t.Errorf("%q: %v", topic, d)
			}
			if r := reason(brokerapi.CodePublish); !strings.Contains(r.Reason, topic) || r.ClientID != string(me) || r.CN != string(me) {
				t.Errorf("%q: refusal %+v", topic, r)
			}
		}
	}
	// Its own topics, but not like that.
	testwait.For(t, up, "attacker connected")
	_ = attacker.Publish(t.Context(), topics.UpTopic(me, topics.Status), 1, true, []byte("forbidden"))
	reason(brokerapi.CodePublish)
	testwait.For(t, up, "attacker connected")
	_ = attacker.Publish(t.Context(), topics.UpTopic(me, topics.Status), 2, false, []byte("forbidden"))
	reason(brokerapi.CodePublish)

	testwait.For(t, up, "attacker connected")
	if err := attacker.Publish(t.Context(), topics.UpTopic(me, topics.DAS), 1, false, []byte("allowed")); err != nil {
		t.Error(err)
	}
	if got, want := testwait.For(t, cloud.got, "the allowed message"), (message{topics.UpTopic(me, topics.DAS), "allowed"}); got != want {
		t.Errorf("the cloud got %v first, want %v", got, want)
	}
	if err := cloud.Publish(t.Context(), topics.DownTopic(other, topics.Ack), 1, false, []byte("allowed")); err != nil {
		t.Error(err)
	}
	if got := testwait.For(t, victim.got, "the allowed message"); got.payload != "allowed" {
		t.Errorf("the victim got %v", got)
	}
}

// TestForbiddenSubscribe is issue 2, "what must hold" 5, reading, retained messages included.
func TestForbiddenSubscribe(t *testing.T) {
	b := mqtttest.Start(t)
	cloud := connect(t, b, "kenneld-1", b.Cloud(t), nil)
	for _, id := range []thing.ID{me, other} {
		if err := cloud.Publish(t.Context(), topics.DownTopic(id, topics.Jdocs), 1, true, []byte("hint for "+id)); err != nil {
			t.Fatal(err)
		}
	}
	reason := refusals(t, b)
	var attacker *client
	var up <-chan struct{}
	for i, filter := range brokeradmintest.ForbiddenFilters(me, other) {
		if i%10 == 0 { // a client that keeps asking is disconnected
			if attacker != nil {
				attacker.stop()
			}
			attacker, up = start(t, b, string(me), b.Thing(t, me), nil)
			testwait.For(t, up, "attacker connected")
		}
		if err := attacker.Subscribe(t.Context(), 1, filter); errs.KindOf(err) != errs.Denied {
			t.Errorf("subscription to %q: %v", filter, err)
		}
		if r := reason(brokerapi.CodeSubscribe); !strings.Contains(r.Reason, filter) {
			t.Errorf("%q: refusal %+v", filter, r)
		}
		if len(attacker.got) > 0 {
			t.Errorf("%q brought %v", filter, <-attacker.got)
		}
	}
	if err := attacker.Subscribe(t.Context(), 1, topics.ThingFilters(me)...); err != nil {
		t.Fatal(err)
	}
	if got := testwait.For(t, attacker.got, "own hint"); got.payload != "hint for "+string(me) {
		t.Errorf("got %v", got)
	}
	for range 40 {
		_ = attacker.Subscribe(t.Context(), 1, "#")
	}
	testwait.For(t, attacker.down, "the end of a client that goes on asking")
}

// TestForbiddenWill: a last will is a publication too.
func TestForbiddenWill(t *testing.T) {
	b := mqtttest.Start(t)
	reason := refusals(t, b)
	for _, topic := range []string{topics.UpTopic(other, topics.Status), topics.DownTopic(me, topics.Ack), topics.DownTopic(other, topics.Ack),
		brokerapi.KickTopic} {
		c, _ := start(t, b, string(me), b.Thing(t, me), &mqtt.Will{Topic: topic, Payload: []byte("forbidden")})
		if d := testwait.For(t, c.down, "refusal of a will on "+topic); d.Reason != mqtt.NotAuthorised {
			t.Errorf("%q: %v", topic, d)
		}
		c.stop()
		if r := reason(brokerapi.CodeWill); !strings.Contains(r.Reason, topic) {
			t.Errorf("%q: %+v", topic, r)
		}
		for len(c.down) > 0 { // attempts before stop
			<-c.down
			reason(brokerapi.CodeWill)
		}
	}
}

// exponent3 returns an RSA key as no program of today makes one.
func exponent3(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	text, err := os.ReadFile("../../../certs/testdata/rsa3.pem")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*rsa.PrivateKey)
}

// TestRefusedClients is issue 2, "what must hold" 5: who is not let in learns it, and the cloud learns why.
func TestRefusedClients(t *testing.T) {
	b := mqtttest.Start(t)
	reason := refusals(t, b)
	foreign := mqtttest.NewCA(t, "Foreign CA")
	past := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	future := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }
	for name, tc := range map[string]struct {
		clientID string
		certs    []tls.Certificate
		want     mqtt.Reason
		code     string
		says     string
	}{
		"no certificate":        {string(me), nil, mqtt.NotAuthorised, brokerapi.CodeNoCertificate, "device authority"},
		"foreign certificate":   {string(me), []tls.Certificate{foreign.Issue(t, string(me))}, mqtt.NotAuthorised, brokerapi.CodeForeign, "Foreign CA"},
		"expired":               {string(me), []tls.Certificate{b.Device.Issue(t, string(me), past)}, mqtt.NotAuthorised, brokerapi.CodeExpired, "expired at"},
		"not yet valid":         {string(me), []tls.Certificate{b.Device.Issue(t, string(me), future)}, mqtt.NotAuthorised, brokerapi.CodeNotYetValid, "valid from"},
		"another's client id":   {string(other), []tls.Certificate{b.Device.Issue(t, string(me))}, mqtt.ClientID, brokerapi.CodeClientID, string(me)},
		"a service's client id": {"kenneld-1", []tls.Certificate{b.Device.Issue(t, string(me))}, mqtt.ClientID, brokerapi.CodeClientID, string(me)},
		"service of device CA":  {"kenneld-1", []tls.Certificate{b.Device.Issue(t, "kenneld")}, mqtt.NotAuthorised, brokerapi.CodeForeign, "service authority"},
		"thing of service CA":   {string(me), []tls.Certificate{b.Service.Issue(t, string(me))}, mqtt.NotAuthorised, brokerapi.CodeForeign, "device authority"},
		"service as a thing":    {string(me), []tls.Certificate{b.Service.Issue(t, "kenneld")}, mqtt.ClientID, brokerapi.CodeClientID, "kenneld"},
		"name of nobody":        {"x", []tls.Certificate{b.Device.Issue(t, "x")}, mqtt.NotAuthorised, brokerapi.CodeBadName, "species:serial"},
		"RSA with exponent 3":   {string(me), []tls.Certificate{b.Device.IssueFor(t, string(me), exponent3(t))}, mqtt.NotAuthorised, brokerapi.CodeWeakKey, "exponent 3"},
		"server certificate only": {string(me),
			[]tls.Certificate{b.Device.Issue(t, string(me),
				func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })}, mqtt.NotAuthorised,
			brokerapi.CodeForeign, "usage"},
	} {
		t.Run(name, func(t *testing.T) {
			c, up := start(t, b, tc.clientID, b.With(tc.certs...), nil)
			d := testwait.For(t, c.down, "a refusal")
			c.stop()
			if d.Reason != tc.want || d.Step != "login" || len(up) > 0 {
				t.Errorf("client: %v (%s), want %s", d, d.Reason, tc.want)
			}
			if r := reason(tc.code); r.ClientID != tc.clientID || !strings.Contains(r.Reason, tc.says) {
				t.Errorf("refusal %+v, want client id %q and %q", r, tc.clientID, tc.says)
			} else if len(tc.certs) > 0 { // what it showed is told, whatever became of it
				leaf := tc.certs[0].Leaf
				got, want := [4]any{r.CN, r.Issuer, r.Serial, r.NotAfter.UTC()}, [4]any{leaf.Subject.CommonName, leaf.Issuer.CommonName,
					leaf.SerialNumber.Text(16), leaf.NotAfter.UTC()}
				if got != want {
					t.Errorf("refusal has certificate %v, want %v", got, want)
				}
			} else if r.Serial != "" || !r.NotAfter.IsZero() {
				t.Errorf("refusal %+v has a certificate that nobody showed", r)
			}
			for len(c.down) > 0 {
				<-c.down
				reason(tc.code)
			}
		})
	}
}

// TestClientDistrustsBroker: the robot lacks our root; both sides can say so.
func TestClientDistrustsBroker(t *testing.T) {
	b := mqtttest.Start(t)
	reason := refusals(t, b)
	creds := func() (*tls.Config, error) { return &tls.Config{RootCAs: x509.NewCertPool()}, nil }
	c, _ := start(t, b, string(me), creds, nil)
	d := testwait.For(t, c.down, "distrust")
	if d.Reason != mqtt.ServerCertificate || !strings.Contains(d.Error(), "Test Server CA") {
		t.Errorf("client: %v (%s)", d, d.Reason)
	}
	c.stop()
	if r := reason(brokerapi.CodeTLS); !strings.Contains(r.Reason, "certificate") {
		t.Errorf("refusal %+v", r)
	}
}

// TestRawStrangers: what is not TLS, not MQTT, or too large ends with a reason, and the broker lives on.
func TestRawStrangers(t *testing.T) {
	b := mqtttest.Start(t)
	reason := refusals(t, b)
	raw, err := net.Dial("tcp", b.Config.Listen)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = raw.Write([]byte("\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00")) // MQTT without TLS
	reason(brokerapi.CodeTLS)
	_ = raw.Close()

	dial := func() *tls.Conn {
		cfg, _ := b.Thing(t, me)()
		cfg.ServerName = "localhost"
		c, err := tls.Dial("tcp", b.Config.Listen, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := dial()
	_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	if r := reason(brokerapi.CodeProtocol); r.CN != string(me) {
		t.Errorf("refusal %+v", r)
	}
	connectPacket := func(level byte) []byte {
		p := append([]byte{0, 4, 'M', 'Q', 'T', 'T', level, 2, 0, 60}, byte(0), byte(len(me)))
		if level == 5 {
			p = append([]byte{0, 4, 'M', 'Q', 'T', 'T', level, 2, 0, 60, 0}, byte(0), byte(len(me)))
		}
		p = append(p, me...)
		return append([]byte{0x10, byte(len(p))}, p...)
	}
	c = dial()
	_, _ = c.Write(connectPacket(5))
	reason(brokerapi.CodeProtocol)

	connack := make([]byte, 4)
	c = dial()
	_, _ = c.Write([]byte("\x10\x11\x00\x04MQTT\x04\x06\x00\x3c\x00\x00\x00\x01t\x00\x00")) // a will without a payload
	if _, err := c.Read(connack); err != nil || string(connack) != "\x20\x02\x00\x01" {
		t.Errorf("CONNACK % x, %v: want a code that 3.1.1 knows", connack, err)
	}
	reason(brokerapi.CodeProtocol)

	c = dial()
	_, _ = c.Write(connectPacket(4))
	if _, err := c.Read(connack); err != nil || string(connack) != "\x20\x02\x00\x00" {
		t.Fatalf("CONNACK % x, %v", connack, err)
	}
	_, _ = c.Write([]byte{0x30, 0xff, 0xff, 0xff, 0x7f}) // a PUBLISH of 256 MB
	if r := reason(brokerapi.CodePublish); !strings.Contains(r.Reason, "larger than") {
		t.Errorf("refusal %+v", r)
	}
	connect(t, b, string(me), b.Thing(t, me), nil)
}

// TestStats: the broker says how it is.
func TestStats(t *testing.T) {
	b := mqtttest.Start(t)
	cloud := connect(t, b, "kenneld-1", b.Cloud(t), nil, brokerapi.StatsTopic)
	if s, err := brokerapi.ParseStats([]byte(testwait.For(t, cloud.got, "stats").payload)); err != nil || s.StartedUnix == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	b := mqtttest.New(t)
	ln, err := net.Listen("tcp", b.Config.Listen)
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Run(t.Context(), b.Config, nil); err == nil || !strings.Contains(err.Error(), b.Config.Listen) {
		t.Errorf("address in use: %v", err)
	}
	_ = ln.Close()
	bad := b.Config
	bad.DeviceCA = bad.Key
	if err := broker.Run(t.Context(), bad, nil); err == nil || !strings.Contains(err.Error(), bad.DeviceCA) {
		t.Errorf("bundle without certificates: %v", err)
	}
	file := b.ConfigFile(t)
	if got, err := broker.ReadConfig(file); err != nil || got.Listen != b.Config.Listen {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.WriteFile(file, []byte(`{"listen":"x:1","plain":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.ReadConfig(file); err == nil || !strings.Contains(err.Error(), "plain") || !strings.Contains(err.Error(), file) {
		t.Errorf("unknown key: %v", err)
	}
	if block, _ := pem.Decode(b.Device.PEM()); block == nil {
		t.Error("no PEM")
	}
}
