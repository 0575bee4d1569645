package rt

import "time"

const (
	rhythmBlock = 32 // frames between two corrections; at most 3.3 ms of drift, so that it is not taken for a stall
	rhythmWarm  = 4  // blocks (0.66 s of Vector's frames) until lateness is counted
	rhythmDrift = 0.02
	rhythmHeld  = 8 // blocks until the period is known well
	rhythmOff   = 4 // frames in a row
)

// rhythm estimates when a body's next frame is due, from when frames arrived.
//
// A frame can be late for many reasons and early for none, so the schedule follows the earliest arrivals: over a block of 32 frames the least
// residual (arrival minus due time) is what the schedule itself is off. The block's end moves the phase by it, and the period by a share of it
// per frame, within 2 % of the nominal one: enough for an RC oscillator.
type rhythm struct {
	nominal, period float64 // ns
	due             float64 // of the newest frame, ns on the loop's clock
	started         bool
	off             int // newest frames in a row that were late by more than half a period
	blocks          int // finished, up to rhythmHeld
	frames          int // seen in this block
	passed          float64
	least           float64
	shifts          uint64
}

func newRhythm(nominal time.Duration) rhythm {
	return rhythm{nominal: float64(nominal), period: float64(nominal)}
}

// observe takes in a frame that came at now, ahead frames after the one before. It returns how late that was, and
// whether the estimate is old enough to count it.
func (r *rhythm) observe(now time.Duration, ahead uint32) (late time.Duration, ok bool) {
	if !r.started {
		r.shift(now)
		return 0, false
	}
	r.due += float64(ahead) * r.period
	r.passed += float64(ahead)
	residual := float64(now) - r.due
	late, ok = time.Duration(max(residual, 0)), r.blocks >= rhythmWarm
	if r.moved(residual) {
		r.shifts++
		r.shift(now)
		return late, ok
	}
	if r.frames == 0 || residual < r.least {
		r.least = residual
	}
	if r.frames++; r.frames == rhythmBlock {
		gain := 0.25
		if r.blocks < rhythmHeld {
			gain = 0.5 // find it fast, then hold it
			r.blocks++
		}
		r.due += r.least
		r.period += gain * r.least / r.passed
		r.period = min(max(r.period, r.nominal*(1-rhythmDrift)), r.nominal*(1+rhythmDrift))
		r.frames, r.passed = 0, 0
	}
	return late, ok
}

// moved reports whether the body's rhythm itself has moved. The newest frame there is comes at most a period late, however late the loop
// is; and a loop may be late once, but not for several frames in a row by half a period or more.
func (r *rhythm) moved(residual float64) bool {
	if residual > r.period {
		return true
	}
	if residual < r.period/2 || r.blocks < rhythmHeld { // while the period is unknown, drift looks the same
		r.off = 0
		return false
	}
	r.off++
	return r.off >= rhythmOff
}

// shift says that the body's rhythm itself has moved: the frame of now is on time. The period stays.
func (r *rhythm) shift(now time.Duration) {
	r.due = float64(now)
	r.started = true
	r.frames, r.passed, r.least, r.off = 0, 0, 0, 0
}
