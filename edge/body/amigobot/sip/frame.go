package sip

import (
	"encoding/binary"
	"errors"
)

// Sizes in bytes (AMIGO-PKT-02, AMIGO-PKT-03).
const (
	Overhead   = 5 // header, count, checksum
	MaxPayload = 198
	MaxFrame   = Overhead + MaxPayload

	header0, header1   = 0xFA, 0xFB // AMIGO-PKT-01
	minCount, maxCount = 3, 200
)

// Errors of ParseFrame and AppendFrame. ErrShort asks for more bytes.
var (
	ErrShort    = errors.New("sip: packet not complete")
	ErrHeader   = errors.New("sip: no packet header")
	ErrLength   = errors.New("sip: packet length out of range")
	ErrChecksum = errors.New("sip: bad checksum")
)

// ErrPayload says that a packet ends before its fields do.
var ErrPayload = errors.New("sip: payload too short for its type")

// Checksum returns the sum of p's byte pairs, high byte first, modulo 65536, with a left-over byte XORed in (AMIGO-PKT-07).
func Checksum(p []byte) uint16 {
	var sum uint16
	for len(p) > 1 {
		sum += uint16(p[0])<<8 | uint16(p[1])
		p = p[2:]
	}
	if len(p) > 0 {
		sum ^= uint16(p[0])
	}
	return sum
}

// ParseFrame returns the payload of the packet at the start of b and the number of bytes it took. The payload aliases b and has at
// least one byte. ErrShort asks for more bytes; after any other error the caller drops n bytes and tries again (AMIGO-PKT-09). The
// errors are the sentinels above, bare, because a noisy line makes many of them.
func ParseFrame(b []byte) (payload []byte, n int, err error) {
	switch {
	case len(b) > 0 && b[0] != header0, len(b) > 1 && b[1] != header1:
		return nil, 1, ErrHeader
	case len(b) < 3:
		return nil, 0, ErrShort
	}
	count := int(b[2])
	switch {
	case count < minCount || count > maxCount:
		return nil, 1, ErrLength
	case len(b) < 3+count:
		return nil, 0, ErrShort
	}
	payload = b[3 : 1+count : 1+count]
	if Checksum(payload) != binary.BigEndian.Uint16(b[1+count:]) {
		return nil, 1, ErrChecksum
	}
	return payload, 3 + count, nil
}

// AppendFrame appends payload to dst as one packet. The checksum is sent high byte first, unlike arguments (AMIGO-PKT-08). It returns
// ErrLength unless payload has 1 to MaxPayload bytes; dst is then unchanged.
func AppendFrame(dst, payload []byte) ([]byte, error) {
	return seal(append(open(dst), payload...), len(dst))
}

// open appends the header of a packet whose payload follows; seal, given where the packet began, fills in count and checksum.
func open(dst []byte) []byte { return append(dst, header0, header1, 0) }

func seal(dst []byte, start int) ([]byte, error) {
	payload := dst[start+3:]
	if len(payload) == 0 || len(payload) > MaxPayload {
		return dst[:start], ErrLength
	}
	dst[start+2] = byte(len(payload) + 2)
	return binary.BigEndian.AppendUint16(dst, Checksum(payload)), nil
}
