package devicecert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"
)

func tempRoot(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// factoryLeaf makes a self-signed factory certificate; the original's were signed per batch.
func factoryLeaf(t testing.TB, change func(*x509.Certificate)) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Date(2117, 1, 1, 0, 0, 0, 0, time.UTC),
		Subject: pkix.Name{CommonName: "vic:00e20100", Organization: []string{"Anki Inc."}}}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return leaf, key
}

func TestFactoryRoundTrip(t *testing.T) {
	root := tempRoot(t)
	if _, err := ReadFactory(root); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrFactory) {
		t.Errorf("no identity: %v", err)
	}
	leaf, key := factoryLeaf(t, nil)
	if err := WriteFactory(root, leaf, key, []byte("signed")); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFactory(root)
	if err != nil {
		t.Fatal(err)
	}
	if f.Thing() != "vic:00e20100" || !f.Certificate.Leaf.Equal(leaf) || !key.Equal(f.Certificate.PrivateKey) || f.Info.CertSignature != "c2lnbmVk" {
		t.Errorf("came back as %+v", f.Info)
	}
	if fi, err := root.Stat("factory/cloud/00e20100"); err != nil || fi.Size() != 0 {
		t.Errorf("presence marker: %v, %v", fi, err)
	}
}

// A file that stops an original robot with fault 850 is refused here too, with a reason (VEC-TOK-02).
func TestFactoryIsChecked(t *testing.T) {
	for name, change := range map[string]func(*x509.Certificate){
		"no O":          func(c *x509.Certificate) { c.Subject.Organization = nil },
		"two O":         func(c *x509.Certificate) { c.Subject.Organization = []string{"Anki Inc.", "Anki Inc."} },
		"another O":     func(c *x509.Certificate) { c.Subject.Organization = []string{"Anki"} },
		"CN upper case": func(c *x509.Certificate) { c.Subject.CommonName = "vic:00E20100" },
		"CN of a Pleo":  func(c *x509.Certificate) { c.Subject.CommonName = "pleo:00e20100" },
		"CN with path":  func(c *x509.Certificate) { c.Subject.CommonName = "vic:../../x" },
		"ends too soon": func(c *x509.Certificate) { c.NotAfter = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		leaf, key := factoryLeaf(t, change)
		if err := WriteFactory(tempRoot(t), leaf, key, nil); !errors.Is(err, ErrFactory) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDamagedFactoryFilesAreNamed(t *testing.T) {
	leaf, key := factoryLeaf(t, nil)
	otherLeaf, otherKey := factoryLeaf(t, nil)
	other := tempRoot(t)
	if err := WriteFactory(other, otherLeaf, otherKey, nil); err != nil {
		t.Fatal(err)
	}
	copyFrom := func(name string) func(*os.Root) error {
		return func(r *os.Root) error {
			b, err := other.ReadFile(name)
			if err != nil {
				return err
			}
			return r.WriteFile(name, b, 0o600)
		}
	}
	for name, c := range map[string]struct {
		damage func(*os.Root) error
		want   string
	}{
		"keys gone":       {func(r *os.Root) error { return r.Remove("factory/cloud/" + factoryKeys) }, factoryKeys + " is missing"},
		"keys of another": {copyFrom("factory/cloud/" + factoryKeys), "not the key of the certificate"},
		"info gone":       {func(r *os.Root) error { return r.Remove("factory/cloud/Info00e20100.json") }, "Info00e20100.json is missing"},
		"info of another": {copyFrom("factory/cloud/Info00e20100.json"), "CertDigest"},
		"info is text":    {func(r *os.Root) error { return r.WriteFile("factory/cloud/Info00e20100.json", []byte("x"), 0o600) }, "Info00e20100.json"},
		"cert is text":    {func(r *os.Root) error { return r.WriteFile("factory/cloud/"+factoryCert, []byte("x"), 0o600) }, factoryCert},
	} {
		root := tempRoot(t)
		if err := WriteFactory(root, leaf, key, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.damage(root); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFactory(root); !errors.Is(err, ErrFactory) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func FuzzParseFactoryInfo(f *testing.F) {
	f.Add([]byte(`{"CertDigest":"","CertSignature":"YQ==","CertSignatureAlgorithm":"sha256WithRSAEncryption","CommonName":"vic:00e20100","KeysDigest":""}`))
	f.Add([]byte(`{"CommonName":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := ParseFactoryInfo(b)
		if err == nil && (i.CommonName == "" || i.CertSignatureAlgorithm != factoryAlgorithm) {
			t.Fatalf("accepted %+v", i)
		}
	})
}
