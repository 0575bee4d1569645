package motion

import (
	"math"
	"time"
)

// Times of the speed estimate; own defaults.
const (
	speedWindow = 25 * time.Millisecond  // edges older than this do not matter while newer ones come
	speedZero   = 200 * time.Millisecond // without an edge for this long nothing moves
)

// estimator measures speed from a position that advances in counts. It divides by the time between edges, not by the step: at low speed most
// steps see no edge, and some see one (VEC-MCT-06). While no edge comes, the speed is at most one count in the time since the last.
type estimator struct {
	count float64 // one count of the encoder, rad or m
	edges [8]edge // the newest ones, a ring
	n     int     // how many there are
	last  int     // the newest
	v     float64
}

type edge struct {
	at time.Duration
	x  float64
}

// reset forgets all edges; the next position is the first.
func (e *estimator) reset() { *e = estimator{count: e.count} }

// observe takes in a position measured at that time, and returns the speed.
func (e *estimator) observe(x float64, at time.Duration) float64 {
	if e.n == 0 {
		e.edges[0], e.n, e.last, e.v = edge{at, x}, 1, 0, 0
		return 0
	}
	newest := e.edges[e.last]
	if x == newest.x || at <= newest.at {
		since := at - newest.at
		if since >= speedZero {
			e.v = 0
		} else if since > 0 {
			e.v = math.Copysign(min(math.Abs(e.v), e.count/since.Seconds()), e.v)
		}
		return e.v
	}
	e.last = (e.last + 1) % len(e.edges)
	e.edges[e.last] = edge{at, x}
	e.n = min(e.n+1, len(e.edges))
	// The oldest edge of the window; at least the one before this.
	from := newest
	for i := 2; i < e.n; i++ {
		o := e.edges[(e.last-i+len(e.edges))%len(e.edges)]
		if at-o.at > speedWindow {
			break
		}
		from = o
	}
	if at-from.at >= speedZero { // it stood, and now it moved by this much at some time since
		e.v = (x - from.x) / speedZero.Seconds()
		return e.v
	}
	e.v = (x - from.x) / (at - from.at).Seconds()
	return e.v
}
