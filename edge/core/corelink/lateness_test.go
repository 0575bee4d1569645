package corelink

import "testing"

// TestSince: only the steps between two histograms count.
func TestSince(t *testing.T) {
	before := &Lateness{UpToUS: []uint32{10, 500}, Counts: []uint32{90, 10}}
	after := &Lateness{UpToUS: []uint32{10, 20, 500}, Counts: []uint32{140, 49, 11}}
	for q, want := range map[float64]uint32{0: 10, 0.5: 10, 0.51: 20, 0.99: 20, 0.995: 500, 1: 500} {
		if got := after.Since(before, q); got != want {
			t.Errorf("%v of the steps: %d us, want %d", q, got, want)
		}
	}
	if got := after.Since(after, 0.99); got != 0 {
		t.Errorf("without a step between: %d", got)
	}
	if got := after.Since(&Lateness{}, 1); got != 500 {
		t.Errorf("of all: %d, want 500", got)
	}
}
