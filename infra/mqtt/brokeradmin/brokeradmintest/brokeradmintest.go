// Package brokeradmintest tests the behaviour that every broker must show with its Admin: which clients it accepts, which topics a thing
// may use, sessions that end on an order. It also holds the tables of topics forbidden to a thing (VEC-FLE-01).
package brokeradmintest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/queue"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

// ForbiddenTopics returns the topics that me may not publish on: every class and name of another thing, and all topics that no thing may publish on.
func ForbiddenTopics(me, other thing.ID) []string {
	var out []string
	for _, name := range []string{topics.Status, topics.DAS, topics.OTA} {
		out = append(out, topics.UpTopic(other, name))
	}
	for _, name := range []string{topics.Ack, topics.Jdocs, topics.OTA, topics.Cmd, topics.Intent} {
		out = append(out, topics.DownTopic(other, name), topics.DownTopic(me, name))
	}
	mine := "kennel/" + string(me)
	return append(out, topics.ResTopic(other, "1"), topics.ResTopic(me, "1"), topics.ReqTopic(other, "jdocs", "write"),
		brokerapi.RefusedTopic, brokerapi.KickTopic, brokerapi.DenyTopic, brokerapi.StatsTopic, "other/topic", "kennel", mine, mine+"/up", mine+"/up/a/b",
		"/"+mine+"/up/das", "$share/kennel/kennel/"+string(other)+"/up/das")
}

// ForbiddenFilters returns the filters that me may not subscribe to.
func ForbiddenFilters(me, other thing.ID) []string {
	m, o := string(me), string(other)
	return append([]string{
		"#", "+/#", "kennel/#", "kennel/+/+/+", "kennel/+/down/jdocs", "kennel/+/down/+", "+/" + o + "/down/jdocs", "kennel/" + o + "/#",
		"kennel/" + o + "/down/jdocs", "kennel/" + o + "/down/+", "kennel/" + o + "/res/+", "kennel/" + o + "/up/das", "kennel/" + o + "/req/+/+",
		"kennel/" + m + "/#", "kennel/" + m + "/+/+", "kennel/" + m + "/up/das",
		"$share/kennel/kennel/+/up/+", "$share/x/kennel/" + o + "/down/+", "$SHARE/x/kennel/" + o + "/down/+", "$share/x/kennel/" + m + "/down/+",
		"$SYS/#", "$SYS/broker/clients/connected", "$kennel/#", brokerapi.RefusedTopic, brokerapi.StatsTopic, brokerapi.KickTopic, brokerapi.DenyTopic,
		"$CONTROL/#", "$CONTROL/dynamic-security/v1/response",
	}, topics.CloudFilters()...)
}

// Things of the suite.
const (
	Me    thing.ID = "vic:00e20100"
	Other thing.ID = "vic:00e20101"
)

const long = 15 * time.Second // limit for events that must happen

// Broker is a running broker under test.
type Broker struct {
	Things   *mqtttest.Broker // authorities, and the robots' address
	Services *mqtttest.Broker // authorities, and the services' address
	// Admin runs, if it needs to; Me and Other may use the broker.
	Admin brokeradmin.Admin

	Stop, Start func()

	// Uplink returns one more reader of the broker's queue of uplink messages; nil: the cloud joins a shared subscription by MQTT.
	Uplink func(t *testing.T) Uplink

	// Where brokers may differ.
	EndsForbidden bool // a forbidden PUBLISH ends the connection; else it is dropped, and acknowledged
	SaysWill      bool // the will of a kicked thing is published
	BlockedLogsIn bool // a blocked thing may log in, and do nothing; else the login is refused
	RenamesClient bool // a foreign client id is replaced by the certificate's name; else the login is refused
	OneRefusal    bool // every refused login has the same code of MQTT's, "not authorised"
}

// Uplink is a queue that a broker fills itself.
type Uplink interface {
	queue.Source
	// Hearing blocks until what robots publish is kept.
	Hearing(ctx context.Context) error
}

type message struct{ topic, payload string }

// link is a reconnecting client with the messages that it received.
type link struct {
	*mqtt.Client
	got  chan message
	up   chan bool
	down chan *mqtt.DownError
	stop func()
}

func dial(t *testing.T, at *mqtttest.Broker, id string, creds func() (*tls.Config, error), filters ...string) *link {
	t.Helper()
	l := &link{got: make(chan message, 1000), up: make(chan bool, 1000), down: make(chan *mqtt.DownError, 1000)}
	var err error
	l.Client, err = mqtt.New(mqtt.Config{
		URL: at.URL, ClientID: id, TLS: creds, MinBackoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
		OnConnect: func(ctx context.Context, c *mqtt.Client) error {
			if len(filters) > 0 {
				if err := c.Subscribe(ctx, 1, filters...); err != nil {
					return err
				}
			}
			l.up <- true
			return nil
		},
		OnMessage: func(topic string, payload []byte, ack func()) { ack(); l.got <- message{topic, string(payload)} },
		OnDown: func(err error) {
			if d, ok := errors.AsType[*mqtt.DownError](err); ok {
				l.down <- d
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	l.stop = func() { cancel(); <-done; done <- nil }
	t.Cleanup(l.stop)
	return l
}

func (b *Broker) thing(t *testing.T, id thing.ID, filters ...string) *link {
	t.Helper()
	l := dial(t, b.Things, string(id), b.Things.Thing(t, id), filters...)
	testwait.For(t, l.up, string(id)+" connected")
	return l
}

func (b *Broker) cloud(t *testing.T, name string, filters ...string) *link {
	t.Helper()
	l := dial(t, b.Services, "kenneld-"+name, b.Services.Cloud(t), filters...)
	testwait.For(t, l.up, name+" connected")
	return l
}

// member joins the cloud's group of consumers: each message of the fleet reaches one of them.
func (b *Broker) member(t *testing.T, name string) *link {
	t.Helper()
	if b.Uplink == nil {
		return b.cloud(t, name, topics.CloudFilters()...)
	}
	l := &link{got: make(chan message, 1000)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	source := b.Uplink(t)
	go func() {
		done <- source.Run(ctx, func(topic string, payload []byte) bool { l.got <- message{topic, string(payload)}; return true })
	}()
	l.stop = func() { cancel(); <-done; done <- nil }
	t.Cleanup(l.stop)
	limited, over := context.WithTimeout(t.Context(), long)
	defer over()
	if err := source.Hearing(limited); err != nil {
		t.Fatal(err)
	}
	return l
}

func publish(t *testing.T, l *link, topic, payload string) {
	t.Helper()
	if err := l.Publish(t.Context(), topic, 1, false, []byte(payload)); err != nil {
		t.Fatal(err)
	}
}

// Run shows a broker every demand. start is called once.
func Run(t *testing.T, start func(t *testing.T) *Broker) {
	b := start(t)
	b.ready(t)
	for _, tc := range []struct {
		name string
		f    func(*testing.T, *Broker)
	}{
		{"own topics", ownTopics}, {"forbidden publish", forbiddenPublish}, {"forbidden subscribe", forbiddenSubscribe}, {"forbidden will", forbiddenWill},
		{"refused clients", refusedClients}, {"foreign client id", foreignClientID}, {"shared group", sharedGroup}, {"kick", kick},
		{"block", block}, {"ready", ready},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.f(t, b) })
	}
}

// gone stops the broker, and waits until the administration has noticed.
func (b *Broker) gone(t *testing.T) {
	b.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	for b.Admin.Ready(ctx) == nil {
		time.Sleep(5 * time.Millisecond)
	}
}

// ready waits until the Admin is ready.
func (b *Broker) ready(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(long)
	for {
		err := b.Admin.Ready(t.Context())
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the broker does not become ready: %v", err)
		}
		time.Sleep(5 * time.Millisecond) // readiness is a question, not an event
	}
	if p, ok := b.Admin.(brokeradmin.Provisioner); ok {
		for range 2 { // repeating it changes nothing
			if err := p.Provision(t.Context(), Me, Other); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func ownTopics(t *testing.T, b *Broker) {
	cloud := b.cloud(t, "1", "kennel/#")
	me, other := b.thing(t, Me, topics.ThingFilters(Me)...), b.thing(t, Other, topics.ThingFilters(Other)...)
	for _, topic := range []string{topics.UpTopic(Me, topics.Status), topics.UpTopic(Me, topics.DAS), topics.UpTopic(Me, topics.OTA),
		topics.ReqTopic(Me, "jdocs", "read")} {
		publish(t, me, topic, "up")
		if got := testwait.For(t, cloud.got, topic); got != (message{topic, "up"}) {
			t.Errorf("%v", got)
		}
	}
	for _, topic := range []string{topics.DownTopic(Me, topics.Ack), topics.DownTopic(Me, topics.Intent), topics.ResTopic(Me, "1")} {
		publish(t, cloud, topic, "down")
		if got := testwait.For(t, me.got, topic); got != (message{topic, "down"}) {
			t.Errorf("%v", got)
		}
	}
	if len(other.got) > 0 {
		t.Errorf("another thing got %v", <-other.got)
	}
	publish(t, me, topics.UpTopic(Me, topics.DAS), string(make([]byte, topics.MaxPayload))) // the largest
	for m := range cloud.got {
		if len(m.payload) == topics.MaxPayload {
			break
		}
	}
	if err := me.Subscribe(t.Context(), 1, topics.DownTopic(Me, topics.Ack)); err != nil {
		t.Error(err)
	}
}

func forbiddenPublish(t *testing.T, b *Broker) {
	cloud := b.cloud(t, "all", "kennel/#", "other/#", "$kennel/broker/kick")
	victim := b.thing(t, Other, topics.ThingFilters(Other)...)
	attacker := b.thing(t, Me)
	for _, topic := range append(ForbiddenTopics(Me, Other), "$CONTROL/dynamic-security/v1") {
		for qos := range byte(2) {
			err := attacker.Publish(t.Context(), topic, qos, false, []byte("forbidden"))
			if !b.EndsForbidden {
				if err != nil {
					t.Errorf("%q: %v", topic, err)
				}
				continue
			}
			if qos == 1 && err == nil {
				t.Errorf("QoS 1 publish on %q was acknowledged", topic)
			}
			testwait.For(t, attacker.down, "end of the connection after "+topic)
			testwait.For(t, attacker.up, "attacker back")
		}
	}
	publish(t, attacker, topics.UpTopic(Me, topics.DAS), "allowed")
	if got := testwait.For(t, cloud.got, "the allowed message"); got.payload != "allowed" {
		t.Errorf("the cloud got %v first", got)
	}
	publish(t, cloud, topics.DownTopic(Other, topics.Ack), "allowed")
	if got := testwait.For(t, victim.got, "the allowed message"); got.payload != "allowed" {
		t.Errorf("the victim got %v first", got)
	}
}

func forbiddenSubscribe(t *testing.T, b *Broker) {
	cloud := b.cloud(t, "1")
	for _, id := range []thing.ID{Me, Other} {
		if err := cloud.Publish(t.Context(), topics.DownTopic(id, topics.Jdocs), 1, true, []byte("hint for "+id)); err != nil {
			t.Fatal(err)
		}
	}
	cloud.stop() // its retained messages stay valid
	var attacker *link
	for i, filter := range ForbiddenFilters(Me, Other) {
		if i%10 == 0 { // a client that keeps asking may be disconnected
			if attacker != nil {
				attacker.stop()
			}
			attacker = b.thing(t, Me)
		}
		if err := attacker.Subscribe(t.Context(), 1, filter); errs.KindOf(err) != errs.Denied {
			t.Errorf("subscription to %q: %v", filter, err)
		}
		if len(attacker.got) > 0 {
			t.Errorf("%q brought %v", filter, <-attacker.got)
		}
	}
	if err := attacker.Subscribe(t.Context(), 1, topics.ThingFilters(Me)...); err != nil {
		t.Fatal(err)
	}
	if got := testwait.For(t, attacker.got, "own hint"); got.payload != "hint for "+string(Me) {
		t.Errorf("got %v", got)
	}
	again := b.cloud(t, "2")
	for _, id := range []thing.ID{Me, Other} { // nothing retained is left for the next test
		if err := again.Publish(t.Context(), topics.DownTopic(id, topics.Jdocs), 1, true, nil); err != nil {
			t.Fatal(err)
		}
	}
	// A refused member of the cloud's group gets no share of it.
	member := b.member(t, "member")
	other := b.thing(t, Other)
	for i := range 20 {
		publish(t, other, topics.UpTopic(Other, topics.DAS), fmt.Sprint(i))
	}
	for i := range 20 {
		if got := testwait.For(t, member.got, fmt.Sprint("message ", i)); got.payload != fmt.Sprint(i) {
			t.Fatalf("got %v, want %d", got, i)
		}
	}
}

// forbiddenWill logs in with a raw CONNECT, because our client would say goodbye, and then breaks the connection.
func forbiddenWill(t *testing.T, b *Broker) {
	cloud := b.cloud(t, "all", "kennel/#", brokerapi.KickTopic)
	for _, topic := range []string{topics.UpTopic(Other, topics.Status), topics.DownTopic(Me, topics.Ack), topics.DownTopic(Other, topics.Ack),
		brokerapi.KickTopic,
		topics.UpTopic(Me, topics.Status)} { // the last is allowed
		conn := b.connect(t, b.Things, b.Things.Thing(t, Me), string(Me), topic)
		_, _ = packets.ReadPacket(conn) // the verdict, if there is one
		_ = conn.Close()
	}
	if got := testwait.For(t, cloud.got, "the allowed will"); got != (message{topics.UpTopic(Me, topics.Status), "will"}) {
		t.Errorf("the cloud got %v first", got)
	}
}

func (b *Broker) connect(t *testing.T, at *mqtttest.Broker, creds func() (*tls.Config, error), id, will string) *tls.Conn {
	t.Helper()
	cfg, err := creds()
	if err != nil {
		t.Fatal(err)
	}
	cfg.ServerName = "localhost"
	conn, err := tls.Dial("tcp", at.URL[len("ssl://"):], cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(long)); err != nil {
		t.Fatal(err)
	}
	p := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	p.ProtocolName, p.ProtocolVersion, p.CleanSession, p.Keepalive, p.ClientIdentifier = "MQTT", 4, true, 30, id
	if will != "" {
		p.WillFlag, p.WillTopic, p.WillMessage = true, will, []byte("will")
	}
	var buf bytes.Buffer
	if err := p.Write(&buf); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(buf.Bytes()); err != nil {
		t.Fatal(err)
	}
	return conn
}

func refusedClients(t *testing.T, b *Broker) {
	foreign := mqtttest.NewCA(t, "Foreign CA")
	past := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	future := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }
	servers := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	for name, tc := range map[string]struct {
		at    *mqtttest.Broker
		id    string
		certs []tls.Certificate
	}{
		"no certificate":                    {b.Things, string(Me), nil},
		"no certificate, as a service":      {b.Services, "kenneld-x", nil},
		"foreign certificate":               {b.Things, string(Me), []tls.Certificate{foreign.Issue(t, string(Me))}},
		"foreign certificate, as a service": {b.Services, "kenneld-x", []tls.Certificate{foreign.Issue(t, "kenneld")}},
		"expired":                           {b.Things, string(Me), []tls.Certificate{b.Things.Device.Issue(t, string(Me), past)}},
		"not yet valid":                     {b.Things, string(Me), []tls.Certificate{b.Things.Device.Issue(t, string(Me), future)}},
		"for servers only":                  {b.Things, string(Me), []tls.Certificate{b.Things.Device.Issue(t, string(Me), servers)}},
		"service of the device authority":   {b.Services, "kenneld-x", []tls.Certificate{b.Things.Device.Issue(t, "kenneld")}},
		"thing of the service authority":    {b.Things, string(Me), []tls.Certificate{b.Things.Service.Issue(t, string(Me))}},
	} {
		t.Run(name, func(t *testing.T) {
			l := dial(t, tc.at, tc.id, tc.at.With(tc.certs...))
			d := testwait.For(t, l.down, "a refusal")
			l.stop()
			if len(l.up) > 0 || d.Step != "login" || d.Reason != mqtt.OwnCertificate && d.Reason != mqtt.NotAuthorised && d.Reason != mqtt.Lost {
				t.Errorf("%v (%s)", d, d.Reason)
			}
		})
	}
	// A service's name gives a device certificate no rights, wherever it is accepted.
	cloud := b.cloud(t, "all", "kennel/#")
	l := dial(t, b.Things, "kenneld", b.Things.With(b.Things.Device.Issue(t, "kenneld")))
	select {
	case <-l.down:
	case <-l.up:
		_ = l.Publish(t.Context(), topics.DownTopic(Me, topics.Cmd), 1, false, []byte("forbidden"))
		if err := l.Subscribe(t.Context(), 1, "kennel/#"); errs.KindOf(err) != errs.Denied {
			t.Errorf("a device certificate called kenneld subscribes to everything: %v", err)
		}
	case <-time.After(long):
		t.Error("neither refused nor let in")
	}
	l.stop()
	me := b.thing(t, Me)
	publish(t, me, topics.UpTopic(Me, topics.DAS), "allowed")
	if got := testwait.For(t, cloud.got, "the allowed message"); got.payload != "allowed" {
		t.Errorf("the cloud got %v first", got)
	}
}

// foreignClientID: a thing that claims another's client id gets nothing by it, and the other keeps its session.
func foreignClientID(t *testing.T, b *Broker) {
	victim := b.thing(t, Other, topics.ThingFilters(Other)...)
	attacker := dial(t, b.Things, string(Other), b.Things.Thing(t, Me))
	if b.RenamesClient {
		testwait.For(t, attacker.up, "attacker connected under its own name")
		if err := attacker.Subscribe(t.Context(), 1, topics.ThingFilters(Other)...); errs.KindOf(err) != errs.Denied {
			t.Errorf("it subscribes to the other's topics: %v", err)
		}
	} else if d := testwait.For(t, attacker.down, "a refusal"); d.Reason != mqtt.ClientID && !(b.OneRefusal && d.Reason == mqtt.NotAuthorised) {
		t.Errorf("%v (%s)", d, d.Reason)
	}
	attacker.stop()
	cloud := b.cloud(t, "1")
	publish(t, cloud, topics.DownTopic(Other, topics.Ack), "still there")
	if got := testwait.For(t, victim.got, "a message for the victim"); got.payload != "still there" || len(victim.down) > 0 {
		t.Errorf("got %v, %d interruptions", got, len(victim.down))
	}
}

// sharedGroup: each message reaches one member, and a member that leaves takes nothing with it.
func sharedGroup(t *testing.T, b *Broker) {
	got := make(chan string, 1000)
	var members []*link
	for i := range 3 {
		m := b.member(t, fmt.Sprint("m", i))
		members = append(members, m)
		go func() {
			for {
				select {
				case x := <-m.got:
					got <- x.payload
				case <-t.Context().Done():
					return
				}
			}
		}()
	}
	me := b.thing(t, Me)
	// Messages that the broker gave to a member that was just leaving are sent again, as robots do.
	send := func(from, n int) (repeated int) {
		t.Helper()
		missing := map[string]bool{}
		for i := range n {
			missing[fmt.Sprint(from+i)] = true
		}
		deadline := time.Now().Add(long)
		for ; len(missing) > 0; repeated++ {
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d messages never reached the group", len(missing), n)
			}
			for p := range missing {
				publish(t, me, topics.UpTopic(Me, topics.DAS), p)
			}
			quiet := time.NewTimer(time.Second)
			for len(missing) > 0 {
				select {
				case p := <-got:
					delete(missing, p)
					continue
				case <-quiet.C:
				}
				break
			}
		}
		return repeated
	}
	if n := send(0, 60); n != 1 || len(got) > 0 {
		t.Errorf("%d rounds, %d messages too many: each goes to one member", n, len(got))
	}
	members[1].stop()
	send(100, 60)
}

func kick(t *testing.T, b *Broker) {
	cloud := b.cloud(t, "1", "kennel/+/up/+")
	other := b.thing(t, Other)
	conn := b.connect(t, b.Things, b.Things.Thing(t, Me), string(Me), topics.UpTopic(Me, topics.Status))
	if _, err := packets.ReadPacket(conn); err != nil {
		t.Fatal(err)
	}
	if err := b.Admin.Kick(t.Context(), Me, "revoked by an operator"); err != nil {
		t.Fatal(err)
	}
	if p, err := packets.ReadPacket(conn); err == nil {
		t.Errorf("after the kick came %v", p)
	}
	if b.SaysWill {
		if got := testwait.For(t, cloud.got, "the will"); got.payload != "will" {
			t.Errorf("%v", got)
		}
	}
	if len(other.down) > 0 {
		t.Errorf("another thing lost its connection: %v", <-other.down)
	}
	again := b.thing(t, Me, topics.ThingFilters(Me)...) // the certificate is good: it comes back, with its rights
	publish(t, again, topics.UpTopic(Me, topics.DAS), "back")
	if got := testwait.For(t, cloud.got, "a message after the kick"); got.payload != "back" {
		t.Errorf("%v", got)
	}
	for _, absent := range []thing.ID{"vic:nobody", Other} {
		if absent == Other {
			other.stop()
		}
		if err := b.Admin.Kick(t.Context(), absent, "x"); err != nil {
			t.Errorf("kick of %s, which is not connected: %v", absent, err)
		}
	}
	// A broker may carry an order out after it acknowledged it. Orders keep their turn: once this one is done, no earlier one is left to end a session of
	// the next demand.
	if err := b.Admin.Kick(t.Context(), Me, "the last order"); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, again.down, "the end of the session")
	again.stop()
}

// block: a blocked thing's session ends, and it can do nothing until it is allowed, also after a restart of the broker and beside a
// Provision; other things are not affected.
func block(t *testing.T, b *Broker) {
	admin, ok := b.Admin.(brokeradmin.Blocker)
	if !ok {
		t.Fatalf("%T is no Blocker", b.Admin)
	}
	other := b.thing(t, Other, topics.ThingFilters(Other)...)
	me := b.thing(t, Me, topics.ThingFilters(Me)...)
	for range 2 { // repeating it changes nothing
		if err := admin.Block(t.Context(), Me, "stolen"); err != nil {
			t.Fatal(err)
		}
	}
	testwait.For(t, me.down, "the end of the session")
	me.stop()
	if len(other.down) > 0 {
		t.Errorf("another thing lost its connection: %v", <-other.down)
	}
	other.stop()
	refused := func(when string) {
		t.Helper()
		cloud := b.cloud(t, "1", "kennel/#")
		l := dial(t, b.Things, string(Me), b.Things.Thing(t, Me))
		defer l.stop()
		defer cloud.stop()
		if !b.BlockedLogsIn {
			if d := testwait.For(t, l.down, "a refusal "+when); d.Step != "login" || len(l.up) > 0 {
				t.Errorf("%s: %v, %d logins", when, d, len(l.up))
			}
			return
		}
		testwait.For(t, l.up, "a login "+when)
		if err := l.Subscribe(t.Context(), 1, topics.ThingFilters(Me)...); errs.KindOf(err) != errs.Denied {
			t.Errorf("%s: it subscribes to its own topics: %v", when, err)
		}
		_ = l.Publish(t.Context(), topics.UpTopic(Me, topics.DAS), 1, false, []byte("forbidden")) // the answer is the broker's habit
		publish(t, cloud, topics.DownTopic(Other, topics.Ack), "allowed")
		if got := testwait.For(t, cloud.got, "the allowed message"); got.payload != "allowed" {
			t.Errorf("%s: the cloud got %v first", when, got)
		}
	}
	refused("after the block")
	if p, ok := b.Admin.(brokeradmin.Provisioner); ok {
		if err := p.Provision(t.Context(), Me, Other); err != nil {
			t.Fatal(err)
		}
		refused("after being provisioned again")
	}
	b.gone(t)
	b.Start()
	b.ready(t)
	refused("after a restart of the broker")
	for range 2 {
		if err := admin.Allow(t.Context(), Me); err != nil {
			t.Fatal(err)
		}
	}
	cloud := b.cloud(t, "1", "kennel/+/up/+")
	back := b.thing(t, Me, topics.ThingFilters(Me)...)
	publish(t, back, topics.UpTopic(Me, topics.DAS), "back")
	if got := testwait.For(t, cloud.got, "a message after it was allowed"); got.payload != "back" {
		t.Errorf("%v", got)
	}
	if err := admin.Block(t.Context(), "vic:nobody", "x"); err != nil {
		t.Errorf("block of an unknown thing: %v", err)
	}
	if err := admin.Allow(t.Context(), "vic:nobody"); err != nil {
		t.Errorf("allow of an unknown thing: %v", err)
	}
}

func ready(t *testing.T, b *Broker) {
	if err := b.Admin.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	b.gone(t)
	if err := b.Admin.Kick(t.Context(), Me, "x"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("kick without a broker: %v", err)
	}
	b.Start()
	b.ready(t)
}
