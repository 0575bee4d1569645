package house

import (
	"net"
	"strings"
	"testing"
)

// TestFreeAddr: never twice, never among the ports of outgoing connections, free to listen on.
func TestFreeAddr(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		addr, err := FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if port := l.Addr().(*net.TCPAddr).Port; seen[addr] || port >= endPort {
			t.Errorf("%s: given before %v", addr, seen[addr])
		}
		seen[addr] = true
	}
}

func TestStartWithoutPrograms(t *testing.T) {
	if _, err := Start(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("%v: want one that says how to make the programs", err)
	}
}
