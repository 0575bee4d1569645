// Package kitmqtt is request and reply over MQTT, the third transport beside HTTP and gRPC: a robot publishes an envelope with an id
// and the time it will wait on kennel/<thing>/req/<service>/<method>, the cloud answers on kennel/<thing>/res/<id> (VEC-FLE-02).
//
// Delivery is at least once in both directions and the broker may lose anything at any time. So the robot (Client) resends a request
// under the same id until it is answered, and the cloud (Server) answers a repeated id from a cache, while the first one still runs and
// for some minutes after it. Across processes of the cloud the cache is not shared: what a handler writes is idempotent by itself
// (documents by version, commands by id), the cache only makes repetition cheap and the answer stable.
package kitmqtt

import (
	"context"
	"encoding/json"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// UpHandler takes one uplink message of a robot (kennel/<thing>/up/<name>). It is called in the order of arrival for one thing and must
// not block long. answer publishes an acknowledgement on the thing's down/ack; it may be called later from any goroutine, once, or never
// (the robot then sends again). payload belongs to the handler.
type UpHandler func(ctx context.Context, id thing.ID, payload []byte, answer func(ack.Ack))

// ReqHandler answers one request of a robot. ctx ends when the robot stops waiting. An error's kind, code, public message and retry
// pause go into the response's header (infra/errs); anything else the robot sees as internal. body belongs to the handler.
type ReqHandler func(ctx context.Context, id thing.ID, body []byte) ([]byte, error)

// Handler answers requests with a typed function: parse reads the body, and the answer is encoded as JSON. What parse refuses is Invalid, code
// "malformed", unless its error has a kind.
func Handler[Req, Resp any](parse func(body []byte) (Req, error), fn func(ctx context.Context, id thing.ID, req Req) (Resp, error)) ReqHandler {
	return func(ctx context.Context, id thing.ID, body []byte) ([]byte, error) {
		req, err := parse(body)
		if err != nil && errs.KindOf(err) == errs.Internal {
			err = errs.Coded(errs.Invalid, "malformed", "%w", err)
		}
		if err != nil {
			return nil, err
		}
		resp, err := fn(ctx, id, req)
		if err != nil {
			return nil, err
		}
		return json.Marshal(resp)
	}
}

// Empty is the parse of requests whose body, if any, says nothing.
func Empty([]byte) (struct{}, error) { return struct{}{}, nil }

// Requester asks the cloud, from the robot's side. Do resends with jittered back-off until it is answered or ctx ends; the error of an
// answer carries its errs kind, an answer that never came is errs.Unavailable.
type Requester interface {
	Do(ctx context.Context, service, method string, body []byte) ([]byte, error)
}

type arrivalKey struct{}

// WithArrival returns ctx carrying when the message that is handled under it came from the broker.
func WithArrival(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey{}, at)
}

// Arrival returns when the message that ctx belongs to came from the broker; the zero time if it is not known.
func Arrival(ctx context.Context) time.Time {
	at, _ := ctx.Value(arrivalKey{}).(time.Time)
	return at
}
