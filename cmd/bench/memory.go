package main

import (
	"context"
	"strconv"
	"time"

	"kennel/infra/bench"
)

// memorySteps are the numbers of connections at which memory is read.
var memorySteps = []int{500, 1000, 1500, 2000}

// connectionMemory is the slope of resident memory over idle connections: of the broker, beside a bare TLS listener; and of the client
// process that holds the other ends.
func connectionMemory(ctx context.Context, env *bench.Env) ([]bench.Result, error) {
	var server, client []bench.Pair
	for range env.Count {
		b, err := startBroker(ctx, env)
		if err != nil {
			return nil, err
		}
		s, c, err := slopes(ctx, env, b.program.Pid(), b.dir, b.addr, "mqtt")
		b.program.Stop()
		if err != nil {
			b.stop()
			return nil, err
		}
		bare, addr, err := startListener(ctx, b.dir)
		if err != nil {
			b.stop()
			return nil, err
		}
		bs, bc, err := slopes(ctx, env, bare.Pid(), b.dir, addr, "tls")
		bare.Stop()
		b.stop()
		if err != nil {
			return nil, err
		}
		server, client = append(server, bench.Pair{Value: s, Reference: bs}), append(client, bench.Pair{Value: c, Reference: bc})
	}
	return []bench.Result{
		bench.Line{Name: "memory/broker", Unit: "KiB/connection", Less: true,
			Note: "slope of the broker's resident memory over 500 to 2000 logged-in, idle things; reference: a bare mutual-TLS listener"}.Result(server),
		bench.Line{Name: "memory/client", Unit: "KiB/connection", Less: true,
			Note: "the same of the process with the other ends: a TLS connection and a goroutine each, no agent"}.Result(client),
	}, nil
}

// slopes returns KiB for each further connection, of the server with pid and of the clients.
func slopes(ctx context.Context, env *bench.Env, pid int, caDir, addr, kind string) (server, client float64, err error) {
	clients, err := startPart(0, "clients", "-ca", caDir, "-addr", addr, "-kind", kind)
	if err != nil {
		return 0, 0, err
	}
	defer clients.Stop()
	var n, atServer, atClient []float64
	for _, step := range memorySteps {
		step = bench.Part(env, step)
		if _, err := clients.Ask(ctx, strconv.Itoa(step), "clients up "); err != nil {
			return 0, 0, err
		}
		s, err := settledRSS(ctx, pid)
		if err != nil {
			return 0, 0, err
		}
		c, err := settledRSS(ctx, clients.Pid())
		if err != nil {
			return 0, 0, err
		}
		n, atServer, atClient = append(n, float64(step)), append(atServer, s), append(atClient, c)
	}
	return bench.Slope(n, atServer), bench.Slope(n, atClient), nil
}

// settledRSS is a process's resident memory in KiB once it is quiet.
func settledRSS(ctx context.Context, pid int) (float64, error) {
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := bench.Quiet(wait, pid); err != nil {
		return 0, err
	}
	u, err := bench.UsageOf(pid)
	return float64(u.RSS) / 1024, err
}
