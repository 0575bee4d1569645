package ca

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/infra/thing"
)

var files = []string{"root.key", "root.crt", "device.key", "device.crt", "server.key", "server.crt", "service.key", "service.crt"}

func newAuthority(t testing.TB) *Authority {
	t.Helper()
	a, err := Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func deviceRequest(t testing.TB, cn string, dns ...string) (*x509.CertificateRequest, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: cn}, DNSNames: dns}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return csr, key
}

func TestInitThenLoadIsTheSameAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "ca")
	if _, err := Load(dir); err == nil {
		t.Error("loaded an authority that is not there")
	}
	made, err := Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		fi, err := os.Stat(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, ".key") && fi.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", f, fi.Mode())
		}
	}
	again, err := Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "root.key")); err != nil { // kept elsewhere
		t.Fatal(err)
	}
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*Authority{again, loaded} {
		if !bytes.Equal(a.Root(), made.Root()) || !bytes.Equal(a.DeviceBundle(), made.DeviceBundle()) ||
			!bytes.Equal(a.ServiceBundle(), made.ServiceBundle()) {
			t.Error("came back as another authority")
		}
	}
}

// Init writes eight files in order. A kill after any of them, or inside any of them, is completed by the next Init; what exists is kept.
func TestInitCompletesWhatAKillLeft(t *testing.T) {
	full := t.TempDir()
	if _, err := Init(full); err != nil {
		t.Fatal(err)
	}
	for n := range files {
		dir := t.TempDir()
		for _, f := range files[:n] {
			copyFile(t, filepath.Join(full, f), filepath.Join(dir, f))
		}
		if err := os.WriteFile(filepath.Join(dir, files[n]+".new"), []byte("-----BEGIN CERT"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil {
			t.Errorf("after %d files: loaded an authority that is not complete", n)
		}
		if _, err := Init(dir); err != nil {
			t.Errorf("after %d files: %v", n, err)
			continue
		}
		for _, f := range files[:n] {
			a, _ := os.ReadFile(filepath.Join(full, f))
			b, _ := os.ReadFile(filepath.Join(dir, f))
			if !bytes.Equal(a, b) {
				t.Errorf("after %d files: %s was replaced", n, f)
			}
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatCannotBeCompletedIsNamed(t *testing.T) {
	other := t.TempDir()
	if _, err := Init(other); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		damage func(dir string) error
		want   string
	}{
		{"key lost", func(d string) error { return os.Remove(filepath.Join(d, "device.key")) }, "device.crt exists, but device.key"},
		{"key of another", func(d string) error {
			copyFile(t, filepath.Join(other, "server.key"), filepath.Join(d, "server.key"))
			return nil
		}, "server.key does not belong to server.crt"},
		{"authority of another root", func(d string) error {
			copyFile(t, filepath.Join(other, "service.key"), filepath.Join(d, "service.key"))
			copyFile(t, filepath.Join(other, "service.crt"), filepath.Join(d, "service.crt"))
			return nil
		}, "service.crt was not signed by root.crt"},
		{"damaged certificate", func(d string) error { return os.WriteFile(filepath.Join(d, "root.crt"), []byte("oops"), 0o644) }, "root.crt"},
		{"damaged key", func(d string) error { return os.WriteFile(filepath.Join(d, "root.key"), []byte("oops"), 0o600) }, "root.key"},
		{"root key away, authority missing", func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "root.key")), os.Remove(filepath.Join(d, "device.crt")))
		}, "so is root.key"},
	} {
		dir := t.TempDir()
		if _, err := Init(dir); err != nil {
			t.Fatal(err)
		}
		if err := c.damage(dir); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(string) (*Authority, error){Init, Load} {
			if _, err := open(dir); err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: got %v", c.name, err)
			}
		}
		if _, err := Init(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestDeviceLeafSaysOnlyWhoItIs(t *testing.T) {
	a := newAuthority(t)
	id := thing.MustParse("vic:00e20100")
	csr, _ := deviceRequest(t, "root", "cloud.example")
	chain, err := a.IssueDevice(csr, id, 30*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	leaf := chain[0]
	if leaf.Subject.CommonName != string(id) || len(leaf.Subject.Names) != 1 || len(leaf.DNSNames) > 0 || leaf.IsCA {
		t.Errorf("subject %v, names %v, CA %v", leaf.Subject, leaf.DNSNames, leaf.IsCA)
	}
	if !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || leaf.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("usages %v %v", leaf.ExtKeyUsage, leaf.KeyUsage)
	}
	if life := time.Until(leaf.NotAfter); life < 29*24*time.Hour || life > 30*24*time.Hour {
		t.Errorf("lives %v, want 30 days", life)
	}
	if leaf.SerialNumber.BitLen() < 64 {
		t.Errorf("serial number %v is guessable", leaf.SerialNumber)
	}
	if err := a.VerifyDevice(leaf); err != nil {
		t.Error(err)
	}
	pair, err := a.IssueService("kenneld", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	svc, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.VerifyDevice(svc.Leaf); err == nil {
		t.Error("a service certificate passes for a device's")
	}
	if _, err := a.IssueDevice(csr, "kenneld", time.Hour); err == nil {
		t.Error("issued a device certificate that names no thing")
	}
}

// A device key in the wrong hands signs no server: the device authority's own usage forbids it.
func TestDeviceAuthorityCanMintNoServer(t *testing.T) {
	a := newAuthority(t)
	c := serverLeaf
	c.DNSNames = []string{"cloud.example"}
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.now().device.current().sign(c, key.Public(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	inter := x509.NewCertPool()
	inter.AddCert(chain[1])
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: a.RootPool(), Intermediates: inter, DNSName: "cloud.example"}); err == nil {
		t.Error("a server certificate of the device authority verifies")
	}
}

func TestNamesAreChecked(t *testing.T) {
	a := newAuthority(t)
	for _, names := range [][]string{nil, {"https://cloud.example"}, {"a@b.example"}} {
		if _, err := a.IssueServer(names, time.Hour); err == nil {
			t.Errorf("server names %q accepted", names)
		}
	}
	for _, name := range []string{"", "vic:00e20100", "Kenneld", "a b", strings.Repeat("a", 64)} {
		if _, err := a.IssueService(name, time.Hour); err == nil {
			t.Errorf("service name %q accepted", name)
		}
	}
	if _, err := a.IssueService("kenneld", 0); err == nil {
		t.Error("life of 0 accepted")
	}
}

// The whole chain, over a real handshake: the robot trusts the root alone, the listener the device authority alone.
func TestMutualTLS(t *testing.T) {
	a := newAuthority(t)
	pair, err := a.IssueServer([]string{"cloud.example", "127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	csr, key := deviceRequest(t, "x")
	chain, err := a.IssueDevice(csr, "vic:00e20100", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	device := tls.Certificate{Certificate: [][]byte{chain[0].Raw, chain[1].Raw}, PrivateKey: key}
	for _, name := range []string{"cloud.example", "127.0.0.1"} {
		cn, err := handshake(t,
			&tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.DevicePool()},
			&tls.Config{Certificates: []tls.Certificate{device}, RootCAs: a.RootPool(), ServerName: name})
		if err != nil || cn != "vic:00e20100" {
			t.Errorf("%s: %q, %v", name, cn, err)
		}
	}
}

func handshake(t *testing.T, serverCfg, clientCfg *tls.Config) (string, error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := make(chan error, 1)
	go func() {
		c, err := tls.Dial("tcp", ln.Addr().String(), clientCfg)
		if err == nil {
			_, err = io.Copy(io.Discard, c)
			_ = c.Close()
		}
		done <- err
	}()
	raw, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := tls.Server(raw, serverCfg)
	err = s.Handshake()
	cn := ""
	if p := s.ConnectionState().PeerCertificates; len(p) > 0 {
		cn = p[0].Subject.CommonName
	}
	_ = s.Close()
	return cn, errors.Join(err, <-done)
}

func TestRenewingChangesAtTwoThirds(t *testing.T) {
	a := newAuthority(t)
	calls, fail := 0, false
	r, err := NewRenewing(func() (Pair, error) {
		if calls++; fail {
			return Pair{}, errors.New("no authority")
		}
		return a.IssueServer([]string{"cloud.example"}, 90*time.Hour)
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	at := func(after time.Duration) error { _, err := r.get(now.Add(after)); return err }
	if err := at(59 * time.Hour); err != nil || calls != 1 {
		t.Errorf("before two thirds: %d issued, %v", calls, err)
	}
	fail = true
	if err := at(61 * time.Hour); err != nil || calls != 2 {
		t.Errorf("a failed renewal of a certificate that is still good: %d tries, %v", calls, err)
	}
	if err := at(91 * time.Hour); err == nil {
		t.Error("served an expired certificate")
	}
	fail = false
	if err := at(91 * time.Hour); err != nil || calls != 4 {
		t.Errorf("after the trouble: %d tries, %v", calls, err)
	}
	if c, err := r.GetCertificate(nil); err != nil || c.Leaf == nil {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestPEMIsWhatOthersRead(t *testing.T) {
	a := newAuthority(t)
	block, rest := pem.Decode(a.Root())
	if block == nil || block.Type != "CERTIFICATE" || len(rest) != 0 {
		t.Fatalf("root is not one PEM block: %q", a.Root())
	}
	if !strings.HasPrefix(a.RootName(), "Kennel Root CA ") {
		t.Errorf("root is called %q", a.RootName())
	}
}

// BenchmarkIssueDevice signs for a request that is parsed already.
func BenchmarkIssueDevice(b *testing.B) {
	a := newAuthority(b)
	csr, _ := deviceRequest(b, "vic:00e20100")
	for b.Loop() {
		if _, err := a.IssueDevice(csr, "vic:00e20100", time.Hour); err != nil {
			b.Fatal(err)
		}
	}
}
