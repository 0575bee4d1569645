package spine

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"left tread, right tread, lift, head (VEC-BODY-20)": {[4]int{LeftTread, RightTread, Lift, Head}, [4]int{0, 1, 2, 3}},
		"cliff sensors (VEC-BODY-20)":                       {[4]int{FrontLeft, FrontRight, BackLeft, BackRight}, [4]int{0, 1, 2, 3}},
		"bytes of a data frame (VEC-BODY-B02)":              {BodyDataSize, 768},
		"microphones and samples of each (VEC-BODY-25)":     {[2]int{MicChannels, MicSamples}, [2]int{4, 80}},
		"offset of the microphones (VEC-BODY-B02)":          {micOffset, 128},
		"fault of the time-of-flight sensor":                {FaultProximity, 0x52},
		"fault of a cliff sensor":                           {FaultCliff, 0xa6},
		"bytes of a frame beside its payload (VEC-BODY-03)": {Overhead, 12},
		"largest payload (VEC-BODY-03)":                     {MaxPayload, 1280},
		"check value (VEC-BODY-06)":                         {CheckValue, uint32(0x340BC6D9)},
		"synchronisation (VEC-BODY-04)":                     {toBodySync, "\xaaH2B"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
