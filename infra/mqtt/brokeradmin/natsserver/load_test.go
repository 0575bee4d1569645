package natsserver_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"kennel/infra/api/topics"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/thing"
)

// robot is a client of a load: bytes on a connection, without a library's goroutines.
type robot struct {
	id   thing.ID
	conn *tls.Conn
}

// login connects, logs in and subscribes to the robot's own topics.
func login(ctx context.Context, at *mqtttest.Broker, id thing.ID, cert tls.Certificate, qos byte) (*robot, error) {
	cfg, err := at.With(cert)()
	if err != nil {
		return nil, err
	}
	cfg.ServerName = "localhost"
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(at.URL, "ssl://"))
	if err != nil {
		return nil, err
	}
	r := &robot{id, tls.Client(raw, cfg)}
	if err := r.hello(qos); err != nil {
		_ = raw.Close() // the login's error counts
		return nil, err
	}
	return r, nil
}

func (r *robot) hello(qos byte) error {
	if err := r.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	c := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	c.ProtocolName, c.ProtocolVersion, c.CleanSession, c.Keepalive, c.ClientIdentifier = "MQTT", 4, true, 600, string(r.id)
	if err := c.Write(r.conn); err != nil {
		return err
	}
	p, err := packets.ReadPacket(r.conn)
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	if a, ok := p.(*packets.ConnackPacket); !ok || a.ReturnCode != 0 {
		return fmt.Errorf("login: %v", p)
	}
	s := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	s.MessageID, s.Topics, s.Qoss = 1, topics.ThingFilters(r.id), []byte{qos, qos}
	if err := s.Write(r.conn); err != nil {
		return err
	}
	if p, err = packets.ReadPacket(r.conn); err != nil {
		return fmt.Errorf("subscription: %w", err)
	}
	if a, ok := p.(*packets.SubackPacket); !ok || len(a.ReturnCodes) != 2 || a.ReturnCodes[0] > 2 {
		return fmt.Errorf("subscription: %v", p)
	}
	return r.conn.SetDeadline(time.Time{})
}

// publish sends one message at QoS 1 and waits for its acknowledgement.
func (r *robot) publish(payload string, limit time.Duration) error {
	if err := r.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	m := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	m.TopicName, m.Qos, m.MessageID, m.Payload = topics.UpTopic(r.id, topics.DAS), 1, 7, []byte(payload)
	if err := m.Write(r.conn); err != nil {
		return err
	}
	for {
		p, err := packets.ReadPacket(r.conn)
		if err != nil {
			return err
		}
		if _, ok := p.(*packets.PubackPacket); ok {
			return nil
		}
	}
}

// storm logs n robots in, parallel at once, spread over the nodes, and returns them with the time it took.
func storm(t testing.TB, nodes []*mqtttest.Broker, n, parallel int, qos byte) ([]*robot, time.Duration) {
	t.Helper()
	certs := make([]tls.Certificate, n)
	for i := range certs {
		certs[i] = nodes[0].Device.Issue(t, fmt.Sprintf("vic:%08x", i))
	}
	robots := make([]*robot, n)
	errs := make(chan error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	began := time.Now()
	for range parallel {
		wg.Go(func() {
			for i := range next {
				r, err := login(t.Context(), nodes[i%len(nodes)], thing.ID(fmt.Sprintf("vic:%08x", i)), certs[i], qos)
				if err != nil {
					errs <- fmt.Errorf("robot %d: %w", i, err)
				}
				robots[i] = r
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	took := time.Since(began)
	close(errs)
	failed := 0
	for err := range errs {
		if failed++; failed <= 3 {
			t.Error(err)
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d logins failed", failed, n)
	}
	t.Cleanup(func() {
		for _, r := range robots {
			if r != nil {
				_ = r.conn.Close() // the test is over
			}
		}
	})
	return robots, took
}

// resident returns a process's resident memory in bytes.
func resident(t testing.TB, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no VmRSS of process %d", pid)
	return 0
}
