package kithttp

import (
	"errors"
	"io"
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

// stallTime is how long one read of a body may take.
const stallTime = 30 * time.Second

// Patient returns a body whose every read has its own time, in place of one for the whole: an upload may last as long as it comes.
func Patient(w http.ResponseWriter, body io.Reader) io.Reader {
	return patient{body, http.NewResponseController(w)}
}

type patient struct {
	io.Reader
	rc *http.ResponseController
}

// Read implements io.Reader.
func (p patient) Read(b []byte) (int, error) {
	_ = p.rc.SetReadDeadline(time.Now().Add(stallTime)) // a writer that cannot is none of a network
	return p.Reader.Read(b)
}
