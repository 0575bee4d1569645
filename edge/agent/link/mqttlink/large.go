package mqttlink

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"kennel/infra/api/large"
	"kennel/infra/errs"
)

// bySize sends requests over HTTPS that do not fit a broker message.
type bySize struct {
	base string // https://host:port
	http *http.Client
}

// Secure returns the host:port of the cloud's HTTPS address and the TLS configuration with the device certificate, for a service that is no request: its
// caller adds to the protocols. It fails without a connection to the broker, as Upload does.
func (l *Link) Secure() (addr string, conf *tls.Config, err error) {
	if l.size == nil || !l.Up() {
		return "", nil, errs.New(errs.Unavailable, "no connection to the cloud")
	}
	to, err := url.Parse(l.size.base)
	if err != nil {
		return "", nil, fmt.Errorf("address of the cloud: %w", err)
	}
	if conf, err = l.cfg.LargeTLS(); err != nil {
		return "", nil, err
	}
	conf = conf.Clone()
	conf.NextProtos = []string{large.ALPN}
	return net.JoinHostPort(to.Hostname(), cmp.Or(to.Port(), "443")), conf, nil
}

// newBySize returns the client for base; creds are the same as the broker's, for base's host. A nil dial is the system's.
func newBySize(base string, creds func() (*tls.Config, error), dial func(ctx context.Context, network, addr string) (net.Conn, error)) *bySize {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	}
	return &bySize{base: base, http: &http.Client{
		Timeout: 2 * time.Minute,
		Transport: &http.Transport{
			ExpectContinueTimeout: 10 * time.Second,
			DisableKeepAlives:     true, // rare, and the certificate may renew in between
			DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				cfg, err := creds()
				if err != nil {
					return nil, err
				}
				cfg = cfg.Clone()
				cfg.NextProtos = []string{large.ALPN, "http/1.1"}
				raw, err := dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				conn := tls.Client(raw, cfg)
				if err := conn.HandshakeContext(ctx); err != nil {
					_ = raw.Close() // the first error is reported
					return nil, err
				}
				return conn, nil
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("redirected: want no redirect of a request")
		},
	}}
}

// uploadTime bounds one upload: the largest, over a slow link.
const uploadTime = 15 * time.Minute

// Upload sends a file over HTTPS with the device certificate; of the request's address only the path counts. It fails at once without a connection to
// the broker, which is how the battery keeps the robot from the network. The caller reads the response with Refusal and closes its body.
func (l *Link) Upload(ctx context.Context, req *http.Request) (*http.Response, error) {
	if l.size == nil || !l.Up() {
		return nil, errs.New(errs.Unavailable, "no connection to the cloud")
	}
	return l.size.upload(ctx, req)
}

func (b *bySize) upload(ctx context.Context, req *http.Request) (*http.Response, error) {
	to, err := url.Parse(b.base)
	if err != nil {
		return nil, fmt.Errorf("upload: %w", err)
	}
	req = req.Clone(ctx)
	req.URL.Scheme, req.URL.Host = to.Scheme, to.Host
	req.Header.Set("Expect", "100-continue") // a refused file is not sent
	client := *b.http
	client.Timeout = uploadTime
	resp, err := client.Do(req)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "upload: %w", err)
	}
	return resp, nil
}

// Refusal returns nil if the cloud stored an upload, which it says with 200. Only a refusal in the cloud's own words is of another kind than
// Unavailable: whatever else answers at its address must not make a robot drop a file.
func Refusal(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, large.MaxBody))
	if err != nil {
		return errs.New(errs.Unavailable, "answer to an upload: %w", err)
	}
	err = problem(resp.Status, body)
	var p *errs.Error
	if s, aerr := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); aerr == nil && errors.As(err, &p) {
		p.Retry = time.Duration(s) * time.Second
	}
	return err
}

// do sends one request and reads its answer; it does not try again: the caller does.
func (b *bySize) do(ctx context.Context, service, method string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+large.Path(service, method), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request %s/%s over HTTPS: %w", service, method, err)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "request %s/%s over HTTPS: %w", service, method, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, large.MaxBody+1))
	switch {
	case err != nil:
		return nil, errs.New(errs.Unavailable, "answer to %s/%s over HTTPS: %w", service, method, err)
	case len(answer) > large.MaxBody:
		return nil, errs.New(errs.Corrupt, "answer to %s/%s over HTTPS is larger than %d bytes", service, method, large.MaxBody)
	case resp.StatusCode == http.StatusOK:
		return answer, nil
	}
	return nil, problem(resp.Status, answer)
}

// problem reads the cloud's refusal; an answer that is not ours (a proxy's page) counts as Unavailable.
func problem(status string, body []byte) error {
	var p struct{ Error, Kind, Code string }
	if err := json.Unmarshal(body, &p); err != nil || p.Kind == "" {
		return errs.New(errs.Unavailable, "the cloud's address answered %s: want an answer of Kennel", status)
	}
	return &errs.Error{Kind: errs.ParseKind(p.Kind), Code: p.Code, Msg: p.Error}
}
