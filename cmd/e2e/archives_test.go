package e2e

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
	"kennel/ota/swu/swutest"
)

// signedArchive returns a production archive signed with the house's development key; its system image has about n bytes.
func (h *house) signedArchive(v ota.Version, n int) []byte {
	h.t.Helper()
	text, err := os.ReadFile(h.ready.Files["release_key"])
	if err != nil {
		h.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		h.t.Fatal(err)
	}
	images := map[manifest.Part]io.Reader{manifest.Boot: bytes.NewReader(archivetest.Image(1, 20_000)), manifest.System: bytes.NewReader(archivetest.Image(2, n))}
	var out bytes.Buffer
	if err := archive.Write(&out, &manifest.Manifest{Version: v}, images, archive.WriteOptions{Key: key.(*rsa.PrivateKey)}); err != nil {
		h.t.Fatal(err)
	}
	return out.Bytes()
}

// archiveObjects returns the names of the archives in the object store.
func (h *house) archiveObjects() (out []string) {
	h.t.Helper()
	err := filepath.WalkDir(filepath.Join(h.dir, "s3"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".ota") {
			out = append(out, filepath.Base(name))
		}
		return nil // what goes meanwhile is none
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// TestArchives (issue 17, build 5): an archive is uploaded by kennelctl, also after kenneld was killed in the middle; a channel offers it, and an original
// robot downloads it in pieces, over HTTPS and plain HTTP; a changed archive is refused with the robot's code.
func TestArchives(t *testing.T) {
	h := newHouse(t, "-robots", "0")
	h.start()
	admin := h.operator(t)
	whole := h.signedArchive("2.0.1.6076", 12<<20)
	sum := sha256.Sum256(whole)
	name := hex.EncodeToString(sum[:])
	file := filepath.Join(h.dir, "release.ota")
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}

	// Killed when half of it has come.
	in, out := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, admin.api+"/v1/releases/vic/archives/"+name, in)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(whole))
	req.Header.Set("Authorization", "Bearer "+admin.token)
	ended := make(chan error, 1) // the one result
	go func() {
		resp, err := admin.http.Do(req)
		if err == nil {
			b, _ := io.ReadAll(resp.Body) // only said
			err = fmt.Errorf("answered %s %s", resp.Status, b)
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	if _, err := out.Write(whole[:len(whole)/2]); err != nil {
		t.Fatal(err)
	}
	h.killTree()
	_ = out.CloseWithError(io.ErrUnexpectedEOF) // it never fails
	if err := <-ended; err == nil || strings.Contains(err.Error(), "answered 2") {
		t.Errorf("half of an archive: %v", err)
	}
	h.start()
	var list []struct{ Version, Kind, SHA256 string }
	if err := h.ctlJSON(&list, "releases", "archives", "vic"); err != nil || len(list) != 0 || len(h.archiveObjects()) != 0 {
		t.Fatalf("after the kill: %v, %v, objects %q", list, err, h.archiveObjects())
	}

	for range 2 { // the second time it is known
		if out, err := h.ctl("release", "upload", file, "-notes", "quieter motors"); err != nil || !strings.Contains(string(out), name) {
			t.Fatalf("%s, %v", out, err)
		}
	}
	bad := h.signedArchive("2.0.1.6077", 1<<20)
	bad[len(bad)/2] ^= 1
	if err := os.WriteFile(file+".bad", bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := h.ctl("release", "upload", file+".bad"); err == nil || !strings.Contains(err.Error(), "robots would end with code 20") {
		t.Errorf("a changed archive: %s, %v", out, err)
	}
	if err := h.ctlJSON(&list, "releases", "archives", "vic", "2.0.1.6076"); err != nil || len(list) != 1 || list[0].SHA256 != name || list[0].Kind != "production" {
		t.Errorf("%+v, %v", list, err)
	}
	if got := h.archiveObjects(); len(got) != 1 || got[0] != "production-"+name[:16]+".ota" {
		t.Errorf("objects %q", got)
	}
	if out, err := h.ctl("releases", "list"); err != nil || !strings.Contains(string(out), "1 production") || !strings.Contains(string(out), "quieter motors") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := h.ctl("channel", "set", "vic", "prod", "2.0.1.6076"); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if out, err := h.ctl("channels", "list"); err != nil || !strings.Contains(string(out), "2.0.1.6076") {
		t.Errorf("%s, %v", out, err)
	}

	// The robot.
	robot := h.stranger(t)
	for _, address := range []string{h.ready.Endpoints["robots"], "http://" + h.robotsPort()} {
		var got []byte
		for _, part := range []string{"bytes=0-99999", "bytes=100000-"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/vic/prod/full/latest.ota?victorversion=1.8.0.6051&victortarget=2", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Range", part)
			resp, err := robot.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // it was read
			if got = append(got, b...); err != nil || resp.StatusCode != http.StatusPartialContent || resp.Header.Get("ETag") != `"`+name+`"` {
				t.Errorf("%s %s: %s, %v, %v", address, part, resp.Status, resp.Header, err)
			}
		}
		if !bytes.Equal(got, whole) {
			t.Errorf("%s: %d bytes that are not the archive's %d", address, len(got), len(whole))
		}
		resp, err := robot.http.Get(address + "/vic/prod/diff/2.0.1.6076.ota")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("a delta for a robot that runs it: %s", resp.Status)
		}
	}

	h.swupdates(t, admin)

	await(t, 10*time.Second, "the audit log has the changes", func() error {
		_, b := admin.try("GET", "/v1/audit", nil)
		for _, want := range []string{"release.upload", "2.0.1.6076 production " + name[:16], "release.channel", "prod 2.0.1.6076", "thing.device_token"} {
			if !strings.Contains(string(b), want) {
				return fmt.Errorf("no %q in %s", want, b)
			}
		}
		return nil
	})
}

// swupdates (issue 17, build 6): a device that runs SWUpdate is told of its release with its token at the API's port and with its certificate at the robots' port,
// where it downloads the file; the certificate opens no other device.
func (h *house) swupdates(t *testing.T, admin *person) {
	t.Helper()
	id, cert := h.certified(t, admin, "amigo:arm-7")
	whole := swutest.Pack("sw-description", "software = {}", "image", strings.Repeat("x", 1<<20))
	swutest.Write(t, filepath.Join(h.dir, "arm.swu"), whole)
	if out, err := h.ctl("release", "upload", filepath.Join(h.dir, "arm.swu"), "-species", "amigo", "-version", "1.4.0.12"); err != nil || !strings.Contains(string(out), "swu") {
		t.Fatalf("%s, %v", out, err)
	}
	var made struct{ Token string }
	if err := h.ctlJSON(&made, "robots", "device-token", string(id)); err != nil || len(made.Token) < 26 {
		t.Fatalf("%+v, %v", made, err)
	}
	if out, err := h.ctl("releases", "want", string(id), "1.4.0.12"); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	get := func(client *http.Client, url string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(url, admin.api) {
			req.Header.Set("Authorization", "TargetToken "+made.Token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	shows := &http.Transport{TLSClientConfig: h.trust(t, cert)}
	defer shows.CloseIdleConnections()
	robots := h.ready.Endpoints["robots"]
	for address, client := range map[string]*http.Client{admin.api: h.stranger(t).http, robots: {Transport: shows}} {
		base := address + "/default/controller/v1/"
		if code, body := get(client, base+string(id)); code != http.StatusOK || !strings.Contains(body, base+string(id)+"/deploymentBase/1") {
			t.Errorf("%s: %d %s", address, code, body)
		}
		if code, body := get(client, base+string(id)+"/softwaremodules/1.4.0.12/artifacts/amigo-1.4.0.12.swu"); code != http.StatusOK || body != string(whole) {
			t.Errorf("%s: %d, %d bytes", address, code, len(body))
		}
		code, body := get(client, base+"amigo:arm-8")
		if want := map[string]int{admin.api: http.StatusUnauthorized, robots: http.StatusNotFound}[address]; code != want {
			t.Errorf("%s: another device: %d %s", address, code, body)
		}
	}
}
