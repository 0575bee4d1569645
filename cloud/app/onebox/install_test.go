package onebox

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/infra/cli"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
)

func TestInstall(t *testing.T) {
	in := Install{Dir: filepath.Join(t.TempDir(), "state"), Names: []string{"kennel.example"}}
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(in.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	run := func() {
		t.Helper()
		if err := in.Run(); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if read("postgres/kennel-password") != read("kenneld/postgres-password") || read("s3/secret-key") != read("kenneld/s3-secret-key") {
		t.Error("two parts have different copies of a secret")
	}
	if read("postgres/superuser-password") == read("postgres/kennel-password") {
		t.Error("the superuser has kenneld's password")
	}
	if _, err := ca.Load(filepath.Join(in.Dir, "kenneld/ca")); err != nil {
		t.Errorf("kenneld's copy of the authorities: %v", err)
	}
	for _, part := range installParts {
		err := filepath.WalkDir(filepath.Join(in.Dir, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.Name() == "root.key" {
				t.Errorf("%s: the root's key is with a running part", path)
			}
			if fi, err := d.Info(); err != nil || fi.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: mode %v (%v); want it closed to others", path, fi.Mode(), err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}

	// Again: nothing changes, also without the root's key. Another name: new certificates, the same secrets. A lost key: a new pair.
	if err := os.Remove(filepath.Join(in.Dir, "ca/root.key")); err != nil {
		t.Fatal(err)
	}
	crt, secret, anchor := read("broker/server.crt"), read("s3/secret-key"), read("broker/device-anchor.crt")
	run()
	if read("broker/server.crt") != crt || read("broker/device-anchor.crt") != anchor || read("s3/secret-key") != secret {
		t.Error("a second run changed what was good")
	}
	in.Names = append(in.Names, "other.example")
	run()
	if read("broker/server.crt") == crt || read("s3/secret-key") != secret {
		t.Error("a new name: want a new certificate and the same secrets")
	}
	installSecurity(t, in)
	installLists(t, in)
	if err := os.Remove(filepath.Join(in.Dir, "postgres/server.key")); err != nil {
		t.Fatal(err)
	}
	run()
	if _, err := (ca.Pair{Chain: []byte(read("postgres/server.crt")), Key: []byte(read("postgres/server.key"))}).TLS(); err != nil {
		t.Errorf("after the loss of a key: %v", err)
	}
}

// installLists: kenneld owns the list of revoked robots once it has written it; an unreadable one is written again, and is older than
// any list that kenneld writes next.
func installLists(t *testing.T, in Install) {
	t.Helper()
	file := filepath.Join(in.Dir, "lists/device.crl")
	read := func() *x509.RevocationList {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(b)
		if block == nil {
			t.Fatalf("%.60q is no list", b)
		}
		l, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	authority, err := ca.Load(filepath.Join(in.Dir, "kenneld/ca"))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := authority.DeviceCRLs([]certs.Revocation{{Serial: "ab12", NotAfter: time.Now().Add(time.Hour), At: time.Now()}}, 7, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	now, err := x509.ParseRevocationList(lists[0].DER)
	if err != nil {
		t.Fatal(err)
	}
	if seed := read(); len(seed.RevokedCertificateEntries) > 0 || seed.Number.Sign() != 0 || !seed.ThisUpdate.Before(now.ThisUpdate) || seed.NextUpdate.Before(time.Now()) {
		t.Errorf("the first list has number %v, names %v and is of %v to %v", seed.Number, seed.RevokedCertificateEntries, seed.ThisUpdate, seed.NextUpdate)
	}
	for content, want := range map[string]int64{string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: lists[0].DER})): 7, "": 0, "-----BEGIN X509 CRL-----": 0} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := in.Run(); err != nil {
			t.Fatal(err)
		}
		if got := read().Number.Int64(); got != want {
			t.Errorf("%.40q became list %d, want %d", content, got, want)
		}
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v: want a list that the broker's account can read", fi.Mode(), err)
	}
}

// installSecurity: Mosquitto's access rules stay as the broker wrote them; a file that would leave the broker without rules is
// written again, and a link planted in its place is not followed.
func installSecurity(t *testing.T, in Install) {
	t.Helper()
	file := filepath.Join(in.Dir, "broker/security/security.json")
	read := func() string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	seed := read()
	var b mosquitto.Broker
	fleet, err := b.Security("vic:00e20100")
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{string(fleet): string(fleet), "": seed, seed[:len(seed)/2]: seed} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := in.Run(); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != want {
			t.Errorf("%.40q became %.40q", content, got)
		}
	}
	victim := filepath.Join(in.Dir, "ca/device.key")
	before, err := os.ReadFile(victim)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(file)
	if err := errors.Join(os.Remove(file), os.Symlink("../../ca/device.key", file), os.Chmod(folder, 0o755)); err != nil { // as a container engine makes it
		t.Fatal(err)
	}
	if err := in.Run(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(victim); err != nil || !bytes.Equal(after, before) || read() != seed {
		t.Errorf("a link in the broker's folder was followed (%v)", err)
	}
	if fi, err := os.Stat(folder); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", fi, err)
	}
	if fi, err := os.Lstat(file); err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm() != 0o600 {
		t.Errorf("security file: %v, %v", fi, err)
	}
}

func TestInstallOwner(t *testing.T) {
	for _, bad := range []string{"", "postgres", "postgres=999", "postgres=a:b", "cook=1:1", "postgres=-1:0", "postgres=1:99999999999"} {
		var in Install
		if err := in.Set(bad); err == nil || !strings.Contains(err.Error(), "want part=UID:GID") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	var in Install
	if err := errors.Join(in.Set("postgres=999:998"), in.Set("s3=1:2")); err != nil || in.Owners["postgres"] != (Owner{999, 998}) {
		t.Errorf("owners %v, %v", in.Owners, err)
	}
}

func TestCAInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	var out, errOut bytes.Buffer
	if code := cli.Main(caCommand(), []string{"init", "-dir", dir}, os.Getenv, &out, &errOut); code != 0 {
		t.Fatalf("code %d: %s", code, &errOut)
	}
	if _, err := ca.Load(dir); err != nil || !strings.Contains(out.String(), "root.key") {
		t.Errorf("%v; said %q", err, &out)
	}
}
