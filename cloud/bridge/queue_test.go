package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/topics"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/queue"
	"kennel/infra/queue/queuetest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

// TestFedByQueue: what a broker's rules put into a queue is handled as if it had come by MQTT, and the answers go out by MQTT.
func TestFedByQueue(t *testing.T) {
	b := mqtttest.Start(t)
	br := consume(t, b, Config{Fed: true}, Handlers{
		Up: map[string]kitmqtt.UpHandler{
			topics.DAS: func(_ context.Context, _ thing.ID, payload []byte, answer func(ack.Ack)) {
				answer(ack.Ack{Batch: string(payload), Status: ack.Stored})
			},
		},
		Req: map[string]kitmqtt.ReqHandler{},
	})
	r := newRobot(t, b, rex)
	testwait.For(t, r.up, "connected")
	up := make(chan bool)
	go func() {
		defer close(up)
		for !br.Connected() {
			time.Sleep(time.Millisecond)
		}
	}()
	testwait.For(t, up, "bridge connected")
	if err := r.link.Publish(t.Context(), topics.UpTopic(rex, topics.DAS), 1, false, []byte("by MQTT, which nobody hears")); err != nil {
		t.Fatal(err)
	}
	q := queuetest.Start(t)
	source, err := queue.Open(t.Context(), q.Config, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	running(t, func(ctx context.Context) error { return source.Run(ctx, br.Take) })
	want := map[string]bool{}
	for i := range 25 {
		body, err := queue.Encode(topics.UpTopic(rex, topics.DAS), fmt.Append(nil, i))
		if err != nil {
			t.Fatal(err)
		}
		q.Put(string(body))
		want[fmt.Sprint(i)] = true
	}
	for len(want) > 0 {
		a, err := ack.Parse([]byte(testwait.For(t, r.down, "an acknowledgement").payload))
		if err != nil {
			t.Fatal(err)
		}
		if !want[a.Batch] {
			t.Errorf("acknowledgement of %q", a.Batch)
		}
		delete(want, a.Batch)
	}
}
