package cube

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// UUID names a service or a characteristic, in the order in which it is written.
type UUID [16]byte

// ParseUUID reads the 36 characters of a UUID, or the four of one that the Bluetooth standard defines.
func ParseUUID(s string) (u UUID, err error) {
	if len(s) == 4 {
		s = "0000" + s + "-0000-1000-8000-00805F9B34FB"
	}
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, fmt.Errorf("cube: UUID %.40q, want four digits, or 8-4-4-4-12 of them", s)
	}
	digits := strings.ReplaceAll(s, "-", "")
	if len(digits) != 32 {
		return u, fmt.Errorf("cube: UUID %.40q has %d digits, want 32", s, len(digits))
	}
	if _, err := hex.Decode(u[:], []byte(digits)); err != nil {
		return UUID{}, fmt.Errorf("cube: UUID %.40q: %w", s, err)
	}
	return u, nil
}

// String returns the 36 characters, in capitals.
func (u UUID) String() string {
	h := strings.ToUpper(hex.EncodeToString(u[:]))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func known(s string) UUID {
	u, err := ParseUUID(s)
	if err != nil {
		panic(err) // the constants below are none
	}
	return u
}

// The cube's service, its characteristics (part of VEC-CUBE-01, VEC-CUBE-02, part of VEC-CCU-01), and those of device information (VEC-CUBE-03, VEC-CCU-02).
var (
	Service  = known("C6F6C70F-D219-598B-FB4C-308E1F22F830")
	Lights   = known("0EA75290-6759-A58D-7948-598C4E02D94A") // write
	Version  = known("450AA175-8D85-16A6-9148-D50E2EB7B79E") // read
	Motion   = known("43EF14AF-5FB1-7B81-3647-2A9477824CAB") // read, notify: battery and accelerometer
	Firmware = known("9590BA9C-5140-92B5-1844-5F9D681557A4") // write

	DeviceName       = known("2A00")
	ModelNumber      = known("2A24")
	FirmwareRevision = known("2A26")
	SoftwareRevision = known("2A28")
	Manufacturer     = known("2A29")
)

// Sizes on the wire.
const (
	sampleSize = 6
	samples    = 3
	// ReportSize is the size of a Report.
	ReportSize = 2 + samples*sampleSize
	stepSize   = 6
	setSteps   = 3
	setSize    = 1 + setSteps*stepSize
	// LightCount is how many lights a cube has.
	LightCount = 4
	startSize  = 1 + LightCount
)

// Triggers of the lights' characteristic.
const (
	triggerStart = 0
	triggerSet   = 1
)

// Tick is the unit of a step's duration (VEC-CUBEIO-03).
const Tick = 30 * time.Millisecond

// Sample is an acceleration in thousandths of g, along the cube's own axes: at rest the axis that points up has 1000 (VEC-CUBEIO-01).
type Sample [3]int16

// Report is a reading of the battery and three samples, oldest first (VEC-CUBEIO-02).
type Report struct {
	BatteryRaw uint16
	Samples    [samples]Sample
}

// Volts returns the battery's voltage.
func (r *Report) Volts() float64 { return float64(r.BatteryRaw) / 1000 }

// ErrLength: a value of a characteristic has a size that it cannot have.
var ErrLength = errors.New("cube: wrong size")

// Append appends the 20 bytes of r.
func (r *Report) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, r.BatteryRaw)
	for _, s := range r.Samples {
		for _, v := range s {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		}
	}
	return b
}

// ParseReport reads a value of Motion.
func ParseReport(b []byte) (r Report, err error) {
	if len(b) != ReportSize {
		return r, fmt.Errorf("%w: report of %d bytes, want %d", ErrLength, len(b), ReportSize)
	}
	r.BatteryRaw = binary.LittleEndian.Uint16(b)
	for i := range r.Samples {
		for k := range r.Samples[i] {
			r.Samples[i][k] = int16(binary.LittleEndian.Uint16(b[2+i*sampleSize+2*k:]))
		}
	}
	return r, nil
}

// RGB is the colour of a light.
type RGB struct{ R, G, B uint8 }

// Step is a colour that a light shows for so many ticks (VEC-CUBEIO-03).
type Step struct {
	Index uint8
	RGB
	Alpha    uint8 // usually 0
	Duration uint8 // ticks
}

// Command is a value of Lights: either three steps that a cube keeps, or the index at which each light starts.
type Command struct {
	Steps *[setSteps]Step
	Start *[LightCount]uint8
}

// Append appends the bytes of c, 19 for steps (VEC-CUBEIO-04) and 5 for a start (VEC-CUBEIO-05).
func (c Command) Append(b []byte) []byte {
	if c.Steps != nil {
		b = append(b, triggerSet)
		for _, s := range c.Steps {
			b = append(b, s.Index, s.R, s.G, s.B, s.Alpha, s.Duration)
		}
		return b
	}
	b = append(b, triggerStart)
	return append(b, c.Start[:]...)
}

// ParseCommand reads a value of Lights.
func ParseCommand(b []byte) (c Command, err error) {
	switch {
	case len(b) == 0:
		return c, fmt.Errorf("%w: no bytes, want %d or %d", ErrLength, startSize, setSize)
	case b[0] == triggerStart && len(b) == startSize:
		c.Start = (*[LightCount]uint8)(append([]byte(nil), b[1:]...))
		return c, nil
	case b[0] == triggerSet && len(b) == setSize:
		c.Steps = new([setSteps]Step)
		for i := range c.Steps {
			x := b[1+i*stepSize:]
			c.Steps[i] = Step{Index: x[0], RGB: RGB{x[1], x[2], x[3]}, Alpha: x[4], Duration: x[5]}
		}
		return c, nil
	case b[0] > triggerSet:
		return c, fmt.Errorf("cube: trigger %d at byte 0, want %d or %d", b[0], triggerStart, triggerSet)
	}
	return c, fmt.Errorf("%w: %d bytes for trigger %d, want %d", ErrLength, len(b), b[0], map[byte]int{triggerStart: startSize, triggerSet: setSize}[b[0]])
}
