package protomux_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/infra/admission"
	"kennel/infra/protomux"
)

// newPort serves a word for each kind, and returns its address and whom to trust.
func newPort(t testing.TB) (addr string, pool *x509.CertPool) {
	t.Helper()
	addr, pool, _ = newHearingPort(t)
	return addr, pool
}

// broken is a handshake as a port tells of it.
type broken struct {
	addr, name string
	err        error
}

func newHearingPort(t testing.TB) (addr string, pool *x509.CertPool, heard <-chan broken) {
	t.Helper()
	told := make(chan broken, 100) // more than any test breaks
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(leaf)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	door, err := admission.New(admission.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := protomux.Split(door.Listen("test", l), &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, slog.New(slog.DiscardHandler))
	p.Broken = func(_ context.Context, addr, name string, err error) { told <- broken{addr, name, err} }
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	word := func(s string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, s+" "+string(b))
		})
	}
	wg.Go(func() { _ = http.Serve(p.Plain, word("plain")) })
	wg.Go(func() { _ = http.Serve(p.HTTPS, word("https")) })
	wg.Go(func() {
		for {
			c, err := p.GRPC.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "grpc")
			_ = c.Close()
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return l.Addr().String(), pool, told
}

func TestEachToItsOwn(t *testing.T) {
	addr, pool := newPort(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	body := strings.Repeat("x", 100_000) // far beyond what was peeked at
	for scheme, want := range map[string]string{"http": "plain " + body, "https": "https " + body} {
		for range 3 {
			resp, err := client.Post(scheme+"://"+addr+"/ok", "text/plain", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
			if err != nil || string(got) != want {
				t.Errorf("%s: %.30q %v", scheme, got, err)
			}
		}
	}
	for _, protos := range [][]string{{"h2"}, {"grpc-exp", "h2"}} {
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, NextProtos: protos})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		if err != nil || string(got) != "grpc" || c.ConnectionState().NegotiatedProtocol != "h2" {
			t.Errorf("%v: %q %v", protos, got, err)
		}
		_ = c.Close()
	}
}

// Clients that connect and send nothing, or rubbish, delay no other.
func TestSilentCallers(t *testing.T) {
	addr, pool := newPort(t)
	for i := range 50 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() // at the end
		if i%2 == 0 {
			_, _ = c.Write([]byte{0x16, 3, 1, 0xff, 0xff, 0}) // a record that never ends
		}
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + addr + "/ok")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// TestBrokenHandshakesAreTold: by which name, and why; a handshake that succeeds is no news.
func TestBrokenHandshakesAreTold(t *testing.T) {
	addr, pool, heard := newHearingPort(t)
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // at the end
	if _, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "token.example.org", NextProtos: []string{"h2"}}); err == nil {
		t.Fatal("an unknown certificate is accepted")
	}
	if b := <-heard; b.name != "token.example.org" || !strings.Contains(b.err.Error(), "remote error: tls: bad certificate") || !strings.HasPrefix(b.addr, "127.0.0.1:") {
		t.Errorf("%+v", b)
	}
	hangs, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hangs.Write([]byte{0x16, 3, 1, 0, 5}); err != nil {
		t.Fatal(err)
	}
	if err := hangs.Close(); err != nil {
		t.Fatal(err)
	}
	if b := <-heard; b.name != "" || b.err == nil {
		t.Errorf("%+v", b)
	}
}
