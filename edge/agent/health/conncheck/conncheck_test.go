package conncheck

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/certs/devicecert"
	"kennel/infra/errs"
	"kennel/infra/freeaddr"
)

// place is a cloud's check address: plain HTTP and HTTPS on one port, as one host:port serves both to original robots.
type place struct {
	addr string
	mu   sync.Mutex
	got  []string
}

type oneShot struct {
	net.Conn
	first []byte
}

func (c *oneShot) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// queue is a listener of connections that were looked at.
type queue struct {
	net.Listener
	conns chan net.Conn
}

func (q queue) Accept() (net.Conn, error) {
	c, ok := <-q.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func serve(t *testing.T, cert tls.Certificate, h http.HandlerFunc) *place {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{addr: ln.Addr().String()}
	q := queue{ln, make(chan net.Conn)}
	srv := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			scheme := "http"
			if r.TLS != nil {
				scheme = "https"
			}
			p.mu.Lock()
			p.got = append(p.got, scheme+" "+r.Method+" "+r.URL.String()+" "+r.UserAgent())
			p.mu.Unlock()
			h(w, r)
		})}
	go func() { _ = srv.Serve(q) }()
	go func() {
		defer close(q.conns)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 1)
			if _, err := c.Read(b); err != nil {
				_ = c.Close()
				continue
			}
			var out net.Conn = &oneShot{c, b}
			if b[0] == 0x16 { // a TLS record
				out = tls.Server(out, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			q.conns <- out
		}
	}()
	t.Cleanup(func() { _ = srv.Close(); _ = ln.Close() })
	return p
}

// TestFourCases is VEC-CLD-07: the four cases, the good one, and what lies between.
func TestFourCases(t *testing.T) {
	authority, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	issue := func(name string) tls.Certificate {
		pair, err := authority.IssueServer([]string{name}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c, err := pair.TLS()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := devicecert.WriteRoot(root, authority.Root()); err != nil {
		t.Fatal(err)
	}
	id, err := devicecert.Open(devicecert.Config{Root: root, Cloud: "https://cloud.example", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if code/100 == 3 {
				w.Header().Set("Location", "http://hotel.example/login")
			}
			w.WriteHeader(code)
		}
	}
	nobody := freeaddr.For(t)
	good, wrongName := issue("127.0.0.1"), issue("cloud.example")
	unroutable := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{
			Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443},
			Err: os.NewSyscallError("connect", syscall.ENETUNREACH),
		}
	}
	noName := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: "cloud.example", Server: "192.0.2.53"}}
	}
	always := func(v bool) func() bool { return func() bool { return v } }
	for _, tc := range []struct {
		name    string
		check   string
		cfg     Config
		want    Result
		code    int
		problem string
	}{
		{"available", serve(t, good, status(200)).addr + "/ok", Config{}, Available, 1, ""},
		{"any 2xx", "http://" + serve(t, good, status(204)).addr + "/ok", Config{}, Available, 1, ""},
		{"no route", "cloud.example/ok", Config{Dial: unroutable}, NoNetwork, 2, "connect it to a Wi-Fi"},
		{"no name and no network", "cloud.example/ok", Config{Dial: noName, HasNetwork: always(false)}, NoNetwork, 2, "connect it to a Wi-Fi"},
		{"no name", "cloud.example/ok", Config{Dial: noName, HasNetwork: always(true)}, Unreachable, 2, "cloud.example does not resolve"},
		{"nobody there", nobody + "/ok", Config{}, Unreachable, 2, nobody},
		{"hotel", serve(t, good, status(302)).addr + "/ok", Config{}, Unreachable, 2, `sends on to "http://hotel.example/login"`},
		{"not ready", serve(t, good, status(503)).addr + "/ok", Config{}, Unreachable, 2, "503"},
		{"certificate of another name", serve(t, wrongName, status(200)).addr + "/ok", Config{}, BadCertificate, 3, "cloud.example"},
		{"refused", serve(t, good, status(403)).addr + "/ok", Config{}, BadCredentials, 4, "403"},
		{"credentials refused", serve(t, good, status(200)).addr + "/ok",
			Config{Speech: func(context.Context) (int, error) {
				return 0, fmt.Errorf("ask: %w", errs.New(errs.Unauthenticated, "not accepted"))
			}}, BadCredentials, 4, "not accepted"},
		{"credentials away", serve(t, good, status(200)).addr + "/ok",
			Config{Speech: func(context.Context) (int, error) { return 0, errs.New(errs.Unavailable, "no answer") }}, Unreachable, 2, "no answer"},
		{"our certificate refused", serve(t, good, status(200)).addr + "/ok",
			Config{Speech: func(context.Context) (int, error) {
				return 0, &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}
			}}, BadCredentials, 4, "certificate required"},
		{"speech good", serve(t, good, status(200)).addr + "/ok", Config{Speech: func(context.Context) (int, error) { return Frames, nil }}, Available, 1, ""},
		{"too slow", serve(t, good, status(200)).addr + "/ok", Config{Speech: func(context.Context) (int, error) { return 7, fmt.Errorf("x: %w", ErrSlow) }}, TooSlow, 5, "too slow"},
		{"speech alone", "", Config{Speech: func(context.Context) (int, error) { return Frames, nil }}, Available, 1, ""},
		{"no address", "", Config{}, Unknown, 0, "check address"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := tc.cfg
			cfg.Check, cfg.TLS, cfg.ESN, cfg.AnkiVersion, cfg.VictorVersion, cfg.Timeout = tc.check, id.TLSConfig, "00e20100", "2.0.0.6074", "abc", 20*time.Second
			r := Run(t.Context(), cfg)
			if r.Result != tc.want || r.Result.ConnectionCode() != tc.code || !strings.Contains(r.Problem, tc.problem) ||
				(r.Problem == "") != (tc.want == Available) {
				t.Errorf("got %v (%d) %q, probes %+v", r.Result, r.Result.ConnectionCode(), r.Problem, r.Probes)
			}
			b, err := json.Marshal(r)
			if err != nil || !strings.Contains(string(b), `"result":"`+tc.want.String()+`"`) {
				t.Errorf("%s, %v", b, err)
			}
		})
	}
}

// On the wire: HEAD, http first and then https, with the three words and the original's agent.
func TestAsks(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	cert := srv.TLS.Certificates[0]
	pool := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	srv.Close()
	p := serve(t, cert, func(http.ResponseWriter, *http.Request) {})
	r := Run(t.Context(), Config{Check: p.addr + "/ok", ESN: "00e20100", AnkiVersion: "2.0.0.6074", VictorVersion: "1.8",
		TLS: func(name string) *tls.Config { return &tls.Config{RootCAs: pool, ServerName: name} }})
	if r.Result != Available {
		t.Fatalf("%+v", r)
	}
	const tail = " HEAD /ok?ankiversion=2.0.0.6074&emresn=00e20100&victorversion=1.8 Victor-CCHECK/1.8"
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.got) != 2 || p.got[0] != "http"+tail || p.got[1] != "https"+tail {
		t.Errorf("got %q", p.got)
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("cloud.example:8443/ok")
	f.Add("https://[::1]:1/ok")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := Address(s)
		if err == nil && (u.Hostname() == "" || u.User != nil || u.RawQuery != "") {
			t.Fatalf("%q gave %v", s, u)
		}
	})
}
