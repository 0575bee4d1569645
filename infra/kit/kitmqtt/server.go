package kitmqtt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"kennel/infra/api/envelope"
	"kennel/infra/api/traceparent"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// How long a handler may run: what the robot will wait, but never more than maxRun; defaultRun if the header does not say.
const (
	defaultRun = 15 * time.Second
	maxRun     = 30 * time.Second
)

// Incoming is one message as it came from the broker.
type Incoming struct {
	Thing           thing.ID // from the topic, which the broker checked against the certificate
	Service, Method string   // from the topic
	Payload         []byte   // an envelope; Serve keeps no reference after it returned
	Received        time.Time
}

// Stats counts what a Server did since it was made.
type Stats struct {
	Requests   int64 // messages with a readable header
	Unreadable int64 // no header to answer to
	Malformed  int64 // header fine, body not
	Unknown    int64 // no handler of that service and method
	Expired    int64 // waited longer than the robot does
	Duplicates int64 // repeated while running or answered from the cache
	Failed     int64 // handler answered an error
	Panics     int64
}

// Server answers requests with handlers named "service/method". It is safe for concurrent use.
type Server struct {
	handlers map[string]ReqHandler
	log      *slog.Logger
	answers  *cache

	requests, unreadable, malformed, unknown, expired, duplicates, failed, panics atomic.Int64
}

// NewServer returns a Server. handlers must not change afterwards.
func NewServer(handlers map[string]ReqHandler, log *slog.Logger) *Server {
	return &Server{handlers: handlers, log: log, answers: newCache()}
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	return Stats{s.requests.Load(), s.unreadable.Load(), s.malformed.Load(), s.unknown.Load(), s.expired.Load(), s.duplicates.Load(),
		s.failed.Load(), s.panics.Load()}
}

// Serve runs the handler that in asks for and returns the response and the request id whose res topic it goes to. There is nothing to
// send when id is "": the header could not be read, or the same request is running now and its one answer is on the way (VEC-FLE-02).
func (s *Server) Serve(ctx context.Context, in Incoming) (id string, response []byte) {
	req, body, err := envelope.DecodeRequest(in.Payload)
	if req.ID == "" {
		s.unreadable.Add(1)
		s.log.WarnContext(ctx, "request header unreadable", logging.Thing, in.Thing, "service", in.Service, "method", in.Method,
			"bytes", len(in.Payload), logging.Err, err)
		return "", nil
	}
	s.requests.Add(1)
	ctx = in.context(ctx, req)
	if err != nil {
		s.malformed.Add(1)
		return req.ID, s.refuse(ctx, in, req.ID, errs.Coded(errs.Invalid, "malformed", "request %s/%s: %w", in.Service, in.Method, err))
	}
	name := in.Service + "/" + in.Method
	handler, ok := s.handlers[name]
	if !ok {
		s.unknown.Add(1)
		return req.ID, s.refuse(ctx, in, req.ID, errs.Coded(errs.NotFound, "unknown_method", "this cloud has no request %.80q", name))
	}

	key := cacheKey{in.Thing, name, req.ID}
	cached, state := s.answers.begin(key, time.Now())
	switch state {
	case running:
		s.duplicates.Add(1)
		return "", nil
	case answered:
		s.duplicates.Add(1)
		return req.ID, cached
	}
	// From here the answer is kept, whatever happens: a repetition must not run the handler again.
	defer func() { s.answers.finish(key, response, time.Now()) }()

	run := time.Duration(req.TTL)
	if run == 0 {
		run = defaultRun
	}
	deadline := in.Received.Add(min(run, maxRun))
	if !time.Now().Before(deadline) {
		s.expired.Add(1)
		return req.ID, s.refuse(ctx, in, req.ID, errs.Coded(errs.Unavailable, "expired", "request %s waited here past its deadline", name))
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	answer, err := s.call(ctx, handler, in.Thing, name, body)
	if err != nil {
		s.failed.Add(1)
		return req.ID, s.refuse(ctx, in, req.ID, err)
	}
	out, err := envelope.EncodeResponse(envelope.Response{ID: req.ID, Status: "ok", TS: time.Now().UnixMilli()}, answer)
	if err != nil {
		s.failed.Add(1)
		return req.ID, s.refuse(ctx, in, req.ID, errs.Coded(errs.Invalid, "too_large", "answer to %s: %w; ask over HTTPS", name, err))
	}
	return req.ID, out
}

// context carries what belongs to the request: the robot's trace for spans below, and the facts for logs. A traceparent that
// cannot be read is as good as none.
func (in Incoming) context(ctx context.Context, req envelope.Request) context.Context {
	facts := []slog.Attr{slog.String(logging.Request, req.ID), slog.String(logging.Caller, string(in.Thing))}
	if p, err := traceparent.Parse(req.TP); err == nil {
		ctx = traceparent.With(ctx, p)
		facts = append(facts, slog.String(logging.Trace, p.TraceID()))
	}
	return logging.With(WithArrival(ctx, in.Received), facts...)
}

// call runs one handler. A panic becomes an Internal error, logged with its stack: the process lives on.
func (s *Server) call(ctx context.Context, h ReqHandler, id thing.ID, name string, body []byte) (answer []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.panics.Add(1)
			s.log.ErrorContext(ctx, "request panicked", logging.Thing, id, "request", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			answer, err = nil, errs.New(errs.Internal, "internal error")
		}
	}()
	return h(ctx, id, body)
}

// refuse encodes err as a response, and logs what is ours to mend.
func (s *Server) refuse(ctx context.Context, in Incoming, id string, err error) []byte {
	kind := errs.KindOf(err)
	switch {
	case kind != errs.Internal:
	case errors.Is(err, context.DeadlineExceeded):
		kind, err = errs.Unavailable, errs.Coded(errs.Unavailable, "timeout", "%s/%s took longer than the deadline of the request", in.Service, in.Method)
	case errors.Is(err, context.Canceled): // this process stops; another one, or the next, answers
		kind, err = errs.Unavailable, errs.Coded(errs.Unavailable, "stopping", "%s/%s was interrupted: the service is stopping", in.Service, in.Method)
	}
	if kind == errs.Internal || kind == errs.Corrupt {
		s.log.ErrorContext(ctx, "request failed", logging.Thing, in.Thing, "service", in.Service, "method", in.Method, logging.Err, err)
	}
	out, encErr := envelope.EncodeResponse(envelope.Response{
		ID: id, Status: kind.String(), Code: errs.CodeOf(err), Error: clip(errs.Public(err)), RetryAfter: envelope.Millis(errs.RetryOf(err)),
		TS: time.Now().UnixMilli(),
	}, nil)
	if encErr != nil { // a header of bounded fields always fits
		s.log.ErrorContext(ctx, "response not encodable", logging.Thing, in.Thing, logging.Err, encErr)
		return nil
	}
	return out
}

// clip keeps an error's text within what a response header may hold (envelope.MaxHeader).
func clip(s string) string {
	const most = 1000
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
