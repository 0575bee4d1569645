package secretbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kennel/infra/secretbox"
)

func TestSealOpens(t *testing.T) {
	k := secretbox.New()
	again, err := secretbox.Parse(k.Text())
	if err != nil {
		t.Fatal(err)
	}
	plain, about := []byte("a private key"), []byte("key 7")
	sealed := k.For("token/key").Seal(plain, about)
	if got, err := again.For("token/key").Open(sealed, about); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("open: %q %v", got, err)
	}
	if bytes.Contains(sealed, plain) || bytes.Equal(sealed, k.For("token/key").Seal(plain, about)) {
		t.Error("sealed value shows its content, or is the same twice")
	}
	for name, open := range map[string]func() ([]byte, error){
		"another purpose": func() ([]byte, error) { return k.For("sts/grant").Open(sealed, about) },
		"about another":   func() ([]byte, error) { return k.For("token/key").Open(sealed, []byte("key 8")) },
		"another key":     func() ([]byte, error) { return secretbox.New().For("token/key").Open(sealed, about) },
		"cut":             func() ([]byte, error) { return k.For("token/key").Open(sealed[:5], about) },
		"empty":           func() ([]byte, error) { return k.For("token/key").Open(nil, about) },
	} {
		if _, err := open(); !errors.Is(err, secretbox.ErrOpen) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := k.For("token/key").Open(bad, about); !errors.Is(err, secretbox.ErrOpen) {
			t.Fatalf("bit in byte %d changed: %v", i, err)
		}
	}
	if bytes.Equal(k.Secret("a"), k.Secret("b")) || !bytes.Equal(k.Secret("a"), again.Secret("a")) {
		t.Error("secrets do not follow their labels")
	}
}

func TestKeyHidesItself(t *testing.T) {
	k := secretbox.New()
	if s := fmt.Sprintf("%v %+v %#v %s", k, k, k, k); strings.Contains(s, strings.TrimSpace(k.Text())) || s != strings.TrimSpace(strings.Repeat("[secret] ", 4)) {
		t.Error(s)
	}
}

// Processes that start together end with one key.
func TestInitOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seal.key")
	keys := make([]secretbox.Key, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			k, err := secretbox.Init(file)
			if err != nil {
				t.Error(err)
			}
			keys[i] = k
		})
	}
	wg.Wait()
	for _, k := range keys[1:] {
		if k != keys[0] {
			t.Error("two keys")
		}
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestDamagedFileIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seal.key")
	if _, err := secretbox.Load(file); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, text := range []string{"", "c2hvcnQ=", strings.Repeat("!", 44), secretbox.New().Text() + "x"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := secretbox.Init(file); err == nil || !strings.Contains(err.Error(), "seal.key") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(secretbox.New().Text())
	f.Fuzz(func(t *testing.T, text string) {
		k, err := secretbox.Parse(text)
		if err != nil {
			return
		}
		if again, err := secretbox.Parse(k.Text()); err != nil || again != k {
			t.Fatalf("%v", err)
		}
	})
}
