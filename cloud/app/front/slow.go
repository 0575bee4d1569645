package front

import (
	"io"
	"net/http"
	"time"
)

// BodyTime is how long the body of a request may take, of whatever size: 1 MB over a slow line. Handlers that take more say so themselves.
const BodyTime = time.Minute

// BoundBodies cuts off who sends a body so slowly that the connection is all they want. Requests without a body, such as streams to the
// caller, may last.
func BoundBodies(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
			// The server takes the deadline back before the next request of the connection. A writer that cannot is none of a network.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
		}
		next.ServeHTTP(w, r)
	})
}

// StreamTime is how long one read of an upload, or one write of an answer, may wait for the client, whatever the whole takes.
const StreamTime = 20 * time.Second

// BoundReads is BoundBodies for uploads of any length: each read has its own time.
func BoundReads(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &pacedBody{r.Body, http.NewResponseController(w), limit}
		}
		next.ServeHTTP(w, r)
	})
}

type pacedBody struct {
	io.ReadCloser
	rc    *http.ResponseController
	limit time.Duration
}

// Read reads with a deadline of its own.
func (b *pacedBody) Read(p []byte) (int, error) {
	_ = b.rc.SetReadDeadline(time.Now().Add(b.limit)) // as in BoundBodies
	return b.ReadCloser.Read(p)
}

// boundWrites ends a stream of HTTP/2 whose client takes nothing: it answers pings and keeps the window closed, which no deadline of the connection
// sees. HTTP/1 has the front door's time for each write.
func boundWrites(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 {
			next.ServeHTTP(w, r)
			return
		}
		out := &pacedWriter{w, http.NewResponseController(w), limit}
		next.ServeHTTP(out, r)
		_ = out.rc.SetWriteDeadline(time.Now().Add(limit)) // for what is buffered; a stream that ends before takes it back
	})
}

// pacedWriter has a deadline for each write and none between them.
type pacedWriter struct {
	http.ResponseWriter
	rc    *http.ResponseController
	limit time.Duration
}

// Unwrap gives http.ResponseController the server's writer.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *pacedWriter) pace() (done func()) {
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.limit)) // HTTP/2 has them
	return func() { _ = w.rc.SetWriteDeadline(time.Time{}) }
}

// Write implements io.Writer.
func (w *pacedWriter) Write(b []byte) (int, error) {
	defer w.pace()()
	return w.ResponseWriter.Write(b)
}

// FlushError implements what http.ResponseController asks for.
func (w *pacedWriter) FlushError() error {
	defer w.pace()()
	return w.rc.Flush()
}
