// Package beat hears the beat of music (VEC-BEA-01 to 06), in two ways:
//
//	samples ─► band 100-350 Hz ─► magnitude ─┬─► over a threshold: a beat, at once
//	                                         └─► 25 a second ─► window of 10 s ─► FFT each second ─► scoreboard ─► tempo
//
// The first is quick enough to dance to and easily misled, the second is slow and sure. The source describes both in outline; the numbers are our own
// defaults, but for the band. Two of its own disagree: its hold-off of 0.5 s would end at 120 beats a minute, so it is 0.25 s, and its range of tempos
// is given in two units, of which we take the wider one, 42 to 120.
package beat

import (
	"math"
	"slices"

	"kennel/edge/mic/fft"
)

// Settings.
const (
	bandLow, bandHigh = 100.0, 350.0 // Hz
	swell             = 0.03         // s, of the magnitude
	slow              = 2.0          // s, of its mean
	over              = 2.0          // times the mean: a beat
	under             = 1.3          // and its end
	least             = 40.0         // magnitude of a beat, of 32768
	holdOff           = 0.25         // s below the end of a beat, before the next one
	overAfter         = 3.0          // s without a beat: the music is over (VEC-BEA-02)

	lowest, highest = 0.7, 2.0 // Hz
	envelope        = 25       // samples of the magnitude a second
	window          = 10 * envelope
	points          = 2048 // of the FFT: the window and zeros, which makes the steps small
	soften          = 0.11 // s: pulses are made so wide that twice the tempo is weaker than the tempo
	sure            = 0.30 // confidence above the threshold
	steps           = 3    // updates, and beats that fit, in a row until a tempo is confirmed
	forget          = 0.8  // of the score, in a second
	offBeat         = 0.15 // of a period: a beat that is further off does not confirm
	near            = 0.06 // tempos that differ by less are one
	most            = 5    // candidates
	dropped         = 0.05 // score of a candidate that is cleared
)

// Info is a tempo that may be in the music.
type Info struct {
	AboveThresh   bool    `json:"aboveThresh"`
	Conf          float64 `json:"conf"`
	TempoBPM      float64 `json:"tempo_bpm"`
	TimeSinceBeat float64 `json:"timeSinceBeat"` // s
}

// DetectorInfo is the outcome.
type DetectorInfo struct {
	BeatDetected         bool    `json:"beatDetected"` // a beat of music that is confirmed
	LatestConf           float64 `json:"latestConf"`
	LatestTempoBPM       float64 `json:"latestTempo_bpm"`
	PossibleBeatDetected string  `json:"possibleBeatDetected"` // "yes" or "no"
}

// Report is the message of the original (VEC-BEA-06).
type Report struct {
	BeatInfo     []Info       `json:"beatInfo"`
	DetectorInfo DetectorInfo `json:"detectorInfo"`
}

// candidate is a row of the scoreboard.
type candidate struct {
	hz, conf, score float64
	seen            int // updates in a row
}

// Detector hears the beat of one stream. It is not safe for concurrent use, and allocates only in New and Report.
type Detector struct {
	rate   float64
	band   [2]biquad
	fast   float64 // magnitude
	mean   float64
	quick  float64 // coefficients of the two
	calm   float64
	n      uint64 // samples
	last   uint64 // of them, at the last beat; 0: none
	below  float64
	armed  bool
	newest bool // a beat since the last Report
	steady int  // beats in a row that fit the tempo

	acc     float64
	count   int
	ring    [window]float32
	filled  int
	plan    *fft.Plan
	time    []float32
	bins    []complex64
	hann    [window]float32
	smear   [points/2 + 1]float32
	board   [most]candidate
	ranking [most]candidate // of the last update, best first
	ranked  int
}

// New returns a detector for samples of a rate.
func New(rate int) *Detector {
	r := float64(rate)
	d := &Detector{
		rate: r, band: [2]biquad{highPass(bandLow / r), lowPass(bandHigh / r)}, quick: 1 - math.Exp(-1/(swell*r)), calm: 1 - math.Exp(-1/(slow*r)),
		armed: true, plan: fft.New(points), time: make([]float32, points), bins: make([]complex64, points/2+1),
	}
	for i := range d.hann {
		d.hann[i] = float32(0.5 - 0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/window))
	}
	for k := range d.smear {
		x := 2 * math.Pi * soften * float64(k) * envelope / points
		d.smear[k] = float32(math.Exp(-x * x)) // of the power
	}
	return d
}

// Feed takes samples and returns how many beats began in them.
func (d *Detector) Feed(samples []int16) (beats int) {
	each := int(d.rate / envelope)
	for _, s := range samples {
		d.n++
		v := math.Abs(d.band[1].step(d.band[0].step(float64(s))))
		d.fast += d.quick * (v - d.fast)
		d.mean += d.calm * (d.fast - d.mean)
		switch {
		case d.armed && d.fast > max(least, over*d.mean):
			d.match()
			d.armed, d.below, d.last, d.newest = false, 0, d.n, true
			beats++
		case d.fast < max(least, under*d.mean):
			if d.below += 1 / d.rate; d.below >= holdOff {
				d.armed = true
			}
		default:
			d.below = 0
		}
		d.acc += v
		if d.count++; d.count%each == 0 {
			d.push(d.acc / float64(each))
			d.acc = 0
		}
	}
	return beats
}

// match compares the time since the beat before with the tempo.
func (d *Detector) match() {
	turns := d.since() * d.ranking[0].hz
	if whole := math.Round(turns); whole > 0 && math.Abs(turns-whole) < offBeat {
		d.steady++
	} else {
		d.steady = 0
	}
}

func (d *Detector) push(v float64) {
	d.ring[d.filled%window] = float32(v)
	if d.filled++; d.filled >= window && d.filled%envelope == 0 {
		d.measure()
	}
}

// measure finds the tempos in the window and takes them into the scoreboard.
func (d *Detector) measure() {
	mean := float32(0)
	for _, v := range d.ring {
		mean += v / window
	}
	for i := range d.ring {
		d.time[i] = (d.ring[(d.filled+i)%window] - mean) * d.hann[i]
	}
	d.plan.Forward(d.bins, d.time)
	total := float32(0)
	power := func(k int) float32 {
		v := d.bins[k]
		return (real(v)*real(v) + imag(v)*imag(v)) * d.smear[k]
	}
	step := float64(envelope) / points // Hz
	first, last := int(math.Ceil(lowest/step)), int(highest/step)
	for k := int(0.3 / step); k < points/2; k++ {
		total += power(k)
	}
	for i := range d.board {
		d.board[i].score *= forget
		if d.board[i].score < dropped {
			d.board[i] = candidate{}
		}
	}
	seen := [most]bool{}
	if mean > least/10 && total > 0 {
		for k := first; k <= last; k++ {
			a, b, c := power(k-1), power(k), power(k+1)
			if b < a || b < c || k == first && a > b || k == last && c > b {
				continue
			}
			// The peak with its sides: the window spreads a line over some bins.
			sum := float32(0)
			const side = 2 * points / window
			for j := max(1, k-side); j <= k+side; j++ {
				sum += power(j)
			}
			conf := min(1, float64(sum/total))
			if conf < sure/4 {
				continue
			}
			shift := 0.0
			if den := a - 2*b + c; den < 0 {
				shift = float64(0.5 * (a - c) / den)
			}
			d.note((float64(k)+shift)*step, conf, &seen)
		}
	}
	for i := range d.board {
		if !seen[i] {
			d.board[i].seen = 0
		}
	}
	d.ranking = d.board
	slices.SortFunc(d.ranking[:], func(a, b candidate) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	for d.ranked = 0; d.ranked < most && d.ranking[d.ranked].score > 0; {
		d.ranked++
	}
}

// note takes a tempo into its row, a free one, or the one with the least score.
func (d *Detector) note(hz, conf float64, seen *[most]bool) {
	at := -1
	for i, c := range d.board {
		if c.score > 0 && math.Abs(c.hz-hz) < near*hz {
			at = i
			break
		}
	}
	if at < 0 {
		for i, c := range d.board {
			if at < 0 || c.score < d.board[at].score {
				at = i
			}
		}
		if d.board[at].score > conf {
			return
		}
		d.board[at] = candidate{hz: hz}
	}
	c := &d.board[at]
	c.hz += 0.5 * (hz - c.hz)
	c.conf, c.score = conf, c.score+conf*(1-forget)
	if !seen[at] {
		c.seen++
	}
	seen[at] = true
}

// Playing reports whether there was a beat in the last seconds.
func (d *Detector) Playing() bool { return d.last > 0 && d.since() < overAfter }

func (d *Detector) since() float64 { return float64(d.n-d.last) / d.rate }

// Report returns the state. A beat is in one report.
func (d *Detector) Report() Report {
	out := Report{BeatInfo: make([]Info, 0, most), DetectorInfo: DetectorInfo{PossibleBeatDetected: "no"}}
	since := d.since()
	for _, c := range d.ranking[:d.ranked] {
		out.BeatInfo = append(out.BeatInfo, Info{AboveThresh: c.conf >= sure && c.seen > 0, Conf: c.conf, TempoBPM: 60 * c.hz, TimeSinceBeat: since})
	}
	if d.ranked > 0 {
		c := d.ranking[0]
		out.DetectorInfo.LatestConf, out.DetectorInfo.LatestTempoBPM = c.conf, 60*c.hz
		if d.Playing() && c.conf >= sure && c.seen > 0 {
			out.DetectorInfo.PossibleBeatDetected = "yes"
			out.DetectorInfo.BeatDetected = d.newest && c.seen >= steps && d.steady >= steps
		}
	}
	d.newest = false
	return out
}

// biquad is a filter of second order.
type biquad struct{ b0, b1, b2, a1, a2, x1, x2, y1, y2 float64 }

func (f *biquad) step(x float64) float64 {
	y := f.b0*x + f.b1*f.x1 + f.b2*f.x2 - f.a1*f.y1 - f.a2*f.y2
	f.x2, f.x1, f.y2, f.y1 = f.x1, x, f.y1, y
	return y
}

// lowPass and highPass are of Butterworth's kind; at is the corner over the rate.
func lowPass(at float64) biquad {
	k := math.Tan(math.Pi * at)
	n := 1 / (1 + math.Sqrt2*k + k*k)
	return biquad{b0: k * k * n, b1: 2 * k * k * n, b2: k * k * n, a1: 2 * (k*k - 1) * n, a2: (1 - math.Sqrt2*k + k*k) * n}
}

func highPass(at float64) biquad {
	k := math.Tan(math.Pi * at)
	n := 1 / (1 + math.Sqrt2*k + k*k)
	return biquad{b0: n, b1: -2 * n, b2: n, a1: 2 * (k*k - 1) * n, a2: (1 - math.Sqrt2*k + k*k) * n}
}
