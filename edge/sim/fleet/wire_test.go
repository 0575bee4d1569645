package fleet

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// echo answers what it gets; ends holds the error each connection ended with.
func echo(t *testing.T) (addr string, ends chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	ends = make(chan error, 10) // more than any test has
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 64)
				for {
					n, err := c.Read(buf)
					if err == nil {
						_, err = c.Write(buf[:n])
					}
					if err != nil {
						ends <- err
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String(), ends
}

func say(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := c.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

func TestWire(t *testing.T) {
	addr, ends := echo(t)
	w := newWire(Wire{})
	c, err := w.dial(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	say(t, c)
	if n := w.cut(); n != 1 {
		t.Errorf("cut %d connections, want 1", n)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the cut: %v", err)
	}
	if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the other end: %v, want a reset", err)
	}
	if n := w.cut(); n != 0 {
		t.Errorf("cut %d connections, want none", n)
	}

	c, err = w.dial(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ends; err != io.EOF {
		t.Errorf("the other end of a closed one: %v", err)
	}

	if c, err = w.dial(t.Context(), "tcp", addr); err != nil {
		t.Fatal(err)
	}
	w.leave()
	if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("write while away: %v", err)
	}
	if _, err := w.dial(t.Context(), "tcp", addr); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("dial while away: %v", err)
	}
	w.back()
	if c, err = w.dial(t.Context(), "tcp", addr); err != nil {
		t.Fatal(err)
	}
	say(t, c)
	w.cut()
}

// TestBadWire: latency and stalls delay, a cut ends the delay, and the seed decides how long.
func TestBadWire(t *testing.T) {
	addr, _ := echo(t)
	q := Wire{Latency: 20 * time.Millisecond, Loss: 0.5, Stall: 50 * time.Millisecond, Seed: 3}
	draw := func() (out []time.Duration) {
		w := newWire(q)
		for range 20 {
			out = append(out, w.delay())
		}
		return out
	}
	one, two := draw(), draw()
	stalled := 0
	for i, d := range one {
		if d != two[i] || d < q.Latency/2 || d > q.Latency*3/2+q.Stall {
			t.Errorf("delay %d: %v and %v", i, d, two[i])
		}
		if d > q.Latency*3/2 {
			stalled++
		}
	}
	if stalled < 4 || stalled > 16 {
		t.Errorf("%d of 20 stalled, want about half", stalled)
	}
	w := newWire(q)
	c, err := w.dial(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if d := say(t, c); d < one[0]+one[1] {
		t.Errorf("there and back in %v, want at least %v", d, one[0]+one[1])
	}
	slow := newWire(Wire{Latency: time.Minute, Seed: 1})
	if c, err = slow.dial(t.Context(), "tcp", addr); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := c.Write([]byte("x")); done <- err }()
	slow.cut()
	if err := <-done; err == nil {
		t.Error("a write on a cut connection succeeded")
	}
}
