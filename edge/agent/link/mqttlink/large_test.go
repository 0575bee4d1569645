package mqttlink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
)

// TestUpload: a file goes to the cloud's address, whatever address the request names, and only the cloud's own refusal is one for good.
func TestUpload(t *testing.T) {
	type answer struct {
		status      int
		body, retry string
	}
	var next answer
	var got string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = r.Header.Get("Expect") + " " + r.Method + " " + r.URL.Path + " " + r.Header.Get("Usr-RobotESN") + " " + string(b)
		w.Header().Set("Retry-After", next.retry)
		w.WriteHeader(next.status)
		_, _ = io.WriteString(w, next.body) // the test reads it
	}))
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	b := newBySize(srv.URL, func() (*tls.Config, error) { return &tls.Config{RootCAs: roots, ServerName: "example.com"}, nil }, nil)
	for _, tc := range []struct {
		answer
		ok    bool
		kind  errs.Kind
		retry time.Duration
	}{
		{answer: answer{200, `{"id":"1"}`, ""}, ok: true},
		{answer: answer{403, `{"error":"no","kind":"denied","code":"opted_out"}`, ""}, kind: errs.Denied},
		{answer: answer{413, `{"error":"too large","kind":"invalid"}`, ""}, kind: errs.Invalid},
		{answer: answer{503, `{"error":"later","kind":"unavailable"}`, "120"}, kind: errs.Unavailable, retry: 2 * time.Minute},
		{answer: answer{429, `{"error":"later","kind":"exhausted"}`, "soon"}, kind: errs.Exhausted},
		{answer: answer{403, `<html>sign in to the hotel</html>`, ""}, kind: errs.Unavailable},
		{answer: answer{204, ``, ""}, kind: errs.Unavailable},
	} {
		next = tc.answer
		req, err := http.NewRequest(http.MethodPut, "https://elsewhere/v1/files/logs/a.gz", strings.NewReader("abc"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Usr-RobotESN", "00e20100")
		resp, err := b.upload(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		err = Refusal(resp)
		_ = resp.Body.Close() // read
		if (err == nil) != tc.ok || err != nil && (errs.KindOf(err) != tc.kind || errs.RetryOf(err) != tc.retry) {
			t.Errorf("%+v: got %v, kind %v, retry %v", tc.answer, err, errs.KindOf(err), errs.RetryOf(err))
		}
		if got != "100-continue PUT /v1/files/logs/a.gz 00e20100 abc" {
			t.Errorf("sent %q", got)
		}
	}
	srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, _ := http.NewRequest(http.MethodPut, "/x", nil) // a constant
	if _, err := b.upload(ctx, req); errs.KindOf(err) != errs.Unavailable || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody there: %v", err)
	}
}
