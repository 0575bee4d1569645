package port

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/freeaddr"
)

const patience = 30 * time.Second

// TestSockets sends and receives over every kind of socket, without allocation, until the other end is gone (AMIGO-LINK-05).
func TestSockets(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address, prefix := "127.0.0.1:0", "tcp:"
			if network == "unix" {
				address, prefix = filepath.Join(t.TempDir(), "body"), ""
			}
			ln, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			p, err := Open(t.Context(), prefix+ln.Addr().String(), 9600, false)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if p.Serial() {
				t.Error("a socket is a serial line")
			}
			if err := p.SetBaud(19200); err != nil || p.Baud() != 0 {
				t.Errorf("a socket has a speed of %d, %v", p.Baud(), err)
			}
			peer, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			out, in := []byte("ping"), make([]byte, 16)
			if n, err := p.Read(in); n != 0 || err != nil {
				t.Errorf("Read of an idle line = %d, %v; want 0", n, err)
			}
			if ready, err := p.Wait(p.Now() + time.Millisecond); ready || err != nil {
				t.Errorf("Wait on an idle line = %t, %v; want false", ready, err)
			}
			step := func() {
				if n, err := p.Write(out); n != len(out) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
				if _, err := io.ReadFull(peer, in[:len(out)]); err != nil || string(in[:len(out)]) != "ping" {
					t.Fatalf("peer read %q, %v", in[:len(out)], err)
				}
				if _, err := peer.Write(out); err != nil {
					t.Fatal(err)
				}
				if ready, err := p.Wait(p.Now() + patience); !ready || err != nil {
					t.Fatalf("Wait = %t, %v; want true", ready, err)
				}
				if n, err := p.Read(in); string(in[:n]) != "ping" || err != nil {
					t.Fatalf("Read = %q, %v", in[:n], err)
				}
			}
			if allocs := testing.AllocsPerRun(10, step); allocs != 0 {
				t.Errorf("%v allocations", allocs)
			}
			if err := p.DropOutput(); err != nil {
				t.Error(err)
			}
			if err := p.Drain(); err != nil {
				t.Error(err)
			}
			_ = peer.Close()
			_, err = p.Wait(p.Now() + patience)
			if err == nil {
				_, err = p.Read(in)
			}
			if err == nil || errors.Is(err, ErrTaken) {
				t.Errorf("the other end is gone after it spoke: %v", err)
			}
		})
	}
}

// TestTaken: a robot that serves another program hangs up without a word, also on a program that has spoken, and the line says what that means
// (AMIGO-SYNC-17).
func TestTaken(t *testing.T) {
	t.Run("hung up", func(t *testing.T) { taken(t, -1) })
	t.Run("reset", func(t *testing.T) { taken(t, 0) }) // as it ends when bytes are left unread
}

func taken(t *testing.T, linger int) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p, err := Open(t.Context(), "tcp:"+ln.Addr().String(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.(*net.TCPConn).SetLinger(linger), c.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = p.Wait(p.Now() + 10*time.Second)
	if err == nil {
		_, err = p.Read(make([]byte, 10))
	}
	if !errors.Is(err, ErrTaken) {
		t.Errorf("got %v, want %v", err, ErrTaken)
	}
}

// TestOpenSaysWhichStepFailed reads the errors of addresses that cannot be opened (AMIGO-LINK-07).
func TestOpenSaysWhichStepFailed(t *testing.T) {
	refusing := freeaddr.For(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name, address, want string
		ctx                 context.Context
	}{
		{"nothing listens", "tcp:" + refusing, "refused; is the robot on, and no other program connected", t.Context()},
		{"no port", "tcp:localhost", "missing port", t.Context()},
		{"cancelled", "tcp:" + refusing, "canceled", ended},
		{"no such tty", "serial:/dev/nothing?baud=9600", "open /dev/nothing: no such file", t.Context()},
		{"no such path", "/dev/nothing", "open /dev/nothing: no such file", t.Context()},
		{"not a tty", "serial:" + file, "set up " + file, t.Context()},
		{"bad baud", "serial:/dev/ttyS0?baud=fast", "settings of serial:/dev/ttyS0?baud=fast", t.Context()},
		{"zero baud", "serial:/dev/ttyS0?baud=0", "not positive", t.Context()},
		{"other setting", "serial:/dev/ttyS0?parity=even", "want only baud", t.Context()},
		{"bad query", "serial:/dev/ttyS0?%", "settings of", t.Context()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Open(tc.ctx, tc.address, 9600, false); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Open(%q) = %v; want %q", tc.address, err, tc.want)
			}
		})
	}
}
