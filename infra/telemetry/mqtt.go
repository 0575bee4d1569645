package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"kennel/infra/api/ack"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/thing"
)

type mqttRequest struct {
	id   thing.ID
	body []byte
}

// Requests measures the handlers of robots' requests, each under its name. A request's span begins when its message arrived, so that
// waiting for a worker shows.
func (t *Telemetry) Requests(handlers map[string]kitmqtt.ReqHandler) map[string]kitmqtt.ReqHandler {
	out := make(map[string]kitmqtt.ReqHandler, len(handlers))
	for name, h := range handlers {
		ep := t.Endpoint(TransportMQTT, name)(kit.Typed(func(ctx context.Context, r mqttRequest) ([]byte, error) { return h(ctx, r.id, r.body) }))
		out[name] = func(ctx context.Context, id thing.ID, body []byte) ([]byte, error) {
			ctx, end := t.arrived(ctx, name)
			kind := errs.Internal.String() // of a panic
			defer func() { end(kind) }()
			resp, err := ep(ctx, mqttRequest{id, body})
			kind = kindOf(err)
			if err != nil {
				return nil, err
			}
			answer, _ := resp.([]byte) // the handler's answer
			return answer, nil
		}
	}
	return out
}

// Ups measures the handlers of uplink messages, each under its name: how long they keep a worker, and how long the robot waits for its
// acknowledgement.
func (t *Telemetry) Ups(handlers map[string]kitmqtt.UpHandler) map[string]kitmqtt.UpHandler {
	out := make(map[string]kitmqtt.UpHandler, len(handlers))
	for name, h := range handlers {
		full := "up/" + name
		ep := t.Endpoint(TransportMQTT, full)(kit.Typed(func(ctx context.Context, u upMessage) (any, error) {
			h(ctx, u.id, u.payload, u.answer)
			return nil, nil
		}))
		out[name] = func(ctx context.Context, id thing.ID, payload []byte, answer func(ack.Ack)) {
			ctx, end := t.arrived(ctx, full)
			kind := errs.Internal.String() // of a panic
			defer func() { end(kind) }()
			start := time.Now()
			_, _ = ep(ctx, upMessage{id, payload, func(a ack.Ack) { // it returns no error: the outcome is in the acknowledgement
				t.answers.WithLabelValues(name, string(a.Status)).Observe(time.Since(start).Seconds())
				answer(a)
			}})
			kind = ok
		}
	}
	return out
}

type upMessage struct {
	id      thing.ID
	payload []byte
	answer  func(ack.Ack)
}

// arrived begins the bridge's span at the message's arrival and notes how long it waited.
func (t *Telemetry) arrived(ctx context.Context, name string) (context.Context, func(kind string)) {
	at := kitmqtt.Arrival(ctx)
	if !at.IsZero() {
		t.lag.Observe(max(0, time.Since(at).Seconds()))
	}
	ctx, span := t.start(ctx, "bridge "+name, trace.SpanKindConsumer, at)
	return ctx, func(kind string) { endSpan(span, kind) }
}
