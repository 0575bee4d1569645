package sense

import (
	"math"
	"time"
)

// ProxInput is the newest sample of the range finder, as it came from the sensor, and where the lift is.
type ProxInput struct {
	Metres          float64       // beyond the range is nothing there; below it, or no number, is no measurement (VEC-BODY-26)
	At              time.Duration // when it was measured, 0: never; a sample that was seen before is not counted again
	Signal, Ambient float64       // rates, any unit that is the same for both; not used unless Rates
	Rates           bool          // the body reports them
	LiftHeight      float64       // m
	Loaded          bool          // the lift carries something
}

// Prox is the state of the way ahead (VEC-IO-24). Found and Unobstructed are never both true; both false is not known.
type Prox struct {
	Metres       float64       // median of the last three samples in range
	At           time.Duration // when the newest of them was measured
	Quality      float64       // 0 to 1; 0 where the body reports no rates
	Found        bool          // an object within the sensor's range
	Unobstructed bool          // nothing up to the range's end
	LiftInView   bool          // what it sees is the lift or its load (VEC-IO-25)
	Valid        bool          // Found or Unobstructed says something of the world: new enough, and the lift is not in view
}

// ProxEvents is a set of what happened in one step.
type ProxEvents uint8

// The events.
const (
	ProxChanged ProxEvents = 1 << iota // Found, Unobstructed or LiftInView did
	ProxInvalid                        // too many bad samples in a row: hal.invalid_prox_reading_report (VEC-BODY-26)
	ProxSevere                         // far too many: hal.severe_invalid_prox_reading_report
)

// Ranging judges samples one by one. What it finds changes only when two of the last three agree. NewRanging makes one.
type Ranging struct {
	cfg ProxConfig
	now Prox

	kinds  [3]sampleKind
	metres [3]float64
	n      int // samples in metres
	seen   time.Duration
	bad    int // in a row
	// when each report was made last; reported says whether ever
	reportedAt, severeAt time.Duration
	reported, severe     bool
}

type sampleKind uint8

const (
	noSample sampleKind = iota
	badSample
	foundSample
	freeSample
)

// NewRanging returns one that has seen nothing. cfg must be valid.
func NewRanging(cfg ProxConfig) Ranging { return Ranging{cfg: cfg} }

// Prox returns what is known after the last step.
func (r *Ranging) Prox() Prox { return r.now }

// Blocked reports whether a lift at this height hides the view (VEC-IO-25).
func (c *ProxConfig) Blocked(height float64, loaded bool) bool {
	if loaded {
		return height < c.LoadHigh
	}
	return height > c.LiftLow && height < c.LiftHigh
}

// Quality scales signal rate / sqrt(ambient rate) to 0..1 (VEC-IO-24).
func (c *ProxConfig) Quality(signal, ambient float64) float64 {
	if !(signal > 0) || math.IsNaN(ambient) {
		return 0
	}
	if !(ambient > 0) {
		return 1
	}
	return min(1, signal/math.Sqrt(ambient)/c.QualityFull)
}

// Step takes in the newest sample at the time now.
func (r *Ranging) Step(now time.Duration, in ProxInput) (ev ProxEvents) {
	before := r.now
	if in.At > r.seen {
		r.seen = in.At
		ev |= r.take(now, &in)
	}
	r.now.LiftInView = r.cfg.Blocked(in.LiftHeight, in.Loaded)
	if r.seen == 0 || now-r.seen > r.cfg.Stale {
		r.kinds, r.n = [3]sampleKind{}, 0
	}
	found, free := 0, 0
	for _, k := range r.kinds {
		switch k {
		case foundSample:
			found++
		case freeSample:
			free++
		}
	}
	switch {
	case found >= 2:
		r.now.Found, r.now.Unobstructed = true, false
	case free >= 2:
		r.now.Found, r.now.Unobstructed = false, true
	case found+free == 0:
		r.now.Found, r.now.Unobstructed = false, false
	}
	r.now.Valid = (r.now.Found || r.now.Unobstructed) && !r.now.LiftInView
	if r.now.Found != before.Found || r.now.Unobstructed != before.Unobstructed || r.now.LiftInView != before.LiftInView {
		ev |= ProxChanged
	}
	return ev
}

func (r *Ranging) take(now time.Duration, in *ProxInput) (ev ProxEvents) {
	quality := 0.0
	if in.Rates {
		quality = r.cfg.Quality(in.Signal, in.Ambient)
	}
	kind := badSample
	switch {
	case in.Metres > r.cfg.Max && !math.IsInf(in.Metres, 0):
		kind = freeSample // a wall beyond the range gives no signal: the quality does not count
	case in.Metres >= r.cfg.Min && in.Metres <= r.cfg.Max && !(in.Rates && quality < r.cfg.QualityMin):
		kind = foundSample
	}
	copy(r.kinds[:2], r.kinds[1:])
	r.kinds[2] = kind
	if kind == badSample {
		r.bad++
		if r.bad >= r.cfg.Severe && r.due(r.severe, r.severeAt, now) {
			r.severe, r.severeAt = true, now
			ev |= ProxSevere
		}
		if r.bad >= r.cfg.Report && r.due(r.reported, r.reportedAt, now) {
			r.reported, r.reportedAt = true, now
			ev |= ProxInvalid
		}
		return ev
	}
	r.bad = 0
	r.now.Quality = quality
	if kind == freeSample {
		return ev
	}
	copy(r.metres[:2], r.metres[1:])
	r.metres[2] = in.Metres
	r.n = min(r.n+1, 3)
	r.now.At = in.At
	r.now.Metres = in.Metres
	if a, b, c := r.metres[0], r.metres[1], r.metres[2]; r.n == 3 {
		r.now.Metres = max(min(a, b), min(max(a, b), c))
	}
	return ev
}

func (r *Ranging) due(before bool, at, now time.Duration) bool {
	return !before || now-at >= r.cfg.ReportEvery
}
