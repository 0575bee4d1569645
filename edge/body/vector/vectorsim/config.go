package vectorsim

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/sim/plane"
)

// Start says what a board does when its power comes on.
type Start uint8

// Ways to start.
const (
	// StartApplication: the boot-loader finds the application sound and runs it (VEC-BOOT-04), data frames flow.
	StartApplication Start = iota
	// StartBootloader: the boot-loader waits for the head's mode change.
	StartBootloader
	// StartEmpty: the boot-loader has no application to run, until one is written.
	StartEmpty
)

// Config describes a board. The zero value is a sound board with a well filled battery.
type Config struct {
	Seed uint64 // of noise and faults; the same seed and the same bytes from the head give the same board
	// HoldProcessor lets Run wait between frames in a raw system call, which keeps Go's scheduler from giving its turn away: frames are more punctual.
	// It needs GOMAXPROCS above the number of such boards, and a program that collects little garbage.
	HoldProcessor bool

	Version string // at most 16 bytes; "" is "1.6.0-sim"
	Start   Start
	Layout  spine.Layout // of data frames, both ways

	// Press is how long the button is held when the power first comes on. Below 5 s the power drops again; from 15 s the head boots its
	// recovery system (VEC-BOOT-02). 0 is a button held for just as long as needed, before the board's time begins; later presses are like
	// that too.
	Press time.Duration
	// OnBoot is called inside Run with the system that the head is to start, when that is decided: a recovery boot is reported after the
	// normal boot that it replaces. It must not call the board.
	OnBoot func(Boot)

	// BootPatience is how long the board waits for the head's first frame after its power came on. The 200-frame watchdog cannot
	// hold then: the head needs about 7 s to reach the program that first speaks to the board (part of VEC-BOOT-09). Own default 30 s,
	// because on a desk that head is a process among many.
	BootPatience time.Duration

	Volts              float64 // battery at the start, 3.0 to 4.2; 0 is 4.0
	OnCharger          bool
	DischargePerMinute float64 // V; 0 is 0.02, a full battery in about 40 minutes; negative: none
	ChargePerMinute    float64 // V; 0 is 0.05; negative: none
	// Caretaker puts the body on its charger when the battery is low and takes it off when it is full, so that a body left alone lives on. It
	// waits until the motors have had no power for 5 s, because a robot is not taken away from the program that drives it.
	Caretaker bool
	Ambient   float64 // degrees Celsius; 0 is 22

	FaultDevice, FaultItem uint8 // result of the self tests (part of VEC-BODY-18)
	Noise                  Noise

	Factory bool // test firmware: characters go through the charging pad (VEC-CLI-01)

	Calibration vectordriver.Calibration // zero: vectordriver.DefaultCalibration

	// World is where the body is: its treads move it there, and range finder, cliff sensors and charger are the world's. nil: nowhere, on
	// an endless floor with something at a fixed distance before it.
	World *plane.Map
}

// Noise disturbs the wire both ways. Loss and Corrupt are probabilities of a frame, ByteLoss and ByteNoise of a byte, 0 to 1.
type Noise struct {
	Loss      float64 // the frame does not arrive
	Corrupt   float64 // one of its bytes arrives damaged
	ByteLoss  float64 // the byte does not arrive
	ByteNoise float64 // another byte arrives, any
	Babble    int     // up to so many stray bytes each period and way
	Silent    bool    // nothing arrives
}

// maxBabble is more bytes than the line carries in a period: 3 Mbit/s for 5.12 ms.
const maxBabble = 2048

// onBytes reports whether single bytes are disturbed.
func (n *Noise) onBytes() bool { return n.ByteLoss > 0 || n.ByteNoise > 0 || n.Babble > 0 || n.Silent }

// Own defaults of the body; none is in the source.
const (
	defaultVersion      = "1.6.0-sim"
	defaultBootPatience = 30 * time.Second
	defaultVolts        = 4.0
	defaultDischarge    = 0.02
	defaultCharge       = 0.05
	defaultAmbient      = 22

	bootloaderEvery  = 20              // periods between frames of the boot-loader, about 0.1 s
	idleAfter        = 2 * time.Second // without a motor command, then the encoders go off (VEC-PWR-21)
	proxIdle         = 30              // the same while the encoders are off (VEC-PWR-21); own default
	proxEvery        = 6               // periods between distance samples, about 31 ms: the sensor's default timing budget
	motorLag         = 40 * time.Millisecond
	fullVolts        = 4.2 // charging ends
	resumeVolts      = 4.1 // and begins again
	lowVolts         = 3.6 // the caretaker acts (VEC-PWR-02)
	caretakerWaits   = 5 * time.Second
	criticalVolts    = 3.3 // flag below critical: below all at which a head sheds load (VEC-PWR-07); own default
	imminentVolts    = 3.2 // flag shutdown imminent
	imminentFor      = 10 * time.Second
	padVolts         = 5.0  // on the charger (VEC-HW-04)
	sagVolts         = 0.08 // with all motors at full power
	loadDrain        = 3.0  // times the discharge, beside it, with all motors at full power
	hotDegrees       = 50.0 // overheated, charging pauses (VEC-PWR-10)
	warmUp           = 2 * time.Minute
	floorCounts      = 600 // a cliff sensor over a floor
	touchCounts      = 500 // an untouched back
	touchSaturated   = 4095
	touchFinger      = 1000      // what a finger adds to it
	touchOnCharger   = 120       // the charger's contacts (VEC-HW-16); own default
	touchInHand      = 60        // a hand round the body
	touchHumid       = 40        // what the weather adds or takes at the most,
	touchWeather     = time.Hour // from dry to damp and back
	openRange        = 8190
	defaultProxRange = 400              // mm
	tickUnit         = time.Microsecond // of MotorStatus.Ticks (VEC-BODY-19)
)

// maxSpeed is rad/s at full power: treads 0.3 m/s, lift and head a little over the recommended 10 rad/s (VEC-MOT-01, 02).
func maxSpeed(c *vectordriver.Calibration) [4]float64 {
	return [4]float64{0.3 / c.WheelRadius, 0.3 / c.WheelRadius, 12, 12}
}

// Hard stops of the lift arm and the head in radians. The lift's 32 to 92 mm are angles of an arm of 66 mm on a joint at 45 mm (own
// geometry); the head's are given (VEC-MOT-01, 02).
var (
	liftStops = [2]float64{math.Asin((32 - 45) / 66.0), math.Asin((92 - 45) / 66.0)}
	headStops = [2]float64{-22 * math.Pi / 180, 45 * math.Pi / 180}
)

func (c Config) withDefaults() Config {
	if c.Version == "" {
		c.Version = defaultVersion
	}
	if c.BootPatience == 0 {
		c.BootPatience = defaultBootPatience
	}
	if c.Volts == 0 {
		c.Volts = defaultVolts
	}
	if c.DischargePerMinute == 0 {
		c.DischargePerMinute = defaultDischarge
	}
	if c.ChargePerMinute == 0 {
		c.ChargePerMinute = defaultCharge
	}
	if c.Ambient == 0 {
		c.Ambient = defaultAmbient
	}
	if c.Calibration == (vectordriver.Calibration{}) {
		c.Calibration = vectordriver.DefaultCalibration()
	}
	return c
}

// Validate names the first setting that cannot be. The zero value is valid.
func (c Config) Validate() error {
	c = c.withDefaults()
	if len(c.Version) > 16 {
		return fmt.Errorf("vectorsim: version %q has %d bytes, want at most 16", c.Version, len(c.Version))
	}
	if c.Start > StartEmpty {
		return fmt.Errorf("vectorsim: start %d, want 0 to %d", c.Start, StartEmpty)
	}
	for _, n := range []struct {
		name            string
		value, min, max float64
	}{
		{"boot patience in seconds", c.BootPatience.Seconds(), 0.1, 3600},
		{"press in seconds", c.Press.Seconds(), 0, 60},
		{"volts", c.Volts, 3.0, fullVolts},
		{"discharge per minute", c.DischargePerMinute, math.Inf(-1), 60},
		{"charge per minute", c.ChargePerMinute, math.Inf(-1), 60},
		{"ambient", c.Ambient, -40, 85},
		{"loss", c.Noise.Loss, 0, 1},
		{"corruption", c.Noise.Corrupt, 0, 1},
		{"loss of bytes", c.Noise.ByteLoss, 0, 1},
		{"noise on bytes", c.Noise.ByteNoise, 0, 1},
		{"babble", float64(c.Noise.Babble), 0, maxBabble},
	} {
		if !(n.value >= n.min && n.value <= n.max) {
			return fmt.Errorf("vectorsim: %s is %v, want %v to %v", n.name, n.value, n.min, n.max)
		}
	}
	if err := c.Calibration.Validate(); err != nil {
		return err
	}
	if c.World == nil {
		return nil
	}
	_, err := plane.New(c.World, shape(&c.Calibration), c.Seed)
	return err
}
