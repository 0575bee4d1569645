package natsserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/queue"
)

// The stream of uplink messages, and its one consumer, which all kenneld share.
const (
	streamName   = "KENNEL"
	consumerName = "kenneld"
)

// Our own limits (the source gives none).
const (
	uplinkAge     = time.Hour        // a message that no process took for that long: its robot has sent it again long since
	uplinkBytes   = 1 << 30          // of the stream; beyond that the oldest go, and their robots send them again
	ackWait       = 30 * time.Second // after which a message that was given to a kenneld is given to another
	maxReceives   = 20               // then it is dropped
	ackPending    = 20_000           // given out and not acknowledged, all kenneld together
	fetchMessages = 256              // under way to this process
	notTakenPause = time.Second      // until a message that had no room is given out again
	setupTime     = 5 * time.Second
	lagEvery      = 2 * time.Second
)

// Uplink is a queue.Source of the robots' messages: a stream of the cluster that keeps each until one kenneld has taken it (a work queue). Safe
// for concurrent use.
type Uplink struct {
	servers  Servers
	replicas int

	received, taken, notTaken, unreadable, dead, failures atomic.Int64
	lag                                                   atomic.Int64
	answered                                              atomic.Int64 // when the consumer's state was last read, Unix nanoseconds; 0: never

	heard   sync.Once
	hearing chan struct{} // closed once there is a stream
}

var _ queue.Source = (*Uplink)(nil)

// OpenUplink returns a source that does nothing until Run. replicas is how many servers keep a copy of each message: 1, 3 or 5.
func OpenUplink(s Servers, replicas int) (*Uplink, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if replicas != 1 && replicas != 3 && replicas != 5 {
		return nil, errs.New(errs.Invalid, "nats: %d replicas of the uplink: want 1, 3 or 5", replicas)
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	return &Uplink{servers: s, replicas: replicas, hearing: make(chan struct{})}, nil
}

// Stats returns the counters.
func (u *Uplink) Stats() queue.Stats {
	return queue.Stats{Received: u.received.Load(), Taken: u.taken.Load(), NotTaken: u.notTaken.Load(), Unreadable: u.unreadable.Load(), Dead: u.dead.Load(),
		Failures: u.failures.Load()}
}

// Hearing blocks until there is a stream: what robots publish before is not kept, and they send it again.
func (u *Uplink) Hearing(ctx context.Context) error {
	select {
	case <-u.hearing:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stream %s: %w", streamName, ctx.Err())
	}
}

// Lag returns how many messages of the fleet no kenneld has been given yet, and how old that number is. ok is false until it was read once.
func (u *Uplink) Lag() (messages int64, age time.Duration, ok bool) {
	at := u.answered.Load()
	if at == 0 {
		return 0, 0, false
	}
	return u.lag.Load(), time.Since(time.Unix(0, at)), true
}

// Run receives until ctx ends and returns nil. It makes the stream if there is none; a cluster that cannot be reached is asked again.
func (u *Uplink) Run(ctx context.Context, take func(topic string, payload []byte) bool) error {
	conn, err := u.servers.connect("kenneld-uplink", u.servers.Keys.service)
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	defer conn.Close()
	pause := backoff.Pause{Min: reconnectWait, Max: 5 * time.Second}
	for {
		err := u.once(ctx, conn, take)
		if ctx.Err() != nil {
			return nil
		}
		u.failures.Add(1)
		wait := pause.Next(nil)
		u.servers.Log.WarnContext(ctx, "queue not read", "queue", streamName, logging.Err, err, "retry_in", wait.Round(time.Millisecond))
		if backoff.Sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// once receives until the consumer fails for good or ctx ends.
func (u *Uplink) once(ctx context.Context, conn *nats.Conn, take func(string, []byte) bool) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	consumer, err := u.setup(ctx, js)
	if err != nil {
		return err
	}
	ended := make(chan error, 1) // the first reason
	u.heard.Do(func() { close(u.hearing) })
	consuming, err := consumer.Consume(func(m jetstream.Msg) { u.handle(ctx, m, take) },
		jetstream.PullMaxMessages(fetchMessages), jetstream.PullExpiry(5*time.Second), jetstream.PullHeartbeat(time.Second),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			if errors.Is(err, jetstream.ErrNoHeartbeat) { // the server that led the consumer is gone; the library asks again
				return
			}
			select {
			case ended <- err:
			default:
			}
		}))
	if err != nil {
		return err
	}
	defer func() { consuming.Stop(); <-consuming.Closed() }()
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-consuming.Closed():
			return errors.New("the consumer was closed")
		case err := <-ended:
			return err
		case <-tick.C:
			u.look(ctx, consumer)
		}
	}
}

// setup makes the stream and its consumer, or changes them to these settings.
func (u *Uplink) setup(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: streamName, Subjects: []string{"kennel.*.up.*", "kennel.*.req.*.*"}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardOld,
		MaxAge: uplinkAge, MaxBytes: uplinkBytes, Storage: jetstream.FileStorage, Replicas: u.replicas, NoAck: true,
	})
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", streamName, err)
	}
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: maxReceives, MaxAckPending: ackPending,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer %s of stream %s: %w", consumerName, streamName, err)
	}
	return consumer, nil
}

func (u *Uplink) look(ctx context.Context, c jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(ctx, lagEvery)
	defer cancel()
	info, err := c.Info(ctx)
	if err != nil {
		return // Lag says how old its number is
	}
	u.lag.Store(int64(min(info.NumPending, 1<<62)))
	u.answered.Store(time.Now().UnixNano())
}

// handle passes a message on. What was taken is removed; what was not is given out again, to this process or another.
func (u *Uplink) handle(ctx context.Context, m jetstream.Msg, take func(string, []byte) bool) {
	u.received.Add(1)
	topic, err := topicOf(m.Subject())
	switch {
	case err != nil:
		u.unreadable.Add(1)
		u.servers.Log.WarnContext(ctx, "queue message unreadable", "queue", streamName, logging.Err, err)
		err = m.Term()
	case take(topic, m.Data()):
		u.taken.Add(1)
		err = m.Ack()
	default:
		u.notTaken.Add(1)
		if meta, bad := m.Metadata(); bad == nil && meta.NumDelivered >= maxReceives {
			u.dead.Add(1)
			u.servers.Log.ErrorContext(ctx, "message dropped after too many attempts", "queue", streamName, "topic", topic, "times", meta.NumDelivered)
			err = m.Term()
			break
		}
		err = m.NakWithDelay(notTakenPause)
	}
	if err != nil { // it comes again, which costs repeated work and no damage
		u.failures.Add(1)
	}
}

// topicOf returns the MQTT topic of a subject, as NATS servers map them: levels are divided by "." and a "." of the topic is "//".
func topicOf(subject string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(subject); i++ {
		switch c := subject[i]; c {
		case '.':
			b.WriteByte('/')
		case '/':
			if i++; i == len(subject) || subject[i] != '/' {
				return "", fmt.Errorf("subject %.120q, byte %d: one slash: want two, or none", subject, i)
			}
			b.WriteByte('.')
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
