package sip

import "encoding/binary"

// Types of server packets (AMIGO-PKT-13).
const (
	TypeIdentity = Sync2
	TypeConfig   = 0x20
	TypeStopped  = 0x32 // Standard
	TypeMoving   = 0x33 // Standard
	TypeEncoders = 0x90
	TypeAux1     = 0xB0 // Serial
	TypeAux2     = 0xB8 // Serial
	TypePlaylist = 0xD0
	TypeIO       = 0xF0
)

// Sonars is the number of sonars of an AmigoBot (AMIGO-SIP-14).
const Sonars = 8

// Bits of Standard.Flags (AMIGO-SIP-11).
const (
	FlagMotors = 1 << iota
	FlagSonar
)

// Bits of Standard.Bumpers (AMIGO-SIP-09).
const (
	StallLeft  = 1 << 0
	StallRight = 1 << 8
)

// Sizes of a standard packet without readings: up to their number, and behind them.
const (
	standardHead = 20
	standardTail = 5
	readingSize  = 3
)

// MaxReadings is how many sonar readings fit into one standard packet.
const MaxReadings = (MaxPayload - standardHead - standardTail) / readingSize

// Reading is one new sonar range.
type Reading struct {
	Sonar uint8
	Range uint16 // RangeUnit
}

// Standard is the packet that the robot sends every 100 or 50 ms (AMIGO-SIP-01 to 21).
type Standard struct {
	Moving      bool
	X, Y        uint16 // 15 bits, DistanceUnit
	Th          int16  // AngleUnit
	Left, Right int16  // SpeedUnit
	Battery     uint8  // VoltageUnit
	Bumpers     uint16 // StallLeft, StallRight
	Control     int16  // heading set-point, AngleUnit
	Flags       uint16 // FlagMotors, FlagSonar
	Compass     uint8  // 0
	Sonar       []Reading
	Timer       uint16 // the analog port of Analog
	Analog      uint8  // AnalogByteUnit
	Digin       uint8
	Digout      uint8
	Extra       []byte // bytes that newer firmware appends; aliases the packet
}

// Append appends s to dst as one packet. It returns ErrLength if that has too many readings; dst is then unchanged.
func (s *Standard) Append(dst []byte) ([]byte, error) {
	status := byte(TypeStopped)
	if s.Moving {
		status = TypeMoving
	}
	le := binary.LittleEndian
	b := append(open(dst), status)
	b = le.AppendUint16(b, s.X&distanceMask)
	b = le.AppendUint16(b, s.Y&distanceMask)
	b = le.AppendUint16(b, uint16(s.Th))
	b = le.AppendUint16(b, uint16(s.Left))
	b = le.AppendUint16(b, uint16(s.Right))
	b = append(b, s.Battery)
	b = le.AppendUint16(b, s.Bumpers)
	b = le.AppendUint16(b, uint16(s.Control))
	b = le.AppendUint16(b, s.Flags)
	b = append(b, s.Compass, byte(len(s.Sonar)))
	for _, r := range s.Sonar {
		b = append(b, r.Sonar, byte(r.Range), byte(r.Range>>8))
	}
	b = le.AppendUint16(b, s.Timer)
	b = append(b, s.Analog, s.Digin, s.Digout)
	return seal(append(b, s.Extra...), len(dst))
}

// Parse sets s from the payload of a packet of TypeStopped or TypeMoving. It reuses s.Sonar. On ErrPayload s is unchanged.
func (s *Standard) Parse(p []byte) error {
	if len(p) < standardHead+standardTail {
		return ErrPayload
	}
	tail := standardHead + readingSize*int(p[standardHead-1])
	if len(p) < tail+standardTail {
		return ErrPayload
	}
	le := binary.LittleEndian
	readings := s.Sonar[:0]
	for r := p[standardHead:tail]; len(r) > 0; r = r[readingSize:] {
		readings = append(readings, Reading{r[0], le.Uint16(r[1:])})
	}
	*s = Standard{
		Moving: p[0] == TypeMoving,
		X:      le.Uint16(p[1:]) & distanceMask, Y: le.Uint16(p[3:]) & distanceMask, Th: int16(le.Uint16(p[5:])),
		Left: int16(le.Uint16(p[7:])), Right: int16(le.Uint16(p[9:])),
		Battery: p[11], Bumpers: le.Uint16(p[12:]), Control: int16(le.Uint16(p[14:])), Flags: le.Uint16(p[16:]), Compass: p[18],
		Sonar: readings,
		Timer: le.Uint16(p[tail:]), Analog: p[tail+2], Digin: p[tail+3], Digout: p[tail+4],
		Extra: p[tail+standardTail:],
	}
	return nil
}
