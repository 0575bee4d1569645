package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/infra/logging"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/runner"
)

// freePort returns an address of this machine at which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // before it is used
	return l.Addr().String()
}

// TestStrictTransport: a browser that came over TLS by the public name, whose certificate is from files, is bound to HTTPS (HSTS). By other names, on
// the plain port of this machine and with a certificate of our own authority it is not: one that does not trust us must still be able to continue.
func TestStrictTransport(t *testing.T) {
	b := mqtttest.Start(t)
	for _, public := range []bool{true, false} {
		cfg := settings(t, b)
		cfg.API.Listen, cfg.Console.Listen = freePort(t), freePort(t)
		cfg.API.PublicURL, cfg.API.Names = "https://kennel.example", []string{"kennel.example", "localhost", "127.0.0.1"}
		authority, err := ca.Load(cfg.CA.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if public {
			pair, err := authority.IssueServer(cfg.API.Names, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			cfg.API.CertFile, cfg.API.KeyFile = filepath.Join(cfg.CA.Dir, "web.crt"), filepath.Join(cfg.CA.Dir, "web.key")
			for file, text := range map[string][]byte{cfg.API.CertFile: pair.Chain, cfg.API.KeyFile: pair.Key} {
				if err := os.WriteFile(file, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		log, err := logging.New(t.Output(), "warn", "text")
		if err != nil {
			t.Fatal(err)
		}
		c, err := Build(t.Context(), cfg, log)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		listeners, err := c.listeners()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- runner.Run(ctx, log, runner.Config{}, listeners...) }()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority.Root())
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
		for host, want := range map[string]string{
			"https://" + cfg.API.Listen + " kennel.example":     "max-age=31536000",
			"https://" + cfg.API.Listen + " Kennel.Example:443": "max-age=31536000",
			"https://" + cfg.API.Listen + " localhost":          "",
			"https://" + cfg.API.Listen + " " + cfg.API.Listen:  "",
			"http://" + cfg.Console.Listen + " localhost":       "",
			"http://" + cfg.Console.Listen + " kennel.example":  "", // refused there
		} {
			url, name, _ := strings.Cut(host, " ")
			req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/ok", nil)
			if err != nil {
				t.Fatal(err)
			}
			if req.Host = name; !public {
				want = ""
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(host, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body) // only the header counts
			resp.Body.Close()
			if got := resp.Header.Get("Strict-Transport-Security"); got != want {
				t.Errorf("certificate from files %v, %s: Strict-Transport-Security %q, want %q", public, host, got, want)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
