package kitmqtt

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kennel/infra/api/envelope"
	"kennel/infra/api/topics"
	"kennel/infra/api/traceparent"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// The robot's patience. Our own defaults (the source gives none).
const (
	firstResend = 2 * time.Second
	maxResend   = 30 * time.Second
	resendRatio = 1.6
	defaultTTL  = 30 * time.Second // what the cloud may take when the caller's context has no deadline
	maxTTL      = time.Hour
	maxInFlight = 64 // requests waiting at once; further ones wait for a slot
)

// Client asks the cloud over MQTT. It implements Requester and is safe for concurrent use. It starts no goroutines: each Do resends
// for itself.
type Client struct {
	id      thing.ID
	publish func(ctx context.Context, topic string, payload []byte) error
	onTime  func(time.Time) // may be nil
	slots   chan struct{}

	mu      sync.Mutex
	waiting map[string]chan answer // by request id; one slot each, so that Deliver never blocks
	resend  chan struct{}          // closed and replaced by Connected

	resent, late atomic.Int64
}

type answer struct {
	head envelope.Response
	body []byte
}

var _ Requester = (*Client)(nil)

// ClientOption changes a Client that is being made.
type ClientOption func(*Client)

// OnTime calls f with the cloud's time from each response to a request that was not retried: the answer to a repeated request may be
// older. f must not block.
func OnTime(f func(cloud time.Time)) ClientOption { return func(c *Client) { c.onTime = f } }

// NewClient returns the Client of thing id. publish sends one message and returns when the broker has it, or at once with an error when
// there is no connection.
func NewClient(id thing.ID, publish func(ctx context.Context, topic string, payload []byte) error, opts ...ClientOption) *Client {
	c := &Client{id: id, publish: publish, slots: make(chan struct{}, maxInFlight), waiting: map[string]chan answer{}, resend: make(chan struct{})}
	for _, o := range opts {
		o(c)
	}
	return c
}

// ClientStats counts since the Client was made.
type ClientStats struct {
	Waiting int   // requests without an answer now
	Resent  int64 // publishes after the first of a request
	Late    int64 // answers that came too late
}

// Stats returns the counters.
func (c *Client) Stats() ClientStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ClientStats{len(c.waiting), c.resent.Load(), c.late.Load()}
}

// Do sends a request and waits for its answer, resending under the same id after about 2 s, 3.2 s, ... at most 30 s, and whenever
// Connected is called. The cloud is told the context's deadline as time to live. An error answer has the errs kind, code and
// retry pause that the cloud gave; the trace in ctx (infra/api/traceparent), if any, goes along; no answer until ctx ends is errs.Unavailable with code "no_answer"; a body that no broker message
// can carry is errs.Invalid with code "too_large" and wraps envelope.ErrTooLarge.
func (c *Client) Do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	topic := topics.ReqTopic(c.id, service, method)
	if _, err := topics.Parse(topic); err != nil {
		return nil, errs.New(errs.Invalid, "request %.40q/%.40q: %w", service, method, err)
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, unanswered(ctx, service, method, 0, nil)
	}
	reqID := rand.Text()
	reply := make(chan answer, 1)
	c.mu.Lock()
	c.waiting[reqID] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, reqID)
		c.mu.Unlock()
	}()

	var pubErr error
	for sent, pause := 1, firstResend; ; sent++ {
		msg, err := envelope.EncodeRequest(envelope.Request{ID: reqID, TTL: ttl(ctx), TP: traceparent.From(ctx).String()}, body)
		if err != nil {
			return nil, errs.Coded(errs.Invalid, "too_large", "request %s/%s: %w", service, method, err)
		}
		again := c.connected()
		if sent > 1 {
			c.resent.Add(1)
		}
		pubErr = c.publish(ctx, topic, msg) // not fatal: it is sent again until it is answered
		select {
		case a := <-reply:
			if c.onTime != nil && sent == 1 && a.head.TS > 0 {
				c.onTime(time.UnixMilli(a.head.TS))
			}
			return a.result()
		case <-ctx.Done():
			return nil, unanswered(ctx, service, method, sent, pubErr)
		case <-again:
			pause = firstResend
		case <-time.After(backoff.Jitter(pause)):
			pause = min(time.Duration(float64(pause)*resendRatio), maxResend)
		}
	}
}

// Connected makes every waiting request resend now. Call it when a connection is up and subscribed.
func (c *Client) Connected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.resend)
	c.resend = make(chan struct{})
}

func (c *Client) connected() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resend
}

// Deliver takes a message from the thing's res topics. It never blocks. An unexpected answer (a repetition, or one that came
// too late) is counted and no error; an error says that the message is not an answer to this thing, and is to be logged.
func (c *Client) Deliver(topic string, payload []byte) error {
	t, err := topics.Parse(topic)
	if err != nil {
		return err
	}
	if t.Thing != c.id || t.Class != topics.Res {
		return fmt.Errorf("topic %.120q: want an answer to %s", topic, c.id)
	}
	head, body, err := envelope.DecodeResponse(payload)
	switch {
	case err != nil:
		err = errs.New(errs.Corrupt, "answer to request %.64q: %w", t.Name, err)
	case head.ID != t.Name:
		err = errs.New(errs.Corrupt, "answer to request %.64q arrived on the topic of %.64q", head.ID, t.Name)
	}
	c.mu.Lock()
	reply := c.waiting[t.Name]
	c.mu.Unlock()
	if reply == nil {
		c.late.Add(1)
		return nil
	}
	if err != nil {
		// Not handed to the waiter: the resend may bring a whole one.
		return err
	}
	select {
	case reply <- answer{head, body}:
	default: // answered already
		c.late.Add(1)
	}
	return nil
}

func (a answer) result() ([]byte, error) {
	if a.head.Status == "ok" {
		return a.body, nil
	}
	msg := a.head.Error
	if msg == "" {
		msg = "the cloud answered " + a.head.Status
	}
	return nil, &errs.Error{Kind: errs.ParseKind(a.head.Status), Code: a.head.Code, Msg: msg, Retry: time.Duration(a.head.RetryAfter)}
}

// ttl is the time the caller will keep waiting, in the whole milliseconds of the wire.
func ttl(ctx context.Context) envelope.Millis {
	d := defaultTTL
	if at, ok := ctx.Deadline(); ok {
		d = min(max(time.Until(at), time.Millisecond), maxTTL)
	}
	return envelope.Millis(d)
}

func unanswered(ctx context.Context, service, method string, sent int, pubErr error) error {
	msg := fmt.Sprintf("no answer to %s/%s, sent %d times", service, method, sent)
	if pubErr != nil {
		msg += "; the last time: " + pubErr.Error()
	}
	return &errs.Error{Kind: errs.Unavailable, Code: "no_answer", Msg: msg, Err: ctx.Err()}
}
