package sip

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Commands before a session is open (AMIGO-SYNC-02). Their numbers are those of Pulse, Open and Close.
const (
	Sync0 uint8 = 0
	Sync1 uint8 = 1
	Sync2 uint8 = 2
)

// Commands of an open session, with their manual names (AMIGO-CMD-00 to 43, 45 to 92, part of AMIGO-CMD-44).
const (
	Pulse       uint8 = 0  // none: reset the watchdog
	Open        uint8 = 1  // none: start the controller
	Close       uint8 = 2  // none: end the session
	Polling     uint8 = 3  // string: sonar firing order, sonars counted from 1
	Enable      uint8 = 4  // int: motors on or off
	SetA        uint8 = 5  // int: positive acceleration, negative deceleration, mm/s²
	SetV        uint8 = 6  // int: maximum speed, mm/s
	SetO        uint8 = 7  // none: make this pose the origin
	Move        uint8 = 8  // int: travel, mm (not in the manual, sent by ARIA)
	Rotate      uint8 = 9  // int: the same as RVel (not in the manual, sent by ARIA)
	SetRV       uint8 = 10 // int: maximum rotation speed, deg/s
	Vel         uint8 = 11 // int: speed, mm/s
	Head        uint8 = 12 // int: absolute heading, deg
	DHead       uint8 = 13 // int: heading relative to the measured one, deg
	Say         uint8 = 15 // string: pairs of duration and tone
	GetConfig   uint8 = 18 // int: ask for one Config (CONFIG in the manual)
	Encoder     uint8 = 19 // int: Encoders stream on or off
	RVel        uint8 = 21 // int: rotation speed, deg/s
	DCHead      uint8 = 22 // int: heading relative to the set-point, deg
	SetRA       uint8 = 23 // int: positive acceleration, negative deceleration, deg/s²
	Sonar       uint8 = 28 // int: sonar on or off
	Stop        uint8 = 29 // none: stop, motors stay on
	DigOut      uint8 = 30 // packed: mask, state
	Vel2        uint8 = 32 // packed: left and right wheel, 20 mm/s
	Gripper     uint8 = 33
	ADSel       uint8 = 35 // int: analog port of Standard, 1 to 5
	GripperVal  uint8 = 36
	IORequest   uint8 = 40 // int: 1 one IO, 2 one each cycle, 0 none
	PTUPos      uint8 = 41 // packed: port, pulse width
	TTY2        uint8 = 42 // string: send out of AUX1
	GetAux      uint8 = 43 // int: bytes to fetch from AUX1, 0 empties its buffer
	BumpStall   uint8 = 44
	TCM2        uint8 = 45
	HostBaud    uint8 = 50 // int: baud code (not in the manual, sent by ARIA)
	EStop       uint8 = 55 // none: stop as fast as the robot can
	BatteryInfo uint8 = 62 // int (not in the manual, sent by ARIA)
	Step        uint8 = 64 // none: single-step a simulator
	TTY3        uint8 = 66 // string: send out of AUX2
	GetAux2     uint8 = 67 // int: as GetAux
	RotKP       uint8 = 82
	RotKV       uint8 = 83
	RotKI       uint8 = 84
	TransKP     uint8 = 85
	TransKV     uint8 = 86
	TransKI     uint8 = 87
	RevCount    uint8 = 88 // int: encoder ticks of a full turn
	Sound       uint8 = 90 // int: play a sound, 1 to 255
	GetPlaylist uint8 = 91 // int: ask for the Playlist of one sound, 0 for all (PLAYLIST in the manual)
	SoundTog    uint8 = 92 // int: sounds on or off
)

// ArgKind is the kind of a command's argument.
type ArgKind uint8

// The kinds of arguments. On the wire each but None is a type byte (AMIGO-ARG-01).
const (
	None ArgKind = iota
	Positive
	Negative
	String
)

var typeBytes = [...]byte{Positive: 0x3B, Negative: 0x1B, String: 0x2B}

// MaxText is how many characters a string argument can have (AMIGO-PKT-05).
const MaxText = MaxPayload - 3

// Command is a packet to the robot.
type Command struct {
	Number uint8
	Arg    ArgKind
	Int    uint16 // magnitude, if Arg is Positive or Negative
	Text   []byte // if Arg is String; a parsed one aliases the packet
}

// ErrArgument says that the argument of a command has an unknown type or is incomplete (AMIGO-ARG-06).
var ErrArgument = errors.New("sip: bad command argument")

// Int returns a command with the argument v, limited to ±65535.
func Int(number uint8, v int) Command {
	if v < 0 {
		return Command{Number: number, Arg: Negative, Int: uint16(min(-v, 0xFFFF))}
	}
	return Command{Number: number, Arg: Positive, Int: uint16(min(v, 0xFFFF))}
}

// Switch returns a command with the argument 1 if on, else 0.
func Switch(number uint8, on bool) Command {
	if on {
		return Int(number, 1)
	}
	return Int(number, 0)
}

// Packed returns a command whose argument is two bytes rather than a number: Vel2 (left, right), DigOut (mask, state) or PTUPos
// (port, width). As a whole it is sent as sign and magnitude (AMIGO-ARG-05).
func Packed(number uint8, high, low byte) Command {
	return Int(number, int(int16(uint16(high)<<8|uint16(low))))
}

// Value returns the integer argument with its sign.
func (c Command) Value() int {
	if c.Arg == Negative {
		return -int(c.Int)
	}
	return int(c.Int)
}

// Unpack returns the two bytes of a Packed argument.
func (c Command) Unpack() (high, low byte) {
	v := uint16(c.Value())
	return byte(v >> 8), byte(v)
}

// Append appends c to dst as one packet. It returns ErrLength if Text has more than MaxText bytes; dst is then unchanged.
func (c Command) Append(dst []byte) ([]byte, error) {
	b := append(open(dst), c.Number)
	switch c.Arg {
	case Positive, Negative:
		b = binary.LittleEndian.AppendUint16(append(b, typeBytes[c.Arg]), c.Int)
	case String:
		if len(c.Text) > MaxText {
			return dst, ErrLength
		}
		b = append(append(b, typeBytes[String], byte(len(c.Text))), c.Text...)
	}
	return seal(b, len(dst))
}

// ParseCommand returns the command in the payload of a packet. Bytes behind an integer argument are ignored (AMIGO-CMD-07).
func ParseCommand(payload []byte) (Command, error) {
	if len(payload) == 0 {
		return Command{}, ErrPayload
	}
	c := Command{Number: payload[0]}
	if len(payload) == 1 {
		return c, nil
	}
	arg := payload[2:]
	switch payload[1] {
	case typeBytes[Positive]:
		c.Arg = Positive
	case typeBytes[Negative]:
		c.Arg = Negative
	case typeBytes[String]:
		if len(arg) == 0 {
			return c, ErrArgument
		}
		c.Arg, c.Text = String, text(arg)
		return c, nil
	default:
		return c, ErrArgument
	}
	if len(arg) < 2 {
		return c, ErrArgument
	}
	c.Int = binary.LittleEndian.Uint16(arg)
	return c, nil
}

// text returns the characters of a string argument: those that its first byte counts, one NUL behind them tolerated, else those
// before the first NUL (AMIGO-PKT-05).
func text(arg []byte) []byte {
	n, rest := int(arg[0]), arg[1:]
	if n == len(rest) || n == len(rest)-1 && rest[n] == 0 {
		return rest[:n:n]
	}
	if end := bytes.IndexByte(arg, 0); end >= 0 {
		return arg[:end:end]
	}
	return arg[:min(len(arg), MaxText)]
}
