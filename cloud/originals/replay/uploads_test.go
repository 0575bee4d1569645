package replay_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go/aws/credentials"
	"github.com/aws/aws-sdk-go/aws/defaults"
	"github.com/aws/aws-sdk-go/aws/request"
	"github.com/aws/aws-sdk-go/aws/session"
	v4 "github.com/aws/aws-sdk-go/aws/signer/v4"
	sdk "github.com/aws/aws-sdk-go/service/s3"
	"github.com/aws/aws-sdk-go/service/s3/s3manager"

	"kennel/cloud/identity/token/tokentest"
	"kennel/cloud/originals/replay"
	"kennel/infra/api/tokenpb"
)

// put is an upload as S3 sees it.
type put struct {
	method, host, uri, body string
	header                  http.Header
}

// s3 answers the first uploads with the statuses of answers, the later ones with 200, and keeps what came.
type s3 struct {
	answers []int
	text    string // of an answer that is not 200
	came    []put
}

func (s *s3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing is seen in the comparison
	s.came = append(s.came, put{r.Method, r.Host, r.RequestURI, string(body), r.Header})
	if n := len(s.came); n <= len(s.answers) {
		w.WriteHeader(s.answers[n-1])
		_, _ = io.WriteString(w, s.text)
	}
}

const uploadBucket = "anki-device-logs-prod"

// start serves s under the bucket's name and returns a robot that has credentials.
func (s *s3) start(t *testing.T) *replay.Robot {
	t.Helper()
	maker := tokentest.NewAuthority(t, "all")
	srv := httptest.NewUnstartedServer(s)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{maker.Leaf(t, x509.Certificate{DNSNames: []string{replay.UploadHost(uploadBucket)}})}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	r, err := replay.New(replay.ServerConfig{LogFiles: "s3://" + uploadBucket + "/victor/logs/"}, maker.Pool(), maker.Factory(t, "vic:00e20100"), true)
	if err != nil {
		t.Fatal(err)
	}
	r.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if want := replay.UploadHost(uploadBucket) + ":443"; addr != want {
			t.Errorf("dialed %s, want %s", addr, want)
		}
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	}
	r.Claims, r.RetryPause = map[string]any{"user_id": "u+1 =ü"}, time.Millisecond
	r.STS = &tokenpb.StsToken{AccessKeyId: "ASIAEXAMPLE", SecretAccessKey: "secret", SessionToken: "session/+=", Expiration: "2126-11-22T10:00:00Z"}
	return r
}

// TestUploadIsTheSDKs: the request is the one of the SDK that originals are built with, to the byte (peer facts, section 1, log upload).
func TestUploadIsTheSDKs(t *testing.T) {
	for _, size := range []int{0, 1, 300 << 10, 2<<20 - 1} {
		s := &s3{}
		r, log := s.start(t), bytes.Repeat([]byte("l"), size)
		key, err := r.Upload(t.Context(), "vic-engine &.log.gz", time.Now(), log)
		if err != nil || len(s.came) != 1 {
			t.Fatalf("%d bytes: %v after %d requests", size, err, len(s.came))
		}
		at, err := time.Parse("20060102T150405Z", s.came[0].header.Get("X-Amz-Date"))
		if err != nil || time.Since(at).Abs() > time.Hour {
			t.Errorf("%d bytes: signed at %v (%v)", size, at, err)
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.Roots}, DialContext: r.Dial}
		defer transport.CloseIdleConnections()
		genuine := &session.Session{Handlers: defaults.Handlers(), Config: defaults.Config().WithRegion("us-west-2").WithHTTPClient(&http.Client{Transport: transport}).
			WithCredentials(credentials.NewStaticCredentials(r.STS.AccessKeyId, r.STS.SecretAccessKey, r.STS.SessionToken))}
		client := sdk.New(genuine)
		client.Handlers.Sign.Swap(v4.SignRequestHandler.Name, request.NamedHandler{Name: v4.SignRequestHandler.Name, Fn: func(q *request.Request) { // at that time
			v4.SignSDKRequestWithCurrentTime(q, func() time.Time { return at }, func(s *v4.Signer) { s.DisableURIPathEscaping = true })
		}})
		bucket := uploadBucket
		if _, err := s3manager.NewUploaderWithClient(client).UploadWithContext(t.Context(), &s3manager.UploadInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(log)}); err != nil {
			t.Fatal(err)
		}
		got, want := s.came[0], s.came[1]
		if !maps.EqualFunc(got.header, want.header, func(a, b []string) bool { return len(a) == 1 && len(b) == 1 && a[0] == b[0] }) {
			t.Errorf("%d bytes: headers\n%v, want\n%v", size, got.header, want.header)
		}
		if got.method != want.method || got.host != want.host || got.uri != want.uri || got.body != want.body || got.body != string(log) {
			t.Errorf("%d bytes: %s %s %s with %d bytes, want %s %s %s", size, got.method, got.host, got.uri, len(got.body), want.method, want.host, want.uri)
		}
	}
}

// TestUploadRefused: a 5xx is repeated three times; a refusal is told with its code.
func TestUploadRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		s    s3
		want error
		came int
	}{
		"once":    {s3{answers: []int{503}}, nil, 2},
		"three":   {s3{answers: []int{503, 500, 503}}, nil, 4},
		"always":  {s3{answers: []int{503, 503, 503, 503}, text: "<html>"}, replay.Refused{Status: 503, Code: "ServiceUnavailable"}, 4},
		"refused": {s3{answers: []int{403}, text: "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"}, replay.Refused{Status: 403, Code: "AccessDenied", Message: "no"}, 1},
	} {
		r := tc.s.start(t)
		if _, err := r.Upload(t.Context(), "a.log", time.Now(), []byte("a log")); !errors.Is(err, tc.want) || len(tc.s.came) != tc.came {
			t.Errorf("%s: %v after %d requests, want %v after %d", name, err, len(tc.s.came), tc.want, tc.came)
		}
	}
	s := &s3{}
	if _, err := s.start(t).Upload(t.Context(), "a.log", time.Now(), make([]byte, 2<<20)); err == nil || len(s.came) != 0 {
		t.Errorf("2 MiB: %v after %d requests, want a refusal before any", err, len(s.came))
	}
}
