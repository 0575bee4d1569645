package robotapp

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"kennel/edge/core/rt"
	"kennel/infra/logging"
)

// Own defaults of a recording. A Vector fills about 60 KiB a second: the ring buffers over a minute for a slow medium.
const (
	recordRing     = 4 << 20
	recordEvery    = 200 * time.Millisecond
	recordLimitMiB = 256 // over an hour
)

// recorder writes the loop's tape to a file, outside the loop. It ends early at its limit or when a write fails; the robot keeps running.
type recorder struct {
	log     *slog.Logger
	tape    *rt.Tape
	file    *os.File
	limit   int64
	written int64
}

// newRecorder begins a recording in path and replaces the file there.
func newRecorder(log *slog.Logger, path string, limitMiB int) (*recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("-record: %w", err)
	}
	return &recorder{log: log, tape: rt.NewTape(recordRing), file: f, limit: int64(limitMiB) << 20}, nil
}

// tapeOf is the recorder's tape; without a recorder there is none.
func (r *recorder) tapeOf() *rt.Tape {
	if r == nil {
		return nil
	}
	return r.tape
}

// run empties the tape until ctx ends, which is after the loop's end: it takes in the last step too.
func (r *recorder) run(ctx context.Context) error {
	tick := time.NewTicker(recordEvery)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		if !r.flush() {
			break
		}
	}
	if err := r.file.Close(); err != nil {
		r.log.Warn("recording not closed", logging.Err, err)
	}
	<-ctx.Done() // a service that returns before is begun again
	return nil
}

// flush writes the buffered records; false: the recording has ended. A flush ends with a whole record, and so does a file that reached its limit.
func (r *recorder) flush() bool {
	n, err := r.tape.Flush(r.file)
	r.written += int64(n)
	switch {
	case err != nil:
		r.log.Warn("recording ended", "file", r.file.Name(), "bytes", r.written, logging.Err, err)
		return false
	case r.tape.Lost() > 0:
		r.log.Warn("recording ended; file too slow", "file", r.file.Name(), "bytes", r.written, "lost", r.tape.Lost())
		return false
	case r.written >= r.limit:
		r.log.Info("recording ended; size limit reached", "file", r.file.Name(), "bytes", r.written)
		return false
	}
	return true
}
