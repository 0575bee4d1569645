package spine

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Payload sizes of the short messages.
const (
	AckSize        = 4    // VEC-BODY-B04
	BootloaderSize = 4    // VEC-BODY-B03
	VersionSize    = 40   // VEC-BODY-B05
	LightsSize     = 16   // VEC-BODY-H07
	CharsSize      = 32   // VEC-BODY-H01, B01
	UnusedSize     = 16   // VEC-BODY-B06
	FirmwareSize   = 1028 // VEC-BODY-H04
	BlockSize      = 1024 // data bytes of one firmware block
)

func sized(what string, p []byte, want int) error {
	if len(p) != want {
		return fmt.Errorf("%w: %s has %d bytes, got %d", ErrSize, what, want, len(p))
	}
	return nil
}

// Ack answers a command: OK or a refusal (VEC-BODY-09). The value beyond its sign has no known meaning.
type Ack int32

// The values that our own board sends.
const (
	ACK Ack = 1
	NAK Ack = 0
)

// OK reports whether a is an ACK; zero and negative values are NAKs.
func (a Ack) OK() bool { return a > 0 }

// ParsePayload fills a from the payload of a TypeAck frame.
func (a *Ack) ParsePayload(p []byte) error {
	if err := sized("ack", p, AckSize); err != nil {
		return err
	}
	*a = Ack(binary.LittleEndian.Uint32(p))
	return nil
}

// AppendFrame appends a as a frame, body to head.
func (a Ack) AppendFrame(dst []byte) []byte {
	return seal(binary.LittleEndian.AppendUint32(open(dst, ToHead, TypeAck), uint32(a)), len(dst))
}

// Bootloader is the message that the boot-loader sends while it waits; its content is unknown (VEC-BODY-B03).
type Bootloader [BootloaderSize]byte

// ParsePayload fills m from the payload of a TypeBootloader frame.
func (m *Bootloader) ParsePayload(p []byte) error {
	if err := sized("boot-loader frame", p, BootloaderSize); err != nil {
		return err
	}
	*m = Bootloader(p)
	return nil
}

// AppendFrame appends m as a frame, body to head.
func (m *Bootloader) AppendFrame(dst []byte) []byte {
	return seal(append(open(dst, ToHead, TypeBootloader), m[:]...), len(dst))
}

// Version answers TypeVersion. The first bytes are unexplained (VEC-BODY-B05).
type Version struct {
	Gap0 [24]byte
	ID   [16]byte // often printable; also the first bytes of the firmware file
}

// ParsePayload fills m from the payload of a TypeVersion frame, body to head.
func (m *Version) ParsePayload(p []byte) error {
	if err := sized("version", p, VersionSize); err != nil {
		return err
	}
	m.Gap0, m.ID = [24]byte(p), [16]byte(p[24:])
	return nil
}

// AppendFrame appends m as a frame, body to head.
func (m *Version) AppendFrame(dst []byte) []byte {
	return seal(append(append(open(dst, ToHead, TypeVersion), m.Gap0[:]...), m.ID[:]...), len(dst))
}

// String returns the version as text if it is printable, else in hex.
func (m *Version) String() string {
	text := bytes.TrimRight(m.ID[:], "\x00 ")
	for _, c := range text {
		if c < 0x20 || c > 0x7e {
			return hex.EncodeToString(m.ID[:])
		}
	}
	return string(text)
}

// Lights sets the lights before data frames flow. Its layout is our reading: colours as in the data frame, then 4 bytes
// (VEC-BODY-H07).
type Lights struct {
	Lights [numLights]RGB
	Gap12  [4]byte
}

// ParsePayload fills m from the payload of a TypeLights frame.
func (m *Lights) ParsePayload(p []byte) error {
	if err := sized("lights", p, LightsSize); err != nil {
		return err
	}
	parseLights(&m.Lights, p)
	m.Gap12 = [4]byte(p[12:])
	return nil
}

// AppendFrame appends m as a frame, head to body.
func (m *Lights) AppendFrame(dst []byte) []byte {
	return seal(append(appendLights(open(dst, ToBody, TypeLights), &m.Lights), m.Gap12[:]...), len(dst))
}

// Chars carries characters from and to the charger pad, padded with NUL; test firmware only (VEC-BODY-H01, B01).
type Chars [CharsSize]byte

// ParsePayload fills m from the payload of a TypeChars frame.
func (m *Chars) ParsePayload(p []byte) error {
	if err := sized("characters", p, CharsSize); err != nil {
		return err
	}
	*m = Chars(p)
	return nil
}

// AppendFrame appends m as a frame of direction d.
func (m *Chars) AppendFrame(dst []byte, d Direction) []byte {
	return seal(append(open(dst, d, TypeChars), m[:]...), len(dst))
}

// Unused is a frame that production boards do not send (VEC-BODY-B06).
type Unused [UnusedSize]byte

// ParsePayload fills m from the payload of a TypeUnused frame.
func (m *Unused) ParsePayload(p []byte) error {
	if err := sized("unused frame", p, UnusedSize); err != nil {
		return err
	}
	*m = Unused(p)
	return nil
}

// AppendFrame appends m as a frame, body to head.
func (m *Unused) AppendFrame(dst []byte) []byte {
	return seal(append(open(dst, ToHead, TypeUnused), m[:]...), len(dst))
}

// Firmware is one block of the body's program (VEC-BODY-H04).
type Firmware struct {
	Offset uint16          // in program memory; bytes from the start of the application by our reading (VEC-DFU-03)
	Words  uint16          // 32-bit words of Data that count, at most 256
	Data   [BlockSize]byte // padded
}

// ParsePayload fills m from the payload of a TypeFirmware frame. It refuses a word count beyond the block.
func (m *Firmware) ParsePayload(p []byte) error {
	if err := sized("firmware block", p, FirmwareSize); err != nil {
		return err
	}
	words := binary.LittleEndian.Uint16(p[2:])
	if words > BlockSize/4 {
		return fmt.Errorf("%w: firmware block of %d words, want at most %d", ErrSize, words, BlockSize/4)
	}
	m.Offset, m.Words, m.Data = binary.LittleEndian.Uint16(p), words, [BlockSize]byte(p[4:])
	return nil
}

// AppendFrame appends m as a frame, head to body.
func (m *Firmware) AppendFrame(dst []byte) []byte {
	start := len(dst)
	dst = open(dst, ToBody, TypeFirmware)
	dst = binary.LittleEndian.AppendUint16(dst, m.Offset)
	dst = binary.LittleEndian.AppendUint16(dst, m.Words)
	return seal(append(dst, m.Data[:]...), start)
}
