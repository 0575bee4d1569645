package admission

import (
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// tcp returns both ends of a connection, ours first.
func tcp(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if theirs, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	return ours, theirs
}

// hangUp closes their end and returns when ours knows.
func hangUp(t *testing.T, ours, theirs net.Conn) {
	t.Helper()
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, ours); err != nil {
		t.Fatal(err)
	}
}

// oneTurn returns a Door that gives one turn at a time.
func oneTurn(limit int) (*Door, *Listener) {
	d := newDoor(Config{Handshakes: 1}, limit)
	return d, d.Listen("test", nil)
}

// TestTurn: who waits is served in the order of arrival, who hung up is passed over, and who waits too long or whose connection is closed is told.
func TestTurn(t *testing.T) {
	type client struct{ ours, theirs net.Conn }
	clients := make([]client, 7)
	for i := range clients {
		clients[i].ours, clients[i].theirs = tcp(t)
	}
	hangUp(t, clients[2].ours, clients[2].theirs)
	synctest.Test(t, func(t *testing.T) {
		d, l := oneTurn(1000)
		busy := d.admit(l, clients[6].ours) // another client's long handshake
		if err := d.await(busy); err != nil {
			t.Fatal(err)
		}
		var served []int
		refused := map[int]error{}
		conns := map[int]*Conn{}
		queue := func(i int) {
			c := d.admit(l, clients[i].ours)
			conns[i] = c
			go func() {
				if err := d.await(c); err != nil {
					refused[i] = err
					return
				}
				served = append(served, i)
				d.done(c)
			}()
			synctest.Wait() // it is in the queue before the next comes
		}
		for i := range 4 {
			queue(i)
		}
		time.Sleep(handshakeTime - time.Second)
		if len(served)+len(refused) > 0 {
			t.Fatalf("before its turn served %v, refused %v", served, refused)
		}
		d.rest(busy)
		synctest.Wait()
		var away *RefusedError
		if want := []int{0, 1, 3}; !slices.Equal(served, want) || len(refused) != 1 || !errors.As(refused[2], &away) || away.Reason != Left {
			t.Errorf("served %v, want %v; refused %v, want number 2, which hung up", served, want, refused)
		}
		if err := d.await(busy); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		busy.timer.Reset(time.Hour) // a handshake that never ends
		d.mu.Unlock()
		queue(4)
		time.Sleep(queueTime)
		synctest.Wait()
		queue(5)
		_ = conns[5].Close() // as when its server stops
		synctest.Wait()
		if !errors.As(refused[4], &away) || away.Reason != Crowded {
			t.Errorf("number 4: %v, want %s", refused[4], Crowded)
		}
		if !errors.Is(refused[5], net.ErrClosed) {
			t.Errorf("number 5: %v, want %v", refused[5], net.ErrClosed)
		}
		_ = busy.Close()
		if d.n != d.open.n || d.turns.running != 0 || d.turns.begun.Len()+d.turns.round.Len() != 0 || d.unfinished.n != 0 {
			t.Errorf("left over: %d connections, %d open, %d unfinished, turns %+v", d.n, d.open.n, d.unfinished.n, d.turns)
		}
	})
}

// TestTurnsGoAround: an address with many that wait does not delay another; one that proved something goes first; a handshake that has begun before all.
func TestTurnsGoAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := oneTurn(1000)
		d.known[addressOf(addr("198.51.100.9"))] = time.Now()
		busy, begun := d.admit(l, pipe(t, "192.0.2.1")), d.admit(l, pipe(t, "192.0.2.1"))
		if err := d.await(begun); err != nil {
			t.Fatal(err)
		}
		d.rest(begun)
		if err := d.await(busy); err != nil {
			t.Fatal(err)
		}
		var served []string
		wait := func(name string, c *Conn) {
			go func() {
				if err := d.await(c); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				served = append(served, name)
				d.done(c)
			}()
			synctest.Wait()
		}
		for _, name := range []string{"a1", "a2", "a3"} {
			wait(name, d.admit(l, pipe(t, "192.0.2.2")))
		}
		wait("b1", d.admit(l, pipe(t, "192.0.2.3")))
		wait("known", d.admit(l, pipe(t, "198.51.100.9")))
		wait("begun", begun)
		d.rest(busy)
		synctest.Wait()
		if want := []string{"begun", "known", "a1", "b1", "a2", "a3"}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
	})
}

func TestLeft(t *testing.T) {
	ours, theirs := tcp(t)
	if _, err := theirs.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := io.ReadFull(ours, one); err != nil { // a byte has come, others are unread
		t.Fatal(err)
	}
	if left(ours) {
		t.Error("gone while both ends are open")
	}
	_ = theirs.Close()
	b, err := io.ReadAll(ours)
	if err != nil || string(one)+string(b) != "hello" {
		t.Errorf("read %q, %v: want all that was sent", b, err)
	}
	if !left(ours) {
		t.Error("not gone when the other end is closed")
	}
	_ = ours.Close()
	if !left(ours) {
		t.Error("not gone when our end is closed")
	}
}
