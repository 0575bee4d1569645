package vectordriver

import (
	"fmt"
	"math"
	"time"
)

// Fixed facts of the link.
const (
	// Period is the body's rhythm: 80 samples a microphone and frame at 15,625 Hz (VEC-BODY-10).
	Period = 5120 * time.Microsecond
	// Stale is how old a measurement may be before the motors lose their power (VEC-BODY-33).
	Stale = 50 * time.Millisecond
	// WatchdogFrames is how many data frames the body sends without hearing the head before it cuts power (VEC-BODY-11, VEC-WDOG-01).
	WatchdogFrames = 200
	// DefaultBaud is the speed of the link in bit/s (VEC-BODY-01).
	DefaultBaud = 3_000_000
	// DefaultDevice is the port, below the robot's root (part of VEC-ARCH-08, part of VEC-FSY-04).
	DefaultDevice = "dev/ttyHS0"
)

// Calibration turns raw device units into SI. The source gives few of these numbers: "own default" marks numbers that must be measured on a
// robot before they are trusted. The simulated board is built from the same numbers.
type Calibration struct {
	VoltsPerCount float64 // V, battery and charger (VEC-BODY-22)

	CountsPerRad [4]float64 // encoder counts a radian of wheel, wheel, lift arm, head (VEC-BODY-19; own defaults)
	MaxDuty      [4]float64 // 0 to 1, limit of a motor's command (VEC-BODY-31; own default 1)
	WheelRadius  float64    // m, from the axle to the tread's outside (own default)
	TrackWidth   float64    // m, between the middles of the treads (VEC-MOT-10; own default)

	CliffFullScale float64 // counts that read as 1 (own default)

	ProxMin, ProxMax float64 // m, distances outside are counted as such (VEC-BODY-26)
	ProxRate         float64 // 1e6 counts a second of one step of the sensor's rates (VEC-IO-24)
	ProxSwap         bool    // the sensor's big-endian words come through unswapped (VEC-BODY-26); see convert.go

	TouchMin, TouchMax uint16  // counts, readings outside are refused as saturated (VEC-BODY-27; own defaults)
	TouchFullScale     float64 // counts that read as 1 (own default: 12-bit converter)

	// LightOrder[i] is the wire index of the light led[i]. The wire counts the lower lights from the back and ends with the status
	// light; the tree counts from the front (VEC-IO-31, GOSTAI-MAP-V-28 to 31).
	LightOrder [4]int

	Control uint32 // control word of every data frame; 0 until a bit of it is verified on hardware (VEC-BODY-32)
	// ChargerOff and SensorsOff are the bits that Act.Off adds to it; 0 leaves all parts on. Behind a socket Open sets the bits of the simulated board.
	ChargerOff, SensorsOff uint32

	// LostAfter is how long a body may be silent before fault 898 is reported (own default).
	LostAfter time.Duration
}

// Bits of the control word as the simulated board takes them: our own convention until hardware says otherwise (VEC-BODY-32).
const (
	SimChargerOff uint32 = 1 << iota
	SimSensorsOff
)

// DefaultCalibration returns the numbers of an unmeasured robot.
func DefaultCalibration() Calibration {
	return Calibration{
		VoltsPerCount:  2.8 / 2048,
		CountsPerRad:   [4]float64{150, 150, 400, 500},
		MaxDuty:        [4]float64{1, 1, 1, 1},
		WheelRadius:    0.0145,
		TrackWidth:     0.048,
		CliffFullScale: 1024,
		ProxMin:        0.030,
		ProxMax:        1.200,
		ProxRate:       1. / 128, // fixed point of 7 bits behind the point; own default
		TouchMin:       1,
		TouchMax:       4094,
		TouchFullScale: 4095,
		LightOrder:     [4]int{2, 1, 0, 3},
		LostAfter:      500 * time.Millisecond,
	}
}

// Validate names the first number that cannot be.
func (c *Calibration) Validate() error {
	type number struct {
		name     string
		value    float64
		min, max float64
	}
	numbers := []number{
		{"VoltsPerCount", c.VoltsPerCount, 1e-6, 1},
		{"WheelRadius", c.WheelRadius, 1e-3, 1},
		{"TrackWidth", c.TrackWidth, 1e-3, 1},
		{"CliffFullScale", c.CliffFullScale, 1, math.MaxUint16},
		{"ProxMin", c.ProxMin, 0, c.ProxMax},
		{"ProxMax", c.ProxMax, 0, 65.535},
		{"ProxRate", c.ProxRate, 1e-6, 1},
		{"TouchMin", float64(c.TouchMin), 0, float64(c.TouchMax)},
		{"TouchFullScale", c.TouchFullScale, 1, math.MaxUint16},
		{"LostAfter in seconds", c.LostAfter.Seconds(), 0.01, 3600},
	}
	for i := range c.CountsPerRad {
		numbers = append(numbers,
			number{"CountsPerRad of " + motorNames[i], c.CountsPerRad[i], 1e-3, 1e6},
			number{"MaxDuty of " + motorNames[i], c.MaxDuty[i], 0, 1},
			number{"LightOrder of " + lightNames[i], float64(c.LightOrder[i]), 0, 3})
	}
	for _, n := range numbers {
		if !(n.value >= n.min && n.value <= n.max) { // refuses NaN too
			return fmt.Errorf("vector calibration: %s is %v, want %v to %v", n.name, n.value, n.min, n.max)
		}
	}
	return nil
}

// fullDuty is the motor setting for all the power there is (VEC-BODY-31).
const fullDuty = math.MaxInt16

// duty converts a command of -1 to 1 into a motor setting within limit; NaN is 0.
func duty(v, limit float64) int16 {
	if math.IsNaN(v) {
		return 0
	}
	return int16(math.Round(min(max(v, -limit), limit) * fullDuty))
}
