package spine

import (
	"slices"
	"testing"
)

// TestIndices: motors and cliff sensors in the wire's order (VEC-BODY-20), and the numbers of failed devices (part of VEC-BODY-18).
func TestIndices(t *testing.T) {
	if got := []int{LeftTread, RightTread, Lift, Head}; !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("motors %d", got)
	}
	if got := []int{FrontLeft, FrontRight, BackLeft, BackRight}; !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("cliff sensors %d", got)
	}
	if got := []int{FaultNone, FaultProximity, FaultCliff}; !slices.Equal(got, []int{0, 0x52, 0xa6}) {
		t.Errorf("failed devices %#x", got)
	}
	if MicChannels*MicSamples != 320 || BodyDataSize != 768 { // VEC-BODY-25
		t.Errorf("%d x %d samples in %d bytes", MicChannels, MicSamples, BodyDataSize)
	}
}
