// Package protomux serves plain HTTP, HTTPS and gRPC on one port, because original robots call all three by one host:port (VEC-CLD-07,
// peer facts section 1): the connection check comes by http and then by https, the services by gRPC.
//
// The first byte tells TLS from plain HTTP; the protocols that a TLS client offers tell gRPC (h2 alone) from HTTPS. A client that says
// nothing, or does not finish its handshake, is dropped by the front door (infra/admission) and delays no other.
package protomux

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"kennel/infra/admission"
	"kennel/infra/logging"
)

// Port is one listener split in three. Each of the three is closed by closing the Port.
type Port struct {
	Plain net.Listener // plain HTTP; only what may be read by anybody belongs here
	HTTPS net.Listener // *tls.Conn that speak HTTP/1.1, handshake done
	GRPC  net.Listener // *tls.Conn that speak h2, handshake done
	// Broken hears of each handshake that fails: from where, the name that the client asked for ("": none), and why. Set it before Run.
	Broken func(ctx context.Context, addr, name string, err error)
	// Known, if set, says whether a client's certificate is one that we know. Set it before Run.
	Known func(chain []*x509.Certificate) bool

	l    *admission.Listener
	slow *rate.Limiter // of those whose handshake was too slow, told to Broken: strangers can make any number
	conf *tls.Config
	log  *slog.Logger
	done chan struct{}
	once sync.Once
}

// Split takes l over. conf must have a certificate; the port's own protocols come before its NextProtos.
func Split(l *admission.Listener, conf *tls.Config, log *slog.Logger) *Port {
	p := &Port{l: l, log: log, slow: rate.NewLimiter(1, 20), done: make(chan struct{})}
	p.Plain, p.HTTPS, p.GRPC = p.sub(), p.sub(), p.sub()
	p.conf = conf.Clone()
	p.conf.NextProtos = append([]string{"http/1.1"}, conf.NextProtos...)
	grpc := p.conf.Clone()
	grpc.NextProtos = []string{"h2"}
	p.conf.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if offersOnlyH2(hello.SupportedProtos) {
			return grpc, nil
		}
		return nil, nil
	}
	return p
}

// offersOnlyH2 tells gRPC clients: those for HTTP offer HTTP/1.1 too, or nothing. Some offer a name of their own beside h2.
func offersOnlyH2(protos []string) bool {
	return slices.Contains(protos, "h2") && !slices.Contains(protos, "http/1.1")
}

// Run accepts until ctx ends or the listener fails; the error is nil in the first case.
func (p *Port) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { p.Close() })
	defer stop()
	defer p.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := p.l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		wg.Go(func() { p.sort(ctx, conn) })
	}
}

// sort finds out what a client speaks and hands its connection over.
func (p *Port) sort(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) }) // a failure shows at the next read
	peeked := &peekedConn{Conn: conn, r: bufio.NewReaderSize(conn, 512)}
	first, err := peeked.r.Peek(1)
	stop()
	if err != nil {
		_ = conn.Close() // it said nothing
		return
	}
	const handshake = 0x16 // TLS record type
	if first[0] != handshake {
		admission.Done(conn)
		p.hand(p.Plain, peeked)
		return
	}
	secure := tls.Server(peeked, p.conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		var away *admission.RefusedError // its own fault only if it was slow
		if p.Broken != nil && ctx.Err() == nil && (!errors.As(err, &away) || away.Reason == admission.Slow && p.slow.Allow()) {
			p.Broken(ctx, conn.RemoteAddr().String(), secure.ConnectionState().ServerName, err)
		}
		p.log.DebugContext(ctx, "handshake failed", logging.Addr, conn.RemoteAddr().String(), logging.Err, err)
		_ = conn.Close() // it is no use any more
		return
	}
	admission.Done(conn)
	state, to := secure.ConnectionState(), p.HTTPS
	if state.NegotiatedProtocol == "h2" {
		to = p.GRPC
	}
	p.hand(to, secure)
	if chain := state.PeerCertificates; len(chain) > 0 && p.Known != nil && p.Known(chain) {
		_ = admission.Prove(conn, false) // without room for it, it stays as it is
	}
}

func (p *Port) hand(to net.Listener, conn net.Conn) {
	select {
	case to.(*sub).conns <- conn:
	case <-p.done:
		_ = conn.Close() // it is no longer served
	}
}

// Close stops listening. Connections that were handed over live on.
func (p *Port) Close() error {
	err := net.ErrClosed
	p.once.Do(func() {
		close(p.done)
		err = p.l.Close()
	})
	return err
}

func (p *Port) sub() net.Listener { return &sub{p, make(chan net.Conn)} }

// sub is a listener for one kind of connection.
type sub struct {
	port  *Port
	conns chan net.Conn // no buffer: a connection is either with the port or with its server
}

// Accept returns the next connection of this kind, or net.ErrClosed.
func (s *sub) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.port.done:
		return nil, net.ErrClosed
	}
}

// Close closes the whole port.
func (s *sub) Close() error {
	if err := s.port.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Addr is the port's.
func (s *sub) Addr() net.Addr { return s.port.l.Addr() }

// peekedConn reads what was looked at before.
type peekedConn struct {
	net.Conn
	r *bufio.Reader
}

// NetConn returns the connection below.
func (c *peekedConn) NetConn() net.Conn { return c.Conn }

func (c *peekedConn) Read(b []byte) (int, error) {
	if c.r == nil {
		return c.Conn.Read(b)
	}
	n, err := c.r.Read(b)
	if c.r.Buffered() == 0 {
		c.r = nil // the rest needs no copy
	}
	return n, err
}
