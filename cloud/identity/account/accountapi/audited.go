package accountapi

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// Audited returns the middleware that makes the audit log complete: each request by which a person changes something has a line, with its
// result. An operation writes lines of its own before it changes anything, and they get the result. Of an operation that writes none
// (access.Rule.Plain) the line is about the route in mux and the robot that the path names, and is written before the operation begins. An
// operation that should have written one and did not gets such a line before its answer. What cannot be written down is answered with
// Unavailable "audit_unwritten".
//
// So has each request that is refused for want of a right, also one that only reads, and one for another's robot, which is told to be unknown. A
// request that cannot be understood (Invalid) and announced nothing leaves no line. One person gets 200 lines of refused changes and 200 of refused
// reading at once, and then one a second, so that no one person fills the log. It belongs behind Authenticator.
func Audited(l *audit.Log, mux *http.ServeMux, log *slog.Logger) func(next http.Handler) http.Handler {
	changes, reads := ratelimit.New(time.Second, 200), ratelimit.New(time.Second, 200)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who := auth.CallerFrom(r.Context())
			ctx, own := l.Begin(r.Context())
			_, route := mux.Handler(r)
			rule, object, person := access.HTTP[route], thingIn(r.URL.Path), slices.Contains(auth.People, who.Role)
			changing := person && rule.Changes()
			if changing && rule.Plain && access.HTTP.Check(route, who.Role) == nil {
				if err := l.Note(ctx, audit.Asked, object, route); err != nil {
					log.WarnContext(ctx, "change refused; its line cannot be written to the audit log", "route", route, logging.Err, err)
					kithttp.WriteError(w, err)
					return
				}
			}
			seen := &statusSeen{ResponseWriter: w, status: http.StatusInternalServerError} // of a handler that panics
			if changing {
				seen.done = func() error { return own.Done(ctx, route, object) }
			}
			defer func() {
				if !seen.told && ctx.Err() != nil {
					return // the caller left before there was a result
				}
				why := kithttp.KindOfStatus(seen.status)
				if why == "ok" {
					return
				}
				alone, pace := changing, changes
				if !alone && (why == errs.Denied.String() || why == errs.NotFound.String() && rule.Own && who.Role == auth.Owner && object != "") {
					alone, pace = person, reads
				}
				alone = alone && why != errs.Invalid.String() && pace.Allow(who.Account) <= 0
				if err := own.Refused(ctx, why, route, object, alone); err != nil {
					log.ErrorContext(ctx, "result not written to the audit log", "route", route, "result", why, logging.Err, err)
				}
			}()
			next.ServeHTTP(seen, r.WithContext(ctx))
			if ctx.Err() == nil {
				seen.tell(http.StatusOK)
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

// statusSeen remembers the status of an answer. A good one is only told after done, and is replaced by done's error.
type statusSeen struct {
	http.ResponseWriter
	done    func() error // nil: there is nothing to do
	status  int
	told    bool
	instead bool // done's error was the answer: the handler's is dropped
}

func (s *statusSeen) tell(status int) {
	if s.told || status < http.StatusOK {
		return
	}
	s.status, s.told = status, true
	if s.done == nil || status >= http.StatusBadRequest {
		return
	}
	if err := s.done(); err != nil {
		s.instead, s.status = true, kithttp.StatusOf(errs.KindOf(err))
		for _, h := range []string{"Location", "Set-Cookie", "Content-Length", "Content-Encoding", "Etag"} {
			s.Header().Del(h)
		}
		kithttp.WriteError(s.ResponseWriter, err)
	}
}

func (s *statusSeen) WriteHeader(status int) {
	if s.tell(status); !s.instead {
		s.ResponseWriter.WriteHeader(status)
	}
}

func (s *statusSeen) Write(b []byte) (int, error) {
	if s.tell(http.StatusOK); s.instead {
		return len(b), nil
	}
	return s.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach what lies below.
func (s *statusSeen) Unwrap() http.ResponseWriter { return s.ResponseWriter }
