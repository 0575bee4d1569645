// Package traceparent is the W3C trace context in one line, so that what a robot asks and what the cloud does about it are one trace:
//
//	00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//	version, trace id (16 bytes), id of the caller's span (8 bytes), flags (bit 0: sampled)
//
// Robots make one for each request (no tracing library is needed for that), the envelope of the request carries it, and the cloud's spans
// continue it. Source: W3C Recommendation "Trace Context", level 1, section 3.2.
package traceparent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mrand "math/rand/v2"
)

// Parent names a place in a trace. The zero value is none.
type Parent struct {
	Trace   [16]byte // never all zero in a valid one
	Span    [8]byte  // of the caller; never all zero in a valid one
	Sampled bool     // the caller asks that the trace be kept
}

// Size is the length of the text form, in bytes.
const Size = 55

// New returns the beginning of a trace. It is sampled in permille of a thousand cases: 0 never, 1000 always.
func New(permille int) Parent {
	var p Parent
	_, _ = rand.Read(p.Trace[:]) // never fails (crypto/rand)
	_, _ = rand.Read(p.Span[:])
	p.Trace[0] |= 1 // all zero would mean none; one bit is no loss
	p.Span[0] |= 1
	p.Sampled = mrand.IntN(1000) < permille
	return p
}

// Valid reports whether p names a place.
func (p Parent) Valid() bool { return p.Trace != [16]byte{} && p.Span != [8]byte{} }

// TraceID returns the trace in lower-case hexadecimal.
func (p Parent) TraceID() string { return hex.EncodeToString(p.Trace[:]) }

// String returns the text form; "" if p is not valid.
func (p Parent) String() string {
	if !p.Valid() {
		return ""
	}
	b := make([]byte, 0, Size)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, p.Trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, p.Span[:])
	if p.Sampled {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}

// Parse reads the text form. Of a version above 00 it reads what it knows, as the recommendation asks; other flags than sampled are
// dropped.
func Parse(s string) (Parent, error) {
	bad := func(what string) (Parent, error) {
		return Parent{}, fmt.Errorf("traceparent %.60q: %s; want 00-<32 hex>-<16 hex>-<2 hex>", s, what)
	}
	if len(s) < Size || len(s) > 4*Size {
		return bad(fmt.Sprintf("%d bytes long", len(s)))
	}
	version, ok := lowerHex(s[:2])
	switch {
	case !ok || version[0] == 0xff:
		return bad("unknown version")
	case version[0] == 0 && len(s) != Size, len(s) > Size && s[Size] != '-':
		return bad("data after the flags")
	case s[2] != '-' || s[35] != '-' || s[52] != '-':
		return bad("missing dash")
	}
	trace, ok1 := lowerHex(s[3:35])
	span, ok2 := lowerHex(s[36:52])
	flags, ok3 := lowerHex(s[53:55])
	if !ok1 || !ok2 || !ok3 {
		return bad("not lower-case hexadecimal")
	}
	p := Parent{Trace: [16]byte(trace), Span: [8]byte(span), Sampled: flags[0]&1 != 0}
	if !p.Valid() {
		return bad("id is all zeros")
	}
	return p, nil
}

// lowerHex decodes s; the recommendation does not allow A to F.
func lowerHex(s string) ([]byte, bool) {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'F' {
			return nil, false
		}
	}
	b, err := hex.DecodeString(s)
	return b, err == nil
}

type key struct{}

// With returns ctx carrying p for the requests made under it.
func With(ctx context.Context, p Parent) context.Context { return context.WithValue(ctx, key{}, p) }

// From returns what ctx carries; the zero Parent if nothing.
func From(ctx context.Context) Parent {
	p, _ := ctx.Value(key{}).(Parent)
	return p
}
