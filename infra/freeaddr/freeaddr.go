// Package freeaddr finds addresses for the servers of tests that listen later than they are told where, or again after a restart.
package freeaddr

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports are taken from first to end-1: below those that Linux gives to outgoing connections, any of which could take one while its server is
// away, and above those that our programs listen on by default and that browsers refuse to open, of which 10080 is the last (Fetch, bad port).
const first, end = 10081, 32768

// given holds, until the process ends, one abstract socket for each port given, whose name keeps the port from other processes.
var given struct {
	sync.Mutex
	sockets []net.Listener
}

// Loopback returns 127.0.0.1 with a port on which nothing listens and which no other call on this machine has returned while its process
// runs. It is safe for concurrent use.
func Loopback() (string, error) {
	given.Lock()
	defer given.Unlock()
	from := rand.N(end - first)
	for i := range end - first {
		port := first + (from+i)%(end-first)
		socket, err := net.Listen("unix", fmt.Sprintf("@kennel-test-port-%d", port))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			_ = socket.Close() // there is another port
			continue
		}
		given.sockets = append(given.sockets, socket)
		return l.Addr().String(), l.Close()
	}
	return "", fmt.Errorf("no free port from %d to %d on 127.0.0.1", first, end-1)
}

// For is Loopback for a test, which ends if there is none.
func For(t testing.TB) string {
	t.Helper()
	addr, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}
