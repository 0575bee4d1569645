package archive_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// shell runs a script in dir.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, errs.Bytes())
	}
	return string(out)
}

// desk is a folder with the keys, a password and the images of a production update.
func desk(t *testing.T) string {
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"ota.pub": archivetest.PublicPEM(), "ota.pas": []byte("swordfish\n"),
		"ota.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(archivetest.Key())}),
		"boot":    archivetest.Production()[manifest.Boot], "sysfs": archivetest.Production()[manifest.System],
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestToolsArchive reads archives that tar, openssl and gzip made, in all formats of tar (VEC-OTA-01, 05, 07).
func TestToolsArchive(t *testing.T) {
	dir := desk(t)
	images := archivetest.Production()
	ini := fmt.Sprintf("[META]\nmanifest_version=0.9.2\nupdate_version=2.0.1.6076\nankidev=0\nnum_images=2\nreboot_after_install=0\n"+
		"[BOOT]\nencryption=1\ndelta=0\ncompression=gz\nwbits=31\nbytes=%d\nsha256=%x\n[SYSTEM]\nencryption=0\ndelta=0\ncompression=gz\nwbits=31\nbytes=%d\nsha256=%x\n",
		len(images[manifest.Boot]), sha256.Sum256(images[manifest.Boot]), len(images[manifest.System]), sha256.Sum256(images[manifest.System]))
	if err := os.WriteFile(filepath.Join(dir, "manifest.ini"), []byte(ini), 0o600); err != nil {
		t.Fatal(err)
	}
	shell(t, dir, `openssl dgst -sha256 -sign ota.key -out manifest.sha256 manifest.ini
gzip -9c boot | openssl enc -aes-256-ctr -md md5 -pass file:ota.pas -out apq8009-robot-boot.img.gz 2>enc.log
gzip -1c sysfs >apq8009-robot-sysfs.img.gz`)
	for _, how := range []string{"--format=ustar -cf", "--format=gnu -cf", "--format=pax -cf", "--format=v7 -cf", "-b 1 -cf", "-b 2000 -cf"} {
		for _, prefix := range []string{"", "./"} {
			shell(t, dir, fmt.Sprintf("tar %s made.ota %[2]smanifest.ini %[2]smanifest.sha256 %[2]sapq8009-robot-boot.img.gz %[2]sapq8009-robot-sysfs.img.gz", how, prefix))
			b, err := os.ReadFile(filepath.Join(dir, "made.ota"))
			if err != nil {
				t.Fatal(err)
			}
			a, got, err := install(bytes.NewReader(b), options("swordfish"))
			if err != nil || !maps.EqualFunc(got, images, bytes.Equal) || a.Manifest.Format != "0.9.2" || a.Consumed() != int64(len(b)) {
				t.Errorf("tar %s, %q: %v, %d images", how, prefix, err, len(got))
			}
		}
	}
}

// TestToolsTakeOurs: the same tools take our archive apart, with the commands of the source (examples 8 and 10).
func TestToolsTakeOurs(t *testing.T) {
	dir := desk(t)
	for _, password := range []string{"swordfish", ""} {
		decrypt := "cat"
		if password != "" {
			decrypt = "openssl enc -d -aes-256-ctr -pass file:ota.pas -md md5 2>/dev/null"
		}
		if err := os.WriteFile(filepath.Join(dir, "ours.ota"), archivetest.Make(manifest.Manifest{}, archivetest.Production(), password), 0o600); err != nil {
			t.Fatal(err)
		}
		out := shell(t, dir, `rm -rf apart && mkdir apart && tar -tf ours.ota && tar -C apart -xf ours.ota
openssl dgst -sha256 -verify ota.pub -signature apart/manifest.sha256 apart/manifest.ini
for i in boot sysfs; do `+decrypt+` <apart/apq8009-robot-$i.img.gz | gzip -dc | cmp - $i; done`)
		if want := "manifest.ini\nmanifest.sha256\napq8009-robot-boot.img.gz\napq8009-robot-sysfs.img.gz\nVerified OK\n"; out != want {
			t.Errorf("%s\nwant %s", out, want)
		}
	}
}
