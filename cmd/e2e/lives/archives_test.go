package lives

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/ota/swu/swutest"
)

// archiveObjects returns the names of the archives in the object store.
func archiveObjects(h *housetest.House) (out []string) {
	h.T.Helper()
	err := filepath.WalkDir(filepath.Join(h.Dir, "s3"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".ota") {
			out = append(out, filepath.Base(name))
		}
		return nil // what goes meanwhile is none
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return out
}

// TestArchives (issue 17, build 5): an archive is uploaded by kennelctl, also after kenneld was killed in the middle; a channel offers it, and an original
// robot downloads it in pieces, over HTTPS and plain HTTP; a changed archive is refused with the robot's code.
func TestArchives(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	admin := h.Operator(t)
	whole := h.SignedArchive("2.0.1.6076", 12<<20)
	sum := sha256.Sum256(whole)
	name := hex.EncodeToString(sum[:])
	file := filepath.Join(h.Dir, "release.ota")
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}

	// Killed when half of it has come.
	in, out := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, admin.API+"/v1/releases/vic/archives/"+name, in)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = int64(len(whole))
	req.Header.Set("Authorization", "Bearer "+admin.Token)
	ended := make(chan error, 1) // the one result
	go func() {
		resp, err := admin.HTTP.Do(req)
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
	h.KillTree()
	_ = out.CloseWithError(io.ErrUnexpectedEOF) // it never fails
	if err := <-ended; err == nil || strings.Contains(err.Error(), "answered 2") {
		t.Errorf("half of an archive: %v", err)
	}
	h.Start()
	var list []struct{ Version, Kind, SHA256 string }
	if err := h.CtlJSON(&list, "releases", "archives", "vic"); err != nil || len(list) != 0 || len(archiveObjects(h)) != 0 {
		t.Fatalf("after the kill: %v, %v, objects %q", list, err, archiveObjects(h))
	}

	for range 2 { // the second time it is known
		if out, err := h.Ctl("release", "upload", file, "-notes", "quieter motors"); err != nil || !strings.Contains(string(out), name) {
			t.Fatalf("%s, %v", out, err)
		}
	}
	bad := h.SignedArchive("2.0.1.6077", 1<<20)
	bad[len(bad)/2] ^= 1
	if err := os.WriteFile(file+".bad", bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := h.Ctl("release", "upload", file+".bad"); err == nil || !strings.Contains(err.Error(), "with code 20") {
		t.Errorf("a changed archive: %s, %v", out, err)
	}
	if err := h.CtlJSON(&list, "releases", "archives", "vic", "2.0.1.6076"); err != nil || len(list) != 1 || list[0].SHA256 != name || list[0].Kind != "production" {
		t.Errorf("%+v, %v", list, err)
	}
	if got := archiveObjects(h); len(got) != 1 || got[0] != "production-"+name[:16]+".ota" {
		t.Errorf("objects %q", got)
	}
	if out, err := h.Ctl("releases", "list"); err != nil || !strings.Contains(string(out), "1 production") || !strings.Contains(string(out), "quieter motors") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := h.Ctl("channel", "set", "vic", "prod", "2.0.1.6076"); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if out, err := h.Ctl("channels", "list"); err != nil || !strings.Contains(string(out), "2.0.1.6076") {
		t.Errorf("%s, %v", out, err)
	}

	// The robot.
	robot := h.Stranger(t)
	for _, address := range []string{h.Ready.Endpoints["robots"], "http://" + h.RobotsPort()} {
		var got []byte
		for _, part := range []string{"bytes=0-99999", "bytes=100000-"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/vic/prod/full/latest.ota?victorversion=1.8.0.6051&victortarget=2", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Range", part)
			resp, err := robot.HTTP.Do(req)
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
		resp, err := robot.HTTP.Get(address + "/vic/prod/diff/2.0.1.6076.ota")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("a delta for a robot that runs it: %s", resp.Status)
		}
	}

	swupdates(t, h, admin)

	housetest.Await(t, 10*time.Second, "the audit log has the changes", func() error {
		_, b := admin.Try("GET", "/v1/audit", nil)
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
func swupdates(t *testing.T, h *housetest.House, admin *housetest.Person) {
	t.Helper()
	id, cert := h.Certified(t, admin, "amigo:arm-7")
	whole := swutest.Pack("sw-description", "software = {}", "image", strings.Repeat("x", 1<<20))
	swutest.Write(t, filepath.Join(h.Dir, "arm.swu"), whole)
	if out, err := h.Ctl("release", "upload", filepath.Join(h.Dir, "arm.swu"), "-species", "amigo", "-version", "1.4.0.12"); err != nil || !strings.Contains(string(out), "swu") {
		t.Fatalf("%s, %v", out, err)
	}
	var made struct{ Token string }
	if err := h.CtlJSON(&made, "robots", "device-token", string(id)); err != nil || len(made.Token) < 26 {
		t.Fatalf("%+v, %v", made, err)
	}
	if out, err := h.Ctl("releases", "want", string(id), "1.4.0.12"); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	get := func(client *http.Client, url string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(url, admin.API) {
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
	updater := func(want string) {
		t.Helper()
		var r struct {
			Checks []struct{ Check, Level string }
		}
		if err := h.CtlJSON(&r, "doctor", string(id)); len(r.Checks) == 0 {
			t.Fatal(err)
		}
		level := ""
		for _, c := range r.Checks {
			switch c.Check {
			case "updater":
				level = c.Level
			case "loop", "body":
				t.Errorf("the doctor asks a device for its %s", c.Check)
			}
		}
		if level != want {
			t.Errorf("the updater is %q, want %s: %+v", level, want, r.Checks)
		}
	}
	good := made.Token
	made.Token = "of-another-device"
	if code, body := get(h.Stranger(t).HTTP, admin.API+"/default/controller/v1/"+string(id)); code != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d %s", code, body)
	}
	updater("fail")
	made.Token = good
	shows := &http.Transport{TLSClientConfig: h.Trust(t, cert)}
	defer shows.CloseIdleConnections()
	robots := h.Ready.Endpoints["robots"]
	for address, client := range map[string]*http.Client{admin.API: h.Stranger(t).HTTP, robots: {Transport: shows}} {
		base := address + "/default/controller/v1/"
		if code, body := get(client, base+string(id)); code != http.StatusOK || !strings.Contains(body, base+string(id)+"/deploymentBase/1") {
			t.Errorf("%s: %d %s", address, code, body)
		}
		if code, body := get(client, base+string(id)+"/softwaremodules/1.4.0.12/artifacts/amigo-1.4.0.12.swu"); code != http.StatusOK || body != string(whole) {
			t.Errorf("%s: %d, %d bytes", address, code, len(body))
		}
		code, body := get(client, base+"amigo:arm-8")
		if want := map[string]int{admin.API: http.StatusUnauthorized, robots: http.StatusNotFound}[address]; code != want {
			t.Errorf("%s: another device: %d %s", address, code, body)
		}
	}
	updater("ok") // the refusal is history
}
