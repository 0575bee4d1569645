package command

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"kennel/infra/api/commandwire"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Pace of repetition: the pause after the n-th time is Resend * 2^n, at most MaxResend, and as much as a quarter longer by chance.
const (
	Resend    = 2 * time.Second
	MaxResend = 5 * time.Minute
)

const (
	look      = time.Second // a lost notification delays a command by at most this
	batch     = 64
	sendLimit = 5 * time.Second
)

// Outbox is the storage that a Sender needs.
type Outbox interface {
	// Due returns at most limit commands to send now, one of a thing, and notes that they were sent: no process
	// gets them again before the pause of SetPace has passed.
	Due(ctx context.Context, limit int) ([]Outgoing, error)
	// Follow calls send whenever a command may be due, and after every so often, until ctx ends; it then returns nil (pg.Follow).
	Follow(ctx context.Context, log *slog.Logger, every time.Duration, send func(context.Context) error) error
}

// Publish hands one message to the broker: down/<name> of a thing.
type Publish func(ctx context.Context, id thing.ID, name string, payload []byte) error

// Sender sends what is due. Any number of processes may run one; one that dies between taking and sending costs a pause.
type Sender struct {
	outbox  Outbox
	publish Publish
	ready   func() bool
	log     *slog.Logger

	sent, unsent atomic.Int64
}

// NewSender returns a sender that does nothing until Run. ready says whether the broker can be reached: what cannot be sent now is left to
// a process that can.
func NewSender(outbox Outbox, publish Publish, ready func() bool, log *slog.Logger) *Sender {
	return &Sender{outbox: outbox, publish: publish, ready: ready, log: log}
}

// SenderStats counts since the Sender was made.
type SenderStats struct {
	Sent   int64 // messages the broker took
	Unsent int64 // messages it did not take; they are sent again after their pause
}

// Stats returns the counters.
func (s *Sender) Stats() SenderStats { return SenderStats{s.sent.Load(), s.unsent.Load()} }

// Run sends until ctx ends and returns nil. The database may go away and come back meanwhile.
func (s *Sender) Run(ctx context.Context) error {
	return s.outbox.Follow(ctx, s.log, look, func(ctx context.Context) error {
		for {
			if more, err := s.round(ctx); err != nil || !more {
				return err
			}
		}
	})
}

// round sends one batch and reports whether there may be more.
func (s *Sender) round(ctx context.Context) (more bool, err error) {
	if !s.ready() {
		return false, nil
	}
	qctx, cancel := context.WithTimeout(ctx, sendLimit)
	due, err := s.outbox.Due(qctx, batch)
	cancel()
	if err != nil {
		return false, err
	}
	for _, c := range due {
		if err := s.send(ctx, c); err != nil {
			s.unsent.Add(1)
			s.log.DebugContext(ctx, "command not sent", logging.Thing, c.Thing, "command", c.ID, logging.Err, err)
			if errs.KindOf(err) == errs.Unavailable && !s.ready() {
				return false, nil // the rest has its pause too
			}
			continue
		}
		s.sent.Add(1)
	}
	return len(due) == batch, nil
}

func (s *Sender) send(ctx context.Context, c Outgoing) error {
	payload, err := c.Wire().Encode()
	if err != nil {
		return fmt.Errorf("command %s: %w", c.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	return s.publish(ctx, c.Thing, commandwire.Topic(c.Kind), payload)
}
