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
	handshakeTime = 10 * time.Second // until the first byte, for TLS, and again until CONNECT
	queueTime     = 15 * time.Second // between first byte and TLS: as long as a robot waits for both (infra/mqtt)
	writeTime     = 10 * time.Second // a client that does not read for this long is disconnected
	handshakes    = 128              // at once: each costs two milliseconds of a core
)

// peer is one client's connection and identity.
type peer struct {
	net.Conn
	who    identity
	up     atomic.Bool  // the session was established
	turned atomic.Bool  // turned away, and said so
	denied atomic.Int32 // filters refused
}

// SetDeadline is called by mochi before each read, for both directions. Reads end with the certificate at the latest; writes have
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

// listener accepts TLS connections, identifies the clients and hands them to the broker. It implements mochi's listeners.Listener.
type listener struct {
	ln     net.Listener
	trust  *trustFiles
	limit  int64
	refuse func(brokerapi.Refusal)
	log    *slog.Logger
	// service establishes the sessions of clients that are not things.
	service listeners.EstablishFn

	slots   chan struct{}
	done    chan struct{}  // closed by Close
	serving sync.WaitGroup // one for each of open
	mu      sync.Mutex
	open    map[net.Conn]struct{}
	ended   bool
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
			l.log.Error("connection not accepted", logging.Err, err) // out of file descriptors: the next may go
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !l.add(raw) {
			_ = raw.Close()
			continue
		}
		go l.welcome(raw, establish)
	}
}

// welcome identifies the client and starts its session in a new goroutine: checking certificates has grown this one's stack several times,
// and thousands of sessions would keep such stacks.
func (l *listener) welcome(raw net.Conn, establish listeners.EstablishFn) {
	started := false
	defer func() {
		if !started {
			l.remove(raw)
		}
	}()
	defer l.recovered(raw)
	p, why := l.handshake(raw)
	if why != nil {
		l.refuse(brokerapi.Refusal{Addr: raw.RemoteAddr().String(), Code: why.code, Reason: why.reason})
		return
	}
	started = true
	go l.session(raw, p, establish)
}

func (l *listener) session(raw net.Conn, p *peer, establish listeners.EstablishFn) {
	defer l.remove(raw)
	// mochi's parser runs below; a panic on a stranger's bytes must not end the broker.
	defer l.recovered(raw)
	if p.who.service {
		establish = l.service
	}
	err := establish(l.ID(), p)
	if err != nil && !p.up.Load() && !p.turned.Load() {
		l.refuse(p.who.refused(raw.RemoteAddr().String(), "", brokerapi.CodeProtocol, fmt.Sprintf("no MQTT 3.1.1 CONNECT: %v", err)))
	}
}

func (l *listener) recovered(raw net.Conn) {
	if p := recover(); p != nil {
		l.log.Error("connection panicked", logging.Addr, raw.RemoteAddr().String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// handshake proves possession of the client's key and judges its certificate, when it is this client's turn.
func (l *listener) handshake(raw net.Conn) (*peer, *refusal) {
	failed := func(err error) *refusal { return &refusal{brokerapi.CodeTLS, fmt.Sprintf("TLS handshake: %v", err)} }
	if err := greeted(raw); err != nil {
		return nil, failed(err)
	}
	if why := l.turn(raw); why != nil {
		return nil, why
	}
	defer func() { <-l.slots }()
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	now := l.trust.now.Load()
	conn := tls.Server(raw, now.server)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, failed(err)
	}
	p := &peer{Conn: conn, who: now.identify(conn.ConnectionState().PeerCertificates, time.Now())}
	if err := p.SetReadDeadline(time.Now().Add(handshakeTime)); err != nil { // mochi waits for CONNECT without a limit of its own
		return nil, failed(err)
	}
	return p, nil
}

// turn waits for a free place, first come, first served: goroutines that wait to send on a channel are queued. A fleet that lost its broker
// comes back all at once. A waiting client has its whole handshake ahead, and one that has hung up costs no other client's time. The queue
// need not be longer than a robot waits; a much shorter one makes robots reconnect that would have been served (measured with 6,000).
func (l *listener) turn(raw net.Conn) *refusal {
	since := time.Now()
	limit := time.NewTimer(queueTime)
	defer limit.Stop()
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return &refusal{brokerapi.CodeTLS, "TLS handshake: the broker stops"}
	case <-limit.C:
		return &refusal{brokerapi.CodeBusy, fmt.Sprintf("no turn for a TLS handshake within %v", queueTime)}
	}
	if gone(raw) {
		<-l.slots
		return &refusal{brokerapi.CodeTLS, fmt.Sprintf("TLS handshake: the client hung up while it waited %v for its turn",
			time.Since(since).Round(time.Millisecond))}
	}
	return nil
}

// Close stops accepting, ends every connection, also those that have not logged in yet, and waits for their goroutines. mochi waits for its
// sessions too, but must not get a new one while it does.
func (l *listener) Close(closeClients listeners.CloseFn) {
	l.mu.Lock()
	if !l.ended {
		l.ended = true
		close(l.done)
	}
	l.mu.Unlock()
	_ = l.ln.Close()
	closeClients(l.ID())
	l.mu.Lock()
	for c := range l.open {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.serving.Wait()
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
		l.serving.Add(1)
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
	delete(l.open, c)
	l.mu.Unlock()
	l.serving.Done()
}
