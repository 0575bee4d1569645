package bridge

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"kennel/infra/api/large"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// largeTime bounds one large request; a slow robot needs a while for its body.
const largeTime = 2 * time.Minute

// Large serves requests that do not fit a broker message. identify says which thing the connection proves to be; a request that repeats
// one that was answered runs again, so handlers are idempotent by themselves.
func Large(handlers map[string]kitmqtt.ReqHandler, identify func(*http.Request) (thing.ID, error), log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := identify(r)
		if err != nil {
			kithttp.WriteError(w, err)
			return
		}
		name := r.PathValue("service") + "/" + r.PathValue("method")
		h, ok := handlers[name]
		if !ok {
			kithttp.WriteError(w, errs.Coded(errs.NotFound, "unknown_method", "this cloud has no request %.80q", name))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), largeTime)
		defer cancel()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, large.MaxBody))
		if err != nil {
			kithttp.WriteError(w, errs.New(errs.Invalid, "body of request %s: %w; at most %d bytes", name, err, large.MaxBody))
			return
		}
		answer, err := kit.Recover(log)(func(ctx context.Context, _ any) (any, error) { return h(ctx, id, body) })(ctx, nil)
		if err != nil {
			if k := errs.KindOf(err); k == errs.Internal || k == errs.Corrupt {
				log.ErrorContext(ctx, "request failed", logging.Thing, id, "request", name, logging.Err, err)
			}
			kithttp.WriteError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(answer.([]byte)) // the robot asks again
	})
}
