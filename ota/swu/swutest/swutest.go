// Package swutest makes files of SWUpdate for tests.
package swutest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Pack returns a cpio archive in the form "crc" of files, each a name and its content.
func Pack(files ...string) []byte {
	var out bytes.Buffer
	for i := 0; i < len(files); i += 2 {
		add(&out, i+1, files[i], files[i+1])
	}
	add(&out, 0, "TRAILER!!!", "")
	out.Write(make([]byte, -out.Len()&511))
	return out.Bytes()
}

func add(out *bytes.Buffer, inode int, name, data string) {
	var sum uint32
	for _, b := range []byte(data) {
		sum += uint32(b)
	}
	out.WriteString("070702")
	for _, v := range []uint32{uint32(inode), 0o100644, 0, 0, 1, 0, uint32(len(data)), 0, 0, 0, 0, uint32(len(name) + 1), sum} {
		fmt.Fprintf(out, "%08X", v)
	}
	out.WriteString(name + "\x00")
	out.Write(make([]byte, -out.Len()&3))
	out.WriteString(data)
	out.Write(make([]byte, -out.Len()&3))
}

// Signer signs files for the devices that have its certificate.
type Signer struct{ dir string }

// NewSigner makes a key with openssl.
func NewSigner(t testing.TB) Signer {
	t.Helper()
	s := Signer{t.TempDir()}
	s.openssl(t, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "30", "-subj", "/CN=signer",
		"-addext", "extendedKeyUsage=emailProtection", "-addext", "keyUsage=digitalSignature")
	return s
}

// Certificate returns the name of the file that devices trust.
func (s Signer) Certificate() string { return filepath.Join(s.dir, "cert.pem") }

func (s Signer) openssl(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "openssl", args...)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("openssl %s: %v\n%s", args[0], err, out)
	}
}

// Script returns a signed file whose installation runs a shell script, for the hardware kennel 1.0. extra is data beside it, which is not installed.
func (s Signer) Script(t testing.TB, version, script string, extra []byte) []byte {
	t.Helper()
	description := fmt.Sprintf(`software = { version = %q; hardware-compatibility: [ "1.0" ];
	scripts: ( { filename = "install.sh"; type = "shellscript"; sha256 = "%x"; } ); }
`, version, sha256.Sum256([]byte(script)))
	Write(t, filepath.Join(s.dir, "sw-description"), []byte(description))
	s.openssl(t, "cms", "-sign", "-in", "sw-description", "-out", "sw-description.sig", "-signer", "cert.pem", "-inkey", "key.pem", "-outform", "DER", "-nosmimecap", "-binary")
	signature, err := os.ReadFile(filepath.Join(s.dir, "sw-description.sig"))
	if err != nil {
		t.Fatal(err)
	}
	pack := func(extra string) []byte {
		return Pack("sw-description", description, "sw-description.sig", string(signature), "install.sh", script, "extra", extra)
	}
	// SWUpdate 2022.12 may close its end before the zeros at the end have come, and then refuses what it has installed: here is none of them.
	n := len(bytes.TrimRight(pack(string(extra)+"x"), "\x00"))
	return pack(string(extra) + strings.Repeat("x", 1+-(n+len("\x00\x00\x00\x00"))&511))
}

// Write writes a file.
func Write(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
