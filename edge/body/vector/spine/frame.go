package spine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Sizes in bytes.
const (
	SyncSize   = 4
	HeaderSize = SyncSize + 2 + 2        // sync, type, size
	Overhead   = HeaderSize + 4          // and the checksum (VEC-BODY-03)
	MaxPayload = 1280                    // the source's limit for any frame (VEC-BODY-03)
	MaxFrame   = Overhead + FirmwareSize // the longest frame of a known type
)

// CheckValue is the Checksum of "123456789" (VEC-BODY-06).
const CheckValue uint32 = 0x340BC6D9

const (
	toBodySync = "\xaa\x48\x32\x42" // VEC-BODY-04
	toHeadSync = "\xaa\x42\x32\x48"
	syncByte   = 0xaa // starts either sync and occurs nowhere else in it
)

// Direction says which end sends.
type Direction uint8

// The two directions of the link.
const (
	ToBody Direction = iota // head to body board
	ToHead                  // body board to head
)

// String returns "head to body" or "body to head".
func (d Direction) String() string {
	if d == ToHead {
		return "body to head"
	}
	return "head to body"
}

// Sync returns the four bytes that start a frame in direction d (VEC-BODY-04).
func (d Direction) Sync() string {
	if d == ToHead {
		return toHeadSync
	}
	return toBodySync
}

// Type is the kind of a frame. Its two letters read in the order they are sent (VEC-BODY-12).
type Type uint16

// The types of both directions (VEC-BODY-H01 to H09, B01 to B06).
const (
	TypeChars      Type = 0x6364 // both: characters of the charger pad, test firmware only
	TypeData       Type = 0x6466 // both: the data frame
	TypeShutdown   Type = 0x6473 // to body: disconnect the battery
	TypeFirmware   Type = 0x6675 // to body: a block of firmware
	TypeMode       Type = 0x6d64 // to body: run the application and send data frames
	TypeVersion    Type = 0x7276 // to body: ask for the version; to head: the answer
	TypeLights     Type = 0x736c // to body: lights before data frames flow
	TypeValidate   Type = 0x7374 // to body: check the signature of the flash and start it
	TypeErase      Type = 0x7878 // to body: erase the application
	TypeBootloader Type = 0x6662 // to head: the boot-loader is alive
	TypeAck        Type = 0x6b61 // to head: ACK or NAK
	TypeUnused     Type = 0x7376 // to head: not used in production
)

// String returns the two bytes as they are sent, with the number: "fd (0x6466)".
func (t Type) String() string {
	letter := func(b byte) byte {
		if b < 0x21 || b > 0x7e {
			return '?'
		}
		return b
	}
	return fmt.Sprintf("%c%c (0x%04X)", letter(byte(t)), letter(byte(t>>8)), uint16(t))
}

// PayloadSize returns the number of payload bytes that t has in direction d; ok is false for a type unknown there (VEC-BODY-05).
func PayloadSize(d Direction, t Type) (n int, ok bool) {
	if d == ToHead {
		switch t {
		case TypeData:
			return BodyDataSize, true
		case TypeAck:
			return AckSize, true
		case TypeBootloader:
			return BootloaderSize, true
		case TypeVersion:
			return VersionSize, true
		case TypeChars:
			return CharsSize, true
		case TypeUnused:
			return UnusedSize, true
		}
		return 0, false
	}
	switch t {
	case TypeData:
		return HeadDataSize, true
	case TypeLights:
		return LightsSize, true
	case TypeFirmware:
		return FirmwareSize, true
	case TypeChars:
		return CharsSize, true
	case TypeShutdown, TypeMode, TypeVersion, TypeValidate, TypeErase:
		return 0, true
	}
	return 0, false
}

// Errors of ParseFrame. ErrShort asks for more bytes; after any other drop at least one byte and try again.
var (
	ErrShort    = errors.New("spine: frame not complete")
	ErrSync     = errors.New("spine: no sync bytes")
	ErrType     = errors.New("spine: unknown frame type")
	ErrSize     = errors.New("spine: size does not belong to the frame type")
	ErrChecksum = errors.New("spine: bad checksum")
)

// Frame is one frame taken from a stream. Payload has the size that belongs to Type and aliases the stream's buffer.
type Frame struct {
	Type    Type
	Payload []byte
}

// Checksum is CRC-32 with the reflected polynomial EDB88320, start value FFFFFFFF and no final inversion (VEC-BODY-06).
func Checksum(p []byte) uint32 { return ^crc32.ChecksumIEEE(p) }

// ParseFrame returns the frame at the start of b and the number of bytes it took. The errors are the sentinels above, bare, because
// a noisy line makes many of them.
func ParseFrame(d Direction, b []byte) (f Frame, n int, err error) {
	sync := d.Sync()
	for i := range min(len(b), SyncSize) {
		if b[i] != sync[i] {
			return Frame{}, 0, ErrSync
		}
	}
	if len(b) < SyncSize+2 {
		return Frame{}, 0, ErrShort
	}
	f.Type = Type(binary.LittleEndian.Uint16(b[SyncSize:]))
	size, ok := PayloadSize(d, f.Type)
	if !ok {
		return Frame{}, 0, ErrType
	}
	if len(b) < HeaderSize {
		return Frame{}, 0, ErrShort
	}
	if int(binary.LittleEndian.Uint16(b[SyncSize+2:])) != size {
		return Frame{}, 0, ErrSize
	}
	if len(b) < Overhead+size {
		return Frame{}, 0, ErrShort
	}
	f.Payload = b[HeaderSize : HeaderSize+size : HeaderSize+size]
	if Checksum(f.Payload) != binary.LittleEndian.Uint32(b[HeaderSize+size:]) {
		return Frame{}, 0, ErrChecksum
	}
	return f, Overhead + size, nil
}

// AppendFrame appends payload to dst as one frame. It refuses a type unknown in direction d and a payload of another size than the
// type has; dst is then unchanged.
func AppendFrame(dst []byte, d Direction, t Type, payload []byte) ([]byte, error) {
	size, ok := PayloadSize(d, t)
	switch {
	case !ok:
		return dst, fmt.Errorf("%w %v %v", ErrType, t, d)
	case size != len(payload):
		return dst, fmt.Errorf("%w: %v %v has %d bytes, got %d", ErrSize, t, d, size, len(payload))
	}
	return seal(append(open(dst, d, t), payload...), len(dst)), nil
}

// AppendCommand appends a frame without payload, head to body: TypeShutdown, TypeMode, TypeVersion, TypeValidate or TypeErase. Any
// other type is a mistake in the program and panics.
func AppendCommand(dst []byte, t Type) []byte {
	if size, ok := PayloadSize(ToBody, t); !ok || size != 0 {
		panic("spine: " + t.String() + " is not a command without payload")
	}
	return seal(open(dst, ToBody, t), len(dst))
}

// open appends the header of a frame whose payload follows; seal, given where the frame began, fills in size and checksum.
func open(dst []byte, d Direction, t Type) []byte {
	dst = append(dst, d.Sync()...)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(t))
	return append(dst, 0, 0)
}

func seal(dst []byte, start int) []byte {
	payload := dst[start+HeaderSize:]
	binary.LittleEndian.PutUint16(dst[start+SyncSize+2:], uint16(len(payload)))
	return binary.LittleEndian.AppendUint32(dst, Checksum(payload))
}
