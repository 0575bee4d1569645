package admission

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/pires/go-proxyproto"
)

// Our own limits (the source gives none).
const (
	firstTime     = 3 * time.Second  // until the first byte
	queueTime     = 15 * time.Second // between the first byte and the first turn: as long as a robot waits for both (infra/mqtt)
	handshakeTime = 7 * time.Second  // from the first turn until Done or Prove
	writeTime     = 15 * time.Second // for each piece of what is written
	piece         = 64 << 10         // bytes
)

// about returns d and up to a half more. Connections that began together would otherwise end together, and come again together: 2,000 of them keep
// everybody else waiting for as long as they are taken in.
func about(d time.Duration) time.Duration { return d + rand.N(d/2) }

// state is how far a connection has come.
type state int32

const (
	unfinished state = iota
	open
	proven
	ended
)

// Conn is an admitted connection.
type Conn struct {
	net.Conn
	listener *Listener
	door     *Door
	now      atomic.Int32                 // state
	why      atomic.Pointer[RefusedError] // set before the door closes it
	until    atomic.Int64                 // write deadline of the server, in nanoseconds since 1970; 0: none
	behind   *proxyproto.Conn             // until we know who is behind the proxy

	// Under the door's lock.
	addr    netip.Prefix
	pool    *pool
	share   *share
	at      *list.Element
	since   time.Time // it is in its place
	timer   *time.Timer
	reason  Reason // of the timer
	begun   bool   // had a turn
	turn    bool   // has one
	granted chan struct{}
	line    *list.Element
}

// RefusedError says why the door closed a connection.
type RefusedError struct{ Reason Reason }

// Error implements error.
func (e *RefusedError) Error() string { return "connection refused by the server: " + words[e.Reason] }

// Read reads. Until Done, it returns with a turn, which the next Read gives back before it waits.
func (c *Conn) Read(b []byte) (int, error) {
	if state(c.now.Load()) != unfinished {
		return c.result(c.Conn.Read(b))
	}
	c.door.rest(c)
	n, err := c.result(c.Conn.Read(b))
	if err != nil || n == 0 {
		return n, err
	}
	if c.behind != nil {
		c.door.move(c, addressOf(c.behind.RemoteAddr())) // known by now
		c.behind = nil
	}
	if err := c.door.await(c); err != nil {
		return 0, err
	}
	return n, nil
}

// result returns why the door closed the connection in place of what the socket says of it.
func (c *Conn) result(n int, err error) (int, error) {
	if err != nil {
		if why := c.why.Load(); why != nil {
			err = why
		}
	}
	return n, err
}

// Write writes piece by piece. A client that takes none for writeTime is disconnected.
func (c *Conn) Write(b []byte) (n int, err error) {
	for {
		ours := time.Now().Add(writeTime)
		end := ours
		if until := c.until.Load(); until != 0 && until < ours.UnixNano() {
			end = time.Unix(0, until)
		}
		if err := c.Conn.SetWriteDeadline(end); err != nil {
			return c.result(n, err)
		}
		m, err := c.Conn.Write(b[n:min(len(b), n+piece)])
		n += m
		if end == ours && errors.Is(err, os.ErrDeadlineExceeded) {
			c.door.refuse(c, Unread)
		}
		if err != nil || n == len(b) {
			return c.result(n, err)
		}
	}
}

// SetWriteDeadline implements net.Conn, beside the limit of each piece.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.until.Store(0)
		return nil
	}
	c.until.Store(max(1, t.UnixNano()))
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.door.leave(c)
	return c.Conn.Close()
}

// under returns the admitted connection below c, or nil.
func under(c net.Conn) *Conn {
	for {
		switch x := c.(type) {
		case *Conn:
			return x
		case interface{ NetConn() net.Conn }:
			c = x.NetConn()
		default:
			return nil
		}
	}
}

// Done says that the handshake of the connection below c is complete, or that it was used again.
func Done(c net.Conn) {
	if c := under(c); c != nil && state(c.now.Load()) <= open {
		c.door.done(c)
	}
}

// Prove says that the connection below c showed whom we know. The error says that no place for those is left; a service of ours always has one.
func Prove(c net.Conn, service bool) error {
	if c := under(c); c != nil && state(c.now.Load()) <= open {
		return c.door.prove(c, service)
	}
	return nil
}

// State is for http.Server.ConnState: a request makes a handshake complete.
func State(c net.Conn, s http.ConnState) {
	if s == http.StateActive {
		Done(c)
	}
}

type connKey struct{}

// With is for http.Server.ConnContext: handlers find their connection with From.
func With(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, under(c))
}

// From returns the connection of a request; nil if it did not come through a Door.
func From(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Proved notes what a request showed, if who says that we know its caller. Once it does, who is not asked again. Without room for one more that proved
// itself, the connection stays as it is.
func (c *Conn) Proved(who func() bool) {
	if c != nil && state(c.now.Load()) == open && who() {
		_ = c.door.prove(c, false)
	}
}
