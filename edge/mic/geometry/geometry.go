// Package geometry is the geometry of the four microphones on a robot's back, for those who simulate them and those who listen with them.
//
// Channels are numbered as the faults 870 to 873 and the cliff sensors are: front right, front left, back right, back left. The source gives no
// distances and no order of the channels: both are our own defaults.
package geometry

import "math"

// The stream of the microphones (VEC-MIC-01).
const (
	Mics    = 4
	Samples = 80    // of each microphone in a frame
	Rate    = 15625 // samples a second of each microphone
	Idle    = 1024  // the level of a microphone that hears nothing
	Bins    = 12    // directions that are told apart, 30 degrees each (VEC-MIC-03)
	speed   = 343.0 // of sound, m/s; own default
	across  = 0.024 // m between left and right; own default
	along   = 0.024 // m between front and back; own default
	binStep = 2 * math.Pi / float64(Bins)
)

// Frame is one frame of the body's samples: sample 0 of all microphones, then sample 1, and so on.
type Frame = [Samples * Mics]int16

// place is each microphone in metres: X forward, Y left.
var place = [Mics][2]float64{{along / 2, -across / 2}, {along / 2, across / 2}, {-along / 2, -across / 2}, {-along / 2, across / 2}}

// Delays returns how much later than the middle of the robot each microphone hears a distant sound, in samples. Direction is where the sound
// comes from, in radians counter-clockwise from straight ahead.
func Delays(direction float64) (out [Mics]float64) {
	sin, cos := math.Sincos(direction)
	for i, p := range place {
		out[i] = -(p[0]*cos + p[1]*sin) / speed * Rate
	}
	return out
}

// Direction returns the middle of a bin in radians counter-clockwise.
func Direction(bin int) float64 { return -float64(bin) * binStep }
