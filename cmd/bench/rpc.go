package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kennel/cloud/bridge"
	"kennel/infra/api/topics"
	"kennel/infra/bench"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
)

const (
	rpcAtOnce = 16
	rpcTurn   = 3 * time.Second
	rpcSolo   = 300 // round trips one after the other, for the latency
	rpcBytes  = 512 // about the size of a settings document
)

// requests: a robot's requests through kitmqtt and the bridge, to a handler that only answers, beside bare messages of the same size there
// and back. Both ends are in this process, the broker in its own.
func requests(ctx context.Context, env *bench.Env) ([]bench.Result, error) {
	b, err := startBroker(ctx, env)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	body := make([]byte, rpcBytes)
	_, _ = rand.Read(body) // never fails
	var rates, latencies []bench.Pair
	for range env.Count {
		rpc, err := roundTrips(ctx, env, b, body, rpcEnds)
		if err != nil {
			return nil, err
		}
		bare, err := roundTrips(ctx, env, b, body, echoEnds)
		if err != nil {
			return nil, err
		}
		rates = append(rates, bench.Pair{Value: rpc.perSecond, Reference: bare.perSecond})
		latencies = append(latencies, bench.Pair{Value: rpc.median, Reference: bare.median})
	}
	return []bench.Result{
		bench.Line{Name: "rpc/rate", Unit: "requests/s", Note: fmt.Sprintf("%d requests at once of %d bytes through kitmqtt and the bridge; reference: the same bytes published and echoed over the same broker",
			rpcAtOnce, rpcBytes)}.Result(rates),
		bench.Line{Name: "rpc/latency", Unit: "us", Less: true, Note: "median round trip, one at a time; reference as above"}.Result(latencies),
	}, nil
}

// trips is what a turn gave.
type trips struct {
	perSecond float64
	median    float64 // microseconds
}

// ends are two ends on one broker: ask makes one round trip, stop takes both down.
type ends func(ctx context.Context, b *loneBroker) (ask func(ctx context.Context, body []byte) error, stop func(), err error)

func roundTrips(ctx context.Context, env *bench.Env, b *loneBroker, body []byte, open ends) (trips, error) {
	ask, stop, err := open(ctx, b)
	if err != nil {
		return trips{}, err
	}
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var took []float64
	for range bench.Part(env, rpcSolo) {
		start := time.Now()
		if err := ask(ctx, body); err != nil {
			return trips{}, err
		}
		took = append(took, float64(time.Since(start).Microseconds()))
	}
	var done atomic.Int64
	var wg sync.WaitGroup
	errc := make(chan error, rpcAtOnce) // one from each
	start := time.Now()
	for range rpcAtOnce {
		wg.Go(func() {
			for time.Since(start) < bench.Part(env, rpcTurn) {
				if err := ask(ctx, body); err != nil {
					errc <- err
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	close(errc)
	return trips{float64(done.Load()) / elapsed.Seconds(), bench.Median(took)}, <-errc // nil if there was none
}

// pair makes the identities of both ends.
func (b *loneBroker) pair() (robot, cloud peer, err error) {
	robot, err1 := b.thing(0)
	cloud, err2 := b.service()
	return robot, cloud, errors.Join(err1, err2)
}

// rpcEnds is kitmqtt's client, and a bridge with one handler.
func rpcEnds(ctx context.Context, b *loneBroker) (func(context.Context, []byte) error, func(), error) {
	robot, cloud, err := b.pair()
	if err != nil {
		return nil, nil, err
	}
	br, err := bridge.New(bridge.Config{MQTT: mqtt.Config{URL: b.url(), TLS: cloud.credentials},
		Req: map[string]kitmqtt.ReqHandler{"bench/echo": func(_ context.Context, _ thing.ID, body []byte) ([]byte, error) { return body, nil }}})
	if err != nil {
		return nil, nil, err
	}
	bctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = br.Run(bctx) }) // nil by contract
	stopBridge := func() { cancel(); wg.Wait() }
	var client *kitmqtt.Client
	var s *session
	ready := make(chan struct{}) // client is set
	s, err = connect(ctx, b.url(), string(robot.id), robot, func(topic string, payload []byte) {
		<-ready
		_ = client.Deliver(topic, payload) // an unreadable answer is asked for again
	}, topics.ThingFilters(robot.id)...)
	if err != nil {
		stopBridge()
		return nil, nil, err
	}
	client = kitmqtt.NewClient(robot.id, func(ctx context.Context, topic string, payload []byte) error {
		return s.Publish(ctx, topic, 1, false, payload)
	})
	close(ready)
	ask := func(ctx context.Context, body []byte) error {
		_, err := client.Do(ctx, "bench", "echo", body)
		return err
	}
	stop := func() { s.stop(); stopBridge() }
	// The first answer says that the bridge is there; until then the client asks again.
	if err := ask(ctx, nil); err != nil {
		stop()
		return nil, nil, err
	}
	return ask, stop, nil
}

// echoEnds is a robot that publishes at QoS 1 and a service that publishes the same payload back at QoS 0, as the bridge does.
func echoEnds(ctx context.Context, b *loneBroker) (func(context.Context, []byte) error, func(), error) {
	robot, cloud, err := b.pair()
	if err != nil {
		return nil, nil, err
	}
	up, down := topics.UpTopic(robot.id, "echo"), topics.DownTopic(robot.id, "echo")
	heard := make(chan []byte, rpcAtOnce)
	far, err := connect(ctx, b.url(), "kenneld-bench-echo", cloud, func(_ string, payload []byte) { heard <- payload }, up)
	if err != nil {
		return nil, nil, err
	}
	ectx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range rpcAtOnce {
		wg.Go(func() {
			for {
				select {
				case payload := <-heard:
					_ = far.Publish(ectx, down, 0, false, payload) // a lost one fails the asker, by its time limit
				case <-ectx.Done():
					return
				}
			}
		})
	}
	back := make(chan struct{}, rpcAtOnce)
	near, err := connect(ctx, b.url(), string(robot.id), robot, func(string, []byte) { back <- struct{}{} }, down)
	stop := func() {
		if near != nil {
			near.stop()
		}
		cancel()
		far.stop()
		wg.Wait()
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
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
	}, stop, nil
}
