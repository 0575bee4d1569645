package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
	srv := httptest.NewServer(boundBodies(mux, limit))
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
