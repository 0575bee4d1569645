package broker

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mochi-mqtt/server/v2/listeners"

	"kennel/infra/logging"
	"kennel/infra/mqtt/brokerapi"
)

// Our own limits (the source gives none).
const (
	handshakeTime = 10 * time.Second // TLS, and again until CONNECT
	writeTime     = 10 * time.Second // a client that does not read for so long is gone
	handshakes    = 128              // at once: each costs two milliseconds of a core
)

// peer is one client's connection and who it is.
type peer struct {
	net.Conn
	who    identity
	up     atomic.Bool  // the session was established
	turned atomic.Bool  // turned away, and said so
	denied atomic.Int32 // filters refused
}

// SetDeadline is what mochi calls before each read, for both directions. Reads end with the certificate at the latest; writes have
// their own limit, because a client that pings but does not read would renew a common one for ever.
func (p *peer) SetDeadline(t time.Time) error {
	if end := p.who.notAfter; !end.IsZero() && (t.IsZero() || t.After(end)) {
		t = end
	}
	return p.SetReadDeadline(t)
}

func (p *peer) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	n, err := p.Conn.Write(b)
	if err != nil {
		_ = p.Close() // wakes the reader, which ends the session
	}
	return n, err
}

// listener accepts TLS connections, finds out who they are and hands them to the broker. It implements mochi's listeners.Listener.
type listener struct {
	ln     net.Listener
	trust  *trustFiles
	limit  int64
	refuse func(brokerapi.Refusal)
	log    *slog.Logger

	slots chan struct{}
	mu    sync.Mutex
	open  map[net.Conn]struct{}
	ended bool
}

func (l *listener) Init(*slog.Logger) error { return nil }
func (l *listener) ID() string              { return "mtls" }
func (l *listener) Address() string         { return l.ln.Addr().String() }
func (l *listener) Protocol() string        { return "mqtts" }

// Serve accepts until Close.
func (l *listener) Serve(establish listeners.EstablishFn) {
	for {
		raw, err := l.ln.Accept()
		if err != nil {
			if l.closing() {
				return
			}
			l.log.Error("accept", logging.Err, err) // out of file descriptors: the next may go
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !l.add(raw) {
			_ = raw.Close()
			continue
		}
		go func() {
			defer l.remove(raw)
			// mochi's parser runs below; what it does with a stranger's bytes must not end the broker.
			defer func() {
				if p := recover(); p != nil {
					l.log.Error("connection panicked", logging.Addr, raw.RemoteAddr().String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				}
			}()
			l.serve(raw, establish)
		}()
	}
}

func (l *listener) serve(raw net.Conn, establish listeners.EstablishFn) {
	addr := raw.RemoteAddr().String()
	p, err := l.handshake(raw)
	if err != nil {
		l.refuse(brokerapi.Refusal{Addr: addr, Code: brokerapi.CodeTLS, Reason: fmt.Sprintf("TLS handshake: %v", err)})
		return
	}
	err = establish(l.ID(), p)
	if err != nil && !p.up.Load() && !p.turned.Load() {
		l.refuse(brokerapi.Refusal{Addr: addr, CN: p.who.cn, Code: brokerapi.CodeProtocol, Reason: fmt.Sprintf("no MQTT 3.1.1 CONNECT: %v", err)})
	}
}

// handshake proves possession of the client's key and judges its certificate.
func (l *listener) handshake(raw net.Conn) (*peer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%d others before it: %w", handshakes, ctx.Err())
	}
	now := l.trust.now.Load()
	conn := tls.Server(raw, now.server)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	p := &peer{Conn: conn, who: now.identify(conn.ConnectionState().PeerCertificates, time.Now())}
	return p, p.SetReadDeadline(time.Now().Add(handshakeTime)) // mochi waits for CONNECT without a limit of its own
}

// Close stops accepting and ends every connection, also those that have not logged in yet.
func (l *listener) Close(closeClients listeners.CloseFn) {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	_ = l.ln.Close()
	closeClients(l.ID())
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.Close()
	}
}

func (l *listener) closing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// add notes a connection; false if it must go. Strangers in their handshake count too.
func (l *listener) add(c net.Conn) bool {
	l.mu.Lock()
	n, ended := int64(len(l.open)), l.ended
	if !ended && n < l.limit {
		l.open[c] = struct{}{}
	}
	l.mu.Unlock()
	if !ended && n >= l.limit {
		l.refuse(brokerapi.Refusal{Addr: c.RemoteAddr().String(), Code: brokerapi.CodeBusy, Reason: fmt.Sprintf("all %d connections are taken", l.limit)})
	}
	return !ended && n < l.limit
}

func (l *listener) remove(c net.Conn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}
