package cube

import (
	"fmt"
	"math"
	"time"
)

// Up is the axis of the cube that points up (part of VEC-ACC-08).
type Up uint8

// The axes. Unknown is a cube that did not rest yet.
const (
	UpUnknown Up = iota
	UpXNegative
	UpXPositive
	UpYNegative
	UpYPositive
	UpZNegative
	UpZPositive
)

// String returns the published name.
func (u Up) String() string {
	if u > UpZPositive {
		return fmt.Sprintf("axis %d", uint8(u))
	}
	return [...]string{"INVALID_AXIS", "X_NEGATIVE", "X_POSITIVE", "Y_NEGATIVE", "Y_POSITIVE", "Z_NEGATIVE", "Z_POSITIVE"}[u]
}

// Felt names something that happened to a cube, as its samples tell.
type Felt uint8

// The things that happen to a cube.
const (
	FeltMoved Felt = iota + 1
	FeltStopped
	FeltTapped
	FeltTurned // another axis points up
)

// Limits of what is felt; own defaults (part of VEC-CUBEIO-07).
const (
	moveMG   = 100.0
	moveFor  = 100 * time.Millisecond
	quietFor = 500 * time.Millisecond
	tapMG    = 1200.0
	tapFor   = 50 * time.Millisecond
	tapApart = 120 * time.Millisecond
	upMG     = 800.0
	upFor    = 500 * time.Millisecond

	shockMG = 500.0                  // by which one sample changes the mean at most
	restTau = 200 * time.Millisecond // of the mean that motion is measured from
)

// Feeling finds out from a cube's samples what happens to it. Its zero value is a cube that was just connected. It serves one goroutine.
type Feeling struct {
	begun  bool
	mean   [3]float64
	moving bool
	active time.Duration // of motion that may begin
	quiet  time.Duration // since the last motion
	shock  time.Duration // of a tap that may end
	since  time.Duration // the last tap
	up     Up
	next   Up
	rested time.Duration // that next points up
}

// Up returns the axis that points up.
func (f *Feeling) Up() Up { return f.up }

// Moving reports whether the cube moves.
func (f *Feeling) Moving() bool { return f.moving }

// Add takes in a sample that was measured dt after the one before, and calls felt with what it shows.
func (f *Feeling) Add(s Sample, dt time.Duration, felt func(Felt)) {
	var a [3]float64
	for i, v := range s {
		a[i] = float64(v)
	}
	if !f.begun {
		f.begun, f.mean, f.since = true, a, tapApart
	}
	var change float64
	blend := min(1, float64(dt)/float64(restTau))
	for i := range a {
		d := a[i] - f.mean[i]
		change += d * d
		f.mean[i] += min(max(d, -shockMG), shockMG) * blend // a tap must not look like motion afterwards
	}
	change = math.Sqrt(change)
	f.tap(change, dt, felt)
	f.motion(change > moveMG && (f.shock == 0 || f.shock > tapFor), dt, felt)
	f.turn(a, dt, felt)
}

// tap looks for a shock that is strong and short.
func (f *Feeling) tap(change float64, dt time.Duration, felt func(Felt)) {
	f.since = min(f.since+dt, time.Minute)
	switch {
	case change > tapMG:
		f.shock += dt
	case f.shock > 0:
		if f.shock <= tapFor && f.since >= tapApart {
			f.since = 0
			felt(FeltTapped)
		}
		f.shock = 0
	}
}

// motion looks for changes that last.
func (f *Feeling) motion(active bool, dt time.Duration, felt func(Felt)) {
	if active {
		f.active, f.quiet = f.active+dt, 0
	} else {
		f.active, f.quiet = max(0, f.active-dt), f.quiet+dt
	}
	switch {
	case !f.moving && f.active >= moveFor:
		f.moving = true
		felt(FeltMoved)
	case f.moving && f.quiet >= quietFor:
		f.moving, f.active = false, 0
		felt(FeltStopped)
	}
}

// turn looks for an axis that points up and stays there.
func (f *Feeling) turn(a [3]float64, dt time.Duration, felt func(Felt)) {
	now := UpUnknown
	for i, v := range a {
		if math.Abs(v) > upMG && math.Abs(v) >= math.Abs(a[(i+1)%3]) && math.Abs(v) >= math.Abs(a[(i+2)%3]) {
			now = UpXNegative + Up(2*i)
			if v > 0 {
				now++
			}
		}
	}
	if now == UpUnknown || now != f.next {
		f.next, f.rested = now, 0
		return
	}
	if f.rested += dt; f.rested >= upFor && now != f.up {
		f.up = now
		felt(FeltTurned)
	}
}
