package geometry

import (
	"math"
	"testing"
)

// TestStream: what a frame holds (VEC-MIC-01), and the directions that are told apart (VEC-MIC-03).
func TestStream(t *testing.T) {
	if Mics != 4 || Samples != 80 || Rate != 15625 || Idle != 1024 {
		t.Errorf("%d microphones, %d samples of each in a frame, %d a second, %d when idle", Mics, Samples, Rate, Idle)
	}
	if Bins != 12 || math.Abs(binStep-math.Pi/6) > 1e-9 {
		t.Errorf("%d directions, %v rad each", Bins, binStep)
	}
	// A sound from ahead reaches the front by the time of 24 mm before the back.
	if d := Delays(0); math.Abs(d[2]-d[0]-0.024/343*15625) > 1e-9 || d[0] != d[1] {
		t.Errorf("from ahead %v", d)
	}
	if d := Delays(math.Pi / 2); math.Abs(d[0]-d[1]-0.024/343*15625) > 1e-9 {
		t.Errorf("from the left %v", d)
	}
}
