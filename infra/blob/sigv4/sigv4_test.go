package sigv4_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"kennel/infra/blob/sigv4"
	"kennel/infra/errs"
)

// The example of the S3 API reference, "Signature Calculations for the Authorization Header: Transferring Payload in Multiple Chunks": 66560
// bytes of 'a' in chunks of 64 KiB. It is signed with lasting keys, where we want temporary ones; the chunks' signatures do not know that.
const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

var sigs = []string{"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648", "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
	"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"}

func frames() string {
	var b strings.Builder
	for i, n := range []int{65536, 1024, 0} {
		fmt.Fprintf(&b, "%x;chunk-signature=%s\r\n%s\r\n", n, sigs[i], strings.Repeat("a", n))
	}
	return b.String()
}

func example(body string, more ...string) *http.Request {
	text := "PUT /examplebucket/chunkObject.txt HTTP/1.1\r\nHost: s3.amazonaws.com\r\nx-amz-date: 20130524T000000Z\r\nx-amz-security-token: t\r\n" +
		"x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\nx-amz-decoded-content-length: 66560\r\n" +
		"Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request," +
		"SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-security-token," +
		"Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9\r\n" + strings.Join(more, "") +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		panic(err)
	}
	return r
}

func read(t *testing.T, r *http.Request) ([]byte, error) {
	t.Helper()
	a, err := sigv4.Parse(r)
	if err != nil {
		return nil, err
	}
	b, err := a.Body(r, secret, false)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(iotest.HalfReader(b))
}

func TestSignedChunks(t *testing.T) {
	got, err := read(t, example(frames()))
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{'a'}, 66560)) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for name, tc := range map[string]struct{ body, code string }{
		"changed byte":       {strings.Replace(frames(), "aaaa", "aaba", 1), sigv4.CodeSignature},
		"changed last byte":  {strings.Replace(frames(), "a\r\n0;", "b\r\n0;", 1), sigv4.CodeSignature},
		"changed signature":  {strings.Replace(frames(), sigs[1], sigs[0], 1), sigv4.CodeSignature},
		"changed last chunk": {strings.Replace(frames(), sigs[2], sigs[0], 1), sigv4.CodeSignature},
		"no signature":       {strings.Replace(frames(), ";chunk-signature="+sigs[0], "", 1), sigv4.CodeIncomplete},
		"cut":                {frames()[:70000-4000], sigv4.CodeIncomplete},
		"cut before its end": {strings.TrimSuffix(frames(), "\r\n"), sigv4.CodeIncomplete},
	} {
		got, err := read(t, example(tc.body))
		if errs.CodeOf(err) != tc.code || len(got) >= 66560 {
			t.Errorf("%s: %d bytes, %v; want %s and not the whole", name, len(got), err, tc.code)
		}
	}
}

func TestClockSkew(t *testing.T) {
	a, err := sigv4.Parse(example(frames()))
	if err != nil {
		t.Fatal(err)
	}
	for d, want := range map[time.Duration]string{0: sigv4.CodeSignature, 15 * time.Minute: sigv4.CodeSignature, 15*time.Minute + 1: sigv4.CodeSkewed, -15*time.Minute - 1: sigv4.CodeSkewed} {
		if err := a.Verify(t.Context(), example(frames()), "another secret", a.Time.Add(d)); errs.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", d, err, want)
		}
	}
}

// FuzzChunks: whatever the frames, a whole body comes only if it is the one that was announced; nothing panics or hangs.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"))
	f.Add([]byte("5;a=b\r\nhello\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := example("")
		r.Header.Set("X-Amz-Content-Sha256", sigv4.UnsignedTrailer)
		r.Header.Set("X-Amz-Decoded-Content-Length", "5")
		a, err := sigv4.Parse(r)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Trailer", "x-amz-checksum-crc32")
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		body, err := a.Body(r, secret, true)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if err == nil && len(got) != 5 || err != nil && (len(got) >= 5 || errs.CodeOf(err) == "") || errors.Is(err, io.EOF) {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// FuzzParse: an Authorization header is refused with a code, or names what was signed.
func FuzzParse(f *testing.F) {
	f.Add(example("").Header.Get("Authorization"))
	f.Fuzz(func(t *testing.T, s string) {
		r := example("")
		r.Header.Set("Authorization", s)
		a, err := sigv4.Parse(r)
		if err != nil {
			if errs.CodeOf(err) == "" {
				t.Error(err)
			}
			return
		}
		if err := a.Verify(t.Context(), r, "another secret", a.Time); errs.CodeOf(err) != sigv4.CodeSignature {
			t.Errorf("%q: %v", s, err)
		}
	})
}
