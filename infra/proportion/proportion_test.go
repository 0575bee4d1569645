package proportion

import (
	"math"
	"testing"
)

// TestIntervals: published examples: Wilson's interval for 81 of 263 (0.2553, 0.3662) and Newcombe's for 56/70 - 48/80 (0.0524, 0.3339), Newcombe 1998.
func TestIntervals(t *testing.T) {
	near := func(name string, low, high, wantLow, wantHigh float64) {
		t.Helper()
		if math.Abs(low-wantLow) > 5e-4 || math.Abs(high-wantHigh) > 5e-4 {
			t.Errorf("%s: %.4f to %.4f, want %.4f to %.4f", name, low, high, wantLow, wantHigh)
		}
	}
	low, high := Share(81, 263, Z)
	near("Wilson", low, high, 0.2553, 0.3662)
	low, high = Difference(56, 70, 48, 80, Z)
	near("Newcombe", low, high, 0.0524, 0.3339)
	low, high = Share(0, 0, Z)
	near("nothing", low, high, 0, 1)
	low, high = Difference(1, 1, 0, 0, Z)
	near("nothing to compare with", low, high, -1, 1)
	low, high = Share(3, 2, Z) // counted at two moments
	wantLow, wantHigh := Share(2, 2, Z)
	near("more than all", low, high, wantLow, wantHigh)
}
