// Package bridge joins the broker to the cloud's domains: it takes what robots publish, gives it to the handler of that name, and carries
// acknowledgements, answers and hints back.
//
//	broker -> read -> lanes (one for each thing, bounded) -> workers -> handlers -> outbox -> broker
//	                                                                    hints (coalesced) -> broker
//
// The reader acknowledges a message to the broker when a lane has taken it; what finds the lanes full is dropped and counted, because
// every robot sends again until the application answers (infra/adr/0001). One thing's messages are handled in order, things in parallel;
// after each message a thing goes to the back of the line, so that a busy or slow one does not starve others. Any number of bridges
// share the load: clean sessions, random client ids, one $share group.
package bridge

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/topics"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/thing"
)

// Our own limits (the source gives none).
const (
	defaultWorkers = 32 // handlers mostly wait for Postgres
	outboxLength   = 8192
	publishTime    = 10 * time.Second
	probeEvery     = time.Second // so that a frozen broker shows within 5 s
)

// Config says what to connect to.
type Config struct {
	// MQTT names the broker: URL and TLS, and timings if not the defaults. Client id, will and handlers are the bridge's.
	MQTT mqtt.Config

	// Fed: the uplink comes by Take from another source, such as a queue; the connection only sends.
	Fed bool

	Workers int // messages handled at once, default 32
	Log     *slog.Logger
}

// Handlers says who handles what.
type Handlers struct {
	Up  map[string]kitmqtt.UpHandler  // by name below up/, such as "das"
	Req map[string]kitmqtt.ReqHandler // by "service/method", such as "jdocs/read"

	// OnRefused and OnStats hear the embedded broker; leave them nil with any other. They must not block.
	OnRefused func(ctx context.Context, r brokerapi.Refusal)
	OnStats   func(ctx context.Context, s brokerapi.Stats)
}

// link is the part of the broker connection that the bridge needs.
type link interface {
	Publish(ctx context.Context, topic string, qos byte, retained bool, payload []byte) error
	Post(topic string, payload []byte) error
}

// Bridge is one consumer. Its methods are safe for concurrent use.
type Bridge struct {
	cfg    Config
	on     Handlers
	client *mqtt.Client
	link   link
	server *kitmqtt.Server
	lanes  *lanes
	hints  *hints
	outbox chan outgoing

	heard   sync.Once
	hearing chan struct{} // closed once the broker has taken the subscriptions

	received, malformed, unhandled, dropped, panics, answered, unsent atomic.Int64
}

type outgoing struct {
	topic   string
	payload []byte
}

// Stats counts since the bridge was made.
type Stats struct {
	Connected bool
	Waiting   int   // messages in lanes, now
	Received  int64 // messages from the broker
	Malformed int64 // topics that are none of ours
	Unhandled int64 // names without a handler
	Dropped   int64 // no room in the lanes; robots send again
	Panics    int64 // of up handlers
	Answered  int64 // acknowledgements and answers published
	Unsent    int64 // acknowledgements and answers without a connection or room; robots ask again
	Requests  kitmqtt.Stats
}

// New returns a bridge that does nothing until Run, and takes nothing in without Handle.
func New(cfg Config) (*Bridge, error) {
	cfg.Workers = cmp.Or(cfg.Workers, defaultWorkers)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	b := newBridge(cfg)
	m := cfg.MQTT
	m.ClientID = "kenneld-" + rand.Text()
	m.Will = nil
	m.ProbeEvery = probeEvery
	m.OnConnect = b.subscribe
	m.OnMessage = func(topic string, payload []byte, ack func()) {
		b.Take(topic, payload)
		ack()
	}
	m.Log = cmp.Or(m.Log, cfg.Log)
	var err error
	if b.client, err = mqtt.New(m); err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	b.link = b.client
	return b, nil
}

func newBridge(cfg Config) *Bridge {
	b := &Bridge{cfg: cfg, server: kitmqtt.NewServer(nil, cfg.Log), lanes: newLanes(), outbox: make(chan outgoing, outboxLength), hearing: make(chan struct{})}
	b.hints = newHints(func(ctx context.Context, topic string, payload []byte) error {
		return b.link.Publish(ctx, topic, 1, true, payload)
	})
	return b
}

// Handle sets who handles what comes in. Call it before Run, at most once; the maps must not change afterwards.
func (b *Bridge) Handle(h Handlers) { b.on, b.server = h, kitmqtt.NewServer(h.Req, b.cfg.Log) }

// Run consumes until ctx ends and returns nil. Messages waiting then are dropped: their robots send them again.
func (b *Bridge) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.client.Run(ctx) }) // nil by contract
	b.run(ctx, &wg)
	wg.Wait()
	return nil
}

// run starts everything but the connection.
func (b *Bridge) run(ctx context.Context, wg *sync.WaitGroup) {
	for range b.cfg.Workers {
		wg.Go(func() { b.lanes.work(ctx, b.handle) })
	}
	wg.Go(func() { b.send(ctx) })
	b.hints.run(ctx, wg, b.cfg.Log)
}

func (b *Bridge) subscribe(ctx context.Context, c *mqtt.Client) error {
	var filters []string
	if !b.cfg.Fed && (b.on.Up != nil || b.on.Req != nil) { // else this process only hints: it must not take a share that it cannot handle
		filters = topics.CloudFilters()
	}
	if b.on.OnRefused != nil {
		filters = append(filters, brokerapi.RefusedTopic)
	}
	if b.on.OnStats != nil {
		filters = append(filters, brokerapi.StatsTopic)
	}
	if len(filters) > 0 {
		ctx, cancel := context.WithTimeout(ctx, publishTime)
		defer cancel()
		if err := c.Subscribe(ctx, 1, filters...); err != nil {
			return err
		}
	}
	b.heard.Do(func() { close(b.hearing) })
	return nil
}

// Hearing blocks until the broker has taken the subscriptions for the first time: what robots publish before reaches no handler.
func (b *Bridge) Hearing(ctx context.Context) error {
	select {
	case <-b.hearing:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("broker has not taken the cloud's subscriptions: %w", cmp.Or(b.Answers(), ctx.Err()))
	}
}

// Connected reports whether the broker is reachable now.
func (b *Bridge) Connected() bool { return b.client.Connected() }

// Answers returns nil while the broker answers, else why not.
func (b *Bridge) Answers() error { return b.client.Answers() }

// Stats returns the counters.
func (b *Bridge) Stats() Stats {
	return Stats{
		Connected: b.Connected(), Waiting: b.lanes.len(), Received: b.received.Load(), Malformed: b.malformed.Load(), Unhandled: b.unhandled.Load(),
		Dropped: b.dropped.Load(), Panics: b.panics.Load(), Answered: b.answered.Load(), Unsent: b.unsent.Load(), Requests: b.server.Stats(),
	}
}

// Take puts one message from a broker into its thing's lane and returns at once; it reports whether the message was taken. The bridge's
// own connection calls it; so does any other source of uplink messages, such as a queue that a broker's rule engine fills.
func (b *Bridge) Take(topic string, payload []byte) bool {
	b.received.Add(1)
	it := item{payload: payload, received: time.Now()}
	if topic != brokerapi.RefusedTopic && topic != brokerapi.StatsTopic {
		t, err := topics.Parse(topic)
		if err != nil || t.Class != topics.Up && t.Class != topics.Req {
			b.malformed.Add(1)
			b.cfg.Log.Warn("message on a non-uplink topic ignored", "topic", clip(topic), logging.Err, err)
			return false
		}
		it.topic = t
	} else {
		it.broker = topic
	}
	if !b.lanes.put(it) {
		b.dropped.Add(1)
		return false
	}
	return true
}

// handle runs on a worker. A panic loses this message, not the process.
func (b *Bridge) handle(ctx context.Context, it item) {
	defer func() {
		if p := recover(); p != nil {
			b.panics.Add(1)
			b.cfg.Log.ErrorContext(ctx, "message handler panicked", logging.Thing, it.topic.Thing, "topic", it.topic.String(),
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	ctx = kitmqtt.WithArrival(ctx, it.received)
	switch {
	case it.broker != "":
		b.hearBroker(ctx, it)
	case it.topic.Class == topics.Req:
		id, response := b.server.Serve(ctx, kitmqtt.Incoming{Thing: it.topic.Thing, Service: it.topic.Name, Method: it.topic.Method,
			Payload: it.payload, Received: it.received})
		if id != "" && response != nil {
			b.answer(outgoing{topics.ResTopic(it.topic.Thing, id), response}) // by the worker itself: a wait for the outbox is a change of threads
		}
	default:
		handler, ok := b.on.Up[it.topic.Name]
		if !ok {
			b.unhandled.Add(1)
			b.cfg.Log.DebugContext(ctx, "message without a handler ignored", logging.Thing, it.topic.Thing, "name", clip(it.topic.Name))
			return
		}
		handler(ctx, it.topic.Thing, it.payload, b.answerTo(it.topic.Thing))
	}
}

// answerTo returns the answer function of one message of id.
func (b *Bridge) answerTo(id thing.ID) func(ack.Ack) {
	return func(a ack.Ack) {
		payload, err := a.Encode()
		if err != nil {
			b.cfg.Log.Error("acknowledgement not encodable", logging.Thing, id, logging.Err, err)
			return
		}
		b.post(topics.DownTopic(id, topics.Ack), payload)
	}
}

func (b *Bridge) hearBroker(ctx context.Context, it item) {
	var err error
	switch it.broker {
	case brokerapi.RefusedTopic:
		var r brokerapi.Refusal
		if r, err = brokerapi.ParseRefusal(it.payload); err == nil && b.on.OnRefused != nil {
			b.on.OnRefused(ctx, r)
		}
	case brokerapi.StatsTopic:
		var s brokerapi.Stats
		if s, err = brokerapi.ParseStats(it.payload); err == nil && b.on.OnStats != nil {
			b.on.OnStats(ctx, s)
		}
	}
	if err != nil {
		b.malformed.Add(1)
		b.cfg.Log.WarnContext(ctx, "broker message unreadable", "topic", it.broker, logging.Err, err)
	}
}

// post queues an answer and never blocks.
func (b *Bridge) post(topic string, payload []byte) {
	select {
	case b.outbox <- outgoing{topic, payload}:
	default:
		b.unsent.Add(1)
	}
}

// answer publishes at QoS 0: who misses an answer asks again, and a PUBACK would only add a round trip to each.
func (b *Bridge) answer(m outgoing) {
	if err := b.link.Post(m.topic, m.payload); err != nil {
		b.unsent.Add(1)
		b.cfg.Log.Debug("answer not sent", "topic", m.topic, logging.Err, err)
		return
	}
	b.answered.Add(1)
}

// send publishes what waits in the outbox.
func (b *Bridge) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-b.outbox:
			b.answer(m)
		}
	}
}

// Hint publishes payload, retained, on the thing's down/<name>: the first at once, then the latest value at most once a second for each
// thing and name; a few changes within that second are sent at once without being retained. It returns at once; a hint that could not be published is tried again each second until a newer one replaces it.
func (b *Bridge) Hint(ctx context.Context, id thing.ID, name string, payload []byte) {
	topic := topics.DownTopic(id, name)
	quick, ok := b.hints.put(topic, payload)
	if quick {
		b.post(topic, payload)
	}
	if !ok {
		b.cfg.Log.WarnContext(ctx, "hint queue full; hint dropped", logging.Thing, id, "name", name)
	}
}

// Send publishes one message on the thing's down/<name> and returns when the broker has it. It is for what has its own record and resend,
// such as commands.
func (b *Bridge) Send(ctx context.Context, id thing.ID, name string, payload []byte) error {
	return b.link.Publish(ctx, topics.DownTopic(id, name), 1, false, payload)
}

// Publish sends one message over the bridge's connection, for what is not the business of one thing, such as orders to the broker.
func (b *Bridge) Publish(ctx context.Context, topic string, qos byte, retained bool, payload []byte) error {
	return b.link.Publish(ctx, topic, qos, retained, payload)
}

// clip bounds what a robot makes us log.
func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
