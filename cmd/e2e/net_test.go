package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
)

func lockThread() { runtime.LockOSThread() }

var (
	portMu   sync.Mutex
	nextPort = 12000 + os.Getpid()%180*100 // runs beside each other keep out of each other's way
)

// freeAddr returns a loopback address with an unused port, below the range from which outgoing connections take theirs.
func freeAddr(t testing.TB) string {
	portMu.Lock()
	defer portMu.Unlock()
	for ; nextPort < 32000; nextPort++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", nextPort))
		if err != nil {
			continue
		}
		l.Close()
		nextPort++
		return l.Addr().String()
	}
	t.Fatal("no free port below 32000")
	return ""
}

// wire is a TCP path between a robot and the cloud that a test can cut.
type wire struct {
	addr   string
	target string
	reach  reach

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
}

func newWire(t testing.TB, target string) *wire { return newWireBy(t, target, dial) }

// reach makes both ends of what a wire carries, from the one and the address of the other.
type reach func(near net.Conn, target string) (net.Conn, net.Conn, error)

func dial(near net.Conn, target string) (net.Conn, net.Conn, error) {
	far, err := net.Dial("tcp", target)
	return near, far, err
}

func newWireBy(t testing.TB, target string, by reach) *wire {
	l, err := net.Listen("tcp", freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{addr: l.Addr().String(), target: target, reach: by, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); w.cut() })
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

func (w *wire) carry(c net.Conn) {
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

func (w *wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return false
	}
	w.conns[c] = true
	return true
}

func (w *wire) drop(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

// cut ends every connection and refuses new ones.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for c := range w.conns {
		c.Close()
	}
}

// mend lets connections through again.
func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}
