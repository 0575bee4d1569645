package archive

import (
	"bytes"
	"encoding/hex"
	"io"
	"testing"
)

// TestVector: key derivation and encryption are those of openssl enc with -md md5 (VEC-OTA-07).
func TestVector(t *testing.T) {
	sealed, err := hex.DecodeString("45d79b4035e5f910bb664af51a")
	if err != nil {
		t.Fatal(err)
	}
	r, err := decrypter(bytes.NewReader(sealed), []byte("This is a password"), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "hello vector\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPassword(t *testing.T) {
	for in, want := range map[string]string{"secret": "secret", "secret\n": "secret", "se cret \r\nmore\n": "se cret \r", "": "", "\nsecret": "",
		string(bytes.Repeat([]byte("x"), 1024)): ""} {
		if got, err := Password([]byte(in)); string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%.20q: %q, %v", in, got, err)
		}
	}
}
