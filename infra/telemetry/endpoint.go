package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/go-kit/kit/endpoint"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"kennel/infra/errs"
)

// The transports, as labels.
const (
	TransportHTTP = "http"
	TransportMQTT = "mqtt"
)

// ok is the kind of an answer without an error.
const ok = "ok"

// Endpoint counts, times and traces one endpoint, by transport, name and outcome. It must be the outermost middleware. Name must come from
// a fixed list.
func (t *Telemetry) Endpoint(transport, name string) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, request any) (resp any, err error) {
			ctx, c := t.begin(ctx, transport, name)
			kind := errs.Internal.String() // of a panic, which continues to the recovering caller
			defer func() { c.end(kind) }()
			resp, err = next(ctx, request)
			kind = kindOf(err)
			return resp, err
		}
	}
}

// kindOf names the outcome of a request, as transports answer it.
func kindOf(err error) string {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, context.DeadlineExceeded):
		return errs.Unavailable.String()
	}
	return errs.KindOf(err).String()
}

// call is one request being answered.
type call struct {
	t               *Telemetry
	transport, name string
	start           time.Time
	span            trace.Span // nil: no traces
	told            bool
}

func (t *Telemetry) begin(ctx context.Context, transport, name string) (context.Context, *call) {
	c := &call{t: t, transport: transport, name: name, start: time.Now()}
	kind := trace.SpanKindServer
	if transport == TransportMQTT {
		kind = trace.SpanKindInternal // below the bridge's span
	}
	ctx, c.span = t.start(ctx, name, kind, time.Time{})
	t.running.WithLabelValues(transport).Inc()
	return ctx, c
}

// tell records the outcome of the call, once. Kind is ok or a kind of error.
func (c *call) tell(kind string) {
	if c.told {
		return
	}
	c.told = true
	took := time.Since(c.start).Seconds()
	observe(c.t.endpoints.WithLabelValues(c.transport, c.name, kind), took, c.span)
	endSpan(c.span, kind)
}

// end is tell for a call that has ended.
func (c *call) end(kind string) {
	c.tell(kind)
	c.t.running.WithLabelValues(c.transport).Dec()
}

// observe links the value to its trace, if that is kept: an exemplar.
func observe(o prometheus.Observer, seconds float64, span trace.Span) {
	e, can := o.(prometheus.ExemplarObserver)
	if can && span != nil && span.SpanContext().IsSampled() {
		e.ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": span.SpanContext().TraceID().String()})
		return
	}
	o.Observe(seconds)
}

func endSpan(span trace.Span, kind string) {
	if span == nil {
		return
	}
	span.SetAttributes(attribute.String("kennel.kind", kind))
	switch kind {
	case errs.Internal.String(), errs.Unavailable.String(), errs.Corrupt.String(): // ours; the others are the caller's
		span.SetStatus(codes.Error, kind)
	}
	span.End()
}
