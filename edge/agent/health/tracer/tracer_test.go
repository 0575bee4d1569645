package tracer

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestTrace is VEC-DGN-08: a Go execution trace on demand, and of the time before a fault.
func TestTrace(t *testing.T) {
	is := func(b []byte) bool {
		return bytes.HasPrefix(b, []byte("go 1.")) && bytes.Contains(b[:16], []byte("trace"))
	}
	var b bytes.Buffer
	if err := Record(t.Context(), &b, 10*time.Millisecond); err != nil || !is(b.Bytes()) {
		t.Errorf("%v, %d bytes", err, b.Len())
	}
	for _, d := range []time.Duration{0, time.Minute} {
		if err := Record(t.Context(), &b, d); err == nil || !strings.Contains(err.Error(), "want up to 30s") {
			t.Errorf("%v: %v", d, err)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := Record(stopped, &b, Most); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	tracer, err := Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(); err == nil {
		t.Error("two tracers in one process")
	}
	b.Reset()
	if err := tracer.Snapshot(&b); err != nil || !is(b.Bytes()) {
		t.Errorf("%v, %d bytes", err, b.Len())
	}
	tracer.End()
	if err := tracer.Snapshot(&b); err == nil {
		t.Error("a snapshot of a tracer that ended")
	}
}
