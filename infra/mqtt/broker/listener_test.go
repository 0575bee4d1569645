package broker

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/mqtt/brokerapi"
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

// TestTurn: who waits is served in the order of arrival, who hung up is passed over, and who waits too long or when the broker stops is told.
func TestTurn(t *testing.T) {
	type client struct{ ours, theirs net.Conn }
	clients := make([]client, 6)
	for i := range clients {
		clients[i].ours, clients[i].theirs = tcp(t)
	}
	hangUp(t, clients[2].ours, clients[2].theirs)
	synctest.Test(t, func(t *testing.T) {
		l := &listener{slots: make(chan struct{}, 1), done: make(chan struct{})}
		l.slots <- struct{}{} // another client's long handshake
		var served []int
		refused := map[int]*refusal{}
		queue := func(i int) {
			go func() {
				if why := l.turn(clients[i].ours); why != nil {
					refused[i] = why
					return
				}
				served = append(served, i)
				<-l.slots
			}()
			synctest.Wait() // it is in the queue before the next comes
		}
		for i := range 4 {
			queue(i)
		}
		time.Sleep(queueTime - time.Second)
		if len(served)+len(refused) > 0 {
			t.Fatalf("before its turn served %v, refused %v", served, refused)
		}
		<-l.slots
		synctest.Wait()
		if want := []int{0, 1, 3}; !slices.Equal(served, want) || len(refused) != 1 || refused[2] == nil ||
			refused[2].code != brokerapi.CodeTLS || !strings.Contains(refused[2].reason, "hung up") {
			t.Errorf("served %v, want %v; refused %v, want number 2, which hung up", served, want, refused)
		}
		l.slots <- struct{}{}
		queue(4)
		time.Sleep(queueTime)
		synctest.Wait()
		queue(5)
		close(l.done)
		synctest.Wait()
		for i, code := range map[int]string{4: brokerapi.CodeBusy, 5: brokerapi.CodeTLS} {
			if why := refused[i]; why == nil || why.code != code {
				t.Errorf("number %d: refusal %v, want code %s", i, why, code)
			}
		}
	})
}

func TestGreeted(t *testing.T) {
	ours, theirs := tcp(t)
	if _, err := theirs.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := greeted(ours); err != nil {
		t.Fatal(err)
	}
	if gone(ours) {
		t.Error("gone while both ends are open")
	}
	_ = theirs.Close()
	b, err := io.ReadAll(ours)
	if err != nil || string(b) != "hello" {
		t.Errorf("read %q, %v: want all that was sent", b, err)
	}
	if !gone(ours) {
		t.Error("not gone when the other end is closed")
	}
	if err := greeted(ours); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v, want EOF", err)
	}
	_ = ours.Close()
	if err := greeted(ours); !errors.Is(err, net.ErrClosed) || !gone(ours) {
		t.Errorf("closed: %v, gone %v", err, gone(ours))
	}
	pipe, _ := net.Pipe()
	if err := greeted(pipe); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("what is no socket: %v", err)
	}
}
