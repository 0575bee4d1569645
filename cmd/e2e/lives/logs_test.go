package lives

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"kennel/cloud/identity/sts"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/browser"
)

// engineLog returns the packed log of an original robot's engine.
func engineLog(lines int) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	at := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	for i := range lines {
		at = at.Add(700 * time.Millisecond)
		level, text := "info", fmt.Sprintf("vic-engine[612]: (tc%04d) BehaviorSystem.Tick: reacting to nothing in particular for %d ms", i, i%40)
		switch {
		case i%97 == 11:
			level, text = "warning", "vic-anim[598]: AnimProcess.Update.Overtime: frame took 41 ms, want at most 33 ms"
		case i%211 == 20:
			level, text = "err", "vic-cloud[633]: voice stream: dial tcp: lookup chipper.example.org: no route to host"
		}
		fmt.Fprintf(w, "%s Vector-A1B2 user.%s %s\n", at.Format("2006-01-02T15:04:05.000000Z07:00"), level, text)
	}
	w.Close() // a buffer does not fail
	return out.Bytes()
}

// diagnostics is an archive of several files (VEC-LOG-07).
func diagnostics() []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range [][2]string{{"ps.txt", "  PID USER     COMMAND\n  598 anim     vic-anim\n  612 engine   vic-engine\n"},
		{"log.txt", "2026-11-21T09:30:00Z Vector-A1B2 user.err vic-cloud[633]: no route to host\n"}, {"core.dmp", "MDMP\x00\x01"}} {
		_ = w.WriteHeader(&tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o600})
		io.WriteString(w, f[1])
	}
	w.Close()
	z.Close()
	return out.Bytes()
}

// TestUploadedLogs: an original robot uploads logs; operators find the reason of a fault in them on the robot's page and with kennelctl, the owner reads
// them over the API, and others do not (VEC-LOG-02, VEC-LOG-10). Names that a store of files would confuse are all there, also after a backup.
func TestUploadedLogs(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	admin, maker := h.Operator(t), housetest.NewFactory(t)
	admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": maker.Bundle()}, nil)
	ada, bob := h.Owner(t, "ada@example.com", "Ada"), h.Owner(t, "bob@example.com", "Bob")
	const id = "vic:00e2aa09"
	robot := h.Original(t, maker.Make(id, nil), h.RobotsPort())
	if err := robot.Associate(t.Context(), ada.AppSession(robot.AppKey)); err != nil {
		t.Fatal(err)
	}
	ada.Agrees(id, true)
	if err := robot.RefreshSTS(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := s3.New(s3.Options{Region: "us-west-2", UsePathStyle: true, BaseEndpoint: aws.String(h.Ready.Endpoints["robots"]),
		Credentials: credentials.NewStaticCredentialsProvider(robot.STS.GetAccessKeyId(), robot.STS.GetSecretAccessKey(), robot.STS.GetSessionToken()),
		HTTPClient:  &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: robot.TLS.RootCAs, ServerName: "localhost"}}}})
	folder := "logs/" + ada.ID + "/" + base64.StdEncoding.EncodeToString([]byte(id)) + "/"
	large := bytes.Repeat([]byte("2026-11-21T09:30:00Z Vector-A1B2 user.info vic-robot[1]: a large one that comes in parts\n"), 200_000) // 17 MB
	for _, l := range []struct {
		name string
		body []byte
	}{{"a.gz", []byte("a")}, {"a.gz/b", []byte("b")}, {"x/.sgwtmp/y", []byte("kept by a backup")}, {"2026-11-21-10-00-00-large.log", large},
		{"2026-11-21-10-00-00-diagnostics.tar.gz", diagnostics()}, {"2026-11-21-10-00-00-engine.log.gz", engineLog(2000)}} {
		if _, err := transfermanager.New(client).UploadObject(t.Context(), &transfermanager.UploadObjectInput{Bucket: aws.String("kennel"), Key: aws.String(folder + l.name), Body: bytes.NewReader(l.body)}); err != nil {
			t.Fatalf("%s: %v", l.name, err)
		}
	}
	type log struct {
		ID, Name, OS string
		Size         int64
	}
	var logs []log
	ada.Do("GET", "/v1/things/"+id+"/logs", nil, &logs)
	if len(logs) != 6 || logs[0].Name != "2026-11-21-10-00-00-engine.log.gz" || logs[2].Size != int64(len(large)) || logs[0].OS != "2.0.1.6076" {
		t.Fatalf("listed: %+v", logs)
	}
	for _, path := range []string{"/logs", "/logs/" + logs[0].ID, "/logs/" + logs[0].ID + "/content", "/logs/search?text=x"} {
		if code, b := bob.Try("GET", "/v1/things/"+id+path, nil); code != http.StatusNotFound {
			t.Errorf("%s for another person: %d %s", path, code, b)
		}
	}
	var found struct {
		Logs []struct {
			Log   log
			Found int
		}
	}
	if err := h.CtlJSON(&found, "logs", "search", id, "-text", "NO ROUTE", "-level", "error"); err != nil || len(found.Logs) != 2 || found.Logs[0].Found != 10 {
		t.Errorf("search: %+v, %v", found, err)
	}
	if out, err := h.Ctl("logs", "show", id, logs[5].ID); err != nil || strings.TrimSpace(string(out)) != "a" {
		t.Errorf("show: %s, %v", out, err)
	}

	// A backup has all of them, whatever they are called.
	file := filepath.Join(t.TempDir(), "backup")
	if out, err := housetest.Program(t, "", nil, "kenneld", "backup", "-data", h.Dir, "-out", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	back := housetest.New(t, "-robots", "0").Dir
	if err := os.Remove(back); err != nil {
		t.Fatal(err)
	}
	if out, err := housetest.Program(t, "", nil, "kenneld", "restore", "-data", back, "-in", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, l := range logs {
		kept := filepath.Join(back, "s3", "objects", "kennel", filepath.FromSlash(folder), sts.EncodeName(l.Name))
		if info, err := os.Stat(kept); err != nil || info.Size() != l.Size {
			t.Errorf("%s after a backup: %v", l.Name, err)
		}
	}

	s := housetest.NewSite(t, h)
	p := s.Browser.Page(t, browser.Desktop)
	look := func(name string) {
		t.Helper()
		s.Look(p, name)
		p.Look("light", browser.Desktop)
	}
	s.SignIn(p)
	p.Goto(h.Ready.Endpoints["console"] + "/things/" + id)
	p.Follow("Logs", "/logs$")
	p.SeeIn("region", "Uploaded logs", "Logs are deleted 30 days after the upload.")
	look("robot-logs")
	p.Fill("Line contains", "no route")
	p.Click("button", "Find")
	p.See("10 lines found")
	look("robot-logs-found")
	p.Follow("2026-11-21-10-00-00-diagnostics.tar.gz", "/logs/")
	p.SeeIn("region", "Lines", "1 line found")
	p.Click("link", "Show all")
	p.SeeIn("region", "Lines", "core.dmp is not text")
	look("robot-log-archive")
	p.Follow("Logs", "/logs$")
	p.Follow("2026-11-21-10-00-00-engine.log.gz", "/logs/")
	p.SeeIn("region", "Lines", "2000 lines")
	look("robot-log")
	p.Choose("Minimum level", "error")
	p.Click("button", "Find")
	p.SeeIn("region", "Lines", "10 lines found")
	look("robot-log-errors")
	if name, b := p.Download("link", "Download"); !bytes.Equal(b, engineLog(2000)) || !strings.HasPrefix(name, "vic-00e2aa09-2026-11-21") {
		t.Errorf("downloaded %s of %d bytes", name, len(b))
	}

	// The owner sees them on the robot's page, and downloads one.
	o := s.Browser.Page(t, browser.Phone)
	o.Goto(h.Ready.Endpoints["console"] + "/my/robots/" + id)
	o.Fill("E-mail", ada.Email)
	o.Fill("Password", housetest.OwnersPassword)
	o.Press("Enter")
	o.At("^/my/robots/")
	o.SeeRole("heading", "Uploaded logs")
	s.Look(o, "my-robot-logs")
	if name, b := o.Download("link", "Download 2026-11-21-10-00-00-engine.log.gz"); !bytes.Equal(b, engineLog(2000)) || !strings.HasPrefix(name, "vic-00e2aa09") {
		t.Errorf("the owner downloaded %s of %d bytes", name, len(b))
	}
}
