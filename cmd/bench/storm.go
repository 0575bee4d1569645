package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"kennel/infra/bench"
	"kennel/infra/mqtt"
)

const (
	stormThings = 3000
	stormLimit  = 5 * time.Minute
)

// storm: robots that all lost their broker and all come back in one moment, with the client, the patience and the back-off of a robot
// (infra/mqtt), until the last is in, beside as many bare mutual-TLS handshakes in good order.
func storm(ctx context.Context, env *bench.Env) ([]bench.Result, error) {
	b, err := startBroker(ctx, env)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	bare, addr, err := startListener(ctx, b.dir)
	if err != nil {
		return nil, err
	}
	defer bare.Stop()
	peers, err := b.things(0, bench.Part(env, stormThings))
	if err != nil {
		return nil, err
	}
	var failed []float64
	pairs, err := bench.Pairs(ctx, env.Count, func(ctx context.Context) (float64, error) {
		took, tries, err := comeBack(ctx, b.url(), peers)
		failed = append(failed, float64(tries))
		if err != nil {
			return 0, err
		}
		return took.Seconds(), bench.Quiet(ctx, b.program.Pid()) // the broker has seen them go
	}, func(ctx context.Context) (float64, error) {
		conns, took, err := crowd(ctx, peers, loginAtOnce, func(ctx context.Context, p peer) (net.Conn, error) { return p.handshake(ctx, addr) })
		if err != nil {
			return 0, err
		}
		closeAll(conns)
		return took.Seconds(), bench.Quiet(ctx, bare.Pid())
	})
	if err != nil {
		return nil, err
	}
	return []bench.Result{bench.Line{Name: "storm", Unit: "s", Less: true,
		Note: fmt.Sprintf("%d robots' clients that connect in one moment, until all are in (tries that failed, median: %.0f); reference: as many bare mutual-TLS handshakes, %d at once",
			len(peers), bench.Median(failed), loginAtOnce)}.Result(pairs)}, nil
}

// comeBack lets all peers connect at once and returns how long it took until the last was in, and how many tries failed.
func comeBack(ctx context.Context, url string, peers []peer) (took time.Duration, failed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, stormLimit)
	defer cancel()
	var in, downs atomic.Int64
	all := make(chan struct{})
	clients := make([]*mqtt.Client, len(peers))
	for i, p := range peers {
		first := sync.OnceFunc(func() {
			if in.Add(1) == int64(len(peers)) {
				close(all)
			}
		})
		clients[i], err = mqtt.New(mqtt.Config{URL: url, ClientID: string(p.id), TLS: p.credentials,
			OnConnect: func(context.Context, *mqtt.Client) error { first(); return nil },
			OnDown:    func(error) { downs.Add(1) }})
		if err != nil {
			return 0, 0, err
		}
	}
	var wg sync.WaitGroup
	start := time.Now()
	for _, c := range clients {
		wg.Go(func() { _ = c.Run(ctx) }) // nil by contract
	}
	select {
	case <-all:
		took = time.Since(start)
	case <-ctx.Done():
		err = fmt.Errorf("%d of %d robots are in after %v, %d tries failed: %w", in.Load(), len(peers), time.Since(start).Round(time.Second), downs.Load(), context.Cause(ctx))
	}
	failed = downs.Load()
	cancel()
	wg.Wait()
	return took, failed, err
}
