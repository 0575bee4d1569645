package rt

import (
	"math"
	"time"
)

const (
	rhythmBlock = 16   // frames between two corrections; at most 1.6 ms of drift, which cannot pass for a slip
	rhythmWarm  = 8    // blocks (0.66 s of Vector's frames) until lateness is counted
	rhythmDrift = 0.02 // how far the body's clock may be off: enough for an RC oscillator
	rhythmOff   = 4    // frames in a row
	rhythmLost  = 4    // periods: the time of a frame that is off by more is set at once
)

// rhythm estimates when a body's next frame is due, from when frames arrived.
//
// A frame can be late for many reasons and early for none, so the schedule follows the earliest arrivals: over a block of 16 frames the least
// residual (arrival minus due time) is the error of the schedule itself. The block's end moves the phase by all of it, and the period by a share
// of it per frame.
type rhythm struct {
	nominal, period float64 // ns
	due             float64 // of the newest frame, ns on the loop's clock
	started         bool
	off             int  // newest frames in a row that were late by more than half a period
	blocks          int  // finished, up to rhythmWarm
	rephased        bool // in this block: what it is off says nothing about the period
	frames          int  // seen in this block
	passed          float64
	least           float64
	shifts          uint64
	taken           float64 // when the body took the newest frame; due without its jumps
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
		gain := 0.05 // holds against jitter: 20 blocks to follow the body's clock
		if r.blocks < rhythmWarm {
			gain = 0.5
			r.blocks++
		}
		r.due += r.least
		if !r.rephased {
			r.period += gain * r.least / r.passed
			r.period = min(max(r.period, r.nominal*(1-rhythmDrift)), r.nominal*(1+rhythmDrift))
		}
		r.rephased = false
		r.frames, r.passed = 0, 0
	}
	return late, ok
}

// takenAt returns when the body took the frame of now, ahead frames after the one before. Frames are as far apart as the body's clock says, however late they
// are read, because speeds are ways divided by these times; the estimate of when they are due corrects them by little in each frame.
func (r *rhythm) takenAt(now time.Duration, ahead uint32) time.Duration {
	span := float64(ahead) * r.period
	r.taken += span
	off := r.due - r.taken
	if most := rhythmDrift * span; math.Abs(off) < rhythmLost*r.period {
		off = min(max(off, -most), most)
	}
	r.taken += off
	return min(time.Duration(r.taken), now)
}

// moved reports whether the body's rhythm itself has moved. The newest frame there is comes at most a period late, however late the loop
// is; and a loop may be late once, but not for several frames in a row by half a period or more.
func (r *rhythm) moved(residual float64) bool {
	if residual > r.period {
		return true
	}
	if residual < r.period/2 {
		r.off = 0
		return false
	}
	r.off++
	return r.off >= rhythmOff
}

// shift says that the body's rhythm itself has moved: the frame of now is on time. The period stays.
func (r *rhythm) shift(now time.Duration) {
	r.due = float64(now)
	r.started, r.rephased = true, true
	r.frames, r.passed, r.least, r.off = 0, 0, 0, 0
}
