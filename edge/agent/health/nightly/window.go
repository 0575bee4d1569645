package nightly

import (
	"time"

	"kennel/edge/env/platform"
)

const day = 24 * time.Hour

// window is a part of each day on the clock on the wall, in whole seconds after midnight, both ends included; each at
// most 24 h. With latest before earliest it continues past midnight.
type window struct{ earliest, latest time.Duration }

func newWindow(s platform.Rebooter) window {
	if s.Earliest >= day && s.Latest >= day {
		return window{} // the end of one day, which is the beginning of the next
	}
	return window{s.Earliest, s.Latest}
}

// holds reports whether t is in the window.
func (w window) holds(t time.Time) bool {
	h, m, s := t.Clock()
	at := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second + time.Duration(t.Nanosecond())
	if w.latest < w.earliest {
		return at >= w.earliest || at <= w.latest
	}
	return at >= w.earliest && at <= w.latest
}

// next returns the window that now is in, or else the next one, in now's zone. Where clocks change within it, holds may be false for some of the
// time between its ends.
func (w window) next(now time.Time) (start, end time.Time) {
	y, m, d := now.Date()
	for i := -1; ; i++ {
		start = time.Date(y, m, d+i, 0, 0, int(w.earliest/time.Second), 0, now.Location())
		last := d + i
		if w.latest < w.earliest {
			last++
		}
		end = time.Date(y, m, last, 0, 0, int(w.latest/time.Second), 0, now.Location())
		// A change of clocks can leave a window without an end.
		if !end.Before(start) && !end.Before(now) {
			return start, end
		}
	}
}
