package sim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/body/vector/factory"
	"kennel/edge/env/platform"
	"kennel/infra/thing"
)

func TestMake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "robot")
	b := Birth{Thing: thing.MustParse("vic:00e20100"), Secret: "s", RootPEM: testRoot(t), OSVersion: "2.0.0.6074"}
	b.Endpoints.Kennel.API, b.Endpoints.Kennel.MQTT = "https://localhost:1", "ssl://localhost:2"
	if err := Make(dir, b); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if id, err := platform.ID(root, factory.Hardware{}); err != nil || id != b.Thing {
		t.Errorf("ID = %q, %v", id, err)
	}
	// Again, elsewhere: the cloud moved, the secret of its birth stays.
	again := b
	again.Secret = "other"
	again.Endpoints.Kennel.MQTT = "ssl://localhost:3"
	if err := Make(dir, again); err != nil {
		t.Fatal(err)
	}
	e, err := platform.LoadEndpoints(root, factory.Hardware{})
	if err != nil || e.Kennel.MQTT != "ssl://localhost:3" {
		t.Errorf("endpoints %+v, %v", e, err)
	}
	claim, err := os.ReadFile(filepath.Join(dir, devicecert.ClaimFile))
	if err != nil || !strings.Contains(string(claim), `"s"`) {
		t.Errorf("claim %s, %v", claim, err)
	}
	if fi, _ := os.Stat(filepath.Join(dir, devicecert.ClaimFile)); fi.Mode().Perm() != 0o600 {
		t.Errorf("claim mode %v", fi.Mode())
	}
	b.Thing = "vic:00e20101"
	if err := Make(dir, b); err == nil || !strings.Contains(err.Error(), "vic:00e20100") {
		t.Errorf("another robot's folder: %v", err)
	}
	b.Thing = "vic:nothex"
	if err := Make(t.TempDir(), b); err == nil {
		t.Error("a serial that is not hex was accepted")
	}
}

// testRoot makes a root certificate to trust.
func testRoot(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
