package intake_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"kennel/cloud/originals/intake"
	"kennel/cloud/telemetry/uploads"
	"kennel/infra/api/files"
)

// logName is a name as vic-logmgr-upload makes it (VEC-LOG-04).
const logName = "victor-00e20100-2026-01-02-10-00-00-123.log.gz"

// putLog is the request of vic-logmgr-upload, byte for byte (VEC-LOG-05).
func putLog(path string, body string, more ...string) string {
	return "PUT " + path + " HTTP/1.1\r\nHost: kennel.lan:8444\r\nAccept: */*\r\nAnki-App-Key: the-key\r\nUsr-RobotESN: 00e20100\r\nUsr-RobotOSRevision: 1e5fcc1\r\n" +
		"Usr-RobotOSVersion: 2.0.1.6091\r\nUsr-RobotRevision: 7b3ca23\r\nUsr-RobotTimestamp: 2026-01-02T10:00:00Z\r\nUsr-RobotVersion: 2.0.1.6091\r\nUsr-Username: \r\n" +
		strings.Join(more, "") + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
}

// TestLog: VEC-LOG-04, 05, 10: a log is stored once for each content and name, and listed with what the headers say.
func TestLog(t *testing.T) {
	r := newRig(t)
	path := files.Log(logName)
	for range 2 {
		resp, body := r.raw(t, putLog(path, "first"))
		want(t, "the first", resp, body, 200, "")
	}
	resp, body := r.raw(t, putLog(path, "more of it"))
	want(t, "another content", resp, body, 200, "")
	resp, body = r.raw(t, putLog(files.Log("boot.log"), "first", "Kennel-Reason: request\r\n"))
	want(t, "another name", resp, body, 200, "")
	list, err := r.logs.List(t.Context(), uploads.Query{Thing: rex})
	if err != nil || len(list) != 3 || r.objects(t) != 3 {
		t.Fatalf("%+v, %v, %d objects; want 3", list, err, r.objects(t))
	}
	if l := list[2]; l.Name != logName || l.Size != 5 || l.OS != "2.0.1.6091" || l.Account != ann {
		t.Errorf("stored as %+v", l)
	}
	if list[0].Reason != "request" || list[0].Kind != "log" || list[2].Reason != "" || list[2].Kind != "snapshot" {
		t.Errorf("listed as %+v", list)
	}
	b, err := r.logs.Open(t.Context(), list[1])
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, err := io.ReadAll(b); string(got) != "more of it" || err != nil {
		t.Errorf("holds %q, %v", got, err)
	}
	if added, removed, err := r.logs.Mend(t.Context()); added+removed != 0 || err != nil {
		t.Errorf("%d rows added, %d removed, %v", added, removed, err)
	}
}

// TestLogRefused: each refusal has its status, nothing of it is stored, and memory does not grow with what is sent.
func TestLogRefused(t *testing.T) {
	r := newRig(t, func(c *intake.Config) { c.MaxDay = files.MaxLog })
	path := files.Log(logName)
	head := func(h string) string { return "PUT " + path + " HTTP/1.1\r\nHost: x\r\n" + h + "\r\n\r\n" }
	endless := head("Transfer-Encoding: chunked") + strings.Repeat("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n", files.MaxLog>>20+1)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, c := range []struct {
		name, request string
		status        int
		says          string
	}{
		{"an empty one", putLog(path, ""), 400, "empty"},
		{"a name with a folder", putLog("/v1/files/logs/..%2Fx", "x"), 400, "without slashes"},
		{"a name too long", putLog(files.Log(strings.Repeat("n", 201)), "x"), 400, "200"},
		{"announced too large", head(fmt.Sprintf("Content-Length: %d", files.MaxLog+1)), 413, `"code":"too_large"`},
		{"endless", endless, 413, `"code":"too_large"`},
		{"shorter than announced", head("Content-Length: 100") + "short" + cut, 400, "the end of the body"},
	} {
		resp, body := r.raw(t, c.request)
		want(t, c.name, resp, body, c.status, c.says)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > files.MaxLog {
		t.Errorf("%d bytes were allocated for %d bytes of log", grown, len(endless))
	}
	r.denied.Store(true)
	resp, body := r.raw(t, putLog(path, "x"))
	want(t, "opted out (VEC-LOG-08)", resp, body, 403, `"code":"opted_out"`)
	r.denied.Store(false)
	r.s3Away.Store(true)
	resp, body = r.raw(t, putLog(path, "x"))
	want(t, "S3 is away", resp, body, 503, "object store")
	r.s3Away.Store(false)
	if names := r.names(t); len(names)+r.objects(t) != 0 {
		t.Errorf("stored: %q, %d objects", names, r.objects(t))
	}
	resp, body = r.raw(t, putLog(path, "x"))
	want(t, "after all that", resp, body, 200, "")
	resp, body = r.raw(t, putLog(path, strings.Repeat("y", files.MaxLog)))
	want(t, "over the day's quota", resp, body, 429, "today")
}

// TestSlowBody: VEC-LOG: who sends a byte now and again is cut off, also where each byte comes in time.
func TestSlowBody(t *testing.T) {
	r := newRig(t, func(c *intake.Config) { c.Idle = 300 * time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	drops, body := io.Pipe()
	go func() {
		for { // until it is hung up on
			if _, err := body.Write([]byte("x")); err != nil {
				return
			}
			time.Sleep(30 * time.Millisecond) // the pace of the attack
		}
	}()
	req, err := http.NewRequestWithContext(ctx, "PUT", r.srv.URL+files.Log(logName), drops)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body) // it may be cut off
	want(t, "drops", resp, string(b), 408, "too slowly")
	if bytes.Contains(b, []byte("invalid")) {
		t.Errorf("%s: the robot would drop the log", b)
	}
}

// TestMendBesideAnUpload: Mend finds an object whose row is written a moment later; it leaves that row as it is. It knows the name and the reason of a
// log whose row is never written, too.
func TestMendBesideAnUpload(t *testing.T) {
	r := newRig(t)
	send := func() (code int) {
		resp, _ := r.raw(t, putLog(files.Log("boot.log"), "first", "Kennel-Reason: request\r\n"))
		return resp.StatusCode
	}
	mend := func(what string) {
		t.Helper()
		if added, removed, err := r.logs.Mend(t.Context()); added != 1 || removed != 0 || err != nil {
			t.Errorf("%d rows added, %d removed, %v", added, removed, err)
		}
		list, err := r.logs.List(t.Context(), uploads.Query{Thing: rex})
		if err != nil || len(list) != 1 || list[0].Name != "boot.log" || list[0].Reason != "request" {
			t.Errorf("%s: %+v, %v", what, list, err)
		}
	}
	r.torn.Store(true)
	if code := send(); code != 503 {
		t.Fatal(code)
	}
	mend("the row never came")
	if _, err := r.pool.Exec(t.Context(), `DELETE FROM uploads_log`); err != nil {
		t.Fatal(err)
	}
	r.torn.Store(false)
	late := func() {
		if code := send(); code != 200 {
			t.Errorf("sent again: %d", code)
		}
	}
	r.between.Store(&late)
	mend("the row came between")
	var known int
	if err := r.pool.QueryRow(t.Context(), `SELECT count(*) FROM uploads_log WHERE sha256 IS NOT NULL AND os <> ''`).Scan(&known); err != nil || known != 1 {
		t.Errorf("%d rows know what the robot said, %v", known, err)
	}
}
