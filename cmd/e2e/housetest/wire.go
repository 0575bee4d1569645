package housetest

import (
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"kennel/infra/freeaddr"
)

func lockThread() { runtime.LockOSThread() }

// Wire is a TCP path between a robot and the cloud that a test can cut.
type Wire struct {
	Addr   string
	target string
	reach  Reach

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
}

// NewWire returns a path to target until the test ends.
func NewWire(t testing.TB, target string) *Wire {
	t.Helper()
	return newWireBy(t, target, dial)
}

// Reach makes both ends of what a wire carries, from the one and the address of the other.
type Reach func(near net.Conn, target string) (net.Conn, net.Conn, error)

func dial(near net.Conn, target string) (net.Conn, net.Conn, error) {
	far, err := net.Dial("tcp", target)
	return near, far, err
}

// Slowly is dial over a line that takes the given time each way and carries so many bytes a second.
func Slowly(way time.Duration, rate int) Reach {
	return func(near net.Conn, target string) (net.Conn, net.Conn, error) {
		far, err := net.Dial("tcp", target)
		if err != nil {
			return nil, nil, err
		}
		return newLate(near, way, rate), newLate(far, way, rate), nil
	}
}

// late is a connection that hands on what arrives when a slow line would have carried it.
type late struct {
	net.Conn
	arrived chan packet
	rest    []byte
}

type packet struct {
	due   time.Time
	bytes []byte
}

func newLate(c net.Conn, way time.Duration, rate int) *late {
	l := &late{Conn: c, arrived: make(chan packet, 1<<12)}
	go func() {
		defer close(l.arrived)
		var free time.Time // when the line has carried all before
		for {
			b := make([]byte, 1400)
			n, err := c.Read(b)
			if n > 0 {
				if now := time.Now(); free.Before(now) {
					free = now
				}
				free = free.Add(time.Duration(n) * time.Second / time.Duration(rate))
				l.arrived <- packet{free.Add(way), b[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	return l
}

func (l *late) Read(b []byte) (int, error) {
	if len(l.rest) == 0 {
		p, open := <-l.arrived
		if !open {
			return 0, io.EOF
		}
		time.Sleep(time.Until(p.due)) // the line's own time
		l.rest = p.bytes
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func newWireBy(t testing.TB, target string, by Reach) *Wire {
	t.Helper()
	l, err := net.Listen("tcp", freeaddr.For(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{Addr: l.Addr().String(), target: target, reach: by, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); w.Cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(c)
		}
	}()
	return w
}

func (w *Wire) carry(c net.Conn) {
	defer c.Close()
	if !w.keep(c) {
		return
	}
	defer w.drop(c)
	c, far, err := w.reach(c, w.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !w.keep(far) {
		return
	}
	defer w.drop(far)
	go func() {
		_, _ = io.Copy(far, c) // the end of either side ends both
		far.Close()
	}()
	_, _ = io.Copy(c, far) // as above
}

func (w *Wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return false
	}
	w.conns[c] = true
	return true
}

func (w *Wire) drop(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

// Cut ends every connection and refuses new ones. It returns how many it ended.
func (w *Wire) Cut() (ended int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for c := range w.conns {
		c.Close()
	}
	return len(w.conns)
}

// Mend lets connections through again.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}
