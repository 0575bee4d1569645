package kitgrpc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"kennel/infra/admission"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/protomux"
)

func TestStatus(t *testing.T) {
	for k := errs.Internal; k <= errs.Corrupt; k++ {
		code := kitgrpc.CodeOf(k)
		if (code == codes.Internal) != (k == errs.Internal) || code == codes.OK || code == codes.Unknown {
			t.Errorf("%v is %v", k, code)
		}
		if got := status.Convert(kitgrpc.Status(fmt.Errorf("read x: %w", errs.New(k, "for the peer")))); got.Code() != code || got.Message() != "for the peer" {
			t.Errorf("%v: %v %q", k, got.Code(), got.Message())
		}
	}
	for _, tc := range []struct {
		err  error
		code codes.Code
		text string
	}{
		{errors.New("password=hunter2"), codes.Internal, "internal error"},
		{status.Error(codes.NotFound, "as it is"), codes.NotFound, "as it is"},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "the request took too long"},
		{context.Canceled, codes.Canceled, "the request was cancelled"},
		{errs.RetryLater(time.Second, "later", context.DeadlineExceeded), codes.Unavailable, "later"},
	} {
		if got := status.Convert(kitgrpc.Status(tc.err)); got.Code() != tc.code || got.Message() != tc.text {
			t.Errorf("%v: %v %q", tc.err, got.Code(), got.Message())
		}
	}
	if kitgrpc.Status(nil) != nil {
		t.Error("nil is an error")
	}
}

func TestHandlerTypes(t *testing.T) {
	call := kitgrpc.Handler(kit.Typed(func(_ context.Context, n int) (int, error) { return n + 1, nil }),
		func(_ context.Context, m *wrapperspb.Int64Value) (any, error) { return int(m.Value), nil },
		func(resp any) (*wrapperspb.StringValue, error) { return wrapperspb.String(fmt.Sprint(resp)), nil })
	if out, err := call(t.Context(), wrapperspb.Int64(41)); err != nil || out.Value != "42" {
		t.Errorf("%v, %v", out, err)
	}
	bad := kitgrpc.Handler(kit.Typed(func(_ context.Context, n int) (int, error) { return n, errors.New("no") }),
		func(context.Context, *wrapperspb.Int64Value) (any, error) { return 1, nil },
		func(any) (*wrapperspb.StringValue, error) { panic("not reached") })
	if out, err := bad(t.Context(), nil); err == nil || out != nil {
		t.Errorf("%v, %v", out, err)
	}
}

// service answers a StringValue; what it does depends on the text.
func service() grpc.ServiceDesc {
	echo := func(_ any, ctx context.Context, dec func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		in := new(wrapperspb.StringValue)
		if err := dec(in); err != nil {
			return nil, err
		}
		return intercept(ctx, in, &grpc.UnaryServerInfo{FullMethod: "/t.T/Echo"}, func(ctx context.Context, req any) (any, error) {
			p := kitgrpc.PeerFrom(ctx)
			switch text := req.(*wrapperspb.StringValue).Value; text {
			case "panic":
				panic("a bug")
			case "internal":
				return nil, errors.New("words of ours")
			case "later":
				return nil, errs.RetryLater(1500*time.Millisecond, "later", nil)
			case "peer":
				cn := "-"
				if len(p.Chain) > 0 {
					cn = p.Chain[0].Subject.CommonName
				}
				return wrapperspb.String(cn + " " + kitgrpc.Value(ctx, "x-key")), nil
			case "big":
				return wrapperspb.String(strings.Repeat("x", kitgrpc.MaxAnswer)), nil
			default:
				return wrapperspb.String(text), nil
			}
		})
	}
	return grpc.ServiceDesc{ServiceName: "t.T", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: echo}},
		Streams: []grpc.StreamDesc{{StreamName: "Panic", ServerStreams: true, Handler: func(any, grpc.ServerStream) error { panic("a bug in a stream") }}}}
}

type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// selfSigned makes an untrusted certificate for either side: nothing here checks it.
func selfSigned(t *testing.T, cn string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: cn}, NotAfter: time.Now().Add(-time.Hour), DNSNames: []string{cn}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func dial(t *testing.T, addr string, certs ...tls.Certificate) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, Certificates: certs})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the test is over
	return conn
}

func echo(ctx context.Context, conn *grpc.ClientConn, text string, opts ...grpc.CallOption) (string, error) {
	out := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, "/t.T/Echo", wrapperspb.String(text), out, opts...)
	return out.Value, err
}

// TestServer: the same server behind its own TLS, and behind connections on which infra/protomux has done it.
func TestServer(t *testing.T) {
	for _, front := range []string{"own", "oneport"} {
		t.Run(front, func(t *testing.T) {
			log := &lines{}
			logger := slog.New(slog.NewTextHandler(log, nil))
			conf := &tls.Config{Certificates: []tls.Certificate{selfSigned(t, "cloud")}, ClientAuth: tls.RequestClientCert}
			seen := make(chan string, 10) // more than are called
			s := kitgrpc.NewServer(conf, logger, kitgrpc.Unserved("not here"), grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
				seen <- info.FullMethod
				return next(srv, ss)
			}))
			desc := service()
			s.RegisterService(&desc, nil)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			grpcListener := l
			if front == "oneport" {
				door, err := admission.New(admission.Config{})
				if err != nil {
					t.Fatal(err)
				}
				port := protomux.Split(door.Listen("test", l), conf, logger)
				grpcListener = port.GRPC
				wg.Go(func() {
					if err := port.Run(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Go(func() {
				if err := kitgrpc.Run(ctx, s, grpcListener, 5*time.Second); err != nil {
					t.Error(err)
				}
			})
			addr := l.Addr().String()
			anonymous, named := dial(t, addr), dial(t, addr, selfSigned(t, "vic:1")) // expired and self-signed: TLS does not judge

			if got, err := echo(ctx, anonymous, "peer"); err != nil || got != "- " {
				t.Errorf("%q, %v", got, err)
			}
			if got, err := echo(metadata.AppendToOutgoingContext(ctx, "x-key", "v"), named, "peer"); err != nil || got != "vic:1 v" {
				t.Errorf("%q, %v", got, err)
			}
			if got, _ := echo(metadata.AppendToOutgoingContext(ctx, "x-key", "v", "x-key", "w"), named, "peer"); got != "vic:1 " {
				t.Errorf("two values: %q", got)
			}
			if got, _ := echo(metadata.AppendToOutgoingContext(ctx, "x-key", "v", "x-key", "v"), named, "peer"); got != "vic:1 v" {
				t.Errorf("one value twice: %q", got)
			}
			for text, want := range map[string]codes.Code{"panic": codes.Internal, "internal": codes.Internal, "big": codes.ResourceExhausted,
				strings.Repeat("x", kitgrpc.MaxMessage+1): codes.ResourceExhausted, "fine": codes.OK} {
				got, err := echo(ctx, named, text)
				if status.Code(err) != want || strings.Contains(fmt.Sprint(err), "bug") || strings.Contains(fmt.Sprint(err), "words") {
					t.Errorf("%.10s: %q, %v; want %v", text, got, err, want)
				}
			}
			var trailer metadata.MD
			if _, err := echo(ctx, named, "later", grpc.Trailer(&trailer)); status.Code(err) != codes.Unavailable || strings.Join(trailer.Get(kitgrpc.RetryTrailer), ",") != "2" {
				t.Errorf("%v, trailer %v", err, trailer)
			}
			st, err := named.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/t.T/Panic")
			if err != nil {
				t.Fatal(err)
			}
			if err := st.RecvMsg(new(wrapperspb.StringValue)); status.Code(err) != codes.Internal || errors.Is(err, io.EOF) {
				t.Errorf("stream: %v", err)
			}
			<-seen // the stream's
			for _, method := range []string{"/t.T/Nothing", "/u.U/Nothing"} {
				if err := named.Invoke(ctx, method, wrapperspb.String("x"), new(wrapperspb.StringValue)); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "not here") {
					t.Errorf("no such method: %v", err)
				}
				if got := <-seen; got != method {
					t.Errorf("the interceptor saw %s, want %s", got, method)
				}
			}
			talks, err := named.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/u.U/Stream")
			if err == nil {
				err = talks.SendMsg(wrapperspb.String("the first message of a stream arrives"))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := talks.RecvMsg(new(wrapperspb.StringValue)); status.Code(err) != codes.Unimplemented {
				t.Errorf("an unknown stream: %v", err)
			}
			for _, want := range []string{"a bug", "a bug in a stream", "words of ours", "stack=", "/t.T/Echo"} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log has no %q", want)
				}
			}
			stop()
			wg.Wait()
		})
	}
}
