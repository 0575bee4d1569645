package ctl

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
)

const (
	requestTimeout = 20 * time.Second
	maxAnswer      = 64 << 20
	maxEvent       = 1 << 20 // bytes of one line of a stream
)

// conn speaks to one cloud as one caller.
type conn struct {
	s        session
	http     *http.Client
	patience time.Duration // for a whole answer
}

// connect returns the connection of this command line. It refuses before it asks the cloud if there is no token.
func (a *app) connect(ctx context.Context) (*conn, error) {
	if a.conn == nil {
		s, err := a.session(ctx)
		if err != nil {
			return nil, err
		}
		if s.Token == "" {
			return nil, errs.New(errs.Unauthenticated, "not signed in to %s: run kennelctl login -server %s", s.Server, s.Server)
		}
		if a.conn, err = newConn(s, requestTimeout); err != nil {
			return nil, err
		}
	}
	return a.conn, nil
}

// connectUnknown returns a connection without a session: for people who are not signed in.
func (a *app) connectUnknown(ctx context.Context) (*conn, error) {
	s, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	s.Token = ""
	return newConn(s, requestTimeout)
}

// API returns a client of a cloud as kennelctl reaches it with these flags, as the person who is signed in there.
func API(server, ca, onebox string) client.Client {
	return caller((&app{server: server, ca: ca, onebox: onebox}).connect)
}

// caller returns the client of the API that makes its requests over what connect returns.
func caller(connect func(context.Context) (*conn, error)) client.Client {
	return client.Client{Do: func(ctx context.Context, method, path string, in any) ([]byte, http.Header, error) {
		c, err := connect(ctx)
		if err != nil {
			return nil, nil, err
		}
		return c.do(ctx, method, path, in)
	}}
}

// newConn returns a connection that waits for an answer for at most patience; for a stream, until it begins.
func newConn(s session, patience time.Duration) (*conn, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM([]byte(s.CA)) {
			return nil, errs.New(errs.Invalid, "root certificates: no CERTIFICATE block in PEM")
		}
	}
	return &conn{s, &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: conf, TLSHandshakeTimeout: 10 * time.Second,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, ForceAttemptHTTP2: true, ResponseHeaderTimeout: patience},
		// A token is sent to the server that gave it, and not to where that server redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, patience}, nil
}

// do makes one request and returns the body and the header of a good answer. It sends a reader as CSV as it is read, nil as nothing and
// everything else as JSON.
func (c *conn) do(ctx context.Context, method, path string, in any) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	var body io.Reader
	head := http.Header{"Accept": {"application/json"}}
	switch in := in.(type) {
	case nil:
	case io.Reader:
		body = io.NopCloser(in)
		head.Set("Content-Type", "text/csv")
	default:
		b, err := json.Marshal(in)
		if err != nil {
			return nil, nil, err
		}
		body = bytes.NewReader(b)
		head.Set("Content-Type", "application/json")
	}
	resp, err := c.send(ctx, method, path, body, head)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, unreachable(c.s.Server, err)
	}
	return b, resp.Header, nil
}

// send makes one request and returns a good answer, whose body the caller closes; any other becomes an error of its kind.
func (c *conn) send(ctx context.Context, method, path string, body io.Reader, head http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.s.Server+path, body)
	if err != nil {
		return nil, err
	}
	if head != nil {
		req.Header = head
	}
	if u, ok := body.(*uploading); ok {
		req.ContentLength = u.size
	}
	req.Header.Set("User-Agent", "kennelctl/"+version.String())
	if c.s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.s.Token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(c.s.Server, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refused(resp)
}

// refused makes an error of an answer that is none of 2xx (Problem and DeliveryProblem of the API).
func (c *conn) refused(resp *http.Response) error {
	var p client.DeliveryProblem
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || json.Unmarshal(b, &p) != nil || p.Error == "" {
		if err := notReady(c.s.Server, b); err != nil {
			return err
		}
		kind := errs.Internal
		switch resp.StatusCode {
		case http.StatusNotFound, http.StatusMethodNotAllowed:
			kind = errs.NotFound
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			kind = errs.Unavailable
		}
		return errs.New(kind, "%s answered %s to %s: is this the API of a Kennel cloud?", c.s.Server, resp.Status, resp.Request.URL.Path)
	}
	kind := errs.ParseKind(p.Kind)
	if kind == errs.Unauthenticated && c.s.Token != "" {
		p.Error += "; your session has ended: run kennelctl login -server " + c.s.Server
	}
	if after := resp.Header.Get("Retry-After"); after != "" {
		p.Error += "; try again in " + after + " s"
	}
	if len(p.Lines) > 0 {
		p.Error = "nothing was registered"
		for _, l := range p.Lines {
			p.Error += fmt.Sprintf("\nline %d: %s", l.Line, l.Problem)
		}
		if p.More > 0 {
			p.Error += fmt.Sprintf("\nand %d more", p.More)
		}
	}
	return errs.Coded(kind, p.Code, "%s", p.Error)
}

// unreachable says why a cloud cannot be reached, in the four classes that VEC-CLD-07 tells apart.
func unreachable(server string, err error) error {
	var dns *net.DNSError
	var untrusted x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var timeout net.Error
	var request *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &dns):
		return errs.New(errs.Unavailable, "no address for %s: check the name and the network", dns.Name)
	case errors.As(err, &untrusted):
		return errs.New(errs.Unavailable, "%s: certificate signed by an unknown authority; trust its root with -ca FILE", server)
	case errors.As(err, &name):
		return errs.New(errs.Unavailable, "%s: certificate for another name: %s", server, strings.TrimPrefix(name.Error(), "x509: "))
	case errors.As(err, &invalid):
		return errs.New(errs.Unavailable, "%s: invalid certificate: %s", server, strings.TrimPrefix(invalid.Error(), "x509: "))
	case errors.Is(err, syscall.ECONNREFUSED):
		return errs.New(errs.Unavailable, "connect to %s: connection refused; is the cloud running?", server)
	case errors.As(err, &timeout) && timeout.Timeout():
		return errs.New(errs.Unavailable, "%s did not answer in time: check the network, or try again later", server)
	case errors.As(err, &request):
		err = request.Err
	}
	return errs.New(errs.Unavailable, "connect to %s: %w", server, err)
}

// errStreamEnded: the server closed a stream; that is ordinary, one connects again.
var errStreamEnded = errors.New("the stream ended")

// stream reads server-sent events and calls f with the id and data of each, until ctx ends, f fails, or the stream ends.
func (c *conn) stream(ctx context.Context, path, lastID string, f func(id string, data []byte) error) error {
	head := http.Header{"Accept": {"text/event-stream"}}
	if lastID != "" {
		head.Set("Last-Event-ID", lastID)
	}
	resp, err := c.send(ctx, http.MethodGet, path, nil, head)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return readEvents(resp.Body, f)
}

// readEvents parses text/event-stream. A line longer than maxEvent is an error.
func readEvents(r io.Reader, f func(id string, data []byte) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxEvent)
	var id string
	var data []byte
	for sc.Scan() {
		line := strings.TrimSuffix(sc.Text(), "\r")
		if line == "" {
			if data != nil {
				if err := f(id, data); err != nil {
					return err
				}
			}
			data = nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "data":
			if data != nil {
				data = append(data, '\n')
			}
			if len(data)+len(value) > maxEvent {
				return fmt.Errorf("stream: event larger than %d bytes", maxEvent)
			}
			data = append(data, value...)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("%w: %w", errStreamEnded, err)
	}
	return errStreamEnded
}
