package vectorsdk_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"kennel/infra/api/vectorpb"
	"kennel/infra/bench"
	"kennel/infra/kit/kitgrpc"
)

// The programs of the benchmark, and what is wanted of a call of theirs.
const (
	askers   = 8
	answerMs = 5 // 99 of 100 calls are answered within this time
)

// BenchmarkVectorSDKBatteryBesideEcho asks for the state of the battery with eight clients over gRPC, beside a server that answers with the same message at
// once, over the same TLS: at least 0.5 of its rate is wanted, or 20,000 calls a second, and 99 of 100 answers within 5 ms (issue 33).
func BenchmarkVectorSDKBatteryBesideEcho(b *testing.B) { batteryBesideEcho(b) }

func TestVectorSDKBatteryBesideEcho(t *testing.T) { batteryBesideEcho(t) }

func batteryBesideEcho(tb testing.TB) {
	d := newDesk(tb)
	answer, err := d.dial(tb).BatteryState(as(tb, "all"), &vectorpb.BatteryStateRequest{})
	if err != nil {
		tb.Fatal(err)
	}
	clients := func(addr string) (all []vectorpb.ExternalInterfaceClient) {
		for range askers {
			all = append(all, vectorpb.NewExternalInterfaceClient(d.connTo(tb, addr)))
		}
		return all
	}
	own, bare := clients(d.addr), clients(d.echo(tb, answer))
	ctx := metadata.AppendToOutgoingContext(tb.Context(), "authorization", "Bearer all")
	var rates, late []bench.Pair
	bench.Turns(tb, func() error {
		var turn [2]struct{ rate, p99 float64 }
		for i, all := range [][]vectorpb.ExternalInterfaceClient{own, bare} {
			var err error
			turn[i].rate, turn[i].p99, err = bench.Calls(tb.Context(), bench.Part(tb, 2*time.Second), len(all), func(_ context.Context, i int) error {
				_, err := all[i].BatteryState(ctx, &vectorpb.BatteryStateRequest{})
				return err
			})
			if err != nil {
				return err
			}
		}
		rates = append(rates, bench.Pair{Value: turn[0].rate, Reference: turn[1].rate})
		late = append(late, bench.Pair{Value: turn[0].p99, Reference: answerMs})
		return nil
	})
	bench.Report(tb, bench.Line{Name: "vectorsdk/battery", Unit: "calls/s", Bound: 0.5,
		Note: "BatteryState, 8 clients, gRPC over TLS; reference: a server that answers with the same message"}, rates)
	bench.Report(tb, bench.Line{Name: "vectorsdk/answer", Unit: "ms", Less: true, Bound: 1, Note: "99 of 100 answers to 8 clients; reference: what is wanted"}, late)
}

// echo serves answer to each BatteryState, without looking, and returns its address.
func (d *desk) echo(tb testing.TB, answer proto.Message) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := kitgrpc.NewServer(&tls.Config{Certificates: []tls.Certificate{d.cert}, MinVersion: tls.VersionTLS12}, slog.New(slog.DiscardHandler))
	s.RegisterService(&grpc.ServiceDesc{ServiceName: vectorpb.ExternalInterface_ServiceDesc.ServiceName, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "BatteryState", Handler: func(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			return answer, dec(&vectorpb.BatteryStateRequest{})
		}}}}, d)
	go func() { _ = s.Serve(l) }()
	tb.Cleanup(s.Stop)
	return l.Addr().String()
}
