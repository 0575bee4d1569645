package housetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/infra/thing"
)

// HalfOpen is strangers who hold connections on which they never finish a handshake. One that is closed is opened again a little later.
type HalfOpen struct {
	t      *testing.T
	stop   context.CancelFunc
	wg     sync.WaitGroup
	Open   atomic.Int64 // connections now
	Dialed atomic.Int64 // attempts in all
}

// redial is about how long a stranger waits before it opens a connection again: 2,000 of them make up to 4,000 a second. Each waits up to a half less or
// more, as programs on many machines do: if all of this one dialled in the same moment, it would measure its own two processors.
const redial = 500 * time.Millisecond

// UntilRedial returns how long a stranger whose connection was closed waits this time.
func UntilRedial() time.Duration { return redial/2 + rand.N(redial) }

// Addresses returns n loopback addresses.
func Addresses(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("127.0.%d.%d", 100+i/200, 1+i%200)
	}
	return out
}

// Attack opens n connections to addr from those addresses and returns once each was tried. A third of them says nothing, a third begins a record of TLS
// and a third greets, as a client of that protocol, and then says nothing.
func Attack(t *testing.T, addr, speaks string, n int, sources []string) *HalfOpen {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	h := &HalfOpen{t: t, stop: stop}
	words := [][]byte{nil, {0x16, 3, 1, 2, 0}, clientHello(t, speaks)}
	var tried sync.WaitGroup
	for i := range n {
		tried.Add(1)
		h.wg.Go(func() {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(sources[i%len(sources)])}, Timeout: 20 * time.Second}
			once := sync.OnceFunc(tried.Done)
			for ctx.Err() == nil {
				h.hold(ctx, d, addr, words[i%len(words)], once)
				once()
				Pause(ctx, UntilRedial())
			}
			once()
		})
	}
	tried.Wait()
	t.Cleanup(h.End)
	return h
}

// hold holds one connection until the other side closes it.
func (h *HalfOpen) hold(ctx context.Context, d net.Dialer, addr string, words []byte, opened func()) {
	h.Dialed.Add(1)
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(words); err != nil {
		return
	}
	h.Open.Add(1)
	opened()
	_, _ = io.Copy(io.Discard, conn) // until it is closed
	h.Open.Add(-1)
}

// End lets go of all.
func (h *HalfOpen) End() { h.stop(); h.wg.Wait() }

// clientHello returns the first bytes of a client that speaks a protocol over TLS.
func clientHello(t *testing.T, protocol string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		_ = tls.Client(theirs, &tls.Config{ServerName: "localhost", NextProtos: []string{protocol}}).Handshake()
	}() // ends with the pipe
	defer ours.Close()
	b := make([]byte, 4096)
	n, err := ours.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// Visitor is one who may come in.
type Visitor struct {
	Robot, Plain *tls.Config // with and without a certificate
	ID           thing.ID
}

// Visitor returns a robot of this house that does not run.
func (h *House) Visitor(id thing.ID) Visitor {
	h.T.Helper()
	root, err := os.ReadFile(h.Ready.Files["root_ca"])
	if err != nil {
		h.T.Fatal(err)
	}
	authority, err := ca.Load(filepath.Join(h.Dir, "ca"))
	if err != nil {
		h.T.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	cert := DeviceCert(h.T, authority, id)
	return Visitor{&tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{cert}}, &tls.Config{RootCAs: pool, ServerName: "localhost"}, id}
}

// Login is TLS, CONNECT and CONNACK.
func (v Visitor) Login(ctx context.Context, addr string) error {
	conn, err := (&tls.Dialer{Config: v.Robot}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	body := append([]byte{0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, byte(len(v.ID))}, v.ID...)
	if _, err := conn.Write(append([]byte{0x10, byte(len(body))}, body...)); err != nil {
		return err
	}
	var ack [4]byte
	if _, err := io.ReadFull(conn, ack[:]); err != nil {
		return err
	}
	if ack != [4]byte{0x20, 2, 0, 0} {
		return fmt.Errorf("CONNACK %x", ack)
	}
	return nil
}

// Get asks for path over a connection of its own.
func (v Visitor) Get(path string) func(context.Context, string) error {
	return func(ctx context.Context, addr string) error {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: v.Plain.Clone(), DisableKeepAlives: true}}
		defer c.CloseIdleConnections()
		req, err := http.NewRequestWithContext(ctx, "GET", "https://"+addr+path, nil)
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}
}

// Patience is how long a visitor waits: as long as a robot.
const Patience = 15 * time.Second

// Visits visits n times, one after the other, and returns how long each took, shortest first. A visit that fails counts as long as Patience.
func Visits(t *testing.T, n int, addr string, visit func(context.Context, string) error) []time.Duration {
	t.Helper()
	out := make([]time.Duration, n)
	failed, why := 0, error(nil)
	for i := range out {
		ctx, cancel := context.WithTimeout(t.Context(), Patience)
		start := time.Now()
		err := visit(ctx, addr)
		out[i] = time.Since(start)
		cancel()
		if err != nil {
			out[i], why = Patience, err
			if failed++; failed > 3 { // it shows
				out = out[:i+1]
				break
			}
		}
		time.Sleep(10 * time.Millisecond) // visitors do not come as a flood: a proxy lets an address open 100 a second
	}
	if failed > 0 {
		t.Errorf("%d of %d visits failed, such as: %v", failed, len(out), why)
	}
	slices.Sort(out)
	return out
}

// Quantile returns the value below which the share q of sorted is.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// InTime compares visits under attack with undisturbed ones of before and after: median and p99 at most five times as long, in full. In a light run each
// visitor comes in within Patience, which Visits has seen: how long a few of them take beside the rest of the tests says nothing.
func InTime(t *testing.T, what string, quiet, attacked []time.Duration) {
	t.Helper()
	show := func(d []time.Duration) string {
		ms := func(q float64) string { return fmt.Sprintf("%.1f", Quantile(d, q).Seconds()*1000) }
		return fmt.Sprintf("p50 %s p90 %s p99 %s ms", ms(.5), ms(.9), ms(.99))
	}
	t.Logf("%s: undisturbed %s, under attack %s (%d and %d visits)", what, show(quiet), show(attacked), len(quiet), len(attacked))
	if !Soak() {
		return
	}
	for _, q := range []float64{.5, .99} {
		if got, most := Quantile(attacked, q), 5*Quantile(quiet, q); got > most {
			t.Errorf("%s: quantile %v is %v under attack, want at most %v", what, q, got, most)
		}
	}
}
