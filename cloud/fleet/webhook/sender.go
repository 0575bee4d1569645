package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"kennel/infra/cli/version"
	"kennel/infra/errs"
)

// Names of the request's headers.
const (
	IDHeader        = "Webhook-Id"
	TimestampHeader = "Webhook-Timestamp"
	SignatureHeader = "Webhook-Signature"
	AttemptHeader   = "Kennel-Attempt"
)

// Bounds of one attempt.
const (
	sendTime      = 10 * time.Second // unless the configuration says less
	handshakeTime = 5 * time.Second
	maxAnswer     = 64 << 10 // bytes read of an answer, and of its header; they are discarded
	maxErrorText  = 300
	maxRetryAfter = time.Hour
)

// Secrets: so many bytes, as text in base64 behind secretMark (Standard Webhooks).
const (
	secretMark = "whsec_"
	secretSize = 32
	minSecret  = 24
	maxSecret  = 64
)

func newID() string { return uuid.NewString() }

func secretText(key []byte) string { return secretMark + base64.StdEncoding.EncodeToString(key) }

// parseSecret reads secretText, or makes a new key for "". The error does not repeat the text.
func parseSecret(s string) ([]byte, error) {
	if s == "" {
		key := make([]byte, secretSize)
		rand.Read(key)
		return key, nil
	}
	b64, ok := strings.CutPrefix(s, secretMark)
	key, err := base64.StdEncoding.DecodeString(b64)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, errs.New(errs.Invalid, "secret: want %s and %d to %d bytes in base64", secretMark, minSecret, maxSecret)
	}
	return key, nil
}

// Sign returns the signature header of a body sent at a time, with each key.
func Sign(keys [][]byte, id string, at time.Time, body []byte) string {
	var out []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		out = append(out, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(out, " ")
}

// SenderConfig says who may be called.
type SenderConfig struct {
	Allow   []string       // networks that may be called although they are not public
	Roots   *x509.CertPool // nil: the system's
	Timeout time.Duration  // of one attempt; 0: 10 s
}

// Sender makes one attempt. Safe for concurrent use.
type Sender struct {
	guard   Guard
	http    *http.Client
	agent   string
	timeout time.Duration
}

// NewSender returns a sender that calls only what the guard lets it, without a proxy, over verified TLS.
func NewSender(cfg SenderConfig) (*Sender, error) {
	guard, err := NewGuard(cfg.Allow)
	if err != nil {
		return nil, err
	}
	timeout := cmp.Or(cfg.Timeout, sendTime)
	dialer := &net.Dialer{Timeout: handshakeTime, Control: guard.control}
	return &Sender{guard: guard, agent: "Kennel-Webhook/" + version.String(), timeout: timeout, http: &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.Roots}, TLSHandshakeTimeout: handshakeTime,
			ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: maxAnswer, DisableCompression: true, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: lanes, IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Guard returns what the sender goes by.
func (s *Sender) Guard() Guard { return s.guard }

// Close drops idle connections.
func (s *Sender) Close() { s.http.CloseIdleConnections() }

// answer is the receiver's response; the zero status means none.
type answer struct {
	status     int
	latency    time.Duration
	retryAfter time.Duration
	err        error // why it did not arrive; names no path and no query of the URL
}

// send makes one attempt.
func (s *Sender) send(ctx context.Context, h *Hook, keys [][]byte, d *Delivery, attempt int, at time.Time) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(d.Body))
	if err != nil {
		return answer{err: errors.New("not a URL that can be called")}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", s.agent)
	req.Header.Set(IDHeader, d.Event)
	req.Header.Set(TimestampHeader, strconv.FormatInt(at.Unix(), 10))
	req.Header.Set(SignatureHeader, Sign(keys, d.Event, at, d.Body))
	req.Header.Set(AttemptHeader, strconv.Itoa(attempt))
	started := time.Now()
	resp, err := s.http.Do(req)
	a.latency = time.Since(started)
	if err != nil {
		var outer *url.Error
		if errors.As(err, &outer) { // it spells the URL, which may hold a secret
			err = outer.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("no answer within " + s.timeout.String())
		}
		a.err = err
		return a
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // so that the connection can be used again; only the status counts
	a.status = resp.StatusCode
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		a.retryAfter = min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	return a
}
