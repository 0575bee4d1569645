package manifest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"kennel/ota"
)

const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// public is the form of a manifest that public servers give out (peer-facts.md section 5).
const public = `[META]
manifest_version=0.9.2
update_version=2.0.0.6074
ankidev=0
num_images=2
reboot_after_install=0
[BOOT]
encryption=1
delta=0
compression=gz
wbits=31
bytes=12869632
sha256=` + sum + `
[SYSTEM]
encryption=1
delta=0
compression=gz
wbits=31
bytes=608743424
sha256=` + sum + "\n"

const delta = "; a delta\r\n[META]\r\nManifest_Version: 1.0.0\r\nupdate_version = 2.0.0.6074ud\r\nnum_images=1\r\nqsn=00e20100\r\nankidev=1\r\nunknown=1\r\n" +
	"[DELTA]\r\nbase_version=1.8.0.6051ud\r\nbytes=7\r\ncompression=gz\r\nsha256=" + sum + "\r\n"

const factory = "[META]\nmanifest_version=0.9.5\nupdate_version=0.9.0.1\nnum_images=3\nreboot_after_install=1\n" +
	"[RECOVERYFS]\nbytes=3\ncompression=gz\nsha256=" + sum + "\n[ABOOT]\nbytes=1\ncompression=gz\nsha256=" + sum +
	"\n[RECOVERY]\nbytes=2\ncompression=gz\nencryption=0\nsha256=" + sum + "\n"

func hash(t *testing.T) (s Sum) {
	if err := s.UnmarshalText([]byte(sum)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestParse: each kind, as others write it (VEC-OTA-02 to 04).
func TestParse(t *testing.T) {
	h := hash(t)
	for text, want := range map[string]struct {
		Manifest
		kind Kind
	}{
		public: {Manifest{Format: "0.9.2", Version: "2.0.0.6074", Images: []Image{
			{Part: Boot, Bytes: 12869632, SHA256: h, Encrypted: true}, {Part: System, Bytes: 608743424, SHA256: h, Encrypted: true}}}, Production},
		delta: {Manifest{Format: "1.0.0", Version: "2.0.0.6074ud", Dev: true, QSN: "00e20100", Images: []Image{
			{Part: Changes, Bytes: 7, SHA256: h, Base: "1.8.0.6051ud"}}}, Delta},
		factory: {Manifest{Format: "0.9.5", Version: "0.9.0.1", Reboot: true, Images: []Image{
			{Part: ABoot, Bytes: 1, SHA256: h}, {Part: Recovery, Bytes: 2, SHA256: h}, {Part: RecoveryFS, Bytes: 3, SHA256: h}}}, Factory},
	} {
		got, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", want.kind, err)
		} else if !reflect.DeepEqual(*got, want.Manifest) || got.Kind() != want.kind {
			t.Errorf("%s: %+v, want %+v", got.Kind(), *got, want)
		}
	}
}

// TestParseRefuses: each refusal has its code, the line and what was expected.
func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct {
		in, old, now string
		code         ota.Code
		want         string
	}{
		{public, "0.9.2", "0.9.1", 201, `line 2: manifest_version="0.9.1" in [META]: want one of 0.9.2, 0.9.3`},
		{public, "update_version=2.0.0.6074", "update_version=2.0", 216, `line 3: update_version="2.0" in [META]: want four numbers`},
		{public, "update_version=2.0.0.6074\n", "", 216, `line 1: [META] has no update_version: want four`},
		{public, "ankidev=0", "ankidev=2", 201, "line 4: ankidev=\"2\" in [META]: want a number from 0 to 1"},
		{public, "num_images=2", "num_images=3", 201, "line 5: num_images=\"3\" in [META]: want 2, the number of image sections"},
		{public, "num_images=2", "num_images=02", 201, "line 5"},
		{public, "num_images=2", "num_images=4", 201, "from 1 to 3"},
		{public, "num_images=2\n", "", 201, "[META] has no num_images"},
		{public, "reboot_after_install=0", "reboot_after_install=yes", 201, "line 6"},
		{delta, "qsn=00e20100", "qsn=../etc", 201, "line 6: qsn"},
		{public, "[META]", "[META", 201, `line 1: "[META": want a section`},
		{public, "[META]\n", "", 201, "line 1: \"manifest_version=0.9.2\": want a section before"},
		{public, "META", "MATE", 201, "no section [META]"},
		{public, "[SYSTEM]", "[BOOT]", 201, "line 14: \"[BOOT]\": want each section once; it also starts in line 7"},
		{public, "[SYSTEM]", "[RECOVERY]", 201, `image sections ["BOOT" "RECOVERY"]: want DELTA`},
		{public, "[SYSTEM]", "[X]\n[SYSTEM]", 201, "image sections"},
		{factory, "[RECOVERYFS]", "[SYSTEM]", 201, "image sections"},
		{public, "encryption=1", "encryption=2", 210, "line 8: encryption=\"2\" in [BOOT]: want 0 or 1"},
		{public, "encryption=1", "encryption=", 210, "line 8"},
		{public, "delta=0", "delta=1", 201, "line 9"},
		{public, "compression=gz", "compression=xz", 205, "line 10: compression=\"xz\" in [BOOT]: want gz"},
		{factory, "compression=gz\n", "", 205, "[RECOVERYFS] has no compression: want gz"},
		{public, "wbits=31", "wbits=x", 201, "line 11"},
		{public, "bytes=12869632", "bytes=0", 201, "line 12: bytes=\"0\" in [BOOT]: want a number from 1 to 8589934592"},
		{public, "bytes=12869632", "bytes=8589934593", 201, "line 12"},
		{public, "sha256=9", "sha256=", 201, "line 13: sha256"},
		{public, "sha256=9", "sha256=99", 201, "want 64 hexadecimal digits"},
		{public, "sha256=9", "sha256=x", 201, "line 13"},
		{public, "wbits=31", " wbits=31", 201, `line 11: "wbits=31": want [SECTION], key=value or a comment, starting in the first column`},
		{public, "wbits=31", "Delta=0", 201, `line 11: "Delta=0": want each key once in a section; it is also in line 9`},
		{public, "wbits=31", "31", 201, "line 11"},
		{delta, "base_version=1.8.0.6051ud\r\n", "", 201, "[DELTA] has no base_version: want four numbers"},
		{public, "[META]", strings.Repeat("#", MaxSize), 201, "at most 16384"},
		{"", "", "", 201, "no section [META]"},
		{public, "[META]", "\x00[META]", 201, "line 1"},
	} {
		if !strings.Contains(tt.in, tt.old) {
			t.Fatalf("no %q", tt.old)
		}
		text := strings.Replace(tt.in, tt.old, tt.now, 1)
		if _, err := Parse([]byte(text)); ota.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q for %q: %v; want %d, %s", tt.now, tt.old, err, tt.code, tt.want)
		}
	}
}

// TestEncode: a manifest that could not be read is not written.
func TestEncode(t *testing.T) {
	m, err := Parse([]byte(public))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := m.Encode(); err != nil || strings.ReplaceAll(string(b), "\n\n", "\n") != public {
		t.Errorf("%s\n%v", b, err)
	}
	m.Version = "2"
	if _, err := m.Encode(); ota.CodeOf(err) != ota.WrongVersion {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(public))
	f.Add([]byte(delta))
	f.Add([]byte(factory))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			if c := ota.CodeOf(err); c != 201 && c != 205 && c != 210 && c != 216 {
				t.Fatalf("code %d: %v", c, err)
			}
			return
		}
		if m.Kind() == "" {
			t.Fatalf("no kind: %+v", m)
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if m2, err := Parse(again); err != nil || !reflect.DeepEqual(m, m2) {
			t.Fatalf("%+v\n%+v, %v", m, m2, err)
		}
	})
}

// TestSign: signatures are those of openssl, in both directions (VEC-OTA-05).
func TestSign(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	openssl := func(args ...string) []byte {
		out, err := exec.Command("openssl", args...).Output()
		if err != nil {
			t.Fatalf("openssl %q: %v\n%s", args, err, out)
		}
		return out
	}
	private := write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	ini := write("manifest.ini", []byte(public))
	theirs := openssl("dgst", "-sha256", "-sign", private, ini)
	ours, err := Sign(key, []byte(public))
	if err != nil || !bytes.Equal(ours, theirs) {
		t.Errorf("our signature and that of openssl differ: %v", err)
	}
	for _, args := range [][]string{{"rsa", "-in", private, "-pubout"}, {"rsa", "-in", private, "-RSAPublicKey_out"}} {
		text := openssl(args...)
		pub, err := ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(pub, []byte(public), theirs); err != nil {
			t.Error(err)
		}
		if err := Verify(pub, []byte(public+"\n"), theirs); ota.CodeOf(err) != ota.NotAuthentic {
			t.Errorf("another manifest: %v", err)
		}
	}
	out := openssl("dgst", "-sha256", "-verify", write("ota.pub", openssl("rsa", "-in", private, "-pubout")), "-signature", write("manifest.sha256", ours), ini)
	if !strings.Contains(string(out), "Verified OK") {
		t.Errorf("%s", out)
	}

	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(elliptical, nil); err == nil || !strings.Contains(err.Error(), "want an RSA key") {
		t.Error(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&elliptical.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{nil, []byte("x"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY"}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})} {
		if _, err := ParseKey(text); err == nil {
			t.Errorf("%.30q is a key", text)
		}
	}
}
