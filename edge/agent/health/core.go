package health

import (
	"sync"
	"time"

	"kennel/edge/agent/release"
	"kennel/edge/core/corelink"
)

// pause is how long robotd, which tells of its loop each second, may not have told that it stepped; our own default.
const pause = 5 * time.Second

// coreWatch keeps since when robotd serves without a pause, and how often it was replaced. Safe for concurrent use.
type coreWatch struct {
	mu          sync.Mutex
	pid         uint32
	heard       bool
	replaced    int
	stats       corelink.LoopStats // newest
	since, last time.Time          // of the stats in which the loop had stepped on; zero: none without a pause
	silent      bool               // the body, says its last state
}

// handle takes a message of robotd.
func (w *coreWatch) handle(m corelink.Message, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := m.(type) {
	case *corelink.Hello:
		if w.heard && m.PID != w.pid {
			w.replaced++
			w.since, w.stats = time.Time{}, corelink.LoopStats{}
		}
		w.heard, w.pid = true, m.PID
	case *corelink.Bye:
		w.since = time.Time{}
	case *corelink.State:
		w.silent = !m.Link
	case *corelink.LoopStats:
		// A peer that joins is told the newest ones again, which prove nothing.
		first := w.stats.UptimeUS == 0
		steps := m.UptimeUS > w.stats.UptimeUS && m.Steps > w.stats.Steps
		if w.stats = *m; first || !steps {
			return
		}
		if w.since.IsZero() || now.Sub(w.last) > pause {
			w.since = now
		}
		w.last = now
	}
}

// state returns how robotd is.
func (w *coreWatch) state(now time.Time) release.Core {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := release.Core{Heard: w.heard, Ends: w.replaced}
	if !w.since.IsZero() && now.Sub(w.last) <= pause {
		c.Up, c.Silent = max(now.Sub(w.since), 1), w.silent
	}
	return c
}

// Core returns how robotd is, for the trial of a new release.
func (h *Health) Core() release.Core {
	c := h.core.state(time.Now())
	if n := h.faults.Ends(robotd); n > 0 {
		c.Heard, c.Ends = true, max(c.Ends, n)
	}
	if code := h.faults.Stopping(); code != 0 {
		c.Why = "fault " + code.String() + ": " + code.Text()
	}
	return c
}
