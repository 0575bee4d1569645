package accountapi

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"kennel/certs/limit"
	"kennel/cloud/access"
	"kennel/cloud/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Audited returns the middleware that makes the audit log complete: each request by which a person changes something has a line, with its
// result. Where the operation writes lines of its own before it changes anything, they get the result; else there is one with the route in mux, and
// the robot it was about. So has each request that is refused for want of a right, also one that only reads, and one for another's robot, which is told to
// be unknown. A request that cannot be understood (Invalid) is no action and leaves none. One person gets 200 lines of refused changes and 200 of refused
// reading at once, and then one a second, so that no one person fills the log. It belongs behind Authenticator.
func Audited(l *audit.Log, mux *http.ServeMux, log *slog.Logger) func(next http.Handler) http.Handler {
	changes, reads := limit.New(time.Second, 200), limit.New(time.Second, 200)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who := auth.CallerFrom(r.Context())
			if !slices.Contains(auth.People, who.Role) {
				next.ServeHTTP(w, r)
				return
			}
			ctx, own := l.Begin(r.Context())
			_, route := mux.Handler(r)
			seen := &statusSeen{ResponseWriter: w, status: http.StatusInternalServerError} // of a handler that panics
			defer func() {
				if !seen.told && ctx.Err() != nil {
					return // the caller left before there was a result
				}
				why := kithttp.KindOfStatus(seen.status)
				rule, object := access.HTTP[route], thingIn(r.URL.Path)
				alone, pace := rule.Changes(), changes
				if !alone && (why == errs.Denied.String() || why == errs.NotFound.String() && rule.Own && who.Role == auth.Owner && object != "") {
					alone, pace = true, reads
				}
				switch why {
				case "ok":
					why = ""
				case errs.Invalid.String():
					alone = false
				default:
					alone = alone && pace.Allow(who.Account) <= 0
				}
				if err := own.End(ctx, why, route, object, alone); err != nil {
					log.ErrorContext(ctx, "result not written to the audit log", "route", route, "result", why, logging.Err, err)
				}
			}()
			next.ServeHTTP(seen, r.WithContext(ctx))
			if ctx.Err() == nil {
				seen.ended()
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
	told   bool
}

func (s *statusSeen) WriteHeader(status int) {
	if !s.told && status >= http.StatusOK {
		s.status, s.told = status, true
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusSeen) Write(b []byte) (int, error) {
	s.ended()
	return s.ResponseWriter.Write(b)
}

// ended notes that an answer without a status is a good one.
func (s *statusSeen) ended() {
	if !s.told {
		s.status, s.told = http.StatusOK, true
	}
}

// Unwrap lets http.ResponseController reach what lies below.
func (s *statusSeen) Unwrap() http.ResponseWriter { return s.ResponseWriter }
