package amigobot

import (
	"math"
	"testing"
	"time"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"sounds (AMIGO-SND-01)":                                             {mostSounds, 255},
		"document of the parameters (AMIGO-FLASH-01)":                       {ParametersDocument, "amigo.Parameters"},
		"address (AMIGO-LINK-05)":                                           {DefaultDevice, "tcp:localhost:8101"},
		"between two commands (AMIGO-PKT-12)":                               {step, 20 * time.Millisecond},
		"silence, after the session connected again at 8 s (AMIGO-LINK-06)": {silent, 12 * time.Second},
		"accuracy of a way, in m (GOSTAI-OPEN-11)":                          {goReach, 0.020},
		"empty, in V (AMIGO-SAFE-06)":                                       {empty, 10.0},
		"full, in V (GOSTAI-MAP-A-15)":                                      {full, 13.0},
		"low, in V (AMIGO-SAFE-05)":                                         {low, 11.0},
		"farthest range, in m (AMIGO-SON-04)":                               {farthest, 5.0},
		"deviation of a range (AMIGO-OPEN-16)":                              {rangeShare, 0.01},
		"charge, in Ah (GOSTAI-MAP-A-15)":                                   {capacity, 2.2},
		"largest step of VEL2 (AMIGO-CMD-32)":                               {maxSpeed, 127},
		"step of VEL2, in m/s (AMIGO-CMD-32)":                               {stepSpeed, 0.020},
		"radius of a wheel, in m (AMIGO-POS-03)":                            {radius, 0.050},
		"ticks of a wheel's turn (AMIGO-POS-03)":                            {ticksPerTurn, 9550},
		"track, in mm (AMIGO-POS-04)":                                       {math.Round(track * 1000), 244.0},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
