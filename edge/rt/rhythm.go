package rt

import "time"

const (
	rhythmBlock = 32 // frames between two corrections; at most 3.3 ms of drift, so that it is not taken for a stall
	rhythmWarm  = 4  // blocks (0.66 s of Vector's frames) until lateness is counted
	rhythmDrift = 0.02
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
	blocks          int // finished, up to 8
	frames          int // seen in this block
	passed          float64
	least           float64
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
	if r.frames == 0 || residual < r.least {
		r.least = residual
	}
	ok = r.blocks >= rhythmWarm
	if r.frames++; r.frames == rhythmBlock {
		gain := 0.25
		if r.blocks < 8 {
			gain = 0.5 // find it fast, then hold it
			r.blocks++
		}
		r.due += r.least
		r.period += gain * r.least / r.passed
		r.period = min(max(r.period, r.nominal*(1-rhythmDrift)), r.nominal*(1+rhythmDrift))
		r.frames, r.passed = 0, 0
	}
	return time.Duration(max(residual, 0)), ok
}

// shift says that the body's rhythm itself has moved: the frame of now is on time. The period stays.
func (r *rhythm) shift(now time.Duration) {
	r.due = float64(now)
	r.started = true
	r.frames, r.passed, r.least = 0, 0, 0
}
