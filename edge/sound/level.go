package sound

import (
	"fmt"
	"math"
)

// Level is a volume of the robot as its settings number it, 0 to 5 (VEC-SND-12).
type Level uint8

// The levels.
const (
	Mute Level = iota
	Low
	MediumLow
	Medium
	MediumHigh
	High
)

// levelDB has what each level but Mute takes away: 6 dB a step are clearly different, and the lowest is still heard in a quiet room. The source gives no numbers.
var levelDB = [...]float64{Low: -24, MediumLow: -18, Medium: -12, MediumHigh: -6, High: 0}

// String returns the name that the settings have for the level, such as "MEDIUM_LOW".
func (l Level) String() string {
	names := [...]string{"MUTE", "LOW", "MEDIUM_LOW", "MEDIUM", "MEDIUM_HIGH", "HIGH"}
	if int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// Gain returns the factor of a level, 0 for Mute. ErrRange beyond High.
func (l Level) Gain() (float64, error) {
	switch {
	case l > High:
		return 0, fmt.Errorf("%w: expected a level of 0 to %d, found %d", ErrRange, High, l)
	case l == Mute:
		return 0, nil
	}
	return Decibels(levelDB[l]), nil
}

// ClientLevel returns the level that a client sets as master volume, whose scale of 0 to 4 has no mute (part of VEC-AUD-07).
func ClientLevel(n int) (Level, error) {
	if n < 0 || n > 4 {
		return 0, fmt.Errorf("%w: expected a master volume of 0 to 4, found %d", ErrRange, n)
	}
	return Level(n + 1), nil
}

// PercentGain returns the factor of a stream's volume, 0 to 100: 0 is silent, and each tenth is 4 dB (VEC-SND-12).
func PercentGain(percent int) (float64, error) {
	if percent < 0 || percent > 100 {
		return 0, fmt.Errorf("%w: expected a volume of 0 to 100, found %d", ErrRange, percent)
	}
	if percent == 0 {
		return 0, nil
	}
	return Decibels(0.4 * float64(percent-100)), nil
}

// Decibels returns the factor of so many decibels, 1 for 0 dB, the nominal volume (GOSTAI-IF-18.4).
func Decibels(db float64) float64 { return math.Pow(10, db/20) }
