package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mochi-mqtt/server/v2/listeners"

	"kennel/infra/admission"
	"kennel/infra/logging"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/brokerauth"
)

// Our own limits (the source gives none). Those of a handshake are infra/admission's.
const (
	connectTime = 10 * time.Second // until CONNECT
	writeTime   = 10 * time.Second // a client that does not read for this long is disconnected
)

// peer is one client's connection and identity.
type peer struct {
	net.Conn
	who    brokerauth.Identity
	up     atomic.Bool  // the session was established
	turned atomic.Bool  // turned away, and said so
	denied atomic.Int32 // filters refused
}

// SetDeadline is called by mochi before each read, for both directions. Reads end with the certificate at the latest; writes have
// their own limit, because a client that pings but does not read would renew a common one for ever.
func (p *peer) SetDeadline(t time.Time) error {
	if end := p.who.NotAfter; !end.IsZero() && (t.IsZero() || t.After(end)) {
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
	ln     *admission.Listener
	trust  *trustFiles
	refuse func(brokerapi.Refusal)
	log    *slog.Logger
	// service establishes the sessions of clients that are not things.
	service listeners.EstablishFn
	// endSessions tells every client that the broker stops, and ends its session.
	endSessions func()

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
			if !l.closing() {
				l.log.Error("connections no longer accepted", logging.Err, err)
			}
			return
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
		l.refuse(brokerapi.Refusal{Addr: raw.RemoteAddr().String(), Code: why.Code, Reason: why.Reason})
	}
	if p == nil {
		return
	}
	started = true
	go l.session(raw, p, establish)
}

func (l *listener) session(raw net.Conn, p *peer, establish listeners.EstablishFn) {
	defer l.remove(raw)
	// mochi's parser runs below; a panic on a stranger's bytes must not end the broker.
	defer l.recovered(raw)
	if p.who.Service {
		establish = l.service
	}
	err := establish(l.ID(), p)
	if err != nil && !p.up.Load() && !p.turned.Load() {
		l.refuse(p.who.Refused(raw.RemoteAddr().String(), "", brokerapi.CodeProtocol, fmt.Sprintf("no MQTT 3.1.1 CONNECT: %v", err)))
	}
}

func (l *listener) recovered(raw net.Conn) {
	if p := recover(); p != nil {
		l.log.Error("connection panicked", logging.Addr, raw.RemoteAddr().String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// handshake proves possession of the client's key and judges its certificate. It returns nothing if the front door turned the client away, which counts
// and tells it.
func (l *listener) handshake(raw net.Conn) (*peer, *brokerauth.Refusal) {
	now := l.trust.now.Load()
	conn := tls.Server(raw, now.server)
	var away *admission.RefusedError
	if err := conn.HandshakeContext(context.Background()); errors.As(err, &away) {
		return nil, nil
	} else if err != nil {
		return nil, &brokerauth.Refusal{Code: brokerapi.CodeTLS, Reason: fmt.Sprintf("TLS handshake: %v", err)}
	}
	p := &peer{Conn: conn, who: now.Identify(conn.ConnectionState().PeerCertificates, time.Now())}
	if p.who.Refusal == nil { // one that is refused is told so by CONNACK
		if err := admission.Prove(conn, p.who.Service); err != nil {
			return nil, &brokerauth.Refusal{Code: brokerapi.CodeBusy, Reason: err.Error()}
		}
	}
	if err := p.SetReadDeadline(time.Now().Add(connectTime)); err != nil { // mochi waits for CONNECT without a limit of its own
		return nil, &brokerauth.Refusal{Code: brokerapi.CodeTLS, Reason: fmt.Sprintf("TLS handshake: %v", err)}
	}
	return p, nil
}

// Close stops accepting, ends every connection, also those that have not logged in yet, and waits for their goroutines. mochi waits for its
// sessions too, but must not get a new one while it does. mochi's own way to end the sessions of a listener is not taken: it locks the list of
// clients twice, and waits for ever if a client leaves between the two.
func (l *listener) Close(listeners.CloseFn) {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	_ = l.ln.Close()
	l.endSessions()
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

// add notes a connection; false if it must go.
func (l *listener) add(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.open[c] = struct{}{}
		l.serving.Add(1)
	}
	return !l.ended
}

func (l *listener) remove(c net.Conn) {
	_ = c.Close()
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
	l.serving.Done()
}
