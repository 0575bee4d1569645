package stsapi_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/token"
)

// boto3 writes requests byte by byte as boto3 1.36 and later does (peer facts section 13), and signs them without the AWS SDK.
type boto3 struct {
	rig         *rig
	creds       token.Credentials
	path        bool   // path style
	checksum    string // such as crc32
	signsFrames bool   // names transfer-encoding among the signed headers, as the first releases did
	waits       bool   // Expect: 100-continue
}

var checksums = map[string]func() hash.Hash{
	"crc32":     func() hash.Hash { return crc32.NewIEEE() },
	"crc32c":    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
	"crc64nvme": func() hash.Hash { return crc64.New(crc64.MakeTable(0x9a6c9329ac4bc9b5)) },
	"sha1":      sha1.New,
	"sha256":    sha256.New,
}

func (b boto3) sum(body []byte) string {
	h := checksums[b.checksum]()
	h.Write(body)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

func hexSum(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

// send makes one request. A body that is streamed goes in aws-chunked frames of 1 MiB within HTTP's own chunks, without a Content-Length.
func (b boto3) send(t *testing.T, method, key, query string, body []byte, streamed bool, more map[string]string) (*http.Response, []byte) {
	t.Helper()
	host, path := bucket+"."+awsS3, "/"+canonical(key)
	if b.path {
		host, path = awsS3, "/"+bucket+"/"+canonical(key)
	}
	now := time.Now().UTC().Format("20060102T150405Z")
	h := map[string]string{"host": host, "x-amz-date": now, "x-amz-security-token": b.creds.SessionToken.Reveal(), "x-amz-content-sha256": hexSum(body)}
	for k, v := range more {
		h[k] = v
	}
	if streamed {
		h["x-amz-content-sha256"], h["content-encoding"] = "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "aws-chunked"
		h["x-amz-trailer"], h["x-amz-sdk-checksum-algorithm"] = "x-amz-checksum-"+b.checksum, strings.ToUpper(b.checksum)
		h["x-amz-decoded-content-length"], h["transfer-encoding"] = fmt.Sprint(len(body)), "chunked"
	}
	var names []string
	for k := range h {
		if k != "transfer-encoding" || b.signsFrames {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	lines := ""
	for _, k := range names {
		lines += k + ":" + h[k] + "\n"
	}
	signed, scope := strings.Join(names, ";"), now[:8]+"/"+region+"/s3/aws4_request"
	request := strings.Join([]string{method, path, query, lines, signed, h["x-amz-content-sha256"]}, "\n")
	secret := []byte("AWS4" + b.creds.SecretAccessKey.Reveal())
	for _, s := range append(strings.Split(scope, "/"), "AWS4-HMAC-SHA256\n"+now+"\n"+scope+"\n"+hexSum([]byte(request))) {
		m := hmac.New(sha256.New, secret)
		m.Write([]byte(s))
		secret = m.Sum(nil)
	}
	var out bytes.Buffer
	target := path
	if query != "" {
		target += "?" + query
	}
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\nAccept-Encoding: identity\r\nUser-Agent: Boto3/1.36.9 md/Botocore#1.36.9\r\namz-sdk-request: attempt=1\r\n", method, target)
	for k, v := range h {
		fmt.Fprintf(&out, "%s: %s\r\n", k, v)
	}
	if b.waits {
		out.WriteString("Expect: 100-continue\r\n")
	}
	if !streamed {
		fmt.Fprintf(&out, "Content-Length: %d\r\n", len(body))
	}
	fmt.Fprintf(&out, "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x\r\n\r\n", b.creds.AccessKeyID, scope, signed, secret)
	conn, err := tls.Dial("tcp", b.rig.srv.Listener.Addr().String(), &tls.Config{RootCAs: b.rig.roots, ServerName: awsS3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.Write(out.Bytes())
	in := bufio.NewReader(conn)
	if b.waits {
		if line, _ := in.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 100 ") {
			t.Fatalf("asked whether to continue, heard %q", line)
		}
		in.ReadString('\n')
	}
	if streamed {
		piece := func(s string) { fmt.Fprintf(conn, "%x\r\n%s\r\n", len(s), s) }
		for p := range slices.Chunk(body, 1<<20) {
			piece(fmt.Sprintf("%x\r\n%s\r\n", len(p), p))
		}
		piece("0\r\nx-amz-checksum-" + b.checksum + ":" + b.sum(body) + "\r\n\r\n")
		io.WriteString(conn, "0\r\n\r\n")
	} else {
		conn.Write(body)
	}
	resp, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer
}

// TestBoto3: aws-chunked within Transfer-Encoding: chunked, a trailing checksum, no Content-Length; whole objects and parts.
func TestBoto3(t *testing.T) {
	r := newRig(t)
	base := boto3{rig: r, creds: r.mint(t, robot), checksum: "crc32"}
	for name, b := range map[string]boto3{
		"by host": base, "by path": {path: true}, "crc32c": {checksum: "crc32c"}, "crc64nvme": {checksum: "crc64nvme"}, "sha1": {checksum: "sha1"},
		"sha256": {checksum: "sha256"}, "signed transfer-encoding": {signsFrames: true}, "expects to continue": {waits: true},
	} {
		b.rig, b.creds = base.rig, base.creds
		if b.checksum == "" {
			b.checksum = base.checksum
		}
		for _, size := range []int{0, 1, 3<<20 + 17} {
			t.Run(fmt.Sprint(name, "/", size), func(t *testing.T) {
				key, want := fmt.Sprintf("%s%s-%d.gz", folder, name, size), content(size)
				resp, answer := b.send(t, http.MethodPut, key, "", want, true, nil)
				if resp.StatusCode != http.StatusOK || resp.Header.Get("ETag") == "" {
					t.Fatalf("%s: %s", resp.Status, answer)
				}
				if got := r.has(t, stored(key)); !bytes.Equal(got, want) {
					t.Errorf("stored %d bytes, want the %d that were sent", len(got), size)
				}
			})
		}
	}
	t.Run("parts", func(t *testing.T) { base.parts(t) })
	t.Run("refused", func(t *testing.T) {
		b := base
		b.creds.SecretAccessKey += "x"
		b.waits = false
		resp, answer := b.send(t, http.MethodPut, folder+"no", "", []byte("hello"), true, nil)
		if resp.StatusCode != http.StatusForbidden || !bytes.Contains(answer, []byte("SignatureDoesNotMatch")) {
			t.Errorf("%s: %s", resp.Status, answer)
		}
		r.missing(t, folder+"no")
	})
}

// parts is upload_file of more than 8 MB.
func (b boto3) parts(t *testing.T) {
	key, want := folder+"large.tar.gz/of robot", content(9<<20)
	_, answer := b.send(t, http.MethodPost, key, "uploads=", nil, false, map[string]string{"x-amz-checksum-algorithm": "CRC32"})
	var begun struct {
		UploadID string `xml:"UploadId"`
	}
	if err := xml.Unmarshal(answer, &begun); err != nil || begun.UploadID == "" {
		t.Fatalf("%s: %v", answer, err)
	}
	list := `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`
	n := 0
	for p := range slices.Chunk(want, 8<<20) {
		n++
		resp, answer := b.send(t, http.MethodPut, key, fmt.Sprintf("partNumber=%d&uploadId=%s", n, begun.UploadID), p, true, nil)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("part %d: %s: %s", n, resp.Status, answer)
		}
		list += fmt.Sprintf(`<Part><ETag>%s</ETag><ChecksumCRC32>%s</ChecksumCRC32><PartNumber>%d</PartNumber></Part>`, resp.Header.Get("ETag"), b.sum(p), n)
	}
	resp, answer := b.send(t, http.MethodPost, key, "uploadId="+begun.UploadID, []byte(list+"</CompleteMultipartUpload>"), false, nil)
	if resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("<ETag>")) {
		t.Fatalf("%s: %s", resp.Status, answer)
	}
	if got := b.rig.has(t, stored(key)); !bytes.Equal(got, want) {
		t.Errorf("stored %d bytes, want %d", len(got), len(want))
	}
}
