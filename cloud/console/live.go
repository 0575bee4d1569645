package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

const (
	liveEvery    = 500 * time.Millisecond  // at most one word of change in this time; a page may ask for fewer
	liveSettle   = 2500 * time.Millisecond // counts are shared for a second, so what the last word had a page fetch may hold old ones
	liveBeat     = 15 * time.Second        // keeps proxies from closing a quiet stream
	liveLife     = 10 * time.Minute        // then the browser reconnects, and must still be signed in
	writeTimeout = 10 * time.Second
)

// live says that something changed, of the whole fleet or of one thing: server-sent events named "change", without content. The first
// comes at once; a burst becomes one each liveEvery. Some time after the last one there is one more, for what is counted with a delay.
func (c *console) live(w http.ResponseWriter, r *http.Request) {
	caller := auth.CallerFrom(r.Context())
	if !caller.Role.Staff() {
		kithttp.WriteError(w, errs.New(errs.Unauthenticated, "sign in first"))
		return
	}
	var only thing.ID
	if s := r.URL.Query().Get("thing"); s != "" {
		var err error
		if only, err = thing.Parse(s); err != nil {
			kithttp.WriteError(w, errs.New(errs.Invalid, "%w", err))
			return
		}
	}
	every := liveEvery
	if s := r.URL.Query().Get("every"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d < liveEvery || d > time.Minute {
			kithttp.WriteError(w, errs.New(errs.Invalid, "every=%.20q: want %v to 1m", s, liveEvery))
			return
		}
		every = d
	}
	ctx, cancel := context.WithTimeout(r.Context(), liveLife)
	defer cancel()
	changes := c.Fleet.Watch(ctx)
	send := startStream(w)
	const change = "event: change\ndata: 1\n\n"
	if !send("retry: 2000\n" + change) { // what happened before this stream began
		return
	}
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	var pending, settled <-chan time.Time // set while a change waits to be said, and after it was
	last := time.Now()
	for {
		select {
		case t, ok := <-changes:
			if !ok {
				return
			}
			if (only == "" || t.ID == only) && pending == nil {
				pending = time.After(max(0, every-time.Since(last)))
			}
		case <-pending:
			pending, last, settled = nil, time.Now(), time.After(liveSettle)
			if !send(change) {
				return
			}
		case <-settled:
			settled = nil
			if pending == nil && !send(change) {
				return
			}
		case <-beat.C:
			if !send(": beat\n\n") {
				return
			}
		}
	}
}

// startStream begins server-sent events on w. What it returns writes and flushes, and reports whether the reader is still there.
func startStream(w http.ResponseWriter) func(text string) bool {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	return func(text string) bool {
		if err := out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		if _, err := w.Write([]byte(text)); err != nil || out.Flush() != nil {
			return false
		}
		_ = out.SetWriteDeadline(time.Time{}) // on HTTP/2 it would end the stream even while nothing is written
		return true
	}
}
