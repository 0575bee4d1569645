package corelink

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Version is the protocol's version, in every frame.
const Version = 2

const (
	magic  = 'K'
	header = 8
)

// ErrVersion: the peer speaks another version of the protocol.
var ErrVersion = errors.New("corelink: other protocol version")

// AppendFrame appends m to dst as one frame. ErrMalformed if m holds what the protocol cannot carry: a number that is not finite, text that is not
// UTF-8, a list over its bound; dst is then returned as it was.
func AppendFrame(dst []byte, m Message) ([]byte, error) {
	at := len(dst)
	c := coder{b: append(dst, magic, Version, 0, 0, 0, 0, 0, 0)}
	binary.LittleEndian.PutUint16(c.b[at+2:], uint16(m.Type()))
	m.wire(&c)
	n := len(c.b) - at - header
	if n > MaxPayload {
		c.fail("payload of %d bytes, want at most %d", n, MaxPayload)
	}
	if c.err != nil {
		return dst, fmt.Errorf("encode %v: %w", m.Type(), c.err)
	}
	binary.LittleEndian.PutUint32(c.b[at+4:], uint32(n))
	return c.b, nil
}

// ParseFrame returns the message at the start of b and the bytes it took. ErrShort asks for more bytes; any other error ends the connection,
// because a stream socket loses nothing: its sender is wrong.
func ParseFrame(b []byte) (Message, int, error) {
	t, n, err := parseHeader(b)
	if err != nil {
		return nil, 0, err
	}
	if len(b) < header+n {
		return nil, 0, fmt.Errorf("%w: %v has %d of %d bytes", ErrShort, t, len(b)-header, n)
	}
	m, err := decode(t, b[header:header+n])
	if err != nil {
		return nil, 0, err
	}
	return m, header + n, nil
}

func parseHeader(b []byte) (Type, int, error) {
	switch {
	case len(b) > 0 && b[0] != magic:
		return 0, 0, fmt.Errorf("%w: frame begins with %#02x, want %#02x", ErrMalformed, b[0], magic)
	case len(b) > 1 && b[1] != Version:
		return 0, 0, fmt.Errorf("%w: peer speaks version %d, want %d: programs of two releases are running", ErrVersion, b[1], Version)
	case len(b) < header:
		return 0, 0, fmt.Errorf("%w: frame header has %d of %d bytes", ErrShort, len(b), header)
	}
	t := Type(binary.LittleEndian.Uint16(b[2:]))
	n := binary.LittleEndian.Uint32(b[4:])
	if n > MaxPayload {
		return 0, 0, fmt.Errorf("%w: %v of %d bytes, want at most %d", ErrMalformed, t, n, MaxPayload)
	}
	return t, int(n), nil
}

// decode returns the message in payload, all of it. What is short here is malformed: the frame was whole.
func decode(t Type, payload []byte) (Message, error) {
	m := empty(t)
	c := coder{dec: true, b: payload}
	m.wire(&c)
	switch {
	case errors.Is(c.err, ErrShort):
		return nil, fmt.Errorf("%w: %v ends early: %v", ErrMalformed, t, c.err)
	case c.err != nil:
		return nil, fmt.Errorf("%v: %w", t, c.err)
	case len(c.b) > 0:
		return nil, fmt.Errorf("%w: %v has %d bytes too many", ErrMalformed, t, len(c.b))
	}
	return m, nil
}

// readFrame reads one message. A clean end before the first byte is io.EOF.
func readFrame(r io.Reader) (Message, error) {
	var head [header]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return nil, err
	}
	if _, _, err := parseHeader(head[:2]); !errors.Is(err, ErrShort) { // a stranger's first bytes are refused before more are awaited
		return nil, err
	}
	if _, err := io.ReadFull(r, head[2:]); err != nil {
		return nil, fmt.Errorf("frame header: %w", err)
	}
	t, n, err := parseHeader(head[:])
	if err != nil {
		return nil, err
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	return decode(t, payload)
}

// envelope is the JSON form of a message.
type envelope struct {
	Type string          `json:"type"`
	Body json.RawMessage `json:"body"`
}

// EncodeJSON returns the JSON form of m. It refuses what AppendFrame refuses.
func EncodeJSON(m Message) ([]byte, error) {
	if _, err := AppendFrame(nil, m); err != nil {
		return nil, err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %v: %w", m.Type(), err)
	}
	name := m.Type().String()
	if _, ok := m.(*Raw); ok {
		name = "raw"
	}
	return json.Marshal(envelope{Type: name, Body: body})
}

// DecodeJSON returns the message in b. Unknown keys, and what AppendFrame refuses, are errors.
func DecodeJSON(b []byte) (Message, error) {
	var e envelope
	if err := strictJSON(b, &e); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	var m Message = new(Raw)
	if e.Type != "raw" {
		var err error
		if m, err = emptyNamed(e.Type); err != nil {
			return nil, err
		}
	}
	if err := strictJSON(e.Body, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrMalformed, e.Type, err)
	}
	// One binary round: bounds are checked, and [] becomes the nil that an absent list is.
	frame, err := AppendFrame(nil, m)
	if err != nil {
		return nil, err
	}
	m, _, err = ParseFrame(frame)
	return m, err
}

func strictJSON(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}
