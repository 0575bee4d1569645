package broker_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/testwait"
)

func TestKickAndTakeover(t *testing.T) {
	b := mqtttest.Start(t)
	reason := refusals(t, b)
	will := &mqtt.Will{Topic: topics.UpTopic(me, topics.Status), Payload: []byte("gone")}
	cloud := connect(t, b, "kenneld-1", b.Cloud(t), nil, "kennel/+/up/+")
	c, up := start(t, b, string(me), b.Thing(t, me), will)
	testwait.For(t, up, "connected")
	kick, _ := brokerapi.Kick{ClientID: string(me), Reason: "revoked by an operator"}.Encode()
	if err := cloud.Publish(t.Context(), brokerapi.KickTopic, 1, false, kick); err != nil {
		t.Fatal(err)
	}
	testwait.For(t, c.down, "the kick")
	if r := reason(brokerapi.CodeKicked); r.Reason != "revoked by an operator" || r.ClientID != string(me) {
		t.Errorf("refusal %+v", r)
	}
	if got := testwait.For(t, cloud.got, "the will"); got.payload != "gone" {
		t.Errorf("got %v", got)
	}
	testwait.For(t, up, "back after the kick")
	for _, junk := range []string{"", "{", `{"v":1,"client_id":"vic:nobody"}`, `{"v":1,"client_id":"inline"}`} {
		if err := cloud.Publish(t.Context(), brokerapi.KickTopic, 1, false, []byte(junk)); err != nil {
			t.Fatal(err)
		}
	}

	c2 := connect(t, b, string(me), b.Thing(t, me), nil) // the same robot, a newer connection
	testwait.For(t, c.down, "the takeover")
	c.stop()
	c2.stop()
	// Another service certificate may not take the id of a running one.
	c3, _ := start(t, b, "kenneld-1", b.With(b.Service.Issue(t, "kenneld-2")), nil)
	if d := testwait.For(t, c3.down, "refusal"); d.Reason != mqtt.ClientID {
		t.Errorf("%v", d)
	}
	c3.stop()
}

// TestShutdownSilencesWills: a broker that stops says nothing about robots, one whose robot vanishes does.
func TestShutdownSilencesWills(t *testing.T) {
	b := mqtttest.Start(t)
	will := &mqtt.Will{Topic: topics.UpTopic(me, topics.Status), Payload: []byte("gone")}
	cloud, up := start(t, b, "kenneld-1", b.Cloud(t), nil, "kennel/+/up/+")
	testwait.For(t, up, "cloud connected")
	c := connect(t, b, string(me), b.Thing(t, me), will)
	b.Stop()
	testwait.For(t, c.down, "end of the broker")
	b.Start(t)
	testwait.For(t, up, "cloud back")
	if len(cloud.got) > 0 {
		t.Errorf("the stopping broker published %v", <-cloud.got)
	}
}

// TestSharedGroup: each message reaches one member of the cloud's group.
func TestSharedGroup(t *testing.T) {
	b := mqtttest.Start(t)
	var members []*client
	for i := range 3 {
		members = append(members, connect(t, b, fmt.Sprintf("kenneld-%d", i), b.Cloud(t), nil, topics.CloudFilters()...))
	}
	c := connect(t, b, string(me), b.Thing(t, me), nil)
	const n = 60
	for i := range n {
		if err := c.Publish(t.Context(), topics.UpTopic(me, topics.DAS), 1, false, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	for range n {
		select {
		case m := <-members[0].got:
			seen[m.payload]++
		case m := <-members[1].got:
			seen[m.payload]++
		case m := <-members[2].got:
			seen[m.payload]++
		case <-time.After(long):
			t.Fatalf("%d of %d arrived", len(seen), n)
		}
	}
	if len(seen) != n {
		t.Errorf("%d different messages of %d", len(seen), n)
	}
}

// deaf logs in, subscribes to filter at QoS 0 and does not read on.
func deaf(t *testing.T, b *mqtttest.Broker, id, filter string, creds func() (*tls.Config, error)) *tls.Conn {
	t.Helper()
	cfg, _ := creds()
	cfg.ServerName = "localhost"
	raw, err := tls.Dial("tcp", b.Config.Listen, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	hello := append([]byte{0x10, byte(12 + len(id)), 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, byte(len(id))}, id...)
	hello = append(append(hello, 0x82, byte(5+len(filter)), 0, 1, 0, byte(len(filter))), filter...)
	if _, err := raw.Write(append(hello, 0)); err != nil {
		t.Fatal(err)
	}
	answers := make([]byte, 4+5)
	if _, err := io.ReadFull(raw, answers); err != nil || string(answers) != "\x20\x02\x00\x00\x90\x03\x00\x01\x00" {
		t.Fatalf("CONNACK and SUBACK % x, %v", answers, err)
	}
	return raw
}

// TestDeafThing: a robot that stops reading holds up neither the cloud nor another robot.
func TestDeafThing(t *testing.T) {
	b := mqtttest.Start(t)
	deaf(t, b, string(me), topics.ThingFilters(me)[0], b.Thing(t, me))
	hearing := connect(t, b, string(other), b.Thing(t, other), nil, topics.ThingFilters(other)...)
	cloud := connect(t, b, "kenneld-1", b.Cloud(t), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second) // below the broker's limit on a blocked write
	defer cancel()
	for range 500 { // more than sockets and queue hold
		if err := cloud.Publish(ctx, topics.DownTopic(me, topics.Cmd), 1, false, make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cloud.Publish(ctx, topics.DownTopic(other, topics.Cmd), 1, false, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if m := testwait.For(t, hearing.got, "a message beside a deaf thing"); m.payload != "hello" {
		t.Errorf("%v", m)
	}
}

// TestSlowService: what a whole fleet reports while a process of the cloud is paused waits for it; a thing's queue would not hold that.
func TestSlowService(t *testing.T) {
	b := mqtttest.Start(t)
	topic := topics.UpTopic(me, topics.DAS)
	slow := deaf(t, b, "kenneld-1", topic, b.Cloud(t))
	robot := connect(t, b, string(me), b.Thing(t, me), nil)
	const n, size = 500, 64 << 10                                  // more than sockets and a thing's queue hold
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second) // below the broker's limit on a blocked write
	defer cancel()
	for range n {
		if err := robot.Publish(ctx, topic, 1, false, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := slow.SetReadDeadline(time.Now().Add(long)); err != nil {
		t.Fatal(err)
	}
	packet := int64(1 + 3 + 2 + len(topic) + size) // type, length, topic, payload
	if got, err := io.CopyN(io.Discard, slow, n*packet); err != nil {
		t.Errorf("%d of %d messages arrived: %v", got/packet, n, err)
	}
}

// TestSilentStrangers: silent connections delay no other client, however many they are.
func TestSilentStrangers(t *testing.T) {
	b := mqtttest.Start(t)
	for range 300 { // more than shake hands at once
		c, err := net.Dial("tcp", b.Config.Listen)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	start := time.Now()
	connect(t, b, string(me), b.Thing(t, me), nil)
	if took := time.Since(start); took > long/2 { // they are sent away after as long
		t.Errorf("connected after %v", took)
	}
}

// TestSessionEndsWithCertificate: a certificate is not worth more because its session is old.
func TestSessionEndsWithCertificate(t *testing.T) {
	b := mqtttest.Start(t)
	reason := refusals(t, b)
	short := b.Device.Issue(t, string(me), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(2 * time.Second) })
	c, up := start(t, b, string(me), b.With(short), nil)
	testwait.For(t, up, "connected")
	testwait.For(t, c.down, "the end of the certificate")
	reason(brokerapi.CodeExpired)
}
