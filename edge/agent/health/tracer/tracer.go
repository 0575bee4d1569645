// Package tracer records what agentd's goroutines do, for go tool trace: the counterpart of the original's ankitrace, which traced the kernel (VEC-DGN-08).
//
//	Record(ctx, w, 5*time.Second)     the next seconds, on demand
//	t, err := Begin(); t.Snapshot(w)  the last seconds, at a fault; costs a percent or two of processor time meanwhile
package tracer

import (
	"context"
	"fmt"
	"io"
	"runtime/trace"
	"time"
)

// The window of a Tracer; own defaults.
const (
	window    = 5 * time.Second
	mostBytes = 2 << 20
)

// Most is the longest time that Record takes.
const Most = 30 * time.Second

// Record writes a trace of the next moments. Only one is recorded at a time.
func Record(ctx context.Context, w io.Writer, d time.Duration) error {
	if d <= 0 || d > Most {
		return fmt.Errorf("trace of %v: want up to %v", d, Most)
	}
	if err := trace.Start(w); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	defer trace.Stop()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Tracer keeps the last seconds in memory. Safe for concurrent use.
type Tracer struct{ recorder *trace.FlightRecorder }

// Begin begins to keep them; there is one Tracer in a process.
func Begin() (*Tracer, error) {
	r := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: window, MaxBytes: mostBytes})
	if err := r.Start(); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return &Tracer{r}, nil
}

// Snapshot writes them.
func (t *Tracer) Snapshot(w io.Writer) error {
	if _, err := t.recorder.WriteTo(w); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

// End forgets them.
func (t *Tracer) End() { t.recorder.Stop() }
