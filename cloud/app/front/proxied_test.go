package front

import (
	"fmt"
	"io"
	"net"
	"testing"

	"kennel/infra/errs"
)

func TestProxied(t *testing.T) {
	const header = "PROXY TCP4 203.0.113.7 192.0.2.1 40000 8443\r\n"
	for _, c := range []struct {
		name     string
		networks []string
		send     string
		from     string // "": the connection's own
		read     string
	}{
		{"a proxy speaks for another", []string{"10.0.0.0/8", "127.0.0.0/8"}, header + "hello", "203.0.113.7:40000", "hello"},
		{"a proxy speaks for itself", []string{"127.0.0.0/8"}, "hello", "", "hello"},
		{"a stranger claims to be another", []string{"10.0.0.0/8"}, header + "hello", "", header + "hello"},
		{"there is no proxy", nil, header, "", header},
	} {
		t.Run(c.name, func(t *testing.T) {
			plain, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l, err := proxied(plain, c.networks)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			far, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			if _, err := fmt.Fprint(far, c.send); err != nil {
				t.Fatal(err)
			}
			near, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer near.Close()
			if c.from == "" {
				c.from = far.LocalAddr().String()
			}
			if got := near.RemoteAddr().String(); got != c.from {
				t.Errorf("from %s, want %s", got, c.from)
			}
			b := make([]byte, len(c.read))
			if _, err := io.ReadFull(near, b); err != nil || string(b) != c.read {
				t.Errorf("read %q, %v; want %q", b, err, c.read)
			}
		})
	}
	if _, err := ParseProxies([]string{"10.0.0.1"}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("an address without a length: %v", err)
	}
}
