// Package certsclient is enrolment over HTTPS as the robot sees it: the bodies on the wire and a client. It imports nothing of the server,
// because robot binaries link it.
package certsclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kennel/infra/errs"
)

// Paths of the endpoints, below the base URL.
const (
	EnrollPath = "/v1/enroll"
	RenewPath  = "/v1/renew"
)

// MaxBody is the largest body either side reads, in bytes.
const MaxBody = 64 << 10

// Enroll is the body of POST /v1/enroll: with Secret, with Factory and FactoryProof, or with neither, to wait for an operator.
type Enroll struct {
	Thing        string `json:"thing"`
	Secret       string `json:"secret,omitempty"`
	CSR          string `json:"csr"`                     // PEM
	Factory      string `json:"factory,omitempty"`       // PEM, factory certificate first
	FactoryProof []byte `json:"factory_proof,omitempty"` // certs.FactoryProof over the DER of the request
}

// Renew is the body of POST /v1/renew.
type Renew struct {
	Certificate string `json:"certificate"` // PEM, leaf first
	CSR         string `json:"csr"`         // PEM, signed by the certificate's key
}

// Answer is the body of both answers.
type Answer struct {
	Certificate string    `json:"certificate"` // PEM, leaf first, without the root
	Root        string    `json:"root"`        // PEM: the content for the robot's trust file
	NotAfter    time.Time `json:"not_after"`
	MQTT        string    `json:"mqtt"` // URL of the broker, such as ssl://cloud.example:8883
}

// Wait is the body of an answer 202: the robot waits until an operator who sees the same fingerprint approves it.
type Wait struct {
	Waiting     string `json:"waiting"` // in words
	Fingerprint string `json:"fingerprint"`
	RetryS      int    `json:"retry_s"` // seconds until the next request
}

// CodeWaiting is the code of the error that a Wait becomes.
const CodeWaiting = "waiting_approval"

// Client calls the endpoints. Safe for concurrent use.
type Client struct {
	BaseURL string       // such as https://cloud.example:8443
	HTTP    *http.Client // with the robot's trust; required
}

// Enroll asks for a first certificate. Errors carry the kind, code and pause of the cloud's answer; without an answer they are Unavailable.
// A robot that must wait for approval gets Unavailable with CodeWaiting; the text contains the fingerprint to show.
func (c *Client) Enroll(ctx context.Context, req Enroll) (Answer, error) {
	return c.post(ctx, EnrollPath, req)
}

// Renew asks for the next certificate. Errors as for Enroll.
func (c *Client) Renew(ctx context.Context, req Renew) (Answer, error) {
	return c.post(ctx, RenewPath, req)
}

func (c *Client) post(ctx context.Context, path string, body any) (a Answer, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return a, fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.BaseURL, "/")+path, bytes.NewReader(b))
	if err != nil {
		return a, errs.New(errs.Invalid, "cloud address %.200q: %w", c.BaseURL, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return a, &errs.Error{Kind: errs.Unavailable, Code: "no_answer", Msg: "no answer from the cloud", Err: err}
	}
	defer resp.Body.Close() // read only
	b, err = io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	if err != nil {
		return a, &errs.Error{Kind: errs.Unavailable, Code: "no_answer", Msg: "the cloud's response ended early", Err: err}
	}
	if len(b) > MaxBody {
		return a, errs.New(errs.Unavailable, "response of more than %d bytes: is this our cloud?", MaxBody)
	}
	if resp.StatusCode == http.StatusAccepted {
		return a, ParseWait(b)
	}
	if resp.StatusCode != http.StatusOK {
		return a, problem(resp, b)
	}
	return ParseAnswer(b)
}

// ParseAnswer decodes the body of a good answer. Unknown fields are left alone, so that an older robot reads a newer cloud.
func ParseAnswer(b []byte) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return Answer{}, errs.New(errs.Unavailable, "response is not the JSON of an enrolment: %w", err)
	}
	if a.Certificate == "" {
		return Answer{}, errs.New(errs.Unavailable, "no certificate in the response")
	}
	return a, nil
}

// ParseWait makes an error of the body of an answer 202.
func ParseWait(b []byte) error {
	var w Wait
	if err := json.Unmarshal(b, &w); err != nil || w.Fingerprint == "" {
		return errs.New(errs.Unavailable, "the cloud answered 202 without a fingerprint: is this our cloud?")
	}
	return &errs.Error{Kind: errs.Unavailable, Code: CodeWaiting, Msg: w.Waiting, Retry: time.Duration(max(1, min(w.RetryS, 86400))) * time.Second}
}

// problem makes an error of a refusal. An answer that does not look like ours (a proxy's page) is Unavailable.
func problem(resp *http.Response, b []byte) error {
	var p struct {
		Error string `json:"error"`
		Kind  string `json:"kind"`
		Code  string `json:"code"`
	}
	e := &errs.Error{Kind: errs.Unavailable, Msg: "the cloud answered " + resp.Status}
	if err := json.Unmarshal(b, &p); err == nil && p.Kind != "" {
		e.Kind, e.Code, e.Msg = errs.ParseKind(p.Kind), p.Code, p.Error
	} else {
		e.Err = errors.New("no reason in the response: is this our cloud?")
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.Retry = time.Duration(min(s, 86400)) * time.Second
	}
	return e
}
