package mosquitto_test

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
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/errs"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
	"kennel/infra/mqtt/brokeradmin/mosquitto/mosquittotest"
	"kennel/infra/mqtt/mqtttest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

// authority is one of a hierarchy: one root with several issuing authorities below it, as a cloud has them.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string, parent *authority) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: []string{"Kennel"}},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if parent == nil {
		parent = &authority{template, key}
	} else {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.cert, &key.PublicKey, parent.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// issue returns a client's credentials with the whole chain below the root, as robots present it.
func (a *authority) issue(t *testing.T, cn string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: cn}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) revoke(t *testing.T, file string, serials ...*big.Int) {
	t.Helper()
	list := &x509.RevocationList{
		Number: big.NewInt(time.Now().UnixNano()), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour),
	}
	for _, n := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: n, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func anchor(t *testing.T, dir, name string, a *authority) string {
	t.Helper()
	b, err := mosquitto.Anchor(a.cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// verdict is nil if a client with cert gets in at b.
func verdict(t *testing.T, b *mqtttest.Broker, cert tls.Certificate, then func(context.Context, *mqtt.Client) error) error {
	t.Helper()
	result := make(chan error, 100)
	c, err := mqtt.New(mqtt.Config{
		URL: b.URL, ClientID: "kenneld-x", TLS: b.With(cert), MinBackoff: time.Minute,
		OnConnect: func(ctx context.Context, c *mqtt.Client) error {
			result <- then(ctx, c)
			return nil
		},
		OnDown: func(err error) { result <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	defer func() { cancel(); <-done }()
	select {
	case err := <-result:
		return err
	case <-time.After(15 * time.Second):
		t.Fatal("neither let in nor refused")
		return nil
	}
}

// TestOneRoot: with one root above both authorities (infra/adr/0005), each listener believes its own authority alone, also when the other
// one has issued a certificate with a name of its choice; and a revoked certificate is refused.
func TestOneRoot(t *testing.T) {
	root := newAuthority(t, "Root", nil)
	devices, services := newAuthority(t, "Devices", root), newAuthority(t, "Services", root)
	b := mosquittotest.New(t)
	b.Config.DeviceCA, b.Config.ServiceCA = anchor(t, b.Dir, "device.pem", devices), anchor(t, b.Dir, "service.pem", services)
	b.Config.DeviceCRL = filepath.Join(b.Dir, "device.crl")
	me := thing.ID("vic:00e20100")
	good, bad := devices.issue(t, string(me)), devices.issue(t, string(me))
	devices.revoke(t, b.Config.DeviceCRL, big.NewInt(1))
	b.Start(t)

	all := func(ctx context.Context, c *mqtt.Client) error { return c.Subscribe(ctx, 1, "kennel/#") }
	own := func(ctx context.Context, c *mqtt.Client) error {
		return c.Subscribe(ctx, 1, topics.ThingFilters(me)...)
	}
	if err := verdict(t, b.Services, services.issue(t, "kenneld"), all); err != nil {
		t.Errorf("a service: %v", err)
	}
	for name, x := range map[string]struct {
		at   *mqtttest.Broker
		cert tls.Certificate
	}{
		"device authority's kenneld at the services' listener": {b.Services, devices.issue(t, "kenneld")},
		"thing at the services' listener":                      {b.Services, good},
		"service at the things' listener":                      {b.Things, services.issue(t, "kenneld")},
		"service authority's thing":                            {b.Things, services.issue(t, string(me))},
	} {
		if d, ok := errors.AsType[*mqtt.DownError](verdict(t, x.at, x.cert, all)); !ok || d.Step != "login" {
			t.Errorf("%s: %v, want it refused by TLS", name, d)
		}
	}
	for _, cn := range []string{"kenneld", "CN=kenneld", "kenneld,CN=" + string(me), "+", "#"} { // names that our device authority never gives
		if err := verdict(t, b.Things, devices.issue(t, cn), all); errs.KindOf(err) != errs.Denied {
			t.Errorf("device certificate %q: %v, want its subscription refused", cn, err)
		}
	}

	// The admin of these tests has its certificate from another authority: make one.
	a, err := mosquitto.New(mosquitto.Config{MQTT: mqtt.Config{URL: b.Services.URL, TLS: b.Services.With(services.issue(t, "kenneld")),
		MinBackoff: 10 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	defer func() { cancel(); <-done }()
	testwait.Until(t, testwait.Long, "ready", func() error { return a.Ready(t.Context()) })
	if err := a.Provision(t.Context(), me); err != nil {
		t.Fatal(err)
	}
	for name, cert := range map[string]tls.Certificate{"good": good, "not yet revoked": bad} {
		if err := verdict(t, b.Things, cert, own); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	devices.revoke(t, b.Config.DeviceCRL, bad.Leaf.SerialNumber)
	b.Reload(t)
	for deadline := time.Now().Add(15 * time.Second); ; { // how fast it reads its files is not told
		d, refused := errors.AsType[*mqtt.DownError](verdict(t, b.Things, bad, own))
		if refused && d.Step == "login" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a revoked certificate is let in: %v", d)
		}
	}
	if err := verdict(t, b.Things, good, own); err != nil {
		t.Errorf("good, after the other was revoked: %v", err)
	}
}

func TestAnchorSaysWhatIsWrong(t *testing.T) {
	a, b := newAuthority(t, "A", nil), newAuthority(t, "B", nil)
	if _, err := mosquitto.Anchor(a.cert, b.key); err == nil || !strings.Contains(err.Error(), "CN=A") {
		t.Errorf("a key of another: %v", err)
	}
	if _, err := mosquitto.Anchor(a.issue(t, "leaf").Leaf, a.key); err == nil || !strings.Contains(err.Error(), "CN=leaf") {
		t.Errorf("a leaf: %v", err)
	}
}
