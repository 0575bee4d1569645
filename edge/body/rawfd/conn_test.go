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

// TestFiles: a file arrives with the first of its bytes and is the receiver's own; bytes without one bring none; an end is io.EOF.
func TestFiles(t *testing.T) {
	a, b := pair(t, "unix")
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write([]byte("one")); err != nil {
		t.Fatal(err)
	}
	buf, all, files := make([]byte, 1<<16), []byte(nil), []*os.File(nil)
	// Before the file is on its way: the system hands out bytes that wait together with those of a file behind them.
	n, got, err := b.ReadFile(buf)
	if n != 3 || got != nil || err != nil {
		t.Fatalf("%d bytes, %v, %v: want 3 without a file", n, got, err)
	}
	all = append(all, buf[:n]...)
	long := bytes.Repeat([]byte("two"), 1<<20) // more than there is room for at once
	var sent sync.WaitGroup
	sent.Go(func() {
		if n, err := a.WriteFile(long, f); n != len(long) || err != nil {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
		f.Close()
		a.Close()
	})
	for {
		n, got, err := b.ReadFile(buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if got != nil {
			if len(all) != 3 {
				t.Errorf("the file came after %d bytes, want 3", len(all))
			}
			files = append(files, got)
		}
		all = append(all, buf[:n]...)
	}
	sent.Wait()
	if len(files) != 1 || string(all[:6]) != "onetwo" || len(all) != 3+len(long) {
		t.Fatalf("%d files with %d bytes", len(files), len(all))
	}
	defer files[0].Close()
	if _, err := files[0].WriteString("mine"); err != nil {
		t.Errorf("the file that came: %v", err)
	}
	if n, got, err := b.ReadFile(nil); n != 0 || got != nil || err != nil {
		t.Errorf("nothing read: %d, %v", n, err)
	}
	if err := b.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.ReadFile(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after its deadline: %v", err)
	}
	if _, err := a.WriteFile([]byte("x"), files[0]); err == nil {
		t.Error("written to a closed connection")
	}
}

// TestFileWithEarlierBytes: bytes that wait already come in the same read as the file behind them, and none of what follows the file's own.
func TestFileWithEarlierBytes(t *testing.T) {
	a, b := pair(t, "unix")
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, word := range []string{"one", "two", "six"} {
		if i == 1 {
			_, err = a.WriteFile([]byte(word), f)
		} else {
			_, err = a.Write([]byte(word))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []struct {
		bytes string
		file  bool
	}{{"onetwo", true}, {"six", false}} {
		buf := make([]byte, 100)
		n, got, err := b.ReadFile(buf)
		if string(buf[:n]) != want.bytes || (got != nil) != want.file || err != nil {
			t.Errorf("%q, %v, %v: want %q, a file: %v", buf[:n], got, err, want.bytes, want.file)
		}
		_ = got.Close()
	}
}
