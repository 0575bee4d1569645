// Package httpjson asks servers of other houses for JSON, so that one of them that is slow, away, or talks nonsense costs its caller little: each
// request has a time limit, each answer a largest size, and a server that keeps failing is not asked for a while.
package httpjson

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sony/gobreaker/v2"

	"kennel/infra/cli/version"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Limits.
const (
	failures  = 5 // in a row, until a server is not asked
	pause     = 30 * time.Second
	maxAnswer = 256 << 10
)

// Server is one server. Safe for concurrent use.
type Server struct {
	name    string
	base    *url.URL
	token   logging.Secret
	limit   time.Duration
	breaker *gobreaker.CircuitBreaker[struct{}]
}

// New returns a server, called name in errors, whose requests may take limit each. token is shown as a bearer token; "" shows none.
func New(name, base string, token logging.Secret, limit time.Duration) (*Server, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errs.New(errs.Invalid, "%s at %.200q: want an address such as https://example.org/ask", name, base)
	}
	answered := func(err error) bool { // errors of the caller say nothing of the server
		return err == nil || errs.KindOf(err) == errs.NotFound || errs.KindOf(err) == errs.Invalid || errors.Is(err, context.Canceled)
	}
	return &Server{name, u, token, limit, gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{Timeout: pause, IsSuccessful: answered,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures }})}, nil
}

// Name returns the server's name.
func (s *Server) Name() string { return s.name }

// Problem returns why the server is not asked now; "": it is.
func (s *Server) Problem() string {
	if s.breaker.State() == gobreaker.StateOpen {
		return fmt.Sprintf("%d requests in a row failed; it is asked again within %v", failures, pause)
	}
	return ""
}

// Get asks for answer, with query added to the address. Errors: NotFound for 404 and 204, Invalid for other refusals of the request, else Unavailable.
func (s *Server) Get(ctx context.Context, query url.Values, answer any) error {
	u := *s.base
	q := u.Query()
	for k, v := range query {
		q[k] = v
	}
	u.RawQuery = q.Encode()
	return s.ask(ctx, http.MethodGet, u.String(), nil, answer)
}

// Post sends question and reads answer. Errors are those of Get.
func (s *Server) Post(ctx context.Context, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encode request to %s: %w", s.name, err)
	}
	return s.ask(ctx, http.MethodPost, s.base.String(), body, answer)
}

func (s *Server) ask(ctx context.Context, method, address string, body []byte, answer any) error {
	_, err := s.breaker.Execute(func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, s.limit)
		defer cancel()
		b, err := s.send(ctx, method, address, body)
		if err == nil && json.Unmarshal(b, answer) != nil {
			err = errs.New(errs.Unavailable, "%s answered with invalid JSON", s.name)
		}
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return errs.RetryLater(pause, s.name+" failed too often; requests to it are paused", nil)
	}
	return err
}

func (s *Server) send(ctx context.Context, method, address string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errs.New(errs.Invalid, "request to %s: %w", s.name, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "kennel/"+version.String())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+string(s.token))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, errs.New(errs.Unavailable, "%s did not answer in time: %w", s.name, ctx.Err())
		}
		// The address stays out of the message: a question may be part of it.
		return nil, errs.New(errs.Unavailable, "%s cannot be reached: %w", s.name, errors.Unwrap(err))
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, errs.New(errs.Unavailable, "read answer of %s: %w", s.name, err)
	case len(b) > maxAnswer:
		return nil, errs.New(errs.Unavailable, "%s answered with more than %d kB", s.name, maxAnswer>>10)
	case resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotFound:
		return nil, errs.New(errs.NotFound, "%s has no answer", s.name)
	case resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden:
		return nil, errs.New(errs.Invalid, "%s refused the request with status %d", s.name, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, errs.New(errs.Unavailable, "%s answered with status %d", s.name, resp.StatusCode)
	}
	return b, nil
}
