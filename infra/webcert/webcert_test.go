package webcert_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/infra/telemetry"
	"kennel/infra/testwait"
	"kennel/infra/webcert"
	"kennel/infra/webcert/webcerttest"
)

// pair makes a certificate of its own for a name, PEM.
func pair(t *testing.T, name string, life time.Duration) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-90 * 24 * time.Hour), NotAfter: time.Now().Add(life)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// TestFilesAreReadAgain (issue 16, finding 8): a listener serves the certificate that its files hold now. While they do not fit together, or are gone, the last
// good one serves, and readiness warns.
func TestFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write := func(file string, b []byte) {
		t.Helper()
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	if _, err := webcert.Open(certFile, keyFile, quiet); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without files: %v", err)
	}
	cert, key := pair(t, "one.example", 90*24*time.Hour)
	write(certFile, cert)
	write(keyFile, key)
	f, err := webcert.Open(certFile, keyFile, quiet)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: f.Get})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = c.(*tls.Conn).Handshake(); _ = c.Close() }()
		}
	}()
	served := func(want, warning string) {
		t.Helper()
		testwait.Until(t, 20*time.Second, "certificate of "+want, func() error {
			c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				return err
			}
			defer c.Close()
			got := c.ConnectionState().PeerCertificates[0].Subject.CommonName
			err = f.Check(t.Context())
			if warned := err != nil && strings.Contains(err.Error(), warning); got != want || warned != (warning != "") {
				return fmt.Errorf("%s, %v", got, err)
			}
			return nil
		})
		var w telemetry.Warning
		if err := f.Check(t.Context()); err != nil && !errors.As(err, &w) {
			t.Errorf("%v takes the process out of service", err)
		}
	}
	served("one.example", "")
	cert, key = pair(t, "two.example", 90*24*time.Hour)
	write(certFile, cert) // its key is still the first one's
	served("one.example", "keeping the loaded ones")
	write(keyFile, key)
	served("two.example", "")
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	served("two.example", "keeping the loaded ones")
	cert, key = pair(t, "three.example", 48*time.Hour)
	write(keyFile, key)
	write(certFile, cert)
	served("three.example", "ends at")
}

func number(t *testing.T, addr net.Addr) int {
	t.Helper()
	_, p, err := net.SplitHostPort(addr.String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestACME (issue 16, finding 8): a certificate for the public name is issued by way of the listener itself (TLS-ALPN-01) or by port 80 (HTTP-01), and kept
// for the next start. Other names, and everyone before it is there, get the listener's own.
func TestACME(t *testing.T) {
	for _, way := range []string{"TLS-ALPN-01", "HTTP-01"} {
		t.Run(way, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			web, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer web.Close()
			c := webcert.ACMEConfig{Names: []string{"kennel.example.org"}, Contact: "ops@example.org", Dir: filepath.Join(t.TempDir(), "acme")}
			c.Directory, c.RootFile, _ = webcerttest.Authority(t, number(t, web.Addr()), number(t, l.Addr()))
			own, key := pair(t, "own.example", 90*24*time.Hour)
			fallback, err := tls.X509KeyPair(own, key)
			if err != nil {
				t.Fatal(err)
			}
			a, err := webcert.NewACME(c, slog.New(slog.NewTextHandler(t.Output(), nil)))
			if err != nil {
				t.Fatal(err)
			}
			protocols := []string{"http/1.1"}
			if way == "HTTP-01" {
				plain := a.Plain()
				go func() { _ = http.Serve(web, plain) }() // until the listener is closed
			} else {
				protocols = append(protocols, a.Protocol())
			}
			srv := httptest.NewUnstartedServer(http.NotFoundHandler())
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.Listener.Close()
			srv.Listener = tls.NewListener(l, &tls.Config{NextProtos: protocols, GetCertificate: a.Get(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &fallback, nil })})
			srv.Start()
			defer srv.Close()
			served := func(name string) *x509.Certificate {
				t.Helper()
				conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{ServerName: name, InsecureSkipVerify: true})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				return conn.ConnectionState().PeerCertificates[0]
			}
			if got := served("kennel.example.org").Subject.CommonName; got != "own.example" || a.Check(t.Context()) == nil {
				t.Errorf("before it is issued: %s, %v", got, a.Check(t.Context()))
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- a.Run(ctx) }()
			testwait.Until(t, time.Minute, "a certificate", func() error { return a.Check(ctx) })
			got := served("KENNEL.example.org")
			if err := got.VerifyHostname("kennel.example.org"); err != nil || !strings.Contains(got.Issuer.CommonName, "Pebble") {
				t.Errorf("%v, issuer %s", err, got.Issuer)
			}
			if other := served("localhost"); other.Subject.CommonName != "own.example" {
				t.Errorf("another name: %s", other.Subject)
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			srv.Close() // the authority could not reach it now
			b, err := webcert.NewACME(c, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop = context.WithCancel(t.Context())
			go func() { done <- b.Run(ctx) }()
			testwait.Until(t, time.Minute, "the kept certificate", func() error { return b.Check(ctx) })
			stop()
			<-done
		})
	}
}

func TestACMEConfig(t *testing.T) {
	good := webcert.ACMEConfig{Directory: "https://acme.example/dir", Names: []string{"kennel.example.org"}, Dir: "/srv/acme"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if err := (webcert.ACMEConfig{}).Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*webcert.ACMEConfig){
		"acme.directory":   func(c *webcert.ACMEConfig) { c.Directory = "http://acme.example" },
		"acme.names is":    func(c *webcert.ACMEConfig) { c.Names = nil },
		"acme.names \"10.": func(c *webcert.ACMEConfig) { c.Names = []string{"10.0.0.1"} },
		"acme.names \"*.":  func(c *webcert.ACMEConfig) { c.Names = []string{"*.example.org"} },
		"acme.names \"lo":  func(c *webcert.ACMEConfig) { c.Names = []string{"localhost"} },
		"acme.dir is":      func(c *webcert.ACMEConfig) { c.Dir = "" },
		"acme.http_listen": func(c *webcert.ACMEConfig) { c.HTTPListen = "80" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
