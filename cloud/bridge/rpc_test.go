package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/bench"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

const (
	rpcAtOnce = 16
	rpcTurn   = 3 * time.Second
	rpcSolo   = 300 // round trips one after the other, for the latency
	rpcBytes  = 512 // about the size of a settings document
)

// BenchmarkRPCBesideEcho sends a robot's requests through kitmqtt and the bridge to a handler that only answers, beside bare messages of the same
// size there and back over the same broker.
func BenchmarkRPCBesideEcho(b *testing.B) { rpcBesideEcho(b) }

func TestRPCBesideEcho(t *testing.T) { rpcBesideEcho(t) }

func rpcBesideEcho(tb testing.TB) {
	broker := mqtttest.Start(tb)
	body := make([]byte, rpcBytes)
	_, _ = rand.Read(body) // never fails
	var rates, latencies []bench.Pair
	rpc, echo := rpcEnds(tb, broker), echoEnds(tb, broker)
	bench.Turns(tb, func() error {
		value, err1 := roundTrips(tb, body, rpc)
		reference, err2 := roundTrips(tb, body, echo)
		rates = append(rates, bench.Pair{Value: value.perSecond, Reference: reference.perSecond})
		latencies = append(latencies, bench.Pair{Value: value.median, Reference: reference.median})
		return errors.Join(err1, err2)
	})
	bench.Report(tb, bench.Line{Name: "rpc/rate", Unit: "requests/s",
		Note: fmt.Sprintf("%d requests at once of %d bytes through kitmqtt and the bridge; reference: the same bytes published and echoed over the same broker", rpcAtOnce, rpcBytes)}, rates)
	bench.Report(tb, bench.Line{Name: "rpc/latency", Unit: "us", Less: true, Note: "median round trip, one at a time; reference as above"}, latencies)
}

// ask makes one round trip.
type ask func(ctx context.Context, body []byte) error

// trips holds the results of one turn.
type trips struct {
	perSecond float64
	median    float64 // microseconds
}

func roundTrips(tb testing.TB, body []byte, ask ask) (trips, error) {
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	var took []float64
	for range bench.Part(tb, rpcSolo) {
		start := time.Now()
		if err := ask(ctx, body); err != nil {
			return trips{}, err
		}
		took = append(took, float64(time.Since(start).Microseconds()))
	}
	// The last calls run to their end: a leftover echo would be taken for the answer to a later one.
	perSecond, err := bench.During(ctx, bench.Part(tb, rpcTurn), rpcAtOnce, func(context.Context, int) error { return ask(ctx, body) })
	return trips{perSecond, bench.Median(took)}, err
}

// rpcEnds is a robot's client, and a bridge with one handler.
func rpcEnds(tb testing.TB, b *mqtttest.Broker) ask {
	br, err := New(Config{MQTT: mqtt.Config{URL: b.URL, TLS: b.Cloud(tb)}})
	if err != nil {
		tb.Fatal(err)
	}
	br.Handle(Handlers{Req: map[string]kitmqtt.ReqHandler{"bench/echo": func(_ context.Context, _ thing.ID, body []byte) ([]byte, error) { return body, nil }}})
	running(tb, br.Run)
	r := newRobot(tb, b, rex)
	connected(tb, r)
	ask := func(ctx context.Context, body []byte) error {
		_, err := r.Client.Do(ctx, "bench", "echo", body)
		return err
	}
	if err := ask(tb.Context(), nil); err != nil { // it says that the bridge is there; until then the client asks again
		tb.Fatal(err)
	}
	return ask
}

// echoEnds is a robot that publishes at QoS 1 and a service that publishes the same payload back at QoS 0, as the bridge does.
func echoEnds(tb testing.TB, b *mqtttest.Broker) ask {
	const id = thing.ID("vic:00b00001")
	up, down := topics.UpTopic(id, "echo"), topics.DownTopic(id, "echo")
	heard, back := make(chan []byte, rpcAtOnce), make(chan struct{}, rpcAtOnce)
	link := func(cfg mqtt.Config, filter string, hear func(payload []byte)) *mqtt.Client {
		in := make(chan struct{}, 100)
		cfg.URL = b.URL
		cfg.OnConnect = func(ctx context.Context, c *mqtt.Client) error {
			defer func() { in <- struct{}{} }()
			return c.Subscribe(ctx, 1, filter)
		}
		cfg.OnMessage = func(_ string, payload []byte, taken func()) { hear(payload); taken() }
		c, err := mqtt.New(cfg)
		if err != nil {
			tb.Fatal(err)
		}
		running(tb, c.Run)
		testwait.For(tb, in, cfg.ClientID+" connected")
		return c
	}
	far := link(mqtt.Config{ClientID: "kenneld-bench-echo", TLS: b.Cloud(tb)}, up, func(payload []byte) { heard <- payload })
	for range rpcAtOnce {
		running(tb, func(ctx context.Context) error {
			for {
				select {
				case payload := <-heard:
					_ = far.Publish(ctx, down, 0, false, payload) // a lost one fails the asker, by its time limit
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
	near := link(mqtt.Config{ClientID: string(id), TLS: b.Thing(tb, id)}, down, func([]byte) { back <- struct{}{} })
	return func(ctx context.Context, body []byte) error {
		if err := near.Publish(ctx, up, 1, false, body); err != nil {
			return err
		}
		select { // whose echo it is does not matter: there are as many as were sent
		case <-back:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
