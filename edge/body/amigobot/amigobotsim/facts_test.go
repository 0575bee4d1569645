package amigobotsim

import (
	"math"
	"math/bits"
	"testing"
	"time"

	"kennel/edge/body/amigobot/sip"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	c := connected(t, Config{}, true)
	c.send(vel2(1, 1))
	c.feed(1, Lines{})
	for fact, tc := range map[string][2]any{
		"charge, in Ah (AMIGO-SAFE-07)":                         {capacity, 2.2},
		"current, in A (AMIGO-OPEN-17)":                         {busyAmps, 0.7},
		"full, in V (AMIGO-OPEN-17)":                            {fullVolts, 13.8},
		"low, in V (AMIGO-SAFE-05)":                             {lowVolts, 11.0},
		"share at which it is low (AMIGO-OPEN-17)":              {lowShare, 0.15},
		"empty, in V (AMIGO-SAFE-06)":                           {emptyVolts, 10.0},
		"between alarms (AMIGO-SAFE-05)":                        {alarmEvery, 30 * time.Second},
		"height of a sonar, in m (AMIGO-PHY-01)":                {sonarHeight, 0.030},
		"digital ports (AMIGO-IO-01)":                           {bits.OnesCount(digitalPorts), 6},
		"analog ports (AMIGO-IO-04)":                            {analogPorts, 5},
		"buffer of a port, in bytes (AMIGO-XP-06)":              {auxBuffer, 1024},
		"escape of the modem (AMIGO-RF-16)":                     {escape, "|||\r"},
		"pause after it (AMIGO-RF-16)":                          {escapePause, 100 * time.Millisecond},
		"settings of the modem (AMIGO-RF-08)":                   {kept, "BEFIJMOPR"},
		"cycle, in s (AMIGO-MOT-14)":                            {cycleSeconds, 0.010},
		"cycle (AMIGO-MOT-14)":                                  {cycle, 10 * time.Millisecond},
		"speed of a wheel, in m/s (AMIGO-MOT-08)":               {wheelCeiling, 0.750},
		"speed of a turn, in degrees/s (AMIGO-MOT-08)":          {math.Round(turnCeiling * 180 / math.Pi), 300.0},
		"track, in mm (AMIGO-POS-04)":                           {math.Round(track * 1000), 244.0},
		"ticks of a wheel that is stalled (AMIGO-OPEN-09)":      {stallTicks, 5},
		"cycles until it is (AMIGO-OPEN-09)":                    {stallCycles, 10},
		"arming timeout (AMIGO-TST-02)":                         {armedFor, 10 * time.Second},
		"slowly, in Hz (AMIGO-OPEN-07)":                         {slow, 1.0},
		"rapidly, in Hz (AMIGO-OPEN-07)":                        {fast, 5.0},
		"turns of the motors test (AMIGO-TST-03)":               {testTurns, 1.5},
		"self-wander, in m/s (AMIGO-OPEN-11)":                   {wanderPace, 0.2},
		"self-wander turns away, in m (AMIGO-OPEN-11)":          {wanderRoom, 0.4},
		"self-wander's show (AMIGO-OPEN-11)":                    {showEvery, 180 * time.Second},
		"commands that wait (AMIGO-PKT-12)":                     {queueLength, 8},
		"cycles of a ping (AMIGO-SON-03)":                       {cyclesPerPing, 5},
		"nearest range, in m (AMIGO-SON-04)":                    {minRange, 0.10},
		"farthest range, in m (AMIGO-SON-04)":                   {maxRange, 5.0},
		"no echo, in m (AMIGO-SON-04)":                          {noEcho, 6.1},
		"cone, in degrees (AMIGO-OPEN-16)":                      {math.Round(cone / deg), 15.0},
		"incidence without an echo, in degrees (AMIGO-OPEN-16)": {math.Round(glance / deg), 60.0},
		"bound of VEL2, in mm/s (AMIGO-MOT-07)":                 {math.Round(c.r.limits(0).vel * 1000 / sip.TicksPerMetre), 2200.0},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
