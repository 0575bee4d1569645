// Package queue takes the fleet's uplink from a queue that a broker's rule engine fills: the way in where a broker limits what one
// connection may receive, as AWS IoT Core does (infra/mqtt/brokeradmin/awsiot has the rules that fill it).
//
// A message is deleted once it was taken, and is delivered again after its visibility timeout otherwise. It may therefore come twice, as on
// MQTT, and delivery is guaranteed only by the application's acknowledgement (infra/adr/0001). A message that cannot be read, or is refused
// again and again, is left to the queue's own redrive policy; if it still comes it is dropped and counted as dead.
//
// AWS cannot run here: SQS is tested against queuetest, a hand-written server that speaks its JSON protocol as published and checks that
// requests are signed.
package queue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"kennel/infra/api/topics"
	"kennel/infra/awsconfig"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Source is a source of uplink messages.
type Source interface {
	// Run hands each message to take until ctx ends, then returns nil. take returns at once; it returns false if the message must be delivered again.
	Run(ctx context.Context, take func(topic string, payload []byte) (taken bool)) error
}

// Our own limits (the source gives none).
const (
	waitSeconds  = 20 // of a long poll, the most that SQS allows
	batchSize    = 10 // messages of one request, the most that SQS allows
	requestTime  = 10 * time.Second
	minBackoff   = time.Second
	maxBackoff   = time.Minute
	busyPause    = time.Second // after a batch of which nothing was taken
	maxReceivers = 64
	lagEvery     = 10 * time.Second
)

// Config says which queue.
type Config struct {
	URL string `koanf:"url"` // https://sqs.REGION.amazonaws.com/ACCOUNT/NAME; "": no queue
	// AWS holds region and credentials; an empty endpoint means the scheme and host of URL.
	AWS         awsconfig.Config `koanf:"aws"`
	Receivers   int              `koanf:"receivers"`    // long polls at once, default 4
	Visibility  time.Duration    `koanf:"visibility"`   // how long a message that was not taken stays hidden, whole seconds, default 30s
	MaxReceives int              `koanf:"max_receives"` // a message that was received more often is given up, default 20; keep the redrive policy's limit lower
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || len(u.Path) < 2 {
		return errs.New(errs.Invalid, "uplink.sqs.url %q: want https://HOST/ACCOUNT/NAME", c.URL)
	}
	switch {
	case c.Receivers < 0 || c.Receivers > maxReceivers:
		return errs.New(errs.Invalid, "uplink.sqs.receivers %d: want 1 to %d", c.Receivers, maxReceivers)
	case c.Visibility < 0 || c.Visibility > 12*time.Hour || c.Visibility%time.Second != 0:
		return errs.New(errs.Invalid, "uplink.sqs.visibility %v: want whole seconds, at most 12h", c.Visibility)
	case c.MaxReceives < 0:
		return errs.New(errs.Invalid, "uplink.sqs.max_receives %d: want at least 1", c.MaxReceives)
	}
	return c.AWS.Validate("uplink.sqs.aws")
}

// Stats counts since the source was opened.
type Stats struct {
	Received   int64 // messages, repeated ones too
	Taken      int64
	NotTaken   int64 // left for later
	Unreadable int64 // not in the format that the rules write
	Dead       int64 // dropped after too many attempts
	Failures   int64 // requests to the queue that failed for good
}

// SQS is a Source on Amazon SQS. It is safe for concurrent use.
type SQS struct {
	cfg    Config
	client *sqs.Client
	log    *slog.Logger

	received, taken, notTaken, unreadable, dead, failures atomic.Int64
	lag, answered                                         atomic.Int64 // messages; when that was read, Unix nanoseconds, 0: never
}

var _ Source = (*SQS)(nil)

// Open prepares an SQS source; it does not talk to the queue.
func Open(ctx context.Context, c Config, log *slog.Logger) (*SQS, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Receivers, c.Visibility, c.MaxReceives = cmp.Or(c.Receivers, 4), cmp.Or(c.Visibility, 30*time.Second), cmp.Or(c.MaxReceives, 20)
	if c.AWS.Endpoint == "" {
		u, _ := url.Parse(c.URL) // validated
		c.AWS.Endpoint = u.Scheme + "://" + u.Host
	}
	ac, err := c.AWS.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("uplink.sqs.aws: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &SQS{cfg: c, client: sqs.NewFromConfig(ac), log: log}, nil
}

// Stats returns the counters.
func (s *SQS) Stats() Stats {
	return Stats{Received: s.received.Load(), Taken: s.taken.Load(), NotTaken: s.notTaken.Load(), Unreadable: s.unreadable.Load(), Dead: s.dead.Load(),
		Failures: s.failures.Load()}
}

// Run receives until ctx ends. A queue that cannot be reached is asked again, with back-off.
func (s *SQS) Run(ctx context.Context, take func(topic string, payload []byte) bool) error {
	var wg sync.WaitGroup
	for range s.cfg.Receivers {
		wg.Go(func() { s.receive(ctx, take) })
	}
	wg.Go(func() { s.look(ctx) })
	wg.Wait()
	return nil
}

// Lag returns how many messages wait in the queue, as SQS estimates, and how old that number is. ok is false until it was read once, which needs
// the right sqs:GetQueueAttributes.
func (s *SQS) Lag() (messages int64, age time.Duration, ok bool) {
	at := s.answered.Load()
	if at == 0 {
		return 0, 0, false
	}
	return s.lag.Load(), time.Since(time.Unix(0, at)), true
}

// look keeps Lag's number until ctx ends. A queue that does not say it is read all the same.
func (s *SQS) look(ctx context.Context) {
	for ctx.Err() == nil {
		if n, err := s.waiting(ctx); err != nil {
			s.log.DebugContext(ctx, "queue length not read", "queue", s.cfg.URL, logging.Err, err)
		} else {
			s.lag.Store(n)
			s.answered.Store(time.Now().UnixNano())
		}
		_ = backoff.Sleep(ctx, lagEvery) // the loop looks at ctx
	}
}

func (s *SQS) waiting(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	const name = types.QueueAttributeNameApproximateNumberOfMessages
	out, err := s.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &s.cfg.URL, AttributeNames: []types.QueueAttributeName{name}})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(out.Attributes[string(name)], 10, 64)
}

func (s *SQS) receive(ctx context.Context, take func(string, []byte) bool) {
	pause := backoff.Pause{Min: minBackoff, Max: maxBackoff}
	for ctx.Err() == nil {
		messages, err := s.poll(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			s.failures.Add(1)
			wait := pause.Next(nil)
			s.log.WarnContext(ctx, "queue not read", "queue", s.cfg.URL, logging.Err, err, "retry_in", wait.Round(time.Millisecond))
			_ = backoff.Sleep(ctx, wait) // the loop looks at ctx
			continue
		}
		pause.Reset()
		done := s.handle(ctx, messages, take)
		s.delete(ctx, done)
		if len(messages) > 0 && len(done) == 0 {
			_ = backoff.Sleep(ctx, busyPause) // as above
		}
	}
}

func (s *SQS) poll(ctx context.Context) ([]types.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, waitSeconds*time.Second+requestTime)
	defer cancel()
	out, err := s.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &s.cfg.URL, MaxNumberOfMessages: batchSize, WaitTimeSeconds: waitSeconds, VisibilityTimeout: int32(s.cfg.Visibility / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// handle passes messages on and returns those to delete.
func (s *SQS) handle(ctx context.Context, messages []types.Message, take func(string, []byte) bool) (done []types.Message) {
	for _, m := range messages {
		s.received.Add(1)
		topic, payload, err := decode([]byte(aws.ToString(m.Body)))
		switch {
		case err != nil:
			s.unreadable.Add(1)
		case take(topic, payload):
			s.taken.Add(1)
			done = append(done, m)
			continue
		default:
			s.notTaken.Add(1)
		}
		times, _ := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]) // 0: the queue does not count
		if times < s.cfg.MaxReceives {
			continue
		}
		s.dead.Add(1)
		done = append(done, m)
		s.log.ErrorContext(ctx, "message dropped after too many attempts", "queue", s.cfg.URL,
			"message_id", aws.ToString(m.MessageId), "times", times, "topic", topic, logging.Err, err)
	}
	return done
}

// delete removes messages; those that stay are delivered again, which costs repeated work and no damage. It also works just after ctx has ended.
func (s *SQS) delete(ctx context.Context, done []types.Message) {
	if len(done) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &s.cfg.URL}
	for i, m := range done {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	out, err := s.client.DeleteMessageBatch(ctx, in)
	if err == nil && len(out.Failed) > 0 {
		err = fmt.Errorf("%d of %d: %s: %s", len(out.Failed), len(done), aws.ToString(out.Failed[0].Code), aws.ToString(out.Failed[0].Message))
	}
	if err != nil {
		s.failures.Add(1)
		s.log.WarnContext(ctx, "messages not deleted; they will be redelivered", "queue", s.cfg.URL, "messages", len(done), logging.Err, err)
	}
}

// body is the form that the rules of the broker write: SELECT topic() AS topic, encode(*, 'base64') AS payload.
type body struct {
	Topic   string `json:"topic"`
	Payload string `json:"payload"`
}

func decode(b []byte) (topic string, payload []byte, err error) {
	var m body
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return "", nil, fmt.Errorf("queue message: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return "", nil, fmt.Errorf("queue message: data after the JSON object at byte %d", dec.InputOffset())
	}
	if m.Topic == "" {
		return "", nil, errors.New("queue message: no topic")
	}
	if n := base64.StdEncoding.DecodedLen(len(m.Payload)); n > topics.MaxPayload+2 {
		return "", nil, fmt.Errorf("queue message: payload of about %d bytes: want at most %d", n, topics.MaxPayload)
	}
	if payload, err = base64.StdEncoding.DecodeString(m.Payload); err != nil {
		return "", nil, fmt.Errorf("queue message: payload: %w", err)
	}
	return m.Topic, payload, nil
}

// Encode returns the body of the message that the rules write for one MQTT message.
func Encode(topic string, payload []byte) ([]byte, error) {
	return json.Marshal(body{topic, base64.StdEncoding.EncodeToString(payload)})
}
