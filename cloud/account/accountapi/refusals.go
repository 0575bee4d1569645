package accountapi

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"kennel/certs/limit"
	"kennel/cloud/account/audit"
	"kennel/infra/auth"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Refusals returns the middleware that writes a line into the audit log when an operator is refused what would have changed something: the
// operation by its route in mux, and the robot it was about. One person gets 30 lines at once and then one a second, so that no one person fills
// the log. It belongs behind Authenticator.
func Refusals(l *audit.Log, mux *http.ServeMux, log *slog.Logger) func(next http.Handler) http.Handler {
	pace := limit.New(time.Second, 30)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who := auth.CallerFrom(r.Context())
			if !slices.Contains(auth.Staff, who.Role) || slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method) {
				next.ServeHTTP(w, r)
				return
			}
			seen := &statusSeen{ResponseWriter: w}
			next.ServeHTTP(seen, r)
			if seen.status != http.StatusForbidden || pace.Allow(who.Account) > 0 {
				return
			}
			_, route := mux.Handler(r)
			if err := l.Note(r.Context(), "refused", thingIn(r.URL.Path), route); err != nil {
				log.ErrorContext(r.Context(), "refusal not written to the audit log", "route", route, logging.Err, err)
			}
		})
	}
}

// thingIn returns the robot that a path names, "" if none.
func thingIn(path string) string {
	for part := range strings.SplitSeq(path, "/") {
		if id, err := thing.Parse(part); err == nil {
			return string(id)
		}
	}
	return ""
}

// statusSeen remembers the status of an answer.
type statusSeen struct {
	http.ResponseWriter
	status int
}

func (s *statusSeen) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach what lies below.
func (s *statusSeen) Unwrap() http.ResponseWriter { return s.ResponseWriter }
