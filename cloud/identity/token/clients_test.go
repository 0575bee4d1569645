package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/infra/logging"
)

// TestClientTokenHash is VEC-AUTH-07: base64(SHA-256(token, salt), salt). The vector comes from Python's hashlib.
func TestClientTokenHash(t *testing.T) {
	var token [16]byte
	var salt [16]byte
	for i := range token {
		token[i], salt[i] = byte(i), byte(0xf0+i)
	}
	const want = "+dyJPsZ9O2jWQgN7hWvia4TIyQ3au0Lk6rYfuymTuL/w8fLz9PX29/j5+vv8/f7/"
	if got := hashClientToken(token, salt); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	secret, hash := newClientToken()
	raw, err := base64.StdEncoding.DecodeString(secret.Reveal())
	if err != nil || len(raw) != 16 || len(hash) != 64 {
		t.Errorf("token of %d bytes, hash of %d characters, %v", len(raw), len(hash), err)
	}
	if again, other := newClientToken(); again == secret || other == hash {
		t.Error("two alike")
	}
	if s := fmt.Sprintf("%v %+v %#v %s", secret, secret, secret, secret); strings.Contains(s, secret.Reveal()) {
		t.Error(s)
	}
}

// TestDocumentKeepsWhatItDoesNotKnow: a newer robot's fields survive.
func TestDocumentKeepsWhatItDoesNotKnow(t *testing.T) {
	const text = `{"client_tokens":[{"hash":"h1","client_name":"a","app_id":"b","issued_at":"c","is_primary":false,"more":[1]},5],"version":{"x":1}}`
	doc, ok := parseAppTokens(text)
	if !ok || len(doc.entries) != 2 {
		t.Fatalf("%+v %v", doc, ok)
	}
	if e, ok := read(doc.entries[0]); !ok || !reflect.DeepEqual(e, entry{Hash: "h1", Name: "a", AppID: "b", IssuedAt: "c"}) {
		t.Errorf("entry %+v %v", e, ok)
	}
	if _, ok := read(doc.entries[1]); ok {
		t.Error("5 is an entry")
	}
	out, err := doc.text()
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if json.Unmarshal([]byte(out), &got) != nil || json.Unmarshal([]byte(text), &want) != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s became %s", text, out)
	}
	for _, bad := range []string{`[]`, `5`, `null`, `{"client_tokens":5}`, `{`} {
		if doc, ok := parseAppTokens(bad); ok || doc.rest == nil || len(doc.entries) > 0 {
			t.Errorf("%s: %+v %v", bad, doc, ok)
		}
	}
	empty, ok := parseAppTokens("")
	if out, err := empty.text(); !ok || err != nil || out != `{"client_tokens":[]}` {
		t.Errorf("%s %v %v", out, ok, err)
	}
}

func FuzzParseAppTokens(f *testing.F) {
	f.Add(`{"client_tokens":[{"hash":"x","client_name":"y","app_id":"SDK","issued_at":"2026-01-02T03:04:05Z"}],"z":1}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, text string) {
		doc, ok := parseAppTokens(text)
		out, err := doc.text()
		if err != nil {
			t.Fatal(err)
		}
		again, ok2 := parseAppTokens(out)
		if !ok2 || ok && len(again.entries) != len(doc.entries) {
			t.Fatalf("%q became %q", text, out)
		}
		for i := range doc.entries {
			a, _ := read(doc.entries[i])
			b, _ := read(again.entries[i])
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("entry %d: %+v, then %+v", i, a, b)
			}
		}
	})
}

func TestAppKeys(t *testing.T) {
	keys, err := ParseAppKeys("\n# a comment\n one \r\ntwo\n")
	if err != nil || keys.Len() != 2 {
		t.Fatalf("%d keys, %v", keys.Len(), err)
	}
	for key, want := range map[logging.Secret]bool{"one": true, "two": true, "": false, "on": false, "one ": false, "# a comment": false} {
		if keys.Has(key) != want {
			t.Errorf("%q: %v", key.Reveal(), !want)
		}
	}
	if (AppKeys{}).Has("") {
		t.Error("no key is a key")
	}
	for name, text := range map[string]string{"blank": "good\nSECRET SECRET", "long": strings.Repeat("S", 257), "many": strings.Repeat("k\n", 1001), "no text": "\xff"} {
		if _, err := ParseAppKeys(text); err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "appkeys")
	if _, err := LoadAppKeys(file); err == nil {
		t.Error("no file, no error")
	}
	if err := os.WriteFile(file, []byte("a b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadAppKeys(file); err == nil || !strings.Contains(err.Error(), "appkeys") {
		t.Errorf("%v", err)
	}
}

func FuzzParseAppKeys(f *testing.F) {
	f.Add("one\n# two\n three ")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseAppKeys(text)
		if err != nil {
			return
		}
		n := 0
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				n++
				if !keys.Has(logging.Secret(line)) {
					t.Fatalf("%q is not among the keys of %q", line, text)
				}
			}
		}
		if n != keys.Len() {
			t.Fatalf("%d keys of %q, want %d", keys.Len(), text, n)
		}
	})
}

func FuzzSessionCertificate(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		cert, err := sessionCertificate(b)
		if err != nil || len(b) == 0 {
			if cert != nil {
				t.Fatal("a certificate and an error")
			}
			return
		}
		if again, err := sessionCertificate(cert); err != nil || !bytes.Equal(again, cert) {
			t.Fatalf("%q became %q, %v", cert, again, err)
		}
	})
}

func TestHeard(t *testing.T) {
	var h heard
	now := time.Now()
	for i, want := range []bool{false, true, true} {
		if got := h.skip("a", time.Hour, now); got != want {
			t.Errorf("time %d: skip %v", i, got)
		}
	}
	if h.skip("b", time.Hour, now) || h.skip("a", time.Hour, now.Add(2*time.Hour)) {
		t.Error("skipped what was not heard of lately")
	}
	h.forget("a")
	if h.skip("a", time.Hour, now.Add(2*time.Hour)) {
		t.Error("skipped after a refusal")
	}
	for i := range heardMax + 10 {
		h.skip(fmt.Sprint(i), time.Hour, now)
	}
	if len(h.last) > heardMax {
		t.Errorf("%d remembered", len(h.last))
	}
}
