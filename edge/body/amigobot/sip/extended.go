package sip

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Identity is the reply to Sync2 (AMIGO-SYNC-05).
type Identity struct {
	Name, Class, Subclass string
}

// Append appends id to dst as one packet. It returns ErrLength if the names are too long; dst is then unchanged.
func (id *Identity) Append(dst []byte) ([]byte, error) {
	b := append(open(dst), TypeIdentity)
	for _, s := range []string{id.Name, id.Class, id.Subclass} {
		b = append(append(b, s...), 0)
	}
	return seal(b, len(dst))
}

// Parse sets id from the payload of a packet of TypeIdentity. The payload of a bare Sync2 gives ErrPayload.
func (id *Identity) Parse(p []byte) error {
	for i, s := range []*string{&id.Name, &id.Class, &id.Subclass} {
		if i == 0 && len(p) > 0 {
			p = p[1:]
		}
		var ok bool
		if *s, p, ok = cutString(p); !ok {
			return ErrPayload
		}
	}
	return nil
}

// cutString returns the NUL-terminated string at the start of p and what follows it.
func cutString(p []byte) (s string, rest []byte, ok bool) {
	before, rest, ok := bytes.Cut(p, []byte{0})
	return string(before), rest, ok
}

// Encoders are the raw ticks of both wheels (AMIGO-XP-11).
type Encoders struct {
	Left, Right int32
}

// Append appends e to dst as one packet.
func (e Encoders) Append(dst []byte) []byte {
	b := binary.LittleEndian.AppendUint32(append(open(dst), TypeEncoders), uint32(e.Left))
	b, _ = seal(binary.LittleEndian.AppendUint32(b, uint32(e.Right)), len(dst)) // the size is right
	return b
}

// Parse sets e from the payload of a packet of TypeEncoders.
func (e *Encoders) Parse(p []byte) error {
	if len(p) < 9 {
		return ErrPayload
	}
	e.Left, e.Right = int32(binary.LittleEndian.Uint32(p[1:])), int32(binary.LittleEndian.Uint32(p[5:]))
	return nil
}

// Serial holds the bytes that came in from AUX1 or AUX2 (AMIGO-XP-02, AMIGO-XP-03).
type Serial struct {
	Aux2 bool
	Data []byte // a parsed one aliases the packet
}

// MaxSerial is how many bytes one Serial carries (AMIGO-XP-05).
const MaxSerial = MaxPayload - 1

// Append appends s to dst as one packet. It returns ErrLength if Data has more than MaxSerial bytes; dst is then unchanged.
func (s Serial) Append(dst []byte) ([]byte, error) {
	kind := byte(TypeAux1)
	if s.Aux2 {
		kind = TypeAux2
	}
	return seal(append(append(open(dst), kind), s.Data...), len(dst))
}

// Parse sets s from the payload of a packet of TypeAux1 or TypeAux2.
func (s *Serial) Parse(p []byte) error {
	if len(p) == 0 {
		return ErrPayload
	}
	s.Aux2, s.Data = p[0] == TypeAux2, p[1:]
	return nil
}

// IO is all digital and analog ports (AMIGO-XP-07).
type IO struct {
	Digin, Digout []byte   // parsed ones alias the packet
	Analog        []uint16 // AnalogUnit
}

// Append appends x to dst as one packet. It returns ErrLength if that is too long; dst is then unchanged.
func (x *IO) Append(dst []byte) ([]byte, error) {
	b := append(append(open(dst), TypeIO, byte(len(x.Digin))), x.Digin...)
	b = append(append(b, byte(len(x.Digout))), x.Digout...)
	b = append(b, byte(len(x.Analog)))
	for _, v := range x.Analog {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return seal(b, len(dst))
}

// Parse sets x from the payload of a packet of TypeIO. It reuses x.Analog.
func (x *IO) Parse(p []byte) error {
	if len(p) == 0 {
		return ErrPayload
	}
	in, p, ok := cutCounted(p[1:], 1)
	out, p, ok2 := cutCounted(p, 1)
	analog, _, ok3 := cutCounted(p, 2)
	if !ok || !ok2 || !ok3 {
		return ErrPayload
	}
	x.Digin, x.Digout, x.Analog = in, out, x.Analog[:0]
	for ; len(analog) > 0; analog = analog[2:] {
		x.Analog = append(x.Analog, binary.LittleEndian.Uint16(analog))
	}
	return nil
}

// cutCounted returns as many items of size bytes as the first byte of p counts, and what follows them.
func cutCounted(p []byte, size int) (items, rest []byte, ok bool) {
	if len(p) == 0 || len(p) < 1+size*int(p[0]) {
		return nil, nil, false
	}
	n := 1 + size*int(p[0])
	return p[1:n:n], p[n:], true
}

// Playlist describes one sound (AMIGO-XP-12).
type Playlist struct {
	Sound          uint8 // in the first reply to a request for all: how many follow (AMIGO-XP-14)
	On             bool  // sounds are not muted
	Name           string
	Offset, Length uint32
}

// The name of a sound has this many bytes, padded with NUL.
const nameSize = 16

// Append appends l to dst as one packet. A name longer than 16 bytes is cut.
func (l *Playlist) Append(dst []byte) []byte {
	b := append(open(dst), TypePlaylist, l.Sound, 0)
	if l.On {
		b[len(b)-1] = 1
	}
	var name [nameSize]byte
	copy(name[:], l.Name)
	b = append(b, name[:]...)
	b = binary.LittleEndian.AppendUint32(b, l.Offset)
	b, _ = seal(binary.LittleEndian.AppendUint32(b, l.Length), len(dst)) // the size is right
	return b
}

// Parse sets l from the payload of a packet of TypePlaylist.
func (l *Playlist) Parse(p []byte) error {
	if len(p) < 3+nameSize+8 {
		return ErrPayload
	}
	name, _, _ := strings.Cut(string(p[3:3+nameSize]), "\x00")
	*l = Playlist{p[1], p[2] != 0, name, binary.LittleEndian.Uint32(p[3+nameSize:]), binary.LittleEndian.Uint32(p[7+nameSize:])}
	return nil
}
