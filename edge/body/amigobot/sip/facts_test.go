package sip

import (
	"math"
	"testing"
	"time"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"SYNC (AMIGO-SYNC-02)": {[3]uint8{Sync0, Sync1, Sync2}, [3]uint8{0, 1, 2}},
		"commands, as the manual numbers them (AMIGO-CMD-00 to 43, 45 to 92)": {[...]uint8{Pulse, Open, Close, Polling, Enable, SetA, SetV, SetO, Move, Rotate, SetRV, Vel, Head, DHead, Say, GetConfig, Encoder, RVel, DCHead, SetRA, Sonar, Stop, DigOut, Vel2, Gripper, ADSel, GripperVal, IORequest, PTUPos, TTY2, GetAux, BumpStall, TCM2, HostBaud, EStop, BatteryInfo, Step, TTY3, GetAux2, RotKP, RotKV, RotKI, TransKP, TransKV, TransKI, RevCount, Sound, GetPlaylist, SoundTog}, [...]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 18, 19, 21, 22, 23, 28, 29, 30, 32, 33, 35, 36, 40, 41, 42, 43, 44, 45, 50, 55, 62, 64, 66, 67, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92}},
		"sonars (AMIGO-SIP-14)":                         {Sonars, 8},
		"motors and sonars in the flags (AMIGO-SIP-11)": {[2]int{FlagMotors, FlagSonar}, [2]int{1, 2}},
		"stalled wheels (AMIGO-SIP-09)":                 {[2]int{StallLeft, StallRight}, [2]int{1, 0x100}},
		"patience with a packet (AMIGO-PKT-09)":         {Patience, 100 * time.Millisecond},
		"time of a byte at 9600 bit/s (AMIGO-PKT-09)":   {byteTime, time.Second / 960},
		"bytes beside the payload (AMIGO-PKT-02)":       {Overhead, 5},
		"payload (AMIGO-PKT-02)":                        {MaxPayload, 198},
		"text of a command (AMIGO-PKT-05)":              {MaxText, 195},
		"serial bytes in a packet (AMIGO-XP-05)":        {MaxSerial, 197},
		"headers (AMIGO-PKT-01)":                        {[2]int{header0, header1}, [2]int{0xFA, 0xFB}},
		"counts (AMIGO-PKT-02)":                         {[2]int{minCount, maxCount}, [2]int{3, 200}},
		"types (AMIGO-PKT-13)":                          {[8]int{TypeConfig, TypeStopped, TypeMoving, TypeEncoders, TypeAux1, TypeAux2, TypePlaylist, TypeIO}, [8]int{0x20, 0x32, 0x33, 0x90, 0xB0, 0xB8, 0xD0, 0xF0}},
		"X and Y, in m (AMIGO-SIP-03)":                  {DistanceUnit, 0.5083e-3},
		"bits of X and Y (AMIGO-SIP-03)":                {distanceMask, 0x7FFF},
		"Th, in rad (AMIGO-SIP-05)":                     {math.Round(AngleUnit * 1e6), 1534.0},
		"wheels, in m/s (AMIGO-SIP-06)":                 {SpeedUnit, 0.6154e-3},
		"battery, in V (AMIGO-SIP-08)":                  {VoltageUnit, 0.1},
		"ranges, in m (AMIGO-SIP-15)":                   {RangeUnit, 0.001},
		"VEL2, in m/s (AMIGO-CMD-32)":                   {Vel2Unit, 0.020},
		"analog byte, in V (AMIGO-SIP-17)":              {AnalogByteUnit * 255, 5.0},
		"analog, in V (AMIGO-XP-09)":                    {AnalogUnit * 2047, 5.0},
		"ticks of a metre (AMIGO-POS-03)":               {math.Round(TicksPerMetre), 30399.0},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
