package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// wire is one robot's way to the cloud: it makes its connections, slows them, and ends them. Safe for concurrent use.
type wire struct {
	quality Wire

	mu     sync.Mutex
	rng    *rand.Rand
	away   bool               // there is no network
	conns  map[*conn]struct{} // open ones; one or two
	dialed time.Time          // when the last attempt began
}

func newWire(q Wire) *wire {
	w := &wire{quality: q, conns: map[*conn]struct{}{}}
	if q != (Wire{}) {
		w.rng = rand.New(rand.NewPCG(q.Seed, 0))
	}
	return w
}

// errAway is the error of a dial without a network.
var errAway = os.NewSyscallError("connect", syscall.ENETUNREACH)

// dial makes a connection as net.Dialer does.
func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	away := w.away
	w.dialed = time.Now()
	w.mu.Unlock()
	if away {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errAway}
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, wire: w, closed: make(chan struct{})}
	w.mu.Lock()
	w.conns[c] = struct{}{}
	away = w.away
	w.mu.Unlock()
	if away { // since
		c.cut()
		return nil, &net.OpError{Op: "dial", Net: network, Err: errAway}
	}
	return c, nil
}

// lastDial returns when the last attempt to connect began.
func (w *wire) lastDial() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dialed
}

// leave takes the network away, and with it all connections.
func (w *wire) leave() {
	w.mu.Lock()
	w.away = true
	w.mu.Unlock()
	w.cut()
}

func (w *wire) back() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = false
}

func (w *wire) isAway() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away
}

// cut ends all connections, as a router that was switched off and on does, and returns how many there were.
func (w *wire) cut() int {
	w.mu.Lock()
	var open []*conn
	for c := range w.conns {
		open = append(open, c)
	}
	w.mu.Unlock()
	for _, c := range open {
		c.cut()
	}
	return len(open)
}

// delay draws how long the next packet takes.
func (w *wire) delay() (d time.Duration) {
	q := w.quality
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.Latency > 0 {
		d = q.Latency/2 + time.Duration(w.rng.Int64N(int64(q.Latency)+1))
	}
	if w.rng.Float64() < q.Loss {
		d += q.Stall
	}
	return d
}

// conn is a connection over a wire.
type conn struct {
	net.Conn
	wire   *wire
	once   sync.Once
	broken sync.Once
	closed chan struct{}
}

// Read hands on what arrived, as late as the wire makes it.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.wait()
	}
	return n, c.say(err)
}

func (c *conn) Write(b []byte) (int, error) {
	c.wait()
	select {
	case <-c.closed: // what was on its way when the line was cut is lost, also in the moment before the socket is closed
		return 0, errCut
	default:
	}
	n, err := c.Conn.Write(b)
	return n, c.say(err)
}

// wait lets a packet's time pass, or the connection end.
func (c *conn) wait() {
	if c.wire.rng == nil {
		return
	}
	d := c.wire.delay()
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.closed:
	}
}

// errCut is the error at both ends of a cut connection.
var errCut = fmt.Errorf("simulated cut: %w", syscall.ECONNRESET)

// say names a cut as the reason why a connection failed.
func (c *conn) say(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-c.closed:
		return errCut
	default:
		return err
	}
}

// cut ends the connection without a goodbye: the other end sees a reset.
func (c *conn) cut() {
	c.broken.Do(func() { close(c.closed) })
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // it may be closed already
	}
	_ = c.Close() // it was meant to break
}

// Close closes it in order.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		c.wire.mu.Lock()
		delete(c.wire.conns, c)
		c.wire.mu.Unlock()
		err = c.Conn.Close()
	})
	return err
}
