// Package logging sets up slog and names the keys that facts carry, so that one search finds one thing everywhere.
package logging

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Keys of attributes.
const (
	Thing  = "thing"
	Body   = "body"
	Doc    = "doc"
	Err    = "err"
	Part   = "part"
	Addr   = "addr"
	Caller = "caller" // a thing id, or the id of a person's account
	// Of the request that a record belongs to; they come from its context (With).
	Request = "request" // id of one request: a robot repeats it when it asks again
	Trace   = "trace"   // W3C trace id, the same on the robot and in the cloud
)

// New returns a logger that writes to w, also what the context of a record carries (With). level is debug, info, warn or error; format is text or json.
func New(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch strings.ToLower(format) {
	case "text", "":
		return slog.New(Contextual(slog.NewTextHandler(w, opts))), nil
	case "json":
		return slog.New(Contextual(slog.NewJSONHandler(w, opts))), nil
	}
	return nil, fmt.Errorf("log format %q: want text or json", format)
}

// Secret is a password, a token or a claim secret: a string that never appears in a log, whatever prints it.
type Secret string

// LogValue hides the secret from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// String hides the secret from fmt; Reveal gives it.
func (Secret) String() string { return "[secret]" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "[secret]" }

// Reveal returns the secret for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// Sum returns the SHA-256 of the secret, under which a store keeps it. That is safe only for secrets of many random bits.
func (s Secret) Sum() [sha256.Size]byte { return sha256.Sum256([]byte(s)) }
