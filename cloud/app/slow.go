package app

import (
	"net/http"
	"time"
)

// bodyTime is how long the body of a request may take, of whatever size: 1 MB over a slow line. Handlers that take more say so themselves.
const bodyTime = time.Minute

// boundBodies cuts off who sends a body so slowly that the connection is all they want. Requests without a body, such as streams to the
// caller, may last.
func boundBodies(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
			// The server takes the deadline back before the next request of the connection. A writer that cannot is none of a network.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
		}
		next.ServeHTTP(w, r)
	})
}
