package kithttp

import (
	"errors"
	"net/http"
	"time"
)

// Stream begins server-sent events on w. What it returns writes and flushes, within limit, and reports whether the reader is still there.
func Stream(w http.ResponseWriter, limit time.Duration) func(text string) bool {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	return func(text string) bool {
		// A server without deadlines (a test's recorder) writes without.
		if err := out.SetWriteDeadline(time.Now().Add(limit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		if _, err := w.Write([]byte(text)); err != nil || out.Flush() != nil {
			return false
		}
		_ = out.SetWriteDeadline(time.Time{}) // on HTTP/2 it would end the stream even while nothing is written
		return true
	}
}
