package corelink

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// Version is the protocol's version, in every frame.
const Version = 4

// MaxPayload bounds the payload of a frame.
const MaxPayload = 64 << 10

const (
	magic       = 'K'
	header      = 6
	maxElements = 2048 // of a list
)

var (
	// ErrMalformed: a frame or message that no side of ours sends.
	ErrMalformed = errors.New("corelink: malformed")
	// ErrVersion: the peer speaks another version of the protocol.
	ErrVersion = errors.New("corelink: wrong protocol version")
)

// encoding and decoding refuse values without a JSON form, and values with several encodings.
var (
	encoding = must(cbor.EncOptions{
		ShortestFloat: cbor.ShortestFloat16, NaNConvert: cbor.NaNConvertReject, InfConvert: cbor.InfConvertReject, IndefLength: cbor.IndefLengthForbidden,
	}.EncMode())
	decoding = must(cbor.DecOptions{
		MaxArrayElements: maxElements, MaxMapPairs: 128, MaxNestedLevels: 12, DupMapKey: cbor.DupMapKeyEnforcedAPF,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		NaN: cbor.NaNDecodeForbidden, Inf: cbor.InfDecodeForbidden, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // of our own options, at start
	}
	return v
}

// envelope is a message with its name.
type envelope[Body ~[]byte] struct {
	_    struct{} `cbor:",toarray"`
	Type string   `json:"type"`
	Body Body     `json:"body"`
}

// AppendFrame appends m to dst as one frame. ErrMalformed if m has content that the protocol cannot
// carry: a number that is not finite, text that is not UTF-8, a list over its bound; dst is then
// returned as it was.
func AppendFrame(dst []byte, m Message) ([]byte, error) {
	e := envelope[cbor.RawMessage]{Type: Name(m)}
	var err error
	if raw, ok := m.(*Raw); ok {
		e.Type, e.Body = raw.Name, raw.Payload
	} else if e.Body, err = encoding.Marshal(m); err != nil {
		return dst, fmt.Errorf("encode %s: %w: %v", e.Type, ErrMalformed, err)
	}
	payload, err := encoding.Marshal(e)
	if err != nil {
		return dst, fmt.Errorf("encode %s: %w: %v", e.Type, ErrMalformed, err)
	}
	switch u := m.(type) { // up to 50 updates a second of each subscription
	case *Update:
		err = u.check()
	default:
		_, err = decode(payload)
	}
	if err == nil && len(payload) > MaxPayload {
		err = fmt.Errorf("%w: payload of %d bytes, want at most %d", ErrMalformed, len(payload), MaxPayload)
	}
	if err != nil { // the other side would end the connection
		return dst, fmt.Errorf("encode %s: %w", e.Type, err)
	}
	return append(binary.LittleEndian.AppendUint32(append(dst, magic, Version), uint32(len(payload))), payload...), nil
}

// decode returns the message in payload, all of it.
func decode(payload []byte) (Message, error) {
	if len(payload) > MaxPayload {
		return nil, fmt.Errorf("%w: payload of %d bytes, want at most %d", ErrMalformed, len(payload), MaxPayload)
	}
	var e envelope[cbor.RawMessage]
	if err := decoding.Unmarshal(payload, &e); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	m := empty(e.Type)
	if m == nil {
		return &Raw{Name: e.Type, Payload: e.Body}, nil
	}
	if err := decoding.Unmarshal(e.Body, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrMalformed, e.Type, err)
	}
	return m, nil
}

// readFrame reads one message. A clean end before the first byte is io.EOF. Any other error ends the connection, because a stream socket loses
// nothing: its sender is wrong.
func readFrame(r io.Reader) (Message, error) {
	var head [header]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return nil, err
	}
	switch { // a stranger's first bytes are refused before more are awaited
	case head[0] != magic:
		return nil, fmt.Errorf("%w: frame starts with %#02x, want %#02x", ErrMalformed, head[0], magic)
	case head[1] != Version:
		return nil, fmt.Errorf("%w: peer uses version %d, want %d: programs of two releases are running", ErrVersion, head[1], Version)
	}
	if _, err := io.ReadFull(r, head[2:]); err != nil {
		return nil, fmt.Errorf("frame header: %w", err)
	}
	n := binary.LittleEndian.Uint32(head[2:])
	if n > MaxPayload {
		return nil, fmt.Errorf("%w: payload of %d bytes, want at most %d", ErrMalformed, n, MaxPayload)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, fmt.Errorf("payload of %d bytes: %w", n, err)
	}
	return decode(payload)
}

// EncodeJSON returns the JSON form of m. It refuses the same content as AppendFrame.
func EncodeJSON(m Message) ([]byte, error) {
	if _, err := AppendFrame(nil, m); err != nil {
		return nil, err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", Name(m), err)
	}
	return json.Marshal(envelope[json.RawMessage]{Type: Name(m), Body: body})
}

// DecodeJSON returns the message in b. Unknown keys, and content that AppendFrame refuses, are errors.
func DecodeJSON(b []byte) (Message, error) {
	var e envelope[json.RawMessage]
	if err := strictJSON(b, &e); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	m := empty(e.Type)
	switch {
	case e.Type == Name(&Raw{}):
		m = &Raw{}
	case m == nil:
		return nil, fmt.Errorf("%w: unknown message type %.40q", ErrMalformed, e.Type)
	}
	if err := strictJSON(e.Body, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrMalformed, e.Type, err)
	}
	// One binary round: bounds are checked, and [] becomes the nil that an absent list is.
	frame, err := AppendFrame(nil, m)
	if err != nil {
		return nil, err
	}
	return readFrame(bytes.NewReader(frame))
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

// Name returns the message's name on the wire: loop_stats of a LoopStats.
func Name(m Message) string {
	var s strings.Builder
	for i, r := range reflect.TypeOf(m).Elem().Name() {
		if 'A' <= r && r <= 'Z' && i > 0 {
			s.WriteByte('_')
		}
		s.WriteRune(r)
	}
	return strings.ToLower(s.String())
}

// kinds is the type of each message by its name.
var kinds = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, m := range messages {
		all[Name(m)] = reflect.TypeOf(m).Elem()
	}
	return all
}()

// empty returns an empty message of that name; nil if this version knows none.
func empty(name string) Message {
	if t := kinds[name]; t != nil {
		return reflect.New(t).Interface()
	}
	return nil
}
