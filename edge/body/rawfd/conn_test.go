package rawfd_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kennel/edge/body/rawfd"
)

// pair returns both ends of a connection over a network of this machine.
func pair(t *testing.T, network string) (a, b *rawfd.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network != "tcp" {
		address = filepath.Join(t.TempDir(), "socket")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := rawfd.Listen(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	if a, err = rawfd.NewConn(dialed.(rawfd.Socket)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); accepted.Close() })
	return a, accepted.(*rawfd.Conn)
}

// TestStream: bytes arrive whole and in order, also more than the socket has room for at once; an end is io.EOF.
func TestStream(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		a, b := pair(t, network)
		sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
		var wg sync.WaitGroup
		wg.Go(func() {
			if n, err := a.Write(sent); n != len(sent) || err != nil {
				t.Errorf("%s: wrote %d, %v", network, n, err)
			}
			a.Close()
		})
		got, err := io.ReadAll(b)
		wg.Wait()
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%s: read %d bytes of %d, %v", network, len(got), len(sent), err)
		}
		if n, err := b.Read(nil); n != 0 || err != nil {
			t.Errorf("%s: nothing read: %d, %v", network, n, err)
		}
	}
}

// TestDeadlines: a read without bytes and a write without room end at their deadlines; a closed connection and one whose other end
// is gone say so.
func TestDeadlines(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		a, b := pair(t, network)
		past := time.Now().Add(10 * time.Millisecond)
		if err := a.SetDeadline(past); err != nil {
			t.Fatal(err)
		}
		if n, err := a.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: read %d, %v", network, n, err)
		}
		if err := a.SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := a.Write(make([]byte, 64<<20))
		if n == 64<<20 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: wrote %d, %v", network, n, err)
		}
		if err := a.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		b.Close()
		for err = nil; err == nil; { // TCP learns it by an answer
			_, err = a.Write([]byte("x"))
		}
		var failed *net.OpError
		if !errors.As(err, &failed) || failed.Op != "write" {
			t.Errorf("%s: write to a closed connection: %v", network, err)
		}
		a.Close()
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: read after Close: %v", network, err)
		}
	}
}

// TestOffer: packets that find no room are dropped, those that find it arrive whole, and an end that is gone is told.
func TestOffer(t *testing.T) {
	a, b := pair(t, "unixpacket")
	packet := bytes.Repeat([]byte("x"), 4096)
	const many = 10_000
	for range many {
		if err := a.Offer(packet); err != nil {
			t.Fatal(err)
		}
	}
	arrived := 0
	for buf := make([]byte, 2*len(packet)); ; arrived++ {
		n, err := b.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil || !bytes.Equal(buf[:n], packet) {
			t.Fatalf("packet %d: %d bytes, %v", arrived, n, err)
		}
		if err := b.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	if arrived == many {
		t.Errorf("all of %d packets found room", many)
	}
	b.Close()
	if err := a.Offer(packet); err == nil {
		t.Error("a packet for an end that is gone")
	}
	if _, err := a.Read(packet); err != io.EOF {
		t.Errorf("read of an end that is gone: %v", err)
	}
}
