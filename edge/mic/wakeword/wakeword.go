// Package wakeword hears the wake word.
package wakeword

import "kennel/edge/mic"

// Hit is a wake word that was heard. Positions count the samples fed since the detector was made or reset.
type Hit struct {
	Begin, End uint64  // the word's first sample, and the one after its last
	Score      float64 // how sure it is: 1 is the threshold, more is surer
}

// mostLost is how many frames of the microphones may be missing in a word, 0.05 s: a robot whose body skips one still hears its name. Own default.
const mostLost = 10

// Gap has d forget all samples if more is missing before c than a word survives, and reports whether it did.
func Gap(d Detector, c *mic.Chunk) bool {
	if c.Lost <= mostLost {
		return false
	}
	d.Reset()
	return true
}

// Detector hears a wake word in 16 kHz samples. It is not safe for concurrent use.
type Detector interface {
	// Feed takes the next samples and reports a word that ended in them, or shortly before.
	Feed(samples []int16) (Hit, bool)
	// Reset forgets all samples. Gap calls it, and it is called after a hit.
	Reset()
}
