package mqttlink

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"kennel/edge/agent/link/presence"
	"kennel/infra/api/status"
	"kennel/infra/api/topics"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/thing"
)

var me = thing.MustParse("vic:00e20100")

// cloud is the other end, by hand: it keeps statuses and answers requests.
type cloud struct {
	client   *mqtt.Client
	server   *kitmqtt.Server
	statuses chan status.Message
}

func newCloud(t *testing.T, b *mqtttest.Broker) *cloud {
	t.Helper()
	c := &cloud{statuses: make(chan status.Message, 100)} // more than a test makes
	c.server = kitmqtt.NewServer(map[string]kitmqtt.ReqHandler{"echo/echo": func(_ context.Context, _ thing.ID, body []byte) ([]byte, error) {
		return body, nil
	}}, slog.New(slog.DiscardHandler))
	up := make(chan struct{})
	var once sync.Once
	var err error
	c.client, err = mqtt.New(mqtt.Config{URL: b.URL, ClientID: "kenneld-test", TLS: b.Cloud(t), MinBackoff: 10 * time.Millisecond,
		OnConnect: func(ctx context.Context, cl *mqtt.Client) error {
			err := cl.Subscribe(ctx, 1, topics.CloudFilters()...)
			once.Do(func() { close(up) })
			return err
		},
		OnMessage: func(topic string, payload []byte, taken func()) {
			taken()
			go c.take(t, topic, payload)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, c.client.Run)
	<-up
	return c
}

func (c *cloud) take(t *testing.T, topic string, payload []byte) {
	tp, err := topics.Parse(topic)
	if err != nil {
		t.Errorf("topic: %v", err)
		return
	}
	if tp.Class == topics.Req {
		id, resp := c.server.Serve(t.Context(), kitmqtt.Incoming{
			Thing: tp.Thing, Service: tp.Name, Method: tp.Method, Payload: payload, Received: time.Now(),
		})
		_ = c.client.Publish(t.Context(), topics.ResTopic(tp.Thing, id), 1, false, resp) // the robot asks again
		return
	}
	m, err := status.Parse(payload)
	if err != nil {
		t.Errorf("status: %v", err)
	}
	c.statuses <- m
}

func runUntilEnd(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (c *cloud) next(t *testing.T) status.Message {
	t.Helper()
	select {
	case m := <-c.statuses:
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("no status")
		panic("unreachable")
	}
}

// TestLife: connect, status, request, hint, loss with its will, and back under a larger number.
func TestLife(t *testing.T) {
	b := mqtttest.Start(t)
	c := newCloud(t, b)
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	hints := make(chan string, 1)
	times := make(chan time.Time, 1)
	l, err := New(Config{
		OnTime: func(cloud time.Time) { times <- cloud },
		ID:     me, URL: b.URL, TLS: b.Thing(t, me), Root: root, Presence: presence.New("boot", func() status.Message { return status.Message{} }),
		Down: map[string]func([]byte){"jdocs": func(p []byte) { hints <- string(p) }}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := runUntilEnd(t, l.Run)
	if m := c.next(t); m.State != status.Online || m.ConnectSeq != 1 || m.BootID != "boot" {
		t.Errorf("first status %+v", m)
	}
	asked := time.Now().Truncate(time.Millisecond)
	got, err := l.Do(t.Context(), "echo", "echo", []byte("hello"))
	if err != nil || string(got) != "hello" {
		t.Errorf("request: %q, %v", got, err)
	}
	if cloud := <-times; cloud.Before(asked) || cloud.After(time.Now()) {
		t.Errorf("the cloud's clock says %v, asked at %v", cloud, asked)
	}
	if err := c.client.Publish(t.Context(), topics.DownTopic(me, "jdocs"), 1, true, []byte("v7")); err != nil {
		t.Fatal(err)
	}
	if h := <-hints; h != "v7" {
		t.Errorf("hint %q", h)
	}
	l.Goodbye(t.Context())
	if m := c.next(t); m.State != status.Gone || m.ConnectSeq != 1 {
		t.Errorf("goodbye %+v", m)
	}
	stop()

	// The same robot again: a later number, so that what is left of the first connection cannot speak for it.
	again, err := New(l.cfg)
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, again.Run)
	if m := c.next(t); m.State != status.Online || m.ConnectSeq != 2 {
		t.Errorf("second connection %+v", m)
	}
	if h := <-hints; h != "v7" {
		t.Errorf("retained hint %q", h)
	}
}
