package bridge

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/envelope"
	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/broker"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

// brokerFile makes the test binary a broker process, for tests that kill one.
const brokerFile = "KENNEL_TEST_BROKER"

func TestMain(m *testing.M) {
	if file := os.Getenv(brokerFile); file != "" {
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }() // ends with its parent
		if err := broker.Main(ctx, file, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const long = 15 * time.Second // for what must happen

// running starts run and stops it with the test.
func running(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// consume runs a bridge and waits for its first connection, if there is a broker.
func consume(t *testing.T, b *mqtttest.Broker, cfg Config, on Handlers) *Bridge {
	t.Helper()
	br := idle(t, b, cfg, on)
	running(t, br.Run)
	return br
}

// idle returns a bridge that does not run yet.
func idle(t *testing.T, b *mqtttest.Broker, cfg Config, on Handlers) *Bridge {
	t.Helper()
	cfg.MQTT = mqtt.Config{URL: b.URL, TLS: b.Cloud(t), MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond}
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	br, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	br.Handle(on)
	return br
}

type message struct{ name, payload string }

// robot is the far end: a thing with its certificate, as an agent would use it.
type robot struct {
	id   thing.ID
	link *mqtt.Client
	*kitmqtt.Client
	up   chan bool
	down chan message // what came on down/
}

func newRobot(t testing.TB, b *mqtttest.Broker, id thing.ID) *robot {
	t.Helper()
	r := &robot{id: id, up: make(chan bool, 1000), down: make(chan message, 1000)}
	r.Client = kitmqtt.NewClient(id, func(ctx context.Context, topic string, payload []byte) error {
		return r.link.Publish(ctx, topic, 1, false, payload)
	})
	var err error
	r.link, err = mqtt.New(mqtt.Config{
		URL: b.URL, ClientID: string(id), TLS: b.Thing(t, id), MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
		OnConnect: func(ctx context.Context, c *mqtt.Client) error {
			if err := c.Subscribe(ctx, 1, topics.ThingFilters(id)...); err != nil {
				return err
			}
			r.Connected()
			r.up <- true
			return nil
		},
		OnMessage: func(topic string, payload []byte, taken func()) {
			taken()
			if at, err := topics.Parse(topic); err == nil && at.Class == topics.Down {
				r.down <- message{at.Name, string(payload)}
			} else if err := r.Deliver(topic, payload); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	running(t, r.link.Run)
	return r
}

// connected waits until the bridge and the robots are.
func connected(t testing.TB, robots ...*robot) {
	t.Helper()
	for _, r := range robots {
		testwait.For(t, r.up, string(r.id)+" connected")
	}
	// A bridge is ready when a request gets through it.
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if _, err := robots[0].Do(ctx, "no", "such"); errs.KindOf(err) != errs.NotFound {
		t.Fatal(err)
	}
}

// Do asks with a body made of strings.
func (r *robot) Do(ctx context.Context, service, method string, body ...string) (string, error) {
	out, err := r.Client.Do(ctx, service, method, []byte(strings.Join(body, "")))
	return string(out), err
}

func TestTraffic(t *testing.T) {
	b := mqtttest.Start(t)
	refused := make(chan brokerapi.Refusal, 100)
	stats := make(chan brokerapi.Stats, 100)
	br := traffic(t, b, b, Handlers{
		OnRefused: func(_ context.Context, r brokerapi.Refusal) { refused <- r },
		OnStats:   func(_ context.Context, s brokerapi.Stats) { stats <- s },
	})
	testwait.For(t, stats, "stats")
	if err := (brokeradmin.Embedded{Link: br}).Kick(t.Context(), pip, "revoked"); err != nil {
		t.Error(err)
	}
	if r := testwait.For(t, refused, "the kick"); r.ClientID != string(pip) || r.Code != brokerapi.CodeKicked {
		t.Errorf("%+v", r)
	}
}

// TestHearing: what is published once Hearing has returned is handled; before Run it says that nothing listens.
func TestHearing(t *testing.T) {
	b := mqtttest.Start(t)
	heard := make(chan string, 1)
	br := idle(t, b, Config{}, Handlers{Up: map[string]kitmqtt.UpHandler{
		topics.DAS: func(_ context.Context, _ thing.ID, payload []byte, _ func(ack.Ack)) { heard <- string(payload) },
	}})
	none, cancel := context.WithCancel(t.Context())
	cancel()
	if err := br.Hearing(none); err == nil {
		t.Error("heard before Run")
	}
	r := newRobot(t, b, rex)
	testwait.Until(t, 10*time.Second, "connection", r.link.Answers)
	running(t, br.Run)
	if err := br.Hearing(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.link.Publish(t.Context(), topics.UpTopic(rex, topics.DAS), 1, false, []byte("at once")); err != nil {
		t.Fatal(err)
	}
	if got := testwait.For(t, heard, "the event"); got != "at once" {
		t.Error(got)
	}
}

// traffic is everything that goes through a bridge, over whichever broker: requests, events and their acknowledgements, hints, commands.
func traffic(t *testing.T, things, services *mqtttest.Broker, on Handlers) *Bridge {
	t.Helper()
	var later func(ack.Ack)
	on.Up = map[string]kitmqtt.UpHandler{
		topics.DAS: func(_ context.Context, _ thing.ID, payload []byte, answer func(ack.Ack)) {
			switch string(payload) {
			case "panic":
				panic("boom")
			case "later":
				later = answer
			default:
				answer(ack.Ack{Batch: string(payload), Status: ack.Stored})
			}
		},
	}
	on.Req = map[string]kitmqtt.ReqHandler{
		"test/echo": func(_ context.Context, id thing.ID, body []byte) ([]byte, error) {
			return append([]byte(id+" "), body...), nil
		},
		"test/fail": func(context.Context, thing.ID, []byte) ([]byte, error) {
			return nil, errs.Coded(errs.Conflict, "stale", "version 3 is newer")
		},
	}
	br := consume(t, services, Config{}, on)
	r, other := newRobot(t, things, rex), newRobot(t, things, pip)
	connected(t, r, other)

	if got, err := r.Do(t.Context(), "test", "echo", "hi"); err != nil || got != string(rex)+" hi" {
		t.Errorf("echo: %q, %v", got, err)
	}
	large := strings.Repeat("ab", 100_000) // zstd on the wire, both ways
	if got, err := r.Do(t.Context(), "test", "echo", large); err != nil || got != string(rex)+" "+large {
		t.Errorf("large echo: %d bytes, %v", len(got), err)
	}
	if _, err := r.Do(t.Context(), "test", "fail"); errs.KindOf(err) != errs.Conflict || errs.CodeOf(err) != "stale" {
		t.Errorf("fail: %v", err)
	}

	up := func(name, payload string) {
		t.Helper()
		if err := r.link.Publish(t.Context(), topics.UpTopic(rex, name), 1, false, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	acked := func() ack.Ack {
		t.Helper()
		m := testwait.For(t, r.down, "an acknowledgement")
		a, err := ack.Parse([]byte(m.payload))
		if err != nil || m.name != topics.Ack {
			t.Errorf("%v: %v", m, err)
		}
		return a
	}
	up(topics.DAS, "later")
	up("nobody", "x")
	up(topics.DAS, "panic")
	for _, junk := range []string{"", "no header", "{}\n", "\xff\n"} {
		if err := r.link.Publish(t.Context(), topics.ReqTopic(rex, "test", "echo"), 1, false, []byte(junk)); err != nil {
			t.Fatal(err)
		}
	}
	up(topics.DAS, "1")
	if a := acked(); a.Batch != "1" || a.Status != ack.Stored {
		t.Errorf("%+v", a)
	}
	later(ack.Ack{Batch: "later", Status: ack.Stored})
	if a := acked(); a.Batch != "later" {
		t.Errorf("%+v", a)
	}

	br.Hint(t.Context(), rex, topics.Jdocs, []byte("7"))
	if m := testwait.For(t, r.down, "a hint"); m != (message{topics.Jdocs, "7"}) {
		t.Errorf("%v", m)
	}
	if err := br.Send(t.Context(), rex, topics.Cmd, []byte("wake")); err != nil {
		t.Error(err)
	}
	if m := testwait.For(t, r.down, "a command"); m != (message{topics.Cmd, "wake"}) {
		t.Errorf("%v", m)
	}
	if len(other.down) > 0 {
		t.Errorf("another robot got %v", <-other.down)
	}
	if st := br.Stats(); st.Panics != 1 || st.Unhandled != 1 || st.Requests.Unreadable != 4 || st.Dropped != 0 || st.Malformed != 0 {
		t.Errorf("%+v", st)
	}
	return br
}

// TestTakeRefuses: what no broker of ours would deliver is counted, and the process lives on.
func TestTakeRefuses(t *testing.T) {
	b := newBridge(Config{Log: slog.New(slog.DiscardHandler)})
	for _, topic := range []string{"", "x", "kennel/vic:1/down/ack", "kennel/vic:1/res/1", "kennel/VIC:1/up/das", "kennel/vic:1/up/das/x"} {
		if b.Take(topic, nil) {
			t.Errorf("%q taken", topic)
		}
	}
	if n := b.malformed.Load(); n != 6 {
		t.Errorf("%d malformed", n)
	}
}

// TestBrokerKilled is issue 2, "what must hold" 4, the broker's part: killed five times while requests flow, everybody comes back, and
// every request is run once and answered.
func TestBrokerKilled(t *testing.T) {
	b := mqtttest.New(t)
	b.Config.LogLevel = "error"
	file := b.ConfigFile(t)
	kill := func() {}
	startBroker := func() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), brokerFile+"="+file)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill = func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			_ = stdin.Close()
		}
	}
	startBroker()
	defer func() { kill() }()
	killed(t, b, b, func() { kill(); startBroker() })
}

var countingRobots = []thing.ID{"vic:1", "vic:2", "vic:3"}

// killed asks without a pause while again, five times, kills the broker and starts it.
func killed(t *testing.T, things, services *mqtttest.Broker, again func()) {
	t.Helper()
	var mu sync.Mutex
	runs := map[string]int{}
	ran := make(chan bool, 100)
	br := consume(t, services, Config{}, Handlers{Req: map[string]kitmqtt.ReqHandler{
		"test/count": func(_ context.Context, id thing.ID, body []byte) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			runs[string(id)+string(body)]++
			select {
			case ran <- true:
			default:
			}
			return body, nil
		},
	}})
	var robots []*robot
	for _, id := range countingRobots {
		robots = append(robots, newRobot(t, things, id))
	}
	connected(t, robots...)

	stop := make(chan struct{})
	var asked [3]int
	var wg sync.WaitGroup
	for i, r := range robots {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				asked[i]++
				body := fmt.Sprint("-", asked[i])
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				got, err := r.Do(ctx, "test", "count", body)
				cancel()
				if err != nil || got != body {
					t.Errorf("%s request %s: %q, %v", r.id, body, got, err)
				}
			}
		})
	}
	for range 5 {
		for range 2 * cap(ran) {
			testwait.For(t, ran, "traffic")
		}
		again()
		for _, r := range robots {
			testwait.For(t, r.up, string(r.id)+" back")
		}
	}
	close(stop)
	wg.Wait()
	total := 0
	for i, r := range robots {
		total += asked[i]
		for n := 1; n <= asked[i]; n++ {
			if got := runs[fmt.Sprint(r.id, "-", n)]; got != 1 {
				t.Errorf("%s request %d ran %d times", r.id, n, got)
			}
		}
	}
	t.Logf("%d requests over five kills, %d duplicates answered from the cache", total, br.Stats().Requests.Duplicates)
}

// FuzzTake: whatever comes as an uplink, the bridge handles it and lives on.
func FuzzTake(f *testing.F) {
	ok, _ := envelope.EncodeRequest(envelope.Request{ID: "1", TTL: 1000}, []byte("{}"))
	f.Add("kennel/vic:1/req/test/echo", ok)
	f.Add("kennel/vic:1/up/das", []byte("x"))
	f.Add(brokerapi.RefusedTopic, []byte(`{"v":1,"code":"x"}`))
	f.Add(brokerapi.StatsTopic, []byte(`{"v":1}`))
	b := newBridge(Config{Log: slog.New(slog.DiscardHandler)})
	b.Handle(Handlers{
		Up: map[string]kitmqtt.UpHandler{topics.DAS: func(_ context.Context, _ thing.ID, p []byte, answer func(ack.Ack)) {
			answer(ack.Ack{Batch: string(p), Status: ack.Stored})
		}},
		Req: map[string]kitmqtt.ReqHandler{"test/echo": func(_ context.Context, _ thing.ID, p []byte) ([]byte, error) { return p, nil }},
	})
	f.Fuzz(func(t *testing.T, topic string, payload []byte) {
		if !b.Take(topic, payload) {
			return
		}
		ln := <-b.lanes.ready
		it := b.lanes.first(ln)
		b.handle(t.Context(), it)
		b.lanes.done(ln, it)
		select {
		case out := <-b.outbox:
			if at, err := topics.Parse(out.topic); err != nil || at.Thing != it.topic.Thing || at.Class != topics.Down && at.Class != topics.Res {
				t.Fatalf("answer on %q: %+v, %v", out.topic, at, err)
			}
		default:
		}
	})
}

// BenchmarkRequest is one request and its answer over TLS, through broker and bridge; run with -cpu to see many at once.
func BenchmarkRequest(b *testing.B) {
	broker := mqtttest.Start(b)
	br, err := New(Config{MQTT: mqtt.Config{URL: broker.URL, TLS: broker.Cloud(b)}})
	if err != nil {
		b.Fatal(err)
	}
	br.Handle(Handlers{Req: map[string]kitmqtt.ReqHandler{"test/echo": func(_ context.Context, _ thing.ID, p []byte) ([]byte, error) { return p, nil }}})
	running(b, br.Run)
	r := newRobot(b, broker, rex)
	connected(b, r)
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := r.Do(b.Context(), "test", "echo", "hello"); err != nil {
				b.Error(err)
			}
		}
	})
}
