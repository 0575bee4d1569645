package session

import (
	"fmt"
	"testing"
	"time"

	"kennel/edge/body/amigobot/sip"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"between two commands (AMIGO-PKT-12)":           {Pacing, 20 * time.Millisecond},
		"until PULSE (AMIGO-SYNC-12)":                   {Idle, 500 * time.Millisecond},
		"until it is stale (AMIGO-LINK-06)":             {StaleAfter, 2 * time.Second},
		"until PULSE of a silent robot (AMIGO-LINK-06)": {PulseAfter, 5 * time.Second},
		"until it is lost (AMIGO-LINK-06)":              {LostAfter, 8 * time.Second},
		"until SYNC0 again (AMIGO-SYNC-09)":             {syncTimeout, time.Second},
		"between two CONFIG (AMIGO-CMD-18)":             {configEvery, 200 * time.Millisecond},
		"CONFIG at most (AMIGO-CMD-18)":                 {configTries, 5},
		"until a command again (AMIGO-PKT-11)":          {retryAfter, 200 * time.Millisecond},
		"tries of a command (AMIGO-PKT-11)":             {maxTries, 3},
		"misses, at most 6 to 11 (AMIGO-SYNC-09)":       {maxMisses, 10},
		"misses until other speeds (AMIGO-SYNC-09)":     {missesToSpeeds, 2},
		"misses until OPEN (AMIGO-SYNC-09)":             {missesToOpen, 3},
		"least battery, in V (AMIGO-SYNC-16)":           {minBattery, 10.0},
		"CLOSE as ARIA sends it (AMIGO-SYNC-13)":        {fmt.Sprintf("%x", closing), fmt.Sprintf("%x", sip.Int(2, 1))},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
