package chipperapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"kennel/infra/api/chipperpb"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/chipperapi"
	"kennel/speech/intent"
)

type allow time.Duration

func (a allow) Allow(string) time.Duration { return time.Duration(a) }

// serve returns a client of the service behind TLS.
func serve(t *testing.T, pace chipperapi.Limiter) chipperpb.ChipperGrpcClient {
	return serveWith(t, chipperapi.Config{Speech: speech.New(speech.Config{Match: match}), Prove: stranger, ByAddr: pace})
}

func stranger(context.Context) (thing.ID, error) { return "", nil }

func match(_ context.Context, _ intent.Listener, text string) intent.Match {
	if text != "set a timer for ten minutes" {
		return intent.Match{}
	}
	return intent.Match{UserIntent: "set_timer", Cloud: "intent_clock_settimer_extend", Params: map[string]string{"timer_duration": "600"}, Confidence: 0.5}
}

func serveWith(t testing.TB, cfg chipperapi.Config) chipperpb.ChipperGrpcClient {
	t.Helper()
	return serveThe(t, func(s grpc.ServiceRegistrar) { chipperapi.Register(s, cfg) })()
}

// client is a connection and the calls over it.
type client struct {
	chipperpb.ChipperGrpcClient
	*grpc.ClientConn
}

func connect(t testing.TB, dial func(context.Context) (net.Conn, error)) client {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///robot", grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxRetryRPCBufferSize(0))) // the memory that tests measure is the server's
	if err != nil {
		t.Fatal(err)
	}
	return client{chipperpb.NewChipperGrpcClient(conn), conn}
}

// pair is a server's certificate.
func pair(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"chipper"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// start serves what register adds at l, behind TLS and the interceptors of a process, until stop is called.
func start(t testing.TB, l net.Listener, register func(grpc.ServiceRegistrar)) (stop func()) {
	t.Helper()
	s := kitgrpc.NewServer(&tls.Config{Certificates: []tls.Certificate{pair(t)}}, slog.New(slog.DiscardHandler))
	register(s)
	var wg sync.WaitGroup
	ctx, end := context.WithCancel(context.Background())
	wg.Go(func() {
		if err := kitgrpc.Run(ctx, s, l, time.Second); err != nil {
			t.Error(err)
		}
	})
	return func() { end(); wg.Wait() }
}

// serveThe serves what register adds, and returns a function that makes a connection to it.
func serveThe(t testing.TB, register func(grpc.ServiceRegistrar)) func() client {
	t.Helper()
	dial := serveFor(t, register)
	return func() client { return dial("127.0.0.1") }
}

// serveFor is serveThe for clients at different addresses.
func serveFor(t testing.TB, register func(grpc.ServiceRegistrar)) func(from string) client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(start(t, l, register))
	return func(from string) client {
		c := connect(t, func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(ctx, "tcp", l.Addr().String())
		})
		t.Cleanup(func() { _ = c.Close() }) // before the server stops
		return c
	}
}

// TestSpeechIsRefusedAfterOneMessage: the first send of a robot succeeds, and what it reads then is the sentence, not EOF.
func TestSpeechIsRefusedAfterOneMessage(t *testing.T) {
	c := serve(t, allow(0))
	refused := func(name string, err error) {
		t.Helper()
		if got := status.Convert(err); got.Code() != codes.Unimplemented || got.Message() != chipperapi.NoSpeech {
			t.Errorf("%s: %v, want Unimplemented: %s", name, err, chipperapi.NoSpeech)
		}
	}
	intent, err := c.StreamingIntent(t.Context())
	if err == nil {
		err = intent.Send(&chipperpb.StreamingIntentRequest{DeviceId: "vic:00e20100", AudioEncoding: chipperpb.AudioEncoding_OGG_OPUS, InputAudio: make([]byte, 1000)})
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = intent.Recv()
	refused("intent", err)
	graph, err := c.StreamingIntentGraph(t.Context())
	if err == nil {
		err = graph.Send(&chipperpb.StreamingIntentGraphRequest{DeviceId: "vic:00e20100"})
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = graph.Recv()
	refused("intent graph", err)
	know, err := c.StreamingKnowledgeGraph(t.Context())
	if err == nil {
		err = know.CloseSend() // a robot that gave up at once gets the sentence, too
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = know.Recv()
	refused("knowledge graph", err)
}

// TestConnectionCheck: VEC-CLD-07, and what a community server dies of (peer facts, section 4).
func TestConnectionCheck(t *testing.T) {
	for _, tc := range []struct {
		name        string
		total, each uint32
		sends       int
		closes      bool
		words       string
		frames      uint32
	}{
		{"as original robots do", 6000, 120, 50, false, "Success", 50},
		{"shorter", 1000, 250, 4, false, "Success", 4},
		{"nothing said", 0, 0, 50, false, "Success", 50},
		{"no length of a piece", 1200, 0, 10, false, "Success", 10},
		{"no total", 0, 1000, 6, false, "Success", 6},
		{"pieces longer than all", 100, 1000, 1, false, "Success", 1},
		{"a length of a piece below zero", 6000, ^uint32(0), 1, false, "Success", 1},
		{"more than the robot can count", 30000, 120, 250, false, "Success", 250},
		{"more than a byte holds", 36000, 120, 300, false, "Success", 300},
		{"ends early", 6000, 120, 7, true, "Error", 7},
		{"ends at once", 6000, 120, 0, true, "Error", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st, err := serve(t, allow(0)).StreamingConnectionCheck(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range tc.sends {
				m := &chipperpb.StreamingConnectionCheckRequest{InputAudio: make([]byte, 1000)}
				if i == 0 {
					m.TotalAudioMs, m.AudioPerRequest, m.DeviceId = tc.total, tc.each, "vic:00e20100"
				}
				if err := st.Send(m); err != nil {
					t.Fatal(err)
				}
			}
			if tc.closes {
				if err := st.CloseSend(); err != nil {
					t.Fatal(err)
				}
			}
			got, err := st.Recv()
			if err != nil || got.Status != tc.words || got.FramesReceived != tc.frames {
				t.Errorf("%v, %v; want %s after %d", got, err, tc.words, tc.frames)
			}
			if _, err := st.Recv(); err != io.EOF {
				t.Errorf("after the answer: %v, want the end", err)
			}
		})
	}
}

func TestConnectionCheckBounds(t *testing.T) {
	first := func(c chipperpb.ChipperGrpcClient, m *chipperpb.StreamingConnectionCheckRequest, times int) error {
		st, err := c.StreamingConnectionCheck(t.Context())
		for range times {
			if err == nil {
				err = st.Send(m)
			}
		}
		if err == nil || err == io.EOF {
			_, err = st.Recv()
		}
		return err
	}
	if err := first(serve(t, allow(0)), &chipperpb.StreamingConnectionCheckRequest{TotalAudioMs: 1<<32 - 1, AudioPerRequest: 1}, 1); status.Code(err) != codes.InvalidArgument {
		t.Errorf("four thousand million messages: %v", err)
	}
	large := &chipperpb.StreamingConnectionCheckRequest{TotalAudioMs: 6000, AudioPerRequest: 120, InputAudio: make([]byte, 60_000)}
	if err := first(serve(t, allow(0)), large, 30); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("1.8 MB of audio: %v", err)
	}
	if err := first(serve(t, allow(time.Second)), &chipperpb.StreamingConnectionCheckRequest{}, 1); status.Code(err) != codes.Unavailable {
		t.Errorf("too fast: %v", err)
	}
}
