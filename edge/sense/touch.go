package sense

import (
	"math"
	"time"

	"kennel/edge/power"
)

// touchWindow is how many samples the standard deviation is of: 82 ms of Vector's.
const touchWindow = 16

// TouchInput is the newest good reading (VEC-BODY-27).
type TouchInput struct {
	Value     float64       // 0 to 1; anything else is not taken
	At        time.Duration // when it was measured; a reading that was seen before is not counted again
	OnCharger bool          // after a change of it the baseline is learnt again (VEC-IO-13)
}

// TouchEvents is a set of what happened in one step.
type TouchEvents uint8

// The events. All but the first three are the published ones of the sensor's baseline (VEC-IO-13).
const (
	TouchBegan        TouchEvents = 1 << iota
	TouchEnded                    //
	Petted                        // the touch has lasted long enough (VEC-IO-14); once a touch
	ChargerModeCheck              // put on or taken off the charger
	BaselineLearnt                // fast calibration finished
	BaselineChanged               // after a ChargerModeCheck
	BaselineUnchanged             // after a ChargerModeCheck
	BaselineTooHigh               // readings are far below the baseline: difference monitor too low
)

// TouchStats are the readings of the window (VEC-IO-11), parts of the sensor's scale.
type TouchStats struct {
	Max    float64 `json:"max"`
	Min    float64 `json:"min"`
	StdDev float64 `json:"stddev"`
}

// Touch tells a hand from the weather: readings are smoothed to a level, held against a baseline that follows slowly, and the rise must stand
// out of the noise for a time (VEC-IO-10). NewTouch makes one.
type Touch struct {
	cfg TouchConfig

	window    [touchWindow]float64
	n, next   int
	at        time.Duration // of the newest reading taken
	since     time.Duration // since it was taken
	level     float64
	baseline  float64
	onCharger bool

	learning bool
	checking bool // learning because of the charger
	old      float64
	learnt   time.Duration // steady for so long
	spent    time.Duration // since learning began
	sum, all float64       // of the steady readings, and of all since learning began
	count    int
	allCount int

	touched steady
	lasts   time.Duration // of the touch of the moment
	petted  bool
	tooHigh bool
}

// NewTouch returns a filter that learns its baseline from the first readings. cfg must be valid.
func NewTouch(cfg TouchConfig) Touch { return Touch{cfg: cfg, learning: true} }

// Touched reports whether the sensor is touched (VEC-IO-12).
func (t *Touch) Touched() bool { return t.touched.on }

// Petting reports whether the touch has lasted long enough to be one (VEC-IO-14).
func (t *Touch) Petting() bool { return t.petted }

// Ready reports whether a baseline is known; without one nothing is a touch.
func (t *Touch) Ready() bool { return !t.learning }

// Level and Baseline are parts of the sensor's scale.
func (t *Touch) Level() float64    { return t.level }
func (t *Touch) Baseline() float64 { return t.baseline }

// Step takes in the newest reading, dt after the step before.
func (t *Touch) Step(dt time.Duration, in TouchInput) (ev TouchEvents) {
	dt = max(dt, 0)
	if t.n > 0 && in.OnCharger != t.onCharger {
		ev |= ChargerModeCheck
		t.learn(true)
	}
	t.onCharger = in.OnCharger

	fresh := (t.n == 0 || in.At > t.at) && in.Value >= 0 && in.Value <= 1
	if fresh {
		if t.n == 0 {
			t.level = in.Value
		}
		// The time since the reading before, which may be several steps.
		t.level = power.Filter(t.level, in.Value, t.since+dt, t.cfg.LevelTau)
		t.window[t.next] = in.Value
		t.next = (t.next + 1) % touchWindow
		t.n = min(t.n+1, touchWindow)
		t.at = in.At
	}
	over := t.n == touchWindow && t.since+dt < t.cfg.Stale
	if fresh && t.n == touchWindow {
		over = t.follow(t.since+dt, in.Value, &ev)
	} else if over {
		over = t.touched.on != t.touched.differs // no news: as it was in the step before
	}
	if fresh {
		t.since = 0
	} else {
		t.since += dt
	}

	if t.touched.step(over && !t.learning, dt, t.cfg.MinOn, t.cfg.MinOff) {
		t.lasts, t.petted = 0, false
		if t.touched.on {
			ev |= TouchBegan
		} else {
			ev |= TouchEnded
		}
	}
	if t.touched.on {
		t.lasts += min(dt, maxGap)
		if !t.petted && t.lasts >= t.cfg.Petting {
			t.petted = true
			ev |= Petted
		}
		if t.lasts >= t.cfg.Stuck && !t.learning {
			t.learn(false)
		}
	}
	return ev
}

// follow holds the level against the baseline, moves the baseline, and reports whether this reading is a touch's.
func (t *Touch) follow(dt time.Duration, value float64, ev *TouchEvents) bool {
	noise := t.Stats().StdDev
	if t.learning {
		*ev |= t.learnFrom(value, noise, dt)
		return false
	}
	rise := t.level - t.baseline
	switch {
	case rise < -t.cfg.Off && -rise > t.cfg.OnNoise*noise:
		if !t.tooHigh {
			t.tooHigh = true
			*ev |= BaselineTooHigh
		}
		t.baseline = power.Filter(t.baseline, t.level, dt, t.cfg.DropTau)
		return false
	case rise > -t.cfg.Off/2:
		t.tooHigh = false
	}
	if t.touched.on {
		return rise > t.cfg.Off && rise > t.cfg.OffNoise*noise
	}
	if rise > t.cfg.On && rise > t.cfg.OnNoise*noise {
		return true
	}
	if !t.touched.differs {
		t.baseline = power.Filter(t.baseline, t.level, dt, t.cfg.BaselineTau)
	}
	return false
}

// learn starts to learn the baseline again.
func (t *Touch) learn(check bool) {
	if !t.learning {
		t.old = t.baseline
		t.checking = check
	}
	t.learning = true
	t.learnt, t.spent, t.sum, t.count, t.all, t.allCount = 0, 0, 0, 0, 0, 0
}

// learnFrom takes the mean of a steady time, or of all there was when it never gets steady.
func (t *Touch) learnFrom(value, noise float64, dt time.Duration) (ev TouchEvents) {
	t.spent += min(dt, maxGap)
	t.all += value
	t.allCount++
	switch {
	case noise > t.cfg.LearnSteady:
		t.learnt, t.sum, t.count = 0, 0, 0
	default:
		if t.count > 0 {
			t.learnt += min(dt, maxGap)
		}
		t.sum += value
		t.count++
	}
	switch {
	case t.count > 0 && t.learnt >= t.cfg.Learn:
		t.baseline = t.sum / float64(t.count)
	case t.spent >= t.cfg.LearnMax:
		t.baseline = t.all / float64(t.allCount)
	default:
		return 0
	}
	t.learning = false
	ev = BaselineLearnt
	if t.checking {
		if math.Abs(t.baseline-t.old) > t.cfg.Off {
			ev |= BaselineChanged
		} else {
			ev |= BaselineUnchanged
		}
	}
	t.checking = false
	return ev
}

// Stats returns the extremes and the standard deviation of the newest readings (VEC-IO-11).
func (t *Touch) Stats() TouchStats {
	if t.n == 0 {
		return TouchStats{}
	}
	s := TouchStats{Min: t.window[0], Max: t.window[0]}
	sum := 0.0
	for _, v := range t.window[:t.n] {
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		sum += v
	}
	mean, squares := sum/float64(t.n), 0.0
	for _, v := range t.window[:t.n] {
		squares += (v - mean) * (v - mean)
	}
	s.StdDev = math.Sqrt(squares / float64(t.n))
	return s
}
