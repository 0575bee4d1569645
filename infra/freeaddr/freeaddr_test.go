package freeaddr

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestLoopback: never twice, never among the ports of outgoing connections or one that browsers refuse, free to listen on.
func TestLoopback(t *testing.T) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Fatal(err)
	}
	outgoing, err := strconv.Atoi(strings.Fields(string(b))[0])
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 200 {
		addr := For(t)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if port := l.Addr().(*net.TCPAddr).Port; seen[addr] || port < first || port == 10080 || port >= min(end, outgoing) {
			t.Errorf("%s: given before %v, want a new one from %d to below %d", addr, seen[addr], first, min(end, outgoing))
		}
		seen[addr] = true
		l.Close() // another may have it: it is not given again
	}
	for addr := range seen {
		_, port, _ := net.SplitHostPort(addr)
		if l, err := net.Listen("unix", "@kennel-test-port-"+port); err == nil {
			l.Close()
			t.Fatalf("another process could be given %s", addr)
		}
	}
}
