package front

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowBodies: who sends a body drop by drop is cut off; who is done in time, and streams to the caller, are not.
func TestSlowBodies(t *testing.T) {
	const limit = 150 * time.Millisecond
	read := make(chan error, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(limit):
			}
			_, _ = io.WriteString(w, "x") // a caller who is gone shows in the context
			_ = http.NewResponseController(w).Flush()
		}
	})
	srv := httptest.NewServer(BoundBodies(mux, limit))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	dripping := make(chan struct{})
	go func() {
		defer close(dripping)
		for { // until it is hung up on
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
			time.Sleep(limit / 10) // the pace of the attack
		}
	}()
	if err := <-read; err == nil {
		t.Error("a body of drops was read to its end")
	}
	if took := time.Since(began); took < limit || took > 20*limit {
		t.Errorf("cut after %v, want about %v", took, limit)
	}
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Errorf("no answer: %v", err)
	}
	<-dripping

	for range 2 { // one connection, and later than the deadline of the request before
		resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader("whole"))
		if err != nil || resp.StatusCode != http.StatusNoContent {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		if err := <-read; err != nil {
			t.Error(err)
		}
		resp, err = srv.Client().Get(srv.URL + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "xxx" {
			t.Errorf("stream %q, %v", b, err)
		}
		resp.Body.Close()
	}
}

// pipes is a listener for connections within a test's own time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serve serves h in the bubble of a test and returns what dials it.
func serve(t *testing.T, h http.Handler) func() net.Conn {
	l, both := make(pipes), new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: h, Protocols: both}
	go func() { _ = srv.Serve(l) }() // until its listener ends
	t.Cleanup(func() { close(l); _ = srv.Close() })
	return func() net.Conn {
		ours, theirs := net.Pipe()
		l <- theirs
		t.Cleanup(func() { _ = ours.Close() })
		return ours
	}
}

// TestSlowUploads: an upload may last as long as bytes of it come.
func TestSlowUploads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan error, 1)
		conn := serve(t, BoundReads(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		}), StreamTime))()
		go func() { _, _ = io.Copy(io.Discard, conn) }() // answers
		upload := func(bytes int) {
			fmt.Fprintf(conn, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
			for range bytes {
				time.Sleep(StreamTime - time.Second)
				_, _ = conn.Write([]byte("x"))
			}
		}
		upload(10)
		if err := <-read; err != nil {
			t.Errorf("an upload whose bytes keep coming: %v", err)
		}
		upload(3)
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("an upload that stopped: %v", err)
		}
	})
}

// TestClosedWindows: a client of HTTP/2 that keeps its window closed ends its own stream and no other; one that reads slowly, and one that follows
// events for longer than the limit, are served.
func TestClosedWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 12 << 20 // more than a client's window
		wrote := make(chan error, 1)
		mux := http.NewServeMux()
		mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
			var err error
			for n := 0; n < size && err == nil; n += 64 << 10 {
				_, err = w.Write(make([]byte, 64<<10))
			}
			wrote <- err
		})
		mux.HandleFunc("/events", func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(3 * StreamTime) // between two events
			}
		})
		dial, two := serve(t, boundWrites(mux, StreamTime)), new(http.Protocols)
		two.SetUnencryptedHTTP2(true)
		tr := &http.Transport{Protocols: two, DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(), nil }}
		defer tr.CloseIdleConnections()
		get := func(path string) io.ReadCloser {
			resp, err := (&http.Client{Transport: tr}).Get("http://x" + path)
			if err != nil || resp.ProtoMajor != 2 {
				t.Fatal(resp, err)
			}
			t.Cleanup(func() { _ = resp.Body.Close() })
			return resp.Body
		}
		_, began := get("/large"), time.Now() // its body is not read: the window closes
		if err := <-wrote; err == nil || time.Since(began) != StreamTime {
			t.Errorf("a client that never reads: %v after %v", err, time.Since(began))
		}
		if b, err := io.ReadAll(get("/events")); err != nil || string(b) != "xxx" {
			t.Errorf("events %q, %v", b, err)
		}
		slow, n := get("/large"), 0
		for b, err := make([]byte, 4<<20), error(nil); err == nil; time.Sleep(StreamTime - time.Second) {
			var m int
			m, err = io.ReadFull(slow, b)
			n += m
		}
		if err := <-wrote; err != nil || n != size {
			t.Errorf("a slow reader got %d bytes, %v", n, err)
		}
	})
}
