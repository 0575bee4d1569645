package companion

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

const (
	liveEvery = 500 * time.Millisecond // at most one word of change in this time
	liveBeat  = 15 * time.Second       // keeps proxies from closing a quiet stream
	liveLife  = 10 * time.Minute       // then the browser reconnects, and must still be signed in and own the robot
)

// writeTimeout is how long one write may take. A variable so that a test need not wait for it.
var writeTimeout = 10 * time.Second

// liveOf is the address that tells of changes of a robot; "": of all that are the owner's.
func liveOf(id thing.ID) string {
	if id == "" {
		return "/my/live"
	}
	return "/my/live?robot=" + url.QueryEscape(string(id))
}

// live says that something of the owner's robots changed: server-sent events named "change", without content. The first comes at once; a burst
// becomes one each liveEvery.
func (c *companion) live(w http.ResponseWriter, r *http.Request) {
	me := auth.CallerFrom(r.Context())
	if me.Role != auth.Owner {
		kithttp.WriteError(w, errs.New(errs.Unauthenticated, "sign in first"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), liveLife)
	defer cancel()
	changes := c.Fleet.Watch(ctx) // before the robots are read, so that nothing falls between
	robots, err := c.Robots.Robots(ctx, me.Account)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	only := r.URL.Query().Get("robot")
	mine := map[thing.ID]bool{}
	for _, t := range robots {
		if only == "" || string(t.Thing) == only {
			mine[t.Thing] = true
		}
	}
	if len(mine) == 0 {
		kithttp.WriteError(w, notYours())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	send := func(text string) bool {
		if err := out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		if _, err := w.Write([]byte(text)); err != nil || out.Flush() != nil {
			return false
		}
		_ = out.SetWriteDeadline(time.Time{}) // on HTTP/2 it would end the stream even while nothing is written
		return true
	}
	const change = "event: change\ndata: 1\n\n"
	if !send("retry: 2000\n" + change) { // what happened before this stream began
		return
	}
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	var pending <-chan time.Time // set while a change waits to be said
	last := time.Now()
	for {
		select {
		case t, ok := <-changes:
			if !ok {
				return
			}
			if mine[t.ID] && pending == nil {
				pending = time.After(max(0, liveEvery-time.Since(last)))
			}
		case <-pending:
			pending, last = nil, time.Now()
			if !send(change) {
				return
			}
		case <-beat.C:
			if !send(": beat\n\n") {
				return
			}
		}
	}
}
