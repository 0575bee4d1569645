package telemetry

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"

	"kennel/infra/api/traceparent"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

// Headers of a request and its answer.
const (
	RequestIDHeader   = "X-Request-Id" // taken over if it looks like one, else made; always in the answer, so that a person can quote it
	TraceparentHeader = "Traceparent"
)

// HTTP measures the requests that next answers, each under its pattern in mux ("unmatched" if it has none), and gives it an id. next is mux
// with its middleware, so that refusals by middleware count too. The caller's trace continues.
func (t *Telemetry) HTTP(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, name := mux.Handler(r)
		if name == "" {
			name = "unmatched"
		}
		id := requestID(r.Header.Get(RequestIDHeader))
		w.Header().Set(RequestIDHeader, id)
		facts := []slog.Attr{slog.String(logging.Request, id)}
		ctx := r.Context()
		if p, err := traceparent.Parse(r.Header.Get(TraceparentHeader)); err == nil { // else the caller has no readable trace
			ctx = traceparent.With(ctx, p)
			facts = append(facts, slog.String(logging.Trace, p.TraceID()))
		}
		ctx, c := t.begin(logging.With(ctx, facts...), TransportHTTP, name)
		out := &response{ResponseWriter: w, c: c, code: http.StatusOK}
		kind := errs.Internal.String() // of a panic, which continues to the server
		defer func() {
			c.end(kind)
			if out.stream {
				t.streams.Dec()
			}
		}()
		next.ServeHTTP(out, r.WithContext(ctx))
		kind = kithttp.KindOfStatus(out.code)
	})
}

// requestID returns given if it is one, else a new one.
func requestID(given string) string {
	if len(given) < 8 || len(given) > 64 || strings.ContainsFunc(given, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-'
	}) {
		return rand.Text()
	}
	return given
}

// response records status and size of the answer.
type response struct {
	http.ResponseWriter
	c      *call
	code   int
	wrote  bool
	stream bool
}

// Unwrap gives http.ResponseController the server's writer.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(code int) {
	if !w.wrote && code >= 200 { // 1xx are not the answer
		w.wrote, w.code = true, code
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			// A stream lasts as long as its viewer stays: its time is measured to the first byte.
			w.stream = true
			w.c.t.streams.Inc()
			w.c.tell(kithttp.KindOfStatus(code))
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *response) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Listener serves /metrics, /livez and /readyz with its reasons for an operator's machines. It must not be public: it shows the state of the fleet.
func (t *Telemetry) Listener(ready *Readiness) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.Handler())
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("alive\n")) })
	mux.Handle("GET /readyz", ready.Detail())
	return mux
}
