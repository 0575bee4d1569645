package imu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Gravity is the standard one, in m/s2: the unit of the accelerometer's ranges.
const Gravity = 9.80665

// ChipID is a BMI160's answer at RegChipID.
const ChipID = 0xd1

// Registers.
const (
	RegChipID   = 0x00
	RegError    = 0x02
	RegPower    = 0x03
	RegData     = 0x0c // a Block
	RegTime     = 0x18
	RegAccConf  = 0x40
	RegAccRange = 0x41
	RegGyrConf  = 0x42
	RegGyrRange = 0x43
	RegCommand  = 0x7e
	RegSPI      = 0x7f // a read of it tells the chip that this is SPI
)

// ReadBit of a transfer's first byte asks to read.
const ReadBit = 0x80

// Commands.
const (
	CommandAccNormal = 0x11
	CommandGyrNormal = 0x15
	CommandReset     = 0xb6
)

// Bits of RegPower while both parts run, and which bits say so.
const (
	PowerAccNormal = 0x10
	PowerGyrNormal = 0x04
	powerMask      = 0x3c
)

// filterNormal in bits 4 to 6 of a configuration is the filter without oversampling.
const filterNormal = 0x20

// The chip's clock: the time of two counts, and its number of bits.
const (
	twoTicks = 78125 * time.Nanosecond
	timeBits = 24
)

// ErrSize: the bytes of a block are not BlockSize.
var ErrSize = errors.New("imu: wrong block size")

// BlockSize is the bytes of a Block.
const BlockSize = 15

// Block is a sample as the chip gives it, from RegData on.
type Block struct {
	GyroRaw, AccelRaw [3]int16 // counts
	TimeRaw           uint32   // counts of the chip's clock when it was read
}

// Append appends the block's bytes to dst. TimeRaw counts in 24 bits.
func (b *Block) Append(dst []byte) []byte {
	le := binary.LittleEndian
	for _, part := range [...]*[3]int16{&b.GyroRaw, &b.AccelRaw} {
		for _, v := range part {
			dst = le.AppendUint16(dst, uint16(v))
		}
	}
	return append(dst, byte(b.TimeRaw), byte(b.TimeRaw>>8), byte(b.TimeRaw>>16))
}

// Parse reads the bytes that Append wrote. ErrSize if it is not BlockSize bytes.
func (b *Block) Parse(p []byte) error {
	if len(p) != BlockSize {
		return fmt.Errorf("%w: %d bytes, want %d", ErrSize, len(p), BlockSize)
	}
	le := binary.LittleEndian
	for i := range 3 {
		b.GyroRaw[i], b.AccelRaw[i] = int16(le.Uint16(p[2*i:])), int16(le.Uint16(p[6+2*i:]))
	}
	b.TimeRaw = uint32(p[12]) | uint32(p[13])<<8 | uint32(p[14])<<16
	return nil
}

// AccelRange is the value of RegAccRange.
type AccelRange uint8

// The ranges of the accelerometer, in g.
const (
	Accel2G  AccelRange = 0x03
	Accel4G  AccelRange = 0x05
	Accel8G  AccelRange = 0x08
	Accel16G AccelRange = 0x0c
)

// PerCount returns m/s2 a count; 0 for a range that there is not.
func (r AccelRange) PerCount() float64 {
	switch r {
	case Accel2G:
		return Gravity / 16384
	case Accel4G:
		return Gravity / 8192
	case Accel8G:
		return Gravity / 4096
	case Accel16G:
		return Gravity / 2048
	}
	return 0
}

// GyroRange is the value of RegGyrRange.
type GyroRange uint8

// The ranges of the gyro, in degrees per second. Gyro2000 is the zero value and the chip's own default.
const (
	Gyro2000 GyroRange = iota
	Gyro1000
	Gyro500
	Gyro250
	Gyro125
)

// PerCount returns rad/s a count; 0 for a range that there is not.
func (r GyroRange) PerCount() float64 {
	if r > Gyro125 {
		return 0
	}
	return 2000 * math.Pi / 180 / 32768 / float64(uint(1)<<r)
}

// Rate is how often both parts measure, as their configurations count it: each one doubles.
type Rate uint8

// The rates that both parts have.
const (
	Hz25 Rate = 6 + iota
	Hz50
	Hz100
	Hz200
	Hz400
	Hz800
	Hz1600
)

// RateOf returns the rate of hertz samples a second.
func RateOf(hertz int) (Rate, error) {
	for r := Hz25; r <= Hz1600; r++ {
		if hertz == 25<<(r-Hz25) {
			return r, nil
		}
	}
	return 0, fmt.Errorf("imu: %d samples a second, want 25, 50, 100, 200, 400, 800 or 1600", hertz)
}

func (r Rate) valid() bool { return r >= Hz25 && r <= Hz1600 }

// Ticks returns the counts of the chip's clock from a sample to the next; 0 for a rate that there is not.
func (r Rate) Ticks() uint32 {
	if !r.valid() {
		return 0
	}
	return 1024 >> (r - Hz25)
}

// Period returns the time from a sample to the next.
func (r Rate) Period() time.Duration { return Ticks(r.Ticks()) }

// Ticks returns how long n counts of the chip's clock are.
func Ticks(n uint32) time.Duration { return time.Duration(n) * twoTicks / 2 }

// TimeRaw returns the chip's clock d after it was 0.
func TimeRaw(d time.Duration) uint32 {
	return uint32(2*d/twoTicks) & (1<<timeBits - 1)
}
