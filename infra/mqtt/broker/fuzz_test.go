package broker

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"kennel/infra/admission"
	"kennel/infra/api/topics"
	"kennel/infra/mqtt/brokerauth"
	"kennel/infra/thing"
)

// FuzzSession sends arbitrary bytes as the logged-in session of a thing: nothing may panic, and nothing of it may come out on a topic that
// is not the thing's own.
func FuzzSession(f *testing.F) {
	const me thing.ID = "vic:00e20100"
	connect := append([]byte{0x10, byte(12 + len(me)), 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, byte(len(me))}, me...)
	publish := func(head byte, topic string, rest string) []byte {
		p := append([]byte{0, byte(len(topic))}, topic...)
		p = append(p, rest...)
		return append([]byte{head, byte(len(p))}, p...)
	}
	subscribe := func(filter string) []byte {
		p := append([]byte{0, 1, 0, byte(len(filter))}, filter...)
		p = append(p, 1)
		return append([]byte{0x82, byte(len(p))}, p...)
	}
	f.Add(connect)
	f.Add(append(connect, publish(0x30, "kennel/vic:00e20100/up/das", "hello")...))
	f.Add(append(connect, publish(0x32, "kennel/vic:00e20101/up/das", "\x00\x07hello")...))
	f.Add(append(connect, publish(0x34, "kennel/vic:00e20100/up/das", "\x00\x07hello")...))
	f.Add(append(connect, subscribe("kennel/vic:00e20100/down/+")...))
	f.Add(append(connect, subscribe("$share/a/#")...))
	f.Add(append(connect, 0xc0, 0, 0x62, 2, 0, 7, 0x40, 2, 0, 7, 0xe0, 0))

	server := mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)})
	deny, err := brokerauth.OpenDenied("")
	if err != nil {
		f.Fatal(err)
	}
	door, err := admission.New(admission.Config{})
	if err != nil {
		f.Fatal(err)
	}
	h := newHook(server, deny, door, slog.New(slog.DiscardHandler))
	if err := server.AddHook(h, nil); err != nil {
		f.Fatal(err)
	}
	if err := server.Serve(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = server.Close() })
	var mu sync.Mutex
	var escaped []string
	spy := func(_ *mochi.Client, _ packets.Subscription, pk packets.Packet) {
		if pk.Origin == string(me) && !topics.MayPublish(me, pk.TopicName) {
			mu.Lock()
			escaped = append(escaped, pk.TopicName)
			mu.Unlock()
		}
	}
	for i, filter := range []string{"#", "$kennel/#", "+/+/+/+"} {
		if err := server.Subscribe(filter, i+1, spy); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, theirs) })
		wg.Go(func() { _, _ = theirs.Write(data); _ = theirs.Close() })
		_ = server.EstablishConnection("fuzz", &peer{Conn: ours, who: brokerauth.Identity{CN: string(me), Thing: me, NotAfter: time.Now().Add(time.Hour)}})
		_ = ours.Close()
		wg.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(escaped) > 0 {
			t.Fatalf("published on %q", escaped)
		}
		for id, cl := range server.Clients.GetAll() {
			for filter := range cl.State.Subscriptions.GetAll() {
				if !topics.MaySubscribe(me, filter) {
					t.Fatalf("%s subscribed to %q", id, filter)
				}
			}
		}
	})
}

// FuzzConfig: a configuration that is read is complete.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"listen":"127.0.0.1:8883","cert":"a","key":"b","device_ca":"c","service_ca":"d"}`))
	f.Add([]byte(`{"listen":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if cfg, err := parseConfig(b); err == nil && cfg.validate() != nil {
			t.Fatalf("%+v accepted", cfg)
		}
	})
}
