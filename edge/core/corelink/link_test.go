package corelink

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/live"
)

// patience bounds how long a test waits for an event that must come.
const patience = 20 * time.Second

var serverHello = Hello{Program: "robotd", Version: "v1", PID: 7, Body: BodyInfo{Species: "vic"}}

// Dial returns a client that is connected already, so that a robotd that is not there is an error at once.
func Dial(ctx context.Context, root string, opts ...Option) (*Client, error) {
	c := NewClient(root, opts...)
	return c, c.connect(ctx)
}

// Close ends a connection that Dial made.
func (c *Client) Close() error { c.drop(); return nil }

// serve starts a server below root and returns what ends it.
func serve(t *testing.T, root string, h Handlers) (*Server, func()) {
	t.Helper()
	return serveWith(t, root, h, writeTimeout)
}

// serveWith is serve with another patience for a peer that does not read.
func serveWith(t *testing.T, root string, h Handlers, patience time.Duration) (*Server, func()) {
	t.Helper()
	s, err := Listen(root, serverHello)
	if err != nil {
		t.Fatal(err)
	}
	s.patience = patience
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, h) }()
	ended := false
	end := func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	t.Cleanup(end)
	return s, end
}

// run receives with c into a channel until the test ends.
func run(t *testing.T, c *Client) <-chan Message {
	t.Helper()
	got := make(chan Message, 10*ringSize) // more than any test lets wait
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, func(m Message) { got <- m }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return got
}

// await returns the next message, skipping what is not a T.
func await[T Message](t *testing.T, from <-chan Message) T {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case m := <-from:
			if m, ok := m.(T); ok {
				return m
			}
		case <-limit:
			var want T
			t.Fatalf("no %T came", want)
		}
	}
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing came", what)
		panic("unreachable")
	}
}

func TestBothWays(t *testing.T) {
	root := t.TempDir()
	joined, said := make(chan Hello, 4), make(chan Message, 4)
	left := make(chan error, 4)
	s, _ := serve(t, root, Handlers{
		Joined:  func(p Peer) { joined <- p.Hello },
		Message: func(_ Peer, m Message) { said <- m },
		Left:    func(_ Peer, err error) { left <- err },
	})
	if err := s.Publish(&Fault{Code: 898, Text: "silent"}); err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), root, WithHello(Hello{Program: "agentd", Version: "v2"}))
	if err != nil {
		t.Fatal(err)
	}
	if h := receive(t, joined, "joined"); h.Program != "agentd" || h.Version != "v2" {
		t.Errorf("the server heard %+v", h)
	}
	if h, ok := c.Hello(); !ok || !reflect.DeepEqual(h, serverHello) {
		t.Errorf("the client heard %+v, %v", h, ok)
	}
	got := run(t, c)
	if m := await[*Fault](t, got); m.Code != 898 {
		t.Errorf("a newcomer gets %+v, want the fault of the moment", m)
	}
	if err := s.Publish(&State{Seq: 5}); err != nil {
		t.Fatal(err)
	}
	if m := await[*State](t, got); m.Seq != 5 {
		t.Errorf("state %+v", m)
	}
	for _, m := range []Message{&Ping{Nonce: 9}, &Halt{Reason: "wet floor"}, &Raw{Name: "newer", Payload: []byte("cnew")}} {
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	if m := await[*Pong](t, got); m.Nonce != 9 {
		t.Errorf("pong %+v", m)
	}
	if m := receive(t, said, "halt"); !reflect.DeepEqual(m, &Halt{Reason: "wet floor"}) {
		t.Errorf("the server heard %+v", m)
	}
	if m := receive(t, said, "unknown type"); !reflect.DeepEqual(m, &Raw{Name: "newer", Payload: []byte("cnew")}) {
		t.Errorf("the server heard %+v", m)
	}
	if err := s.SetBody(BodyInfo{Species: "vic", Firmware: "f1"}); err != nil {
		t.Fatal(err)
	}
	if m := await[*Hello](t, got); m.Body.Firmware != "f1" {
		t.Errorf("second hello %+v", m)
	}
	if n, drops := s.Peers(); n != 1 || drops != 0 {
		t.Errorf("%d peers, %d drops", n, drops)
	}
	if err := c.Send(&Bye{}); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, left, "left"); err != nil {
		t.Errorf("left with %v, want in order", err)
	}
}

// TestRootLongerThanASocketAddress also sees the modes and that a server leaves no socket.
func TestRootLongerThanASocketAddress(t *testing.T) {
	root := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	_, end := serve(t, root, Handlers{})
	fi, err := os.Stat(filepath.Join(root, SocketPath))
	if err != nil || fi.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("socket: %v, %v; want mode 0600", fi.Mode(), err)
	}
	c, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := os.Stat(filepath.Join(root, SocketPath)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close the socket is still there: %v", err)
	}
	if _, err := Dial(t.Context(), root); err == nil || !strings.Contains(err.Error(), "no robotd") {
		t.Errorf("Dial without a server: %v", err)
	}
}

func TestOneServerPerRoot(t *testing.T) {
	root := t.TempDir()
	_, end := serve(t, root, Handlers{})
	if _, err := Listen(root, serverHello); err == nil || !strings.Contains(err.Error(), "another process (pid ") {
		t.Errorf("second Listen: %v", err)
	}
	end()
	// The files that a killed server leaves behind.
	for _, name := range []string{socketName, freshName} {
		if err := os.WriteFile(filepath.Join(root, socketDir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, root, Handlers{})
	c, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// TestRestarts: whichever end goes away, they find each other again.
func TestRestarts(t *testing.T) {
	root := t.TempDir()
	c := NewClient(root)
	if err := c.Send(&Resume{}); !errors.Is(err, ErrNotConnected) {
		t.Errorf("Send without a server: %v", err)
	}
	got := run(t, c)
	for i := range 5 {
		s, end := serve(t, root, Handlers{})
		await[*Hello](t, got)
		if err := s.Publish(&State{Seq: uint32(i)}); err != nil {
			t.Fatal(err)
		}
		if m := await[*State](t, got); m.Seq != uint32(i) {
			t.Fatalf("server %d: state %+v", i, m)
		}
		end()
		if m := await[*Bye](t, got); !strings.Contains(m.Reason, "robotd is stopping") {
			t.Errorf("bye: %+v", m)
		}
	}
	_, _ = serve(t, root, Handlers{})
	for range 5 {
		c, err := Dial(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

// TestStuckPeerIsDroppedNotAwaited: one peer never reads; Publish continues, the other peer gets everything, and the loss is counted.
func TestStuckPeerIsDroppedNotAwaited(t *testing.T) {
	root := t.TempDir()
	s, _ := serveWith(t, root, Handlers{}, time.Hour) // a busy machine may take longer than writeTimeout for all of it
	stuck, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	c, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, c)
	big := &Raw{Name: "newer", Payload: append([]byte{0x59, 0x20, 0}, make([]byte, 8<<10)...)}
	var slowest time.Duration
	const messages = 2000
	for i := range messages {
		start := time.Now()
		if err := s.Publish(&State{Seq: uint32(i)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Publish(big); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(start))
		if m := await[*State](t, got); m.Seq != uint32(i) {
			t.Fatalf("state %d came for %d", m.Seq, i)
		}
	}
	n, drops := s.Peers()
	if n != 2 || drops == 0 || drops > 2*messages {
		t.Errorf("%d peers, %d drops; want 2, some", n, drops)
	}
	t.Logf("slowest pair of Publish %v, %d messages dropped for the stuck peer", slowest, drops)
	// Once it reads it gets whole messages again, the newest at the end.
	got = run(t, stuck)
	last := uint32(0)
	for last != messages-1 {
		m := await[*State](t, got)
		if m.Seq < last {
			t.Fatalf("state %d after %d", m.Seq, last)
		}
		last = m.Seq
	}
}

// TestUpdatesAreReplaced: a peer that does not read loses no message to its subscriptions: of each one update waits, the newest, and numbers that are
// missing tell how many it replaced.
func TestUpdatesAreReplaced(t *testing.T) {
	root := t.TempDir()
	joined := make(chan Peer, 1)
	s, _ := serveWith(t, root, Handlers{Joined: func(p Peer) { joined <- p }}, time.Hour)
	c, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	id := receive(t, joined, "joined").ID
	const updates, events = 20 * ringSize, ringSize / 2
	values := make([]live.Value, 100)
	for i := range updates {
		for request := range uint32(2) {
			if err := s.Update(id, &Update{Request: request, Seq: uint64(i + 1), Values: values}); err != nil {
				t.Fatal(err)
			}
		}
		if i%(updates/events) == 0 {
			if err := s.Tell(id, &Ended{Request: uint32(i / (updates / events))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Update(99, &Update{}); err != nil {
		t.Errorf("an update for a peer that has left: %v", err)
	}
	if _, drops := s.Peers(); drops != 0 {
		t.Errorf("%d messages were dropped", drops)
	}
	got := run(t, c)
	var seq [2]uint64
	var ended, missed uint64
	for seq != [2]uint64{updates, updates} || ended < events {
		switch m := receive(t, got, "a message").(type) {
		case *Update:
			if m.Seq <= seq[m.Request] {
				t.Fatalf("update %d after %d", m.Seq, seq[m.Request])
			}
			missed += m.Seq - seq[m.Request] - 1
			seq[m.Request] = m.Seq
		case *Ended:
			if uint64(m.Request) != ended {
				t.Fatalf("end of %d, want of %d", m.Request, ended)
			}
			ended++
		}
	}
	if missed == 0 || missed > 2*updates-2 {
		t.Errorf("%d updates were missed", missed)
	}
	if err := s.Update(id, &Update{Seq: updates + 1}); err != nil { // after the one before was sent
		t.Fatal(err)
	}
	if m := await[*Update](t, got); m.Seq != updates+1 {
		t.Errorf("%+v", m)
	}
}

// TestClientRefusesAStranger: what listens there must speak the protocol.
func TestClientRefusesAStranger(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, socketDir), 0o755); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(root, SocketPath))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("K\x02something"))
			_ = conn.Close()
		}
	}()
	if _, err := Dial(t.Context(), root); !errors.Is(err, ErrVersion) {
		t.Errorf("Dial: %v, want ErrVersion", err)
	}
}

// TestTell: an answer goes to one peer only, and an ID is not used twice.
func TestTell(t *testing.T) {
	root := t.TempDir()
	joined := make(chan Peer, 4)
	s, _ := serve(t, root, Handlers{Joined: func(p Peer) { joined <- p }})
	var ids []uint32
	var heard []<-chan Message
	for _, name := range []string{"one", "two"} {
		c, err := Dial(t.Context(), root, WithHello(Hello{Program: name}))
		if err != nil {
			t.Fatal(err)
		}
		p := receive(t, joined, "joined")
		if p.Program != name || p.ID == 0 {
			t.Errorf("peer %+v", p)
		}
		ids, heard = append(ids, p.ID), append(heard, run(t, c))
	}
	if ids[0] == ids[1] {
		t.Errorf("two peers are both %d", ids[0])
	}
	for _, id := range []uint32{ids[1], ids[0], 99} {
		if err := s.Tell(id, &Ended{Request: id, Outcome: "done"}); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range ids {
		if m := await[*Ended](t, heard[i]); m.Request != id {
			t.Errorf("peer %d heard of request %d", id, m.Request)
		}
	}
	if err := s.Tell(ids[0], &Ended{X: math.NaN()}); !errors.Is(err, ErrMalformed) {
		t.Errorf("a message that cannot be carried: %v", err)
	}
}

// TestEventsAreReplayed: a peer that joins hears the newest events as replayed, and those that follow as they happen.
func TestEventsAreReplayed(t *testing.T) {
	root := t.TempDir()
	s, _ := serve(t, root, Handlers{})
	say := func(seq uint64) {
		t.Helper()
		if err := s.Publish(&Event{Seq: seq, Name: "robot.finished", Numbers: []int64{1}}); err != nil {
			t.Fatal(err)
		}
	}
	const before = maxEvents + 6
	for seq := range uint64(before) {
		say(seq + 1)
	}
	c, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, c)
	say(before + 1)
	for seq := uint64(before - maxEvents + 1); seq <= before+1; seq++ {
		if m := await[*Event](t, got); m.Seq != seq || m.Replayed != (seq <= before) || len(m.Numbers) != 1 {
			t.Fatalf("event %+v, want %d", m, seq)
		}
	}
}

// TestUnanswered: a client answers by itself; one that stopped reading is known by its silence, and one that has left is not missed.
func TestUnanswered(t *testing.T) {
	root := t.TempDir()
	joined := make(chan Peer, 2)
	s, _ := serve(t, root, Handlers{Joined: func(p Peer) { joined <- p }})
	alive, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	live := receive(t, joined, "joined").ID
	got := run(t, alive)
	frozen, err := Dial(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	dead := receive(t, joined, "joined").ID
	if s.Unanswered(live) != 0 || s.Unanswered(dead) != 0 {
		t.Error("a peer is missed before it was asked")
	}
	for asked := time.Now(); s.Unanswered(dead) < 50*time.Millisecond; time.Sleep(time.Millisecond) {
		if time.Since(asked) > patience {
			t.Fatal("a frozen peer is not missed")
		}
	}
	if err := alive.Send(&Ping{Nonce: 5}); err != nil { // what it answered before is read before this
		t.Fatal(err)
	}
	for await[*Pong](t, got).Nonce != 5 {
	}
	if d := s.Unanswered(live); d != 0 {
		t.Errorf("a peer that answers is missed for %v", d)
	}
	_ = frozen.Close()
	for s.Unanswered(dead) != 0 {
		time.Sleep(time.Millisecond)
	}
}
