package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/cloud/app/identity"
	"kennel/cloud/preflight"
	"kennel/infra/auth"
	"kennel/infra/freeaddr"
	"kennel/infra/logging"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/runner"
)

// TestStrictTransport: a browser that came over TLS by the public name, whose certificate is from files, is bound to HTTPS (HSTS). By other names, on
// the plain port of this machine and with a certificate of our own authority it is not: one that does not trust us must still be able to continue.
func TestStrictTransport(t *testing.T) {
	b := mqtttest.Start(t)
	for _, public := range []bool{true, false} {
		cfg := settings(t, b)
		cfg.API.Listen, cfg.Console.Listen = freeaddr.For(t), freeaddr.For(t)
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

// TestReadyForTheInternet: the checks of an operator name a volume that refuses writes, a certificate whose files end soon, and one that ACME does not get;
// what our own authority renews is in order.
func TestReadyForTheInternet(t *testing.T) {
	cfg := settings(t, mqtttest.Start(t))
	dir := cfg.CA.Dir
	write := func(name string, data []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"kennel.example"}, NotBefore: time.Now().AddDate(0, 0, -88), NotAfter: time.Now().AddDate(0, 0, 2)}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg.API.Listen, cfg.Robots.Listen, cfg.Robots.AppKeysFile = freeaddr.For(t), freeaddr.For(t), write("app-keys", []byte("oDoa0quieSeir6goowai7f\n"))
	cfg.API.CertFile = write("web.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	cfg.API.KeyFile = write("web.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	cfg.API.ACME = identity.ACMEConfig{Directory: "https://127.0.0.1:1/directory", Names: []string{"acme.example"}, Dir: dir}
	log, err := logging.New(t.Output(), "warn", "text")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h, err := c.Handler()
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range []func() ([]runner.Service, error){c.listeners, c.robots} {
		services, err := open()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the ports close at once: their certificates are what counts
		if err := runner.Run(ctx, log, runner.Config{}, services...); err != nil {
			t.Fatal(err)
		}
	}
	c.base.Volumes.Refused("object store", "no space left on device")
	if _, _, err := c.Accounts.People.CreateAccount(t.Context(), "ada@example.org", auth.Admin, "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	l, err := c.Accounts.Login(t.Context(), "ada@example.org", "correct horse battery", "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest("GET", "/v1/check", nil)
	req.Header.Set("Authorization", "Bearer "+l.Token.Reveal())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	var list preflight.Checklist
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s %v", w.Code, w.Body, err)
	}
	got := map[string]preflight.CheckItem{}
	for _, i := range list.Items {
		got[i.Name] = i
	}
	for name, want := range map[string]preflight.CheckItem{
		"disk":               {State: preflight.Missing, Says: "object store"},
		"api_certificate":    {State: preflight.Missing, Says: "certificate " + cfg.API.CertFile + " ends at"},
		"acme":               {State: preflight.Missing, Says: "no certificate for acme.example yet"},
		"robots_certificate": {State: preflight.OK},
	} {
		if i := got[name]; i.State != want.State || !strings.Contains(i.Says, want.Says) || (i.Do == "") != (want.State == preflight.OK) {
			t.Errorf("%s: %+v, want %+v", name, i, want)
		}
	}
}

// TestRevocationsAreKnownAtOnce: a cloud that is built, and has opened no port yet, knows which certificates are revoked. Else it would refuse every robot
// of its first moment.
func TestRevocationsAreKnownAtOnce(t *testing.T) {
	c, err := Build(t.Context(), settings(t, mqtttest.Start(t)), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Identity.Peers.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
