package gateway

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3response"

	"kennel/infra/cli"
)

func TestRefusedCommandLines(t *testing.T) {
	for name, args := range map[string][]string{
		"network":  {"-dir", "d", "-listen", "0.0.0.0:9000", "-access-key-file", "a", "-secret-key-file", "s"},
		"unknown":  {"-color", "red"},
		"argument": {"-dir", "d", "-listen", "127.0.0.1:9000", "-access-key-file", "a", "-secret-key-file", "s", "more"},
		"nothing":  nil,
	} {
		var out bytes.Buffer
		if code := Main(args, os.Getenv, &out, &out); code != cli.ExitUsage {
			t.Errorf("%s: exit %d, want %d: %s", name, code, cli.ExitUsage, out.Bytes())
		}
	}
}

// TestShowHidden (issue 16, finding 8): objects that an earlier version stored under .sgwtmp get a name that is listed, with their attributes; the library's own
// folder, and everything else, stays.
func TestShowHidden(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"kennel/logs/x/.sgwtmp/y", "kennel/logs/.sgwtmp/a/.sgwtmp/b", "kennel/.sgwtmp/multipart/1", "kennel/logs/z"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second finds nothing
		if err := showHidden(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"kennel/logs/x/%2Esgwtmp/y", "kennel/logs/%2Esgwtmp/a/%2Esgwtmp/b", "kennel/.sgwtmp/multipart/1", "kennel/logs/z"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
}

// TestWhole: of a body whose sender is gone nothing is stored, however the connection ended.
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	attrs := filepath.Join(dir, "meta")
	for _, d := range []string{"objects/kennel", "meta/kennel"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	store, err := meta.NewSideCar(attrs)
	if err != nil {
		t.Fatal(err)
	}
	b, err := posix.New(filepath.Join(dir, "objects"), store, posix.PosixOpts{SideCarDir: attrs})
	if err != nil {
		t.Fatal(err)
	}
	bucket, size := "kennel", int64(5)
	for body, ok := range map[string]bool{"whole": true, "part": false, "": false} {
		key := "logs/" + body + "x"
		_, err := refusing{b}.PutObject(t.Context(), s3response.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body), ContentLength: &size})
		if (err == nil) != ok {
			t.Errorf("%q of %d bytes: %v", body, size, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "objects", bucket, key)); ok != (err == nil) || string(got) != body && ok {
			t.Errorf("%q: %q is stored, %v", body, got, err)
		}
	}

	parts := "logs/parts"
	up, err := b.CreateMultipartUpload(t.Context(), s3response.CreateMultipartUploadInput{Bucket: &bucket, Key: &parts})
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range []string{"whole", "part", ""} {
		n := int32(i + 1)
		_, err := refusing{b}.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: &bucket, Key: &parts, UploadId: &up.UploadId, PartNumber: &n, Body: strings.NewReader(body), ContentLength: &size})
		if (err == nil) != (body == "whole") {
			t.Errorf("part %q of %d bytes: %v", body, size, err)
		}
	}
	marker, most := "0", int32(9)
	listed, err := b.ListParts(t.Context(), &s3.ListPartsInput{Bucket: &bucket, Key: &parts, UploadId: &up.UploadId, PartNumberMarker: &marker, MaxParts: &most})
	if err != nil || len(listed.Parts) != 1 || listed.Parts[0].PartNumber != 1 {
		t.Errorf("parts %+v, %v; want the whole one", listed.Parts, err)
	}
}
