package housetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/infra/api/large"
	"kennel/infra/thing"
)

// Certified enrols a thing of the test's own.
func (h *House) Certified(t *testing.T, admin *Person, name string) (thing.ID, tls.Certificate) {
	t.Helper()
	var reg struct{ Secret string }
	admin.Do("POST", "/v1/things", map[string]string{"thing": name}, &reg)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Certificate string }
	h.Stranger(t).Do("POST", "/v1/enroll", map[string]string{"thing": name, "secret": reg.Secret,
		"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}))}, &got)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(got.Certificate), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	return thing.MustParse(name), pair
}

// Trust returns TLS settings of a client of this house.
func (h *House) Trust(t *testing.T, certs ...tls.Certificate) *tls.Config {
	t.Helper()
	c := h.Stranger(t).HTTP.Transport.(*http.Transport).TLSClientConfig.Clone()
	c.Certificates = certs
	return c
}

// DeviceCert returns a robot's certificate of an installation, good for an hour, with its key.
func DeviceCert(t *testing.T, authority *ca.Authority, id thing.ID) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(id)}}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := authority.IssueDevice(csr, id, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Certificate{PrivateKey: key}
	for _, x := range chain {
		c.Certificate = append(c.Certificate, x.Raw)
	}
	return c
}

// RobotPosts posts as a robot that shows a certificate.
func (h *House) RobotPosts(t *testing.T, cert tls.Certificate, path, body string) (int, []byte) {
	t.Helper()
	conf := h.Trust(t, cert)
	conf.NextProtos = []string{large.ALPN, "http/1.1"}
	transport := &http.Transport{TLSClientConfig: conf, DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&tls.Dialer{Config: conf}).DialContext(ctx, network, addr)
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Post(h.Ready.Endpoints["api"]+path, "application/json",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}
