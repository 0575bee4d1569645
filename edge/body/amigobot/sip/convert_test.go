package sip

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// TestUnits: what raw numbers are in SI units, by the manual's numbers.
func TestUnits(t *testing.T) {
	for name, tc := range map[string]struct{ got, want float64 }{
		"1000 of X, in m (AMIGO-SIP-03)":                   {1000 * DistanceUnit, 0.5083},
		"a quarter turn of Th, in rad (AMIGO-SIP-05)":      {1024 * AngleUnit, math.Pi / 2},
		"100 of Left, in m/s (AMIGO-SIP-06)":               {100 * SpeedUnit, 0.06154},
		"124 of Battery, in V (AMIGO-SIP-08)":              {124 * VoltageUnit, 12.4},
		"1500 of a range, in m (AMIGO-SIP-15)":             {1500 * RangeUnit, 1.5},
		"10 of Vel2, in m/s (AMIGO-CMD-32)":                {10 * Vel2Unit, 0.2},
		"255 of Analog, in V (AMIGO-SIP-17)":               {255 * AnalogByteUnit, 5},
		"2047 of an analogue input, in V (AMIGO-XP-09)":    {2047 * AnalogUnit, 5},
		"ticks of 1 m, of a wheel of 10 cm (AMIGO-POS-03)": {TicksPerMetre, 30398.6},
	} {
		if math.Abs(tc.got-tc.want) > 1e-5*tc.want {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
}

// TestNumbers: the commands by the manual's numbers and names (AMIGO-CMD-00 to 43, 45 to 92), and the bits of a standard packet.
func TestNumbers(t *testing.T) {
	for want, got := range map[string]uint8{
		"0 PULSE": Pulse, "1 OPEN": Open, "2 CLOSE": Close, "3 POLLING": Polling, "4 ENABLE": Enable, "5 SETA": SetA, "6 SETV": SetV, "7 SETO": SetO, "10 SETRV": SetRV,
		"11 VEL": Vel, "12 HEAD": Head, "13 DHEAD": DHead, "15 SAY": Say, "18 CONFIG": GetConfig, "19 ENCODER": Encoder, "21 RVEL": RVel, "22 DCHEAD": DCHead, "23 SETRA": SetRA,
		"28 SONAR": Sonar, "29 STOP": Stop, "30 DIGOUT": DigOut, "32 VEL2": Vel2, "33 GRIPPER": Gripper, "35 ADSEL": ADSel, "36 GRIPPERVAL": GripperVal, "40 IOREQUEST": IORequest,
		"41 PTUPOS": PTUPos, "42 TTY2": TTY2, "43 GETAUX": GetAux, "44 BUMPSTALL": BumpStall, "45 TCM2": TCM2, "55 E_STOP": EStop, "64 STEP": Step, "66 TTY3": TTY3, "67 GETAUX2": GetAux2,
		"82 ROTKP": RotKP, "83 ROTKV": RotKV, "84 ROTKI": RotKI, "85 TRANSKP": TransKP, "86 TRANSKV": TransKV, "87 TRANSKI": TransKI, "88 REVCOUNT": RevCount, "90 SOUND": Sound,
		"91 PLAYLIST": GetPlaylist, "92 SOUNDTOG": SoundTog, "8 of ARIA: MOVE": Move, "9 of ARIA: ROTATE": Rotate, "50 of ARIA: HOSTBAUD": HostBaud, "62 of ARIA: BATTERYINFO": BatteryInfo,
	} {
		if number, name, _ := strings.Cut(want, " "); number != strconv.Itoa(int(got)) {
			t.Errorf("%s has the number %d, want %s", name, got, number)
		}
	}
	if StallLeft != 0x0001 || StallRight != 0x0100 { // AMIGO-SIP-09
		t.Errorf("stalls are bits %#x and %#x", StallLeft, StallRight)
	}
	if Sonars != 8 || MaxPayload != 198 || MaxText != 195 { // AMIGO-SIP-14, AMIGO-PKT-05
		t.Errorf("%d sonars, payloads of %d bytes, texts of %d", Sonars, MaxPayload, MaxText)
	}
	if FlagMotors != 1 || FlagSonar != 2 { // AMIGO-SIP-11
		t.Errorf("motors and sonar are bits %#x and %#x", FlagMotors, FlagSonar)
	}
}
