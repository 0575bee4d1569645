// Package oneport serves plain HTTP, HTTPS and gRPC on one port, because original robots call all three by one host:port (VEC-CLD-07,
// peer facts section 1): the connection check comes by http and then by https, the services by gRPC.
//
// The first byte tells TLS from plain HTTP; the protocols that a TLS client offers tell gRPC (h2 alone) from HTTPS. A client that says
// nothing, or does not finish its handshake, is dropped after a while and delays no other.
package oneport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"kennel/infra/logging"
)

// handshakeTime is how long a client may take to say what it wants and to finish its handshake; waiting is how many may do so at once, in
// all, beyond which the next ones wait in the kernel.
const (
	handshakeTime = 10 * time.Second
	waiting       = 512
)

// Port is one listener split in three. Each of the three is closed by closing the Port.
type Port struct {
	Plain net.Listener // plain HTTP; only what may be read by anybody belongs here
	HTTPS net.Listener // *tls.Conn that speak HTTP/1.1, handshake done
	GRPC  net.Listener // *tls.Conn that speak h2, handshake done
	// Broken hears of each handshake that fails: from where, the name that the client asked for ("": none), and why. Set it before Run.
	Broken func(ctx context.Context, addr, name string, err error)

	l    net.Listener
	conf *tls.Config
	log  *slog.Logger
	done chan struct{}
	once sync.Once
}

// Split takes l over. conf must have a certificate; its NextProtos are replaced.
func Split(l net.Listener, conf *tls.Config, log *slog.Logger) *Port {
	p := &Port{l: l, log: log, done: make(chan struct{})}
	p.Plain, p.HTTPS, p.GRPC = p.sub(), p.sub(), p.sub()
	p.conf = conf.Clone()
	p.conf.NextProtos = []string{"http/1.1"}
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
	slots := make(chan struct{}, waiting)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := p.l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() { // out of descriptors, for instance
				p.log.WarnContext(ctx, "connection not accepted", logging.Err, err)
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
				continue
			}
			return err
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			_ = conn.Close() // it is no longer served
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			p.sort(ctx, conn)
		})
	}
}

// sort finds out what a client speaks and hands its connection over.
func (p *Port) sort(ctx context.Context, conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(handshakeTime)) // a failure shows at the next read
	peeked := &peekedConn{Conn: conn, r: bufio.NewReaderSize(conn, 512)}
	first, err := peeked.r.Peek(1)
	if err != nil {
		_ = conn.Close() // it said nothing
		return
	}
	const handshake = 0x16 // TLS record type
	if first[0] != handshake {
		_ = conn.SetDeadline(time.Time{}) // as above
		p.hand(p.Plain, peeked)
		return
	}
	secure := tls.Server(peeked, p.conf)
	hctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := secure.HandshakeContext(hctx); err != nil {
		if p.Broken != nil && ctx.Err() == nil {
			p.Broken(ctx, conn.RemoteAddr().String(), secure.ConnectionState().ServerName, err)
		}
		p.log.DebugContext(ctx, "handshake failed", logging.Addr, conn.RemoteAddr().String(), logging.Err, err)
		_ = conn.Close() // it is no use any more
		return
	}
	_ = conn.SetDeadline(time.Time{}) // as above
	if secure.ConnectionState().NegotiatedProtocol == "h2" {
		p.hand(p.GRPC, secure)
		return
	}
	p.hand(p.HTTPS, secure)
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
