package intake_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"kennel/cloud/telemetry/crash"
	"kennel/infra/api/files"
)

const boundary = "------------------------d74496d66958873e"

// part is one part of a form as curl writes it; a file has a name.
func part(name, file, content string) string {
	if file != "" {
		return fmt.Sprintf("--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\nContent-Type: application/octet-stream\r\n\r\n%s\r\n", boundary, name, file, content)
	}
	return fmt.Sprintf("--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", boundary, name, content)
}

// crashForm is the form of vic-crashuploader, byte for byte (VEC-CRS-05).
func crashForm(dump string) string {
	return part("attachment_messages.log", "vic-engine-1.log", "12:00:01 vic-engine: oh\n") + part("hostname", "", "Vector-A1B2") + part("robot.esn", "", "00e20100") +
		part("robot.os_version", "", "2.0.1.6091") + part("robot.anki_version", "", "2.0.1.6091") + part("upload_file", "vic-engine-2026-01-02.dmp", dump) + "--" + boundary + "--\r\n"
}

func postCrash(path, form string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: kennel.lan:8444\r\nAccept: */*\r\nContent-Length: %d\r\nContent-Type: multipart/form-data; boundary=%s\r\n\r\n%s", path, len(form), boundary, form)
}

const crashPath = "/crash?format=minidump&token=0123abcd"

// dumpText is a crash record of a program of ours.
const dumpText = "kennel-crash 1\nprogram: agentd\nversion: 1.2.3.4\nboot_id: b-1\ntime: 2026-01-02T00:00:00Z\n\npanic: boom\n\ngoroutine 7 [running]:\nmain.work(0xc000012120, 0x5)\n\t/src/x.go:12 +0x1d\nmain.main()\n\t/src/main.go:3 +0x20\n"

// lying is a minidump whose directory points far beyond its end.
func lying() string {
	b := append([]byte("MDMP\x93\xa7\x00\x00"), make([]byte, 64)...)
	binary.LittleEndian.PutUint32(b[8:], 0x7fffffff)  // streams
	binary.LittleEndian.PutUint32(b[12:], 0xfffffff0) // where they are
	return string(b)
}

func (r *rig) crashed(t testing.TB) []crash.Crash {
	t.Helper()
	list, err := r.crashes.Crashes(t.Context(), crash.Query{Thing: rex})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestCrash: VEC-CRS-05, VEC-CRS-06: the original's form is stored once, from either listener.
func TestCrash(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{crashPath, crashPath, files.Crash} {
		resp, body := r.raw(t, postCrash(path, crashForm(dumpText)))
		want(t, path, resp, body, 200, `"response":"ok"`)
	}
	list := r.crashed(t)
	if len(list) != 1 || list[0].Thing != rex || list[0].OS != "2.0.1.6091" || list[0].Name != "vic-engine-2026-01-02.dmp" {
		t.Fatalf("stored %+v", list)
	}
}

// TestCrashRefused: bad forms are refused with a reason; memory is bounded.
func TestCrashRefused(t *testing.T) {
	r := newRig(t)
	end := "--" + boundary + "--\r\n"
	esn, dump := part("robot.esn", "", "00e20100"), part("upload_file", "a.dmp", dumpText)
	endless := "POST " + files.Crash + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: multipart/form-data; boundary=" + boundary + "\r\n\r\n" +
		fmt.Sprintf("%x\r\n%s\r\n", len(dump), dump[:len(dump)-2]+"xx") + strings.Repeat("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 24)
	heads := strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 20_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, c := range []struct {
		name, request string
		status        int
		says          string
	}{
		{"no form", strings.Replace(postCrash(crashPath, "x"), "multipart/form-data", "text/plain", 1), 400, "multipart/form-data"},
		{"no dump", postCrash(crashPath, esn+end), 400, "upload_file"},
		{"an empty dump", postCrash(crashPath, esn+part("upload_file", "a.dmp", "")+end), 400, "empty"},
		{"no robot", postCrash(crashPath, dump+end), 400, "robot.esn"},
		{"another robot than the certificate's", postCrash(files.Crash, part("robot.esn", "", "00e20101")+dump+end), 400, "certificate"},
		{"cut off", postCrash(crashPath, esn+dump), 400, "part 2"},
		{"a thousand parts", postCrash(crashPath, strings.Repeat(part("x", "", "y"), 1000)+end), 400, "given twice"},
		{"a thousand different parts", postCrash(crashPath, thousand()+end), 400, "more than 32 parts"},
		{"a long text", postCrash(crashPath, part("hostname", "", strings.Repeat("h", 300))+end), 413, "hostname"},
		{"two dumps", postCrash(crashPath, esn+dump+dump+end), 400, "twice"},
		{"endless headers", postCrash(crashPath, "--"+boundary+"\r\n"+heads+"\r\n"), 400, "part 1"},
		{"announced too large", "POST " + crashPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 100000000\r\n\r\n", 413, "too_large"},
		{"endless", endless, 413, "too_large"},
	} {
		resp, body := r.raw(t, c.request)
		want(t, c.name, resp, body, c.status, c.says)
	}
	runtime.ReadMemStats(&after)
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 160 {
		t.Errorf("%d MiB were allocated", grown)
	}
	if resp, body := r.raw(t, postCrash(crashPath, crashForm(lying()))); resp.StatusCode != 200 && resp.StatusCode != 400 { // what cannot be read may be kept
		t.Errorf("lying offsets: %d %s", resp.StatusCode, body)
	}
	kept := len(r.crashed(t))
	r.denied.Store(true)
	resp, body := r.raw(t, postCrash(crashPath, crashForm(dumpText)))
	want(t, "opted out", resp, body, 403, "opted_out")
	if list := r.crashed(t); len(list) != kept || kept > 1 {
		t.Errorf("stored %+v", list)
	}
}

func thousand() string {
	var b bytes.Buffer
	for i := range 1000 {
		_, _ = io.WriteString(&b, part(fmt.Sprintf("x%d", i), "", "y")) // to memory
	}
	return b.String()
}
