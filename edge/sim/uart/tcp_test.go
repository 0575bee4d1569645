package uart

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestTCP: a TCP port is a line: peers come and go, one at a time, and a second one is hung up on (AMIGO-SYNC-17, AMIGO-LINK-05).
func TestTCP(t *testing.T) {
	s, addr, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if whole, err := s.Write([]byte("lost")); whole || err != nil {
		t.Errorf("without a peer Write took all: %t, %v", whole, err)
	}
	first, second := dial(t, addr), dial(t, addr)
	hear := func(want string) {
		t.Helper()
		for got, end := "", time.Now().Add(30*time.Second); ; time.Sleep(time.Millisecond) {
			in, err := s.Read()
			if err != nil || time.Now().After(end) {
				t.Fatalf("heard %q, %v; want %q", got, err, want)
			}
			if got += string(in); got == want {
				return
			}
		}
	}
	say := func(c net.Conn, what string) {
		t.Helper()
		if _, err := c.Write([]byte(what)); err != nil {
			t.Fatal(err)
		}
	}
	say(first, "one")
	hear("one")
	end := make(chan error, 1)
	go func() {
		_, err := second.Read(make([]byte, 1))
		end <- err
	}()
	for over := false; !over; {
		select {
		case err := <-end:
			if over = true; !errors.Is(err, io.EOF) {
				t.Errorf("the second peer reads %v, want %v", err, io.EOF)
			}
		case <-time.After(time.Millisecond):
			hear("") // a turn of the device
		}
	}
	if whole, err := s.Write([]byte("two")); !whole || err != nil {
		t.Errorf("Write: %t, %v", whole, err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(first, got); err != nil || string(got) != "two" {
		t.Errorf("the peer hears %q, %v; want two", got, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third := dial(t, addr)
	say(third, "three")
	hear("three")
	// The next peer is kept however often the device looks while the end of the last one is still to be read.
	for range 2 * turnAway {
		say(third, "end")
		if err := third.Close(); err != nil {
			t.Fatal(err)
		}
		next := dial(t, addr)
		hear("end")
		say(next, "next")
		hear("next")
		third = next
	}
}

func dial(t *testing.T, addr net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}
