package recognizertest

import (
	"math"
	"testing"
)

// The noise is as loud as it was ordered, and the speech is the same below it.
func TestNoise(t *testing.T) {
	clean, noisy := Say(t, "slt", "go forward", 0), Say(t, "slt", "go forward", 10)
	if len(clean) != len(noisy) {
		t.Fatalf("%d samples, %d with noise", len(clean), len(noisy))
	}
	noise := make([]int16, len(clean))
	for i := range noise {
		noise[i] = noisy[i] - clean[i]/2
	}
	if snr := 20 * math.Log10(level(clean)/2/level(noise)); math.Abs(snr-10) > 0.5 {
		t.Errorf("signal to noise %.1f dB, want 10", snr)
	}
}
