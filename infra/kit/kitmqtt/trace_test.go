package kitmqtt

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/envelope"
	"kennel/infra/api/traceparent"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// TestTraceGoesAlong: the trace of the robot's context reaches the handler's, and what is logged there names request, robot and trace.
func TestTraceGoesAlong(t *testing.T) {
	var out strings.Builder
	log, err := logging.New(&out, "info", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got traceparent.Parent
	var arrived time.Time
	s := NewServer(map[string]ReqHandler{"t/echo": func(ctx context.Context, _ thing.ID, body []byte) ([]byte, error) {
		got, arrived = traceparent.From(ctx), Arrival(ctx)
		log.InfoContext(ctx, "echo")
		return body, nil
	}}, discard())
	now := time.Now()
	var c *Client
	c = NewClient(rex, func(ctx context.Context, _ string, payload []byte) error {
		id, resp := s.Serve(context.WithoutCancel(t.Context()), Incoming{Thing: rex, Service: "t", Method: "echo", Payload: payload, Received: now})
		return c.Deliver("kennel/"+string(rex)+"/res/"+id, resp)
	})
	for _, want := range []traceparent.Parent{traceparent.New(1000), traceparent.New(0), {}} {
		out.Reset()
		if _, err := c.Do(traceparent.With(t.Context(), want), "t", "echo", nil); err != nil {
			t.Fatal(err)
		}
		if got != want || !arrived.Equal(now) {
			t.Errorf("handler saw %+v at %v, want %+v at %v", got, arrived, want, now)
		}
		var rec map[string]string
		if err := json.Unmarshal([]byte(out.String()), &rec); err != nil {
			t.Fatal(err)
		}
		trace := ""
		if want.Valid() {
			trace = want.TraceID()
		}
		if rec[logging.Caller] != string(rex) || rec[logging.Request] == "" || rec[logging.Trace] != trace {
			t.Errorf("logged %v, want trace %q", rec, trace)
		}
	}
}

// TestForeignTraceIsNoReasonToRefuse: an unreadable traceparent counts as none.
func TestForeignTraceIsNoReasonToRefuse(t *testing.T) {
	s := NewServer(map[string]ReqHandler{"t/echo": func(ctx context.Context, _ thing.ID, body []byte) ([]byte, error) {
		if p := traceparent.From(ctx); p.Valid() {
			t.Errorf("trace %+v from nonsense", p)
		}
		return body, nil
	}}, slog.New(slog.DiscardHandler))
	msg, err := envelope.EncodeRequest(envelope.Request{ID: "1", TP: "jaeger:1:2:3"}, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	_, resp := s.Serve(t.Context(), Incoming{Thing: rex, Service: "t", Method: "echo", Payload: msg, Received: time.Now()})
	if head, body, err := envelope.DecodeResponse(resp); err != nil || head.Status != "ok" || string(body) != "hello" {
		t.Errorf("%+v %q %v", head, body, err)
	}
}
