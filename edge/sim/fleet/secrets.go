package fleet

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Registrar registers things with the cloud, as an operator. Safe for concurrent use.
type Registrar struct {
	api, token string
	http       *http.Client
}

// NewRegistrar returns a Registrar for the cloud at api (https://host:port), with an operator's token and the root that signed the cloud's
// certificate.
func NewRegistrar(api, token string, rootPEM []byte) (*Registrar, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(rootPEM) {
		return nil, errs.New(errs.Invalid, "trusted root has no certificate")
	}
	return &Registrar{strings.TrimSuffix(api, "/"), token, &http.Client{Timeout: 30 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 16, MaxConnsPerHost: 16,
		}}}, nil
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// Secret registers a thing and returns its claim secret, which the cloud tells this once.
func (r *Registrar) Secret(ctx context.Context, id thing.ID) (string, error) {
	body, err := json.Marshal(map[string]thing.ID{"thing": id})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.api+"/v1/things", bytes.NewReader(body))
	if err != nil {
		return "", errs.New(errs.Invalid, "register %s: %w", id, err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.http.Do(req)
	if err != nil {
		return "", errs.New(errs.Unavailable, "register %s: %w", id, err)
	}
	defer resp.Body.Close() // read only
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", errs.New(errs.Unavailable, "register %s: %w", id, err)
	}
	secret, err := parseRegistration(resp.StatusCode, b)
	if err != nil {
		if errs.CodeOf(err) == "thing_exists" {
			return "", fmt.Errorf("register %s: %w; its folder is missing: choose another first serial, or restore the folder", id, err)
		}
		return "", fmt.Errorf("register %s: %w", id, err)
	}
	return secret, nil
}

// parseRegistration reads the answer of POST /v1/things.
func parseRegistration(status int, b []byte) (string, error) {
	var a struct{ Secret, Error, Kind, Code string }
	err := json.Unmarshal(b, &a)
	switch {
	case status == http.StatusOK && err == nil && a.Secret != "":
		return a.Secret, nil
	case err != nil || a.Kind == "":
		return "", errs.New(errs.Unavailable, "the cloud's address answered %d: want an answer of Kennel", status)
	}
	return "", &errs.Error{Kind: errs.ParseKind(a.Kind), Code: a.Code, Msg: a.Error}
}

// Known is claim secrets that are known before.
type Known map[thing.ID]string

// Secret returns the thing's.
func (k Known) Secret(_ context.Context, id thing.ID) (string, error) {
	s, ok := k[id]
	if !ok {
		if len(k) == 0 {
			return "", errs.Coded(errs.NotFound, "no_secrets", "%s has no claim secret: a robot without a folder needs -token-file FILE, which registers it, or -secrets FILE", id)
		}
		return "", errs.New(errs.NotFound, "%s is not among the %d robots of the list of secrets", id, len(k))
	}
	return s, nil
}

// ParseSecrets reads CSV lines thing,secret; lines that begin with # are comments. An error names the line.
func ParseSecrets(b []byte) (Known, error) {
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord, r.Comment, r.ReuseRecord = 2, '#', true
	out := Known{}
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, errs.New(errs.Invalid, "secrets: %w", err)
		}
		line, _ := r.FieldPos(0)
		id, err := thing.Parse(rec[0])
		switch _, twice := out[id]; {
		case err != nil:
			return nil, errs.New(errs.Invalid, "secrets: line %d: %w", line, err)
		case rec[1] == "":
			return nil, errs.New(errs.Invalid, "secrets: line %d: %s has an empty secret", line, id)
		case twice:
			return nil, errs.New(errs.Invalid, "secrets: line %d: %s given twice", line, id)
		}
		out[id] = rec[1]
	}
}
