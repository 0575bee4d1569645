// Package kithttp is the HTTP side of every endpoint: JSON in, JSON out, one table from error kinds to status codes.
package kithttp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-kit/kit/endpoint"
	gokithttp "github.com/go-kit/kit/transport/http"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// MaxBody is the largest request body read, in bytes, unless a handler says otherwise.
const MaxBody = 1 << 20

// StatusOf is the one table from kinds to HTTP status codes.
func StatusOf(k errs.Kind) int {
	switch k {
	case errs.Invalid:
		return http.StatusBadRequest
	case errs.NotFound:
		return http.StatusNotFound
	case errs.Conflict:
		return http.StatusConflict
	case errs.Unauthenticated:
		return http.StatusUnauthorized
	case errs.Denied:
		return http.StatusForbidden
	case errs.Exhausted:
		return http.StatusTooManyRequests
	case errs.Unavailable:
		return http.StatusServiceUnavailable
	case errs.Corrupt:
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

// KindOfStatus is StatusOf backwards, for those who count answers: "ok" below 400, else the name of a kind.
func KindOfStatus(code int) string {
	switch code {
	case http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusMisdirectedRequest:
		return errs.Invalid.String() // of net/http and of ours in front of the endpoints
	}
	if code < http.StatusBadRequest {
		return "ok"
	}
	for k := errs.Invalid; k <= errs.Corrupt; k++ {
		if StatusOf(k) == code {
			return k.String()
		}
	}
	return errs.Internal.String()
}

// Problem is the body of every error answer.
type Problem struct {
	Error string `json:"error"`          // for people: what was wrong, where, what was expected
	Kind  string `json:"kind"`           // errs kind, for programs
	Code  string `json:"code,omitempty"` // finer word, for programs
}

// WriteError answers with err's kind as status and a Problem as body.
func WriteError(w http.ResponseWriter, err error) {
	k := errs.KindOf(err)
	if errors.Is(err, context.DeadlineExceeded) {
		k = errs.Unavailable
	}
	writeProblem(w, StatusOf(k), k, err)
}

// WriteProblem is WriteError with a status of its own.
func WriteProblem(w http.ResponseWriter, status int, err error) {
	writeProblem(w, status, errs.KindOf(err), err)
}

func writeProblem(w http.ResponseWriter, status int, k errs.Kind, err error) {
	RetryAfter(w, err)
	WriteJSON(w, status, Problem{Error: errs.Public(err), Kind: k.String(), Code: errs.CodeOf(err)})
}

// RetryAfter writes the header that says when to try again, if err knows.
func RetryAfter(w http.ResponseWriter, err error) {
	if d := errs.RetryOf(err); d > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(d.Seconds()))))
	}
}

// RefuseForm returns the status of a page that says why a form was refused, and writes when to send it again. It is never 401, at which browsers ask for a
// password of their own.
func RefuseForm(w http.ResponseWriter, err error) (status int) {
	RetryAfter(w, err)
	if kind := errs.KindOf(err); kind != errs.Unauthenticated {
		return StatusOf(kind)
	}
	return http.StatusForbidden
}

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // it fails only if the peer is gone
}

// ReadJSON reads one JSON value of at most max bytes into v. Unknown fields, trailing data and other media types are errors.
func ReadJSON(r *http.Request, v any, max int64) error {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		if mt, _, err := mime.ParseMediaType(ct); err != nil || mt != "application/json" {
			return errs.New(errs.Invalid, "content type %.80q: want application/json", ct)
		}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, max+1))
	if err != nil {
		return errs.New(errs.Invalid, "read body: %w", err)
	}
	if int64(len(body)) > max {
		return errs.New(errs.Invalid, "body is larger than %d bytes", max)
	}
	if err := StrictJSON(body, v); err != nil {
		return errs.New(errs.Invalid, "body: %w", err)
	}
	return nil
}

// StrictJSON decodes exactly one JSON value without unknown fields.
func StrictJSON(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("empty: want a JSON object")
		}
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return fmt.Errorf("%s: got %s", cmp.Or(kind.Field, "the value"), kind.Value)
		}
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("data after the JSON value at byte %d", dec.InputOffset())
	}
	return nil
}

// Handler serves one endpoint: decode makes the request, the response is written as JSON. An endpoint that answers an http.Handler is
// left to write itself.
func Handler(ep endpoint.Endpoint, decode func(*http.Request) (any, error)) http.Handler {
	return gokithttp.NewServer(ep,
		func(_ context.Context, r *http.Request) (any, error) { return decode(r) },
		func(_ context.Context, w http.ResponseWriter, resp any) error {
			if resp == nil {
				w.WriteHeader(http.StatusNoContent)
				return nil
			}
			WriteJSON(w, http.StatusOK, resp)
			return nil
		},
		gokithttp.ServerErrorEncoder(func(_ context.Context, err error, w http.ResponseWriter) { WriteError(w, err) }),
	)
}

// Thing returns the thing that the path's {thing} names (kind Invalid).
func Thing(r *http.Request) (thing.ID, error) {
	id, err := thing.Parse(r.PathValue("thing"))
	if err != nil {
		return "", errs.New(errs.Invalid, "%w", err)
	}
	return id, nil
}
