// Package kitgrpc is the gRPC side of every endpoint: one table from error kinds to status codes, a server with bounds, and who the peer is.
package kitgrpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/go-kit/kit/endpoint"
	gokitgrpc "github.com/go-kit/kit/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Bounds of a server: ours, no source gives them.
const (
	MaxMessage    = 256 << 10 // bytes of one message that a peer sends: a document has up to 200 KiB
	MaxAnswer     = 4 << 20   // bytes of one answer: what peers take unless they are told otherwise
	maxHeaders    = 16 << 10  // bytes of one request's metadata
	maxStreams    = 100       // at once on one connection
	handshakeTime = 10 * time.Second
	firstTime     = 5 * time.Second // for the first message of a call that is not served
	idleTime      = 5 * time.Minute // then a connection is closed; original robots open one for each request anyway
	probeAfter    = time.Minute     // of silence, so that a robot that lost its power does not stay
	probeTime     = 20 * time.Second
)

// CodeOf is the one table from kinds to gRPC status codes.
func CodeOf(k errs.Kind) codes.Code {
	switch k {
	case errs.Invalid:
		return codes.InvalidArgument
	case errs.NotFound:
		return codes.NotFound
	case errs.Conflict:
		return codes.Aborted
	case errs.Unauthenticated:
		return codes.Unauthenticated
	case errs.Denied:
		return codes.PermissionDenied
	case errs.Exhausted:
		return codes.ResourceExhausted
	case errs.Unavailable:
		return codes.Unavailable
	case errs.Corrupt:
		return codes.DataLoss
	}
	return codes.Internal
}

// RetryTrailer names the trailer with the whole seconds that a peer should wait.
const RetryTrailer = "retry-after"

// Status returns err as gRPC answers it: the code of its kind and the message that the peer may read. An error that is a status already,
// and nil, pass unchanged.
func Status(err error) error {
	if err == nil {
		return nil
	}
	var kind *errs.Error
	if errors.As(err, &kind) {
		return status.Error(CodeOf(kind.Kind), kind.Msg)
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "the request took too long")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the request was cancelled")
	}
	return status.Error(codes.Internal, errs.Public(err))
}

// Handler serves one endpoint: decode makes the request out of the message, encode the message out of the response.
func Handler[Msg, Answer any](ep endpoint.Endpoint, decode func(context.Context, Msg) (any, error), encode func(any) (Answer, error)) func(context.Context, Msg) (Answer, error) {
	s := gokitgrpc.NewServer(ep,
		func(ctx context.Context, msg any) (any, error) {
			m, ok := msg.(Msg)
			if !ok {
				return nil, fmt.Errorf("kitgrpc: message %T, want %T", msg, m)
			}
			return decode(ctx, m)
		},
		func(_ context.Context, resp any) (any, error) { return encode(resp) })
	return func(ctx context.Context, msg Msg) (Answer, error) {
		var none Answer
		_, out, err := s.ServeGRPC(ctx, msg)
		if err != nil {
			return none, err
		}
		answer, ok := out.(Answer)
		if !ok {
			return none, fmt.Errorf("kitgrpc: answer %T, want %T", out, none)
		}
		return answer, nil
	}
}

// Peer is the caller as the connection shows it. Nothing is checked: the chain is the one that the peer sent.
type Peer struct {
	Addr  string
	Name  string              // by which it called us; "": by none
	Chain []*x509.Certificate // leaf first; nil without TLS or without a certificate
}

// PeerFrom returns the peer of the call in ctx.
func PeerFrom(ctx context.Context) Peer {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Peer{}
	}
	var out Peer
	if p.Addr != nil {
		out.Addr = p.Addr.String()
	}
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		out.Chain, out.Name = info.State.PeerCertificates, info.State.ServerName
	}
	return out
}

// Value returns the metadata of that name (lower case), "" if there is none. What comes twice with different values counts as none: a
// proxy and we might believe different ones.
func Value(ctx context.Context, name string) string {
	all := metadata.ValueFromIncomingContext(ctx, name)
	for _, v := range all {
		if v != all[0] {
			return ""
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// NewServer returns a server without services. conf is for connections that come without TLS on them; those that infra/protomux hands over
// have it. Client certificates are asked for and not judged: the endpoints do, so that a refusal has a status code and a reason.
func NewServer(conf *tls.Config, log *slog.Logger, opts ...grpc.ServerOption) *grpc.Server {
	conf = conf.Clone()
	conf.ClientAuth = tls.RequestClientCert
	conf.NextProtos = []string{"h2"}
	return grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(secured{credentials.NewTLS(conf)}), grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxAnswer), grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(handshakeTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime, Time: probeAfter, Timeout: probeTime}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(unary(log)), grpc.ChainStreamInterceptor(stream(log)),
	}, opts...)...)
}

// Unserved answers calls that the server does not have with words, after their first message: a client whose first send fails may never read
// the status. Stream interceptors see these calls.
func Unserved(words string) grpc.ServerOption {
	return grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
		first := make(chan error, 1)
		go func() { first <- ss.RecvMsg(new(emptypb.Empty)) }() // ends with the stream
		select {
		case <-first:
		case <-time.After(firstTime):
		}
		return status.Error(codes.Unimplemented, words)
	})
}

// unary gives each call its facts for logs, turns a panic into Internal, and errors into statuses.
func unary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if p := recover(); p != nil {
				resp, err = nil, panicked(ctx, log, info.FullMethod, p)
			}
			if d := errs.RetryOf(err); d > 0 {
				_ = grpc.SetTrailer(ctx, metadata.Pairs(RetryTrailer, strconv.Itoa(int(math.Ceil(d.Seconds()))))) // only outside of a call
			}
			err = report(ctx, log, info.FullMethod, err)
		}()
		return next(withFacts(ctx), req)
	}
}

func stream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		ctx := withFacts(ss.Context())
		defer func() {
			if p := recover(); p != nil {
				err = panicked(ctx, log, info.FullMethod, p)
			}
			err = report(ctx, log, info.FullMethod, err)
		}()
		return next(srv, withContext{ss, ctx})
	}
}

type withContext struct {
	grpc.ServerStream
	ctx context.Context
}

func (s withContext) Context() context.Context { return s.ctx }

func withFacts(ctx context.Context) context.Context {
	return logging.With(ctx, slog.String(logging.Addr, PeerFrom(ctx).Addr))
}

func panicked(ctx context.Context, log *slog.Logger, method string, p any) error {
	log.ErrorContext(ctx, "call panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return errs.New(errs.Internal, "internal error")
}

// report logs what is ours to mend, since the peer learns no more than that it is, and returns the status.
func report(ctx context.Context, log *slog.Logger, method string, err error) error {
	out := Status(err)
	if status.Code(out) == codes.Internal && ctx.Err() == nil {
		log.ErrorContext(ctx, "call failed with an internal error", "method", method, logging.Err, err)
	}
	return out
}

// Run serves on l until ctx ends, then lets calls end for at most grace, and returns nil; an error if the listener fails.
func Run(ctx context.Context, s *grpc.Server, l net.Listener, grace time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("grpc: %w", err)
	case <-ctx.Done():
	}
	force := time.AfterFunc(grace, s.Stop)
	defer force.Stop()
	s.GracefulStop()
	<-ended // an error of the stopped listener says nothing
	return nil
}

// secured takes connections on which TLS is done already, as infra/protomux hands them over, beside bare ones.
type secured struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (c secured) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	done, ok := conn.(*tls.Conn)
	if h, handed := conn.(*handed); handed {
		done, ok = h.Conn, true
	}
	if !ok {
		return c.TransportCredentials.ServerHandshake(conn)
	}
	if err := done.Handshake(); err != nil { // nothing to do after a successful one
		return nil, nil, err
	}
	return conn, credentials.TLSInfo{State: done.ConnectionState(), CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

// Clone implements credentials.TransportCredentials.
func (c secured) Clone() credentials.TransportCredentials {
	return secured{c.TransportCredentials.Clone()}
}

// Handed is a listener of connections that another server accepted, TLS done.
type Handed struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewHanded returns a listener beside the one at addr.
func NewHanded(addr net.Addr) *Handed {
	return &Handed{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// Take hands conn over, and returns once it is closed.
func (l *Handed) Take(conn *tls.Conn) {
	h := &handed{Conn: conn, closed: make(chan struct{})}
	select {
	case l.conns <- h:
		<-h.closed
	case <-l.done:
	}
}

// Accept implements net.Listener.
func (l *Handed) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Handed) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *Handed) Addr() net.Addr { return l.addr }

type handed struct {
	*tls.Conn
	once   sync.Once
	closed chan struct{}
}

func (h *handed) Close() error {
	defer h.once.Do(func() { close(h.closed) })
	return h.Conn.Close()
}
