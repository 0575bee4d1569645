package main

import (
	"context"
	"net"

	"kennel/infra/bench"
	"kennel/infra/bench/house"
)

const (
	loginCount  = 1500 // of one turn
	loginAtOnce = 32
)

// logins: robots that connect to onebox's broker with mutual TLS, CONNECT and SUBSCRIBE, beside bare mutual-TLS handshakes of the same
// clients with a listener that has certificates of the same authorities. What the clients cost is in both.
func logins(ctx context.Context, env *bench.Env, h *house.House) ([]bench.Result, error) {
	is, err := openIssuer(h.CA())
	if err != nil {
		return nil, err
	}
	bare, bareAddr, err := startListener(ctx, h.CA())
	if err != nil {
		return nil, err
	}
	defer bare.Stop()
	broker, err := h.Pid("broker")
	if err != nil {
		return nil, err
	}
	peers, err := is.things(0, bench.Part(env, loginCount))
	if err != nil {
		return nil, err
	}
	rate := func(pid int, addr string, connect func(peer, context.Context, string) (net.Conn, error)) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			if err := bench.Quiet(ctx, pid); err != nil { // the connections of the turn before are gone
				return 0, err
			}
			conns, took, err := crowd(ctx, peers, loginAtOnce, func(ctx context.Context, p peer) (net.Conn, error) { return connect(p, ctx, addr) })
			if err != nil {
				return 0, err
			}
			closeAll(conns)
			return float64(len(conns)) / took.Seconds(), bench.Quiet(ctx, pid)
		}
	}
	pairs, err := bench.Pairs(ctx, env.Count, rate(broker, h.Addr("mqtt"), peer.login), rate(bare.Pid(), bareAddr, peer.handshake))
	if err != nil {
		return nil, err
	}
	return []bench.Result{bench.Line{Name: "logins", Unit: "logins/s", Bound: 0.5,
		Note: "mutual-TLS CONNECT and SUBSCRIBE at onebox's broker; reference: bare mutual-TLS handshakes with a listener in a process of its own"}.Result(pairs)}, nil
}
