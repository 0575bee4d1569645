package corelink

import (
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestStuckPeerIsLeft: the server's patience with a peer that never reads has an end.
func TestStuckPeerIsLeft(t *testing.T) {
	root := t.TempDir()
	left := make(chan error, 1)
	s, _ := serveWith(t, root, Handlers{Left: func(_ Peer, err error) { left <- err }}, 50*time.Millisecond)
	stuck, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	big := &Raw{Name: "newer", Payload: append([]byte{0x59, 0x20, 0}, make([]byte, 8<<10)...)}
	limit := time.After(30 * time.Second)
	for {
		if err := s.Publish(big); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-left:
			if n, _ := s.Peers(); err == nil || n != 0 {
				t.Errorf("left with %v, %d peers; want an error, none", err, n)
			}
			return
		case <-limit:
			t.Fatal("the stuck peer is still there")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestFlood: peers that say more than the loop can bear are read at their pace and nothing of it is lost. They delay neither the message nor the
// end of
// another peer.
func TestFlood(t *testing.T) {
	const floods, each = 4, readBurst
	root := t.TempDir()
	var read atomic.Int64
	var before int64
	heard, ended, all := make(chan int64, 20), make(chan int64, 1), make(chan struct{})
	serve(t, root, Handlers{Message: func(_ Peer, m Message) {
		if _, ok := m.(*Halt); ok {
			heard <- read.Load()
			return
		}
		if read.Add(1) == floods*each {
			close(all)
		}
	}, Left: func(Peer, error) {
		select {
		case ended <- read.Load():
		default: // of a flood, at the end
		}
	}})
	began := time.Now()
	for range floods {
		c, err := Dial(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		run(t, c)
		for range each { // the socket takes them
			if err := c.Send(&GetValues{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	before = read.Load()
	if before == floods*each {
		t.Fatal("all was read at once")
	}
	for range 20 { // keep-alives and orders that wait, and then it dies
		if err := c.Send(&Halt{Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Send(&Bye{}); err != nil {
		t.Fatal(err)
	}
	if after := receive(t, heard, "another peer's message"); after-before > floods*each/2 {
		t.Errorf("%d messages of others were read while one waited", after-before)
	}
	if after := receive(t, ended, "another peer's end"); after-before > floods*each/2 {
		t.Errorf("%d messages of others were read before another's end", after-before)
	}
	receive(t, all, "the rest of the flood")
	if took, least := time.Since(began), time.Second*(floods*each-readBurst)/readRate*9/10; took < least {
		t.Errorf("%d messages in %v, want at least %v", floods*each, took, least)
	}
}

// TestStrangers: each is told why and dropped, and the server lives on.
func TestStrangers(t *testing.T) {
	root := t.TempDir()
	left := make(chan error, 100)
	_, _ = serve(t, root, Handlers{Left: func(_ Peer, err error) { left <- err }})
	frame := func(m Message) string { b, _ := AppendFrame(nil, m); return string(b) }
	hello := frame(&Hello{Program: "x"})
	for _, tc := range []struct{ name, say, want string }{
		{"no hello", frame(&Resume{}), "first message is resume, want hello"},
		{"another protocol", "GET / HTTP/1.1\r\n\r\n", "frame starts with"},
		{"another version", "K\x01" + hello[2:], "version 1, want 4"},
		{"garbage later", hello + "garbage", "frame starts with"},
		{"too long", hello + "K\x04\xff\xff\xff\xff", "want at most 65536"},
		{"cut off", hello + "K\x04\x01\x00", "unexpected EOF"},
	} {
		conn, err := net.Dial("unix", filepath.Join(root, SocketPath))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(tc.say)); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if _, err := readFrame(conn); err != nil {
			t.Errorf("%s: no hello: %v", tc.name, err)
		}
		m, err := readFrame(conn)
		if bye, ok := m.(*Bye); !ok || !strings.Contains(bye.Reason, tc.want) {
			t.Errorf("%s: told %+v, %v; want %q", tc.name, m, err, tc.want)
		}
		_ = conn.Close()
		if err := receive(t, left, tc.name); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: left with %v, want %q", tc.name, err, tc.want)
		}
	}
	var all []*Client
	defer func() {
		for _, c := range all {
			_ = c.Close()
		}
	}()
	for range maxPeers {
		c, err := Dial(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if _, err := Dial(t.Context(), root); err == nil || !strings.Contains(err.Error(), "want at most 16") {
		t.Errorf("one peer too many: %v", err)
	}
}
