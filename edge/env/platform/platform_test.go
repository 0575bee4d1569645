package platform

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/env/envtest"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/thing"
)

func newRoot(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	for name, body := range files {
		if err := robotfs.WriteFile(root, name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestLoadEndpoints is VEC-CLD-01 and VEC-CLD-04: comments are fine, mistakes are named.
func TestLoadEndpoints(t *testing.T) {
	ok := `{ // ours
 "appkey": "k", "kennel": {"api": "https://localhost:8443", "mqtt": "ssl://localhost:8883"}, "unknown": 1 }`
	e, err := LoadEndpoints(newRoot(t, map[string]string{ServerConfigFile: ok}), envtest.Hardware{})
	if err != nil || e.AppKey != "k" || e.Kennel.MQTT != "ssl://localhost:8883" {
		t.Errorf("got %+v, %v", e, err)
	}
	for body, want := range map[string]string{
		``:   "line 1",
		`{}`: "kennel.api",
		`{"kennel":{"api":"http://x","mqtt":"ssl://x:1"}}`: "https://host:port",
		`{"kennel":{"api":"https://x","mqtt":"ssl://x"}}`:  "port is missing",
	} {
		if _, err := LoadEndpoints(newRoot(t, map[string]string{ServerConfigFile: body}), envtest.Hardware{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want one with %q", body, err, want)
		}
	}
	if _, err := LoadEndpoints(newRoot(t, nil), envtest.Hardware{}); err == nil || !strings.Contains(err.Error(), "server_config.json") {
		t.Errorf("missing file: %v", err)
	}
}

func TestIdentity(t *testing.T) {
	root := newRoot(t, map[string]string{OSVersionFile: "2.0.0.6074\n"})
	id, err := ID(root, envtest.Hardware{ESN: "00e20100"})
	if err != nil || id != "vic:00e20100" {
		t.Errorf("ID = %q, %v", id, err)
	}
	if got := OSVersion(root); got != "2.0.0.6074" {
		t.Errorf("OSVersion = %q", got)
	}
	a, err := BootID(root)
	if err != nil || len(a) != 36 {
		t.Fatalf("BootID = %q, %v", a, err)
	}
	if b, _ := BootID(root); b != a {
		t.Errorf("boot id changed within one boot: %s, %s", a, b)
	}
	if _, err := ID(newRoot(t, nil), envtest.Hardware{}); faultcode.Of(err) != faultcode.CloudESN {
		t.Errorf("a robot without a record: %v, want fault 852", err)
	}
}

// TestFactory is VEC-STOR-09 and VEC-TOK-08: none, a good one, another robot's and a damaged one.
func TestFactory(t *testing.T) {
	const me = thing.ID("vic:00e20100")
	root := newRoot(t, nil)
	if _, found, err := Factory(root, me); found || err != nil {
		t.Errorf("none: %v, %v", found, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2117, 1, 1, 0, 0, 0, 0, time.UTC),
		Subject: pkix.Name{CommonName: string(me), Organization: []string{"Anki Inc."}}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if err := devicecert.WriteFactory(root, leaf, key, nil); err != nil {
		t.Fatal(err)
	}
	if f, found, err := Factory(root, me); !found || err != nil || f.Thing() != me {
		t.Errorf("good: %v, %v", found, err)
	}
	if _, _, err := Factory(root, "vic:00e20999"); faultcode.Of(err) != faultcode.CloudCertificate || !strings.Contains(err.Error(), "vic:00e20999") {
		t.Errorf("another robot's: %v", err)
	}
	if err := root.Remove("factory/cloud/AnkiRobotDeviceKeys.pem"); err != nil {
		t.Fatal(err)
	}
	if _, found, err := Factory(root, me); !found || faultcode.Of(err) != faultcode.CloudCertificate {
		t.Errorf("keys gone: %v, %v", found, err)
	}
}
