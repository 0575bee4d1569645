package pemfile

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"
)

func TestWriteIsWholeOrAbsent(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(root, "a/b.key"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("read of a missing file: %v", err)
	}
	for _, want := range []string{"one", "two"} {
		if err := Write(root, "a/b.key", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(root, "a/b.key")
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	fi, err := root.Stat("a/b.key")
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", fi.Mode(), err)
	}
	if err := Write(root, "../out", nil, 0o600); err == nil {
		t.Error("wrote outside the root")
	}
	if err := root.WriteFile("big", make([]byte, MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(root, "big"); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("oversize file: %v", err)
	}
}

func pair(t testing.TB) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, c
}

func TestKeyAndChainRoundTrip(t *testing.T) {
	key, c := pair(t)
	b, err := EncodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseKey(b)
	if err != nil || !key.Equal(got) {
		t.Errorf("key came back different: %v", err)
	}
	chain, err := ParseChain(EncodeChain(c, c))
	if err != nil || len(chain) != 2 || !chain[0].Equal(c) {
		t.Errorf("chain came back as %d certificates, %v", len(chain), err)
	}
	if !SameKey(key, c.PublicKey) {
		t.Error("own key not recognised")
	}
	other, _ := pair(t)
	if SameKey(other, c.PublicKey) {
		t.Error("another key taken for this one")
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "text": []byte("hello"), "a certificate": EncodeChain(c), "cut": b[:len(b)/2],
		"damaged": bytes.Replace(b, []byte("M"), []byte("Q"), 5),
	} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("key from %s accepted", name)
		}
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "a key": b, "17 certificates": bytes.Repeat(EncodeChain(c), 17),
	} {
		if _, err := ParseChain(bad); err == nil {
			t.Errorf("chain from %s accepted", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	key, c := pair(f)
	b, err := EncodeKey(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(EncodeChain(c, c))
	f.Fuzz(func(t *testing.T, in []byte) {
		if chain, err := ParseChain(in); err == nil {
			again, err := ParseChain(EncodeChain(chain...))
			if err != nil || len(again) != len(chain) {
				t.Fatalf("%d certificates came back as %d: %v", len(chain), len(again), err)
			}
		}
		if k, err := ParseKey(in); err == nil {
			enc, err := EncodeKey(k)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := ParseKey(enc); err != nil || !SameKey(again, k.Public()) {
				t.Fatalf("key came back different: %v", err)
			}
		}
	})
}
