// Package endpoint finds where speech begins and ends in a stream of samples, by how much louder it is than the room.
//
// A frame of 10 ms is loud if its energy is well above the quietest of the last two seconds. Speech falls nearly to the level of the room between
// sounds, so that level, smoothed over some frames, is known soon even if a person speaks from the first frame on, and a fan that starts is part of
// the room two seconds later. Speech begins with 80 ms of loud frames in a row of 200 ms, and ends with a pause: one loud frame alone is a click.
package endpoint

import (
	"math/bits"
	"time"
)

// Rate is the rate of the samples, one channel.
const Rate = 16000

// Times of a request, and levels as the mean square of samples.
const (
	frame      = Rate / 100 // samples
	quietest   = 40 * 40    // below it nothing is speech: -58 dB of full scale
	rises      = 10         // times the level of the room: 10 dB begin speech
	stays      = 4          // and 6 dB continue it
	beginLoud  = 8          // loud frames among the last beginOf begin it
	beginOf    = 20
	roomWindow = 200 // frames in which the quietest is the room
	roomParts  = 8
)

// Config holds the times of a request; 0 means the usual one.
type Config struct {
	Pause    time.Duration // that ends speech: 450 ms
	NoSpeech time.Duration // without speech, from the start: 4 s
	Longest  time.Duration // from the start, speech or not: 10 s
}

// State says what a detector found.
type State uint8

// The states. After the last three nothing changes.
const (
	Waiting  State = iota // for speech
	Speaking              // it began
	Ended                 // a pause followed it
	Silent                // no speech came in time
	TooLong               // it did not end in time
)

var words = [...]string{"waiting", "speaking", "ended", "silent", "too long"}

func (s State) String() string { return words[s] }

// Detector looks at one stream. It is not safe for concurrent use.
type Detector struct {
	pause, noSpeech, longest int // frames

	state    State
	frames   int    // looked at
	quiet    int    // in a row, after speech
	recent   uint32 // which of the last frames were loud enough to begin speech, the newest in bit 0
	staying  uint32 // the same, to continue it
	sum      int64  // of the squares of a frame that is not whole
	samples  int    // of it
	smoothed float64
	parts    [roomParts]float64 // the quietest of each part of the window, the newest first
}

// New returns a detector.
func New(c Config) *Detector {
	frames := func(d, usual time.Duration) int {
		if d <= 0 {
			d = usual
		}
		return int(d / (10 * time.Millisecond))
	}
	return &Detector{pause: frames(c.Pause, 450*time.Millisecond), noSpeech: frames(c.NoSpeech, 4*time.Second), longest: frames(c.Longest, 10*time.Second)}
}

// Write looks at samples, and returns the state after them.
func (d *Detector) Write(samples []int16) State {
	for len(samples) > 0 && d.state < Ended {
		n := min(frame-d.samples, len(samples))
		d.sum += squares(samples[:n])
		d.samples, samples = d.samples+n, samples[n:]
		if d.samples == frame {
			d.frame(float64(d.sum) / frame)
			d.sum, d.samples = 0, 0
		}
	}
	return d.state
}

// Pause returns how long it has been quiet after speech.
func (d *Detector) Pause() time.Duration { return time.Duration(d.quiet) * 10 * time.Millisecond }

// squares returns the sum of the squares, four at a time.
func squares(s []int16) int64 {
	var a, b, c, e int64
	for ; len(s) >= 4; s = s[4:] {
		a += int64(int32(s[0]) * int32(s[0]))
		b += int64(int32(s[1]) * int32(s[1]))
		c += int64(int32(s[2]) * int32(s[2]))
		e += int64(int32(s[3]) * int32(s[3]))
	}
	for _, v := range s {
		a += int64(int32(v) * int32(v))
	}
	return a + b + c + e
}

func (d *Detector) frame(energy float64) {
	if d.frames == 0 {
		d.smoothed = energy
		for i := range d.parts {
			d.parts[i] = energy
		}
	}
	d.smoothed += (energy - d.smoothed) * 0.4
	if d.frames%(roomWindow/roomParts) == 0 {
		copy(d.parts[1:], d.parts[:])
		d.parts[0] = d.smoothed
	}
	d.parts[0] = min(d.parts[0], d.smoothed)
	d.frames++
	room := d.parts[0]
	for _, p := range d.parts[1:] {
		room = min(room, p)
	}
	room = max(room, quietest/rises)
	d.recent <<= 1
	if energy > room*rises { // not smoothed: a click has a long shadow
		d.recent |= 1
	}
	d.staying <<= 1
	if energy > room*stays {
		d.staying |= 1
	}
	switch {
	case d.state == Speaking && bits.OnesCount32(d.staying&7) >= 2: // a click continues nothing
		d.quiet = 0
	case d.state == Speaking:
		d.quiet++
	case bits.OnesCount32(d.recent&(1<<beginOf-1)) >= beginLoud:
		d.state = Speaking
	}
	switch {
	case d.state == Speaking && d.quiet >= d.pause:
		d.state = Ended
	case d.state == Waiting && d.frames >= d.noSpeech:
		d.state = Silent
	case d.state == Speaking && d.frames >= d.longest:
		d.state = TooLong
	}
}
