package jointlink

import (
	"encoding/binary"
	"errors"
	"time"
)

// Sizes of the protocol.
const (
	MaxJoints  = 24
	MaxPayload = stateHead + MaxJoints*stateJoint
	Overhead   = 6 // header, type, length, CRC
	MaxFrame   = Overhead + MaxPayload

	header0, header1 = 0xA5, 0x5A
)

// Times of the protocol.
const (
	Period   = 8 * time.Millisecond   // between two States
	Watchdog = 250 * time.Millisecond // without Goals the joints lose their power
)

// Version is the version of the protocol that Identity names.
const Version = 1

// Type is the type of a frame.
type Type uint8

// The types.
const (
	AskType      Type = 0x01
	GoalsType    Type = 0x02
	IdentityType Type = 0x81
	StateType    Type = 0x82
)

// Errors of ParseFrame, bare, because a noisy line makes many of them. ErrShort asks for more bytes.
var (
	ErrShort    = errors.New("jointlink: frame not complete")
	ErrHeader   = errors.New("jointlink: no frame header")
	ErrLength   = errors.New("jointlink: frame too long")
	ErrChecksum = errors.New("jointlink: bad checksum")
)

// checksum is CRC-16/CCITT-FALSE.
func checksum(p []byte) uint16 {
	crc := uint16(0xFFFF)
	for _, b := range p {
		crc = crc<<8 ^ table[byte(crc>>8)^b]
	}
	return crc
}

var table = func() (t [256]uint16) {
	for i := range t {
		crc := uint16(i) << 8
		for range 8 {
			top := crc & 0x8000
			crc <<= 1
			if top != 0 {
				crc ^= 0x1021
			}
		}
		t[i] = crc
	}
	return t
}()

// ParseFrame returns the type and payload of the frame at the start of b, and the bytes it took. payload aliases b. ErrShort asks for more bytes; after any
// other error drop n bytes and try again.
func ParseFrame(b []byte) (t Type, payload []byte, n int, err error) {
	switch {
	case len(b) > 0 && b[0] != header0, len(b) > 1 && b[1] != header1:
		return 0, nil, 1, ErrHeader
	case len(b) < 4:
		return 0, nil, 0, ErrShort
	}
	size := int(b[3])
	switch {
	case size > MaxPayload:
		return 0, nil, 1, ErrLength
	case len(b) < Overhead+size:
		return 0, nil, 0, ErrShort
	}
	if checksum(b[2:4+size]) != binary.LittleEndian.Uint16(b[4+size:]) {
		return 0, nil, 1, ErrChecksum
	}
	return Type(b[2]), b[4 : 4+size : 4+size], Overhead + size, nil
}

// AppendFrame appends one frame to dst; ErrLength for a payload of more than MaxPayload bytes, dst is then unchanged.
func AppendFrame(dst []byte, t Type, payload []byte) ([]byte, error) {
	if len(payload) > MaxPayload {
		return dst, ErrLength
	}
	return seal(append(open(dst, t), payload...), len(dst)), nil
}

// open appends the begin of a frame whose payload follows; seal, told where it began, fills in the length and the checksum.
func open(dst []byte, t Type) []byte { return append(dst, header0, header1, byte(t), 0) }

func seal(dst []byte, start int) []byte {
	dst[start+3] = byte(len(dst) - start - 4)
	return binary.LittleEndian.AppendUint16(dst, checksum(dst[start+2:]))
}
