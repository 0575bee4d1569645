package storms

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/freeaddr"
)

// TestHalfOpenStrangers (issue 16: what must hold 1): while strangers hold half-open connections, from one address, from many and from the visitor's
// own, robots and people come in about as fast as without them, and kenneld comes back to a broker that was started again.
func TestHalfOpenStrangers(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	v := h.Visitor("vic:00e20100")
	port := func(name string) string { _, addr, _ := strings.Cut(h.Ready.Endpoints[name], "://"); return addr }
	visits := housetest.Pick(40, 1500) // in full for longer than a stranger is let to wait, so that they all come again meanwhile
	for _, door := range []struct {
		name, speaks string
		visit        func(context.Context, string) error
	}{{"mqtt", "mqtt", v.Login}, {"robots", "http/1.1", v.Get("/ok")}, {"api", "http/1.1", v.Get("/ok")}} {
		housetest.Visits(t, 5, port(door.name), door.visit) // what is slow only once
		for _, who := range []struct {
			name string
			from []string
		}{{"one address", []string{"127.0.0.2"}}, {"200 addresses", housetest.Addresses(200)}, {"the visitor's address", []string{"127.0.0.1"}}} {
			t.Run(door.name+" from "+who.name, func(t *testing.T) {
				quiet := housetest.Visits(t, visits, port(door.name), door.visit)
				strangers := housetest.Attack(t, port(door.name), door.speaks, 2000, who.from)
				attacked := housetest.Visits(t, visits, port(door.name), door.visit)
				t.Logf("%d connections held, %d opened", strangers.Open.Load(), strangers.Dialed.Load())
				strangers.End()
				quiet = append(quiet, housetest.Visits(t, visits, port(door.name), door.visit)...)
				slices.Sort(quiet)
				housetest.InTime(t, door.name, quiet, attacked)
			})
		}
	}

	strangers := housetest.Attack(t, port("mqtt"), "mqtt", 2000, []string{"127.0.0.1"})
	const up = `msg="broker connection up"`
	before := strings.Count(h.Out.String(), up)
	if err := syscall.Kill(h.PartPid("broker"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	took := housetest.Await(t, 30*time.Second, "robots and kenneld are back at the broker", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), housetest.Patience)
		defer cancel()
		if err := v.Login(ctx, port("mqtt")); err != nil { // by a new process: the killed one answers no client
			return err
		}
		if strings.Count(h.Out.String(), up) == before { // readiness alone may not have seen that it was away
			return errors.New("kenneld has not connected again")
		}
		return v.Get("/readyz")(ctx, port("api"))
	})
	t.Logf("back after %v, %d connections held", took.Round(10*time.Millisecond), strangers.Open.Load())
	housetest.Await(t, 20*time.Second, "operators are told", func() error {
		log, err := os.ReadFile(filepath.Join(h.Dir, "log", "broker.log"))
		if err == nil && !strings.Contains(string(log), "connections refused") {
			err = errors.New("the broker's log says nothing of it")
		}
		return err
	})
}

// TestClientsThatNeverRead (issue 16, finding 1): who asks and never reads the answer is gone soon, also where the answers are many.
func TestClientsThatNeverRead(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	v := h.Visitor("vic:00e20100")
	_, addr, _ := strings.Cut(h.Ready.Endpoints["api"], "://")
	const clients = 300
	var gone atomic.Int64
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer wg.Wait()
	defer stop()
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096) })
		return errors.Join(err, failed)
	}}
	conf := v.Plain.Clone()
	conf.NextProtos = []string{"http/1.1"}
	turn := make(chan struct{}, 20) // to shake hands: of 300 at once a slow machine leaves some unfinished, which are refused in time
	for range clients {
		wg.Go(func() {
			turn <- struct{}{}
			conn, err := (&tls.Dialer{NetDialer: &small, Config: conf}).DialContext(ctx, "tcp", addr)
			<-turn
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for ctx.Err() == nil { // each answer is some hundred kilobytes
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
				_, err := io.WriteString(conn, strings.Repeat("GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 20))
				if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
					gone.Add(1)
					return
				}
				if err != nil { // TLS does not write after a deadline: wait for the end below it
					break
				}
				housetest.Pause(ctx, time.Second)
			}
			raw := conn.(*tls.Conn).NetConn()
			_ = raw.SetWriteDeadline(time.Time{})
			for ctx.Err() == nil {
				if hungUp(raw) {
					gone.Add(1)
					return
				}
				housetest.Pause(ctx, 200*time.Millisecond)
			}
		})
	}
	took := housetest.Await(t, time.Minute, "clients that never read are gone", func() error {
		if n := gone.Load(); n < clients {
			return fmt.Errorf("%d of %d", n, clients)
		}
		return nil
	})
	t.Logf("gone after %v", took.Round(100*time.Millisecond))
}

// hungUp reports whether the other side has closed or reset the connection, without reading.
func hungUp(conn net.Conn) bool {
	c, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return true
	}
	state := uint8(0)
	if err := c.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			state = info.State
		}
	}); err != nil {
		return true
	}
	return state != unix.BPF_TCP_ESTABLISHED
}

// TestFewDescriptors (issue 16, finding 1): a process with few file descriptors keeps answering its operators, robots and people, however many
// connections strangers hold.
func TestFewDescriptors(t *testing.T) {
	c := newCluster(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c.startBroker(ctx, embedded)
	metrics := freeaddr.For(t)
	robots := freeaddr.For(t)
	keys := filepath.Join(c.dir, "app-keys")
	if err := os.WriteFile(keys, []byte("key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.extra = fmt.Sprintf("metrics: {listen: %q}\nrobots: {listen: %q, app_keys_file: %q}\n", metrics, robots, keys)
	c.limit = 200 // descriptors
	c.kenneld(ctx, "kenneld-a")
	c.awaitAPIs("kenneld-a")

	fetch := func(ctx context.Context, addr string) error {
		req, err := http.NewRequestWithContext(ctx, "GET", "http://"+addr, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s %s", resp.Status, b)
		}
		return err
	}
	housetest.Await(t, time.Minute, "kenneld is ready", func() error { return fetch(t.Context(), metrics+"/readyz") })

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.ca.Root())
	v := housetest.Visitor{Plain: &tls.Config{RootCAs: pool, ServerName: "localhost"}}
	var strangers []*housetest.HalfOpen
	for _, addr := range []string{c.addr["kenneld-a"], robots} {
		strangers = append(strangers, housetest.Attack(t, addr, "http/1.1", 400, housetest.Addresses(20)))
	}
	idle := idlers(t, c.addr["kenneld-a"], 400, v.Plain)
	for name, visit := range map[string]struct {
		addr string
		f    func(context.Context, string) error
	}{
		"metrics": {metrics + "/metrics", fetch}, "readiness": {metrics + "/readyz", fetch}, "api": {c.addr["kenneld-a"], v.Get("/ok")},
		"robots": {robots, v.Get("/ok")},
	} {
		took := housetest.Visits(t, 20, visit.addr, visit.f)
		t.Logf("%s: median %v, longest %v", name, housetest.Quantile(took, .5), took[len(took)-1])
	}
	t.Logf("%d and %d half-open, %d idle", strangers[0].Open.Load(), strangers[1].Open.Load(), idle.Load())
	housetest.Await(t, time.Minute, "operators are told", func() error {
		resp, err := http.Get("http://" + metrics + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), "refused") {
			return fmt.Errorf("%s %w", b, err)
		}
		return nil
	})
}

// idlers holds n connections that asked once and then say nothing, and opens another for each that is closed.
func idlers(t *testing.T, addr string, n int, conf *tls.Config) *atomic.Int64 {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	t.Cleanup(func() { stop(); wg.Wait() })
	held := new(atomic.Int64)
	for i := range n {
		wg.Go(func() {
			d := &tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(housetest.Addresses(20)[i%20])}}, Config: conf}
			for ; ctx.Err() == nil; housetest.Pause(ctx, housetest.UntilRedial()) {
				conn, err := d.DialContext(ctx, "tcp", addr)
				if err != nil {
					continue
				}
				done := context.AfterFunc(ctx, func() { conn.Close() })
				held.Add(1)
				if _, err := io.WriteString(conn, "GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n"); err == nil {
					_, _ = io.Copy(io.Discard, bufio.NewReader(conn)) // until it is closed
				}
				held.Add(-1)
				done()
				conn.Close()
			}
		})
	}
	return held
}
